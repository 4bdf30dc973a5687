"""A table that nobody cleaned (weekly CO₂ since 1958: dates, decimals, nulls), through every way in and out again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import psycopg
import pytest

import discreet as dc
from discreet.entrance import open_counter
from discreet.values.schema import Schema
from discreet.values.schema.formats.toml import parse_toml

SCHEMA = """
[attributes.week]
type = "date"
by = "year"
from = 1958-03-01
to = 2001-12-31
outside = "leave out"

[attributes.co2]
decimals = 1
edges = [-inf, 320, 330, 340, 350, 360, inf]
lowest = 310
highest = 375
missing = "missing"
outside = "missing"

[attributes.leap]
levels = [true, false]
other = "other"
"""


def load_co2() -> pd.DataFrame:
    from statsmodels.datasets import co2

    frame = co2.load_pandas().data.reset_index(names="week")
    return frame.assign(leap=frame.week.dt.is_leap_year)


def count(data: Any, schema: Schema) -> list[list[int]]:
    counter = open_counter(data, schema)
    try:
        return [found.values.tolist() for found in counter.count([(name,) for name in schema.names])]
    finally:
        counter.close()


def test_dates_decimals_and_nulls_come_in_and_go_out(
    tmp_path: Path, postgres_schema: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    frame, schema = load_co2(), parse_toml(SCHEMA)
    wanted = count(frame, schema)
    assert sum(wanted[0]) == len(frame) and wanted[1][-1] == int(frame.co2.isna().sum()) > 0
    assert wanted[0] == frame.week.dt.year.value_counts().sort_index().tolist()
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    with duckdb.connect(str(tmp_path / "t.duckdb")) as connection:
        connection.register("given", frame)
        connection.execute("CREATE TABLE t AS FROM given")
    address = postgres_schema()
    with psycopg.connect(address) as server:
        server.execute("CREATE TABLE t (week timestamp, co2 double precision, leap boolean)")
        with server.cursor().copy("COPY t FROM STDIN") as copy:
            for row in frame.astype(object).where(frame.notna(), None).itertuples(index=False):
                copy.write_row(row)
    for data in (
        str(tmp_path / "t.csv"),
        str(tmp_path / "t.parquet"),
        f"{tmp_path / 't.duckdb'}::t",
        pl.from_pandas(frame),
        f"{address}::t",
    ):
        assert count(data, schema) == wanted, data
    monkeypatch.setattr("warnings.warn", lambda *_, **__: None)  # of a release without a ledger
    rows = dc.release(frame, schema, epsilon=3).sample(len(frame), rng=1).pandas()
    assert (
        rows.week.dt.year.between(1958, 2001).all() and rows.week.dtype.kind == frame.week.dtype.kind == "M"
    )
    known = rows.co2.dropna()
    assert np.array_equal(known, known.round(1)) and known.between(310, 375).all()
