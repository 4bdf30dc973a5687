"""A discrete Bayesian network: a schema, a graph, and one conditional probability table for each node."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import numpy.typing as npt

from discreet.compute.inference import Engine, Marginals
from discreet.compute.sampling import Seed, log_likelihood
from discreet.networks.answer import Answer, Explanation
from discreet.networks.auxiliary import find_declared, find_spelling
from discreet.networks.evidence import (
    Given,
    Likelihood,
    encode_evidence,
    encode_evidence_rows,
    encode_likelihood,
    require_targets,
)
from discreet.networks.provenance import Provenance
from discreet.networks.synthetic import Rows
from discreet.values.errors import ImpossibleEvidence, NetworkError
from discreet.values.graph import DAG
from discreet.values.schema import Schema
from discreet.values.table import Table
from discreet.values.wording import show

if TYPE_CHECKING:
    from discreet.networks.credal.network import CredalNetwork

ROW_TOLERANCE = 1e-6
"""How far the sum of a row may be from 1; rows are taken as they are, never mended silently."""


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """A validated Bayesian network; the axes of each table are the parents in order, then the child."""

    schema: Schema
    dag: DAG
    cpts: tuple[Table, ...]
    provenance: Provenance | None = field(default=None, compare=False)
    """Set if the network was learned from private rows: what was measured and what it cost."""
    _engine: Engine | None = field(init=False, default=None, compare=False)
    _credal: CredalNetwork | str | None = field(init=False, default=None, compare=False)
    """The credal network around a privately learned one, once asked for; a text says why there is none."""

    def __post_init__(self) -> None:
        if self.schema.names != self.dag.nodes:
            raise NetworkError(
                f"the schema declares {', '.join(self.schema.names)}; the graph has {', '.join(self.dag.nodes)}"
            )
        if len(self.cpts) != len(self.dag):
            raise NetworkError(f"{len(self.dag)} nodes need as many tables, not {len(self.cpts)}")
        sizes = self.schema.sizes
        for name, cpt in zip(self.dag.nodes, self.cpts, strict=True):
            _check_cpt(name, cpt, self.dag.family(name), sizes)

    @classmethod
    def build(
        cls,
        schema: Schema | Mapping[str, Sequence[str]],
        parents: DAG | Mapping[str, Sequence[str]],
        cpts: Mapping[str, npt.ArrayLike],
    ) -> Network:
        """A network from plain arrays: `cpts[name]` has one axis per parent, in order, then the child's axis."""
        declared = schema if isinstance(schema, Schema) else Schema.of(schema)
        graph = parents if isinstance(parents, DAG) else DAG.build(parents)
        if set(graph.nodes) != set(declared.names):
            raise NetworkError(
                f"the schema declares {', '.join(declared.names)}; the graph has {', '.join(graph.nodes)}"
            )
        dag = DAG.build({name: graph.parents_of(name) for name in declared.names})
        missing = [name for name in dag.nodes if name not in cpts]
        if missing or len(cpts) > len(dag):
            wrong = missing[0] if missing else next(name for name in cpts if name not in dag)
            raise NetworkError(f"table for {wrong!r}: {'missing' if missing else 'no such node'}")
        arrays = {name: _read_numbers(name, cpts[name]) for name in dag.nodes}
        for name, values in arrays.items():
            if values.ndim != len(dag.family(name)):
                raise NetworkError(
                    f"table of {name!r} needs axes {dag.family(name)}; its array has {values.ndim} dimensions"
                )
        return cls(declared, dag, tuple(Table(dag.family(name), arrays[name].copy()) for name in dag.nodes))

    @property
    def nodes(self) -> tuple[str, ...]:
        """The attributes, in schema order."""
        return self.dag.nodes

    @property
    def declared(self) -> Schema:
        """The schema without what an encoding has added to it for the search, which no synthetic row shows."""
        return find_declared(self)

    def cpt(self, name: str) -> Table:
        """The conditional probability table of a node."""
        return self.cpts[self.dag.index(name)]

    @property
    def engine(self) -> Engine:
        """Exact inference in codes, compiled on first use; for callers who ask millions of times."""
        if self._engine is None:
            object.__setattr__(self, "_engine", Engine(self.dag, self.cpts))
        assert self._engine is not None
        return self._engine

    def query(
        self,
        target: str | Sequence[str],
        given: Given | None = None,
        *,
        likelihood: Likelihood | None = None,
        intervals: bool = True,
    ) -> Answer:
        """P(target | given), for one attribute or jointly for several; `likelihood` is soft evidence.

        A network that was privately learned on a published graph answers with guaranteed intervals for what noise has
        hidden, unless that takes longer than a second; the answer says why there are none. Without `intervals` it
        answers as fast as any other.
        """
        targets = require_targets(self.schema, target)
        levels = tuple(self.schema[name].levels for name in targets)
        codes, weights = encode_evidence(self.schema, given), encode_likelihood(self.schema, likelihood)
        try:
            if len(targets) == 1:
                table = Table(targets, self.engine.marginal(targets[0], codes, weights))
            else:
                table = self.engine.joint(targets, codes, weights)
        except ImpossibleEvidence:
            self._refuse(given, likelihood)
        answer = Answer(table, levels, self._describe(given, likelihood))
        if self.provenance is None or not intervals:
            return answer
        return self._surround(answer, given, bool(likelihood))

    def _surround(self, answer: Answer, given: Given | None, weighed: bool) -> Answer:
        from discreet.networks.credal.attachment import attach_intervals, surround

        if weighed:
            return attach_intervals("No intervals: evidence in part has none.", answer, given)
        if self._credal is None:
            object.__setattr__(self, "_credal", surround(self))
        assert self._credal is not None
        return attach_intervals(self._credal, answer, given)

    def posteriors(self, given: Given | None = None, *, likelihood: Likelihood | None = None) -> Marginals:
        """P(X | given) of every attribute X, as arrays in level order."""
        codes = encode_evidence(self.schema, given)
        try:
            return self.engine.posteriors(
                codes, encode_likelihood(self.schema, likelihood) if likelihood else None
            )
        except ImpossibleEvidence:
            self._refuse(given, likelihood)

    def probability(
        self, event: Given, given: Given | None = None, *, likelihood: Likelihood | None = None
    ) -> float:
        """P(event | given), where the event names a level for each of some attributes."""
        happens, codes = encode_evidence(self.schema, event), encode_evidence(self.schema, given)
        weights = encode_likelihood(self.schema, likelihood)
        known = self.engine.log_probability(codes, weights)
        if known == -np.inf:
            self._refuse(given, likelihood)
        if any(codes.get(name, code) != code for name, code in happens.items()):
            return 0.0
        return min(1.0, float(np.exp(self.engine.log_probability({**codes, **happens}, weights) - known)))

    def most_probable(
        self,
        given: Given | None = None,
        *,
        targets: str | Sequence[str] | None = None,
        likelihood: Likelihood | None = None,
    ) -> Explanation:
        """The most probable levels of all unobserved attributes, or of the targets with the rest summed out."""
        wanted = None if targets is None else require_targets(self.schema, targets)
        codes, weights = encode_evidence(self.schema, given), encode_likelihood(self.schema, likelihood)
        try:
            found, log_joint = self.engine.most_probable(codes, weights, wanted)
            known = self.engine.log_probability(codes, weights)
        except ImpossibleEvidence:
            self._refuse(given, likelihood)
        levels = {name: self.schema[name].levels[code] for name, code in found.items()}
        return Explanation(levels, min(1.0, float(np.exp(log_joint - known))), log_joint)

    def posteriors_of_rows(self, rows: Any) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """`posteriors` for every row of a table; columns that it lacks, and missing values in it, are unobserved.

        Returns one line for each row with all attributes' probabilities side by side in node order, and log P(row).
        """
        codes = encode_evidence_rows(self.schema, rows)
        try:
            return self.engine.posteriors_of_rows(codes)
        except ImpossibleEvidence as error:
            row = error.row or 1
            observed = zip(self.schema, codes[row - 1], strict=True)
            given = {found.name: found.levels[code] for found, code in observed if code >= 0}
            self._refuse(given, None, f"row {row}: ")

    def log_likelihood(self, rows: Any) -> npt.NDArray[np.float64]:
        """log P(row) of every complete row of a table (a mapping, frame or Arrow table of labels or numbers)."""
        return log_likelihood(self.dag, self.cpts, self.schema.encode(rows))

    def sample(
        self, n: int, *, rng: Seed, given: Given | None = None, likelihood: Likelihood | None = None
    ) -> Rows:
        """n rows, drawn when looked at; with evidence they are exact draws from the posterior."""
        if not given and not likelihood:
            factors = [self.cpt(name) for name in self.dag.order]
        else:
            codes, weights = encode_evidence(self.schema, given), encode_likelihood(self.schema, likelihood)
            try:
                factors = self.engine.decompose(codes, weights)
            except ImpossibleEvidence:
                self._refuse(given, likelihood)
        shown = self.declared
        hidden = frozenset(self.schema.names) - frozenset(shown.names)
        return Rows.draw(shown, factors, n, rng=rng, hidden=hidden, spelling=find_spelling(self))

    def write_bif(self, path: str | os.PathLike[str]) -> None:
        """Write the network for other Bayesian-network tools, all or nothing."""
        from discreet.networks.formats.bif import write_bif

        write_bif(self, path)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the network as JSON with its whole schema, all or nothing."""
        from discreet.networks.formats.network_json import write_network

        write_network(self, path)

    def close_to(self, other: Network, tolerance: float = 1e-12) -> bool:
        """Whether both have the same schema and graph, and the same tables up to `tolerance`."""
        return (
            self.schema == other.schema
            and self.dag == other.dag
            and all(
                mine.close_to(theirs, tolerance) for mine, theirs in zip(self.cpts, other.cpts, strict=True)
            )
        )

    def __repr__(self) -> str:
        cells = sum(cpt.cells for cpt in self.cpts)
        return f"Network({len(self.dag)} nodes, {len(self.dag.edges())} edges, {cells} table cells)"

    def _repr_html_(self) -> str:
        from discreet.values.notebook import tabulate

        errors = {} if self.provenance is None else self.provenance.predicted_error
        lines = (
            (
                name,
                ", ".join(self.schema[name].levels[:8]) + (", …" if self.schema[name].size > 8 else ""),
                ", ".join(self.dag.parents_of(name)),
                cpt.cells,
                *([f"± {errors[name]:.4f}"] if name in errors else []),
            )
            for name, cpt in zip(self.nodes, self.cpts, strict=True)
        )
        heads = ["attribute", "levels", "depends on", "cells", *(["expected error"] if errors else [])]
        return tabulate(repr(self), heads, lines)

    def _describe(self, given: Given | None, likelihood: Likelihood | None) -> str:
        observed = [f"{name}={level}" for name, level in (given or {}).items()]
        return ", ".join(observed + [f"{name} in part" for name in likelihood or ()])

    def _refuse(self, given: Given | None, likelihood: Likelihood | None, where: str = "") -> NoReturn:
        raise ImpossibleEvidence(
            f"{where}the evidence ({self._describe(given, likelihood)}) has probability zero in this network"
        ) from None


def _read_numbers(name: str, values: npt.ArrayLike) -> npt.NDArray[np.float64]:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise NetworkError(f"table of {name!r} is {show(values)}; probabilities are numbers") from None


def _check_cpt(name: str, cpt: Table, family: tuple[str, ...], sizes: Mapping[str, int]) -> None:
    if cpt.axes != family:
        raise NetworkError(f"table of {name!r} has axes {cpt.axes}; its family is {family}")
    shape = tuple(sizes[member] for member in family)
    if cpt.values.shape != shape:
        raise NetworkError(f"table of {name!r} has shape {cpt.values.shape}; the schema says {shape}")
    if cpt.values.dtype != np.float64:
        raise NetworkError(f"table of {name!r} holds {cpt.values.dtype}; probabilities are float64")
    if not np.isfinite(cpt.values).all():
        raise NetworkError(f"table of {name!r} holds a value that is not a finite number")
    low = cpt.values.min()
    if low < 0:
        raise NetworkError(f"table of {name!r} holds the negative probability {low:g}")
    sums = cpt.values.sum(axis=-1)
    off = np.abs(sums - 1.0)
    if off.max() > ROW_TOLERANCE:
        worst = np.unravel_index(int(off.argmax()), off.shape)
        where = ", ".join(f"{parent}={code}" for parent, code in zip(family[:-1], worst, strict=True))
        raise NetworkError(
            f"table of {name!r}: the row at ({where}) sums to {sums[worst]:.9g}; "
            f"it must sum to 1 within {ROW_TOLERANCE:g}"
        )
