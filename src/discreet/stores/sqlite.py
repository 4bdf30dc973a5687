"""A ledger in one SQLite file, the default: no server, and a debit that survives a power cut.

Why a rollback journal with synchronous=EXTRA, and not a write-ahead log (WAL):

- In journal mode DELETE a commit is the removal of the journal. Under FULL the directory is not synced after
  it, so a power cut can bring the journal back, and the next opening rolls an acknowledged debit back with
  it. EXTRA syncs the directory. (WAL with FULL is durable too; WAL or DELETE with NORMAL is not.)
- Between commits there is one file and no other. With WAL the last debits may be in a second file, and a
  backup that copies only the first one restores a budget that was spent.
- SQLite before 3.51.3 has a race in WAL mode that can damage a database with several writers, and Python
  brings whichever SQLite the system has.

The price is a few more syncs for each debit: milliseconds, on something done a few times a day.
"""

from __future__ import annotations

import os
import re
import secrets
import sqlite3
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from discreet.core.book import require_format
from discreet.core.chain import FORMAT, Damaged, Event, begin
from discreet.values.errors import LedgerError
from discreet.values.files import sync_folder

APPLICATION = int.from_bytes(b"disc", "big")
"""The mark in the file header by which SQLite files of different programs are told apart."""

SCHEMA = {
    "event": """
        CREATE TABLE event (seq INTEGER PRIMARY KEY, body TEXT NOT NULL, hash TEXT NOT NULL, payload BLOB)
    """,
    "event_in_order": """
        CREATE TRIGGER event_in_order BEFORE INSERT ON event
        WHEN NEW.seq IS NOT (SELECT coalesce(max(seq), 0) + 1 FROM event)
        BEGIN SELECT raise(ABORT, 'the ledger only grows at its end'); END
    """,
    "event_never_changed": """
        CREATE TRIGGER event_never_changed BEFORE UPDATE ON event
        BEGIN SELECT raise(ABORT, 'the ledger is never changed'); END
    """,
    "event_never_deleted": """
        CREATE TRIGGER event_never_deleted BEFORE DELETE ON event
        BEGIN SELECT raise(ABORT, 'nothing is deleted from the ledger'); END
    """,
}
"""The table, and triggers as a second line that stops accidents; the chain is what detects intent."""


def is_ledger(path: Path) -> bool:
    """Whether a file says in its header that it is a ledger."""
    try:
        with open(path, "rb") as file:
            head = file.read(72)
    except OSError:
        return False
    return head.startswith(b"SQLite format 3\0") and head[68:] == APPLICATION.to_bytes(4, "big")


def list_mounts() -> frozenset[str]:
    """The places where something is mounted, as far as the system tells."""
    try:
        lines = Path("/proc/self/mountinfo").read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return frozenset()
    # Blanks and the like are written in octal.
    places = (line.split(" ")[4] for line in lines if line.count(" ") > 4)
    return frozenset(re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), place) for place in places)


_abandoned: list[sqlite3.Connection] = []


