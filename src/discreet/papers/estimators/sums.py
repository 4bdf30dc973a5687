"""Bounded sums of a number column, in whole steps of a public grid, so that integer noise fits them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from discreet.core.counter import TrueCounts
from discreet.core.mechanism import AdditiveNoise, Noise, calibrate_moves, covers
from discreet.core.noise import add_noise
from discreet.values.budget import Budget, Finite, budget_from_json
from discreet.values.errors import DataError, FormatError, MechanismError
from discreet.values.measurement import Law, are_integers, law_from_json, read_unit
from discreet.values.text import Number, read_fraction, read_positive, require_keys, show_fraction
from discreet.values.unit import Unit

MOST_STEPS = 2**31
"""So many steps for a row leave room for 2^30 rows in an int64."""


@dataclass(frozen=True, slots=True)
class BoundedColumn:
    """A number column with public bounds, a public grid, and a public origin from which steps are counted.

    A value v adds k = round((v − origin)/granularity) steps, clipped to those of the bounds, so one row moves
    the sum by max|k| (add-remove) or by the steps between the bounds (replace-one). Under add-remove, an
    origin in the middle of the bounds halves the sensitivity, at the price of a noisy n·origin.
    """

    name: str
    lower: Fraction
    upper: Fraction
    granularity: Fraction
    origin: Fraction

    def __init__(
        self, name: str, lower: Number, upper: Number, granularity: Number = 1, origin: Number = 0
    ) -> None:
        for field, value in {"lower": lower, "upper": upper, "origin": origin}.items():
            object.__setattr__(self, field, read_fraction(value, f"{name}: {field}", MechanismError))
        object.__setattr__(self, "name", name)
        grain = read_positive(granularity, f"{name}: granularity", MechanismError)
        object.__setattr__(self, "granularity", grain)
        if self.lower >= self.upper:
            bounds = f"{show_fraction(self.lower)} and {show_fraction(self.upper)}"
            raise MechanismError(f"{name}: the lower bound must lie below the upper, unlike {bounds}")
        if max(abs(self.least), abs(self.most)) > MOST_STEPS:
            raise MechanismError(
                f"{name}: at most 2^31 steps lie between the origin and a bound: widen the grid"
            )
        if self.least == self.most:
            raise MechanismError(f"{name}: the bounds are less than one step of {show_fraction(grain)} apart")

    def describe(self) -> dict[str, str]:
        """Everything that a sum depends on beside the rows, for the ledger."""
        return {
            name: str(getattr(self, name)) for name in ("name", "lower", "upper", "granularity", "origin")
        }

    @property
    def least(self) -> int:
        """The steps of the lower bound."""
        return round((self.lower - self.origin) / self.granularity)

    @property
    def most(self) -> int:
        """The steps of the upper bound."""
        return round((self.upper - self.origin) / self.granularity)

    def sensitivity(self, unit: Unit) -> int:
        """By how many steps one unit can move the sum."""
        if unit.fixes_rows:
            return self.most - self.least
        return max(abs(self.least), abs(self.most)) * unit.reach

    def count_steps(self, values: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """The steps of each value, clipped to the bounds; a value that is not a number is refused."""
        real = np.asarray(values, dtype=np.float64)
        if np.isnan(real).any():
            raise DataError(f"{self.name}: a value is missing; every row of a summed column needs a number")
        clipped = np.clip(real, float(self.lower), float(self.upper))
        steps = np.rint((clipped - float(self.origin)) / float(self.granularity)).astype(np.int64)
        # Clipped once more as integers: the sensitivity must not hang on how the division rounds.
        return np.clip(steps, self.least, self.most)


@dataclass(frozen=True, slots=True)
class SumMeasurement:
    """A noisy sum of a clipped number column, in whole steps of `granularity` from the public `origin`.

    A row with value v adds round((clip(v) − origin)/granularity) steps, so the sum over n rows is about
    granularity·steps + n·origin.
    """

    column: str
    steps: int
    granularity: Fraction
    origin: Fraction
    law: Law
    unit: Unit
    cost: Budget

    def total(self, rows: float) -> float:
        """The noisy sum in the column's own unit, given the (public or noisy) number of rows."""
        return float(self.granularity * self.steps) + float(self.origin) * rows

    def to_json(self) -> dict[str, Any]:
        """The whole measurement, exact numbers as text."""
        return {
            "column": self.column,
            "steps": self.steps,
            "granularity": str(self.granularity),
            "origin": str(self.origin),
            "law": self.law.to_json(),
            "unit": self.unit.value,
            "cost": self.cost.to_json(),
        }

    @classmethod
    def from_json(cls, document: object) -> SumMeasurement:
        """The measurement that `to_json` wrote; anything malformed is refused."""
        keys = ("column", "steps", "granularity", "origin", "law", "unit", "cost")
        found = require_keys(document, "a measured sum", keys)
        if not isinstance(found["column"], str) or not are_integers([found["steps"]]):
            raise FormatError(f"a measured sum has a column name and whole steps, not {found['column']!r}")
        granularity = read_fraction(found["granularity"], "a granularity", FormatError)
        if granularity <= 0:
            raise FormatError(f"a granularity must be above 0, not {granularity}")
        origin = read_fraction(found["origin"], "an origin", FormatError)
        law = law_from_json(found["law"])
        unit, cost = read_unit(found["unit"]), budget_from_json(found["cost"])
        return cls(found["column"], found["steps"], granularity, origin, law, unit, cost)


