"""Synthetic rows: every way out tells the same codes, files are whole or absent, no cell is a formula."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.networks import synthetic as rows
from discreet.networks.formats import synthetic_files as row_files
from discreet.networks.formats.synthetic_files import neutralise, quote
from discreet.networks.network import Network
from discreet.networks.provenance import Provenance
from discreet.networks.synthetic import Rows
from discreet.values.budget import PureDP
from discreet.values.errors import DataError, FormatError, SchemaError
from discreet.values.schema import Attribute, Schema
from discreet.values.table import Array, Table
from discreet.values.unit import Unit

SCHEMA = Schema(
    (
        Attribute.of("smoke", ["yes", "no"]),
        Attribute.binned("age", [18, 40, 65, 90.5], missing="unknown"),
        Attribute.of("grade, final", ['a "b"', "c,d", "", " e ", "line\nbreak", "ünï"], missing="?"),
        Attribute.binned("dose", [-2, -1, 0, 1e-3], closed="right"),
        Attribute.of("code", [str(i) for i in range(-2, 300)]),
    )
)
FACTORS = [
    Table(("dose",), np.array([0.5, 0.25, 0.25])),
    Table(("dose", "age"), np.array([[0.4, 0.2, 0.2, 0.2], [0.1, 0.2, 0.3, 0.4], [0.25] * 4])),
    Table(("smoke",), np.array([0.3, 0.7])),
    Table(("code",), np.full(302, 1 / 302)),
    Table(("smoke", "grade, final"), np.full((2, 7), 1 / 7)),
]


def make_rows(n: int = 1000, rng: int = 7) -> Rows:
    """Rows over every kind of attribute; the tables come in another order than the schema."""
    return Rows.draw(SCHEMA, FACTORS, n, rng=rng)


def same(one: dict[str, Array], other: dict[str, Array]) -> bool:
    """Whether two tables of codes agree, order of columns and types included."""
    return list(one) == list(other) and all(
        one[name].dtype == other[name].dtype and np.array_equal(one[name], other[name]) for name in one
    )


def read_csv(path: Path) -> dict[str, list[str]]:
    """The columns of a CSV file, by Python's own reader."""
    with path.open(encoding="utf-8", newline="") as file:
        head, *body = csv.reader(file)
    return {name: [line[i] for line in body] for i, name in enumerate(head)}


def read_back(path: Path) -> Any:
    """The table in a file, by the reader of its format."""
    if path.suffix == ".csv":
        return read_csv(path)
    return pyarrow.parquet.read_table(path) if path.suffix == ".parquet" else pyarrow.feather.read_table(path)


def test_codes_come_in_schema_order() -> None:
    """The order of the tables is not the order of the columns."""
    codes = make_rows().codes()
    assert tuple(codes) == SCHEMA.names
    assert {name: found.dtype for name, found in codes.items()} == {a.name: a.dtype for a in SCHEMA}


