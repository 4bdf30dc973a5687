"""Bad input is one line that names the thing, the value and what is allowed; nothing is guessed."""

from __future__ import annotations

import datetime
import json
import math
import re
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.entrance import open_counter
from discreet.rows.limits import read_memory
from discreet.values.errors import DataError, DiscreetError, TooLarge
from discreet.values.schema import Attribute, Schema

SEX = Schema.of({"sex": ["f", "m"]})
AGE = Schema((Attribute.binned("age", [0, 18, 65, 120]),))
OPEN = Schema((Attribute.binned("age", [0, 18, math.inf], missing="NA"),))
BOTH = Schema((*SEX.attributes, *AGE.attributes))


def refuse(
    data: Any, schema: Schema, message: str, kind: type[DiscreetError] = DataError, **options: Any
) -> None:
    """Opening the data fails with this message, on one line, for held and for streamed codes alike."""
    for memory in (None, 1):
        with pytest.raises(kind, match=message) as caught:
            open_counter(data, schema, memory=memory, **options)
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 500


CSV_CASES: list[tuple[str | bytes, Schema, str]] = [
    (
        "sex\nf\nx\n",
        SEX,
        r"^t\.csv: attribute 'sex', row 2: 'x' is not a declared level; allowed are 'f', 'm'$",
    ),
    ("sex\nf\nF\n", SEX, "row 2: 'F' is not a declared level"),
    ("sex\nf\n m\n", SEX, "row 2: ' m' is not"),
    ('sex,age\nf,1\n"",2\n', SEX, "row 2: the value is missing and the schema declares no missing level"),
    ("sex,age\nf,1\n,2\n", SEX, "row 2: the value is missing"),
    ("sex,age\nf,old\n", BOTH, "attribute 'age', row 1: 'old' is neither a number nor a declared level"),
    ("sex,age\nf,1_0\n", BOTH, "'1_0' is neither a number"),
    ("sex,age\nf, 10\n", BOTH, "' 10' is neither a number"),
    ("sex,age\nf,nan\n", BOTH, "'nan' is neither a number"),
    ("sex,age\nf,0x1f\n", BOTH, "'0x1f' is neither a number"),
    ("sex,age\nf,121\n", BOTH, r"row 1: '121' is beyond the edges; allowed are '\[0, 18\)', .*'\[65, 120\]'"),
    ("sex,age\nf,-1e-9\n", BOTH, "'-1e-9' is beyond the edges"),
    ("age\n-1\n", OPEN, "'-1' is beyond the edges"),
    ("gender\nf\n", SEX, r"^t\.csv: no column 'sex'; it has 'gender'$"),
    ("SEX\nf\n", SEX, "no column 'sex'; it has 'SEX'"),
    ("sex,sex\nf,m\n", SEX, "2 columns named 'sex'; names must be unique"),
    ("sex\n", SEX, "no rows; at least 1 is needed"),
    ("sex", SEX, "no rows"),
    ("", SEX, "the file is empty"),
    ("sex,age\nf,1\nf,2,3\n", SEX, r"^t\.csv: line 3: 3 columns; the header has 2$"),
    ("sex,age\nf,1\nf\n", SEX, "line 3: 1 columns; the header has 2"),
    ('sex,age\nf,"1\n', SEX, "line 2: a quoted value is not closed"),
    ('sex,age\nf,1\nf,"1\nf,2\n', SEX, "line 3: a quoted value is not closed"),
    ('sex,age\n"f"x,1\n', SEX, "line 2: a quoted value is followed by other text"),
    ("sex,age\nf,1\n" + "y" * 3_000_000, SEX, "line 3: more than 2,097,152 bytes"),
    (
        'sex,age\nf,1\n"' + "y\n" * 3_000_000,
        SEX,
        "line 3: more than 2,097,152 bytes; .*or a quote is not closed",
    ),
    (b"sex\nf\n\xff\n", SEX, "row 2: 'ÿ' is not a declared level"),
    (b"s\xe9x\nf\n", SEX, "no column 'sex'; it has 'séx'"),
    (b"\xff\xfes\x00e\x00x\x00\n\x00", SEX, "no rows; at least 1 is needed"),
    ("sex\nf\n=HYPERLINK(1)\n", SEX, r"'=HYPERLINK\(1\)' is not a declared level"),
    ("sex\nf\n" + "y" * 5000 + "\n", SEX, "row 2: 'y{50,}…"),
    ("sex\nf\ne\u0301\u202e\U0001f9ec\n", SEX, "row 2: '"),
]


