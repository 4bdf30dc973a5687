"""How much power an attack can have: what theory expects of a plain network, and what a promise allows at most.

α is the share of strangers that an attack takes for members, β the share of members that it finds.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from discreet.values.budget import ZCDP, ApproxDP, Budget, Infinite, PureDP
from discreet.values.errors import BudgetError, DataError

Floats = npt.NDArray[np.float64]

_ORDERS = 1.0 + np.geomspace(1e-4, 1e5, 450)
"""Rényi orders at which the ceiling of zCDP is checked; leaving any out can only raise it, never break it."""

_NORMAL = NormalDist()


def expect_power(complexity: int, rows: int, errors: npt.ArrayLike) -> Floats:
    """The power that a likelihood-ratio attack on a plain network is expected to have [003, Thm. 1].

    z_α + z_{1−β} = √(C(G)/|T|), where z_s is the normal quantile at 1 − s; hence β = Φ(√(C(G)/|T|) − z_α).
    """
    if rows < 1 or complexity < 0:
        raise DataError(
            f"Theorem 1 needs at least 1 row and no negative complexity, not {rows} and {complexity}"
        )
    return shift_normal(math.sqrt(complexity / rows), errors)


def shift_normal(mean: float, errors: npt.ArrayLike) -> Floats:
    """β = Φ(Φ⁻¹(α) + mean): how well N(mean, 1) is told from N(0, 1) [DRS22]."""
    return np.array([_shift(mean, alpha) for alpha in _read_errors(errors).ravel()]).reshape(np.shape(errors))


def limit_power(budget: Budget, errors: npt.ArrayLike) -> Floats:
    """The greatest power that any attack on one person can have if the budget is what was really spent."""
    if isinstance(budget, Infinite):
        return np.ones_like(_read_errors(errors))
    if isinstance(budget, PureDP):
        return limit_approx(float(budget.epsilon), 0.0, errors)
    if isinstance(budget, ApproxDP):
        return limit_approx(float(budget.epsilon), float(budget.delta), errors)
    if isinstance(budget, ZCDP):
        return limit_concentrated(float(budget.rho), errors)
    raise BudgetError(f"no ceiling is known for {budget!r}")


def limit_approx(epsilon: float, delta: float, errors: npt.ArrayLike) -> Floats:
    """β ≤ min(e^ε·α + δ, 1 − e^−ε·(1 − α − δ), 1), attained by randomised response [KOV17, Thm. 2.1]."""
    alpha = _read_errors(errors)
    near = (math.exp(epsilon) if epsilon < 700 else math.inf) * np.maximum(alpha, 5e-324) + delta
    far = 1.0 - math.exp(-epsilon) * (1.0 - alpha - delta)
    return np.asarray(np.where((alpha == 0.0) & (delta == 0.0), 0.0, np.minimum(np.minimum(near, far), 1.0)))


def limit_concentrated(rho: float, errors: npt.ArrayLike) -> Floats:
    """The greatest β for which the pair (β, α) of coins is itself ρ-zCDP, hence the tight ceiling of ρ-zCDP.

    Deciding is post-processing, so for every order a > 1 both D_a(β‖α) ≤ ρa and D_a(α‖β) ≤ ρa, where D_a is
    the Rényi divergence of two coins; and two coins that satisfy all of them are a ρ-zCDP mechanism that
    reaches β. It lies above the curve of Gaussian noise, Φ(Φ⁻¹(α) + √(2ρ)), which is ρ-zCDP as well.
    """
    alpha = _read_errors(errors)
    low, high = alpha.copy(), np.ones_like(alpha)
    for _ in range(60):
        middle = (low + high) / 2
        fits = _is_concentrated(middle, alpha, rho)
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
    return np.where(alpha <= 0.0, 0.0, np.where(alpha >= 1.0, 1.0, high))


def _is_concentrated(beta: Floats, alpha: Floats, rho: float) -> npt.NDArray[np.bool_]:
    """Whether both divergences stay below ρa at every order."""
    order = _ORDERS.reshape(-1, *[1] * np.ndim(alpha))
    with np.errstate(divide="ignore", invalid="ignore"):
        ours, theirs = (np.log(beta), np.log1p(-beta)), (np.log(alpha), np.log1p(-alpha))
        moments = [
            np.logaddexp(order * p + (1.0 - order) * q, order * p_rest + (1.0 - order) * q_rest)
            for (p, p_rest), (q, q_rest) in ((ours, theirs), (theirs, ours))
        ]
        exceeds = np.maximum(*moments) / (order - 1.0) > rho * order + 1e-12
    return np.asarray(~exceeds.any(axis=0))


def _shift(mean: float, alpha: float) -> float:
    if alpha in (0.0, 1.0):
        return alpha
    return _NORMAL.cdf(_NORMAL.inv_cdf(alpha) + mean)


def _read_errors(errors: npt.ArrayLike) -> Floats:
    found = np.asarray(errors, dtype=np.float64)
    if not ((found >= 0.0) & (found <= 1.0)).all():
        raise DataError(
            f"error levels lie between 0 and 1, not at {found[~((found >= 0) & (found <= 1))][0]}"
        )
    return found