@pytest.mark.parametrize("size", [1, 7, 333, 1000, 5000])
def test_chunks_are_slices_of_the_whole(size: int) -> None:
    """Whatever the size of the slices, the rows are the same."""
    drawn = make_rows(500)
    parts = list(drawn.chunks(size))
    assert all(len(part["smoke"]) == size for part in parts[:-1])
    assert same(
        {name: np.concatenate([part[name] for part in parts]) for name in SCHEMA.names}, drawn.codes()
    )


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow", ".feather", ".CSV"])
@pytest.mark.parametrize("labels", [False, True])
def test_files_read_back_as_the_same_codes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, labels: bool
) -> None:
    """Labels, and numbers drawn inside their bins, encode to the codes that were drawn, across slices."""
    monkeypatch.setattr(rows, "CHUNK", 300)
    path = tmp_path / f"rows{suffix}"
    drawn = make_rows()
    drawn.write(path, labels=labels)
    table = read_csv(path) if suffix == ".CSV" else read_back(path)
    assert same(SCHEMA.encode(table), drawn.codes())
    assert [found.name for found in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("labels", [False, True])
def test_frames_encode_to_the_same_codes(labels: bool) -> None:
    """Arrow, pandas and Polars agree."""
    drawn = make_rows()
    for frame in (drawn.arrow(labels=labels), drawn.pandas(labels=labels), drawn.polars(labels=labels)):
        assert same(SCHEMA.encode(frame), drawn.codes())


def test_duckdb_reads_the_csv(tmp_path: Path) -> None:
    """A reader with its own ideas about quotes and nulls sees the same table."""
    path = tmp_path / "rows.csv"
    drawn = make_rows()
    drawn.write(path)
    table = duckdb.read_csv(str(path), header=True, all_varchar=True, null_padding=False).to_arrow_table()
    found = SCHEMA.encode({name: table[name].fill_null("").to_pylist() for name in SCHEMA.names})
    assert same(found, drawn.codes())


def test_columns_are_dictionaries_of_codes() -> None:
    """No text for each cell: the codes themselves are the indices, and ordered attributes say so."""
    table = make_rows().arrow(labels=True)
    assert table.schema.field("code").type == pa.dictionary(pa.uint16(), pa.string())
    assert table.schema.field("age").type == pa.dictionary(pa.uint8(), pa.string(), ordered=True)
    assert table["smoke"].chunk(0).dictionary.to_pylist() == ["yes", "no"]


def test_numbers_are_uniform_inside_their_bins() -> None:
    """Shares within a bin spread evenly (Kolmogorov-Smirnov at 1e-6), missing ones are null."""
    from scipy.stats import kstest

    drawn = make_rows(20_000)
    table = drawn.arrow()
    codes = drawn.codes()
    age = table["age"].to_numpy()
    assert np.array_equal(np.isnan(age), codes["age"] == 3)
    for i, (low, high) in enumerate([(18, 40), (40, 65), (65, 90.5)]):
        assert kstest(age[codes["age"] == i], "uniform", (low, high - low)).pvalue > 1e-6
    dose = table["dose"].to_numpy()
    assert dose.min() < -1.99
    assert kstest(dose[codes["dose"] == 0], "uniform", (-2, 1)).pvalue > 1e-6


def test_numbers_do_not_depend_on_the_slices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two sizes of slices write the same bytes."""
    for chunk in (64, 1000):
        monkeypatch.setattr(rows, "CHUNK", chunk)
        make_rows().write(tmp_path / f"{chunk}.csv")
    assert (tmp_path / "64.csv").read_bytes() == (tmp_path / "1000.csv").read_bytes()


def test_negative_numbers_stay_numbers(tmp_path: Path) -> None:
    """A number drawn as a number needs no quote before its sign, and neither does a level that is one."""
    path = tmp_path / "rows.csv"
    make_rows().write(path)
    columns = read_csv(path)
    assert min(float(cell) for cell in columns["dose"]) < -1
    assert "-2" in columns["code"]


def test_open_bins_end_somewhere(tmp_path: Path) -> None:
    """At a public end, or as far beyond the last edge as the neighbouring bin is wide; nothing is refused."""
    schema = Schema(
        (
            Attribute.binned("age", [0, 65, math.inf], type="integer", highest=66),
            Attribute.binned("dose", [-math.inf, 1, 3, math.inf], decimals=1),
        )
    )
    factors = [Table(("age",), np.array([0.0, 1.0])), Table(("dose",), np.array([0.5, 0.0, 0.5]))]
    frame = Rows.draw(schema, factors, 500, rng=1).pandas()
    assert set(frame.age) == {65, 66}
    assert set(frame.dose) == {round(i / 10, 1) for i in (*range(-10, 10), *range(30, 51))}


def test_values_have_the_types_of_their_columns(tmp_path: Path) -> None:
    """Whole numbers, decimals with their digits, booleans, dates and texts; what is missing is null everywhere."""
    days = {"first": date(2020, 1, 1), "last": date(2020, 12, 31)}
    schema = Schema(
        (
            Attribute.binned("count", [0, 1, 2, 10], type="integer", missing="?"),
            Attribute.binned("price", [0, 0.5, 2], decimals=2),
            Attribute.of("dead", [True, False], missing="?"),
            Attribute.of("beds", [1, 2, 4]),
            Attribute.of("ward", ["a", "b"], other="else", missing="?"),
            Attribute.dated("day", by="month", missing="?", **days),
            Attribute.dated("weekday", by="weekday", **days),
            Attribute.dated("seen", by="week", moments=True, **days),
        )
    )
    network = Network.build(
        schema, dict.fromkeys(schema.names, ()), {one.name: np.full(one.size, 1 / one.size) for one in schema}
    )
    drawn = network.sample(2000, rng=1)
    table, codes = drawn.arrow(), drawn.codes()
    numbers = [pa.int64(), pa.float64(), pa.bool_(), pa.int64()]
    kinds = [*numbers, pa.string(), pa.date32(), pa.date32(), pa.timestamp("us")]
    assert table.schema.types == kinds
    assert {
        value for value, code in zip(table["count"].to_pylist(), codes["count"], strict=True) if code < 2
    } == {0, 1}
    assert all(round(price, 2) == price for price in table["price"].to_pylist())
    assert set(table["ward"].to_pylist()) == {"a", "b", "else", None}
    assert set(table["dead"].to_pylist()) == {True, False, None}
    for form in (table, drawn.pandas(), drawn.polars()):
        assert same(schema.encode(form), codes)
    assert str(drawn.pandas()["count"].dtype) == "Int64" and str(drawn.pandas()["beds"].dtype) == "int64"
    assert {str(drawn.pandas()[name].dtype) for name in ("day", "weekday", "seen")} == {"datetime64[us]"}
    for suffix in (".csv", ".parquet", ".arrow"):
        drawn.write(tmp_path / f"rows{suffix}")
        assert same(schema.encode(read_back(tmp_path / f"rows{suffix}")), codes)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow"])
def test_no_rows(tmp_path: Path, suffix: str) -> None:
    """An empty table still has its columns."""
    path = tmp_path / f"rows{suffix}"
    make_rows(0).write(path)
    table = read_back(path)
    names = list(table) if suffix == ".csv" else table.column_names
    assert names == list(SCHEMA.names)
    assert make_rows(0).arrow().num_rows == 0


@pytest.mark.parametrize("name", ["rows.xlsx", "rows", "rows.csv.gz", "rows.pkl"])
def test_unknown_suffixes_are_refused(tmp_path: Path, name: str) -> None:
    """The message names those allowed, and nothing is written."""
    with pytest.raises(FormatError, match=r"allowed are \.csv, \.parquet, \.arrow, \.feather"):
        make_rows().write(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("n", [True, 2.0, -1, "3", None])
def test_bad_numbers_of_rows_are_refused(n: object) -> None:
    """A number of rows is a whole number, 0 or more."""
    with pytest.raises(DataError, match="number of rows"):
        Rows.draw(SCHEMA, FACTORS, n, rng=1)  # type: ignore[arg-type]


def test_tables_that_do_not_fit_the_schema_are_refused() -> None:
    """One for each attribute, of its size."""
    with pytest.raises(SchemaError, match="'code'"):
        Rows.draw(SCHEMA, [table for table in FACTORS if table.axes != ("code",)], 1, rng=1)
    with pytest.raises(SchemaError, match="302 levels, but 2"):
        Rows.draw(SCHEMA, [Table(("code",), np.array([0.5, 0.5])), *FACTORS[:3], FACTORS[4]], 1, rng=1)
    with pytest.raises(SchemaError, match="'new'"):
        Rows.draw(SCHEMA, [Table(("new",), np.array([0.5, 0.5])), *FACTORS], 1, rng=1)
    with pytest.raises(DataError, match="a chunk must have at least 1 row"):
        make_rows().chunks(0)


def test_progress_counts_every_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told the rows of each slice once they are written."""
    monkeypatch.setattr(rows, "CHUNK", 400)
    seen: list[int] = []
    make_rows().write(tmp_path / "rows.csv", progress=seen.append)
    assert seen == [400, 400, 200]


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow"])
def test_a_failure_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str) -> None:
    """A write that breaks off half way changes nothing."""
    monkeypatch.setattr(rows, "CHUNK", 400)
    path = tmp_path / f"rows{suffix}"
    path.write_text("old")

    def stop(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_rows().write(path, progress=stop)
    assert path.read_text() == "old"
    assert [found.name for found in tmp_path.iterdir()] == [path.name]


def make_spelled(high: float, levels: int) -> Network:
    """An attribute of some levels behind three independent bits; stray bits are its last level."""
    bits = ("grade_bit1", "grade_bit2", "grade_bit3")
    schema = Schema((Attribute.of("grade", range(levels)), *(Attribute.of(bit, ["0", "1"]) for bit in bits)))
    link = np.eye(levels)[np.minimum(np.arange(8), levels - 1)].reshape(2, 2, 2, levels)
    coins = {bit: [1 - high, high] for bit in bits}
    network = Network.build(schema, {"grade": bits, **dict.fromkeys(bits, ())}, {"grade": link, **coins})
    details = {"auxiliary": list(bits), "bits": {"grade": list(bits)}}
    return replace(network, provenance=Provenance("privbayes", Unit.ADD_REMOVE, PureDP(1), (), {}, details))


@pytest.mark.parametrize("high", [0.1, 0.5, 0.9])
def test_stray_bits_set_rows_apart_from_answers_by_their_weight(high: float) -> None:
    """Rows have the law of the bits that spell a level; answers are no further from it than stray bits weigh."""
    network = make_spelled(high, 5)
    chances = np.array([math.prod((1 - high, high)[code >> i & 1] for i in range(3)) for code in range(8)])
    stray = network.stray
    assert stray == pytest.approx(chances[5:].sum())
    spelled = chances[:5] / chances[:5].sum()
    asked = network.query("grade", intervals="none").probabilities
    assert asked == pytest.approx([*chances[:4], chances[4:].sum()])
    assert 0 < np.abs(asked - spelled).sum() / 2 <= stray + 1e-12
    drawn = np.bincount(network.sample(50_000, rng=5).codes()["grade"], minlength=5) / 50_000
    left = stray**9  # rows that eight further draws have not mended
    expected = (1 - left) * spelled + left * np.eye(5)[4]
    assert np.abs(drawn - expected).max() < 6 * math.sqrt(0.25 / 50_000)


def test_bits_that_spell_a_level_always_weigh_nothing() -> None:
    """Eight levels need all that three bits can spell; a network without bits has none."""
    assert make_spelled(0.5, 8).stray == 0.0
    plain = Network.build({"a": ["x", "y"]}, {"a": ()}, {"a": [0.5, 0.5]})
    assert plain.stray == 0.0


DANGEROUS = [
    "=1+1",
    "+cmd|' /C calc'!A0",
    "-2+3",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "\n=1",
    "\tplain",
    " =1",
    "\u00a0=1",
    "\u200b=1",
    "\ufeff@x",
    "\u200b \u200b=1",
    "\x01=1",
    "＝1",
    "＋1",
    "－1",
    "＠x",
    "﹦1",
    "−1+A1",
    "'=1",
    "-",
    "-1e5x",
    "-inf",
]
HARMLESS = ["a=1", "1-2", "", "-1", "+5", "-1.5e3", "[−5, 0)", "(-inf, 0)", "'quoted'", "ünï", "x@y", "0"]


@pytest.mark.parametrize("text", DANGEROUS)
def test_formulas_are_neutralised(text: str) -> None:
    """One single quote goes in front, inside the double quotes if there are any."""
    assert neutralise(text) == "'" + text
    (cell,) = next(csv.reader(io.StringIO(quote(text), newline="")))
    assert cell == "'" + text


@pytest.mark.parametrize("text", HARMLESS)
def test_other_texts_stay(text: str) -> None:
    """What runs nothing is left alone."""
    assert neutralise(text) == text


def test_formulas_in_files(tmp_path: Path) -> None:
    """Levels and the header are made harmless in CSV; Parquet, which no spreadsheet runs, keeps them."""
    names = ["=HYPERLINK(1)", "@x", "b"]
    schema = Schema.of(dict.fromkeys(names, DANGEROUS))
    factors = [Table((name,), np.full(len(DANGEROUS), 1 / len(DANGEROUS))) for name in names]
    drawn = Rows.draw(schema, factors, 500, rng=3)
    drawn.write(tmp_path / "rows.csv")
    columns = read_csv(tmp_path / "rows.csv")
    assert list(columns) == ["'=HYPERLINK(1)", "'@x", "b"]
    assert {cell[:1] for column in columns.values() for cell in column} == {"'"}
    restored = {name.removeprefix("'"): [cell[1:] for cell in column] for name, column in columns.items()}
    assert same(schema.encode(restored), drawn.codes())
    drawn.write(tmp_path / "rows.parquet")
    assert same(schema.encode(read_back(tmp_path / "rows.parquet")), drawn.codes())


label = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=6)


