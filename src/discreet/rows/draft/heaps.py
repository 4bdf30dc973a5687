"""Bins that keep the shape of a column: heaps of one number get a bin of their own, lopsided bins are cut.

Inside a bin numbers are drawn uniformly, so the distribution is off by at most the largest distance between the rows in
the bin and uniform ones, as a part of all rows (KS); and what is drawn varies within the bin without regard to other
columns, which takes away from correlations the bin's part of the variance. The bin where one of both is worst is cut,
again and again, until all are below a tolerance. A number that holds much of a bin by itself is a heap: its bin begins
at it and the number stands for the bin. Every edge is a heap, which enough rows hold, or a round number with enough
rows on either side.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from discreet.rows.draft.profile import Array, Numbers
from discreet.values.schema.bins import Bins
from discreet.values.schema.edges import round_near

TOLERANCE = 0.02
"""No bin may be further from uniform than this part of all rows, unless there are too many bins."""
LOOSE = 0.005
"""No bin may hold more than this part of the variance within it."""
MOST = 36
"""So many bins at most: more would cost more noise than they keep of the shape."""
STANDS = 0.75
"""The part of a bin's rows that a number must hold to stand for it."""
HEAP = 0.3
"""The part of a bin's rows that a number must hold to be taken out of it."""


@dataclass(frozen=True, slots=True)
class _Bin:
    """A bin [low, high), and the number that stands for it, if one does."""

    low: float
    high: float
    point: float | None = None
    done: bool = False


def fit_bins(
    bins: Bins, numbers: Numbers, grain: float, least: int, enough: Callable[[float, float], bool]
) -> Bins:
    """The bins with more edges, and points, where the rows in them are not uniform.

    `grain` is what numbers are multiples of; `enough` says whether so many rows, or people, as may be told of lie in
    [low, high).
    """
    edges = list(bins.edges)
    at = int(np.searchsorted(numbers.values, edges[-1]))
    if at < len(numbers.held) and numbers.values[at] == edges[-1] and numbers.held[at] >= least:
        # A heap at the outermost edge gets room for a bin of its own.
        edges[-1] = float(f"{edges[-1] + grain / 2:.12g}")
    # The variance between the ends that enough rows reach: a single row far out must not decide about all bins.
    reached = np.clip(numbers.values, numbers.low, numbers.high)
    variance = float(np.cov(reached, fweights=numbers.held)) if len(reached) > 1 else 0.0
    shape = _Shape(numbers, grain, least, enough, max(variance, 1e-300))
    found = [shape.stand(_Bin(low, high)) for low, high in pairwise(edges)]
    while len(found) < MOST:
        faults = [0.0 if one.done else shape.find_fault(one) for one in found]
        worst = int(np.argmax(faults))
        if faults[worst] <= 1.0:
            break
        parts = shape.cut(found[worst])
        if len(parts) == 1:
            parts = [_Bin(parts[0].low, parts[0].high, parts[0].point, done=True)]
        found[worst : worst + 1] = parts
    points = tuple(one.point for one in found if one.point is not None and shape.is_wide(one))
    last = found[-1]
    end = bins.edges[-1] if last.low < bins.edges[-1] and last.point is None else last.high
    return Bins((*(one.low for one in found), end), "left", points=points)


