"""The contract of the ledger, the same for all three stores, and the laws of the chain underneath."""

from __future__ import annotations

import copy
import os
import pickle
import threading
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.core.chain import Anchor, Event, canonical
from discreet.core.ledger import Ledger
from discreet.entrance import open_ledger
from discreet.stores.fingerprint import fingerprint_file
from discreet.stores.memory import MemoryLedger
from discreet.values.budget import ZCDP, ApproxDP, Infinite, PureDP, allow
from discreet.values.errors import BudgetError, LedgerError, Overspent
from discreet.values.unit import Unit

Opener = Callable[[], Ledger]


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def opener(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opener]:
    """Opens the same ledger each time it is called, as another process would; in memory there is only one."""
    opened: list[Ledger] = []
    if request.param == "memory":
        only = MemoryLedger()
        yield lambda: only
        return
    place = str(tmp_path / "a.ledger")
    if request.param == "postgres":
        place = request.getfixturevalue("postgres_schema")()

    def open_it() -> Ledger:
        opened.append(open_ledger(place, create=True))
        return opened[-1]

    yield open_it
    for ledger in opened:
        ledger.close()


@pytest.fixture
def ledger(opener: Opener) -> Ledger:
    made = opener()
    made.open_account("clinic", PureDP(1), "add-remove")
    return made


def spend(ledger: Ledger, request: str, cost: str, payload: bytes = b"noisy", **about: Any) -> bytes:
    entry = ledger.debit("clinic", request, PureDP(cost), about)
    return entry.answer if entry.answer is not None else ledger.answer(entry, payload)


def test_spends_add_up_exactly(ledger: Ledger, opener: Opener) -> None:
    for i in range(3):
        spend(ledger, f"r{i}", "1/3")
    assert ledger.remaining("clinic").is_zero
    assert ledger.account("clinic").spent == PureDP(1)
    assert opener().remaining("clinic") == ledger.remaining("clinic")
    assert [entry.request for entry in opener().entries("clinic")] == ["r0", "r1", "r2"]


def test_overspending_names_requested_remaining_and_short(ledger: Ledger) -> None:
    spend(ledger, "first", "2/3")
    before = ledger.head()
    with pytest.raises(Overspent) as refused:
        ledger.debit("clinic", "second", PureDP("1/2"))
    text = str(refused.value)
    assert "requested ε = 1/2 (0.5)" in text
    assert "remaining ε = 1/3 (0.333333)" in text
    assert "short by ε = 1/6 (0.166667)" in text
    assert ledger.head() == before
    assert spend(ledger, "third", "1/3") == b"noisy"


@pytest.mark.parametrize(
    ("budget", "first", "beyond"),
    [
        (ZCDP("1/8"), ZCDP("1/16"), ZCDP("1/8")),
        (ApproxDP(1, "1e-6"), ZCDP("1/100"), ZCDP("1/50")),
    ],
)
def test_every_kind_of_budget_is_kept(opener: Opener, budget: Any, first: Any, beyond: Any) -> None:
    ledger = opener()
    ledger.open_account("kinds", budget, Unit.REPLACE_ONE)
    ledger.debit("kinds", "a", first)
    with pytest.raises(Overspent):
        ledger.debit("kinds", "b", beyond)
    with pytest.raises(BudgetError, match="is of another kind"):
        ledger.debit("kinds", "c", PureDP("1/10"))
    assert ledger.remaining("kinds") == allow(budget) - first


def test_a_retry_gets_the_same_bytes_and_pays_nothing(ledger: Ledger, opener: Opener) -> None:
    payload = bytes(range(256))
    assert spend(ledger, "once", "1/2", payload, table=["a", "b"]) == payload
    count = ledger.head().count
    assert spend(opener(), "once", "1/2", b"another draw", table=["a", "b"]) == payload
    assert ledger.remaining("clinic") == PureDP("1/2")
    assert ledger.head().count == count


def test_an_unanswered_debit_is_completed_without_paying_again(ledger: Ledger, opener: Opener) -> None:
    ledger.debit("clinic", "crashed", PureDP("1/2"))
    assert [entry.answered for entry in ledger.entries("clinic")] == [False]
    again = opener().debit("clinic", "crashed", PureDP("1/2"))
    assert again.answer is None
    assert opener().answer(again, b"done") == b"done"
    assert ledger.remaining("clinic") == PureDP("1/2")
    assert [entry.answered for entry in ledger.entries("clinic")] == [True]


