"""A stage on which a learner runs without rows and without a budget.

It learns from a made-up table, whose rows are spread evenly over all cells: what depends on the real rows, such as the
shares of a learner that looks at them first, is only an example.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from fractions import Fraction
from typing import Any, Self

import numpy as np

from discreet.core.mechanism import AdditiveNoise, Noise
from discreet.papers.subsample import Subsampling, price_tables
from discreet.values.budget import ApproxDP, Finite, Unit
from discreet.values.errors import AirlockError, BudgetError
from discreet.values.measurement import Measurement
from discreet.values.schema import Schema
from discreet.values.schema.encoding import Encoding
from discreet.values.table import Table, require_cells


class Rehearsal:
    """What a learner sees of an airlock, with made-up answers; it holds no rows, draws nothing and pays nothing."""

    def __init__(self, schema: Schema, unit: Unit | str, budget: Finite, rows: int) -> None:
        self.schema = schema
        self.unit = Unit(unit)
        self.budget = budget
        self.asked: tuple[str, ...] = ()
        self.chosen: list[Finite] = []
        """What each choice would cost; views through an encoding add to the same list."""
        self._rows = rows

    @property
    def rows(self) -> int:
        """The number of rows, where it is public."""
        if self.unit is not Unit.REPLACE_ONE:
            raise AirlockError("the number of rows is private under add-remove")
        return self._rows

    @property
    def remaining(self) -> Finite:
        """All of it: nothing is spent here."""
        return self.budget

    def read_spend(self, spend: Any) -> Finite:
        """An amount in the kind of the budget."""
        if isinstance(spend, type(self.budget)):
            return spend
        if isinstance(spend, Finite):
            raise BudgetError(f"a spend of {spend} is of another kind than {self.budget}")
        return ApproxDP(spend, 0) if isinstance(self.budget, ApproxDP) else type(self.budget)(spend)

    def check(self, sets: Sequence[Sequence[str]]) -> None:
        """Refuse tables that no counter would hold."""
        for members in sets:
            require_cells(
                f"the table over ({', '.join(members)})", (self.schema[name].size for name in members)
            )

    def measure(
        self,
        sets: Sequence[Sequence[str]],
        *,
        spend: Any,
        noise: Noise | str = Noise.LAPLACE,
        shares: Sequence[Any] | None = None,
        sampling: Subsampling | None = None,
        request: str | None = None,
    ) -> list[Measurement]:
        """The tables that `answer` has for these sets, calibrated as the airlock would."""
        cost = self.read_spend(spend)
        asked = [tuple(members) for members in sets]
        priced = price_tables(asked, cost, unit=self.unit, noise=noise, shares=shares, sampling=sampling)
        found = self.answer(asked, *priced)
        self.asked += (request or "",)
        return found

    def answer(
        self,
        sets: Sequence[tuple[str, ...]],
        mechanisms: Sequence[AdditiveNoise],
        costs: Sequence[Finite],
        rate: Fraction,
    ) -> list[Measurement]:
        """Even tables, without noise in the counts but with its law beside them."""
        found = []
        for members, mechanism, cost in zip(sets, mechanisms, costs, strict=True):
            shape = [self.schema[name].size for name in members]
            cells = require_cells(f"the table over ({', '.join(members)})", shape)
            counts = np.full(shape, round(self._rows * float(rate) / cells), dtype=np.int64)
            charged = json.dumps(cost.to_json())
            found.append(Measurement(Table(members, counts), mechanism.law, self.unit.value, charged, rate))
        return found

    def select(
        self,
        candidates: Sequence[Sequence[str]],
        score: Any,
        *,
        spend: Any,
        request: str | None = None,
        **options: Any,
    ) -> int:
        """The first candidate that is a set at all: which one it will be, only rows can tell."""
        self.chosen.append(self.read_spend(spend))
        self.asked += (request or "",)
        return next((i for i, found in enumerate(candidates) if found), 0)

    def encode(self, encoding: Encoding) -> Self:
        """The same stage behind the attributes of an encoding."""
        view = copy(self)
        view.schema = encoding.view
        return view

    def mark(self, purpose: str) -> AbstractContextManager[None]:
        """Nothing is debited that could be marked."""
        return nullcontext()

    def toss(self, names: Sequence[str], *, request: str | None = None) -> str:
        """The first name, as an example."""
        return names[0]

    def close(self) -> None:
        """Nothing is held here."""

    def statement(self, since: int | None = None) -> Mapping[str, Any]:
        """Nothing was promised."""
        return {}
