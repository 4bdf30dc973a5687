"""Mechanisms as frozen specifications: what is measured, how far a row moves it, the noise, the cost.

A specification checks itself when it is made: with this sensitivity and this scale, the exact privacy loss is at most
the cost that it states. So a cost that is charged can be too high by a rounding, and never too low.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache

from discreet.values.budget import ZCDP, Finite, PureDP, afford_pure, imply_zcdp, round_up
from discreet.values.errors import MechanismError
from discreet.values.measurement import WIDEST, DiscreteGaussian, DiscreteLaplace
from discreet.values.text import Number, float_above, float_below
from discreet.values.unit import Unit

_MARGIN = 1.0 + 2.0**-48
"""Widens a scale by more than the few roundings in OpenDP's own map, so that it stays within the cost."""


class Noise(StrEnum):
    """The law of additive noise."""

    LAPLACE = "laplace"
    GAUSSIAN = "gaussian"

    @classmethod
    def _missing_(cls, value: object) -> None:
        raise MechanismError(f"the noise must be laplace or gaussian, not {value!r}")


class Selection(StrEnum):
    """How a candidate is drawn by its score; permute-and-flip is never worse at the same ε."""

    PERMUTE_AND_FLIP = "permute-and-flip"
    EXPONENTIAL = "exponential"

    @classmethod
    def _missing_(cls, value: object) -> None:
        raise MechanismError(f"the selection must be permute-and-flip or exponential, not {value!r}")


@dataclass(frozen=True, slots=True)
class AdditiveNoise:
    """Integer noise on every cell of one statistic.

    `moves` lists by how much one row changes each cell that it touches: a count table has one cell moved by 1
    (add-remove) or two (replace-one). Laplace costs ε = Σ|moves|/scale, or the ρ of `concentrate`; Gaussian costs
    ρ = Σ moves²/(2·scale²).
    """

    statistic: str
    unit: Unit
    moves: tuple[int, ...]
    noise: Noise
    scale: float
    cost: Finite

    def __post_init__(self) -> None:
        object.__setattr__(self, "unit", Unit.read(self.unit))  # their plain text is equal, but not identical
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
        """The exact privacy loss, in the kind of the cost where the noise has a bound of that kind."""
        return find_loss(self.law, self.moves, self.cost)


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
        object.__setattr__(self, "unit", Unit.read(self.unit))
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


def choose_selection(cost: Finite, selection: Selection | str | None = None) -> Selection:
    """The surest selection for a cost: a ρ buys twice as much ε of the exponential mechanism as of any other."""
    if selection is None:
        return Selection.EXPONENTIAL if isinstance(cost, ZCDP) else Selection.PERMUTE_AND_FLIP
    return Selection(selection)


def find_loss(law: DiscreteLaplace | DiscreteGaussian, moves: Sequence[int], cost: Finite) -> PureDP | ZCDP:
    """What a statistic with this noise gives away: ε = Σ|moves|/scale, or for a cost in ρ that of the very noise."""
    if isinstance(law, DiscreteGaussian):
        return ZCDP(Fraction(sum(move * move for move in moves)) / (2 * law.sigma2))
    if isinstance(cost, ZCDP):
        return concentrate(tuple(moves), law.scale)
    return PureDP(sum(moves) / law.scale)


@lru_cache(maxsize=4096)
def concentrate(moves: tuple[int, ...], scale: Fraction) -> ZCDP:
    """The least ρ of integer Laplace noise: ρ = Σ (m − 2p(1 − pᵐ)/(1 − p²))/s over the moves m, with p = e^(−1/s).

    That is the Kullback-Leibler divergence, so no smaller ρ holds, and no order α needs a larger one: D_α ≤ α·ρ, since
    v ↦ log Σ √(PQ)·cosh(√v·log P/Q) is concave: all zeros of U_m − p·U_{m−2} lie in (−1, 1) (docs/mathematics.md).
    As s grows, with ε = m/s, it becomes ε − 1 + e^−ε, against ε·tanh(ε/2) of the worst mechanism of that ε. It is
    convex in m and 0 at 0, so of all ways to spread a move over cells that into one cell is the worst.
    """
    with localcontext() as context:
        context.prec = 80  # the difference may cancel some 24 digits at the widest scale
        s = Decimal(scale.numerator) / Decimal(scale.denominator)
        p = (-1 / s).exp()
        total = sum(m - 2 * p * (1 - (-m / s).exp()) / (1 - p * p) for m in moves) / s
        return ZCDP(round_up(float(total)))


