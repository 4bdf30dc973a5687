"""The attack that reads the noisy tables themselves, with the law of their noise.

A member adds 1 to one cell of every table. Let y be the noisy count of that cell, f the law of the noise, and
B the number of other rows in the cell. Then for each table

    log P(y | member) − log P(y | stranger) = log Σ_b P(B_{n−1} = b)·f(y − 1 − b) − log Σ_b P(B_n = b)·f(y − b).

B is not known. If the others are drawn from the population that the reference shows, B_n is beta-binomial: n
people, each in the cell with a probability whose posterior, given r of R reference rows there, is Beta(r + a,
R − r + (k − 1)·a) for k cells. It is assumed that n is the (noisy) total, and the tables' terms are added as
if their cells were filled by different people. The first is as good as the total; the second costs power
where tables overlap, but no attack has to be optimal to count.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from discreet.judge.attacks.cells import Codes, Floats, count_rows, flatten_codes
from discreet.values.law import Exact, Law
from discreet.values.measurement import Measurement

Integers = npt.NDArray[np.int64]

PSEUDO_COUNT = 0.5
REACH = 9.0
"""Counts of others further than so many standard deviations (and ten) from their mean are left out."""
BLOCK = 2**20
"""Terms that are summed at a time."""


def estimate_total(measurements: Sequence[Measurement]) -> int:
    """The number of rows, from the noisy totals of all tables by inverse variance; at least 1."""
    whole = [found for found in measurements if found.rate == 1] or measurements
    exact = [found for found in whole if isinstance(found.law, Exact)]
    if exact:
        return max(1, round(exact[0].noisy.total() / float(exact[0].rate)))
    weights = [float(found.rate) ** 2 / (found.law.variance * found.cells) for found in whole]
    totals = [found.noisy.total() / float(found.rate) for found in whole]
    return max(1, round(float(np.average(totals, weights=weights))))


def score_noisy(measurements: Sequence[Measurement], reference: Codes, rows: int, codes: Codes) -> Floats:
    """The noise-aware log-likelihood ratio of every row of codes, added over the tables."""
    score = np.zeros(count_rows(codes))
    for measurement in measurements:
        if measurement.axes:  # a member and a stranger add the same to the total
            weights = weigh_cells(measurement, reference, rows)
            score += weights[flatten_codes(codes, measurement.axes, measurement.noisy.values.shape)]
    return score


def weigh_cells(measurement: Measurement, reference: Codes, rows: int) -> Floats:
    """For every cell of a noisy table, flat, the log-likelihood ratio of somebody who would be in it."""
    shape = measurement.noisy.values.shape
    seen = np.bincount(flatten_codes(reference, measurement.axes, shape), minlength=measurement.cells)
    first = np.add(seen, PSEUDO_COUNT, dtype=np.float64)
    rest = np.add(seen.sum() - seen, (measurement.cells - 1) * PSEUDO_COUNT, dtype=np.float64)
    noisy, rate = measurement.noisy.values.ravel(), float(measurement.rate)
    counted = max(1, round(rows * rate))
    if isinstance(measurement.law, Exact):
        weights = _weigh_exact(noisy, first, rest, counted)
    else:
        with_one = log_mixture(noisy - 1, first, rest, counted - 1, measurement.law)
        weights = np.asarray(with_one - log_mixture(noisy, first, rest, counted, measurement.law))
    if rate == 1.0:
        return weights
    # In a sample a member is counted with the probability of the rate only.
    return np.asarray(np.logaddexp(math.log(rate) + weights, math.log1p(-rate)))


def log_mixture(noisy: Integers, first: Floats, rest: Floats, rows: int, law: Law) -> Floats:
    """log Σ_b P(B = b)·f(y − b) for each cell, B beta-binomial with n = rows and parameters (first, rest)."""
    share = first / (first + rest)
    spread = np.sqrt(rows * share * (1.0 - share) * (first + rest + rows) / (first + rest + 1.0))
    low = np.maximum(np.floor(rows * share - REACH * spread - 10.0), 0).astype(np.int64)
    high = np.minimum(np.ceil(rows * share + REACH * spread + 10.0), rows).astype(np.int64)
    found = np.empty(len(noisy))
    order = np.argsort(high - low, kind="stable")  # neighbours in a block get windows of about one width
    start = 0
    while start < len(order):
        width = int((high - low)[order[start]]) + 1
        part = order[start : start + max(1, BLOCK // (2 * width))]
        part = part[(high - low)[part] < 2 * width]
        found[part] = _mix(noisy[part], first[part], rest[part], rows, law, low[part], high[part])
        start += len(part)
    return found


def _mix(
    noisy: Integers, first: Floats, rest: Floats, rows: int, law: Law, low: Integers, high: Integers
) -> Floats:
    steps = np.arange(int((high - low).max()) + 1)
    others = low[:, None] + steps
    inside = others <= high[:, None]
    b = np.where(inside, others, low[:, None]).astype(np.float64)
    # P(b + 1)/P(b) = (n − b)(b + α)/((b + 1)(n − b − 1 + β)); the first term of the window cancels by normalising.
    up = (np.maximum(rows - b, 0.0)) * (b + first[:, None])
    down = (b + 1.0) * np.maximum(rows - b - 1.0 + rest[:, None], 1e-300)
    with np.errstate(divide="ignore"):
        ratios = np.log(up) - np.log(down)
    log_prior = np.concatenate([np.zeros((len(b), 1)), np.cumsum(ratios[:, :-1], axis=1)], axis=1)
    log_prior = np.where(inside, log_prior, -np.inf)
    together = log_prior + law.log_pmf(noisy[:, None] - np.where(inside, others, low[:, None]))
    return _log_sum(together) - _log_sum(log_prior)


def _weigh_exact(noisy: Integers, first: Floats, rest: Floats, rows: int) -> Floats:
    """Without noise the ratio is (y/n)·(α + β + n − 1)/(α + y − 1), about p̂/p; nobody is in an empty cell."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log(noisy / rows) + np.log((first + rest + rows - 1.0) / (first + noisy - 1.0))
    return np.where(noisy > 0, ratio, -np.inf)


def _log_sum(values: Floats) -> Floats:
    peak = values.max(axis=1)
    return np.asarray(peak + np.log(np.exp(values - peak[:, None]).sum(axis=1)))
