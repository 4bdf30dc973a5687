"""Few wide tables in place of many narrow ones: the tables of a request are margins of those that are counted.

A row costs about as much in a wide table as in a narrow one as long as the table fits the cache. So attributes are put
together until every set asked for lies in some wide one, by the sizes of the attributes and the sets alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Counts = npt.NDArray[np.int64]
Places = tuple[int, ...]
"""Columns, in the order of the axes of a table."""

WIDE_CELLS = 1 << 15
"""Cells of a wide table: 128 kilobytes of 32-bit counts, which a second-level cache holds; larger ones gain nothing."""
WORTH_COVERING = 1 << 17
"""Below so many rows a margin takes as long as counting its table from the rows."""
EFFORT = 16
"""Looking for wide tables may take one in so many of the steps that it takes to count all tables from the rows."""


def cover(
    sizes: Sequence[int], sets: Sequence[Places], rows: int, most_cells: int, wide_cells: int = WIDE_CELLS
) -> list[Places]:
    """Wide sets of columns, few of them, in which all sets lie; the distinct sets themselves where that is no gain.

    Greedy: from the largest set that is not covered yet, a wide one grows by the attribute that most of the sets lack
    which are nearest to being covered, for the logarithm of its size. A set of more than `wide_cells` cells stays by
    itself; all together have at most `most_cells`, or else narrower ones are tried. `rows` limits the time this takes.
    """
    distinct = sorted({tuple(sorted(members)) for members in sets})
    if len(distinct) < 3:
        return distinct
    cells = [math.prod(sizes[column] for column in members) for members in distinct]
    order = sorted(range(len(distinct)), key=lambda i: -cells[i])
    left = _Left.of(len(sizes), [distinct[i] for i in order])
    steps = rows * len(distinct) // EFFORT
    found: list[Places] = []
    while len(left.sizes) and steps > 0:
        wide, lacking, taken = _grow(left, np.array(sizes, dtype=np.float64), wide_cells)
        found.append(wide)
        left = left.keep(lacking > 0)
        steps -= taken
    found += left.as_sets()  # those for which there was no time
    if 2 * len(found) > len(distinct):
        return distinct
    if sum(math.prod(sizes[column] for column in members) for members in found) > max(most_cells, sum(cells)):
        return cover(sizes, sets, rows, most_cells, wide_cells // 4)
    return found


@dataclass(frozen=True, slots=True, eq=False)
class _Left:
    """Sets that are not covered yet: their columns, filled up with one that is none, and who holds each column."""

    columns: npt.NDArray[np.intp]
    holds: npt.NDArray[np.int16]
    sizes: npt.NDArray[np.int16]

    @classmethod
    def of(cls, count: int, sets: Sequence[Places]) -> _Left:
        columns = np.full((len(sets), max(map(len, sets))), count, dtype=np.intp)
        holds = np.zeros((count + 1, len(sets)), dtype=np.int16)
        for i, members in enumerate(sets):
            columns[i, : len(members)] = members
            holds[list(members), i] = 1
        return cls(columns, holds, holds.sum(axis=0, dtype=np.int16))

    def keep(self, kept: npt.NDArray[np.bool_]) -> _Left:
        return _Left(self.columns[kept], self.holds[:, kept], self.sizes[kept])

    def as_sets(self) -> list[Places]:
        return [tuple(line[:size].tolist()) for line, size in zip(self.columns, self.sizes, strict=True)]


def _grow(
    left: _Left, widths: npt.NDArray[np.float64], wide_cells: int
) -> tuple[Places, npt.NDArray[np.int16], int]:
    """A wide set from the first one that is left; how many attributes each set lacks of it, and the steps this took."""
    inside = np.zeros(len(widths), dtype=bool)
    inside[left.columns[0, : left.sizes[0]]] = True
    lacking = left.sizes - left.holds[np.flatnonzero(inside)].sum(axis=0, dtype=np.int16)
    logs, cells, steps = np.log(np.maximum(widths, 2)), float(widths[inside].prod()), left.holds.size
    while True:
        fits = ~inside & (widths * cells <= wide_cells)
        least = lacking.min(where=lacking > 0, initial=np.iinfo(np.int16).max)
        columns = left.columns[lacking == least]
        if not fits.any() or not columns.size:
            break
        gain = np.bincount(columns.ravel(), minlength=len(widths) + 1)[:-1]
        best = int(np.where(fits, gain / logs, 0).argmax())
        if not fits[best] or not gain[best]:
            break
        inside[best] = True
        cells *= widths[best]
        lacking = lacking - left.holds[best]
        steps += 4 * len(lacking) + 8 * columns.size
    return tuple(np.flatnonzero(inside).tolist()), lacking, steps


def take_margins(wide: Sequence[Places], tables: Sequence[Counts], sets: Sequence[Places]) -> list[Counts]:
    """One table for each set, axes in its order: a margin of the smallest wide table that holds it."""
    known = dict(zip(wide, tables, strict=True))
    ranked = sorted(wide, key=lambda members: known[members].size)
    shared: dict[Places, list[Places]] = {}
    for members in sorted({tuple(sorted(members)) for members in sets} - known.keys()):
        holder = next(found for found in ranked if set(members).issubset(found))
        shared.setdefault(holder, []).append(members)
    for holder, held in shared.items():
        _split(holder, known[holder], held, frozenset(), known)
    found = []
    for members in sets:
        distinct = tuple(sorted(members))
        axes = [distinct.index(column) for column in members]
        table = known[distinct].transpose(axes)
        # A sum is nobody else's and needs no copy; a wide table is a part of all that was counted.
        whole = known[distinct].base is not None
        found.append(
            np.array(table, dtype=np.int64, order="C")
            if whole
            else np.asarray(table, dtype=np.int64, order="C")
        )
    return found


def _split(
    axes: Places, table: Counts, sets: Sequence[Places], needed: frozenset[int], known: dict[Places, Counts]
) -> None:
    """The margins of one table: the sets without an attribute come from its sum, so that large sums are few."""
    optional = [column for column in axes if column not in needed]
    if not optional:
        known[axes] = table
        return
    column = min(optional, key=lambda one: sum(one in members for members in sets))
    have = [members for members in sets if column in members]
    lack = [members for members in sets if column not in members]
    if have:
        _split(axes, table, have, needed | {column}, known)
    if lack:
        at = axes.index(column)
        _split((*axes[:at], *axes[at + 1 :]), table.sum(axis=at), lack, needed, known)
