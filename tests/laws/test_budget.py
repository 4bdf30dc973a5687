"""Budgets are exact, compose exactly, and convert to the safe side."""

from __future__ import annotations

import copy
import json
import math
import pickle
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.values.budget import (
    ZCDP,
    ApproxDP,
    Infinite,
    PureDP,
    afford_pure,
    afford_zcdp,
    budget_from_json,
    imply_approx,
    imply_zcdp,
    read_budget,
)
from discreet.values.errors import BudgetError, FormatError, Overspent
from discreet.values.unit import Unit

EPSILONS = st.fractions(min_value=Fraction(1, 1000), max_value=20, max_denominator=10**6)
BUDGETS = st.one_of(
    EPSILONS.map(PureDP),
    EPSILONS.map(ZCDP),
    st.builds(ApproxDP, EPSILONS, st.fractions(0, Fraction(1, 2), max_denominator=10**9)),
)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("1/3", Fraction(1, 3)),
        ("0.1", Fraction(1, 10)),
        (" 1e-3 ", Fraction(1, 1000)),
        (2, Fraction(2)),
        (Decimal("0.25"), Fraction(1, 4)),
        (Fraction(7, 9), Fraction(7, 9)),
        (0.1, Fraction(1, 10)),
        (np.float64(0.3), Fraction(3, 10)),
        (np.int32(3), Fraction(3)),
        (1e-7, Fraction(1, 10**7)),
    ],
)
def test_amounts_mean_what_is_written(written: object, meant: Fraction) -> None:
    assert PureDP(written).epsilon == meant  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "written",
    [
        *(0, -1, "0", "-0.5", "nan", "inf", math.nan, math.inf, -math.inf, Decimal("NaN")),
        *("", "one", "1/0", "1//2", "0x10", "1_000", None, True, [1], np.array([1.0, 2.0])),
        *("1e999999999", "9" * 5000, "1e500", "1e10"),
    ],
)
def test_amounts_that_are_no_budget_are_refused(written: object) -> None:
    for kind in (PureDP, ZCDP, lambda amount: ApproxDP(amount, "1e-6")):
        with pytest.raises(BudgetError):
            kind(written)  # type: ignore[arg-type]


@pytest.mark.parametrize("delta", ["1", "-0.1", "nan", 2, math.inf])
def test_deltas_outside_the_unit_interval_are_refused(delta: object) -> None:
    with pytest.raises(BudgetError, match="δ"):
        ApproxDP(1, delta)  # type: ignore[arg-type]


@given(BUDGETS, st.lists(st.floats(1e-12, 1e12), min_size=1, max_size=40))
@settings(deadline=None, max_examples=60)
def test_shares_by_float_weights_sum_exactly(budget: PureDP, weights: list[float]) -> None:
    shares = budget.split(weights)
    assert sum(shares, type(budget).zero()) == budget
    assert all(not share.is_zero for share in shares)


@given(BUDGETS, st.lists(st.fractions(Fraction(1, 100), 100), min_size=1, max_size=20))
@settings(deadline=None, max_examples=60)
def test_shares_by_exact_weights_are_exact(budget: PureDP, weights: list[Fraction]) -> None:
    shares = budget.split(weights)
    assert sum(shares, type(budget).zero()) == budget
    assert shares[0].amounts[0] == budget.amounts[0] * weights[0] / sum(weights)


@given(BUDGETS, st.fractions(Fraction(1, 1000), Fraction(999, 1000)))
@settings(deadline=None, max_examples=60)
def test_what_is_spent_and_what_is_left_make_the_whole(budget: PureDP, share: Fraction) -> None:
    spent = budget * share
    left = budget - spent
    assert spent + left == budget
    assert spent < budget
    assert budget > left
    assert (budget - budget).is_zero
    with pytest.raises(Overspent, match="only"):
        spent - budget


@given(BUDGETS)
@settings(deadline=None, max_examples=60)
def test_budgets_survive_json_pickle_and_copy(budget: PureDP) -> None:
    assert budget_from_json(json.loads(json.dumps(budget.to_json()))) == budget
    assert pickle.loads(pickle.dumps(budget)) == budget
    assert copy.deepcopy(budget) == budget
    assert hash(copy.deepcopy(budget)) == hash(budget)
    zero = type(budget).zero()
    assert budget_from_json(zero.to_json()) == zero


@pytest.mark.parametrize(
    "document",
    [
        *(None, {}, {"epsilon": 1}, {"epsilon": "-1"}, {"rho": "nan"}, {"sigma": "1"}, "1", ["epsilon"]),
        *({"epsilon": "1", "rho": "1"}, {"epsilon": "1", "delta": "1"}, {"epsilon": "1e9999999"}),
    ],
)
def test_json_that_is_no_budget_is_refused(document: object) -> None:
    with pytest.raises(FormatError):
        budget_from_json(document)


