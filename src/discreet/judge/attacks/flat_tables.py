"""The tables of all families in one flat array, so that scoring a row is one look-up for each node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from discreet.judge.attacks.codes import Codes, Floats, count_rows, flatten_codes
from discreet.values.graph import DAG
from discreet.values.table import Array, Table, count_cells, require_cells

Places = npt.NDArray[np.int32]

MOST_CELLS = 2**26
BLOCK = 2**14
"""Rows scored at a time, so that what is gathered for them stays in the cache."""


@dataclass(frozen=True, slots=True, eq=False)
class FlatTables:
    """Where each family's table is in the flat array; a conditional is a run of neighbouring cells."""

    dag: DAG
    shapes: tuple[tuple[int, ...], ...]
    _starts: tuple[int, ...] = field(init=False, repr=False)
    _conditional_starts: npt.NDArray[np.int64] = field(init=False, repr=False)
    _conditional_sizes: npt.NDArray[np.int64] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        sizes = [count_cells(shape) for shape in self.shapes]
        require_cells("the tables of all families together", [sum(sizes)], MOST_CELLS)
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        levels = [
            np.full(size // shape[-1], shape[-1]) for size, shape in zip(sizes, self.shapes, strict=True)
        ]
        lengths = np.concatenate(levels).astype(np.int64)
        object.__setattr__(self, "_starts", tuple(starts.tolist()))
        object.__setattr__(self, "_conditional_sizes", lengths)
        object.__setattr__(self, "_conditional_starts", np.cumsum(lengths) - lengths)

    @classmethod
    def arrange(cls, dag: DAG, sizes: Mapping[str, int]) -> FlatTables:
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

    def total_conditionals(self, values: Array) -> Array:
        """For every cell, the sum over its conditional: the same parents, all levels of the child."""
        return np.repeat(np.add.reduceat(values, self._conditional_starts), self._conditional_sizes)

    def normalise(self, values: Array) -> Floats:
        """Every conditional divided by its sum; one of zeros becomes uniform, as in `Table.normalise`."""
        sums = self.total_conditionals(np.asarray(values, dtype=np.float64))
        even = 1.0 / np.repeat(self._conditional_sizes, self._conditional_sizes)
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

    def group_conditionals(self) -> Iterator[npt.NDArray[np.int64]]:
        """The positions of all conditionals of one length, one to a line, for each length that occurs."""
        for length in np.unique(self._conditional_sizes):
            starts = self._conditional_starts[self._conditional_sizes == length]
            yield starts[:, None] + np.arange(length)
