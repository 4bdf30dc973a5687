"""How fast and in how much memory exact tables are counted: against DuckDB and Polars on the same codes, from Parquet
files larger than memory, and inside DuckDB and Spark, which must agree with the codes cell by cell.

The last lines are the figures promised: `coded_over_duckdb` at least 4 and `coded_over_polars` at least 6 (10 M rows,
12 three-way tables, 2 threads each), `stream_peak_mb` below 1000 (100 M rows, 10 attributes), `stream_linearity` near
1 (time per row at the largest size over that at the smallest), `engines_agree` 1.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

SIZES = (4, 8, 3, 5, 6, 10, 4, 12, 7, 9)
NAMES = tuple(f"a{i}" for i in range(len(SIZES)))
SEED = 7


def choose_sets() -> list[tuple[str, ...]]:
    """Twelve three-way tables, drawn once for all engines."""
    every = list(combinations(NAMES, 3))
    return [every[i] for i in np.random.default_rng(SEED).choice(len(every), 12, replace=False)]


def draw_codes(rows: int, seed: int) -> dict[str, Any]:
    """Skewed codes, as in most real tables."""
    rng = np.random.default_rng(seed)
    return {
        name: np.minimum(rng.geometric(0.4, rows) - 1, size - 1).astype(np.uint8)
        for name, size in zip(NAMES, SIZES, strict=True)
    }


def make_schema(label: str = "") -> Any:
    """The schema whose levels are the codes, or texts made from them."""
    from discreet.values.schema import Schema

    return Schema.of({n: [f"{label}{k}" for k in range(s)] for n, s in zip(NAMES, SIZES, strict=True)})


def race(rows: int, repeats: int, threads: int) -> dict[str, Any]:
    """Seconds of each engine in each round, all on the same codes in memory; the rounds are interleaved."""
    import duckdb
    import polars as pl
    import pyarrow as pa

    from discreet.entrance import open_counter

    codes, sets = draw_codes(rows, SEED), choose_sets()
    counter = open_counter(pa.table(codes), make_schema(), threads=threads)
    connection = duckdb.connect(config={"threads": threads})
    connection.register("given", pa.table(codes))
    connection.execute("CREATE TABLE held AS FROM given").fetchall()
    frame = pl.DataFrame(codes)
    if pl.thread_pool_size() != threads:
        raise SystemExit(
            f"Polars runs {pl.thread_pool_size()} threads, not {threads}; set POLARS_MAX_THREADS"
        )
    grouping = ", ".join(f"({', '.join(members)})" for members in sets)
    together = f"SELECT {', '.join(NAMES)}, count(*) AS n FROM held GROUP BY GROUPING SETS ({grouping})"
    apart = [f"SELECT {', '.join(m)}, count(*) AS n FROM held GROUP BY {', '.join(m)}" for m in sets]
    lazy = [frame.lazy().group_by(members).len() for members in sets]
    ways: dict[str, Callable[[], Any]] = {
        "coded": lambda: counter.count(sets),
        "duckdb grouping sets": lambda: connection.sql(together).to_arrow_table(),
        "duckdb 12 queries": lambda: [connection.sql(query).to_arrow_table() for query in apart],
        "polars 12 queries": lambda: [query.collect() for query in lazy],
        "polars collect_all": lambda: pl.collect_all(lazy),
    }
    wanted = [int((table.values > 0).sum()) for table in ways["coded"]()]
    assert wanted == [len(found) for found in ways["polars collect_all"]()], "Polars and the codes disagree"
    assert sum(wanted) == ways["duckdb grouping sets"]().num_rows, "DuckDB and the codes disagree"
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(repeats + 1):  # the first round warms up and is not counted
        for name, way in ways.items():
            start = time.perf_counter()
            way()
            if turn:
                seconds[name].append(time.perf_counter() - start)
    return seconds


def stream(folder: str, memory: str) -> dict[str, Any]:
    """Seconds to open and to count Parquet files whose codes do not fit, and the peak of this process in MB."""
    from discreet.entrance import open_counter

    open_counter({name: ["v0"] for name in NAMES}, make_schema("v")).count(choose_sets())  # load the kernels
    start = time.perf_counter()
    counter: Any = open_counter(folder, make_schema("v"), memory=memory)
    opened = time.perf_counter()
    seconds = []
    for _ in range(2):  # the better of two, because the machine may be busy
        start_count = time.perf_counter()
        tables = counter.count(choose_sets())
        seconds.append(time.perf_counter() - start_count)
    assert not counter.in_memory
    assert all(int(table.values.sum()) == counter.rows for table in tables)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    return {"rows": counter.rows, "open": opened - start, "count": min(seconds), "peak": peak}


def load_kernels() -> dict[str, Any]:
    """Seconds of the first count in a new process, all imports included."""
    start = time.perf_counter()
    from discreet.rows.engines import kernels

    kernels.Tally([2], [(0,)]).add([np.zeros(8, dtype=np.uint8)])
    return {"seconds": time.perf_counter() - start}


def compare_engines(folder: str) -> dict[str, Any]:
    """Whether DuckDB and Spark, counting inside, agree with the codes on the same file; 1 or 0."""
    import ibis

    from discreet.entrance import open_counter

    schema, sets, seconds = make_schema("v"), choose_sets(), {}
    file = str(next(Path(folder).glob("*.parquet")))
    connection = ibis.duckdb.connect(threads=2)
    held: dict[str, Any] = {"coded": file, "duckdb": connection.read_parquet(file)}
    session = start_spark()
    if session is not None:
        held["spark"] = session.read.parquet(file)
    answers = {}
    for name, data in held.items():
        start = time.perf_counter()
        answers[name] = open_counter(data, schema).count(sets)
        seconds[name] = time.perf_counter() - start
    if session is not None:
        session.stop()
    agree = all(
        np.array_equal(ours.values, theirs.values)
        for found in answers.values()
        for ours, theirs in zip(answers["coded"], found, strict=True)
    )
    return {"agree": int(agree), "seconds": seconds}


def start_spark() -> Any | None:
    """A Spark cluster of one worker process on this machine; None where Spark or Java is missing."""
    try:
        import pyspark
    except ImportError:
        return None
    if shutil.which("java") is None:
        return None
    os.environ.setdefault("SPARK_HOME", str(Path(pyspark.__file__).parent))
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = pyspark.sql.SparkSession.builder.master("local-cluster[1,1,1024]")
    short = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # the rows are few: starting up is most of the time
    for name, value in {
        "driver.bindAddress": "127.0.0.1",
        "driver.extraJavaOptions": short,
        "executor.extraJavaOptions": short,
        "sql.codegen.wholeStage": "false",
        "driver.host": "127.0.0.1",
        "executor.memory": "512m",
        "log.level": "OFF",
        "sql.shuffle.partitions": "2",
        "ui.enabled": "false",
        "ui.showConsoleProgress": "false",
    }.items():
        builder = builder.config(f"spark.{name}", value)
    return builder.getOrCreate()


def write_parts(folder: Path, parts: int, rows: int, advance: Callable[[], None]) -> list[Path]:
    """Parquet files of texts, written in chunks, so that this process stays small too."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    chunk = min(rows, 1_000_000)
    levels = [pa.array([f"v{k}" for k in range(size)]) for size in SIZES]
    fields = pa.schema([(name, pa.dictionary(pa.int8(), pa.string())) for name in NAMES])
    paths = []
    for part in range(parts):
        paths.append(folder / f"part{part}.parquet")
        with pq.ParquetWriter(paths[-1], fields, store_schema=False) as writer:
            for i in range(rows // chunk):
                codes = draw_codes(chunk, part * 10_000 + i).values()
                columns = [
                    pa.DictionaryArray.from_arrays(pa.array(column.view(np.int8)), labels)
                    for column, labels in zip(codes, levels, strict=True)
                ]
                writer.write_table(pa.table(columns, schema=fields))
                advance()
    return paths


def run_part(name: str, *arguments: object, **environment: str) -> Any:
    """One part of this script in a process of its own."""
    command = [sys.executable, __file__, "--part", json.dumps([name, *arguments])]
    answer = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True)
    if answer.returncode:
        raise SystemExit(f"{name} failed:\n{answer.stderr}")
    return json.loads(answer.stdout.splitlines()[-1])


