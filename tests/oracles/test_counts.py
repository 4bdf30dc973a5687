"""Every engine counts what counting by hand counts: from any source, held or streamed, weighted or not."""

from __future__ import annotations

import csv
import itertools
import math
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.core.counter import Counter as CounterProtocol
from discreet.entrance import open_counter
from discreet.rows.engines import kernels
from discreet.rows.engines.coded import CodedCounter
from discreet.rows.readers import duck_codes as encoding
from discreet.values.errors import AirlockError, DataError, TableError
from discreet.values.schema import Attribute, Schema, types

STREAMED = 1
"""A memory limit of one byte: no codes are kept."""

LABELS = [
    "a",
    "A",
    "",
    " a",
    "NA",
    "null",
    "01",
    "1",
    "-1",
    "1.0",
    "true",
    "é",
    "e\u0301",
    "x,y",
    'q"q',
    "it's",
    "#",
    "l\nb",
]
EDGES = [-math.inf, -3.0, 0.0, 0.1, 0.30000000000000004, 1.0, 2.5, 1e300, math.inf]


@st.composite
def attributes(draw: st.DrawFn, name: str) -> Attribute:
    """Levels of awkward text or bins at awkward edges, with or without a missing level."""
    missing = draw(st.sampled_from([None, "gone", "-9"]))
    if draw(st.booleans()):
        edges = draw(st.lists(st.sampled_from(EDGES), min_size=3, max_size=6, unique=True).map(sorted))
        missing = None if missing == "-9" and edges[0] <= -9 <= edges[-1] else missing
        return Attribute.binned(name, edges, closed=draw(st.sampled_from(["left", "right"])), missing=missing)
    levels = draw(st.lists(st.sampled_from(LABELS), min_size=2, max_size=5, unique=True))
    return Attribute.of(name, levels, missing=missing)


def values_of(attribute: Attribute) -> st.SearchStrategy[str | None]:
    """Texts that the schema takes for this attribute."""
    found: list[str | None] = [level for level in attribute.levels if level]
    if attribute.bins is not None:
        near = [edge for edge in attribute.bins.edges if math.isfinite(edge)]
        near += [math.nextafter(edge, way) for edge in near for way in (math.inf, -math.inf)]
        found += [repr(value) for value in near if attribute.bins.holds(value)]
    if attribute.missing is not None:
        found.append(None)
    return st.sampled_from(found)


