"""What the airlock lets out: noisy tables with what they cost, and the laws of their noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from discreet.values.budget import Budget, budget_from_json
from discreet.values.errors import BudgetError, FormatError, MechanismError, TableError
from discreet.values.table import Table, count_cells, require_cells
from discreet.values.text import (
    Number,
    read_fraction,
    read_positive,
    require_keys,
    require_share,
    show_fraction,
)
from discreet.values.unit import Unit

if TYPE_CHECKING:
    from discreet.values.noise_sum import NoiseSum

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

WIDEST = 2**40
"""The widest scale or σ: far beyond use, and far enough below 2^63 that int64 noise cannot overflow."""
_TABULATED = 10_000.0  # up to this σ the tails are summed cell by cell, above it by Euler-Maclaurin
_REACH = 39.0  # e^(-39²/2) is below the smallest float, so nothing lies further out than 39 σ


class _Symmetric:
    """What two laws of noise around 0 share: all follows from the logarithms of their chances and from their tails."""

    __slots__ = ()

    def log_pmf(self, k: npt.ArrayLike) -> Floats:
        """The logarithm of the probability of exactly k."""
        raise NotImplementedError

    def _beyond(self, k: Integers) -> Floats:
        """P(X ≥ k) for k ≥ 1."""
        raise NotImplementedError

    @property
    def _reach(self) -> float:
        """A number that the noise never exceeds in float64."""
        raise NotImplementedError

    @property
    def steepest(self) -> float:
        """The t from which on E e^{tX} is infinite."""
        return math.inf

    @property
    def excess(self) -> float:
        """The fourth cumulant, about 0 for Gaussian noise."""
        return 0.0

    def pmf(self, k: npt.ArrayLike) -> Floats:
        """The probability of exactly k."""
        return np.exp(self.log_pmf(k))

    def cdf(self, k: npt.ArrayLike) -> Floats:
        """The probability of at most k."""
        whole = _integers(k)
        return np.where(whole < 0, self._beyond(-whole), 1.0 - self._beyond(whole + 1))

    def survival(self, k: npt.ArrayLike) -> Floats:
        """The probability of more than k, with full relative precision far out."""
        return self.cdf(-_integers(k) - 1)  # the law is symmetric

    def quantile(self, p: npt.ArrayLike) -> Integers:
        """The smallest k with cdf(k) ≥ p, by bisection on whichever tail carries the digits of p."""
        wanted = _probabilities(p)
        low = np.full(wanted.shape, -math.ceil(self._reach), dtype=np.int64)  # cdf(low) < p
        high = -low  # cdf(high) ≥ p
        while np.any(high - low > 1):
            middle = (low + high) // 2
            enough = np.where(wanted < 0.5, self.cdf(middle) >= wanted, self.survival(middle) <= 1.0 - wanted)
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        return high

    def bound(self, coverage: float, cells: int = 1) -> int:
        """The smallest h that |noise| exceeds in none of `cells` cells with probability ≥ coverage.

        The cells' noises are independent: (1 − P(|X| > h))^cells ≥ coverage.
        """
        require_share(coverage, "the coverage", MechanismError)
        if cells < 1:
            raise MechanismError(f"a bound covers at least 1 cell, not {cells}")
        allowed = -math.expm1(math.log(coverage) / cells)
        low, high = -1, 1
        while 2.0 * float(self.survival(high)) > allowed:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if 2.0 * float(self.survival(middle)) <= allowed else (middle, high)
        return high


@dataclass(frozen=True, slots=True)
class DiscreteLaplace(_Symmetric):
    """The two-sided geometric law, P(k) = tanh(1/2s)·exp(−|k|/s) with scale s."""

    scale: Fraction

    def __init__(self, scale: Number) -> None:
        object.__setattr__(self, "scale", _read_width(scale, "the scale of a discrete Laplace law"))

    @property
    def variance(self) -> float:
        """2q/(1−q)² with q = exp(−1/s)."""
        rate = float(1 / self.scale)
        return 2.0 * math.exp(-rate) / math.expm1(-rate) ** 2

    @property
    def steepest(self) -> float:
        """1/s."""
        return float(1 / self.scale)

    @property
    def excess(self) -> float:
        """3v² + v for a variance v."""
        return 3.0 * self.variance**2 + self.variance

    def log_pmf(self, k: npt.ArrayLike) -> Floats:
        """The logarithm of the probability of exactly k."""
        rate = float(1 / self.scale)
        return np.asarray(math.log(math.tanh(rate / 2)) - np.abs(_integers(k)) * rate)

    def log_moment(self, t: Floats) -> Floats:
        """log E e^{tX}, infinite from t = 1/s on."""
        rate = float(1 / self.scale)
        with np.errstate(
            invalid="ignore", divide="ignore", over="ignore"
        ):  # beyond 1/s, where it is infinite
            found = (
                2.0 * math.log(-math.expm1(-rate))
                - np.log(-np.expm1(t - rate))
                - np.log(-np.expm1(-t - rate))
            )
        return np.where(np.abs(t) < rate, found, math.inf)

    @property
    def _reach(self) -> float:
        return 800.0 * float(self.scale) + 2.0

    def to_json(self) -> dict[str, Any]:
        """The name of the law and its exact parameter."""
        return {"law": "discrete-laplace", "scale": str(self.scale)}

    def __str__(self) -> str:
        return f"discrete Laplace noise of scale {show_fraction(self.scale)}"

    def _beyond(self, k: Integers) -> Floats:
        """P(X ≥ k) = q^k / (1 + q) for k ≥ 0."""
        rate = float(1 / self.scale)
        return np.exp(-np.maximum(k, 0) * rate) / (1.0 + math.exp(-rate))


@dataclass(frozen=True, slots=True)
class DiscreteGaussian(_Symmetric):
    """The discrete Gaussian law, P(k) = exp(−k²/2σ²) / Σ_j exp(−j²/2σ²), with σ² exact [CKS20, Def. 1]."""

    sigma2: Fraction

    def __init__(self, sigma2: Number) -> None:
        exact = read_positive(sigma2, "the σ² of a discrete Gaussian law", MechanismError)
        if exact > WIDEST**2:
            raise MechanismError(
                f"the σ² of a discrete Gaussian law is at most 2^80, not {show_fraction(exact)}"
            )
        object.__setattr__(self, "sigma2", exact)

    @property
    def variance(self) -> float:
        """Just below σ²; Σ k² P(k), by the same series as the normalising sum."""
        sigma2 = float(self.sigma2)
        if sigma2 >= 4.0:  # the dual series' correction, 8π²σ⁴·exp(−2π²σ²), is below 1e-30 from here on
            return sigma2
        k = np.arange(1, 80, dtype=np.float64)
        return float(2.0 * np.sum(k**2 * np.exp(-(k**2) / (2 * sigma2))) / math.exp(_log_total(self.sigma2)))

    def log_pmf(self, k: npt.ArrayLike) -> Floats:
        """The logarithm of the probability of exactly k."""
        real = _integers(k).astype(np.float64)
        return np.asarray(-(real * real) / (2.0 * float(self.sigma2)) - _log_total(self.sigma2))

    def log_moment(self, t: Floats) -> Floats:
        """At least log E e^{tX}: that of the normal law with the same σ² [CKS20, Lemma 9]."""
        return np.asarray(float(self.sigma2) * t**2 / 2.0)

    @property
    def _reach(self) -> float:
        return _REACH * math.sqrt(float(self.sigma2)) + 2.0

    def to_json(self) -> dict[str, Any]:
        """The name of the law and its exact parameter."""
        return {"law": "discrete-gaussian", "sigma2": str(self.sigma2)}

    def __str__(self) -> str:
        return f"discrete Gaussian noise of variance {show_fraction(self.sigma2)}"

    def _beyond(self, k: Integers) -> Floats:
        """P(X ≥ k) for k ≥ 1 (smaller k are taken as 1, whose value the callers discard)."""
        sigma = math.sqrt(float(self.sigma2))
        first = np.maximum(k, 1)
        if sigma <= _TABULATED:
            tails = _tabulate_tails(self.sigma2)
            return tails[np.minimum(first, len(tails) - 1)]
        # Euler-Maclaurin at x = k − ½: Σ_{j≥k} f(j) = ∫_x f + f'(x)/24 − 7f'''(x)/5760 + O((x/σ²)^5).
        z = (first - 0.5) / sigma
        density = np.exp(-z * z / 2.0)
        area = (
            np.vectorize(math.erfc, otypes=[np.float64])(z / math.sqrt(2.0))
            * math.sqrt(math.pi / 2.0)
            * sigma
        )
        slope = -z / sigma * density
        third = (3.0 * z - z**3) / sigma**3 * density
        return np.asarray((area + slope / 24.0 - 7.0 * third / 5760.0) * math.exp(-_log_total(self.sigma2)))


@dataclass(frozen=True, slots=True)
class Exact:
    """No noise at all: the law of a revealed table."""

    @property
    def variance(self) -> float:
        return 0.0

    @property
    def steepest(self) -> float:
        return math.inf

    @property
    def excess(self) -> float:
        return 0.0

    def log_pmf(self, k: npt.ArrayLike) -> Floats:
        """0 at 0 and −∞ elsewhere."""
        return np.where(_integers(k) == 0, 0.0, -math.inf)

    def pmf(self, k: npt.ArrayLike) -> Floats:
        """1 at 0 and 0 elsewhere."""
        return np.where(_integers(k) == 0, 1.0, 0.0)

    def cdf(self, k: npt.ArrayLike) -> Floats:
        """1 from 0 on."""
        return np.where(_integers(k) >= 0, 1.0, 0.0)

    def survival(self, k: npt.ArrayLike) -> Floats:
        """1 below 0."""
        return np.where(_integers(k) < 0, 1.0, 0.0)

    def quantile(self, p: npt.ArrayLike) -> Integers:
        """Always 0."""
        return np.zeros_like(_probabilities(p), dtype=np.int64)

    def bound(self, coverage: float, cells: int = 1) -> int:
        """Always 0."""
        return 0

    def log_moment(self, t: Floats) -> Floats:
        """Always 0."""
        return np.zeros_like(t)

    def to_json(self) -> dict[str, Any]:
        """Only a name."""
        return {"law": "exact"}

    def __str__(self) -> str:
        return "no noise"


Law: TypeAlias = "DiscreteLaplace | DiscreteGaussian | Exact | NoiseSum"


def law_from_json(document: object) -> Law:
    """The law that `to_json` wrote; anything else is refused."""
    if isinstance(document, Mapping) and document.get("law") == "sum" and set(document) == {"law", "of"}:
        from discreet.values.noise_sum import sum_from_json  # read with sums only: it builds on these laws

        return sum_from_json(document["of"])
    makers: dict[tuple[object, frozenset[str]], Callable[[Mapping[str, Any]], Any]] = {
        ("discrete-laplace", frozenset(["law", "scale"])): lambda found: DiscreteLaplace(found["scale"]),
        ("discrete-gaussian", frozenset(["law", "sigma2"])): lambda found: DiscreteGaussian(found["sigma2"]),
        ("exact", frozenset(["law"])): lambda found: Exact(),
    }
    if isinstance(document, Mapping) and all(isinstance(value, str) for value in document.values()):
        make = makers.get((document.get("law"), frozenset(document)))
        if make is not None:
            try:
                law: Law = make(document)
            except MechanismError as error:
                raise FormatError(str(error)) from None
            return law
    raise FormatError(f'a law is {{"law": "discrete-laplace", "scale": "2"}} or the like, not {document!r}')


def _read_width(value: Number, what: str) -> Fraction:
    exact = read_positive(value, what, MechanismError)
    if exact > WIDEST or exact < Fraction(1, WIDEST):
        raise MechanismError(f"{what} must lie between 2^-40 and 2^40, not {show_fraction(exact)}")
    return exact


def _integers(k: npt.ArrayLike) -> Integers:
    found = np.asarray(k)
    if not np.issubdtype(found.dtype, np.integer):
        raise MechanismError(f"noise is on whole numbers, not on {found.dtype}")
    return found.astype(np.int64)


def _probabilities(p: npt.ArrayLike) -> Floats:
    found = np.asarray(p, dtype=np.float64)
    if not np.all((found > 0) & (found < 1)):
        raise MechanismError("a quantile needs a probability strictly between 0 and 1")
    return found


@lru_cache(maxsize=64)
def _log_total(sigma2: Fraction) -> float:
    """log Σ_j exp(−j²/2σ²), through the dual series √(2πσ²)·Σ_j exp(−2π²σ²j²) where that one is faster."""
    s = float(sigma2)
    j = np.arange(1, 40, dtype=np.float64)
    if s < 0.5:
        return math.log1p(2.0 * float(np.exp(-(j**2) / (2 * s)).sum()))
    return 0.5 * math.log(2 * math.pi * s) + math.log1p(2.0 * float(np.exp(-2 * math.pi**2 * s * j**2).sum()))


@lru_cache(maxsize=16)
def _tabulate_tails(sigma2: Fraction) -> Floats:
    """P(X ≥ k) for k = 0, 1, … until nothing is left, summed from the far end so that no digit is lost."""
    s = float(sigma2)
    k = np.arange(math.ceil(_REACH * math.sqrt(s)) + 2, dtype=np.float64)
    tails = np.cumsum(np.exp(-(k**2) / (2 * s) - _log_total(sigma2))[::-1])[::-1]
    tails[-1] = 0.0
    tails.flags.writeable = False
    return tails


@dataclass(frozen=True, slots=True, eq=False)
class Measurement:
    """A table of counts with noise of a known law in every cell; negative cells are part of it."""

    noisy: Table
    law: Law
    unit: Unit
    cost: Budget
    """Infinite for exact counts."""
    rate: Fraction = Fraction(1)
    """The share of the rows that was counted: below 1 for a secret random sample."""

    def __post_init__(self) -> None:
        if self.noisy.values.dtype != np.int64:
            raise TableError(f"a measured table holds int64 counts, not {self.noisy.values.dtype}")

    @property
    def axes(self) -> tuple[str, ...]:
        """The attributes that were counted."""
        return self.noisy.axes

    @property
    def cells(self) -> int:
        """The number of cells."""
        return self.noisy.cells

    def to_json(self) -> dict[str, Any]:
        """The whole measurement; the counts are listed in row-major order of the axes."""
        return {
            "axes": list(self.axes),
            "shape": list(self.noisy.values.shape),
            "counts": self.noisy.values.ravel().tolist(),
            "law": self.law.to_json(),
            "unit": self.unit.value,
            "cost": self.cost.to_json(),
            "rate": str(self.rate),
        }

    @classmethod
    def from_json(cls, document: object) -> Measurement:
        """The measurement that `to_json` wrote; anything malformed is refused."""
        keys = ("axes", "shape", "counts", "law", "unit", "cost", "rate")
        found = require_keys(document, "a measurement", keys)
        axes, shape, counts = found["axes"], found["shape"], found["counts"]
        if not (isinstance(axes, list) and all(isinstance(name, str) for name in axes)):
            raise FormatError(f"the axes of a measurement are names, not {axes!r}")
        if not (are_integers(shape) and len(shape) == len(axes) and all(size > 0 for size in shape)):
            raise FormatError(
                f"the shape of a measurement over {axes} has one positive size per axis, not {shape!r}"
            )
        require_cells(f"the measurement over {axes}", shape)
        if not are_integers(counts) or len(counts) != count_cells(shape):
            raise FormatError(f"the measurement over {axes} needs {count_cells(shape)} whole counts")
        try:
            noisy = Table(tuple(axes), np.array(counts, dtype=np.int64).reshape(shape))
        except (OverflowError, TableError) as error:
            raise FormatError(f"the measurement over {axes} is malformed: {error}") from None
        rate = read_fraction(found["rate"], "a sampling rate", FormatError)
        if not 0 < rate <= 1:
            raise FormatError(f"a sampling rate must be above 0 and at most 1, not {rate}")
        unit, cost = read_unit(found["unit"]), budget_from_json(found["cost"])
        return cls(noisy, law_from_json(found["law"]), unit, cost, rate)


def read_unit(value: object) -> Unit:
    """The unit in a document."""
    try:
        return Unit.read(str(value))
    except BudgetError as error:
        raise FormatError(str(error)) from None


def are_integers(values: object) -> bool:
    """Whether it is a list of whole numbers."""
    return isinstance(values, list) and all(type(value) is int for value in values)