@pytest.mark.parametrize(("content", "schema", "message"), CSV_CASES, ids=range(len(CSV_CASES)))
def test_bad_csv_is_refused(tmp_path: Path, content: str | bytes, schema: Schema, message: str) -> None:
    """Unknown levels, missing values, wrong types, bad columns, ragged and broken files."""
    path = tmp_path / "t.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    refuse(path, schema, message)


@pytest.mark.parametrize(
    ("tail", "message"),
    [
        ("f\n", "line 5,000,002: 1 columns; the header has 2"),
        ("f", "line 5,000,002: 1 columns"),
        ("f,1,2\n", "line 5,000,002: 3 columns"),
        ("y" * 40_000_000, "line 5,000,002: more than 2,097,152 bytes"),
        ("y" * 40_000_000 + "\n", "line 5,000,002: more than 2,097,152 bytes"),
        ('f,"1\n', "line 5,000,002: a quoted value is not closed"),
    ],
    ids=range(6),
)
def test_no_line_of_a_long_csv_is_lost(tmp_path: Path, tail: str, message: str) -> None:
    """DuckDB leaves out some broken last lines without a word, and would so undercount."""
    path = tmp_path / "t.csv"
    path.write_text("sex,age\n" + "f,1\n" * 5_000_000 + tail)
    with pytest.raises(DataError, match=message):
        open_counter(path, SEX)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_records_are_counted_as_they_are_read(tmp_path: Path, end: str) -> None:
    """Quoted line breaks, delimiters and quotes, empty lines and an open end neither make a row nor lose one."""
    schema = Schema((Attribute.of("sex", ["f", f"m{end}", 'q"', ",", '"'], missing="?"), *OPEN.attributes))
    lines = ["sex,age", "f,1", f'"m{end}",2', '"q""",3', '",",4', '"""",', ",", '"",""', "f,5"]
    for between, after in (("", ""), ("", end), (end, end + end)):
        path = tmp_path / "t.csv"
        path.write_bytes((between + end).join(lines).encode() + after.encode())
        counted = open_counter(path, schema).count([("sex",)])[0].values.tolist()
        assert counted == [2, 1, 1, 1, 1, 2]
    path.write_bytes(end.join(["sex", "f", "", "f", '""', ""]).encode())
    assert open_counter(path, schema.select(["sex"])).count([("sex",)])[0].values.tolist() == [
        2,
        0,
        0,
        0,
        0,
        2,
    ]


def test_nothing_is_guessed_from_a_csv(tmp_path: Path) -> None:
    """'01' stays '01', 'NA' and 'null' are texts, dates are not dates; only the empty field is missing."""
    odd = ["01", "NA", "null", "2020-01-01", "true", "1e3", "#c", "None", "-0"]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["v", *odd, "", "01"]) + "\n")
    schema = Schema((Attribute.of("v", odd, missing="gone"),))
    assert open_counter(path, schema).count([("v",)])[0].values.tolist() == [2, 1, 1, 1, 1, 1, 1, 1, 1, 1]


def test_the_first_bad_row_is_named(tmp_path: Path) -> None:
    """Rows are read out of order and by several threads, yet the error counts them from the top."""
    rows = 400_000
    levels = np.array(["f", "m"])[np.arange(rows) % 2].astype(object)
    levels[[287_654, 399_999]] = "x"
    pq.write_table(pa.table({"sex": levels}), tmp_path / "t.parquet", row_group_size=20_000)
    refuse(tmp_path / "t.parquet", SEX, "row 287,655: 'x'")
    pd.DataFrame({"sex": levels}).to_csv(tmp_path / "t.csv", index=False)
    refuse(tmp_path / "t.csv", SEX, "row 287,655: 'x'")
    refuse(pd.DataFrame({"sex": levels}), SEX, "row 287,655: 'x'")


FRAMES: list[tuple[dict[str, Any], Schema, str]] = [
    ({"sex": ["f", None]}, SEX, "row 2: the value is missing"),
    ({"sex": ["f", "x"]}, SEX, "row 2: 'x' is not a declared level; allowed are 'f', 'm'"),
    ({"sex": [0.5, 1.0]}, SEX, "row 1: 0.5 is not a declared level"),
    ({"sex": [True, False]}, SEX, "row 1: True is not a declared level"),
    ({"age": [1.0, math.nan]}, AGE, "row 2: the value is missing"),
    ({"age": [1.0, math.inf]}, AGE, "row 2: inf is beyond the edges"),
    ({"age": [True, False]}, AGE, "row 1: True is neither a number nor"),
    ({"age": ["1", "x"]}, AGE, "row 2: 'x' is neither a number"),
    ({"age": []}, AGE, "no rows"),
    ({}, AGE, "no column 'age'"),
]


