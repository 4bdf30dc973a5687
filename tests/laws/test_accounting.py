"""Spends under (ε, δ) are counted in ρ: what each kind of noise pays, and that everything together keeps the promise.

`dp-accounting` computes the privacy loss distribution of a composition, an oracle that knows nothing of ρ.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dc
from discreet.core.mechanism import calibrate_choice, calibrate_moves, concentrate
from discreet.stores.memory import MemoryLedger
from discreet.values.budget import (
    ZCDP,
    ApproxDP,
    Finite,
    PureDP,
    allow,
    imply_zcdp,
    price,
    require_allowance,
)
from discreet.values.errors import BudgetError, FormatError, LedgerError, MechanismError, Overspent

PROMISE = ApproxDP(1, "1e-6")


def divergence(move: int, scale: float, order: float) -> float:
    """D_α of integer Laplace noise from its copy that is moved, summed cell by cell."""
    reach = move + math.ceil(60 * scale)
    cells = np.arange(-reach, reach + move + 1, dtype=np.float64)
    here, there = -np.abs(cells) / scale, -np.abs(cells - move) / scale
    total = np.logaddexp.reduce(-np.abs(np.arange(-10 * reach, 10 * reach + 1)) / scale)
    return float((np.logaddexp.reduce(order * here + (1 - order) * there) - total) / (order - 1))


ORDERS = [1.0001, 1.01, 1.2, 1.5, 2, 3, 5, 10, 30, 100, 1000]


@pytest.mark.parametrize(
    ("move", "scale"), list(itertools.product([1, 2, 3, 5, 12], [0.2, 0.7, 1.0, 3.0, 17.0]))
)
def test_the_rho_of_laplace_noise_covers_every_order_and_no_smaller_one_does(move: int, scale: float) -> None:
    rho = float(concentrate((move,), Fraction(scale)).rho)
    ratios = [divergence(move, scale, order) / order for order in ORDERS]
    assert max(ratios) <= rho * (1 + 1e-6)
    assert ratios[0] >= rho * (1 - 1e-3)  # the order towards 1 needs all of it
    assert rho <= float(imply_zcdp(PureDP(Fraction(move) / Fraction(scale))).rho)


@pytest.mark.parametrize("scale", [0.5, 1.0, 4.0])
def test_a_move_into_one_cell_is_the_worst(scale: float) -> None:
    """Every way to spread up to five over cells; and a smaller move costs less."""
    for whole in range(1, 6):
        worst = concentrate((whole,), Fraction(scale))
        for parts in itertools.product(range(whole + 1), repeat=3):
            spread = tuple(part for part in parts if part)
            if spread and sum(spread) <= whole:
                assert concentrate(spread, Fraction(scale)) <= worst * (1 + Fraction(1, 10**9))


@given(st.integers(1, 1000), st.floats(2.0**-20, 2.0**40))
@settings(deadline=None, max_examples=60)
def test_the_rho_of_laplace_noise_is_finite_at_every_scale(move: int, scale: float) -> None:
    rho = concentrate((move,), Fraction(scale)).rho
    epsilon = Fraction(move) / Fraction(scale)
    assert 0 < rho <= min(epsilon, epsilon**2 / 2) * (1 + Fraction(1, 10**9))


def test_half_the_scale_costs_more_than_it_pays() -> None:
    """A planted twin: noise of half the width under the same ρ is refused when it is made."""
    (sound,) = calibrate_moves(["count"], [(1,)], ZCDP("1/8"), unit=dc.Unit.ADD_REMOVE)
    with pytest.raises(MechanismError, match="more than its cost"):
        type(sound)(sound.statistic, sound.unit, sound.moves, sound.noise, sound.scale * 0.999, sound.cost)
    assert sound.scale < math.sqrt(1 / (2 * 0.125))  # narrower than by ε = √(2ρ)


def compose(costs: list[tuple[str, ZCDP]], delta: float) -> float:
    """The ε at δ of some mechanisms that cost so much each, by their loss distributions."""
    whole = None
    for kind, cost in costs:
        if kind == "choice":
            chosen = calibrate_choice("s", Fraction(1), cost, unit=dc.Unit.ADD_REMOVE)
            found = _bounded_range(2.0 / chosen.scale)
        else:
            (noise,) = calibrate_moves(["count"], [(1,)], cost, unit=dc.Unit.ADD_REMOVE, noise=kind)  # type: ignore[arg-type]
            made = (
                pld.from_discrete_gaussian_mechanism
                if kind == "gaussian"
                else pld.from_discrete_laplace_mechanism
            )
            amount = noise.scale if kind == "gaussian" else 1 / noise.scale
            found = made(amount, value_discretization_interval=1e-4)
        whole = found if whole is None else whole.compose(found)
    assert whole is not None
    return float(whole.get_epsilon_for_delta(delta))


def _bounded_range(epsilon: float) -> pld.PrivacyLossDistribution:
    """Two outcomes whose losses lie ε apart, evenly about 0, where the divergence is greatest: a toss of ε/2."""
    return pld.from_randomized_response(
        2 / (1 + math.exp(epsilon / 2)), 2, value_discretization_interval=1e-4
    )


@pytest.mark.parametrize("count", [1, 4, 30])
@pytest.mark.parametrize("kind", ["gaussian", "laplace", "choice"])
def test_all_that_an_account_pays_for_keeps_its_promise(count: int, kind: str) -> None:
    found = compose([(kind, allow(PROMISE) / count)] * count, 1e-6)  # type: ignore[list-item]
    assert found <= float(PROMISE.epsilon)
    if kind == "gaussian":
        assert found > 0.92 * float(PROMISE.epsilon)  # what ρ wastes against the exact loss distribution


def test_a_mixture_keeps_the_promise() -> None:
    whole = allow(PROMISE)
    assert isinstance(whole, ZCDP)
    parts = whole.split([3, 1, 1, 2, 5])
    kinds = ["gaussian", "laplace", "choice", "gaussian", "laplace"]
    assert compose(list(zip(kinds, parts, strict=True)), 1e-6) <= 1


def test_an_allowance_that_forgets_the_delta_is_caught() -> None:
    """A planted twin: ρ = ε²/2, as if (ε, δ) were a pure ε of a Gaussian's size."""
    broken = ZCDP("1/2")
    assert compose([("gaussian", broken)], 1e-6) > 1
    with pytest.raises(FormatError, match="not within the budget"):
        require_allowance(broken, PROMISE)


