"""How two ordered attributes depend on each other, from a noisy table: a few parameters, and the smooth table of them.

A table of 20 × 20 cells whose noise is as large as its counts still knows its correlation to a few hundredths: that is
a sum over all cells, in which noise cancels. Drawn to independence cell by cell, it would fade with the noise. So what
is expected of a cell is taken from a table with the same margins whose cells vary by a few smooth functions of both
levels, fitted to all cells by their noise. The correlation itself, which rare levels far out decide, is taken from the
noisy table as well, as far as that knows it better.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist

import numpy as np

from discreet.values.table import Array

STEPS = 40
"""Steps of Newton's at most."""
PARTS = (1.0, 0.5, 0.2, 0.05)
"""Parts of a step that are tried until one makes the misfit smaller."""
SMALL_STEP = 1e-3
"""A step by which the misfit becomes smaller by less than this is the last."""
LARGE_STEP = 5.0
"""No step changes the logarithm of a cell by more."""
LARGEST = 30.0
"""Nor does anything else by more than this: functions of levels that hardly anybody has are huge there."""
PRIOR = 4.0
"""The precision with which a parameter is expected to be 0 at least."""
NEW = 0.05
"""A function of the levels of which the others leave less than this part is none of its own."""
SUREST = 0.999
"""The largest correlation of a table."""
SURE = 0.95
"""The largest correlation that the search for parameters begins with."""
CLEAR = 1.5
"""What noise explains of Σ θ², in units of the errors of θ, is at most so much for each parameter."""
MISFIT = 0.07
"""The part of itself by which the correlation of the likely table is expected to be off."""


def expect_association(noisy: Array, independent: Array, variance: float, scores: Sequence[Array]) -> Array:
    """The table E·exp(Σ θ_k·f_k), scaled to the margins of E, with the θ that explain the noisy cells best.

    f_k are products of two functions of levels that are orthonormal under the margins: being missing, the score, the
    normal score of its rank, and the square of that. θ makes Σ (c − T)²/(v + T) + Σ λ_k·θ_k² least, with λ of
    `_expect_straight`: a cell with little in it counts for little, where in moments of the noisy table the rare levels
    far out bring most of the noise. Each step of Newton's is taken along the f_k without what rows and columns explain
    of them. Of all θ together the part 1 − CLEAR·K/θ'Hθ is kept where that is positive, after [James and Stein 1961], H
    being their precision.
    """
    total = float(independent.sum())
    margins = independent.sum(axis=1, keepdims=True), independent.sum(axis=0, keepdims=True)
    if total <= 0 or variance <= 0 or min(float(margin.min()) for margin in margins) <= 0:
        return independent
    one, other = (_span(score, edge.ravel() / total) for score, edge in zip(scores, margins, strict=True))
    features = np.einsum("ka,lb->klab", one, other).reshape(len(one) * len(other), *independent.shape)
    if not len(features):
        return independent
    prior = _expect_straight((one, other), scores, margins)
    theta = _guess(noisy, margins, scores, (one, other))
    table = _scale(_tilt(independent, np.tensordot(theta, features, axes=1)), margins, 20)
    for _ in range(STEPS):
        trust = 1.0 / (variance + table)
        slopes = _centre(features, trust * table**2) * table
        bend = np.einsum("kab,lab->kl", slopes * trust, slopes) + np.diag(prior)
        pull = (slopes * trust * (noisy - table)).sum(axis=(1, 2)) - prior * theta
        step = np.linalg.solve(bend, pull)
        change, before = (
            np.tensordot(step, features, axes=1),
            _weigh_misfit(noisy, table, trust, prior, theta),
        )
        for part in PARTS:
            tried = _scale(_tilt(table, part * change, LARGE_STEP), margins, 4)
            if _weigh_misfit(noisy, tried, trust, prior, theta + part * step) < before:
                break
        else:
            break
        theta, table = theta + part * step, tried
        if float(step @ bend @ step) < SMALL_STEP:
            break
    beyond = float(theta @ (bend - np.diag(prior)) @ theta)
    kept = 1.0 - CLEAR * len(features) / max(beyond, 1e-300)
    if kept <= 0:
        return independent
    drawn = _scale(_tilt(table, (kept - 1.0) * np.tensordot(theta, features, axes=1)), margins, 10)
    return drawn if np.isfinite(drawn).all() else independent