@settings(deadline=None, max_examples=200)
@given(
    st.lists(
        label | st.sampled_from(DANGEROUS).map(lambda text: text[:4]), min_size=2, max_size=8, unique=True
    )
)
def test_neutralising_keeps_texts_apart(texts: list[str]) -> None:
    """No two levels become one, and none starts a formula afterwards."""
    safe = [neutralise(text) for text in texts]
    assert len(set(safe)) == len(texts)
    for text in safe:
        assert text[:1] not in tuple("=@\t\r\n＝＋－＠")
        assert text[:1] not in ("+", "-") or math.isfinite(float(text))


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.lists(label, min_size=2, max_size=5, unique=True), min_size=1, max_size=5),
    st.integers(0, 1000),
    st.sampled_from([1, 6, 4096]),
)
def test_csv_of_any_labels(
    tmp_path_factory: pytest.TempPathFactory, levels: list[list[str]], seed: int, phrases: int
) -> None:
    """Any text survives the writer and a standard reader, however cells are grouped into phrases."""
    schema = Schema.of({f"c{i}": found for i, found in enumerate(levels)})
    factors = [Table((name,), np.full(size, 1 / size)) for name, size in schema.sizes.items()]
    drawn = Rows.draw(schema, factors, 20, rng=seed)
    path = tmp_path_factory.mktemp("csv") / "rows.csv"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_files, "PHRASES", phrases)
        patch.setattr(row_files, "LINES_BYTES", 100)
        drawn.write(path)
    expected = {
        name: [neutralise(schema[name].levels[code]) for code in codes]
        for name, codes in drawn.codes().items()
    }
    assert read_csv(path) == expected