def test_the_first_stored_answer_wins(ledger: Ledger, opener: Opener) -> None:
    entry = ledger.debit("clinic", "raced", PureDP("1/2"))
    other = opener()
    same = other.debit("clinic", "raced", PureDP("1/2"))
    assert other.answer(same, b"winner") == b"winner"
    assert ledger.answer(entry, b"loser") == b"winner"
    assert ledger.verify().sound


def test_threads_that_share_a_ledger_end_at_the_budget(ledger: Ledger) -> None:
    paid: list[str] = []

    def work(name: int) -> None:
        for i in range(5):
            try:
                spend(ledger, f"{name}-{i}", "1/8")
            except Overspent:
                continue
            paid.append(f"{name}-{i}")

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(paid) == 8
    assert ledger.remaining("clinic").is_zero
    assert ledger.verify().sound


def test_a_request_id_is_one_question(ledger: Ledger) -> None:
    ledger.debit("clinic", "q", PureDP("1/4"), {"table": ["a"]})
    with pytest.raises(LedgerError, match="another question"):
        ledger.debit("clinic", "q", PureDP("1/4"), {"table": ["b"]})
    with pytest.raises(LedgerError, match=r"1/4 .*1/8"):
        ledger.debit("clinic", "q", PureDP("1/8"), {"table": ["a"]})
    assert ledger.remaining("clinic") == PureDP("3/4")


def test_budget_and_unit_are_set_once(ledger: Ledger, opener: Opener) -> None:
    assert opener().open_account("clinic", PureDP("1.0"), "add-remove").budget == PureDP(1)
    with pytest.raises(LedgerError, match=r"ε = 1, add-remove; .*ε = 2, add-remove"):
        ledger.open_account("clinic", PureDP(2), "add-remove")
    with pytest.raises(LedgerError, match="replace-one"):
        ledger.open_account("clinic", PureDP(1), "replace-one")
    with pytest.raises(LedgerError, match="ρ = 1"):
        ledger.open_account("clinic", ZCDP(1), "add-remove")


def test_accounts_do_not_share_anything(ledger: Ledger) -> None:
    ledger.open_account("registry", PureDP(3), "replace-one")
    spend(ledger, "same id", "1")
    ledger.debit("registry", "same id", PureDP(2))
    assert ledger.remaining("clinic").is_zero
    assert ledger.remaining("registry") == PureDP(1)
    assert [account.name for account in ledger.accounts()] == ["clinic", "registry"]


def test_a_reveal_makes_the_loss_infinite_for_good(ledger: Ledger, opener: Opener) -> None:
    spend(ledger, "before", "1/4")
    assert ledger.account("clinic").loss == PureDP("1/4")
    ledger.mark_revealed("clinic", "compared synthetic with real rows")
    spend(ledger, "after", "1/4")
    account = opener().account("clinic")
    assert account.loss == Infinite()
    assert account.reveals[0].reason == "compared synthetic with real rows"
    assert account.remaining == PureDP("1/2")


@pytest.mark.parametrize("name", ["", " ", "a\nb", "x" * 201, "\x1b[31m", " padded", None, 7])
def test_names_are_one_printable_line(ledger: Ledger, name: Any) -> None:
    with pytest.raises(LedgerError, match="printable"):
        ledger.open_account(name, PureDP(1), "add-remove")
    with pytest.raises(LedgerError, match="printable"):
        ledger.debit("clinic", name, PureDP("1/2"))


def test_what_cannot_be_written_is_refused_before_anything_is_spent(ledger: Ledger) -> None:
    before = ledger.head()
    too_long = PureDP(Fraction(1, 10**500))
    for broken in ({"x": float("nan")}, {"x": b"bytes"}, {"x": {1, 2}}, {"x": object()}):
        with pytest.raises(LedgerError, match="plain JSON"):
            ledger.debit("clinic", "bad", PureDP("1/2"), broken)
    with pytest.raises(BudgetError, match="too many digits"):
        ledger.debit("clinic", "bad", too_long)
    with pytest.raises(BudgetError, match="mark_revealed"):
        ledger.debit("clinic", "bad", Infinite())
    with pytest.raises(BudgetError, match="more than 0"):
        ledger.debit("clinic", "bad", PureDP.zero())
    with pytest.raises(BudgetError):
        ledger.open_account("free", Infinite(), "add-remove")
    with pytest.raises(LedgerError, match=r"no account 'nobody'.*clinic"):
        ledger.debit("nobody", "r", PureDP("1/2"))
    assert ledger.head() == before


