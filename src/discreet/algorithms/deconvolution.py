"""True counts behind noisy ones, drawn from their posterior: what the noise and the non-negativity leave likely."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from discreet.vocabulary.law import DiscreteGaussian, DiscreteLaplace, Exact

NoiseLaw = DiscreteLaplace | DiscreteGaussian | Exact
Counts = npt.NDArray[np.int64]

POINTS = 200
"""How many candidates for a true count are weighed on each side of its noisy one."""

TAIL = 1e-6
"""Counts that the noise reaches with less probability than this are left out."""


@dataclass(frozen=True, slots=True)
class Prior:
    """P(n) ∝ (n/σ)^(−fall) for n ≥ 1 and P(0) ∝ empty·σ, with σ the standard deviation of the noise."""

    fall: float
    empty: float


PRIORS = (Prior(0.3, 1.0), Prior(1.0, 3.0))
"""Counts spread nearly evenly, and counts that are mostly small or 0; real tables lie between.

No single prior is right for counts that the noise drowns: the first pulls their rows towards uniform, the
second away from it. So both are used, and an interval reaches over the central intervals of both.
"""


def draw_counts(noisy: Counts, law: NoiseLaw, prior: Prior, draws: int, rng: np.random.Generator) -> Counts:
    """True counts given noisy ones, `draws` times over along a new first axis: P(n | ñ) ∝ P(noise = ñ − n)·P(n).

    Cells are independent given their noisy counts, because the noise is and the prior is.
    """
    if isinstance(law, Exact):
        return np.broadcast_to(np.maximum(noisy, 0), (draws, *noisy.shape)).copy()
    flat = noisy.reshape(-1)
    sigma = math.sqrt(law.variance)
    reach = law.bound(1.0 - TAIL)
    step = max(1, reach // POINTS)
    offsets = step * np.arange(-(reach // step), reach // step + 1)
    at = flat[:, None] + offsets
    weights = np.where(
        at >= 1,
        law.log_pmf(offsets) + math.log(step) - prior.fall * np.log(np.maximum(at, 1) / sigma),
        -np.inf,
    )
    at = np.append(at, np.zeros((len(flat), 1), dtype=np.int64), axis=1)
    weights = np.append(weights, (law.log_pmf(flat) + math.log(prior.empty * sigma))[:, None], axis=1)
    ladder = np.cumsum(np.exp(weights - weights.max(axis=1, keepdims=True)), axis=1)
    found = np.empty((draws, len(flat)), dtype=np.int64)
    for cell, rungs in enumerate(ladder):
        picked = np.searchsorted(rungs, rng.random(draws) * rungs[-1])
        found[:, cell] = at[cell, np.minimum(picked, len(rungs) - 1)]
    if step > 1:  # candidates stand for all counts around them
        found = np.where(found > 0, np.maximum(found + rng.integers(0, step, found.shape) - step // 2, 1), 0)
    return found.reshape(draws, *noisy.shape)
