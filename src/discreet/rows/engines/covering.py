"""Few wide tables in place of many narrow ones: the tables of a request are margins of those that are counted.

A row costs about as much in a wide table as in a narrow one as long as the table fits the cache. So attributes are put
together until every set asked for lies in some wide one, by the sizes of the attributes and the sets alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

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
FADING = 0.25
"""What an attribute that a set still lacks leaves of the set's weight when a wide table grows."""


def cover(
    sizes: Sequence[int], sets: Sequence[Places], rows: int, most_cells: int, wide_cells: int = WIDE_CELLS
) -> list[Places]:
    """Wide sets of columns, few of them, in which all sets lie; the distinct sets themselves where that is no gain.

    Greedy: from the largest set that is not covered yet, a wide one grows by the attribute that brings most sets
    nearest to being covered, for the logarithm of its size. A set of more than `wide_cells` cells stays by itself; all
    of them together have at most `most_cells`, or else narrower ones are tried. `rows` limits the time this takes.
    """
    distinct = sorted({tuple(sorted(members)) for members in sets})
    if rows < WORTH_COVERING or len(distinct) < 3:
        return distinct
    widths = np.array(sizes, dtype=np.float64)
    cells = [math.prod(sizes[column] for column in members) for members in distinct]
    order = sorted(range(len(distinct)), key=lambda i: -cells[i])
    listed = np.zeros((len(distinct), len(sizes)), dtype=np.float32)
    for line, i in enumerate(order):
        listed[line, list(distinct[i])] = 1
    steps = rows * len(distinct) // EFFORT
    logs = np.log(np.maximum(widths, 2))
    found: list[Places] = []
    while len(listed) and steps > 0:
        inside = listed[0] > 0
        held = float(widths[inside].prod())
        while True:
            fits = ~inside & (widths * held <= wide_cells)
            lacking = listed @ (~inside).astype(np.float32)
            if not fits.any() or not lacking.any():
                break
            steps -= 2 * listed.size
            gain = np.where(fits, (np.where(lacking > 0, FADING**lacking, 0) @ listed) / logs, 0)
            best = int(gain.argmax())
            if not gain[best]:
                break
            inside[best] = True
            held *= sizes[best]
        found.append(tuple(np.flatnonzero(inside).tolist()))
        listed = listed[lacking > 0]
    found += [tuple(np.flatnonzero(line).tolist()) for line in listed]  # those for which there was no time
    together = sum(math.prod(sizes[column] for column in members) for members in found)
    if 2 * len(found) > len(distinct):
        return distinct
    if together > max(most_cells, sum(cells)):
        return cover(sizes, sets, rows, most_cells, wide_cells // 4)
    return found


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
        found.append(np.array(known[distinct].transpose(axes), order="C"))
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
