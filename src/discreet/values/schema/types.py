"""The type of a column: what its values are, so that synthetic ones are of the same type.

Values on a grid (whole numbers, decimals with so many places, days, seconds) are counted in steps of it: a bin then
holds finitely many of them, and one is drawn as a whole number of steps.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from discreet.values.errors import SchemaError
from discreet.values.schema.bins import Bins
from discreet.values.schema.dates import DAY, read_text
from discreet.values.text import list_some, require_label, show

if TYPE_CHECKING:
    from discreet.values.schema import Attribute

Type = Literal["text", "integer", "decimal", "boolean", "date", "datetime"]
TYPES: tuple[str, ...] = get_args(Type)

MAX_DECIMALS = 12
_PLAIN = r"(?:[0-9]{1,60}(?:\.[0-9]{0,60})?|\.[0-9]{1,60})(?:[eE][+-]?(?:[01]?[0-9]{1,2}|2[0-2][0-9]))?"
_LARGE = r"[1-9](?:\.[0-9]{0,60})?[eE](?:[+-]?(?:2[3-9][0-9]|30[0-7])|-(?:30[89]|31[0-9]|32[0-3]))"
_LEAST = r"[5-9](?:\.[0-9]{0,60})?[eE]-324"
NUMBER = rf"[+-]?(?:{_PLAIN}|{_LARGE}|{_LEAST}|inf)"
"""The texts that count as numbers, as a pattern that engines know, too.

At most 60 digits on each side of the point, and powers of ten within what a float64 holds: all engines read such a text
as the same number, and none overflows, where some would end the query.
"""

_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")


def read_number(text: str) -> float | None:
    """The number that a text such as '-3', '4.5', '1e6' or 'inf' writes, or None."""
    return float(text) if re.fullmatch(NUMBER, text) else None


def infer_type(levels: Sequence[str], binned: bool) -> Type:
    """The type of a column that declares none: a number in bins, else what all its levels write."""
    if binned:
        return "decimal"
    if levels and all(_WHOLE.fullmatch(level) for level in levels):
        return "integer"
    if set(levels) in ({"true", "false"}, {"True", "False"}):
        return "boolean"
    return "text"


def is_whole(text: str) -> bool:
    """Whether a text is how a whole number is written: digits, without a plus or leading zeros."""
    return bool(_WHOLE.fullmatch(text))


def find_step(attribute: Attribute) -> Fraction | None:
    """The grid of a column's values, in its own count; None for numbers without a stated precision and for text."""
    if attribute.type in ("integer", "date", "datetime"):
        return Fraction(1)
    if attribute.type == "decimal" and attribute.decimals is not None:
        return Fraction(1, 10**attribute.decimals)
    return None


def _require_type(attribute: Attribute) -> None:
    """Refuse a type that the levels or bins do not have, or bins in which it has no value."""
    found, decimals = attribute.type, attribute.decimals
    if found not in TYPES:
        raise SchemaError(f"type {show(found)}; allowed are {', '.join(TYPES)}")
    if decimals is not None:
        whole = isinstance(decimals, int) and not isinstance(decimals, bool)
        if found != "decimal" or not whole or not 0 <= decimals <= MAX_DECIMALS:
            raise SchemaError(
                f"decimals {show(decimals)} of type {found}; allowed are 0 to {MAX_DECIMALS} of type decimal"
            )
    if (found in ("date", "datetime")) != (attribute.dates is not None):
        raise SchemaError(f"type {found}: dates need edges that are dates, or `by`, `from` and `to`")
    if attribute.bins is not None:
        if found in ("text", "boolean"):
            raise SchemaError(f"type {found} has no bins; allowed are integer, decimal, date and datetime")
        step = find_step(attribute)
        if step is not None:
            attribute.bins.count_steps(step)
        for point in attribute.bins.points:
            if found == "integer" and not point.is_integer():
                raise SchemaError(f"type integer, but point {point:g} is not a whole number")
        return
    numbers: dict[Fraction, str] = {}
    for level in attribute.values:
        if found == "integer" and not is_whole(level):
            raise SchemaError(f"type integer, but level {show(level)} is not a whole number")
        if found == "decimal" and (not re.fullmatch(NUMBER, level) or "inf" in level):
            raise SchemaError(f"type decimal, but level {show(level)} is not a finite number")
        if found == "decimal" and numbers.setdefault(Fraction(level), level) != level:
            raise SchemaError(
                f"levels {show(numbers[Fraction(level)])} and {show(level)} are one number; declare one of them"
            )
        if found == "boolean" and level not in ("true", "false", "True", "False"):
            raise SchemaError(f"type boolean, but level {show(level)} is neither true nor false")


Ends = tuple[npt.NDArray[Any], npt.NDArray[Any]]


