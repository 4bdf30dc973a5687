"""Whoever is in the data or not: rows, people with several rows, rows with weights.

A promise hides one unit, so an attack scores units: all rows of a person together, and a row as often as it counts. Of
a person with more than `at_most` rows only some count, and nobody knows which; each of R rows then counts with chance
k/R. Where people are averaged, each of the j rows that count weighs 1/j, in parts of the grain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from discreet.judge.attacks.codes import Codes, Floats, count_rows, flatten_codes, take_rows
from discreet.values.errors import DataError
from discreet.values.table import count_cells
from discreet.values.unit import Unit

Integers = npt.NDArray[np.int64]

CERTAIN = 1e6
"""Stands for infinite evidence in sums, so that rows for and against cancel."""


class Found(Protocol):
    """Rows that were read, with whose they are or how often each counts."""

    @property
    def codes(self) -> Codes:
        """The codes of every attribute."""

    @property
    def people(self) -> npt.NDArray[Any] | None:
        """A mark of each row's person in two numbers, both 0 where there is none."""

    @property
    def weights(self) -> Integers | None:
        """How often each row counts."""


@dataclass(frozen=True, slots=True, eq=False)
class Units:
    """Rows as codes, and whose they are."""

    codes: Codes
    owners: Integers | None = None
    """For each row the number of its person, from 0 on; None if every row is a unit of its own."""
    weights: Integers | None = None
    """How often each row counts, if not once."""
    at_most: int = 0
    """How many rows of a person count; 0 if all do."""
    grain: int = 0
    """In how many parts a person is counted, shared by the rows that count; 0 if each row counts by itself."""

    @classmethod
    def read(cls, rows: Units | Codes) -> Units:
        """Units as they are, or plain rows."""
        return rows if isinstance(rows, Units) else cls(rows)

    @classmethod
    def of_people(cls, codes: Codes, people: npt.NDArray[Any], at_most: int, grain: int = 0) -> Units:
        """People by any mark that only one person's rows share; rows whose mark is all zeros belong to nobody."""
        owned = np.flatnonzero((people != 0).any(axis=1))
        _, first, kinds = np.unique(people[owned], axis=0, return_index=True, return_inverse=True)
        # Numbered as they appear: marks may be hashes under a new key each time, and a seed gives the same audit.
        owners = np.argsort(np.argsort(first))[kinds.reshape(-1)]
        return cls(take_rows(codes, owned), owners.astype(np.int64), None, at_most, grain)

    @classmethod
    def of(cls, read: Found, unit: Unit | None) -> Units:
        """The units of a table that was read for a unit of privacy."""
        if unit is not None and read.people is not None:
            grain = unit.grain if unit.average else 0
            return cls.of_people(read.codes, read.people, unit.at_most, grain)
        if unit is not None and read.weights is not None:
            return cls(read.codes, None, np.minimum(read.weights, unit.at_most))
        return cls(read.codes)

    @property
    def number(self) -> int:
        """How many units there are."""
        if self.owners is None:
            return count_rows(self.codes)
        return int(self.owners.max()) + 1 if len(self.owners) else 0

    @property
    def held(self) -> Integers:
        """How many rows each unit has."""
        if self.owners is None:
            return np.ones(self.number, dtype=np.int64)
        return np.bincount(self.owners, minlength=self.number)

    @property
    def parts(self) -> Integers:
        """What each row of a person weighs if it counts."""
        if not self.grain:
            return np.ones(self.number, dtype=np.int64)
        return self.grain // np.minimum(self.held, self.at_most)

    @property
    def shares(self) -> Floats | None:
        """How often each row counts on average; None if once."""
        if self.weights is not None:
            return self.weights.astype(np.float64)
        if self.owners is None or not self.at_most:
            return None
        return np.asarray(
            (np.minimum(1.0, self.at_most / self.held) * self.parts)[self.owners], dtype=np.float64
        )

    def require(self, what: str, least: int) -> int:
        """The number of units, or `DataError` if there are fewer than `least`."""
        if self.number < least:
            noun = "rows" if self.owners is None else "people"
            raise DataError(f"{what} has {self.number:,} {noun}; at least {least:,} are needed")
        return self.number

    def take(self, chosen: npt.NDArray[Any]) -> Units:
        """Some units, by their numbers; a person takes all rows along."""
        if self.owners is None:
            weights = None if self.weights is None else self.weights[chosen]
            return Units(take_rows(self.codes, chosen), None, weights, self.at_most)
        place = np.full(self.number, -1, dtype=np.int64)
        place[chosen] = np.arange(len(chosen))
        kept = place[self.owners] >= 0
        return Units(take_rows(self.codes, kept), place[self.owners[kept]], None, self.at_most, self.grain)

    def pick_rows(self, rng: np.random.Generator) -> Codes:
        """One row of each unit at random, so that rows can be compared as independent draws."""
        if self.owners is None:
            return self.codes
        mixed = rng.permutation(len(self.owners))
        _, first = np.unique(self.owners[mixed], return_index=True)
        return take_rows(self.codes, mixed[first])

    def add_up(self, scores: Floats) -> Floats:
        """The scores of rows summed over each unit, each row as often as it counts on average."""
        if self.owners is None and self.weights is None:
            return scores
        finite = np.clip(scores, -CERTAIN, CERTAIN) * (1.0 if self.shares is None else self.shares)
        return finite if self.owners is None else np.asarray(np.bincount(self.owners, finite, self.number))

    def find_best(self, scores: Floats) -> Floats:
        """The greatest score of each unit's rows."""
        if self.owners is None:
            return scores
        best = np.full(self.number, -np.inf)
        np.maximum.at(best, self.owners, scores)
        return best

    def tally(self, axes: Sequence[str], shape: Sequence[int]) -> npt.NDArray[Any]:
        """The table of counts, flat: on average, where it is not known which rows count."""
        return np.bincount(flatten_codes(self.codes, axes, shape), self.shares, count_cells(shape))

    def bound_tally(self, axes: Sequence[str], shape: Sequence[int]) -> tuple[Integers, Integers]:
        """The least and the most that every cell of the table of counts can be, flat."""
        cells = count_cells(shape)
        if self.owners is None:
            counts = np.bincount(flatten_codes(self.codes, axes, shape), self.weights, cells).astype(np.int64)
            return counts, counts
        entries = self.list_entries(axes, shape)
        low, high = (
            np.bincount(entries.cells, rows * entries.parts, cells).astype(np.int64)
            for rows in entries.bound(self.at_most)
        )
        return low, high

    @property
    def total(self) -> int:
        """What the rows that count weigh in all, which is known even where it is not known which do."""
        if self.grain:
            return self.grain * self.number
        if self.owners is None:
            return count_rows(self.codes) if self.weights is None else int(self.weights.sum())
        return int(np.minimum(self.held, self.at_most or len(self.owners)).sum())

    def list_entries(self, axes: Sequence[str], shape: Sequence[int]) -> Entries:
        """Who has how many rows in which cell."""
        cells = flatten_codes(self.codes, axes, shape)
        if self.owners is None:
            rows = np.ones(len(cells), dtype=np.int64) if self.weights is None else self.weights
            return Entries(np.arange(len(cells)), cells, rows, rows, np.ones_like(rows))
        keys, rows = np.unique(self.owners * count_cells(shape) + cells, return_counts=True)
        owners, places = np.divmod(keys, count_cells(shape))
        return Entries(owners, places, rows.astype(np.int64), self.held[owners], self.parts[owners])


@dataclass(frozen=True, slots=True, eq=False)
class Entries:
    """Pairs of a unit and a cell that it has rows in, how many, and how many it has in all."""

    owners: Integers
    cells: Integers
    rows: Integers
    held: Integers
    parts: Integers
    """What each of these rows weighs if it counts."""

    def bound(self, at_most: int) -> tuple[Integers, Integers]:
        """The fewest and the most of these rows that count."""
        if not at_most:
            return self.rows, self.rows
        others = self.held - self.rows
        low = np.where(self.held <= at_most, self.rows, np.maximum(at_most - others, 0))
        return low, np.minimum(self.rows, np.where(self.held <= at_most, self.rows, at_most))

    def log_chance(self, counted: int, at_most: int, some: npt.NDArray[np.bool_]) -> Floats:
        """log P(so many of the rows count), for some entries: hypergeometric where not all rows do."""
        rows, held = self.rows[some], self.held[some]
        drawn = np.minimum(held, at_most) if at_most else held
        logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, int(held.max()) + 1)))])

        def choose(of: Integers, some: Integers | int) -> Floats:
            return np.asarray(logs[of] - logs[some] - logs[of - some])

        return choose(rows, counted) + choose(held - rows, drawn - counted) - choose(held, drawn)
