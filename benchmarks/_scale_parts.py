"""The parts of `scale.py`, each run in a process of its own, so that peaks of memory are theirs alone."""

from __future__ import annotations

import os
import resource
import shutil
import statistics
import sys
import time
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

PART_ROWS = 10_000_000
"""Rows of one file of the large folder."""

FEW_SETS = 20
"""Tables that Spark counts by grouping sets: 190 took more than five minutes."""


def measure(act: Callable[[], Any]) -> tuple[float, float, Any]:
    """Seconds by the clock, seconds of all cores, and what came out."""
    clock, cores = time.perf_counter(), time.process_time()
    found = act()
    return time.perf_counter() - clock, time.process_time() - cores, found


def load_network(name: str) -> Any:
    """One of the networks inside the package."""
    from discreet.networks import examples

    return examples.load(name)


def peak_mb() -> float:
    """The most memory that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


def warm_up(schema: Any) -> None:
    """Load packages and kernels, so that they are not timed."""
    from discreet.entrance import open_counter

    open_counter({name: [schema[name].levels[0]] for name in schema.names}, schema).count([schema.names[:2]])


def write(network: str, rows: int, path: str, seed: int) -> dict[str, Any]:
    """Synthetic rows to a file."""
    net = load_network(network)
    net.sample(2**18, rng=seed).write(Path(path).with_suffix(".warm.parquet"))
    clock, cores, _ = measure(lambda: net.sample(rows, rng=seed).write(path))
    Path(path).with_suffix(".warm.parquet").unlink()
    size = Path(path).stat().st_size
    copy, start = Path(path).with_suffix(".raw"), time.perf_counter()
    with open(path, "rb") as written, copy.open("wb") as file:  # the disk's own speed, for the same bytes
        shutil.copyfileobj(written, file, 2**22)
        file.flush()
        os.fsync(file.fileno())
    disk = size / (time.perf_counter() - start)
    copy.unlink()
    return {"rows": rows, "clock": clock, "cores": cores, "bytes": size, "disk": disk, "peak": peak_mb()}


def write_parts(network: str, parts: list[tuple[int, str, int]]) -> dict[str, Any]:
    """Synthetic rows to several files; one that was cut off is not there, and is made the next time."""
    net = load_network(network)
    clock, cores, _ = measure(lambda: [net.sample(rows, rng=seed).write(path) for rows, path, seed in parts])
    return {"rows": sum(rows for rows, _, _ in parts), "clock": clock, "cores": cores, "peak": peak_mb()}


def open_rows(network: str, path: str, repeats: int) -> dict[str, Any]:
    """Opening a file: every row checked and encoded, the codes held."""
    from discreet.entrance import open_counter

    schema = load_network(network).schema
    warm_up(schema)
    found = []
    for _ in range(repeats):
        clock, cores, counter = measure(lambda: open_counter(path, schema, memory="4GiB"))
        found.append((clock, cores))
        rows = counter.rows
        counter.close()
    return {
        "rows": rows,
        "clock": min(a for a, _ in found),
        "cores": min(b for _, b in found),
        "peak": peak_mb(),
    }


def open_csv(network: str, path: str, repeats: int) -> dict[str, Any]:
    """Opening a CSV file against DuckDB's own scan of it, interleaved."""
    import duckdb

    from discreet.entrance import open_counter

    schema = load_network(network).schema
    warm_up(schema)
    connection = duckdb.connect(config={"threads": os.cpu_count() or 1})
    names = [f'"{name}"' for name in schema.names]
    scan = f"SELECT {', '.join(f'max({name})' for name in names)} FROM read_csv('{path}', all_varchar=true)"
    ratios = []
    for turn in range(repeats + 1):
        theirs, _, _ = measure(lambda: connection.sql(scan).fetchall())
        ours, _, counter = measure(lambda: open_counter(path, schema, memory="4GiB"))
        counter.close()
        if turn:
            ratios.append(ours / theirs)
    return {"ratios": ratios, "ours": ours, "theirs": theirs}


def release_rows(network: str, folder: str, memory: str, search: bool, codes: str) -> dict[str, Any]:
    """One release from a folder of Parquet files, whose codes are kept: with the graph, or by search."""
    from discreet.entrance import open_airlock
    from discreet.learning.adaptive import adaptive
    from discreet.learning.planned import planned
    from discreet.values.budget import PureDP

    net = load_network(network)
    warm_up(net.schema)
    clock, cores, airlock = measure(
        lambda: open_airlock(folder, net.schema, budget=PureDP(1), memory=memory, codes=codes)
    )
    opened = clock
    learn: Callable[[], Any] = (
        (lambda: adaptive(airlock, spend=1)) if search else (lambda: planned(airlock, net.dag, spend=1))
    )
    learned, more, _ = measure(learn)
    airlock.close()
    return {
        "open": opened,
        "learn": learned,
        "opened": cores,
        "learned": more,
        "cores": cores + more,
        "peak": peak_mb(),
    }