def test_delta_is_paid_once_however_many_spends() -> None:
    ledger = MemoryLedger()
    account = ledger.open_account("clinic", PROMISE, "add-remove")
    assert account.budget == PROMISE and account.allowance == allow(PROMISE)
    for i, part in enumerate(account.allowance.split(1000)):
        ledger.debit("clinic", f"r{i}", part)
    assert ledger.remaining("clinic").is_zero
    with pytest.raises(Overspent, match="short by ρ"):
        ledger.debit("clinic", "more", ZCDP("1e-9"))
    with pytest.raises(BudgetError, match="another kind"):
        ledger.debit("clinic", "approx", ApproxDP("1/10", "1e-9"))


def test_an_account_that_was_opened_with_too_much_is_not_trusted() -> None:
    ledger = MemoryLedger()
    with ledger._writing() as book:
        ledger._append(
            book, "open", account="x", unit="add-remove", budget=PROMISE.to_json(), allowance={"rho": "1/2"}
        )
    with pytest.raises(LedgerError, match="not within the budget"):
        ledger.accounts()


@pytest.mark.parametrize(
    ("spend", "taken"),
    [
        (ZCDP("1/100"), ZCDP("1/100")),
        (PROMISE, allow(PROMISE)),
        (PureDP("1/10"), imply_zcdp(PureDP("1/10"))),
        (ApproxDP("1/10", 0), imply_zcdp(PureDP("1/10"))),
    ],
)
def test_what_a_spend_takes(spend: Finite, taken: Finite) -> None:
    assert price(spend, ApproxDP(3, "1e-6")) == taken


def test_kinds_are_not_mixed_elsewhere() -> None:
    for spend, budget in (
        (PureDP(1), ZCDP(1)),
        (ZCDP(1), PureDP(1)),
        (PROMISE, PureDP(1)),
        (PROMISE, ZCDP(1)),
    ):
        with pytest.raises(BudgetError, match="another kind"):
            price(spend, budget)
    assert price(ApproxDP(1, 0), PureDP(2)) == PureDP(1)
    assert allow(ApproxDP(1, 0)) == PureDP(1)
