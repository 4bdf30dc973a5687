"""The rule of `values.schema.columns` for which value is which level, written in Ibis for any engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from discreet.rows.engines.ibis_dates import count_dates
from discreet.values.errors import DataError
from discreet.values.schema import Attribute
from discreet.values.schema.bins import Bins
from discreet.values.schema.columns import ABSENT, EXACT, find_whole_levels, spell_levels
from discreet.values.schema.reading import LOWER, UPPER
from discreet.values.schema.types import NUMBER
from discreet.values.text import show

FEW = 64
"""Up to this many levels are compared one by one; more are joined as a small table."""

SEPARATORS = ";~@=!%&_<>,:" + "".join(map(chr, range(0xE000, 0xF900)))
"""Characters that mean themselves in every engine's patterns; one that no level contains joins the levels."""


def encode_columns(label: str, attributes: Sequence[Attribute], table: Any) -> tuple[Any, list[Any]]:
    """The table, joined with levels where there are many, and one code for each column x0, x1, … of it.

    A code is NULL where the value is refused or leaves its record out.
    """
    for i, attribute in enumerate(attributes):
        require_kind(label, attribute, table[f"x{i}"])
    folded = {i: _fold(attribute, table[f"x{i}"]) for i, attribute in enumerate(attributes)}
    table = count_dates(list(attributes), folded, table)
    for i, attribute in enumerate(attributes):
        keys = _choose_keys(attribute, table[f"x{i}"])
        if len(keys) > FEW:
            levels = _make_levels(attribute, keys, i)
            key = _write_key(attribute, table[f"x{i}"]).name(f"key{i}")
            table = table.mutate(key)
            table = table.left_join(levels, table[f"key{i}"] == levels[f"level{i}"])
    codes = []
    for i, attribute in enumerate(attributes):
        looked_up = table[f"code{i}"] if f"code{i}" in table.columns else None
        count = table[f"d{i}"] if f"d{i}" in table.columns else None
        codes.append(_encode(attribute, table[f"x{i}"], looked_up, count))
    return table, codes


def require_kind(label: str, attribute: Attribute, column: Any) -> None:
    """Refuse a column of a type that has no levels, or of dates for an attribute without."""
    kind = column.type()
    if kind.is_date() or kind.is_timestamp():
        if attribute.dates is None:
            wanted = "date" if kind.is_date() else "datetime"
            raise DataError(
                f'{label}: column {show(attribute.name)} holds dates; declare type = "{wanted}" with edges or `by`'
            )
    elif not (kind.is_string() or kind.is_boolean() or kind.is_numeric()):
        raise DataError(
            f"{label}: column {show(attribute.name)} has the type {kind}; "
            "allowed are text, numbers, booleans and dates"
        )


def _fold(attribute: Attribute, column: Any) -> Any:
    """The text of a column without what is ignored of it."""
    if not column.type().is_string():
        return column
    if "blanks" in attribute.reading.ignore:
        column = column.strip()
    return column.translate(UPPER, LOWER) if "case" in attribute.reading.ignore else column


def _choose_keys(attribute: Attribute, column: Any, *, absent: bool = False) -> dict[Any, int]:
    """The values of a column's type that are levels by themselves, with their codes; or those that mean missing."""
    kind = column.type()
    texts = spell_levels(attribute)
    found: dict[Any, int] = {}
    if kind.is_string():
        found = dict(texts)
    elif kind.is_boolean():
        fold = attribute.reading.fold
        for value, names in ((True, ("true", "True")), (False, ("false", "False"))):
            codes = [texts[fold(name)] for name in names if fold(name) in texts]
            found |= {value: codes[0]} if codes else {}
    elif kind.is_integer() or kind.is_decimal():
        found = dict(find_whole_levels(attribute))
    elif kind.is_floating():
        whole = find_whole_levels(attribute)
        found = {value: code for value, code in whole.items() if abs(value) <= EXACT}
    return {value: code for value, code in found.items() if (code == ABSENT) == absent}


