"""Queries that are taken apart and put together to cost less than they give away: each is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from discreet.core.mechanism import AdditiveNoise, Noise
from discreet.core.queries import Choice, Tables
from discreet.core.scores import IndependenceDistance
from discreet.entrance import open_airlock
from discreet.papers.estimators.ball_draw import calibrate_ball, expect_acceptance
from discreet.papers.estimators.sums import BoundedColumn, Sums
from discreet.papers.posterior.grid_draws import calibrate_sample
from discreet.papers.posterior.linear import LinearStatistics, ProductStatistics
from discreet.values.budget import ZCDP, PureDP
from discreet.values.errors import AirlockError, MechanismError
from discreet.values.schema import Schema
from discreet.values.unit import Unit

SCHEMA = Schema.of({"a": ["0", "1", "2"], "b": ["0", "1"], "c": ["0", "1", "2"]})
PEOPLE = Unit("add-remove", "id", 4)


def test_a_smaller_cost_is_refused() -> None:
    tables = Tables.price([("a",)], PureDP(1), unit=Unit.ADD_REMOVE)
    with pytest.raises(AirlockError, match="are charged"):
        replace(tables, cost=PureDP("1/1000"))
    with pytest.raises(AirlockError, match="more than the cost"):
        replace(tables, cost=PureDP("1/1000"), charges=(PureDP("1/1000"),))
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


def test_noise_that_is_wide_in_l1_only_is_refused() -> None:
    """Gaussian noise is paid by L2: a thousand moves of 1 are not one move of 1000."""
    statistics = ProductStatistics((("b",),), {"b": np.array([[1000, 0]])})
    narrow = AdditiveNoise("x", Unit.ADD_REMOVE, (1,) * 1000, Noise.GAUSSIAN, 300.0, ZCDP("1/100"))
    with pytest.raises(MechanismError, match="moves the statistics by 1000"):
        LinearStatistics(statistics, narrow)


@pytest.mark.parametrize("floor", [0.0, -0.1, float("nan"), 0.6])
def test_a_grid_that_reaches_zero_is_refused(floor: float) -> None:
    """The logarithm of 0 wraps around 64 bits, and any sensitivity would pass."""
    (node,) = calibrate_sample([("b",)], [np.ones(2)], PureDP(1), unit=Unit.ADD_REMOVE).nodes
    with pytest.raises(MechanismError, match="ω is at least"):
        replace(node, floor=floor)
    for prior in ([1e15, -1e15], [0.0, 1.0], [float("inf"), 1.0]):
        with pytest.raises(MechanismError, match="finite and above 0"):
            replace(node, prior=np.array(prior))


def test_charges_that_do_not_add_up_are_refused() -> None:
    tables = Tables.price([("a",)], PureDP(1), unit=Unit.ADD_REMOVE)
    with pytest.raises(AirlockError, match="charged"):
        replace(tables, charges=(PureDP("1/1000"),))


def test_a_draw_that_would_hardly_ever_end_is_refused_before_it_is_paid_for() -> None:
    """How long it takes would tell how many rows there are."""
    columns = [BoundedColumn(f"0*{j}", -1, 1, "1/1024") for j in range(1, 31)]
    pairs = [(0, j) for j in range(1, 31)]
    with pytest.raises(MechanismError, match="hardly ever"):
        calibrate_ball(pairs, columns, 30, PureDP(1), unit=Unit.ADD_REMOVE, precision=1.0, radius=1.0)
    assert expect_acceptance(2, 1.0, 1.0) == pytest.approx(1 - np.exp(-0.5))
    assert expect_acceptance(30, 1.0, 1.0) == pytest.approx(1.5e-17, rel=0.2)
