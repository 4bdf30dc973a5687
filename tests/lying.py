"""An airlock that lies, for tests that must catch it: the learner above it is the real one and sees nothing odd."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from discreet.core.airlock import Airlock
from discreet.core.queries import Tables
from discreet.entrance import open_airlock
from discreet.papers.parameters.subsample import sample_tables
from discreet.values.budget import PureDP
from discreet.values.measurement import Measurement
from discreet.values.schema import Schema
from discreet.values.table import Table
from discreet.values.unit import Unit

Codes = dict[str, np.ndarray]
Sets = list[tuple[str, ...]]


class LyingAirlock:
    """What a learner sees of an airlock, with one thing wrong in the tables that it hands out, or in its choices."""

    def __init__(
        self,
        rows: Codes,
        schema: Schema,
        lie: Lie,
        *,
        choose: Choose | None = None,
        unit: Unit = Unit.ADD_REMOVE,
        budget: int = 1,
    ) -> None:
        self._rows, self._schema, self._lie, self._choose = rows, schema, lie, choose
        data = {name: schema[name].decode(column) for name, column in rows.items()}
        self._inner, self._free = (
            open_airlock(data, schema, budget=PureDP(whole), unit=unit) for whole in (budget, 10**9)
        )

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def honest(self, sets: Sets, **asked: Any) -> list[Measurement]:
        """The tables of a sound airlock."""
        return self._ask(self._inner, sets, **asked)

    def draw(self, sets: Sets, **asked: Any) -> list[Measurement]:
        """The same from an account that nobody looks at: for any price."""
        return self._ask(self._free, sets, **{**asked, "request": None})

    def _ask(
        self,
        airlock: Airlock,
        sets: Sets,
        *,
        spend: Any,
        sampling: Any = None,
        request: Any = None,
        **priced: Any,
    ) -> list[Measurement]:
        cost = airlock.read_spend(spend)
        if sampling is None:
            query = Tables.price(sets, cost, unit=airlock.unit, **priced)
        else:
            query = sample_tables(sets, cost, sampling, shares=priced.get("shares"))
        return airlock.ask(query, request=request)

    def reveal(self, axes: tuple[str, ...]) -> Measurement:
        """One exact table."""
        return self._free.reveal([axes], reason="planted")[0]

    def count(self, axes: Sequence[str]) -> np.ndarray:
        """The true table."""
        true = np.zeros([self._schema[name].size for name in axes], dtype=np.int64)
        np.add.at(true, tuple(self._rows[name] for name in axes), 1)
        return true if axes else np.array(len(next(iter(self._rows.values()))), dtype=np.int64)

    def measure(self, sets: Any, **asked: Any) -> list[Measurement]:
        """What the lie makes of it."""
        return self._lie(self, [tuple(members) for members in sets], **asked)

    def ask(self, query: Tables, *, request: str | None = None) -> list[Measurement]:
        """The same for a query as a value."""
        shares = [charge.amounts[0] for charge in query.charges]
        sampled = {} if query.sample is None else {"sampling": query.sample}
        return self.measure(
            query.sets,
            spend=query.cost,
            shares=shares,
            noise=query.mechanisms[0].noise,
            request=request,
            **sampled,
        )

    def select(self, candidates: Any, score: Any, **asked: Any) -> int:
        """What the lie makes of it, if it is about choices."""
        return (self._choose or LyingAirlock.honest_choice)(self, candidates, score, **asked)

    def honest_choice(self, candidates: Any, score: Any, **asked: Any) -> int:
        """The choice of a sound airlock."""
        return self._inner.select(candidates, score, **asked)

    def choose(self, candidates: Any, score: Any, **asked: Any) -> int:
        """A choice from an account that nobody looks at: for any price, by any score."""
        return self._free.select(candidates, score, **{**asked, "request": None})


Lie = Callable[..., list[Measurement]]
Choose = Callable[..., int]


def relabel(found: Measurement, noisy: np.ndarray | None = None, **changed: Any) -> Measurement:
    """A measurement with other numbers or another label."""
    table = found.noisy if noisy is None else Table(found.axes, noisy)
    return replace(found, noisy=table, **changed)


def put_under(labels: list[Measurement], drawn: list[Measurement]) -> list[Measurement]:
    """The numbers of some measurements under the labels of others."""
    return [relabel(label, real.noisy.values) for label, real in zip(labels, drawn, strict=True)]


def sound(airlock: LyingAirlock, sets: Sets, **asked: Any) -> list[Measurement]:
    """No lie at all."""
    return airlock.honest(sets, **asked)


def split_forgotten(airlock: LyingAirlock, sets: Sets, **asked: Any) -> list[Measurement]:
    """Every table gets the noise of the whole spend, under the label of its share."""
    all_together = {**asked, "spend": airlock.read_spend(asked["spend"]) * len(sets), "shares": None}
    return put_under(airlock.honest(sets, **asked), airlock.draw(sets, **all_together))
