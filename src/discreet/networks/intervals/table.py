"""Guaranteed intervals for the answer that the table itself gives: the share of its rows, whatever a graph leaves out.

Every margin of every measured table has intervals that are right at once (`compute.region`). A question about
attributes that were measured together is answered from them; any other by the least and the greatest share over all
tables that fit them all.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.compute.bounds.counting import CountIntervals, narrow
from discreet.compute.region.margins import Members, Region, cut_batches, price_table
from discreet.compute.region.relaxation import Relaxation, choose_helpers
from discreet.networks.evidence import CodeSets
from discreet.networks.intervals.grouped import Question, put_together
from discreet.networks.intervals.resampled import Resampled
from discreet.networks.intervals.shares import Estimate, bound_count, bound_mean, estimate_counts, guess_rows
from discreet.networks.provenance import Provenance, find_encoding
from discreet.values.budget import Finite
from discreet.values.errors import ImpossibleEvidence, NetworkError
from discreet.values.schema import Schema
from discreet.values.schema.encoding import Encoding
from discreet.values.table import Array, Table, count_cells

MOST_QUESTION_CELLS = 2**11
"""The most cells of the table over a question's own attributes that a linear program is made for."""
MOST_COLUMNS = 2**12
"""The columns of the linear programs of one question, all levels together: some tenths of a second."""
WIDEST_PROGRAM = 2**10
"""The columns of one of them."""
MOST_NARROWED = 8
"""The most attributes of a question all of whose margins narrow each other; of more, margins of two."""
MOST_NARROWED_CELLS = 2**13
"""The most cells of such a table; of a larger one, margins of one."""
MOST_QUICK_CELLS = 2**18
"""The most cells of a table whose intervals are narrowed without a linear program."""


Beyond = Callable[[], Resampled]
"""Makes what calibrated intervals rest on where no measured table holds the question, or refuses."""


def make_region(schema: Schema, provenance: Provenance, coverage: float) -> Region:
    """All tables that a release leaves possible; tables of secret samples tell nothing about all rows."""
    said, cost = provenance.statement, provenance.cost
    whole: Fraction | None = cost.amounts[0] if isinstance(cost, Finite) else None
    if whole is not None and any(type(found.cost) is not type(cost) for found in provenance.measurements):
        whole = None
    sizes = None if said is None else [debit.tables for debit in said.debits]
    if provenance.parts:  # every part measured all of its tables at once
        sizes = [len(provenance.measurements)]
        whole = sum((price_table(found) for found in provenance.measurements), Fraction(0)) or None
    for measurement in provenance.measurements:
        for name, size in measurement.noisy.sizes.items():
            if name in schema and schema[name].size != size:
                raise NetworkError(
                    f"no intervals: the measured table over {measurement.axes} has {size} levels of {name!r}; the "
                    f"schema has {schema[name].size}"
                )
    return Region(schema.names, cut_batches(provenance.measurements, whole, sizes), coverage, provenance.rows)


@dataclass(frozen=True, slots=True)
class Spelled:
    """A question in what was measured: attributes that were cut into bits are replaced by their bits."""

    names: tuple[str, ...]
    """The measured attributes of the question, in the order of the region."""
    sizes: dict[str, int]


