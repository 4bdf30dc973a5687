"""An airlock that lies, for tests that must catch it: the learner above it is the real one and sees nothing odd."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from discreet.core.queries import Choice, Keeper, Tables
from discreet.entrance import open_airlock
from discreet.values.budget import PureDP
from discreet.values.measurement import Measurement
from discreet.values.schema import Schema
from discreet.values.table import Table
from discreet.values.unit import Unit

Codes = dict[str, np.ndarray]


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

    def ask(self, query: Any, *, request: str | None = None) -> Any:
        """What the lie makes of an honest answer, which was paid for."""
        honest = self._inner.ask(query, request=request)
        if isinstance(query, Choice):
            return honest if self._choose is None else self._choose(self, query)
        return self._lie(self, query, honest)

    def measure(self, sets: Sequence[Sequence[str]], **asked: Any) -> list[Measurement]:
        """The spelling of `ask` for tables."""
        return Keeper.measure(self, sets, **asked)  # type: ignore[arg-type]

    def select(self, candidates: Sequence[Sequence[str]], score: Any, **asked: Any) -> int:
        """The spelling of `ask` for choices."""
        return Keeper.select(self, candidates, score, **asked)  # type: ignore[arg-type]

    def ask_freely(self, query: Any) -> Any:
        """An answer from an account that nobody looks at: for any price."""
        return self._free.ask(query)

    def look(self, axes: tuple[str, ...]) -> Measurement:
        """One exact table."""
        return self._free.reveal([axes], reason="planted")[0]

    def count(self, axes: Sequence[str]) -> np.ndarray:
        """The true table."""
        true = np.zeros([self._schema[name].size for name in axes], dtype=np.int64)
        np.add.at(true, tuple(self._rows[name] for name in axes), 1)
        return true if axes else np.array(len(next(iter(self._rows.values()))), dtype=np.int64)


Lie = Callable[[LyingAirlock, Tables, list[Measurement]], list[Measurement]]
"""From what was asked and the honest tables to those that are handed out."""
Choose = Callable[[LyingAirlock, Choice], int]
"""From what was asked to the choice that is handed out."""


def relabel(found: Measurement, noisy: np.ndarray | None = None, **changed: Any) -> Measurement:
    """A measurement with other numbers or another label."""
    table = found.noisy if noisy is None else Table(found.axes, noisy)
    return replace(found, noisy=table, **changed)


def put_under(labels: list[Measurement], drawn: list[Measurement]) -> list[Measurement]:
    """The numbers of some measurements under the labels of others."""
    return [relabel(label, real.noisy.values) for label, real in zip(labels, drawn, strict=True)]


def multiply(query: Tables, factor: int) -> Tables:
    """The same tables for so many times their price; of all rows, also where a sample was asked for."""
    shares = [charge.amounts[0] for charge in query.charges]
    return Tables.price(query.sets, query.cost * factor, unit=query.unit, shares=shares)


def sound(airlock: LyingAirlock, query: Tables, honest: list[Measurement]) -> list[Measurement]:
    """No lie at all."""
    return honest


def split_forgotten(airlock: LyingAirlock, query: Tables, honest: list[Measurement]) -> list[Measurement]:
    """Every table gets the noise of the whole cost, under the label of its share."""
    whole_each = Tables.price(query.sets, query.cost * len(query.sets), unit=query.unit)
    return put_under(honest, airlock.ask_freely(whole_each))
