"""The rule of `values.schema.columns` for which value is which level, written in the SQL of DuckDB."""

from __future__ import annotations

from typing import Literal

from discreet.rows.readers.sources import quote_text
from discreet.values.errors import DataError
from discreet.values.schema import Attribute
from discreet.values.schema.bins import Bins
from discreet.values.schema.columns import ABSENT, EXACT, find_whole_levels, spell_levels
from discreet.values.schema.dates import DAY, spell_dates
from discreet.values.schema.reading import BLANKS, LOWER, UPPER
from discreet.values.schema.types import NUMBER
from discreet.values.text import show

Kind = Literal["text", "integer", "decimal", "float", "boolean", "date", "moment"]

LISTED_SPAN = 2**12
"""Up to this many consecutive integers, a level is looked up in a list; beyond, by its text."""

_INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")


def classify_type(label: str, name: str, declared: str) -> Kind:
    """What a DuckDB type holds, as far as the rule goes; blobs and nested values have no level."""
    if declared == "VARCHAR" or declared.startswith("ENUM"):
        return "text"
    if declared.strip('"') == "NULL" or declared.removeprefix("U") in _INTEGERS:
        return "integer"
    if declared in ("FLOAT", "DOUBLE"):
        return "float"
    if declared.startswith("DECIMAL"):
        return "decimal"
    if declared == "BOOLEAN":
        return "boolean"
    if declared == "DATE":
        return "date"
    if declared.startswith("TIMESTAMP"):
        return "moment"
    raise DataError(
        f"{label}: column {show(name)} has the type {declared}; allowed are text, numbers, booleans and dates"
    )


def require_kind(label: str, attribute: Attribute, kind: Kind) -> None:
    """Refuse a column of dates for an attribute without."""
    if kind in ("date", "moment") and attribute.dates is None:
        wanted = "date" if kind == "date" else "datetime"
        raise DataError(
            f'{label}: column {show(attribute.name)} holds dates; declare type = "{wanted}" with edges or `by`'
        )


def write_count(attribute: Attribute, column: str, kind: Kind) -> str:
    """What the bins of dates are asked for: days, seconds or weekdays, or NULL where the value is no date."""
    assert attribute.dates is not None
    if kind == "date":
        seconds = (
            f"CASE WHEN isfinite({column}) THEN CAST({column} - DATE '1970-01-01' AS BIGINT) * {DAY} END"
        )
    elif kind == "moment":
        small = f"epoch_us({column})"
        # Rounded down, where division rounds towards zero.
        floor = f"({small} - ({small} % 1000000 + 1000000) % 1000000) // 1000000"
        seconds = f"CASE WHEN isfinite({column}) THEN {floor} END"
    elif kind == "text":
        seconds = _write_text_seconds(attribute, _fold(attribute, column))
    else:
        return "CAST(NULL AS BIGINT)"
    days = f"CAST(floor(({seconds}) / {DAY}.0) AS BIGINT)"
    if attribute.dates.by == "weekday":
        return f"(({days} + 3) % 7 + 7) % 7"
    return seconds if attribute.dates.moments else days


def _write_text_seconds(attribute: Attribute, text: str) -> str:
    found = []
    for pattern, places in spell_dates(attribute.reading.order):
        names = ["", "", ""]
        for name, place in zip(("y", "m", "d"), places, strict=True):
            names[place] = name
        listed = ", ".join(quote_text(name) for name in (*names, "h", "i", "s", "z"))
        found.append(f"regexp_extract({text}, {quote_text(f'^(?:{pattern})$')}, [{listed}])")
    parts = "COALESCE(" + ", ".join(f"CASE WHEN ({one}).y <> '' THEN {one} END" for one in found) + ")"

    def clock(name: str, most: int) -> tuple[str, str]:
        value = f"COALESCE(TRY_CAST(p.{name} AS INTEGER), 0)"
        return value, f"{value} <= {most}"

    (hour, fine_hour), (minute, fine_minute), (second, fine_second) = (
        clock("h", 23),
        clock("i", 59),
        clock("s", 59),
    )
    day = "TRY_CAST(p.y || '-' || p.m || '-' || p.d AS DATE)"
    sign = "CASE WHEN p.z[1] = '+' THEN -60 WHEN p.z[1] = '-' THEN 60 ELSE 0 END"
    digits = "replace(p.z[2:], ':', '')"
    shift = (
        f"{sign} * (60 * COALESCE(TRY_CAST({digits}[1:2] AS INTEGER), 0) "
        f"+ COALESCE(TRY_CAST({digits}[3:4] AS INTEGER), 0))"
    )
    seconds = f"CAST({day} - DATE '1970-01-01' AS BIGINT) * {DAY} + {hour} * 3600 + {minute} * 60 + {second} + {shift}"
    fine = f"p.y <> '0000' AND {fine_hour} AND {fine_minute} AND {fine_second}"
    return f"list_transform([{parts}], lambda p: CASE WHEN {fine} THEN {seconds} END)[1]"


