"""How far a learned network, or drawn rows, are from the true ones: the means that the papers report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from discreet.compute.metrics import Metric, compare_conditionals, total_variation
from discreet.values.graph import DAG
from discreet.values.table import Array, Table, require_cells


def compare_cpts(
    dag: DAG,
    true: Sequence[Table],
    estimate: Sequence[Table],
    metric: Metric = "l1",
    *,
    weights: Sequence[Table] | None = None,
) -> float:
    """The mean over nodes of `compare_conditionals` of their tables, each node counting alike.

    `weights` has a table for each node, over at least its parents: counts or a marginal of its family do.
    """
    trust = [None] * len(dag) if weights is None else weights
    distances = [
        compare_conditionals(p, q, dag.parents_of(name), metric, weights=known)
        for name, p, q, known in zip(dag.nodes, true, estimate, trust, strict=True)
    ]
    return float(np.mean(distances))


def mean_variation(
    one: Mapping[str, Array],
    other: Mapping[str, Array],
    sizes: Mapping[str, int],
    sets: Iterable[Sequence[str]],
) -> float:
    """The mean over attribute sets of the total variation between two tables of codes [004, Sec. 5.1]."""
    return float(
        np.mean(
            [
                total_variation(count_shares(one, sizes, names), count_shares(other, sizes, names))
                for names in map(tuple, sets)
            ]
        )
    )


def count_shares(codes: Mapping[str, Array], sizes: Mapping[str, int], names: Sequence[str]) -> Array:
    """The share of the rows in each cell over some attributes, flat."""
    shape = tuple(sizes[name] for name in names)
    cells = require_cells(f"the table over {names}", shape)
    index = np.ravel_multi_index([codes[name].astype(np.intp) for name in names], shape)
    return np.asarray(np.bincount(index, minlength=cells) / len(index))
