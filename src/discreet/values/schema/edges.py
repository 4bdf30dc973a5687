"""Round edges for bins: near given quantiles, as round as the distance between them allows.

Where the quantiles come from is the caller's business: from rows with a threshold, or from noisy counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from itertools import pairwise

DAY = 86_400
EPOCH = date(1970, 1, 1)
BINS = 20
"""At most about so many bins for a number: ten to twenty keep its distribution, more would only cost noise."""


MOST_PLACES = 6
"""Numbers with more decimals than this have none that matters."""
SHARES = (*(i / 80 for i in range(1, 80)), 0.0025, 0.005, 0.995, 0.9975)
"""The quantiles that edges are found from."""


def round_near(value: float, slack: float, grain: float = 0.0) -> float:
    """The roundest number within `slack` of a value: a multiple of 1, 2 or 5 times a power of ten, or of `grain`."""
    if slack <= 0 or not math.isfinite(slack):
        return value
    power = 10.0 ** math.floor(math.log10(2 * slack))
    for step in (10 * power, 5 * power, 2 * power, power, power / 2):
        if grain:
            step = max(1, round(step / grain)) * grain
        near = float(f"{round(value / step) * step:.12g}")
        if abs(near - value) <= slack:
            return near
    return float(f"{round(value / grain) * grain:.12g}") if grain else value


def round_out(low: float, high: float, grain: float = 0.0) -> tuple[float, float]:
    """Two round numbers around two others, not much further apart."""
    width = max(high - low, grain, 1e-300)
    step = 10.0 ** math.floor(math.log10(width / 10)) if width > 0 else 1.0
    if grain:
        step = max(1, round(step / grain)) * grain
    return float(f"{math.floor(low / step) * step:.12g}"), float(f"{math.ceil(high / step) * step:.12g}")


def cut_quantiles(
    quantiles: Sequence[float], low: float, high: float, *, grain: float = 0.0, bins: int = BINS
) -> tuple[float, ...] | None:
    """About `bins` bins from `low` to `high` with round edges near evenly spaced quantiles.

    A value that many quantiles share gets a bin of its own, [v, v + grain). `grain` is what numbers are multiples of,
    as far as that is known: 1 for whole numbers. None if the numbers are all the same.
    """
    if not (math.isfinite(low) and math.isfinite(high)) or high <= low:
        return None
    spread = sorted(quantile for quantile in quantiles if low <= quantile <= high)
    bottom, top = round_out(low, high, grain)
    heavy = _find_atoms(spread, bins if grain else bins / 2)
    if grain and heavy and heavy[-1] == high:
        top = float(f"{high + grain / 2:.12g}")  # the outermost edge belongs to its bin
    if grain and abs(high - low - grain) < grain / 4:  # two values
        return low, high, float(f"{high + grain / 2:.12g}")
    if grain and (high - bottom) / grain <= bins:
        steps = round((high - bottom) / grain)
        return thin(
            [*(float(f"{bottom + i * grain:.12g}") for i in range(steps + 1)), *([top] * (top != high))]
        )
    edges = {bottom, top}
    width = grain or 10.0 ** -find_places(None, top - bottom)
    for value in heavy:
        edges |= {value, float(f"{value + width:.12g}")}
    rest = [value for value in spread if value not in heavy]
    places = range(1, min(bins, len(rest)))
    inner = sorted({rest[round(i * (len(rest) - 1) / (len(places) + 1))] for i in places})
    if len(inner) > 2:  # a long tail gets one more edge far out, where its last hundredths lie
        inner = [*_extend(rest[1], inner[0], inner[1]), *inner, *_extend(rest[-2], inner[-1], inner[-2])]
    around = [bottom, *inner, top]
    for before, value, after in zip(around, inner, around[2:], strict=False):
        edges.add(round_near(value, min(value - before, after - value) / 3 or grain, grain))
    return thin((edge for edge in edges if bottom <= edge <= top), grain)


def cut_dates(
    quantiles: Sequence[float], low: float, high: float, *, moments: bool, bins: int = BINS
) -> tuple[float, ...] | None:
    """The same for dates, counted in days since 1970, or for moments in seconds: at round days where that is enough."""
    spread = sorted(quantiles)
    inner = [spread[round(i * (len(spread) - 1) / bins)] for i in range(1, bins)] if spread else []
    scale = DAY if moments else 1
    days = round_days([value / scale for value in inner], low / scale, high / scale)
    if moments and len(days) < 6:  # within a few days, hours tell more
        return cut_quantiles(spread, low, high, grain=3600.0, bins=bins)
    return thin(float(day) * scale for day in days)


def round_day(days: float, slack: float) -> int:
    """The roundest day within `slack` days, as days since 1970."""
    try:
        day = EPOCH + timedelta(days=round(days))
        near = [
            *(date(day.year + more, 1, 1) for more in (0, 1)),
            *(date(day.year, month, 1) for month in (4, 7, 10)),
            *(date(day.year, month, 1) for month in range(2, 13)),
            day - timedelta(days=day.weekday()),
        ]
    except (OverflowError, ValueError):
        return round(days)
    for candidate in near:
        count = (candidate - EPOCH).days
        if abs(count - days) <= slack:
            return count
    return round(days)


def round_days(edges: Sequence[float], low: float, high: float) -> list[int]:
    """Edges of days moved to round ones, each by less than a third of the way to its neighbours."""
    inner = sorted({round(edge) for edge in edges if low < edge < high})
    around = [low, *inner, high]
    found = {
        round_day(day, min(day - before, after - day) / 3)
        for before, day, after in zip(around, inner, around[2:], strict=False)
    }
    span = max(1.0, (high - low) / 30)
    first, last = round_day(low - span / 2, span / 2), round_day(high + span / 2, span / 2)
    return sorted({min(first, int(low)), *found, max(last, int(high))})


def find_places(known: int | None, width: float) -> int:
    """The decimals that numbers over a range of this width get: those that are known, else as many as matter."""
    if known is not None and known <= MOST_PLACES:
        return known
    return min(12, max(MOST_PLACES, MOST_PLACES - math.floor(math.log10(width or 1.0))))


def thin(edges: Iterable[float], grain: float = 0.0) -> tuple[float, ...] | None:
    """The edges in order without those that are the same up to a rounding; None if fewer than three are left."""
    ordered = sorted(set(edges))
    if len(ordered) < 3:
        return None
    least = grain / 4 if grain else (ordered[-1] - ordered[0]) * 1e-12
    kept = [ordered[0]]
    kept += [high for low, high in pairwise(ordered) if high - low > least]
    return tuple(kept) if len(kept) >= 3 else None


def _extend(far: float, last: float, before: float) -> list[float]:
    """The far value, if it is further from the last one than that from the one before."""
    return [far] if abs(far - last) > 2 * abs(last - before) else []


def _find_atoms(spread: Sequence[float], bins: float) -> list[float]:
    """Values that hold more than a bin's share of the quantiles."""
    share = max(2, round(len(spread) / bins))
    return sorted({low for low, high in zip(spread, spread[share:], strict=False) if low == high})
