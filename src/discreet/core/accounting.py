"""Accounting by privacy loss distributions: tighter than sums, where all draws are known beforehand."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

from discreet.values.budget import ApproxDP, read_delta, round_up
from discreet.values.errors import BudgetError, MissingExtra
from discreet.values.measurement import DiscreteGaussian, DiscreteLaplace
from discreet.values.text import Number


def account_noise(
    draws: Iterable[tuple[DiscreteLaplace | DiscreteGaussian, Iterable[int]]], delta: Number
) -> ApproxDP:
    """The ε at this δ of many additive draws together, from their privacy loss distributions.

    Each draw is the law of its noise and by how much one row moves each cell that it touches; the cells'
    noises are independent, so all of them compose. Never above the sum of ε. Needs the extra `accounting`.
    """
    exact = read_delta(delta)
    try:
        from dp_accounting.pld import privacy_loss_distribution as pld
    except ImportError:
        raise MissingExtra(
            "accounting by privacy loss needs dp-accounting: install discreet[accounting]"
        ) from None
    times: dict[tuple[DiscreteLaplace | DiscreteGaussian, int], int] = {}
    for law, moves in draws:
        for move in moves:
            times[law, abs(move)] = times.get((law, abs(move)), 0) + 1
    if not times:
        raise BudgetError("there is no draw to account for")
    whole = pld.identity()
    for (law, move), count in times.items():
        if isinstance(law, DiscreteLaplace):
            one = pld.from_discrete_laplace_mechanism(
                float(1 / law.scale) * (1 + 1e-15), move, use_connect_dots=True
            )
        else:
            one = pld.from_discrete_gaussian_mechanism(
                math.sqrt(law.sigma2) * (1 - 1e-15), move, use_connect_dots=True
            )
        whole = whole.compose(one.self_compose(count))
    epsilon = round_up(float(whole.get_epsilon_for_delta(float(exact))) + 1e-12)
    if all(isinstance(law, DiscreteLaplace) for law, _ in times):
        pure = sum(
            count * move / law.scale
            for (law, move), count in times.items()
            if isinstance(law, DiscreteLaplace)
        )
        epsilon = min(
            epsilon, Fraction(pure)
        )  # the grid of the loss distributions can overshoot the plain sum
    return ApproxDP(epsilon, exact)
