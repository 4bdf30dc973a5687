"""Many spenders at once: processes, forks and races end exactly at the budget; a careless twin does not."""

from __future__ import annotations

import json
import os
import threading
import traceback
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

from discreet.core.ledger import Ledger
from discreet.entrance import open_ledger
from discreet.stores.memory import MemoryLedger, MemoryStore
from discreet.values.budget import PureDP
from discreet.values.errors import LedgerError, Overspent


def in_children(count: int, work: Callable[[int], object]) -> list[object]:
    """Run `work(0)`, `work(1)` … in forked children at the same time, and return what each of them says."""
    pipes = []
    for number in range(count):
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                said = json.dumps(work(number))
            except BaseException:
                said = json.dumps({"failed": traceback.format_exc()})
            with os.fdopen(writing, "w") as pipe:
                pipe.write(said)
            os._exit(0)
        os.close(writing)
        pipes.append((child, reading))
    found = []
    for child, reading in pipes:
        with os.fdopen(reading) as pipe:
            found.append(json.loads(pipe.read()))
        os.waitpid(child, 0)
    failed = [said["failed"] for said in found if isinstance(said, dict) and "failed" in said]
    assert not failed, failed[0]
    return found


def spend_in_crowd(open_one: Callable[[], Ledger], processes: int, debits: int, cost: PureDP) -> int:
    """Let every process try so many debits; return how many were acknowledged in all."""

    def work(number: int) -> int:
        ledger = open_one()
        paid = 0
        for i in range(debits):
            try:
                ledger.debit("clinic", f"{number}-{i}", cost)
            except Overspent:
                continue
            paid += 1
        return paid

    return sum(int(str(paid)) for paid in in_children(processes, work))


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    found = (
        str(tmp_path / "a.ledger")
        if request.param == "sqlite"
        else request.getfixturevalue("postgres_schema")()
    )
    with open_ledger(found, create=True) as ledger:
        ledger.open_account("clinic", PureDP(1), "add-remove")
    return str(found)


@pytest.mark.parametrize(
    ("processes", "debits", "affordable"), [(4, 25, 64), pytest.param(8, 200, 1000, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("inherited", [False, True], ids=["own", "inherited"])
def test_a_crowd_ends_exactly_at_the_budget(
    place: str, processes: int, debits: int, affordable: int, inherited: bool
) -> None:
    """Each with a ledger of its own, or with one that was opened and used before the fork."""
    cost = PureDP(Fraction(1, affordable))
    with open_ledger(place, patience=120) as before:
        before.head()
        opener = (lambda: before) if inherited else (lambda: open_ledger(place, patience=120))
        assert spend_in_crowd(opener, processes, debits, cost) == affordable
        assert before.remaining("clinic").is_zero
        assert len(before.entries("clinic")) == affordable
        assert before.verify().sound


def test_racers_on_one_request_pay_once_and_see_one_answer(place: str) -> None:
    def work(number: int) -> list[str]:
        seen = []
        with open_ledger(place) as ledger:
            for i in range(8):
                entry = ledger.debit("clinic", f"shared {i}", PureDP("1/8"))
                draw = os.urandom(8).hex().encode()
                seen.append(
                    (entry.answer if entry.answer is not None else ledger.answer(entry, draw)).decode()
                )
        return seen

    seen = in_children(4, work)
    assert all(answers == seen[0] for answers in seen)
    with open_ledger(place) as ledger:
        assert ledger.remaining("clinic").is_zero
        assert len(ledger.entries("clinic")) == 8


def test_one_account_is_opened_once_by_many(tmp_path: Path) -> None:
    place = str(tmp_path / "new.ledger")

    def work(number: int) -> str:
        with open_ledger(place, create=True) as ledger:
            try:
                ledger.open_account("clinic", PureDP(1 + number % 2), "add-remove")
            except LedgerError as problem:
                return "refused" if "cannot be opened again" in str(problem) else str(problem)
            return "opened"

    assert sorted(str(said) for said in in_children(6, work)) == ["opened"] * 3 + ["refused"] * 3
    with open_ledger(place) as ledger:
        assert ledger.head().count == 2
        assert ledger.verify().sound


def test_a_fork_does_not_disturb_the_parent(place: str) -> None:
    with open_ledger(place) as ledger:
        ledger.debit("clinic", "parent before", PureDP("1/4"))

        def work(number: int) -> int:
            ledger.debit("clinic", "child", PureDP("1/4"))
            ledger.close()
            return ledger._process == os.getpid()

        assert in_children(1, work) == [True]
        ledger.debit("clinic", "parent after", PureDP("1/4"))
        requests = [entry.request for entry in ledger.entries("clinic")]
    assert requests == ["parent before", "child", "parent after"]


def test_a_fork_while_another_thread_spends(place: str) -> None:
    with open_ledger(place) as ledger:
        stop = threading.Event()
        spent: list[str] = []

        def spend_on() -> None:
            while not stop.is_set() and len(spent) < 400:
                ledger.debit("clinic", f"thread {len(spent)}", PureDP("1/1000"))
                spent.append("paid")

        thread = threading.Thread(target=spend_on)
        thread.start()
        try:
            for round_ in range(5):
                work = lambda number, r=round_: ledger.debit("clinic", f"{r}-{number}", PureDP("1/1000")).seq  # noqa: E731
                assert len(set(in_children(3, work))) == 3
        finally:
            stop.set()
            thread.join()
        assert len(ledger.entries("clinic")) == len(spent) + 15
        assert ledger.verify().sound


def test_a_ledger_in_memory_refuses_to_be_used_after_a_fork() -> None:
    ledger = MemoryLedger()
    ledger.open_account("clinic", PureDP(1), "add-remove")

    def work(number: int) -> str:
        try:
            ledger.debit("clinic", "child", PureDP(1))
        except LedgerError as refused:
            return str(refused)
        return "spent"

    assert "cannot be used after a fork" in str(in_children(1, work)[0])
    ledger.debit("clinic", "parent", PureDP(1))


class Forgetful(MemoryStore):
    """A planted accountant in memory that does not notice that it was forked."""

    def reopen(self) -> None:
        """Go on with the copy of the parent's state."""


def test_the_crowd_catches_an_accountant_that_double_spends_across_forks() -> None:
    ledger = Ledger(Forgetful())
    ledger.open_account("clinic", PureDP(1), "add-remove")
    paid = spend_in_crowd(lambda: ledger, processes=4, debits=25, cost=PureDP("1/20"))
    assert paid == 4 * 20  # four times the budget, which is what the crowd tests look for
    assert ledger.remaining("clinic") == PureDP(1)  # and the parent knows nothing of it
