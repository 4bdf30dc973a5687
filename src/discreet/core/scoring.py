"""Exact scores of candidate families inside the airlock: each counted once, and a bounded number of cells at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from discreet.core.scores import Score
from discreet.rows.opening import Counter
from discreet.values.table import Table

BATCH_CELLS = 2**22
"""Cells that are counted at a time, if a single family does not have more: some dozen megabytes."""
MOST_KNOWN = 2**21
"""Scores that are remembered between choices; beyond it all are forgotten and worked out again."""
MOST_CELLS = 2**22
"""Cells of true tables that are held between choices against a model: 32 megabytes."""

Family = tuple[str, ...]


class Scorer:
    """Remembers the true scores of one table of rows; they are private, and only a noisy choice may look at them.

    At each step of a greedy search only the families with the newest attribute are new [004, Sec. 4.1].
    """

    __slots__ = ("_cells", "_known", "_tables")

    def __init__(self) -> None:
        self._known: dict[tuple[type, str], dict[Family, float]] = {}
        self._tables: dict[Family, Table] = {}
        self._cells = 0

    def check(
        self, counter: Counter, families: Sequence[Family], score: Score, sizes: Mapping[str, int]
    ) -> None:
        """Refuse, before it is paid for, what counting would refuse."""
        if _has_model(score):
            counter.check(families)
            return
        for batch in _cut(self._find_new(families, score), sizes):
            counter.check(batch)

    def evaluate(
        self, counter: Counter, families: Sequence[Family], score: Score, sizes: Mapping[str, int]
    ) -> npt.NDArray[np.float64]:
        """The exact score of every family, in the order asked."""
        if _has_model(score):
            return score.evaluate(self._count(counter, families))
        known = self._known.setdefault((type(score), score.name), {})
        new = self._find_new(families, score)
        if len(known) + len(new) > MOST_KNOWN:
            known.clear()
            new = list(dict.fromkeys(families))
        for batch in _cut(new, sizes):
            known.update(zip(batch, score.evaluate(counter.count(batch)).tolist(), strict=True))
        return np.fromiter(map(known.__getitem__, families), dtype=np.float64, count=len(families))

    def _count(self, counter: Counter, families: Sequence[Family]) -> list[Table]:
        """The tables of these families; a model changes from choice to choice, but what it is held to does not."""
        new = [family for family in dict.fromkeys(families) if family not in self._tables]
        tables = dict(zip(new, counter.count(new), strict=True)) if new else {}
        found = [tables[family] if family in tables else self._tables[family] for family in families]
        added = sum(table.cells for table in tables.values())
        if self._cells + added > MOST_CELLS:
            self._tables, self._cells = {}, 0
        if added <= MOST_CELLS:
            self._tables.update(tables)
            self._cells += added
        return found

    def _find_new(self, families: Sequence[Family], score: Score) -> list[Family]:
        known = self._known.get((type(score), score.name), {})
        return list(dict.fromkeys(family for family in families if family not in known))


def _has_model(score: Score) -> bool:
    """Whether the score depends on more than the table: then every choice has its own values."""
    return hasattr(score, "expected")


def _cut(families: Sequence[Family], sizes: Mapping[str, int]) -> Iterator[list[Family]]:
    batch: list[Family] = []
    held = 0
    for family in families:
        cells = math.prod(sizes.get(name, 1) for name in family)
        if batch and held + cells > BATCH_CELLS:
            yield batch
            batch, held = [], 0
        batch.append(family)
        held += cells
    if batch:
        yield batch