def test_descriptions_keep_every_character(ledger: Ledger, opener: Opener) -> None:
    about = {"Größe": "naïve ≤ \u0000 \ud800 🂡", "nested": {"b": [1, 2.5, None, True], "a": -0.0}}
    ledger.debit("clinic", "unicode", PureDP("1/2"), about)
    assert opener().entries("clinic")[0].description == about
    assert opener().debit("clinic", "unicode", PureDP("1/2"), about).answer is None


def test_an_entry_of_another_ledger_cannot_be_answered(ledger: Ledger) -> None:
    other = MemoryLedger()
    other.open_account("clinic", PureDP(1), "add-remove")
    foreign = other.debit("clinic", "r", PureDP("1/2"))
    ledger.debit("clinic", "r", PureDP("1/2"))
    with pytest.raises(LedgerError, match="not debited in this ledger"):
        ledger.answer(foreign, b"x")


def test_anchors_stand_while_the_ledger_grows(ledger: Ledger) -> None:
    anchors = [ledger.head()]
    for i in range(3):
        spend(ledger, f"r{i}", "1/8")
        anchors.append(ledger.head())
    assert [anchor.count for anchor in anchors] == [2, 4, 6, 8]
    assert all(ledger.verify(anchor).sound for anchor in anchors)
    assert not ledger.verify(Anchor(anchors[1].count, anchors[2].hash)).sound
    assert not ledger.verify(Anchor(99, anchors[2].hash)).sound
    assert Anchor.parse(f" {str(anchors[3]).upper()} ") == anchors[3]
    for text in ("", "3", "3:xyz", f"-1:{'0' * 64}", f"3:{'0' * 63}"):
        with pytest.raises(LedgerError, match="COUNT:HASH"):
            Anchor.parse(text)


def test_each_ledger_has_its_own_id_and_says_whether_it_lasts(ledger: Ledger) -> None:
    assert len(ledger.id) == 32
    assert ledger.id != MemoryLedger().id
    assert ledger.durable == ("memory" not in ledger.description)
    assert ("not durable" in repr(ledger)) == (not ledger.durable)


def test_a_ledger_is_not_copied_and_not_used_once_closed(ledger: Ledger) -> None:
    for copier in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(LedgerError, match="cannot be copied or pickled"):
            copier(ledger)
    with ledger:
        pass
    ledger.close()
    with pytest.raises(LedgerError, match="closed"):
        ledger.head()


amounts = st.fractions(min_value=Fraction(1, 50), max_value=Fraction(2, 3), max_denominator=60)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 12), amounts, st.booleans()), max_size=30))
def test_any_history_is_paid_once_and_never_beyond_the_budget(
    history: list[tuple[int, Fraction, bool]],
) -> None:
    ledger = MemoryLedger()
    ledger.open_account("clinic", PureDP(1), "add-remove")
    paid: dict[str, Fraction] = {}
    let_out: dict[str, bytes] = {}
    for draw, (number, cost, finishes) in enumerate(history):
        request = f"r{number}"
        affordable = sum(paid.values()) + cost <= 1
        try:
            entry = ledger.debit("clinic", request, PureDP(cost))
        except Overspent:
            assert request not in paid
            assert not affordable
            continue
        except LedgerError:
            assert paid[request] != cost
            continue
        assert paid.setdefault(request, cost) == cost
        if finishes:
            out = entry.answer if entry.answer is not None else ledger.answer(entry, str(draw).encode())
            assert let_out.setdefault(request, out) == out
    assert ledger.account("clinic").spent.amounts == (sum(paid.values(), Fraction(0)),)
    assert sum(paid.values()) <= 1
    assert {e.request for e in ledger.entries("clinic") if e.answered} == set(let_out)
    assert ledger.verify(ledger.head()).sound


