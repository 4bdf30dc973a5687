"""The rule of `vocabulary.columns` for which value is which level, written as Ibis expressions for any engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from discreet.privacy.counts.encoding import NUMBER, find_whole_levels
from discreet.vocabulary.bins import Bins
from discreet.vocabulary.columns import EXACT
from discreet.vocabulary.errors import DataError
from discreet.vocabulary.schema import Attribute
from discreet.vocabulary.wording import show

FEW = 64
"""Up to this many levels are compared one by one; more are looked up in an array."""

LARGEST = 2**63 - 1


def encode_expression(label: str, attribute: Attribute, column: Any) -> Any:
    """The code of a column's value, or NULL where the rule refuses it."""
    import ibis

    kind = column.type()
    parts: list[Any] = []
    if kind.is_string():
        parts, absent = _encode_text(attribute, column), column.isnull() | (column == "")
    elif kind.is_boolean():
        parts, absent = _encode_boolean(attribute, column), column.isnull()
    elif kind.is_floating():
        number = column.cast("float64")
        parts, absent = _encode_float(attribute, number), column.isnull() | number.isnan()
    elif kind.is_integer() or kind.is_decimal():
        parts, absent = _encode_exact(attribute, column), column.isnull()
    else:
        raise DataError(
            f"{label}: column {show(attribute.name)} has the type {kind}; allowed are text, numbers and booleans"
        )
    if attribute.missing is not None:
        parts.append(ibis.ifelse(absent, _code(attribute.size - 1), ibis.null("int32")))
    return ibis.coalesce(*parts, ibis.null("int32")).cast("int32")


def _encode_text(attribute: Attribute, column: Any) -> list[Any]:
    import ibis

    parts = [_look_up(column, {level: code for code, level in enumerate(attribute.levels)})]
    if attribute.bins is not None:
        # "$" also matches before a last line break in some engines, hence the second pattern.
        numeric = column.re_search(f"^({NUMBER})$") & ~column.re_search("[^-+.0-9eEinf]")
        number = ibis.ifelse(numeric, column, ibis.null("string")).cast("float64")
        parts.append(_locate(attribute.bins, number))
    return parts


def _encode_boolean(attribute: Attribute, column: Any) -> list[Any]:
    import ibis

    parts = []
    for condition, names in ((column, ("true", "True")), (~column, ("false", "False"))):
        level = next((name for name in names if name in attribute), None)
        if level is not None:
            parts.append(ibis.ifelse(condition, _code(attribute.code(level)), ibis.null("int32")))
    return parts


def _encode_float(attribute: Attribute, number: Any) -> list[Any]:
    import ibis

    parts = []
    levels = {value: code for value, code in find_whole_levels(attribute).items() if abs(value) <= EXACT}
    if levels:
        small = ibis.ifelse(number.abs() <= float(EXACT), number, ibis.null("float64"))  # NaN sorts above all
        whole = small.cast("int64")
        parts.append(_look_up(ibis.ifelse(whole.cast("float64") == small, whole, ibis.null("int64")), levels))
    if attribute.bins is not None:
        parts.append(_locate(attribute.bins, number))
    return parts


def _encode_exact(attribute: Attribute, column: Any) -> list[Any]:
    import ibis

    parts = []
    levels = find_whole_levels(attribute)
    if levels:
        inside = (column >= min(levels)) & (column <= max(levels))
        small = ibis.ifelse(inside, column, ibis.null(column.type()))
        whole = small.cast("int64")
        if column.type().is_decimal():
            whole = ibis.ifelse(whole == small, whole, ibis.null("int64"))
        parts.append(_look_up(whole, levels))
    if attribute.bins is not None:
        parts.append(_locate(attribute.bins, column.cast("float64")))
    return parts


def _look_up(value: Any, codes: Mapping[Any, int]) -> Any:
    import ibis

    if len(codes) <= FEW:
        return value.cases(*((key, _code(code)) for key, code in codes.items()), else_=ibis.null("int32"))
    texts: list[str | None] = [None] * (max(codes.values()) + 1)
    for key, code in codes.items():
        texts[code] = str(key)
    place = ibis.literal(texts, type="array<string>").index(value.cast("string"))
    return ibis.ifelse(place >= 0, place, ibis.null("int64")).cast("int32")


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
