"""Intervals for true counts behind noisy tables, all of them right at once with a stated probability."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from discreet.compute.bounds.intervals import Floats
from discreet.compute.bounds.tails import Term, bound_sum
from discreet.values.errors import TableError
from discreet.values.law import Exact
from discreet.values.measurement import Measurement
from discreet.values.table import count_cells

Counts = npt.NDArray[np.int64]

FINENESS = 4
"""Tables that answer the same margin are averaged with whole weights of at most this size."""

ROUNDS = 20
"""How often intervals of tables and of their margins narrow each other; two or three rounds are usual."""


@dataclass(frozen=True, slots=True)
class CountIntervals:
    """The least and the greatest count of every cell of a table; the axes are in the order of the schema."""

    axes: tuple[str, ...]
    low: Counts
    high: Counts


def bound_counts(
    measurements: Sequence[Measurement], sets: Iterable[Sequence[str]], names: Sequence[str], coverage: float
) -> dict[frozenset[str], CountIntervals]:
    """Intervals for the counts over the measured sets, the given sets and the total, simultaneous with `coverage`.

    Each margin is estimated from all tables that contain it, weighed by precision. The probability to miss, 1
    − coverage, is shared evenly among all cells of all those margins (union bound), and each cell's interval
    comes from the exact law of its noise. Then counts are whole and not negative, and a margin is the sum of
    its cells: intervals of nested sets narrow each other until nothing changes. All that holds whenever the
    intervals were right to begin with.
    """
    tables = [found for found in measurements if found.rate == 1 and set(found.axes) <= set(names)]
    wanted: set[frozenset[str]] = {frozenset(), *map(frozenset, sets)}
    wanted |= {frozenset(found.axes) for found in tables}
    holders = {
        members: [found for found in tables if members <= set(found.axes)]
        for members in sorted(wanted, key=lambda members: (len(members), sorted(members)))
    }
    holders = {members: found for members, found in holders.items() if found}
    sizes = {name: size for found in tables for name, size in found.noisy.sizes.items()}
    events = sum(count_cells(sizes[name] for name in members) for members in holders)
    found = {
        members: _bound_margin([name for name in names if name in members], tables, (1.0 - coverage) / events)
        for members, tables in holders.items()
    }
    return narrow(found)


def narrow(found: Mapping[frozenset[str], CountIntervals]) -> dict[frozenset[str], CountIntervals]:
    """Let tables and their margins narrow each other's intervals until nothing changes."""
    low = {members: np.array(intervals.low) for members, intervals in found.items()}
    high = {members: np.array(intervals.high) for members, intervals in found.items()}
    pairs = [
        (small, large, _dropped(found[small].axes, found[large].axes))
        for large in found
        for small in found
        if small < large
    ]
    for _ in range(ROUNDS):
        changed = False
        for small, large, dropped in pairs:
            least, most = low[large].sum(axis=dropped), high[large].sum(axis=dropped)
            changed |= _raise(low[small], least) | _lower(high[small], most)
            rest_high = np.expand_dims(most, dropped) - high[large]
            rest_low = np.expand_dims(least, dropped) - low[large]
            changed |= _raise(low[large], np.expand_dims(low[small], dropped) - rest_high)
            changed |= _lower(high[large], np.expand_dims(high[small], dropped) - rest_low)
        # Ends that have crossed show that some interval was wrong to begin with: then nothing is promised any more.
        if not changed or any((low[members] > high[members]).any() for members in found):
            break
    return {
        members: CountIntervals(
            intervals.axes, np.minimum(low[members], high[members]), np.maximum(low[members], high[members])
        )
        for members, intervals in found.items()
    }


def bound_conditionals(
    family: CountIntervals, parents: CountIntervals, child: str, strength: Floats
) -> tuple[Floats, Floats]:
    """Intervals for n_x/n_π, from those of the cells n_x and of their row's total n_π; the child's axis comes last.

    The share is least where n_x is least and the others are as many as can be, min(Σ h_other, h_π − l_x), and
    greatest the other way round; with the S of the imprecise Dirichlet model both are widened to [n/(n_π +
    S), (n + S)/(n_π + S)]. A row that may be empty is vacuous, for then the network without noise could say
    anything there.
    """
    axis = family.axes.index(child)
    low, high = (np.moveaxis(end, axis, -1) for end in (family.low, family.high))
    most_other = np.minimum(high.sum(axis=-1, keepdims=True) - high, parents.high[..., None] - low)
    least_other = np.maximum(low.sum(axis=-1, keepdims=True) - low, parents.low[..., None] - high)
    most_other, least_other = np.maximum(most_other, 0), np.maximum(least_other, 0)
    spread = strength[..., None]
    empty = np.broadcast_to(parents.low[..., None] <= 0, low.shape)
    least_total, most_total = low + most_other + spread, high + least_other + spread
    lower = np.where(empty, 0.0, low / np.where(least_total > 0, least_total, 1.0))
    upper = np.where(empty, 1.0, (high + spread) / np.where(most_total > 0, most_total, 1.0))
    return lower, np.minimum(upper, 1.0)


def _bound_margin(axes: Sequence[str], tables: Sequence[Measurement], tail: float) -> CountIntervals:
    exact = [found for found in tables if isinstance(found.law, Exact)]
    if exact:
        margin = exact[0].noisy.project(axes).values.astype(np.int64)
        return CountIntervals(tuple(axes), margin, margin)
    cells = count_cells(tables[0].noisy.sizes[name] for name in axes)
    # At a huge ε the variance is 0 in floats; such a table is as good as exact.
    precision = np.array([1.0 / max(found.law.variance * found.cells, 1e-300) for found in tables])
    weights = np.rint(FINENESS * precision / precision.max()).astype(np.int64)
    total = np.zeros([tables[0].noisy.sizes[name] for name in axes], dtype=np.int64)
    terms: list[Term] = []
    for found, weight in zip(tables, weights, strict=True):
        if weight > 0:
            total = total + weight * found.noisy.project(axes).values
            terms.append((found.law, int(weight), found.cells // cells))
    whole = int(weights.sum())
    reach = bound_sum(tuple(terms), tail)
    low = -((reach - total) // whole)  # rounded up
    high = (total + reach) // whole
    return CountIntervals(tuple(axes), np.maximum(low, 0), np.maximum(high, 0))


def _dropped(small: tuple[str, ...], large: tuple[str, ...]) -> tuple[int, ...]:
    if not set(small) <= set(large):
        raise TableError(f"{small} is no margin of {large}")
    return tuple(k for k, name in enumerate(large) if name not in small)


def _raise(ends: Counts, at_least: Counts) -> bool:
    moved = bool((at_least > ends).any())
    np.maximum(ends, at_least, out=ends)
    return moved


def _lower(ends: Counts, at_most: Counts) -> bool:
    moved = bool((at_most < ends).any())
    np.minimum(ends, at_most, out=ends)
    return moved
