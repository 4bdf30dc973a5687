"""A posterior over the tables of a network: a Dirichlet distribution for every conditional.

{"format": "discreet-posterior", "version": 1, "schema": {...}, "parents": [["lung", ["smoke"]], ...],
 "alphas": [[3.5, 90.2, ...], ...], "provenance": {...} or null}
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.networks.formats.documents import (
    LARGEST,
    Kind,
    describe_graph,
    describe_provenance,
    describe_tables,
    restore_graph,
    restore_provenance,
    restore_tables,
)
from discreet.networks.network import Network
from discreet.networks.provenance import Provenance
from discreet.values.errors import NetworkError, TableError, import_extra
from discreet.values.files import write_text
from discreet.values.graph import DAG
from discreet.values.schema import Schema
from discreet.values.table import Array, Table
from discreet.values.text import list_some, require_share

POSTERIOR = Kind(
    "a posterior", "discreet-posterior", ("schema", "parents", "alphas", "provenance"), ("parents", "alphas")
)


@dataclass(frozen=True, slots=True, eq=False)
class Posterior:
    """Independent Dirichlet distributions: `alphas[i]` holds α over the family of node i, the child last."""

    schema: Schema
    dag: DAG
    alphas: tuple[Table, ...]
    updates: tuple[Table, ...] | None = None
    """The noisy counts behind α before anything was cut off, where a mechanism released them; not written to files,
    because what they were made of stands in the provenance."""
    provenance: Provenance | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if self.schema.names != self.dag.nodes or len(self.alphas) != len(self.dag):
            raise NetworkError("a posterior needs one table for each node, in the order of its schema")
        sizes = self.schema.sizes
        for name, alpha in zip(self.dag.nodes, self.alphas, strict=True):
            family = self.dag.family(name)
            if alpha.axes != family or alpha.values.shape != tuple(sizes[member] for member in family):
                raise NetworkError(f"the posterior of {name!r} must have the axes {family} and their levels")
            if not (np.isfinite(alpha.values).all() and (alpha.values > 0).all()):
                raise NetworkError(f"the posterior of {name!r} holds an α that is not finite and above 0")

    @classmethod
    def from_json(cls, document: object) -> Posterior:
        """The posterior that `to_json` described; anything else is refused before a table is made."""
        found = POSTERIOR.check(document)
        schema = Schema.from_json(found["schema"])
        dag = restore_graph(found["parents"], schema)
        alphas = restore_tables(found["alphas"], "alphas", dag, schema, LARGEST)
        known = found["provenance"]
        return cls(
            schema, dag, alphas, provenance=None if known is None else restore_provenance(known, schema)
        )

    def to_json(self) -> dict[str, Any]:
        """The posterior as plain JSON values."""
        return POSTERIOR.describe(
            schema=self.schema.to_json(),
            parents=describe_graph(self.dag),
            alphas=describe_tables(self.alphas),
            provenance=None if self.provenance is None else describe_provenance(self.provenance),
        )

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the posterior as JSON, all or nothing; packed by gzip if the name ends in .gz."""
        write_text(path, POSTERIOR.format_text(self.to_json()))

    def alpha(self, name: str) -> Table:
        """The parameters of a node."""
        return self.alphas[self.dag.index(name)]

    def pseudo_counts(self, schema: Schema, dag: DAG) -> dict[str, Any]:
        """The α as the prior of the same graph over the same levels, by node; refused where one of them is another."""
        if schema.names != self.schema.names or any(
            schema[name].levels != self.schema[name].levels for name in schema.names
        ):
            raise NetworkError("the prior is over other attributes or levels than the schema")
        found = {}
        for name in schema.names:
            parents = dag.parents_of(name)
            if set(parents) != set(self.dag.parents_of(name)):
                raise NetworkError(
                    f"the prior of {name!r} is given {list_some(self.dag.parents_of(name)) or 'nothing'}; "
                    f"the graph gives it {list_some(parents) or 'no parents'}"
                )
            found[name] = self.alpha(name).arrange((*parents, name)).values.tolist()
        return found

    def mean(self) -> tuple[Table, ...]:
        """E[θ] = α/Σα for each conditional, which is also the probability of the next row's level."""
        return tuple(alpha.normalise(alpha.axes[-1]) for alpha in self.alphas)

    def mode(self) -> tuple[Table, ...]:
        """The densest θ, (α − 1)/Σ(α − 1), where α < 1 counts as 1; a conditional without any excess is uniform."""
        return tuple(
            Table(alpha.axes, np.maximum(alpha.values - 1.0, 0.0)).normalise(alpha.axes[-1])
            for alpha in self.alphas
        )

    def interval(self, name: str, coverage: float = 0.95) -> tuple[Table, Table]:
        """Credible bounds of every probability of a node: quantiles of its margin, Beta(α_x, Σα − α_x)."""
        require_share(coverage, "the coverage", TableError)
        special = import_extra("scipy.special", "a credible interval or a divergence", "sklearn")
        alpha = self.alpha(name)
        rest = alpha.values.sum(axis=-1, keepdims=True) - alpha.values
        tail = (1.0 - coverage) / 2.0
        low, high = (special.betaincinv(alpha.values, rest, p) for p in (tail, 1.0 - tail))
        return Table(alpha.axes, low), Table(alpha.axes, high)

    def kl(self, other: Posterior) -> float:
        """KL(self ‖ other) in nats, summed over the Dirichlet distributions of all conditionals [002, Thm. 1]."""
        if other.schema != self.schema or other.dag != self.dag:
            raise NetworkError("two posteriors are compared over the same schema and graph only")
        special = import_extra("scipy.special", "a credible interval or a divergence", "sklearn")
        pairs = zip(self.alphas, other.alphas, strict=True)
        return float(sum(_diverge(special, mine.values, theirs.values).sum() for mine, theirs in pairs))

    def network(self) -> Network:
        """The network of mean tables: what the posterior predicts for the next row."""
        return Network(self.schema, self.dag, self.mean(), provenance=self.provenance)

    def draw(self, rng: np.random.Generator | int) -> Network:
        """A network from this public posterior; post-processing, so it costs no privacy."""
        source = np.random.default_rng(rng)
        cpts = []
        for alpha in self.alphas:
            found = source.standard_gamma(alpha.values) + np.finfo(np.float64).tiny
            cpts.append(Table(alpha.axes, found).normalise(alpha.axes[-1]))
        return Network(self.schema, self.dag, tuple(cpts), provenance=self.provenance)

    def __repr__(self) -> str:
        count = sum(alpha.cells // alpha.values.shape[-1] for alpha in self.alphas)
        return f"Posterior({len(self.dag)} nodes, {count} Dirichlet distributions)"


def _diverge(special: Any, mine: Array, theirs: Array) -> npt.NDArray[np.float64]:
    """KL between Dirichlet distributions: ln B(α')/B(α) + Σ(α − α')(ψ(α) − ψ(Σα))."""
    total, other = mine.sum(axis=-1), theirs.sum(axis=-1)
    constant = special.gammaln(total) - special.gammaln(other)
    constant += (special.gammaln(theirs) - special.gammaln(mine)).sum(axis=-1)
    slope = special.digamma(mine) - special.digamma(total)[..., None]
    return np.asarray(constant + ((mine - theirs) * slope).sum(axis=-1))
