"""From the table to the world: what the rows say of the population that they are a random sample of.

Of m rows that fit the evidence, a share s has the asked level; m·s is binomial with the population's probability p,
whatever m is. By Chernoff's bound P(m·KL(s ‖ p) > log(2/β)) ≤ β, so all p with less than that fit the table. The noise
leaves s and m within intervals; the least p is that of the least s among the fewest rows, which tell least. The same
holds for the mean of any numbers between 0 and 1 [Hoeffding 1963, Thm. 1], so of all that are scaled to lie there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from discreet.networks.evidence import CodeSets
from discreet.networks.intervals.table import TableIntervals
from discreet.values.table import Array


def widen(
    table: TableIntervals, targets: Sequence[str], functions: Array, evidence: CodeSets, coverage: float
) -> tuple[Array, Array]:
    """Ends for the population's probability, with half of 1 − coverage for the noise and half for the sampling.

    The table's intervals hold with (1 + coverage)/2.
    """
    share_low, share_high = table.bound(targets, functions, evidence)
    least = max(table.bound_counts(evidence)[0], 1) if evidence else table.count_rows()[0]
    tail = (1.0 - coverage) / 2.0 / len(functions)  # the ends of all levels hold together
    low, high = np.empty(len(functions)), np.empty(len(functions))
    for k in range(len(functions)):
        floor, ceiling = table.range(targets, functions[k], evidence)
        span = ceiling - floor
        if span <= 0:  # whatever the rows are
            low[k], high[k] = share_low[k], share_high[k]
            continue
        low[k] = floor + span * bound_below((share_low[k] - floor) / span, least, tail)
        high[k] = ceiling - span * bound_below((ceiling - share_high[k]) / span, least, tail)
    return low, high


def bound_below(share: float, rows: float, tail: float) -> float:
    """The least p with rows·KL(share ‖ p) ≤ log(2/tail)."""
    if share <= 0:
        return 0.0
    allowed = math.log(2.0 / tail) / rows
    low, high = 0.0, share
    for _ in range(60):
        middle = (low + high) / 2.0
        if middle <= 0 or _diverge(share, middle) > allowed:
            low = middle
        else:
            high = middle
    return low


def _diverge(share: float, p: float) -> float:
    """KL(share ‖ p) of two coins."""
    found = share * math.log(share / p)
    return found + ((1.0 - share) * math.log((1.0 - share) / (1.0 - p)) if share < 1 else 0.0)
