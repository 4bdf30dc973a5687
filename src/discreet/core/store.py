"""What the ledger asks of the place where its events are kept."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

from discreet.core.chain import Event


class Store(Protocol):
    """Where events are kept; the bookkeeping is the ledger's, the store only appends and reads."""

    @property
    def place(self) -> str:
        """Where it is, in words that hold no password."""

    @property
    def durable(self) -> bool:
        """Whether an append survives the end of the process and a power cut."""

    def writing(self) -> AbstractContextManager[None]:
        """Exclude every other writer; on leaving, commit durably, or undo everything if the block failed."""

    def read(self, first: int) -> list[Event]:
        """Every committed event from number `first` on, in order."""

    def payload(self, seq: int) -> bytes | None:
        """The bytes stored beside an event."""

    def append(self, event: Event, payload: bytes | None = None) -> None:
        """Add an event; only inside `writing`."""

    def faults(self) -> list[str]:
        """What is wrong with the store itself, beneath the chain."""

    def reopen(self) -> None:
        """Take a connection of one's own after a fork, or refuse."""

    def close(self) -> None:
        """Let go of the connection."""
