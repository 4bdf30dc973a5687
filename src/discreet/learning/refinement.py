"""Bins from noisy counts alone: a coarse public grid, whose heavy cells are split and counted again.

The first grid runs over all numbers in steps of 1, 2 and 5 times powers of ten, or over two centuries of dates. A cell
that holds much is split into smaller ones for the next round, as in PrivTree [Zhang, Xiao & Xie 2016], but in so few
rounds that plain noise is the better one. Everything in here sees noisy tables only.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.values.schema.bins import Bins
from discreet.values.schema.edges import BINS, EPOCH, SHARES, cut_dates, cut_quantiles, thin

Array = npt.NDArray[Any]

LARGEST = 12
"""Numbers of up to ten to this power are told apart; larger ones are in the outermost cell."""
HEAVY = 16
"""A cell with more than one part in so many of the rows is split."""
PARTS = 12
"""About so many cells a heavy one is split into."""
NEARLY = 0.9
SINGLE = 24
"""A cell of at most so many numbers that holds nearly all rows is split into single ones: rounds are few."""
CHANCE = 0.01
"""The chance that some cell in which nothing is passes for one that holds something."""
LUCKY = 1e-8
"""The same for one that has no neighbours which do."""
FAR = 8
"""So many cells beyond the last sure one are looked at for a tail."""
WIDE = 4.0
"""A tail is at most so many times as long as all that is sure: noise far away would let numbers be drawn there.

