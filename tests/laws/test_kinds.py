"""Types, dates, readings and constraints: they survive their files, and mean what they say."""

from __future__ import annotations

import json
import math
from datetime import date, datetime

import pytest

from discreet.values.errors import SchemaError
from discreet.values.schema import Attribute, Follows, Implied, Listed, Ordered, Reading, Schema
from discreet.values.schema.formats.toml import parse_toml, write_toml

CLINIC = """
[attributes.age]
type = "integer"
edges = [0, 18, 40, 65, inf]
highest = 110
missing = "missing"
nulls = ["NA", "N/A", -99]
outside = "nearest"

[attributes.bmi]
type = "decimal"
decimals = 1
edges = [10, 18.5, 25, 30, 60]
outside = "leave out"

[attributes.sex]
levels = ["f", "m"]
other = "other"
aliases = { f = ["female", "w"], m = ["male", 1] }
ignore = ["case", "blanks"]

[attributes.alive]
levels = [true, false]

[attributes.beds]
levels = [0, 1, 2]

[attributes.admitted]
type = "date"
by = "month"
from = 2019-01-01
to = 2020-02-15
order = "dmy"

[attributes.discharged]
type = "date"
edges = [2019-01-01, 2019-07-01, 2020-01-01, inf]
highest = 2021-12-31

[attributes.seen]
type = "datetime"
edges = [2019-01-01, 2019-01-01T12:00:00, 2019-01-02]

[attributes.weekday]
type = "date"
by = "weekday"
from = 2019-01-01
to = 2019-12-31

[[constraints]]
holds = "admitted <= discharged"

[[constraints]]
if = { age = "< 18" }
then = { sex = ["f", "m"], alive = "!= false" }

[[constraints]]
columns = ["sex", "beds"]
combinations = [["f", 0], ["m", 1], ["other", 2]]

[follows.adult]
from = "age"
map = { "[0, 18)" = false, "[18, 40)" = true, "[40, 65)" = true, "[65, inf)" = true }
"""


def test_everything_survives_its_files() -> None:
    schema = parse_toml(CLINIC)
    assert parse_toml(write_toml(schema)) == schema
    assert Schema.from_json(json.loads(json.dumps(schema.to_json()))) == schema
    assert hash(schema) == hash(parse_toml(write_toml(schema)))
    assert schema.constraints[0] == Ordered("admitted", "<=", "discharged")
    assert schema.constraints[1] == Implied(
        (("age", ("< 18",)),), (("sex", ("f", "m")), ("alive", ("!= false",)))
    )
    assert schema.constraints[2] == Listed(("sex", "beds"), (("f", "0"), ("m", "1"), ("other", "2")))
    assert schema.follows[0].type == "boolean"


def test_types_are_declared_or_follow_from_the_levels() -> None:
    schema = parse_toml(CLINIC)
    assert [attribute.type for attribute in schema] == [
        "integer",
        "decimal",
        "text",
        "boolean",
        "integer",
        "date",
        "date",
        "datetime",
        "date",
    ]
    assert Attribute.of("zip", ["01234", "12345"]).type == "text"
    assert Attribute.of("zip", ["11234", "12345"], type="text").type == "text"
    assert Attribute.binned("x", [0, 1, 2]).type == "decimal"


def test_levels_of_the_calendar() -> None:
    schema = parse_toml(CLINIC)
    assert schema["admitted"].levels[0] == "2019-01"
    assert schema["admitted"].levels[-1] == "2020-02"
    assert schema["admitted"].size == 14
    assert schema["discharged"].levels == (
        "[2019-01-01, 2019-07-01)",
        "[2019-07-01, 2020-01-01)",
        "[2020-01-01, inf)",
    )
    assert schema["seen"].levels[1] == "[2019-01-01 12:00:00, 2019-01-02 00:00:00]"
    weeks = Attribute.dated("w", by="week", first=date(2019, 12, 25), last=date(2020, 1, 6))
    assert weeks.levels == ("2019-W52", "2020-W01", "2020-W02")
    quarters = Attribute.dated("q", by="quarter", first=date(2019, 12, 25), last=date(2020, 1, 6))
    assert quarters.levels == ("2019-Q4", "2020-Q1")
    assert Attribute.dated("d", edges=[date(2020, 1, 1), datetime(2020, 2, 1), "2020-03-01"]).size == 2


def test_an_attribute_is_total_if_nothing_is_refused() -> None:
    schema = parse_toml(CLINIC)
    assert [attribute.total for attribute in schema] == [True, True, True, *[False] * 6]
    assert not schema.total
    assert Attribute.of("a", ["x", "y"], missing="?", reading=Reading(outside="missing")).total
    # A text has no nearest bin.
    assert not Attribute.binned("a", [0, 1, 2], reading=Reading(outside="nearest")).total


def test_open_ends_reach_as_far_as_the_neighbour_is_wide() -> None:
    assert Attribute.binned("a", [-math.inf, 0, 10, 30, math.inf]).bins.drawn == (-10, 0, 10, 30, 50)  # type: ignore[union-attr]
    assert Attribute.binned("a", [-math.inf, 4, math.inf], highest=5).bins.drawn == (0, 4, 5)  # type: ignore[union-attr]
    assert Attribute.binned("a", [-math.inf, 0, math.inf]).bins.drawn == (-1, 0, 1)  # type: ignore[union-attr]


def test_constraints_that_make_no_sense_are_refused() -> None:
    ages = Attribute.binned("age", [0, 18, 65, 110], type="integer")
    other = Attribute.binned("other", [0, 18, 65, 110])
    child = Attribute.of("child", ["yes", "no"])
    for constraint, words in (
        (Ordered("age", "<=", "nobody"), ("'nobody'",)),
        (Ordered("age", "<=", "other"), ("'age' (integer)", "'other' (decimal)")),
        (Ordered("age", ">", "other"), ("'>'",)),  # type: ignore[arg-type]
        (Implied((("age", ("< 20",)),), (("child", ("yes",)),)), ("[18, 65)", "in two")),
        (Implied((("age", ("< 18",)),), (("child", ("maybe",)),)), ("'maybe'", "'yes', 'no'")),
        (Listed(("age", "child"), ()), ("no combination",)),
        (Listed(("age", "child"), (("[0, 18)",),)), ("1 levels for 2",)),
    ):
        with pytest.raises(SchemaError) as refused:
            Schema((ages, other, child), (constraint,))
        for word in words:
            assert word in str(refused.value), str(refused.value)
    with pytest.raises(SchemaError, match="two values"):
        Schema((child,), (), (Follows("f", ("child",), (("yes", "1"), ("yes", "2"))),))
    with pytest.raises(SchemaError, match="both an attribute and a column"):
        Schema((child,), (), (Follows("child", ("child",), (("yes", "1"),)),))
