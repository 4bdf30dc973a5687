"""Amounts of privacy loss as exact fractions, and between their kinds, always rounding to the safe side.

`imply_*` weakens a guarantee that holds into another kind, and rounds what it costs up.
`afford_*` finds the most of another kind that a budget pays for, and rounds that down.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, Self

from discreet.values.errors import BudgetError, FormatError, Overspent
from discreet.values.text import Number, read_fraction, read_positive, show_equation, show_fraction

LARGEST = 10**9
"""Beyond it a number protects nothing; a look without privacy is `Infinite`, and says so."""
SMALLEST = Fraction(1, 10**9)
"""Below it the noise drowns every table that fits a disk."""
LONGEST = 10**30
"""The largest denominator of an amount that somebody asks for; longer ones would make every later sum longer."""
DIGITS = 12
"""Converted amounts are rounded to so many digits, far more than their rounding errors reach."""
FLOAT_WEIGHT_GRAIN = 10**9
"""Weights that are floats are rounded to this many equal parts, so that the shares stay short to write."""


class _Amount:
    """The arithmetic that the three finite kinds share: componentwise on exact fractions."""

    __slots__ = ()

    @classmethod
    def zero(cls) -> Self:
        """Nothing spent; it cannot be asked for as a budget, only reached."""
        return cls._make([Fraction(0)] * len(fields(cls)))  # type: ignore[arg-type]

    @classmethod
    def _make(cls, amounts: Sequence[Fraction]) -> Self:
        # Goes round __post_init__, which refuses the zero that a difference may well be.
        made = object.__new__(cls)
        for field, amount in zip(fields(cls), amounts, strict=True):  # type: ignore[arg-type]
            object.__setattr__(made, field.name, amount)
        return made

    @property
    def amounts(self) -> tuple[Fraction, ...]:
        """The exact components in field order."""
        return tuple(getattr(self, field.name) for field in fields(self))  # type: ignore[arg-type]

    @property
    def is_zero(self) -> bool:
        """Whether nothing is left or nothing was spent."""
        return not any(self.amounts)

    def _other(self, other: Any, verb: str) -> tuple[Fraction, ...]:
        if type(other) is not type(self):
            raise BudgetError(f"cannot {verb} {self} and {other}: they are of different kinds")
        amounts: tuple[Fraction, ...] = other.amounts
        return amounts

    def __add__(self, other: Any) -> Any:
        if isinstance(other, Infinite):
            return other
        return self._make([a + b for a, b in zip(self.amounts, self._other(other, "add"), strict=True)])

    def __sub__(self, other: Any) -> Self:
        if isinstance(other, Infinite):
            raise Overspent(f"requested {other}, but only {self} is left")
        left = [a - b for a, b in zip(self.amounts, self._other(other, "subtract"), strict=True)]
        if min(left) < 0:
            excess = self._make([max(-amount, Fraction(0)) for amount in left])
            raise Overspent(f"requested {other}, but only {self} is left: {excess} too much")
        return self._make(left)

    def __mul__(self, share: Number) -> Self:
        if isinstance(share, _Amount | Infinite):
            return NotImplemented
        exact = read_positive(share, "a share of a budget", BudgetError)
        return self._make([amount * exact for amount in self.amounts])

    __rmul__ = __mul__

    def __truediv__(self, parts: Number) -> Self:
        return self * (1 / read_positive(parts, "the number of parts of a budget", BudgetError))

    def __le__(self, other: Any) -> bool:
        if isinstance(other, Infinite):
            return True
        return all(a <= b for a, b in zip(self.amounts, self._other(other, "compare"), strict=True))

    def __lt__(self, other: Any) -> bool:
        return bool(self <= other and self != other)

    def __ge__(self, other: Any) -> bool:
        if isinstance(other, Infinite):
            return False
        return all(a >= b for a, b in zip(self.amounts, self._other(other, "compare"), strict=True))

    def __gt__(self, other: Any) -> bool:
        return bool(self >= other and self != other)

    def split(self, weights: int | Sequence[Number]) -> tuple[Self, ...]:
        """Shares in proportion to positive weights, or so many equal ones; they sum exactly to the whole."""
        if isinstance(weights, int):
            if weights < 1:
                raise BudgetError(f"a budget can be split into 1 part or more, not into {weights}")
            weights = [1] * weights
        if not weights:
            raise BudgetError("a budget cannot be split without weights")
        exact = [read_positive(weight, "a weight", BudgetError) for weight in weights]
        if any(not isinstance(weight, Fraction | Decimal | int | str) for weight in weights):
            exact = _round_weights(exact)
        total = sum(exact)
        return tuple(self._make([amount * weight / total for amount in self.amounts]) for weight in exact)

    def to_json(self) -> dict[str, str]:
        """Each component under its name, as the text of an exact fraction."""
        return {field.name: str(getattr(self, field.name)) for field in fields(self)}  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class PureDP(_Amount):
    """ε-differential privacy: no event gets more than e^ε times as likely."""

    epsilon: Fraction

    def __init__(self, epsilon: Number) -> None:
        object.__setattr__(self, "epsilon", _read_amount(epsilon, "ε"))

    def __str__(self) -> str:
        return show_equation("ε", self.epsilon)


@dataclass(frozen=True, slots=True)
class ZCDP(_Amount):
    """ρ-zero-concentrated differential privacy: every Rényi divergence of order α is at most ρα."""

    rho: Fraction

    def __init__(self, rho: Number) -> None:
        object.__setattr__(self, "rho", _read_amount(rho, "ρ"))

    def __str__(self) -> str:
        return show_equation("ρ", self.rho)


@dataclass(frozen=True, slots=True)
class ApproxDP(_Amount):
    """(ε, δ)-differential privacy: what an account promises; its spends are counted in the ρ that this buys."""

    epsilon: Fraction
    delta: Fraction

    def __init__(self, epsilon: Number, delta: Number) -> None:
        object.__setattr__(self, "epsilon", _read_amount(epsilon, "ε"))
        exact = read_fraction(delta, "δ", BudgetError)
        if not 0 <= exact < 1:
            raise BudgetError(f"δ must be at least 0 and below 1, not {show_fraction(exact)}")
        object.__setattr__(self, "delta", exact)

    def __str__(self) -> str:
        return f"{show_equation('ε', self.epsilon)}, {show_equation('δ', self.delta)}"


@dataclass(frozen=True, slots=True)
class Infinite:
    """The cost of a look without privacy: it swallows every other amount, and nothing covers it."""

    @property
    def is_zero(self) -> bool:
        return False

    def __add__(self, other: Any) -> Infinite:
        return self

    __radd__ = __add__

    def __sub__(self, other: Any) -> Infinite:
        return self

    def __le__(self, other: Any) -> bool:
        return isinstance(other, Infinite)

    def __lt__(self, other: Any) -> bool:
        return False

    def __ge__(self, other: Any) -> bool:
        return isinstance(other, _Amount | Infinite)

    def __gt__(self, other: Any) -> bool:
        return isinstance(other, _Amount)

    def __str__(self) -> str:
        return "ε = ∞"

    def to_json(self) -> dict[str, str]:
        """The one amount that is no fraction."""
        return {"epsilon": "infinite"}


Finite = PureDP | ZCDP | ApproxDP
Budget = PureDP | ZCDP | ApproxDP | Infinite

_KINDS: dict[frozenset[str], type[Finite]] = {
    frozenset(["epsilon"]): PureDP,
    frozenset(["rho"]): ZCDP,
    frozenset(["epsilon", "delta"]): ApproxDP,
}
_NAMES = {
    "epsilon": "epsilon",
    "eps": "epsilon",
    "ε": "epsilon",
    "rho": "rho",
    "ρ": "rho",
    "delta": "delta",
    "δ": "delta",
}


def budget_from_json(document: object) -> Budget:
    """The budget that `to_json` wrote, zero and infinite included; anything else is refused."""
    if document == {"epsilon": "infinite"}:
        return Infinite()
    if isinstance(document, Mapping) and all(isinstance(value, str) for value in document.values()):
        kind = _KINDS.get(frozenset(document))
        if kind is not None:
            exact = {name: read_fraction(document[name], name, FormatError) for name in document}
            if any(amount < 0 for amount in exact.values()) or exact.get("delta", 0) >= 1:
                raise FormatError(f"not a budget: {document!r}")
            return kind._make([exact[field.name] for field in fields(kind)])
    raise FormatError(
        f'a budget is {{"epsilon": "1"}}, {{"rho": "1/8"}} or {{"epsilon", "delta"}}, not {document!r}'
    )


def finite_from_json(document: object) -> Finite:
    """A finite budget from its JSON values."""
    return require_finite(budget_from_json(document))


def require_finite(amount: Budget) -> Finite:
    """The amount, refused if it is infinite."""
    if isinstance(amount, Infinite):
        raise FormatError("ε = ∞ where a finite budget should be")
    return amount


def choose_budget(
    *,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    what: str = "give the cost as",
) -> Finite:
    """The amount that a pure ε, an ε with a δ, or a ρ stands for; `what` begins the sentence of a refusal."""
    if rho is not None and epsilon is None and delta is None:
        return _require_plain(ZCDP(rho))
    if epsilon is not None and rho is None:
        return _require_plain(PureDP(epsilon) if delta is None else ApproxDP(epsilon, delta))
    raise BudgetError(f"{what} --epsilon, --epsilon with --delta, or --rho")


def read_budget(text: str) -> Finite:
    """A budget as people type it: "1", "epsilon=1", "rho=1/8" or "epsilon=1, delta=1e-6"."""
    if "=" not in text:
        return _require_plain(PureDP(text))
    parts = [part.strip() for part in re.split(r"[,;]", text.strip("() "))]
    amounts: dict[str, str] = {}
    for part in parts:
        name, equals, value = part.partition("=")
        amounts[_NAMES.get(name.strip().lower(), "") if equals else ""] = value.strip()
    kind = _KINDS.get(frozenset(amounts))
    if kind is None or len(amounts) < len(parts):  # another name, no value, or one given twice
        raise BudgetError(f'a budget is "epsilon=1", "rho=1/8" or "epsilon=1, delta=1e-6", not {text!r}')
    return _require_plain(kind(**amounts))


def _require_plain(asked: Finite) -> Finite:
    """An amount as people ask for it; what no noise could be made for, or nobody could read, is refused."""
    if asked.amounts[0] < SMALLEST:
        raise BudgetError(f"{asked} is too small to publish anything; ask for at least 1e-9")
    if isinstance(asked, ZCDP) and asked.rho > LARGEST // 10:  # its ε would be too large
        raise BudgetError(f"{asked} is too much to say what it promises; ρ is at most 1e8")
    if max(amount.denominator for amount in asked.amounts) > LONGEST:
        raise BudgetError(f"{asked} has more than 30 digits; round it, for example to 0.333")
    return asked


def _read_amount(value: Number, symbol: str) -> Fraction:
    exact = read_positive(value, symbol, BudgetError)
    if exact > LARGEST:
        raise BudgetError(f"{symbol} must be at most 1e9, not {show_fraction(exact)}")
    return exact


def _round_weights(weights: Sequence[Fraction]) -> list[Fraction]:
    total = sum(weights)
    return [Fraction(max(1, round(weight * FLOAT_WEIGHT_GRAIN / total))) for weight in weights]


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
        raise BudgetError(f"{budget} cannot be turned into a ρ without a δ above 0")
    return ZCDP(_largest(lambda rho: imply_approx(ZCDP(rho), budget.delta) <= budget))


@lru_cache(maxsize=256)
def allow(budget: Finite) -> Finite:
    """What an account's spends are counted in: of an (ε, δ) the ρ that it buys, else the budget itself.

    Steps that are each ρ_i-zCDP, chosen in the light of all answers before, are ρ-zCDP together as long as Σρ_i never
    passes a ρ that was fixed beforehand [FZ21, Thm. 3.1, at every order; WRRW23]. So δ is paid once, for all, but for a
    part that is kept for answers that fail with some probability each, which add up [BS16, Lemma 8.2].
    """
    if not isinstance(budget, ApproxDP):
        return budget
    left = ApproxDP(budget.epsilon, budget.delta - keep_delta(budget))
    return afford_zcdp(left) if left.delta else PureDP(left.epsilon)


def keep_delta(budget: Finite) -> Fraction:
    """The part of an account's δ that is kept for values that nobody declared: a hundredth, for a thousandth of ρ."""
    return budget.delta / 100 if isinstance(budget, ApproxDP) else Fraction(0)


