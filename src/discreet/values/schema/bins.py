"""Bins: how the number line is cut into levels, and how a number is drawn back out of one."""

from __future__ import annotations

import bisect
import math
from dataclasses import dataclass
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

    def draw(self, codes: npt.NDArray[Any], rng: np.random.Generator) -> npt.NDArray[np.float64]:
        """A uniform draw inside the bin of each code; a bin with an open end has none and is refused."""
        low, high = np.asarray(self.edges[:-1]), np.asarray(self.edges[1:])
        for i in np.flatnonzero(~np.isfinite(low) | ~np.isfinite(high)):
            if np.any(codes == i):
                raise SchemaError(
                    f"bin {self.labels[i]} has an open end, so no number can be drawn from it; "
                    f"give it a finite edge in place of {'-inf' if i == 0 and low[0] == -math.inf else 'inf'}"
                )
        share = rng.random(len(codes))
        low, high = low[codes], high[codes]
        # Not low + (high - low)·share, which overflows for huge bins.
        drawn = low * (1.0 - share) + high * share
        # Rounding may land on the edge that belongs to the neighbour.
        if self.closed == "left":
            return np.asarray(np.clip(drawn, low, np.nextafter(high, -math.inf)))
        return np.asarray(np.clip(drawn, np.nextafter(low, math.inf), high))


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
