"""Counting codes by compiled loops: a block of rows at a time, or sixty-four of them for attributes of two levels.

Import this module inside the function that needs it: it imports numba.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from numba import njit

from discreet.rows.engines.covering import WORTH_COVERING, cover, take_margins
from discreet.rows.limits import choose_threads
from discreet.values.errors import DataError, TableError
from discreet.values.table import count_cells

Codes = npt.NDArray[Any]
Function = TypeVar("Function", bound=Callable[..., Any])

BLOCK = 1 << 16
"""Rows per block: ten columns of bytes fit the second-level cache, and calls into compiled code are few."""

WORTH_A_THREAD = 1 << 18
"""Below this many rows a second thread costs more than it saves."""

PRIVATE_CELLS = 1 << 22
"""Above this many cells all threads but one would only evict each other's histograms from the cache."""

FLUSH = 2**31 - 1
"""A 32-bit histogram is emptied into the 64-bit one before any cell can have seen more rows than this."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Where each requested table lives in one long histogram, and by which stride each column moves in it."""

    shapes: tuple[tuple[int, ...], ...]
    columns: npt.NDArray[np.int64]
    strides: npt.NDArray[np.uint32]
    firsts: npt.NDArray[np.int64]
    bases: npt.NDArray[np.int64]

    @classmethod
    def of(cls, sizes: Sequence[int], sets: Sequence[Sequence[int]]) -> Layout:
        """The layout of these tables over columns of these sizes, one after the other, last axis fastest."""
        shapes = tuple(tuple(int(sizes[column]) for column in members) for members in sets)
        columns = [column for members in sets for column in members]
        strides = [count_cells(shape[axis + 1 :]) for shape in shapes for axis in range(len(shape))]
        cells = [count_cells(shape) for shape in shapes]
        if max(cells, default=0) > FLUSH:
            raise TableError(f"a table of {max(cells):,} cells; the kernels index at most {FLUSH:,}")
        return cls(
            shapes,
            np.array(columns, dtype=np.int64),
            np.array(strides, dtype=np.uint32),
            np.cumsum([0, *map(len, shapes)], dtype=np.int64),
            np.cumsum([0, *cells], dtype=np.int64),
        )

    @property
    def cells(self) -> int:
        """The length of the histogram."""
        return int(self.bases[-1])


