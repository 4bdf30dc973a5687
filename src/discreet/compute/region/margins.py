"""Intervals for all margins of all measured tables, right at once however the tables were chosen.

Tables are bought in batches: all tables of one debit are chosen before any of them is drawn. Let F(b − 1) hold
everything up to the choice of batch b. Its noise is fresh given F(b − 1); so if its intervals miss with a probability
of at most α_b given F(b − 1), where F(b − 1) fixes α_b and Σ α_b ≤ α always holds, then

    P(any interval of any batch misses) ≤ E Σ_b α_b ≤ α.

The rule is α_b = α · cost_b / cost of the release: the costs of all batches and choices add up to exactly that, and it
was set before anything was drawn. A table that is dear gets narrow intervals twice over. (To divide α by the final
number of cells would not do: how many there are depends on the noise.)

Within a batch, α_b is shared evenly by all cells of all margins of its tables. If more batches may follow, half of it
is for this batch alone, and half for sequences of margins that begin in it (see `uniform`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from discreet.compute.bounds.counting import CountIntervals, Counts, bound_margin, narrow
from discreet.compute.region.uniform import Part, average, bound_mean
from discreet.values.measurement import Exact, Measurement
from discreet.values.table import count_cells

MOST_MARGIN_CELLS = 2**16
"""A table with more cells in all its margins has intervals only for margins of few attributes, and for itself."""
FEW = 3
"""How many attributes these have at most."""

Members = frozenset[str]


@dataclass(frozen=True, slots=True)
class Batch:
    """Tables that were chosen before any of them was drawn, and the share of the release's cost that they took."""

    tables: tuple[Measurement, ...]
    share: Fraction
    last: bool = False
    """Whether it was certain beforehand that no further table would follow."""

    def list_sets(self) -> dict[Members, tuple[int, ...]]:
        """The margins that get intervals, and which tables hold each; it follows from the tables' shapes alone."""
        found: dict[Members, list[int]] = {}
        for k, table in enumerate(self.tables):
            for members in list_margins(table):
                found.setdefault(members, []).append(k)
        return {members: tuple(holders) for members, holders in found.items()}


def list_margins(table: Measurement) -> list[Members]:
    """The margins of a table that get intervals."""
    sizes = table.noisy.sizes
    all_cells = math.prod(size + 1 for size in sizes.values())
    most = len(sizes) if all_cells <= MOST_MARGIN_CELLS else FEW
    chosen = [
        frozenset(members)
        for count in range(min(most, len(sizes)) + 1)
        for members in itertools.combinations(sizes, count)
    ]
    whole = frozenset(sizes)
    return chosen if whole in chosen else [*chosen, whole]