def calibrate_counts(
    sets: Sequence[Sequence[str]],
    spend: Finite,
    *,
    unit: Unit,
    noise: Noise = Noise.LAPLACE,
    shares: Sequence[Number] | None = None,
) -> tuple[AdditiveNoise, ...]:
    """One mechanism for each table of counts; their costs sum exactly to `spend`.

    A row lies in every table, so the tables compose; `shares` weighs them, and by default all get the same.
    """
    names = [f"counts over ({', '.join(axes)})" for axes in sets]
    moves = [Unit.read(unit).moves] * len(names)
    return calibrate_moves(names, moves, spend, unit=unit, noise=noise, shares=shares)


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
    unit, noise = Unit.read(unit), Noise(noise)
    if not statistics:
        raise MechanismError("nothing to measure: the list is empty")
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
    selection: Selection | str | None = None,
) -> NoisyChoice:
    """The narrowest selection by a score of this sensitivity that the spend pays for."""
    selection = choose_selection(spend, selection)
    if selection is Selection.EXPONENTIAL and isinstance(spend, ZCDP):
        epsilon = Fraction(math.sqrt(8 * float_below(spend.rho)) / _MARGIN)
    else:
        epsilon = afford_pure(spend).epsilon
    delta = Fraction(float_above(sensitivity))  # OpenDP takes the sensitivity as a float, too
    scale = float_above(2 * delta / Fraction(float_below(epsilon))) * _MARGIN
    return NoisyChoice(score, Unit.read(unit), sensitivity, selection, scale, spend)


def _find_scale(moves: tuple[int, ...], cost: Finite, noise: Noise) -> float:
    """The narrowest float scale whose loss, also as OpenDP rounds it, stays within the cost."""
    if noise is Noise.LAPLACE and isinstance(cost, ZCDP):
        return _concentrate_scale(tuple(moves), cost)
    if noise is Noise.LAPLACE:
        epsilon = Fraction(float_below(afford_pure(cost).epsilon))
        # OpenDP rounds the quotient up to a float, which cannot pass ε once it is below a float below ε.
        return float_above(sum(moves) / epsilon) if epsilon else math.inf
    if not isinstance(cost, ZCDP):
        raise MechanismError(f"Gaussian noise cannot be paid for with {cost}; it needs a ρ, or an ε with a δ")
    rho = Fraction(float_below(cost.rho))
    variance = Fraction(sum(move * move for move in moves)) / (2 * rho) if rho else Fraction(WIDEST) ** 3
    return math.sqrt(float_above(variance)) * _MARGIN


@lru_cache(maxsize=1024)
def _concentrate_scale(moves: tuple[int, ...], cost: ZCDP) -> float:
    """The narrowest Laplace scale within a ρ; the Gaussian's σ is always wide enough, for ρ ≤ ε²/2."""
    high = math.sqrt(sum(move * move for move in moves) / (2 * float_below(cost.rho))) * _MARGIN
    low = high / 2.0**20
    for _ in range(60):
        middle = math.sqrt(low * high)
        if concentrate(moves, Fraction(middle)) <= cost:
            high = middle
        else:
            low = middle
    return high


def _require_scale(scale: float, what: str) -> None:
    if not (math.isfinite(scale) and 1 / WIDEST <= scale <= WIDEST):
        raise MechanismError(f"{what}: the scale of the noise must lie between 2^-40 and 2^40, not {scale:g}")


def _require_covered(loss: PureDP | ZCDP, cost: Finite, what: str) -> None:
    """Refuse a cost that is below the exact privacy loss."""
    if not is_covered(loss, cost):
        raise MechanismError(f"{what}: it loses {loss}, more than its cost of {cost}")


def covers(mechanism: AdditiveNoise, moves: Sequence[int]) -> bool:
    """Whether the noise was made for a unit that moves no cell further, largest against largest."""
    made, moved = sorted(mechanism.moves, reverse=True), sorted(moves, reverse=True)
    return len(made) >= len(moved) and all(wide >= far for wide, far in zip(made, moved, strict=False))


def is_covered(loss: PureDP | ZCDP, cost: Finite) -> bool:
    """Whether a privacy loss, converted into the kind of the cost, is at most the cost."""
    if isinstance(loss, PureDP) and isinstance(cost, ZCDP):
        return imply_zcdp(loss) <= cost
    return type(loss) is type(cost) and loss <= cost