@pytest.mark.parametrize(
    ("budget", "shown"),
    [
        (PureDP("1"), "ε = 1"),
        (ZCDP("1/8"), "ρ = 1/8"),
        (PureDP(0.1), "ε = 0.1"),
        (PureDP("1/3"), "ε = 1/3"),
        (ApproxDP(1, 1e-6), "ε = 1, δ = 1e-6"),
        (PureDP("123456789/1234567891"), "ε ≈ 0.1"),
        (Infinite(), "ε = ∞"),
        (PureDP.zero(), "ε = 0"),
        (PureDP(1000), "ε = 1000"),
    ],
)
def test_budgets_print_as_people_write_them(budget: object, shown: str) -> None:
    assert str(budget) == shown


@pytest.mark.parametrize(
    ("text", "budget"),
    [
        ("1", PureDP(1)),
        ("epsilon=0.5", PureDP("1/2")),
        ("ρ = 1/8", ZCDP("1/8")),
        ("eps=1, delta=1e-6", ApproxDP(1, "1e-6")),
    ],
)
def test_budgets_are_read_as_people_write_them(text: str, budget: object) -> None:
    assert read_budget(text) == budget


@pytest.mark.parametrize(
    "text", ["", "sigma=1", "epsilon=", "delta=1e-6", "rho=1, delta=1e-6", "epsilon=1, epsilon=2"]
)
def test_text_that_is_no_budget_is_refused(text: str) -> None:
    with pytest.raises(BudgetError):
        read_budget(text)


def test_kinds_do_not_mix() -> None:
    for act in (
        lambda: PureDP(1) + ZCDP(1),
        lambda: PureDP(1) - ZCDP(1),
        lambda: PureDP(1) <= ApproxDP(1, "1e-6"),
    ):
        with pytest.raises(BudgetError, match="of different kinds"):
            act()
    assert PureDP(1) != ZCDP(1)


def test_a_look_without_privacy_swallows_every_budget() -> None:
    for budget in (PureDP(1), ZCDP(1), ApproxDP(1, "1e-6")):
        assert budget + Infinite() == Infinite() == Infinite() + budget
        assert budget < Infinite()
        assert Infinite() > budget
        assert not Infinite() <= budget
        with pytest.raises(Overspent):
            budget - Infinite()
    assert budget_from_json(Infinite().to_json()) == Infinite()


def test_the_unit_is_one_of_two() -> None:
    assert Unit("add-remove") == Unit.ADD_REMOVE
    assert Unit("replace-one") == Unit.REPLACE_ONE
    with pytest.raises(BudgetError, match="add-remove or replace-one, not 'bounded'"):
        Unit("bounded")


def _renyi_of_randomised_response(epsilon: float, order: float) -> float:
    p, q = 1 / (1 + math.exp(-epsilon)), 1 / (1 + math.exp(epsilon))
    terms = [order * math.log(p) + (1 - order) * math.log(q), order * math.log(q) + (1 - order) * math.log(p)]
    return float(np.logaddexp(*terms)) / (order - 1)


@pytest.mark.parametrize("epsilon", ["0.01", "0.3", "1", "3", "10"])
def test_pure_implies_concentrated_as_tightly_as_randomised_response_allows(epsilon: str) -> None:
    rho = float(imply_zcdp(PureDP(epsilon)).rho)
    needed = [
        _renyi_of_randomised_response(float(epsilon), 1 + a) / (1 + a) for a in np.geomspace(1e-4, 1e4, 200)
    ]
    assert rho >= max(needed) * (1 - 1e-9)
    assert rho <= max(needed) * 1.001
    assert rho <= float(epsilon) ** 2 / 2


@given(EPSILONS, st.integers(1, 30))
@settings(deadline=None, max_examples=40)
def test_what_a_budget_affords_costs_no_more_than_it(epsilon: Fraction, exponent: int) -> None:
    delta = Fraction(1, 10**exponent)
    assert imply_zcdp(afford_pure(ZCDP(epsilon))) <= ZCDP(epsilon)
    approx = ApproxDP(epsilon, delta)
    rho = afford_zcdp(approx)
    assert imply_approx(rho, delta) <= approx
    assert not imply_approx(rho * "1.00001", delta) <= approx


@given(EPSILONS, st.integers(2, 12))
@settings(deadline=None, max_examples=40)
def test_concentrated_to_approximate_covers_the_gaussian(rho: Fraction, exponent: int) -> None:
    """The Gaussian mechanism is ρ-zCDP with an exactly known δ(ε), which the conversion must not undercut."""
    delta = Fraction(1, 10**exponent)
    epsilon = float(imply_approx(ZCDP(rho), delta).epsilon)
    shift = math.sqrt(2 * float(rho))

    def upper(x: float) -> float:
        return 0.5 * math.erfc(x / math.sqrt(2))

    gaussian = upper(epsilon / shift - shift / 2) - math.exp(epsilon) * upper(epsilon / shift + shift / 2)
    assert gaussian <= float(delta)
    classic = float(rho) + 2 * math.sqrt(float(rho) * math.log(1 / float(delta)))
    assert epsilon < classic  # [BS16]: the conversion that this one improves on


def test_no_concentrated_budget_fits_where_there_is_no_delta() -> None:
    for budget in (PureDP(1), ApproxDP(1, 0)):
        with pytest.raises(BudgetError, match="δ above 0"):
            afford_zcdp(budget)