@dataclass(slots=True, eq=False)
class Region:
    """All tables of counts that the noisy measurements leave possible, with probability `coverage` for the true one.

    It is known by its margins: for every set of attributes that some measured table holds, an interval for each cell.
    """

    names: tuple[str, ...]
    """The order of attributes in every margin."""
    batches: tuple[Batch, ...]
    coverage: float
    rows: int | None = None
    """The number of rows, where that is public."""
    _found: dict[Members, CountIntervals | None] = field(init=False, default_factory=dict)
    _sets: list[dict[Members, tuple[int, ...]]] = field(init=False, default_factory=list)
    _tails: list[float] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        alpha = 1.0 - self.coverage
        for batch in self.batches:
            sets = batch.list_sets()
            sizes = {name: size for table in batch.tables for name, size in table.noisy.sizes.items()}
            events = sum(count_cells(sizes[name] for name in members) for members in sets)
            uses = 1 if batch.last else 2
            self._sets.append(sets)
            self._tails.append(alpha * float(batch.share) / (uses * max(events, 1)))

    def holds(self, members: Iterable[str]) -> bool:
        """Whether the set has intervals of its own."""
        wanted = frozenset(members)
        return any(wanted in sets for sets in self._sets)

    def bound(self, members: Iterable[str]) -> CountIntervals | None:
        """The least and the greatest count of every cell of a margin; None if no measured table holds it."""
        wanted = frozenset(members)
        if wanted not in self._found:
            self._found[wanted] = self._bound(wanted)
        return self._found[wanted]

    def bound_sets(self, sets: Iterable[Members]) -> dict[Members, CountIntervals]:
        """The intervals of several margins that are held, each narrowed by the others where one contains another."""
        known = {}
        for members in sets:
            intervals = self.bound(members)
            if intervals is not None:
                known[members] = intervals
        return narrow(known)

    def _bound(self, wanted: Members) -> CountIntervals | None:
        axes = tuple(name for name in self.names if name in wanted)
        low: Counts | None = None
        high: Counts | None = None
        seen: list[tuple[Part, np.ndarray]] = []
        started: float | None = None
        for batch, sets, tail in zip(self.batches, self._sets, self._tails, strict=True):
            if wanted not in sets or tail <= 0:
                continue
            tables = [batch.tables[k] for k in sets[wanted]]
            fresh = bound_margin(axes, tables, tail)
            low = fresh.low if low is None else np.maximum(low, fresh.low)
            high = fresh.high if high is None else np.minimum(high, fresh.high)
            if not batch.last:
                started = tail if started is None else started
                for table in tables:
                    cells = count_cells(table.noisy.sizes[name] for name in axes)
                    margin = np.asarray(table.noisy.project(axes).values, dtype=np.float64)
                    seen.append(((table.law, table.cells // cells), margin))
        if low is None or high is None:
            return None
        if len(seen) > 1 and started is not None and not any(isinstance(part[0], Exact) for part, _ in seen):
            parts = [part for part, _ in seen]
            reach = bound_mean(tuple(parts), started)
            if math.isfinite(reach):
                middle = average([margin for _, margin in seen], parts)
                low = np.maximum(low, np.ceil(middle - reach - 1e-9).astype(np.int64))
                high = np.minimum(high, np.floor(middle + reach + 1e-9).astype(np.int64))
        if not wanted and self.rows is not None:
            low = high = np.array(self.rows, dtype=np.int64)
        return CountIntervals(axes, np.maximum(low, 0), np.maximum(high, 0))


def cut_batches(
    measurements: Sequence[Measurement], whole: Fraction | None, sizes: Sequence[int] | None
) -> tuple[Batch, ...]:
    """The tables of a release in the batches that its debits bought, each with its share of the whole cost.

    Without the debits every table is a batch of its own. Where costs are not shares of the whole, the t-th batch gets
    6/(π²t²), which never adds up to more than 1 either.
    """
    if sizes is None or sum(sizes) != len(measurements):
        sizes = [1] * len(measurements)
    found: list[Batch] = []
    at = 0
    for number, count in enumerate((size for size in sizes if size), start=1):
        tables = measurements[at : at + count]
        at += count
        share = Fraction(6 * 10**6, int(math.pi**2 * number**2 * 10**6) + 1)
        last = False
        if whole is not None and whole > 0:
            cost = sum((price_table(table) for table in tables), Fraction(0))
            share, last = min(cost / whole, Fraction(1)), cost >= whole
        counted = tuple(table for table in tables if table.rate == 1)
        found.append(Batch(counted, share, last))
    return tuple(found)


def price_table(table: Measurement) -> Fraction:
    """What a table cost, in the first number of its budget; exact tables have no noise to pay for."""
    amounts: tuple[Fraction, ...] = getattr(table.cost, "amounts", (Fraction(0),))
    return amounts[0]


def group_margin(intervals: CountIntervals, groups: Mapping[str, np.ndarray]) -> tuple[Counts, Counts]:
    """The intervals of a margin whose levels are put into groups: `groups[name]` holds the group of each level."""
    low, high = intervals.low, intervals.high
    for axis, name in enumerate(intervals.axes):
        if name in groups:
            low, high = (_add_groups(end, axis, groups[name]) for end in (low, high))
    return low, high


def _add_groups(values: Counts, axis: int, group: np.ndarray) -> Counts:
    moved = np.moveaxis(values, axis, 0)
    added = np.zeros((int(group.max()) + 1, *moved.shape[1:]), dtype=np.int64)
    np.add.at(added, group, moved)
    return np.moveaxis(added, 0, axis)
