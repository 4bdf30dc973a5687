"""Bad schemas and files are refused in one line that names the thing, the value and what is allowed."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from discreet.values.errors import DiscreetError, FormatError, SchemaError, TooLarge
from discreet.values.schema import Attribute, Bins, Group, Reading, Schema, Taxonomy
from discreet.values.schema.formats.toml import MAX_BYTES, parse_toml


def refusal(kind: type[DiscreetError], act: Callable[[], object]) -> str:
    """The message of the refusal; it must be of this very class and fit on one line."""
    with pytest.raises(DiscreetError) as caught:
        act()
    message = str(caught.value)
    assert type(caught.value) is kind, message
    assert "\n" not in message
    assert len(message) < 700
    return message


def require_words(message: str, *words: str) -> None:
    for word in words:
        assert word in message, f"{word!r} is not in: {message}"


TREE = Taxonomy((Group("g", ("x", "y")), "z"))

DECLARATIONS: dict[str, tuple[Callable[[], object], tuple[str, ...]]] = {
    "no attributes": (lambda: Schema(()), ("no attributes", "at least 1")),
    "same name twice": (
        lambda: Schema((Attribute.of("a", ["x", "y"]), Attribute.of("a", ["u", "v"]))),
        ("'a'", "twice"),
    ),
    "empty name": (lambda: Attribute.of("", ["x", "y"]), ("attribute name ''", "empty")),
    "blank name": (lambda: Attribute.of(" \u00a0", ["x", "y"]), ("attribute name", "empty")),
    "number as name": (lambda: Schema.of({3: ["x", "y"]}), ("attribute name 3", "int", "text")),  # type: ignore[dict-item]
    "line break in name": (lambda: Attribute.of("a\nb", ["x", "y"]), (r"'a\nb'", r"'\n'", "not allowed")),
    "surrogate in name": (lambda: Attribute.of("a\ud800", ["x", "y"]), (r"'\ud800'", "not allowed")),
    "name under another": (lambda: Schema.of({"b": Attribute.of("a", ["x", "y"])}), ("'a'", "'b'")),
    "one level": (lambda: Attribute.of("a", ["x"]), ("'a'", "1 levels", "at least 2")),
    "no levels": (lambda: Attribute.of("a", []), ("'a'", "0 levels", "at least 2")),
    "too many levels": (lambda: Attribute.of("a", range(65_537)), ("'a'", "65537", "65,536")),
    "text as levels": (lambda: Attribute.of("a", "xy"), ("'a'", "'xy'", "a list of levels")),
    "level twice": (lambda: Attribute.of("a", ["x", "y", "x"]), ("'a'", "'x'", "twice")),
    "level twice by its text": (lambda: Attribute.of("a", [1, "1"]), ("'a'", "'1'", "twice")),
    "fraction as level": (lambda: Attribute.of("a", ["x", 2.5]), ("'a'", "2.5", "float", "text")),
    "surrogate in level": (lambda: Attribute.of("a", ["x", "\udc80"]), ("'a'", r"'\udc80'", "surrogate")),
    "NUL in level": (lambda: Attribute.of("a", ["x", "x\0"]), ("'a'", "NUL")),
    "missing is a level": (lambda: Attribute.of("a", ["x", "y"], missing="y"), ("'a'", "'y'", "missing")),
    "missing is not last": (lambda: Attribute("a", ("x", "y"), missing="x"), ("'a'", "'x'", "last")),
    "missing is a bin": (
        lambda: Attribute.binned("a", [0, 1, 2], missing="[0, 1)"),
        ("'a'", "'[0, 1)'", "twice"),
    ),
    "missing inside the bins": (
        lambda: Attribute.binned("a", [0, 1, math.inf], missing="999"),
        ("'a'", "'999'", "inside the bins", "outside"),
    ),
    "one bin": (lambda: Attribute.binned("a", [0, 1]), ("'a'", "1 bins", "at least 3 edges")),
    "no edges": (lambda: Attribute.binned("a", []), ("'a'", "0 bins", "at least 3 edges")),
    "edges fall": (lambda: Attribute.binned("a", [0, 2, 1]), ("'a'", "1 follows 2", "increase")),
    "edges repeat": (lambda: Attribute.binned("a", [0, 0, 1]), ("'a'", "0 follows 0", "increase")),
    "two zeros": (lambda: Attribute.binned("a", [-0.0, 0, 1]), ("'a'", "0 follows 0", "increase")),
    "NaN edge": (lambda: Attribute.binned("a", [0, math.nan, 1]), ("'a'", "NaN")),
    "text edge": (lambda: Attribute.binned("a", [0, "1", 2]), ("'a'", "'1'", "number")),  # type: ignore[list-item]
    "boolean edge": (lambda: Attribute.binned("a", [0, True, 2]), ("'a'", "True", "number")),
    "huge edge": (lambda: Attribute.binned("a", [0, 1, 10**400]), ("'a'", "too large", "inf")),
    "closed on neither": (
        lambda: Attribute.binned("a", [0, 1, 2], closed="both"),
        ("'a'", "'both'", "'left'"),
    ),  # type: ignore[arg-type]
    "labels of other bins": (
        lambda: Attribute("a", ("low", "high"), Bins((0, 1, 2)), True),
        ("'a'", "'low'", "'[0, 1)'"),
    ),
    "bins without order": (lambda: Attribute("a", ("[0, 1)", "[1, 2]"), Bins((0, 1, 2))), ("'a'", "ordered")),
    "taxonomy leaves out": (
        lambda: Attribute.of("a", ["x", "y", "z", "w"], taxonomy=TREE),
        ("'a'", "'w'", "leaves out"),
    ),
    "taxonomy has more": (lambda: Attribute.of("a", ["x", "y"], taxonomy=TREE), ("'a'", "'z'", "unknown")),
    "taxonomy repeats": (lambda: Taxonomy((Group("g", ("x", "y")), "x")), ("'x'", "twice")),
    "group repeats": (lambda: Taxonomy((Group("g", ("x",)), Group("g", ("y",)))), ("'g'", "twice")),
    "group is a level": (lambda: Taxonomy((Group("x", ("x", "y")),)), ("'x'", "both a level and a group")),
    "group is missing": (
        lambda: Attribute.of("a", ["x", "y", "z"], missing="g", taxonomy=TREE),
        ("'a'", "'g'", "missing level"),
    ),
    "empty group": (lambda: Group("g", ()), ("'g'", "empty")),
    "nameless group": (lambda: Group("", ("x",)), ("taxonomy group ''", "empty")),
    "no groups": (lambda: Taxonomy(("x", "y")), ("no groups",)),
    "too deep": (lambda: _nest(40), ("32", "deep")),
    "too few to halve": (lambda: Taxonomy.halve(["x", "y"]), ("2 levels", "at least 3")),
    "depth beyond": (
        lambda: Attribute.of("a", ["x", "y", "z"], taxonomy=TREE).generalise(2),
        ("depth 2", "0 to 1"),
    ),
    "depth without taxonomy": (
        lambda: Attribute.of("a", ["x", "y"]).generalise(1),
        ("'a'", "depth 1", "only 0"),
    ),
    "one number twice": (
        lambda: Attribute.of("a", ["1", "1.0", "2.5"], type="decimal"),
        ("'1' and '1.0' are one number", "declare one"),
    ),
    "unknown attribute": (lambda: Schema.of({"a": ["x", "y"]})["b"], ("'b'", "'a'")),
    "unhashable attribute": (lambda: Schema.of({"a": ["x", "y"]})[["b"]], ("['b']", "'a'")),  # type: ignore[index]
    "unknown level": (lambda: Attribute.of("a", ["x", "y"]).code("z"), ("'z'", "'a'", "'x', 'y'")),
    "lowest of closed bins": (
        lambda: Attribute.binned("a", [0, 1, 2], lowest=-1),
        ("'a'", "`lowest`", "drop it"),
    ),
    "highest inside": (
        lambda: Attribute.binned("a", [0, 1, math.inf], highest=1),
        ("'a'", "`highest` is 1", "above 1"),
    ),
    "unknown type": (
        lambda: Attribute.of("a", ["x", "y"], type="string"),
        ("'a'", "'string'", "text, integer"),
    ),  # type: ignore[arg-type]
    "integer levels": (lambda: Attribute.of("a", ["1", "x"], type="integer"), ("'a'", "'x'", "whole number")),
    "boolean levels": (
        lambda: Attribute.of("a", ["yes", "no"], type="boolean"),
        ("'a'", "'yes'", "true nor false"),
    ),
    "text in bins": (
        lambda: Attribute.binned("a", [0, 1, 2], type="text"),
        ("'a'", "type text", "integer, decimal"),
    ),
    "a bin without an integer": (
        lambda: Attribute.binned("a", [0, 0.2, 0.8, 2], type="integer"),
        ("'a'", "[0.2, 0.8)", "no multiple of 1"),
    ),
    "decimals of integers": (
        lambda: Attribute.binned("a", [0, 1, 2], type="integer", decimals=1),
        ("'a'", "decimals 1"),
    ),
    "too many decimals": (
        lambda: Attribute.binned("a", [0, 1, 2], decimals=13),
        ("'a'", "decimals 13", "0 to 12"),
    ),
    "no such outside": (lambda: Reading(outside="clip"), ("'clip'", "nearest")),  # type: ignore[arg-type]
    "nothing nearest": (
        lambda: Attribute.of("a", ["x", "y"], reading=Reading(outside="nearest")),
        ("'a'", "'nearest' needs edges", "`other`"),
    ),
    "nothing missing": (
        lambda: Attribute.of("a", ["x", "y"], reading=Reading(outside="missing")),
        ("'a'", "needs a missing level"),
    ),
    "other and outside": (
        lambda: Attribute.of("a", ["x", "y"], other="z", reading=Reading(outside="leave out")),
        ("'a'", "'z'", "contradict"),
    ),
    "alias of nothing": (
        lambda: Attribute.of("a", ["x", "y"], reading=Reading.of(aliases={"z": ["Z"]})),
        ("'a'", "'Z'", "'z'", "'x', 'y'"),
    ),
    "alias of two": (
        lambda: Attribute.of("a", ["x", "y"], reading=Reading.of(aliases={"x": ["1"], "y": ["1"]})),
        ("'a'", "'1'", "'x'", "'y'"),
    ),
    "case that matters": (
        lambda: Attribute.of("a", ["x", "X"], reading=Reading.of(ignore=["case"])),
        ("'a'", "'x'", "'X'", "ignored"),
    ),
    "null that is a level": (
        lambda: Attribute.of("a", ["x", "y"], reading=Reading.of(nulls=["x"])),
        ("'a'", "'x'", "a missing value"),
    ),
    "order of numbers": (
        lambda: Attribute.binned("a", [0, 1, 2], reading=Reading(order="dmy")),
        ("'a'", "`order`", "date"),
    ),
    "dates without days": (lambda: Attribute.dated("a", by="month"), ("'a'", "`from`", "2020-01-31")),
    "dates backwards": (
        lambda: Attribute.dated("a", by="year", first=date(2020, 1, 1), last=date(2019, 1, 1)),
        ("'a'", "2020-01-01", "later"),
    ),
    "one month": (
        lambda: Attribute.dated("a", by="month", first=date(2020, 1, 1), last=date(2020, 1, 9)),
        ("'a'", "one month", "at least 2"),
    ),
    "no such period": (lambda: Attribute.dated("a", by="decade"), ("'a'", "'decade'", "quarter")),  # type: ignore[arg-type]
    "edge that is no date": (
        lambda: Attribute.dated("a", edges=["2020-01-01", "soon", "2021-01-01"]),
        ("'a'", "'soon'"),
    ),
    "moment among days": (
        lambda: Attribute.dated("a", edges=["2020-01-01", "2020-02-01 12:00", "2021-01-01"]),
        ("'a'", "12:00", "a day such as"),
    ),
}


def _nest(depth: int) -> Taxonomy:
    node: str | Group = "x"
    for i in range(depth):
        node = Group(f"g{i}", (node,))
    return Taxonomy((node,))


@pytest.mark.parametrize("case", DECLARATIONS)
def test_bad_declarations(case: str) -> None:
    act, words = DECLARATIONS[case]
    require_words(refusal(SchemaError, act), *words)


GOOD = '[attributes.a]\nlevels = ["x", "y"]\n'

FILES: dict[str, tuple[str | bytes, type[DiscreetError], tuple[str, ...]]] = {
    "empty file": ("", SchemaError, ("no attributes",)),
    "empty table": ("[attributes]", SchemaError, ("no attributes",)),
    "not TOML": ("format = 1\n[attributes.a\n", FormatError, ("line 2",)),
    "attribute twice": (GOOD + GOOD, FormatError, ("line 3", "attributes", "twice")),
    "not UTF-8": (b"format = 1\n# \xff\n", FormatError, ("UTF-8", "0xff", "line 2")),
    "unknown key": (
        GOOD + "order = true",
        FormatError,
        ("'a'", "'order'", "'levels', 'ordered', 'missing', 'taxonomy'"),
    ),
    "unknown key beside edges": (
        "[attributes.a]\nedges = [0, 1, 2]\nordered = true",
        FormatError,
        ("'a'", "'ordered'", "'edges', 'closed', 'points', 'missing', 'taxonomy'"),
    ),
    "misspelt levels": ("[attributes.a]\nlevel = []", FormatError, ("'a'", "'level'", "'levels'", "'edges'")),
    "unknown top key": ("names = []\n" + GOOD, FormatError, ("'names'", "'format', 'attributes'")),
    "other version": ("format = 2\n" + GOOD, FormatError, ("format 2", "reads format 1")),
    "boolean version": ("format = true\n" + GOOD, FormatError, ("format True", "reads format 1")),
    "attributes is text": ('attributes = "a"', FormatError, ("attributes", "a table", "not text")),
    "attribute is a number": ("[attributes]\na = 3", FormatError, ("'a'", "a table", "not a number")),
    "listed without a name": ('[[attributes]]\nlevels = ["x"]', FormatError, ("attribute 1", "'name'")),
    "levels and edges": (GOOD + "edges = [0, 1, 2]", SchemaError, ("'a'", "both")),
    "neither": ("[attributes.a]\nmissing = 'x'", SchemaError, ("'a'", "neither")),
    "levels is text": (
        "[attributes.a]\nlevels = 'xy'",
        FormatError,
        ("'a'", "levels", "an array", "not text"),
    ),
    "level is a fraction": ("[attributes.a]\nlevels = ['x', 2.5]", FormatError, ("'a'", "2.5", "text")),
    "level is a date": ("[attributes.a]\nlevels = ['x', 2020-01-01]", FormatError, ("'a'", "2020", "text")),
    "edges fall": ("[attributes.a]\nedges = [0, 2, 1]", SchemaError, ("'a'", "1 follows 2")),
    "edge is NaN": ("[attributes.a]\nedges = [0, nan, 1]", SchemaError, ("'a'", "NaN")),
    "edge is text": ("[attributes.a]\nedges = [0, 'x', 1]", SchemaError, ("'a'", "'x'", "number")),
    "closed on both": (
        "[attributes.a]\nedges = [0, 1, 2]\nclosed = 'both'",
        SchemaError,
        ("'a'", "'both'", "'left'"),
    ),
    "closed is an array": (
        "[attributes.a]\nedges = [0, 1, 2]\nclosed = []",
        SchemaError,
        ("'a'", "[]", "'left'"),
    ),
    "ordered is text": (GOOD + "ordered = 'yes'", FormatError, ("'a'", "ordered", "true or false")),
    "missing is a level": (GOOD + "missing = 'x'", SchemaError, ("'a'", "'x'", "missing")),
    "taxonomy is a number": (GOOD + "taxonomy = 3", SchemaError, ("'a'", "taxonomy 3", "'halves'")),
    "taxonomy of two halves": (GOOD + "taxonomy = 'halves'", SchemaError, ("'a'", "2 levels", "at least 3")),
    "taxonomy leaves out": (GOOD + "taxonomy = { g = ['x'] }", SchemaError, ("'a'", "'y'", "leaves out")),
    "taxonomy repeats": (GOOD + "taxonomy = { g = ['x', 'x'] }", SchemaError, ("'a'", "'x'", "twice")),
    "taxonomy group is text": (GOOD + "taxonomy = { g = 'x' }", FormatError, ("'x'", "array")),
    "nested arrays": (GOOD + "taxonomy = [['x'], ['y']]", FormatError, ("['x']", "text")),
    "array bomb": ("a = " + "[" * 100_000, FormatError, ("TOML",)),
    "digit bomb": ("format = " + "9" * 100_000, FormatError, ("TOML",)),
    "nested group bomb": (GOOD + "taxonomy" + ".g" * 40 + " = ['x']", SchemaError, ("'a'", "32", "deep")),
    "too large": ("#" * (MAX_BYTES + 1), TooLarge, ("8,388,608 bytes",)),
}


@pytest.mark.parametrize("case", FILES)
def test_bad_files(case: str, tmp_path: Path) -> None:
    content, kind, words = FILES[case]
    path = tmp_path / "clinic.toml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    message = refusal(kind, lambda: Schema.read(path))
    require_words(message, *words)
    assert message.startswith(str(path))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    require_words(
        refusal(FormatError, lambda: Schema.read(tmp_path / "none.toml")), "none.toml", "No such file"
    )
    require_words(refusal(FormatError, lambda: Schema.read(tmp_path)), str(tmp_path), "is a folder")


def test_a_refused_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "clinic.toml"
    schema = parse_toml(GOOD)
    schema.write(path)
    assert Schema.read(path) == schema
    assert path.read_text() == 'format = 1\n\n[attributes.a]\nlevels = ["x", "y"]\nordered = false\n'
    with pytest.raises(FormatError):
        schema.write(tmp_path / "nowhere" / "clinic.toml")
    assert [found.name for found in tmp_path.iterdir()] == ["clinic.toml"]


def test_windows_files_are_read(tmp_path: Path) -> None:
    path = tmp_path / "clinic.toml"
    path.write_bytes(b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode())
    assert Schema.read(path) == parse_toml(GOOD)


@settings(deadline=None, max_examples=80)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "format",
                        "attributes",
                        "name",
                        "levels",
                        "edges",
                        "closed",
                        "missing",
                        "taxonomy",
                        "ordered",
                    ]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=20,
    )
)
@example({"attributes": [{"name": "a", "levels": ["x", "y"], "taxonomy": [None]}]})
@example({"attributes": [{"name": [], "levels": ["x", "y"]}]})
def test_any_json_is_a_schema_or_a_refusal(document: Any) -> None:
    try:
        schema = Schema.from_json(document)
    except DiscreetError as error:
        message = str(error)
    else:
        message = repr(schema)
        assert Schema.from_json(schema.to_json()) == schema
    assert message
    assert "\n" not in message
