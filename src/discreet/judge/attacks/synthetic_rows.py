"""Attacks on synthetic rows: how near is the nearest of them, and what does a network fitted to them say."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from discreet.judge.attacks.codes import Codes, count_rows, flatten_codes
from discreet.values.graph import DAG
from discreet.values.table import require_cells

BLOCK_ENTRIES = 2**24
"""How many pairs of rows are compared at a time."""


def measure_nearest(codes: Codes, others: Codes, sizes: Mapping[str, int]) -> npt.NDArray[np.int64]:
    """The Hamming distance of every row to the nearest of the other rows.

    Two rows agree in as many attributes as their one-hot vectors have ones in common, so a block of distances
    is one product of matrices.
    """
    width = sum(sizes.values())
    rows, targets = count_rows(codes), count_rows(others)
    require_cells("the one-hot matrix of the synthetic rows", [targets, width])
    held = _spell(others, sizes, slice(None))
    agree = np.zeros(rows, dtype=np.float32)
    step = max(1, BLOCK_ENTRIES // max(targets, width))
    for start in range(0, rows, step):
        part = slice(start, start + step)
        agree[part] = (_spell(codes, sizes, part) @ held.T).max(axis=1)
    return len(sizes) - np.rint(agree).astype(np.int64)


def fit_tree(codes: Codes, sizes: Mapping[str, int]) -> DAG:
    """The tree that fits best by likelihood: maximum spanning tree by mutual information (Chow and Liu, 1968).

    For rows that come without a graph; they are synthetic, so learning from them costs no privacy.
    """
    names = list(sizes)
    gains = np.full((len(names), len(names)), -1.0)
    for i, j in itertools.combinations(range(len(names)), 2):
        gains[i, j] = gains[j, i] = _inform(codes, (names[i], names[j]), (sizes[names[i]], sizes[names[j]]))
    parents: dict[str, tuple[str, ...]] = {names[0]: ()}
    best, source = gains[0].copy(), np.zeros(len(names), dtype=np.int64)
    outside = set(range(1, len(names)))
    while outside:
        chosen = max(outside, key=lambda place: (best[place], -place))
        parents[names[chosen]] = (names[int(source[chosen])],)
        outside.remove(chosen)
        closer = gains[chosen] > best
        best, source = np.where(closer, gains[chosen], best), np.where(closer, chosen, source)
    return DAG.build({name: parents[name] for name in names})


def _spell(codes: Codes, sizes: Mapping[str, int], part: slice) -> npt.NDArray[np.float32]:
    return np.concatenate(
        [np.eye(size, dtype=np.float32)[codes[name][part]] for name, size in sizes.items()], axis=1
    )


def _inform(codes: Codes, pair: tuple[str, str], shape: tuple[int, int]) -> float:
    """The mutual information of two attributes in the rows, in nats."""
    counts = np.bincount(flatten_codes(codes, pair, shape), minlength=shape[0] * shape[1])
    joint = (counts / counts.sum()).reshape(shape)
    apart = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    there = joint > 0
    return float((joint[there] * np.log(joint[there] / apart[there])).sum())
