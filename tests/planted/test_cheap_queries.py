"""Queries that are taken apart and put together to cost less than they give away: each is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from discreet.core.mechanism import AdditiveNoise, Noise
from discreet.core.queries import Choice, Tables
from discreet.core.scores import IndependenceDistance
from discreet.entrance import open_airlock
from discreet.papers.estimators import ball_draw
from discreet.papers.estimators.sums import BoundedColumn, Sums
from discreet.papers.posterior.grid_draws import calibrate_sample
from discreet.papers.posterior.linear import LinearStatistics, ProductStatistics
from discreet.values.budget import ZCDP, PureDP
from discreet.values.errors import AirlockError, BudgetError, MechanismError
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


@pytest.mark.parametrize("spread", [0.0, -0.1, float("nan"), float("inf"), 14.0, 800.0])
def test_a_grid_that_reaches_zero_is_refused(spread: float) -> None:
    """The logarithm of 0 wraps around 64 bits, and any sensitivity would pass."""
    (node,) = calibrate_sample([("b",)], [np.ones(2)], PureDP(1), unit=Unit.ADD_REMOVE).grids
    with pytest.raises(MechanismError, match="at least 2\\^-20"):
        replace(node, spread=spread)
    for prior in ([1e15, -1e15], [0.0, 1.0], [float("inf"), 1.0]):
        with pytest.raises(MechanismError, match="finite and above 0"):
            replace(node, prior=np.array(prior))


def test_charges_that_do_not_add_up_are_refused() -> None:
    tables = Tables.price([("a",)], PureDP(1), unit=Unit.ADD_REMOVE)
    with pytest.raises(AirlockError, match="charged"):
        replace(tables, charges=(PureDP("1/1000"),))


def test_a_draw_takes_as_many_steps_for_few_rows_as_for_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rejection waited for 45 s and more at 20 features and 50 rows: how long told how many rows there are."""
    drawn: list[tuple[int, int]] = []
    honest = ball_draw.draw_normals

    def count(steps: int, size: int) -> np.ndarray:
        drawn.append((steps, size))
        return honest(steps, size)

    monkeypatch.setattr(ball_draw, "draw_normals", count)
    rng = np.random.default_rng(1)
    for rows in (0, 50, 100_000):
        features = rng.uniform(-1, 1, size=(min(rows, 500), 20))
        gram = features.T @ features * max(rows / 500, 1)
        weights = ball_draw.draw_in_ball(gram + np.eye(20), 3 * gram @ np.ones(20), 1.0)
        assert np.linalg.norm(weights) <= 1 + 1e-9
    assert drawn == [(20 * ball_draw.STEPS, 20)] * 3


def test_a_unit_of_people_that_is_not_chosen_yet_prices_nothing() -> None:
    """Of no rows at all, nothing would seem to move: rounding alone would be paid for."""
    unchosen = Unit("add-remove", "id", 0)
    with pytest.raises(MechanismError, match="the scale of the noise"):
        Choice.price(
            [("a", "b"), ("b", "a")],
            IndependenceDistance(),
            PureDP(1),
            schema=SCHEMA,
            unit=unchosen,
            rows=None,
        )
    with pytest.raises(BudgetError):
        Tables.price([("a",)], PureDP(1), unit=unchosen)
