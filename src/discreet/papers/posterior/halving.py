"""Levels halved again and again: the splits by depth, how far apart the ends of their grids are, and what is left."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np

from discreet.values.errors import MechanismError
from discreet.values.table import Array

Split = tuple[int, int, int]
"""Where the levels of a split start, where its second half starts, and where they stop."""

LEAST_FLOOR = 2.0**-20
"""No half of a split gets a smaller probability."""
WIDEST = 14.0
"""A spread at which a half has less than LEAST_FLOOR, so that no search needs to look beyond."""


@lru_cache(maxsize=256)
def list_splits(levels: int) -> tuple[tuple[Split, ...], ...]:
    """The splits of so many levels by depth: each halves what the one above left, the first half the larger."""
    depths, ranges = [], [(0, levels)]
    while any(stop - start > 1 for start, stop in ranges):
        splits = [
            (start, start + (stop - start + 1) // 2, stop) for start, stop in ranges if stop - start > 1
        ]
        depths.append(tuple(splits))
        ranges = [half for a, b, c in splits for half in ((a, b), (b, c))]
    return tuple(depths)


def require_splits(name: str, levels: int) -> tuple[tuple[Split, ...], ...]:
    """The splits by depth, refused where there is nothing to split."""
    if levels < 2:
        raise MechanismError(
            f"{name!r} has one level, so there is nothing to draw; leave it out of the graph"
        )
    return list_splits(levels)


def share_of(split: Split) -> Fraction:
    """The uniform probability of the first half."""
    start, middle, stop = split
    return Fraction(middle - start, stop - start)


def bound_split(split: Split | Fraction, spread: float) -> tuple[float, float]:
    """The ends of a grid: the uniform probability p, moved by ±spread in log-odds."""
    uniform = split if isinstance(split, Fraction) else share_of(split)
    odds = float(uniform / (1 - uniform))
    return 1.0 / (1.0 + math.exp(spread) / odds), 1.0 / (1.0 + math.exp(-spread) / odds)


def spread_within(splits: Sequence[Split], reach: float) -> float:
    """The widest spread at which no split reaches further than that, nor below 2^-20; 0 if there is none."""

    shares = {share_of(split) for split in splits}

    def fits(spread: float) -> bool:
        ends = [bound_split(share, spread) for share in shares]
        return all(
            low >= LEAST_FLOOR
            and 1.0 - high >= LEAST_FLOOR
            and max(math.log(high / low), math.log((1.0 - low) / (1.0 - high))) <= reach
            for low, high in ends
        )

    return _widen(fits)


def spread_above(levels: int, floor: float) -> float:
    """The widest spread, the same for all splits of so many levels, that leaves every level this probability."""

    def fits(spread: float) -> bool:
        lowest = np.ones(levels)
        for splits in list_splits(levels):
            lower_levels(lowest, splits, spread)
        return float(lowest.min()) >= floor

    return _widen(fits)


def _widen(fits: Callable[[float], bool]) -> float:
    """The widest spread that fits, by bisection; what is returned did fit, or is 0."""
    low, high = 0.0, WIDEST
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def lower_levels(lowest: Array, splits: Sequence[Split], spread: float) -> None:
    """Multiply the least probability of each level by that of its half, in place."""
    for split in splits:
        start, middle, stop = split
        low, high = bound_split(split, spread)
        lowest[start:middle] *= low
        lowest[middle:stop] *= 1.0 - high
