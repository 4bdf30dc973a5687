"""The engine for any data: counted here from codes, or counted where it is."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from discreet.core.counter import Counter
from discreet.rows.limits import MAX_ROWS, Limits, read_memory
from discreet.values.errors import DataError
from discreet.values.schema import Schema


def open_counter(
    data: Any,
    schema: Schema,
    *,
    memory: int | str | None = None,
    weight: str | None = None,
    numbers: Sequence[str] = (),
    max_rows: int = MAX_ROWS,
    threads: int | None = None,
) -> Counter:
    """The engine for this data, with every row already checked against the schema.

    Read here and counted from codes: a file (CSV, Parquet, Arrow), a pandas or Polars frame, a mapping of
    columns, an Arrow table or dataset, a `(connection, table)` pair of DuckDB or SQLite, or a text such as
    "clinic.duckdb::visits". Counted where it is, so that only tables come back: an Ibis table, a Spark frame,
    or a text such as "postgresql://host/db::visits".

    `weight` names a column of non-negative integers for rows that were aggregated before; a table then sums
    the weights, and adding or removing one unit of weight, not one row, changes a cell by one.
    `numbers` names columns that may be summed, each a number in every row.
    """
    limits = Limits(read_memory(memory), max_rows, threads)
    if isinstance(numbers, str):
        raise DataError(f"the number columns are the text {numbers!r}; give a list of names")
    if weight is not None and weight in schema:
        raise DataError(
            f"the weight column {weight!r} is also an attribute of the schema; it can be only one of the two"
        )
    if _lives_elsewhere(data):
        from discreet.rows.engines.pushdown import PushdownCounter

        return PushdownCounter.open(data, schema, weight=weight, limits=limits)
    from discreet.rows.engines.coded import CodedCounter

    return CodedCounter.open(data, schema, weight=weight, limits=limits, numbers=numbers)


def _lives_elsewhere(data: Any) -> bool:
    if isinstance(data, str | os.PathLike):
        return os.fspath(data).startswith(("postgres://", "postgresql://"))
    home = type(data).__module__.partition(".")[
        0
    ]  # told from the name, so that neither package is imported here
    return home in ("ibis", "pyspark")
