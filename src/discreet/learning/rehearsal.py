"""A learner run without rows and without a budget: what it would ask, with which noise, and how wrong it would be.

It learns from a made-up table, whose rows are spread evenly over all cells: what depends on the real rows, such as the
shares of a learner that looks at them first, is only an example.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np

from discreet.learning.publication import choose_learner, find_learner
from discreet.models.network import Network
from discreet.privacy.budget import ApproxDP, Finite, Unit, budget_from_json
from discreet.privacy.mechanism import AdditiveNoise, Noise
from discreet.privacy.subsample import Subsampling, price_tables
from discreet.vocabulary.encoding import Encoding
from discreet.vocabulary.errors import AirlockError, BudgetError, DataError
from discreet.vocabulary.graph import DAG
from discreet.vocabulary.measurement import Measurement
from discreet.vocabulary.schema import Schema
from discreet.vocabulary.table import Table, require_cells

CLOSING = "nothing was read and nothing was spent"


class Rehearsal:
    """What a learner sees of an airlock, with made-up answers; it holds no rows, draws nothing and pays nothing."""

    def __init__(self, schema: Schema, unit: Unit | str, budget: Finite, rows: int) -> None:
        self.schema = schema
        self.unit = Unit(unit)
        self.budget = budget
        self.asked: tuple[str, ...] = ()
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
        """The first candidate: which one it will be, only rows can tell."""
        self.read_spend(spend)
        self.asked += (request or "",)
        return 0

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


@dataclass(frozen=True, slots=True, eq=False)
class Preview:
    """What a learner would make of made-up rows."""

    network: Network
    rows: int

    def explain(self) -> str:
        """What would be measured, with which noise, and how wrong each attribute's table would be."""
        known = self.network.provenance
        assert known is not None
        whole = budget_from_json(json.loads(known.cost))
        if known.learner == "planned" and isinstance(whole, Finite):
            from discreet.learning.plan import plan  # it explains itself better than its tables could

            made = plan(self.network.dag, self.network.schema, spend=whole, unit=known.unit, rows=self.rows)
            return f"{made.explain().rstrip()}\n{CLOSING}"
        lines = [
            f"learner {known.learner} would spend {whole} ({known.unit}) on {len(known.measurements)} tables; "
            f"errors are for {self.rows:,} rows",
            "",
            f"{'table over':<40} {'cells':>7} {'cost':>10} {'noise ±':>9}",
        ]
        for table in known.measurements:
            cost = next(iter(json.loads(table.cost).values()))
            name = ", ".join(table.axes) or "(number of rows)"
            name = name if len(name) <= 40 else name[:39] + "…"
            noise = float(np.sqrt(table.law.variance))
            lines.append(f"{name:<40} {table.cells:>7,} {float(Fraction(cost)):>10.4g} {noise:>9.3g}")
        lines += ["", f"{'attribute':<40} {'expected L1 error of its rows':>30}"]
        lines += [f"{name[:40]:<40} {error:>30.4f}" for name, error in known.predicted_error.items()]
        mean = sum(known.predicted_error.values()) / max(1, len(known.predicted_error))
        return "\n".join([*lines, f"{'mean':<40} {mean:>30.4f}", CLOSING])

    def to_json(self) -> dict[str, Any]:
        """The preview as plain values."""
        known = self.network.provenance
        assert known is not None
        return {
            "learner": known.learner,
            "unit": known.unit,
            "cost": json.loads(known.cost),
            "rows": self.rows,
            "tables": [
                {
                    "axes": list(table.axes),
                    "cells": table.cells,
                    "cost": json.loads(table.cost),
                    "law": table.law.to_json(),
                }
                for table in known.measurements
            ],
            "predicted error": dict(known.predicted_error),
        }


def rehearse(
    schema: Schema,
    dag: DAG | None,
    *,
    spend: Finite,
    unit: Unit | str = Unit.ADD_REMOVE,
    learner: str | None = None,
    rows: int = 10_000,
    options: Mapping[str, Any] | None = None,
) -> Preview:
    """Run a learner on made-up rows: a preview that costs nothing, because it sees nothing."""
    if rows < 1:
        raise DataError(f"a preview needs a guess of at least 1 row, not {rows}")
    name = choose_learner(learner, dag)
    stage = Rehearsal(schema, unit, spend, rows)
    arguments = {"spend": spend, "request": "preview", **(options or {})}
    graph = [] if dag is None else [dag]
    return Preview(find_learner(name)(stage, *graph, **arguments), rows)
