"""Rows as codes, one array for each attribute: counted, taken and joined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.values.errors import DataError

Codes = Mapping[str, npt.NDArray[Any]]
Floats = npt.NDArray[np.float64]


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
