"""How two ordered attributes depend on each other, from a noisy table: a few moments, and the smoothest table of them.

A table of 20 × 20 cells whose noise is as large as its counts still knows its correlation to a hundredth: that is a sum
over all cells, in which noise cancels. Drawn to independence cell by cell, it would fade with the noise. So what is
expected of a cell is taken from the table of largest entropy with the margins and with the moments that stand out.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from discreet.values.table import Array

DEGREE = 3
"""Moments up to this power of each attribute: a correlation, a bend, and how both spread."""
CLEAR = 4.0
"""What noise explains of a moment squared, in variances: below two deviations it is nothing but noise."""
SWEEPS = 40
"""How often all moments and margins are fitted in turn; what is still off then, noise has asked for."""


def expect_association(noisy: Array, independent: Array, variance: float, scores: Sequence[Array]) -> Array:
    """The table of largest entropy with the margins of `independent` and the moments of `noisy` beyond its noise.

    The moments are Σ c·f_k with products f_k of two orthonormal polynomials of the levels' scores under the margins.
    The noise of each has the variance s_k² = v·Σ f_k², and of its distance d from independence the part
    1 − CLEAR·s_k²/d² is kept where that is positive, after [James and Stein 1961]. The table is E·exp(Σ θ_k·f_k),
    scaled to the margins; each θ_k in turn takes a step of Newton's that changes no cell by more than a factor of e.
    """
    total = float(independent.sum())
    margins = independent.sum(axis=1, keepdims=True), independent.sum(axis=0, keepdims=True)
    if total <= 0 or variance <= 0 or min(float(margin.min()) for margin in margins) <= 0:
        return independent
    one, other = (_span(score, edge.ravel() / total) for score, edge in zip(scores, margins, strict=True))
    features = np.einsum("ka,lb->klab", one, other).reshape(len(one) * len(other), *independent.shape)
    now, found = ((features * values).sum(axis=(1, 2)) for values in (independent, noisy))
    beyond, spread = found - now, variance * (features**2).sum(axis=(1, 2))
    kept = 1.0 - CLEAR * spread / np.maximum(beyond**2, 1e-300)
    if not (kept > 0).any():
        return independent
    goals = now + np.maximum(kept, 0.0) * beyond
    most = 1.0 / np.abs(features).max(axis=(1, 2))
    table = independent
    for _ in range(SWEEPS):
        for feature, goal, bound in zip(features, goals, most, strict=True):
            weighed = table * feature
            moment = float(weighed.sum())
            bend = float((weighed * feature).sum()) - moment**2 / total
            table = table * np.exp(min(max((goal - moment) / max(bend, 1e-9), -bound), bound) * feature)
        for margin, axis in ((margins[0], 1), (margins[1], 0)) * 2:
            table = table * (margin / np.maximum(table.sum(axis=axis, keepdims=True), 1e-300))
    return np.asarray(table)


def _span(scores: Array, shares: Array) -> Array:
    """Orthonormal functions of the levels under these shares, besides the constant: being missing, and powers."""
    known = ~np.isnan(scores)
    weights = np.where(known, shares, 0.0)
    if weights.sum() <= 0:
        return np.empty((0, len(scores)))
    middle = float(weights @ np.nan_to_num(scores)) / float(weights.sum())
    centred = np.where(known, scores - middle, 0.0)
    width = float(np.sqrt(weights @ centred**2)) or 1.0
    raw = [(~known).astype(np.float64), *((centred / width) ** power for power in range(1, DEGREE + 1))]
    found = [np.ones(len(scores))]
    for values in raw:
        rest, size = values, float(np.sqrt(shares @ values**2))
        for _ in range(2):  # once more takes off what rounding left
            for before in found:
                rest = rest - float(shares @ (rest * before)) * before
        length = float(np.sqrt(shares @ rest**2))
        if length > 1e-3 * size > 0:
            found.append(rest / length)
    return np.array(found[1:]).reshape(-1, len(scores))
