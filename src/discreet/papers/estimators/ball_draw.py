"""A draw of regression weights from a Gaussian posterior that is truncated to a ball.

The sums are exact whole numbers; the draw itself is rejection sampling in float64 from the operating system's entropy,
rounded to a public grid. So unlike counts with integer noise it is exact only up to float64: what a probability is off
by is of the order of 2^-50 times the exponent, which no experiment sees and no proof here covers.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.core.counter import TrueCounts
from discreet.core.mechanism import is_covered
from discreet.papers.estimators.sums import BoundedColumn, count_steps
from discreet.values.budget import Finite, PureDP, afford_pure
from discreet.values.errors import MechanismError
from discreet.values.text import float_above, float_below
from discreet.values.unit import Unit

Floats = npt.NDArray[np.float64]

LEAST_ACCEPTANCE = 1e-5
"""A draw that would wait longer is refused before it is paid for."""
BATCH = 2**12
"""Proposals per round of rejection."""
GRID = 2.0**-24
"""The drawn weights are multiples of this share of the radius."""


@dataclass(frozen=True, slots=True, eq=False)
class BallPosterior:
    """Weights w with P(w) ∝ exp(−(τ/2)·Σ(y − w·x)² − (b/2)‖w‖²), ‖w‖ ≤ B, for |y| ≤ 1 and every |x_j| ≤ 1.

    A record's log-likelihood lies between −(τ/2)(1 + √q·B)² and 0 for q features, the constant among them, so a draw
    loses u·(τ/2)(1 + √q·B)² with u = 1 (add-remove) or 2 (replace-one) [002, Sec. Experiments; Thm. 4.1].
    """

    products: tuple[tuple[int, int], ...]
    """Which two features each column is the product of; feature 0 is the constant 1, feature q is the label."""
    columns: tuple[BoundedColumn, ...]
    features: int
    """q, the constant included."""
    temper: Fraction
    """τ, the inverse of the noise variance that the model assumes."""
    precision: float
    radius: float
    cost: Finite
    unit: Unit

    def __post_init__(self) -> None:
        if not (0 < self.precision < math.inf and 0 < self.radius < math.inf):
            raise MechanismError("the precision and the radius must be numbers above 0")
        if expect_acceptance(self.features, self.precision, self.radius) < LEAST_ACCEPTANCE:
            raise MechanismError(
                f"{self.features} weights from a prior of precision {self.precision:g} would hardly ever fall into the "
                f"ball of radius {self.radius:g}; use method='statistics', fewer features, or a larger precision"
            )
        if any(column.origin for column in self.columns):
            raise MechanismError("sums for a posterior must be counted from the origin 0")
        if any(max(abs(column.lower), abs(column.upper)) > 1 for column in self.columns):
            raise MechanismError("features, label and their products must lie between −1 and 1")
        if not is_covered(self.loss, self.cost):
            raise MechanismError(f"a draw loses {self.loss}, more than its cost of {self.cost}")

    @property
    def loss(self) -> PureDP:
        """u·(τ/2)(1 + √q·B)², with an allowance for the rounding of the products to their grid."""
        grain = max(column.granularity for column in self.columns)
        return PureDP(self.temper * bound_record(self.features, self.radius, grain, self.unit))

    def describe(self) -> dict[str, Any]:
        """The model, for the ledger."""
        return {
            "verb": "draw",
            "draw": "regression weights",
            "products": [list(pair) for pair in self.products],
            "columns": [column.describe() for column in self.columns],
            "features": self.features,
            "temper": str(self.temper),
            "precision": self.precision.hex(),
            "radius": self.radius.hex(),
        }

    def check(self, rows: TrueCounts) -> None:
        """Refuse columns that were not opened as numbers."""
        rows.counter.check_numbers([column.name for column in self.columns])

    def read(self, stored: list[Any]) -> list[float]:
        """The weights as they were drawn."""
        return [float(weight) for weight in stored]

    def draw(self, rows: TrueCounts) -> list[Any]:
        """The weights, the constant's first."""
        sums = [
            float(total) * float(column.granularity)
            for total, column in zip(count_steps(self.columns, rows), self.columns, strict=True)
        ]
        gram, target = arrange_sums(self.products, sums, self.features, float(rows.counter.rows))
        tau = float(self.temper)
        precision = tau * gram + self.precision * np.eye(self.features)
        weights = draw_in_ball(precision, tau * target, self.radius)
        step = GRID * self.radius
        return [float(weight) for weight in np.rint(weights / step) * step]


