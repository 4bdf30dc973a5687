"""A ledger that lives and dies with the process: for tests and simulations, never for people's data."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from discreet.core.chain import Event, begin
from discreet.core.ledger import Ledger
from discreet.values.errors import LedgerError


class MemoryStore:
    """Events in a list."""

    place = "in memory"
    durable = False

    def __init__(self) -> None:
        self._events: list[tuple[Event, bytes | None]] = [(begin(), None)]

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Undo what the block appended if it fails; the ledger's own lock keeps other threads out."""
        before = len(self._events)
        try:
            yield
        except BaseException:
            del self._events[before:]
            raise

    def read(self, first: int) -> list[Event]:
        """Every event from number `first` on."""
        return [event for event, _ in self._events[first - 1 :]]

    def payload(self, seq: int) -> bytes | None:
        """The bytes stored beside an event."""
        return self._events[seq - 1][1] if 0 < seq <= len(self._events) else None

    def append(self, event: Event, payload: bytes | None = None) -> None:
        """Add an event."""
        self._events.append((event, payload))

    def faults(self) -> list[str]:
        """A list has none."""
        return []

    def reopen(self) -> None:
        """Refuse: parent and child would each spend the whole budget from their own copy."""
        raise LedgerError(
            "a ledger in memory cannot be used after a fork: both processes would spend its budget"
        )

    def close(self) -> None:
        """Nothing to let go of."""


class MemoryLedger(Ledger):
    """A ledger in memory; `durable` is False and its description says so."""

    def __init__(self) -> None:
        super().__init__(MemoryStore())
