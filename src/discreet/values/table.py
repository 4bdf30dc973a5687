"""A table: an array whose axes are attributes, and the few operations that all of discreet is made of."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.values.errors import TableError, TooLarge

Array = npt.NDArray[Any]

MAX_CELLS = 2**28
"""The largest table that anything here allocates unasked: 2 GiB of float64."""

MOST_EXPECTED = 2.0**31 - 2.0**12
"""No model expects more rows: readers refuse 2³¹, but noise may say so."""
MOST_REMEMBERED = 2**22
"""Cells of exact tables that are remembered: 32 megabytes."""

Set = tuple[str, ...]
"""The attributes of a table, in the order of its axes."""


def count_cells(sizes: Iterable[int]) -> int:
    """The number of cells of a table with these axis sizes, as an exact integer."""
    return math.prod(int(size) for size in sizes)


def require_cells(what: str, sizes: Iterable[int], limit: int = MAX_CELLS) -> int:
    """The number of cells, or `TooLarge` if there are more than `limit`; call it before allocating."""
    cells = count_cells(sizes)
    if cells > limit:
        raise TooLarge(f"{what} would have {cells:,} cells; at most {limit:,} are allowed")
    return cells


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """An array with one named axis for each attribute; axis order carries no meaning."""

    axes: tuple[str, ...]
    values: Array

    def __post_init__(self) -> None:
        if len(set(self.axes)) != len(self.axes):
            raise TableError(f"table axes {self.axes} name an attribute twice")
        if self.values.ndim != len(self.axes):
            raise TableError(
                f"table axes {self.axes} need {len(self.axes)} dimensions, not {self.values.ndim}"
            )
        if self.values.flags.writeable:
            frozen = self.values.view()
            frozen.flags.writeable = False
            object.__setattr__(self, "values", frozen)

    @property
    def sizes(self) -> dict[str, int]:
        """The number of levels along each axis."""
        return dict(zip(self.axes, self.values.shape, strict=True))

    @property
    def cells(self) -> int:
        """The number of cells."""
        return int(self.values.size)

    def total(self) -> float:
        """The sum over all cells."""
        return float(self.values.sum())

    def arrange(self, axes: Sequence[str]) -> Table:
        """The same table with its axes in this order."""
        if len(axes) != len(self.axes) or set(axes) != set(self.axes):
            raise TableError(f"cannot arrange a table over {self.axes} as {tuple(axes)}")
        order = [self.axes.index(name) for name in axes]
        return Table(tuple(axes), self.values.transpose(order))

    def project(self, axes: Sequence[str]) -> Table:
        """Sum out every attribute that is not among `axes`, and put those in this order."""
        kept, drop = self._split(axes)
        return Table(kept, self.values.sum(axis=drop)).arrange(axes)

    def maximise(self, axes: Sequence[str]) -> Table:
        """Like `project`, with the maximum in place of the sum."""
        kept, drop = self._split(axes)
        return Table(kept, self.values.max(axis=drop)).arrange(axes)

    def _split(self, axes: Sequence[str]) -> tuple[tuple[str, ...], tuple[int, ...]]:
        missing = [name for name in axes if name not in self.axes]
        if missing:
            raise TableError(f"cannot project a table over {self.axes} on {missing[0]!r}")
        drop = tuple(i for i, name in enumerate(self.axes) if name not in axes)
        return tuple(name for name in self.axes if name in axes), drop

    def multiply(self, other: Table) -> Table:
        """The product on the union of the axes."""
        axes = self.axes + tuple(name for name in other.axes if name not in self.axes)
        sizes = {**other.sizes, **self.sizes}
        clash = [name for name, size in other.sizes.items() if sizes[name] != size]
        if clash:
            raise TableError(
                f"{clash[0]!r} has {sizes[clash[0]]} levels in one table, {other.sizes[clash[0]]} in another"
            )
        require_cells(f"the product over {axes}", (sizes[name] for name in axes))
        return Table(axes, self.spread(axes) * other.spread(axes))

    def spread(self, axes: Sequence[str]) -> Array:
        """The values with an axis of length 1 for each of `axes` that the table lacks, ready to broadcast."""
        present = [name for name in axes if name in self.axes]
        arranged = self.arrange(present).values
        return arranged.reshape([self.sizes.get(name, 1) for name in axes])

    def select(self, levels: Mapping[str, int]) -> Table:
        """The slice where each named attribute has the given code."""
        index = tuple(levels.get(name, slice(None)) for name in self.axes)
        return Table(tuple(name for name in self.axes if name not in levels), np.asarray(self.values[index]))

    def normalise(self, child: str | None = None) -> Table:
        """Divide by the total, or make every conditional of `child` sum to 1; one of zeros becomes uniform."""
        if child is not None and child not in self.axes:
            raise TableError(f"cannot normalise a table over {self.axes} along {child!r}")
        values = np.asarray(self.values, dtype=np.float64)
        axis = tuple(range(values.ndim)) if child is None else (self.axes.index(child),)
        sums = values.sum(axis=axis, keepdims=True)
        share = 1.0 / count_cells(values.shape[i] for i in axis)
        return Table(self.axes, np.where(sums > 0, values / np.where(sums > 0, sums, 1.0), share))

    def close_to(self, other: Table, tolerance: float = 1e-12) -> bool:
        """Whether both tables have the same axes, in any order, and the same values up to `tolerance`."""
        if set(self.axes) != set(other.axes) or self.sizes != {n: other.sizes[n] for n in self.axes}:
            return False
        return bool(np.allclose(self.values, other.arrange(self.axes).values, rtol=0.0, atol=tolerance))


class CountedTables:
    """Exact tables that were counted, so that they and what follows from them take no other pass over the rows.

    They are private like the rows. Which sets are remembered follows from what was asked alone: so a rehearsal, which
    remembers sets without tables, knows how many passes there will be.
    """

    __slots__ = ("_cells", "_holders", "_sizes", "_sources", "_tables")

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self._sizes = sizes
        self.forget()

    def forget(self) -> None:
        """Let go of all tables."""
        self._tables: dict[frozenset[str], Table | None] = {}
        self._holders: dict[str, dict[frozenset[str], None]] = {}
        self._sources: dict[frozenset[str], frozenset[str] | None] = {}
        self._cells = 0

    def find_new(self, sets: Sequence[Set]) -> list[Set]:
        """The sets, each once, that do not follow from what is remembered."""
        distinct = {frozenset(members): members for members in sets}
        return [members for found, members in distinct.items() if self._find_source(found) is None]

    def count(self, sets: Sequence[Set], count: Callable[[list[Set]], Sequence[Table]]) -> list[Table]:
        """The tables of these sets, axes in the order asked; `count` is asked at most once, for those that are new."""
        new = self.find_new(sets)
        counted = {frozenset(table.axes): table for table in count(new)} if new else {}
        tables = []
        for members in sets:
            table = counted.get(frozenset(members)) or self._recall(frozenset(members))
            tables.append(table.arrange(members))
        if new:
            self.add(new, counted)
        return tables

    def add(self, sets: Sequence[Set], tables: Mapping[frozenset[str], Table] | None = None) -> None:
        """Remember these sets, with their tables if there are any; if they do not fit, what was before is forgotten."""
        added = sum(math.prod(self._sizes[name] for name in members) for members in sets)
        if self._cells + added > MOST_REMEMBERED:
            self.forget()
        if added <= MOST_REMEMBERED:
            self._tables.update(
                (frozenset(members), (tables or {}).get(frozenset(members))) for members in sets
            )
            self._cells += added
            self._sources.clear()
            for members in sets:
                for name in members:
                    self._holders.setdefault(name, {})[frozenset(members)] = None

    def _find_source(self, members: frozenset[str]) -> frozenset[str] | None:
        """The set itself, or the one with the fewest cells that holds it."""
        if members in self._tables:
            return members
        if members not in self._sources:  # a search asks for thousands of sets, again and again
            holders = (self._holders.get(name, {}) for name in members)
            near = min(holders, key=len, default=self._tables)
            wider = [found for found in near if members < found]
            self._sources[members] = min(
                wider, key=lambda found: math.prod(self._sizes[name] for name in found), default=None
            )
        return self._sources[members]

    def _recall(self, members: frozenset[str]) -> Table:
        source = self._find_source(members)
        table = None if source is None else self._tables[source]
        assert table is not None
        return table.project([name for name in table.axes if name in members])
