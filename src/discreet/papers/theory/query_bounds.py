"""The papers' bounds on the error of a query, computed beside the error itself [000, Sec. 4].

Theorem 4.2 holds for every step of variable elimination. Theorem 4.1 does not: errors of two factors can cancel.
Neither bounds a whole query from the errors of the parameters alone, as Table 2 of the paper uses them, because
errors add up from step to step; `bound_by_ancestors` does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discreet.compute.inference import Engine
from discreet.compute.triangulation import eliminate_greedily, fill_edges, interaction_graph
from discreet.values.errors import QueryError
from discreet.values.graph import DAG
from discreet.values.table import Table


@dataclass(frozen=True, slots=True)
class Bounds:
    """What Theorems 4.1 and 4.2 say for one query, and the numbers that they say it from."""

    lower: float
    upper: float
    degree: int
    """η: the largest in-degree + out-degree, plus 1."""
    width: int
    """κ: the largest number of attributes left by an elimination; the treewidth, if the order is the best one."""
    levels: int
    """d: the largest number of levels of an attribute."""
    greatest: float = 0.0
    """δ_max: the largest error of a parameter."""

    def normalise(self, error: float) -> float:
        """μ = (error − lower)/(upper − lower), the scale-normalised error [000, Sec. 5.2, Table 2]."""
        return (error - self.lower) / (self.upper - self.lower)


def count_degree(dag: DAG) -> int:
    """η = max over nodes of in-degree + out-degree, plus 1 [000, Thm. 4.1]."""
    return max(len(dag.parents_of(name)) + dag.out_degree(name) for name in dag.nodes) + 1


def bound_below(degree: int, least_error: float, least_value: float) -> float:
    """√(η − 1)·δ_min·φ_min^(η − 2), the lower bound as printed, which errors that cancel undercut [000, Thm. 4.1]."""
    if degree < 2:
        return 0.0  # no edges: no product of two factors
    return math.sqrt(degree - 1) * least_error * least_value ** (degree - 2)


def bound_above(degree: int, levels: int, width: int, greatest_error: float) -> float:
    """2·η·d^κ·δ_max, the upper bound on a step from the entries of its factors [000, Thm. 4.2].

    Half of it is enough: |Πφ − Πφ̃| ≤ Σ_i |φ_i − φ̃_i|·Π_{j≠i}, and a factor j ≠ i is a conditional distribution, so
    its entries sum to at most d^κ over the κ + 1 attributes; there are t ≤ η such terms.
    """
    return 2.0 * degree * float(levels) ** width * greatest_error


def choose_order(dag: DAG, targets: Sequence[str]) -> tuple[str, ...]:
    """The ancestors of the targets in the order in which greedy min-fill eliminates them; barren nodes are left out."""
    relevant = [name for name in dag.nodes if name in dag.ancestors(targets)]
    place = {name: i for i, name in enumerate(relevant)}
    graph = interaction_graph(
        [[place[member] for member in dag.family(name)] for name in relevant], len(relevant)
    )
    summed_out = [place[name] for name in relevant if name not in targets]
    order = eliminate_greedily(graph, [1.0] * len(relevant), fill_edges, summed_out)
    return tuple(relevant[i] for i in order)


def bound_query(
    dag: DAG,
    true: Sequence[Table],
    noisy: Sequence[Table],
    targets: Sequence[str],
    order: Sequence[str] | None = None,
) -> Bounds:
    """Both theorems with the errors of the parameters put in, as Table 2 of the paper does for a query [000, Sec. 5.2].

    That is their statement about a first step, taken for the whole query: a number to normalise by, not a guarantee.
    """
    eliminated = read_order(dag, targets, order)
    relevant = [dag.index(name) for name in (*targets, *eliminated)]
    least, greatest, value = find_extremes([(true[i], noisy[i].arrange(true[i].axes)) for i in relevant])
    width = find_width(dag, targets, eliminated)
    degree, levels = count_degree(dag), max(max(table.values.shape) for table in true)
    return Bounds(
        bound_below(degree, least, value),
        bound_above(degree, levels, width, greatest),
        degree,
        width,
        levels,
        greatest,
    )


def find_width(dag: DAG, targets: Sequence[str], order: Sequence[str] | None = None) -> int:
    """The largest number of attributes that a step of this elimination leaves in its factor."""
    eliminated = read_order(dag, targets, order)
    scopes = [set(dag.family(name)) for name in (*targets, *eliminated)]
    width = 0
    for name in eliminated:
        joined = set().union(*(scope for scope in scopes if name in scope))
        scopes = [scope for scope in scopes if name not in scope] + [joined - {name}]
        width = max(width, len(joined) - 1)
    return width


def bound_by_ancestors(
    dag: DAG, true: Sequence[Table], noisy: Sequence[Table], targets: Sequence[str]
) -> float:
    """An upper bound on ‖P(targets) − P̃(targets)‖₁ that holds for the whole query, in no need of an order.

    Σ over the targets' ancestors i of Σ_pa P(pa)·‖Θ_i[·|pa] − Θ̃_i[·|pa]‖₁: replace one table after the other, from the
    leaves up; each replacement moves the joint by its own error, weighed by the true probability of its parents.
    """
    engine = Engine(dag, true)
    total = 0.0
    for name in dag.ancestors(targets):
        own, parents = true[dag.index(name)], dag.parents_of(name)
        gaps = np.abs(own.values - noisy[dag.index(name)].arrange(own.axes).values).sum(
            axis=own.axes.index(name)
        )
        above = engine.joint(parents, {}).values if parents else np.array(1.0)
        total += float((above * gaps).sum())
    return total


def bound_saving(costs: Sequence[float]) -> float:
    """The most ε that any split of a budget can save against an even one, where the error is Σ_i a_i/ε_i.

    The best split ε_i ∝ √a_i has the error (Σ√a_i)²/ε, the even one d·Σa_i/ε: the ratio d·Σa_i/(Σ√a_i)² is at least 1
    (Cauchy-Schwarz), and d where one node costs everything. With a_i the cells of a family it limits Algorithm 1,
    however good its first look is.
    """
    values = np.asarray(costs, dtype=np.float64)
    return float(values.size * values.sum() / np.sqrt(values).sum() ** 2)


def read_order(dag: DAG, targets: Sequence[str], order: Sequence[str] | None) -> tuple[str, ...]:
    """An elimination order that lists the targets' ancestors, each once; chosen here if none is given."""
    if not targets or len(set(targets)) != len(targets):
        raise QueryError(f"name at least one target, each once, not {list(targets)}")
    if order is None:
        return choose_order(dag, targets)
    wanted = dag.ancestors(targets) - set(targets)
    if len(order) != len(wanted) or set(order) != wanted:
        # A barren node leaves a factor of ones, which is no conditional distribution: the theorems exclude it.
        raise QueryError(
            f"the elimination order is {list(order)}; it must list the targets' ancestors {sorted(wanted)}, each once"
        )
    return tuple(order)


def find_extremes(pairs: Sequence[tuple[Table, Table]]) -> tuple[float, float, float]:
    """δ_min, δ_max and φ_min over all entries of the factors."""
    gaps = [np.abs(one.values - two.arrange(one.axes).values) for one, two in pairs]
    return (
        min(float(gap.min()) for gap in gaps),
        max(float(gap.max()) for gap in gaps),
        min(float(one.values.min()) for one, _ in pairs),
    )
