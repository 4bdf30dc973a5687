"""The airlock: the one object that holds rows, and the one place where budget becomes answers.

Every verb keeps the same order: validate the question, debit the ledger durably, count and draw, store the answer,
hand out the stored bytes. Nothing is refunded, and nothing but stored bytes leaves.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn, Self

from discreet.core.ledger import Account, Anchor, Ledger, open_ledger
from discreet.core.mechanism import Noise, Selection
from discreet.core.queries import Question, ask_choice, ask_draw, ask_linear, ask_sums, ask_tables
from discreet.core.scores import Score
from discreet.core.scoring import Scorer
from discreet.core.statement import make_statement
from discreet.papers.coefficients import Coefficients
from discreet.papers.grid_draws import PrivateDraw
from discreet.papers.linear import ProductStatistics
from discreet.papers.subsample import Subsampling
from discreet.papers.sums import BoundedColumn
from discreet.rows.opening import Counter, open_counter
from discreet.values.budget import ApproxDP, Budget, Finite, Unit, read_budget
from discreet.values.errors import AirlockError, BudgetError
from discreet.values.exact import Number
from discreet.values.law import Exact
from discreet.values.measurement import Measurement, SumMeasurement
from discreet.values.schema import Schema
from discreet.values.schema.encoding import Encoding

Spend = Finite | Number
"""An amount in the kind of the account's budget, or the plain number of it: "1/2", 1, Fraction(1, 3)."""