def write_code(attribute: Attribute, column: str, kind: Kind, count: str = "") -> str:
    """The code of a column's value, or NULL where it is refused or leaves its record out; names are ours.

    `count` is where what `write_count` gives can be read, for an attribute of dates.
    """
    nothing, whole = attribute.absent_code, "UTINYINT" if attribute.size <= 256 else "USMALLINT"
    binned = attribute.bins is not None
    if kind == "text" and not binned and (nothing is not None or attribute.outside_code is None):
        return f"CAST({_write_level(attribute, column)} AS {whole})"
    absent = [f"{column} IS NULL"]
    if kind == "text":
        parts, nulls = _write_text_code(attribute, _fold(attribute, column))
    elif kind == "boolean":
        parts, nulls = _write_boolean_code(attribute, column), []
    elif kind in ("date", "moment"):
        parts, nulls = [], []
    else:
        parts, nulls = _write_number_code(attribute, column, kind)
        if kind == "float":
            absent.append(f"isnan({column})")
    if attribute.dates is not None and attribute.bins is not None:
        parts.append(_write_bin(attribute.bins, count, attribute.reading.outside == "nearest"))
    if attribute.outside_code is not None:
        parts.append(str(attribute.outside_code))
    code = f"COALESCE({', '.join(parts)})" if len(parts) > 1 else (parts or ["NULL"])[0]
    if nothing is None and attribute.outside_code is None and not (binned and nulls):
        return f"CAST({code} AS {whole})"  # what is absent is found in no part, so NULL already
    return f"CAST(CASE WHEN {' OR '.join(absent + nulls)} THEN {_write_constant(nothing)} ELSE {code} END AS {whole})"


def _write_level(attribute: Attribute, column: str) -> str:
    """The code of a text among levels and nothing else: one look-up, and only for what it does not find one more test.

    A case with branches would cost every row twice as much.
    """
    nothing = attribute.absent_code
    texts = {
        spelling: nothing if code == ABSENT else code for spelling, code in spell_levels(attribute).items()
    }
    known = {spelling: code for spelling, code in texts.items() if code is not None}
    found = _look_up_text(known, _fold(attribute, column))
    if nothing is None:
        return found
    other = _write_constant(attribute.outside_code)
    return f"COALESCE({found}, CASE WHEN {column} IS NULL THEN {nothing} ELSE {other} END)"


def _write_constant(code: int | None) -> str:
    return "NULL" if code is None else str(code)


def _fold(attribute: Attribute, column: str) -> str:
    """The text of a column without what is ignored of it."""
    text = f"CAST({column} AS VARCHAR)"
    if "blanks" in attribute.reading.ignore:
        text = f"trim({text}, {' || '.join(f'chr({ord(blank)})' for blank in BLANKS)})"
    if "case" in attribute.reading.ignore:
        text = f"translate({text}, {quote_text(UPPER)}, {quote_text(LOWER)})"
    return text


def _write_text_code(attribute: Attribute, text: str) -> tuple[list[str], list[str]]:
    texts = spell_levels(attribute)
    nulls = [spelling for spelling, code in texts.items() if code == ABSENT]
    absent = [f"{text} IN ({', '.join(map(quote_text, nulls))})"] if nulls else []
    parts = [_look_up_text({spelling: code for spelling, code in texts.items() if code != ABSENT}, text)]
    if attribute.bins is not None and attribute.dates is None:
        nearest = attribute.reading.outside == "nearest"
        located = _write_bin(attribute.bins, f"TRY_CAST({text} AS DOUBLE)", nearest)
        parts.append(f"CASE WHEN regexp_full_match({text}, {quote_text(NUMBER)}) THEN {located} END")
    return parts, absent