PARTS = {"race": race, "stream": stream, "compare_engines": compare_engines, "load_kernels": load_kernels}


def main() -> None:
    """Run every part, print what it found, and end with the figures as `name: value` lines."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="2 M and 8 M rows in place of 10 M and 100 M")
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder for the CSV and SVG")
    parser.add_argument("--part", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.part:
        name, *rest = json.loads(arguments.part)
        print(json.dumps(PARTS[name](*rest)))
        return
    from rich.console import Console
    from rich.progress import Progress

    quick = arguments.quick
    rows, repeats = (2_000_000, 3) if quick else (10_000_000, 7)
    part_rows, memory = (2_000_000, "16MB") if quick else (25_000_000, "256MB")
    shared = 50_000 if quick else 200_000
    console = Console(stderr=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        Progress(console=console, disable=not console.is_terminal) as bar,
    ):
        task = bar.add_task("counting", total=4 * (part_rows // 1_000_000) + 8)
        step = lambda: bar.advance(task)  # noqa: E731
        cache = {"NUMBA_CACHE_DIR": str(Path(folder, "numba"))}
        compiling = [run_part("load_kernels", **cache)["seconds"] for _ in range(2)]
        step()
        races = {}
        for threads in (1, 2):
            races[threads] = run_part("race", rows, repeats, threads, POLARS_MAX_THREADS=str(threads))
            step()
        parts = write_parts(Path(folder), 4, part_rows, step)
        streams = []
        for count in (1, 2, 4):
            chosen = Path(folder, f"first{count}")
            chosen.mkdir()
            for path in parts[:count]:
                os.link(path, chosen / path.name)
            streams.append(run_part("stream", str(chosen), memory))
            step()
        small = Path(folder, "small")
        small.mkdir()
        write_parts(small, 1, shared, lambda: None)
        engines = run_part("compare_engines", str(small))
        step()
    report(arguments.out, rows, compiling, races, streams, engines)


def report(
    out: Path,
    rows: int,
    compiling: list[float],
    races: dict[int, dict[str, list[float]]],
    streams: list[dict[str, float]],
    engines: dict[str, Any],
) -> None:
    """Print the tables and the figures, and write them to CSV and SVG."""
    work = rows * len(choose_sets()) / 1e6
    lines: list[tuple[str, float]] = []
    print(
        f"{rows:,} rows, 12 three-way tables: million rows·tables per second, median (worst to best of the rounds)"
    )
    for threads, seconds in races.items():
        for name, found in seconds.items():
            rates = sorted(work / s for s in found)
            shown = f"{name}, {threads} thread{'s' * (threads > 1)}"
            print(f"  {shown:<34}{statistics.median(rates):>7.0f}  ({rates[0]:.0f} to {rates[-1]:.0f})")
            lines.append(
                (f"{name.replace(' ', '_')}_{threads}_threads_mrows_tables_per_s", statistics.median(rates))
            )
    print("Parquet files streamed, 10 attributes, 12 three-way tables:")
    for found in streams:
        times = f"open and check {found['open']:.2f} s  count {found['count']:.2f} s"
        print(f"  {found['rows']:>11,} rows  {times}  peak {found['peak']:.0f} MB")
        lines.append((f"stream_{found['rows'] / 1e6:.0f}m_rows_seconds", found["count"]))
    print(
        "Inside the engines, one file: " + ", ".join(f"{n} {s:.2f} s" for n, s in engines["seconds"].items())
    )
    if "spark" not in engines["seconds"]:
        print("  Spark or Java is missing here; only DuckDB was compared")
    lines += [("first_call_seconds", compiling[0]), ("second_run_call_seconds", compiling[1])]
    for threads in (1, 2):
        for peer in ("duckdb", "polars"):
            ratios = compare(races[threads], peer)
            suffix = "" if threads == 2 else "_1_thread"
            lines.append((f"coded_over_{peer}{suffix}_worst_round", min(ratios)))
            lines.append((f"coded_over_{peer}{suffix}_best_round", max(ratios)))
            if threads == 1:
                lines.append((f"coded_over_{peer}_1_thread", statistics.median(ratios)))
    per_row = [found["count"] / found["rows"] for found in streams]
    lines += [
        (f"coded_over_{peer}", statistics.median(compare(races[2], peer))) for peer in ("duckdb", "polars")
    ]
    lines += [
        ("stream_peak_mb", max(found["peak"] for found in streams)),
        ("stream_linearity", per_row[-1] / per_row[0]),
        ("engines_agree", engines["agree"]),
    ]
    out.mkdir(parents=True, exist_ok=True)
    with (out / "counting.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("figure", "value"), *((name, f"{value:.4g}") for name, value in lines)])
    draw(out / "counting.svg", work, races, streams)
    for name, value in lines:
        print(f"{name}: {value:.4g}")


def compare(seconds: dict[str, list[float]], peer: str) -> list[float]:
    """The ratio in each round of the peer's faster way to ours."""
    ways = [found for name, found in seconds.items() if name.startswith(peer)]
    best = min(ways, key=statistics.median)
    return [theirs / ours for theirs, ours in zip(best, seconds["coded"], strict=True)]


def draw(
    path: Path, work: float, races: dict[int, dict[str, list[float]]], streams: list[dict[str, float]]
) -> None:
    """Rates of the engines beside seconds by rows."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    names = list(races[2])
    left.barh(
        names[::-1], [work / statistics.median(races[2][name]) for name in names[::-1]], color="#4a6fa5"
    )
    left.set_xlabel("million rows·tables per second, 2 threads")
    right.plot(
        [found["rows"] / 1e6 for found in streams],
        [found["count"] for found in streams],
        "o-",
        color="#4a6fa5",
    )
    right.set_xlim(0)
    right.set_ylim(0)
    right.set_xlabel("million rows, streamed from Parquet")
    right.set_ylabel("seconds")
    figure.savefig(path)


if __name__ == "__main__":
    main()
