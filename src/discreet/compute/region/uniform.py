"""Sums of noise that hold at all times at once, for margins that are measured again and again.

A later table may have been asked for because of the noise in an earlier one, so the mean of both is not just the mean
of two fresh noises. But for weights w_t that are fixed before the noise X_t of table t is drawn,

    M_t(λ) = exp(λ·Σ w_s X_s − Σ log E e^{λ w_s X_s})

is a martingale from the margin's first table on, however later tables are chosen, and so is the mean of M_t(λ) and
M_t(−λ) over a list of λ that is fixed at the first table. By Ville's inequality it ever reaches 1/tail with a
probability of at most `tail` [Ville 1939; Howard, Ramdas, McAuliffe & Sekhon 2021].
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from discreet.values.measurement import Exact, Law

STEPS = 8
"""How many λ are mixed: the first is best for the margin's first table alone, each next one for twice the precision."""
Part = tuple[Law, int]
"""A law, and how many of its independent noises a cell of the margin sums in this table."""


def weigh(part: Part) -> float:
    """The weight of a table in the sum: the precision of its cell, which is known before it is drawn."""
    law, count = part
    return 1.0 / max(
        law.variance * count, 1e-9
    )  # any weight that is known beforehand will do; this one adds up


@lru_cache(maxsize=4096)
def bound_mean(parts: tuple[Part, ...], tail: float) -> float:
    """How far the weighted mean of all tables so far can be from the truth, at all times at once with 1 − `tail`.

    The parts are in the order in which the tables were measured.
    """
    if any(isinstance(law, Exact) for law, _ in parts):
        return 0.0
    weights = [weigh(part) for part in parts]
    log_tail = math.log(1.0 / tail)
    first = math.sqrt(2.0 * log_tail / weights[0])
    steepest = 0.95 * min(_find_pole(part) / weight for part, weight in zip(parts[:1], weights, strict=False))
    rates = np.minimum(first / 2.0 ** (np.arange(STEPS) / 2.0), steepest)
    spent = np.zeros(STEPS)
    for (law, count), weight in zip(parts, weights, strict=True):
        spent += count * law.log_moment(weight * rates)
    usable = np.isfinite(spent)
    if not usable.any():
        return math.inf
    rates, spent = rates[usable], spent[usable]
    # The smallest sum b with Σ_j cosh(λ_j b)·exp(−spent_j)/STEPS ≥ 1/tail, by bisection on logarithms.
    low, high = 0.0, float(((log_tail + math.log(2.0 * STEPS) + spent) / rates).min())
    for _ in range(60):
        middle = (low + high) / 2.0
        if _log_mixture(middle, rates, spent) >= log_tail:
            high = middle
        else:
            low = middle
    return high / sum(weights)


def _log_mixture(value: float, rates: np.ndarray, spent: np.ndarray) -> float:
    exponents = np.logaddexp(rates * value, -rates * value) - math.log(2.0) - spent
    return float(np.logaddexp.reduce(exponents)) - math.log(STEPS)


def _find_pole(part: Part) -> float:
    """The rate from which on the moments of a noise are infinite: 1/s for Laplace noise of scale s."""
    return part[0].steepest


def average(tables: Sequence[np.ndarray], parts: Sequence[Part]) -> np.ndarray:
    """The weighted mean of several measurements of the same margin."""
    weights = [weigh(part) for part in parts]
    total = sum(weight * table for weight, table in zip(weights, tables, strict=True))
    return np.asarray(total / sum(weights))
