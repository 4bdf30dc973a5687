"""The rule of `vocabulary.columns` for which value is which level, written as DuckDB expressions."""

from __future__ import annotations

import re
from typing import Literal

from discreet.values.errors import DataError
from discreet.values.schema import Attribute
from discreet.values.schema.bins import Bins
from discreet.values.schema.columns import EXACT
from discreet.values.wording import show

Kind = Literal["text", "integer", "decimal", "float", "boolean"]

LISTED_SPAN = 2**12
"""Up to this many consecutive integers, a level is looked up in a list; beyond, by its text."""

NUMBER = r"[+-]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|inf)"
"""The texts that `vocabulary.columns.read_number` takes for numbers, as a pattern for engines."""

_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,18}")
_INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")


def classify_type(label: str, name: str, declared: str) -> Kind:
    """What a DuckDB type holds, as far as the rule goes; dates, blobs and nested values have no level."""
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
    raise DataError(
        f"{label}: column {show(name)} has the type {declared}; allowed are text, numbers and booleans"
    )


def write_code(attribute: Attribute, column: str, kind: Kind) -> str:
    """The code of a column's value, or NULL where the rule refuses it; `column` is a name of ours."""
    if kind == "text":
        parts = _write_text_code(attribute, f"CAST({column} AS VARCHAR)")
    elif kind == "boolean":
        parts = _write_boolean_code(attribute, column)
    else:
        parts = _write_number_code(attribute, column, kind)
    if attribute.missing is not None:
        absent = f"{column} IS NULL"
        if kind == "text":
            absent += f" OR CAST({column} AS VARCHAR) = ''"
        elif kind == "float":
            absent += f" OR isnan({column})"
        parts.append(f"CASE WHEN {absent} THEN {attribute.size - 1} END")
    whole = "UTINYINT" if attribute.size <= 256 else "USMALLINT"
    return f"CAST(COALESCE({', '.join([*parts, 'NULL'])}) AS {whole})"


def find_whole_levels(attribute: Attribute) -> dict[int, int]:
    """The code of each level that is the decimal text of a 64-bit integer."""
    found = {int(level): code for code, level in enumerate(attribute.levels) if _WHOLE.fullmatch(level)}
    return {value: code for value, code in found.items() if -(2**63) <= value < 2**63}


def quote_text(text: str) -> str:
    """A text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def quote_name(name: str) -> str:
    """A name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def _write_text_code(attribute: Attribute, text: str) -> list[str]:
    parts = [_look_up_text(attribute.levels, text)]
    if attribute.bins is not None:
        located = _write_bin(attribute.bins, f"TRY_CAST({text} AS DOUBLE)")
        parts.append(f"CASE WHEN regexp_full_match({text}, {quote_text(NUMBER)}) THEN {located} END")
    return parts


def _write_boolean_code(attribute: Attribute, column: str) -> list[str]:
    parts = []
    for condition, names in ((column, ("true", "True")), (f"NOT {column}", ("false", "False"))):
        level = next((name for name in names if name in attribute), None)
        if level is not None:
            parts.append(f"CASE WHEN {condition} THEN {attribute.code(level)} END")
    return parts


def _write_number_code(attribute: Attribute, column: str, kind: Kind) -> list[str]:
    number = f"CAST({column} AS DOUBLE)"
    if kind == "integer":
        whole = f"TRY_CAST({column} AS BIGINT)"
    elif kind == "decimal":
        whole = f"CASE WHEN {column} = trunc({column}) THEN TRY_CAST({column} AS BIGINT) END"
    else:  # NaN equals itself in SQL, but is not below any limit
        exact = f"{number} = trunc({number}) AND abs({number}) <= {EXACT}"
        whole = f"CASE WHEN {exact} THEN CAST({number} AS BIGINT) END"
    parts = []
    levels = find_whole_levels(attribute)
    if levels:
        low, high = min(levels), max(levels)
        if high - low < LISTED_SPAN:
            codes = ", ".join(str(levels.get(value, "NULL")) for value in range(low, high + 1))
            listed = f"list_extract(CAST([{codes}] AS USMALLINT[]), {whole} - {low} + 1)"
            parts.append(f"CASE WHEN {whole} BETWEEN {low} AND {high} THEN {listed} END")
        else:
            parts.append(_look_up_text(attribute.levels, f"CAST({whole} AS VARCHAR)"))
    if attribute.bins is not None:
        parts.append(_write_bin(attribute.bins, number))
    return parts


def _look_up_text(levels: tuple[str, ...], text: str) -> str:
    # An enumeration is hashed once; a CASE would compare each value with each level.
    return f"enum_code(TRY_CAST({text} AS ENUM({', '.join(map(quote_text, levels))})))"


def _write_bin(bins: Bins, number: str) -> str:
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
    return f"CASE WHEN {inside} THEN {bisect(0, len(bins) - 1)} END"


def _write_double(value: float) -> str:
    return f"CAST({quote_text(repr(value))} AS DOUBLE)"
