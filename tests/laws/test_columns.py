"""Every way of holding a column or a table gives the codes that the rule says."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.values.errors import DataError
from discreet.values.schema import Attribute, Schema, intake

laws = settings(deadline=None, max_examples=60)

LEVELS = Attribute.of("a", ["yes", "0", "-7", "1", "true", "ä\n"], missing="gone")


def forms_of_text(values: list[str | None]) -> dict[str, Any]:
    arrow = pa.array(values, pa.string())
    split = len(values) // 2
    found = {
        "list": values,
        "tuple": tuple(values),
        "object array": np.array(values, dtype=object),
        "pandas object": pd.Series(values, dtype=object),
        "pandas str": pd.Series(values, dtype="string"),
        "pandas index": pd.Index(values, dtype=object),
        "pandas category": pd.Series(values, dtype="category"),
        "pandas categorical": pd.Categorical(values),
        "pandas arrow": pd.Series(values, dtype=pd.ArrowDtype(pa.string())),
        "polars": pl.Series(values, dtype=pl.String),
        "polars category": pl.Series(values, dtype=pl.Categorical),
        "polars object": pl.Series(values, dtype=pl.Object),
        "arrow": arrow,
        "arrow large": arrow.cast(pa.large_string()),
        "arrow view": arrow.cast(pa.string_view()),
        "arrow slice": pa.concat_arrays([pa.array(["skipped"]), arrow]).slice(1),
        "arrow chunks": pa.chunked_array([arrow.slice(0, split), arrow.slice(split)], pa.string()),
        "arrow dictionary": arrow.dictionary_encode(),
        "arrow small dictionary": arrow.cast(pa.dictionary(pa.uint8(), pa.string())),
        "arrow dictionary chunks": pa.chunked_array(
            [arrow.slice(0, split).dictionary_encode(), arrow.slice(split).dictionary_encode()],
            pa.dictionary(pa.int32(), pa.string()),
        ),
    }
    if None not in values:
        found["numpy text"] = np.array(values, dtype=str)
        found["numpy strings"] = np.array(values, dtype=np.dtypes.StringDType())
    return found


@laws
@given(st.lists(st.sampled_from([*LEVELS.levels, None, ""]), max_size=12))
def test_every_form_of_text_gives_the_same_codes(values: list[str | None]) -> None:
    expected = [LEVELS.code(value) if value else LEVELS.size - 1 for value in values]
    for form, column in forms_of_text(values).items():
        assert LEVELS.encode(column).tolist() == expected, form


def forms_of_numbers(values: list[int | None]) -> dict[str, Any]:
    floats = [math.nan if value is None else float(value) for value in values]
    arrow = pa.array(values, pa.int64())
    found = {
        "list": values,
        "object array": np.array(values, dtype=object),
        "floats": floats,
        "float64": np.array(floats),
        "float32": np.array(floats, dtype=np.float32),
        "masked": np.ma.MaskedArray([value or 0 for value in values], [value is None for value in values]),
        "decimals": [None if value is None else Decimal(value) for value in values],
        "mixed": [value if i % 2 else x for i, (value, x) in enumerate(zip(values, floats, strict=True))],
        "pandas float": pd.Series(floats),
        "pandas nullable": pd.Series(values, dtype="Int64"),
        "pandas object": pd.Series(values, dtype=object),
        "pandas category": pd.Series(values, dtype="Int64").astype("category"),
        "polars": pl.Series(values, dtype=pl.Int16),
        "polars float": pl.Series(floats, dtype=pl.Float32),
        "arrow": arrow,
        "arrow float": pa.array(floats),
        "arrow decimal": arrow.cast(pa.decimal128(20, 1)),
        "arrow dictionary": arrow.dictionary_encode(),
        "text": [None if value is None else str(value) for value in values],
    }
    if None not in values:
        found["int64"] = np.array(values, dtype=np.int64)
        found["int8"] = np.array(values, dtype=np.int8)
    if all(value is not None and value >= 0 for value in values):
        found["uint64"] = np.array(values, dtype=np.uint64)
        found["polars uint8"] = pl.Series(values, dtype=pl.UInt8)
    return found


@laws
@given(st.lists(st.sampled_from([0, -7, 1, None]), max_size=12))
def test_every_form_of_numbers_gives_the_same_codes(values: list[int | None]) -> None:
    binned = Attribute.binned("n", [-10, 0, 1, 5], closed="right", missing="99")
    wide = Attribute.of("w", ["0", "-7", "1", str(2**62), str(-(2**63))], missing="?")
    for form, column in forms_of_numbers(values).items():
        for attribute in (LEVELS, wide):
            expected = [
                attribute.size - 1 if value is None else attribute.code(str(value)) for value in values
            ]
            assert attribute.encode(column).tolist() == expected, form
        found = binned.encode(column).tolist()
        assert found == [{None: 3, 0: 0, -7: 0, 1: 1}[value] for value in values], form


def test_booleans_are_words_and_never_numbers() -> None:
    for levels in (["true", "false"], ["True", "False"], ["True", "true", "False", "false"]):
        attribute = Attribute.of("b", levels, missing="?")
        yes, no = (
            attribute.code(word if word in levels else word.capitalize()) for word in ("true", "false")
        )
        values = [True, None, False]
        masked = np.ma.MaskedArray([True, True, False], [False, True, False])
        series = [
            pd.Series(values, dtype="boolean"),
            pd.Series(values, dtype=object),
            pl.Series(values),
            pa.array(values),
        ]
        for column in [values, masked, *series]:
            assert attribute.encode(column).tolist() == [yes, attribute.size - 1, no]
        assert attribute.encode(np.array([True, False])).tolist() == [yes, no]
    for column in ([True], np.array([True]), pa.array([True])):
        with pytest.raises(DataError, match="True is not a declared level"):
            Attribute.of("b", ["0", "1"]).encode(column)
        with pytest.raises(DataError, match="True is neither a number nor a declared level"):
            Attribute.binned("b", [0, 1, 2]).encode(column)


def test_missing_values_of_every_kind() -> None:
    gone: list[object] = [
        None,
        math.nan,
        np.nan,
        pd.NA,
        pd.NaT,
        np.datetime64("NaT"),
        "",
        Decimal("NaN"),
        np.float32("nan"),
    ]
    for attribute in (LEVELS, Attribute.binned("x", [0, 1, 2], missing="gone")):
        assert attribute.encode(gone).tolist() == [attribute.size - 1] * len(gone)
        assert attribute.encode(pa.nulls(3)).tolist() == [attribute.size - 1] * 3
        assert attribute.encode(np.array(["NaT"], dtype="M8[ns]")).tolist() == [attribute.size - 1]
    assert Attribute.of("e", ["", "x"]).encode(["", "x"]).tolist() == [0, 1]


def test_numbers_beyond_the_exact_floats_match_integers_only() -> None:
    attribute = Attribute.of("id", [2**53 + 1, 2**60, 0])
    assert attribute.encode(np.array([2**53 + 1, 2**60, 0])).tolist() == [0, 1, 2]
    assert attribute.encode(np.array([2**60], dtype=np.uint64)).tolist() == [1]
    assert Attribute.of("id", [2**53 + 1, 0], missing="?").encode(pa.array([2**53 + 1, None])).tolist() == [
        0,
        2,
    ]
    for column in (np.array([float(2**60)]), [float(2**60)], np.array([2**53])):
        with pytest.raises(DataError, match="row 1"):
            attribute.encode(column)


def test_blocks_join_without_a_seam(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "BLOCK", 3)
    values = [*LEVELS.levels, "yes", "gone", "0"]
    expected = [LEVELS.code(value) for value in values]
    for form, column in forms_of_text([*values]).items():
        assert LEVELS.encode(column).tolist() == expected, form
    for column in forms_of_text([*values, "nope"]).values():
        with pytest.raises(DataError, match="row 21: 'nope'"):
            LEVELS.encode(column, first_row=11)


def test_codes_are_as_small_as_the_levels_allow() -> None:
    for size, dtype in ((2, np.uint8), (256, np.uint8), (257, np.uint16), (65_536, np.uint16)):
        attribute = Attribute.of("a", range(size))
        codes = attribute.encode(np.arange(size))
        assert codes.dtype == dtype
        np.testing.assert_array_equal(codes, np.arange(size))
        assert attribute.decode(codes)[-1] == str(size - 1)


def test_every_form_of_table_gives_the_same_codes() -> None:
    schema = Schema.of({"b": ["x", "y"], "a": [0, 1]})
    plain = {"a": [1, 0, 1], "ignored": [None, 2.5, 3.5], "b": ["x", "y", "y"]}
    frame = pd.DataFrame(plain)
    record = np.array([(1, "x"), (0, "y"), (1, "y")], dtype=[("a", int), ("b", "U1")])
    arrow = pa.table(plain)
    tables = [plain, frame, pl.DataFrame(plain), arrow, arrow.to_batches()[0], arrow.to_reader(), record]
    for table in tables:
        codes = schema.encode(table)
        assert {name: found.tolist() for name, found in codes.items()} == {"b": [0, 1, 1], "a": [1, 0, 1]}
        assert list(codes) == ["b", "a"]
    assert [len(found) for found in schema.encode(frame.iloc[:0]).values()] == [0, 0]
