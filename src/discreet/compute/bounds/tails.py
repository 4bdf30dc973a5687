"""How far a weighted sum of independent noises can be from 0: exactly by convolution, or by Chernoff's bound."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from discreet.compute.bounds.intervals import Floats
from discreet.values.law import DiscreteGaussian, DiscreteLaplace, Exact

NoiseLaw = DiscreteLaplace | DiscreteGaussian | Exact
Term = tuple[NoiseLaw, int, int]
"""A law, a whole weight, and the number of independent noises of this law that carry the weight."""

LONGEST = 2**17
"""The longest convolution; beyond it Chernoff's bound is used, which is some 15 % wider."""

RESOLUTION = 1e-12
"""Tail probabilities near the rounding of a convolution are left to Chernoff's bound."""


@lru_cache(maxsize=4096)
def bound_sum(terms: tuple[Term, ...], tail: float) -> int:
    """A whole h with P(|Σ weight·noise| > h) ≤ tail; the smallest one wherever a convolution can tell."""
    # A whole noise is not 0 with a probability of at most its variance; below 1e-200 no tail can tell.
    noisy = tuple(term for term in terms if not isinstance(term[0], Exact) and term[0].variance > 1e-200)
    if not noisy:
        return 0
    wide = math.ceil(bound_by_chernoff(noisy, tail))
    reach = math.ceil(bound_by_chernoff(noisy, RESOLUTION / 100))
    length = 1 << (2 * reach + 2).bit_length()
    if length > LONGEST or tail < 100 * RESOLUTION:
        return wide
    beyond = _tabulate_tails(noisy, length) + RESOLUTION  # what wrapped around and what was rounded
    return min(wide, int(np.argmax(beyond <= tail)))


def bound_by_chernoff(terms: tuple[Term, ...], tail: float) -> float:
    """min_t (log(2/tail) + Σ log E e^{t·weight·noise}) / t, every t > 0 being a valid bound.

    A discrete Gaussian is sub-Gaussian with its own σ² [CKS20, Lemma 22]; for a discrete Laplace of scale s
    and q = e^(−1/s), E e^{tX} = (1 − q)²/((1 − q·e^t)(1 − q·e^(−t))) where t < 1/s.
    """
    spread = math.sqrt(sum(count * weight**2 * law.variance for law, weight, count in terms))
    most = min(
        (1.0 / (weight * float(law.scale)) for law, weight, _ in terms if isinstance(law, DiscreteLaplace)),
        default=8.0 * math.sqrt(math.log(2.0 / tail)) / spread,
    )
    t = most * np.linspace(0.0, 1.0, 2001)[1:-1]
    exponent = np.full(len(t), math.log(2.0 / tail))
    for law, weight, count in terms:
        exponent += count * _log_moment(law, weight * t)
    return float((exponent / t).min())


def _log_moment(law: NoiseLaw, t: Floats) -> Floats:
    if isinstance(law, DiscreteGaussian):
        return np.asarray(float(law.sigma2) * t**2 / 2.0)
    if isinstance(law, DiscreteLaplace):
        rate = float(1 / law.scale)
        return np.asarray(
            2.0 * math.log(-math.expm1(-rate)) - np.log(-np.expm1(t - rate)) - np.log(-np.expm1(-t - rate))
        )
    return np.zeros_like(t)


def _tabulate_tails(terms: tuple[Term, ...], length: int) -> Floats:
    """P(|sum| > h) for h = 0, 1, …, from the product of the laws' Fourier transforms."""
    whole = np.ones(length)
    for law, weight, count in terms:
        whole = whole * _transform(law, length)[(weight * np.arange(length)) % length] ** count
    chances = np.maximum(np.fft.ifft(whole).real[1 : length // 2], 0.0)
    return np.asarray(2.0 * np.cumsum(chances[::-1])[::-1])


@lru_cache(maxsize=16)  # a release has a few laws, and many margins that sum them
def _transform(law: NoiseLaw, length: int) -> Floats:
    k = np.arange(length, dtype=np.int64)
    return np.asarray(np.fft.fft(law.pmf(np.where(k < length // 2, k, k - length))).real)
