"""Inner bounds: answers that some network of the credal set really gives, improved one node's conditionals at a time.

For fixed conditionals of all other nodes, E[f | e] = (Σ α·p) / (Σ β·p) is linear-fractional in the conditionals p
of one node, and its minimum is where (α − μβ)·p is least with μ the minimum itself (Dinkelbach): each of them
sits at a vertex found by sorting. A step with the present value as μ never makes the value worse, and stands
still only at the optimum of every single node.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log2

import numpy as np

from discreet.compute.bounds.problem import Floats, Problem
from discreet.compute.contraction import Contraction
from discreet.compute.triangulation import find_order, interaction_graph
from discreet.values.errors import ImpossibleEvidence
from discreet.values.table import MAX_CELLS

STARTS = 3
"""From how many networks the ascent begins: the centre, and vertices drawn at random."""

ROUNDS = 200
"""The most steps of one ascent; a handful is usual."""

STILL = 1e-13
"""Improvements below this share of P(evidence) are rounding."""


class Elimination:
    """P(targets, evidence) of a problem, for any batch of its precise networks, and its derivatives."""

    def __init__(self, problem: Problem, max_cells: int = MAX_CELLS) -> None:
        self.problem = problem
        index = {name: v for v, name in enumerate(problem.sizes)}
        sizes = list(problem.sizes.values())
        scopes = [[index[name] for name in local.scope] for local in problem.locals]
        kept = [index[name] for name in problem.targets]
        graph = interaction_graph([*scopes, kept], len(sizes))
        dropped = [v for v in range(len(sizes)) if v not in set(kept)]
        order = find_order(graph, [log2(size) for size in sizes], dropped)
        self._contraction = Contraction(scopes, sizes, kept, order, max_cells)

    def factor(self, i: int, conditionals: Floats) -> Floats:
        """The i-th node's table for `run`, from conditionals over all its levels."""
        return self.problem.locals[i].restrict(conditionals)

    def run(self, factors: Sequence[Floats]) -> tuple[Floats, list[list[Floats]]]:
        """P(targets, evidence) for each entry of the batch axis, and the tape for `differentiate`."""
        return self._contraction.run(factors)

    def differentiate(self, tape: list[list[Floats]], seed: Floats) -> list[Floats]:
        """The derivative of Σ seed·P(targets, evidence) by every node's conditionals, over all their levels."""
        slopes = self._contraction.differentiate(tape, seed)
        return [local.embed(slope) for local, slope in zip(self.problem.locals, slopes, strict=True)]


@dataclass(frozen=True, slots=True)
class Inner:
    """The least value found for each function, and conditionals that give it (one batch entry for each function)."""

    values: Floats
    conditionals: tuple[Floats, ...]


def descend(problem: Problem, functions: Floats, elimination: Elimination) -> Inner:
    """An upper bound on the minimum of E[f | e] for each f, attained by the conditionals that are returned."""
    count = len(functions)
    conditionals = _begin(problem, count, np.random.default_rng(0))
    wanted = np.tile(functions, (STARTS, *[1] * (functions.ndim - 1)))
    values = improve(elimination, wanted, conditionals)
    if np.isinf(values[:count]).any():
        raise ImpossibleEvidence("the evidence has probability zero in every network of the credal set")
    best = values.reshape(STARTS, count).argmin(axis=0) * count + np.arange(count)
    flat = functions.reshape(count, -1)
    reached = np.clip(values[best], flat.min(axis=1), flat.max(axis=1))  # a mean that rounding pushed out
    return Inner(reached, tuple(found[best] for found in conditionals))


def evaluate(
    elimination: Elimination, functions: Floats, conditionals: Sequence[Floats]
) -> tuple[Floats, Floats, list[list[Floats]]]:
    """E[f | e] and P(e) of each precise network, and the tape; NaN where the evidence is impossible."""
    joint, tape = elimination.run([elimination.factor(i, found) for i, found in enumerate(conditionals)])
    axes = tuple(range(1, joint.ndim))
    known = joint.sum(axis=axes)
    with np.errstate(invalid="ignore", divide="ignore"):
        return (joint * functions).sum(axis=axes) / known, known, tape


def _begin(problem: Problem, count: int, rng: np.random.Generator) -> list[Floats]:
    found = []
    for local in problem.locals:
        sets = local.sets
        drawn = [np.repeat(sets.centre, count, axis=0)]
        drawn += [sets.choose(rng.random((count, *sets.lower.shape[1:]))) for _ in range(STARTS - 1)]
        found.append(np.concatenate(drawn))
    return found


def improve(elimination: Elimination, functions: Floats, conditionals: Sequence[Floats]) -> Floats:
    """Improve the conditionals in place until no single node can be improved, and return the values reached."""
    problem = elimination.problem
    values, known, _ = evaluate(elimination, functions, conditionals)
    values[np.isnan(values)] = np.inf  # a vertex at which the evidence is impossible is no start
    active = np.flatnonzero(values < np.inf)
    for _ in range(ROUNDS):
        if not len(active):
            break
        here = [found[active] for found in conditionals]
        wanted = functions[active]
        now, known, tape = evaluate(elimination, wanted, here)
        slopes = elimination.differentiate(tape, wanted - now.reshape(-1, *[1] * (wanted.ndim - 1)))
        better, gains = [], []
        for i, (local, slope) in enumerate(zip(problem.locals, slopes, strict=True)):
            better.append(local.sets.choose(slope))
            gains.append(((here[i] - better[i]) * slope).reshape(len(active), -1).sum(axis=1))
        gain = np.array(gains)
        moving = gain.max(axis=0) > STILL * known
        # All nodes at once is most often right, and then saves a step for each node; the best single node always is.
        leader = gain.argmax(axis=0)
        single = [
            np.where((leader == i).reshape(-1, *[1] * (found.ndim - 1)), better[i], found)
            for i, found in enumerate(here)
        ]
        jump, _, _ = evaluate(elimination, wanted, better)
        step, _, _ = evaluate(elimination, wanted, single)
        jump, step = np.nan_to_num(jump, nan=np.inf), np.nan_to_num(step, nan=np.inf)
        take = np.where(moving & (np.minimum(jump, step) < now), np.where(jump < step, 2, 1), 0)
        for i, found in enumerate(conditionals):
            found[active[take == 2]] = better[i][take == 2]
            found[active[take == 1]] = single[i][take == 1]
        values[active] = np.where(take == 2, jump, np.where(take == 1, step, now))
        active = active[take > 0]
    return values