def expect_acceptance(features: int, precision: float, radius: float) -> float:
    """The chance that a draw of the prior alone lies in the ball: P(χ²_q ≤ bB²), by the series of its distribution.

    Rows only add precision, so this is about the least that a draw has to wait for; it follows from public numbers.
    """
    half, x = features / 2.0, precision * radius**2 / 2.0
    term = total = 1.0 / half
    for step in range(1, 1000):
        term *= x / (half + step)
        total += term
    if x > 500.0:
        return 1.0
    return min(1.0, math.exp(half * math.log(x) - x - math.lgamma(half)) * total)


def calibrate_ball(
    products: Sequence[tuple[int, int]],
    columns: Sequence[BoundedColumn],
    features: int,
    spend: Finite,
    *,
    unit: Unit,
    precision: float,
    radius: float,
) -> BallPosterior:
    """The draw with the largest τ that the spend pays for."""
    grain = max(column.granularity for column in columns)
    epsilon = Fraction(float_below(afford_pure(spend).epsilon))
    temper = Fraction(float_below(epsilon / bound_record(features, radius, grain, Unit.read(unit))))
    return BallPosterior(
        tuple(products), tuple(columns), features, temper, precision, radius, spend, Unit.read(unit)
    )


def bound_record(features: int, radius: float, grain: Fraction, unit: Unit) -> Fraction:
    """What a draw loses per unit of τ: u/2 times the largest squared residual, rounded up."""
    residual = Fraction(float_above(Fraction(1.0 + math.sqrt(features) * radius) * (1 + Fraction(1, 2**40))))
    return residual**2 * (1 + grain) * unit.at_most / (1 if unit.fixes_rows else 2)


def arrange_sums(
    products: Sequence[tuple[int, int]], sums: Sequence[float], features: int, rows: float
) -> tuple[Floats, Floats]:
    """Σxxᵀ and Σxy from the sums of the products."""
    gram, target = np.zeros((features, features)), np.zeros(features)
    gram[0, 0] = rows
    for (i, j), total in zip(products, sums, strict=True):
        if j == features:
            if i < features:
                target[i] = total
        else:
            gram[i, j] = gram[j, i] = total
    return gram, target


def draw_in_ball(precision: Floats, linear: Floats, radius: float) -> Floats:
    """A draw from exp(−½wᵀPw + hᵀw) on ‖w‖ ≤ B, by rejection.

    With λ ≥ 0 such that w* = (P + λI)⁻¹h lies in the ball, on its border if λ > 0, proposals from N(w*, (P + λI)⁻¹) are
    accepted with probability exp(−(λ/2)(B² − ‖w‖²)): the quotient of the densities is ∝ exp((λ/2)‖w‖²).
    """
    values, vectors = np.linalg.eigh((precision + precision.T) / 2.0)
    turned = vectors.T @ linear
    values = np.maximum(values, 0.0)

    def place(shift: float) -> Floats:
        return np.asarray(turned / np.maximum(values + shift, 1e-300))

    low, high = 0.0, 0.0
    if not values.min() > 0 or np.linalg.norm(place(0.0)) > radius:
        high = float(np.linalg.norm(turned)) / radius + 1e-9
        for _ in range(200):
            middle = (low + high) / 2.0
            low, high = (middle, high) if np.linalg.norm(place(middle)) > radius else (low, middle)
    shift = high
    spread = 1.0 / np.sqrt(values + shift)
    centre = place(shift)
    while True:
        proposals = centre + spread * draw_normals(BATCH, values.size)
        squares = (proposals**2).sum(axis=1)
        chance = np.where(squares <= radius**2, np.exp(-0.5 * shift * (radius**2 - squares)), 0.0)
        taken = np.flatnonzero(draw_uniforms(BATCH) < chance)
        if taken.size:
            return np.asarray(vectors @ proposals[taken[0]])


def draw_uniforms(count: int) -> Floats:
    """Multiples of 2^-53 above 0 and at most 1, from the operating system."""
    words = np.frombuffer(os.urandom(8 * count), dtype=np.uint64) >> np.uint64(11)
    return np.asarray((words.astype(np.float64) + 1.0) * 2.0**-53)


def draw_normals(count: int, size: int) -> Floats:
    """Standard normal draws by Box and Muller's method."""
    cells = count * size
    radii = np.sqrt(-2.0 * np.log(draw_uniforms(cells)))
    return np.asarray(radii * np.cos(2.0 * np.pi * draw_uniforms(cells))).reshape(count, size)
