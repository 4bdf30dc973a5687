"""Calibrated intervals for a share of the table's rows, where some measured table holds all that is asked about.

Let a of the m rows that fit the evidence have the asked level. At the true share p = a/m the number

    T(p) = (1 − p)·â − p·(m̂ − â)

is nothing but noise of a known law, whatever the counts are. So {p : |T(p)| ≤ q(p)}, with q(p) the quantile of that
noise, contains the true share as often as it says: no prior, no model, no approximation of large counts
[Fieller 1954]. For a mean of values v_k that a_k rows hold, T(μ) = Σ_k (v_k − μ)·â_k; a share is the mean of the
values 1 and 0. About the world, the rows are a sample besides, which adds m·p·(1 − p) to the variance of T(p), and
Σ_k (v_k − μ)²·â_k to that of T(μ).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from discreet.values.errors import NetworkError
from discreet.values.measurement import Exact, Law, Measurement
from discreet.values.table import Array, count_cells

GRID = 4001
"""Points from the least to the greatest value at which T is looked at; ends are found by interpolation."""


class TooNoisy(NetworkError):
    """The noise outweighs the count of the evidence, so that no narrow interval holds as often as it says."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Best linear estimates of the rows in each part of the evidence, with how their noise is made up."""

    counts: Array
    """â and m̂ − â; or as many as there are parts."""
    variance: Array
    """Their covariance matrix."""
    loads: Array
    """How much of each observation's noise is in them: one column for each observation."""
    fourth: Array
    """The fourth cumulant of each observation's noise."""

    def spread(self, weights: Array) -> tuple[Array, Array]:
        """The variance and the excess kurtosis of weights·noise, for each line of weights."""
        variance = np.einsum("ki,ij,kj->k", weights, self.variance, weights)
        fourth = ((weights @ self.loads) ** 4) @ self.fourth
        return variance, fourth / np.maximum(variance**2, 1e-300)


def guess_rows(tables: Sequence[Measurement], public: int | None) -> float:
    """The number of rows, estimated from all measured tables by their precision, or what is public of it."""
    if public is not None:
        return float(public)
    precision = np.array([1.0 / max(table.law.variance * table.cells, 1e-9) for table in tables])
    totals = np.array([table.noisy.total() for table in tables])
    return max(0.0, float(precision @ totals / precision.sum()))