def _guess(
    noisy: Array, margins: tuple[Array, Array], scores: Sequence[Array], spans: tuple[Array, Array]
) -> Array:
    """Where to begin: the parameters of two normal attributes with the correlation of the normal scores, r/(1 − r²)."""
    shares = [margin.ravel() / margin.sum() for margin in margins]
    sides = [_rank(score, share) for score, share in zip(scores, shares, strict=True)]
    known = np.ix_(*(~np.isnan(score) for score in scores))
    found = float((noisy * np.outer(*sides)).sum()) / max(float(noisy[known].sum()), 1.0)
    found = min(max(found, -SURE), SURE)
    parts = [span @ (share * side) for span, share, side in zip(spans, shares, sides, strict=True)]
    return np.asarray(found / (1.0 - found**2) * np.outer(*parts).ravel())


def _rank(scores: Array, shares: Array) -> Array:
    """The normal scores of the levels' ranks, standardised; 0 for levels without a score."""
    known = ~np.isnan(scores)
    weights = np.where(known, shares, 0.0)
    if weights.sum() <= 0:
        return np.zeros(len(scores))
    weights = weights / weights.sum()
    places = np.clip(np.cumsum(weights) - weights / 2, 1e-6, 1 - 1e-6)
    ranks = np.array([NormalDist().inv_cdf(float(place)) for place in places])
    return _standardise(np.where(known, ranks, np.nan), weights)


def _expect_straight(spans: tuple[Array, Array], scores: Sequence[Array], edges: Sequence[Array]) -> Array:
    """The precision with which each parameter is expected to be 0: PRIOR, and more of what would bend far out.

    Functions that are orthonormal under the margins are huge where hardly anybody is, where rows that say otherwise
    are too few to be seen: so a product of two has PRIOR times its mean square over all cells, rows in them or not. The
    product of both scores is what a straight line says there, and being missing is no place far out.
    """
    found = np.maximum(np.outer(*((span**2).mean(axis=1) for span in spans)), 1.0)
    one, other = (
        int(edge.ravel()[np.isnan(score)].sum() > 0) for score, edge in zip(scores, edges, strict=True)
    )
    found[:one] = found[:, :other] = found[one : one + 1, other : other + 1] = 1.0
    return np.asarray(PRIOR * found.ravel())


def _weigh_misfit(noisy: Array, table: Array, trust: Array, prior: Array, theta: Array) -> float:
    return float((trust * (noisy - table) ** 2).sum()) + float(prior @ theta**2)


def keep_correlation(
    table: Array, noisy: Array, likely: Array, variance: float, scores: Sequence[Array]
) -> Array:
    """The table, tilted to the correlation that a likely and the noisy table say together; its margins stay.

    The moment m = Σ c·x·y/n of the standardised scores is known from the noisy table with the variance s² = v·Σ f²/n²,
    f being x·y without its means over rows and columns, which the margins tell; the correlation of the likely table is
    taken to be off by the part MISFIT. Weighed by precision, both make the goal, and the table becomes T·exp(θ·x·y)
    with its margins. Scores are standardised among rows that have both numbers. The `likely` table may have negative
    cells: those of the table itself were cut off, which puts rows far from where they belong.
    """
    margins = table.sum(axis=1, keepdims=True), table.sum(axis=0, keepdims=True)
    sides, held = _standardise_both(table, scores)
    if variance <= 0 or held <= 0 or not all(side.any() for side in sides):
        return table
    feature = np.outer(*sides)
    alone = feature - feature.mean(axis=0) - feature.mean(axis=1, keepdims=True) + feature.mean()
    spread = variance * float((alone**2).sum()) / held**2
    guess = correlate(likely, scores)
    found = float((noisy * feature).sum()) / held
    doubt = (MISFIT * guess) ** 2
    goal = held * min(max(guess + (found - guess) * doubt / max(doubt + spread, 1e-300), -SUREST), SUREST)
    bound = 1.0 / float(np.abs(feature).max())
    tilted = table
    for _ in range(STEPS):
        moment = float((tilted * feature).sum())
        if abs(goal - moment) < SMALL_STEP * held:
            break
        bend = float((tilted * feature**2).sum()) - moment**2 / max(float(tilted.sum()), 1e-300)
        step = min(max((goal - moment) / max(bend, 1e-9), -bound), bound)
        tilted = _scale(_tilt(tilted, step * feature), margins, 3)
    tilted = _scale(tilted, margins, 5)
    return tilted if np.isfinite(tilted).all() else table


