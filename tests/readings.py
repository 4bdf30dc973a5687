"""Columns with every clause of the rule for which value is which level, and cells that try each of them."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.values.schema import Attribute, Reading

LEVELS = Attribute.of(
    "sex",
    ["f", "m", "Ä"],
    missing="?",
    other="other",
    reading=Reading.of(
        nulls=["N/A", "na", -9],
        aliases={"f": ["female", "W", 2], "m": ["male", 1]},
        ignore=["case", "blanks"],
    ),
)
EXACT = Attribute.of(
    "kind", ["a", "B", "7"], missing="gone", reading=Reading.of(nulls=["-"], outside="missing")
)
NUMBER = Attribute.binned(
    "age",
    [0, 18, 65.5, 110],
    missing="no age",
    reading=Reading.of(nulls=["unknown", -99], ignore=["blanks"], outside="nearest"),
)
OUT = Attribute.binned("dose", [0, 1, 10], closed="right", reading=Reading.of(outside="leave out"))
DAYS = Attribute.dated(
    "day",
    by="month",
    first=date(2019, 11, 5),
    last=date(2020, 2, 10),
    missing="never",
    reading=Reading.of(order="dmy", outside="nearest"),
)
AMERICAN = Attribute.dated(
    "visit",
    edges=["2019-01-01", "2020-01-01", "2020-02-29", "2021-01-01"],
    other="else",
    reading=Reading.of(order="mdy", ignore=["blanks"]),
)
WEEKDAYS = Attribute.dated(
    "weekday",
    by="weekday",
    first=date(2020, 1, 1),
    last=date(2020, 12, 31),
    missing="-",
    reading=Reading(outside="missing"),
)
MOMENTS = Attribute.dated(
    "seen",
    edges=["2020-01-01", "2020-01-01 12:00:00", "2020-01-02", "2020-06-01"],
    moments=True,
    missing="?",
    reading=Reading.of(outside="missing"),
)
FLAG = Attribute.of("flag", [True, False], missing="?", reading=Reading(outside="missing"))
TEXTS: dict[str, tuple[Attribute, list[Any]]] = {
    "sex": (
        LEVELS,
        [
            "f",
            " F",
            "Female ",
            "w",
            "MALE",
            "m\t",
            "ä",
            "Ä",
            "n/a",
            " NA",
            "-9",
            "2",
            "1",
            "0",
            "x",
            "",
            "  ",
            None,
            "ß",
        ],
    ),
    "kind": (EXACT, ["a", "A", "b", "B", "7", "7.0", " a", "-", "", None, "gone", "é"]),
    "age": (
        NUMBER,
        [
            "0",
            " 17.9 ",
            "18",
            "65.5",
            "110",
            "111",
            "-1",
            "-99",
            "-99.0",
            "1e2",
            "inf",
            "-inf",
            "nan",
            "old",
            "",
            None,
            "unknown",
            "no age",
            "[0, 18)",
        ],
    ),
    "dose": (OUT, ["0", "1", "1.5", "10", "10.1", "-1", "x", "", None, "(1, 10]"]),
    "day": (
        DAYS,
        [
            "2019-11-05",
            "2019-11-04",
            "2019/12/24",
            "5.11.2019",
            "05/11/2019",
            "11/05/2019",
            "31/11/2019",
            "20200131",
            "2020-02-10",
            "2020-02-11",
            "2020-02-10T23:59:59",
            "2020-02-10 23:59:59.999Z",
            "2020-02-10T23:30:00-01:00",
            "2019-11-05T00:30+01:00",
            "30.2.2020",
            "2019-12",
            "soon",
            "",
            None,
            "2020-1-5",
            "0000-01-01",
            "2020-01-01 24:00",
            "2020-01-01 10:61",
            "5-12-2019",
            "2020-01-01\n",
        ],
    ),
    "visit": (
        AMERICAN,
        [
            "1/31/2020",
            "31/1/2020",
            "31.1.2020",
            " 2020-02-28 ",
            "2020-02-29",
            "2021-01-01",
            "2021-01-02",
            "2/29/2019",
            "else",
            "",
            None,
            "2019-01-01 7:05",
        ],
    ),
    "flag": (FLAG, ["true", "True", "TRUE", "tRue", "false", "False", "0", "", None]),
    "weekday": (
        WEEKDAYS,
        ["2020-01-01", "1969-12-31", "1950-03-05T10:00:00", "Monday", "monday", "", None, "2020-13-01"],
    ),
    "seen": (
        MOMENTS,
        [
            "2020-01-01",
            "2020-01-01 11:59:59.9",
            "2020-01-01T12:00",
            "2020-01-01T13:00:00+02:00",
            "2020-06-01 00:00:00",
            "2020-06-01 00:00:01",
            "1.1.2020 15:30",
            "2019-12-31T23:59:59-00:30",
            None,
        ],
    ),
}
CLOCK = [
    datetime(2020, 1, 1, 11, 59, 59, 999_999),
    datetime(2020, 1, 1, 12),
    datetime(1969, 12, 31, 23, 59, 59, 500_000),
    datetime(2019, 11, 5),
    datetime(2020, 2, 10, 23, 59, 59, 1),
    datetime(2020, 2, 11),
    datetime(2020, 6, 1),
    None,
]
DATES: list[Any] = [
    date(2019, 11, 5),
    date(2019, 11, 4),
    date(2020, 2, 10),
    date(2020, 2, 29),
    date(1969, 12, 28),
    None,
]
WEST = timezone(timedelta(hours=-3))
ZONED = [None if found is None else found.replace(tzinfo=UTC).astimezone(WEST) for found in CLOCK]
NUMBERS: dict[str, tuple[Attribute, Any]] = {
    "sex": (LEVELS, pa.array([1, 2, -9, 0, None, 3], pa.int64())),
    "age": (
        NUMBER,
        pa.array([0.0, 17.9, 18, 65.5, 110, 111, -1, -99, math.nan, math.inf, -math.inf, None, 1e300]),
    ),
    "dose": (OUT, pa.array([0, 1, 5, 10, 11, -1, None], pa.int32())),
    "kind": (EXACT, pa.array([True, False, None])),
    "day": (DAYS, pa.array(DATES, pa.date32())),
    "visit": (AMERICAN, pa.array(CLOCK, pa.timestamp("us"))),
    "weekday": (WEEKDAYS, pa.array(DATES, pa.date32())),
    "seen": (MOMENTS, pa.array(ZONED, pa.timestamp("us", "UTC"))),
}


def by_hand(attribute: Attribute, values: Any) -> list[int]:
    """The counts of the levels by the schema itself, value by value."""
    listed = values.to_pylist() if isinstance(values, pa.Array | pa.ChunkedArray) else values
    codes = [int(code) for value in listed for code in attribute.encode([value])]
    return np.bincount(codes, minlength=attribute.size).tolist()
