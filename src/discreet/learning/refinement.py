"""Bins from noisy counts alone: a coarse public grid, whose heavy cells are split and counted again.

The first grid runs over all numbers in steps of 1, 2 and 5 times powers of ten, or over two centuries of dates. A cell
that holds much is split into smaller ones for the next round, as in PrivTree [Zhang, Xiao & Xie 2016], but in so few
rounds that plain noise is the better one. Everything in here sees noisy tables only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.values.schema.edges import BINS, EPOCH, SHARES, cut_dates, cut_quantiles, thin

Array = npt.NDArray[Any]

LARGEST = 12
"""Numbers of up to ten to this power are told apart; larger ones are in the outermost cell."""
HEAVY = 16
"""A cell with more than one part in so many of the rows is split."""
PARTS = 12
"""About so many cells a heavy one is split into."""
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
    deviation: float = 0.0
    """The standard deviation of the noise in a cell."""

    @property
    def rows(self) -> float:
        """About how many rows have a number."""
        return max(1.0, float(np.sum(self.significant)))

    @property
    def significant(self) -> Array:
        """The counts without those that may be noise only."""
        counts = np.asarray(self.counts)
        return np.where(counts > self.least, counts, 0.0)

    @property
    def least(self) -> float:
        """What a count must pass so that it is surely more than noise."""
        return self.deviation * (math.sqrt(2 * math.log(2 + len(self.counts))) + 1.5)

    def measure(self, noisy: Sequence[float], deviation: float) -> Cells:
        """The cells with new counts, made to agree with what was known of the cells that they came from."""
        return replace(self, counts=tuple(map(float, noisy)), deviation=deviation)

    def agree(self, parent: Cells) -> Cells:
        """Shift the counts within each cell of the round before to the best sum of both rounds.

        Parts that noise drowns are put together with their neighbours: else a lucky part would stand for them all.
        """
        counts = np.asarray(self.counts).copy()
        places = np.searchsorted(parent.edges[1:-1], self.edges[:-1], side="right")
        for i, known in enumerate(parent.counts):
            mine = np.flatnonzero(places == i)
            if not mine.size or not parent.deviation:
                continue
            total, noise = counts[mine].sum(), mine.size * self.deviation**2
            best = (total * parent.deviation**2 + known * noise) / (parent.deviation**2 + noise)
            counts[mine] += (best - total) / mine.size
        edges, merged = [self.edges[0]], []
        for i in range(len(parent.counts)):
            mine = np.flatnonzero(places == i)
            for group in self._group(counts[mine]):
                merged.append(float(counts[mine[group]].sum()))
                edges.append(self.edges[mine[group[-1]] + 1])
        return replace(self, edges=tuple(edges), counts=tuple(merged))

    def _group(self, counts: Array) -> list[list[int]]:
        """Neighbours put together where each may be noise only and their sum is not; all, if most would be lost."""
        groups: list[list[int]] = []
        run: list[int] = []
        for k, count in enumerate(counts):
            if count > self.least:
                groups += [run, [k]] if run else [[k]]
                run = []
                continue
            run.append(k)
            if counts[run].sum() > self.least * math.sqrt(len(run)):
                groups.append(run)
                run = []
        groups += [run] if run else []
        sums = np.array([counts[group].sum() for group in groups])
        told = sums[sums > self.least * np.sqrt([len(group) for group in groups])].sum()
        lost = counts.sum() > self.least and told < counts.sum() / 2
        return [list(range(len(counts)))] if lost else groups

    def split(self) -> Cells | None:
        """Finer cells where much is, coarser ones where nothing is; None if no cell is heavy."""
        found, rows = self.significant, self.rows
        edges: set[float] = set()
        grown = False
        for (low, high), held in zip(pairwise(self.edges), found, strict=True):
            if held <= 0:
                continue
            inner = _cut_cell(low, high, self.grain) if held > rows / HEAVY else []
            grown |= bool(inner)
            edges |= {low, *inner, high}
        return (
            replace(self, edges=tuple(sorted(edges)), counts=(), deviation=0.0)
            if grown and len(edges) > 2
            else None
        )

    def quantiles(self, shares: Sequence[float]) -> list[float]:
        """The numbers below which these shares of the rows lie, evenly spread within cells."""
        held = np.maximum(self.significant, 0.0)
        below = np.concatenate([[0.0], np.cumsum(held)]) / max(held.sum(), 1e-9)
        found = []
        for share in shares:
            i = min(int(np.searchsorted(below, share, side="right")) - 1, len(held) - 1)
            low, high = self.edges[i], self.edges[i + 1]
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
        found = self.significant
        held = np.flatnonzero(found)
        if not held.size:
            return None
        if held.size == 1:  # nearly all are in one cell; the fuller neighbour is the second bin
            i = int(held[0])
            if len(found) == 1:
                inner = _cut_cell(self.edges[0], self.edges[1], self.grain)
                return (self.edges[0], *inner[len(inner) // 2 :][:1], self.edges[1])
            near = [j for j in (i - 1, i + 1) if 0 <= j < len(found)]
            held = np.array(sorted({i, max(near, key=lambda j: self.counts[j])}))
        bins = int(min(most, max(4, self.rows / (6 * self.deviation)))) if self.deviation else most
        low, high = self.edges[held[0]], self.edges[held[-1] + 1]
        if self.grain and high - self.grain > low:
            high = float(f"{high - self.grain:.12g}")
        quantiles = self.quantiles(SHARES)
        if self.dates:
            return cut_dates(quantiles, low, high, moments=self.dates == "time", bins=bins)
        edges = cut_quantiles(quantiles, low, high, grain=self.grain, bins=bins)
        cells = [(self.edges[i], self.edges[i + 1]) for i in np.flatnonzero(found > self.rows / HEAVY)]
        heavy = [(first, last) for first, last in cells if last - first > 1.5 * self.grain]
        if edges is None or not heavy:
            return edges
        # Nothing is known about the inside of a cell that is still heavy: it is one bin.
        kept = {edge for edge in edges if not any(first < edge < last for first, last in heavy)}
        return thin({*kept, *(edge for pair in heavy for edge in pair)})


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


def _cut_cell(low: float, high: float, grain: float) -> list[float]:
    """Round edges inside a cell, about `PARTS` of them, none closer than the grain."""
    finest = grain or 10.0**-PLACES_UNKNOWN
    step = max(1.0, round((high - low) / PARTS / finest)) * finest
    parts = math.ceil((high - low) / step - 1e-9)
    if parts < 2 or step <= 1e-9 * max(abs(low), abs(high)):
        return []
    return [float(f"{low + i * step:.12g}") for i in range(1, parts) if low + i * step < high]
