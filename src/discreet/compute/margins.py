"""Marginals of a network over given sets, by elimination that is planned once and run for many tables of one graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from discreet.values.graph import DAG
from discreet.values.table import Array, count_cells

Shape = tuple[int, ...]
MOST_AXES = 32
"""A product over more attributes than numpy has axes for is not attempted, whatever its size."""


@dataclass(frozen=True, slots=True)
class Step:
    """Multiply some arrays, each reshaped to broadcast, and sum out one axis, or none at the end."""

    operands: tuple[tuple[int, Shape], ...]
    axis: int | None


@dataclass(frozen=True, slots=True)
class Elimination:
    """How to get the marginal over one set from the tables of all nodes; all axes are in the order of the nodes."""

    steps: tuple[Step, ...]

    def run(self, tables: Sequence[Array]) -> Array:
        """The marginal; each table has its axes in the order of the nodes."""
        made: dict[int, Array] = {}
        for k, step in enumerate(self.steps):
            product: Array | None = None
            for source, shape in step.operands:
                array = (tables[source] if source < len(tables) else made[source]).reshape(shape)
                product = array if product is None else product * array
            assert product is not None
            made[len(tables) + k] = product if step.axis is None else product.sum(axis=step.axis)
        return made[len(tables) + len(self.steps) - 1]


def plan_elimination(
    dag: DAG, sizes: Mapping[str, int], members: Sequence[str], max_cells: int
) -> Elimination | None:
    """How to sum all other attributes out, the cheapest next; None if a product would have more cells than allowed.

    Only the ancestors of the set matter: the tables of all other nodes sum to 1.
    """
    position = {name: i for i, name in enumerate(dag.nodes)}
    above = dag.ancestors(members)
    factors = [(position[name], frozenset(dag.family(name))) for name in dag.nodes if name in above]
    left = above - set(members)
    steps: list[Step] = []

    def multiply(used: Sequence[tuple[int, frozenset[str]]], union: Sequence[str], axis: int | None) -> None:
        operands = tuple(
            (source, tuple(sizes[name] if name in scope else 1 for name in union)) for source, scope in used
        )
        steps.append(Step(operands, axis))

    while left:
        scopes = {name: frozenset().union(*(f for _, f in factors if name in f)) for name in left}
        name = min(left, key=lambda x: (count_cells(sizes[y] for y in scopes[x]), position[x]))
        union = sorted(scopes[name], key=position.__getitem__)
        if len(union) > MOST_AXES or count_cells(sizes[x] for x in union) > max_cells:
            return None
        multiply([found for found in factors if name in found[1]], union, union.index(name))
        factors = [found for found in factors if name not in found[1]]
        factors.append((len(dag) + len(steps) - 1, scopes[name] - {name}))
        left -= {name}
    kept = sorted(members, key=position.__getitem__)
    if not kept or len(kept) > MOST_AXES:
        return None
    multiply(factors, kept, None)
    return Elimination(tuple(steps))


def sort_axes(dag: DAG, axes: Sequence[str], values: Array) -> Array:
    """The same values with their axes in the order of the nodes."""
    position = {name: i for i, name in enumerate(dag.nodes)}
    order = sorted(range(len(axes)), key=lambda k: position[axes[k]])
    return np.ascontiguousarray(values.transpose(order))
