"""How far two distributions, conditionals, networks or tables of rows are apart.

The first of a pair is the truth P, the second the estimate P̃. L1 and KL are those of [000, Sec. 5.1], where
KL runs from the estimate to the truth, Σ P̃ ln(P̃/P).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from discreet.values.errors import DataError, TableError
from discreet.values.graph import DAG
from discreet.values.table import Array, Table, require_cells

FLOOR = 1e-6
"""What KL raises every probability to; whoever reports a KL prints the floor beside it."""

SUM_TOLERANCE = 1e-6
"""How far the sum of a distribution may be from 1."""

Metric = Literal["l1", "total_variation", "kl", "hellinger"]
RowRule = Literal["mean", "sum"]


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
    a deterministic row. Both are raised to at least `floor` and renormalised, so that the result is 0 for
    equal distributions, never negative and never infinite. It depends on the floor: print it.
    """
    if not 0 < floor < 1:
        raise DataError(f"floor {floor!r} is not allowed; it must lie between 0 and 1")
    p, q = (_raise_to(floor, values) for values in _pair(true, estimate))
    return np.asarray(np.maximum((q * np.log(q / p)).sum(axis=-1), 0.0))


def hellinger(true: npt.ArrayLike, estimate: npt.ArrayLike) -> Array:
    """√(½ Σₓ (√P(x) − √P̃(x))²) along the last axis, between 0 and 1."""
    p, q = _pair(true, estimate)
    return np.asarray(np.minimum(np.sqrt(((np.sqrt(p) - np.sqrt(q)) ** 2).sum(axis=-1) / 2), 1.0))


@dataclass(frozen=True, slots=True)
class Comparison:
    """One distance for each node and their mean, each node counting alike."""

    nodes: dict[str, float]

    @property
    def mean(self) -> float:
        """The mean over nodes."""
        return math.fsum(self.nodes.values()) / len(self.nodes)

    @property
    def worst(self) -> str:
        """The node that is farthest off."""
        return max(self.nodes, key=lambda name: self.nodes[name])


def compare_marginals(true: Table, estimate: Table, metric: Metric = "l1", *, floor: float = FLOOR) -> float:
    """The distance between two joint distributions over the same attributes, in any axis order."""
    p, q = _match(true, estimate)
    return float(_measure(metric, floor)(p.reshape(-1), q.reshape(-1)))


def compare_conditionals(
    true: Table,
    estimate: Table,
    given: Sequence[str],
    metric: Metric = "l1",
    *,
    weights: Table | None = None,
    rows: RowRule = "mean",
    floor: float = FLOOR,
) -> float:
    """The distance between P(targets | given) and its estimate, over all rows of the given attributes.

    With `weights`, a non-negative table over at least the given attributes (counts or a marginal), the mean
    is weighted by how often each row occurs. Without, `rows="mean"` lets every row count alike, and
    `rows="sum"` adds them up as printed in [000, Sec. 5.1], which grows with the number of rows.
    """
    targets = [name for name in true.axes if name not in given]
    if not targets:
        raise TableError(f"a conditional over {true.axes} given all of them has no target")
    p, q = _match(true.arrange([*given, *targets]), estimate)
    shape = p.shape[: len(given)]
    distances = _measure(metric, floor)(p.reshape(*shape, -1), q.reshape(*shape, -1))
    if weights is not None:
        if rows == "sum":
            raise DataError("rows='sum' with weights is not allowed; a weighted distance is a mean")
        return float((distances * _weigh(weights, given, shape)).sum())
    return float(distances.sum() if rows == "sum" else distances.mean())


def compare_cpts(
    dag: DAG,
    true: Sequence[Table],
    estimate: Sequence[Table],
    metric: Metric = "l1",
    *,
    weights: Sequence[Table] | None = None,
    rows: RowRule = "mean",
    floor: float = FLOOR,
) -> Comparison:
    """The distance between the CPDs of two networks over one graph, node by node; see `compare_conditionals`.

    `weights` has a table for each node, over at least its parents: counts or a marginal of its family do.
    """
    for what, given in (("true tables", true), ("estimated tables", estimate), ("weights", weights)):
        if given is not None and len(given) != len(dag):
            raise TableError(f"{len(given)} {what} for {len(dag)} nodes; there must be one for each")
    return Comparison(
        {
            name: compare_conditionals(
                true[i],
                estimate[i],
                dag.parents_of(name),
                metric,
                weights=None if weights is None else weights[i],
                rows=rows,
                floor=floor,
            )
            for i, name in enumerate(dag.nodes)
        }
    )


def compare_rows(
    one: Mapping[str, Array],
    other: Mapping[str, Array],
    sizes: Mapping[str, int],
    sets: Iterable[Sequence[str]],
) -> dict[tuple[str, ...], float]:
    """The total variation between the frequencies of two tables of codes, for each set of attributes."""
    return {
        tuple(names): float(
            total_variation(_frequencies(one, sizes, names), _frequencies(other, sizes, names))
        )
        for names in sets
    }


def mean_variation(
    one: Mapping[str, Array],
    other: Mapping[str, Array],
    sizes: Mapping[str, int],
    sets: Iterable[Sequence[str]],
) -> float:
    """The mean of `compare_rows` over the sets [004, Sec. 5.1]."""
    found = compare_rows(one, other, sizes, sets)
    if not found:
        raise DataError("no attribute sets to compare; at least 1 is needed")
    return math.fsum(found.values()) / len(found)


def _measure(metric: str, floor: float) -> Callable[[Array, Array], Array]:
    measures: dict[str, Callable[[Array, Array], Array]] = {
        "l1": l1,
        "total_variation": total_variation,
        "kl": lambda p, q: kl(p, q, floor),
        "hellinger": hellinger,
    }
    if metric not in measures:
        raise DataError(f"unknown metric {metric!r}; allowed are {', '.join(measures)}")
    return measures[metric]


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


def _frequencies(codes: Mapping[str, Array], sizes: Mapping[str, int], names: Sequence[str]) -> Array:
    for name in names:
        if name not in codes:
            raise DataError(f"the rows have no attribute {name!r}; they have {', '.join(codes)}")
    shape = tuple(sizes[name] for name in names)
    cells = require_cells(f"the table over {tuple(names)}", shape)
    columns = [np.asarray(codes[name]) for name in names]
    rows = len(columns[0]) if columns else 0
    if rows == 0:
        raise DataError(f"no rows to count over {tuple(names)}; at least 1 is needed")
    for name, column in zip(names, columns, strict=True):
        if column.max() >= sizes[name]:
            raise DataError(
                f"code {column.max()} of {name!r} is not allowed; codes run from 0 to {sizes[name] - 1}"
            )
    index = np.ravel_multi_index([column.astype(np.intp) for column in columns], shape)
    return np.asarray(np.bincount(index, minlength=cells) / rows)
