"""Sets of distributions given by intervals, {p : l ≤ p ≤ u, Σp = 1}: tightened, listed by vertices, optimised over.

Everything works on arrays of rows: the last axis runs over the levels, all others are broadcast.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import product

import numpy as np
import numpy.typing as npt

from discreet.values.errors import TooLarge

Floats = npt.NDArray[np.float64]

SLACK = 1e-12
"""How far two ends of an interval may disagree and still count as one number."""


NOISE = 1e-14
"""Differences of sums of probabilities below this are rounding."""

MOST_LEVELS = 10
"""The longest row whose vertices are listed; k levels have up to k·2^(k−1) candidates."""


def tighten(lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
    """The reachable intervals: the least and the greatest value that each level really takes in its row.

    l'_x = max(l_x, 1 − Σ_{y≠x} u_y),  u'_x = min(u_x, 1 − Σ_{y≠x} l_y).
    """
    spare = _mend(1.0 - lower.sum(axis=-1, keepdims=True))
    excess = _mend(upper.sum(axis=-1, keepdims=True) - 1.0)
    low = np.maximum(lower, upper - excess)
    high = np.minimum(upper, lower + spare)
    return np.minimum(low, high), np.maximum(low, high)  # rounding must not turn a point inside out


def _mend(difference: Floats) -> Floats:
    """A difference of sums with rounding taken for what it is: a level that is impossible must not become 1e-17."""
    return np.where(difference < NOISE, 0.0, difference)


def list_vertices(lower: Floats, upper: Floats) -> Floats:
    """The extreme points of one row's set, one a line: all levels but one are at an end of their interval."""
    low, high = tighten(np.asarray(lower, dtype=np.float64), np.asarray(upper, dtype=np.float64))
    levels, spare = len(low), 1.0 - low.sum()
    if spare <= SLACK:
        return np.asarray(low[None])
    if (high - low >= spare - SLACK).all():
        return np.asarray(low + spare * np.eye(levels))
    if levels > MOST_LEVELS:
        raise TooLarge(
            f"a row of {levels} levels may have millions of vertices; at most {MOST_LEVELS} are listed"
        )
    found: list[Floats] = []
    for free in range(levels):
        others = [x for x in range(levels) if x != free]
        ends = [(low[x],) if high[x] - low[x] <= SLACK else (low[x], high[x]) for x in others]
        for chosen in product(*ends):
            rest = 1.0 - sum(chosen)
            if low[free] - SLACK <= rest <= high[free] + SLACK:
                ends_of_free = [end for end in (low[free], high[free]) if abs(rest - end) <= NOISE]
                vertex = np.insert(np.array(chosen), free, [*ends_of_free, rest][0])
                if not any(np.abs(vertex - other).max() <= SLACK for other in found):
                    found.append(vertex)
    return np.array(found)


class Shape(StrEnum):
    """What a row's set looks like, because two common shapes are optimised without sorting."""

    POINT = "point"
    BINARY = "binary"
    SIMPLEX = "simplex"
    """All mass beyond the lower ends may go to any one level: what the IDM and contamination make."""
    BOX = "box"


@dataclass(frozen=True)
class RowSets:
    """An array of rows' sets with reachable intervals, and the optimum of a linear function over each."""

    lower: Floats
    upper: Floats

    @classmethod
    def reachable(cls, lower: Floats, upper: Floats) -> RowSets:
        """The sets with their intervals tightened."""
        return cls(*tighten(lower, upper))

    @cached_property
    def room(self) -> Floats:
        """u − l."""
        return self.upper - self.lower

    @cached_property
    def spare(self) -> Floats:
        """1 − Σl, the mass that the lower ends leave to be placed."""
        return _mend(1.0 - self.lower.sum(axis=-1))

    @cached_property
    def shape(self) -> Shape:
        """The simplest shape that all the rows share."""
        if not self.room.any():
            return Shape.POINT
        if self.lower.shape[-1] == 2:
            return Shape.BINARY
        return Shape.SIMPLEX if (self.room >= self.spare[..., None] - SLACK).all() else Shape.BOX

    def choose(self, values: Floats) -> Floats:
        """The distribution of each row that minimises Σ p·values: spare mass goes where the value is least."""
        if self.shape is Shape.POINT:
            return np.broadcast_to(self.lower, self._meet(values).shape)
        if self.shape is Shape.BINARY:
            to_first = values[..., 0] < values[..., 1]
            first = np.where(to_first, self.upper[..., 0], self.lower[..., 0])
            return np.stack([first, np.where(to_first, self.lower[..., 1], self.upper[..., 1])], axis=-1)
        if self.shape is Shape.SIMPLEX:
            best = np.argmin(values, axis=-1)[..., None] == np.arange(values.shape[-1])
            return np.asarray(self.lower + self.spare[..., None] * best)
        order = np.argsort(self._meet(values), axis=-1)
        filled = self._fill(order)
        placed = np.empty_like(filled)
        np.put_along_axis(placed, order, filled, axis=-1)
        return np.asarray(self.lower + placed)

    def minimise(self, values: Floats) -> Floats:
        """min Σ p·values of each row."""
        if self.shape is Shape.POINT:
            return np.asarray((self.lower * values).sum(axis=-1))
        if self.shape is Shape.BINARY:
            return np.asarray((self.choose(values) * values).sum(axis=-1))
        if self.shape is Shape.SIMPLEX:
            return np.asarray((self.lower * values).sum(axis=-1) + self.spare * values.min(axis=-1))
        values = self._meet(values)
        order = np.argsort(values, axis=-1)
        placed = self._fill(order) * np.take_along_axis(values, order, axis=-1)
        return np.asarray((self.lower * values).sum(axis=-1) + placed.sum(axis=-1))

    def maximise(self, values: Floats) -> Floats:
        """max Σ p·values of each row."""
        return -self.minimise(-values)

    def _meet(self, values: Floats) -> Floats:
        return np.broadcast_to(values, np.broadcast_shapes(self.lower.shape, values.shape))

    def _fill(self, order: npt.NDArray[np.intp]) -> Floats:
        room = np.broadcast_to(self.room, order.shape)
        room = np.take_along_axis(room, order, axis=-1)
        before = np.cumsum(room, axis=-1) - room
        return np.clip(self.spare[..., None] - before, 0.0, room)
