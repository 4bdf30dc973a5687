"""Columns and tables as people hold them, brought into three plain forms, a block of rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.values.errors import DataError
from discreet.values.text import show

BLOCK = 2**20
"""Rows handled at a time, so that what is made on the way to the codes stays small beside the column."""

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Numbers:
    """Integers or floats; `absent` marks missing values, as NaN does."""

    values: Array
    absent: Array | None = None

    def __len__(self) -> int:
        return len(self.values)

    def value(self, row: int) -> object:
        """The value in a row, counted from 0."""
        return self.values[row].item()


@dataclass(frozen=True, slots=True)
class Coded:
    """Positions in a short list of values; a negative position is a missing value."""

    index: Array
    values: Sequence[object]

    def __len__(self) -> int:
        return len(self.index)

    def value(self, row: int) -> object:
        """The value in a row, counted from 0."""
        return self.values[self.index[row]]


@dataclass(frozen=True, slots=True)
class Objects:
    """Any Python values, to be matched one by one."""

    values: Sequence[object]

    def __len__(self) -> int:
        return len(self.values)

    def value(self, row: int) -> object:
        """The value in a row, counted from 0."""
        return self.values[row]


@dataclass(frozen=True, slots=True)
class Moments:
    """Dates or times as whole seconds since 1970; `absent` marks missing values."""

    seconds: npt.NDArray[np.int64]
    absent: Array | None = None

    def __len__(self) -> int:
        return len(self.seconds)

    def value(self, row: int) -> object:
        """The value in a row, counted from 0."""
        return np.datetime64(int(self.seconds[row]), "s")


Form = Numbers | Coded | Objects | Moments


def open_column(what: str, column: Any) -> tuple[int, Iterator[Form]]:
    """The number of rows of a column and its blocks in order; `what` names it if it is refused."""
    column = _convert(column)
    if isinstance(column, Coded):
        return len(column), _slice_coded(column)
    if isinstance(column, list | tuple):
        return len(column), (_sort_objects(column[i : i + BLOCK]) for i in range(0, len(column), BLOCK))
    if isinstance(column, np.ndarray):
        if column.ndim != 1 or column.dtype.kind in "cV":
            raise DataError(
                f"{what} is a {column.ndim}-dimensional array of {column.dtype}; allowed is a list of values"
            )
        return len(column), (_read_numpy(column[i : i + BLOCK]) for i in range(0, len(column), BLOCK))
    if _home(column) == "pyarrow" and hasattr(column, "null_count"):
        return len(column), _read_arrow(column)
    raise DataError(
        f"{what} is a {type(column).__name__}; "
        "allowed are lists, numpy arrays, pandas and Polars series, Arrow arrays"
    )


def open_table(table: Any) -> tuple[list[object], Callable[[int], Any]]:
    """The names of the columns of a table, which may repeat, and a way to fetch one by its position."""
    home = _home(table)
    if isinstance(table, Mapping):
        names = list(table)
        return names, lambda i: table[names[i]]
    if isinstance(table, np.ndarray) and table.dtype.names:
        fields = list(table.dtype.names)
        return list(fields), lambda i: table[fields[i]]
    if home == "pandas" and hasattr(table, "iloc") and hasattr(table, "columns"):
        return list(table.columns), lambda i: table.iloc[:, i]
    if home == "polars" and hasattr(table, "collect"):
        raise DataError("the table is a lazy frame; call collect() on it first")
    if home == "polars" and hasattr(table, "to_series"):
        return list(table.columns), lambda i: table.to_series(i)
    if hasattr(table, "__arrow_c_stream__") and not (home == "pyarrow" and hasattr(table, "column")):
        import pyarrow as pa

        table, home = pa.table(table), "pyarrow"
    if home == "pyarrow" and hasattr(table, "column"):
        return list(table.schema.names), lambda i: table.column(i)
    raise DataError(
        f"the table is a {type(table).__name__}; allowed are mappings of names to columns, "
        "pandas and Polars frames, Arrow tables, structured numpy arrays"
    )


def _home(value: object) -> str:
    """The package that a value's type comes from: known without importing it."""
    return type(value).__module__.partition(".")[0]


def _convert(column: Any) -> Any:
    """A foreign column as a list, codes, a numpy or an Arrow array, whichever is the least work."""
    home = _home(column)
    if isinstance(column, list | tuple | np.ndarray) or home == "pyarrow":
        return column
    if home == "pandas":
        return _convert_pandas(column)
    if home == "polars" and hasattr(column, "to_arrow") and hasattr(column, "dtype"):
        return column.to_list() if str(column.dtype) == "Object" else column.to_arrow()
    if home != "polars" and (hasattr(column, "__arrow_c_stream__") or hasattr(column, "__arrow_c_array__")):
        import pyarrow as pa

        return pa.chunked_array(column) if hasattr(column, "__arrow_c_stream__") else pa.array(column)
    return np.asarray(column) if hasattr(column, "__array__") and home != "polars" else column


