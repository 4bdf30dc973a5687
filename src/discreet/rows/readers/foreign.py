"""Excel, Stata, SAS and JSON lines as Arrow tables, read by the libraries that know them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, time
from pathlib import Path
from typing import Any

from discreet.rows.readers.csv_files import open_bytes
from discreet.values.errors import DataError, import_extra
from discreet.values.text import list_some, show

EXCEL_ENDINGS = (".xlsx", ".xlsm")
STATISTICS_ENDINGS = (".dta", ".sas7bdat", ".xpt")
JSON_ENDINGS = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")


def read_excel(label: str, path: Path, sheet: str | None) -> Any:
    """A sheet of an Excel file, the first one if none is named; its first row names the columns."""
    openpyxl = import_extra("openpyxl", "reading Excel files", "files")
    try:
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    except Exception as error:  # zip files and XML can be broken in many ways
        raise DataError(f"{label}: not an Excel file: {str(error)[:200]}") from None
    try:
        if sheet is not None and sheet not in book.sheetnames:
            raise DataError(f"{label}: no sheet {show(sheet)}; the file has {list_some(book.sheetnames)}")
        rows = book[sheet or book.sheetnames[0]].iter_rows(values_only=True)
        header = _trim(next(rows, ()))
        names = ["" if name is None else str(name) for name in header]
        if not any(names):
            raise DataError(f"{label}: no header; the first row of the sheet must name the columns")
        cells = [
            row[: len(names)] + (None,) * (len(names) - len(row))
            for row in rows
            if any(v is not None for v in row)
        ]
    finally:
        book.close()
    return make_table(names, list(zip(*cells, strict=True)) if cells else [()] * len(names))


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


def read_json_lines(label: str, path: Path) -> Any:
    """A file with one JSON object on each line; a key that a line does not have is missing there."""
    rows: list[dict[str, Any]] = []
    number = 0
    try:
        with open_bytes(path) as file:
            for number, line in enumerate(file, 1):  # noqa: B007 (the refusal names it)
                if line.strip():
                    rows.append(dict(json.loads(line).items()))
    except (ValueError, AttributeError, RecursionError, OSError, EOFError):
        raise DataError(f"{label}: not JSON lines: line {number:,} is no JSON object") from None
    names = list(dict.fromkeys(name for row in rows for name in row))
    return make_table(names, [[row.get(name) for row in rows] for name in names])


def make_table(names: Sequence[str], columns: Sequence[Sequence[Any]]) -> Any:
    """An Arrow table of texts from columns of plain values, each cell written by itself.

    With a type for each column, one odd cell would change how all others are read, and no sensitivity would hold.
    """
    import pyarrow as pa

    written = [[None if value is None else _write(value) for value in column] for column in columns]
    return pa.table([pa.array(cells, pa.string()) for cells in written], names=list(names))


def _write(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime) and value.time() == time():
        return str(value.date())
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _trim(header: Sequence[Any]) -> Sequence[Any]:
    """The header without empty cells at its end."""
    last = max((i for i, name in enumerate(header) if name is not None), default=-1)
    return header[: last + 1]
