"""Rows as codes, one array for each attribute: read from wherever rows are, counted, taken and joined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.values.errors import DataError
from discreet.values.schema import Schema

Codes = Mapping[str, npt.NDArray[Any]]
Floats = npt.NDArray[np.float64]


def read_codes(data: Any, schema: Schema) -> dict[str, npt.NDArray[Any]]:
    """The rows of a file or any table of columns; every value is checked against the schema."""
    from discreet.networks.synthetic import Rows
    from discreet.rows.limits import Limits
    from discreet.rows.readers.duck import open_reader

    # With one thread rows come in the order of the file, so that a seed gives the same audit every time.
    reader = open_reader(data.arrow() if isinstance(data, Rows) else data, schema, None, Limits(threads=1))
    try:
        batches = [batch.codes for batch in reader.read(schema.names)]
    finally:
        reader.close()
    if not batches:
        raise DataError(f"{reader.label} has no rows; at least 1 is needed")
    columns = [np.concatenate(parts) for parts in zip(*batches, strict=True)]
    return dict(zip(schema.names, columns, strict=True))


def flatten_codes(codes: Codes, axes: Sequence[str], shape: Sequence[int]) -> npt.NDArray[np.int64]:
    """The flat position of every row's cell in a table over some attributes, the last one fastest."""
    index = np.zeros(count_rows(codes), dtype=np.int64)
    for name, size in zip(axes, shape, strict=True):
        index *= size
        index += codes[name]
    return index


def count_rows(codes: Codes) -> int:
    """The number of rows."""
    return len(next(iter(codes.values())))


def take_rows(codes: Codes, rows: npt.NDArray[Any]) -> dict[str, npt.NDArray[Any]]:
    """Some rows, by their numbers or by a mask."""
    return {name: column[rows] for name, column in codes.items()}


def join_rows(*parts: Codes) -> dict[str, npt.NDArray[Any]]:
    """The rows of several tables, one after the other."""
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def require_rows(what: str, codes: Codes, least: int) -> int:
    """The number of rows, or `DataError` if there are fewer than `least`."""
    rows = count_rows(codes)
    if rows < least:
        raise DataError(f"{what} has {rows:,} rows; at least {least:,} are needed")
    return rows
