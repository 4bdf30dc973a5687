"""Bounds on what no measured table answers: least and greatest shares over all tables that fit the intervals.

The true counts lie in {n ≥ 0 : every margin within its intervals}. That set has one dimension for each cell of the
whole table; a valid outer relaxation keeps only some tables of counts that agree where they overlap (local
consistency [Wainwright & Jordan 2008, Sec. 4.1]). Here they are the table over the attributes Q of the question, each
cut down to what the question tells apart, and the tables over Q with one more attribute b or two, for b that were
measured with at least two attributes of Q. With one margin on each side this is Fréchet's bound; through b it is
Σ_b min(n_ab, n_bc).

A share Σ f·n / Σ 1_e·n is least where min (f − p·1_e)·n = 0; Dinkelbach's steps go there from above, and the last
program's dual proves the end. That is Charnes and Cooper's linear-fractional program, with a warm start.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from discreet.compute.bounds.counting import CountIntervals
from discreet.compute.region.margins import Members, Region, group_margin
from discreet.compute.region.program import ROUNDING, Floats, Places, Program
from discreet.values.table import Table, count_cells

STEPS = 20
"""Steps towards an end; each is a valid bound, and three are usual."""

Groups = Mapping[str, Places]
"""For each attribute the group of each of its levels: what the question does not tell apart is one group."""


@dataclass(slots=True, eq=False)
class Relaxation:
    """Tables of counts around a question's attributes; the groups of levels may move, their number may not."""

    region: Region
    base: tuple[str, ...]
    """The attributes of the question, in the order of the region."""
    helpers: tuple[tuple[str, ...], ...]
    links: tuple[Table, ...] = ()
    """Which levels can go together, for attributes that follow from others: 0 where none can."""
    _sizes: dict[str, int] = field(init=False, default_factory=dict)
    _program: Program | None = field(init=False, default=None)
    _rows: list[Members] = field(init=False, default_factory=list)
    _known: dict[Members, CountIntervals] = field(init=False, default_factory=dict)
    _ties: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        sets = list(_list_subsets(self.base))
        for added in self.helpers:
            sets += [found for found in _list_subsets((*self.base, *added)) if not found <= set(self.base)]
        self._known = self.region.bound_sets(sets)

    def regroup(self, groups: Groups) -> None:
        """Tell apart only these groups of levels."""
        sizes = {name: int(group.max()) + 1 for name, group in groups.items()}
        if self._program is None or sizes != self._sizes:
            self._sizes = sizes
            self._program = self._build(groups)
        else:
            self._program.move(*self._read_rows(groups))

    @property
    def shape(self) -> tuple[int, ...]:
        """The groups of each attribute of the question."""
        return tuple(self._sizes[name] for name in self.base)

    def bound_sum(self, function: Floats) -> tuple[float, float]:
        """The least and the greatest Σ f·n over the table of the question."""
        assert self._program is not None
        low, _ = self._program.minimise(self._spread(function))
        high, _ = self._program.minimise(self._spread(-function))
        slack = ROUNDING * (1.0 + abs(low) + abs(high))
        return low - slack, -high + slack

    def bound_share(self, function: Floats, given: Floats, fewest: float) -> tuple[float, float]:
        """The least and the greatest Σ f·n / Σ 1_e·n; the evidence e, given as its indicator, has `fewest` rows."""
        least, most = float(function[given > 0].min()), float(function[given > 0].max())
        low = self._descend(function, given, most, fewest)
        high = -self._descend(-function, given, -least, fewest)
        return max(low, least), min(high, most)

    def _descend(self, function: Floats, given: Floats, start: float, fewest: float) -> float:
        assert self._program is not None
        share, inside = start, given > 0
        bound = 0.0
        cells = count_cells(self.shape)
        for _ in range(STEPS):
            bound, counts = self._program.minimise(self._spread(function * inside - share * given))
            table = counts[:cells].reshape(self.shape)
            rows = float((table * given).sum())
            if bound > -ROUNDING * fewest or rows <= 0:
                break
            reached = float((table * function * inside).sum()) / rows
            if reached >= share - 1e-7:
                break
            share = reached
        # (f − p·1_e)·n ≥ bound for every n of the region, so the share is at least p + bound/n_e for bound < 0.
        return share + min(bound, 0.0) / fewest - ROUNDING

    def _spread(self, function: Floats) -> Floats:
        """A function of the question's cells as costs of all columns."""
        assert self._program is not None
        cost = np.zeros(len(self._program.most))
        cost[: function.size] = function.ravel()
        return cost

    def _build(self, groups: Groups) -> Program:
        rows: list[Places] = []
        columns: list[Places] = []
        self._rows = []
        clusters = [self.base, *(self._arrange(added) for added in self.helpers)]
        shapes = [tuple(self._sizes[name] for name in axes) for axes in clusters]
        begins = np.cumsum([0, *(count_cells(shape) for shape in shapes)])
        own = frozenset(self.base)
        count = 0
        for k, (axes, shape) in enumerate(zip(clusters, shapes, strict=True)):
            places = begins[k] + np.arange(count_cells(shape))
            for members in self._known:
                if members <= set(axes) and (k == 0 or not members <= own):
                    rows.append(count + _mark(axes, shape, members).ravel())
                    columns.append(places)
                    count += count_cells(self._sizes[name] for name in members)
                    self._rows.append(members)
        inside = sum(len(found) for found in rows)
        self._ties = 0
        for k, (axes, shape) in enumerate(zip(clusters[1:], shapes[1:], strict=True), start=1):
            first = count + self._ties
            rows += [first + _mark(axes, shape, own).ravel(), first + np.arange(begins[1])]
            columns += [begins[k] + np.arange(count_cells(shape)), np.arange(begins[1])]
            self._ties += int(begins[1])
        ties = [np.full(count_cells(shape), 1.0) for shape in shapes[1:]]
        signs = [part for tie in ties for part in (tie, np.full(begins[1], -1.0))]
        total = self.region.bound(frozenset())
        low, high = self._read_rows(groups)
        most = float(high.max() if total is None else total.high)
        blocked = [self._find_impossible(axes, groups).ravel() for axes in clusters]
        return Program(
            np.concatenate(rows),
            np.concatenate(columns),
            np.concatenate([np.ones(inside), *signs]),
            low,
            high,
            np.where(np.concatenate(blocked), 0.0, most),
        )

    def _arrange(self, added: Sequence[str]) -> tuple[str, ...]:
        return tuple(name for name in self.region.names if name in self.base or name in added)

    def _read_rows(self, groups: Groups) -> tuple[Floats, Floats]:
        low: list[Floats] = []
        high: list[Floats] = []
        for members in self._rows:
            ends = group_margin(self._known[members], groups)
            low.append(ends[0].ravel().astype(np.float64))
            high.append(ends[1].ravel().astype(np.float64))
        zeros = np.zeros(self._ties)
        return np.concatenate([*low, zeros]), np.concatenate([*high, zeros])

    def _find_impossible(self, axes: Sequence[str], groups: Groups) -> np.ndarray:
        """The cells in which no row can be, because an attribute follows from others."""
        shape = [self._sizes[name] for name in axes]
        impossible = np.zeros(shape, dtype=bool)
        for link in self.links:
            if set(link.axes) <= set(axes):
                possible = np.asarray(link.values, dtype=np.int64)
                grouped, _ = group_margin(CountIntervals(link.axes, possible, possible), groups)
                kept = [name for name in axes if name in link.axes]
                arranged = Table(link.axes, grouped).arrange(kept).values
                impossible |= (arranged == 0).reshape(
                    [self._sizes[name] if name in link.axes else 1 for name in axes]
                )
        return impossible