@dataclass(frozen=True, slots=True, eq=False)
class _Shape:
    """The numbers of a column and what may be told of them."""

    numbers: Numbers
    grain: float
    least: int
    enough: Callable[[float, float], bool]
    variance: float

    def is_wide(self, one: _Bin) -> bool:
        """Whether a bin needs a point: it holds more than one number of the grid, or one that lies beside the grid."""
        if one.high - one.low > 1.5 * self.grain or one.point != one.low:
            return True
        return float(f"{round(one.low / self.grain) * self.grain:.12g}") != float(f"{one.low:.12g}")

    def look(self, one: _Bin) -> tuple[Array, Array]:
        """The numbers in a bin and how many rows hold each; what lies beyond the ends is left out."""
        first, last = np.searchsorted(self.numbers.values, [one.low, one.high])
        inside = slice(int(first), int(last))
        return self.numbers.values[inside], self.numbers.held[inside]

    def stand(self, one: _Bin) -> _Bin:
        """The bin with the number that stands for it, if one holds nearly all of it."""
        values, held = self.look(one)
        if not len(values):
            return one
        top = int(np.argmax(held))
        heap = float(values[top])
        if held[top] < STANDS * held.sum() or not self.enough(heap, np.nextafter(heap, np.inf)):
            return one
        return _Bin(one.low, one.high, heap)

    def find_fault(self, one: _Bin) -> float:
        """How far a bin is beyond what is tolerated: 1 is just tolerable."""
        values, held = self.look(one)
        if not len(values):
            return 0.0
        part = float(held.sum() / self.numbers.held.sum())
        mean = float(values @ held / held.sum())
        if one.point is None:
            within = (one.high - one.low) ** 2 / 12 + ((one.high + one.low) / 2 - mean) ** 2
        else:
            within = float((values - one.point) ** 2 @ held / held.sum())
        return max(self.measure(one)[0] / TOLERANCE, part * within / self.variance / LOOSE)

    def measure(self, one: _Bin) -> tuple[float, int]:
        """How far the rows of a bin are from what is drawn from it, as a part of all rows, and at which number."""
        values, held = self.look(one)
        if not len(values):
            return 0.0, 0
        after = np.cumsum(held) / held.sum()
        before = after - held / held.sum()
        if one.point is None:
            width = one.high - one.low
            expected = (values - one.low) / width, np.minimum((values + self.grain - one.low) / width, 1.0)
        else:
            expected = (values > one.point).astype(float), (values >= one.point).astype(float)
        off = np.maximum(np.abs(before - expected[0]), np.abs(after - expected[1]))
        worst = int(np.argmax(off))
        return float(off[worst] * held.sum() / self.numbers.held.sum()), worst

    def cut(self, one: _Bin) -> list[_Bin]:
        """Two or three bins in place of one, at a heap, where rows are furthest from uniform, or at a quantile.

        The same one if none of them may be told.
        """
        values, held = self.look(one)
        share = held / held.sum()
        heaps = np.flatnonzero((share >= HEAP) & (held >= self.least))
        if heaps.size:
            heap = float(values[heaps[np.argmax(held[heaps])]])
            if self.enough(heap, np.nextafter(heap, np.inf)):
                parts = self._take_out(one, heap)
                if len(parts) > 1:
                    return parts
        below = np.cumsum(share)
        inside = [
            float(values[min(int(np.searchsorted(below, part)), len(values) - 1)])
            for part in (0.8, 0.5, 0.95)
        ]
        width = one.high - one.low
        worst = float(values[self.measure(one)[1]])
        for near in (min(max(worst, one.low + width / 8), one.high - width / 8), *inside):
            edge = round_near(near, min(near - one.low, one.high - near) / 3, self.grain)
            if one.low < edge < one.high and self.enough(one.low, edge) and self.enough(edge, one.high):
                return [self.stand(_Bin(one.low, edge)), self.stand(_Bin(edge, one.high))]
        return [one]

    def _take_out(self, one: _Bin, heap: float) -> list[_Bin]:
        """A heap with what lies beside it, unless enough rows do that it may have a bin."""
        end = float(f"{heap + self.grain:.12g}")
        low, high = one.low, one.high
        parts = []
        if low < heap and self.enough(low, heap):
            parts.append(self.stand(_Bin(low, heap)))
            low = heap
        after = []
        if end < high and self.enough(end, high):
            after.append(self.stand(_Bin(end, high)))
            high = end
        return [*parts, _Bin(low, high, heap), *after]


def count_between(numbers: Numbers, least: int) -> Callable[[float, float], bool]:
    """Whether enough rows, or people, have a number in [low, high)."""
    below = np.concatenate([[0], np.cumsum(numbers.held)])

    def enough(low: float, high: float) -> bool:
        first, last = np.searchsorted(numbers.values, [low, high])
        if below[last] - below[first] < least:
            return False
        people = numbers.people
        if people is None:
            return True
        return len(np.unique(people.who[(people.numbers >= low) & (people.numbers < high)])) >= least

    return enough
