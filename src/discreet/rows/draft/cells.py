"""What the different texts of a column are: numbers, dates, spellings of missing, words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.rows.files.writing import DECIMAL_COMMA, SMALL_COMMA, THOUSANDS, UNITS, write_unit
from discreet.rows.readers.texts import NULLS
from discreet.values.schema.dates import SHORT_YEAR, read_text
from discreet.values.schema.types import NUMBER

Array = npt.NDArray[Any]

DATE = r"([0-9]{4}[-/][0-9]{1,2}[-/][0-9]{1,2}|[0-9]{1,2}[.][0-9]{1,2}[.][0-9]{4}|[0-9]{1,2}[/-][0-9]{1,2}[/-][0-9]{4})"
CLOCK = r"([T ]+[0-9]{1,2}:[0-9]{2}(:[0-9]{2}([.,][0-9]{1,9})?)?( ?(Z|UTC|[+-][0-9]{2}:?[0-9]{2}))?)"
MIDNIGHT = r"([T ]+0?0:00(:00([.,]0{1,9})?)?)"
"""What a day has behind it where a program writes it as a moment."""
HOURS = r"[0-9]{1,2}:[0-9]{2}(:[0-9]{2})?"
SLASHES = r"[0-9]{1,2}[/-][0-9]{1,2}[/-][0-9]{4}"
LATE = r"(1[3-9]|[23][0-9])[/-][0-9]{1,2}[/-][0-9]{4}"
SOME = 20_000
"""Of more different numbers than this, so many are looked at to find how many decimals they have."""


@dataclass(frozen=True, slots=True, eq=False)
class Facts:
    """How many cells of a column of texts are what."""

    texts: Any
    nothing: Array
    """Which of the different texts are empty or spell missing."""
    number: Array
    """Which are numbers."""
    spelled: int
    numbers: int
    whole: int
    padded: int
    dates: int
    clocks: int
    slashed: int
    late: int
    words: float
    decimals: int

    def parse_numbers(self) -> Array:
        """The number of each different text, NaN where it is none."""
        found = np.full(len(self.texts), np.nan)
        if self.number.any():
            found[self.number] = np.array(self.texts.filter(self.number).to_pylist(), dtype=np.float64)
        return found


def look_at_texts(values: Any, held: Array) -> Facts:
    """Facts about the different texts of a column and how many rows hold each."""
    import pyarrow as pa
    import pyarrow.compute as pc

    trimmed = pc.utf8_trim_whitespace(values)
    empty = _mask(pc.equal(trimmed, ""))
    spells = _mask(pc.is_in(trimmed, value_set=pa.array(NULLS, trimmed.type)))
    nothing = empty | spells

    def match(pattern: str) -> Array:
        return _mask(pc.match_substring_regex(trimmed, pattern=f"^(?:{pattern})$")) & ~nothing

    def weigh(mask: Array) -> int:
        return int(held[mask].sum())

    number, date = match(NUMBER), match(f"{DATE}{CLOCK}?")
    real = held * ~nothing
    spaces = pc.count_substring(values, pattern=" ").to_numpy(zero_copy_only=False)
    some = np.flatnonzero(number)[:SOME]
    decimals = [_count_decimals(text) for text in trimmed.take(pa.array(some)).to_pylist()]
    return Facts(
        trimmed,
        nothing,
        number,
        weigh(spells),
        weigh(number),
        weigh(match(r"[+-]?[0-9]{1,15}")),
        weigh(match(r"0[0-9]+")),
        weigh(date),
        weigh(match(DATE + CLOCK)) - weigh(match(DATE + MIDNIGHT)),
        weigh(match(f"{SLASHES}{CLOCK}?")),
        weigh(match(f"{LATE}{CLOCK}?")),
        float(1 + (spaces * real).sum() / max(1, real.sum())),
        weigh_decimals(np.array(decimals, dtype=np.int64), held[some]),
    )


def find_writing(facts: Facts, held: Array, nearly: float) -> str:
    """What to say of a file so that texts become numbers, if nearly all of them are numbers in another writing.

    Of times of the day: hours. Of dates whose years have two digits: years.
    """
    import pyarrow.compute as pc

    real = held * ~facts.nothing
    least = nearly * real.sum()

    def count(pattern: str) -> int:
        return int(real[_mask(pc.match_substring_regex(facts.texts, pattern=f"^(?:{pattern})$"))].sum())

    if not real.sum():
        return ""
    if count(THOUSANDS) > real.sum() - least and count(f"{THOUSANDS}|{NUMBER}") >= least:
        return "decimal=."
    if count(DECIMAL_COMMA) >= least:
        return "decimal=,"
    if count(HOURS) >= least:
        return "hours"
    if count(SHORT_YEAR) >= least:
        return "years"
    if count(write_unit(UNITS)) < least:
        return ""
    shares = {unit: count(write_unit((unit,))) for unit in UNITS}
    unit = max(UNITS, key=lambda found: shares[found])
    if shares[unit] < least:
        return ""
    return f"unit={unit}&decimal=," if count(SMALL_COMMA) > 0.02 * real.sum() else f"unit={unit}"


def read_dates(facts: Facts, moments: bool) -> Array:
    """Days, or seconds, since 1970 for each different text, NaN where it is no date."""
    order: Any = "dmy" if prefers_days(facts) else "mdy"
    seconds = [
        None if nothing else read_text(text, order)
        for text, nothing in zip(facts.texts.to_pylist(), facts.nothing, strict=True)
    ]
    found = np.array([np.nan if value is None else value for value in seconds], dtype=np.float64)
    return found if moments else np.floor(found / 86_400)


def prefers_days(facts: Facts) -> bool:
    """Whether 1/2/2020 is taken for the first of February."""
    return facts.late > 0.02 * facts.slashed


def read_numbers(values: Any, kind: str) -> Array:
    """The different values of a column of numbers or dates as floats; dates count days, times seconds, since 1970."""
    import pyarrow as pa

    if kind == "date":
        return np.asarray(
            values.cast(pa.date32()).cast(pa.int32()).to_numpy(zero_copy_only=False), dtype=np.float64
        )
    if kind == "time":
        plain = values.cast(pa.timestamp("us", tz=values.type.tz))
        return np.asarray(np.floor(plain.cast(pa.int64()).to_numpy(zero_copy_only=False) / 1e6))
    if pa.types.is_decimal(values.type):
        values = values.cast(pa.float64(), safe=False)
    return np.asarray(values.to_numpy(zero_copy_only=False), dtype=np.float64)


def find_decimals(numbers: Array, held: Array) -> int:
    """How many decimals nearly all numbers have."""
    some = slice(0, SOME)
    return weigh_decimals(
        np.array([_count_decimals(repr(float(value))) for value in numbers[some]], dtype=np.int64), held[some]
    )


def weigh_decimals(decimals: Array, held: Array) -> int:
    """The decimals that all but half a percent of the rows have at most."""
    if not len(decimals):
        return 0
    counts = np.bincount(decimals, weights=held)
    return int(np.searchsorted(np.cumsum(counts), 0.995 * counts.sum()))


def _count_decimals(text: str) -> int:
    mantissa, _, exponent = text.lower().partition("e")
    places = len(mantissa.partition(".")[2].rstrip("0"))
    return max(0, places - int(exponent or 0)) if exponent.lstrip("+-").isdigit() or not exponent else places


def _mask(found: Any) -> Array:
    return np.asarray(found.fill_null(False).to_numpy(zero_copy_only=False), dtype=bool)
