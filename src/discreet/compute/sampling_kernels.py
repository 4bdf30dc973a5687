"""The compiled inner loops of sampling; imported only for jobs that are worth waiting for a compiler."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

SCANNED = 8
"""Up to so many thresholds a plain scan beats a binary search, because it has no branch to mispredict."""


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def add_parent(index: Any, codes: Any, stride: int) -> None:
    """Add the share of one parent to the row index of every draw."""
    for i in range(len(index)):
        index[i] += codes[i] * stride


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def count_passed(levels: Any, index: Any, uniform: Any, thresholds: Any) -> None:
    """The level of every draw: how many thresholds of its row are at most its uniform number."""
    width = thresholds.shape[1]
    flat = thresholds.ravel()
    if width == 1:
        for i in range(len(levels)):
            levels[i] = uniform[i] >= flat[index[i]]
    elif width == 2:
        for i in range(len(levels)):
            row = index[i] * 2
            levels[i] = np.uint8(uniform[i] >= flat[row]) + np.uint8(uniform[i] >= flat[row + 1])
    elif width <= SCANNED:
        for i in range(len(levels)):
            row = index[i] * width
            passed = 0
            for k in range(width):
                passed += uniform[i] >= flat[row + k]
            levels[i] = passed
    else:
        first = 1
        while first * 2 <= width:
            first *= 2
        for i in range(len(levels)):
            row = index[i] * width
            passed = 0
            step = first
            while step:
                if passed + step <= width and uniform[i] >= flat[row + passed + step - 1]:
                    passed += step
                step //= 2
            levels[i] = passed
