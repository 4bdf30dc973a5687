"""Where rows are: files, Arrow tables and databases, each as something that DuckDB can scan."""

from __future__ import annotations

import glob
import os
import re
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from discreet.rows.files.faults import shorten
from discreet.rows.files.writing import Said, read_options, read_writing, write_numbers
from discreet.rows.limits import Limits, choose_threads
from discreet.rows.readers import csv_files, foreign
from discreet.rows.readers.arrow_check import require_sound
from discreet.rows.readers.csv_files import CSV_ENDINGS
from discreet.values.errors import DataError
from discreet.values.schema import Schema
from discreet.values.text import list_some, show

PARQUET_ENDINGS = (".parquet", ".pq")
ARROW_ENDINGS = (".arrow", ".feather", ".ipc")
KINDS = "CSV or TSV (also .gz), Parquet, Arrow, .jsonl, .xlsx, .dta, .sas7bdat, or 'file::table' for DuckDB and SQLite"
ROW_ENDINGS = (
    *CSV_ENDINGS, *PARQUET_ENDINGS, *ARROW_ENDINGS, *foreign.EXCEL_ENDINGS, *foreign.STATISTICS_ENDINGS,
    *foreign.JSON_ENDINGS,
)  # fmt: skip
"""How files are called that hold rows."""
_SAID = re.compile(r"(.*)\?([a-z]+=[^&?]*(?:&[a-z]+=[^&?]*)*)", re.S)


@dataclass(frozen=True, slots=True)
class Source:
    """One table that a DuckDB connection can scan; `names` are the true column names, in scan order.

    `rows` is how many there must be, where that is known without a scan. A connection that is not private is a
    cursor of the caller's, whose settings are not ours to change; one that is not owned is the caller's own.
    """

    label: str
    connection: Any
    names: tuple[str, ...]
    scan: str
    files: tuple[Path, ...] = ()
    rows: int | None = None
    owned: bool = True
    private: bool = True
    said: Said | None = None
    """What is said of a file that takes options."""
    hint: str = ""
    """What to say of a file whose header looks like none."""

    def stamp(self) -> tuple[tuple[int, int], ...]:
        """What changes when a file is written to: sizes and times of modification."""
        found = [path.stat() for path in self.files]
        return tuple((status.st_size, status.st_mtime_ns) for status in found)

    def close(self) -> None:
        """Close the connection, unless the caller owns it."""
        if self.owned:
            self.connection.close()


def connect(limits: Limits) -> Any:
    """A private in-memory DuckDB: bounded, never on the network, never spilling rows to disk."""
    import duckdb

    connection = duckdb.connect(
        config={
            "memory_limit": f"{max(256, limits.memory // 2**22)}MiB",
            "threads": min(8, choose_threads(limits.threads)),
            "preserve_insertion_order": False,
            "temp_directory": "",
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        }
    )
    connection.execute("SET enable_progress_bar = false").fetchall()  # it would draw into the caller's output
    return connection


def open_source(data: Any, limits: Limits) -> Source:
    """Any table that can be read here: a path, an Arrow table or dataset, a frame, a (connection, table) pair."""
    from discreet.rows.readers.arrow_tables import read_arrow, read_sqlite

    if isinstance(data, str | os.PathLike):
        path, mark, table = os.fspath(data).rpartition("::")
        if not mark or look_up_path(os.fspath(data)) != "nothing" or is_excel(path):
            return open_path(os.fspath(data), (), limits)
        if is_sqlite(path):
            connection = sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=ro", uri=True)
            try:
                found = read_sqlite(connection, table)
            finally:
                connection.close()
            return open_arrow(f"{Path(path).name}::{table}", found, (), limits)
        return open_duckdb_file(path, table, limits)
    if isinstance(data, tuple) and len(data) == 2 and isinstance(data[1], str):
        if isinstance(data[0], sqlite3.Connection):
            return open_arrow(f"table {show(data[1])}", read_sqlite(*data), (), limits)
        if type(data[0]).__name__ == "DuckDBPyConnection":
            return open_connection(data[0], data[1])
    found = read_arrow(data)
    if found is None and type(data).__module__.partition(".")[0] == "pyarrow" and hasattr(data, "schema"):
        found = data
    if found is None:
        raise DataError(
            f"cannot draft from a {type(data).__module__}.{type(data).__qualname__}; allowed are a path, a pandas or "
            "Polars frame, a mapping of columns, an Arrow table, and a (connection, table) pair of DuckDB or SQLite"
        )
    return open_arrow("the frame", found, (), limits)


