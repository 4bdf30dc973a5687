"""Files and databases read by DuckDB, which makes the codes: the rule of `values.schema.columns` as SQL."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discreet.rows.files.faults import shorten
from discreet.rows.files.heads import TITLE
from discreet.rows.files.writing import describe_writing, name_writing
from discreet.rows.limits import MAX_WEIGHT, Limits
from discreet.rows.people import BLANKS, NOBODY, WHOLE, ZEROS, draw_key, write_id
from discreet.rows.readers import sources
from discreet.rows.readers.batches import Batch, Numbers, Reader, check_numbers, refuse_number, refuse_weight
from discreet.rows.readers.duck_codes import Kind, classify_type, require_kind, write_code, write_count
from discreet.rows.readers.frames import FrameReader, SQLiteReader
from discreet.rows.readers.sources import Source
from discreet.rows.readers.texts import count_texts
from discreet.values.errors import DataError, DiscreetError, TooLarge
from discreet.values.schema import Schema
from discreet.values.text import is_id_name, show
from discreet.values.unit import Unit

BATCH = 1 << 17
"""Rows that DuckDB hands over at a time."""

SQLITE_MAGIC = b"SQLite format 3\0"
DUCKDB_MAGIC = b"DUCK"


def open_reader(
    data: Any,
    schema: Schema,
    weight: str | None,
    limits: Limits,
    numbers: Sequence[str] = (),
    person: str = "",
) -> Reader:
    """The reader for a path, a `(connection, table)` pair, an Arrow table or dataset, or a frame."""
    wanted = sources.list_wanted(schema, weight, numbers, person)
    given = (schema, weight, numbers, person)
    if isinstance(data, str | os.PathLike):
        path, mark, table = os.fspath(data).rpartition("::")
        if not mark or sources.look_up_path(os.fspath(data)) != "nothing" or sources.is_excel(path):
            return DuckReader.open(sources.open_path(os.fspath(data), wanted, limits), *given)
        if _sniff_database(path) == "sqlite":
            return SQLiteReader.open_file(path, table, *given)
        return DuckReader.open(sources.open_duckdb_file(path, table, limits), *given)
    if isinstance(data, tuple) and len(data) == 2 and isinstance(data[1], str):
        if isinstance(data[0], sqlite3.Connection):
            return SQLiteReader.open(data[0], data[1], *given)
        if type(data[0]).__name__ == "DuckDBPyConnection":
            return DuckReader.open(sources.open_connection(data[0], data[1]), *given)
    home = type(data).__module__.partition(".")[0]
    if home == "pandas" and hasattr(data, "iloc") and hasattr(data, "columns"):
        return FrameReader.open(data, *given)
    if isinstance(data, Mapping):
        return FrameReader.open(data, *given)
    if home == "polars" and hasattr(data, "to_arrow") and hasattr(data, "columns"):
        sources.place_columns("the frame", data.columns, wanted)
        return DuckReader.open(
            sources.open_arrow("the frame", data.select(wanted).to_arrow(), wanted, limits), *given
        )
    if (
        home == "pyarrow"
        and hasattr(data, "schema")
        and (hasattr(data, "select") or hasattr(data, "scanner"))
    ):
        return DuckReader.open(sources.open_arrow("the Arrow table", data, wanted, limits), *given)
    raise DataError(
        f"cannot read rows from a {type(data).__module__}.{type(data).__qualname__}; allowed are a path, "
        "a (connection, table) pair of DuckDB or SQLite, an Arrow table or dataset, a pandas or Polars frame, "
        "a mapping of columns, an Ibis table and a Spark frame"
    )


def find_repeated(data: Any, known: Collection[str]) -> str | None:
    """A column outside the schema that is called like an id and repeats."""
    if isinstance(data, Mapping) or hasattr(data, "iloc"):
        for name in data:
            if isinstance(name, str) and name not in known and is_id_name(name):
                ids = [text for text in map(write_id, data[name]) if text]
                if len(set(ids)) < len(ids):
                    return name
        return None
    with closing(sources.open_source(data, Limits())) as source:
        for place, name in enumerate(source.names):
            if name not in known and is_id_name(name):
                scan = DuckReader._name_scan(source)
                query = f"SELECT count(c{place}) > count(DISTINCT c{place}) FROM {scan}"
                if sources.run(source.connection, source.label, query)[0][0]:
                    return name
    return None


@dataclass(frozen=True, slots=True)
class DuckReader:
    """A table that DuckDB scans and encodes; Python sees nothing but codes."""

    source: Source
    schema: Schema
    weight: str | None
    columns: dict[str, str]
    kinds: dict[str, Kind]
    person: str = ""
    key: bytes = b""
    bounded: Unit | None = None
    """With it, DuckDB itself hands over no more rows of a person, with their weights if people are averaged."""

    @classmethod
    def open(
        cls, source: Source, schema: Schema, weight: str | None, numbers: Sequence[str] = (), person: str = ""
    ) -> DuckReader:
        """The reader of a source; the columns and their types are checked here, the rows as they are read."""
        try:
            wanted = sources.list_wanted(schema, weight, numbers, person)
            told = schema.total and source.hint.startswith(
                TITLE
            )  # under a total schema no row shows in a refusal
            hint = "" if told else source.hint
            places = sources.place_columns(source.label, source.names, wanted, hint)
            columns = {name: f"c{place}" for name, place in zip(wanted, places, strict=True)}
            listed = ", ".join(columns.values())
            described = sources.run(
                source.connection, source.label, f"DESCRIBE SELECT {listed} FROM {cls._name_scan(source)}"
            )
            kinds = {
                name: _classify_id(row[1]) if name == person else classify_type(source.label, name, row[1])
                for name, row in zip(wanted, described, strict=True)
            }
            for attribute in schema:
                require_kind(source.label, attribute, kinds[attribute.name])
            if weight is not None and kinds[weight] not in ("integer", "text"):
                raise DataError(
                    f"{source.label}: weight {show(weight)} has the type {kinds[weight]}; it must be integer"
                )
        except DiscreetError:
            source.close()
            raise
        return cls(source, schema, weight, columns, kinds, person, draw_key() if person else b"")

    @property
    def label(self) -> str:
        """How errors name the table."""
        return self.source.label

    def stamp(self) -> object:
        """Sizes and times of modification of the files."""
        try:
            return self.source.stamp()
        except OSError as error:
            raise DataError(f"{self.label}: {error.strerror}") from None

    def read(self, names: Sequence[str]) -> Iterator[Batch]:
        """The codes of these attributes, in batches that come in any order."""
        written = self._write_codes(names)
        whose = self._write_people()
        query = f"SELECT {', '.join(written + whose) or '0'} FROM {self._name_rows()}"
        with closing(self._fetch(query)) as batches:
            for batch in batches:
                columns = batch.columns[: len(written)]
                if any(column.null_count for column in columns):
                    break
                arrays = [column.to_numpy() for column in columns]
                averaged = self.bounded is not None and self.bounded.average
                weights = arrays.pop() if self.weight is not None or averaged else None
                people = None
                if whose:
                    words = batch.columns[len(written) : len(written) + 2]
                    people = np.column_stack([word.to_numpy() for word in words]).astype(np.uint64)
                yield Batch(batch.num_rows, arrays, weights, people)
            else:
                return
        raise self._explain(names)  # only here, because a connection answers one query at a time

    def read_numbers(self, names: Sequence[str]) -> Iterator[Numbers]:
        """The values of these number columns; DuckDB casts them, so that text from a CSV file is read alike."""
        written = [f"TRY_CAST({self.columns[name]} AS DOUBLE) AS x{i}" for i, name in enumerate(names)]
        if self.weight is not None:
            written.append(f"{_write_weight(self.columns[self.weight], self.kinds[self.weight])} AS w")
        query = f"SELECT {', '.join(written)} FROM {self._name_scan(self.source)}"
        with closing(self._fetch(query)) as batches:
            for batch in batches:
                bad = [name for name, column in zip(names, batch.columns, strict=False) if column.null_count]
                if bad:
                    break
                arrays = [column.to_numpy() for column in batch.columns]
                weights = arrays.pop() if self.weight is not None else None
                yield (
                    [
                        check_numbers(self.label, name, values)
                        for name, values in zip(names, arrays, strict=True)
                    ],
                    weights,
                )
            else:
                return
        raise self._explain_number(bad[0])

    def count_values(self, names: Sequence[str]) -> list[dict[str, int]]:
        """How many rows hold which text, by a rule that looks at one cell alone (see `texts`)."""
        return [count_texts(self.source, self._name_rows(), self.columns[name]) for name in names]

    def close(self) -> None:
        """Close the connection, unless the caller owns it."""
        self.source.close()

    def _explain_number(self, name: str) -> DataError:
        column = self.columns[name]
        bad = f"TRY_CAST({column} AS DOUBLE) IS NULL"
        query = f"SELECT {column} FROM {self._name_scan(self.source)} WHERE {bad} LIMIT 1"
        found = sources.run(self.source.connection, self.label, query)
        return refuse_number(self.label, name, found[0][0] if found else None)

    def bound(self, unit: Unit) -> DuckReader:
        """The same table with as many rows of each person as the unit says, by a keyed hash of the row itself.

        Rows that are equal in every column that is read count as different ones, the first, the second and so on.
        """
        return replace(self, bounded=unit)

    def count_misfits(self, name: str, most: int) -> tuple[int, list[tuple[object, int]]]:
        """How many rows have no code for this attribute, and the most frequent of their values, for the custodian."""
        column = self.columns[name]
        bad = f"FROM {self._name_rows()} WHERE {self._write_code(name)} IS NULL"
        total = sources.run(self.source.connection, self.label, f"SELECT count(*) {bad}")[0][0]
        if not total:
            return 0, []
        listed = f"SELECT any_value({column}), count(*) AS n {bad} GROUP BY CAST({column} AS VARCHAR)"
        query = f"{listed} ORDER BY n DESC, 1 LIMIT {most}"
        return int(total), [
            (value, int(rows)) for value, rows in sources.run(self.source.connection, self.label, query)
        ]

    def count_rows(self) -> int:
        """How many rows there are, for the custodian."""
        query = f"SELECT count(*) FROM {self._name_scan(self.source)}"
        return int(sources.run(self.source.connection, self.label, query)[0][0])

    def _write_people(self) -> list[str]:
        """The keyed hash of the person's id in two words, both 0 where there is no id."""
        if not self.person:
            return []
        text = self._write_person()
        keyed = f"'{self.key.hex()}' || {text}"
        return [
            f"CASE WHEN {text} = '' THEN 0::UBIGINT ELSE md5_number_{half}({keyed}) END AS p{half}"
            for half in ("lower", "upper")
        ]

    def _write_person(self) -> str:
        """The id as text, as `people.write_id` writes it."""
        column = self.columns[self.person]
        text = f"CAST({column} AS VARCHAR)"
        if self.kinds[self.person] == "float":
            whole = f"{column} = floor({column}) AND abs({column}) < 1e18"
            text = (
                f"CASE WHEN isnan({column}) THEN '' WHEN {whole} THEN CAST(CAST({column} AS BIGINT) AS VARCHAR) "
                f"ELSE {text} END"
            )
        trimmed = f"trim({text}, {' || '.join(f'chr({ord(blank)})' for blank in BLANKS)})"
        nobody = ", ".join(f"'{word}'" for word in NOBODY)
        return (
            f"CASE WHEN lower({trimmed}) IN ({nobody}) THEN '' "
            f"WHEN regexp_matches({trimmed}, '{WHOLE}') THEN regexp_replace({trimmed}, '{ZEROS}', '') "
            f"ELSE coalesce({trimmed}, '') END"
        )

    def _name_rows(self) -> str:
        """The rows to be read: all, or the bounded ones."""
        if self.bounded is None:
            return self._name_records(self._name_scan(self.source))
        listed = list(self.columns.values())
        content = ", ".join(f"coalesce(CAST({name} AS VARCHAR), '')" for name in listed)
        # Partitioned by hashes: under a collation, different texts may be equal, in SQL and nowhere else.
        hashed = (
            f"SELECT *, md5('{self.key.hex()}' || {self._write_person()}) AS whose, "
            f"md5(concat_ws(chr(31), {content})) AS content "
            f"FROM {self._name_records(self._name_scan(self.source))} WHERE {self._write_person()} <> ''"
        )
        numbered = f"SELECT *, row_number() OVER (PARTITION BY whose, content) AS nth FROM ({hashed})"
        keyed = f"md5('{self.key.hex()}' || whose || content || CAST(nth AS VARCHAR))"
        order = f"row_number() OVER (PARTITION BY whose ORDER BY {keyed})"
        most, grain = self.bounded.at_most, self.bounded.grain
        weight = f"CAST({grain} // least(count(*) OVER (PARTITION BY whose), {most}) AS BIGINT) AS w"
        return f"(SELECT *, {weight} FROM ({numbered}) QUALIFY {order} <= {most}) AS rows"

    def _name_records(self, scan: str) -> str:
        """The rows of a scan with the counts of their dates, and without the records that are left out."""
        dated = [found for found in self.schema if found.dates is not None]
        if dated:
            counts = [
                f"{write_count(found, self.columns[found.name], self.kinds[found.name])} AS "
                f"{self.columns[found.name]}_count"
                for found in dated
            ]
            scan = f"(SELECT *, {', '.join(counts)} FROM {scan}) AS rows"
        kept = [f"{self._write_code(found.name)} IS NOT NULL" for found in self.schema if found.leaves_out]
        return f"(SELECT * FROM {scan} WHERE {' AND '.join(kept)}) AS rows" if kept else scan

    @staticmethod
    def _name_scan(source: Source) -> str:
        # Columns are renamed by position: DuckDB does not tell "A" from "a", and no name can become SQL.
        return f"{source.scan} AS rows({', '.join(f'c{i}' for i in range(len(source.names)))})"

    def _write_codes(self, names: Sequence[str]) -> list[str]:
        written = [self._write_code(name) for name in names]
        if self.weight is not None:
            weight = _write_weight(self.columns[self.weight], self.kinds[self.weight])
            written.append(f"COALESCE({weight}, 0)" if self.schema.total else weight)
        elif self.bounded is not None and self.bounded.average:
            written.append("w")
        return [f"{code} AS k{i}" for i, code in enumerate(written)]

    def _write_code(self, name: str) -> str:
        column = self.columns[name]
        return write_code(self.schema[name], column, self.kinds[name], f"{column}_count")

    def _fetch(self, query: str) -> Generator[Any]:
        import duckdb
        import pyarrow as pa

        reader = None
        try:
            reader = self.source.connection.sql(query).to_arrow_reader(BATCH)
            rows = 0
            for batch in reader:
                rows += batch.num_rows
                yield batch
        except duckdb.OutOfMemoryException:
            raise TooLarge(
                f"{self.label}: reading it takes more memory than the limit; raise it with --memory"
            ) from None
        except (duckdb.Error, pa.ArrowException, OSError) as error:
            raise DataError(f"{self.label}: {shorten(error)}") from None
        finally:
            if reader is not None:
                reader.close()
        whole = self.bounded is None and not any(attribute.leaves_out for attribute in self.schema)
        if whole and self.source.rows not in (None, rows):
            raise DataError(
                f"{self.label}: it has {self.source.rows:,} rows, but only {rows:,} could be read"
            )

    def _explain(self, names: Sequence[str]) -> DataError:
        """The refusal of the first bad row, in the schema's own words."""
        if self.source.private:  # rows have numbers only while they stay in order
            for setting in ("preserve_insertion_order = true", "threads = 1"):
                sources.run(self.source.connection, self.label, f"SET {setting}")
        given = [*names, *(() if self.weight is None else (self.weight,))]
        raw = [self.columns[name] for name in given]
        codes = [f"k{i}" for i in range(len(given))]
        numbered = f"(SELECT row_number() OVER () AS row, * FROM {self._name_scan(self.source)}) AS rows"
        found = sources.run(
            self.source.connection,
            self.label,
            f"SELECT row, {', '.join(raw + codes)} FROM (SELECT row, "
            f"{', '.join(raw + self._write_codes(names))} FROM {self._name_records(numbered)}) "
            f"WHERE {' OR '.join(f'{code} IS NULL' for code in codes)} LIMIT 1",
        )
        if not found:
            return DataError(f"{self.label}: the table changed while it was read; try again")
        row, values, encoded = found[0][0], found[0][1 : 1 + len(raw)], found[0][1 + len(raw) :]
        i = encoded.index(None)
        if given[i] == self.weight:
            return refuse_weight(self.label, given[i], values[i], row)
        try:
            self.schema[given[i]].encode([values[i]], first_row=row)
        except DataError as error:
            return DataError(f"{self.label}: {error}{self._advise(given[i], values[i])}")
        return DataError(
            f"{self.label}: attribute {show(given[i])}, row {row:,}: {show(values[i])} is not allowed"
        )

    def _advise(self, name: str, value: object) -> str:
        """What to say of the file, if the value is a number in another writing."""
        found = self.schema[name]
        writing = "" if found.bins is None or found.dates is not None else name_writing(str(value).strip())
        if not writing or self.source.said is None:
            return ""
        return f"; this number has {describe_writing(writing)}: write {self.source.said.add(writing)}"


def _classify_id(declared: str) -> Kind:
    """Ids of any type are read as text; floating-point ones are written as whole numbers first."""
    return "float" if declared.split("(")[0] in ("FLOAT", "DOUBLE", "REAL") else "text"


def _write_weight(column: str, kind: Kind) -> str:
    number = f"TRY_CAST({column} AS BIGINT)"
    fine = f"{number} BETWEEN 0 AND {MAX_WEIGHT}"
    if kind == "text":
        fine = f"regexp_full_match({column}, '[0-9]+') AND {fine}"
    return f"CASE WHEN {fine} THEN {number} END"


def _sniff_database(path: str) -> str:
    name = sources.name_path(path)
    if sources.look_up_path(path) != "file":
        raise DataError(f"{name}: no such file")
    try:
        with open(path, "rb") as file:
            head = file.read(16)
    except OSError as error:
        raise DataError(f"{name}: {error.strerror}") from None
    if head == SQLITE_MAGIC:
        return "sqlite"
    if head[8:12] == DUCKDB_MAGIC:
        return "duckdb"
    raise DataError(f"{name}: not a DuckDB or SQLite database, which a name with '::' needs")
