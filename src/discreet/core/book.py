"""What the events of a ledger add up to: accounts, their debits, and what is left of each budget."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any

from discreet.core.chain import FORMAT, ORIGIN, Anchor, Event, broken_links, digest
from discreet.values.budget import (
    Budget,
    Finite,
    Infinite,
    budget_from_json,
    finite_from_json,
    keep_delta,
    require_allowance,
)
from discreet.values.errors import BudgetError, DiscreetError, FormatError, LedgerError, Overspent
from discreet.values.statement import Debit, Statement
from discreet.values.text import read_fraction
from discreet.values.unit import Unit

_SYMBOLS = {"epsilon": "ε", "rho": "ρ", "delta": "δ"}
_SHOWN_DIGITS = 40


@dataclass(frozen=True, slots=True)
class Reveal:
    """A look at the rows without noise: when, and why."""

    reason: str
    time: str


@dataclass(frozen=True, slots=True)
class Account:
    """One dataset: the budget and the unit that were set once, and what has been spent of it."""

    name: str
    budget: Finite
    unit: Unit
    time: str
    allowance: Finite
    """What spends are counted in and may add up to: of an (ε, δ) the ρ that it buys, else the budget."""
    spent: Finite
    reveals: tuple[Reveal, ...] = ()
    failed: Fraction = Fraction(0)
    """The probability, in all, with which answers may have told what they should not: a part of δ."""
    asked: Unit | None = None
    """The unit as the account was opened with it, where it was chosen only later how many rows of a person count."""

    @property
    def remaining(self) -> Finite:
        """What may still be spent, exactly."""
        left: Finite = self.allowance - self.spent
        return left

    @property
    def loss(self) -> Budget:
        """The privacy loss so far: what was spent, or infinite once the rows were looked at without noise."""
        return Infinite() if self.reveals else self.spent


@dataclass(frozen=True, slots=True)
class Entry:
    """One debit, and what was answered for it.

    `digest` is the SHA-256 of the stored answer, or None while there is none. `answer` holds the stored bytes
    when the entry comes from `debit`; a listing leaves them in the store.
    """

    account: str
    request: str
    cost: Finite
    description: Mapping[str, Any]
    seq: int
    hash: str
    time: str
    digest: str | None = None
    answer_seq: int | None = None
    answer: bytes | None = None

    @property
    def answered(self) -> bool:
        """Whether an answer is stored; a debit without one is a crash, or still under way."""
        return self.digest is not None


def spell(amount: Budget) -> str:
    """An amount with its exact fraction and its decimal value: ε = 1/3 (0.333333)."""
    if isinstance(amount, Infinite):
        return str(amount)
    parts = zip((_SYMBOLS[field.name] for field in fields(amount)), amount.amounts, strict=True)
    return ", ".join(f"{symbol} = {_spell_fraction(value)}" for symbol, value in parts)


def _spell_fraction(value: Fraction) -> str:
    if value.denominator == 1:
        return str(value)
    exact = str(value)
    return f"{exact} ({float(value):.6g})" if len(exact) <= _SHOWN_DIGITS else f"≈ {float(value):.12g}"


class Book:
    """The state of every account after the first `anchor.count` events: a fold over the chain, no more."""

    def __init__(self) -> None:
        self.anchor = Anchor(0, ORIGIN)
        self.id = ""
        self.accounts: dict[str, Account] = {}
        self.entries: dict[str, dict[str, Entry]] = {}
        self.sources: dict[str, list[str]] = {}
        """The accounts under which a table was opened, by the keyed digests that it is remembered by."""
        self.key = b""
        """A secret of the ledger: what only whoever holds it knows of its first event."""

    def post(self, event: Event) -> list[str]:
        """Take in the next event and return what is wrong with it; the book goes on either way."""
        try:
            problems = broken_links(event, self.anchor)
        except LedgerError as problem:
            problems = [str(problem)]
        else:
            try:
                self._take(event, event.fields)
            except (KeyError, TypeError, AttributeError):
                problems.append(f"event {event.seq} lacks a field or has one of the wrong type")
            except DiscreetError as problem:
                problems.append(f"event {event.seq}: {problem}")
        self.anchor = Anchor(event.seq, event.hash)
        return problems

    def account(self, name: str) -> Account:
        """The account of that name, or `LedgerError` with the names there are."""
        try:
            return self.accounts[name]
        except KeyError:
            known = ", ".join(sorted(self.accounts)[:8]) or "none yet"
            raise LedgerError(
                f"no account {name!r} in this ledger (it has: {known}); open it with `discreet budget init`"
            ) from None

    def find_entries(self, account: str, requests: Sequence[str]) -> list[Entry]:
        """The debits of these requests in order."""
        self.account(account)
        asked = set(requests)
        return [entry for entry in self.entries[account].values() if entry.request in asked]

    def state(self, name: str, entries: Sequence[Entry], durable: bool, rows: int | None = None) -> Statement:
        """The statement on an account and these debits of it, as of the last event of the book."""
        account = self.account(name)
        return Statement(
            account.name, account.unit, account.budget, account.spent, account.loss,
            _agree(entries, "schema"), _agree(entries, "purpose"), tuple(map(describe_debit, entries)),
            self.id, durable, self.anchor.count, self.anchor.hash, rows, account.allowance,
        )  # fmt: skip

    def require_funds(self, name: str, cost: Finite, description: Mapping[str, Any]) -> Fraction:
        """Refuse a cost of another kind than the budget, of zero, or above what is left; the δ that the answer adds."""
        account, delta = self.account(name), read_fraction(description.get("delta", 0), "a δ", LedgerError)
        left = keep_delta(account.budget) - account.failed
        if not 0 <= delta <= left:
            raise Overspent(
                f"account {name!r} has no δ of {float(delta):.3g} left for values nobody declared"
            )
        if type(cost) is not type(account.allowance):
            raise BudgetError(
                f"account {name!r} pays from {account.allowance}; a cost of {cost} is of another kind"
            )
        if cost.is_zero:
            raise BudgetError(f"account {name!r}: a debit must cost more than 0")
        remaining = account.remaining
        if not cost <= remaining:  # not `cost > remaining`: (ε, δ) pairs are only partly ordered
            short = [
                max(asked - left, Fraction(0))
                for asked, left in zip(cost.amounts, remaining.amounts, strict=True)
            ]
            raise Overspent(
                f"account {name!r} cannot pay: requested {spell(cost)}; remaining {spell(remaining)}; "
                f"short by {spell(type(cost)._make(short))}"
            )
        return delta

    def _take(self, event: Event, found: Mapping[str, Any]) -> None:
        kind = found["kind"]
        if (kind == "ledger") != (event.seq == 1):
            raise LedgerError("a ledger begins with its opening, and has only one")
        if kind == "ledger":
            require_format(found["format"])
            self.id = str(found["id"])
            self.key = hashlib.sha256(b"sources" + event.body.encode()).digest()
        elif kind == "open":
            self._open(found)
        elif kind == "debit":
            self._debit(event, found)
        elif kind == "answer":
            self._answer(event, found)
        elif kind == "source":
            for mark in found["marks"]:
                under = self.sources.setdefault(str(mark), [])
                under += [] if found["account"] in under else [str(found["account"])]
        elif kind == "fix":
            self._fix(found)
        elif kind == "reveal":
            account = self.account(found["account"])
            reveal = Reveal(str(found["reason"]), str(found["time"]))
            self.accounts[account.name] = replace(account, reveals=(*account.reveals, reveal))
        else:
            raise LedgerError(
                f"unknown kind of event {kind!r}; a newer version of discreet may have written it"
            )

    def _open(self, found: Mapping[str, Any]) -> None:
        name = str(found["account"])
        if name in self.accounts:
            raise LedgerError(f"account {name!r} is opened a second time")
        budget = finite_from_json(found["budget"])
        allowance = finite_from_json(found.get("allowance", found["budget"]))
        require_allowance(allowance, budget)
        self.accounts[name] = Account(
            name, budget, Unit.read(found["unit"]), str(found["time"]), allowance, type(allowance).zero()
        )
        self.entries[name] = {}

    def _debit(self, event: Event, found: Mapping[str, Any]) -> None:
        account, request = self.account(found["account"]), str(found["request"])
        if request in self.entries[account.name]:
            raise LedgerError(f"request {request!r} is debited a second time")
        cost = finite_from_json(found["cost"])
        entry = Entry(
            account.name, request, cost, dict(found["description"]), event.seq, event.hash, str(found["time"])
        )
        failed = account.failed + self.require_funds(account.name, cost, entry.description)
        self.entries[account.name][request] = entry
        self.accounts[account.name] = replace(account, spent=account.spent + cost, failed=failed)

    def _fix(self, found: Mapping[str, Any]) -> None:
        account, at_most = self.account(found["account"]), int(found["at most"])
        entry = self.entries[account.name].get(str(found["request"]))
        if not account.unit.is_open:
            raise LedgerError(f"the unit of account {account.name!r} is fixed a second time")
        if entry is None or entry.digest != digest(json.dumps([at_most]).encode()):
            raise LedgerError(f"at most {at_most} rows of a person is not what was chosen and paid for")
        self.accounts[account.name] = replace(account, unit=account.unit.fix(at_most), asked=account.unit)

    def _answer(self, event: Event, found: Mapping[str, Any]) -> None:
        account, request = self.account(found["account"]), str(found["request"])
        entry = self.entries[account.name].get(request)
        if entry is None:
            raise LedgerError(f"request {request!r} is answered, but was never debited")
        if entry.answered:
            raise LedgerError(f"request {request!r} is answered a second time")
        self.entries[account.name][request] = replace(
            entry, digest=str(found["payload"]), answer_seq=event.seq
        )


def describe_debit(entry: Entry) -> Debit:
    """One debit as a release lists it: with its day only, for a clock tells how long the one before took to count."""
    verb = str(entry.description.get("verb", ""))
    tables = len(entry.description.get("sets", ())) if verb == "measure" else 0
    return Debit(entry.request, entry.time[:10], verb, tables, entry.cost, entry.digest or "")


def _agree(entries: Sequence[Entry], mark: str) -> str:
    """What all debits were marked with; empty if they differ in it."""
    found = {str(entry.description.get(mark, "")) for entry in entries}
    return found.pop() if len(found) == 1 else ""


def require_format(version: object) -> None:
    """Refuse a ledger that a newer discreet has written: reading half of it could hide a debit."""
    if type(version) is not int or version < 1:
        raise LedgerError(f"the ledger format {version!r} is not a version number")
    if version > FORMAT:
        raise LedgerError(
            f"the ledger has format {version}; this version of discreet reads up to {FORMAT}: install a newer one"
        )


def write_amount(amount: Finite) -> dict[str, str]:
    """The exact JSON of an amount, checked to be read back to the last digit, today and by an auditor."""
    written = amount.to_json()
    try:
        same = budget_from_json(written) == amount
    except FormatError:
        same = False
    if not same:
        raise BudgetError(f"{spell(amount)} has too many digits for the ledger; round it up")
    return written