def _convert_pandas(column: Any) -> Any:
    held = getattr(column, "array", column)
    if hasattr(held, "categories") and hasattr(held, "codes"):
        return Coded(np.asarray(held.codes), list(held.categories))
    if not hasattr(column, "dtype") or getattr(column, "ndim", 1) != 1:
        return column
    if isinstance(column.dtype, np.dtype):
        return column.to_numpy()
    import pyarrow as pa

    try:
        return pa.array(held, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError):
        return np.asarray(column, dtype=object)


def _slice_coded(column: Coded) -> Iterator[Form]:
    return (Coded(column.index[i : i + BLOCK], column.values) for i in range(0, len(column), BLOCK))


def _sort_objects(values: Sequence[object]) -> Form:
    """A list that holds nothing but integers or nothing but floats is an array after all."""
    kinds = set(map(type, values))
    if kinds == {int}:
        whole = np.array(values)
        if whole.dtype.kind in "iu":
            return Numbers(whole)
    elif kinds and kinds <= {float, type(None)}:
        return Numbers(np.array(values, dtype=np.float64))
    return Objects(values)


def _read_numpy(block: Array) -> Form:
    kind = block.dtype.kind
    if kind == "b":
        index, values = np.asarray(block).astype(np.int8), (False, True)
        return Coded(np.where(np.ma.getmaskarray(block), np.int8(-1), index), values)
    if kind in "iuf":
        masked = np.ma.is_masked(block)
        return Numbers(np.ma.getdata(block), np.ma.getmaskarray(block) if masked else None)
    if kind == "M":
        absent = np.isnat(np.ma.getdata(block)) | np.ma.getmaskarray(block)
        seconds = np.ma.getdata(block).astype("datetime64[s]").astype(np.int64)
        return Moments(seconds, absent if absent.any() else None)
    # A list of timedelta64 scalars, where tolist() would make plain integers of nanoseconds.
    return _sort_objects(list(block) if kind == "m" else block.tolist())


def _read_arrow(column: Any) -> Iterator[Form]:
    import pyarrow as pa

    for chunk in getattr(column, "chunks", [column]):
        kind = chunk.type
        if pa.types.is_dictionary(kind):
            yield from _slice_coded(Coded(_read_index(chunk.indices), chunk.dictionary.to_pylist()))
            continue
        for start in range(0, len(chunk), BLOCK):
            yield _read_arrow_block(chunk.slice(start, BLOCK))


def _read_arrow_block(block: Any) -> Form:
    import pyarrow as pa

    kind = block.type
    if pa.types.is_boolean(kind):
        return Coded(_read_index(block.cast(pa.int8())), (False, True))
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        if not block.null_count:
            return Numbers(block.to_numpy(zero_copy_only=False))
        absent = block.is_null().to_numpy(zero_copy_only=False)
        # Filled first, because Arrow turns integers with nulls into floats, which lose digits.
        return Numbers(block.fill_null(pa.scalar(0, kind)).to_numpy(zero_copy_only=False), absent)
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        absent = block.is_null().to_numpy(zero_copy_only=False) if block.null_count else None
        return Moments(_count_seconds(block), absent)
    if str(kind) == "string_view":
        block, kind = block.cast(pa.large_string()), pa.large_string()
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        found = block.dictionary_encode()
        return Coded(_read_index(found.indices), found.dictionary.to_pylist())
    return Objects(block.to_pylist())


def _count_seconds(block: Any) -> npt.NDArray[np.int64]:
    """Whole seconds since 1970, rounded down, by the clock of UTC."""
    import pyarrow as pa

    kind = block.type
    whole = block.cast(pa.int32()).cast(pa.int64()) if pa.types.is_date32(kind) else block.cast(pa.int64())
    counts: npt.NDArray[np.int64] = whole.fill_null(0).to_numpy(zero_copy_only=False)
    if pa.types.is_date32(kind):
        return counts * 86_400
    scale = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
    return counts // (10**3 if pa.types.is_date64(kind) else scale[kind.unit])


def _read_index(indices: Any) -> Array:
    import pyarrow as pa

    if not indices.null_count:
        return np.asarray(indices.to_numpy(zero_copy_only=False))
    wide = indices.cast(pa.int64()) if pa.types.is_unsigned_integer(indices.type) else indices
    return np.asarray(wide.fill_null(-1).to_numpy(zero_copy_only=False))


def refuse_lengths(lengths: Mapping[str, int]) -> None:
    """Refuse columns of unequal length."""
    (first, rows), *others = lengths.items()
    for name, length in others:
        if length != rows:
            raise DataError(f"column {show(first)} has {rows:,} rows but column {show(name)} has {length:,}")
