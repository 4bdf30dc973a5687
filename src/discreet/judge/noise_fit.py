"""Whether the noise in a release is what it says, for somebody who holds the rows: noisy counts minus true ones.

They must look like independent draws of the stated law. All p-values are exact or bounds on the safe side
(Chernoff's), except that of the histogram, whose χ² has at least 20 draws in every cell.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from discreet.compute.inference.propagation import log_sum
from discreet.judge.attacks.codes import Codes
from discreet.judge.attacks.units import Units
from discreet.judge.tails import chi_squared_tail, pool_p_values
from discreet.values.errors import MechanismError
from discreet.values.laws.sums import MOST_PARTS, NoiseSum
from discreet.values.measurement import DiscreteGaussian, DiscreteLaplace, Exact, Law, Measurement

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Noise = DiscreteLaplace | DiscreteGaussian | NoiseSum

HISTOGRAM = 200
"""From so many draws on, their histogram is tested as well."""
EXPECTED = 20.0
"""So many draws are expected in each cell of a histogram, so that χ² is its law."""
CONVOLVED = 2**16
"""The law of a sum is worked out exactly while it has at most so many values."""
ROUNDING = 1e-10
"""Exact chances are known to about this; below it, Chernoff's bound speaks alone."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One test: which noise was held against which law, and the p-value of the release being as it says."""

    what: str
    law: Noise
    doubt: float


@dataclass(frozen=True, slots=True, eq=False)
class _Drawn:
    """The noise of one table, as far as it can be known."""

    noise: Integers
    true: Integers
    """In the cells whose true counts are known: where a person has more rows than count, it is not known which do."""
    total: int
    """The noise in the sum of the table, which is known in any case."""
    cells: int


def check_noise(measurements: Sequence[Measurement], rows: Units | Codes) -> tuple[Finding, ...]:
    """Tests of all noise in a release against the rows it was made of; every p-value stands for itself.

    For each law: the noise in all cells, in empty cells, in others, in tables of one cell, and the sums of
    tables; and for pairs of tables of one size, whether one has the other's noise again.
    """
    findings: list[Finding] = []
    # Which rows a sample holds is secret, so its true counts are not known to anybody.
    known = [found for found in measurements if found.rate == 1]
    laws = dict.fromkeys(found.law for found in known)
    for law in laws:
        if isinstance(law, Exact):
            continue
        mine = [_subtract(found, Units.read(rows)) for found in known if found.law == law]
        groups = {
            "the noise in all cells": [found.noise for found in mine],
            "the noise in empty cells": [found.noise[found.true == 0] for found in mine],
            "the noise in cells with rows": [found.noise[found.true > 0] for found in mine],
            "the noise in the number of rows": [found.noise for found in mine if found.cells == 1],
        }
        for where, parts in groups.items():
            drawn = np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)
            if drawn.size:
                findings += [Finding(where, law, doubt) for doubt in fit_draws(drawn, law)]
        wide = [found for found in mine if found.cells > 1]
        sums = [fit_total(found.total, found.cells, law) for found in wide]
        for place, how in enumerate(("large", "small")):
            doubts = [found[place] for found in sums]
            if doubts:
                findings.append(
                    Finding(f"the noise in the sums of tables, too {how},", law, pool_p_values(doubts))
                )
        findings += compare_tables([found.noise for found in wide if found.noise.size == found.cells], law)
    return tuple(findings)


def combine(findings: Sequence[Finding]) -> Finding | None:
    """The finding that is hardest to believe, its p-value multiplied by the number of tests."""
    if not findings:
        return None
    worst = min(findings, key=lambda found: found.doubt)
    return replace(worst, doubt=min(1.0, worst.doubt * len(findings)))


def fit_draws(drawn: Integers, law: Noise) -> list[float]:
    """p-values of integer draws against their law: of Σ|k|, and of their histogram if there are enough."""
    found = [_fit_size(drawn, law)]
    if drawn.size >= HISTOGRAM:
        # So narrow a law that nearly all draws are 0: Σ|k| says it all.
        with contextlib.suppress(MechanismError):
            found.append(fit_law(drawn, law))
    return found


def fit_law(draws: npt.ArrayLike, law: Law) -> float:
    """The p-value of Pearson's χ² for integer draws against a law, in cells that expect at least 20 draws.

    Neighbours are taken together until they do: of a wide law every number by itself is rare, the statistic then varies
    by more than χ² does, and sound noise would be accused too often.
    """
    found = np.asarray(draws).ravel()
    share = min(0.1, EXPECTED / found.size)
    low, high = int(law.quantile(share)), int(law.quantile(1.0 - share))
    if high - low < 3:
        raise MechanismError(f"{found.size} draws of {law} fall into too few cells for a test of fit")
    inner = np.arange(low + 1, high)
    expected = found.size * np.concatenate([[law.cdf(low)], law.pmf(inner), [law.survival(high - 1)]])
    observed = np.bincount(np.clip(found, low, high) - low, minlength=expected.size)
    starts = _join_cells(expected)
    expected, observed = np.add.reduceat(expected, starts), np.add.reduceat(observed, starts)
    return chi_squared_tail(float(((observed - expected) ** 2 / expected).sum()), expected.size - 1)


def _join_cells(expected: npt.NDArray[np.float64]) -> list[int]:
    """Where cells begin that hold at least `EXPECTED` draws, from the left; what is left over joins the last."""
    summed = np.cumsum(expected)
    starts = [0]
    while True:
        before = summed[starts[-1] - 1] if starts[-1] else 0.0
        after = int(np.searchsorted(summed, before + EXPECTED * (1 - 1e-9))) + 1
        if after >= len(summed) or summed[-1] - summed[after - 1] < EXPECTED * (1 - 1e-9):
            return starts
        starts.append(after)