def open_path(path: str, wanted: Sequence[str], limits: Limits) -> Source:
    """The table in a file, or in a folder or pattern of Parquet files; 'file.xlsx::sheet' names a sheet.

    How a file is written can be said behind a question mark: 'file.csv?separator=;&decimal=,&encoding=cp1252'.
    """
    path, said, sheet = split_path(path)
    files = find_files(path)
    label = name_path(path if len(files) > 1 else files[0].name)
    for file in files:
        if file.stat().st_size == 0:
            raise DataError(f"{file.name}: the file is empty")
    ending = find_ending(files[0].name)
    if said and ending not in (*CSV_ENDINGS, *foreign.EXCEL_ENDINGS):
        raise DataError(f"{label}: only CSV and Excel files take options such as {'&'.join(said)!r}")
    if ending in CSV_ENDINGS:
        return _open_csv(label, files[0], ending, said, limits)
    if ending in PARQUET_ENDINGS:
        return _open_parquet(label, files, limits)
    if ending in ARROW_ENDINGS:
        return _open_arrow_file(label, files[0], wanted, limits)
    if ending in foreign.EXCEL_ENDINGS:
        table, hint = foreign.read_excel(label, files[0], sheet, said, limits.memory)
        opened = open_arrow(label, table, (), limits, (files[0],))
        scan = write_numbers(opened.scan, len(opened.names), read_writing(label, said, "."))
        name = label if sheet is None else f"{label}::{sheet}"
        return replace(opened, scan=scan, said=Said(name, tuple(said.items())), hint=hint)
    if ending in foreign.STATISTICS_ENDINGS:
        table = foreign.read_statistics(label, files[0])
    elif ending in foreign.JSON_ENDINGS:
        table = foreign.read_json_lines(label, files[0], limits.memory)
    elif ending in (".xls", ".sav", ".ods"):
        raise DataError(f"{label}: {ending} files are not read; save it as .xlsx, CSV or Parquet")
    else:
        raise DataError(f"{label}: unknown kind of file {show(ending)}; allowed are {KINDS}")
    return open_arrow(label, table, wanted, limits, (files[0],))


def split_path(path: str) -> tuple[str, Mapping[str, str], str | None]:
    """The path itself, what is said of a CSV file behind a question mark, and the sheet behind '::'."""
    if look_up_path(path) != "nothing":
        return path, {}, None
    said: Mapping[str, str] = {}
    if (found := _SAID.fullmatch(path)) is not None:
        path, said = found[1], read_options(name_path(found[1]), found[2])
    base, mark, name = path.rpartition("::")
    return (base, said, name) if mark and is_excel(base) else (path, said, None)


def is_excel(path: str) -> bool:
    """Whether a path leads to an Excel file."""
    return find_ending(path) in foreign.EXCEL_ENDINGS and look_up_path(path) == "file"


def is_sqlite(path: str) -> bool:
    """Whether a path leads to an SQLite database."""
    if look_up_path(path) != "file":
        return False
    with open(path, "rb") as file:
        return file.read(16) == b"SQLite format 3\0"


def open_arrow(
    label: str, table: Any, wanted: Sequence[str], limits: Limits, files: tuple[Path, ...] = ()
) -> Source:
    """An Arrow table or dataset; of a table, only the wanted columns are shown to DuckDB."""
    import duckdb

    places = place_columns(label, table.schema.names, wanted)
    shown = table.select(places) if wanted and hasattr(table, "select") else table
    connection = connect(limits)
    try:
        connection.register("arrow_source", shown)
    except duckdb.Error as error:
        raise DataError(f"{label}: {shorten(error)}") from None
    rows = getattr(table, "num_rows", None)  # a dataset does not say
    return Source(label, connection, tuple(shown.schema.names), "arrow_source", files, rows)


def open_duckdb_file(path: str, table: str, limits: Limits) -> Source:
    """A table or view of a DuckDB file, attached read-only."""
    connection = connect(limits)
    label = f"{Path(path).name}::{table}"
    run(connection, label, f"ATTACH {quote_text(path)} AS source (READ_ONLY)")
    found = find_table(connection, label, table, "database_name = 'source'")
    if found is None:
        raise DataError(f"{label}: no such table; the file has {list_some(_list_tables(connection))}")
    return Source(label, connection, *found, files=(Path(path),))


def open_connection(connection: Any, table: str) -> Source:
    """A table, view or registered frame of the caller's own DuckDB connection."""
    label = f"table {show(table)}"
    for reader, owned in (
        (connection.cursor(), True),
        (connection, False),
    ):  # a cursor leaves pending results alone
        found = find_table(reader, label, table, "database_name IN (current_database(), 'temp')")
        if found is not None:
            return Source(label, reader, *found, owned=owned, private=False)
        if owned:
            reader.close()
    raise DataError(f"{label}: no such table in the DuckDB connection")


