"""Columns of values to columns of codes and back: which value is which level.

The rule, the same for every kind of input and in every engine that counts:

- Text is the level, or an alias of one, with exactly that text; what the attribute ignores, case or blanks at both
  ends, does not matter. Nothing else is trimmed, folded or rewritten.
- A whole number, integer or float, is the level with its digits: 0 and 0.0 are '0', never '0.0' or '00'.
- A number with a fraction is no level. Declare edges for such numbers.
- A boolean is 'true' or 'false', and where those are not declared 'True' or 'False'; never a number. Where the type is
  boolean, 'true', 'True' and 'TRUE' are the same text.
- Where the type is decimal, '1', '1.0' and a level such as '1.00' are the same text: a frame's 1.0 is '1.0' in a file.
- Under edges, a number, or text that writes one ('-3', '4.5', '1e6', 'inf'), that is no level by the above
  is in the bin that holds it.
- A date or a moment, or text that spells one, is in the level that holds it, if the attribute has dates; `dates` says
  which texts do.
- None, NaN, NaT, NA, a masked or null cell, every declared spelling of missing and, unless '' is a declared level, the
  empty text are missing.

Everything else, and what is missing where no level is declared for it, is outside. The attribute says what becomes of
it: the nearest bin, another level, the missing one, or the record is left out. If it says nothing, it is refused with
its row.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from discreet.values.errors import DataError
from discreet.values.schema.dates import DAY, count_days, count_seconds, is_short, read_text
from discreet.values.schema.intake import (
    Coded,
    Form,
    Moments,
    Numbers,
    open_column,
    open_table,
    refuse_lengths,
)
from discreet.values.schema.types import read_number
from discreet.values.text import list_some, show

if TYPE_CHECKING:
    from discreet.values.schema import Attribute, Bins, Schema

Array = npt.NDArray[Any]

ABSENT, UNKNOWN = -1, -2
"""What stands for a missing value and for one that fits nowhere, until a block is finished."""

EXACT = 2**53
"""Up to here a float64 stands for one integer only."""

REMEMBERED = 2**16
"""How many texts of numbers are remembered with their bins; parsing each anew costs ten times as much."""

_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,18}")
_ROUND = re.compile(rf"({_WHOLE.pattern})(\.0*)?")
_NOTHING = frozenset({"NAType", "NaTType", "NoneType"})


def spell_levels(attribute: Attribute) -> dict[str, int]:
    """The code of every text that is a level or an alias, without what is ignored of it; ABSENT if it means missing."""
    fold = attribute.reading.fold
    texts = {fold(level): code for code, level in enumerate(attribute.levels)}
    texts |= {fold(alias): attribute.code(level) for alias, level in attribute.reading.aliases}
    texts |= {fold(null): ABSENT for null in attribute.reading.nulls}
    if attribute.type == "boolean":
        for level in attribute.values:
            for spelling in (level.lower(), level.capitalize(), level.upper()):
                texts.setdefault(fold(spelling), attribute.code(level))
    if attribute.type == "decimal" and attribute.bins is None:
        for level in attribute.values:
            if found := _ROUND.fullmatch(level):
                texts.setdefault(fold(found[1]), attribute.code(level))
                texts.setdefault(fold(f"{found[1]}.0"), attribute.code(level))
    texts.setdefault("", ABSENT)
    return texts


def find_whole_levels(attribute: Attribute) -> dict[int, int]:
    """The code of each level or alias that is the decimal text of a 64-bit integer; ABSENT if it means missing."""
    found = {int(text): code for text, code in spell_levels(attribute).items() if _WHOLE.fullmatch(text)}
    return {value: code for value, code in found.items() if -(2**63) <= value < 2**63}


def encode_column(attribute: Attribute, column: Any, *, first_row: int = 1, strict: bool = False) -> Array:
    """The code of every value of a column, by the rule of this module; `first_row` numbers the first one.

    Values that leave their record out are dropped. If it is `strict`, whatever is outside is refused.
    """
    rows, blocks = open_column(f"column {show(attribute.name)}", column)
    codes, kept = _encode_blocks(attribute, rows, blocks, first_row, strict)
    return codes if kept is None else codes[kept]


def encode_table(schema: Schema, table: Any, *, first_row: int = 1, strict: bool = False) -> dict[str, Array]:
    """The codes of every declared attribute of a table; columns that are not declared are ignored."""
    codes, kept = encode_rows(schema, table, first_row=first_row, strict=strict)
    return codes if kept is None else {name: column[kept] for name, column in codes.items()}


def encode_rows(
    schema: Schema, table: Any, *, first_row: int = 1, strict: bool = False
) -> tuple[dict[str, Array], npt.NDArray[np.bool_] | None]:
    """The codes of every row, and which rows count: None if all do. A row is left out for its own values alone."""
    names, fetch = open_table(table)
    if not names:
        raise DataError(f"the table has no columns; needed are {list_some(schema.names)}")
    opened = {}
    for attribute in schema:
        places = [i for i, name in enumerate(names) if isinstance(name, str) and name == attribute.name]
        if not places:
            raise DataError(f"the table has no column {show(attribute.name)}; it has {list_some(names)}")
        if len(places) > 1:
            raise DataError(f"the table has {len(places)} columns named {show(attribute.name)}; 1 is allowed")
        opened[attribute.name] = open_column(f"column {show(attribute.name)}", fetch(places[0]))
    refuse_lengths({name: rows for name, (rows, _) in opened.items()})
    codes: dict[str, Array] = {}
    kept: npt.NDArray[np.bool_] | None = None
    for name, (rows, blocks) in opened.items():
        codes[name], mine = _encode_blocks(schema[name], rows, blocks, first_row, strict)
        kept = mine if kept is None else kept if mine is None else kept & mine
    return codes, kept


def decode_column(
    attribute: Attribute, codes: npt.ArrayLike, *, rng: np.random.Generator | int | None = None
) -> Array:
    """The label of every code; with `rng`, a number or date drawn uniformly from its bin, NaN or NaT where missing."""
    held = np.asarray(codes)
    if held.ndim != 1 or (held.size and held.dtype.kind not in "iu"):
        raise DataError(
            f"codes of {show(attribute.name)} are a {held.ndim}-dimensional array of {held.dtype}; "
            "allowed is one list of integers"
        )
    held = held.astype(np.intp) if not held.size else held
    bad = np.flatnonzero((held < 0) | (held >= attribute.size))
    if bad.size:
        raise DataError(
            f"code {held[bad[0]]} of {show(attribute.name)} in row {bad[0] + 1:,} is not allowed; "
            f"codes run from 0 to {attribute.size - 1}"
        )
    if rng is None or attribute.bins is None:
        labels: Array = np.array(attribute.levels, dtype=object)
        return np.take(labels, held)
    from discreet.values.schema.draws import draw_alone

    values = draw_alone(
        attribute, np.minimum(held, len(attribute.bins) - 1), np.random.default_rng(rng).random(len(held))
    )
    absent = held >= len(attribute.bins)
    if attribute.dates is not None:
        moments = values.astype("datetime64[s]" if attribute.dates.moments else "datetime64[D]")
        moments[absent] = np.datetime64("NaT")
        return moments
    drawn = values.astype(np.float64)
    drawn[absent] = np.nan
    return drawn


def _encode_blocks(
    attribute: Attribute, rows: int, blocks: Any, first_row: int, strict: bool
) -> tuple[Array, npt.NDArray[np.bool_] | None]:
    found = np.empty(rows, dtype=attribute.dtype)
    kept: npt.NDArray[np.bool_] | None = None
    match = _Matcher(attribute, strict)
    match_numbers = _number_matcher(attribute, strict)
    listed: Sequence[object] | None = None
    listed_codes = np.empty(0, dtype=np.int32)
    start = 0
    for block in blocks:
        if isinstance(block, Numbers):
            codes = match_numbers(block.values)
            if block.absent is not None:
                codes[block.absent] = ABSENT
        elif isinstance(block, Moments):
            codes = match.place_moments(block)
        elif isinstance(block, Coded):
            if block.values is not listed:
                listed = block.values
                listed_codes = np.append(_match_each(match, listed), ABSENT)
            codes = listed_codes[block.index]  # position -1 is the last entry, ABSENT
        else:
            codes = _match_each(match, block.values)
        left = _place(attribute, block, codes, first_row + start, strict)
        if left is not None:
            kept = np.ones(rows, dtype=bool) if kept is None else kept
            kept[start : start + len(block)] = ~left
        found[start : start + len(block)] = codes
        start += len(block)
    return found, kept


def _place(
    attribute: Attribute, block: Form, codes: Array, row: int, strict: bool
) -> npt.NDArray[np.bool_] | None:
    """Settle what is missing or outside; which rows are left out, or None. A value without a place is refused."""
    if not codes.size or codes.min() >= 0:
        return None
    absent, outside = codes == ABSENT, codes == UNKNOWN
    absent_code, outside_code, leaves_out = (
        attribute.absent_code,
        attribute.outside_code,
        attribute.leaves_out,
    )
    if strict:
        absent_code = None if attribute.missing is None else absent_code
        outside_code, leaves_out = None, False
    for mask, code in ((absent, absent_code), (outside, outside_code)):
        if code is not None:
            codes[mask] = code
    left = codes < 0
    if leaves_out:
        codes[left] = 0
        return np.asarray(left)
    if left.any():
        i = int(np.argmax(left))
        where = f"attribute {show(attribute.name)}, row {row + i:,}"
        raise DataError(f"{where}: {_explain(attribute, None if absent[i] else block.value(i))}")
    return None


def _explain(attribute: Attribute, value: object) -> str:
    bins = attribute.bins
    allowed = f"allowed are {list_some(attribute.levels)}"
    if value is None:
        return f"the value is missing and the schema declares no missing level; {allowed}"
    if attribute.dates is not None:
        is_date = isinstance(value, date | np.datetime64) or (
            isinstance(value, str) and read_text(value, attribute.reading.order) is not None
        )
        problem = "is beyond the dates" if is_date else "is neither a date nor a declared level"
        short = "; years need four digits" if isinstance(value, str) and is_short(value.strip()) else ""
        return f"{show(str(value) if is_date else value)} {problem}{short}; {allowed}"
    if bins is None:
        fraction = isinstance(value, float) and not value.is_integer()
        dated = "; declare the type date for dates" * isinstance(value, date | np.datetime64)
        return (
            f"{show(value)} is not a declared level; {allowed}"
            + "; declare edges for fractions" * fraction
            + dated
        )
    if _is_number(value) or (isinstance(value, str) and read_number(value) is not None):
        return f"{show(value)} is beyond the edges; {allowed}"
    return f"{show(value)} is neither a number nor a declared level; {allowed}"


class _Matcher(dict[Any, int]):
    """Values to codes, remembering texts only, because 1, 1.0 and True are the same key of a dictionary."""

    def __init__(self, attribute: Attribute, strict: bool) -> None:
        self.texts = spell_levels(attribute)
        self.reading, self.dates = attribute.reading, attribute.dates
        super().__init__({} if self.reading.ignore else self.texts)
        self.bins = attribute.bins
        self.nearest = attribute.reading.outside == "nearest" and not strict
        self.room = len(self) + REMEMBERED

    def __missing__(self, value: object) -> int:
        if isinstance(value, str):
            code = self._match_text(self.reading.fold(value))
            if len(self) < self.room:
                self[value] = code
            return code
        if type(value).__name__ in _NOTHING:
            return ABSENT
        if isinstance(value, bool | np.bool_):
            fold = self.reading.fold
            text = fold("true" if value else "false"), fold("True" if value else "False")
            return self.texts.get(text[0], self.texts.get(text[1], UNKNOWN))
        if isinstance(value, np.datetime64):
            whole = value.astype("datetime64[s]").astype(np.int64)
            return ABSENT if np.isnat(value) else self._match_seconds(int(whole))
        if isinstance(value, np.timedelta64):
            return ABSENT if np.isnat(value) else UNKNOWN
        if isinstance(value, date):
            try:
                seconds = count_seconds(value) if isinstance(value, datetime) else count_days(value) * DAY
            except (OverflowError, ValueError):  # at the ends of the calendar, in another time zone
                return UNKNOWN
            return self._match_seconds(seconds)
        return self._match_number(value) if _is_number(value) else UNKNOWN

    def place_moments(self, block: Moments) -> Array:
        """The codes of many dates at once."""
        found = np.full(len(block), UNKNOWN, dtype=np.int32)
        if self.dates is not None and self.bins is not None:
            counts = block.seconds // self.dates.unit
            if self.dates.by == "weekday":
                counts = (block.seconds // DAY + 3) % 7
            found = _locate_all(self.bins, counts, self.nearest)
        if block.absent is not None:
            found[block.absent] = ABSENT
        return found

    def _match_text(self, text: str) -> int:
        code = self.texts.get(text)
        if code is not None:
            return code
        if self.dates is not None:
            seconds = read_text(text, self.reading.order)
            return UNKNOWN if seconds is None else self._match_seconds(seconds)
        number = None if self.bins is None else read_number(text)
        return UNKNOWN if number is None else self._locate(number)

    def _match_seconds(self, seconds: int) -> int:
        if self.dates is None:
            return UNKNOWN
        return self._locate(self.dates.measure(seconds // self.dates.unit))

    def _match_number(self, value: Any) -> int:
        if value.is_nan() if isinstance(value, Decimal) else value != value:
            return ABSENT
        exact = isinstance(value, int | np.integer | Decimal) or abs(value) <= EXACT
        if exact and abs(value) < 2**63 and value == int(value):
            code = self.texts.get(str(int(value)))
            if code is not None:
                return code
        return UNKNOWN if self.bins is None or self.dates is not None else self._locate(value)

    def _locate(self, value: Any) -> int:
        assert self.bins is not None
        try:
            number = float(value)
        except OverflowError:
            number = float("inf") if value > 0 else float("-inf")
        if self.bins.holds(number):
            return self.bins.place(number)
        if not self.nearest:
            return UNKNOWN
        return 0 if number < self.bins.edges[0] else len(self.bins) - 1


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.integer | np.floating | Decimal) and not isinstance(value, bool)


def _match_each(match: _Matcher, values: Sequence[object]) -> Array:
    try:
        return np.fromiter(map(match.__getitem__, values), dtype=np.int32, count=len(values))
    except TypeError:  # a list or another value that no dictionary takes
        return np.array([match[v] if _is_hashable(v) else UNKNOWN for v in values], dtype=np.int32)


def _is_hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _locate_all(bins: Bins, values: Array, nearest: bool) -> Array:
    """The vectorised twin of `_Matcher._locate`."""
    found = bins.locate(values).astype(np.int32)
    found[found < 0] = UNKNOWN
    if nearest:
        found[values < bins.edges[0]] = 0
        found[values > bins.edges[-1]] = len(bins) - 1
    return found


def _number_matcher(attribute: Attribute, strict: bool) -> Callable[[Array], Array]:
    """The vectorised twin of `_Matcher` for arrays of numbers."""
    nearest = attribute.reading.outside == "nearest" and not strict
    whole = find_whole_levels(attribute)
    keys = np.array(sorted(whole), dtype=np.int64)
    codes = np.array([whole[int(key)] for key in keys], dtype=np.int32)

    def match_numbers(values: Array) -> Array:
        floating = values.dtype.kind == "f"
        values = values.astype(np.float64) if floating and values.dtype != np.float64 else values
        if attribute.bins is None or attribute.dates is not None:
            found = np.full(len(values), UNKNOWN, dtype=np.int32)
        else:
            found = _locate_all(attribute.bins, values, nearest)
        if keys.size:
            _overlay(found, values, keys, codes)
        if floating:
            found[np.isnan(values)] = ABSENT
        return found

    return match_numbers


def _overlay(found: Array, values: Array, keys: Array, codes: Array) -> None:
    """Put the code of each whole number that is a level over what was found."""
    if values.dtype.kind == "f":
        keep = (keys >= -EXACT) & (keys <= EXACT)
        keys, codes = keys[keep], codes[keep]
        if not keys.size:
            return
    low, high = int(keys[0]), int(keys[-1])
    inside = (values >= low) & (values <= high)
    whole = np.full(len(values), low, dtype=np.int64)
    np.copyto(whole, values, where=inside, casting="unsafe")
    if values.dtype.kind == "f":
        inside &= whole == values
    if high - low < 2**16:
        level = np.full(high - low + 1, UNKNOWN, dtype=np.int32)
        level[keys - low] = codes
        matched = level[whole - low]
    else:
        place = np.minimum(np.searchsorted(keys, whole), len(keys) - 1)
        matched = np.where(keys[place] == whole, codes[place], UNKNOWN)
    inside &= matched != UNKNOWN
    np.copyto(found, matched, where=inside)