def fit_sum(drawn: Integers, law: Noise) -> tuple[float, float]:
    """Two p-values of Σk: for too large, as if noise were shared, and too small, as if totals were mended."""
    return fit_total(int(drawn.sum()), drawn.size, law)


def fit_total(total: int, cells: int, law: Noise) -> tuple[float, float]:
    """The same, from the sum alone."""
    far = 2.0 * _bound_tail(abs(total), cells, law.log_moment)
    near = (2 * abs(total) + 1) * _peak(cells, law)  # a sum of symmetric unimodal laws is likeliest 0
    return min(1.0, far), min(1.0, near)


def compare_tables(noises: Sequence[Integers], law: Noise) -> list[Finding]:
    """Equal noise in two tables of one size happens by chance with probability (Σ_k f(k)²)^cells."""
    pairs = [(a, b) for a, b in itertools.combinations(noises, 2) if a.size == b.size]
    if not pairs:
        return []
    reach = min(law.bound(1.0 - 1e-9), 2**20)
    same = float((law.pmf(np.arange(-reach, reach + 1)) ** 2).sum())
    equal = [a.size for a, b in pairs if np.array_equal(a, b) or np.array_equal(a, -b)]
    doubt = min(1.0, 2.0 * len(pairs) * same ** max(equal)) if equal else 1.0
    return [Finding("the noise that two tables share", law, doubt)]


def _subtract(measurement: Measurement, rows: Units) -> _Drawn:
    noisy = measurement.noisy.values
    low, high = rows.bound_tally(measurement.axes, noisy.shape)
    sure = low == high
    return _Drawn((noisy.ravel() - low)[sure], low[sure], int(noisy.sum()) - rows.total, measurement.cells)


def _fit_size(drawn: Integers, law: Noise) -> float:
    total = int(np.abs(drawn).sum())
    low = _bound_tail(-total, drawn.size, lambda t: _log_moment_size(law, -t))
    high = _bound_tail(total, drawn.size, lambda t: _log_moment_size(law, t))
    reach = law.bound(1.0 - 1e-13)
    if drawn.size * reach < CONVOLVED and max(low, high) > ROUNDING:
        k = np.arange(reach + 1)
        one = np.fft.rfft(law.pmf(k) * np.where(k > 0, 2.0, 1.0), drawn.size * reach + 1)
        chances = np.fft.irfft(one**drawn.size, drawn.size * reach + 1)
        low = min(low, max(float(chances[: total + 1].sum()), ROUNDING))
        high = min(high, max(float(chances[total:].sum()), ROUNDING))
    return float(min(1.0, 2.0 * min(low, high)))


def _bound_tail(total: int, draws: int, log_moment: Callable[[Floats], Floats]) -> float:
    """P(Σ ≥ total) ≤ min over t > 0 of exp(n·log E e^{tX} − t·total)."""
    t = np.geomspace(1e-9, 20.0, 600)
    with np.errstate(invalid="ignore", over="ignore"):
        exponents = draws * log_moment(t) - t * total
    return math.exp(min(0.0, float(np.nanmin(exponents))))


def _log_moment_size(law: Noise, t: Floats) -> Floats:
    """log E e^{t|X|}."""
    if isinstance(law, DiscreteLaplace):
        q = math.exp(-float(1 / law.scale))
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            grown = q * np.exp(t)
            found = math.log1p(-q) - math.log1p(q) + np.log1p(grown) - np.log(1.0 - grown)
        return np.where(grown < 1.0, found, np.inf)
    if not isinstance(law, DiscreteGaussian):
        if t[0] > 0:
            return np.asarray(math.log(2.0) + law.log_moment(t))
        k = np.unique(np.rint(np.linspace(0.0, float(law.bound(1.0 - 1e-13)), 2**12))).astype(np.int64)
        weights = (
            law.pmf(k)
            * (np.gradient(k.astype(np.float64)) if len(k) > 1 else 1.0)
            * np.where(k > 0, 2.0, 1.0)
        )
        return log_sum(np.outer(t, k) + np.log(weights / weights.sum()), (1,))[:, 0]
    # E e^{t|X|} ≤ 2·E e^{tX}; for small t or below 0 the sum itself, on a grid of at most 2^14 values.
    sigma = math.sqrt(float(law.sigma2))
    k = np.unique(np.rint(np.linspace(0.0, 12.0 * sigma + 12.0, 2**14))).astype(np.float64)
    weights = np.exp(-k * k / (2.0 * float(law.sigma2)))
    weights = weights * np.gradient(k) * np.where(k > 0, 2.0, 1.0)
    scaled = np.outer(t, k) + np.log(weights / weights.sum())
    return log_sum(scaled, (1,))[:, 0]


def _peak(draws: int, law: Noise) -> float:
    """P(Σ of so many draws = 0), by the inversion integral for Laplace; a sum of Gaussians is nearly one itself."""
    if isinstance(law, DiscreteGaussian):
        return float(DiscreteGaussian(law.sigma2 * draws).pmf(0))
    if not isinstance(law, DiscreteLaplace):
        return float(NoiseSum(law.parts * draws).pmf(0)) if draws * len(law.parts) <= MOST_PARTS else 1.0
    q = math.exp(-float(1 / law.scale))
    points = min(2**22, 256 + int(64 * float(law.scale) * math.sqrt(draws)))
    angles = 2.0 * math.pi * np.arange(points) / points
    log_values = draws * (2.0 * math.log1p(-q) - np.log(1.0 - 2.0 * q * np.cos(angles) + q * q))
    return float(np.exp(log_values).mean())
