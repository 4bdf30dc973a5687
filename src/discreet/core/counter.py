"""What the core asks of an engine that holds rows, and the exact answers that it remembers of one.

Whatever is in here is private: only a query that has been paid for may look, and only noise may let it out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Protocol

import numpy as np
import numpy.typing as npt

from discreet.core.scores import Score
from discreet.values.budget import PureDP
from discreet.values.schema.encoding import Encoding
from discreet.values.table import Table
from discreet.values.unit import Unit

BATCH_CELLS = 2**22
"""Cells that are counted at a time, if a single family does not have more: some dozen megabytes."""
MOST_KNOWN = 2**21
"""Scores that are remembered between choices; beyond it all are forgotten and worked out again."""
MOST_CELLS = 2**22
"""Cells of true tables that are held between choices against a model: 32 megabytes."""

Family = tuple[str, ...]
Numbers = tuple[list[npt.NDArray[np.float64]], npt.NDArray[np.int64] | None]
"""The values of some number columns in a batch of rows, and the weights of those rows if they have any."""


class Sample(Protocol):
    """A secret random sample of the rows: who is in it must never leave the airlock."""

    @property
    def rate(self) -> Fraction:
        """The share of the rows that it counts."""

    @property
    def unit(self) -> Unit:
        """The unit for which it amplifies."""

    def amplify(self, inner: PureDP) -> PureDP:
        """What a mechanism that costs `inner` on the sample costs on all rows."""

    def require_rows(self, rows: int) -> None:
        """Refuse a number of rows that it cannot be drawn from."""

    def draw(self, rows: int) -> npt.NDArray[np.bool_]:
        """Which of the rows are in it."""


class Counter(Protocol):
    """An engine that counts one table of rows exactly."""

    @property
    def rows(self) -> int:
        """The true number of rows; with a weight column, the sum of the weights."""

    def check(self, sets: Sequence[Sequence[str]], sample: Sample | None = None) -> None:
        """Refuse what `count` would refuse, before it is paid for; from the schema and the limits alone."""

    def count(self, sets: Sequence[Sequence[str]], sample: Sample | None = None) -> list[Table]:
        """One exact int64 table for each attribute set, its axes in the order asked."""

    def check_numbers(self, names: Sequence[str]) -> None:
        """Refuse what `read_numbers` would refuse, before it is paid for."""

    def read_numbers(self, names: Sequence[str]) -> Iterator[Numbers]:
        """The values of number columns, batch by batch."""

    def count_values(self, columns: Sequence[str]) -> list[dict[str, int]]:
        """For each column of texts how many rows hold which value, by cell; counted when the rows were opened."""

    def encode(self, encoding: Encoding) -> Counter:
        """A counter of the same rows over the attributes of an encoding's view, to be closed by itself."""

    def close(self) -> None:
        """Let go of the rows."""


class TrueCounts:
    """The exact counts and scores of one table of rows, each worked out once.

    At each step of a greedy search only the families with the newest attribute are new [004, Sec. 4.1].
    """

    __slots__ = ("_known", "_tables", "counter", "sizes")

    def __init__(self, counter: Counter, sizes: Mapping[str, int]) -> None:
        self.counter = counter
        self.sizes = sizes
        self._known: dict[tuple[type, str], dict[Family, float]] = {}
        self._tables: dict[Family, Table] = {}

    def check_scores(self, families: Sequence[Family], score: Score) -> None:
        """Refuse, before it is paid for, what counting would refuse."""
        if score.has_model:
            self.counter.check([family for family in families if family not in self._tables])
            return
        for batch in cut_families(self._find_new(families, score), self.sizes):
            self.counter.check(batch)

    def evaluate(self, families: Sequence[Family], score: Score) -> npt.NDArray[np.float64]:
        """The exact score of every family, in the order asked."""
        if score.has_model:
            return score.evaluate(self._count(families))
        known = self._known.setdefault((type(score), score.name), {})
        new = self._find_new(families, score)
        if len(known) + len(new) > MOST_KNOWN:
            known.clear()
            new = list(dict.fromkeys(families))
        for batch in cut_families(new, self.sizes):
            known.update(zip(batch, score.evaluate(self.counter.count(batch)).tolist(), strict=True))
        return np.fromiter(map(known.__getitem__, families), dtype=np.float64, count=len(families))

    def _count(self, families: Sequence[Family]) -> list[Table]:
        """The tables of these families; a model changes from choice to choice, but what it is held to does not."""
        tables = self._tables
        if new := [family for family in dict.fromkeys(families) if family not in tables]:
            held = sum(math.prod(self.sizes[name] for name in family) for family in (*tables, *new))
            if held > MOST_CELLS:  # what is not asked for goes before anything else is counted
                self._tables = tables = {family: tables[family] for family in families if family in tables}
            tables = tables | dict(zip(new, self.counter.count(new), strict=True))
            self._tables = tables if sum(table.cells for table in tables.values()) <= MOST_CELLS else {}
        return [tables[family] for family in families]

    def _find_new(self, families: Sequence[Family], score: Score) -> list[Family]:
        known = self._known.get((type(score), score.name), {})
        return list(dict.fromkeys(family for family in families if family not in known))


def cut_families(families: Sequence[Family], sizes: Mapping[str, int]) -> Iterator[list[Family]]:
    """Batches of a bounded number of cells."""
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
