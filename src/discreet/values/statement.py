"""The privacy statement of a release: the account that paid for it, each debit, and the head of the ledger then."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from discreet.values.budget import Budget, Finite, budget_from_json, finite_from_json
from discreet.values.errors import BudgetError, FormatError
from discreet.values.text import list_some, show
from discreet.values.unit import Unit

HASH = re.compile(r"[0-9a-f]{64}")
MOST_TEXT = 2000


@dataclass(frozen=True, slots=True)
class Debit:
    """One debit as a release lists it; the digest is that of the stored answer, so nobody can swap the answer later."""

    request: str
    time: str
    verb: str
    tables: int
    """How many noisy tables the answer holds."""
    cost: Finite
    digest: str

    def to_json(self) -> dict[str, Any]:
        """The debit as plain values."""
        return {
            "request": self.request,
            "time": self.time,
            "verb": self.verb,
            "tables": self.tables,
            "cost": self.cost.to_json(),
            "digest": self.digest,
        }

    @classmethod
    def from_json(cls, document: object) -> Debit:
        """The debit that `to_json` wrote; anything else is refused."""
        found = _require("a spend", document, {"request", "time", "verb", "tables", "cost", "digest"})
        texts = {
            name: _read_text(f"the {name} of a spend", found[name]) for name in ("request", "time", "verb")
        }
        tables = _read_count("the tables of a spend", found["tables"])
        digest = found["digest"]
        if digest != "" and not (isinstance(digest, str) and HASH.fullmatch(digest)):
            raise FormatError(f"the digest of a spend has 64 hexadecimal digits, unlike {show(digest)}")
        return cls(**texts, tables=tables, cost=_read_finite(found["cost"]), digest=digest)


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
            "ledger": {
                "id": self.ledger,
                "durable": self.durable,
                "events": self.events,
                "head": self.head,
            },
            **({} if self.rows is None else {"rows": self.rows}),
        }

    @classmethod
    def from_json(cls, document: object) -> Statement:
        """The statement that `to_json` wrote; whatever else stood there would be published without a look."""
        keys = {"account", "unit", "budget", "spent", "loss", "schema", "purpose", "spends", "ledger"}
        found = _require("the statement", document, keys, optional={"rows"})
        book = _require("the ledger", found["ledger"], {"id", "durable", "events", "head"})
        if not isinstance(book["durable"], bool):
            raise FormatError(f"a ledger is durable or not, not {show(book['durable'])}")
        if not isinstance(book["head"], str) or not HASH.fullmatch(book["head"]):
            raise FormatError(f"the head of a ledger has 64 hexadecimal digits, unlike {show(book['head'])}")
        if not isinstance(found["spends"], list):
            raise FormatError(f"the spends of a statement are a list, not {show(found['spends'])}")
        try:
            unit, loss = Unit(found["unit"]), budget_from_json(found["loss"])
        except BudgetError as error:
            raise FormatError(str(error)) from None
        if "rows" in found and not unit.fixes_rows:
            raise FormatError(
                "the number of rows is private under add-remove and does not belong in a release"
            )
        return cls(
            _read_text("an account", found["account"]),
            unit,
            _read_finite(found["budget"]),
            _read_finite(found["spent"]),
            loss,
            _read_text("the schema's digest", found["schema"]),
            _read_text("the purpose", found["purpose"]),
            tuple(map(Debit.from_json, found["spends"])),
            _read_text("a ledger's id", book["id"]),
            book["durable"],
            _read_count("the events of a ledger", book["events"]),
            book["head"],
            _read_count("the rows", found["rows"]) if "rows" in found else None,
        )


def _require(
    what: str, document: object, keys: set[str], optional: frozenset[str] | set[str] = frozenset()
) -> Mapping[str, Any]:
    if not isinstance(document, Mapping):
        raise FormatError(f"{what} has the keys {list_some(sorted(keys))}, unlike {show(document)}")
    strange = [key for key in document if key not in keys | optional]
    if strange:
        raise FormatError(
            f"{what} has the key {show(strange[0])}; known are {list_some(sorted(keys | optional))}"
        )
    missing = sorted(keys - set(document))
    if missing:
        raise FormatError(f"{what} lacks the key {missing[0]!r}")
    return document


def _read_text(what: str, value: object) -> str:
    if not isinstance(value, str) or len(value) > MOST_TEXT or not value.isprintable():
        raise FormatError(f"{what} is printable text of at most {MOST_TEXT} characters, not {show(value)}")
    return value


def _read_count(what: str, value: object) -> int:
    if type(value) is not int or not 0 <= value < 2**63:
        raise FormatError(f"{what} is a whole number of at least 0, not {show(value)}")
    return value


def _read_finite(document: object) -> Finite:
    try:
        return finite_from_json(document)
    except BudgetError as error:
        raise FormatError(str(error)) from None
