"""Codes that a custodian keeps beside the data, so that opening it again takes no decoding: private like the rows.

A file of them belongs to one table, schema and unit, and is used only if the digest of every byte of the table's files
is the one that it was made from; sizes and times of modification are not looked at.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from discreet.rows.limits import choose_threads
from discreet.rows.readers.batches import Batch, Numbers, Reader
from discreet.rows.readers.sources import find_files, look_up_path, split_path
from discreet.values.errors import DataError
from discreet.values.files import make_folder, replace_file
from discreet.values.schema import Schema
from discreet.values.schema.formats.document import make_document
from discreet.values.unit import Unit

MAGIC = b"discreet codes 1\n"
HEAD = 4096
"""Bytes before the first code."""
BLOCK_ROWS = 1 << 20
"""Rows of a block, in which the columns lie one after the other: a request reads those that it needs."""
ABANDONED = 3600
"""Seconds after which a half-written file to which nothing was added has no writer."""


@dataclass(frozen=True, slots=True)
class KeptCodes:
    """A file of codes, read like any table of rows; its digest was that of the data when it was opened."""

    label: str
    path: Path
    schema: Schema
    weighted: bool
    rows: int
    units: int

    def stamp(self) -> object:
        """Size, time of modification and number of the file."""
        try:
            found = self.path.stat()
        except OSError as error:
            raise DataError(f"{self.path}: {error.strerror}") from None
        return found.st_size, found.st_mtime_ns, found.st_ino

    def read(self, names: Sequence[str]) -> Iterator[Batch]:
        """The codes of these attributes, a block at a time; only they are read."""
        kinds = _list_kinds(self.schema, self.weighted)
        width = sum(kind.itemsize for _, kind in kinds)
        with self.path.open("rb") as file:
            for start in range(0, self.rows, BLOCK_ROWS):
                rows, place = min(BLOCK_ROWS, self.rows - start), HEAD + start * width
                found: dict[str, npt.NDArray[Any]] = {}
                for name, kind in kinds:
                    if name in names or not name:
                        file.seek(place)
                        found[name] = np.fromfile(file, dtype=kind, count=rows)
                        if len(found[name]) != rows:
                            raise DataError(f"{self.path}: the codes end too early; open the data again")
                    place += rows * kind.itemsize
                yield Batch(rows, [found[name] for name in names], found.get(""))

    def read_numbers(self, names: Sequence[str]) -> Iterator[Numbers]:
        """Refused: codes are no numbers."""
        raise DataError(f"{self.label}: column {names[0]!r} cannot be summed from codes")

    def bound(self, unit: Unit) -> Reader:
        """Bounded already, if they are people's."""
        return self

    def close(self) -> None:
        """Nothing stays open."""


