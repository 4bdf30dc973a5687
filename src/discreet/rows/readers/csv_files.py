"""CSV files as people have them: separators, decimal commas and encodings are told from what is public, or said.

The separator is told from the header, which is no row. An encoding is told only where every row by itself reads the
same under it, and a decimal comma cell by cell. So how one row is read never depends on another row.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
OPTIONS = ("separator", "decimal", "encoding")
LONGEST_HEADER = 2**20
"""A first line of more bytes than this is not a header."""
CHUNK = 2**20
LEAST_MEMORY = 2**24
"""Files of up to so many bytes are always taken into memory, if they must be."""
DECIMAL_COMMA = r"[+-]?([0-9]{1,3}([.][0-9]{3})+|[0-9]+),[0-9]+"
"""Texts that are numbers with a decimal comma, with or without points between thousands."""

_MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a CSV file is written."""

    separator: str
    decimal: str
    encoding: str
    header: tuple[str, ...]
    skip: int = 0
    """Lines before the header: Excel's `sep=;`."""

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
    except UnicodeDecodeError:
        raise DataError(f"{label}: the header is not {encoding} text") from None
    except (OSError, EOFError) as error:
        raise DataError(f"{label}: the header cannot be read: {error}") from None
    first, _, rest = text.partition("\n")
    skip, declared = 0, first.strip().lower()
    if declared.startswith("sep=") and len(declared) <= 6:
        skip, text = 1, rest
    separator = SEPARATORS.get(said.get("separator", declared[4:5] if skip else CSV_ENDINGS.get(ending, "")))
    if "separator" in said and separator is None:
        raise DataError(f"{label}: separator {show(said['separator'])}; allowed are , ; | and tab")
    separator = separator or _find_separator(text)
    decimal = said.get("decimal", "," if separator == ";" else ".")
    if decimal not in (",", "."):
        raise DataError(f"{label}: decimal {show(decimal)}; allowed are , and .")
    try:
        header = next(csv.reader(io.StringIO(text, newline=""), delimiter=separator), [])
    except csv.Error as error:
        raise DataError(f"{label}: the header cannot be read: {error}") from None
    if not header:
        raise DataError(f"{label}: no header; the first line must name the columns")
    return Dialect(separator, decimal, encoding, tuple(header), skip)


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
        raise DataError(f"{label}: byte {error.start:,} is not {dialect.encoding} text") from None
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
