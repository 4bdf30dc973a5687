"""Counts shrunk towards what is expected, conditionals that follow coarser ones, and those that keep a margin."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from discreet.values.table import Array

TINY = 1e-5
"""A factor below this says no more than this in a mean of logarithms."""
SWEEPS = 4
"""How often a margin and the sums of the conditionals are restored in turn; each leaves a small part of the gap."""
NEVER = 1e-12
"""No conditional probability is raked below this."""


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
