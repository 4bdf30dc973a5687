"""What the airlock lets out: noisy numbers, the law of their noise, and what they cost."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.values.errors import FormatError, TableError
from discreet.values.exact import read_fraction
from discreet.values.law import DiscreteGaussian, DiscreteLaplace, Exact, law_from_json
from discreet.values.table import Table, count_cells, require_cells

NoiseLaw = DiscreteLaplace | DiscreteGaussian | Exact


@dataclass(frozen=True, slots=True, eq=False)
class Measurement:
    """A table of counts with noise of a known law in every cell; negative cells are part of it."""

    noisy: Table
    law: NoiseLaw
    unit: str
    cost: str
    """The budget that was charged, as the JSON text of `Budget.to_json`."""
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

    def bound(self, coverage: float) -> int:
        """The h within which all true counts lie of their noisy ones at once, with this probability."""
        return self.law.bound(coverage, self.cells)

    def to_json(self) -> dict[str, Any]:
        """The whole measurement; the counts are listed in row-major order of the axes."""
        return {
            "axes": list(self.axes),
            "shape": list(self.noisy.values.shape),
            "counts": self.noisy.values.ravel().tolist(),
            "law": self.law.to_json(),
            "unit": self.unit,
            "cost": json.loads(self.cost),
            "rate": str(self.rate),
        }

    @classmethod
    def from_json(cls, document: object) -> Measurement:
        """The measurement that `to_json` wrote; anything malformed is refused."""
        found = _require_keys(
            document, {"axes", "shape", "counts", "law", "unit", "cost", "rate"}, "a measurement"
        )
        axes, shape, counts = found["axes"], found["shape"], found["counts"]
        if not (isinstance(axes, list) and all(isinstance(name, str) for name in axes)):
            raise FormatError(f"the axes of a measurement are names, not {axes!r}")
        if not (_are_integers(shape) and len(shape) == len(axes) and all(size > 0 for size in shape)):
            raise FormatError(
                f"the shape of a measurement over {axes} has one positive size per axis, not {shape!r}"
            )
        require_cells(f"the measurement over {axes}", shape)
        if not _are_integers(counts) or len(counts) != count_cells(shape):
            raise FormatError(f"the measurement over {axes} needs {count_cells(shape)} whole counts")
        try:
            noisy = Table(tuple(axes), np.array(counts, dtype=np.int64).reshape(shape))
        except (OverflowError, TableError) as error:
            raise FormatError(f"the measurement over {axes} is malformed: {error}") from None
        rate = read_fraction(found["rate"], "a sampling rate", FormatError)
        if not 0 < rate <= 1:
            raise FormatError(f"a sampling rate is above 0 and at most 1, not {rate}")
        unit, cost = _read_unit(found["unit"]), json.dumps(found["cost"])
        return cls(noisy, law_from_json(found["law"]), unit, cost, rate)


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
    law: NoiseLaw
    unit: str
    cost: str

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
            "unit": self.unit,
            "cost": json.loads(self.cost),
        }

    @classmethod
    def from_json(cls, document: object) -> SumMeasurement:
        """The measurement that `to_json` wrote; anything malformed is refused."""
        keys = {"column", "steps", "granularity", "origin", "law", "unit", "cost"}
        found = _require_keys(document, keys, "a measured sum")
        if not isinstance(found["column"], str) or not _are_integers([found["steps"]]):
            raise FormatError(f"a measured sum has a column name and whole steps, not {found['column']!r}")
        granularity = read_fraction(found["granularity"], "a granularity", FormatError)
        if granularity <= 0:
            raise FormatError(f"a granularity must be above 0, not {granularity}")
        origin = read_fraction(found["origin"], "an origin", FormatError)
        law = law_from_json(found["law"])
        unit, cost = _read_unit(found["unit"]), json.dumps(found["cost"])
        return cls(found["column"], found["steps"], granularity, origin, law, unit, cost)


def _require_keys(document: object, keys: set[str], what: str) -> Mapping[str, Any]:
    if not isinstance(document, Mapping) or set(document) != keys:
        raise FormatError(f"{what} has exactly the keys {', '.join(sorted(keys))}")
    return document


def _read_unit(value: object) -> str:
    if value not in ("add-remove", "replace-one"):
        raise FormatError(f"the unit of privacy is add-remove or replace-one, not {value!r}")
    return str(value)


def _are_integers(values: object) -> bool:
    return isinstance(values, list) and all(type(value) is int for value in values)
