"""The same request gives the same integers in every engine: coded, DuckDB, a real PostgreSQL, a real Spark cluster."""

from __future__ import annotations

import math
import os
import shutil
import sqlite3
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import ibis
import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import binomtest

from chance import SURE
from discreet.core.counter import TrueCounts
from discreet.entrance import count_rows_of_people, open_counter
from discreet.papers.estimators.sums import BoundedColumn, count_steps
from discreet.papers.parameters.subsample import Subsampling
from discreet.rows.engines import ways
from discreet.rows.engines.ibis_codes import FEW
from discreet.rows.engines.pushdown import PushdownCounter
from discreet.rows.engines.ways import GroupingSets, HeldRows, SparkBlocks
from discreet.values.errors import AirlockError, DataError, TooLarge
from discreet.values.schema import Attribute, Schema
from discreet.values.schema.encoding import Encoding
from discreet.values.unit import Unit
from readings import NUMBERS, TEXTS

ODD = 'a"; DROP TABLE visits; --'
SCHEMA = Schema(
    (
        Attribute.of(ODD, ["it's", 'q"q', "", "é", "\\n", "{}", "%s"], missing="gone"),
        Attribute.binned("age", [-math.inf, 0, 0.1, 0.30000000000000004, 65, math.inf], missing="NA"),
        Attribute.binned("score", [0, 0.1, 0.5, 1], closed="right", missing="-1"),
        Attribute.of("small", range(-3, 4)),
        Attribute.of("ward", [f"w;{i}" for i in range(FEW + 40)]),
        Attribute.of("place", range(1000, 1000 + 3 * FEW), missing="none"),
        Attribute.of("whole", range(2 * FEW), missing="?"),
        Attribute.of("flag", ["true", "False"]),
        Attribute.of("other", ["x", "y"]),
    )
)
SETS = [
    (ODD, "age"),
    ("age", ODD, "flag"),
    ("flag", "age", ODD),
    ("score",),
    ("small", "other"),
    ("ward", "place"),
    ("whole", "flag"),
    (),
    ("other",),
    ("other",),
]


def draw_rows(rows: int) -> pa.Table:
    """Rows that meet every clause of the rule, and a column of weights."""
    rng = np.random.default_rng(11)

    def pick(values: list[Any]) -> list[Any]:
        return [values[k] for k in rng.integers(0, len(values), rows)]

    edges = [
        -math.inf,
        -1e300,
        -0.0,
        0.0,
        0.1,
        math.nextafter(0.1, 0),
        0.30000000000000004,
        0.3,
        64.9,
        65.0,
        math.inf,
    ]
    columns: dict[str, Any] = {
        ODD: pick([*SCHEMA[ODD].levels, None]),
        "age": pick([*edges, math.nan, None]),
        "score": pick(
            ["0", "0.1", ".1", "1e-1", "+0.5", "1.", "0.50000000000000011", "-1", "[0, 0.1]", "", None]
        ),
        "small": pa.array(pick(list(range(-3, 4))), pa.int32()),
        "ward": pick(list(SCHEMA["ward"].levels)),
        "place": pick([1000, 1001, 999 + 3 * FEW, None]),
        "whole": pick([-0.0, 1.0, float(2 * FEW - 1), math.nan, None]),
        "flag": pick([True, False]),
        "other": pick(["x", "y"]),
        "units": pa.array(pick([0, 1, 2, 1000]), pa.int32()),
    }
    return pa.table(columns)


