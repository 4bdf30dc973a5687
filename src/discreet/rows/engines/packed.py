"""Counting attributes of two levels sixty-four rows at a time: a search over bits asks for a hundred thousand tables.

Import this module inside the function that needs it: it imports numba.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

WIDEST = 5
"""A table of w attributes takes 2^w counts of 64 rows each; beyond this, counting row by row is no slower."""
WORTH_PACKING = 32
"""Fewer tables than this are counted before the columns would be packed."""

Words = npt.NDArray[np.uint64]


def suits(sizes: Sequence[int], sets: Sequence[Sequence[int]]) -> bool:
    """Whether all tables are small ones over attributes of two levels, and enough to be worth it."""
    return (
        len(sets) >= WORTH_PACKING
        and all(size == 2 for size in sizes)
        and all(1 <= len(members) <= WIDEST for members in sets)
    )


def pack(codes: npt.NDArray[Any]) -> Words:
    """A column of 0 and 1 as 64-bit words, filled up with 0."""
    found = np.zeros(-(-len(codes) // 64) * 8, dtype=np.uint8)
    bits = np.packbits(codes != 0)
    found[: len(bits)] = bits
    return found.view(np.uint64)


def count_packed(
    columns: Sequence[Words], rows: int, sets: Sequence[Sequence[int]]
) -> list[npt.NDArray[np.int64]]:
    """One int64 table for each set of columns, as `kernels.count_codes` would count it.

    With N[s] the rows that have all of the attributes s at level 1, and N[∅] = n, each cell is an alternating sum of
    the N of its supersets; one subtraction along each axis makes all cells of a table.
    """
    packed = np.ascontiguousarray(np.stack(columns))
    found: list[npt.NDArray[np.int64]] = [np.empty(0, dtype=np.int64)] * len(sets)
    for width in sorted(set(map(len, sets))):
        mine = [i for i, members in enumerate(sets) if len(members) == width]
        index = np.array([sets[i] for i in mine], dtype=np.int64)
        counts = _count_ones(packed, rows, index).reshape([len(mine)] + [2] * width)
        for axis in range(1, width + 1):
            zeros = (slice(None),) * axis + (0,)
            counts[zeros] -= counts[(slice(None),) * axis + (1,)]
        for i, table in zip(mine, counts, strict=True):
            found[i] = table
    return found


@njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _count_ones(packed: Any, rows: int, index: Any) -> Any:
    """N[s] of every set, with bit w−1−j of s for its member j: the first axis of the table is the slowest."""
    tables, width = index.shape
    words = packed.shape[1]
    counts = np.empty((tables, 1 << width), dtype=np.int64)
    held = np.empty((1 << width, words), dtype=np.uint64)
    held[0, :] = np.uint64(0xFFFFFFFFFFFFFFFF)
    for table in range(tables):
        counts[table, 0] = rows
        for s in range(1, 1 << width):
            lowest = 0
            while not (s >> lowest) & 1:
                lowest += 1
            column = packed[index[table, width - 1 - lowest]]
            rest = held[s & (s - 1)]
            both = held[s]
            total = np.uint64(0)
            for i in range(words):
                x = rest[i] & column[i]
                both[i] = x
                # The number of ones of a word; the compiler knows the idiom, and has an instruction for it.
                x = x - ((x >> np.uint64(1)) & np.uint64(0x5555555555555555))
                x = (x & np.uint64(0x3333333333333333)) + (
                    (x >> np.uint64(2)) & np.uint64(0x3333333333333333)
                )
                x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
                total += (x * np.uint64(0x0101010101010101)) >> np.uint64(56)
            counts[table, s] = total
    return counts
