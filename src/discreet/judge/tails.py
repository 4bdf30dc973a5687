"""Chances of the binomial and of χ²: exact bounds on a share, and p-values."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt


def bound_share_below(hits: int, trials: int, doubt: float) -> float:
    """Clopper-Pearson: the smallest p under which so many hits or more have probability at least `doubt`."""
    low, high = 0.0, hits / trials
    for _ in range(100):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if _binomial_tail(hits, trials, middle) < doubt else (low, middle)
    return low


def bound_share_above(hits: int, trials: int, doubt: float) -> float:
    """Clopper-Pearson: the largest p under which so few hits or fewer have probability at least `doubt`."""
    return 1.0 - bound_share_below(trials - hits, trials, doubt)


def tabulate_binomial(trials: int, p: float) -> npt.NDArray[np.float64]:
    """The probabilities of 0 … trials successes, to about 1e-12 of each."""
    if p <= 0.0 or p >= 1.0:
        chances = np.zeros(trials + 1)
        chances[trials if p >= 1.0 else 0] = 1.0
        return chances
    k = np.arange(1, trials + 1, dtype=np.float64)
    logs = np.concatenate([[0.0], np.cumsum(np.log((trials - k + 1) / k) + math.log(p) - math.log1p(-p))])
    found = np.exp(logs - logs.max())
    return np.asarray(found / found.sum())


def chi_squared_tail(distance: float, degrees: int) -> float:
    """P(χ² > distance), by Wilson and Hilferty; its relative error is a few percent down to p = 1e-8."""
    shift = 2.0 / (9.0 * degrees)
    return 0.5 * math.erfc((math.cbrt(distance / degrees) - (1.0 - shift)) / math.sqrt(2.0 * shift))


def pool_p_values(doubts: Sequence[float]) -> float:
    """One p-value from independent ones (Fisher): −2Σ log p against χ² with two degrees of freedom for each."""
    half = -math.fsum(math.log(max(doubt, 1e-300)) for doubt in doubts)
    if half <= 0.0:
        return 1.0
    logs = [i * math.log(half) - math.lgamma(i + 1) for i in range(len(doubts))]
    peak = max(logs)
    return min(1.0, math.exp(-half + peak + math.log(math.fsum(math.exp(found - peak) for found in logs))))


def _binomial_tail(hits: int, trials: int, p: float) -> float:
    """P(Binomial(trials, p) ≥ hits) for p below hits/trials, where the terms only fall."""
    if p <= 0.0:
        return 0.0 if hits else 1.0
    first = math.lgamma(trials + 1) - math.lgamma(hits + 1) - math.lgamma(trials - hits + 1)
    first += hits * math.log(p) + (trials - hits) * math.log1p(-p)
    k = np.arange(hits + 1, min(trials, hits + 100 + math.ceil(20 * math.sqrt(trials))) + 1, dtype=np.float64)
    ratios = np.log((trials - k + 1) / k) + (math.log(p) - math.log1p(-p))
    return math.exp(first) * (1.0 + float(np.exp(np.cumsum(ratios)).sum()))