@dataclass(frozen=True, slots=True)
class Sums:
    """The noisy sum of each number column, clipped to its public bounds; a row lies in all of them."""

    columns: tuple[BoundedColumn, ...]
    mechanisms: tuple[AdditiveNoise, ...]
    cost: Finite
    unit: Unit

    def __post_init__(self) -> None:
        self.unit.require_rows("a sum")
        for column, mechanism in zip(self.columns, self.mechanisms, strict=True):
            if mechanism.unit != self.unit or not covers(mechanism, (column.sensitivity(self.unit),)):
                raise MechanismError(f"{mechanism.statistic}: the noise is not made for {self.unit}")
        costs = [mechanism.cost for mechanism in self.mechanisms]
        if not sum(costs[1:], start=costs[0]) <= self.cost:
            raise MechanismError(f"{len(costs)} sums are not paid for by {self.cost}")

    @classmethod
    def price(
        cls,
        columns: Sequence[BoundedColumn],
        cost: Finite,
        *,
        unit: Unit,
        noise: Noise | str = Noise.LAPLACE,
        shares: Sequence[Number] | None = None,
    ) -> Self:
        """The narrowest noise that the cost pays for; together the sums cost exactly that."""
        names = [
            f"sum of {column.name} in steps of {show_fraction(column.granularity)}" for column in columns
        ]
        moves = [(column.sensitivity(unit),) for column in columns]
        found = calibrate_moves(names, moves, cost, unit=unit, noise=Noise(noise), shares=shares)
        return cls(tuple(columns), found, cost, unit)

    def describe(self) -> dict[str, Any]:
        """The columns with all that a sum depends on, and the law of the noise in each."""
        return {
            "verb": "measure sums",
            "columns": [column.describe() for column in self.columns],
            "noise": self.mechanisms[0].noise.value,
            "scales": [mechanism.scale.hex() for mechanism in self.mechanisms],
        }

    def check(self, rows: TrueCounts) -> None:
        """Refuse columns that were not opened as numbers."""
        rows.counter.check_numbers([column.name for column in self.columns])

    def draw(self, rows: TrueCounts) -> list[Any]:
        """The sums in steps, each with its noise."""
        return [
            SumMeasurement(
                column.name,
                int(add_noise(np.array(true_sum, dtype=np.int64), mechanism)[()]),
                column.granularity,
                column.origin,
                mechanism.law,
                self.unit,
                mechanism.cost,
            ).to_json()
            for column, true_sum, mechanism in zip(
                self.columns, count_steps(self.columns, rows), self.mechanisms, strict=True
            )
        ]

    def read(self, stored: list[Any]) -> list[SumMeasurement]:
        """The measured sums."""
        return [SumMeasurement.from_json(document) for document in stored]


def count_steps(columns: Sequence[BoundedColumn], rows: TrueCounts) -> list[int]:
    """The exact sum of each column in steps of its grid, every value clipped to its bounds first."""
    totals = [0] * len(columns)
    for numbers, weights in rows.counter.read_numbers([column.name for column in columns]):
        for i, (column, values) in enumerate(zip(columns, numbers, strict=True)):
            steps = column.count_steps(values)
            totals[i] += int(steps.sum() if weights is None else (steps * weights).sum())
    return totals
