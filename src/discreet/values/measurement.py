"""What the airlock lets out: noisy numbers, the law of their noise, and what they cost."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.values.budget import Budget, Unit, budget_from_json
from discreet.values.errors import BudgetError, FormatError, TableError
from discreet.values.law import Law, law_from_json
from discreet.values.table import Table, count_cells, require_cells
from discreet.values.text import read_fraction, require_keys


@dataclass(frozen=True, slots=True, eq=False)
class Measurement:
    """A table of counts with noise of a known law in every cell; negative cells are part of it."""

    noisy: Table
    law: Law
    unit: Unit
    cost: Budget
    """What was charged for it; infinite for exact counts."""
    rate: Fraction = Fraction(1)
    """The share of the rows that was counted: below 1 for a secret random sample."""

    def __post_init__(self) -> None:
        if self.noisy.values.dtype != np.int64:
            raise TableError(f"a measured table holds int64 counts, not {self.noisy.values.dtype}")

    @property
    def axes(self) -> tuple[str, ...]:
        """The attributes that were counted."""
        return self.noisy.axes

    @property
    def cells(self) -> int:
        """The number of cells."""
        return self.noisy.cells

    def to_json(self) -> dict[str, Any]:
        """The whole measurement; the counts are listed in row-major order of the axes."""
        return {
            "axes": list(self.axes),
            "shape": list(self.noisy.values.shape),
            "counts": self.noisy.values.ravel().tolist(),
            "law": self.law.to_json(),
            "unit": self.unit.value,
            "cost": self.cost.to_json(),
            "rate": str(self.rate),
        }

    @classmethod
    def from_json(cls, document: object) -> Measurement:
        """The measurement that `to_json` wrote; anything malformed is refused."""
        keys = ("axes", "shape", "counts", "law", "unit", "cost", "rate")
        found = require_keys(document, "a measurement", keys)
        axes, shape, counts = found["axes"], found["shape"], found["counts"]
        if not (isinstance(axes, list) and all(isinstance(name, str) for name in axes)):
            raise FormatError(f"the axes of a measurement are names, not {axes!r}")
        if not (are_integers(shape) and len(shape) == len(axes) and all(size > 0 for size in shape)):
            raise FormatError(
                f"the shape of a measurement over {axes} has one positive size per axis, not {shape!r}"
            )
        require_cells(f"the measurement over {axes}", shape)
        if not are_integers(counts) or len(counts) != count_cells(shape):
            raise FormatError(f"the measurement over {axes} needs {count_cells(shape)} whole counts")
        try:
            noisy = Table(tuple(axes), np.array(counts, dtype=np.int64).reshape(shape))
        except (OverflowError, TableError) as error:
            raise FormatError(f"the measurement over {axes} is malformed: {error}") from None
        rate = read_fraction(found["rate"], "a sampling rate", FormatError)
        if not 0 < rate <= 1:
            raise FormatError(f"a sampling rate is above 0 and at most 1, not {rate}")
        unit, cost = read_unit(found["unit"]), budget_from_json(found["cost"])
        return cls(noisy, law_from_json(found["law"]), unit, cost, rate)


def read_unit(value: object) -> Unit:
    """The unit in a document."""
    try:
        return Unit(str(value))
    except BudgetError as error:
        raise FormatError(str(error)) from None


def are_integers(values: object) -> bool:
    """Whether it is a list of whole numbers."""
    return isinstance(values, list) and all(type(value) is int for value in values)
