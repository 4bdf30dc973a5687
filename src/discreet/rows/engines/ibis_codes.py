"""The rule of `values.schema.columns` for which value is which level, written in Ibis for any engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from discreet.values.errors import DataError
from discreet.values.schema import Attribute
from discreet.values.schema.bins import Bins
from discreet.values.schema.columns import EXACT, NUMBER, find_whole_levels
from discreet.values.text import show

FEW = 64
"""Up to this many levels are compared one by one; more are joined as a small table."""

SEPARATORS = ";~@=!%&_<>,:" + "".join(map(chr, range(0xE000, 0xF900)))
"""Characters that mean themselves in every engine's patterns; one that no level contains joins the levels."""


def encode_columns(label: str, attributes: Sequence[Attribute], table: Any) -> tuple[Any, list[Any]]:
    """The table, joined with levels where there are many, and one code for each column x0, x1, … of it.

    A code is NULL where the rule refuses the value.
    """
    for i, attribute in enumerate(attributes):
        keys = _choose_keys(label, attribute, table[f"x{i}"])
        if len(keys) > FEW:
            levels = _make_levels(attribute, keys, i)
            key = _write_key(table[f"x{i}"]).name(f"key{i}")
            table = table.mutate(key)
            table = table.left_join(levels, table[f"key{i}"] == levels[f"level{i}"])
    codes = []
    for i, attribute in enumerate(attributes):
        looked_up = table[f"code{i}"] if f"code{i}" in table.columns else None
        codes.append(_encode(attribute, table[f"x{i}"], looked_up))
    return table, codes


def _choose_keys(label: str, attribute: Attribute, column: Any) -> dict[Any, int]:
    """The values of a column's type that are levels by themselves, with their codes."""
    kind = column.type()
    if kind.is_string():
        return {level: code for code, level in enumerate(attribute.levels)}
    if kind.is_boolean():
        named = ((True, ("true", "True")), (False, ("false", "False")))
        found = {value: [name for name in names if name in attribute] for value, names in named}
        return {value: attribute.code(names[0]) for value, names in found.items() if names}
    if kind.is_integer() or kind.is_decimal():
        return dict(find_whole_levels(attribute))
    if kind.is_floating():
        return {value: code for value, code in find_whole_levels(attribute).items() if abs(value) <= EXACT}
    raise DataError(
        f"{label}: column {show(attribute.name)} has the type {kind}; allowed are text, numbers and booleans"
    )


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


def _write_key(column: Any) -> Any:
    """The text by which a value is looked up; NULL for a number with a fraction."""
    kind = column.type()
    return column if kind.is_string() else _make_whole(column).cast("string")


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


def _encode(attribute: Attribute, column: Any, looked_up: Any | None) -> Any:
    import ibis

    kind = column.type()
    keys = _choose_keys("", attribute, column)
    parts = []
    if looked_up is not None:
        parts.append(looked_up)
    elif keys:
        parts.append(
            column.cases(*((key, _code(code)) for key, code in keys.items()), else_=ibis.null("int32"))
        )
    if attribute.bins is not None and not kind.is_boolean():
        parts.append(
            _locate(attribute.bins, _read_numbers(column) if kind.is_string() else column.cast("float64"))
        )
    if attribute.missing is not None:
        absent = column.isnull()
        if kind.is_string():
            absent |= column == ""
        elif kind.is_floating():
            absent |= column.isnan()
        parts.append(ibis.ifelse(absent, _code(attribute.size - 1), ibis.null("int32")))
    return ibis.coalesce(*parts, ibis.null("int32")).cast("int32")


def _read_numbers(column: Any) -> Any:
    import ibis

    # "$" also matches before a last line break in some engines, hence the second pattern.
    numeric = column.re_search(f"^({NUMBER})$") & ~column.re_search("[^-+.0-9eEinf]")
    return ibis.ifelse(numeric, column, ibis.null("string")).cast("float64")


def _locate(bins: Bins, number: Any) -> Any:
    import ibis

    def bisect(low: int, high: int) -> Any:
        if low == high:
            return _code(low)
        middle = (low + high + 1) // 2
        edge = _edge(bins.edges[middle])
        below = number < edge if bins.closed == "left" else number <= edge
        return ibis.ifelse(below, bisect(low, middle - 1), bisect(middle, high))

    inside = (number >= _edge(bins.edges[0])) & (number <= _edge(bins.edges[-1]))
    return ibis.ifelse(inside, bisect(0, len(bins) - 1), ibis.null("int32"))


def _code(code: int) -> Any:
    import ibis

    return ibis.literal(code, type="int32")


def _edge(value: float) -> Any:
    import ibis

    # Written as text, because some engines read 0.1 as a decimal and round it once more on the way to a double.
    return ibis.literal(repr(value)).cast("float64")
