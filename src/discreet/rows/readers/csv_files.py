"""CSV files as people have them: separators, decimal commas and encodings are told from what is public, or said.

The separator is told from the header, which is no row. An encoding is told only where every row by itself reads the
same under it, and a decimal comma cell by cell. So how one row is read never depends on another row.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discreet.rows.files.heads import LOOKED_AT, TITLE, find_header
from discreet.rows.files.writing import Said, Writing, read_writing
from discreet.values.errors import DataError
from discreet.values.text import show

CSV_ENDINGS = {
    ".csv": "",
    ".csv.gz": "",
    ".txt": "",
    ".txt.gz": "",
    ".tsv": "\t",
    ".tsv.gz": "\t",
    ".tab": "\t",
}
SEPARATORS = {
    ",": ",",
    ";": ";",
    "|": "|",
    "\t": "\t",
    "tab": "\t",
    "comma": ",",
    "semicolon": ";",
    "pipe": "|",
}
OPTIONS = ("separator", "decimal", "encoding", "header", "unit")
MOST_LINES = 1000
"""A header is within so many lines."""
LONGEST_HEADER = 2**20
"""A first line of more bytes than this is not a header."""
CHUNK = 2**20
LEAST_MEMORY = 2**24
"""Files of up to so many bytes are always taken into memory, if they must be."""

_MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a CSV file is written."""

    separator: str
    writing: Writing
    encoding: str
    header: tuple[str, ...]
    skip: int = 0
    """Lines before the header: Excel's `sep=;`, titles."""
    hint: str = ""
    """What to say of the file if its header looks like none."""

    @property
    def plain(self) -> bool:
        """Whether DuckDB reads it as it is."""
        return self.encoding == "utf-8" and not self.skip


def find_dialect(label: str, path: Path, ending: str, said: Mapping[str, str]) -> Dialect:
    """How a file is written: what is said, else what its header and its bytes tell."""
    strange = next((name for name in said if name not in OPTIONS), None)
    if strange is not None:
        raise DataError(f"{label}: unknown option {show(strange)}; allowed are {', '.join(OPTIONS)}")
    encoding = _read_encoding(label, said["encoding"]) if "encoding" in said else _find_encoding(label, path)
    try:
        with open_bytes(path) as file:
            head = file.read(LONGEST_HEADER)
        text = codecs.getincrementaldecoder("utf-8-sig" if encoding == "utf-8" else encoding)().decode(head)
    except UnicodeDecodeError as error:
        raise _refuse_encoding(label, path, encoding, error.start, said) from None
    except (OSError, EOFError) as error:
        raise DataError(f"{label}: the header cannot be read: {error}") from None
    first, _, rest = text.partition("\n")
    skip, declared, line = 0, first.strip().lower(), read_header(label, said)
    if declared.startswith("sep=") and len(declared) <= 6:
        skip, text = 1, rest
    for _ in range(line - 1):
        skip, text = skip + 1, text.partition("\n")[2]
    marked = declared[4:5] if declared.startswith("sep=") and skip else CSV_ENDINGS.get(ending, "")
    separator = SEPARATORS.get(said.get("separator", marked))
    if "separator" in said and separator is None:
        raise DataError(f"{label}: separator {show(said['separator'])}; allowed are , ; | and tab")
    fixed, separator = separator is not None, separator or _find_separator(text)
    writing = read_writing(label, said, "," if separator == ";" else ".")
    try:
        header = next(csv.reader(io.StringIO(text, newline=""), delimiter=separator), [])
    except csv.Error as error:
        raise DataError(f"{label}: the header cannot be read: {error}") from None
    if not header:
        raise DataError(f"{label}: no header; the first line must name the columns")
    hint = _find_hint(Said(label, tuple(said.items())), text, separator if fixed else "", line)
    return Dialect(separator, writing, encoding, tuple(header), skip, hint)


def _find_hint(said: Said, text: str, separator: str, line: int) -> str:
    """What to say if the header has no separator though another one is in it, or looks like a title."""
    first, fits = text.partition("\n")[0], _find_separator(text)
    if separator and separator not in first and fits in first:
        known = next(name for name in ("tab", fits) if SEPARATORS[name] == fits)
        typed, many = said.add(f"separator={known}"), first.count(fits)
        return f"its header has no {show(separator)}, but {many} times {show(fits)}: try {typed}"
    lines = [one.rstrip("\r") for one in text.split("\n", LOOKED_AT)[:LOOKED_AT]]
    # A title need not hold the separator of the rows below it.
    for one in (separator or fits,) if separator or fits in first else (",", ";", "\t", "|"):
        try:
            found = find_header([next(csv.reader([cells], delimiter=one), []) for cells in lines])
        except csv.Error:
            continue
        if found is not None:
            return f"{TITLE}: try {said.add(f'header={line + found}')}"
    return ""


