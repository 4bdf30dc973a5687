"""Dates as the counts that their bins are asked for, written in Ibis for any engine: arithmetic that cannot fail."""

from __future__ import annotations

from typing import Any

from discreet.values.schema import Attribute
from discreet.values.schema.dates import DAY, spell_dates

FIELDS = ("year", "month", "day", "hour", "minute", "second", "offset")
STRANGE = r"[^-+.,:/0-9TZUC ]"
"""What no spelling of a date has; "$" also matches before a last line break in some engines."""


def count_dates(attributes: list[Attribute], folded: dict[int, Any], table: Any) -> Any:
    """The table with a column d0, d1, … for each attribute of dates: days, seconds or weekdays, NULL for no date.

    `folded` holds the texts of columns of texts. What is used more than once is settled in a subquery of its own.
    """
    dated = [(i, found) for i, found in enumerate(attributes) if found.dates is not None]
    if not dated:
        return table
    parts: dict[str, Any] = {}
    for i, attribute in dated:
        column = table[f"x{i}"]
        if column.type().is_string():
            parts |= _split_text(i, attribute, folded[i])
        elif column.type().is_date() or column.type().is_timestamp():
            parts |= _split_column(i, column)
    if parts:
        table = _settle(table.mutate(**parts))
    seconds = {f"d{i}": _count(i, attribute, table) for i, attribute in dated}
    return _settle(table.mutate(**seconds))


def _split_text(i: int, attribute: Attribute, text: Any) -> dict[str, Any]:
    """The seven parts of every spelling of a date, as texts."""
    import ibis

    found: dict[str, list[Any]] = {name: [] for name in FIELDS}
    for pattern, places in spell_dates(attribute.reading.order):
        whole = f"^(?:{pattern})$"
        fits = text.re_search(whole) & ~text.re_search(STRANGE)
        for name, place in zip(FIELDS, (*places, 3, 4, 5, 6), strict=True):
            part = ibis.ifelse(fits, text.re_extract(whole, place + 1), ibis.null("string"))
            found[name].append(part.nullif(""))
    return {f"{name}{i}": ibis.coalesce(*spelt) for name, spelt in found.items()}


def _split_column(i: int, column: Any) -> dict[str, Any]:
    """The parts of dates and of moments without a zone, as numbers; moments with one as seconds."""
    import ibis

    column = _drop_infinite(column)
    kind = column.type()
    if kind.is_timestamp() and kind.timezone is not None:
        return {f"moment{i}": _count_moments(column)}
    parts = {"year": column.year(), "month": column.month(), "day": column.day()}
    if kind.is_timestamp():
        parts |= {"hour": column.hour(), "minute": column.minute(), "second": column.second()}
    none = ibis.null("int64")
    return {f"{name}{i}": parts[name].cast("int64") if name in parts else none for name in FIELDS}


def _drop_infinite(column: Any) -> Any:
    """Engines with dates called infinity cannot take them apart."""
    import ibis

    if column.get_backend().name not in ("duckdb", "postgres"):
        return column
    isfinite = ibis.udf.scalar.builtin(fn=_isfinite, name="isfinite", signature=((column.type(),), "bool"))
    return ibis.ifelse(isfinite(column), column, ibis.null(column.type()))


def _isfinite(column: Any) -> bool:  # type: ignore[empty-body]
    """The engine's own."""


def _count_moments(column: Any) -> Any:
    """Whole seconds of moments with a zone, which the clock of the session must not shift."""
    import ibis

    name = {"duckdb": "epoch_us", "pyspark": "unix_micros"}.get(column.get_backend().name)
    if name is None:
        return column.epoch_seconds().cast("float64").floor().cast("int64")
    count = ibis.udf.scalar.builtin(fn=_micros, name=name, signature=((column.type(),), "int64"))
    return (count(column).cast("float64") / 1_000_000.0).floor().cast("int64")


def _micros(column: Any) -> int:  # type: ignore[empty-body]
    """The engine's own."""


def _count(i: int, attribute: Attribute, table: Any) -> Any:
    """What the bins are asked for, from the parts of a date."""
    import ibis

    assert attribute.dates is not None
    if f"moment{i}" in table.columns:
        seconds = table[f"moment{i}"]
    elif f"year{i}" in table.columns:
        seconds = _add_up(i, table)
    else:
        return ibis.null("int64")
    days = (seconds // DAY).cast("int64")
    if attribute.dates.by == "weekday":
        return (((days + 3) % 7 + 7) % 7).cast("int64")
    return seconds.cast("int64") if attribute.dates.moments else days


def _add_up(i: int, table: Any) -> Any:
    import ibis

    year, month, day, hour, minute, second = (table[f"{name}{i}"].cast("int64") for name in FIELDS[:6])
    hour, minute, second = (part.fill_null(0) for part in (hour, minute, second))
    leap = ((year % 4 == 0) & (year % 100 != 0)) | (year % 400 == 0)
    short = month.isin([4, 6, 9, 11])
    longest = ibis.ifelse(month == 2, ibis.ifelse(leap, 29, 28), ibis.ifelse(short, 30, 31))
    fine = month.between(1, 12) & (day >= 1) & (day <= longest) & (year >= 1)
    fine &= (hour <= 23) & (minute <= 59) & (second <= 59)
    # Years begin in March, so that the day that comes and goes is the last [Hinnant, chrono-compatible algorithms].
    moved = ibis.ifelse(month <= 2, year - 1, year)
    days_before = (153 * ibis.ifelse(month > 2, month - 3, month + 9) + 2) // 5 + day - 1
    days = 365 * moved + moved // 4 - moved // 100 + moved // 400 + days_before - 719_468
    seconds = days * DAY + hour * 3600 + minute * 60 + second - _read_offset(table[f"offset{i}"])
    return ibis.ifelse(fine, seconds.cast("int64"), ibis.null("int64"))


def _read_offset(offset: Any) -> Any:
    """The seconds by which a clock is ahead of UTC, from texts such as +02:00; 0 for all others."""
    import ibis

    if not offset.type().is_string():
        return ibis.literal(0, "int64")
    digits = offset.re_replace("[^0-9]", "")
    full = ibis.ifelse(digits.length() == 4, digits, ibis.literal("0000")).fill_null("0000")
    amount = full.substr(0, 2).cast("int64") * 3600 + full.substr(2, 2).cast("int64") * 60
    return ibis.ifelse(offset.startswith("-").fill_null(False), -amount, amount)


def _settle(table: Any) -> Any:
    """The same table as the result of a query, into which Ibis does not write what stands above it again and again."""
    backend = table.get_backend()
    return backend.sql(backend.compile(table), schema=table.schema())
