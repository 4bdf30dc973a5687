"""The log-likelihood of complete rows: one look-up for each attribute of each row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from discreet.values.graph import DAG
from discreet.values.table import Table

BLOCK = 1 << 16
"""Rows scored at a time, so that the indices of a block stay in the second-level cache."""


def log_likelihood(
    dag: DAG, cpts: Sequence[Table], codes: Mapping[str, npt.NDArray[np.integer]]
) -> npt.NDArray[np.float64]:
    """log P(row) = Σ log P(x_i | pa_i) for each row of codes; -inf for a row that the network rules out."""
    with np.errstate(divide="ignore"):
        logs = [np.log(cpt.values).ravel() for cpt in cpts]
    shapes = [cpt.values.shape for cpt in cpts]
    rows = len(next(iter(codes.values())))
    total = np.zeros(rows)
    for start in range(0, rows, BLOCK):
        part = slice(start, start + BLOCK)
        for name, log_values, shape in zip(dag.nodes, logs, shapes, strict=True):
            index = np.zeros(len(total[part]), dtype=np.int64)
            for member, size in zip(dag.family(name), shape, strict=True):
                index *= size
                index += codes[member][part]
            total[part] += log_values[index]
    return total