def estimate_counts(tables: Sequence[Measurement], names: Sequence[str], parts: Sequence[Array]) -> Estimate:
    """Estimates of how many rows are in each part of the evidence, from all measured tables.

    Tables that hold all the attributes tell all these numbers; those that hold only the evidence tell their sum. The
    parts are indicators over the attributes in order; no cell is in two of them, and together they are the evidence.
    """
    given = np.sum(parts, axis=0)
    shape, observed = given.shape, _list_observed(names, given)
    lines, rows = np.eye(len(parts)), list[Array]()
    right: list[float] = []
    spread: list[float] = []
    fourth: list[float] = []
    for table in tables:
        if not isinstance(table.law, Exact):
            if set(names) <= set(table.axes):
                margin = table.noisy.project(names).values
                copies = table.cells // count_cells(shape)
                for line, part in zip(lines, parts, strict=True):
                    if part.any():
                        rows.append(line)
                        right.append(float((margin * part).sum()))
                        _note(table.law, int(part.sum()) * copies, spread, fourth)
            elif set(observed[0]) <= set(table.axes):
                margin = table.noisy.project(observed[0]).values
                rows.append(np.ones(len(parts)))
                right.append(float((margin * observed[1]).sum()))
                _note(table.law, int(observed[1].sum()) * (table.cells // margin.size), spread, fourth)
    design, noise = np.array(rows), np.array(spread)
    if len(design) == 0:
        raise NetworkError("no table over all rows was measured that holds the question")
    information = design.T / noise
    variance = np.linalg.pinv(
        information @ design
    )  # an event that is all of the evidence leaves nothing else to tell
    loads = variance @ information
    return Estimate(loads @ np.array(right), variance, loads, np.array(fourth))


def bound_mean(found: Estimate, values: Array, coverage: float, *, world: bool) -> tuple[float, float]:
    """The ends of the interval for the mean of the parts' values, of 1 and 0 a share.

    Refused where the noise outweighs the count of the evidence.
    """
    z = NormalDist().inv_cdf((1.0 + coverage) / 2.0)
    rows = float(found.counts.sum())
    both, kurtosis = found.spread(np.ones((1, len(values))))
    if rows <= _stretch(z, kurtosis)[0] * math.sqrt(both[0]):
        raise TooNoisy(
            "noise outweighs the rows that fit the evidence, so no narrow interval would hold as often as it says; "
            'guaranteed ones hold (intervals="guaranteed", --interval guaranteed)'
        )
    least, most = float(values.min()), float(values.max())
    p = least + (most - least) * np.linspace(0.0, 1.0, GRID)
    weights = values[None, :] - p[:, None]
    variance, kurtosis = found.spread(weights)
    if world:
        events = len(values) <= 2 and least == 0 and most == 1
        sampled = max(rows, 1.0) * p * (1.0 - p) if events else weights**2 @ np.maximum(found.counts, 0.0)
        kurtosis = kurtosis * (variance / np.maximum(variance + sampled, 1e-300)) ** 2
        variance = variance + sampled
    noise = np.maximum(_stretch(z, kurtosis) / z * np.sqrt(variance), 1e-12)
    below, above = accept(rows * (p - least) / noise, rows * (most - p) / noise, coverage)
    off = weights @ found.counts / noise
    excess = np.maximum(off - above, -below - off)
    inside = np.flatnonzero(excess <= 0)
    if len(inside) == 0:  # the ends of the interval lie between two points of the grid
        nearest = float(p[excess.argmin()])
        return nearest, nearest
    first, last = inside[0], inside[-1]
    return _cross(p, excess, first, first - 1), _cross(p, excess, last, last + 1)


def accept(below: Array, above: Array, coverage: float) -> tuple[Array, Array]:
    """How far noise may lead below and above the truth, in standard deviations, where what it leads to has two ends.

    The ends lie so many deviations below and above the truth. An estimate beyond an end is as good as the end: so at
    the end itself only one side can mislead, and two equal tails would hold too often. Deviations x are accepted by
    their likelihood over that of the best truth within the ends [Feldman & Cousins 1998],

        log R(x) = −x²/2,   beyond an end that lies d off   d²/2 − |x|·d.

    All x with log R ≥ −u²/2 reach to u, or to (u² + d²)/2d where u > d; u is such that they have the coverage.
    """
    near, far = np.minimum(below, above), np.maximum(below, above)
    offs, found = _tabulate_ends(coverage)
    u = np.interp(near, offs, found)
    both = far < offs[-1]
    if both.any():
        u[both] = _solve(near[both], far[both], coverage)
    return _reach(u, below), _reach(u, above)


@lru_cache(maxsize=8)
def _tabulate_ends(coverage: float) -> tuple[Array, Array]:
    """u for one end that lies so far off; from the last one on, the end is too far to matter."""
    offs = np.linspace(0.0, NormalDist().inv_cdf((1.0 + coverage) / 2.0), 257)
    return offs, _solve(offs, np.full_like(offs, 1e9), coverage)


def _solve(near: Array, far: Array, coverage: float) -> Array:
    low, high = np.zeros_like(near), np.full_like(near, NormalDist().inv_cdf((1.0 + coverage) / 2.0))
    for _ in range(30):
        middle = (low + high) / 2.0
        enough = _sum_normal(_reach(middle, near)) + _sum_normal(_reach(middle, far)) - 1.0 >= coverage
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return high


def _reach(u: Array, end: Array) -> Array:
    near = np.maximum(end, 1e-9)
    return np.where(u <= end, u, (u * u + near * near) / (2.0 * near))


def _sum_normal(x: Array) -> Array:
    """Φ(x), from a table of its values; right to 1e-6."""
    return np.interp(x, *_tabulate_normal())


@lru_cache(maxsize=1)
def _tabulate_normal() -> tuple[Array, Array]:
    x = np.linspace(-8.0, 8.0, 16_001)
    law = NormalDist()
    return x, np.array([law.cdf(value) for value in x])


def bound_count(found: Estimate, coverage: float) -> tuple[float, float]:
    """The ends of the interval for the number of rows in the first part."""
    variance, kurtosis = found.spread(np.eye(len(found.counts))[:1])
    z = NormalDist().inv_cdf((1.0 + coverage) / 2.0)
    reach = float(_stretch(z, kurtosis)[0] * math.sqrt(variance[0]))
    middle = float(found.counts[0])
    return max(0.0, math.floor(middle - reach)), max(0.0, math.ceil(middle + reach))


def _cross(p: Array, excess: Array, inside: int, outside: int) -> float:
    if not 0 <= outside < len(p):
        return float(p[inside])
    share = excess[inside] / (excess[inside] - excess[outside])
    return float(p[inside] + share * (p[outside] - p[inside]))


def _stretch(z: float, kurtosis: Array) -> Array:
    """The quantile of a symmetric law in standard deviations, from its kurtosis [Cornish & Fisher 1938].

    A single Laplace noise has 2.12 at 95 %, the expansion 2.17.
    """
    return np.asarray(z + (z**3 - 3.0 * z) / 24.0 * kurtosis)


def _note(law: Law, copies: int, spread: list[float], fourth: list[float]) -> None:
    variance = law.variance
    spread.append(max(variance * copies, 1e-9))
    fourth.append(law.excess * copies)


def _list_observed(names: Sequence[str], given: Array) -> tuple[tuple[str, ...], Array]:
    """The attributes that the evidence is about, and its indicator over them."""
    kept = [
        axis
        for axis in range(given.ndim)
        if given.shape[axis] > 1
        and not np.array_equal(given, np.broadcast_to(given.take([0], axis=axis), given.shape))
    ]
    index = tuple(slice(None) if axis in kept else 0 for axis in range(given.ndim))
    return tuple(names[axis] for axis in kept), np.asarray(given[index])
