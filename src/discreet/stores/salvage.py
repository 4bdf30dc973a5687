"""What is sound of a ledger that was spoilt, taken over into a new one: nothing that was spent is given back.

The events up to the first fault are copied as they are, so that anchors of releases from before still match. Of what
comes after it, debits that are readable are debited again: they may have been honest, and a lost budget harms nobody.
No request is left without an answer, for the one that is lost may have been published, and a second would be unpaid.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from discreet.core.book import Book
from discreet.core.chain import Event, Store, digest, follow
from discreet.values.budget import finite_from_json
from discreet.values.errors import DiscreetError, LedgerError

LOST = json.dumps(["this answer was lost; ask under another request id"]).encode()
"""What stands in place of an answer that is gone."""


@dataclass(frozen=True, slots=True)
class Salvage:
    """How much of a ledger could be taken over."""

    copied: int
    debited: tuple[str, ...]
    """Requests behind the fault that were debited again."""
    lost: tuple[str, ...]
    """Requests that have no answer any more."""
    dropped: tuple[str, ...]
    """Events that are not in the new ledger as they were, and why."""


def split_events(old: Store) -> tuple[list[Event], list[Event], str]:
    """The events before the first fault, those from there on, and what the fault is."""
    book, events = Book(), old.read(1)
    for i, event in enumerate(events):
        problems = book.post(event)
        if not problems and event.fields.get("kind") == "answer":
            payload = old.payload(event.seq)
            if payload is None or digest(payload) != event.fields.get("payload"):
                problems = [f"event {event.seq}: the stored answer was altered"]
        if problems:
            return events[:i], events[i:], problems[0]
    return events, [], ""


def take_over(old: Store, new: Store, sound: Sequence[Event], rest: Sequence[Event], fault: str) -> Salvage:
    """Write into a new store, which holds the opening of the old one, what is sound of it."""
    with new.writing():
        if [event.hash for event in new.read(1)] != [event.hash for event in sound[:1]]:
            raise LedgerError(f"{new.place} is in use; what is salvaged goes into a new ledger")
        book = Book()
        for event in sound:
            book.post(event)
            if event.seq > 1:
                new.append(event, old.payload(event.seq))

        def add(kind: str, content: bytes | None = None, **fields: Any) -> None:
            event = follow(book.anchor, kind, fields)
            if problems := book.post(event):
                raise LedgerError(problems[0])
            new.append(event, content)

        debited, dropped = [], []
        for event in rest:
            try:
                fields = _read_debit(event, book)
                add("debit", **fields)
                debited.append(str(fields["request"]))
            except DiscreetError as problem:
                dropped.append(fault if event is rest[0] else f"event {event.seq}: {problem}")
        lost = [
            (entry.account, entry.request)
            for entries in book.entries.values()
            for entry in entries.values()
            if not entry.answered
        ]
        for account, request in lost:
            add("answer", LOST, account=account, request=request, payload=digest(LOST), bytes=len(LOST))
    return Salvage(len(sound), tuple(debited), tuple(request for _, request in lost), tuple(dropped))


def _read_debit(event: Event, book: Book) -> Mapping[str, Any]:
    """What a debit behind the fault says, if it can be debited again."""
    found = event.fields
    if found.get("kind") != "debit":
        raise LedgerError(f"it follows the fault, and is no debit but {str(found.get('kind'))[:40]!r}")
    account, request = str(found.get("account")), str(found.get("request"))
    description = found.get("description")
    if not isinstance(description, dict) or request in book.entries.get(account, {}):
        raise LedgerError("it follows the fault, and is no debit that could be made again")
    book.require_funds(account, finite_from_json(found.get("cost")), description)
    return {"account": account, "request": request, "cost": found["cost"], "description": description}
