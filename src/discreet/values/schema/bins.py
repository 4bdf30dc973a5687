"""Bins: how the number line is cut into levels, and how a number is drawn back out of one."""

from __future__ import annotations

import bisect
import math
import sys
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from discreet.values.errors import SchemaError
from discreet.values.text import show

Closed = Literal["left", "right"]


@dataclass(frozen=True, slots=True)
class Bins:
    """Neighbouring intervals, [eᵢ, eᵢ₊₁) if closed on the left and (eᵢ, eᵢ₊₁] if closed on the right.

    A finite outermost edge always belongs to its bin, and a number beyond it to none; an outermost edge of
    -inf or inf is an open end, whose bin takes everything beyond its other edge, infinities included.
    """

    edges: tuple[float, ...]
    closed: Closed = "left"
    lowest: float | None = None
    highest: float | None = None
    """How far an open end reaches where numbers are drawn from it; what is read may lie beyond."""
    points: tuple[float, ...] = ()
    """Numbers that stand for their bins: from a bin with a point, this number is drawn and no other."""

    def __post_init__(self) -> None:
        if self.closed not in ("left", "right"):
            raise SchemaError(f"bins closed on {show(self.closed)}; allowed are 'left' and 'right'")
        edges = tuple(_read_edge(edge) for edge in self.edges)
        if len(edges) < 3:
            raise SchemaError(
                f"{len(edges)} bin edges make {max(len(edges) - 1, 0)} bins; at least 3 edges are needed"
            )
        for low, high in pairwise(edges):
            if not low < high:
                raise SchemaError(f"bin edge {high:g} follows {low:g}; edges must increase")
        object.__setattr__(self, "edges", edges)
        for name, end, edge in (
            ("lowest", self.lowest, edges[0]),
            ("highest", self.highest, edges[-1]),
        ):
            if end is not None:
                self._require_end(name, end, edge)
        if self.points:
            self._require_points()

    def __len__(self) -> int:
        return len(self.edges) - 1

    @property
    def labels(self) -> tuple[str, ...]:
        """One label for each bin, such as '[18, 40)'; brackets say which edges belong to it."""
        last = len(self) - 1
        found = []
        for i, (low, high) in enumerate(pairwise(self.edges)):
            left = "[" if (self.closed == "left" or i == 0) and math.isfinite(low) else "("
            right = "]" if (self.closed == "right" or i == last) and math.isfinite(high) else ")"
            found.append(f"{left}{write_number(low)}, {write_number(high)}{right}")
        return tuple(found)

    def holds(self, value: float) -> bool:
        """Whether some bin takes this number."""
        return self.edges[0] <= value <= self.edges[-1]

    def place(self, value: float) -> int:
        """The bin of one number that some bin holds."""
        cut = bisect.bisect_right if self.closed == "left" else bisect.bisect_left
        return cut(self.edges, value, 1, len(self.edges) - 1) - 1

    def locate(self, values: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
        """The bin of each number, or -1 for NaN and for a number beyond the finite outermost edges."""
        inner = np.asarray(self.edges[1:-1])
        found = np.searchsorted(inner, values, side="right" if self.closed == "left" else "left")
        # Negated, so that NaN is outside.
        found[~((values >= self.edges[0]) & (values <= self.edges[-1]))] = -1
        return found

    @property
    def drawn(self) -> tuple[float, ...]:
        """The edges between which numbers are drawn: an open end reaches to `lowest` or `highest`.

        Where none is declared, it reaches as far beyond its edge as the neighbouring bin is wide; beyond a single edge
        e, by |e|, or by 1 if e is 0.
        """
        inner = [edge for edge in self.edges if math.isfinite(edge)]
        widths = [high - low for low, high in pairwise(inner)] or [abs(inner[0]) or 1.0]
        low, high = inner[0] - widths[0], inner[-1] + widths[-1]
        edges = list(self.edges)
        if math.isinf(edges[0]):
            edges[0] = max(low, -sys.float_info.max) if self.lowest is None else self.lowest
        if math.isinf(edges[-1]):
            edges[-1] = min(high, sys.float_info.max) if self.highest is None else self.highest
        return tuple(edges)

    @property
    def stood_for(self) -> npt.NDArray[np.float64]:
        """For each bin the point that stands for it, NaN if none does."""
        found = np.full(len(self), math.nan)
        for point in self.points:
            found[self.place(point)] = point
        return found

    @property
    def middles(self) -> npt.NDArray[np.float64]:
        """For each bin its point, or the middle of what is drawn from it."""
        edges = np.asarray(self.drawn)
        return np.where(np.isnan(self.stood_for), edges[:-1] / 2 + edges[1:] / 2, self.stood_for)

    def count_steps(self, step: Fraction) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The first and the last multiple of `step` in every bin of finite ends; a bin that holds none is refused.

        An edge counts as the decimal number that it prints as, so 0.3 is three steps of a tenth. A point is its bin's
        first and last, rounded to a step if it lies between two.
        """
        last = len(self) - 1
        found = []
        points = self.stood_for
        for i, (low, high) in enumerate(pairwise(self.drawn)):
            exact = Fraction(repr(low)) / step, Fraction(repr(high)) / step
            start, stop = math.ceil(exact[0]), math.floor(exact[1])
            if start == exact[0] and self.closed == "right" and i > 0:
                start += 1
            if stop == exact[1] and self.closed == "left" and i < last:
                stop -= 1
            if not math.isnan(points[i]):
                near = round(Fraction(repr(float(points[i]))) / step)
                start = stop = near if start > stop else min(max(near, start), stop)
            if start > stop:
                raise SchemaError(f"bin {self.labels[i]} holds no multiple of {write_number(float(step))}")
            if max(abs(start), abs(stop)) > 2**53:
                raise SchemaError(
                    f"bin {self.labels[i]} holds numbers beyond 2^53 steps of {write_number(float(step))}"
                )
            found.append((start, stop))
        first, final = np.array(found, dtype=np.int64).T
        return first, final

    def spread(self, codes: npt.NDArray[Any], share: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """The number that lies this share of the way through the bin of each code; uniform if the shares are."""
        edges = np.asarray(self.drawn)
        low, high = edges[:-1][codes], edges[1:][codes]
        # Not low + (high - low)·share, which overflows for huge bins.
        drawn = low * (1.0 - share) + high * share
        # Rounding may land on the edge that belongs to the neighbour.
        if self.closed == "left":
            drawn = np.clip(drawn, low, np.nextafter(high, -math.inf))
        else:
            drawn = np.clip(drawn, np.nextafter(low, math.inf), high)
        return self.pin(codes, drawn)

    def pin(self, codes: npt.NDArray[Any], drawn: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """The drawn numbers, and the point in place of them where one stands for the bin."""
        if not self.points:
            return np.asarray(drawn)
        points = self.stood_for[codes]
        return np.where(np.isnan(points), drawn, points)

    def _require_points(self) -> None:
        points = tuple(sorted(_read_edge(point) for point in self.points))
        object.__setattr__(self, "points", points)
        for point in points:
            if not math.isfinite(point) or not self.holds(point):
                raise SchemaError(
                    f"point {write_number(point)} lies in no bin; the bins go from {write_number(self.edges[0])} "
                    f"to {write_number(self.edges[-1])}"
                )
        places = [self.place(point) for point in points]
        for one, other, place, following in zip(points, points[1:], places, places[1:], strict=False):
            if place == following:
                raise SchemaError(
                    f"points {write_number(one)} and {write_number(other)} both lie in {self.labels[place]}; "
                    "at most one may stand for a bin"
                )

    def _require_end(self, name: str, end: float, edge: float) -> None:
        found = _read_edge(end)
        object.__setattr__(self, name, found)
        inner = self.edges[1] if name == "lowest" else self.edges[-2]
        if math.isfinite(edge):
            raise SchemaError(
                f"`{name}` is {write_number(found)}, but the bins end at {write_number(edge)}; drop it"
            )
        if not math.isfinite(found) or (found >= inner if name == "lowest" else found <= inner):
            beyond = "below" if name == "lowest" else "above"
            raise SchemaError(
                f"`{name}` is {write_number(found)}; it must be a finite number {beyond} {write_number(inner)}"
            )


def write_number(value: float) -> str:
    """The shortest text that reads back as the same number; whole numbers without a decimal point."""
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return str(int(value)) if value == int(value) and abs(value) < 2**53 else repr(value)


def _read_edge(edge: object) -> float:
    if isinstance(edge, bool | np.bool_) or not isinstance(edge, int | float | np.integer | np.floating):
        raise SchemaError(f"bin edge {show(edge)} is a {type(edge).__name__}; it must be a number")
    try:
        value = float(edge) + 0.0  # turns -0.0 into 0.0
    except OverflowError:
        raise SchemaError(f"bin edge {show(edge)} is too large; write inf for an open end") from None
    if math.isnan(value):
        raise SchemaError("a bin edge is NaN; edges must be numbers that increase")
    return value
