"""Opening a ledger where it is kept."""

from __future__ import annotations

import os
from pathlib import Path

from discreet.core.ledger import Ledger


def exists(place: str | os.PathLike[str]) -> bool:
    """Whether there is something at a place; a server is asked only when the ledger is opened."""
    return _is_address(os.fspath(place)) or Path(place).exists()


def open_ledger(place: str | os.PathLike[str], *, create: bool = False, patience: float = 30.0) -> Ledger:
    """Open the ledger at a path, or at a postgresql:// address; `create` makes it if it is not there.

    `patience` is how many seconds to wait for another writer. A missing ledger is an error unless `create` is
    asked for, because a mistyped name would otherwise come with a fresh budget.
    """
    text = os.fspath(place)
    if _is_address(text):
        from discreet.stores.postgres import PostgresStore

        return Ledger(PostgresStore(text, create=create, patience=patience))
    from discreet.stores.sqlite import SqliteStore

    return Ledger(SqliteStore(Path(text), create=create, patience=patience))


def _is_address(text: str) -> bool:
    return text.startswith(("postgresql://", "postgres://"))