def _write_boolean_code(attribute: Attribute, column: str) -> list[str]:
    parts = []
    texts, fold = spell_levels(attribute), attribute.reading.fold
    for condition, names in ((column, ("true", "True")), (f"NOT {column}", ("false", "False"))):
        code = next((texts[fold(name)] for name in names if fold(name) in texts), None)
        if code is not None:
            shown = _write_constant(attribute.absent_code if code == ABSENT else code)
            parts.append(f"CASE WHEN {condition} THEN {shown} END")
    return parts


def _write_number_code(attribute: Attribute, column: str, kind: Kind) -> tuple[list[str], list[str]]:
    number = f"CAST({column} AS DOUBLE)"
    if kind == "integer":
        whole = f"TRY_CAST({column} AS BIGINT)"
    elif kind == "decimal":
        whole = f"CASE WHEN {column} = trunc({column}) THEN TRY_CAST({column} AS BIGINT) END"
    else:  # NaN equals itself in SQL, but is not below any limit
        exact = f"{number} = trunc({number}) AND abs({number}) <= {EXACT}"
        whole = f"CASE WHEN {exact} THEN CAST({number} AS BIGINT) END"
    parts, absent = [], []
    found = find_whole_levels(attribute)
    nulls = [value for value, code in found.items() if code == ABSENT]
    if nulls:
        absent.append(f"COALESCE({whole} IN ({', '.join(map(str, nulls))}), false)")
    levels = {value: code for value, code in found.items() if code != ABSENT}
    if levels:
        low, high = min(levels), max(levels)
        if high - low < LISTED_SPAN:
            codes = ", ".join(str(levels.get(value, "NULL")) for value in range(low, high + 1))
            listed = f"list_extract(CAST([{codes}] AS USMALLINT[]), {whole} - {low} + 1)"
            parts.append(f"CASE WHEN {whole} BETWEEN {low} AND {high} THEN {listed} END")
        else:
            texts = {str(value): code for value, code in levels.items()}
            parts.append(_look_up_text(texts, f"CAST({whole} AS VARCHAR)"))
    if attribute.bins is not None and attribute.dates is None:
        parts.append(_write_bin(attribute.bins, number, attribute.reading.outside == "nearest"))
    return parts, absent


def _look_up_text(texts: dict[str, int], text: str) -> str:
    # An enumeration is hashed once; a CASE would compare each value with each level.
    texts = dict(sorted(texts.items(), key=lambda found: found[1]))
    place = f"enum_code(TRY_CAST({text} AS ENUM({', '.join(map(quote_text, texts))})))"
    if list(texts.values()) == list(range(len(texts))):
        return place
    codes = ", ".join(map(str, texts.values()))
    return f"list_extract(CAST([{codes}] AS USMALLINT[]), CAST({place} AS BIGINT) + 1)"


def _write_bin(bins: Bins, number: str, nearest: bool) -> str:
    below = "<" if bins.closed == "left" else "<="

    def bisect(low: int, high: int) -> str:
        if low == high:
            return str(low)
        middle = (low + high + 1) // 2
        edge = _write_double(bins.edges[middle])
        left, right = bisect(low, middle - 1), bisect(middle, high)
        return f"CASE WHEN {number} {below} {edge} THEN {left} ELSE {right} END"

    # NaN, which SQL sorts above infinity, is inside no edges.
    inside = f"{number} >= {_write_double(bins.edges[0])} AND {number} <= {_write_double(bins.edges[-1])}"
    if nearest:
        inside = f"{number} IS NOT NULL AND NOT isnan(CAST({number} AS DOUBLE))"
    return f"CASE WHEN {inside} THEN {bisect(0, len(bins) - 1)} END"


def _write_double(value: float) -> str:
    return f"CAST({quote_text(repr(value))} AS DOUBLE)"
