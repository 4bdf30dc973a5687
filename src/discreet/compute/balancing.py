"""Rows that follow a chain of conditional tables as closely as n rows can, each of them still a fair draw.

Independent rows miss every count by chance, about √(np) of them. Here each attribute is drawn for all rows together: m
rows that agree on its parents take the numbers (k + U)/m, k = 0 … m − 1, with one U for all of them. So each level
is given to m·P(level | parents) rows, rounded down or up, and never more than one row off [systematic sampling, Madow
1949]. Which row takes which k is a lattice, k = (a·j + s) mod m with a near m/1.618 and s uniform, along an order in
which rows alike in what was drawn before are neighbours; so levels are spread evenly over those, too [array-RQMC,
L'Ecuyer, Lécot and Tuffin 2008].

Every row by itself has exactly the law of the tables: k is uniform on 0 … m − 1 because s is, and so is its number on
[0, 1), whatever was drawn before. Hence every event has exactly its expected number of rows, n times its
probability, and rows come in a random order. What is lost is independence: counts vary less than those of independent
rows, so that a variance or a test that supposes independent rows is on the safe side and not exact.

Rows are drawn in blocks, each balanced by itself, so that memory does not grow with n.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import numpy.typing as npt

from discreet.compute.sampling import Sampler, open_stream, pass_thresholds
from discreet.values.table import Array

BLOCK = 2**17
"""Rows that are balanced together; a hundred such blocks are off by about ten rows where one is off by one."""

_BALANCED_KEY = 0x62616C61
"""Sets these streams apart from those of independent rows."""

Indices = npt.NDArray[np.intp]


def draw_balanced(sampler: Sampler, n: int, start: int, stop: int, *, compiled: bool) -> dict[str, Array]:
    """The codes of rows start … stop − 1 of n balanced ones; they depend on the seed and on n, not on the slices."""
    parts: list[list[Array]] = []
    for block in range(start // BLOCK, -(-stop // BLOCK) if stop > start else 0):
        first, last = block * BLOCK, min((block + 1) * BLOCK, n)
        drawn = _draw_block(sampler, block, last - first, compiled)
        wanted = slice(max(start, first) - first, min(stop, last) - first)
        parts.append([column[wanted] for column in drawn])
    columns = zip(*parts, strict=True) if parts else ([np.empty(0, found.dtype)] for found in sampler.draws)
    return {
        name: np.concatenate(found) for name, found in zip(sampler.names, map(list, columns), strict=True)
    }


def _draw_block(sampler: Sampler, block: int, rows: int, compiled: bool) -> list[Array]:
    stream = open_stream(sampler.root, (_BALANCED_KEY, block), 0)
    order: Indices = np.arange(rows)
    codes: list[Array] = []
    uniform = np.empty(rows)
    for found in sampler.draws:
        given = [codes[i] for i in found.given]
        index = np.zeros(rows, dtype=np.int64)
        for column, stride in zip(given, found.strides, strict=True):
            index += column.astype(np.int64) * stride
        order = _sort(order, index, len(found.thresholds))
        uniform[order] = _spread(index[order], stream)
        levels = np.empty(rows, dtype=found.dtype)
        pass_thresholds(found, uniform, given, levels, compiled=compiled)
        order = _sort(order, levels, found.thresholds.shape[1] + 1)
        codes.append(levels)
    shuffled = stream.permutation(rows)
    return [column[shuffled] for column in codes]


def _sort(order: Indices, keys: Array, kinds: int) -> Indices:
    """Rows by key, those with equal keys as they were; short keys are sorted in linear time."""
    if kinds == 1:
        return order
    short = keys[order].astype(np.uint16 if kinds <= 2**16 else np.int64)
    return np.asarray(order[np.argsort(short, kind="stable")])


def _spread(groups: Array, stream: np.random.Generator) -> npt.NDArray[np.float64]:
    """For rows sorted by group, numbers that fill [0, 1) evenly in each group and in each part of it."""
    starts = (
        np.flatnonzero(np.concatenate([[True], groups[1:] != groups[:-1]]))
        if groups.size
        else np.empty(0, int)
    )
    sizes = np.diff(np.append(starts, groups.size))
    steps = np.array([_find_step(int(size)) for size in sizes], dtype=np.int64)
    shifts = stream.integers(0, sizes) if sizes.size else sizes
    offsets = stream.random(len(sizes))
    place = np.arange(groups.size) - np.repeat(starts, sizes)
    places = (place * np.repeat(steps, sizes) + np.repeat(shifts, sizes)) % np.repeat(sizes, sizes)
    numbers = (places + np.repeat(offsets, sizes)) / np.repeat(sizes, sizes)
    return np.asarray(np.minimum(numbers, math.nextafter(1.0, 0.0)))  # the last may have been rounded up to 1


@cache
def _find_step(size: int) -> int:
    """A step near size/1.618 that shares no factor with the size: neighbours get numbers that are far apart."""
    golden = round(size * (math.sqrt(5.0) - 1.0) / 2.0)
    return next(
        step
        for away in range(size + 1)
        for step in (golden + away, golden - away)
        if step >= 0 and math.gcd(step, size) == 1
    )