A single cell, which may be one number that many rows hold, says nothing of how far the others lie."""
HIDDEN = 0.1
"""Where noise may hide this part of the rows, cells are counted again though none can be split."""
DAY = 86_400
PLACES_UNKNOWN = 6
"""Numbers of unknown precision are told apart if they differ by ten to minus this power."""


@dataclass(frozen=True, slots=True)
class Cells:
    """Neighbouring cells of a number line, and estimates of how many rows are in each."""

    edges: tuple[float, ...]
    grain: float
    """What the numbers are multiples of; 0 if that is not known."""
    dates: str = ""
    """'date' or 'time' if the numbers are days or seconds since 1970."""
    counts: tuple[float, ...] = ()
    deviations: tuple[float, ...] = ()
    """The standard deviation of the noise in each cell."""
    heavy: bool = False
    """Whether the noise is Laplace, which is far off more often than a Gaussian."""
    parts: tuple[bool, ...] = ()
    """Which cells are parts of one that held something for sure."""

    @property
    def rows(self) -> float:
        """About how many rows have a number."""
        return max(1.0, float(np.sum(self.significant)))

    @property
    def significant(self) -> Array:
        """The counts without those that may be noise only.

        Of neighbours that pass, one must pass for sure: a lucky cell by itself, far from all others, would let numbers
        be drawn that nobody has.
        """
        counts, deviations = np.asarray(self.counts), np.asarray(self.deviations)
        found = np.where(counts > self._exceed(CHANCE) * deviations, counts, 0.0)
        runs = np.cumsum(np.diff(found > 0, prepend=False) != 0)
        sure = np.zeros(int(runs.max(initial=0)) + 1, dtype=bool)
        alone = counts > self._exceed(LUCKY) * deviations
        np.logical_or.at(sure, runs, alone | np.asarray(self.parts) if self.parts else alone)
        return np.where(sure[runs], found, 0.0)

    def _exceed(self, chance: float, cells: int | None = None) -> float:
        """How many deviations no noise of all cells passes, but for this chance at most."""
        odds = (2 + (len(self.counts) if cells is None else cells)) / (2 * chance)
        return math.log(odds) / math.sqrt(2.0) if self.heavy else math.sqrt(2 * math.log(odds))

    def measure(self, noisy: Sequence[float], deviation: float, heavy: bool = False) -> Cells:
        """The cells with new counts, whose noise has this deviation; `heavy` if it is Laplace."""
        return replace(
            self, counts=tuple(map(float, noisy)), deviations=(deviation,) * len(noisy), heavy=heavy
        )

    def agree(self, parent: Cells) -> Cells:
        """Both rounds together: a cell that was counted before has the mean of both counts, by their precision.

        The parts of a cell that was split are shifted to the best sum of both rounds. Parts that noise drowns are put
        together with their neighbours: else a lucky part would stand for them all.
        """
        counts, deviations = np.array(self.counts), np.array(self.deviations)
        places = np.searchsorted(parent.edges[1:-1], self.edges[:-1], side="right")
        edges, merged, spread, parts = [self.edges[0]], [], [], []
        held = parent.significant > 0
        for i, (known, before) in enumerate(zip(parent.counts, parent.deviations, strict=True)):
            mine = np.flatnonzero(places == i)
            total, noise = counts[mine].sum(), (deviations[mine] ** 2).sum()
            best = (total * before**2 + known * noise) / max(before**2 + noise, 1e-12)
            counts[mine] += (best - total) / mine.size
            for group in self._group(counts[mine], deviations[mine]):
                merged.append(float(counts[mine[group]].sum()))
                apart = float(np.sqrt((deviations[mine[group]] ** 2).sum()))
                whole = len(group) == mine.size and before + apart > 0
                spread.append(before * apart / math.hypot(before, apart) if whole else apart)
                edges.append(self.edges[mine[group[-1]] + 1])
                parts.append(bool(held[i]))
        return replace(
            self, edges=tuple(edges), counts=tuple(merged), deviations=tuple(spread), parts=tuple(parts)
        )

    def _group(self, counts: Array, deviations: Array) -> list[list[int]]:
        """Neighbours put together where each may be noise only and their sum is not; all, if most would be lost."""
        least = self._exceed(CHANCE)
        groups: list[list[int]] = []
        run: list[int] = []
        for k, count in enumerate(counts):
            if count > least * deviations[k]:
                groups += [run, [k]] if run else [[k]]
                run = []
                continue
            run.append(k)
            if counts[run].sum() > least * np.sqrt((deviations[run] ** 2).sum()):
                groups.append(run)
                run = []
        groups += [run] if run else []
        sums = np.array([counts[group].sum() for group in groups])
        noise = np.sqrt([(deviations[group] ** 2).sum() for group in groups])
        told, whole = sums[sums > least * noise].sum(), counts.sum()
        lost = whole > least * np.sqrt((deviations**2).sum()) and told < whole / 2
        return [list(range(len(counts)))] if lost else groups

    def split(self) -> Cells | None:
        """Finer cells where much is, the same ones elsewhere, to be counted once more.

        None if no cell is heavy and noise hides no large part of the rows.
        """
        found, rows = self.significant, self.rows
        edges = set(self.edges)
        for (low, high), held in zip(pairwise(self.edges), found, strict=True):
            if held > rows / HEAVY:
                parts = SINGLE if held > NEARLY * rows and high - low <= SINGLE * self.grain else PARTS
                edges |= set(_cut_cell(low, high, self.grain, parts))
        if len(edges) == len(self.edges) and not self._may_hide():
            return None
        return replace(self, edges=tuple(sorted(edges)), counts=(), deviations=(), parts=())

    def _may_hide(self) -> bool:
        """Whether cells near the sure ones, each of which may be noise only, hold a part of the rows that matters."""
        found = self.significant
        held = np.flatnonzero(found)
        if not held.size:
            return False
        near = found <= 0
        near[: max(0, held[0] - FAR)] = False
        near[held[-1] + 1 + FAR :] = False
        unsure = np.asarray(self.counts)[near].sum()
        noise = math.sqrt(float((np.asarray(self.deviations)[near] ** 2).sum()))
        return bool(unsure + 2 * noise > HIDDEN * self.rows)

    def tell(self) -> Cells:
        """The cells that hold something for sure, neighbours that do so together only as one, from end to end.

        Between the ends a cell without a sign of rows holds 0. Beyond them, as many neighbours as it takes to be more
        than noise are one more cell, and so on from there.
        """
        found, counts, variances = self.significant, np.asarray(self.counts), np.asarray(self.deviations) ** 2
        held = np.flatnonzero(found)
        if not held.size:
            return replace(self, edges=(), counts=(), deviations=(), parts=())
        groups: list[tuple[int, int, float]] = []
        least = self._exceed(CHANCE, 30)

        def weigh(first: int, last: int) -> float:
            return float(counts[first:last].sum() / math.sqrt(max(float(variances[first:last].sum()), 1e-12)))

        first, last = int(held[0]), int(held[-1]) + 1

        def reach(ends: Iterable[int], end: int) -> int:
            """The nearest of these ends up to which the cells beyond `end` are together more than noise."""
            longest = WIDE * (self.edges[last] - self.edges[first]) if last - first > 1 else math.inf
            near = (i for i in ends if abs(self.edges[i] - self.edges[end]) <= longest)
            return next((i for i in near if weigh(min(i, end), max(i, end)) > least), end)

        at = first
        while at < last:
            end = at + 1
            if found[at] <= 0:
                while found[end] <= 0:
                    end += 1
                sure = weigh(at, end) > least
                groups.append((at, end, float(counts[at:end].sum()) if sure else 0.0))
            else:
                groups.append((at, end, float(found[at])))
            at = end
        while (low := reach(range(first - 1, max(first - FAR, 0) - 1, -1), first)) < first:
            groups.insert(0, (low, first, float(counts[low:first].sum())))
            first = low
        while (high := reach(range(last + 1, min(last + FAR, len(counts)) + 1), last)) > last:
            groups.append((last, high, float(counts[last:high].sum())))
            last = high
        return replace(
            self,
            edges=self._trim([self.edges[groups[0][0]], *(self.edges[end] for _, end, _ in groups)]),
            counts=tuple(count for _, _, count in groups),
            deviations=tuple(math.sqrt(float(variances[start:end].sum())) for start, end, _ in groups),
            parts=(),
        )

    def _trim(self, edges: list[float]) -> tuple[float, ...]:
        """No outermost cell longer than all others together: nothing says that it is filled to its far end."""
        for _ in range(2):  # the upper end, then, mirrored, the lower one
            rest = abs(edges[-2] - edges[0])
            if len(edges) > 4 and not self.dates and abs(edges[-1] - edges[-2]) > max(rest, 2 * self.grain):
                edges[-1] = float(f"{edges[-2] + math.copysign(rest, edges[-1] - edges[-2]):.12g}")
            edges = edges[::-1]
        return tuple(edges)

    def quantiles(self, shares: Sequence[float]) -> list[float]:
        """The numbers below which these shares of the rows lie, evenly spread within cells."""
        told = self.tell()
        held = np.maximum(told.counts, 0.0)
        below = np.concatenate([[0.0], np.cumsum(held)]) / max(held.sum(), 1e-9)
        found = []
        for share in shares:
            i = min(int(np.searchsorted(below, share, side="right")) - 1, len(held) - 1)
            low, high = told.edges[i], told.edges[i + 1]
            if high - low <= (self.grain or 10.0**-PLACES_UNKNOWN) * (1 + 1e-9):
                found.append(low)
                continue
            step = (share - below[i]) / max(below[i + 1] - below[i], 1e-12)
            value = low + (high - low) * step
            whole = math.floor(value / self.grain + 1e-9) * self.grain if self.grain else value
            found.append(float(f"{whole:.12g}"))
        return found

    def cut(self, most: int = BINS) -> tuple[float, ...] | None:
        """Round edges of at most so many bins, fewer if the noise is large; None if all numbers are about the same."""
        told = self.tell()
        if not told.counts:
            return None
        if len(told.counts) == 1:  # nearly all are in one cell; the fuller neighbour is the second bin
            i = self.edges.index(told.edges[0])
            if len(self.counts) == 1:
                inner = _cut_cell(self.edges[0], self.edges[1], self.grain)
                return self._end((self.edges[0], *inner[len(inner) // 2 :][:1], self.edges[1]))
            near = max((j for j in (i - 1, i + 1) if 0 <= j < len(self.counts)), key=lambda j: self.counts[j])
            return self._end(self.edges[min(i, near) : max(i, near) + 2])
        rows, noise = max(1.0, sum(told.counts)), float(np.median(self.deviations))
        bins = int(min(most, max(4, rows / (6 * noise)))) if noise else most
        low, high = told.edges[0], told.edges[-1]
        if self.grain and high - self.grain > low:
            high = float(f"{high - self.grain:.12g}")
        quantiles = self.quantiles(SHARES)
        if self.dates:
            return cut_dates(quantiles, low, high, moments=self.dates == "time", bins=bins)
        edges = cut_quantiles(quantiles, low, high, grain=self.grain, bins=bins)
        cells = zip(pairwise(told.edges), told.counts, strict=True)
        heavy = [
            pair for pair, count in cells if count > rows / HEAVY and pair[1] - pair[0] > 1.5 * self.grain
        ]
        if edges is None or not heavy:
            return edges
        # Nothing is known about the inside of a cell that is still heavy: it is one bin.
        kept = {edge for edge in edges if not any(first < edge < last for first, last in heavy)}
        return thin({*kept, *(edge for pair in heavy for edge in pair)})

    def _end(self, edges: tuple[float, ...]) -> tuple[float, ...]:
        """The last bin holds its upper edge too, which is a number that no row of the last cell has."""
        return edges if self.dates else (*edges[:-1], float(f"{edges[-1] - self.grain / 2:.12g}"))

    def pin(self, edges: Sequence[float]) -> Bins:
        """Bins with these edges; a number takes the bin after it, in which nothing is, and stands for both."""
        told = self.tell()
        empty = [pair for pair, held in zip(pairwise(told.edges), told.counts, strict=True) if held <= 0]

        def is_empty(low: float, high: float) -> bool:
            return any(first <= low and high <= last for first, last in empty)

        bins: list[tuple[float, float]] = []
        points: list[float] = []
        left = len(edges) - 1
        for low, high in pairwise(edges):
            if bins and left > 2 and is_empty(low, high):
                start, end = bins[-1]
                alone = self.grain and end - start < 1.25 * self.grain and not is_empty(start, end)
                if alone or (points and points[-1] == start):
                    points = points if points and points[-1] == start else [*points, start]
                    bins[-1], left = (start, high), left - 1
                    continue
            bins.append((low, high))
        return Bins((*(low for low, _ in bins), bins[-1][1]), points=tuple(points))


def open_numbers(places: int | None) -> Cells:
    """All numbers with so many decimals, or with any, in cells of 1, 2 and 5 times powers of ten."""
    first = -PLACES_UNKNOWN if places is None else -places
    above = [float(f"{factor}e{power}") for power in range(first, LARGEST + 1) for factor in (1, 2, 5)]
    edges = (*(-edge for edge in reversed(above)), 0.0, *above)
    return Cells(edges, 0.0 if places is None else float(f"1e{-places}"))


def open_dates(form: str) -> Cells:
    """Two centuries of dates in cells of five years."""
    scale = DAY if form == "time" else 1
    days = [float((EPOCH.replace(year=year) - EPOCH).days * scale) for year in range(1900, 2101, 5)]
    return Cells(tuple(days), 3600.0 if form == "time" else 1.0, form)


def _cut_cell(low: float, high: float, grain: float, most: int = PARTS) -> list[float]:
    """Round edges inside a cell, about so many of them, none closer than the grain."""
    finest = grain or 10.0**-PLACES_UNKNOWN
    step = max(1.0, round((high - low) / most / finest)) * finest
    parts = math.ceil((high - low) / step - 1e-9)
    if parts < 2 or step <= 1e-9 * max(abs(low), abs(high)):
        return []
    return [float(f"{low + i * step:.12g}") for i in range(1, parts) if low + i * step < high]
