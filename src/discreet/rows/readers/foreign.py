"""Excel, Stata, SAS and JSON lines as Arrow tables, read by the libraries that know them."""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, time
from itertools import chain, islice
from pathlib import Path
from typing import Any

from discreet.rows.files.heads import LOOKED_AT, TITLE, find_header
from discreet.rows.files.writing import Said
from discreet.rows.readers.csv_files import open_bytes, read_header
from discreet.values.errors import DataError, TooLarge, import_extra
from discreet.values.text import list_some, show

EXCEL_ENDINGS = (".xlsx", ".xlsm")
STATISTICS_ENDINGS = (".dta", ".sas7bdat", ".xpt")
JSON_ENDINGS = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")
EXCEL_OPTIONS = ("header", "decimal", "unit")
MOST_EXCEL_ROWS = 2**20
"""The most rows that a sheet has in Excel itself."""


def read_excel(
    label: str, path: Path, sheet: str | None, said: Mapping[str, str], most_bytes: int
) -> tuple[Any, str]:
    """A sheet of an Excel file, the first one if none is named; its first row, or the one said, names the columns.

    With it a hint, if that row looks like a title.
    At most `most_bytes` of it are unpacked: 200 kB can hold gigabytes.
    """
    strange = next((name for name in said if name not in EXCEL_OPTIONS), None)
    if strange is not None:
        raise DataError(f"{label}: unknown option {show(strange)}; allowed are {', '.join(EXCEL_OPTIONS)}")
    first = read_header(label, said)
    openpyxl = import_extra("openpyxl", "reading Excel files", "files")
    try:
        with zipfile.ZipFile(path) as packed:
            unpacked = sum(part.file_size for part in packed.infolist())  # no more than that is ever unpacked
        if unpacked > most_bytes:
            raise TooLarge(f"{label}: {unpacked:,} bytes unpacked; {_advise(most_bytes)}")
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        try:
            if sheet is not None and sheet not in book.sheetnames:
                raise DataError(f"{label}: no sheet {show(sheet)}; the file has {list_some(book.sheetnames)}")
            rows = book[sheet or book.sheetnames[0]].iter_rows(min_row=first, values_only=True)
            head = list(islice(rows, LOOKED_AT))
            names = ["" if name is None else str(name) for name in _trim(head[0] if head else ())]
            if not any(names):
                raise DataError(f"{label}: no header; row {first} of the sheet must name the columns")
            rows = chain(head[1:], rows)
            cells = list(_fill(islice(rows, MOST_EXCEL_ROWS), len(names)))
            if next(rows, None) is not None:
                raise TooLarge(f"{label}: more than {MOST_EXCEL_ROWS:,} rows, the most that Excel has")
        finally:
            book.close()
    except (DataError, TooLarge):
        raise
    except Exception as error:  # zip files and XML can be broken in many ways, and anywhere in a sheet
        raise DataError(f"{label}: not an Excel file: {str(error)[:200]}") from None
    columns = zip(*cells, strict=True) if cells else [()] * len(names)
    found = find_header(head)
    typed = Said(label if sheet is None else f"{label}::{sheet}", tuple(said.items()))
    hint = "" if found is None else f"{TITLE}: try {typed.add(f'header={first + found}')}"
    return _make_table(label, {i: [*map(_write, column)] for i, column in enumerate(columns)}, names), hint


def _fill(rows: Iterator[tuple[Any, ...]], width: int) -> Iterator[tuple[Any, ...]]:
    """Rows that are not empty, all of the same width."""
    return (row[:width] + (None,) * (width - len(row)) for row in rows if any(v is not None for v in row))


def read_statistics(label: str, path: Path) -> Any:
    """A file of Stata or SAS, with its labels in place of codes."""
    pandas = import_extra("pandas", "reading Stata and SAS files", "files")
    import pyarrow as pa

    try:
        if path.suffix.lower() == ".dta":
            frame = pandas.read_stata(path, convert_categoricals=True, preserve_dtypes=True)
        else:
            frame = _read_sas(pandas, path)
    except Exception as error:
        raise DataError(f"{label}: cannot be read as {path.suffix}: {str(error)[:200]}") from None
    from discreet.rows.readers.arrow_tables import read_arrow

    found = read_arrow(frame)
    assert isinstance(found, pa.Table)
    return found


def _read_sas(pandas: Any, path: Path) -> Any:
    try:
        return pandas.read_sas(path, encoding="utf-8")
    except UnicodeDecodeError:
        return pandas.read_sas(path, encoding="cp1252")


def read_json_lines(label: str, path: Path, most_bytes: int) -> Any:
    """A file with one JSON object on each line; a key that a line does not have is missing there."""
    columns: dict[str, list[str | None]] = {}
    texts: dict[str | None, str | None] = {}  # each text once: a table has few
    number = held = rows = 0
    try:
        with open_bytes(path) as file:
            while line := file.readline(most_bytes - held + 1):
                number, held = number + 1, held + len(line)
                if held > most_bytes:
                    raise TooLarge(f"{label}: more than {most_bytes:,} bytes; {_advise(most_bytes)}")
                if not line.strip():
                    continue
                for name, value in json.loads(line, object_pairs_hook=_refuse_twice).items():
                    column = columns.setdefault(name, [])
                    column += [None] * (rows - len(column))
                    column.append(texts.setdefault(text := _write(value), text))
                rows += 1
    except TooLarge:
        raise
    except (ValueError, AttributeError, RecursionError, OSError, EOFError, zlib.error):
        raise DataError(
            f"{label}: not JSON lines: line {number:,} is no JSON object, or has a key twice"
        ) from None
    for column in columns.values():
        column += [None] * (rows - len(column))
    return _make_table(label, columns, list(columns))


def _refuse_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Which of two values is meant nobody can tell, and readers differ."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError
    return found


def _advise(most_bytes: int) -> str:
    return f"{most_bytes:,} are the most that is read: raise --memory, or write it as CSV or Parquet"


def _make_table(label: str, columns: Mapping[Any, Sequence[str | None]], names: Sequence[str]) -> Any:
    """An Arrow table of texts, each cell written by itself.

    With a type for each column, one odd cell would change how all others are read, and no sensitivity would hold.
    """
    import pyarrow as pa

    try:
        return pa.table([pa.array(cells, pa.string()) for cells in columns.values()], names=list(names))
    except UnicodeEncodeError as error:  # JSON can spell half of a character: "\\ud800"
        half = error.object[error.start]
        raise DataError(f"{label}: {half!r} in a name or a cell is half a character, and no text") from None


def _write(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime) and value.time() == time():
        return str(value.date())
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _trim(header: Sequence[Any]) -> Sequence[Any]:
    """The header without empty cells at its end."""
    last = max((i for i, name in enumerate(header) if name is not None), default=-1)
    return header[: last + 1]
