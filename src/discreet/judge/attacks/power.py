"""How well scores tell members from strangers: power at given errors, the whole curve, and how sure that is.

Powers carry exact Clopper-Pearson bands; the area and the advantage carry bands of Dvoretzky, Kiefer,
Wolfowitz and Massart, which hold for the whole curve at once. Both treat the scored people as independent
draws.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.judge.tails import bound_share_above, bound_share_below
from discreet.values.errors import DataError
from discreet.values.text import require_share

Floats = npt.NDArray[np.float64]

ERRORS = (0.001, 0.01, 0.05, 0.1)
"""The errors α at which power is stated unless others are asked for."""

CURVE_POINTS = 256
"""A curve is kept at so many points at most."""


@dataclass(frozen=True, slots=True)
class PowerAtError:
    """The power of an attack at one error level."""

    error: float
    """α: the share of strangers that the attacker accepts to accuse."""
    power: float
    """β: the share of members above the threshold."""
    low: float
    high: float
    """Clopper-Pearson bounds on the power, together with the stated confidence."""
    hits: int
    false_hits: int
    """Strangers above the threshold: so many observations the threshold rests on."""

    def to_json(self) -> dict[str, float | int]:
        """All fields by name."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True, eq=False)
class Power:
    """What one attack achieves."""

    attack: str
    points: tuple[PowerAtError, ...]
    auc: float
    auc_band: tuple[float, float]
    advantage: float
    """The greatest difference between the shares of members and of strangers above one threshold."""
    advantage_band: tuple[float, float]
    curve: Floats
    """Two lines, errors and powers, from (0, 0) to (1, 1)."""

    def to_json(self) -> dict[str, Any]:
        """The whole result, without the curve."""
        return {
            "attack": self.attack,
            "auc": self.auc,
            "auc_band": list(self.auc_band),
            "advantage": self.advantage,
            "advantage_band": list(self.advantage_band),
            "points": [point.to_json() for point in self.points],
        }


def measure_power(
    attack: str,
    members: Floats,
    strangers: Floats,
    *,
    errors: Sequence[float] = ERRORS,
    confidence: float = 0.95,
    rng: int | np.random.Generator = 0,
) -> Power:
    """The power of scores, with a threshold from the strangers alone: τ(α) = F⁻¹(1 − α) of their scores.

    Equal scores are put in a random order, as an attacker who tosses a coin would. A threshold for error α
    leaves ⌊α·m⌋ of m strangers above it, so at α < 1/m it is their maximum and rests on none: `false_hits`
    says so.
    """
    inside, outside = _require_scores(members, "members"), _require_scores(strangers, "strangers")
    require_share(confidence, "the confidence", DataError)
    ranks = rank_scores(np.concatenate([inside, outside]), np.random.default_rng(rng))
    own, other = np.sort(ranks[: len(inside)]), np.sort(ranks[len(inside) :])
    points = tuple(_measure_point(own, other, error, confidence) for error in errors)
    # Above a cut at each rank: how many of both.
    cuts = np.concatenate([[-1], np.sort(ranks)])[::-1]
    powers = 1.0 - np.searchsorted(own, cuts, side="right") / len(own)
    false = 1.0 - np.searchsorted(other, cuts, side="right") / len(other)
    auc = float(np.mean(np.searchsorted(other, own)) / len(other))
    advantage = float((powers - false).max())
    doubt = (1.0 - confidence) / 2.0  # one half for each of the two samples
    width = sum(math.sqrt(math.log(2.0 / doubt) / (2.0 * size)) for size in (len(own), len(other)))
    return Power(
        attack,
        points,
        auc,
        (max(auc - width, 0.0), min(auc + width, 1.0)),
        advantage,
        (max(advantage - width, 0.0), min(advantage + width, 1.0)),
        _thin_out(np.stack([false, powers])),
    )


def rank_scores(scores: Floats, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """The place of each score from the lowest, equal ones in random order."""
    order = np.lexsort([rng.random(len(scores)), scores])
    ranks = np.empty(len(scores), dtype=np.int64)
    ranks[order] = np.arange(len(scores))
    return ranks


def _measure_point(own: Any, other: Any, error: float, confidence: float) -> PowerAtError:
    if not 0.0 <= error <= 1.0:
        raise DataError(f"an error level lies between 0 and 1, not at {error:g}")
    # How many strangers may lie above the threshold; 0.01·500 is 5 although floats say a little less.
    allowed = min(math.floor(error * len(other) + 1e-9), len(other))
    threshold = other[len(other) - 1 - allowed] if allowed < len(other) else -1
    hits = len(own) - int(np.searchsorted(own, threshold, side="right"))
    doubt = (1.0 - confidence) / 2.0
    low, high = bound_share_below(hits, len(own), doubt), bound_share_above(hits, len(own), doubt)
    return PowerAtError(error, hits / len(own), low, high, hits, allowed)


def _thin_out(curve: Floats) -> Floats:
    points = curve.shape[1]
    if points <= CURVE_POINTS:
        return curve
    # Half of the points near the origin on a logarithmic scale, where attacks matter, half evenly.
    near = np.geomspace(1, points, CURVE_POINTS // 2) - 1
    even = np.linspace(0, points - 1, CURVE_POINTS // 2)
    return curve[:, np.unique(np.concatenate([near, even]).astype(np.int64))]


def _require_scores(scores: Floats, what: str) -> Floats:
    found = np.asarray(scores, dtype=np.float64)
    if found.ndim != 1 or not len(found):
        raise DataError(
            f"the scores of {what} are an array of shape {found.shape}; needed is a list of at least 1"
        )
    if np.isnan(found).any():
        raise DataError(f"a score of {what} is not a number")
    return found
