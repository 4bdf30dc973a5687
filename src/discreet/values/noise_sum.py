"""The law of a sum of independent noises: what the tables of several custodians hold once they are added up."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.values.errors import FormatError, MechanismError
from discreet.values.measurement import (
    DiscreteGaussian,
    DiscreteLaplace,
    Exact,
    Floats,
    Integers,
    Law,
    _integers,
    _Symmetric,
    law_from_json,
)

MOST_PARTS = 1000
LONGEST = 2**16
"""The longest table of chances; noise too wide for it is tabulated on a coarser grid."""
LEAST = -690.0
"""Logarithms of chances below it are no more than that: e^−690 is the end of what a float holds."""
_STEPS = (0.0, 0.12, 0.25, 0.4, 0.55, 0.7, 0.82, 0.9)
"""Tilts, as shares of the largest one."""

Single = DiscreteLaplace | DiscreteGaussian
Terms = tuple[tuple[Single, int], ...]


@dataclass(frozen=True, slots=True)
class NoiseSum(_Symmetric):
    """X₁ + … + X_K for independent noises, whose variances and log moments add up.

    Its chances are the product of the parts' Fourier transforms, each tilted by e^{tk} for a few t: near the mean of
    the tilted law the transform keeps all its digits, so that tails are right far below 10⁻¹⁶ [as in saddle points].
    """

    parts: tuple[Single, ...]

    def __init__(self, parts: Iterable[Law]) -> None:
        found: list[Single] = []
        for part in parts:
            if isinstance(part, NoiseSum):
                found += part.parts
            elif not isinstance(part, Exact):
                found.append(part)
        if not 2 <= len(found) <= MOST_PARTS:
            raise MechanismError(f"a sum has 2 to {MOST_PARTS:,} noises, not {len(found)}")
        object.__setattr__(self, "parts", tuple(found))

    @property
    def terms(self) -> Terms:
        """Each law with how often it is in the sum; the order does not matter."""
        return tuple(sorted(Counter(self.parts).items(), key=lambda term: str(term[0].to_json())))

    @property
    def widest(self) -> Single:
        """The widest part: the sum gives away no more than it does alone, for more independent noise tells nothing."""
        return max(self.parts, key=lambda part: part.variance)

    @property
    def variance(self) -> float:
        """Σ of the parts' variances."""
        return math.fsum(part.variance for part in self.parts)

    @property
    def steepest(self) -> float:
        """The t from which on E e^{tX} is infinite: 1/s of the widest Laplace noise."""
        return min(law.steepest for law in self.parts)

    @property
    def excess(self) -> float:
        """The fourth cumulant: cumulants of independent noises add up."""
        return math.fsum(law.excess for law in self.parts)

    def log_moment(self, t: Floats) -> Floats:
        """At least log E e^{tX}: the sum of the parts'."""
        return np.asarray(sum(count * law.log_moment(t) for law, count in self.terms))

    def log_pmf(self, k: npt.ArrayLike) -> Floats:
        """The logarithm of the probability of exactly k; where nothing can be told apart from 0, a bound."""
        step, logs, _ = _tabulate(self.terms)
        place = np.minimum((np.abs(_integers(k)) + step // 2) // step, len(logs) - 1)
        return np.asarray(logs[place] - math.log(step))

    @property
    def _reach(self) -> float:
        step, logs, _ = _tabulate(self.terms)
        return float(step * len(logs) + 2)

    def _beyond(self, k: Integers) -> Floats:
        """P(X ≥ k) for k ≥ 1, on a coarse grid rounded up."""
        step, _, tails = _tabulate(self.terms)
        return np.asarray(tails[np.minimum((np.maximum(k, 1) + step // 2) // step, len(tails) - 1)])

    def to_json(self) -> dict[str, Any]:
        """The laws of the parts, in order."""
        return {"law": "sum", "of": [part.to_json() for part in self.parts]}

    def __str__(self) -> str:
        listed = ", ".join(f"{count} of {law}" for law, count in self.terms)
        return f"the sum of {len(self.parts)} noises ({listed})"


def sum_from_json(document: object) -> NoiseSum:
    """The sum that `to_json` wrote."""
    if not isinstance(document, list) or not 2 <= len(document) <= MOST_PARTS:
        raise FormatError(f"a sum of noises lists 2 to {MOST_PARTS:,} laws")
    parts = [law_from_json(part) for part in document]
    if any(isinstance(part, NoiseSum | Exact) for part in parts):
        raise FormatError("a sum of noises lists single noises only")
    return NoiseSum(parts)


def add_laws(laws: Sequence[Law]) -> Law:
    """The law of the sum of independent noises."""
    noisy = [law for law in laws if not isinstance(law, Exact)]
    return NoiseSum(noisy) if len(noisy) > 1 else noisy[0] if noisy else Exact()


@lru_cache(maxsize=32)
def _tabulate(terms: Terms) -> tuple[int, Floats, Floats]:
    """The grid's step, log chances of 0, 1, … steps, and P(X ≥ so many steps), as far as floats reach."""
    reach = _find_reach(terms)
    step = max(1, math.ceil(2 * reach / LONGEST))
    narrow = tuple((_narrow(law, step), count) for law, count in terms)
    length = 1 << math.ceil(math.log2(2 * reach / step + 4))
    k = np.arange(length, dtype=np.int64)
    k = np.where(k < length // 2, k, k - length)
    best = np.full(length // 2, -math.inf)
    logs = np.full(length // 2, -math.inf)
    for t in _choose_tilts(narrow, reach / step):
        found, trust = _tilt(narrow, k, t)
        better = trust > best
        logs[better], best[better] = found[better], trust[better]
    # Where even the nearest tilt has lost its digits, the chance is below a bound that cannot be too small.
    lost = best < -24.0
    if lost.any():
        first = max(int(np.argmax(lost)), 1)
        slope = logs[first - 1] - logs[first - 2] if first > 1 else 0.0
        logs[first:] = logs[first - 1] + slope * np.arange(1, len(logs) - first + 1)
    logs = np.maximum(logs, LEAST)
    shown = np.exp(logs)
    shown[logs <= LEAST] = 0.0
    tails = np.cumsum(shown[::-1])[::-1]
    tails[-1] = 0.0
    for array in (logs, tails):
        array.flags.writeable = False
    return step, logs, tails


def _tilt(terms: Terms, k: Integers, t: float) -> tuple[Floats, Floats]:
    """log P(k) for k ≥ 0 by way of the law tilted by e^{tk}, and how near each is to that law's peak, as a log."""
    product = np.ones(len(k), dtype=np.complex128)
    shift = 0.0
    for law, count in terms:
        logs = law.log_pmf(k) + t * k
        peak = float(logs.max())
        weights = np.exp(logs - peak)
        total = float(weights.sum())
        shift += count * (peak + math.log(total))
        product *= np.fft.fft(weights / total) ** count
    tilted = np.fft.ifft(product).real[: len(k) // 2]
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(np.maximum(tilted, 0.0))
    trust = logs - float(np.max(logs))
    return np.asarray(logs + shift - t * np.arange(len(logs))), np.asarray(trust)


def _choose_tilts(terms: Terms, reach: float) -> list[float]:
    steepest = min(law.steepest for law, _ in terms)
    spread = math.fsum(count * law.variance for law, count in terms)
    most = min(steepest, 1.1 * reach / max(spread, 1e-3))
    return [most * share for share in _STEPS]


def _find_reach(terms: Terms) -> float:
    """A number that the sum exceeds with a chance below e^LEAST, by Chernoff's bound."""
    spread = math.sqrt(math.fsum(count * law.variance for law, count in terms))
    steepest = min(law.steepest for law, _ in terms)
    gaussian = np.geomspace(5.0, 80.0, 200) / max(spread, 1e-3)
    t = gaussian if steepest == math.inf else steepest * np.linspace(0.5, 0.999, 200)
    exponent = -LEAST + sum(count * law.log_moment(t) for law, count in terms)
    return float(np.min(exponent / t)) + 4.0


def _narrow(law: Single, step: int) -> Single:
    """The law on a grid of so many whole numbers: wide noise is nearly continuous, so only its width changes."""
    if step == 1:
        return law
    return (
        DiscreteLaplace(law.scale / step)
        if isinstance(law, DiscreteLaplace)
        else DiscreteGaussian(law.sigma2 / step**2)
    )
