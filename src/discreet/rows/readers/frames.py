"""Rows that Python already holds, or that SQLite hands over: encoded slice by slice by the schema itself."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.rows.people import draw_key
from discreet.rows.readers.batches import Batch, Numbers, Reader, check_numbers, check_weights
from discreet.rows.readers.sources import list_read, list_wanted, place_columns, quote_name
from discreet.values.errors import DataError, TooLarge
from discreet.values.schema import Schema
from discreet.values.schema.columns import encode_rows
from discreet.values.text import list_some, show
from discreet.values.unit import Unit

SLICE = 1 << 16
"""Rows encoded at a time."""


@dataclass(frozen=True, slots=True)
class FrameReader:
    """A pandas frame or a mapping of names to columns, read in slices of rows."""

    label: str
    schema: Schema
    weight: str | None
    columns: Mapping[str, Any]
    rows: int
    person: str = ""
    key: bytes = b""

    @classmethod
    def open(
        cls, data: Any, schema: Schema, weight: str | None, numbers: Sequence[str] = (), person: str = ""
    ) -> FrameReader:
        """The wanted columns of a frame; all must have the same length."""
        wanted = list_wanted(schema, weight, numbers, person)
        label = "the frame" if hasattr(data, "iloc") else "the table"
        if hasattr(data, "iloc"):
            places = place_columns(label, list(data.columns), wanted)
            columns = {name: data.iloc[:, place] for name, place in zip(wanted, places, strict=True)}
        else:
            place_columns(label, list(data), wanted)
            columns = {name: data[name] for name in wanted}
        for name, column in columns.items():
            if isinstance(column, str) or not hasattr(column, "__len__"):
                raise DataError(
                    f"{label}: column {show(name)} is a {type(column).__name__}; give a list of values"
                )
        lengths = {name: len(column) for name, column in columns.items()}
        if len(set(lengths.values())) > 1:
            raise DataError(f"{label}: columns of different lengths: {list_some(lengths.items())}")
        rows = next(iter(lengths.values()))
        return cls(label, schema, weight, columns, rows, person, draw_key() if person else b"")

    def stamp(self) -> object:
        """A frame has no time of modification."""
        return self.rows

    def read(self, names: Sequence[str]) -> Iterator[Batch]:
        """The codes of these attributes, slice by slice."""
        for start in range(0, self.rows, SLICE):
            stop = min(self.rows, start + SLICE)
            part = {name: _slice(column, start, stop) for name, column in self.columns.items()}
            yield _encode_part(self, names, part, start, stop - start)

    def read_numbers(self, names: Sequence[str]) -> Iterator[Numbers]:
        """The values of these number columns, slice by slice."""
        for start in range(0, self.rows, SLICE):
            stop = min(self.rows, start + SLICE)
            part = {name: _slice(column, start, stop) for name, column in self.columns.items()}
            yield _take_numbers(self.label, self.weight, part, names, start)

    def bound(self, unit: Unit) -> Reader:
        """The rows that count, chosen once; a frame is always read in the same order."""
        return ChosenReader.choose(self, unit)

    def close(self) -> None:
        """Nothing to let go of but the frame itself."""


@dataclass(frozen=True, slots=True)
class SQLiteReader:
    """A table or view of an SQLite database, fetched in slices of rows."""

    label: str
    schema: Schema
    weight: str | None
    connection: sqlite3.Connection
    table: str
    file: Path | None = None
    person: str = ""
    key: bytes = b""
    order: str = ""
    """The hidden column by which rows are numbered, if they must come in the same order every time."""

    @classmethod
    def open_file(
        cls,
        path: str,
        table: str,
        schema: Schema,
        weight: str | None,
        numbers: Sequence[str] = (),
        person: str = "",
    ) -> SQLiteReader:
        """A table of an SQLite file, opened read-only."""
        connection = sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=ro", uri=True)
        return cls.open(connection, table, schema, weight, numbers, person, Path(path))

    @classmethod
    def open(
        cls,
        connection: sqlite3.Connection,
        table: str,
        schema: Schema,
        weight: str | None,
        numbers: Sequence[str] = (),
        person: str = "",
        file: Path | None = None,
    ) -> SQLiteReader:
        """A table of a connection; the wanted columns must be there."""
        label = f"table {show(table)}" if file is None else f"{file.name}::{table}"
        reader = cls(label, schema, weight, connection, table, file, person, draw_key() if person else b"")
        with reader._fetch(f"SELECT * FROM {quote_name(table)} LIMIT 0") as cursor:
            names = [column[0] for column in cursor.description]
        place_columns(label, names, list_wanted(schema, weight, numbers, person))
        return reader

    def stamp(self) -> object:
        """What changes when the database is written to by anyone."""
        if self.file is not None:
            status = os.stat(self.file)
            return status.st_size, status.st_mtime_ns
        return self.connection.total_changes, self.connection.execute("PRAGMA data_version").fetchone()

    def read(self, names: Sequence[str]) -> Iterator[Batch]:
        """The codes of these attributes, slice by slice."""
        for start, rows, part in self._slices(list_read(self.schema, names)):
            yield _encode_part(self, names, part, start, rows)

    def read_numbers(self, names: Sequence[str]) -> Iterator[Numbers]:
        """The values of these number columns, slice by slice."""
        for start, _, part in self._slices(names):
            yield _take_numbers(self.label, self.weight, part, names, start)

    def _slices(self, names: Sequence[str]) -> Iterator[tuple[int, int, dict[str, Any]]]:
        fetched = list(dict.fromkeys([*names, *filter(None, (self.weight, self.person))]))
        listed = ", ".join(map(quote_name, fetched)) or "1"
        ordered = f" ORDER BY {self.order}" if self.order else ""
        with self._fetch(f"SELECT {listed} FROM {quote_name(self.table)}{ordered}") as cursor:
            start = 0
            while rows := self._advance(cursor):
                yield start, len(rows), dict(zip(fetched, zip(*rows, strict=True), strict=False))
                start += len(rows)

    def bound(self, unit: Unit) -> Reader:
        """The rows that count, chosen once, by their numbers: an index may give other columns in another order."""
        with self._fetch(f"SELECT * FROM {quote_name(self.table)} LIMIT 0") as cursor:
            names = {column[0].lower() for column in cursor.description}
        order = next((name for name in ("rowid", "_rowid_", "oid") if name not in names), "")
        try:
            with self._fetch(f"SELECT {order} FROM {quote_name(self.table)} LIMIT 1") as cursor:
                numbered = all(found is not None for (found,) in cursor)  # a view has none
        except DataError:
            numbered = False
        if not numbered:
            raise TooLarge(
                f"{self.label}: its rows have no numbers, so people's rows are chosen in memory only; raise the memory "
                "limit, or write the table to a Parquet file"
            )
        return ChosenReader.choose(replace(self, order=order), unit)

    def close(self) -> None:
        """Close the connection, unless the caller owns it."""
        if self.file is not None:
            self.connection.close()

    def _fetch(self, query: str) -> Any:
        try:
            cursor = self.connection.cursor()
            cursor.row_factory = None
            return closing(cursor.execute(query))
        except sqlite3.Error as error:
            raise DataError(f"{self.label}: {error}") from None

    def _advance(self, cursor: sqlite3.Cursor) -> list[Any]:
        try:
            return cursor.fetchmany(SLICE)
        except sqlite3.Error as error:
            raise DataError(f"{self.label}: {error}") from None


@dataclass(frozen=True, slots=True)
class ChosenReader:
    """Some rows of a reader that always reads in the same order."""

    source: Reader
    chosen: npt.NDArray[np.bool_]
    weights: npt.NDArray[np.int64] | None = None
    """Those of the chosen rows, where people are averaged."""

    @classmethod
    def choose(cls, source: Reader, unit: Unit) -> ChosenReader:
        """As many rows of each person as the unit says."""
        from discreet.rows.people import choose_rows, weigh_rows

        people = np.concatenate([batch.people for batch in source.read(()) if batch.people is not None])
        chosen = choose_rows(people, unit.at_most)
        return cls(source, chosen, weigh_rows(people, chosen, unit.grain) if unit.average else None)

    @property
    def label(self) -> str:
        """How errors name the table."""
        return self.source.label

    def stamp(self) -> object:
        """That of the table."""
        return self.source.stamp()

    def read(self, names: Sequence[str]) -> Iterator[Batch]:
        """The codes of the chosen rows."""
        start = taken = 0
        for batch in self.source.read(names):
            kept = self.chosen[start : start + batch.rows]
            start += batch.rows
            rows = int(np.count_nonzero(kept))
            weights = None if self.weights is None else self.weights[taken : taken + rows]
            taken += rows
            yield Batch(rows, [column[kept] for column in batch.codes], weights)

    def read_numbers(self, names: Sequence[str]) -> Iterator[Numbers]:
        """The numbers of the chosen rows."""
        start = 0
        for numbers, _ in self.source.read_numbers(names):
            kept = self.chosen[start : start + len(numbers[0])]
            start += len(numbers[0])
            yield [column[kept] for column in numbers], None

    def bound(self, unit: Unit) -> Reader:
        """Bounded already."""
        return self

    def close(self) -> None:
        """Let go of the table."""
        self.source.close()


def _encode_part(
    reader: FrameReader | SQLiteReader, names: Sequence[str], part: Mapping[str, Any], start: int, rows: int
) -> Batch:
    """Some rows as codes, without those that are left out; whose they are, if ids are read."""
    read = list_read(reader.schema, names)
    codes: dict[str, npt.NDArray[Any]] = {}
    kept: npt.NDArray[np.bool_] | None = None
    if read:
        declared = Schema(tuple(reader.schema[name] for name in read))
        try:
            codes, kept = encode_rows(declared, part, first_row=start + 1)
        except DataError as error:
            raise DataError(f"{reader.label}: {error}") from None
    weight = reader.weight
    weights = None
    if weight is not None:
        total = reader.schema.total
        weights = check_weights(reader.label, weight, part[weight], start + 1, total=total)
    people = None
    if reader.key:
        from discreet.rows.people import hash_ids

        people = hash_ids(part[reader.person], reader.key)
    batch = Batch(rows, [codes[name] for name in names], weights, people)
    return batch if kept is None else batch.keep(kept)


def _take_numbers(
    label: str, weight: str | None, part: Mapping[str, Any], names: Sequence[str], start: int
) -> Numbers:
    weights = None if weight is None else check_weights(label, weight, part[weight], start + 1)
    return [check_numbers(label, name, part[name]) for name in names], weights


def _slice(column: Any, start: int, stop: int) -> Any:
    return column.iloc[start:stop] if hasattr(column, "iloc") else column[start:stop]
