"""What a reader hands over: batches of codes, and weights that are counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from discreet.rows.limits import MAX_WEIGHT
from discreet.values.errors import DataError
from discreet.values.text import show
from discreet.values.unit import Unit

Floats = npt.NDArray[np.float64]
Numbers = tuple[list[Floats], npt.NDArray[np.int64] | None]
"""Columns of numbers, and the weights of their rows if there are any."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Some rows: one column of codes for each attribute asked for, and their weights if there are any."""

    rows: int
    codes: list[npt.NDArray[Any]]
    weights: npt.NDArray[np.int64] | None
    people: npt.NDArray[np.uint64] | None = None
    """Whose row each is: a keyed hash of the id in two words, both 0 where there is none."""

    def keep(self, kept: npt.NDArray[np.bool_]) -> Batch:
        """Only these rows."""
        return Batch(
            int(np.count_nonzero(kept)),
            [column[kept] for column in self.codes],
            None if self.weights is None else self.weights[kept],
            None if self.people is None else self.people[kept],
        )


class Reader(Protocol):
    """A table of rows that can be read again and again."""

    @property
    def label(self) -> str:
        """How errors name the table."""

    def stamp(self) -> object:
        """Something that differs once the table was written to."""

    def read(self, names: Sequence[str]) -> Iterator[Batch]:
        """The codes of these attributes of every row."""

    def read_numbers(self, names: Sequence[str]) -> Iterator[Numbers]:
        """The values of these number columns, and the weights of the rows if there are any."""

    def bound(self, unit: Unit) -> Reader:
        """The same table with as many rows of each person as the unit says, the same ones whenever it is read."""

    def close(self) -> None:
        """Let go of files and connections."""


def check_numbers(label: str, name: str, values: Any) -> Floats:
    """A column as floats; a value that is missing or no number is refused, because no bound covers it."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "fiu":
        numbers: Floats = values.astype(np.float64, copy=False)
        if not np.isnan(numbers).any():
            return numbers
    try:
        held = np.array(
            [np.nan if value is None or value == "" else value for value in values], dtype=np.float64
        )
    except (TypeError, ValueError):
        bad = next(value for value in values if not _reads_as_number(value))
        raise refuse_number(label, name, bad) from None
    if np.isnan(held).any():
        raise refuse_number(label, name, None)
    return held


def refuse_number(label: str, name: str, value: object) -> DataError:
    """The error for a value that cannot be summed."""
    what = "a value is missing" if value is None else f"{show(value)} is not a number"
    return DataError(f"{label}: column {show(name)}: {what}; every row of a summed column needs a number")


def _reads_as_number(value: object) -> bool:
    try:
        float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return value is None or value == ""
    return True


def check_weights(
    label: str, name: str, values: Any, first_row: int, *, total: bool = False
) -> npt.NDArray[np.int64]:
    """The weights as int64; each must be a whole number from 0 to `MAX_WEIGHT`.

    Under a `total` schema, where no content of a row is refused, any other weight counts as 0.
    """
    held = np.asarray(values, dtype=None if hasattr(values, "dtype") else object)  # a list may mix 1 and True
    if held.dtype.kind in "iu":
        bad = np.flatnonzero((held < 0) | (held > MAX_WEIGHT))
    else:
        whole = (isinstance(value, int | np.integer) and not isinstance(value, bool) for value in held)
        bad = np.flatnonzero(
            [not fine or not 0 <= value <= MAX_WEIGHT for fine, value in zip(whole, held, strict=True)]
        )
    if bad.size and not total:
        raise refuse_weight(label, name, held[bad[0]], first_row + int(bad[0]))
    if bad.size:
        held = held.copy()
        held[bad] = 0
    return held.astype(np.int64)


def refuse_weight(label: str, name: str, value: object, row: int | None) -> DataError:
    """The error for a weight that is not a whole number in range."""
    where = f"weight {show(name)}" + (f", row {row:,}" if row is not None else "")
    given = value.item() if isinstance(value, np.generic) else value
    return DataError(
        f"{label}: {where}: {show(given)} is not allowed; weights are whole numbers from 0 to {MAX_WEIGHT:,}"
    )
