"""Conditionals from counts, where rows that are seldom seen follow what is known of coarser ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from discreet.values.table import Array

_TINY = 1e-5
"""A factor below this says no more than this in a mean of logarithms."""


def smooth_rows(counts: Array, strength: float) -> Array:
    """P(x | parents) from counts with the child's axis last: (C + m·q)/(N + m), m rows of what is coarser.

    q is the geometric mean of the conditionals given all parents but one; those follow the conditionals given one
    parent in the same way, and these P(x). With m of a row or less, a row with data hardly moves, and one without has
    the best guess that its neighbours allow instead of the uniform one.
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
    return np.log(np.maximum(values, _TINY))


def _exponentiate(logs: Array | int, factors: int) -> Array:
    mean = np.asarray(logs) / factors
    return _normalise(np.exp(mean - mean.max(axis=-1, keepdims=True)))


def _drop(values: Array, axis: int) -> Array:
    """The values without an axis along which they do not vary: the parent that was left out."""
    return np.take(values, [0], axis=axis)
