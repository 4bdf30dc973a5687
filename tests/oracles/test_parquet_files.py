"""The Parquet files we write, read by Arrow, DuckDB and Polars, and by Arrow's writer's own values."""

from __future__ import annotations

import tempfile
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import duckdb
import numpy as np
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.networks.formats.parquet import append_groups, encode_group, pack_bits

SOME = st.integers(0, 40)


@given(st.integers(1, 8), st.lists(st.integers(0, 255), max_size=70))
def test_numbers_are_packed_bit_by_bit(width: int, numbers: list[int]) -> None:
    """As numpy does it: the lowest bit of the first number first, filled up with zeros to eight numbers."""
    codes = np.array(numbers, dtype=np.uint8) & (2**width - 1)
    bits = np.unpackbits(codes.reshape(-1, 1), axis=1, bitorder="little", count=width).ravel()
    room = np.zeros(-(-len(codes) // 8) * 8 * width, dtype=np.uint8)
    room[: len(bits)] = bits
    assert pack_bits(codes, width) == np.packbits(room, bitorder="little").tobytes()


def make_batch(rows: int, levels: int, absent: int, seed: int) -> pa.RecordBatch:
    """A column of each type that synthetic rows can have, every `absent`-th value missing (none if 0)."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, levels, rows)
    gone = np.arange(rows) % absent == 0 if absent else np.zeros(rows, dtype=bool)
    labels = [f"{'é' * (i % 3)}{i}" for i in range(levels)]
    start = datetime(1969, 12, 31, 23, 59, 58, tzinfo=UTC).replace(tzinfo=None)

    def point(values: pa.Array) -> pa.Array:
        return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32), mask=gone), values)

    def list_values(values: list[object], kind: pa.DataType) -> pa.Array:
        found = [None if lost else values[code] for code, lost in zip(codes, gone, strict=True)]
        return pa.array(found, kind)

    truth = [bool(i % 2) for i in range(levels)]
    return pa.record_batch(
        {
            "text": point(pa.array(labels, pa.string())),
            "whole": point(pa.array(range(-3, levels - 3), pa.int64())),
            "truth": point(pa.array(truth, pa.bool_())),
            "number": pa.array(rng.normal(size=rows), mask=gone),
            "count": pa.array(rng.integers(-(2**62), 2**62, rows), mask=gone),
            "plain": list_values(labels, pa.string()),
            "bits": list_values(truth, pa.bool_()),
            "day": list_values([date(1969, 12, 1) + timedelta(i) for i in range(levels)], pa.date32()),
            "time": list_values([start + timedelta(seconds=i) for i in range(levels)], pa.timestamp("us")),
        }
    )


def decode(batch: pa.RecordBatch) -> pa.Table:
    """The values without dictionaries."""
    columns = [
        column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
        for column in batch.columns
    ]
    return pa.table(columns, names=batch.schema.names)


@settings(deadline=None, max_examples=12)
@given(SOME, st.integers(1, 300), st.integers(0, 3), st.integers(1, 17))
def test_other_readers_find_what_was_written(rows: int, levels: int, absent: int, groups: int) -> None:
    """Every type, with nulls and without, in some row groups: also more than fifteen, whose list is written longer."""
    parts = [make_batch(rows, levels, absent, seed) for seed in range(groups)]
    wanted = pa.concat_tables(map(decode, parts))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        with append_groups(path, parts[0].schema, keep_schema=False) as append:
            for part in parts:
                append(encode_group(part))
        assert pq.read_table(path).equals(wanted)
        assert duckdb.sql(f"SELECT * FROM '{path}'").to_arrow_table().cast(wanted.schema).equals(wanted)
        assert polars.read_parquet(path).equals(polars.from_arrow(wanted))
        assert pq.ParquetFile(path).num_row_groups == groups


@pytest.mark.parametrize("levels", [2, 200, 400])
def test_labels_come_back_as_dictionaries(tmp_path: Path, levels: int) -> None:
    """With Arrow's schema in the file, an ordered list of labels stays one."""
    codes = pa.array(np.arange(900) % levels, pa.uint16())
    labels = pa.array([f"level {i}" for i in range(levels)])
    batch = pa.record_batch([pa.DictionaryArray.from_arrays(codes, labels, ordered=True)], names=["grade"])
    with append_groups(tmp_path / "rows.parquet", batch.schema, keep_schema=True) as append:
        append(encode_group(batch))
    found = pq.read_table(tmp_path / "rows.parquet")
    assert pa.types.is_dictionary(found["grade"].type) and found["grade"].type.ordered
    assert found["grade"].to_pylist() == batch["grade"].to_pylist()