def find_table(connection: Any, label: str, table: str, where: str) -> tuple[tuple[str, ...], str] | None:
    """The columns of a table called `table` or `schema.table`, and how to scan it; None if there is none."""
    name = quote_text(table)
    found = run(
        connection,
        label,
        "SELECT database_name, schema_name, table_name, column_name FROM duckdb_columns() "
        f"WHERE {where} AND (table_name = {name} OR schema_name || '.' || table_name = {name}) "
        "ORDER BY database_name, schema_name, table_name, column_index",
    )
    tables = sorted({row[:3] for row in found})
    if len(tables) > 1:
        raise DataError(f"{label}: {len(tables)} tables have this name; write schema.table")
    if not tables:
        return None
    return tuple(row[3] for row in found), ".".join(map(quote_name, tables[0]))


def quote_text(text: str) -> str:
    """A text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def quote_name(name: str) -> str:
    """A name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def list_wanted(
    schema: Schema, weight: str | None, numbers: Sequence[str], person: str = ""
) -> tuple[str, ...]:
    """The columns to be found in a table, each once."""
    others = [name for name in (weight, person) if name]
    return tuple(dict.fromkeys((*schema.names, *numbers, *others)))


def list_read(schema: Schema, names: Sequence[str]) -> tuple[str, ...]:
    """The attributes to be read for some of them: also all that may leave a record out; rows stay the same."""
    return tuple(dict.fromkeys((*names, *(found.name for found in schema if found.leaves_out))))


def place_columns(label: str, names: Sequence[object], wanted: Sequence[str], hint: str = "") -> list[int]:
    """Where each wanted column is; a column that is not there, or there twice, is refused."""
    found = []
    for name in wanted:
        places = [i for i, given in enumerate(names) if isinstance(given, str) and given == name]
        if not places:
            also = f"; {hint}" if hint else ""
            raise DataError(f"{label}: no column {show(name)}; it has {list_some(names)}{also}")
        if len(places) > 1:
            raise DataError(f"{label}: {len(places)} columns named {show(name)}; names must be unique")
        found.append(places[0])
    return found


def run(connection: Any, label: str, query: str) -> list[tuple[Any, ...]]:
    """All rows of a small query; what DuckDB refuses becomes one line that names the source."""
    import duckdb

    try:
        return list(connection.execute(query).fetchall())
    except duckdb.Error as error:
        raise DataError(f"{label}: {shorten(error)}") from None


def fetch_table(source: Source, query: str) -> Any:
    """All rows of a query as an Arrow table."""
    import duckdb

    try:
        return source.connection.sql(query).to_arrow_table()
    except duckdb.Error as error:
        raise DataError(f"{source.label}: {shorten(error)}") from None


def find_ending(name: str) -> str:
    """The ending that says what a file is, in small letters and with '.gz' joined to the one before."""
    suffixes = Path(name.lower()).suffixes
    return "".join(suffixes[-2:]) if suffixes[-1:] == [".gz"] else "".join(suffixes[-1:])


def look_up_path(path: str) -> str:
    """What a path leads to: 'file', 'directory' or, also for a name that no file can have, 'nothing'."""
    if not path.strip():  # Path("") would be this folder
        return "nothing"
    try:
        return "directory" if Path(path).is_dir() else "file" if Path(path).is_file() else "nothing"
    except (OSError, ValueError):  # too long, or with a NUL in it
        return "nothing"


def name_path(path: str) -> str:
    """A path as errors show it: as it is, unless it would break the line or fill it."""
    return path if path.isprintable() and len(path) <= 200 else show(path)


def _is_aside(place: Path) -> bool:
    """Whether a file or a folder above it begins with a dot or a low line: what engines put aside, and no rows."""
    return any(part.startswith((".", "_")) for part in place.parts)


def find_files(path: str) -> tuple[Path, ...]:
    """The file at a path, or the Parquet files in a folder or of a pattern, in order."""
    kind, name = look_up_path(path), name_path(path)
    if kind == "directory":
        inside = (file for file in Path(path).rglob("*") if find_ending(file.name) in PARQUET_ENDINGS)
        files = sorted(file for file in inside if not _is_aside(file.relative_to(path)))
        if not files:
            raise DataError(f"{name}: no Parquet file in this folder")
        return tuple(files)
    if kind == "file":
        return (Path(path),)
    matched = sorted(glob.glob(path)) if glob.has_magic(path) and "\0" not in path else []
    if not matched:
        raise DataError(f"{name}: no such file")
    if not all(find_ending(found) in PARQUET_ENDINGS for found in matched):
        raise DataError(f"{name}: a pattern may match only Parquet files")
    return tuple(Path(found) for found in matched)


