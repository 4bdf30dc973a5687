"""Mechanisms as frozen specifications: what is measured, how far a row moves it, the noise, the cost.

A specification checks itself when it is made: with this sensitivity and this scale, the exact privacy loss is at most
the cost that it states. So a cost that is charged can be too high by a rounding, and never too low. Between the
notions of privacy `imply_*` weakens a guarantee that holds into another kind and rounds what it costs up; `afford_*`
finds the most of another kind that a budget pays for and rounds that down.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from discreet.values.budget import ZCDP, ApproxDP, Finite, PureDP, Unit
from discreet.values.errors import BudgetError, MechanismError
from discreet.values.law import WIDEST, DiscreteGaussian, DiscreteLaplace
from discreet.values.text import Number, float_above, float_below, read_fraction

_MARGIN = 1.0 + 2.0**-48
"""Widens a scale by more than the few roundings in OpenDP's own map, so that it stays within the cost."""


class Noise(StrEnum):
    """The law of additive noise."""

    LAPLACE = "laplace"
    GAUSSIAN = "gaussian"

    @classmethod
    def _missing_(cls, value: object) -> None:
        raise MechanismError(f"noise is laplace or gaussian, not {value!r}")


class Selection(StrEnum):
    """How a candidate is drawn by its score; permute-and-flip is never worse at the same ε."""

    PERMUTE_AND_FLIP = "permute-and-flip"
    EXPONENTIAL = "exponential"

    @classmethod
    def _missing_(cls, value: object) -> None:
        raise MechanismError(f"a selection is permute-and-flip or exponential, not {value!r}")


@dataclass(frozen=True, slots=True)
class AdditiveNoise:
    """Integer noise on every cell of one statistic.

    `moves` lists by how much one row changes each cell that it touches: a count table has one cell moved by 1
    (add-remove) or two (replace-one). Laplace costs ε = Σ|moves|/scale, Gaussian ρ = Σ moves²/(2·scale²).
    """

    statistic: str
    unit: Unit
    moves: tuple[int, ...]
    noise: Noise
    scale: float
    cost: Finite

    def __post_init__(self) -> None:
        object.__setattr__(self, "unit", Unit(self.unit))  # their plain text is equal, but not identical
        object.__setattr__(self, "noise", Noise(self.noise))
        _require_scale(self.scale, self.statistic)
        if not self.moves or any(move < 1 for move in self.moves):
            raise MechanismError(f"{self.statistic}: a row moves cells by at least 1, not by {self.moves}")
        _require_covered(self.loss, self.cost, self.statistic)

    @property
    def l1(self) -> int:
        """The L1 sensitivity."""
        return sum(self.moves)

    @property
    def l2_squared(self) -> int:
        """The square of the L2 sensitivity, which is exact where its root is not."""
        return sum(move * move for move in self.moves)

    @property
    def law(self) -> DiscreteLaplace | DiscreteGaussian:
        """The exact law of the noise: a float is a fraction, so nothing is lost."""
        exact = Fraction(self.scale)
        return DiscreteLaplace(exact) if self.noise is Noise.LAPLACE else DiscreteGaussian(exact**2)

    @property
    def loss(self) -> PureDP | ZCDP:
        """The exact privacy loss, in the notion that is natural to the noise."""
        exact = Fraction(self.scale)
        if self.noise is Noise.LAPLACE:
            return PureDP(self.l1 / exact)
        return ZCDP(self.l2_squared / (2 * exact**2))


@dataclass(frozen=True, slots=True)
class NoisyChoice:
    """A candidate drawn by its score: ε = 2Δ/scale for a score that one row moves by at most Δ.

    Exponential draws i with probability ∝ exp(score_i/scale); its range is ε, hence ρ = ε²/8 [CR21].
    Permute-and-flip has no such bound: its ρ is that of any ε-DP mechanism.
    """

    score: str
    unit: Unit
    sensitivity: Fraction
    selection: Selection
    scale: float
    cost: Finite

    def __post_init__(self) -> None:
        object.__setattr__(self, "unit", Unit(self.unit))
        object.__setattr__(self, "selection", Selection(self.selection))
        _require_scale(self.scale, self.score)
        if self.sensitivity <= 0:
            raise MechanismError(f"{self.score}: a sensitivity must be above 0, not {self.sensitivity}")
        _require_covered(self.loss, self.cost, self.score)

    @property
    def loss(self) -> PureDP | ZCDP:
        """The exact privacy loss, in the kind of the cost where the selection has a bound of its own."""
        epsilon = 2 * self.sensitivity / Fraction(self.scale)
        if self.selection is Selection.EXPONENTIAL and isinstance(self.cost, ZCDP):
            return ZCDP(epsilon**2 / 8)
        return PureDP(epsilon)


def count_moves(unit: Unit) -> tuple[int, ...]:
    """How one row moves a table of counts: one cell by 1, or, when it is replaced, two cells by 1 each."""
    return (1,) if Unit(unit) is Unit.ADD_REMOVE else (1, 1)


