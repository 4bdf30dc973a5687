"""Queries that are taken apart and put together to cost less than they give away: each is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from discreet.core.queries import Choice, Tables
from discreet.core.scores import IndependenceDistance
from discreet.entrance import open_airlock
from discreet.papers.estimators.sums import BoundedColumn, Sums
from discreet.papers.posterior.linear import LinearStatistics, ProductStatistics
from discreet.values.budget import PureDP
from discreet.values.errors import AirlockError, MechanismError
from discreet.values.schema import Schema
from discreet.values.unit import Unit

SCHEMA = Schema.of({"a": ["0", "1", "2"], "b": ["0", "1"], "c": ["0", "1", "2"]})
PEOPLE = Unit("add-remove", "id", 4)


def test_a_smaller_cost_is_refused() -> None:
    tables = Tables.price([("a",)], PureDP(1), unit=Unit.ADD_REMOVE)
    with pytest.raises(AirlockError, match="not paid for by"):
        replace(tables, cost=PureDP("1/1000"))
    sums = Sums.price([BoundedColumn("x", 0, 9)], PureDP(1), unit=Unit.ADD_REMOVE)
    with pytest.raises(MechanismError, match="not paid for by"):
        replace(sums, cost=PureDP("1/1000"))


@pytest.mark.parametrize("other", [Unit.REPLACE_ONE, PEOPLE])
def test_another_unit_is_refused(other: Unit) -> None:
    tables = Tables.price([("a",)], PureDP(1), unit=Unit.ADD_REMOVE)
    with pytest.raises(AirlockError, match="not made for"):
        replace(tables, unit=other)
    with pytest.raises(AirlockError, match="not made for"):  # nor with mechanisms that only say so
        replace(tables, unit=other, mechanisms=tuple(replace(m, unit=other) for m in tables.mechanisms))
    sums = Sums.price([BoundedColumn("x", 0, 9)], PureDP(1), unit=Unit.ADD_REMOVE)
    with pytest.raises(MechanismError, match="not made for"):
        replace(sums, unit=other)


def test_candidates_of_a_larger_sensitivity_are_refused() -> None:
    """R moves by 2 rows where a side has two levels, and by 3 elsewhere."""
    score, unit = IndependenceDistance(), Unit.REPLACE_ONE
    choice = Choice.price([("a", "b")], score, PureDP(1), schema=SCHEMA, unit=unit, rows=10)
    with pytest.raises(AirlockError, match="more than the"):
        replace(choice, candidates=(("a", "c"),))
    with pytest.raises(AirlockError, match="more than the"):
        replace(choice, mechanism=replace(choice.mechanism, unit=PEOPLE))
    narrow = replace(
        choice, sizes={**SCHEMA.sizes, "a": 2}
    )  # a lie about the levels is found when it is asked
    rows = {"a": list("0120120120"), "b": list("0101010101"), "c": list("0120120120")}
    with open_airlock(rows, SCHEMA, budget="1", unit=unit) as airlock:
        for lie in (narrow, replace(choice, rows=9)):
            with pytest.raises(AirlockError, match="was priced for"):
                airlock.ask(lie)
        assert airlock.remaining == PureDP(1)


def test_linear_statistics_for_one_row_do_not_serve_a_person() -> None:
    statistics = ProductStatistics((("b",),), {"b": np.array([[1, 0]])})
    honest = LinearStatistics.price(statistics, PureDP(1), unit=Unit.ADD_REMOVE, sizes={"b": 2})
    with pytest.raises(MechanismError, match="one unit moves the statistics by 4"):
        replace(honest, mechanism=replace(honest.mechanism, unit=PEOPLE))
    assert LinearStatistics.price(statistics, PureDP(1), unit=PEOPLE, sizes={"b": 2}).mechanism.l1 == 4
