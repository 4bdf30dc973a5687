"""A ledger in PostgreSQL, for a team: the same events in one table, one ledger for each schema.

A role that may only SELECT and INSERT on the table is enough to spend, so the database itself can forbid the
rest: writers exclude each other by an advisory lock, which needs no right on the table, and a trigger stops a writer
that did not take it (see `postgres_layout`, also for the rights of such a role).

A sequence beside the table keeps how many events were ever committed. It is set after each commit, is no part of a
transaction, and can only be set to what is in the table: a table that is shorter was rolled back.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from discreet.core.chain import Event, begin
from discreet.stores.postgres_layout import TABLE, find_faults, write_layout
from discreet.values.errors import LedgerError, import_extra

if TYPE_CHECKING:
    import psycopg

_CREATION_LOCK = int.from_bytes(b"discreet", "big") % 2**63
_WRITING_LOCK = (
    f"SELECT pg_advisory_xact_lock({int.from_bytes(b'disc', 'big')}, to_regclass('{TABLE}')::oid::integer)"
)
"""A lock of this table's own: two ledgers in two schemas of one database do not wait for each other."""

_abandoned: list[psycopg.Connection[Any]] = []


class PostgresStore:
    """Events in a PostgreSQL table, one row each."""

    durable = True

    def __init__(
        self, address: str, *, create: bool = False, patience: float = 30.0, first: Event | None = None
    ) -> None:
        """`first` is the opening of a ledger that is taken over; a new one gets its own."""
        self._address = address
        self._patience = patience
        self._place = "in PostgreSQL"
        self._inside = False
        self._connection = self._connect()
        try:
            with self._plainly():
                if create:
                    self._create(first or begin())
                self._require_ledger()
        except BaseException:
            self._connection.close()
            raise

    @property
    def place(self) -> str:
        """Server, database and user, without the password."""
        return self._place

    @contextmanager
    def writing(self) -> Iterator[None]:
        """One transaction under the writers' lock; the commit waits until the log is flushed to disk."""
        # Read committed: a statement sees what was committed before it began, and a commit becomes visible
        # before its lock is let go; so what is read once the lock is granted is all there is.
        with self._plainly(), self._live().transaction():
            self._inside = True
            try:
                # SET LOCAL, so that it also holds behind a pool that hands sessions round.
                self._connection.execute("SET LOCAL synchronous_commit = on")
                self._connection.execute(f"SET LOCAL lock_timeout = {int(self._patience * 1000)}")
                self._connection.execute(_WRITING_LOCK)
                self._require_layout()
                yield
            finally:
                self._inside = False
        self._note()

    def read(self, first: int) -> list[Event]:
        """Every committed event from number `first` on, in order."""
        query = f"SELECT seq, body, hash FROM {TABLE} WHERE seq >= %s ORDER BY seq"
        with self._plainly():
            return [Event(*row) for row in self._live().execute(query, (first,)).fetchall()]

    def payload(self, seq: int) -> bytes | None:
        """The bytes stored beside an event."""
        with self._plainly():
            row = self._live().execute(f"SELECT payload FROM {TABLE} WHERE seq = %s", (seq,)).fetchone()
        return bytes(row[0]) if row and row[0] is not None else None

    def append(self, event: Event, payload: bytes | None = None) -> None:
        """Add an event; only inside `writing`."""
        with self._plainly():
            self._connection.execute(
                f"INSERT INTO {TABLE} (seq, body, hash, payload) VALUES (%s, %s, %s, %s)",
                (event.seq, event.body, event.hash, payload),
            )

    def faults(self) -> list[str]:
        """Parts of the layout that were replaced or taken away, and events that are gone."""
        with self._plainly():
            return find_faults(self._live()) + self._find_loss()

    def _require_layout(self) -> None:
        """Refuse to write through triggers that somebody has replaced, or into a table that was rolled back."""
        faults = find_faults(self._connection) or self._find_loss()
        if faults:
            raise LedgerError(
                f"the ledger {self._place} pays for nothing: {faults[0]}; find out who did it, then let its owner run "
                "`discreet budget init` again, or `discreet budget salvage`"
            )

    def _note(self) -> None:
        import psycopg

        with suppress(psycopg.Error):  # what was committed stays so; the next one makes up for it
            self._connection.execute(f"SELECT {TABLE}_note()")

    def _find_loss(self) -> list[str]:
        query = f"SELECT last_value, (SELECT coalesce(max(seq), 0) FROM {TABLE}) FROM {TABLE}_anchor"
        row = self._connection.execute(query).fetchone()
        if row is None or row[0] <= row[1]:
            return []
        return [f"it was rolled back: {row[0]} events were committed, only {row[1]} are left"]

    def reopen(self) -> None:
        """Connect anew after a fork; the inherited connection is the parent's, and closing it ends both."""
        _abandoned.append(self._connection)
        self._connection = self._connect()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _live(self) -> psycopg.Connection[Any]:
        # After a restart of the server; never inside a transaction, which died with its connection.
        if self._connection.closed and not self._inside:
            self._connection = self._connect()
        return self._connection

    def _connect(self) -> psycopg.Connection[Any]:
        import_extra("psycopg", "a ledger in PostgreSQL", "postgres")
        import psycopg

        with self._plainly():
            connection = psycopg.connect(
                self._address, autocommit=True, connect_timeout=max(2, int(self._patience))
            )
            place = connection.info
            self._place = f"postgresql://{place.user}@{place.host}:{place.port}/{place.dbname}"
            connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
            connection.prepare_threshold = None
            for setting in ("fsync", "full_page_writes"):
                row = connection.execute(f"SHOW {setting}").fetchone()
                if row is None or row[0] != "on":
                    connection.close()
                    raise LedgerError(
                        f"{self._place} runs with {setting} = off, so a debit would not survive a crash; switch it on"
                    )
        return connection

    def _create(self, first: Event) -> None:
        with self._connection.transaction():
            self._connection.execute("SELECT pg_advisory_xact_lock(%s)", (_CREATION_LOCK,))
            new = not self._exists()
            if new or find_faults(self._connection):  # an older layout is brought up to date by who owns it
                row = self._connection.execute("SELECT current_schema()").fetchone()
                self._connection.execute(write_layout(str(row[0]) if row else "public"))
            if new:
                self.append(first)

    def _exists(self) -> bool:
        row = self._connection.execute("SELECT to_regclass(%s) IS NOT NULL", (TABLE,)).fetchone()
        return bool(row and row[0])

    def _require_ledger(self) -> None:
        if not self._exists():
            raise LedgerError(f"no ledger at {self._place}; make it with `discreet budget init`")
        query = "SELECT relpersistence FROM pg_class WHERE oid = to_regclass(%s)"
        row = self._connection.execute(query, (TABLE,)).fetchone()
        if row is None or row[0] not in ("p", b"p"):
            raise LedgerError(
                f"the table {TABLE} at {self._place} is unlogged, so a debit would not survive a crash; run SET LOGGED"
            )

    @contextmanager
    def _plainly(self) -> Iterator[None]:
        import psycopg

        try:
            yield
        except psycopg.errors.LockNotAvailable:
            raise LedgerError(
                f"another process has been using the ledger {self._place} for {self._patience:g} s; try again later"
            ) from None
        except psycopg.errors.DiskFull:
            raise LedgerError(
                f"the disk is full, so nothing was written to the ledger {self._place}; free some space and try again"
            ) from None
        except psycopg.errors.ReadOnlySqlTransaction:
            raise LedgerError(
                f"the ledger {self._place} is read-only; ask for the right to write to it"
            ) from None
        except psycopg.errors.UniqueViolation:
            raise LedgerError(
                f"another process wrote to the ledger {self._place} at the same time; try again"
            ) from None
        except psycopg.Error as problem:
            if problem.diag.message_primary:
                raise LedgerError(
                    f"the ledger {self._place} cannot be used: PostgreSQL says: {problem.diag.message_primary}"
                ) from None
            # Its text may quote the address, password and all.
            if isinstance(problem, psycopg.ProgrammingError):
                raise LedgerError(
                    "the ledger's address is not valid; write postgresql://user@host/database"
                ) from None
            line = " ".join(str(problem).split()) or type(problem).__name__
            raise LedgerError(f"cannot reach the ledger {self._place}: {line}") from None
