"""The clock attack: how long counting took tells tables apart, so nothing published may tell how long it took."""

from __future__ import annotations

import hashlib
import json
import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import discreet as dc
from discreet.core import book, chain
from discreet.core.book import Entry
from discreet.values.statement import Debit

CLOCK = re.compile(r"\d\d:\d\d:\d\d")
ASIA = dc.examples.asia()


def publish(folder: Path) -> str:
    """Everything that one release writes, in one text."""
    rows = ASIA.sample(300, rng=1).arrow()
    made = dc.release(
        rows,
        ASIA.schema,
        ASIA.dag,
        epsilon=2,
        learner="dependent",
        ledger=folder / "ledger",
        account="a",
        create=True,
    )
    paths = made.write(folder / "published")
    return "\n".join(path.read_text("utf-8") for path in paths.values())


def test_no_file_of_a_release_tells_the_time_of_day(tmp_path: Path) -> None:
    assert CLOCK.findall(publish(tmp_path)) == []


def test_debits_with_their_full_time_are_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it was once: the seconds between two debits are those in which the rows were counted."""

    def with_clock(entry: Entry) -> Debit:
        found = honest(entry)
        return Debit(found.request, entry.time, found.verb, found.tables, found.cost, found.digest)

    honest = book.describe_debit
    monkeypatch.setattr(book, "describe_debit", with_clock)
    assert len(CLOCK.findall(publish(tmp_path))) >= 2


def guess_time(head: chain.Event, known: dict[str, Any]) -> bool:
    """Whether the hash of the last event confirms its microsecond, to somebody who knows the rest of it."""
    about = datetime.fromisoformat(head.fields["time"]) - timedelta(microseconds=500)
    for micro in range(1000):
        moment = (about + timedelta(microseconds=micro)).isoformat(timespec="microseconds")
        body = chain.canonical({**known, "time": moment})
        if hashlib.sha256(body.encode()).hexdigest() == head.hash:
            return True
    return False


def test_the_published_head_confirms_no_guess_at_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The head is in every release. Without a nonce, as it was once, a thousand guesses find the microsecond."""
    origin = chain.Anchor(3, "0" * 64)
    event = chain.follow(origin, "answer", {"account": "a", "request": "r"})
    known = {name: value for name, value in json.loads(event.body).items() if name not in ("nonce", "time")}
    assert not guess_time(event, known)
    monkeypatch.setattr(chain.secrets, "token_hex", lambda size: "")
    bare = chain.follow(origin, "answer", {"account": "a", "request": "r"})
    assert guess_time(bare, {**known, "nonce": ""})