@pytest.mark.parametrize(("data", "schema", "message"), FRAMES, ids=range(len(FRAMES)))
def test_bad_frames_are_refused(data: dict[str, Any], schema: Schema, message: str) -> None:
    """A mapping, a pandas frame, a Polars frame and an Arrow table are refused in the same words."""
    for form in (data, pd.DataFrame(data), pl.DataFrame(data), pa.table(data)):
        refuse(form, schema, message)


def test_types_without_levels_are_refused(tmp_path: Path) -> None:
    """Dates, blobs and nested values are no levels, and the error names the column and its type."""
    day = datetime.date(2020, 1, 1)
    for wanted, values in {"date": [day], "datetime": [datetime.datetime(2020, 1, 1)]}.items():
        refuse(pa.table({"sex": values}), SEX, f"column 'sex' holds dates; declare type = \"{wanted}\"")
    cases: dict[str, list[object]] = {"BLOB": [b"f"], "VARCHAR": [["f"]]}
    for kind, values in cases.items():
        refuse(
            pa.table({"sex": values}),
            SEX,
            f"column 'sex' has the type {kind}.*; allowed are text, numbers,",
        )
    refuse({"sex": [day]}, SEX, "is not a declared level")
    refuse({"sex": [["f"]]}, SEX, "is not a declared level")
    lite = sqlite3.connect(":memory:")
    lite.execute("CREATE TABLE t (sex)")
    lite.execute("INSERT INTO t VALUES (?)", (b"f",))
    refuse((lite, "t"), SEX, "table 't': attribute 'sex', row 1: b'f' is not")


def test_duplicate_columns_are_refused(tmp_path: Path) -> None:
    """A column that is there twice is refused; one that differs by case is another column."""
    twice = pa.table([pa.array(["f"]), pa.array(["m"])], names=["sex", "sex"])
    pq.write_table(twice, tmp_path / "t.parquet")
    for form in (twice, tmp_path / "t.parquet", pd.DataFrame([["f", "m"]], columns=["sex", "sex"])):
        refuse(form, SEX, "2 columns named 'sex'")
    cased = pa.table([pa.array(["x"]), pa.array(["m"]), pa.array([{"sex": 1}])], names=["Sex", "sex", "nest"])
    pq.write_table(cased, tmp_path / "cased.parquet")
    assert open_counter(tmp_path / "cased.parquet", SEX).count([("sex",)])[0].values.tolist() == [0, 1]
    assert open_counter(cased, SEX).count([("sex",)])[0].values.tolist() == [0, 1]


