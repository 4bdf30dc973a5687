"""A credal network: a graph whose conditionals are known only within intervals, and what follows from it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.compute.bounds.bracket import Bracket, Method, bound
from discreet.compute.bounds.decision import find_candidates
from discreet.compute.bounds.problem import centre_of, tighten
from discreet.networks.answer import Answer, Decision, Interval
from discreet.networks.evidence import (
    Given,
    describe_evidence,
    encode_sets,
    pose_event,
    require_attribute,
    require_targets,
    weigh_sets,
)
from discreet.networks.formats.documents import (
    Kind,
    describe_graph,
    describe_tables,
    restore_graph,
    restore_tables,
)
from discreet.networks.intervals import SUM_TOLERANCE, pose_levels, shape_ends
from discreet.networks.network import Network, arrange_graph, arrange_tables, check_table
from discreet.networks.provenance import Provenance
from discreet.values.errors import FormatError, ImpossibleEvidence, NetworkError, QueryError, TooLarge
from discreet.values.files import write_text
from discreet.values.graph import DAG
from discreet.values.schema import Schema
from discreet.values.table import Array, Table
from discreet.values.text import show

MOST_LETTERS = 1000
"""The longest text that a file may put beside every answer."""
CREDAL_NETWORK = Kind(
    "a credal network", "discreet-credal-network", ("schema", "parents", "lower", "upper", "meaning")
)


@dataclass(frozen=True, slots=True, eq=False)
class CredalNetwork:
    """All networks with this graph whose conditionals lie within the intervals: the strong extension [003, Def. 4].

    Every conditional stands for the set {p : lower ≤ p ≤ upper, Σp = 1}, chosen independently of all others.
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
            _check_ends(name, low, high, self.dag.family(name), sizes)

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
        declared, dag = arrange_graph(schema, parents)
        low, high = arrange_tables(dag, lower, "lower table"), arrange_tables(dag, upper, "upper table")
        return cls(declared, dag, low, high, meaning)

    @classmethod
    def from_json(cls, document: object) -> CredalNetwork:
        """The credal network that `to_json` described; anything else is refused before a table is made."""
        found = CREDAL_NETWORK.check(document)
        meaning = found["meaning"]
        if not isinstance(meaning, str) or len(meaning) > MOST_LETTERS or not meaning.isprintable():
            raise FormatError(
                f"the meaning must be one line of at most {MOST_LETTERS} printable characters, not {show(meaning)}"
            )
        schema = Schema.from_json(found["schema"])
        dag = restore_graph(found["parents"], schema)
        low, high = (restore_tables(found[what], what, dag, schema) for what in ("lower", "upper"))
        return cls(schema, dag, low, high, found["meaning"])

    def to_json(self) -> dict[str, Any]:
        """The credal network as plain JSON values, without its provenance."""
        return CREDAL_NETWORK.describe(
            schema=self.schema.to_json(),
            parents=describe_graph(self.dag),
            lower=describe_tables(self.lower),
            upper=describe_tables(self.upper),
            meaning=self.meaning,
        )

    @property
    def nodes(self) -> tuple[str, ...]:
        """The attributes, in schema order."""
        return self.dag.nodes

    def ends(self, name: str) -> tuple[Table, Table]:
        """The lower and the upper table of a node."""
        index = self.dag.index(name)
        return self.lower[index], self.upper[index]

    def tighten(self) -> CredalNetwork:
        """The same sets with reachable intervals: each end is attained by some distribution of its conditional."""
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

    def contains(self, network: Network, tolerance: float = 1e-9) -> bool:
        """Whether every conditional of a network with the same schema and graph lies within its intervals."""
        if network.schema != self.schema or network.dag != self.dag:
            raise NetworkError("the network has another schema or graph than the credal network")
        return all(
            bool(
                (low.values - tolerance <= cpt.values).all() and (cpt.values <= high.values + tolerance).all()
            )
            for low, high, cpt in zip(self.lower, self.upper, network.cpts, strict=True)
        )

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
        """The network in the middle: l + (u − l)·(1 − Σl)/Σ(u − l) in every conditional of reachable intervals."""
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
            describe_evidence(given),
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
        found = self._bound(targets, pose_levels(targets, shape), given, method, seconds, max_work)
        low, high = shape_ends(found.lower, found.upper, shape)
        if found.inner_lower is None or found.inner_upper is None:
            return Bracket(low, high, coarse=found.coarse)
        return Bracket(low, high, *shape_ends(found.inner_lower, found.inner_upper, shape), found.coarse)

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
        found = self._bound(happens, function[None], given, method, seconds, max_work)
        attained = None
        if found.inner_lower is not None and found.inner_upper is not None:
            attained = float(found.inner_lower[0]), float(found.inner_upper[0])
        return Interval(float(found.lower[0]), float(found.upper[0]), attained)

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
            describe_evidence(given),
            tuple(attribute.levels[code] for code in left),
            tuple(attribute.levels[code] for code in seen),
        )

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the credal network as JSON with its whole schema, all or nothing."""
        write_text(path, CREDAL_NETWORK.format_text(self.to_json()))

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
            raise QueryError(f"the method must be both, outer, inner or exact, not {method!r}")
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
        return f"The bounds are guaranteed{', but wider than they need be' * found.coarse}."
    if method == "inner":
        return "Attained bounds: some networks give these values, others may give more extreme ones."
    gap = max((found.inner_lower - found.lower).max(), (found.upper - found.inner_upper).max())
    if found.met().all() or gap < 5e-5:
        return "The bounds are exact."
    return f"The bounds are guaranteed; exact ones are at most {gap:.2g} narrower at each end."


def _refuse(given: Given | None) -> ImpossibleEvidence:
    return ImpossibleEvidence(
        f"the evidence ({describe_evidence(given)}) has probability zero in every network of the credal set"
    )


def _check_ends(
    name: str, low: Table, high: Table, family: tuple[str, ...], sizes: Mapping[str, int]
) -> None:
    """Refuse ends of one node's conditionals between which no distribution fits, by name and place."""
    check_table(name, low, family, sizes, "lower table")
    check_table(name, high, family, sizes, "upper table")
    if low.values.min() < 0 or high.values.max() > 1:
        odd = low.values.min() if low.values.min() < 0 else high.values.max()
        raise NetworkError(f"table of {name!r} holds the end {odd:g}; ends lie between 0 and 1")
    inverted = low.values > high.values
    if inverted.any():
        at = tuple(int(k) for k in np.argwhere(inverted)[0])
        raise NetworkError(
            f"table of {name!r}: at {_place(family, at)} the lower end {low.values[at]:.9g} is above "
            f"the upper end {high.values[at]:.9g}"
        )
    least, most = low.values.sum(axis=-1), high.values.sum(axis=-1)
    if least.max() > 1 + SUM_TOLERANCE or most.min() < 1 - SUM_TOLERANCE:
        too_high = least.max() > 1 + SUM_TOLERANCE
        at = tuple(
            int(k) for k in np.unravel_index(int((least if too_high else -most).argmax()), least.shape)
        )
        raise NetworkError(
            f"table of {name!r}: at {_place(family[:-1], at)} the lower ends sum to {least[at]:.9g} and the upper "
            f"ends to {most[at]:.9g}; no distribution fits unless 1 lies between"
        )


def _place(names: Sequence[str], codes: Sequence[int]) -> str:
    return "(" + ", ".join(f"{name}={code}" for name, code in zip(names, codes, strict=True)) + ")"
