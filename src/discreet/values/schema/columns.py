"""Columns of values to columns of codes and back: which value is which level.

The rule, the same for every kind of input and in every engine that counts:

- Text is the level with exactly that text; nothing is trimmed, folded or rewritten.
- A whole number, integer or float, is the level with its digits: 0 and 0.0 are '0', never '0.0' or '00'.
- A number with a fraction is no level. Declare edges for such numbers.
- A boolean is 'true' or 'false', and where those are not declared 'True' or 'False'; never a number.
- Under edges, a number, or text that writes one ('-3', '4.5', '1e6', 'inf'), that is no level by the above
  is in the bin that holds it.
- None, NaN, NaT, NA, a masked or null cell and, unless '' is a declared level, the empty text are missing.

Everything else is refused with its row.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from discreet.values.errors import DataError
from discreet.values.schema.intake import Coded, Form, Numbers, open_column, open_table, refuse_lengths
from discreet.values.text import list_some, show

if TYPE_CHECKING:
    from discreet.values.schema import Attribute, Schema

Array = npt.NDArray[Any]

ABSENT, UNKNOWN = -1, -2
"""What stands for a missing value and for one that fits nowhere, until the block is finished."""

EXACT = 2**53
"""Up to here a float64 stands for one integer only."""

REMEMBERED = 2**16
"""How many texts of numbers are remembered with their bins; parsing each anew costs ten times as much."""

NUMBER = r"[+-]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|inf)"
"""The texts that count as numbers, as a pattern that engines know, too."""

_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,18}")
_NOTHING = frozenset({"NAType", "NaTType", "NoneType"})


def read_number(text: str) -> float | None:
    """The number that a text such as '-3', '4.5', '1e6' or 'inf' writes, or None."""
    return float(text) if re.fullmatch(NUMBER, text) else None


def find_whole_levels(attribute: Attribute) -> dict[int, int]:
    """The code of each level that is the decimal text of a 64-bit integer."""
    found = {int(level): code for code, level in enumerate(attribute.levels) if _WHOLE.fullmatch(level)}
    return {value: code for value, code in found.items() if -(2**63) <= value < 2**63}


def encode_column(attribute: Attribute, column: Any, *, first_row: int = 1) -> Array:
    """The code of every value of a column, by the rule of this module; `first_row` numbers the first one."""
    rows, blocks = open_column(f"column {show(attribute.name)}", column)
    return _encode_blocks(attribute, rows, blocks, first_row)


def encode_table(schema: Schema, table: Any, *, first_row: int = 1) -> dict[str, Array]:
    """The codes of every declared attribute of a table; columns that are not declared are ignored."""
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
    return {
        name: _encode_blocks(schema[name], rows, blocks, first_row) for name, (rows, blocks) in opened.items()
    }


def decode_column(
    attribute: Attribute, codes: npt.ArrayLike, *, rng: np.random.Generator | int | None = None
) -> Array:
    """The label of every code; with `rng`, a number drawn uniformly from its bin, NaN where missing."""
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
    drawn = np.full(len(held), np.nan)
    present = held < len(attribute.bins)
    drawn[present] = attribute.bins.draw(held[present], np.random.default_rng(rng))
    return drawn


def _encode_blocks(attribute: Attribute, rows: int, blocks: Any, first_row: int) -> Array:
    found = np.empty(rows, dtype=attribute.dtype)
    match = _Matcher(attribute)
    match_numbers = _number_matcher(attribute)
    listed: Sequence[object] | None = None
    listed_codes = np.empty(0, dtype=np.int32)
    start = 0
    for block in blocks:
        if isinstance(block, Numbers):
            codes = match_numbers(block.values)
            if block.absent is not None:
                codes[block.absent] = ABSENT
        elif isinstance(block, Coded):
            if block.values is not listed:
                listed = block.values
                listed_codes = np.append(_match_each(match, listed), ABSENT)
            codes = listed_codes[block.index]  # position -1 is the last entry, ABSENT
        else:
            codes = _match_each(match, block.values)
        _place(attribute, block, codes, first_row + start)
        found[start : start + len(block)] = codes
        start += len(block)
    return found


def _place(attribute: Attribute, block: Form, codes: Array, row: int) -> None:
    """Turn missing values into the missing level, and refuse the first value that has no level."""
    if not codes.size or codes.min() >= 0:
        return
    absent = codes == ABSENT
    bad = codes == UNKNOWN if attribute.missing is not None else codes < 0
    if bad.any():
        i = int(np.argmax(bad))
        where = f"attribute {show(attribute.name)}, row {row + i:,}"
        raise DataError(f"{where}: {_explain(attribute, None if absent[i] else block.value(i))}")
    codes[absent] = attribute.size - 1


def _explain(attribute: Attribute, value: object) -> str:
    bins = attribute.bins
    allowed = f"allowed are {list_some(attribute.levels)}"
    if value is None:
        return f"the value is missing and the schema declares no missing level; {allowed}"
    if bins is None:
        fraction = isinstance(value, float) and not value.is_integer()
        return (
            f"{show(value)} is not a declared level; {allowed}" + "; declare edges for fractions" * fraction
        )
    if _is_number(value) or (isinstance(value, str) and read_number(value) is not None):
        return f"{show(value)} is beyond the edges; {allowed}"
    return f"{show(value)} is neither a number nor a declared level; {allowed}"


class _Matcher(dict[Any, int]):
    """Values to codes, remembering texts only, because 1, 1.0 and True are the same key of a dictionary."""

    def __init__(self, attribute: Attribute) -> None:
        super().__init__(zip(attribute.levels, range(attribute.size), strict=True))
        self.bins = attribute.bins
        self.setdefault("", ABSENT)
        self.room = len(self) + REMEMBERED

    def __missing__(self, value: object) -> int:
        if isinstance(value, str):
            number = None if self.bins is None else read_number(value)
            code = UNKNOWN if number is None else self._locate(number)
            if len(self) < self.room:
                self[value] = code
            return code
        if type(value).__name__ in _NOTHING:
            return ABSENT
        if isinstance(value, bool | np.bool_):
            text = "true" if value else "false"
            return self.get(text, self.get(text.capitalize(), UNKNOWN))
        if isinstance(value, np.datetime64 | np.timedelta64):
            return ABSENT if np.isnat(value) else UNKNOWN
        return self._match_number(value) if _is_number(value) else UNKNOWN

    def _match_number(self, value: Any) -> int:
        if value != value:
            return ABSENT
        exact = isinstance(value, int | np.integer | Decimal) or abs(value) <= EXACT
        if exact and abs(value) < 2**63 and value == int(value):
            code = self.get(str(int(value)))
            if code is not None:
                return code
        return UNKNOWN if self.bins is None else self._locate(value)

    def _locate(self, value: Any) -> int:
        assert self.bins is not None
        try:
            number = float(value)
        except OverflowError:
            number = float("inf") if value > 0 else float("-inf")
        return self.bins.place(number) if self.bins.holds(number) else UNKNOWN


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


def _number_matcher(attribute: Attribute) -> Callable[[Array], Array]:
    """The vectorised twin of `_Matcher` for arrays of numbers."""
    whole = find_whole_levels(attribute)
    keys = np.array(sorted(whole), dtype=np.int64)
    codes = np.array([whole[int(key)] for key in keys], dtype=np.int32)

    def match_numbers(values: Array) -> Array:
        floating = values.dtype.kind == "f"
        values = values.astype(np.float64) if floating and values.dtype != np.float64 else values
        if attribute.bins is None:
            found = np.full(len(values), UNKNOWN, dtype=np.int32)
        else:
            found = attribute.bins.locate(values).astype(np.int32)
            found[found < 0] = UNKNOWN
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
