"""Conditionals that are little but noise, moved towards what is simpler, by as much as the whole network allows.

Where noise is larger than a table, the nearest network is sure of what is chance. Whether it is better to say less
depends on the truth: if all levels are about as frequent, a uniform guess is nearly right; if most rows are in one
level, it is off by almost all that it can be, and the likeliest level is a better guess even if it is often wrong. No
single table tells which; all of them together do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from discreet.values.table import Array

KNOWN = 0.1
"""A marginal of which noise explains less than this part is taken at its word."""
ANYTHING = 1.0 / 12.0
"""The variance of a number between 0 and 1 that could be any."""
REPEATED = 50
"""How often a mean is found with weights that hang on it; it settles within a few times."""


def temper(cpt: Array, margin: Array, sums: Array, noise: float, error: float, uneven: float) -> Array:
    """Conditionals moved towards the node's marginal, and that towards the uniform one, if noise may explain them.

    A share of one in K that could be anything varies by D = (K − 1)/(K²(K + 1)); a marginal of noise V and up to three
    levels gives up 0.6·V²/(V² + D²) of its distance from 1/K: of more levels one is often nearly sure, and what little
    is known of it is better kept [measured], unless noise explains more than a part of what the noisy sums show
    (`doubt_margin`). Conditionals give up as much of their distance from the marginal. Where their predicted error e
    nears √(2/π), the most that it can be, they and the marginal give up (e√(π/2) − 0.6)/0.3 of their distance from the
    uniform one [measured]. All of this is right if levels are about as frequent, and wrong if one is nearly sure: so
    both take the factor 1 − u, u being how uneven the marginals of the network are (`measure_unevenness`).
    """
    levels = cpt.shape[-1]
    varies = (levels - 1.0) / (levels**2 * (levels + 1.0))
    doubt = 0.6 * noise**2 / (noise**2 + varies**2) if 1 < levels <= 3 else doubt_margin(sums, noise)
    lost = (1.0 - uneven) * doubt
    even = (1.0 - lost) * margin + lost / levels
    if cpt.ndim == 1:
        return np.asarray(even)
    hopeless = (1.0 - uneven) * min(max((error * math.sqrt(math.pi / 2.0) - 0.6) / 0.3, 0.0), 1.0)
    part = max(hopeless, lost)
    return np.asarray((1.0 - part) * cpt + part * ((1.0 - hopeless) * even + hopeless / levels))


def doubt_margin(sums: Array, noise: float) -> float:
    """What a marginal with this noise in each level gives up of its distance d from 1/K: q = (K − 3)·V/d².

    That is the part of least squared error [James and Stein 1961]. Below KNOWN nothing is given up, and beyond it
    (q − KNOWN)/(1 − KNOWN), so that what is known well stays as it is.
    """
    beyond = float(((sums - 1.0 / sums.size) ** 2).sum())
    part = (sums.size - 3) * noise / beyond if beyond > 0 else 0.0
    return min(max((part - KNOWN) / (1.0 - KNOWN), 0.0), 1.0)


def measure_unevenness(sums: Sequence[Array], noises: Sequence[float]) -> float:
    """How far marginals are from uniform ones, on average: 0 if all levels are as frequent, 1 if one of each is sure.

    A marginal p of K levels has u = Σ(p − 1/K)²/(1 − 1/K). Noise of variance V in each level adds K·V to it and makes
    it vary by about 2(u + KV)²/(K − 1); between nodes u varies by 1/12 if it could be anything. The mean of what is
    found less K·V weighs each node by the inverse of both together [DerSimonian and Laird 1986]: where noise hides
    every single marginal, hundreds of them still tell it.
    """
    known = [(found, noise) for found, noise in zip(sums, noises, strict=True) if found.size > 1]
    if not known:
        return 0.0
    levels = np.array([found.size for found, _ in known], dtype=np.float64)
    added = levels * np.array([noise for _, noise in known])
    beyond = [float(((found - found.mean()) ** 2).sum()) for found, _ in known]
    excess = np.array(beyond) / (1.0 - 1.0 / levels) - added
    mean = 0.5
    for _ in range(REPEATED):
        weights = 1.0 / (ANYTHING + 2.0 * (mean + added) ** 2 / (levels - 1.0))
        mean = min(max(float((weights * excess).sum() / weights.sum()), 0.0), 1.0)
    return mean