@dataclass(slots=True, eq=False)
class TableIntervals:
    """Intervals for what the rows of a table say, made when asked for and narrowed by all that was measured."""

    schema: Schema
    provenance: Provenance
    coverage: float
    region: Region = field(init=False)
    _encoding: Encoding = field(init=False)
    _links: tuple[Table, ...] = field(init=False, default=())

    def __post_init__(self) -> None:
        self.region = make_region(self.schema, self.provenance, self.coverage)
        self._encoding = find_encoding(self.schema, self.provenance)
        self._links = tuple(self._list_links())

    def answers(self, names: Sequence[str]) -> bool:
        """Whether one measured table holds all these attributes."""
        return self.region.holds(self._spell(names).names)

    def lift(self, targets: Sequence[str], functions: Array, evidence: CodeSets) -> Question:
        """The same question about groups of levels, where it tells no two levels of a group apart and a table holds it.

        What a search has put in groups it has measured beside other attributes as groups alone.
        """
        asked = lifted = (tuple(targets), functions, evidence)
        if self._encoding.kind == "merged" and not self.answers([*targets, *evidence]):
            for found in self._encoding.derived:
                lifted = put_together(found, *lifted)
        return lifted if self.answers([*lifted[0], *lifted[2]]) else asked

    def count_rows(self) -> tuple[int, int]:
        """The least and the greatest number of rows of the table."""
        total = self.region.bound(frozenset())
        if total is None:
            raise NetworkError("no intervals: no table over all rows was measured")
        return max(int(total.low), 1), int(total.high)

    def guess_rows(self) -> float:
        """The number of rows, estimated from all measured tables by their precision, or what is public of it."""
        return guess_rows(
            [table for batch in self.region.batches for table in batch.tables], self.region.rows
        )

    def estimate_count(self, event: CodeSets, beyond: Beyond) -> tuple[float, float]:
        """The ends of a calibrated interval for a number of rows, from all tables that hold the attributes."""
        spelled = self._spell(list(event))
        inside = self._weigh(spelled, event)
        parts = (inside, 1.0 - inside)
        found, _ = self._estimate(spelled, parts, spelled.names, beyond, world=False)
        return bound_count(found, self.coverage)

    def _estimate(
        self,
        spelled: Spelled,
        parts: Sequence[Array],
        targets: Sequence[str],
        beyond: Beyond,
        *,
        world: bool,
    ) -> tuple[Estimate, bool]:
        """The rows in each part, and whether what sampling adds to their spread is yet to be added."""
        if self.region.holds(spelled.names):
            tables = [table for batch in self.region.batches for table in batch.tables]
            return estimate_counts(tables, spelled.names, parts), world
        return beyond().estimate(spelled.names, parts, targets, world=world), False

    def explain(self, names: Sequence[str]) -> str:
        """Why an interval is wide: which attributes were not measured together; empty if they were."""
        if self.answers(names):
            return ""
        different = tuple(
            dict.fromkeys(names)
        )  # a mean is asked for among rows that have a number, of the same attribute
        if len(different) == 1:
            different = self._spell(names).names
        return f"No measured table holds {_join(different)} together."

    def bound(
        self, targets: Sequence[str], functions: Array, evidence: CodeSets, *, quick: bool = False
    ) -> tuple[Array, Array]:
        """The ends of E[f(targets) | evidence] in the table, for each function f; `quick` needs no linear program.

        A linear program tells apart only what each function does. Evidence that no row can fit is refused.
        """
        spelled = self._spell([*targets, *evidence])
        cells = count_cells(spelled.sizes.values())
        held = self.region.holds(spelled.names)
        shape = functions.shape[1:]
        low, high = np.empty(len(functions)), np.empty(len(functions))
        given = self._weigh(spelled, {name: list(codes) for name, codes in evidence.items()})
        if (quick or held) and cells <= MOST_QUICK_CELLS:
            known = self._narrow(spelled, list(evidence))
            if known is not None:
                counts, rows = known[frozenset(spelled.names)], self._count_rows(known, spelled, evidence)
                for k, function in enumerate(functions):
                    weights = self._pull(spelled, targets, function)
                    low[k], high[k] = _bound_share(counts, weights, given, rows)
                return low, high
        flat = functions.reshape(len(functions), -1)
        low[:], high[:] = flat.min(axis=1), flat.max(axis=1)
        if quick or _is_too_large(spelled, targets, evidence, self._encoding):
            return low, high
        relaxation: Relaxation | None = None
        fewest: float | None = None
        for k, function in enumerate(functions):
            groups = self._group(spelled, targets, function, evidence, shape)
            if relaxation is None:
                relaxation = self._relax(spelled, groups, min(WIDEST_PROGRAM, MOST_COLUMNS // len(functions)))
            for added in relaxation.helpers:
                groups |= {name: np.arange(self.schema[name].size) for name in added}
            relaxation.regroup(groups)
            inside = _collapse(given, spelled.names, groups)
            worth = _collapse(self._pull(spelled, targets, function), spelled.names, groups)
            if fewest is None:
                fewest = max(1.0, relaxation.bound_sum(inside)[0])
            low[k], high[k] = relaxation.bound_share(worth, inside, fewest)
        return low, high

    def estimate(
        self, targets: Sequence[str], functions: Array, evidence: CodeSets, beyond: Beyond, *, world: bool
    ) -> tuple[Array, Array]:
        """The ends of calibrated intervals for E[f(targets) | evidence] in the table, for each f (see `shares`).

        What no table holds is estimated by what `beyond` makes (see `resampled`), which may refuse."""
        spelled = self._spell([*targets, *evidence])
        given = self._weigh(spelled, evidence)
        low, high = np.empty(len(functions)), np.empty(len(functions))
        for k, function in enumerate(functions):
            worth = self._pull(spelled, targets, function)
            values = np.unique(worth[given > 0])[::-1]
            parts = [given * (worth == value) for value in values]
            found, sampled = self._estimate(spelled, parts, targets, beyond, world=world)
            low[k], high[k] = bound_mean(found, values, self.coverage, world=sampled)
        return low, high

    def range(self, targets: Sequence[str], function: Array, evidence: CodeSets) -> tuple[float, float]:
        """The least and the greatest value of a function of the targets that the evidence leaves possible."""
        spelled = self._spell([*targets, *evidence])
        found = self._pull(spelled, targets, function)[self._weigh(spelled, evidence) > 0]
        return (float(found.min()), float(found.max())) if found.size else (0.0, 0.0)

    def bound_counts(self, event: CodeSets) -> tuple[int, int]:
        """The least and the greatest number of rows of the table that have one of these levels each."""
        spelled = self._spell(list(event))
        inside = self._weigh(spelled, event)
        if self.region.holds(spelled.names) and inside.size <= MOST_QUICK_CELLS:
            known = self._narrow(spelled)
            if known is not None:
                chosen = inside > 0
                counts, total = known[frozenset(spelled.names)], known[frozenset()]
                least, most = int(counts.low[chosen].sum()), int(counts.high[chosen].sum())
                rest_low, rest_high = int(counts.low[~chosen].sum()), int(counts.high[~chosen].sum())
                return max(least, int(total.low) - rest_high), min(most, int(total.high) - rest_low)
        if _is_too_large(spelled, (), event, self._encoding):
            return 0, self.count_rows()[1]
        groups = self._group(spelled, (), np.ones(()), event, ())
        relaxation = self._relax(spelled, groups, WIDEST_PROGRAM)
        for added in relaxation.helpers:
            groups |= {name: np.arange(self.schema[name].size) for name in added}
        relaxation.regroup(groups)
        low, high = relaxation.bound_sum(_collapse(inside, spelled.names, groups))
        return max(0, int(np.ceil(low - 1e-6))), int(np.floor(high + 1e-6))

    def bound_table(self, members: Sequence[str]) -> CountIntervals | None:
        """Intervals for every cell of a table over these attributes, without a linear program; None if it is too large.

        Where it was not measured they start as [0, n] and are narrowed by the margins that were: Fréchet's bounds.
        """
        spelled = self._spell(members)
        if count_cells(spelled.sizes.values()) > MOST_QUICK_CELLS:
            return None
        known = self._narrow(spelled)
        return None if known is None else known[frozenset(spelled.names)]

    def _relax(self, spelled: Spelled, groups: Mapping[str, np.ndarray], most: int) -> Relaxation:
        cells = count_cells(int(groups[name].max()) + 1 for name in spelled.names)
        linked = {link.axes[-1]: set(link.axes[:-1]) for link in self._links if len(link.axes) == 2}
        helpers = choose_helpers(self.region, spelled.names, cells, self.schema.sizes, linked, most)
        return Relaxation(self.region, spelled.names, helpers, self._links)

    def _narrow(self, spelled: Spelled, given: Sequence[str] = ()) -> dict[Members, CountIntervals] | None:
        """The intervals of the question's table and of its margins, narrowed by each other.

        Of a small table these are all margins; of a large one those of single attributes, and that of what is given.
        """
        names, whole = spelled.names, frozenset(spelled.names)
        total = self.region.bound(frozenset())
        if total is None:
            return None
        most = len(names) if len(names) <= MOST_NARROWED else 2
        most = most if count_cells(spelled.sizes.values()) <= MOST_NARROWED_CELLS else 1
        sets = {frozenset(found) for k in range(most + 1) for found in itertools.combinations(names, k)}
        known = {
            members: found
            for members in (*sets, frozenset(self._spell(given).names), whole)
            if (found := self.region.bound(members))
        }
        if whole not in known:
            shape = [spelled.sizes[name] for name in names]
            full = np.full(shape, int(total.high), dtype=np.int64)
            known[whole] = CountIntervals(names, np.zeros_like(full), full)
        return narrow(known)

    def _count_rows(
        self, known: Mapping[Members, CountIntervals], spelled: Spelled, evidence: CodeSets
    ) -> tuple[float, float]:
        """The least and the greatest number of rows that fit the evidence, from the margin over it."""
        there = self._spell(list(evidence))
        margin = known.get(frozenset(there.names))
        if margin is None:
            return 0.0, float("inf")
        inside = self._weigh(there, evidence) > 0
        return float((margin.low * inside).sum()), float((margin.high * inside).sum())

    def _spell(self, names: Sequence[str]) -> Spelled:
        wanted = dict.fromkeys(names)
        if self._encoding.kind == "binary":
            wanted = dict.fromkeys(part for name in names for part in self._encoding.spell(name))
        kept = tuple(name for name in self.region.names if name in wanted)
        return Spelled(kept, {name: self.schema[name].size for name in kept})

    def _code(self, name: str, spelled: Spelled) -> tuple[tuple[str, ...], Array]:
        """The measured attributes that an attribute of the question is read from, and its level in each of their cells.

        −1 where bits spell no level.
        """
        parts = (name,) if name in spelled.sizes else self._encoding.spell(name)
        shape = [spelled.sizes[part] for part in parts]
        codes = np.arange(count_cells(shape)).reshape(shape)
        return parts, np.where(codes < self.schema[name].size, codes, -1)

    def _weigh(self, spelled: Spelled, evidence: CodeSets) -> Array:
        """The indicator of the evidence over the measured attributes of the question."""
        inside = np.ones([1] * len(spelled.names))
        for name, levels in evidence.items():
            parts, codes = self._code(name, spelled)
            inside = inside * Table(parts, np.isin(codes, list(levels)).astype(np.float64)).spread(
                spelled.names
            )
        shape = [spelled.sizes[name] for name in spelled.names]
        return np.ascontiguousarray(np.broadcast_to(inside, shape))

    def _pull(self, spelled: Spelled, targets: Sequence[str], function: Array) -> Array:
        """A function of the targets over the measured attributes of the question."""
        shape = [spelled.sizes[name] for name in spelled.names]
        if not targets:
            return np.broadcast_to(function, shape)
        codes = []
        for name in targets:
            parts, found = self._code(name, spelled)
            codes.append(np.broadcast_to(Table(parts, found).spread(spelled.names), shape))
        spelt = np.all([found >= 0 for found in codes], axis=0)
        return np.where(spelt, function[tuple(np.maximum(found, 0) for found in codes)], 0.0)

    def _group(
        self,
        spelled: Spelled,
        targets: Sequence[str],
        function: Array,
        evidence: CodeSets,
        shape: tuple[int, ...],
    ) -> dict[str, Any]:
        """Levels that neither the function nor the evidence tells apart are put together; bits stay apart."""
        groups: dict[str, Any] = {}
        for name in spelled.names:
            size = spelled.sizes[name]
            marks: list[Array] = []
            if name in targets:
                rest = np.moveaxis(function, list(targets).index(name), 0).reshape(size, -1)
                marks.append(rest)
            if name in evidence:
                marks.append(np.isin(np.arange(size), list(evidence[name]))[:, None].astype(np.float64))
            groups[name] = (
                np.unique(np.hstack(marks), axis=0, return_inverse=True)[1].reshape(-1)
                if marks
                else np.arange(size)
            )
        return groups

    def _list_links(self) -> list[Table]:
        links = []
        for name in self._encoding.schema.names:
            parts = [part for part in self._encoding.parts(name) if part in self.schema]
            if self._encoding.kind == "binary" and len(parts) > 1:
                links.append(Table(tuple(parts), self._encoding.possible(parts).astype(np.int64)))
            elif self._encoding.nests:
                links += [
                    Table((name, part), self._encoding.possible((name, part)).astype(np.int64))
                    for part in parts
                ]
        return links


def _is_too_large(spelled: Spelled, targets: Sequence[str], evidence: CodeSets, encoding: Encoding) -> bool:
    """Whether even the table that tells apart only what the question does has too many cells for a program."""
    whole = encoding.kind == "binary"
    return (
        count_cells(
            spelled.sizes[name] if whole or name not in (*targets, *evidence) else 2 for name in spelled.names
        )
        > MOST_QUESTION_CELLS
    )


def _collapse(values: Array, names: Sequence[str], groups: Mapping[str, Any]) -> Array:
    """A function that is constant on groups, as a function of the groups."""
    for axis, name in enumerate(names):
        first = np.unique(groups[name], return_index=True)[1]
        values = np.take(values, first, axis=axis)
    return values


def _bound_share(
    counts: CountIntervals, worth: Array, given: Array, rows: tuple[float, float]
) -> tuple[float, float]:
    """The least and the greatest Σ f·n / Σ n over the cells of the evidence: counts within their intervals, and their
    sum within that of `rows`.

    For a given sum, the least share has the cells of smallest worth as full as can be. In between the sums at which
    another cell is full, the share only rises or only falls, so one of those sums is best.
    """
    inside = given > 0
    low, high = counts.low[inside].astype(np.float64), counts.high[inside].astype(np.float64)
    least, most = max(1.0, rows[0], float(low.sum())), min(rows[1], float(high.sum()))
    if most < 1:
        raise ImpossibleEvidence("no row of the table can fit the evidence")
    ends = [
        _find_least(low, high, sign * worth[inside], min(least, most), max(least, most)) for sign in (1, -1)
    ]
    return ends[0], 0.0 - ends[1]  # no negative zero


def _find_least(low: Array, high: Array, worth: Array, least: float, most: float) -> float:
    order = np.argsort(worth, kind="stable")
    room = (high - low)[order]
    rows = low.sum() + np.concatenate([[0.0], np.cumsum(room)])
    value = (low * worth).sum() + np.concatenate([[0.0], np.cumsum(room * worth[order])])
    sums = np.clip(np.append(rows, [least, most]), least, most)
    return float((np.interp(sums, rows, value) / sums).min())


def _join(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