class SqliteStore:
    """Events in a SQLite file."""

    durable = True

    def __init__(
        self, path: Path, *, create: bool = False, patience: float = 30.0, first: Event | None = None
    ) -> None:
        """`first` is the opening of a ledger that is taken over; a new one gets its own."""
        self._path = path.resolve()
        self._patience = patience
        with self._plainly():
            if create:
                self._create(first or begin())
            elif not self._path.exists():
                raise LedgerError(
                    f"no ledger at {self._path}; check the name, or make it with `discreet budget init`"
                )
            self._connection = self._connect("rw")

    @property
    def place(self) -> str:
        """The path of the file."""
        return str(self._path)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """One transaction that excludes every other writer from its first read on, synced on commit."""
        with self._plainly():
            self._require_same_file()
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    if self._connection.in_transaction:
                        self._connection.execute("ROLLBACK")
                raise
            self._require_same_file()

    def read(self, first: int) -> list[Event]:
        """Every committed event from number `first` on, in order."""
        query = "SELECT seq, body, hash FROM event WHERE seq >= ? ORDER BY seq"
        with self._plainly():
            rows = self._connection.execute(query, (first,)).fetchall()
        if not all(
            type(seq) is int and type(body) is str and type(hash_) is str for seq, body, hash_ in rows
        ):
            raise Damaged(f"the ledger {self._path} is damaged: an event has values of the wrong type")
        return [Event(*row) for row in rows]

    def payload(self, seq: int) -> bytes | None:
        """The bytes stored beside an event."""
        with self._plainly():
            row = self._connection.execute("SELECT payload FROM event WHERE seq = ?", (seq,)).fetchone()
        return row[0] if row and isinstance(row[0], bytes) else None

    def append(self, event: Event, payload: bytes | None = None) -> None:
        """Add an event; only inside `writing`."""
        with self._plainly():
            self._connection.execute(
                "INSERT INTO event (seq, body, hash, payload) VALUES (?, ?, ?, ?)",
                (event.seq, event.body, event.hash, payload),
            )

    def faults(self) -> list[str]:
        """Damage that SQLite itself sees, and triggers that were taken away."""
        with self._plainly():
            found = [row[0] for row in self._connection.execute("PRAGMA integrity_check(5)")]
            schema = dict(
                self._connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")
            )
        faults = [f"the file is damaged: {line}" for line in found if line != "ok"]
        for name, statement in SCHEMA.items():
            if schema.pop(name, None) != statement.strip():
                faults.append(f"the part {name!r} of the ledger's layout was removed or changed")
        return faults + [f"{name!r} does not belong to the ledger's layout" for name in schema]

    def reopen(self) -> None:
        """Connect anew after a fork.

        The inherited connection is kept aside, not closed: closing it could undo a transaction of the parent.
        """
        _abandoned.append(self._connection)
        with self._plainly():
            self._connection = self._connect("rw")

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _create(self, first: Event) -> None:
        """Make the ledger whole under another name and give it its own; where one is, it is left as it is.

        So nobody ever sees half of it, and a disk that is full leaves nothing behind.
        """
        if not self._path.parent.is_dir():
            raise LedgerError(f"cannot make the ledger {self._path}: there is no such folder")
        if self._path.exists():
            return
        draft = self._path.with_name(f".{self._path.name[:80]}.{secrets.token_hex(8)}.part")
        try:
            # Nobody else may read what was asked of whom, not even for a moment.
            os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o600))
            self._fill(draft, first)
            with suppress(FileExistsError):  # somebody else was quicker, and theirs is as good
                os.link(draft, self._path)
        finally:
            with suppress(OSError):
                draft.unlink()
        sync_folder(self._path.parent)

    def _fill(self, draft: Path, first: Event) -> None:
        connection = self._connect("rw", draft)
        try:
            connection.execute("BEGIN IMMEDIATE")
            for statement in SCHEMA.values():
                connection.execute(statement.strip())
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            connection.execute(f"PRAGMA user_version = {FORMAT}")
            row = (first.seq, first.body, first.hash)
            connection.execute("INSERT INTO event (seq, body, hash) VALUES (?, ?, ?)", row)
            connection.execute("COMMIT")
        finally:
            connection.close()

    def _connect(self, mode: str, draft: Path | None = None) -> sqlite3.Connection:
        if draft is None:
            self._require_one_name()
        connection = sqlite3.connect(
            f"{(draft or self._path).as_uri()}?mode={mode}",
            uri=True,
            isolation_level=None,
            timeout=self._patience,
            check_same_thread=False,
        )
        try:
            # A damaged text must come back to be found by its hash, not stop the reading.
            connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("PRAGMA synchronous = EXTRA")
            connection.execute("PRAGMA fullfsync = ON")  # on macOS a plain fsync stops at the disk's cache
            journal = connection.execute("PRAGMA journal_mode = DELETE").fetchone()[0]
            if journal != "delete":
                raise LedgerError(
                    f"the ledger {self._path} is in journal mode {journal}; close it elsewhere and try again"
                )
            if draft is None:
                self._require_ledger(connection)
            status = os.stat(draft or self._path)
        except BaseException:
            connection.close()
            raise
        self._file = (status.st_dev, status.st_ino)
        return connection

    def _require_ledger(self, connection: sqlite3.Connection) -> None:
        if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION:
            raise LedgerError(f"{self._path} is not a discreet ledger")
        require_format(connection.execute("PRAGMA user_version").fetchone()[0])

    def _require_one_name(self) -> None:
        """Refuse a file that is reached by a second name, or that is empty.

        A transaction that was cut off is undone by its journal, which lies beside the name that was used. Under another
        name it is not found; used later under the first, it takes back whatever was spent in between.
        """
        for wait in (0.05, 0.2, 0.75, 0.0):  # a ledger that is just being made has two names for a moment
            status = os.stat(self._path)
            if status.st_nlink == 1 or not stat.S_ISREG(status.st_mode):
                break
            time.sleep(wait)
        else:
            raise LedgerError(
                f"the ledger {self._path} has {status.st_nlink} names (hard links); debits through one could be lost "
                "through another: keep one name and remove the others"
            )
        if str(self._path) in list_mounts():
            raise LedgerError(
                f"the ledger {self._path} is mounted by itself, so it has a second name elsewhere, and debits could be "
                "lost; mount its folder instead, or use its own name"
            )
        if stat.S_ISREG(status.st_mode) and not status.st_size:
            raise LedgerError(
                f"{self._path} is not a discreet ledger: it is empty. If it was only just to be made and the disk was "
                "full, remove it and begin again; if it was in use, it was cut off: go back to a copy"
            )

    def _require_same_file(self) -> None:
        # A file moved over this one would leave the connection writing debits into a file that nobody sees.
        try:
            status = os.stat(self._path)
        except FileNotFoundError:
            raise LedgerError(f"the ledger {self._path} was removed while it was open; put it back") from None
        if (status.st_dev, status.st_ino) != self._file:
            raise LedgerError(
                f"the ledger {self._path} was replaced by another file while it was open; put it back"
            )
        if status.st_nlink != 1:
            self._require_one_name()

    @contextmanager
    def _plainly(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as problem:
            kind = Damaged if _code(problem).startswith("SQLITE_CORRUPT") else LedgerError
            raise kind(self._explain(problem)) from problem
        # SQLite's own message, quoting a part of the file that is damaged.
        except UnicodeDecodeError as problem:
            raise Damaged(f"the ledger {self._path} is damaged: its layout is not readable") from problem
        except OSError as problem:
            raise LedgerError(f"cannot use the ledger {self._path}: {problem.strerror}") from problem

    def _explain(self, problem: sqlite3.Error) -> str:
        code = _code(problem)
        if code.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            return f"another process has been using the ledger {self._path} for {self._patience:g} s; try again later"
        if code.startswith("SQLITE_FULL"):
            return f"the disk is full, so nothing was written to the ledger {self._path}; free some space and try again"
        if code.startswith("SQLITE_READONLY"):
            return f"the ledger {self._path} is read-only; ask for the right to write to it"
        if code.startswith("SQLITE_NOTADB"):
            return f"{self._path} is not a discreet ledger"
        if code.startswith("SQLITE_CORRUPT"):
            return f"the ledger {self._path} is damaged: {problem}"
        if code.startswith("SQLITE_CANTOPEN"):
            return f"cannot open the ledger {self._path}: it is not a file, or you may not read and write it"
        if code.startswith("SQLITE_IOERR"):
            return f"the disk failed or is full, so the ledger {self._path} was not written ({code}); check the disk"
        return f"the ledger {self._path} cannot be used: SQLite says: {problem}"


def _code(problem: sqlite3.Error) -> str:
    return getattr(problem, "sqlite_errorname", None) or ""
