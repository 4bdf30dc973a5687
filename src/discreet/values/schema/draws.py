"""Values drawn inside levels: of the column's own type, and such that what holds between columns holds.

Inside a bin a value is drawn uniformly from the grid of its type: whole numbers, decimals with so many places, days,
seconds; where a point stands for the bin, it is the point. Columns that are ordered by constraints are drawn one after
the other, each uniformly from what the others leave: first the greatest values shrink so that every later column keeps
room, then each value lifts the least one of the next.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from discreet.values.schema.constraints import close_order
from discreet.values.schema.dates import DAY, count_days
from discreet.values.schema.types import find_ranges, find_step

if TYPE_CHECKING:
    from discreet.values.schema import Attribute, Schema

Array = npt.NDArray[Any]


def draw_values(schema: Schema, codes: Mapping[str, Array], shares: Mapping[str, Array]) -> dict[str, Array]:
    """A value for each code of every attribute with bins, in the count of its type; anything where it is missing.

    `shares` are uniform numbers from 0 to 1, one for each row. Whole numbers, days and seconds are int64; decimals are
    floats, the nearest to their digits.
    """
    found: dict[str, Array] = {}
    low, high = {}, {}
    linked = close_order(schema)
    ordered = dict.fromkeys(name for pair in linked for name in pair[:2])
    drawn = [found.name for found in schema if found.bins is not None or found.name in ordered]
    rows = {name: np.minimum(codes[name], len(schema[name].values) - 1) for name in drawn}
    for name in ordered:
        least, greatest = find_ranges(schema[name])
        low[name], high[name] = least[rows[name]], greatest[rows[name]]
    there = {name: codes[name] < len(schema[name].values) for name in low}
    for left, right, gap in reversed(linked):
        both = there[left] & there[right]
        high[left] = np.where(both, np.minimum(high[left], high[right] - gap), high[left])
    for name in _sort(linked):
        for left, right, gap in linked:
            if right == name:
                both = there[left] & there[right]
                lifted = np.maximum(low[right], found[left] + gap)
                low[right] = np.where(both, lifted, low[right])
        found[name] = _choose(low[name], high[name], shares[name])
    for attribute in schema:
        name = attribute.name
        if attribute.bins is None:
            found.pop(name, None)
        elif name not in found:
            found[name] = _count_alone(attribute, rows[name], shares[name])
    return {
        name: _finish(schema[name], counts) if name in ordered else _pin(schema[name], rows[name], counts)
        for name, counts in found.items()
    }


def draw_alone(attribute: Attribute, codes: Array, share: Array) -> Array:
    """A value for each code of one attribute with bins, whatever holds between columns."""
    return _pin(attribute, codes, _count_alone(attribute, codes, share))


def _sort(linked: list[tuple[str, str, int]]) -> list[str]:
    """The columns of an order, each after all that it must not be below."""
    names = list(dict.fromkeys(name for pair in linked for name in pair[:2]))
    below = {name: {left for left, right, _ in linked if right == name} for name in names}
    return sorted(
        names, key=lambda name: len(below[name])
    )  # in a closed order, what is below has fewer below it


def _count_alone(attribute: Attribute, codes: Array, share: Array) -> Array:
    assert attribute.bins is not None
    dates = attribute.dates
    if dates is not None and dates.by == "weekday":
        assert dates.first is not None and dates.last is not None
        first = count_days(dates.first) + (codes.astype(np.int64) - dates.first.weekday()) % 7
        weeks = (count_days(dates.last) - first) // 7 + 1
        place = share * weeks
        days = first + 7 * np.minimum(np.floor(place).astype(np.int64), weeks - 1)
        clock = np.floor((place % 1.0) * DAY).astype(np.int64)
        return np.asarray(days * DAY + clock if dates.moments else days)
    if find_step(attribute) is None:
        return attribute.bins.spread(codes, share)
    least, greatest = find_ranges(attribute)
    return _choose(least[codes], greatest[codes], share)


def _choose(low: Array, high: Array, share: Array) -> Array:
    """A uniform choice from low to high, both included."""
    if low.dtype.kind == "f":
        return np.asarray(np.clip(low * (1.0 - share) + high * share, low, high))
    steps = np.floor(share * (high - low + 1)).astype(np.int64)
    return np.asarray(low + np.minimum(steps, high - low))


def _pin(attribute: Attribute, codes: Array, counts: Array) -> Array:
    """Values with points exactly as they were declared, also where they have more digits than the rest."""
    values = _finish(attribute, counts)
    if attribute.type != "decimal" or attribute.bins is None:
        return values
    return attribute.bins.pin(codes, values)


def _finish(attribute: Attribute, counts: Array) -> Array:
    """Counts of steps as values: decimals are divided, all else is counted in ones."""
    if attribute.type == "decimal" and attribute.decimals is not None:
        return np.asarray(counts / 10.0**attribute.decimals)
    return counts