class Airlock:
    """Rows that answer only through noise that was paid for; `open` makes one, `close` lets go of the rows."""

    __slots__ = (
        "_account",
        "_asked",
        "_counter",
        "_ledger",
        "_marks",
        "_parent",
        "_process",
        "_schema",
        "_scorer",
    )

    def __init__(self, counter: Counter, schema: Schema, ledger: Ledger, account: Account) -> None:
        self._counter: Counter | None = counter
        self._schema = schema
        self._ledger = ledger
        self._account = account
        self._scorer = Scorer()
        self._asked: list[str] = []
        self._process = os.getpid()
        self._parent: Airlock | None = None
        # What every debit says it was for, beside the question: tables of another schema are other answers.
        self._marks = {
            "schema": hashlib.sha256(json.dumps(schema.to_json(), sort_keys=True).encode()).hexdigest()
        }

    @classmethod
    def open(
        cls,
        data: Any,
        schema: Schema,
        *,
        budget: Finite | str | None = None,
        unit: Unit | str = Unit.ADD_REMOVE,
        ledger: Ledger | str | os.PathLike[str] | None = None,
        account: str | None = None,
        memory: int | str | None = None,
        weight: str | None = None,
        numbers: Sequence[str] = (),
    ) -> Self:
        """Read and check every row, and open the account that pays for what is asked of them.

        `ledger` is an open ledger or the place of an existing one; without it the spends are kept in memory only,
        which is for tests and simulations. `account` names the dataset in the ledger (the file's name by default);
        `budget` may be left out if the account is open. The others are those of `open_counter`.
        """
        wanted = read_budget(budget) if isinstance(budget, str) else budget
        book = _open_book(ledger)
        name = account or _name_data(data, durable=book.durable)
        known = {found.name: found for found in book.accounts()}
        if wanted is None:
            if name not in known:
                raise BudgetError(f"account {name!r} is not open in the ledger yet; say which budget it gets")
            if known[name].unit != Unit(unit):
                raise BudgetError(f"account {name!r} protects {known[name].unit}, not {Unit(unit)}")
            wanted = known[name].budget
        # The rows come first, so that bad ones open no account.
        counter = open_counter(data, schema, memory=memory, weight=weight, numbers=numbers)
        return cls(counter, schema, book, book.open_account(name, wanted, unit))

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

    @property
    def durable(self) -> bool:
        """Whether spends survive this process; a report on a release says so if not."""
        return self._ledger.durable

    @property
    def rows(self) -> int:
        """The number of rows, which is public only where rows are replaced; elsewhere measure the empty set."""
        if self.unit is not Unit.REPLACE_ONE:
            raise AirlockError(
                "the number of rows is private under add-remove; measure the empty set () instead"
            )
        return self._open().rows

    @property
    def asked(self) -> tuple[str, ...]:
        """The request ids that this airlock has answered, in order."""
        return tuple(self._asked)

    def statement(self, since: int | None = None) -> dict[str, Any]:
        """What a release says about privacy now; with `since`, as of the last answer, on all asked from there on."""
        requests = [] if since is None else self._asked[since:]
        found = make_statement(self._ledger, self._account.name, requests)
        # Public under this unit, and a reader needs it to follow an estimate that started from it.
        return {**found, "rows": self.rows} if self.unit is Unit.REPLACE_ONE else found

    def anchor(self) -> Anchor:
        """The head of the ledger, to be written into every release."""
        return self._ledger.head()

    def read_spend(self, spend: Spend) -> Finite:
        """An amount in the kind of the account's budget; a plain number under (ε, δ) is a pure ε."""
        if isinstance(spend, type(self.budget)):
            return spend
        if isinstance(spend, Finite):
            raise BudgetError(f"the account's budget is {self.budget}; a spend of {spend} is of another kind")
        if isinstance(self.budget, ApproxDP):
            return ApproxDP(spend, 0)
        return type(self.budget)(spend)

    def check(self, sets: Sequence[Sequence[str]]) -> None:
        """Refuse tables that `measure` would refuse for their size; for free, and without a look at the rows."""
        self._open().check(sets)

    def measure(
        self,
        sets: Sequence[Sequence[str]],
        *,
        spend: Spend,
        noise: Noise | str = Noise.LAPLACE,
        shares: Sequence[Number] | None = None,
        sampling: Subsampling | None = None,
        request: str | None = None,
    ) -> list[Measurement]:
        """One noisy table of counts for each attribute set; together they cost exactly `spend`.

        `shares` weighs the tables. With `sampling`, the tables count a secret random sample, and the noise is that of
        the larger budget which sampling affords. A repeated `request` id gets the same bytes and pays nothing.
        """
        question = ask_tables(self._open(), self.unit, sets, self.read_spend(spend), noise, shares, sampling)
        return [Measurement.from_json(document) for document in self._spend(question, request)]

    def measure_sums(
        self,
        columns: Sequence[BoundedColumn],
        *,
        spend: Spend,
        noise: Noise | str = Noise.LAPLACE,
        shares: Sequence[Number] | None = None,
        request: str | None = None,
    ) -> list[SumMeasurement]:
        """The noisy sum of each number column, clipped to its public bounds; together they cost exactly `spend`."""
        question = ask_sums(self._open(), self.unit, columns, self.read_spend(spend), noise, shares)
        return [SumMeasurement.from_json(document) for document in self._spend(question, request)]

    def measure_linear(
        self,
        statistics: ProductStatistics,
        *,
        spend: Spend,
        sensitivity: int | None = None,
        request: str | None = None,
    ) -> Coefficients:
        """Noisy integer linear statistics of the counts, with one discrete Laplace noise calibrated to all together."""
        question = ask_linear(
            self._open(), self.unit, statistics, self.read_spend(spend), sensitivity, self._schema.sizes
        )
        (document,) = self._spend(question, request)
        return Coefficients.from_json(document)

    def draw(self, specification: PrivateDraw, *, request: str | None = None) -> list[Any]:
        """One private draw at the cost that its specification states, as plain values."""
        question = ask_draw(self._open(), self.unit, specification, self.read_spend(specification.cost))
        return self._spend(question, request)

    def select(
        self,
        candidates: Sequence[Sequence[str]],
        score: Score,
        *,
        spend: Spend,
        selection: Selection | str = Selection.PERMUTE_AND_FLIP,
        request: str | None = None,
    ) -> int:
        """The index of one candidate, chosen by a score of its table of counts (parents first, the child last)."""
        cost, sizes = self.read_spend(spend), self._schema.sizes
        question = ask_choice(
            self._open(), self.unit, candidates, score, cost, selection, sizes, self._scorer
        )
        (index,) = self._spend(question, request)
        return int(index)

    def encode(self, encoding: Encoding) -> Airlock:
        """The same rows behind the attributes of an encoding's view, on the same account; close it by itself.

        A derived attribute is a function of one declared attribute, so no sensitivity changes.
        """
        view = Airlock(self._open().encode(encoding), encoding.view, self._ledger, self._account)
        view._parent, view._asked = self, self._asked
        view._marks = {**self._marks, "encoding": encoding.kind, "view": self._digest_view(encoding)}
        return view

    @contextmanager
    def mark(self, purpose: str) -> Iterator[None]:
        """Let every debit meanwhile say what it was for; within another mark the outer one stands.

        A repeated request id with another purpose is another question, and refused.
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

    def reveal(self, sets: Sequence[Sequence[str]], *, reason: str) -> list[Measurement]:
        """The exact tables, without privacy: from now on the account and every report say that ε is infinite."""
        counter = self._open()
        asked = [tuple(members) for members in sets]
        counter.check(asked)
        self._ledger.mark_revealed(self._account.name, reason)
        infinite = json.dumps({"epsilon": "infinite"})
        return [Measurement(table, Exact(), self.unit.value, infinite) for table in counter.count(asked)]

    def close(self) -> None:
        """Let go of the rows; the ledger stays as it is."""
        if self._counter is not None and self._process == os.getpid():
            self._counter.close()
        self._counter = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._counter is None else "open"
        return f"<Airlock {self._account.name!r}, {state}, {self.budget} {self.unit}, {len(self._schema)} attributes>"

    def __reduce_ex__(self, *asked: object) -> NoReturn:
        raise AirlockError("an airlock cannot be copied or pickled: it would take the rows out of it")

    __getstate__ = __copy__ = __deepcopy__ = __reduce_ex__

    def _open(self) -> Counter:
        if self._process != os.getpid():
            raise AirlockError("this airlock belongs to another process; a forked child must open its own")
        if self._counter is None:
            raise AirlockError("the airlock is closed; open the data again")
        if self._parent is not None:
            self._parent._open()  # closed with the rows that it shows
        return self._counter

    def _digest_view(self, encoding: Encoding) -> str:
        """What tells two views of the same rows apart: each derived attribute, its source and its codes."""
        derived = [[found.name, found.source, list(found.codes)] for found in encoding.derived]
        view = [self._marks.get("view"), encoding.kind, encoding.view.to_json(), derived]
        return hashlib.sha256(json.dumps(view, sort_keys=True).encode()).hexdigest()

    def _spend(self, question: Question, request: str | None) -> list[Any]:
        """Debit, draw and store; what is returned is read back from the stored bytes, the first time as every time."""
        name = request or f"once-{uuid.uuid4()}"
        entry = self._ledger.debit(
            self._account.name, name, question.cost, {**question.description, **self._marks}
        )
        if entry.answer is None:
            stored = self._ledger.answer(entry, json.dumps(question.draw()).encode())
        else:
            stored = entry.answer
        self._asked.append(name)
        answers: list[Any] = json.loads(stored)
        return answers


def _open_book(ledger: Ledger | str | os.PathLike[str] | None) -> Ledger:
    if ledger is None:
        from discreet.stores.memory import MemoryLedger

        return MemoryLedger()
    return ledger if isinstance(ledger, Ledger) else open_ledger(ledger)


def _name_data(data: Any, *, durable: bool) -> str:
    if isinstance(data, str | os.PathLike):
        return Path(os.fspath(data).rpartition("::")[2] or os.fspath(data)).name
    if durable:
        raise AirlockError("data that is not a file needs a name in the ledger: give `account`")
    return "simulation"
