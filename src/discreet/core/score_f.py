"""The dynamic program behind the score F of PrivBayes [004, Sec. 4.4], on integers throughout."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt


def score_tables(tables: Sequence[npt.NDArray[np.int64]]) -> npt.NDArray[np.float64]:
    """n·F for tables of counts with a line for each parent level and two columns, X=0 and X=1."""
    if not tables:
        return np.empty(0, dtype=np.float64)
    starts = np.cumsum([0, *(len(table) for table in tables)])
    doubled: npt.NDArray[np.int64] = _compile()(np.concatenate(tables), starts)
    return -doubled / 2.0


@lru_cache(maxsize=1)
def _compile() -> Any:
    import numba

    return numba.njit(cache=True, nogil=True)(_count_shortfalls)


def _count_shortfalls(counts: npt.NDArray[np.int64], starts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """−2n·F for each table: the least (n − 2a)₊ + (n − 2b)₊ over what X=0 and X=1 can get together.

    The states are the pairs (a, b) that no other reachable pair dominates, kept with a falling and b rising.
    Beyond ⌈n/2⌉ more of either gains nothing, so both are capped there and at most ⌈n/2⌉ + 1 states exist.
    """
    shortfalls = np.zeros(len(starts) - 1, dtype=np.int64)
    for table in range(len(starts) - 1):
        rows = counts[starts[table] : starts[table + 1]]
        n = rows.sum()
        cap = (n + 1) // 2
        a, b = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
        states = 1
        for i in range(len(rows)):
            zeros, ones = rows[i, 0], rows[i, 1]
            if zeros + ones == 0:
                continue
            space = min(2 * states, cap + 1)
            next_a, next_b = np.empty(space, dtype=np.int64), np.empty(space, dtype=np.int64)
            left, right, kept, best = 0, 0, 0, np.int64(-1)
            while left < states or right < states:
                # Merge, by falling a, the states that give this parent level to X=0 (left) or to X=1 (right).
                a_left = min(a[left] + zeros, cap) if left < states else np.int64(-1)
                a_right = a[right] if right < states else np.int64(-1)
                b_left = b[left] if left < states else np.int64(-1)
                b_right = min(b[right] + ones, cap) if right < states else np.int64(-1)
                if a_left > a_right or (a_left == a_right and b_left >= b_right):
                    new_a, new_b = a_left, b_left
                    left += 1
                else:
                    new_a, new_b = a_right, b_right
                    right += 1
                if new_b > best:
                    if kept > 0 and next_a[kept - 1] == new_a:
                        kept -= 1  # the cap made two states share an a; this one has the larger b
                    next_a[kept], next_b[kept] = new_a, new_b
                    best = new_b
                    kept += 1
            a, b, states = next_a, next_b, kept
        shortfall = 2 * n
        for state in range(states):
            shortfall = min(shortfall, max(n - 2 * a[state], 0) + max(n - 2 * b[state], 0))
        shortfalls[table] = shortfall
    return shortfalls
