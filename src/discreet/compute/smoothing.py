"""Noisy tables drawn towards what is simpler, by as much as their noise says: levels to neighbours, cells to margins.

`consistency.settle` takes every noisy cell at its word. Where noise is as large as the counts, that is not the best
guess: a table of a hundred levels with a few rows each becomes a row of spikes. Both steps here leave what stands out
from the noise where it is, and shrink what noise explains to what larger sums say, which are known better.

Conditionals are smoothed likewise: those that seldom apply follow coarser ones, and all keep a margin.

Where noise is larger than a table, the nearest network is sure of what is chance. Whether it is better to say less
depends on the truth: if all levels are about as frequent, a uniform guess is nearly right; if most rows are in one
level, it is off by almost all that it can be, and the likeliest level is a better guess even if it is often wrong. No
single table tells which; all of them together do. If noise hides even a cell that holds all rows, nothing is better.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from discreet.compute.association import expect_association, keep_correlation
from discreet.compute.consistency import (
    average_sets,
    project_on_simplex,
    reconcile,
    restore_margins,
    settle,
    weigh_by_precision,
)
from discreet.values.schema import Schema
from discreet.values.schema.types import find_ranges
from discreet.values.table import Array, Table

MANY_LEVELS = 8
"""Fewer levels have too few halves to tell noise from what is there."""
FEW_LEVELS = 2
"""So few levels that stand for numbers have a correlation with a number of many."""
LARGE_SCORE = 1e100
STANDS_OUT = 3.0
"""A difference of so many standard deviations is kept as it is."""
SHIFTS = (0, 1, 2, 3)
"""Where the halves begin, besides an eighth, a fifth and a third of the levels further on; the mean over several has no
steps at places that mean nothing."""
LEAST = 1e-9
"""No cell is expected to hold less than this part of all rows."""
FITTED = 8
"""Rounds of proportional fitting in which a table of three and more attributes is expected from its margins."""
LOOSE = 0.1
"""A cell varies around a smooth dependence as if so much of it were what independence expects."""
TINY = 1e-5
"""A factor below this says no more than this in a mean of logarithms."""
SWEEPS = 4
"""How often a margin and the sums of the conditionals are restored in turn; each leaves a small part of the gap."""
KNOWN = 0.1
"""A marginal of which noise explains less than this part is taken at its word."""
ANYTHING = 1.0 / 12.0
"""The variance of a number between 0 and 1 that could be any."""
REPEATED = 50
"""How often a mean is found with weights that hang on it, each time half the way."""
NEVER = 1e-12
"""No conditional probability is raked below this."""


def estimate_tables(
    noisy: Sequence[Table],
    variances: Sequence[float],
    ordered: Mapping[str, int],
    *,
    rounds: int,
    total: float | None = None,
    scores: Mapping[str, Array] | None = None,
    shrunk: bool = True,
) -> tuple[Table, ...]:
    """One table for each set that was measured, non-negative, agreeing, and shrunk by its noise.

    Tables of one set are averaged by precision and all made to agree. Then the margins of attributes with many levels
    in order, of which `ordered` says how many, are shrunk by `shrink_levels`, and tables of two and more attributes,
    which follow these margins, by `shrink_cells`; last, they are scaled to the margins of single attributes. The total
    is the one that the tables agree on, or the public one. With `scores` of ordered levels (`association`), pairs keep
    their correlations. Tables that are not to be `shrunk` are further from the truth, and off by noise alone.
    """
    measured, spreads = average_sets(noisy, variances)
    weights = [*weigh_by_precision(measured, spreads)]
    tables = [*reconcile(measured, weights)]
    whole = max(tables[0].total(), 0.0) if total is None else total
    if whole <= 0:
        return settle(measured, weights, rounds=1, total=whole)
    if not shrunk:
        return restore_margins(settle(tables, weights, rounds=rounds, total=whole), tables)
    singles = _shrink_singles(tables, weights, ordered, whole)
    if singles:
        tables, weights = [*tables, *singles], [*weights, *(math.inf for _ in singles)]
        tables = [*reconcile(tables, weights)]
    likely = [
        shrink_cells(table, whole, variance, scores) if len(table.axes) > 1 else table
        for table, variance in zip(tables, spreads, strict=False)
    ]
    settled = settle([*likely, *singles], weights, rounds=rounds, total=whole)[: len(likely)]
    return tuple(
        _keep_pair(found, (table, near), variance, scores)
        for found, table, near, variance in zip(
            restore_margins(settled, tables), tables, likely, spreads, strict=False
        )
    )


def _keep_pair(
    found: Table, known: tuple[Table, Table], variance: float, scores: Mapping[str, Array] | None
) -> Table:
    """A pair of ordered attributes with the correlation that its noisy and its likely table know; others as are."""
    numbers = _find_scores(found, scores)
    if not numbers:
        return found
    noisy, likely = (table.values for table in known)
    return Table(found.axes, keep_correlation(found.values, noisy, likely, variance, numbers))


def _find_scores(table: Table, scores: Mapping[str, Array] | None) -> list[Array]:
    """The scores of both attributes of a pair; none of other tables, where one has none, or where both have few levels.

    Of two with few levels there is hardly a smoother table than the one that was measured.
    """
    known = [scores[name] for name in table.axes if name in scores] if scores else []
    if len(known) != 2 or len(table.axes) != 2:
        return []
    return known if max(np.count_nonzero(~np.isnan(score)) for score in known) >= MANY_LEVELS else []


def count_ordered(schema: Schema) -> dict[str, int]:
    """How many levels of each attribute are in order: all but those of missing and other values; 0 of mere names."""
    numbers = ("integer", "decimal", "date", "datetime")
    return {
        found.name: (found.size - (found.missing is not None) - (found.other is not None))
        * (found.ordered or found.type in numbers)
        for found in schema
    }


def score_levels(schema: Schema, fewest: int = MANY_LEVELS) -> dict[str, Array]:
    """For each attribute with so many levels in order the middle of every level; NaN for missing and other values."""
    scores: dict[str, Array] = {}
    for name, levels in count_ordered(schema).items():
        if levels < fewest:
            continue
        low, high = (np.asarray(ends, dtype=np.float64) for ends in find_ranges(schema[name]))
        if np.isfinite(low).all() and np.isfinite(high).all():
            middles = low / 2 + high / 2
            scores[name] = np.full(schema[name].size, np.nan)
            # Scores are standardised later: astronomical ones are made smaller first, so that their squares are finite.
            scores[name][: len(low)] = middles / max(1.0, float(np.abs(middles).max()) / LARGE_SCORE)
    return scores


def shrink_levels(noisy: Array, variance: float) -> Array:
    """Counts of levels in order, noise of one variance in each, shrunk towards even spreading inside nested halves.

    An interval of levels with the sum s is cut in two; what its left part holds beyond its share by length,
    d = l − s·(length of l)/(length), has the noise variance v·|l|·|r|/(|l| + |r|), independent of all other d: the Haar
    basis. Of the d of one depth, those that stand out from the noise are kept, and the others take the factor
    1 − Σ E[z²]/Σ z² that leaves the least squared error [James and Stein 1961], with E[z²] that of noise below the
    threshold. Counts may go negative; their sum is kept.
    """
    levels = len(noisy)
    shifts = sorted({*SHIFTS, levels // 8, levels // 5, levels // 3})
    return np.asarray(np.mean([_shrink_halves(noisy, variance, shift) for shift in shifts], axis=0))


def shrink_cells(
    table: Table, total: float, variance: float, scores: Mapping[str, Array] | None = None
) -> Table:
    """A table of two and more attributes, its cells drawn to what the margins over all attributes but one make likely.

    The expected counts E are those of largest entropy with the margins of the nearest table of this total without
    negative cells. True counts vary around E by φ·E, φ being measured (`measure_spread`), noisy ones by the
    noise besides; so a cell where little is expected is set to that, and where attributes depend on each other beyond
    the margins φ is large, and cells stay where they are. Of a pair whose levels have `scores`, a smooth
    dependence is among what is expected (`expect_association`).
    """
    if variance <= 0:
        return table
    if known := _find_scores(table, scores):
        return Table(table.axes, _shrink_pair(table.values, total, variance, known))
    expected = np.maximum(_expect(project_on_simplex(table.values, total)), LEAST * total)
    spread = measure_spread(table.values, expected, variance, 0.0) * expected
    return Table(table.axes, shrink_counts(table.values, expected, spread, variance, heavy=False))


def _shrink_pair(noisy: Array, total: float, variance: float, scores: Sequence[Array]) -> Array:
    """The same for a pair of numbers: its cells are drawn to a smooth dependence with the margins of the noisy table.

    Sums of noisy cells are known better than the cells: cut off at 0, these would put rows where hardly anybody is.
    """
    sums = [np.maximum(project_on_simplex(noisy.sum(axis=1 - axis), total), LEAST * total) for axis in (0, 1)]
    margins = sums[0][:, None], sums[1][None, :]
    apart = margins[0] * margins[1] / total
    expected = np.maximum(expect_association(noisy, apart, variance, scores), LEAST * apart)
    spread = measure_spread(noisy, expected, variance, 0.0) * (expected + LOOSE * (apart - expected))
    return shrink_counts(noisy, expected, spread, variance, heavy=False)


def shrink_counts(
    noisy: Array, expected: Array, spread: Array | float, variance: float, heavy: bool
) -> Array:
    """The expected true count of a cell that varies by `spread` around `expected`, given its noisy count.

    For Gaussian noise it is E + D·(c − E)/(D + v). For Laplace noise of scale b it is E + (D/b)·s with s between −1 and
    1; the s of a Gaussian count, a quotient of tails, is within 0.17 of tanh((c − E)/(D/b + 2b·x/√(1 + x²))) with
    x = √(πD/8)/b: right for small D and for small c − E at large D, and as good in the end [measured].
    """
    if variance <= 0:
        return np.array(noisy, dtype=np.float64)
    if not heavy:
        return np.asarray(expected + spread / (spread + variance) * (noisy - expected))
    scale = math.sqrt(variance / 2.0)
    x = np.sqrt(np.pi / 8.0 * spread) / scale
    width = spread / scale + 2.0 * scale * x / np.sqrt(1.0 + x * x)
    return np.asarray(expected + spread / scale * np.tanh((noisy - expected) / width))


def measure_spread(noisy: Array, expected: Array, variance: float, deviations: float = 1.0) -> float:
    """φ = (Σ w((c − E)² − v) − s)/Σ wE with w = 1/(E + v), at least 1, the Poisson case.

    s is so many standard deviations √(5·cells) of the sum, so that noise alone is seldom taken for a wrong graph.
    Without φ, a graph that lacks edges would impose its independences on tables that hold several families.
    """
    trust = 1.0 / (expected + variance)
    excess = (trust * ((noisy - expected) ** 2 - variance)).sum() - deviations * math.sqrt(
        5.0 * expected.size
    )
    return max(float(excess / (trust * expected).sum()), 1.0)


def temper(
    cpt: Array, margin: Array, sums: Array, noise: float, error: float, uneven: float, skill: float
) -> Array:
    """Conditionals moved towards the node's marginal, and that towards the uniform one, if noise may explain them.

    A share of one in K that could be anything varies by D = (K − 1)/(K²(K + 1)); a marginal of noise V and up to three
    levels gives up 0.6·V²/(V² + D²) of its distance from 1/K: of more levels one is often nearly sure, and what little
    is known of it is better kept [measured], unless noise explains more than a part of what the noisy sums show
    (`doubt_margin`). Conditionals give up as much of their distance from the marginal. Where their predicted error e
    nears √(2/π), the most that it can be, they and the marginal give up (e√(π/2) − 0.6)/0.3 of their distance from the
    uniform one [measured]. All of this is right if levels are about as frequent, and wrong if one is nearly sure and
    the table tells which: so both take the factor (1 − u)²/((1 − u)² + 4u²s⁴), a half at u = 1/3 and s = 1 [measured],
    u being how uneven all noisy tables are (`measure_unevenness`), and s the skill of a guess (`expect_skill`). A guess
    without any is never better than the uniform one, however sure the truth: the error is convex. So a node without
    parents gives up 1 − s⁴ at least, with the skill of a guess from its own sums.
    """
    levels = cpt.shape[-1]
    plain, sure = (1.0 - uneven) ** 2, 4.0 * uneven**2 * skill**4
    kept = plain / (plain + sure) if plain + sure > 0 else 1.0
    varies = (levels - 1.0) / (levels**2 * (levels + 1.0))
    doubt = 0.6 * noise**2 / (noise**2 + varies**2) if 1 < levels <= 3 else doubt_margin(sums, noise)
    if cpt.ndim == 1:  # nothing else is known of it, so its own noise says what a guess is worth
        doubt = max(doubt, 1.0 - expect_skill(noise, levels) ** 4)
    lost = kept * doubt
    even = (1.0 - lost) * margin + lost / levels
    if cpt.ndim == 1:
        return np.asarray(even)
    hopeless = kept * min(max((error * math.sqrt(math.pi / 2.0) - 0.6) / 0.3, 0.0), 1.0)
    part = max(hopeless, lost)
    return np.asarray((1.0 - part) * cpt + part * ((1.0 - hopeless) * even + hopeless / levels))


def expect_skill(noise: float, cells: int) -> float:
    """How much oftener than by chance the largest cell is the one that holds all rows: about 1/(1 + v·log₂ cells).

    v is the variance of the noise in a share. For Gaussian noise of variance 1/4, 1 and 4, two cells have 0.84, 0.52
    and 0.27, and ten 0.64, 0.27 and 0.11; the formula says 0.80, 0.50, 0.20, and 0.55, 0.23, 0.07.
    """
    return 1.0 / (1.0 + noise * math.log2(max(cells, 2)))


def doubt_margin(sums: Array, noise: float) -> float:
    """What a marginal with this noise in each level gives up of its distance d from 1/K: q = (K − 3)·V/d².

    That is the part of least squared error [James and Stein 1961]. Below KNOWN nothing is given up, and beyond it
    (q − KNOWN)/(1 − KNOWN), so that what is known well stays as it is.
    """
    beyond = float(((sums - 1.0 / sums.size) ** 2).sum())
    part = (sums.size - 3) * noise / beyond if beyond > 0 else 0.0
    return min(max((part - KNOWN) / (1.0 - KNOWN), 0.0), 1.0)


def measure_unevenness(tables: Sequence[Array], variances: Sequence[float]) -> float:
    """How uneven attributes are, by noisy tables of shares: 0 if all levels are as frequent, 1 if one of each is sure.

    An attribute of K levels has u = (Σp² − 1/K)/(1 − 1/K). If they are independent, and u is the same for all, a table
    of c cells has Σp² = Π(1/K + u(1 − 1/K)). Noise of variance v adds c·v to it, and makes it vary by 5c·v² + 4v·Σp²
    (if it is Laplace), and between tables u varies by 1/12 if it could be anything. So u is found by least squares,
    each table weighed by the inverse of all that, and drawn to 1/2 by as much as one number that could be any
    [DerSimonian and Laird 1986]. Where noise hides every single table, hundreds of them still tell it.
    """
    known = [(found, noise) for found, noise in zip(tables, variances, strict=True) if found.size > 1]
    sizes = np.ones((len(known), max((found.ndim for found, _ in known), default=1)))
    for sized, (found, _) in zip(sizes, known, strict=True):
        sized[: found.ndim] = found.shape
    cells, noises = sizes.prod(axis=1), np.array([noise for _, noise in known])
    spread = (
        np.array([float(((found - found.mean()) ** 2).sum()) for found, _ in known]) - (cells - 1.0) * noises
    )
    mean = 0.5
    for _ in range(REPEATED):
        factors = 1.0 / sizes + mean * (1.0 - 1.0 / sizes)
        product = factors.prod(axis=1)
        slope = product * ((1.0 - 1.0 / sizes) / factors).sum(axis=1)
        trust = slope / (ANYTHING * slope**2 + 5.0 * cells * noises**2 + 4.0 * noises * product)
        told = (trust * (spread - product + 1.0 / cells + slope * mean)).sum()
        fresh = (told + 0.5 / ANYTHING) / ((trust * slope).sum() + 1.0 / ANYTHING)
        mean += 0.5 * (min(max(float(fresh), 0.0), 1.0) - mean)
    return mean


def _shrink_singles(
    tables: Sequence[Table], weights: Sequence[float], ordered: Mapping[str, int], total: float
) -> list[Table]:
    """The margins of attributes with many levels in order, shrunk by the noise that all tables together leave in them.

    A cell of a margin of m levels that a table has with the weight w = 1/(variance·cells) has the precision m·w there.
    """
    found = []
    for name, levels in ordered.items():
        holders = [i for i, table in enumerate(tables) if name in table.axes]
        if levels < MANY_LEVELS or not holders:
            continue
        values = np.array(tables[holders[0]].project((name,)).values, dtype=np.float64)
        precision = values.size * math.fsum(weights[i] for i in holders)
        if precision < math.inf:
            values[:levels] = shrink_levels(values[:levels], 1.0 / precision)
        found.append(Table((name,), project_on_simplex(values, total)))
    return found


def _shrink_halves(noisy: Array, variance: float, shift: int) -> Array:
    """The estimate for one place where the halves begin."""
    levels = len(noisy)
    length = 1 << (levels + shift - 1).bit_length()
    sums, widths = np.zeros(length), np.zeros(length)
    sums[shift : shift + levels], widths[shift : shift + levels] = noisy, 1.0
    depths = []
    while len(sums) > 1:
        depths.append((sums, widths))
        sums, widths = sums[0::2] + sums[1::2], widths[0::2] + widths[1::2]
    for finer, wide in reversed(depths):
        left, right = wide[0::2], wide[1::2]
        both = np.maximum(left + right, 1.0)
        share = left / both
        beyond = finer[0::2] - share * (finer[0::2] + finer[1::2])
        scores = np.divide(
            beyond**2 * both, variance * left * right, out=np.zeros_like(both), where=left * right > 0
        )
        quiet = (left * right > 0) & (scores <= STANDS_OUT**2)
        energy = float(scores[quiet].sum())
        factor = max(0.0, 1.0 - _QUIET_ENERGY * np.count_nonzero(quiet) / energy) if energy > 0 else 0.0
        first = share * sums + np.where(quiet, factor, 1.0) * beyond
        sums = np.column_stack([first, sums - first]).ravel()
    return sums[shift : shift + levels]


_QUIET_ENERGY = 1 - math.sqrt(2 / math.pi) * STANDS_OUT * math.exp(-(STANDS_OUT**2) / 2) / math.erf(
    STANDS_OUT / math.sqrt(2)
)
"""E[z²] of a normal z that is below the threshold."""


def _expect(values: Array) -> Array:
    """The array of largest entropy with these margins over all axes but one."""
    found = np.full(values.shape, 1.0)
    for _ in range(1 if values.ndim == 2 else FITTED):
        for axis in range(values.ndim):
            goal, now = values.sum(axis=axis, keepdims=True), found.sum(axis=axis, keepdims=True)
            found = found * np.divide(goal, now, out=np.zeros_like(goal), where=now > 0)
    return found


def rake_conditionals(cpt: Array, weights: Array, goal: Array) -> Array:
    """The conditionals nearest in divergence to `cpt` whose mixture by the weights of the parents' levels is the goal.

    Rows and margin of T = weights·cpt are scaled in turn [Deming & Stephan 1940]: every conditional is multiplied by
    one factor for each level of the child, and normalised. `weights` has the shape of the parents and a last axis of
    one.
    """
    above = tuple(range(cpt.ndim - 1))
    factor = np.ones(cpt.shape[-1])
    wanted = goal / goal.sum()
    share = weights / weights.sum()
    for _ in range(SWEEPS):
        tilted = cpt * factor
        rows = tilted.sum(axis=-1, keepdims=True)
        margin = (share * (tilted / np.maximum(rows, NEVER))).sum(axis=above)
        factor = factor * wanted / np.maximum(margin, NEVER)
    tilted = np.maximum(cpt * factor, NEVER)
    return np.asarray(tilted / tilted.sum(axis=-1, keepdims=True))


def smooth_conditionals(counts: Array, strength: float) -> Array:
    """P(x | parents) from counts with the child's axis last: (C + m·q)/(N + m), m rows of data of what is coarser.

    q is the geometric mean of the conditionals given all parents but one; those follow the conditionals given one
    parent in the same way, and these P(x). With m of a row or less, a conditional with data hardly moves, and one
    without has the best guess that its neighbours allow instead of the uniform one.
    """
    parents = tuple(range(counts.ndim - 1))
    marginal = _normalise(counts.sum(axis=parents, keepdims=True) + 1e-12)
    if not parents:
        return marginal
    singles = [_smooth(_sum_all_but(counts, parents, j), marginal, strength) for j in parents]
    if len(parents) == 1:
        return singles[0]
    logs = [_log(single) for single in singles]
    if len(parents) > 2:
        whole: Array = sum(logs)  # type: ignore[assignment]
        logs = [
            _log(
                _smooth(
                    counts.sum(axis=j, keepdims=True),
                    _exponentiate(_drop(whole - logs[j], j), len(parents) - 1),
                    strength,
                )
            )
            for j in parents
        ]
    return _smooth(counts, _exponentiate(sum(logs), len(parents)), strength)


def _sum_all_but(counts: Array, parents: Sequence[int], kept: int) -> Array:
    return np.asarray(counts.sum(axis=tuple(j for j in parents if j != kept), keepdims=True))


def _smooth(counts: Array, coarser: Array, strength: float) -> Array:
    return np.asarray((counts + strength * coarser) / (counts.sum(axis=-1, keepdims=True) + strength))


def _normalise(values: Array) -> Array:
    return np.asarray(values / values.sum(axis=-1, keepdims=True))


def _log(values: Array) -> Array:
    return np.log(np.maximum(values, TINY))


def _exponentiate(logs: Array | int, factors: int) -> Array:
    mean = np.asarray(logs) / factors
    return _normalise(np.exp(mean - mean.max(axis=-1, keepdims=True)))


def _drop(values: Array, axis: int) -> Array:
    """The values without an axis along which they do not vary: the parent that was left out."""
    return np.take(values, [0], axis=axis)