def _make_levels(attribute: Attribute, keys: Mapping[Any, int], i: int) -> Any:
    """A table of the keys as text and their codes, made inside the engine from one literal."""
    import ibis

    texts = [str(key) for key in keys]
    together = "".join(texts)
    separator = next((char for char in SEPARATORS if char not in together), None)
    if separator is None:
        raise DataError(
            f"attribute {show(attribute.name)}: its levels use every character that could separate them"
        )
    listed = ibis.literal(separator.join(texts)).split(separator)
    codes = ibis.literal(separator.join(map(str, keys.values()))).split(separator)
    rows = ibis.range(0, len(texts)).unnest().name("place").as_table()
    code = codes[rows["place"]].cast("int32")
    return rows.select(**{f"level{i}": listed[rows["place"]], f"code{i}": code})


def _write_key(attribute: Attribute, column: Any) -> Any:
    """The text by which a value is looked up; NULL for a number with a fraction."""
    kind = column.type()
    return _fold(attribute, column) if kind.is_string() else _make_whole(column).cast("string")


def _make_whole(column: Any) -> Any:
    import ibis

    kind = column.type()
    if kind.is_integer():
        return column
    limit = ibis.literal(EXACT if kind.is_floating() else 2**63 - 1)
    # NaN sorts above all.
    small = ibis.ifelse((column <= limit) & (column >= -limit), column, ibis.null(kind))
    whole = small.cast("int64")
    return ibis.ifelse(whole == small, whole, ibis.null("int64"))


def _encode(attribute: Attribute, column: Any, looked_up: Any | None, count: Any | None) -> Any:
    import ibis

    kind = column.type()
    text = _fold(attribute, column)
    nothing = ibis.null("int32")
    nearest = attribute.reading.outside == "nearest"
    keys = _choose_keys(attribute, column)
    parts = []
    if looked_up is not None:
        parts.append(looked_up)
    elif keys:
        parts.append(text.cases(*((key, _code(code)) for key, code in keys.items()), else_=nothing))
    if attribute.bins is not None and count is not None:
        parts.append(_locate(attribute.bins, count.cast("float64"), nearest))
    elif attribute.bins is not None and (kind.is_string() or kind.is_numeric()):
        number = _read_numbers(text) if kind.is_string() else column.cast("float64")
        parts.append(_locate(attribute.bins, number, nearest))
    if attribute.outside_code is not None:
        parts.append(_code(attribute.outside_code))
    absent = column.isnull()
    nulls = _choose_keys(attribute, column, absent=True)
    if nulls:
        absent |= text.isin(list(nulls)).fill_null(False)
    if kind.is_floating():
        absent |= column.isnan().fill_null(False)
    found = (ibis.coalesce(*parts) if len(parts) > 1 else parts[0] if parts else nothing).cast("int32")
    strict = attribute.absent_code is None and attribute.outside_code is None
    if strict and not (nulls and attribute.bins is not None):
        return found  # what is absent is found in no part, so NULL already
    missing = nothing if attribute.absent_code is None else _code(attribute.absent_code)
    return ibis.ifelse(absent, missing, found).cast("int32")


def _read_numbers(column: Any) -> Any:
    import ibis

    # "$" also matches before a last line break in some engines, hence the second pattern.
    numeric = column.re_search(f"^({NUMBER})$") & ~column.re_search("[^-+.0-9eEinf]")
    return ibis.ifelse(numeric, column, ibis.null("string")).cast("float64")


def _locate(bins: Bins, number: Any, nearest: bool) -> Any:
    import ibis

    def bisect(low: int, high: int) -> Any:
        if low == high:
            return _code(low)
        middle = (low + high + 1) // 2
        edge = _edge(bins.edges[middle])
        below = number < edge if bins.closed == "left" else number <= edge
        return ibis.ifelse(below, bisect(low, middle - 1), bisect(middle, high))

    # NaN, which some engines sort above all, is inside no edges, and has no nearest one.
    inside = (number >= _edge(bins.edges[0])) & (number <= _edge(bins.edges[-1]))
    if nearest:
        inside = number.notnull() & ~number.isnan()
    return ibis.ifelse(inside, bisect(0, len(bins) - 1), ibis.null("int32"))


def _code(code: int) -> Any:
    import ibis

    return ibis.literal(code, type="int32")


def _edge(value: float) -> Any:
    import ibis

    # Written as text, because some engines read 0.1 as a decimal and round it once more on the way to a double.
    return ibis.literal(repr(value)).cast("float64")
