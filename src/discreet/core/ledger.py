"""The ledger: debit first and durably, answer once, never twice; every step an event in a hash chain.

The order of a debit, and what a crash does at each point:

    debit(...)          durable before it returns      a crash before: nothing spent
    count and draw      only in this process           a crash here: budget spent, nothing has left
    answer(...)         durable before it returns      a crash before: as above; a retry draws again, unseen
    hand the bytes out  always the stored ones         a crash after: a retry gets the same bytes for nothing
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NoReturn, Self

from discreet.core.book import Account, Book, Entry, spell, write_amount
from discreet.core.chain import Anchor, Damaged, Event, Store, Verdict, canonical, digest, follow
from discreet.values.budget import Budget, Finite, Infinite, allow
from discreet.values.errors import BudgetError, LedgerError
from discreet.values.fork_lock import ForkLock
from discreet.values.statement import Statement
from discreet.values.unit import Unit

_MOST_PROBLEMS = 20


class Ledger:
    """Accounts of privacy budget over one append-only store, safe for many processes, threads and forks."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._book = Book()
        self._lock = ForkLock()
        self._process = os.getpid()
        self._closed = False
        self.debited: list[str] = []  # the hashes of debits that were made here, and not by another process

    def __repr__(self) -> str:
        return f"<Ledger {self.description}>"

    def _repr_html_(self) -> str:
        from discreet.values.notebook import tabulate

        heads = ("account", "unit", "budget", "spent", "left", "loss")
        lines = (
            (found.name, found.unit.value, found.budget, found.spent, found.remaining, found.loss)
            for found in self.accounts()
        )
        return tabulate(f"Ledger {self.description}", heads, lines)

    @property
    def durable(self) -> bool:
        """Whether a debit survives a crash; only the in-memory ledger for simulations does not."""
        return self._store.durable

    @property
    def description(self) -> str:
        """Where the ledger is, and whether it lasts; reports print it."""
        return self._store.place if self.durable else f"{self._store.place} (not durable: simulations only)"

    @property
    def id(self) -> str:
        """The random name that the ledger was given when it was made."""
        with self._reading() as book:
            return book.id

    def open_account(self, name: str, budget: Budget, unit: Unit | str) -> Account:
        """Open the account of a dataset, or return it if it is open with exactly this budget and unit."""
        require_line("an account name", name)
        unit = Unit.read(unit)
        if isinstance(budget, Infinite) or budget.is_zero:
            raise BudgetError(f"account {name!r}: the budget must be finite and above 0, not {budget}")
        with self._writing() as book:
            found = book.accounts.get(name)
            if found is None:
                amounts: dict[str, Any] = {"budget": write_amount(budget)}
                if allow(budget) != budget:
                    amounts["allowance"] = write_amount(allow(budget))
                self._append(book, "open", account=name, unit=unit.value, **amounts)
            elif found.budget != budget or unit not in (found.unit, found.asked):
                raise LedgerError(
                    f"account {name!r} is open with {spell(found.budget)}, {found.unit}; "
                    f"it cannot be opened again with {spell(budget)}, {unit}"
                )
        return self.account(name)

    @property
    def place(self) -> str:
        """Where the ledger is, in words that hold no password."""
        return self._store.place

    @property
    def key(self) -> bytes:
        """The secret under which the ledger remembers tables; it is written nowhere else and never published."""
        with self._reading() as book:
            return book.key

    def find_source(self, marks: Sequence[str]) -> tuple[str, ...]:
        """The accounts under which a table with one of these marks was opened."""
        with self._reading() as book:
            return tuple(dict.fromkeys(name for mark in marks for name in book.sources.get(mark, ())))

    def remember_source(self, account: str, marks: Sequence[str]) -> None:
        """Remember under which account a table was opened.

        Each time, whether it is known or not: releases tell how many events there are, and that must not tell whether a
        table has changed since the last one.
        """
        with self._writing() as book:
            book.account(account)
            self._append(book, "source", account=account, marks=list(marks))

    def fix_unit(self, account: str, request_id: str, at_most: int) -> Account:
        """Fix how many rows of a person count, as it was chosen in the answer to a request; once, and for good."""
        with self._writing() as book:
            if book.account(account).unit.is_open:
                fields: dict[str, Any] = {"account": account, "request": request_id, "at most": at_most}
                self._append(book, "fix", **fields)
        return self.account(account)

    def account(self, name: str) -> Account:
        """The state of one account."""
        with self._reading() as book:
            return book.account(name)

    def accounts(self) -> tuple[Account, ...]:
        """Every account, in the order in which they were opened."""
        with self._reading() as book:
            return tuple(book.accounts.values())

    def debit(
        self, account: str, request_id: str, cost: Budget, description: Mapping[str, Any] | None = None
    ) -> Entry:
        """Spend `cost` durably, once for each request id; a retry gets its entry back and pays nothing.

        If `answer` on the returned entry is not None, it was answered before: hand out those bytes. If it is
        None, count, draw, and pass the result to `Ledger.answer` before anyone sees it.
        """
        require_line("a request id", request_id)
        if isinstance(cost, Infinite):
            raise BudgetError("an infinite cost is not a debit: record it with mark_revealed")
        wanted = canonical(dict(description or {}))
        with self._writing() as book:
            book.account(account)
            found = book.entries[account].get(request_id)
            if found is None:
                book.require_funds(account, cost, description or {})
                paid: dict[str, Any] = {"cost": write_amount(cost), "description": dict(description or {})}
                event = self._append(book, "debit", account=account, request=request_id, **paid)
            else:
                _require_same(found, cost, wanted)
        if found is None:
            said = event.fields
            self.debited.append(event.hash)
            return Entry(account, request_id, cost, said["description"], event.seq, event.hash, said["time"])
        return replace(found, answer=self._stored(found) if found.answered else None)

    def answer(self, entry: Entry, payload: bytes) -> bytes:
        """Store the answer to a debit durably and return it; if there is one already, return that one."""
        payload = bytes(payload)
        with self._writing() as book:
            found = book.entries.get(entry.account, {}).get(entry.request)
            if found is None or found.hash != entry.hash:
                raise LedgerError(
                    f"request {entry.request!r} was not debited in this ledger: {self.description}"
                )
            if not found.answered:
                said: dict[str, Any] = {"payload": digest(payload), "bytes": len(payload)}
                self._append(book, "answer", payload, account=entry.account, request=entry.request, **said)
        return self._stored(found) if found.answered else payload

    def entries(self, account: str) -> tuple[Entry, ...]:
        """Every debit of an account in order, without the answers' bytes."""
        with self._reading() as book:
            book.account(account)
            return tuple(book.entries[account].values())

    def remaining(self, account: str) -> Finite:
        """What is left of the budget, exactly."""
        return self.account(account).remaining

    def mark_revealed(self, account: str, reason: str) -> Account:
        """Record a look at the rows without noise, before it happens; from then on the loss is infinite."""
        require_line("the reason for a reveal", reason, most=2000)
        with self._writing() as book:
            book.account(account)
            self._append(book, "reveal", account=account, reason=reason)
        return self.account(account)

    def head(self) -> Anchor:
        """The anchor to keep outside: how many events there are, and the hash of the last."""
        with self._reading() as book:
            return book.anchor

    def recall(self, count: int) -> Book:
        """What the first `count` events add up to, however many have come since."""
        with self._alone():
            book = Book()
            for event in self._store.read(1)[:count]:
                if problems := book.post(event):
                    raise self._distrust(problems[0])
        return book

    def state(self, account: str, requests: Sequence[str] = (), rows: int | None = None) -> Statement:
        """What a release says about privacy: the account as it stood when the last of these requests was answered.

        Not as it stands now: a release that is written again after a crash, or a year later, must say the same.
        Without requests it is the account as it stands now. `rows` is their number where that is public.
        """
        with self._reading() as book:
            entries, now = book.find_entries(account, requests), book.anchor.count
            last = max((entry.answer_seq or now for entry in entries), default=now)
            if last == now:
                return book.state(account, entries, self.durable, rows)
        return self.recall(last).state(account, entries, self.durable, rows)

    def verify(self, *anchors: Anchor) -> Verdict:
        """Read everything afresh and check the chain, the sums, the stored answers, and outside anchors."""
        with self._alone():
            problems: list[str] = []
            book, hashes = Book(), {}
            try:
                for event in self._store.read(1):
                    problems += book.post(event)
                    hashes[event.seq] = event.hash
                problems += self._check_answers(book)
                problems += self._store.faults()
            except Damaged as problem:
                problems.append(str(problem))
        if not hashes:
            problems.append("the ledger is empty; even a new one has its opening event")
        for anchor in anchors:
            if anchor.count > book.anchor.count:
                left = book.anchor.count
                problems.append(f"the anchor was taken at {anchor.count} events, only {left} are left")
            elif hashes.get(anchor.count) != anchor.hash:
                problems.append(f"event {anchor.count} is not the one that the anchor names")
        if len(problems) > _MOST_PROBLEMS:
            problems[_MOST_PROBLEMS:] = [f"and {len(problems) - _MOST_PROBLEMS} more"]
        return Verdict(book.anchor, tuple(problems))

    def close(self) -> None:
        """Let go of the store; everything that was acknowledged is already in it."""
        if self._process == os.getpid() and not self._closed:  # in a forked child it is the parent's to close
            with self._lock:
                self._store.close()
        self._closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise LedgerError("a ledger cannot be copied or pickled; open it again where you need it")

    @contextmanager
    def _alone(self) -> Iterator[None]:
        with self._lock:
            if self._closed:
                raise LedgerError(f"the ledger is closed: {self.description}")
            # A forked child: connection and state are copies of the parent's.
            if self._process != os.getpid():
                self._store.reopen()
                self._book, self._process = Book(), os.getpid()
            yield

    @contextmanager
    def _reading(self) -> Iterator[Book]:
        with self._alone():
            yield self._catch_up()

    @contextmanager
    def _writing(self) -> Iterator[Book]:
        with self._alone(), self._store.writing():
            yield self._catch_up()

    def _catch_up(self) -> Book:
        """Post what was committed since the last look, once the last known event is found to still stand."""
        book = self._book
        known = book.anchor
        for event in self._store.read(max(known.count, 1)):
            if event.seq == known.count:
                problems = [] if event.hash == known.hash else ["it was rewritten while it was open"]
                known = Anchor(-1, known.hash)  # found again
            else:
                problems = book.post(event)
            if problems:
                self._book = Book()
                raise self._distrust(problems[0])
        if known.count > 0:
            self._book = Book()
            raise self._distrust("it was cut back while it was open")
        if not book.id:
            raise LedgerError(f"the ledger is empty: {self.description}")
        return book

    def _distrust(self, problem: str) -> LedgerError:
        return LedgerError(
            f"the ledger cannot be trusted: {problem} ({self.description}); go back to a copy that "
            "`discreet budget verify` finds sound"
        )

    def _append(self, book: Book, kind: str, content: bytes | None = None, **fields: object) -> Event:
        # The book is not told: it reads the event back once committed, so it never runs ahead of the store.
        event = follow(book.anchor, kind, fields)
        self._store.append(event, content)
        return event

    def _stored(self, entry: Entry) -> bytes:
        with self._alone():
            found = self._store.payload(entry.answer_seq or 0)
        if found is None or digest(found) != entry.digest:
            raise self._distrust(f"the stored answer to request {entry.request!r} was altered")
        return found

    def _check_answers(self, book: Book) -> list[str]:
        problems = []
        for entries in book.entries.values():
            for entry in entries.values():
                if entry.answer_seq is not None:
                    found = self._store.payload(entry.answer_seq)
                    if found is None or digest(found) != entry.digest:
                        problems.append(f"event {entry.answer_seq}: the stored answer was altered")
        return problems


def require_line(what: str, text: object, most: int = 200) -> None:
    """Refuse a name or a reason that is empty, too long, or not printable on one line."""
    if not (isinstance(text, str) and 0 < len(text) <= most and text.isprintable() and text == text.strip()):
        raise LedgerError(
            f"{what} must be one line of 1 to {most} printable characters, not {str(text)[:60]!r}"
        )


def _require_same(found: Entry, cost: Finite, wanted: str) -> None:
    if found.cost != cost:
        raise LedgerError(
            f"request {found.request!r} cost {spell(found.cost)} before, not {spell(cost)}; "
            "give the new question another request id"
        )
    if canonical(found.description) != wanted:
        raise LedgerError(
            f"request {found.request!r} was another question before; give the new one another request id"
        )
