"""How far two distributions, or the conditionals of two tables, are apart.

The first of a pair is the truth P, the second the estimate P̃. L1 and KL are those of [000, Sec. 5.1], where
KL runs from the estimate to the truth, Σ P̃ ln(P̃/P).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from discreet.values.errors import DataError, TableError
from discreet.values.table import Array, Table
from discreet.values.text import require_share

FLOOR = 1e-6
"""What KL raises every probability to; whoever reports a KL prints the floor beside it."""

SUM_TOLERANCE = 1e-6
"""How far the sum of a distribution may be from 1."""

Metric = Literal["l1", "kl"]


def l1(true: npt.ArrayLike, estimate: npt.ArrayLike) -> Array:
    """Σₓ |P(x) − P̃(x)| along the last axis, between 0 and 2 [000, Sec. 5.1]."""
    p, q = _pair(true, estimate)
    return np.asarray(np.abs(p - q).sum(axis=-1))


def total_variation(true: npt.ArrayLike, estimate: npt.ArrayLike) -> Array:
    """½ Σₓ |P(x) − P̃(x)| along the last axis, between 0 and 1."""
    return np.minimum(l1(true, estimate) / 2, 1.0)


def kl(true: npt.ArrayLike, estimate: npt.ArrayLike, floor: float = FLOOR) -> Array:
    """Σₓ P̃(x) ln(P̃(x)/P(x)) along the last axis, in nats, with a floor under both [000, Sec. 5.1].

    Without a floor it is infinite where the truth is 0 and the estimate is not, as in every noisy estimate of
    a deterministic conditional. Both are raised to at least `floor` and renormalised, so that the result is 0 for
    equal distributions, never negative and never infinite. It depends on the floor: print it.
    """
    require_share(floor, "the floor", DataError)
    p, q = (_raise_to(floor, values) for values in _pair(true, estimate))
    return np.asarray(np.maximum((q * np.log(q / p)).sum(axis=-1), 0.0))


def compare_conditionals(
    true: Table, estimate: Table, given: Sequence[str], metric: Metric = "l1", *, weights: Table | None = None
) -> float:
    """The mean distance between P(targets | given) and its estimate, over all combinations of the given attributes.

    With `weights`, a non-negative table over at least the given attributes (counts or a marginal), each combination
    counts as often as it occurs; without, all count alike.
    """
    targets = [name for name in true.axes if name not in given]
    if not targets:
        raise TableError(f"a conditional over {true.axes} given all of them has no target")
    measures: dict[str, Callable[[Array, Array], Array]] = {"l1": l1, "kl": kl}
    if metric not in measures:
        raise DataError(f"unknown metric {metric!r}; allowed are {', '.join(measures)}")
    p, q = _match(true.arrange([*given, *targets]), estimate)
    shape = p.shape[: len(given)]
    distances = measures[metric](p.reshape(*shape, -1), q.reshape(*shape, -1))
    if weights is None:
        return float(distances.mean())
    return float((distances * _weigh(weights, given, shape)).sum())


def _pair(true: npt.ArrayLike, estimate: npt.ArrayLike) -> tuple[Array, Array]:
    p, q = np.asarray(true, dtype=np.float64), np.asarray(estimate, dtype=np.float64)
    if p.shape != q.shape or p.ndim == 0:
        raise TableError(f"distributions of shapes {p.shape} and {q.shape} cannot be compared")
    for values in (p, q):
        if not np.isfinite(values).all() or (values < 0).any():
            raise TableError("a distribution holds a value that is negative or not finite")
        off = np.abs(values.sum(axis=-1) - 1.0)
        if off.size and off.max() > SUM_TOLERANCE:
            raise TableError(
                f"a distribution sums to 1 ± {off.max():.3g}; it must sum to 1 within {SUM_TOLERANCE:g}"
            )
    return p, q


def _raise_to(floor: float, values: Array) -> Array:
    raised = np.maximum(values, floor)
    return np.asarray(raised / raised.sum(axis=-1, keepdims=True))


def _match(true: Table, estimate: Table) -> tuple[Array, Array]:
    matched = estimate.arrange(true.axes)
    if matched.values.shape != true.values.shape:
        raise TableError(
            f"tables over {true.axes} have the shapes {true.values.shape} and {matched.values.shape}"
        )
    return true.values, matched.values


def _weigh(weights: Table, given: Sequence[str], shape: tuple[int, ...]) -> Array:
    found = np.asarray(weights.project(given).values, dtype=np.float64)
    if found.shape != shape:
        raise TableError(f"weights over {tuple(given)} have the shape {found.shape}; the tables have {shape}")
    if not np.isfinite(found).all() or (found < 0).any() or found.sum() <= 0:
        raise TableError(f"weights over {tuple(given)} must be finite, none negative and some positive")
    return np.asarray(found / found.sum())