def correlate(table: Array, scores: Sequence[Array]) -> float:
    """The correlation of the scores in a table among rows that have both numbers; 0 if a score does not vary."""
    sides, held = _standardise_both(table, scores)
    found = float((table * np.outer(*sides)).sum()) / held if held > 0 else 0.0
    return min(max(found, -SUREST), SUREST)


def _standardise_both(table: Array, scores: Sequence[Array]) -> tuple[list[Array], float]:
    """The scores standardised among rows that have both numbers, and how many these are.

    Where one is missing, the other may be far from its mean over all rows.
    """
    inside = np.where(np.outer(*(~np.isnan(score) for score in scores)), table, 0.0)
    sides = [_standardise(score, inside.sum(axis=1 - axis)) for axis, score in enumerate(scores)]
    return sides, float(inside.sum())


def _tilt(table: Array, logs: Array, most: float = LARGEST) -> Array:
    """The table with its cells' logarithms changed, none by more than `most`: a sum of such cells never overflows."""
    return np.asarray(table * np.exp(np.clip(logs, -most, most)))


def _centre(features: Array, weights: Array) -> Array:
    """The features without their means over rows and over columns, by the weights of cells."""
    rows, columns = (np.maximum(weights.sum(axis=axis, keepdims=True), 1e-300) for axis in (1, 0))
    for _ in range(4):
        features = features - (features * weights).sum(axis=2, keepdims=True) / rows
        features = features - (features * weights).sum(axis=1, keepdims=True) / columns
    return features


def _scale(table: Array, margins: tuple[Array, Array], rounds: int) -> Array:
    """The table with these margins, nearly: rows and columns are scaled in turn."""
    for margin, axis in ((margins[0], 1), (margins[1], 0)) * rounds:
        table = table * (margin / np.maximum(table.sum(axis=axis, keepdims=True), 1e-300))
    return table


def _standardise(scores: Array, shares: Array) -> Array:
    """The scores with mean 0 and deviation 1 under these shares; 0 where there is none, or where all are the same."""
    weights = np.where(np.isnan(scores), 0.0, np.maximum(shares, 0.0))
    if weights.sum() <= 0:
        return np.zeros(len(scores))
    weights = weights / weights.sum()
    centred = np.where(np.isnan(scores), 0.0, scores - weights @ np.nan_to_num(scores))
    width = float(np.sqrt(weights @ centred**2))
    return np.asarray(centred / width) if width > 0 else np.zeros(len(scores))


def _span(scores: Array, shares: Array) -> Array:
    """Orthonormal functions of the levels under these shares, besides the constant."""
    known = ~np.isnan(scores)
    if shares[known].sum() <= 0:
        return np.empty((0, len(scores)))
    normal = _rank(scores, shares)
    square = np.where(known, normal**2, 0.0)
    raw = [(~known).astype(np.float64), _standardise(scores, shares), normal, square]
    found = [np.ones(len(scores))]
    for values in raw:
        rest, size = values, float(np.sqrt(shares @ values**2))
        for _ in range(2):  # once more takes off what rounding left
            for before in found:
                rest = rest - float(shares @ (rest * before)) * before
        length = float(np.sqrt(shares @ rest**2))
        if length > NEW * size > 0:
            found.append(rest / length)
    return np.array(found[1:]).reshape(-1, len(scores))
