"""A draw of regression weights from a Gaussian posterior that is truncated to a ball.

The sums are exact whole numbers; the draw itself is a Markov chain in float64 from the operating system's entropy,
rounded to a public grid. It takes a number of steps that depends on the number of features alone, so neither whether it
ends nor how long it takes tells anything of the rows. But unlike counts with integer noise its ε is not proved to the
last bit: a probability is off by some 2^-50 times the exponent for rounding, and by what the chain has not forgotten of
its start.
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

STEPS = 128
"""Steps of the chain for each feature."""
NOT_PROVED = "ε holds up to float64 and to what the chain has not forgotten of its start, which is not proved"
"""What the ledger and a fitted model say of a draw."""
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
        self.unit.require_rows("a draw of weights")
        if not (0 < self.precision < math.inf and 0 < self.radius < math.inf):
            raise MechanismError("the precision and the radius must be numbers above 0")
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
            "proved": NOT_PROVED,
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
    return residual**2 * (1 + grain) * unit.reach / (1 if unit.fixes_rows else 2)


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
    """A draw from exp(−½wᵀPw + hᵀw) on ‖w‖ ≤ B, by hit-and-run from the mode [Lovász and Vempala 2006].

    Each step goes along a line of random direction, uniform where P is the identity, and draws the place on it from the
    density itself: a normal one, cut off where the line leaves the ball.
    """
    values, vectors = np.linalg.eigh((precision + precision.T) / 2.0)
    values = np.maximum(values, 1e-12 * max(float(values.max()), 1e-300))
    turned = vectors.T @ linear
    spread, mean = 1.0 / np.sqrt(values), turned / values
    place = _find_mode(values, turned, radius)
    steps = STEPS * values.size
    aims, chances = draw_normals(steps, values.size), draw_uniforms(steps)
    aims /= np.maximum(np.linalg.norm(aims, axis=1, keepdims=True), 1e-300)
    for aim, chance in zip(aims, chances, strict=True):
        line = spread * aim
        slope, along, room = line @ line, place @ line, min(float(place @ place) - radius**2, 0.0)
        root = math.sqrt(along**2 - slope * room)
        middle = -float(aim @ ((place - mean) / spread))
        low, high = (-along - root) / slope, (-along + root) / slope
        place = place + (middle + _cut_normal(low - middle, high - middle, float(chance))) * line
        place *= min(1.0, radius / max(float(np.linalg.norm(place)), 1e-300))
    return np.asarray(vectors @ place)


def _find_mode(values: Floats, turned: Floats, radius: float) -> Floats:
    """(P + λI)⁻¹h with the least λ ≥ 0 that puts it into the ball, where P is diagonal; always 200 halvings."""
    low, high = 0.0, float(np.linalg.norm(turned)) / radius + 1e-9
    if np.linalg.norm(turned / values) <= radius:
        high = 0.0
    for _ in range(200):
        middle = (low + high) / 2.0
        if np.linalg.norm(turned / (values + middle)) > radius:
            low = middle
        else:
            high = middle
    return np.asarray(turned / (values + high))


def _cut_normal(low: float, high: float, chance: float) -> float:
    """The quantile of a standard normal that is cut off outside of low and high, in the tail where logs are exact."""
    from scipy.special import log_ndtr, ndtri_exp

    flipped = low > 0
    if flipped:
        low, high = -high, -low
    below, above = float(log_ndtr(low)), float(log_ndtr(high))
    # Φ(x) = (1 − p)·Φ(low) + p·Φ(high); p is never 0.
    mixed = np.logaddexp(below + math.log1p(-chance) if chance < 1 else -math.inf, above + math.log(chance))
    found = min(max(float(ndtri_exp(mixed)), low), high)
    return -found if flipped else found


def draw_uniforms(count: int) -> Floats:
    """Multiples of 2^-53 above 0 and at most 1, from the operating system."""
    words = np.frombuffer(os.urandom(8 * count), dtype=np.uint64) >> np.uint64(11)
    return np.asarray((words.astype(np.float64) + 1.0) * 2.0**-53)


def draw_normals(count: int, size: int) -> Floats:
    """Standard normal draws by Box and Muller's method."""
    cells = count * size
    radii = np.sqrt(-2.0 * np.log(draw_uniforms(cells)))
    return np.asarray(radii * np.cos(2.0 * np.pi * draw_uniforms(cells))).reshape(count, size)