def calibrate_counts(
    sets: Sequence[Sequence[str]],
    spend: Finite,
    *,
    unit: Unit,
    noise: Noise = Noise.LAPLACE,
    shares: Sequence[Number] | None = None,
) -> tuple[AdditiveNoise, ...]:
    """One mechanism for each table of counts; their costs sum exactly to the spend.

    A row lies in every table, so the tables compose; `shares` weighs them, and by default all get the same.
    """
    names = [f"counts over ({', '.join(axes)})" for axes in sets]
    return calibrate_moves(
        names, [count_moves(unit)] * len(names), spend, unit=unit, noise=noise, shares=shares
    )


def calibrate_moves(
    statistics: Sequence[str],
    moves: Sequence[tuple[int, ...]],
    spend: Finite,
    *,
    unit: Unit,
    noise: Noise = Noise.LAPLACE,
    shares: Sequence[Number] | None = None,
) -> tuple[AdditiveNoise, ...]:
    """The same for any integer statistics, such as bounded sums, given how one row moves each."""
    unit, noise = Unit(unit), Noise(noise)
    if not statistics:
        raise MechanismError("nothing to measure: the list of statistics is empty")
    if shares is not None and len(shares) != len(statistics):
        raise MechanismError(f"{len(statistics)} statistics need as many shares, not {len(shares)}")
    costs: tuple[Finite, ...] = spend.split(len(statistics) if shares is None else shares)
    return tuple(
        AdditiveNoise(name, unit, moved, noise, _find_scale(moved, cost, noise), cost)
        for name, moved, cost in zip(statistics, moves, costs, strict=True)
    )


def calibrate_choice(
    score: str,
    sensitivity: Fraction,
    spend: Finite,
    *,
    unit: Unit,
    selection: Selection = Selection.PERMUTE_AND_FLIP,
) -> NoisyChoice:
    """The narrowest selection by a score of this sensitivity that the spend pays for."""
    selection = Selection(selection)
    if selection is Selection.EXPONENTIAL and isinstance(spend, ZCDP):
        epsilon = Fraction(math.sqrt(8 * float_below(spend.rho)) / _MARGIN)
    else:
        epsilon = afford_pure(spend).epsilon
    delta = Fraction(float_above(sensitivity))  # OpenDP takes the sensitivity as a float, too
    scale = float_above(2 * delta / Fraction(float_below(epsilon))) * _MARGIN
    return NoisyChoice(score, Unit(unit), sensitivity, selection, scale, spend)


def _find_scale(moves: tuple[int, ...], cost: Finite, noise: Noise) -> float:
    """The narrowest float scale whose loss, also as OpenDP rounds it, stays within the cost."""
    if noise is Noise.LAPLACE:
        epsilon = Fraction(float_below(afford_pure(cost).epsilon))
        # OpenDP rounds the quotient up to a float, which cannot pass ε once it is below a float below ε.
        return float_above(sum(moves) / epsilon) if epsilon else math.inf
    if isinstance(cost, PureDP):
        raise MechanismError(
            f"Gaussian noise is not pure: it cannot be paid with {cost}, only with ρ or (ε, δ)"
        )
    rho = Fraction(float_below(afford_zcdp(cost).rho))
    variance = Fraction(sum(move * move for move in moves)) / (2 * rho) if rho else Fraction(WIDEST) ** 3
    return math.sqrt(float_above(variance)) * _MARGIN


def _require_scale(scale: float, what: str) -> None:
    if not (math.isfinite(scale) and 1 / WIDEST <= scale <= WIDEST):
        raise MechanismError(f"{what}: the scale of the noise lies between 2^-40 and 2^40, not {scale:g}")


def _require_covered(loss: PureDP | ZCDP, cost: Finite, what: str) -> None:
    """Refuse a cost that is below the exact privacy loss."""
    if not is_covered(loss, cost):
        raise MechanismError(f"{what}: a loss of {loss} is not covered by a cost of {cost}")


def is_covered(loss: PureDP | ZCDP, cost: Finite) -> bool:
    """Whether a privacy loss, converted into the kind of the cost, is at most the cost."""
    if type(loss) is type(cost):
        return loss <= cost
    if isinstance(loss, PureDP):
        return imply_zcdp(loss) <= cost if isinstance(cost, ZCDP) else loss.epsilon <= cost.epsilon
    if isinstance(cost, ApproxDP) and cost.delta:
        return imply_approx(loss, cost.delta) <= cost
    return False


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


def round_down(value: float) -> Fraction:
    """A short exact fraction just below a positive float, so far below that its last bits do not matter."""
    grain = Fraction(10) ** (math.floor(math.log10(value)) + 1 - DIGITS)
    return math.floor(Fraction(value) * (1 - Fraction(1, 2**44)) / grain) * grain


def round_up(value: float) -> Fraction:
    """A short exact fraction just above a positive float, so far above that its last bits do not matter."""
    grain = Fraction(10) ** (math.floor(math.log10(value)) + 1 - DIGITS)
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
