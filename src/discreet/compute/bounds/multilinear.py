"""Many precise networks with one graph at once: P(targets, evidence) of each, and its derivative by every row.

The probability is linear in all rows of one node together, because every combination of levels uses exactly
one of them. So the derivative by a node's rows is all that is needed to optimise them exactly.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from math import log2

import numpy as np

from discreet.compute.bounds.intervals import Floats
from discreet.compute.bounds.query import Problem
from discreet.compute.triangulation import (
    RULES,
    cliques_of,
    eliminate_greedily,
    interaction_graph,
    total_cells,
)
from discreet.values.table import MAX_CELLS, count_cells, require_cells

Scope = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """One bucket: the factors that meet in a variable, and how each of them lies in their product."""

    inputs: Scope
    union: Scope
    """The sizes of the product's axes."""
    shapes: tuple[Scope, ...]
    """For each input its sizes, with an axis of length 1 for each variable that it lacks."""
    lacking: tuple[Scope, ...]
    """For each input the axes that it lacks, counted with the batch axis."""
    summed: bool
    """Whether the last axis is summed out; only the step that joins the targets' factors keeps all axes."""


class Elimination:
    """Variable elimination over a problem, planned once and run on any batch of precise networks."""

    def __init__(self, problem: Problem, max_cells: int = MAX_CELLS) -> None:
        self.problem = problem
        names = list(problem.sizes)
        index = {name: v for v, name in enumerate(names)}
        scopes = [[index[a] for a in found.scope] for found in problem.locals]
        targets = [index[name] for name in problem.targets]
        order = _order(scopes, targets, [problem.sizes[name] for name in names])
        # Axes are sorted so that what goes first stands last: a sum is always over the last axis.
        ranked = [*targets, *reversed(order)]
        rank = {v: r for r, v in enumerate(ranked)}
        sizes = [problem.sizes[names[v]] for v in ranked]
        self.arrange = [_sort_axes([rank[v] for v in scope]) for scope in scopes]
        pool = {i: tuple(sorted(rank[v] for v in scope)) for i, scope in enumerate(scopes)}
        self.steps: list[Step] = []
        for r in range(len(ranked) - 1, len(targets) - 1, -1):
            self._join([i for i, scope in pool.items() if r in scope], pool, sizes, max_cells, summed=True)
        self._join(list(pool), pool, sizes, max_cells, summed=False)

    def run(self, factors: Sequence[Floats]) -> tuple[Floats, list[list[Floats]]]:
        """P(targets, evidence) for each entry of the batch axis, and the tape for `differentiate`."""
        values = [factor.transpose(0, *axes) for factor, axes in zip(factors, self.arrange, strict=True)]
        tape: list[list[Floats]] = []
        for step in self.steps:
            spread = [
                values[i].reshape(len(values[i]), *shape)
                for i, shape in zip(step.inputs, step.shapes, strict=True)
            ]
            tape.append(spread)
            total = spread[0]
            for other in spread[1:]:
                total = total * other
            values.append(total.sum(axis=-1) if step.summed else total)
        return values[-1], tape

    def differentiate(self, tape: list[list[Floats]], seed: Floats) -> list[Floats]:
        """The derivative of Σ seed·P(targets, evidence) by every factor, in the shape of the factors given to `run`."""
        count, batch = len(self.arrange), len(seed)
        adjoint: list[Floats] = [seed] * (count + len(self.steps))
        for s in range(len(self.steps) - 1, -1, -1):
            step, spread = self.steps[s], tape[s]
            # After the loop below, right[k] is the adjoint times all inputs that stand right of the k-th.
            right = [adjoint[count + s][..., None] if step.summed else adjoint[count + s]]
            for other in reversed(spread[1:]):
                right.append(right[-1] * other)
            right.reverse()
            left: Floats | None = None
            for k, i in enumerate(step.inputs):
                found = right[k] if left is None else right[k] * left
                left = spread[k] if left is None else left * spread[k]
                whole = np.broadcast_to(found, (batch, *step.union))
                adjoint[i] = whole.sum(axis=step.lacking[k]) if step.lacking[k] else whole
        return [adjoint[i].transpose(0, *_inverse(axes)) for i, axes in enumerate(self.arrange)]

    def factor(self, i: int, rows: Floats) -> Floats:
        """The factor of the i-th node for rows over all its levels: only the allowed levels, no axis if observed."""
        found = self.problem.locals[i]
        return rows[..., found.allowed[0]] if found.observed else rows[..., found.allowed]

    def unfold(self, i: int, derivative: Floats) -> Floats:
        """The derivative by all levels of the i-th node's rows: 0 for the levels that the evidence rules out."""
        found = self.problem.locals[i]
        if found.observed:
            derivative = derivative[..., None]
        levels = found.rows.lower.shape[-1]
        if len(found.allowed) == levels:
            return derivative
        whole = np.zeros((*derivative.shape[:-1], levels))
        whole[..., found.allowed] = derivative
        return whole

    def _join(
        self, inputs: list[int], pool: dict[int, Scope], sizes: Sequence[int], max_cells: int, *, summed: bool
    ) -> None:
        union = sorted(set().union(*(pool[i] for i in inputs)))
        require_cells(
            "the largest table of an exact answer for one network", (sizes[r] for r in union), max_cells
        )
        self.steps.append(
            Step(
                tuple(inputs),
                tuple(sizes[r] for r in union),
                tuple(tuple(sizes[r] if r in pool[i] else 1 for r in union) for i in inputs),
                tuple(tuple(1 + k for k, r in enumerate(union) if r not in pool[i]) for i in inputs),
                summed,
            )
        )
        for i in inputs:
            del pool[i]
        pool[len(self.arrange) + len(self.steps) - 1] = tuple(union[:-1] if summed else union)

    @property
    def cells(self) -> int:
        """The number of cells of all products together, for one network."""
        return sum(count_cells(step.union) for step in self.steps)


def _order(scopes: Sequence[Sequence[int]], keep: Sequence[int], sizes: Sequence[int]) -> list[int]:
    """The cheapest elimination order that the greedy rules find for the variables that are not kept."""
    weights = [log2(size) for size in sizes]
    graph = interaction_graph([*scopes, keep], len(sizes))
    dropped = [v for v in range(len(sizes)) if v not in set(keep)]
    orders = [eliminate_greedily(graph, weights, rule, dropped, random.Random(0)) for rule in RULES]
    return min(orders, key=lambda order: total_cells(cliques_of(graph, order), weights))


def _sort_axes(ranks: Sequence[int]) -> Scope:
    """The axes after the batch axis, in the order of their ranks."""
    return tuple(1 + k for k in sorted(range(len(ranks)), key=lambda k: ranks[k]))


def _inverse(axes: Sequence[int]) -> list[int]:
    found = [0] * len(axes)
    for k, axis in enumerate(axes):
        found[axis - 1] = k + 1
    return found