def choose_helpers(
    region: Region,
    base: Sequence[str],
    cells: int,
    sizes: Mapping[str, int],
    linked: Mapping[str, set[str]],
    most: int,
) -> tuple[tuple[str, ...], ...]:
    """The attributes outside a question that can tell something about it: measured with two or more of its own.

    `cells` are those of the question's table, `linked` the attributes that another one follows from, `most` the cells
    that all tables together may have. Helpers that tie more of its attributes, or need fewer cells, go first.
    """
    found: list[tuple[int, int, tuple[str, ...]]] = []
    tied = {
        name: {other for other in base if region.holds((name, other)) or other in linked.get(name, ())}
        for name in region.names
        if name in sizes and name not in base
    }
    for name, others in tied.items():
        if len(others) >= 2:
            found.append((-len(others), cells * sizes[name], (name,)))
    chosen: list[tuple[str, ...]] = []
    used = cells
    for _, need, added in sorted(found):
        if used + need <= most:
            chosen.append(added)
            used += need
    if not chosen:  # no attribute ties two of them: try two that tie them by way of each other
        for one, two in itertools.combinations(tied, 2):
            need = cells * sizes[one] * sizes[two]
            if (
                tied[one]
                and tied[two]
                and tied[one] != tied[two]
                and region.holds((one, two))
                and used + need <= most
            ):
                chosen.append((one, two))
                used += need
    return tuple(chosen)


def _list_subsets(names: Sequence[str]) -> Iterable[Members]:
    for count in range(len(names) + 1):
        yield from (frozenset(found) for found in itertools.combinations(names, count))


def _mark(axes: Sequence[str], shape: Sequence[int], members: Members) -> Places:
    """For each cell of a table the cell of a margin that it adds to."""
    found = np.zeros(shape, dtype=np.int64)
    for axis, name in enumerate(axes):
        if name in members:
            step = np.arange(shape[axis]).reshape([-1 if k == axis else 1 for k in range(len(axes))])
            found = found * shape[axis] + step
    return found
