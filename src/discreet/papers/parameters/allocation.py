"""How Algorithm 1 shares out its budget: the error of each node, what hangs on the node, and the square-root rule."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet.values.errors import BudgetError
from discreet.values.graph import DAG
from discreet.values.table import Table, count_cells

LEAST_SHARE = Fraction(1, 20)
"""No node gets less than this part of an even share: an estimate from a noisy first look must not starve one."""
GRAIN = 10**9
"""Shares are whole numbers of this many parts, so that the budgets stay exact fractions."""


@dataclass(frozen=True, slots=True)
class Allocation:
    """What each node gets of the budget, and why; every mapping is by node."""

    heights: Mapping[str, int]
    out_degrees: Mapping[str, int]
    sensitivities: Mapping[str, Fraction]
    weights: Mapping[str, float]
    errors: Mapping[str, float]
    shares: Mapping[str, Fraction]
    """Positive, and exactly 1 in all."""

    @property
    def order(self) -> tuple[str, ...]:
        """The nodes by falling budget."""
        return tuple(sorted(self.shares, key=lambda name: -self.shares[name]))


def plan_allocation(dag: DAG, sizes: Mapping[str, int], errors: Mapping[str, float]) -> Allocation:
    """The budget shares for these estimated errors [000, Alg. 1, lines 7 to 13]."""
    heights = dag.heights()
    out_degrees = {name: dag.out_degree(name) for name in dag.nodes}
    sensitivities = find_sensitivities(dag, sizes)
    weights = {
        name: (heights[name] + 1) * (out_degrees[name] + 1) * (1 + float(sensitivities[name]))
        for name in dag.nodes
    }
    shares = allocate([weights[name] for name in dag.nodes], [errors[name] for name in dag.nodes])
    return Allocation(
        heights, out_degrees, sensitivities, weights, dict(errors), dict(zip(dag.nodes, shares, strict=True))
    )


def estimate_error(conditional: Table, noisy_family: Table, noisy_parents: Table, least: float) -> float:
    """δ_i, the mean over the cells of Θ[x|x_pa]·√(1/T[x_pa]² + 1/T[x, x_pa]²) [000, Eq. 12].

    The axes of the family are the parents', then the child. Counts are raised to at least `least`, and to 1: as
    printed, a noisy count of 0 makes the error infinite, and one of −1 counts like one of 1.
    """
    floor = max(1.0, least)
    family = np.maximum(noisy_family.arrange(conditional.axes).values, floor)
    parents = np.maximum(noisy_parents.arrange(conditional.axes[:-1]).values, floor)[..., np.newaxis]
    return float((conditional.values * np.sqrt(1.0 / parents**2 + 1.0 / family**2)).mean())


def find_sensitivities(dag: DAG, sizes: Mapping[str, int]) -> dict[str, Fraction]:
    """∆_i = mean over children Y of 1/|Y|, divided by |pa_i|; 0 for a leaf.

    The derivatives of P(Y = y) by Θ[x|x_pa], summed over y, are P(x_pa): summed over x and x_pa that is |X_i|,
    whatever the data. So [000, Eq. 7] belongs to the graph and the domains.
    """
    found = {}
    for name in dag.nodes:
        children = dag.children_of(name)
        above = count_cells(sizes[parent] for parent in dag.parents_of(name))
        total = sum((Fraction(1, sizes[child]) for child in children), Fraction(0))
        found[name] = total / (len(children) * above) if children else Fraction(0)
    return found


def allocate(
    weights: Sequence[float], errors: Sequence[float], least: Fraction = LEAST_SHARE
) -> tuple[Fraction, ...]:
    """Shares ∝ √(W_i·δ_i), which minimise Σ W_i·δ_i/ε_i; they sum exactly to 1 [000, Eq. 13].

    The printed products of d − 1 roots say the same, but leave float64 on larger graphs. A share below `least` of an
    even one is raised to that, and the others keep their proportions.
    """
    if not weights or len(weights) != len(errors):
        raise BudgetError(
            f"{len(weights)} weights and {len(errors)} errors; there must be one of each per node"
        )
    if not all(0 < value < math.inf for value in (*weights, *errors)):
        raise BudgetError("weights and errors of nodes must be above 0 and finite")
    log_roots = 0.5 * (np.log(weights) + np.log(errors))
    roots = np.exp(log_roots - log_roots.max())
    floor = float(least) / len(roots)
    low = np.zeros(len(roots), dtype=np.bool_)
    while True:
        free = 1.0 - floor * np.count_nonzero(low)
        shares = np.where(low, floor, free * roots / roots[~low].sum())
        short = ~low & (shares < floor)
        if not short.any():
            break
        low |= short
    parts = [max(1, math.ceil(share * GRAIN)) for share in shares]
    return tuple(Fraction(part, sum(parts)) for part in parts)
