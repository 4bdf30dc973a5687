"""Rows that do not fit the schema are refused in one line that names attribute, row and what is allowed."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from discreet.values.errors import DataError
from discreet.values.schema import Attribute, Schema


def require_refusal(act: Callable[[], object], *words: str) -> None:
    """Refused as `DataError`, in one line of bounded length that holds these words."""
    with pytest.raises(DataError) as caught:
        act()
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 700
    assert [word for word in words if word not in message] == [], message


SMOKE = Attribute.of("smoke", ["yes", "no"])
AGE = Attribute.binned("age", [0, 18, 120])
MANY = Attribute.of("many", [f"level {i}" for i in range(30)])

ROWS: dict[str, tuple[Attribute, Any, tuple[str, ...]]] = {
    "unknown text": (SMOKE, ["yes", "no", "Yes"], ("'smoke'", "row 3", "'Yes'", "'yes', 'no'")),
    "space around": (SMOKE, pa.array(["yes", " no"]), ("'smoke'", "row 2", "' no'", "'yes', 'no'")),
    "first of two": (SMOKE, np.array(["yes", "b", "c"]), ("row 2", "'b'")),
    "missing before unknown": (SMOKE, ["yes", None, "c"], ("row 2", "missing", "'yes', 'no'")),
    "unknown before missing": (SMOKE, ["yes", "c", None], ("row 2", "'c'")),
    "null": (SMOKE, pa.array(["yes", "no", None]), ("'smoke'", "row 3", "missing", "'yes', 'no'")),
    "null in a dictionary": (SMOKE, pa.array(["yes", None]).dictionary_encode(), ("row 2", "missing")),
    "missing category": (SMOKE, pd.Series(["yes", None], dtype="category"), ("row 2", "missing")),
    "empty text": (SMOKE, pl.Series(["yes", ""]), ("'smoke'", "row 2", "missing")),
    "NaN": (AGE, np.array([1.0, np.nan]), ("'age'", "row 2", "missing", "'[0, 18)', '[18, 120]'")),
    "NA": (AGE, pd.Series([1, pd.NA], dtype="Int64"), ("'age'", "row 2", "missing")),
    "masked": (AGE, np.ma.MaskedArray([1, 2], [False, True]), ("'age'", "row 2", "missing")),
    "number for words": (SMOKE, np.array([1, 2]), ("'smoke'", "row 1", " 1 ", "'yes', 'no'")),
    "fraction for levels": (
        Attribute.of("n", [0, 1]),
        [0.0, 0.5],
        ("'n'", "row 2", "0.5", "edges for fractions"),
    ),
    "text of a float": (Attribute.of("n", [0, 1]), ["1.0"], ("'n'", "row 1", "'1.0'")),
    "padded integer": (Attribute.of("n", ["00", "01"]), [0], ("'n'", "row 1", " 0 ", "'00', '01'")),
    "above": (AGE, np.array([5, 121]), ("'age'", "row 2", "121 is beyond the edges", "'[18, 120]'")),
    "below as text": (AGE, ["-1"], ("'age'", "row 1", "'-1' is beyond the edges")),
    "infinite": (AGE, [5.0, math.inf], ("'age'", "row 2", "inf is beyond the edges")),
    "huge integer": (AGE, [10**400], ("'age'", "row 1", "1000")),
    "integer too long to print": (AGE, [10**5000], ("'age'", "row 1", "a huge int is beyond the edges")),
    "words for numbers": (AGE, ["five"], ("'age'", "row 1", "'five' is neither a number")),
    "padded number": (AGE, [" 5"], ("'age'", "row 1", "' 5' is neither a number")),
    "underscored number": (AGE, ["1_0"], ("'age'", "row 1", "'1_0' is neither a number")),
    "other digits": (AGE, ["٣"], ("'age'", "row 1", "neither a number")),
    "text of NaN": (AGE, ["nan"], ("'age'", "row 1", "'nan' is neither a number")),
    "boolean": (AGE, [True], ("'age'", "row 1", "True is neither a number")),
    "date": (AGE, [datetime.date(2020, 1, 1)], ("'age'", "row 1", "2020")),
    "numpy dates": (AGE, np.array(["2020-01-01"], dtype="M8[ns]"), ("'age'", "row 1", "2020")),
    "pandas dates": (AGE, pd.Series(pd.to_datetime(["2020-01-01"])), ("'age'", "row 1", "2020")),
    "dates with zones": (
        AGE,
        pd.Series(pd.to_datetime(["2020-01-01"], utc=True)),
        ("'age'", "row 1", "2020"),
    ),
    "arrow dates": (AGE, pa.array([datetime.date(2020, 1, 1)]), ("'age'", "row 1", "2020")),
    "bytes": (SMOKE, np.array([b"yes"]), ("'smoke'", "row 1", "b'yes'")),
    "lists in cells": (SMOKE, ["yes", ["no"]], ("'smoke'", "row 2", "['no']")),
    "arrow lists": (SMOKE, pa.array([["yes"]]), ("'smoke'", "row 1", "['yes']")),
    "signalling NaN": (AGE, [Decimal("sNaN")], ("'age'", "row 1", "sNaN")),
    "many levels": (MANY, ["x"], ("'many'", "'level 0'", "'level 7', …")),
    "huge cell": (SMOKE, ["x" * 10**6], ("'smoke'", "row 1", "'xxx", "…")),
    "line break in cell": (SMOKE, ["a\nb"], ("'smoke'", r"'a\nb'")),
    "a text for a column": (SMOKE, "yes", ("'smoke'", "str", "lists")),
    "a scalar for a column": (SMOKE, 3, ("'smoke'", "int", "lists")),
    "a set for a column": (SMOKE, {"yes"}, ("'smoke'", "set", "lists")),
    "a matrix for a column": (SMOKE, np.zeros((2, 2)), ("'smoke'", "2-dimensional", "float64")),
    "complex numbers": (AGE, np.zeros(2, dtype=complex), ("'age'", "complex128")),
    "a frame for a column": (SMOKE, pd.DataFrame({"x": [1]}), ("'smoke'", "DataFrame")),
    "a polars frame for a column": (SMOKE, pl.DataFrame({"x": [1]}), ("'smoke'", "DataFrame")),
    "a table for a column": (SMOKE, pa.table({"x": [1]}), ("'smoke'", "Table")),
}


@pytest.mark.parametrize("case", ROWS)
def test_bad_columns(case: str) -> None:
    attribute, column, words = ROWS[case]
    require_refusal(lambda: attribute.encode(column), *words)


BOTH = Schema.of({"smoke": SMOKE, "age": AGE})
TWICE = pa.Table.from_arrays([pa.array(["yes"]), pa.array([1]), pa.array([2])], names=["smoke", "age", "age"])

TABLES: dict[str, tuple[Any, tuple[str, ...]]] = {
    "no columns": ({}, ("no columns", "'smoke', 'age'")),
    "empty frame": (pd.DataFrame(), ("no columns", "'smoke', 'age'")),
    "column not there": ({"smoke": ["yes"], "Age": [1]}, ("no column 'age'", "'smoke', 'Age'")),
    "numbered columns": (pd.DataFrame([["yes", 1]]), ("no column 'smoke'", "0, 1")),
    "column twice in Arrow": (TWICE, ("2 columns", "'age'")),
    "column twice in pandas": (
        pd.DataFrame([["yes", 1, 2]], columns=["smoke", "age", "age"]),
        ("2 columns", "'age'"),
    ),
    "unequal lengths": ({"smoke": ["yes", "no"], "age": [1]}, ("'smoke' has 2 rows", "'age' has 1")),
    "lazy frame": (pl.LazyFrame({"smoke": ["yes"], "age": [1]}), ("lazy", "collect()")),
    "list of rows": ([{"smoke": "yes", "age": 1}], ("list", "mappings", "frames")),
    "matrix": (np.zeros((2, 2)), ("ndarray", "structured numpy arrays")),
    "a path": ("clinic.csv", ("str", "mappings")),
    "bad row": ({"smoke": ["yes", "no"], "age": [1, -1]}, ("'age'", "row 2", "-1")),
}


@pytest.mark.parametrize("case", TABLES)
def test_bad_tables(case: str) -> None:
    table, words = TABLES[case]
    require_refusal(lambda: BOTH.encode(table), *words)


CODES: dict[str, tuple[Any, tuple[str, ...]]] = {
    "too large": ([0, 2], ("code 2", "'smoke'", "row 2", "0 to 1")),
    "negative": ([-1], ("code -1", "'smoke'", "row 1", "0 to 1")),
    "floats": ([0.0], ("'smoke'", "float64", "integers")),
    "text": (["yes"], ("'smoke'", "integers")),
    "matrix": ([[0]], ("'smoke'", "2-dimensional")),
}


@pytest.mark.parametrize("case", CODES)
def test_bad_codes(case: str) -> None:
    codes, words = CODES[case]
    require_refusal(lambda: SMOKE.decode(codes), *words)


def test_unused_bad_categories_are_no_fault() -> None:
    column = pd.Categorical(["yes", "no"], categories=["yes", "perhaps", "no"])
    assert SMOKE.encode(column).tolist() == [0, 1]
    assert SMOKE.decode([]).tolist() == []
