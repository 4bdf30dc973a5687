"""A stage on which a learner runs without rows and without a budget.

It learns from a made-up table, whose rows are spread evenly over all cells: what depends on the real rows, such as the
shares of a learner that looks at them first, is only an example.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np

from discreet.core.counter import cut_families
from discreet.core.queries import Answer, Choice, Keeper, Query, Tables
from discreet.core.scores import ModelError
from discreet.values.budget import Finite
from discreet.values.errors import AirlockError
from discreet.values.measurement import Measurement
from discreet.values.schema import Schema
from discreet.values.schema.encoding import Encoding
from discreet.values.statement import Statement
from discreet.values.table import CountedTables, Table, count_cells, require_cells
from discreet.values.unit import Unit

SELDOM = 1.5
"""Few tables are further than this from a model, in L1 of at most 2, as a part of the rows."""


@runtime_checkable
class Rehearsed(Protocol):
    """A query of a paper's that can make up its own answer."""

    def rehearse(self, rows: int, sizes: Mapping[str, int]) -> list[Any]:
        """What it might store for so many rows, spread evenly."""
        ...


class Rehearsal(Keeper):
    """Answers queries with made-up tables; it holds no rows, draws nothing and pays nothing."""

    def __init__(self, schema: Schema, unit: Unit | str, budget: Finite, rows: int) -> None:
        self._schema, self._unit, self._budget, self._rows = schema, Unit.read(unit), budget, rows
        self._asked: list[str] = []
        self.chosen: list[Finite] = []
        """What each choice would cost; views through an encoding add to the same list."""
        self.passes: list[int] = []
        """How many tables each pass over rows that are not held in memory would count; views add to the same list."""
        self.looked: list[tuple[int, int]] = []
        """How many candidates each choice would look at, and their cells; views add to the same list."""
        self._known = CountedTables(schema.sizes)
        self._scored: dict[tuple[type, str], set[tuple[str, ...]]] = {}

    @property
    def schema(self) -> Schema:
        """The public declaration of what a row may hold."""
        return self._schema

    @property
    def unit(self) -> Unit:
        """What would be protected."""
        return self._unit

    @property
    def budget(self) -> Finite:
        """The whole budget; nothing of it is spent here."""
        return self._budget

    @property
    def rows(self) -> int:
        """The number of rows, where it is public."""
        if not self.unit.fixes_rows:
            raise AirlockError("the number of rows is private under add-remove")
        return self._rows

    @property
    def asked(self) -> tuple[str, ...]:
        """The request ids that were answered, in order."""
        return tuple(self._asked)

    def ask(self, query: Query[Answer], *, request: str | None = None) -> Answer:
        """What `answer` has for a query, read as the airlock's stored answers are."""
        found = query.read(self.answer(query, request))
        self._asked.append(request or "")
        return found

    def answer(self, query: Query[Any], request: str | None) -> list[Any]:
        """Rows spread evenly over all cells; the first candidate that is a set at all."""
        match query:
            case Tables():
                self._count([query.sets])
                return [table.to_json() for table in self._spread(query)]
            case Choice():
                self.chosen.append(query.cost)
                cells = (count_cells(self.schema[name].size for name in found) for found in query.candidates)
                self.looked.append((len(query.candidates), sum(cells)))
                self._count(self._cut(query))
                return [
                    next(
                        (i for i, found in enumerate(query.candidates) if found and self._finds(query, i)), 0
                    )
                ]
        if isinstance(query, Rehearsed):
            return query.rehearse(self._rows, self.schema.sizes)
        raise AirlockError(f"a {type(query).__name__} cannot be rehearsed without rows")

    def check(self, sets: Sequence[Sequence[str]]) -> None:
        """Refuse tables that no counter would hold."""
        for members in sets:
            require_cells(
                f"the table over ({', '.join(members)})", (self.schema[name].size for name in members)
            )

    def encode(self, encoding: Encoding) -> Self:
        """The same stage behind the attributes of an encoding."""
        view = copy(self)
        view._schema = encoding.view
        view._known, view._scored = CountedTables(encoding.view.sizes), {}
        return view

    def mark(self, purpose: str) -> AbstractContextManager[None]:
        """Nothing is debited that could be marked."""
        return nullcontext()

    def toss(self, names: Sequence[str], *, request: str | None = None) -> str:
        """The first name, as an example."""
        return names[0]

    def statement(self, since: int | None = None) -> Statement | None:
        """Nothing was promised."""
        return None

    def close(self) -> None:
        """Nothing is held here."""

    def _finds(self, query: Choice, i: int) -> bool:
        """Whether tables as they mostly are would be chosen: they are not further from a model than this."""
        limit = SELDOM * self._rows * self.unit.grain
        return not isinstance(query.score, ModelError) or query.score.handicaps[i] <= limit

    def _count(self, requests: Iterable[Sequence[tuple[str, ...]]]) -> None:
        """Note the passes that an engine would need for these requests."""
        for sets in requests:
            new = self._known.find_new(sets)
            if any(new):  # the number of rows is known from the first pass
                self.passes.append(len(new))
            self._known.add(new)

    def _cut(self, query: Choice) -> Iterable[Sequence[tuple[str, ...]]]:
        """The requests in which the core counts the candidates: as many cells at a time as it holds, each only once."""
        if query.score.has_model:
            return [query.candidates]
        scored = self._scored.setdefault((type(query.score), query.score.name), set())
        new = [family for family in dict.fromkeys(query.candidates) if family not in scored]
        scored.update(new)
        return cut_families(new, self._schema.sizes)

    def _spread(self, query: Tables) -> list[Measurement]:
        found = []
        for members, mechanism, charge in zip(query.sets, query.mechanisms, query.charges, strict=True):
            shape = [self.schema[name].size for name in members]
            cells = require_cells(f"the table over ({', '.join(members)})", shape)
            spread = round(self._rows * self.unit.grain * float(query.rate) / cells)
            counts = np.full(shape, spread, dtype=np.int64)
            found.append(Measurement(Table(members, counts), mechanism.law, self.unit, charge, query.rate))
        return found
