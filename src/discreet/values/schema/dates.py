"""Dates: the calendar cut into levels, as numbers that bins can hold, and the texts that spell a date.

A date counts as the days since 1970-01-01, a datetime as the whole seconds since then, both in the Gregorian calendar
without time zones; a time with a zone or an offset counts by the clock of UTC. A weekday counts from Monday, 0.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Literal

from discreet.values.errors import SchemaError
from discreet.values.schema.bins import Bins, Closed
from discreet.values.text import show

By = Literal["edges", "year", "quarter", "month", "week", "weekday"]
Order = Literal["dmy", "mdy"]

PERIODS = ("year", "quarter", "month", "week", "weekday")
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
DAY = 86_400
EPOCH = date(1970, 1, 1)

CLOCK = r"(?:[T ]+([0-9]{1,2}):([0-9]{2})(?::([0-9]{2})(?:[.,][0-9]{1,9})?)?(?: ?(Z|UTC|[+-][0-9]{2}:?[0-9]{2}))?)?"
"""The time of day that may follow a date: hours and minutes, seconds, a fraction that is cut off, an offset."""

YEAR_FIRST = rf"([0-9]{{4}})[-/.]([0-9]{{1,2}})[-/.]([0-9]{{1,2}}){CLOCK}"
COMPACT = rf"([0-9]{{4}})([0-9]{{2}})([0-9]{{2}}){CLOCK}"
POINTS = rf"([0-9]{{1,2}})\.([0-9]{{1,2}})\.([0-9]{{4}}){CLOCK}"
SLASHES = rf"([0-9]{{1,2}})[/-]([0-9]{{1,2}})[/-]([0-9]{{4}}){CLOCK}"

SHORT_YEAR = rf"[0-9]{{1,2}}[./-][0-9]{{1,2}}[./-][0-9]{{2}}{CLOCK}"
"""Days with a year of two digits, which are no dates here: whether 94 is 1994 or 2094 nobody has said."""


@dataclass(frozen=True, slots=True)
class Dates:
    """How dates become levels: by the calendar between two public days, or at edges.

    By year, quarter, month or week the levels are the periods from `first` to `last`, of which the outermost may be cut
    short. By weekday they are the seven days; `first` and `last` then say only from where dates are drawn.
    """

    by: By = "edges"
    moments: bool = False
    first: date | None = None
    last: date | None = None

    def __post_init__(self) -> None:
        if self.by not in ("edges", *PERIODS):
            raise SchemaError(f"dates by {show(self.by)}; allowed are {', '.join(PERIODS)}")
        if self.by == "edges":
            if self.first is not None or self.last is not None:
                raise SchemaError(
                    "`from` and `to` go with `by`; edges say themselves where they begin and end"
                )
            return
        for name, day in (("from", self.first), ("to", self.last)):
            if type(day) is not date:
                raise SchemaError(
                    f"dates by {self.by} need `{name}`, a public day such as 2020-01-31, not {show(day)}"
                )
        assert self.first is not None and self.last is not None
        if not self.first < self.last:
            raise SchemaError(f"dates run from {self.first} to {self.last}; the second must be later")

    @property
    def unit(self) -> int:
        """How many seconds one step of the count is."""
        return 1 if self.moments else DAY

    def cut(self) -> Bins:
        """The bins of a calendar between its two days, both inclusive."""
        assert self.first is not None and self.last is not None
        if self.by == "weekday":
            if (self.last - self.first).days < 6:
                raise SchemaError(
                    f"{self.first} to {self.last} is less than a week; every weekday must be in it"
                )
            return Bins((*range(7), math.nextafter(7.0, 0.0)))
        scale = DAY if self.moments else 1
        starts = [count_days(day) * scale for day in self._starts()]
        # The day after the last is outside, and the outermost edge of bins is inside.
        end = math.nextafter((count_days(self.last) + 1) * scale, -math.inf)
        if len(starts) < 2:
            raise SchemaError(f"{self.first} to {self.last} is one {self.by}; at least 2 are needed")
        return Bins((*starts, end))

    def label(self, bins: Bins) -> tuple[str, ...]:
        """A label for each bin: 2020, 2020-Q1, 2020-01, 2020-W05, Monday, or its edges."""
        if self.by == "weekday":
            return WEEKDAYS
        if self.by != "edges":
            return tuple(self._name(day) for day in self._starts())
        found = []
        for i, (low, high) in enumerate(pairwise(bins.edges)):
            left = "[" if (bins.closed == "left" or i == 0) and math.isfinite(low) else "("
            last = i == len(bins) - 1
            right = "]" if (bins.closed == "right" or last) and math.isfinite(high) else ")"
            found.append(f"{left}{self.write(low)}, {self.write(high)}{right}")
        return tuple(found)

    def write(self, count: float) -> str:
        """The day or moment of a count, in ISO 8601."""
        if math.isinf(count):
            return "inf" if count > 0 else "-inf"
        if not self.moments:
            return str(EPOCH + timedelta(days=int(count)))
        return str(datetime(1970, 1, 1) + timedelta(seconds=int(count)))

    def count(self, value: date) -> int:
        """The count of a day or moment: days, or seconds; a moment belongs to its day, a day begins at midnight."""
        seconds = count_seconds(value) if isinstance(value, datetime) else count_days(value) * DAY
        return seconds if self.moments else seconds // DAY

    def measure(self, count: int) -> int:
        """What bins are asked for: the count itself, or the weekday of it."""
        return (count * self.unit // DAY + 3) % 7 if self.by == "weekday" else count

    def _starts(self) -> list[date]:
        """The first day of every period; of the first period, the first day of all."""
        assert self.first is not None and self.last is not None
        found = [self.first]
        while (day := self._next(found[-1])) <= self.last:
            found.append(day)
        return found

    def _next(self, day: date) -> date:
        if self.by == "week":
            return day + timedelta(days=7 - day.weekday())
        months = {"year": 12, "quarter": 3, "month": 1}[self.by]
        place = (day.year * 12 + day.month - 1) // months * months + months
        return date(place // 12, place % 12 + 1, 1)

    def _name(self, day: date) -> str:
        if self.by == "week":
            year, week, _ = day.isocalendar()
            return f"{year}-W{week:02}"
        if self.by == "quarter":
            return f"{day.year}-Q{(day.month + 2) // 3}"
        return f"{day.year}" if self.by == "year" else f"{day.year}-{day.month:02}"


def cut_edges(edges: tuple[object, ...], moments: bool, closed: Closed = "left") -> Bins:
    """Bins at days or moments, given as dates or as ISO text; -inf and inf leave an end open."""
    dates = Dates(moments=moments)
    return Bins(tuple(_read_edge(edge, dates) for edge in edges), closed)


def read_day(value: object) -> date | None:
    """A day that a person wrote into a schema, as a date or as ISO text; None if it is neither."""
    if isinstance(value, datetime):
        return value.date() if value == datetime(value.year, value.month, value.day) else None
    if isinstance(value, date):
        return value
    found = read_text(value, None) if isinstance(value, str) and re.fullmatch(YEAR_FIRST, value) else None
    return None if found is None or found % DAY else EPOCH + timedelta(seconds=found)


def read_end(value: object, dates: Dates) -> float:
    """The count of a day or moment that a person wrote into a schema."""
    return _read_edge(value, dates)


def read_text(text: str, order: Order | None) -> int | None:
    """The seconds since 1970 that a text spells, or None: Y-m-d, Y/m/d, Ymd, d.m.Y; d/m/Y or m/d/Y as `order` says."""
    for pattern, places in spell_dates(order):
        found = re.fullmatch(pattern, text)
        if found is not None:
            parts = found.groups()
            year, month, day = (int(parts[place]) for place in places)
            return _add_up(year, month, day, *parts[3:])
    return None


def is_short(text: str) -> bool:
    """Whether a text spells a day with a year of two digits."""
    return re.fullmatch(SHORT_YEAR, text) is not None


def spell_dates(order: Order | None) -> list[tuple[str, tuple[int, int, int]]]:
    """The patterns of dates, each with which of its groups are the year, the month and the day."""
    patterns = [(YEAR_FIRST, (0, 1, 2)), (COMPACT, (0, 1, 2)), (POINTS, (2, 1, 0))]
    if order is not None:
        patterns.append((SLASHES, (2, 1, 0) if order == "dmy" else (2, 0, 1)))
    return patterns


def count_days(day: date) -> int:
    """The days since 1970-01-01."""
    return (date(day.year, day.month, day.day) - EPOCH).days


def count_seconds(moment: datetime) -> int:
    """The whole seconds since 1970, by the clock of UTC if the moment has a zone."""
    plain = moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)
    return (plain - datetime(1970, 1, 1)) // timedelta(seconds=1)


def _add_up(
    year: int,
    month: int,
    day: int,
    hour: str | None,
    minute: str | None,
    second: str | None,
    offset: str | None,
) -> int | None:
    try:
        days = count_days(date(year, month, day))
    except ValueError:
        return None
    clock = int(hour or 0), int(minute or 0), int(second or 0)
    if clock[0] > 23 or clock[1] > 59 or clock[2] > 59:
        return None
    shift = 0
    if offset and offset[0] in "+-":
        digits = offset[1:].replace(":", "")
        shift = (int(digits[:2]) * 60 + int(digits[2:])) * 60 * (-1 if offset[0] == "-" else 1)
    return days * DAY + clock[0] * 3600 + clock[1] * 60 + clock[2] - shift


def _read_edge(edge: object, dates: Dates) -> float:
    if isinstance(edge, float) and math.isinf(edge):
        return edge
    if isinstance(edge, str):
        if edge in ("inf", "-inf"):
            return float(edge)
        seconds = read_text(edge, None) if re.fullmatch(YEAR_FIRST, edge) else None
        if seconds is not None and (dates.moments or not seconds % DAY):
            return seconds if dates.moments else seconds // DAY
    elif isinstance(edge, datetime):
        if not edge.microsecond and (dates.moments or count_seconds(edge) % DAY == 0):
            return dates.count(edge)
    elif isinstance(edge, date):
        return dates.count(edge)
    wanted = "a moment such as 2020-01-31T12:00:00" if dates.moments else "a day such as 2020-01-31"
    raise SchemaError(f"edge {show(edge)} is not {wanted}, inf or -inf")