def count_tables(network: str, rows: int) -> dict[str, Any]:
    """The candidates of a search by one core: each from the rows, and as margins of wide tables; cell by cell."""
    from _aggregation_tree import list_candidates
    from discreet.rows.engines.kernels import Tally

    codes = list(load_network(network).sample(rows, rng=4).codes().values())
    sizes, sets = list_candidates()
    found, cores = [], []
    for hint in (0, rows):
        Tally(sizes, sets[:3], threads=1).add([column[:9] for column in codes])

        def count(hint: int = hint) -> Any:
            tally = Tally(sizes, sets, threads=1, rows=hint)
            tally.add(codes)
            return tally.finish()

        _, spent, tables = measure(count)
        cores.append(spent)
        found.append(tables)
    agree = all(np.array_equal(one, other) for one, other in zip(*found, strict=True))
    speeds = [rows * len(sets) / spent for spent in cores]
    return {"narrow": speeds[0], "wide": speeds[1], "ratio": cores[0] / cores[1], "agree": int(agree)}


def start_spark(workers: int = 2) -> Any:
    """A Spark cluster of worker processes on this machine."""
    import pyspark

    os.environ.setdefault("SPARK_HOME", str(Path(pyspark.__file__).parent))
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = pyspark.sql.SparkSession.builder.master(f"local-cluster[{workers},1,1536]")
    for name, value in {
        "driver.bindAddress": "127.0.0.1",
        "driver.host": "127.0.0.1",
        "executor.memory": "1g",
        "log.level": "OFF",
        "sql.shuffle.partitions": str(workers),
        "ui.enabled": "false",
        "ui.showConsoleProgress": "false",
    }.items():
        builder = builder.config(f"spark.{name}", value)
    return builder.getOrCreate()


def race_engines(network: str, path: str, tables: int, search: bool) -> dict[str, Any]:
    """The same tables of the same file by every engine, cell by cell; and a search inside Spark and embedded."""
    import duckdb
    import polars as pl

    from discreet.entrance import open_airlock, open_counter
    from discreet.learning.adaptive import adaptive
    from discreet.values.budget import PureDP
    from discreet.values.unit import Unit

    if shutil.which("java") is None:
        raise SystemExit("Spark needs Java, and there is none on this machine")
    net = load_network(network)
    schema = net.schema
    sets = list(combinations(schema.names, 2))[:tables]
    session = start_spark()
    frame = session.read.parquet(path)
    session.range(8).count()
    seconds: dict[str, float] = {}
    answers: dict[str, list[Any]] = {}

    def take(name: str, act: Callable[[], Any]) -> Any:
        seconds[name], _, found = measure(act)
        print(f"{name}: {seconds[name]:.2f} s", file=sys.stderr, flush=True)
        return found

    warm_up(schema)
    embedded = take("embedded: open", lambda: open_counter(path, schema))
    answers["embedded"] = take("embedded: count", lambda: embedded.count(sets))
    inside: Any = take("Spark, our kernel: open", lambda: open_counter(frame, schema))
    answers["spark"] = take("Spark, our kernel: count", lambda: inside.count(sets))
    place = {name: i for i, name in enumerate(schema.names)}
    few = [tuple(place[name] for name in members) for members in sets[:FEW_SETS]]
    # Before another counter of the same frame is opened and closed: that can cost this one its kept codes.
    ours = take(f"Spark, our kernel: {FEW_SETS} of them", lambda: inside._way.count(few))
    theirs = take(f"Spark, grouping sets: {FEW_SETS} of them", lambda: inside._way.fallback.count(few))
    if search:

        def learn(data: Any) -> None:
            with open_airlock(data, schema, budget=PureDP(1)) as airlock:
                adaptive(airlock, spend=1)

        take("embedded: search", lambda: learn(path))
        take("Spark, our kernel: search", lambda: learn(frame))
    listed = ", ".join(f"({', '.join(map(quote, members))})" for members in sets)
    query = (
        f"SELECT {', '.join(map(quote, schema.names))}, count(*) AS n FROM '{path}' "
        f"GROUP BY GROUPING SETS ({listed})"
    )
    take("DuckDB, grouping sets: count", lambda: duckdb.sql(query).to_arrow_table())
    lazy = pl.scan_parquet(path)
    take("Polars: count", lambda: pl.collect_all([lazy.group_by(members).len() for members in sets]))
    agree = all(
        np.array_equal(a.values, b.values) for a, b in zip(answers["embedded"], answers["spark"], strict=True)
    ) and all(
        np.array_equal(a, b) and np.array_equal(a, c.values)
        for a, b, c in zip(ours, theirs, answers["embedded"], strict=False)
    )
    inside.close()
    # The levels of the first attribute as people, of each of whom one row counts, in every engine.
    person = Unit("add-remove", schema.names[0], 1)
    rest = schema.select(schema.names[1:4])
    bounded = [
        [table.values.sum() for table in open_counter(data, rest, unit=person).count([rest.names[:1]])]
        for data in (path, frame)
    ]
    agree = agree and bounded[0] == bounded[1] == [schema[schema.names[0]].size]
    session.stop()
    return {"seconds": seconds, "agree": int(agree)}


def quote(name: str) -> str:
    """A name in SQL."""
    return '"' + name + '"'


def spread(values: list[float]) -> str:
    """The median, and the least and the most."""
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


PARTS: dict[str, Callable[..., dict[str, Any]]] = {
    "write": write,
    "write_parts": write_parts,
    "open_rows": open_rows,
    "open_csv": open_csv,
    "release_rows": release_rows,
    "count_tables": count_tables,
    "race_engines": race_engines,
}
