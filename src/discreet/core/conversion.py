"""Between the notions of privacy, always rounding to the safe side.

`imply_*` weakens a guarantee that holds into another kind, and rounds what it costs up.
`afford_*` finds the most of another kind that a budget pays for, and rounds that down.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from discreet.values.budget import ZCDP, ApproxDP, Finite, PureDP
from discreet.values.errors import BudgetError
from discreet.values.exact import Number, read_fraction

DIGITS = 12
"""Converted amounts are rounded to so many digits, far more than their rounding errors reach."""


def imply_zcdp(budget: PureDP) -> ZCDP:
    """The ρ of every ε-DP mechanism, ρ = ε·tanh(ε/2) ≤ ε²/2.

    Randomised response dominates every ε-DP pair; its Rényi divergence over α is the slope of the concave
    v ↦ log cosh(ε√v) between v = ¼ and v = (α − ½)², so at most the derivative at ¼, which is ε·tanh(ε/2).
    """
    if budget.is_zero:
        return ZCDP.zero()
    epsilon = float(budget.epsilon)
    return ZCDP(min(budget.epsilon**2 / 2, round_up(epsilon * math.tanh(epsilon / 2))))


def imply_approx(budget: PureDP | ZCDP, delta: Number) -> ApproxDP:
    """The ε of a guarantee at this δ.

    For zCDP, the least over α > 1 of ρα + (ln(1/δ) − ln α)/(α − 1) + ln(1 − 1/α) [CKS20, Sec. 2.3].
    """
    exact = read_delta(delta)
    if isinstance(budget, PureDP):
        return ApproxDP(budget.epsilon, exact)
    rho = float(budget.rho)
    log_inverse_delta = math.log(exact.denominator) - math.log(exact.numerator)

    def epsilon_at(log_order: float) -> float:
        above_one = math.exp(log_order)  # α − 1
        log_order_ratio = log_order - math.log1p(above_one)  # ln(1 − 1/α)
        return (
            rho * (1 + above_one) + (log_inverse_delta - math.log1p(above_one)) / above_one + log_order_ratio
        )

    # Every α gives a valid ε, so a search that stops short of the best is safe.
    found = min(map(epsilon_at, _narrow(epsilon_at, -40.0, 60.0)))
    return ApproxDP(round_up(max(found, 0.0) + 1e-14), exact)


def afford_pure(budget: Finite) -> PureDP:
    """The largest ε such that every ε-DP mechanism stays within the budget."""
    if isinstance(budget, PureDP):
        return budget
    if isinstance(budget, ApproxDP):
        return PureDP(budget.epsilon)
    return PureDP(_largest(lambda epsilon: imply_zcdp(PureDP(epsilon)) <= budget))


def afford_zcdp(budget: Finite) -> ZCDP:
    """The largest ρ such that every ρ-zCDP mechanism stays within the budget."""
    if isinstance(budget, ZCDP):
        return budget
    if isinstance(budget, PureDP) or not budget.delta:
        raise BudgetError(f"no ρ fits into {budget}: concentrated privacy needs a δ above 0")
    return ZCDP(_largest(lambda rho: imply_approx(ZCDP(rho), budget.delta) <= budget))


def round_down(value: float, digits: int = DIGITS) -> Fraction:
    """A short exact fraction just below a positive float, so far below that its last bits do not matter."""
    grain = Fraction(10) ** (math.floor(math.log10(value)) + 1 - digits)
    return math.floor(Fraction(value) * (1 - Fraction(1, 2**44)) / grain) * grain


def round_up(value: float, digits: int = DIGITS) -> Fraction:
    """A short exact fraction just above a positive float, so far above that its last bits do not matter."""
    grain = Fraction(10) ** (math.floor(math.log10(value)) + 1 - digits)
    return math.ceil(Fraction(value) * (1 + Fraction(1, 2**44)) / grain) * grain


def read_delta(delta: Number) -> Fraction:
    """A δ between 0 and 1."""
    exact = read_fraction(delta, "δ", BudgetError)
    if not 0 < exact < 1:
        raise BudgetError(f"a conversion needs a δ between 0 and 1, not {delta}")
    return exact


def _narrow(height: Callable[[float], float], low: float, high: float) -> tuple[float, ...]:
    """Points around the minimum of a function with a single valley, by golden section."""
    ratio = (math.sqrt(5.0) - 1.0) / 2.0
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    for _ in range(90):
        if height(left) <= height(right):
            high, right, left = right, left, right - ratio * (right - low)
        else:
            low, left, right = left, right, left + ratio * (high - left)
    return low, left, right, high


def _largest(fits: Callable[[Fraction], bool]) -> Fraction:
    """The largest amount that fits, to DIGITS digits, for a condition that holds for all smaller ones."""
    low, high = 1e-12, 1e-12
    while fits(Fraction(high)):
        low, high = high, high * 4
        if high > 1e12:
            break
    if low == high:
        raise BudgetError("the budget is too small to convert: less than 1e-12 would be left")
    for _ in range(60):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if fits(Fraction(middle)) else (low, middle)
    return round_down(low)