def require_allowance(allowance: Finite, budget: Finite) -> None:
    """Refuse an allowance that would let more be spent than the budget promises."""
    if isinstance(allowance, ZCDP) and isinstance(budget, ApproxDP):
        kept = budget.delta > 0 and imply_approx(allowance, budget.delta - keep_delta(budget)) <= budget
    else:
        kept = allowance == budget or (isinstance(budget, ApproxDP) and allowance == PureDP(budget.epsilon))
    if not kept:
        raise FormatError(f"{allowance} is not within the budget of {budget}")


@lru_cache(maxsize=256)
def price(spend: Finite, budget: Finite) -> Finite:
    """What a spend takes from an account with this budget.

    An account of (ε, δ) takes a ρ as it is, another (ε, δ) as the ρ that it buys, and a pure ε as the ρ of the worst
    mechanism of that ε.
    """
    allowed = allow(budget)
    pure = PureDP(spend.epsilon) if isinstance(spend, ApproxDP) and not spend.delta else spend
    if type(pure) is type(allowed):
        return pure
    if isinstance(budget, ApproxDP) and isinstance(allowed, ZCDP):
        return imply_zcdp(pure) if isinstance(pure, PureDP) else allow(pure)
    raise BudgetError(f"a cost of {spend} is of another kind than the account's budget, {budget}")


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
        raise BudgetError(f"δ must lie strictly between 0 and 1, not {delta}")
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
        raise BudgetError("the budget is too small to convert")
    for _ in range(60):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if fits(Fraction(middle)) else (low, middle)
    return round_down(low)
