"""The (stochastic) Lipschitz quantities of a network, and what Theorem 4 makes of them [002, Lemmas 2-3, Thm. 4]."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.values.errors import MechanismError, MissingExtra

KAPPA, OMEGA = 4.91081, 1.25643
"""The constants of [002, Thm. 4.2]."""


@dataclass(frozen=True, slots=True)
class StochasticBound:
    """What Theorem 4.2 guarantees: no event moves by more than `delta` between neighbours; above 1 that is nothing."""

    m: float
    delta: float
    conditions: bool
    """Whether the premises of the theorem hold; if not, it says nothing either."""

    @property
    def vacuous(self) -> bool:
        """Whether the guarantee excludes nothing at all."""
        return self.delta >= 1.0 or not self.conditions

    def __str__(self) -> str:
        if not self.conditions:
            return "no guarantee: the premises of Theorem 4.2 do not hold"
        verdict = "vacuous: a probability cannot move further" if self.vacuous else "(0, δ)-private"
        return f"M = {self.m:.3g}, δ = {self.delta:.3g}: {verdict}"


def bound_log_ratio(floor: float, levels: int = 2) -> float:
    """L = log((1 − (k−1)ω)/ω), the most that one value in place of another changes a log-probability of at least ω."""
    if not 0 < floor <= 1 / levels:
        raise MechanismError(f"ω is above 0 and at most 1/{levels}, not {floor:g}")
    return math.log((1 - (levels - 1) * floor) / floor)


def sum_log_ratios(floors: Sequence[float], levels: Sequence[int]) -> float:
    """Σ_i L_i: what a whole record changes log p_θ by.

    Lemma 2 of [002] states max_i L_i per unit of a distance that adds up the nodes; a record is d units away, and a
    child's conditional changes with its parents, too.
    """
    return math.fsum(bound_log_ratio(omega, k) for omega, k in zip(floors, levels, strict=True))


def concentrate(alpha: float, beta: float, start: float) -> float:
    """The c of a Beta(α, β) prior: the largest with P(|log(θ/(1−θ))| > L) ≤ e^{−cL} for all L ≥ L₀ [002, Asm. 2]."""
    if not (alpha > 0 and beta > 0 and start > 0):
        raise MechanismError("α, β and L₀ are above 0")
    special = _open_special()
    # Beyond the grid the rate only nears its limit min(α, β) from below or stays above it.
    lengths = start + np.linspace(0.0, 600.0 / max(1.0, min(alpha, beta)), 20_001)
    border = 1.0 / (1.0 + np.exp(lengths))
    with np.errstate(divide="ignore"):
        tail = np.log(special.betainc(alpha, beta, border) + special.betainc(beta, alpha, border))
    rates = -tail[np.isfinite(tail)] / lengths[np.isfinite(tail)]
    return float(min(rates.min(initial=math.inf), min(alpha, beta)))


def join_concentrations(rates: Sequence[float], start: float) -> float:
    """c' = min c_i − ln|I|/L₀, or 0 where |I| > e^{L₀·min c_i} and the lemma does not apply [002, Lemma 3]."""
    return max(0.0, min(rates) - math.log(len(rates)) / start)


def compare_likelihoods(priors: Mapping[str, npt.ArrayLike]) -> dict[str, float]:
    """C_i = max_x 1/E[θ_x]: the maximum over the marginal likelihood of one value of node i [002, Thm. 4.2]."""
    found = {}
    for name, prior in priors.items():
        alpha = np.asarray(prior, dtype=np.float64)
        found[name] = float((alpha.sum(axis=-1, keepdims=True) / alpha).max())
    return found


def bound_stochastically(
    rate: float, start: float, ratios: Sequence[float], *, share: float = 0.5, distance: float = 1.0
) -> StochasticBound:
    """M and δ = √(M/2)·max(ρ, 1) of Theorem 4.2, from c, L₀ and the C_i; `share` is the δ in ρ ≤ (1 − δ)c."""
    if not 0 < share < 1:
        raise MechanismError(f"the share lies strictly between 0 and 1, not {share}")
    if not rate > 0:
        return StochasticBound(math.inf, math.inf, False)
    c = math.prod(ratios)
    inner = math.exp(-start * share * rate) / (math.exp(-OMEGA * (1 - share)) - math.exp(-OMEGA))
    inner += math.exp(start * (1 - share) * rate)
    m = KAPPA / rate + start * (1 / (1 - math.exp(-OMEGA)) + 1) + math.log(c) + math.log(inner)
    holds = distance <= (1 - share) * rate
    return StochasticBound(m * c, math.sqrt(m * c / 2.0) * max(distance, 1.0), holds)


def _open_special() -> Any:
    try:
        from scipy import special
    except ImportError:
        raise MissingExtra(
            "the concentration of a prior needs SciPy: pip install 'discreet[sklearn]'"
        ) from None
    return special
