"""What Spark's executors run: rows become blocks of codes, blocks become tables, and tables are added up.

Each function here makes one for `mapInArrow`, which takes the Arrow batches of a partition and yields others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

BLOCK_ROWS = 1 << 16
"""Rows of one block: a megabyte or two of codes."""
SLICE_CELLS = 1 << 19
"""Cells of a table that travel together: four megabytes."""

BLOCKS = "rows int, units bigint, stray bigint, block binary"
"""What `pack_rows` makes, as Spark writes a schema; `stray` counts rows without a code in some column."""
SLICES = "slice int, cells binary"
"""What `count_blocks` and `add_slices` make."""

Task = Callable[[Iterator[Any]], Iterator[Any]]
Codes = npt.NDArray[Any]


def pack_rows(types: Sequence[str], weighted: bool) -> Task:
    """Blocks of codes from columns of integers, each in its own type and one after the other; weights come last."""

    def pack(batches: Iterator[Any]) -> Iterator[Any]:
        from discreet.rows.engines.kernels import Tally  # noqa: F401  an executor without it is found out now

        held: list[list[Codes]] = []
        waiting = 0
        for batch in batches:
            held.append([column.to_numpy(zero_copy_only=False) for column in batch.columns])
            waiting += batch.num_rows
            if waiting >= BLOCK_ROWS:
                yield _make_block(held, types, weighted)
                held, waiting = [], 0
        if waiting:
            yield _make_block(held, types, weighted)

    return pack


def _make_block(held: Sequence[Sequence[Codes]], types: Sequence[str], weighted: bool) -> Any:
    import pyarrow as pa

    columns = [np.concatenate(parts) for parts in zip(*held, strict=True)]
    rows = len(columns[0])
    stray = np.zeros(rows, dtype=bool)
    for column in columns:
        stray |= column < 0
    units = int(columns[-1].sum()) if weighted else rows
    made = [column.astype(kind) for column, kind in zip(columns, types, strict=False)]
    if weighted:
        made.append(columns[-1].astype(np.int64))
    block = b"".join(column.tobytes() for column in made)
    return pa.record_batch(
        [
            pa.array([rows], pa.int32()),
            pa.array([units], pa.int64()),
            pa.array([int(stray.sum())], pa.int64()),
            pa.array([block], pa.binary()),
        ],
        names=["rows", "units", "stray", "block"],
    )


def count_blocks(
    types: Sequence[str],
    columns: Sequence[tuple[int, Codes | None]],
    sizes: Sequence[int],
    sets: Sequence[tuple[int, ...]],
    weighted: bool,
    rows: int,
) -> Task:
    """The tables of a partition's blocks, of about so many rows, in slices; columns may be looked up in a list."""

    def count(batches: Iterator[Any]) -> Iterator[Any]:
        from discreet.rows.engines.kernels import Tally

        tally = Tally(sizes, sets, weighted=weighted, threads=1, rows=rows)
        seen = False
        for batch in batches:
            for length, block in zip(batch.column(0).to_pylist(), batch.column(1), strict=True):
                codes, weights = _cut_block(memoryview(block.as_buffer()), length, types, weighted)
                tally.add([_recode(codes[place], lookup) for place, lookup in columns], weights)
                seen = True
        if seen:
            yield from _cut_cells(np.concatenate([table.ravel() for table in tally.finish()]))

    return count


def _cut_block(
    block: memoryview, rows: int, types: Sequence[str], weighted: bool
) -> tuple[list[Codes], npt.NDArray[np.int64] | None]:
    codes, start = [], 0
    for kind in types:
        codes.append(np.frombuffer(block, dtype=kind, count=rows, offset=start))
        start += codes[-1].nbytes
    # Behind columns of single bytes, numbers of eight may begin anywhere.
    weights = np.frombuffer(bytes(block[start:]), dtype=np.int64) if weighted else None
    return codes, weights


def _recode(codes: Codes, lookup: Codes | None) -> Codes:
    return codes if lookup is None else np.asarray(lookup[codes])


def add_slices() -> Task:
    """The sums of the slices of a partition."""

    def add(batches: Iterator[Any]) -> Iterator[Any]:
        sums: dict[int, npt.NDArray[np.int64]] = {}
        for batch in batches:
            for place, cells in zip(batch.column(0).to_pylist(), batch.column(1), strict=True):
                add_slice(sums, place, cells.as_py())
        for place, cells in sums.items():
            yield _make_slice(place, cells)

    return add


def add_slice(sums: dict[int, npt.NDArray[np.int64]], place: int, cells: bytes) -> None:
    """Add one slice to those that have come."""
    found = np.frombuffer(cells, dtype=np.int64)
    if place in sums:
        sums[place] += found
    else:
        sums[place] = found.copy()


def _cut_cells(cells: npt.NDArray[np.int64]) -> Iterator[Any]:
    for place, start in enumerate(range(0, len(cells), SLICE_CELLS)):
        yield _make_slice(place, cells[start : start + SLICE_CELLS])


def _make_slice(place: int, cells: npt.NDArray[np.int64]) -> Any:
    import pyarrow as pa

    return pa.record_batch(
        [pa.array([place], pa.int32()), pa.array([cells.tobytes()], pa.binary())], names=["slice", "cells"]
    )