@dataclass(frozen=True, slots=True)
class Shelf:
    """Where the codes of one table under one schema and unit lie, and the digest of the table's content."""

    path: Path
    label: str
    digest: str
    schema: Schema
    weighted: bool
    files: tuple[Path, ...]
    stamp: object
    """Sizes and times of the files, taken before their digests."""

    @classmethod
    def of(
        cls, folder: str | os.PathLike[str], data: Any, schema: Schema, weight: str | None, unit: Unit
    ) -> Shelf:
        """The place in a folder for the codes of a file, or of a folder of Parquet files; reads every byte of them."""
        what = "" if isinstance(data, str | os.PathLike) else f"a {type(data).__qualname__}"
        path, said, sheet = ("", {}, None) if what else split_path(os.fspath(data))
        if "::" in path and look_up_path(path) == "nothing":
            what = "a table in a database"
        if what:
            raise DataError(f"codes can be kept only of files, not of {what}: leave out --codes")
        files = find_files(path)
        top = Path(os.path.commonpath([os.path.realpath(file.parent) for file in files]))
        known = [os.path.realpath(path), dict(said), sheet, make_document(schema), weight, str(unit)]
        name = hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()[:32]
        try:
            stamp = _stamp(files)
            with ThreadPoolExecutor(choose_threads()) as pool:
                content = list(pool.map(_digest_file, files))
        except OSError as error:
            raise DataError(f"{path}: cannot be read: {error.strerror}") from None
        listed = [
            [os.path.relpath(os.path.realpath(file), top), *found]
            for file, found in zip(files, content, strict=True)
        ]
        digest = hashlib.sha256(json.dumps([known, listed, version("discreet")]).encode()).hexdigest()
        weighted = weight is not None or unit.average
        return cls(Path(folder) / f"{name}.codes", Path(path).name, digest, schema, weighted, files, stamp)

    def find(self) -> KeptCodes | None:
        """The codes that lie there; None, with a word, if they are not private, damaged or of other content."""
        try:
            with self.path.open("rb") as file:
                state = os.fstat(file.fileno())
                head = file.read(HEAD)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise DataError(f"{self.path}: cannot be read: {error.strerror}") from None
        told, why = self._read_head(state, head)
        if why:
            warnings.warn(f"{self.path}: {why}; the codes are made again", UserWarning, stacklevel=2)
            return None
        return KeptCodes(self.label, self.path, self.schema, self.weighted, told["rows"], told["units"])

    def keep(self, batches: Iterable[Batch]) -> KeptCodes:
        """Write all codes there, all or nothing, for this user alone."""
        make_folder(self.path.parent)
        self._sweep()
        with replace_file(self.path) as draft:
            draft.chmod(0o600)
            with draft.open("r+b") as file:
                file.write(bytes(HEAD))
                rows, units = _write_blocks(file, batches, self.schema, self.weighted)
                told = {"digest": self.digest, "rows": rows, "units": units}
                file.seek(0)
                file.write(MAGIC + json.dumps(told).encode())
            if _stamp(self.files) != self.stamp:
                raise DataError(f"{self.label}: the data changed while it was read; open it again")
        return KeptCodes(self.label, self.path, self.schema, self.weighted, rows, units)

    def _sweep(self) -> None:
        """Remove what a process that was killed left half written: rows that nobody would miss, and others may find."""
        for left in self.path.parent.glob(f".{self.path.name}.*.part"):
            if time.time() - left.stat().st_mtime > ABANDONED:
                left.unlink(missing_ok=True)

    def _read_head(self, state: os.stat_result, head: bytes) -> tuple[dict[str, Any], str]:
        """What the file says of itself, and why it cannot be used, if so."""
        if not stat.S_ISREG(state.st_mode) or state.st_uid != os.getuid() or state.st_mode & 0o077:
            return {}, "others may read or write it"
        width = sum(kind.itemsize for _, kind in _list_kinds(self.schema, self.weighted))
        try:
            told = json.loads(head[len(MAGIC) :].rstrip(b"\0"))
            if head.startswith(MAGIC) and state.st_size == HEAD + told["rows"] * width:
                return told, "" if told["digest"] == self.digest else "the data has changed"
        except (ValueError, TypeError, KeyError):
            pass
        return {}, "the file is damaged"


def _list_kinds(schema: Schema, weighted: bool) -> list[tuple[str, np.dtype[Any]]]:
    """The columns of a block, wide ones first: the weights without a name, then the attributes."""
    weights = [("", np.dtype(np.int64))] if weighted else []
    attributes = [(attribute.name, attribute.dtype) for attribute in schema]
    return weights + sorted(attributes, key=lambda column: -column[1].itemsize)


def _write_blocks(
    file: BinaryIO, batches: Iterable[Batch], schema: Schema, weighted: bool
) -> tuple[int, int]:
    """Blocks of full length but the last; the number of rows, and the sum of their weights."""
    rows = units = 0
    kinds, places = _list_kinds(schema, weighted), {name: i for i, name in enumerate(schema.names)}
    block = [np.empty(BLOCK_ROWS, dtype=kind) for _, kind in kinds]
    filled = 0
    for batch in batches:
        rows += batch.rows
        units += batch.rows if batch.weights is None else int(batch.weights.sum())
        columns = [batch.weights if not name else batch.codes[places[name]] for name, _ in kinds]
        start = 0
        while start < batch.rows:
            taken = min(batch.rows - start, BLOCK_ROWS - filled)
            for room, column in zip(block, columns, strict=True):
                assert column is not None
                room[filled : filled + taken] = column[start : start + taken]
            start, filled = start + taken, filled + taken
            if filled == BLOCK_ROWS:
                _write_block(file, block, filled)
                filled = 0
    _write_block(file, block, filled)
    return rows, units


def _write_block(file: BinaryIO, block: Sequence[npt.NDArray[Any]], rows: int) -> None:
    for column in block:
        file.write(column[:rows].tobytes())


def _stamp(files: Sequence[Path]) -> object:
    return [(found.st_size, found.st_mtime_ns, found.st_ino) for found in map(os.stat, files)]


def _digest_file(path: Path) -> tuple[int, str]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return file.tell(), digest