def find_ranges(attribute: Attribute) -> Ends:
    """The least and the greatest value of every level but the missing and the other one, as far as they are drawn.

    On a grid, in steps of it; numbers without a precision as they are; ordered levels by their places.
    """
    step = find_step(attribute)
    if attribute.bins is None:
        if attribute.type in ("text", "boolean"):
            places = np.arange(len(attribute.values))
            return places, places
        found = [Fraction(level) / step if step else float(level) for level in attribute.values]
        numbers = np.array([math.floor(value) if step else value for value in found])
        return numbers, numbers
    if step is not None:
        return attribute.bins.count_steps(step)
    edges = np.asarray(attribute.bins.drawn)
    low, high = edges[:-1], edges[1:]
    if attribute.bins.closed == "left":
        high = np.nextafter(high, -math.inf)
    else:
        low = np.nextafter(low, math.inf)
    codes = np.arange(len(low))
    return attribute.bins.pin(codes, low), attribute.bins.pin(codes, high)


def read_value(attribute: Attribute, text: str) -> float | int | None:
    """A value of the attribute that a person wrote, in the count of `find_ranges`; None if it is none."""
    if attribute.dates is not None:
        seconds = None if attribute.dates.by == "weekday" else read_text(text, None)
        return seconds if seconds is None or attribute.dates.moments else seconds // DAY
    if attribute.type in ("text", "boolean"):
        return attribute.code(text) if attribute.ordered and text in attribute.values else None
    number = read_number(text)
    step = find_step(attribute)
    if number is None or not math.isfinite(number) or step is None:
        return number
    return float(Fraction(text) / step)


def require_consistent(attribute: Attribute, most: int) -> None:
    """Refuse an attribute whose levels, bins, type, taxonomy or reading do not fit each other."""
    for level in attribute.levels:
        require_label("level", level)
    if len(set(attribute.levels)) != attribute.size:
        twice = next(level for level, times in Counter(attribute.levels).items() if times > 1)
        raise SchemaError(f"level {show(twice)} is declared twice")
    if not 2 <= attribute.size <= most:
        raise SchemaError(f"{attribute.size} levels; at least 2 and at most {most:,} are allowed")
    missing, other = attribute.missing, attribute.other
    if missing is not None and attribute.levels[-1] != missing:
        raise SchemaError(
            f"the missing level {show(missing)} must be the last level, not {show(attribute.levels[-1])}"
        )
    if other is not None and attribute.levels[len(attribute.values)] != other:
        raise SchemaError(f"the other level {show(other)} must come after all levels but the missing one")
    if not attribute.values:
        raise SchemaError("no levels but those for missing and other values; at least 1 is needed")
    if attribute.bins is not None:
        _require_bins(attribute, attribute.bins)
    _require_type(attribute)
    if attribute.taxonomy is not None:
        inside = tuple(level for level in attribute.levels if level != other)
        attribute.taxonomy.require_levels(
            inside if other not in attribute.taxonomy.leaves else attribute.levels, missing
        )
    _require_reading(attribute)


def _require_bins(attribute: Attribute, bins: Bins) -> None:
    labels = bins.labels if attribute.dates is None else attribute.dates.label(bins)
    if attribute.values != labels:
        raise SchemaError(
            f"levels {list_some(attribute.levels)} are not the labels of its bins, {list_some(labels)}"
        )
    if not attribute.ordered:
        raise SchemaError("bins are ordered; leave `ordered` true")
    if attribute.dates is not None:
        return
    for what, label in (("missing", attribute.missing), ("other", attribute.other)):
        value = None if label is None else read_number(label)
        if value is not None and bins.holds(value):
            raise SchemaError(
                f"the {what} level {show(label)} is a number inside the bins; "
                f"it must lie outside {show(bins.edges[0])} to {show(bins.edges[-1])}, or not be a number"
            )


def _require_reading(attribute: Attribute) -> None:
    reading = attribute.reading
    for alias, level in reading.aliases:
        if level not in attribute.levels:
            raise SchemaError(
                f"alias {show(alias)} stands for {show(level)}, which is not a level; "
                f"allowed are {list_some(attribute.levels)}"
            )
    spelt: dict[str, str] = {}
    null = "a missing value"
    meant = [(level, level) for level in attribute.levels]
    for text, level in (*meant, *reading.aliases, *((text, null) for text in reading.nulls)):
        level = null if level == attribute.missing else level
        if spelt.setdefault(reading.fold(text), level) != level:
            raise SchemaError(
                f"{show(text)} would be read as {show(spelt[reading.fold(text)])} and as {show(level)}; "
                "change a level, an alias or what is ignored"
            )
    outside = reading.outside
    if attribute.other is not None and outside != "refuse":
        raise SchemaError(
            f"other level {show(attribute.other)} and outside {show(outside)} contradict each other; drop one"
        )
    if outside == "missing" and attribute.missing is None:
        raise SchemaError("outside 'missing' needs a missing level; declare `missing`")
    if outside == "nearest" and attribute.bins is None:
        raise SchemaError(
            "outside 'nearest' needs edges; declare `other`, or outside 'missing' or 'leave out'"
        )
    if reading.order is not None and attribute.dates is None:
        raise SchemaError("`order` is about dates; allowed for the types date and datetime")
