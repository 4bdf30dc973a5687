"""The shape of a CSV file, checked byte by byte before it is read.

DuckDB's reader is fast, but leaves out a last line that is too short or too long for its buffer without a word, and
with it a person; so records are counted here first, and a reader that sees another number of rows is refused.
It also takes a blank before a quote away and the quotes with it, where Python's csv module, and most spreadsheets, keep
both as text. Such a cell has no one meaning, and is refused.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit

from discreet.values.errors import DataError

CHUNK = 1 << 20
"""Bytes looked at in one call."""

LONGEST_RECORD = 2**21
"""Bytes of one record; DuckDB takes no longer line."""

_START, _PLAIN, _QUOTED, _CLOSED, _BLANK = 0, 1, 2, 3, 4
_RAGGED, _AFTER_QUOTE, _LONG, _BEFORE_QUOTE = 1, 2, 3, 4
_STATE, _FIELDS, _LINE, _FIRST_LINE, _BYTES, _RECORDS, _WIDTH, _RETURN, _FAULT = range(9)


def count_records(label: str, path: Path, delimiter: str) -> int:
    """The number of records after the header, each with as many fields as it; a file of another shape is refused."""
    progress = np.zeros(9, dtype=np.int64)
    progress[[_LINE, _FIRST_LINE]] = 1
    open_bytes: Callable[..., Any] = gzip.open if path.name.lower().endswith(".gz") else open
    try:
        with open_bytes(path, "rb") as file:
            head = file.read(3)
            rest = b"" if head == b"\xef\xbb\xbf" else head
            while chunk := rest or file.read(CHUNK):
                rest = b""
                _scan(np.frombuffer(chunk, dtype=np.uint8), ord(delimiter), LONGEST_RECORD, progress)
                if progress[_FAULT]:
                    raise _refuse(label, progress)
    except (OSError, EOFError) as error:
        raise DataError(f"{label}: cannot be read: {error}") from None
    if progress[_STATE] == _QUOTED:
        raise DataError(f"{label}: line {progress[_FIRST_LINE]:,}: a quoted value is not closed")
    _scan(
        np.frombuffer(b"\n" if progress[_BYTES] else b"", dtype=np.uint8),
        ord(delimiter),
        LONGEST_RECORD,
        progress,
    )
    if progress[_FAULT]:
        raise _refuse(label, progress)
    return max(0, int(progress[_RECORDS]) - 1)


def _refuse(label: str, progress: Any) -> DataError:
    where = f"{label}: line {progress[_FIRST_LINE]:,}"
    if progress[_FAULT] == _RAGGED:
        return DataError(f"{where}: {progress[_FIELDS]} columns; the header has {progress[_WIDTH]}")
    if progress[_FAULT] == _LONG:
        return DataError(
            f"{where}: more than {LONGEST_RECORD:,} bytes; the line is too long, or a quote is not closed"
        )
    if progress[_FAULT] == _BEFORE_QUOTE:
        return DataError(
            f"{where}: a blank before a quote; take the blank away, or put it between the quotes"
        )
    return DataError(f"{where}: a quoted value is followed by other text")


def _scan_bytes(chunk: Any, delimiter: int, longest: int, progress: Any) -> None:
    state, fields, line, first = progress[_STATE], progress[_FIELDS], progress[_LINE], progress[_FIRST_LINE]
    size, records, width, returned = progress[_BYTES], progress[_RECORDS], progress[_WIDTH], progress[_RETURN]
    fault = 0
    for byte in chunk:
        if byte == 10 and returned:  # the second half of a line break
            returned = 0
            continue
        returned = 0
        if byte == 10 or byte == 13:
            line += 1
            returned = 1 if byte == 13 else 0
            if state == _QUOTED:
                size += 1
                continue
            if size or width == 1:  # an empty line is a row only where a row is one field
                fields += 1
                if width == 0:
                    width = fields
                elif fields != width:
                    fault = _RAGGED
                    break
                records += 1
            state, fields, size, first = _START, 0, 0, line
            continue
        size += 1
        if size > longest:
            fault = _LONG
            break
        if byte == 34:
            if state in (_START, _CLOSED):
                state = _QUOTED
            elif state == _QUOTED:
                state = _CLOSED
            elif state == _BLANK:
                fault = _BEFORE_QUOTE
                break
        elif state == _QUOTED:
            pass
        elif byte == delimiter:
            state = _START
            fields += 1
        elif state == _CLOSED:
            fault = _AFTER_QUOTE
            break
        elif byte != 32 or state == _PLAIN:
            state = _PLAIN
        else:
            state = _BLANK
    progress[_STATE], progress[_FIELDS], progress[_LINE], progress[_FIRST_LINE] = state, fields, line, first
    progress[_BYTES], progress[_RECORDS], progress[_WIDTH], progress[_RETURN] = size, records, width, returned
    progress[_FAULT] = fault


_scan: Callable[[Any, int, int, Any], None] = njit(nogil=True, cache=True)(_scan_bytes)
