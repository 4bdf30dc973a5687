"""Exact tables that are remembered, so that what was counted, or follows from it, takes no other pass over the rows.

Which sets are remembered follows from what was asked alone, whatever the rows hold: so a rehearsal without rows knows
how many passes there will be.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from discreet.values.table import Table

MOST_CELLS = 2**22
"""Cells that are remembered: 32 megabytes."""

Set = tuple[str, ...]


class Remembered:
    """The tables of one set of rows, private like them; or, without rows, only the sets."""

    __slots__ = ("_cells", "_sizes", "_tables")

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self._sizes = sizes
        self.forget()

    def forget(self) -> None:
        """Let go of all tables."""
        self._tables: dict[frozenset[str], Table | None] = {}
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
        if self._cells + added > MOST_CELLS:
            self.forget()
        if added <= MOST_CELLS:
            self._tables.update(
                (frozenset(members), (tables or {}).get(frozenset(members))) for members in sets
            )
            self._cells += added

    def _find_source(self, members: frozenset[str]) -> frozenset[str] | None:
        """The set itself, or the one with the fewest cells that holds it."""
        if members in self._tables:
            return members
        wider = [found for found in self._tables if members < found]
        return min(wider, key=lambda found: math.prod(self._sizes[name] for name in found), default=None)

    def _recall(self, members: frozenset[str]) -> Table:
        source = self._find_source(members)
        table = None if source is None else self._tables[source]
        assert table is not None
        return table.project([name for name in table.axes if name in members])
