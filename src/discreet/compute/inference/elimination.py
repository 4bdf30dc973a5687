"""Variable elimination with logarithms: joint posteriors of any set, and the most probable levels of a subset."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import log2

import numpy as np

from discreet.compute.inference.junction import Floats
from discreet.compute.inference.propagation import log_sum
from discreet.compute.triangulation import find_order, interaction_graph
from discreet.values.graph import DAG
from discreet.values.table import Table, require_cells
from discreet.values.text import list_some

Evidence = Mapping[str, int]
Likelihoods = Mapping[str, Floats]


def eliminate(
    dag: DAG,
    cpts: Sequence[Table],
    targets: Sequence[str],
    evidence: Evidence,
    likelihoods: Likelihoods,
    max_cells: int,
) -> Table | None:
    """P(targets | evidence), or None if the evidence is impossible."""
    factors = relevant_factors(dag, cpts, targets, evidence, likelihoods)
    for name in order_of(factors, keep=targets):
        factors, _ = absorb(factors, name, log_sum_out, max_cells)
    joint = _multiply(factors, targets, max_cells)
    peak = joint.values.max()
    if peak == -np.inf:
        return None
    weights = np.exp(joint.values - peak)
    return Table(joint.axes, weights / weights.sum()).arrange(targets)


def maximise_subset(
    dag: DAG,
    cpts: Sequence[Table],
    targets: Sequence[str],
    evidence: Evidence,
    likelihoods: Likelihoods,
    max_cells: int,
) -> tuple[dict[str, int], float] | None:
    """Marginal MAP: the targets' levels that maximise P(targets, evidence), and its logarithm; exact.

    The other attributes are summed out first, then the targets are maximised out; the order is free only within
    each of the two groups.
    """
    factors = relevant_factors(dag, cpts, targets, evidence, likelihoods)
    for name in order_of(factors, keep=targets):
        factors, _ = absorb(factors, name, log_sum_out, max_cells)
    traces: list[tuple[str, Table]] = []
    for name in order_of(factors, keep=()):
        factors, product = absorb(factors, name, maximise_out, max_cells)
        traces.append((name, product))
    value = float(sum(float(factor.values) for factor in factors))
    if value == -np.inf:
        return None
    found: dict[str, int] = {}
    for name, product in reversed(traces):
        found[name] = int(np.argmax(product.select({v: found[v] for v in product.axes if v != name}).values))
    return {name: found[name] for name in targets}, value


def relevant_factors(
    dag: DAG, cpts: Sequence[Table], targets: Iterable[str], evidence: Evidence, likelihoods: Likelihoods
) -> list[Table]:
    """The logarithms of the tables that can matter, cut to the evidence: barren nodes are left out.

    What the evidence separates from the targets falls into components of its own and is summed out for next to nothing;
    it is kept because evidence there may be impossible.
    """
    above = dag.ancestors([*targets, *evidence, *likelihoods])
    with np.errstate(divide="ignore"):
        factors = [
            Table(cpt.axes, np.log(cpt.values)).select({v: evidence[v] for v in cpt.axes if v in evidence})
            for name, cpt in zip(dag.nodes, cpts, strict=True)
            if name in above
        ]
        factors += [
            Table((name,), np.log(np.asarray(values, dtype=np.float64))).select(
                {name: evidence[name]} if name in evidence else {}
            )
            for name, values in likelihoods.items()
        ]
    return factors


def order_of(factors: Sequence[Table], keep: Iterable[str]) -> list[str]:
    """The best elimination order that the greedy rules find for all attributes that are not kept."""
    sizes: dict[str, int] = {}
    for factor in factors:
        sizes.update(factor.sizes)
    names = list(sizes)
    index = {name: v for v, name in enumerate(names)}
    weights = [log2(sizes[name]) for name in names]
    graph = interaction_graph([[index[a] for a in factor.axes] for factor in factors], len(names))
    dropped = [index[name] for name in names if name not in set(keep)]
    return [names[v] for v in find_order(graph, weights, dropped)]


def absorb(
    factors: Sequence[Table], name: str, reduce: Callable[[Table, str], Table], max_cells: int
) -> tuple[list[Table], Table]:
    """Replace the factors that mention an attribute by their product without it; returns that product too."""
    product = _multiply([factor for factor in factors if name in factor.axes], (name,), max_cells)
    rest = [factor for factor in factors if name not in factor.axes]
    return [*rest, reduce(product, name)], product


def log_sum_out(table: Table, name: str) -> Table:
    """log Σ over one attribute of exp(table)."""
    axis = table.axes.index(name)
    return Table(tuple(a for a in table.axes if a != name), log_sum(table.values, (axis,)).squeeze(axis))


def maximise_out(table: Table, name: str) -> Table:
    """The maximum over one attribute."""
    return table.maximise([a for a in table.axes if a != name])


def _multiply(factors: Sequence[Table], axes: Sequence[str], max_cells: int) -> Table:
    """The sum of log-tables on the union of their axes and `axes`."""
    sizes: dict[str, int] = {}
    for factor in factors:
        sizes.update(factor.sizes)
    union = (*axes, *(name for name in sizes if name not in axes))
    require_cells(f"the table over {list_some(union)}", (sizes[name] for name in union), max_cells)
    total = np.zeros([sizes[name] for name in union])
    for factor in factors:
        total += factor.spread(union)
    return Table(union, total)