def _refuse_encoding(label: str, path: Path, encoding: str, place: int, said: Mapping[str, str]) -> DataError:
    """The refusal of a text that is in another encoding, with one that fits."""
    fits = _find_encoding(label, path)
    fits = "latin-1" if fits == encoding else fits
    typed = Said(label, tuple(said.items())).add(f"encoding={fits}")
    return DataError(f"{label}: byte {place:,} is not {encoding} text; try {typed}")


def read_header(label: str, said: Mapping[str, str]) -> int:
    """The line, or the row of a sheet, that names the columns; the first one if none is said."""
    line = said.get("header", "1")
    if not re.fullmatch("[0-9]{1,4}", line) or not 1 <= int(line) <= MOST_LINES:
        raise DataError(f"{label}: header {show(line)}; allowed is the number of a line, 1 to {MOST_LINES}")
    return int(line)


def open_bytes(path: Path) -> Any:
    """A file as bytes, unpacked if it is packed."""
    opener: Callable[..., Any] = gzip.open if path.name.lower().endswith(".gz") else open
    return opener(path, "rb")


def read_foreign(label: str, path: Path, dialect: Dialect, most_bytes: int) -> Any:
    """A file in another encoding as an Arrow table of texts; held in memory, because DuckDB reads UTF-8 only."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    parts, held = [], 0
    with open_bytes(path) as file:  # by parts: asked for gigabytes, Python sets them aside before it looks
        while held <= most_bytes and (part := file.read(CHUNK)):
            parts.append(part)
            held += len(part)
    data = b"".join(parts)
    if held > most_bytes:
        raise DataError(
            f"{label}: more than {most_bytes:,} bytes in {dialect.encoding}; raise --memory, or write it as UTF-8 with "
            f"`iconv -f {dialect.encoding} -t utf-8`"
        )
    try:
        text = data.decode(dialect.encoding if dialect.encoding != "utf-8" else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise _refuse_encoding(label, path, dialect.encoding, error.start, {}) from None
    for _ in range(dialect.skip):
        text = text.partition("\n")[2]
    names = [f"c{i}" for i in range(len(dialect.header))]
    try:
        table = arrow_csv.read_csv(
            pa.BufferReader(text.encode()),
            read_options=arrow_csv.ReadOptions(column_names=names, skip_rows=1),
            parse_options=arrow_csv.ParseOptions(delimiter=dialect.separator, newlines_in_values=True),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
            ),
        )
    except pa.ArrowInvalid as error:
        raise DataError(f"{label}: {str(error).partition(chr(10))[0][:200]}") from None
    return table


def _find_separator(text: str) -> str:
    """The one of , ; tab and | of which the header has the most outside quotes."""
    outside = "".join(part for i, part in enumerate(text.partition("\n")[0].split('"')) if i % 2 == 0)
    return max((",", ";", "\t", "|"), key=outside.count)


def _read_encoding(label: str, name: str) -> str:
    try:
        found = codecs.lookup(name).name
    except LookupError:
        raise DataError(
            f"{label}: unknown encoding {show(name)}; such are utf-8, cp1252, latin-1 and utf-16"
        ) from None
    return "utf-8" if found in ("utf-8", "utf-8-sig", "ascii") else found


def _find_encoding(label: str, path: Path) -> str:
    """What the file's mark says; else UTF-8, or Windows' cp1252 if no row is UTF-8 beyond plain letters."""
    decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
    broken = wide = False
    try:
        with open_bytes(path) as file:
            chunk = file.read(CHUNK)
            mark = next((name for mark, name in _MARKS.items() if chunk.startswith(mark)), None)
            if mark is not None:  # it says what it is; a row that is not is refused, and changes no other row
                return mark
            while chunk:
                if not chunk.isascii() or decoder.getstate()[0]:
                    text = decoder.decode(chunk)
                    escaped = any("\udc80" <= char <= "\udcff" for char in text)
                    broken |= escaped
                    wide |= not escaped and not text.isascii()
                    if escaped:
                        wide |= any(ord(char) > 127 and not "\udc80" <= char <= "\udcff" for char in text)
                chunk = file.read(CHUNK)
    except (OSError, EOFError) as error:
        raise DataError(f"{label}: cannot be read: {error}") from None
    if broken and wide:
        raise DataError(
            f"{label}: some of it is UTF-8 and some is not; say which, such as '{label}?encoding=cp1252'"
        )
    return "cp1252" if broken else "utf-8"
