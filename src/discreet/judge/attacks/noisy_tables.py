"""The attacks that read the noisy tables themselves, with the law of their noise.

**One cell at a time.** A member adds 1 to one cell of every table. Let y be the noisy count of that cell, f the law of
the noise, and B the number of other rows in the cell. Then for each table

    log P(y | member) − log P(y | stranger) = log Σ_b P(B_{n−1} = b)·f(y − 1 − b) − log Σ_b P(B_n = b)·f(y − b).

B is not known. If the others are drawn from the population that the reference shows, B_n is beta-binomial: n
people, each in the cell with a probability whose posterior, given r of R reference rows there, is Beta(r + a,
R − r + (k − 1)·a) for k cells. It is assumed that n is the (noisy) total, and the tables' terms are added as
if their cells were filled by different people. The first is as good as the total; the second costs power
where tables overlap, but no attack has to be optimal to count.

**All cells jointly.** The linear attack knows that the same people fill all tables. Let φ(x) be the 0-1 vector of the
cells that a person is in, over all tables, with mean μ and covariance C in the population, and D the variances of the
noise. The noisy counts y of n strangers have mean nμ and covariance nC + D; a member x moves the mean by φ(x) − μ.
Among all scores that are linear in y, Fisher's tells the two apart best:

    score(x) = (φ(x) − μ)ᵀ (nC + D)⁻¹ (y − nμ).

C is that of the reference rows, so the system is no larger than their number (Woodbury).

**People.** A person with m rows in a cell adds m to it, so 1 becomes m in the first formula, a term for every cell that
they have rows in. If more rows are there than count, m is hypergeometric and the likelihood the mean over it. The
linear score is the sum over the person's rows. A row that counts w times is a person with w rows in one cell.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from discreet.compute.inference.propagation import log_sum
from discreet.judge.attacks.codes import Codes, Floats, count_rows, flatten_codes, take_rows
from discreet.judge.attacks.units import Entries, Units
from discreet.learning.learner import estimate_rows
from discreet.values.measurement import Exact, Law, Measurement

Integers = npt.NDArray[np.int64]

PSEUDO_COUNT = 0.5
REACH = 9.0
"""Counts of others further than so many standard deviations (and ten) from their mean are left out."""
BLOCK = 2**20
"""Terms that are summed at a time."""
MOST_REFERENCES = 1500
"""Reference rows that the covariance is taken from, evenly spread over all."""
LEAST_VARIANCE = 0.25
"""Stands for no noise at all, so that exact tables do not make the system singular."""


def estimate_total(measurements: Sequence[Measurement]) -> int:
    """The number of rows, from the noisy totals of all tables; at least 1."""
    return max(1, round(estimate_rows([found for found in measurements if found.rate == 1] or measurements)))


def score_noisy(
    measurements: Sequence[Measurement], reference: Units | Codes, rows: int, scored: Units | Codes
) -> Floats:
    """The noise-aware log-likelihood ratio of every unit, added over the tables."""
    units = Units.read(scored)
    score = np.zeros(units.number)
    for measurement in measurements:
        if not measurement.axes:  # a member and a stranger add the same to the total
            continue
        entries = units.list_entries(measurement.axes, measurement.noisy.values.shape)
        found = _score_entries(measurement, Units.read(reference), rows, entries, units.at_most)
        score += np.bincount(entries.owners, found, units.number)
    return score


def score_jointly(
    measurements: Sequence[Measurement], reference: Units | Codes, rows: int, scored: Units | Codes
) -> Floats:
    """Fisher's linear score of every unit, from all noisy tables of a release."""
    units = Units.read(scored)
    tables = [found for found in measurements if found.axes and found.rate == 1]
    score = np.zeros(count_rows(units.codes))
    for table, weights in zip(tables, weigh_tables(tables, reference, rows), strict=True):
        score += weights[flatten_codes(units.codes, table.axes, table.noisy.values.shape)]
    return units.add_up(score)


