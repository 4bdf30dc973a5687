"""A credal network: a graph whose rows of probabilities are known only within intervals, and what follows from it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import overload

import numpy as np
import numpy.typing as npt

from discreet.compute.bounds import (
    Bracket,
    Method,
    bound,
    centre_of,
    find_candidates,
    list_vertices,
    tighten,
)
from discreet.networks.answer import Answer
from discreet.networks.credal.ends import arrange_ends, check_ends
from discreet.networks.credal.evidence import describe_sets, encode_sets, pose_event, weigh_sets
from discreet.networks.credal.interval import Decision, Interval
from discreet.networks.evidence import Given, encode_evidence, require_attribute, require_targets
from discreet.networks.network import Network
from discreet.networks.provenance import Provenance
from discreet.values.errors import ImpossibleEvidence, NetworkError, QueryError, TooLarge
from discreet.values.graph import DAG
from discreet.values.schema import Schema
from discreet.values.table import Array, Table, require_cells

MOST_LEVELS = 4096
"""The most combinations of target levels that are bounded in one question."""


@dataclass(frozen=True, slots=True, eq=False)
class CredalNetwork:
    """All networks with this graph whose rows lie within the intervals: the strong extension [003, Def. 4].

    Every row stands for the set {p : lower ≤ p ≤ upper, Σp = 1}, chosen independently of all others.
    """

    schema: Schema
    dag: DAG
    lower: tuple[Table, ...]
    upper: tuple[Table, ...]
    meaning: str = ""
    """What lies in the intervals, and how sure that is, in a sentence."""
    provenance: Provenance | None = field(default=None, compare=False)
    """Set if the intervals were made from noisy measurements of private rows."""
    _centre: Network | None = field(init=False, default=None, compare=False)

    def __post_init__(self) -> None:
        if self.schema.names != self.dag.nodes:
            raise NetworkError(
                f"the schema declares {', '.join(self.schema.names)}; the graph has {', '.join(self.dag.nodes)}"
            )
        for what, tables in (("lower", self.lower), ("upper", self.upper)):
            if len(tables) != len(self.dag):
                raise NetworkError(f"{len(self.dag)} nodes need as many {what} tables, not {len(tables)}")
        sizes = self.schema.sizes
        for name, low, high in zip(self.dag.nodes, self.lower, self.upper, strict=True):
            check_ends(name, low, high, self.dag.family(name), sizes)

    @classmethod
    def build(
        cls,
        schema: Schema | Mapping[str, Sequence[str]],
        parents: DAG | Mapping[str, Sequence[str]],
        lower: Mapping[str, npt.ArrayLike],
        upper: Mapping[str, npt.ArrayLike],
        *,
        meaning: str = "",
    ) -> CredalNetwork:
        """A credal network from plain arrays with one axis for each parent, in order, then the child's axis."""
        declared = schema if isinstance(schema, Schema) else Schema.of(schema)
        graph = parents if isinstance(parents, DAG) else DAG.build(parents)
        if set(graph.nodes) != set(declared.names):
            raise NetworkError(
                f"the schema declares {', '.join(declared.names)}; the graph has {', '.join(graph.nodes)}"
            )
        dag = DAG.build({name: graph.parents_of(name) for name in declared.names})
        ends = [arrange_ends(dag, given, what) for what, given in (("lower", lower), ("upper", upper))]
        return cls(declared, dag, ends[0], ends[1], meaning)

    @property
    def nodes(self) -> tuple[str, ...]:
        """The attributes, in schema order."""
        return self.dag.nodes

    def ends(self, name: str) -> tuple[Table, Table]:
        """The lower and the upper table of a node."""
        index = self.dag.index(name)
        return self.lower[index], self.upper[index]

    def tighten(self) -> CredalNetwork:
        """The same sets with reachable intervals: each end is attained by some distribution of its row."""
        ends = [tighten(low.values, high.values) for low, high in zip(self.lower, self.upper, strict=True)]
        axes = [table.axes for table in self.lower]
        return CredalNetwork(
            self.schema,
            self.dag,
            tuple(Table(names, low) for names, (low, _) in zip(axes, ends, strict=True)),
            tuple(Table(names, high) for names, (_, high) in zip(axes, ends, strict=True)),
            self.meaning,
            self.provenance,
        )

    def vertices(self, name: str, given: Given | None = None) -> npt.NDArray[np.float64]:
        """The extreme distributions of the row of a node at these levels of its parents, one a line."""
        require_attribute(self.schema, name)
        codes = encode_evidence(self.schema, given)
        if set(codes) != set(self.dag.parents_of(name)):
            raise QueryError(f"a row of {name!r} is named by a level of each of {self.dag.parents_of(name)}")
        low, high = (end.select(codes).values for end in self.ends(name))
        return list_vertices(low, high)

    def contains(self, network: Network, tolerance: float = 1e-9) -> bool:
        """Whether every row of a network with the same schema and graph lies within its intervals."""
        if network.schema != self.schema or network.dag != self.dag:
            raise NetworkError("the network has another schema or graph than the credal network")
        return all(
            bool(
                (low.values - tolerance <= cpt.values).all() and (cpt.values <= high.values + tolerance).all()
            )
            for low, high, cpt in zip(self.lower, self.upper, network.cpts, strict=True)
        )

    @property
    def widths(self) -> dict[str, float]:
        """For each node the mean width of its reachable intervals."""
        found = self.tighten()
        return {
            name: float((high.values - low.values).mean())
            for name, low, high in zip(self.nodes, found.lower, found.upper, strict=True)
        }

    @property
    def width(self) -> float:
        """The mean width of all reachable intervals, each cell of each table counted once."""
        found = self.tighten()
        pairs = list(zip(found.lower, found.upper, strict=True))
        return sum(float((high.values - low.values).sum()) for low, high in pairs) / sum(
            low.cells for low, _ in pairs
        )

    @property
    def centre(self) -> Network:
        """The network in the middle: l + (u − l)·(1 − Σl)/Σ(u − l) in every row of reachable intervals."""
        if self._centre is None:
            found = self.tighten()
            cpts = tuple(
                Table(low.axes, centre_of(low.values, high.values))
                for low, high in zip(found.lower, found.upper, strict=True)
            )
            object.__setattr__(self, "_centre", Network(self.schema, self.dag, cpts))
        assert self._centre is not None
        return self._centre

    def query(
        self,
        target: str | Sequence[str],
        given: Given | None = None,
        *,
        method: Method = "both",
        seconds: float = 10.0,
        max_work: int | None = None,
    ) -> Answer:
        """Bounds on P(target | given) for every level, around the answer of the centre.

        Evidence is a level or a collection of levels. `method` is "both" (outer bounds, and whether inner
        ones meet them), "outer" (fastest), or "exact" (search for `seconds` per level at most; the best
        bracket if time runs out).
        """
        targets = require_targets(self.schema, target)
        found = self.bound(targets, given, method=method, seconds=seconds, max_work=max_work)
        return Answer(
            self._answer_centre(targets, given, found.lower, found.upper),
            tuple(self.schema[name].levels for name in targets),
            describe_sets(given),
            found.lower,
            found.upper,
            " ".join(part for part in (self.meaning, _tell(found, method)) if part),
        )

    def bound(
        self,
        targets: Sequence[str],
        given: Given | None = None,
        *,
        method: Method = "both",
        seconds: float = 10.0,
        max_work: int | None = None,
    ) -> Bracket:
        """The bounds of `query` alone, shaped like the targets; refused where they take more than `max_work` cells."""
        shape = tuple(self.schema[name].size for name in targets)
        cells = require_cells(f"the answer over {', '.join(targets)}", shape, MOST_LEVELS)
        functions = np.eye(cells).reshape(cells, *shape)
        if cells == 2:
            functions = functions[:1]  # the other level is what is left
        found = self._bound(targets, functions, given, method, seconds, max_work)
        return Bracket(
            *_shape_ends(found.lower, found.upper, shape),
            *_shape_ends(found.inner_lower, found.inner_upper, shape),
            found.coarse,
        )

    def probability(
        self,
        event: Given,
        given: Given | None = None,
        *,
        method: Method = "both",
        seconds: float = 10.0,
        max_work: int | None = None,
    ) -> Interval:
        """Bounds on P(event | given); the event names a level, or several, of each of some attributes."""
        happens, function = pose_event(self.schema, event)
        return Interval.of(self._bound(happens, function[None], given, method, seconds, max_work))

    def expectation(
        self,
        name: str,
        values: Mapping[str, float] | npt.ArrayLike,
        given: Given | None = None,
        *,
        method: Method = "both",
        seconds: float = 10.0,
    ) -> Interval:
        """Bounds on E[value(name) | given], with one finite value for each level of the attribute."""
        attribute = require_attribute(self.schema, name)
        if isinstance(values, Mapping):
            if set(values) != set(attribute.levels):
                raise QueryError(
                    f"values for {name!r} must name each of its levels: {', '.join(attribute.levels)}"
                )
            values = [values[level] for level in attribute.levels]
        function = np.asarray(values, dtype=np.float64)
        if function.shape != (attribute.size,) or not np.isfinite(function).all():
            raise QueryError(f"values for {name!r} must be {attribute.size} finite numbers")
        return Interval.of(self._bound((name,), function[None], given, method, seconds))

    def decide(self, target: str, given: Given | None = None) -> Decision:
        """Which levels can be the most probable one: a level is out if another is certainly more probable.

        What remains contains every level that is best in some network (E-admissible); those that were seen to
        be best in one are named too.
        """
        attribute = require_attribute(self.schema, target)
        try:
            left, seen = find_candidates(
                self.dag, self.lower, self.upper, target, encode_sets(self.schema, given)
            )
        except ImpossibleEvidence:
            raise _refuse(given) from None
        return Decision(
            target,
            describe_sets(given),
            tuple(attribute.levels[code] for code in left),
            tuple(attribute.levels[code] for code in seen),
        )

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the credal network as JSON with its whole schema, all or nothing."""
        from discreet.networks.credal.document import write_credal

        write_credal(self, path)

    def __repr__(self) -> str:
        cells = sum(table.cells for table in self.lower)
        return (
            f"CredalNetwork({len(self.dag)} nodes, {len(self.dag.edges())} edges, {cells} intervals, "
            f"mean width {self.width:.3g})"
        )

    def _bound(
        self,
        targets: Sequence[str],
        functions: Array,
        given: Given | None,
        method: Method,
        seconds: float,
        max_work: int | None = None,
    ) -> Bracket:
        if method not in ("both", "outer", "inner", "exact"):
            raise QueryError(f"the method is both, outer, inner or exact, not {method!r}")
        codes = encode_sets(self.schema, given)
        try:
            return bound(
                self.dag, self.lower, self.upper, targets, functions, codes,
                method=method, seconds=seconds, max_work=max_work,
            )  # fmt: skip
        except ImpossibleEvidence:
            raise _refuse(given) from None

    def _answer_centre(
        self, targets: tuple[str, ...], given: Given | None, lower: Array, upper: Array
    ) -> Table:
        """P(targets | given) at the centre; the middle of the bounds if the graph is too dense for that."""
        try:
            answer = self.centre.query(targets, likelihood=weigh_sets(self.schema, given))
        except TooLarge:
            return Table(targets, centre_of(lower.ravel(), upper.ravel()).reshape(lower.shape))
        return Table(targets, np.clip(answer.table.values, lower, upper))


def _tell(found: Bracket, method: Method) -> str:
    """Whether the bounds are exact, and if not, how far they may be from it."""
    if found.inner_lower is None or found.inner_upper is None:
        return "Guaranteed bounds." if not found.coarse else "Guaranteed bounds, wider than they need be."
    if method == "inner":
        return "Attained bounds: some networks give these values, others may give more extreme ones."
    gap = max((found.inner_lower - found.lower).max(), (found.upper - found.inner_upper).max())
    if found.met().all() or gap < 5e-5:
        return "The bounds are exact."
    return f"The bounds are guaranteed; exact ones are at most {gap:.2g} narrower at each end."


def _refuse(given: Given | None) -> ImpossibleEvidence:
    return ImpossibleEvidence(
        f"the evidence ({describe_sets(given)}) has probability zero in every network of the credal set"
    )


@overload
def _shape_ends(low: Array, high: Array, shape: tuple[int, ...]) -> tuple[Array, Array]: ...
@overload
def _shape_ends(
    low: Array | None, high: Array | None, shape: tuple[int, ...]
) -> tuple[Array | None, Array | None]: ...
def _shape_ends(
    low: Array | None, high: Array | None, shape: tuple[int, ...]
) -> tuple[Array | None, Array | None]:
    """The ends for all levels; of two levels, only the first was bounded."""
    if low is None or high is None:
        return None, None
    if len(low) < np.prod(shape):
        low, high = np.append(low, 1.0 - high), np.append(high, 1.0 - low)
    return low.reshape(shape), high.reshape(shape)
