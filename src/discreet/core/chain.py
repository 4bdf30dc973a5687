"""The hash chain under the ledger: events in canonical JSON, each with the hash of the one before, and their store."""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import uuid
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

from discreet.values.errors import LedgerError

FORMAT = 1
"""The version of the event format; it stands in the first event, so every store carries it the same way."""

ORIGIN = "0" * 64
"""What the first event names as the hash before it."""


class Damaged(LedgerError):
    """A store whose content cannot be read back as events."""


def canonical(value: object) -> str:
    """The one JSON text of a value: sorted keys, no spaces, ASCII only, no NaN or infinity.

    ASCII, so that the text is the same bytes in a database of any encoding.
    """
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as problem:
        raise LedgerError(
            f"a ledger entry must be plain JSON with text keys and finite numbers: {problem}"
        ) from None


def digest(content: bytes) -> str:
    """The SHA-256 of some bytes, in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


@dataclass(frozen=True, slots=True)
class Event:
    """One line of the ledger: its place, its canonical JSON, and hash = SHA-256(JSON)."""

    seq: int
    body: str
    hash: str

    @property
    def fields(self) -> dict[str, Any]:
        """The content of the event, or `LedgerError` if it is not what the chain writes."""
        try:
            found = json.loads(self.body)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise LedgerError(f"event {self.seq} is not readable")
        return found


@dataclass(frozen=True, slots=True)
class Anchor:
    """The length of the ledger and the hash of its last event: written into every release, kept outside."""

    count: int
    hash: str

    def __str__(self) -> str:
        return f"{self.count}:{self.hash}"

    @classmethod
    def parse(cls, text: str) -> Anchor:
        """Read COUNT:HASH, the way `discreet budget show` prints it."""
        if not re.fullmatch(r"[0-9]{1,18}:[0-9a-fA-F]{64}", text.strip()):
            raise LedgerError(
                f"anchor {text!r} is not of the form COUNT:HASH that `discreet budget show` prints"
            )
        count, _, found = text.strip().partition(":")
        return cls(int(count), found.lower())


@dataclass(frozen=True, slots=True)
class Verdict:
    """What `verify` found: the anchor of the ledger as it is now, and each problem in plain English."""

    anchor: Anchor
    problems: tuple[str, ...]

    @property
    def sound(self) -> bool:
        """Whether nothing was found."""
        return not self.problems


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


def follow(anchor: Anchor, kind: str, fields: Mapping[str, object]) -> Event:
    """The event that comes after `anchor`, stamped with the time in UTC.

    The nonce makes its hash hide what it commits to: the head of the ledger is published, and from the hash of a
    guessable text anybody could confirm a guess, such as the microsecond of a debit, which tells how long it took.
    """
    content = {
        **fields,
        "kind": kind,
        "nonce": secrets.token_hex(16),
        "previous": anchor.hash,
        "seq": anchor.count + 1,
        "time": datetime.now(UTC).isoformat(timespec="microseconds"),
    }
    body = canonical(content)
    return Event(anchor.count + 1, body, digest(body.encode("ascii")))


def begin() -> Event:
    """The first event of a new ledger, with a random name for it."""
    return follow(Anchor(0, ORIGIN), "ledger", {"format": FORMAT, "id": uuid.uuid4().hex})


def broken_links(event: Event, before: Anchor) -> list[str]:
    """What is wrong with an event that should come right after `before`; empty if it does."""
    found = []
    if event.seq != before.count + 1:
        missing = event.seq - before.count - 1
        if missing < 1:
            found.append(f"event {event.seq} comes after event {before.count}: the order was changed")
        else:
            names = (
                f"event {before.count + 1} is"
                if missing == 1
                else f"events {before.count + 1} to {event.seq - 1} are"
            )
            found.append(f"{names} missing")
    if digest(event.body.encode("utf-8", "surrogatepass")) != event.hash:
        found.append(f"event {event.seq} was altered: its content does not have the hash {event.hash[:12]}…")
    fields = event.fields
    if fields.get("seq") != event.seq:
        found.append(f"event {event.seq} says it is event {fields.get('seq')!r}")
    if fields.get("previous") != before.hash:
        found.append(f"event {event.seq} does not follow from the event before it: the chain is broken there")
    return found