class Tally:
    """Exact counts that grow batch by batch; each thread fills its own histogram, so nothing is locked.

    `rows` says about how many are to come: for many of them, wide tables are counted, of which those asked for are
    margins, if all of them together have no more than `most_cells`.
    """

    __slots__ = (
        "_flushed",
        "_layout",
        "_places",
        "_private",
        "_seen",
        "_sizes",
        "_threads",
        "_totals",
        "_used",
        "_weighted",
        "_wide",
    )

    def __init__(
        self,
        sizes: Sequence[int],
        sets: Sequence[Sequence[int]],
        *,
        weighted: bool = False,
        threads: int | None = None,
        rows: int = 0,
        most_cells: int = PRIVATE_CELLS,
    ) -> None:
        used = sorted({column for members in sets for column in members})
        place = {column: i for i, column in enumerate(used)}
        self._used = used
        self._sizes = [int(sizes[column]) for column in used]
        self._places = [tuple(place[column] for column in members) for members in sets]
        self._wide = self._places
        if rows >= WORTH_COVERING:
            self._wide = cover(self._sizes, self._places, rows, min(most_cells, PRIVATE_CELLS))
        self._layout = Layout.of(self._sizes, self._wide)
        self._weighted = weighted
        self._threads = 1 if self._layout.cells > PRIVATE_CELLS else choose_threads(threads)
        self._totals = np.zeros(self._layout.cells, dtype=np.int64)
        self._private: list[npt.NDArray[np.int32]] = []
        self._seen = 0
        self._flushed = False

    def add(self, codes: Sequence[Codes], weights: npt.NDArray[np.int64] | None = None) -> None:
        """Count these rows too; a code that is not below its column's size is refused, not counted."""
        if (weights is not None) != self._weighted:
            raise TableError("weights must come with every batch of a weighted tally, and with no other")
        columns = [codes[column] for column in self._used]
        lengths = {len(column) for column in codes} | ({len(weights)} if weights is not None else set())
        if len(lengths) != 1:
            raise TableError(f"columns of different lengths: {', '.join(map(str, sorted(lengths)))}")
        rows = lengths.pop()
        for column in columns:
            if column.dtype not in (np.uint8, np.uint16):
                raise TableError(f"codes of type {column.dtype}; they must be uint8 or uint16")
        if weights is not None:
            self._fill(columns, weights, 0, rows, self._totals)
            return
        for start in range(0, rows, FLUSH):
            self._add_counts(columns, start, min(rows, start + FLUSH))

    def finish(self) -> list[npt.NDArray[np.int64]]:
        """The tables counted so far."""
        if self._private and not self._flushed:  # 64-bit totals would take twice the room of these
            totals: npt.NDArray[Any] = self._private[0]
            for histogram in self._private[1:]:
                totals += histogram
            del self._private[1:]
        else:
            self._flush()
            totals = self._totals
        bases = self._layout.bases
        counted = [
            totals[bases[i] : bases[i + 1]].reshape(shape) for i, shape in enumerate(self._layout.shapes)
        ]
        if self._wide is self._places:
            return [table.astype(np.int64) for table in counted]
        return take_margins(self._wide, counted, self._places)

    def _add_counts(self, columns: Sequence[Codes], start: int, stop: int) -> None:
        if self._seen + (stop - start) > FLUSH:
            self._flush()
        self._seen += stop - start
        threads = self._threads if stop - start >= WORTH_A_THREAD else 1
        while len(self._private) < threads:
            self._private.append(np.zeros(self._layout.cells, dtype=np.int32))
        cuts = [start + (stop - start) * i // threads for i in range(threads + 1)]
        if threads == 1:
            self._fill(columns, None, start, stop, self._private[0])
            return
        with ThreadPoolExecutor(threads) as pool:
            jobs = [
                pool.submit(self._fill, columns, None, cuts[i], cuts[i + 1], self._private[i])
                for i in range(threads)
            ]
        for job in jobs:
            job.result()

    def _fill(
        self,
        columns: Sequence[Codes],
        weights: npt.NDArray[np.int64] | None,
        start: int,
        stop: int,
        histogram: npt.NDArray[Any],
    ) -> None:
        layout, room = self._layout, min(BLOCK, max(1, stop - start))
        wide = any(column.dtype == np.uint16 for column in columns)
        block = np.empty((len(columns), room), dtype=np.uint16 if wide else np.uint8)
        index = np.empty(room, dtype=np.uint32)
        where = layout.columns, layout.strides, layout.firsts, layout.bases, index, histogram
        for low in range(start, stop, room):
            high = min(stop, low + room)
            for line, (column, size) in enumerate(zip(columns, self._sizes, strict=True)):
                part = block[line, : high - low]
                part[:] = column[low:high]
                if (worst := int(part.max())) >= size:  # a stray code would write outside the histogram
                    raise DataError(f"code {worst} in a column of {size} levels")
            if weights is None:
                _count_block(block, high - low, *where)
            else:
                _weigh_block(block, weights[low:high], *where)

    def _flush(self) -> None:
        for histogram in self._private:
            self._totals += histogram
            histogram[:] = 0
        self._seen, self._flushed = 0, True


def _compile(function: Function) -> Function:
    return njit(nogil=True, cache=True)(function)  # type: ignore[no-any-return]


@_compile
def _index_block(
    block: Any, rows: int, columns: Any, strides: Any, first: int, last: int, index: Any
) -> None:
    for i in range(rows):
        index[i] = 0
    for axis in range(first, last):
        line = block[columns[axis]]
        stride = strides[axis]
        for i in range(rows):  # kept apart from the scatter below, so that the compiler vectorises it
            index[i] += np.uint32(line[i]) * stride


@_compile
def _count_block(
    block: Any, rows: int, columns: Any, strides: Any, firsts: Any, bases: Any, index: Any, histogram: Any
) -> None:
    for table in range(bases.size - 1):
        _index_block(block, rows, columns, strides, firsts[table], firsts[table + 1], index)
        cells = histogram[bases[table] : bases[table + 1]]
        for i in range(rows):
            cells[index[i]] += 1


@_compile
def _weigh_block(
    block: Any, weights: Any, columns: Any, strides: Any, firsts: Any, bases: Any, index: Any, histogram: Any
) -> None:
    rows = weights.size
    for table in range(bases.size - 1):
        _index_block(block, rows, columns, strides, firsts[table], firsts[table + 1], index)
        cells = histogram[bases[table] : bases[table + 1]]
        for i in range(rows):
            cells[index[i]] += weights[i]


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
    """One int64 table for each set of columns, as a `Tally` would count it.

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
