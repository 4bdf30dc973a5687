"""The tables of all families side by side in one flat array, so that scoring a row is one look-up for each node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.values.errors import DataError
from discreet.values.graph import DAG
from discreet.values.table import Array, Table, count_cells, require_cells

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.int32]
Codes = Mapping[str, npt.NDArray[Any]]

MOST_CELLS = 2**26
BLOCK = 2**14
"""Rows scored at a time, so that what is gathered for them stays in the cache."""


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Where the cell of each family is in the flat array; a row of a table is a run of neighbouring cells."""

    dag: DAG
    shapes: tuple[tuple[int, ...], ...]
    _starts: tuple[int, ...] = field(init=False, repr=False)
    _row_starts: npt.NDArray[np.int64] = field(init=False, repr=False)
    _row_sizes: npt.NDArray[np.int64] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        sizes = [count_cells(shape) for shape in self.shapes]
        require_cells("the tables of all families together", [sum(sizes)], MOST_CELLS)
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        per_row = [
            np.full(size // shape[-1], shape[-1]) for size, shape in zip(sizes, self.shapes, strict=True)
        ]
        row_sizes = np.concatenate(per_row).astype(np.int64)
        object.__setattr__(self, "_starts", tuple(starts.tolist()))
        object.__setattr__(self, "_row_sizes", row_sizes)
        object.__setattr__(self, "_row_starts", np.cumsum(row_sizes) - row_sizes)

    @classmethod
    def arrange(cls, dag: DAG, sizes: Mapping[str, int]) -> Cells:
        """The layout for a graph over attributes with so many levels."""
        return cls(dag, tuple(tuple(sizes[name] for name in family) for family in dag.families()))

    @property
    def size(self) -> int:
        """The number of cells of all tables."""
        return self._starts[-1]

    def locate(self, codes: Codes) -> Places:
        """For each row of codes, one line with the flat position of its cell in every family's table."""
        rows = count_rows(codes)
        places = np.empty((rows, len(self.dag)), dtype=np.int32)
        for i, (family, shape) in enumerate(zip(self.dag.families(), self.shapes, strict=True)):
            places[:, i] = self._starts[i] + flatten_codes(codes, family, shape)
        return places

    def count(self, places: Places) -> npt.NDArray[np.int64]:
        """How many rows lie in each cell."""
        return np.bincount(places.ravel(), minlength=self.size)

    def sum(self, values: Floats, places: Places) -> Floats:
        """Σ over nodes of the value at each row's cell."""
        total = np.empty(len(places))
        for start in range(0, len(places), BLOCK):
            part = slice(start, start + BLOCK)
            total[part] = values[places[part]].sum(axis=1)
        return total

    def total_rows(self, values: Array) -> Array:
        """For every cell, the sum over its row: the same parents, all levels of the child."""
        return np.repeat(np.add.reduceat(values, self._row_starts), self._row_sizes)

    def normalise(self, values: Array) -> Floats:
        """Every row divided by its sum; a row of zeros becomes uniform, as in `Table.normalise`."""
        sums = self.total_rows(np.asarray(values, dtype=np.float64))
        even = 1.0 / np.repeat(self._row_sizes, self._row_sizes)
        return np.where(sums > 0, values / np.where(sums > 0, sums, 1.0), even)

    def flatten(self, tables: Sequence[Table]) -> Floats:
        """The values of one table for each node, each with its family as axes in any order."""
        found = [
            np.asarray(table.arrange(family).values, dtype=np.float64).ravel()
            for table, family in zip(tables, self.dag.families(), strict=True)
        ]
        return np.concatenate(found)

    def split(self, values: Array) -> tuple[Table, ...]:
        """The flat array as one table for each node."""
        return tuple(
            Table(family, values[start:stop].reshape(shape))
            for family, shape, start, stop in zip(
                self.dag.families(), self.shapes, self._starts, self._starts[1:], strict=False
            )
        )

    def group_rows(self) -> Iterator[npt.NDArray[np.int64]]:
        """The positions of all rows of one length, one row a line, for each length that occurs."""
        for length in np.unique(self._row_sizes):
            starts = self._row_starts[self._row_sizes == length]
            yield starts[:, None] + np.arange(length)


def flatten_codes(codes: Codes, members: Sequence[str], shape: Sequence[int]) -> npt.NDArray[np.int64]:
    """The row-major position of every row of codes in a table over some attributes."""
    index = np.zeros(count_rows(codes), dtype=np.int64)
    for name, size in zip(members, shape, strict=True):
        index *= size
        index += codes[name]
    return index


def count_rows(codes: Codes) -> int:
    """The number of rows."""
    return len(next(iter(codes.values())))


def take_rows(codes: Codes, rows: npt.NDArray[Any]) -> dict[str, npt.NDArray[Any]]:
    """Some rows, by their numbers or by a mask."""
    return {name: column[rows] for name, column in codes.items()}


def join_rows(*parts: Codes) -> dict[str, npt.NDArray[Any]]:
    """The rows of several tables, one after the other."""
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def require_rows(what: str, codes: Codes, least: int) -> int:
    """The number of rows, or `DataError` if there are fewer than `least`."""
    rows = count_rows(codes)
    if rows < least:
        raise DataError(f"{what} has {rows:,} rows; at least {least:,} are needed")
    return rows
