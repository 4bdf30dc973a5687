"""Frames, mappings and SQLite tables as Arrow tables, with the types that their columns have."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any

from discreet.values.errors import DataError
from discreet.values.text import show


def read_arrow(data: Any) -> Any | None:
    """An Arrow table of a frame, a mapping of columns or an Arrow table; None if it is none of these."""
    import pyarrow as pa

    home = type(data).__module__.partition(".")[0]
    if home == "pandas" and hasattr(data, "iloc") and hasattr(data, "columns"):
        return _read_columns(
            {name: data.iloc[:, i] for i, name in enumerate(data.columns)}, list(data.columns)
        )
    if isinstance(data, Mapping):
        return _read_columns(dict(data), list(data))
    if home == "polars" and hasattr(data, "to_arrow") and hasattr(data, "columns"):
        return (data.collect() if hasattr(data, "collect") else data).to_arrow()
    if isinstance(data, pa.Table):
        return data
    return None


def read_sqlite(connection: sqlite3.Connection, table: str) -> Any:
    """A whole table of an SQLite database."""
    import pyarrow as pa

    quoted = '"' + table.replace('"', '""') + '"'
    try:
        cursor = connection.execute(f"SELECT * FROM {quoted}")
        names = [column[0] for column in cursor.description]
        rows = cursor.fetchall()
    except sqlite3.Error as error:
        raise DataError(f"table {show(table)}: {error}") from None
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    return pa.table(
        {name: _read_column(name, list(column)) for name, column in zip(names, columns, strict=True)}
    )


def _read_columns(columns: dict[Any, Any], names: list[Any]) -> Any:
    import pyarrow as pa

    strange = next((name for name in names if not isinstance(name, str)), None)
    if strange is not None:
        raise DataError(f"the frame has a column called {show(strange)}; names of columns must be text")
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(f"the frame has two columns called {show(twice)}; rename one")
    arrays = [_read_column(name, columns[name]) for name in names]
    if len({len(array) for array in arrays}) > 1:
        raise DataError("the columns of the table have different lengths")
    return pa.table(arrays, names=names) if arrays else pa.table({})


def _read_column(name: str, column: Any) -> Any:
    """One column; where values of several types are mixed, all are written as text."""
    import pyarrow as pa

    try:
        found = pa.array(column, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError):
        try:
            values = list(column)
        except TypeError:
            raise DataError(
                f"column {show(name)} is a {type(column).__name__}; give a list of values"
            ) from None
        found = pa.array([None if _is_nothing(value) else _write(value) for value in values], pa.string())
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found


def _is_nothing(value: Any) -> bool:
    return value is None or type(value).__name__ in ("NAType", "NaTType") or value != value


def _write(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
