"""The privacy statement of a release: the account that paid for it, each debit, and the head of the ledger then."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from discreet.values.budget import (
    Budget,
    Finite,
    Infinite,
    budget_from_json,
    finite_from_json,
    require_allowance,
)
from discreet.values.errors import FormatError
from discreet.values.measurement import read_unit
from discreet.values.text import require_keys, show
from discreet.values.unit import Unit

HASH = re.compile(r"[0-9a-f]{64}")
DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
MOST_TEXT = 2000


@dataclass(frozen=True, slots=True)
class Debit:
    """One debit as a release lists it; the digest is that of the stored answer, so nobody can swap the answer later."""

    request: str
    day: str
    """In UTC, as 2026-11-17; never more exact."""
    verb: str
    tables: int
    """How many noisy tables the answer holds."""
    cost: Finite
    digest: str

    def to_json(self) -> dict[str, Any]:
        """The debit as plain values."""
        return {
            "request": self.request,
            "day": self.day,
            "verb": self.verb,
            "tables": self.tables,
            "cost": self.cost.to_json(),
            "digest": self.digest,
        }

    @classmethod
    def from_json(cls, document: object) -> Debit:
        """The debit that `to_json` wrote; anything else is refused."""
        found = require_keys(document, "a debit", ("request", "day", "verb", "tables", "cost", "digest"))
        texts = {name: _read_text(f"the {name} of a debit", found[name]) for name in ("request", "verb")}
        if not (isinstance(found["day"], str) and DAY.fullmatch(found["day"])):
            raise FormatError(f"the day of a debit is written 2026-11-17, not {show(found['day'])}")
        tables = _read_count("the tables of a debit", found["tables"])
        digest = found["digest"]
        if digest != "" and not (isinstance(digest, str) and HASH.fullmatch(digest)):
            raise FormatError(f"the digest of a debit has 64 hexadecimal digits, unlike {show(digest)}")
        cost = finite_from_json(found["cost"])
        return cls(texts["request"], found["day"], texts["verb"], tables, cost, digest)


@dataclass(frozen=True, slots=True)
class Statement:
    """The account as it stood when the release's last answer had been stored."""

    account: str
    unit: Unit
    budget: Finite
    spent: Finite
    loss: Budget
    """What was spent, or infinite once rows were looked at without noise."""
    schema: str
    """The digest of the schema that every debit was made with; empty if they differ."""
    purpose: str
    """The digest of how the learner was called; empty if the debits differ in it."""
    debits: tuple[Debit, ...]
    ledger: str
    """The ledger's own random name."""
    durable: bool
    events: int
    head: str
    rows: int | None = None
    """The number of rows, where the unit makes it public."""
    allowance: Finite | None = None
    """What spends are counted in and may add up to, where that is not the budget: the ρ that an (ε, δ) buys."""

    def __post_init__(self) -> None:
        if self.allowance == self.budget:
            object.__setattr__(self, "allowance", None)
        elif self.allowance is not None:
            require_allowance(self.allowance, self.budget)

    @property
    def whole(self) -> Finite:
        """All that may ever be spent, in the kind of the spends."""
        return self.allowance or self.budget

    @property
    def promised(self) -> Budget:
        """What the account may ever lose: its whole budget, or everything once rows were looked at without noise."""
        return self.loss if isinstance(self.loss, Infinite) else self.budget

    def to_json(self) -> dict[str, Any]:
        """The statement as plain values."""
        return {
            "account": self.account,
            "unit": self.unit.value,
            "budget": self.budget.to_json(),
            "spent": self.spent.to_json(),
            "loss": self.loss.to_json(),
            "schema": self.schema,
            "purpose": self.purpose,
            "spends": [debit.to_json() for debit in self.debits],
            "ledger": {"id": self.ledger, "durable": self.durable, "events": self.events, "head": self.head},
            **({} if self.rows is None else {"rows": self.rows}),
            **({} if self.allowance is None else {"allowance": self.allowance.to_json()}),
        }

    @classmethod
    def from_json(cls, document: object) -> Statement:
        """The statement that `to_json` wrote; whatever else stood there would be published without a look."""
        keys = ("account", "unit", "budget", "spent", "loss", "schema", "purpose", "spends", "ledger")
        found = require_keys(document, "the statement", keys, ("rows", "allowance"))
        book = require_keys(found["ledger"], "the ledger", ("id", "durable", "events", "head"))
        if not isinstance(book["durable"], bool):
            raise FormatError(f"'durable' must be true or false, not {show(book['durable'])}")
        if not isinstance(book["head"], str) or not HASH.fullmatch(book["head"]):
            raise FormatError(
                f"the head of a ledger must have 64 hexadecimal digits, not {show(book['head'])}"
            )
        if not isinstance(found["spends"], list):
            raise FormatError(f"the spends of a statement must be a list, not {show(found['spends'])}")
        unit, loss = read_unit(found["unit"]), budget_from_json(found["loss"])
        if "rows" in found and not unit.fixes_rows:
            raise FormatError("the number of rows is private under add-remove; a release must not state it")
        return cls(
            _read_text("an account", found["account"]),
            unit,
            finite_from_json(found["budget"]),
            finite_from_json(found["spent"]),
            loss,
            _read_text("the schema's digest", found["schema"]),
            _read_text("the purpose", found["purpose"]),
            tuple(map(Debit.from_json, found["spends"])),
            _read_text("a ledger's id", book["id"]),
            book["durable"],
            _read_count("the events of a ledger", book["events"]),
            book["head"],
            _read_count("the rows", found["rows"]) if "rows" in found else None,
            finite_from_json(found["allowance"]) if "allowance" in found else None,
        )


def _read_text(what: str, value: object) -> str:
    if not isinstance(value, str) or len(value) > MOST_TEXT or not value.isprintable():
        raise FormatError(
            f"{what} must be printable text of at most {MOST_TEXT} characters, not {show(value)}"
        )
    return value


def _read_count(what: str, value: object) -> int:
    if type(value) is not int or not 0 <= value < 2**63:
        raise FormatError(f"{what} must be a whole number, 0 or more, not {show(value)}")
    return value
