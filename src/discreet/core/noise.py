"""The only module that draws privacy noise: exact integer samplers of OpenDP, fed by the operating system.

Nothing here takes a seed or a generator, and nothing here takes floats where counts belong: a float Laplace
draw gives the true count away through its last bits [Mironov 2012].
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.core.mechanism import AdditiveNoise, Noise, NoisyChoice, Selection, is_covered
from discreet.values.budget import ZCDP, PureDP
from discreet.values.errors import MechanismError
from discreet.values.table import Array
from discreet.values.text import float_above

CHUNK = 2**16
"""Cells per call into OpenDP, whose lists of boxed integers take ten times the memory of the array."""
LARGEST_COUNT = 2**61
"""Counts beyond it are clamped, so that one with noise of the widest scale never leaves int64."""


def add_noise(true_counts: Array, mechanism: AdditiveNoise) -> npt.NDArray[np.int64]:
    """The counts plus independent noise of the mechanism's law in every cell, zero cells included."""
    if not np.issubdtype(true_counts.dtype, np.integer):
        raise MechanismError(f"{mechanism.statistic}: noise goes on whole counts, not on {true_counts.dtype}")
    draw = _open_additive(mechanism.noise, mechanism.scale)
    _require_charged(_map_additive(draw, mechanism), mechanism)
    # A refusal here would tell a count; clamping moves no count further than it moved. The copy is OpenDP's wish.
    flat = np.clip(true_counts.astype(np.int64), -LARGEST_COUNT, LARGEST_COUNT).ravel()
    noisy = np.empty_like(flat)
    for start in range(0, flat.size, CHUNK):
        noisy[start : start + CHUNK] = draw(flat[start : start + CHUNK])
    return noisy.reshape(true_counts.shape)


def choose(true_scores: Array, mechanism: NoisyChoice) -> int:
    """The index of one candidate, drawn by its score; ties and order do not matter."""
    scores = np.ascontiguousarray(true_scores, dtype=np.float64)
    if scores.ndim != 1 or not scores.size:
        raise MechanismError(f"{mechanism.score}: a choice needs a list of at least one score")
    if not np.isfinite(scores).all():
        raise MechanismError(f"{mechanism.score}: every score must be a finite number")
    draw = _open_choice(mechanism.selection, mechanism.scale)
    _require_charged(_map_choice(draw, mechanism), mechanism)
    return int(draw(scores))


def _map_additive(draw: Any, mechanism: AdditiveNoise) -> PureDP | ZCDP:
    """What OpenDP says that the draw costs."""
    if mechanism.noise is Noise.LAPLACE:
        return PureDP(Fraction(draw.map(mechanism.l1)))
    return ZCDP(Fraction(draw.map(_root_above(mechanism.l2_squared))))


def _map_choice(draw: Any, mechanism: NoisyChoice) -> PureDP | ZCDP:
    """What OpenDP says that the choice costs; a range of ε, for which it says ε²/8, is also ε-DP."""
    said = Fraction(draw.map(float_above(mechanism.sensitivity)))
    if mechanism.selection is Selection.PERMUTE_AND_FLIP:
        return PureDP(said)
    return ZCDP(said) if isinstance(mechanism.cost, ZCDP) else PureDP(Fraction(_root_above(8 * said)))


def _root_above(square: int | Fraction) -> float:
    """The smallest float whose square is not below an exact number."""
    root = math.sqrt(square)
    while Fraction(root) ** 2 < square:
        root = math.nextafter(root, math.inf)
    while Fraction(below := math.nextafter(root, 0.0)) ** 2 >= square:
        root = below
    return root


def _require_charged(said: PureDP | ZCDP, mechanism: AdditiveNoise | NoisyChoice) -> None:
    # The specification has proved this already; that OpenDP agrees is checked before every draw all the same.
    if isinstance(mechanism, AdditiveNoise) and isinstance(said, PureDP) and isinstance(mechanism.cost, ZCDP):
        # OpenDP speaks of ε; the ρ of exactly this noise is the specification's.
        agreed = said.epsilon <= Fraction(mechanism.l1) / Fraction(mechanism.scale) * (1 + Fraction(1, 2**50))
    else:
        agreed = is_covered(said, mechanism.cost)
    if not agreed:
        raise MechanismError(f"OpenDP says that {said} is lost, more than the cost of {mechanism.cost}")


# OpenDP is imported by its parts: its prelude would load scikit-learn, polars and more wherever they are installed.


@lru_cache(maxsize=256)
def _open_additive(noise: Noise, scale: float) -> Any:
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_gaussian, make_laplace
    from opendp.metrics import l1_distance, l2_distance

    _enable()
    domain = vector_domain(atom_domain(T="i64"))
    if noise is Noise.LAPLACE:
        return make_laplace(domain, l1_distance(T="i64"), scale=scale)
    return make_gaussian(domain, l2_distance(T="f64"), scale=scale)


@lru_cache(maxsize=256)
def _open_choice(selection: Selection, scale: float) -> Any:
    """OpenDP's noisy max: permute-and-flip for pure privacy; for zCDP Gumbel noise, whose maximum is
    distributed exactly as the exponential mechanism's choice."""
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_noisy_max
    from opendp.measures import max_divergence, zero_concentrated_divergence
    from opendp.metrics import linf_distance

    _enable()
    space = vector_domain(atom_domain(T="f64", nan=False)), linf_distance(T="f64")
    pure = selection is Selection.PERMUTE_AND_FLIP
    return make_noisy_max(*space, max_divergence() if pure else zero_concentrated_divergence(), scale=scale)


def _enable() -> None:
    from opendp.mod import enable_features

    enable_features("contrib")