def make_history() -> MemoryLedger:
    ledger = MemoryLedger()
    ledger.open_account("clinic", PureDP(1), "add-remove")
    for i in range(3):
        ledger.answer(ledger.debit("clinic", f"r{i}", PureDP("1/4"), {"i": i}), b"payload %d" % i)
    ledger.mark_revealed("clinic", "checked")
    return ledger


@settings(deadline=None, max_examples=150)
@given(st.data())
def test_no_change_to_any_event_goes_unseen(data: st.DataObject) -> None:
    ledger = make_history()
    anchor = ledger.head()
    events = ledger._store._events  # type: ignore[attr-defined]
    place = data.draw(st.integers(0, len(events) - 1))
    event, payload = events[place]
    match data.draw(st.sampled_from(["body", "hash", "payload", "swap", "drop", "repeat", "forge"])):
        case "body":
            at = data.draw(st.integers(0, len(event.body) - 1))
            letter = data.draw(
                st.sampled_from('0123456789abcxyz"{}:,/').filter(lambda c: c != event.body[at])
            )
            events[place] = (
                Event(event.seq, event.body[:at] + letter + event.body[at + 1 :], event.hash),
                payload,
            )
        case "hash":
            events[place] = (Event(event.seq, event.body, event.hash[::-1]), payload)
        case "payload":
            place = data.draw(
                st.sampled_from([i for i, (_, found) in enumerate(events) if found is not None])
            )
            events[place] = (events[place][0], data.draw(st.sampled_from([None, b"", b"forged"])))
        case "swap":
            other = data.draw(st.integers(0, len(events) - 1).filter(lambda i: i != place))
            events[place], events[other] = events[other], events[place]
        case "drop":
            del events[place]
        case "repeat":
            events.insert(place, events[place])
        case "forge":
            from discreet.core.chain import digest

            body = canonical({**event.fields, "time": "2000-01-01T00:00:00.000000+00:00"})
            events[place] = (Event(event.seq, body, digest(body.encode())), payload)
    verdict = ledger.verify(anchor)
    assert not verdict.sound
    assert all("\n" not in problem for problem in verdict.problems)


@pytest.mark.parametrize("kept", range(1, 9))
def test_a_truncated_ledger_is_sound_by_itself_but_not_against_the_anchor(kept: int) -> None:
    ledger = make_history()
    anchor = ledger.head()
    assert anchor.count == 9
    del ledger._store._events[kept:]  # type: ignore[attr-defined]
    assert ledger.verify().sound
    assert f"only {kept} are left" in ledger.verify(anchor).problems[0]
    with pytest.raises(LedgerError, match="cut back while it was open"):
        ledger.debit("clinic", "r9", PureDP("1/4"))


def test_a_tampered_ledger_refuses_to_spend() -> None:
    ledger = make_history()
    events = ledger._store._events  # type: ignore[attr-defined]
    body = events[2][0].body.replace("1/4", "1/9")
    events[2] = (Event(3, body, events[2][0].hash), None)
    fresh = Ledger(ledger._store)
    with pytest.raises(LedgerError, match="event 3 was altered"):
        fresh.debit("clinic", "r9", PureDP("1/4"))


def test_the_canonical_text_does_not_depend_on_the_order_of_keys() -> None:
    assert canonical({"b": 1, "a": "é"}) == canonical({"a": "é", "b": 1}) == '{"a":"\\u00e9","b":1}'


def test_a_fingerprint_depends_on_the_file_and_on_the_key(tmp_path: Path) -> None:
    data = tmp_path / "rows.csv"
    data.write_bytes(b"a,b\n1,2\n")
    first = fingerprint_file(data, os.urandom(16))
    key = b"k" * 16
    assert fingerprint_file(data, key) == fingerprint_file(data, key) != first
    same = fingerprint_file(data, key)
    data.write_bytes(b"a,b\n1,3\n")
    assert fingerprint_file(data, key) != same
    with pytest.raises(LedgerError, match="at least 16 bytes"):
        fingerprint_file(data, b"short")
    with pytest.raises(LedgerError, match="cannot read"):
        fingerprint_file(tmp_path / "missing", key)
