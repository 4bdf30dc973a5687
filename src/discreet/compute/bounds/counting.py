"""Intervals for true counts behind noisy tables, all of them right at once with a stated probability.

How far a weighted sum of independent noises can be from 0 is found exactly by convolution, or by Chernoff's bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from discreet.compute.bounds.problem import Floats
from discreet.values.errors import TableError
from discreet.values.measurement import Exact, Law, Measurement
from discreet.values.table import count_cells

Counts = npt.NDArray[np.int64]
Term = tuple[Law, int, int]
"""A law, a whole weight, and the number of independent noises of this law that carry the weight."""

FINENESS = 4
"""Tables that answer the same margin are averaged with whole weights of at most this size."""

ROUNDS = 20
"""How often intervals of tables and of their margins narrow each other; two or three rounds are usual."""

LONGEST = 2**17
"""The longest convolution; beyond it Chernoff's bound is used, which is some 15 % wider."""

RESOLUTION = 1e-12
"""Tail probabilities near the rounding of a convolution are left to Chernoff's bound."""


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
        members: bound_margin([name for name in names if name in members], tables, (1.0 - coverage) / events)
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
    """Intervals for n_x/n_π, from those of the cells n_x and of their total n_π; the child's axis comes last.

    The share is least where n_x is least and the others are as many as can be, min(Σ h_other, h_π − l_x), and
    greatest the other way round; with the S of the imprecise Dirichlet model both are widened to [n/(n_π +
    S), (n + S)/(n_π + S)]. A conditional of parents that may never occur is vacuous, for then the network
    without noise could say anything there.
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


def bound_margin(axes: Sequence[str], tables: Sequence[Measurement], tail: float) -> CountIntervals:
    """Intervals for the cells of a margin of tables whose noise is independent and fresh; each misses with `tail`."""
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


@lru_cache(maxsize=4096)
def bound_sum(terms: tuple[Term, ...], tail: float) -> int:
    """A whole h with P(|Σ weight·noise| > h) ≤ tail; the smallest one wherever a convolution can tell."""
    # A whole noise is not 0 with a probability of at most its variance; below 1e-200 no tail can tell.
    noisy = tuple(term for term in terms if not isinstance(term[0], Exact) and term[0].variance > 1e-200)
    if not noisy:
        return 0
    wide = math.ceil(bound_by_chernoff(noisy, tail))
    reach = math.ceil(bound_by_chernoff(noisy, RESOLUTION / 100))
    length = 1 << (2 * reach + 2).bit_length()
    if length > LONGEST or tail < 100 * RESOLUTION:
        return wide
    beyond = _tabulate_tails(noisy, length) + RESOLUTION  # what wrapped around and what was rounded
    return min(wide, int(np.argmax(beyond <= tail)))


def bound_by_chernoff(terms: tuple[Term, ...], tail: float) -> float:
    """min_t (log(2/tail) + Σ log E e^{t·weight·noise}) / t, every t > 0 being a valid bound.

    A discrete Gaussian is sub-Gaussian with its own σ² [CKS20, Lemma 22]; for a discrete Laplace of scale s
    and q = e^(−1/s), E e^{tX} = (1 − q)²/((1 − q·e^t)(1 − q·e^(−t))) where t < 1/s.
    """
    spread = math.sqrt(sum(count * weight**2 * law.variance for law, weight, count in terms))
    most = min(law.steepest / weight for law, weight, _ in terms)
    if most == math.inf:
        most = 8.0 * math.sqrt(math.log(2.0 / tail)) / spread
    t = most * np.linspace(0.0, 1.0, 2001)[1:-1]
    exponent = np.full(len(t), math.log(2.0 / tail))
    for law, weight, count in terms:
        exponent += count * law.log_moment(weight * t)
    return float((exponent / t).min())


def _tabulate_tails(terms: tuple[Term, ...], length: int) -> Floats:
    """P(|sum| > h) for h = 0, 1, …, from the product of the laws' Fourier transforms."""
    whole = np.ones(length)
    for law, weight, count in terms:
        whole = whole * _transform(law, length)[(weight * np.arange(length)) % length] ** count
    chances = np.maximum(np.fft.ifft(whole).real[1 : length // 2], 0.0)
    return np.asarray(2.0 * np.cumsum(chances[::-1])[::-1])


@lru_cache(maxsize=16)  # a release has a few laws, and many margins that sum them
def _transform(law: Law, length: int) -> Floats:
    k = np.arange(length, dtype=np.int64)
    return np.asarray(np.fft.fft(law.pmf(np.where(k < length // 2, k, k - length))).real)