@st.composite
def tables(draw: st.DrawFn) -> tuple[Schema, dict[str, list[str | None]], list[tuple[str, ...]]]:
    """A schema, a few rows that fit it, and attribute sets in any order."""
    names = ["sex", 'a"; DROP TABLE t; --', "Größe", "SEX"][: draw(st.integers(1, 4))]
    schema = Schema(tuple(draw(attributes(name)) for name in names))
    choices = [values_of(attribute) for attribute in schema]
    rows = draw(st.lists(st.tuples(*choices), min_size=1, max_size=30))
    data = {name: list(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}
    subsets = [p for k in range(len(names) + 1) for p in itertools.permutations(names, k)]
    return schema, data, draw(st.lists(st.sampled_from(subsets), min_size=1, max_size=6))


def count_by_hand(
    schema: Schema,
    data: dict[str, Any],
    sets: Sequence[tuple[str, ...]],
    weights: Sequence[int] | None = None,
) -> list[Any]:
    """The tables, by a dictionary of tuples of codes."""
    codes = {name: [int(code) for code in schema[name].encode(data[name])] for name in schema.names}
    rows = len(next(iter(codes.values())))
    units = [1] * rows if weights is None else list(weights)
    found = []
    for members in sets:
        cells: Counter[tuple[int, ...]] = Counter()
        for i in range(rows):
            cells[tuple(codes[name][i] for name in members)] += units[i]
        table = np.zeros([schema[name].size for name in members], dtype=np.int64)
        for cell, number in cells.items():
            table[cell] = number
        found.append(table)
    return found


def assert_counts(counter: CounterProtocol, sets: Sequence[tuple[str, ...]], wanted: Sequence[Any]) -> None:
    """The counter answers with these int64 tables, axes in the order asked."""
    found = counter.count(sets)
    counter.close()
    assert [table.axes for table in found] == list(sets)
    for table, values in zip(found, wanted, strict=True):
        assert table.values.dtype == np.int64
        np.testing.assert_array_equal(table.values, values)


@pytest.fixture(scope="module")
def engine() -> Iterator[Any]:
    """One Ibis connection to DuckDB for the whole module."""
    connection = ibis.duckdb.connect()
    yield connection
    connection.disconnect()


def hold(engine: Any, table: pa.Table) -> Any:
    """The table as a table of the engine."""
    engine.con.register("given", table)
    engine.con.execute("CREATE OR REPLACE TABLE held AS FROM given").fetchall()
    engine.con.unregister("given")
    return engine.table("held")


def write_csv(path: Path, data: dict[str, Any]) -> Path:
    """A CSV file in which None is an empty field."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(data)
        writer.writerows(zip(*data.values(), strict=True))
    return path


@settings(deadline=None, max_examples=25)
@given(tables())
def test_every_way_of_counting_agrees(engine: Any, table: Any) -> None:
    """Coded = streamed = weighted = pushed down = counted by hand, on random schemas, rows and sets."""
    schema, data, sets = table
    wanted = count_by_hand(schema, data, sets)
    arrow = pa.table({name: pa.array(column, pa.string()) for name, column in data.items()})
    assert_counts(open_counter(arrow, schema), sets, wanted)
    assert_counts(open_counter(arrow, schema, memory=STREAMED), sets, wanted)
    assert_counts(open_counter(data, schema, memory=STREAMED), sets, wanted)
    with tempfile.TemporaryDirectory() as folder:
        assert_counts(open_counter(write_csv(Path(folder, "t.csv"), data), schema), sets, wanted)
    if len({name.lower() for name in schema.names}) == len(schema.names):  # DuckDB's own tables fold case
        assert_counts(open_counter(hold(engine, arrow), schema), sets, wanted)


@settings(deadline=None, max_examples=12)
@given(tables(), st.data())
def test_a_weight_is_that_many_rows(engine: Any, table: Any, more: st.DataObject) -> None:
    """Aggregated rows with their number as weight count like the rows; a weight of zero counts nothing."""
    schema, data, sets = table
    rows = len(next(iter(data.values())))
    weights = more.draw(st.lists(st.integers(0, 5), min_size=rows, max_size=rows).filter(any))
    repeated = {
        name: [v for v, w in zip(column, weights, strict=True) for _ in range(w)]
        for name, column in data.items()
    }
    wanted = count_by_hand(schema, repeated, sets)
    given_weights = {**data, "Gewicht": weights}
    arrow = pa.table({**{n: pa.array(c, pa.string()) for n, c in data.items()}, "Gewicht": weights})
    for memory in (None, STREAMED):
        for form in (arrow, given_weights, pd.DataFrame(given_weights)):
            counter = open_counter(form, schema, weight="Gewicht", memory=memory)
            assert counter.rows == sum(weights)
            assert_counts(counter, sets, wanted)
    if len({name.lower() for name in schema.names}) == len(schema.names):
        assert_counts(open_counter(hold(engine, arrow), schema, weight="Gewicht"), sets, wanted)


NUMBERS = Schema(
    (
        Attribute.of("whole", range(-2, 4), missing="none"),
        Attribute.of("wide", [str(7**i) for i in range(9)]),
        Attribute.binned("left", [-10, 0, 0.1, math.inf], missing="-999"),
        Attribute.binned("right", [-5, 0, 0.1, 8], closed="right"),
        Attribute.of("flag", ["True", "false"]),
        Attribute.of("money", ["0", "1", "2"]),
    )
)


def test_numbers_of_every_type_follow_the_rule() -> None:
    """Integers, floats, decimals and booleans of any width match the level or bin that the schema gives them."""
    data: dict[str, list[Any]] = {
        "whole": [-2, None, 3, 0],
        "wide": [1, 7**8, 7, 1],
        "left": [0.0, math.nan, math.inf, None],
        "right": [-5.0, 0.1, 8.0, -0.0],
        "flag": [True, False, True, True],
        "money": [Decimal("1.00"), Decimal("0.00"), Decimal("2.00"), Decimal("2.00")],
    }
    sets = [("whole", "left"), ("wide",), ("right", "flag"), ("money",)]
    wanted = count_by_hand(NUMBERS, data, sets)
    for whole in (pa.int8(), pa.int64(), pa.float32(), pa.float64(), pa.decimal128(22, 3)):
        for wide in (pa.int32(), pa.uint64(), pa.float64()):
            types = [whole, wide, pa.float64(), pa.float32(), pa.bool_(), pa.decimal128(20, 2)]
            arrow = pa.table({n: pa.array(c).cast(t) for (n, c), t in zip(data.items(), types, strict=True)})
            by_rule = count_by_hand(NUMBERS, {n: arrow[n] for n in arrow.column_names}, sets)
            assert_counts(open_counter(arrow, NUMBERS), sets, by_rule)
    np.testing.assert_array_equal(by_rule[0], wanted[0])


def test_every_kind_of_source_gives_the_same_tables(tmp_path: Path) -> None:
    """Files, frames, Arrow and databases, compressed or not, hold the same rows."""
    rng = np.random.default_rng(5)
    schema = Schema(
        (
            Attribute.of("a", ["x", "y", "z"], missing="?"),
            Attribute.binned("n", [0, 10, 50, 100]),
            Attribute.of("i", range(4)),
        )
    )
    data = {
        "extra": rng.random(500).tolist(),
        "i": rng.integers(0, 4, 500).tolist(),
        "a": [[None, "x", "y", "z"][k] for k in rng.integers(0, 4, 500)],
        "n": rng.uniform(0, 100, 500).tolist(),
    }  # fmt: skip
    sets = [("a", "n", "i"), ("i", "a"), ()]
    arrow = pa.table(data)
    plain = write_csv(tmp_path / "t.csv", data)
    (tmp_path / "t.csv.gz").write_bytes(__import__("gzip").compress(plain.read_bytes()))
    (tmp_path / "bom.CSV").write_bytes(b"\xef\xbb\xbf" + plain.read_bytes().replace(b"\r\n", b"\n"))
    pd.DataFrame(data).to_csv(tmp_path / "t.tsv", sep="\t", index=False)
    pq.write_table(arrow, tmp_path / "[t]*.parquet", row_group_size=100)
    (tmp_path / "parts").mkdir()
    pq.write_table(arrow.slice(0, 200), tmp_path / "parts" / "0.parquet")
    pq.write_table(arrow.slice(200), tmp_path / "parts" / "1.parquet")
    feather.write_feather(arrow, tmp_path / "t.arrow")
    connection = duckdb.connect(tmp_path / "t.duckdb")
    connection.register("shown", arrow)
    connection.execute('CREATE TABLE "odd ""name" AS FROM shown').fetchall()
    connection.execute("CREATE SCHEMA s").fetchall()
    connection.execute('CREATE VIEW s.v AS FROM main."odd ""name"').fetchall()
    lite = sqlite3.connect(tmp_path / "t.db")
    lite.execute("CREATE TABLE visits (extra, i, a, n)")
    lite.executemany("INSERT INTO visits VALUES (?, ?, ?, ?)", list(zip(*data.values(), strict=True)))
    lite.commit()
    wanted = count_by_hand(schema, data, sets)
    live: list[Any] = [
        (connection, 'odd "name'),
        (connection, "shown"),
        (connection, "s.v"),
        (lite, "visits"),
    ]
    forms = [
        *(tmp_path / name for name in ("t.csv", "t.csv.gz", "bom.CSV", "t.tsv", "[t]*.parquet", "parts", "t.arrow")),
        str(tmp_path / "parts" / "*.parquet"),
        f"{tmp_path}/t.db::visits",
        *live,
        arrow,
        arrow.to_batches()[0],
        ds.dataset(tmp_path / "parts"),
        pd.DataFrame(data),
        pd.DataFrame(data).astype({"a": "category"}),
        pl.DataFrame(data),
        pl.DataFrame(data).with_columns(pl.col("a").cast(pl.Categorical)),
        data,
    ]  # fmt: skip
    for form, memory in itertools.product(forms, (None, STREAMED)):
        counter = open_counter(form, schema, memory=memory)
        assert counter.rows == 500
        assert_counts(counter, sets, wanted)
    connection.close()
    assert_counts(open_counter(f'{tmp_path}/t.duckdb::odd "name', schema), sets, wanted)
    assert_counts(open_counter(f"{tmp_path}/t.duckdb::s.v", schema, memory=STREAMED), sets, wanted)


def test_many_levels_take_two_bytes_a_row(engine: Any) -> None:
    """An attribute with more levels than a byte tells apart is counted as exactly, by text and by number."""
    rng = np.random.default_rng(6)
    schema = Schema(
        (
            Attribute.of("place", [f"p{i}" for i in range(3000)]),
            Attribute.of("code", range(-20000, 20000)),
            Attribute.of("z", ["a", "b"]),
        )
    )
    data = {
        "place": [f"p{i}" for i in rng.integers(0, 3000, 5000)],
        "code": rng.integers(-20000, 20000, 5000),
        "z": ["ab"[k] for k in rng.integers(0, 2, 5000)],
    }  # fmt: skip
    sets = [("place", "z"), ("z", "code")]
    wanted = count_by_hand(schema, data, sets)
    for form in (pa.table(data), hold(engine, pa.table(data)), data):
        assert_counts(open_counter(form, schema), sets, wanted)


def test_streaming_is_chosen_by_the_limit() -> None:
    """Codes are kept while half of the memory limit holds them, and read again when it does not."""
    schema = Schema.of({"a": ["x", "y"], "b": ["x", "y"]})
    data = {"a": ["x"] * 1000, "b": ["y"] * 1000}
    held, streamed = open_counter(data, schema, memory=4000), open_counter(data, schema, memory="3.9kB")
    assert isinstance(held, CodedCounter)
    assert isinstance(streamed, CodedCounter)
    assert held.in_memory
    assert not streamed.in_memory


def test_a_closed_counter_answers_nothing() -> None:
    """The codes are gone after close."""
    counter = open_counter({"a": ["x"]}, Schema.of({"a": ["x", "y"]}))
    counter.close()
    with pytest.raises(AirlockError, match="closed"):
        counter.count([("a",)])


def test_rows_that_change_between_passes_are_noticed(tmp_path: Path) -> None:
    """A streamed file that was written to after it was opened is refused, not counted."""
    schema = Schema.of({"a": ["x", "y"]})
    path = write_csv(tmp_path / "t.csv", {"a": ["x", "y"]})
    counter = open_counter(path, schema, memory=STREAMED)
    counter.count([("a",)])
    write_csv(path, {"a": ["x", "y", "y"]})
    with pytest.raises(DataError, match="changed"):
        counter.count([("a",)])


def count_codes(
    codes: list[np.ndarray],
    sizes: list[int],
    sets: list[tuple[int, ...]],
    weights: np.ndarray | None = None,
    threads: int | None = None,
) -> list[np.ndarray]:
    """One table for each set of columns, counted in one batch."""
    tally = kernels.Tally(sizes, sets, weighted=weights is not None, threads=threads)
    tally.add(codes, weights)
    return tally.finish()


def test_the_number_pattern_is_the_schemas() -> None:
    """Engines that match patterns take the same texts for numbers as the schema."""
    assert encoding.NUMBER is types.NUMBER


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_kernels_count_like_numpy(threads: int, dtype: Any) -> None:
    """Any number of threads, any mix of code widths, more rows than a block."""
    rng = np.random.default_rng(threads)
    sizes = [2, 7, 300 if dtype is np.uint16 else 250, 11]
    rows = kernels.WORTH_A_THREAD + 12345
    codes = [rng.integers(0, size, rows).astype(np.uint16 if size > 256 else np.uint8) for size in sizes]
    weights = rng.integers(0, 9, rows)
    sets = [(0, 1), (2, 3, 0), (3,), (1, 2), ()]
    for given_weights in (None, weights):
        for members, found in zip(
            sets, count_codes(codes, sizes, sets, given_weights, threads=threads), strict=True
        ):
            shape = [sizes[c] for c in members]
            index = (
                np.ravel_multi_index([codes[c] for c in members], shape)
                if members
                else np.zeros(rows, dtype=int)
            )
            wanted = np.bincount(index, weights=given_weights, minlength=math.prod(shape)).astype(np.int64)
            np.testing.assert_array_equal(found, wanted.reshape(shape))


def test_full_histograms_are_emptied_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cell may count past what 32 bits hold: private histograms are added up before they can overflow."""
    monkeypatch.setattr(kernels, "FLUSH", 1000)
    tally = kernels.Tally([2], [(0,)])
    for _ in range(3):
        tally.add([np.ones(2700, dtype=np.uint8)])
        assert all(histogram.max() <= 1000 for histogram in tally._private)
    assert tally.finish()[0].tolist() == [0, 8100]
    assert tally.finish()[0].tolist() == [0, 8100]


def test_kernels_refuse_what_would_write_elsewhere() -> None:
    """A stray code, a wrong type, unequal columns and forgotten weights are refused."""
    with pytest.raises(DataError, match="code 2 in a column of 2 levels"):
        count_codes([np.array([0, 2], dtype=np.uint8)], [2], [(0,)])
    with pytest.raises(DataError, match="code 258 in a column of 3 levels"):
        count_codes([np.array([0, 258], dtype=np.uint16)], [3], [(0,)])
    with pytest.raises(TableError, match="uint8 or uint16"):
        count_codes([np.array([0, 1])], [2], [(0,)])
    with pytest.raises(TableError, match="different lengths"):
        count_codes([np.zeros(2, dtype=np.uint8), np.zeros(3, dtype=np.uint8)], [2, 2], [(0,)])
    with pytest.raises(TableError, match="weights"):
        kernels.Tally([2], [(0,)], weighted=True).add([np.zeros(2, dtype=np.uint8)])
