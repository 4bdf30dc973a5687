"""The airlock: the one object that holds rows, and the one place where budget becomes answers.

`ask` keeps one order: check the query, debit the ledger durably, count and draw, store the answer, hand out the
stored bytes. Nothing is refunded, and nothing but stored bytes leaves.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn, Self

from discreet.core.book import Account
from discreet.core.counter import Counter, TrueCounts
from discreet.core.ledger import Ledger
from discreet.core.queries import Answer, Keeper, Query
from discreet.values.budget import Budget, Finite, Infinite
from discreet.values.errors import AirlockError
from discreet.values.measurement import Exact, Measurement
from discreet.values.schema import Schema
from discreet.values.schema.encoding import Encoding
from discreet.values.statement import Statement
from discreet.values.unit import Unit


class Airlock(Keeper):
    """Rows that answer only through noise that was paid for; `discreet.open_airlock` makes one."""

    __slots__ = (
        "_account", "_asked", "_close", "_ledger", "_marks", "_parent", "_process", "_schema", "_true_counts",
    )  # fmt: skip

    def __init__(
        self,
        counter: Counter,
        schema: Schema,
        ledger: Ledger,
        account: Account,
        close: Callable[[], None] | None = None,
    ) -> None:
        self._true_counts: TrueCounts | None = TrueCounts(counter, schema.sizes)
        self._schema = schema
        self._ledger = ledger
        self._account = account
        self._close = close or counter.close
        self._asked: list[str] = []
        self._process = os.getpid()
        self._parent: Airlock | None = None
        # What every debit says it was for, beside the query: tables of another schema are other answers.
        self._marks = {"schema": _digest(schema.to_json())}

    @property
    def schema(self) -> Schema:
        """The public declaration of what a row may hold."""
        return self._schema

    @property
    def unit(self) -> Unit:
        """What is protected: a row that is added or removed, or one that is replaced."""
        return self._account.unit

    @property
    def budget(self) -> Finite:
        """The whole budget of the account."""
        return self._account.budget

    @property
    def account(self) -> Account:
        """The account as the ledger has it now."""
        return self._ledger.account(self._account.name)

    @property
    def remaining(self) -> Finite:
        """What may still be spent."""
        return self._ledger.remaining(self._account.name)

    @property
    def loss(self) -> Budget:
        """The privacy loss so far; infinite once rows were revealed."""
        return self.account.loss

    def cost_of(self, request: str) -> Finite | None:
        """What a request has cost the account; None if it was never paid for."""
        found = (entry for entry in self._ledger.entries(self._account.name) if entry.request == request)
        return next((entry.cost for entry in found), None)

    @property
    def rows(self) -> int:
        """The number of rows, which is public only where rows are replaced; elsewhere measure the empty set."""
        if not self.unit.fixes_rows:
            raise AirlockError(
                "the number of rows is private under add-remove; measure the empty set () instead"
            )
        return self._open().counter.rows

    @property
    def asked(self) -> tuple[str, ...]:
        """The request ids that this airlock has answered, in order."""
        return tuple(self._asked)

    def ask(self, query: Query[Answer], *, request: str | None = None) -> Answer:
        """The answer to a query, debited before a row is counted; a repeated `request` id pays nothing."""
        rows = self._open()
        if query.unit != self.unit:
            raise AirlockError(f"this query is priced for {query.unit}, but the account protects {self.unit}")
        query.check(rows)
        name = request or f"once-{uuid.uuid4()}"
        entry = self._ledger.debit(self._account.name, name, query.cost, {**query.describe(), **self._marks})
        stored = entry.answer
        if stored is None:
            stored = self._ledger.answer(entry, json.dumps(query.draw(rows)).encode())
        self._asked.append(name)
        return query.read(json.loads(stored))

    def check(self, sets: Sequence[Sequence[str]]) -> None:
        """Refuse tables that `measure` would refuse for their size; for free, and without a look at the rows."""
        self._open().counter.check(sets)

    def reveal(self, sets: Sequence[Sequence[str]], *, reason: str) -> list[Measurement]:
        """The exact tables, without privacy: from now on the account and every report say that ε is infinite."""
        counter = self._open().counter
        asked = [tuple(members) for members in sets]
        counter.check(asked)
        self._ledger.mark_revealed(self._account.name, reason)
        return [Measurement(table, Exact(), self.unit, Infinite()) for table in counter.count(asked)]

    def encode(self, encoding: Encoding) -> Airlock:
        """The same rows behind the attributes of an encoding's view, on the same account; close it by itself.

        A derived attribute is a function of one declared attribute, so no sensitivity changes.
        """
        counter = self._open().counter.encode(encoding)
        view = Airlock(counter, encoding.view, self._ledger, self._account)
        view._parent, view._asked = self, self._asked
        # What tells two views of the same rows apart: each derived attribute, its source and its codes.
        derived = [[found.name, found.source, list(found.codes)] for found in encoding.derived]
        shown = [self._marks.get("view"), encoding.kind, encoding.view.to_json(), derived]
        view._marks = {**self._marks, "encoding": encoding.kind, "view": _digest(shown)}
        return view

    @contextmanager
    def mark(self, purpose: str) -> Iterator[None]:
        """Let every debit meanwhile say what it was for; within another mark the outer one stands.

        A repeated request id with another purpose is another query, and refused.
        """
        before = self._marks
        self._marks = {"purpose": purpose, **before}
        try:
            yield
        finally:
            self._marks = before

    def toss(self, names: Sequence[str], *, request: str | None = None) -> str:
        """One of these names by chance, without a look at the rows; a request id always gets the same one."""
        if request is None:
            return secrets.choice(names)
        return names[int.from_bytes(hashlib.sha256(request.encode()).digest()) % len(names)]

    def statement(self, since: int | None = None) -> Statement:
        """What a release says about privacy now; with `since`, as of the last answer, on all asked from there on."""
        requests = [] if since is None else self._asked[since:]
        # Public under such a unit, and a reader needs it to follow an estimate that started from it.
        rows = self.rows if self.unit.fixes_rows else None
        return self._ledger.state(self._account.name, requests, rows)

    def close(self) -> None:
        """Let go of the rows; the ledger keeps what was spent."""
        if self._true_counts is not None and self._process == os.getpid():
            self._close()
        self._true_counts = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._true_counts is None else "open"
        return f"<Airlock {self._account.name!r}, {state}, {self.budget} {self.unit}, {len(self._schema)} attributes>"

    def __reduce_ex__(self, *asked: object) -> NoReturn:
        raise AirlockError("an airlock cannot be copied or pickled: its rows must not leave it")

    __getstate__ = __copy__ = __deepcopy__ = __reduce_ex__

    def _open(self) -> TrueCounts:
        if self._process != os.getpid():
            raise AirlockError("this airlock belongs to another process; open one in this process")
        if self._true_counts is None:
            raise AirlockError("the airlock is closed; open it again")
        if self._parent is not None:
            self._parent._open()  # closed with the rows that it shows
        return self._true_counts


def _digest(document: object) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