def _open_csv(label: str, path: Path, ending: str, said: Mapping[str, str], limits: Limits) -> Source:
    dialect = csv_files.find_dialect(label, path, ending, said)
    if dialect.plain:
        # Columns are numbered, so that no name becomes SQL, and all are text, so that "01" stays "01".
        columns = ", ".join(f"'c{i}': 'VARCHAR'" for i in range(len(dialect.header)))
        from discreet.rows.readers.csv_shape import count_records

        scan = (
            f"read_csv({quote_text(_escape(path))}, columns={{{columns}}}, auto_detect=false, header=true, "
            f"delim={quote_text(dialect.separator)}, quote='\"', escape='\"', nullstr='', strict_mode=true)"
        )
        try:
            rows = count_records(label, path, dialect.separator)
        except DataError as error:
            raise DataError(f"{error}; {dialect.hint}") if dialect.hint else error from None
        connection = connect(limits)
    else:
        table = csv_files.read_foreign(label, path, dialect, max(limits.memory, csv_files.LEAST_MEMORY))
        rows, scan, connection = table.num_rows, "arrow_source", connect(limits)
        connection.register(scan, table)
    limits.require_rows(label, rows)
    scan = write_numbers(scan, len(dialect.header), dialect.writing)
    typed = Said(label, tuple(said.items()), dialect.writing.decimal)
    return Source(label, connection, dialect.header, scan, (path,), rows, said=typed, hint=dialect.hint)


def _open_parquet(label: str, files: Sequence[Path], limits: Limits) -> Source:
    for file in files:
        with file.open("rb") as head:
            if head.read(4) != b"PAR1":
                raise DataError(f"{file.name}: not a Parquet file")
    connection = connect(limits)
    first = quote_text(_escape(files[0]))
    tops = run(connection, label, f"SELECT name, num_children FROM parquet_schema({first})")
    listed = "[" + ", ".join(quote_text(_escape(file)) for file in files) + "]"
    counted = run(connection, label, f"SELECT sum(num_rows) FROM parquet_file_metadata({listed})")
    rows = int(counted[0][0] or 0)
    limits.require_rows(label, rows)
    names, keys = _name_columns(tops), _find_partitions(files)
    if not keys:
        return Source(
            label, connection, names, f"read_parquet({listed}, hive_partitioning=false)", tuple(files), rows
        )
    inside = next((key for key in keys if key.lower() in {name.lower() for name in names}), None)
    if inside is not None:
        raise DataError(f"{label}: {show(inside)} is both a column and the name of folders; rename one")
    scan = f"read_parquet({listed}, hive_partitioning=true, hive_types_autocast=false)"
    return Source(label, connection, (*names, *keys), scan, tuple(files), rows)


def _find_partitions(files: Sequence[Path]) -> tuple[str, ...]:
    """The names of folders such as year=2024 that all files lie in; none if they differ."""
    found = {
        tuple(part.partition("=")[0] for part in file.parent.parts if re.fullmatch(r"[^=]+=[^=]*", part))
        for file in files
    }
    return next(iter(found)) if len(found) == 1 else ()


def _name_columns(elements: Sequence[tuple[Any, ...]]) -> tuple[str, ...]:
    """The top-level names of a Parquet schema, which lists its tree depth first, root at the start."""
    names: list[str] = []
    pending: list[int] = []  # how many children of each open group are still to come
    for name, children in elements[1:]:
        if pending:
            pending[-1] -= 1
        else:
            names.append(str(name))
        if children:
            pending.append(int(children))
        while pending and not pending[-1]:
            pending.pop()
    return tuple(names)


def _open_arrow_file(label: str, path: Path, wanted: Sequence[str], limits: Limits) -> Source:
    import pyarrow as pa
    from pyarrow import dataset

    try:
        found = dataset.dataset(path, format="ipc")
    except (pa.ArrowException, OSError):
        raise DataError(f"{label}: not an Arrow file") from None
    require_sound(label, path)
    return open_arrow(label, found, wanted, limits, (path,))


def _list_tables(connection: Any) -> list[str]:
    rows = connection.execute(
        "SELECT DISTINCT table_name FROM duckdb_columns() WHERE database_name = 'source' ORDER BY 1"
    ).fetchall()
    return [row[0] for row in rows]


def _escape(path: Path) -> str:
    """A path in which DuckDB sees no pattern."""
    return "".join(f"[{char}]" if char in "*?[" else char for char in os.fspath(path))