def test_files_that_are_not_what_they_say(tmp_path: Path) -> None:
    """A missing file, an empty one, an unknown kind, junk called Parquet or Arrow, a truncated file."""
    refuse(tmp_path / "lost.csv", SEX, "lost.csv: no such file")
    refuse(tmp_path / "lost*.parquet", SEX, "no such file")
    for odd in ("x" * 5000, "a\0b", "a\nb.csv", "x" * 5000 + "::t", "sex\nf\nm\n", "\0*", ""):
        refuse(odd, SEX, "no such file|no header|in this folder")
    refuse(tmp_path, SEX, "no Parquet file in this folder")
    refuse(f"{tmp_path}/lost.db::t", SEX, "no such file")
    for name, content, message in [
        ("t.xlsx", b"PK", "not an Excel file"),
        ("t", b"f", "unknown kind of file ''"),
        ("t.parquet", b"hello, world", "not a Parquet file"),
        ("short.parquet", b"PAR1", "t.parquet"),
        ("empty.parquet", b"", "the file is empty"),
        ("t.arrow", b"hello", "not an Arrow file"),
        ("t.csv.gz", b"not gzip", "cannot be read: Not a gzipped file"),
    ]:
        (tmp_path / name).write_bytes(content)
        refuse(tmp_path / name, SEX, message)
    refuse(f"{tmp_path}/t.xlsx::t", SEX, "not an Excel file")
    pq.write_table(pa.table({"sex": ["f", "m"] * 50_000}), tmp_path / "whole.parquet")
    whole = (tmp_path / "whole.parquet").read_bytes()
    (tmp_path / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    refuse(tmp_path / "cut.parquet", SEX, "cut.parquet: ")
    (tmp_path / "bent.parquet").write_bytes(whole[:4] + bytes(60) + whole[64:])
    refuse(tmp_path / "bent.parquet", SEX, "bent.parquet: ")


def test_tables_that_are_not_there(tmp_path: Path) -> None:
    """An unknown table is refused, with those that exist."""
    file = duckdb.connect(tmp_path / "t.duckdb")
    file.execute("CREATE TABLE visits (sex VARCHAR)").fetchall()
    refuse((file, "lost"), SEX, "table 'lost': no such table")
    file.close()
    refuse(f"{tmp_path}/t.duckdb::lost", SEX, "no such table; the file has 'visits'")
    refuse(f"{tmp_path}/t.duckdb::visits", SEX, "no rows")
    refuse((sqlite3.connect(":memory:"), "lost"), SEX, "table 'lost': no such table")
    refuse(object(), SEX, "cannot read rows from a builtins.object; allowed are a path")
    refuse(3, SEX, "cannot read rows from a builtins.int")


def test_names_that_look_like_sql_stay_names(tmp_path: Path) -> None:
    """Columns, levels and tables with quotes and semicolons are counted, and nothing is dropped."""
    name, level = 'a"; DROP TABLE visits; --', "x'); DROP TABLE visits; --"
    schema = Schema.of({name: [level, "'", '"', "\\"]})
    table = pa.table({name: [level, "'", "'", "\\"]})
    file = duckdb.connect(tmp_path / "t.duckdb")
    file.register("given", table)
    file.execute("CREATE TABLE visits AS FROM given").fetchall()
    file.execute(f'CREATE TABLE "{name.replace(chr(34), chr(34) * 2)}" AS FROM given').fetchall()
    lite = sqlite3.connect(":memory:")
    lite.execute(f'CREATE TABLE visits ("{name.replace(chr(34), chr(34) * 2)}")')
    lite.executemany("INSERT INTO visits VALUES (?)", [(value,) for value in table[name].to_pylist()])
    pq.write_table(table, tmp_path / "it's; DROP.parquet")
    forms = [(file, "visits"), (file, name), (lite, "visits"), tmp_path / "it's; DROP.parquet", table]
    for form in forms:
        assert open_counter(form, schema).count([(name,)])[0].values.tolist() == [1, 2, 0, 1]
    assert file.execute("SELECT count(*) FROM visits").fetchall() == [(4,)]


def test_bad_weights_are_refused(tmp_path: Path) -> None:
    """A weight is a whole number from 0 upwards, in a column that is there and is no attribute."""
    allowed = "weights are whole numbers from 0 to"
    for values, message in [
        ([1, -1], f"row 2: -1 is not allowed; {allowed}"),
        ([2**41, 1], f"row 1: {2**41} is not allowed; {allowed}"),
        ([1, None], f"row 2: .* is not allowed; {allowed}"),
        ([0, 0], "no weight in any of its 2 rows"),
    ]:
        data = {"sex": ["f", "m"], "n": values}
        for form in (data, pa.table({"sex": ["f", "m"], "n": pa.array(values, pa.int64())})):
            refuse(form, SEX, message, weight="n")
    refuse({"sex": ["f", "m"], "n": [1, 0.5]}, SEX, "row 2: 0.5 is not allowed", weight="n")
    refuse({"sex": ["f", "m"], "n": [1, "2"]}, SEX, "row 2: '2' is not allowed", weight="n")
    refuse({"sex": ["f", "m"], "n": [1, True]}, SEX, "row 2: True is not allowed", weight="n")
    refuse(
        pa.table({"sex": ["f"], "n": [1.0]}),
        SEX,
        "weight 'n' has the type float; it must be integer",
        weight="n",
    )
    refuse({"sex": ["f", "m"]}, SEX, "no column 'n'", weight="n")
    refuse({"sex": ["f", "m"]}, SEX, "'sex' cannot be the weight and an attribute", weight="sex")
    path = tmp_path / "t.csv"
    path.write_text("sex,n\nf,3\nm,1e3\n")
    refuse(path, SEX, "row 2: '1e3' is not allowed", weight="n")
    path.write_text("sex,n\nf,3\nm,05\n")
    assert open_counter(path, SEX, weight="n").count([("sex",)])[0].values.tolist() == [3, 5]


def test_unequal_columns_are_refused() -> None:
    """A mapping whose columns do not have the same length is no table; neither is a text a column."""
    refuse({"sex": ["f", "m"], "age": [3]}, BOTH, r"columns of different lengths: \('sex', 2\), \('age', 1\)")
    refuse({"sex": "fm"}, SEX, "column 'sex' is a str; give a list of values")


def test_requests_are_checked_before_anything_is_allocated() -> None:
    """Cells are counted first, table by table and all together; names must be known and not repeated."""
    names = [f"a{i}" for i in range(20)]
    schema = Schema.of({name: [str(k) for k in range(100)] for name in names})
    counter = open_counter({name: ["1"] for name in names}, schema, memory="64MiB")
    with pytest.raises(TooLarge, match=r"10,000,000,000 cells; at most 1,398,101 are allowed"):
        counter.count([names[:1], names[:5]])
    with pytest.raises(TooLarge, match=r"3 tables would have 3,000,000 cells; at most 1,398,101"):
        counter.count([names[:3], names[3:6], names[6:9]])
    with pytest.raises(TooLarge, match="10,000,000,000,000,000,000,000,000,000,000,000,000,000 cells"):
        counter.count([names])
    with pytest.raises(DataError, match="unknown attribute 'lost'; the schema has 'a0', 'a1'"):
        counter.count([("lost",)])
    with pytest.raises(DataError, match="names an attribute twice"):
        counter.count([("a0", "a0")])
    with pytest.raises(DataError, match="not the text 'a0'"):
        counter.count(["a0"])
    assert counter.count([]) == []


def test_memory_is_a_size() -> None:
    """Bytes, or a text with a unit."""
    assert [read_memory(m) for m in (5, "7", "512MB", "1.5 GiB", "2k")] == [
        5,
        7,
        512 * 10**6,
        3 * 2**29,
        2000,
    ]
    for bad in ("much", "-1", "1PB", 1.5, True):
        with pytest.raises(DataError, match=re.escape(f"memory {bad!r} is not a size")):
            open_counter({"sex": ["f"]}, SEX, memory=bad)  # type: ignore[arg-type]
    for options, message in [
        ({"memory": 0}, "must be between 1 byte and 1 PB"),
        ({"max_rows": 0}, "the limit on rows must lie between 1 and"),
        ({"threads": 0}, "must be at least 1, not 0"),
    ]:
        with pytest.raises(DataError, match=message):
            open_counter({"sex": ["f"]}, SEX, **options)  # type: ignore[arg-type]


BOMB = """
import json, resource, sys
from discreet.entrance import open_counter
from discreet.values.schema import Schema
counter = open_counter(sys.argv[1], Schema.of({name: ["f", "m"] for name in "abcdefgh"}), memory="64MB")
table = counter.count([("a", "h")])[0]
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
print(json.dumps([counter.in_memory, table.values.tolist(), peak]))
"""


def test_a_parquet_bomb_is_read_in_bounded_memory(tmp_path: Path) -> None:
    """A small file that stands for many rows is streamed, or refused unread if it has more rows than allowed."""
    group = 4_000_000
    column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(group, dtype=np.int8)), pa.array(["f", "m"]))
    table = pa.table([column] * 8, names=list("abcdefgh"))
    path = tmp_path / "bomb.parquet"
    with pq.ParquetWriter(path, table.schema, compression="zstd", store_schema=False) as writer:
        for _ in range(3):
            writer.write_table(table, row_group_size=group)
    rows = 3 * group
    size = path.stat().st_size
    assert size * 300 < rows * 8, "no bomb: the file must be hundreds of times smaller than its codes"
    answer = subprocess.run(
        [sys.executable, "-c", BOMB, path], capture_output=True, text=True, check=True, timeout=120
    )
    in_memory, values, peak = json.loads(answer.stdout)
    assert not in_memory
    assert values == [[rows, 0], [0, 0]]
    # Of which the compiler takes up to 200 MB where its cache is empty; read at once, the rows would take gigabytes.
    assert peak < 1000, f"{peak} MB for a file of {size} bytes"
    with pytest.raises(TooLarge, match="has at least 12,000,000 rows; at most 1,000,000 are allowed"):
        open_counter(path, Schema.of({"a": ["f", "m"]}), max_rows=1_000_000)
    refuse({"sex": ["f", "m"]}, SEX, "has at least 2 rows; at most 1 are allowed", TooLarge, max_rows=1)