ROWS = draw_rows(800)
Engine = Callable[[pa.Table], Any]


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    """A Spark cluster of one worker in a process of its own, not Spark's in-process imitation of one."""
    pyspark = pytest.importorskip("pyspark")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java, and there is none on this machine")
    os.environ.setdefault("SPARK_HOME", str(Path(pyspark.__file__).parent))
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    quick = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # a test is over before a better compiler pays off
    settings = {
        "spark.driver.extraJavaOptions": quick,
        "spark.executor.extraJavaOptions": quick,
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.codegen.wholeStage": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.executor.memory": "512m",
        "spark.log.level": "OFF",
        "spark.sql.shuffle.partitions": "1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.master("local-cluster[1,1,1024]").appName("discreet-tests")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.fixture(params=["duckdb", "postgres", "spark"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    """A function that puts rows into a real engine and gives back what `open_counter` takes."""
    if request.param == "duckdb":
        connection = ibis.duckdb.connect()

        def put_duckdb(table: pa.Table) -> Any:
            connection.con.register("given", table)
            connection.con.execute("CREATE TABLE visits AS FROM given").fetchall()
            return connection.table("visits")

        yield put_duckdb
        connection.disconnect()
    elif request.param == "postgres":
        address = request.getfixturevalue("postgres_schema")()

        def put_postgres(table: pa.Table) -> Any:
            names = [f'"{name.replace(chr(34), chr(34) * 2)}"' for name in table.column_names]
            kinds = {
                "string": "text",
                "double": "double precision",
                "bool": "boolean",
                "date32[day]": "date",
                "timestamp[us]": "timestamp",
                "timestamp[us, tz=UTC]": "timestamptz",
            }
            types = [kinds.get(str(kind), "bigint") for kind in table.schema.types]
            with psycopg.connect(address) as connection:
                columns = ", ".join(f"{name} {kind}" for name, kind in zip(names, types, strict=True))
                connection.execute(f"CREATE TABLE visits ({columns})")
                with connection.cursor().copy("COPY visits FROM STDIN") as copy:
                    for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
                        copy.write_row(row)
            return f"{address}::visits"

        yield put_postgres
    else:
        session = request.getfixturevalue("spark")

        def put_spark(table: pa.Table) -> Any:
            pq.write_table(table, tmp_path / "visits.parquet")
            return session.read.parquet(str(tmp_path / "visits.parquet"))

        yield put_spark


def test_engines_agree(engine: Engine) -> None:
    """Levels, bins, missing values and weights mean the same everywhere, and the counts are equal cell by cell."""
    held = engine(ROWS)
    for weight in (None, "units"):
        schema, sets = SCHEMA, SETS
        if weight and engine.__name__ == "put_spark":
            # Which takes seconds for a long list of levels, and has shown that it can.
            schema, sets = SCHEMA.select([ODD, "age", "flag", "other"]), [SETS[1], SETS[-1], ()]
        counter, coded = open_counter(held, schema, weight=weight), open_counter(ROWS, schema, weight=weight)
        assert isinstance(counter, PushdownCounter)
        assert counter.rows == coded.rows
        for members, found, wanted in zip(sets, counter.count(sets), coded.count(sets), strict=True):
            assert found.axes == wanted.axes == members
            assert found.values.dtype == np.int64
            np.testing.assert_array_equal(found.values, wanted.values)
        if weight is None:
            judge_other_ways(counter, coded)
        counter.close()
        with pytest.raises(AirlockError, match="closed"):
            counter.count(sets)


def judge_other_ways(counter: PushdownCounter, coded: Any) -> None:
    """Grouping sets count what executors and distinct rows count; and all of it holds for a view of the rows."""
    encoding = Encoding.of("binary", SCHEMA)
    bits = [encoding.spell("ward")[:2], (*encoding.spell("age")[-1:], "flag"), encoding.spell("place")]
    view, wanted = counter.encode(encoding), coded.encode(encoding).count(bits)
    way = view._way
    assert isinstance(way, SparkBlocks | HeldRows)
    answers = [[table.values for table in view.count(bits)]]
    if isinstance(way, SparkBlocks):
        places = [tuple(encoding.view.names.index(name) for name in members) for members in bits]
        answers.append(way.fallback.count(places))
    for found in answers:
        for cells, table in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(cells, table.values)
    assert view.rows == counter.rows
    view.close()


@pytest.mark.parametrize("encoded", [False, True])
def test_what_follows_from_a_table_takes_no_other_pass(
    encoded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that do not fit the memory limit are counted by grouping sets, and each set only once."""
    connection = ibis.duckdb.connect()
    connection.con.register("given", ROWS)
    encoding = Encoding.of("binary", SCHEMA)
    counter: Any = open_counter(connection.table("given"), SCHEMA, memory=16)
    coded = open_counter(ROWS, SCHEMA)
    if encoded:
        counter, coded = counter.encode(encoding), coded.encode(encoding)
    assert isinstance(counter._way, GroupingSets)
    sets = [("flag", "other"), ("other",)]
    passes = []
    monkeypatch.setattr(
        GroupingSets,
        "count",
        lambda way, sets, honest=GroupingSets.count: (passes.append(sets), honest(way, sets))[1],
    )
    for asked in (sets[:1], sets, [("other", "flag"), ("flag",)]):
        for found, wanted in zip(counter.count(asked), coded.count(asked), strict=True):
            np.testing.assert_array_equal(found.values, wanted.values)
    assert len(passes) == 1


def test_engines_read_alike(engine: Engine) -> None:
    """Spellings, dates and values outside mean the same everywhere; a record left out is gone from all columns."""
    columns = {
        f"text {name}": (found, pa.array(cells, pa.string())) for name, (found, cells) in TEXTS.items()
    }
    columns |= {f"typed {name}": found for name, found in NUMBERS.items()}
    rows = max(len(cells) for _, cells in columns.values())
    cells = {
        name: pa.concat_arrays([array, pa.nulls(rows - len(array), array.type)])
        for name, (_, array) in columns.items()
    }
    schema = Schema(tuple(replace(found, name=name) for name, (found, _) in columns.items()))
    if engine.__name__ == "put_spark":  # which takes a second for each column
        schema = schema.select(["text day", "text sex", "typed seen", "typed dose"])
    counter, coded = open_counter(engine(pa.table(cells)), schema), open_counter(pa.table(cells), schema)
    assert 0 < counter.rows == coded.rows < rows
    sets = [(name,) for name in schema.names]
    for found, wanted in zip(counter.count(sets), coded.count(sets), strict=True):
        np.testing.assert_array_equal(found.values, wanted.values, str(found.axes))
    counter.close()


def test_engines_refuse_the_same_rows(engine: Engine) -> None:
    """The domain is checked inside the engine, and the error names the value, not the whole table."""
    data = {"a": ["x", "z", None, "z"], "n": [0.5, 7.0, 0.0, 1.0], "w": [1, -1, 1, 1]}
    held = engine(pa.table({**data, "o": ["1\n", " 1", "1e400", "0x1"]}))
    level = Attribute.of("a", ["x", "y"])
    cases = [
        (level, None, r"attribute 'a': .*; allowed are 'x', 'y' \(3 such rows\)$"),
        (Attribute.of("a", ["x", "y"], missing="m"), None, r"'z' is not a declared level; .*\(2 such rows\)"),
        (Attribute.binned("n", [0, 1, 2]), None, r"7\.0 is beyond the edges"),
        (Attribute.binned("o", [0, 1, 2]), None, "attribute 'o'|could not run the query"),
        (Attribute.of("lost", ["x", "y"]), None, "no column 'lost'"),
        (Attribute.binned("n", [0, 1, 8]), "w", "weight 'w': -1 is not allowed"),
        (Attribute.binned("n", [0, 1, 8]), "n", "cannot be the weight and an attribute"),
        (Attribute.binned("n", [0, 1, 8]), "a", "must be integer"),
    ]
    for attribute, weight, message in cases:
        with pytest.raises(DataError, match=message) as caught:
            open_counter(held, Schema((attribute,)), weight=weight)
        assert "\n" not in str(caught.value)
    with pytest.raises(TooLarge, match="at most 3 are allowed"):
        open_counter(held, Schema((Attribute.binned("n", [0, 1, 8]),)), max_rows=3)


def test_a_table_that_changes_is_noticed() -> None:
    """A row that arrives or goes bad after the check is refused when it is counted."""
    connection = ibis.duckdb.connect()
    connection.con.execute("CREATE TABLE t AS SELECT 'x' AS a, 'x' AS b").fetchall()
    schema = Schema.of({"a": ["x", "y"], "b": ["x", "y"]})
    counter = open_counter(connection.table("t"), schema, memory=16)  # no row is held here
    for row in ("('z', 'x')", "('x', 'y')"):
        connection.con.execute(f"INSERT INTO t VALUES {row}").fetchall()
        with pytest.raises(DataError, match="changed after it was opened"):
            counter.count([("a", "b"), ("b",)])
        connection.con.execute("DELETE FROM t WHERE a = 'z'").fetchall()


def test_addresses_that_lead_nowhere_are_refused(postgres_schema: Callable[[], str]) -> None:
    """A server, a table or a name that is not there is an error of one line."""
    address = postgres_schema()
    schema = Schema.of({"a": ["x", "y"]})
    cases = {
        address: "needs the table after '::'",
        f"{address}::lost": "table 'lost': no such table",
        f"{address}::no.such": "no such table",
        "postgresql://127.0.0.1:1/nowhere::t": "PostgreSQL: connection",
    }
    for given, message in cases.items():
        with pytest.raises(DataError, match=message) as caught:
            open_counter(given, schema)
        assert "\n" not in str(caught.value)


def test_an_empty_table_is_refused(engine: Engine) -> None:
    """No rows and no weight are two different mistakes."""
    held = engine(pa.table({"a": ["x"], "w": [0]}))
    with pytest.raises(DataError, match="no weight in any of its 1 rows"):
        open_counter(held, Schema.of({"a": ["x", "y"]}), weight="w")
    if isinstance(held, ibis.Table):
        with pytest.raises(DataError, match="no rows"):
            open_counter(held.filter(held["a"] == "y"), Schema.of({"a": ["x", "y"]}))


PEOPLE = pa.table(
    {
        "id": ["12", "12.0", " 12.00", "q", None, "", " NA", "Unknown"],
        "x": ["a", "a", "b", "c", "a", "a", "a", "a"],
    }
)
OF_PEOPLE = Schema.of({"x": ["a", "b", "c"]})


CROWD = 600
MANY = pa.table(
    {
        "id": [f"{i}{end}" for i in range(CROWD) for end in ("", ".0", ".00 ")]
        + PEOPLE["id"][3:].to_pylist(),
        "x": ["a", "a", "b"] * CROWD + PEOPLE["x"][3:].to_pylist(),
        "g": [str(i % 10) for i in range(CROWD) for _ in range(3)] + ["0"] * 5,
    }
)
"""As many people with three rows each: an opening draws for all of them, and not one for each."""
OF_MANY = Schema.of({"x": ["a", "b", "c"], "g": [str(i) for i in range(10)]})


def draw_twice(data: Any, unit: Unit, **options: Any) -> list[Any]:
    """The counts of x and g, in units of a person, opened twice: never by the same draw (else by chance, 1e-11)."""
    found = []
    for _ in range(2):
        counter = open_counter(data, OF_MANY, unit=unit, **options)
        found.append(counter.count([("x", "g")])[0].values)
        assert counter.rows == (CROWD + 1) * unit.grain == found[-1].sum()
        assert found[-1][2].tolist() == [unit.grain, *[0] * 9]
        assert (found[-1][:2].sum(axis=0) == CROWD // 10 * unit.grain).all()
        counter.close()
    assert (found[0] != found[1]).any()
    return found


def judge_law(data: Any, **options: Any) -> None:
    """One of each person's three rows, as likely as the others; q's one; none of those without an id.

    1,200 draws tell a choice among distinct rows, 1/2, from one among rows, 2/3.
    """
    found = draw_twice(data, Unit("add-remove", "id", 1), **options)
    assert binomtest(int(sum(counts[0].sum() for counts in found)), 2 * CROWD, 2 / 3).pvalue > 1 - SURE


def test_engines_bound_people_by_one_law(engine: Engine) -> None:
    judge_law(engine(MANY))


def test_a_table_without_people_is_not_refused() -> None:
    """A refusal would tell, for nothing, whether there is anybody."""
    connection = ibis.duckdb.connect()
    connection.con.register("given", PEOPLE.slice(4))  # rows without an id
    counter = open_counter(connection.table("given"), OF_PEOPLE, unit=Unit("add-remove", "id", 1))
    assert counter.rows == 0 and not counter.count([("x",)])[0].values.any()


def test_ids_that_an_engine_takes_for_one_are_two_people() -> None:
    """As one person of at most one row, whoever comes would push the other out: two rows for one that is charged."""
    connection = ibis.duckdb.connect()
    connection.con.execute("CREATE TABLE given (id VARCHAR COLLATE NOCASE, x VARCHAR)")
    connection.con.execute("INSERT INTO given VALUES ('p', 'a'), ('P', 'b'), ('P', 'b')")
    counter = open_counter(connection.table("given"), OF_PEOPLE, unit=Unit("add-remove", "id", 1))
    assert counter.count([("x",)])[0].values.tolist() == [1, 1, 0]
    assert count_rows_of_people(connection.table("given"), OF_PEOPLE, "id", 2).tolist() == [1, 1, 0]


def judge_averages(data: Any, **options: Any) -> None:
    """Each person counts once: all of three rows with a third each, or two of them, any, with a half each."""
    counter = open_counter(data, OF_MANY, unit=Unit("add-remove", "id", 3, average=True), **options)
    assert counter.count([("x",)])[0].values.tolist() == [4 * CROWD, 2 * CROWD, 6]
    counter.close()
    found = draw_twice(data, Unit("add-remove", "id", 2, average=True), **options)
    assert binomtest(int(sum(counts[1].sum() for counts in found)), 2 * CROWD, 2 / 3).pvalue > 1 - SURE


def test_engines_count_the_rows_of_people(engine: Engine) -> None:
    assert count_rows_of_people(engine(PEOPLE), OF_PEOPLE, "id", 2).tolist() == [1, 0, 1]


def test_engines_average_people_by_one_law(engine: Engine) -> None:
    judge_averages(engine(MANY))


@pytest.mark.parametrize("memory", [None, 16], ids=["held", "streamed"])
@pytest.mark.parametrize("kind", ["frame", "mapping", "arrow", "parquet", "csv", "sqlite"])
def test_readers_average_people_by_the_same_law(kind: str, memory: int | None, tmp_path: Path) -> None:
    judge_averages(_write_people(kind, tmp_path), memory=memory)


@pytest.mark.parametrize("memory", [None, 16], ids=["held", "streamed"])
@pytest.mark.parametrize("kind", ["frame", "mapping", "arrow", "parquet", "csv", "sqlite"])
def test_readers_bound_people_by_the_same_law(kind: str, memory: int | None, tmp_path: Path) -> None:
    """In memory and beyond it."""
    judge_law(_write_people(kind, tmp_path), memory=memory)


def _write_people(kind: str, tmp_path: Path) -> Any:
    data: Any = MANY
    if kind == "frame":
        data = MANY.to_pandas()
    elif kind == "mapping":
        data = MANY.to_pydict()
    elif kind == "parquet":
        data = tmp_path / "people.parquet"
        pq.write_table(MANY, data)
    elif kind == "csv":
        data = tmp_path / "people.csv"
        MANY.to_pandas().to_csv(data, index=False)
    elif kind == "sqlite":
        with sqlite3.connect(tmp_path / "people.db") as connection:
            MANY.to_pandas().to_sql("people", connection, index=False)
        data = f"{tmp_path / 'people.db'}::people"
    return data


def test_engines_sum_the_same_steps(engine: Engine) -> None:
    """Integers and floats are clipped, rounded and added up here: the very sums of a file, with weights or without."""
    rng = np.random.default_rng(5)
    rows = pa.table(
        {
            "g": pa.array(["x", "y"] * 150),
            "whole": pa.array(rng.integers(-(2**40), 2**40, 300)),
            "real": pa.array(rng.choice([0.1, 0.25, -0.0, 0.0, 1e300, -math.inf, 0.30000000000000004], 300)),
            "n": pa.array(rng.integers(0, 5, 300), pa.int32()),
        }
    )
    schema = Schema.of({"g": ["x", "y"]})
    columns = [BoundedColumn("whole", -(2**20), 2**39, 1001), BoundedColumn("real", 0, "0.3", "0.1")]
    there = engine(rows)
    for weight in (None, "n"):
        sums = [
            count_steps(
                columns,
                TrueCounts(
                    open_counter(data, schema, weight=weight, numbers=["real", "whole"]), schema.sizes
                ),
            )
            for data in (rows, there)
        ]
        assert sums[0] == sums[1] != [0, 0]
    with pytest.raises(DataError, match="cannot sum 'n'; columns opened as numbers: 'real'"):
        open_counter(there, schema, numbers=["real"]).check_numbers(["n"])
    with pytest.raises(DataError, match=r"type string.*cast it there"):
        open_counter(there, schema, numbers=["g"])
    with pytest.raises(TooLarge, match="distinct values"):
        open_counter(there, schema, numbers=["whole"], memory=2000)


def test_a_number_that_is_missing_is_refused_in_engines(engine: Engine) -> None:
    """As in a file, and before anything is asked."""
    there = engine(pa.table({"g": ["x", "y"], "v": pa.array([1, None], pa.int64())}))
    with pytest.raises(DataError, match="a value is missing"):
        open_counter(there, Schema.of({"g": ["x", "y"]}), numbers=["v"])


def test_secret_samples_of_engines_follow_the_law(engine: Engine) -> None:
    """A coin for each row, or so many of them, drawn here from the distinct rows; refused on Spark, beforehand."""
    rows = pa.table({"g": ["x"] * 600 + ["y"] * 200, "h": ["p", "q"] * 400})
    counter = open_counter(engine(rows), Schema.of({"g": ["x", "y"], "h": ["p", "q"]}))
    coins = Subsampling(Fraction(1, 4), Unit.ADD_REMOVE)
    assert isinstance(counter, PushdownCounter)
    if not isinstance(counter._way, HeldRows):
        with pytest.raises(DataError, match="a task that it repeats draws others"):
            counter.check([("g",)], coins)
        return
    kept = np.zeros(2)
    for _ in range(50):
        both, one, whole = counter.count([("h", "g"), ("g",), ()], coins)
        np.testing.assert_array_equal(both.values.sum(axis=0), one.values)
        assert whole.values == one.values.sum()
        kept += one.values
    for found, copies in zip(kept, (600, 200), strict=True):
        assert binomtest(int(found), 50 * copies, 0.25).pvalue > 1 - SURE
    fixed = counter.count([("g",)], Subsampling(Fraction(1, 8), Unit.REPLACE_ONE))[0]
    assert fixed.values.sum() == 100


@pytest.mark.parametrize("coins", [1, 3, 7, 2**24])
def test_copies_are_thinned_one_by_one(monkeypatch: pytest.MonkeyPatch, coins: int) -> None:
    """Whatever number of coins is thrown at a time, each copy has its own."""
    monkeypatch.setattr(ways, "COINS", coins)
    thrown: list[int] = []

    class Alternating:
        unit = Unit.ADD_REMOVE

        def draw(self, rows: int) -> Any:
            thrown.extend(range(len(thrown), len(thrown) + rows))
            return np.array([copy % 3 == 0 for copy in thrown[-rows:]])

    weights = np.array([1, 5, 2, 0, 9, 1])
    owners = np.repeat(np.arange(6), weights)
    wanted = np.bincount(owners[::3], minlength=6)
    np.testing.assert_array_equal(ways.thin(weights, Alternating()), wanted)  # type: ignore[arg-type]
    assert thrown == list(range(18))