def _score_entries(
    measurement: Measurement, reference: Units, rows: int, entries: Entries, at_most: int
) -> Floats:
    """log Σ_m P(m)·(likelihood ratio of somebody who adds m to the cell) for each person and cell."""
    low, high = entries.bound(at_most)

    def weigh(counted: Integers, mine: npt.NDArray[np.bool_]) -> Floats:
        found, added = np.empty(int(mine.sum())), (counted * entries.parts)[mine]
        for amount in np.unique(added).tolist():
            weights = weigh_cells(measurement, reference, rows, amount)
            found[added == amount] = weights[entries.cells[mine][added == amount]]
        return found

    if (low == high).all():
        return weigh(low, np.ones(len(low), dtype=np.bool_))
    score = np.full(len(low), -np.inf)
    for counted in range(int(low.min()), int(high.max()) + 1):
        mine = (low <= counted) & (counted <= high)
        if mine.any():
            weights = weigh(np.full_like(low, counted), mine)
            score[mine] = np.logaddexp(score[mine], entries.log_chance(counted, at_most, mine) + weights)
    return score


def weigh_cells(measurement: Measurement, reference: Units | Codes, rows: int, added: int = 1) -> Floats:
    """For every cell of a noisy table, flat, the log-likelihood ratio of somebody with so many rows in it."""
    if not added:
        return np.zeros(measurement.cells)
    seen = Units.read(reference).tally(measurement.axes, measurement.noisy.values.shape)
    first = np.add(seen, PSEUDO_COUNT, dtype=np.float64)
    rest = np.add(seen.sum() - seen, (measurement.cells - 1) * PSEUDO_COUNT, dtype=np.float64)
    noisy, rate = measurement.noisy.values.ravel(), float(measurement.rate)
    counted = max(1, round(rows * rate))
    if isinstance(measurement.law, Exact):
        weights = added * _weigh_exact(noisy, first, rest, counted)
    else:
        with_them = log_mixture(noisy - added, first, rest, max(counted - added, 0), measurement.law)
        weights = np.asarray(with_them - log_mixture(noisy, first, rest, counted, measurement.law))
    if rate == 1.0:
        return weights
    # In a sample a member is counted with the probability of the rate only.
    return np.asarray(np.logaddexp(math.log(rate) + weights, math.log1p(-rate)))


def weigh_tables(tables: Sequence[Measurement], reference: Units | Codes, rows: int) -> list[Floats]:
    """(nC + D)⁻¹ (y − nμ), cut into the cells of each table.

    With Z the centred φ of R reference rows, C = ZᵀZ/R, and the inverse is
    D⁻¹ − D⁻¹Zᵀ ((R/n)·I + Z D⁻¹ Zᵀ)⁻¹ Z D⁻¹, where Z D⁻¹ Zᵀ only asks which two people share a cell.
    """
    known = Units.read(reference)
    every = count_rows(known.codes)
    chosen = np.linspace(0, every - 1, min(every, MOST_REFERENCES)).astype(np.int64)
    some = take_rows(known.codes, chosen)
    size = len(chosen)
    kernel, projected = np.zeros((size, size), dtype=np.float32), np.zeros(size)
    surplus: list[Floats] = []
    places = []
    for table in tables:
        shape = table.noisy.values.shape
        place = flatten_codes(some, table.axes, shape)
        seen = known.tally(table.axes, shape)
        mean = seen / seen.sum()
        noise = max(table.law.variance, LEAST_VARIANCE)
        excess = (table.noisy.values.ravel() - rows * mean) / noise
        kernel += np.equal(place[:, None], place).astype(np.float32) / np.float32(noise)
        projected += excess[place]
        surplus.append(excess)
        places.append(place)
    kernel -= kernel.mean(axis=0)
    kernel -= kernel.mean(axis=1, keepdims=True)
    kernel[np.diag_indices(size)] += np.float32(size / rows)
    weights = np.linalg.solve(kernel.astype(np.float64), projected - projected.mean())
    weights -= weights.mean()
    return [
        excess - np.bincount(place, weights, table.cells) / max(table.law.variance, LEAST_VARIANCE)
        for table, place, excess in zip(tables, places, surplus, strict=True)
    ]


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
    return (log_sum(together, (1,)) - log_sum(log_prior, (1,)))[:, 0]


def _weigh_exact(noisy: Integers, first: Floats, rest: Floats, rows: int) -> Floats:
    """Without noise the ratio is (y/n)·(α + β + n − 1)/(α + y − 1), about p̂/p; nobody is in an empty cell."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log(noisy / rows) + np.log((first + rest + rows - 1.0) / (first + noisy - 1.0))
    return np.where(noisy > 0, ratio, -np.inf)
