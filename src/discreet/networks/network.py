"""A discrete Bayesian network: a schema, a graph, and one conditional probability table for each node."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from discreet.compute.constrained import decompose_constrained
from discreet.compute.inference import Engine, Marginals
from discreet.compute.sampling import Seed, log_likelihood
from discreet.networks.answer import Answer, EventProbability, Explanation
from discreet.networks.evidence import (
    Given,
    Likelihood,
    describe_evidence,
    encode_evidence_rows,
    encode_sets,
    enter_evidence,
    pose_event,
    require_targets,
)
from discreet.networks.formats.bif_text import format_bif_text
from discreet.networks.formats.documents import (
    Kind,
    describe_graph,
    describe_tables,
    restore_graph,
    restore_tables,
)
from discreet.networks.intervals import SUM_TOLERANCE, IntervalPolicy, Intervals, Whose
from discreet.networks.provenance import Provenance, find_declared, find_encoding, find_spelling
from discreet.networks.synthetic import Rows, weigh_stray
from discreet.values.errors import ImpossibleEvidence, NetworkError
from discreet.values.files import write_text
from discreet.values.graph import DAG
from discreet.values.notebook import tabulate
from discreet.values.schema import Schema
from discreet.values.table import Table
from discreet.values.text import show

NETWORK = Kind("a network", "discreet-network", ("schema", "parents", "cpts"), ("parents", "cpts"))


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """A validated Bayesian network; the axes of each table are the parents in order, then the child."""

    schema: Schema
    dag: DAG
    cpts: tuple[Table, ...]
    provenance: Provenance | None = field(default=None, compare=False)
    """Set if the network was learned from private rows: what was measured and what it cost."""
    _engine: Engine | None = field(init=False, default=None, compare=False)
    _intervals: IntervalPolicy = field(init=False, compare=False)

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
        policy = IntervalPolicy(self.schema, self.dag, self.cpts, self.provenance)
        object.__setattr__(self, "_intervals", policy)

    @classmethod
    def build(
        cls,
        schema: Schema | Mapping[str, Sequence[str]],
        parents: DAG | Mapping[str, Sequence[str]],
        cpts: Mapping[str, npt.ArrayLike],
    ) -> Network:
        """A network from plain arrays: `cpts[name]` has one axis per parent, in order, then the child's axis."""
        declared, dag = arrange_graph(schema, parents)
        return cls(declared, dag, arrange_tables(dag, cpts))

    @classmethod
    def from_json(cls, document: object) -> Network:
        """The network that `to_json` described; anything else is refused before a table is made."""
        found = NETWORK.check(document)
        schema = Schema.from_json(found["schema"])
        dag = restore_graph(found["parents"], schema)
        return cls(schema, dag, restore_tables(found["cpts"], "cpts", dag, schema))

    def to_json(self) -> dict[str, Any]:
        """The network as plain JSON values, without its provenance."""
        return NETWORK.describe(
            schema=self.schema.to_json(), parents=describe_graph(self.dag), cpts=describe_tables(self.cpts)
        )

    @property
    def nodes(self) -> tuple[str, ...]:
        """The attributes, in schema order."""
        return self.dag.nodes

    @property
    def declared(self) -> Schema:
        """The schema without what an encoding has added to it for the search, which no synthetic row shows."""
        return find_declared(self.schema, self.provenance)

    def list_arrows(self) -> list[tuple[str, str]]:
        """The arrows between declared attributes, each once: bits and groups of levels count as what they come from."""
        source = find_encoding(self.schema, self.provenance).source
        arrows = ((source(parent), source(child)) for parent, child in self.dag.edges())
        return list(dict.fromkeys((parent, child) for parent, child in arrows if parent != child))

    @property
    def stray(self) -> float:
        """At most how probable it is that the bits of some attribute spell no level, before any evidence.

        Synthetic rows are drawn without such bits, but a query counts them as the levels that they are nearest to; so
        this is how far the two can be apart.
        """
        return weigh_stray(self.engine, find_spelling(self.schema, self.dag, self.provenance))

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
        intervals: Intervals | str | None = None,
        of: Whose | str | None = None,
    ) -> Answer:
        """P(target | given), for one attribute or jointly for several; `likelihood` is soft evidence.

        Evidence names the level that an attribute has, or a list of levels of which it has one.
        `intervals` for the noise in the answer are "guaranteed", "calibrated" or "none". By default a privately learned
        network answers with guaranteed ones where that is quick, and an answer without them says why. They are `of`
        the "table" and its own answer, the "network" without the noise (the default where the graph was given), or the
        "world" of which the rows are a sample.
        """
        kind, subject = Intervals.read(intervals), Whose.read(of)
        targets = require_targets(self.schema, target)
        levels = tuple(self.schema[name].levels for name in targets)
        codes, weights = enter_evidence(self.schema, given, likelihood)
        try:
            if len(targets) == 1:
                table = Table(targets, self.engine.marginal(targets[0], codes, weights))
            else:
                table = self.engine.joint(targets, codes, weights)
        except ImpossibleEvidence:
            self._refuse(given, likelihood)
        answer = Answer(table, levels, describe_evidence(given, likelihood))
        evidence = encode_sets(self.schema, given)
        return self._intervals.surround(answer, evidence, kind, subject, soft=bool(likelihood))

    def query_event(
        self,
        event: Given,
        given: Given | None = None,
        *,
        intervals: Intervals | str | None = None,
        of: Whose | str | None = None,
    ) -> EventProbability:
        """P(event | given) with its interval; the event names a level, or several, for each of some attributes."""
        kind, subject = Intervals.read(intervals), Whose.read(of)
        point = self.probability(event, given)
        names, function = pose_event(self.schema, event)
        codes = encode_sets(self.schema, given)
        return EventProbability(
            point, *self._intervals.bound_event(point, names, function, codes, kind, subject)
        )

    def require_intervals(self, of: Whose | str | None = None) -> None:
        """Refuse a network that can have no intervals about this, with the reason."""
        lack = self._intervals.explain_lack(Whose.read(of) or self._intervals.default)
        if lack:
            raise NetworkError(f"no intervals: {lack}")

    def posteriors(self, given: Given | None = None, *, likelihood: Likelihood | None = None) -> Marginals:
        """P(X | given) of every attribute X, as arrays in level order."""
        codes, weights = enter_evidence(self.schema, given, likelihood)
        try:
            return self.engine.posteriors(codes, weights or None)
        except ImpossibleEvidence:
            self._refuse(given, likelihood)

    def probability(
        self, event: Given, given: Given | None = None, *, likelihood: Likelihood | None = None
    ) -> float:
        """P(event | given), where the event names a level, or several, for each of some attributes."""
        happens = encode_sets(self.schema, event)
        codes, weights = enter_evidence(self.schema, given, likelihood)
        known = self.engine.log_probability(codes, weights)
        if known == -np.inf:
            self._refuse(given, likelihood)
        if any(name in codes and codes[name] not in allowed for name, allowed in happens.items()):
            return 0.0
        both, kept = dict(codes), dict(weights)
        for name, allowed in happens.items():
            if len(allowed) == 1:
                both[name] = allowed[0]
            elif name not in both:
                inside = np.isin(np.arange(self.schema[name].size), allowed).astype(np.float64)
                kept[name] = inside * kept.get(name, 1.0)
                if not kept[name].any():
                    return 0.0
        return min(1.0, float(np.exp(self.engine.log_probability(both, kept) - known)))

    def most_probable(
        self,
        given: Given | None = None,
        *,
        targets: str | Sequence[str] | None = None,
        likelihood: Likelihood | None = None,
    ) -> Explanation:
        """The most probable levels of all unobserved attributes, or of the targets with the rest summed out."""
        wanted = None if targets is None else require_targets(self.schema, targets)
        codes, weights = enter_evidence(self.schema, given, likelihood)
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
        return log_likelihood(self.dag, self.cpts, self.schema.encode(rows, strict=True))

    def sample(
        self,
        n: int,
        *,
        rng: Seed,
        given: Given | None = None,
        likelihood: Likelihood | None = None,
        balanced: bool | None = None,
    ) -> Rows:
        """n rows, drawn when looked at; with evidence they follow the posterior, exactly.

        `balanced` rows have counts as near to the network's as n rows can, and every event in its exact expectation:
        the default where the network was learned from private rows. Else rows are independent, as people are.
        """
        codes, weights = enter_evidence(self.schema, given, likelihood) if given or likelihood else ({}, {})
        try:
            factors = self._decompose(codes, weights)
        except ImpossibleEvidence:
            self._refuse(given, likelihood)
        shown = self.declared
        hidden = frozenset(self.schema.names) - frozenset(shown.names)
        spelling = find_spelling(self.schema, self.dag, self.provenance)
        if balanced is None:
            balanced = self.provenance is not None
        return Rows.draw(
            shown, factors, n, rng=rng, hidden=hidden, spelling=spelling, balanced=bool(balanced)
        )

    def _decompose(
        self, codes: Mapping[str, int], weights: Mapping[str, npt.NDArray[np.float64]]
    ) -> list[Table]:
        """The conditionals to draw rows from: the network's, given the evidence and all that holds between columns."""
        if self.schema.constraints:
            return decompose_constrained(self.schema, self.dag, self.cpts, codes, weights)
        if codes or weights:
            return self.engine.decompose(codes, weights)
        return [self.cpt(name) for name in self.dag.order]

    def write_bif(self, path: str | os.PathLike[str], made_from: str = "") -> None:
        """Write the network for other Bayesian-network tools, all or nothing; with the digest of its document."""
        write_text(path, format_bif_text(self.schema, self.dag, self.cpts, made_from))

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the network as JSON with its whole schema, all or nothing."""
        write_text(path, NETWORK.format_text(self.to_json()))

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

    def _refuse(self, given: Given | None, likelihood: Likelihood | None, where: str = "") -> NoReturn:
        raise ImpossibleEvidence(
            f"{where}the evidence ({describe_evidence(given, likelihood)}) has probability zero in this network"
        ) from None


def arrange_graph(
    schema: Schema | Mapping[str, Sequence[str]], parents: DAG | Mapping[str, Sequence[str]]
) -> tuple[Schema, DAG]:
    """A schema and a graph from plain mappings, the nodes in schema order."""
    declared = schema if isinstance(schema, Schema) else Schema.of(schema)
    graph = parents if isinstance(parents, DAG) else DAG.build(parents)
    return declared, graph.arrange(declared.names)


def arrange_tables(dag: DAG, arrays: Mapping[str, npt.ArrayLike], what: str = "table") -> tuple[Table, ...]:
    """Plain arrays as tables over the families of a graph; `what` is how messages call each."""
    missing = [name for name in dag.nodes if name not in arrays]
    if missing or len(arrays) > len(dag):
        wrong = missing[0] if missing else next(name for name in arrays if name not in dag)
        raise NetworkError(f"{what} for {wrong!r}: {'missing' if missing else 'no such node'}")
    found = []
    for name in dag.nodes:
        try:
            values = np.array(arrays[name], dtype=np.float64)
        except (TypeError, ValueError):
            raise NetworkError(
                f"{what} of {name!r} is {show(arrays[name])}; probabilities are numbers"
            ) from None
        if values.ndim != len(dag.family(name)):
            raise NetworkError(
                f"{what} of {name!r} needs axes {dag.family(name)}; its array has {values.ndim} dimensions"
            )
        found.append(Table(dag.family(name), values))
    return tuple(found)


def check_table(
    name: str, table: Table, family: tuple[str, ...], sizes: Mapping[str, int], what: str = "table"
) -> None:
    """Refuse a table of a node that is not over its family and the schema's levels, or holds no finite numbers."""
    if table.axes != family:
        raise NetworkError(f"{what} of {name!r} has axes {table.axes}; its family is {family}")
    shape = tuple(sizes[member] for member in family)
    if table.values.shape != shape:
        raise NetworkError(f"{what} of {name!r} has shape {table.values.shape}; the schema says {shape}")
    if table.values.dtype != np.float64:
        raise NetworkError(f"{what} of {name!r} holds {table.values.dtype}; probabilities are float64")
    if not np.isfinite(table.values).all():
        raise NetworkError(f"{what} of {name!r} holds a value that is not a finite number")


def _check_cpt(name: str, cpt: Table, family: tuple[str, ...], sizes: Mapping[str, int]) -> None:
    check_table(name, cpt, family, sizes)
    low = cpt.values.min()
    if low < 0:
        raise NetworkError(f"table of {name!r} holds the negative probability {low:g}")
    sums = cpt.values.sum(axis=-1)
    off = np.abs(sums - 1.0)
    if off.max() > SUM_TOLERANCE:
        worst = np.unravel_index(int(off.argmax()), off.shape)
        where = ", ".join(f"{parent}={code}" for parent, code in zip(family[:-1], worst, strict=True))
        raise NetworkError(
            f"table of {name!r}: the conditional at ({where}) sums to {sums[worst]:.9g}; "
            f"it must sum to 1 within {SUM_TOLERANCE:g}"
        )
