"""Bounded sums of a number column, in whole steps of a public grid, so that integer noise fits them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from discreet.core.mechanism import AdditiveNoise, Noise, calibrate_moves
from discreet.values.budget import Finite, Unit
from discreet.values.errors import DataError, MechanismError
from discreet.values.exact import Number, read_fraction, read_positive, show_fraction

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
        """By how many steps one row can move the sum."""
        if Unit(unit) is Unit.REPLACE_ONE:
            return self.most - self.least
        return max(abs(self.least), abs(self.most))

    def count_steps(self, values: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """The steps of each value, clipped to the bounds; a value that is not a number is refused."""
        real = np.asarray(values, dtype=np.float64)
        if np.isnan(real).any():
            raise DataError(f"{self.name}: a value is missing; every row of a summed column needs a number")
        clipped = np.clip(real, float(self.lower), float(self.upper))
        steps = np.rint((clipped - float(self.origin)) / float(self.granularity)).astype(np.int64)
        # Clipped once more as integers: the sensitivity must not hang on how the division rounds.
        return np.clip(steps, self.least, self.most)

    def sum_steps(self, values: npt.ArrayLike) -> int:
        """The exact sum of the steps."""
        steps = self.count_steps(values)
        if steps.size > 2**30:
            raise MechanismError(f"{self.name}: at most 2^30 rows are summed at once, not {steps.size:,}")
        return int(steps.sum())


def calibrate_sums(
    columns: Sequence[BoundedColumn],
    spend: Finite,
    *,
    unit: Unit,
    noise: Noise = Noise.LAPLACE,
    shares: Sequence[Number] | None = None,
) -> tuple[AdditiveNoise, ...]:
    """One mechanism for each sum; a row lies in all of them, so their costs sum exactly to the spend."""
    names = [f"sum of {column.name} in steps of {show_fraction(column.granularity)}" for column in columns]
    moves = [(column.sensitivity(unit),) for column in columns]
    return calibrate_moves(names, moves, spend, unit=unit, noise=noise, shares=shares)


def choose_origin(lower: Number, upper: Number, granularity: Number, unit: Unit) -> Fraction:
    """The grid point nearest the middle of the bounds under add-remove; the lower bound under replace-one."""
    low = read_fraction(lower, "lower", MechanismError)
    if Unit(unit) is Unit.REPLACE_ONE:
        return low  # any origin has the same sensitivity there, and this one keeps the steps positive
    grain = read_positive(granularity, "granularity", MechanismError)
    middle = (low + read_fraction(upper, "upper", MechanismError)) / 2
    return math.floor(middle / grain + Fraction(1, 2)) * grain
