"""Which levels can be the most probable one, over all networks of a credal set."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from discreet.compute.bounds.bracket import bound, plan_elimination
from discreet.compute.bounds.inner import descend, evaluate
from discreet.compute.bounds.problem import LevelSets, pose
from discreet.values.graph import DAG
from discreet.values.table import Table

MOST_PAIRS = 2000
"""Up to how many pairs of levels are compared directly; beyond it by their intervals only."""


def find_candidates(
    dag: DAG, lower: Sequence[Table], upper: Sequence[Table], target: str, evidence: LevelSets
) -> tuple[list[int], list[int]]:
    """The levels that no other level certainly beats, and those that were seen to be best in some network.

    Level j certainly beats i if the lower bound of P(j | e) − P(i | e) is above 0 (maximality); every level
    that is best in some network survives that.
    """
    size = lower[dag.index(target)].values.shape[-1]
    levels = np.eye(size)
    pairs = list(combinations(range(size), 2))
    beaten: set[int] = set()
    if len(pairs) > MOST_PAIRS:
        found = bound(dag, lower, upper, [target], levels, evidence, method="outer")
        beaten = {i for i in range(size) if found.upper[i] < found.lower.max()}
    elif pairs:
        differences = np.array([levels[j] - levels[i] for i, j in pairs])
        found = bound(dag, lower, upper, [target], differences, evidence, method="outer")
        for k, (i, j) in enumerate(pairs):
            if found.lower[k] > 0:
                beaten.add(i)
            elif found.upper[k] < 0:
                beaten.add(j)
    left = [i for i in range(size) if i not in beaten]
    return left, sorted(_see_best(dag, lower, upper, target, evidence, left))


def _see_best(
    dag: DAG,
    lower: Sequence[Table],
    upper: Sequence[Table],
    target: str,
    evidence: LevelSets,
    left: Sequence[int],
) -> set[int]:
    """The levels that are best at the centre, or where some candidate is made as probable as can be."""
    size = lower[dag.index(target)].values.shape[-1]
    problem = pose(dag, lower, upper, [target], np.eye(size), evidence)
    if problem.settled:
        return set(left)
    elimination = plan_elimination(problem, 3 * size)
    if elimination is None:
        return set()
    pushed = descend(problem, -problem.functions[list(left)], elimination)
    networks = [
        np.concatenate([local.sets.centre, found])
        for local, found in zip(problem.locals, pushed.conditionals, strict=True)
    ]
    count = len(left) + 1
    answers = np.array(
        [
            evaluate(elimination, np.repeat(function[None], count, axis=0), networks)[0]
            for function in problem.functions
        ]
    )
    return {int(i) for i in np.nanargmax(answers, axis=0) if int(i) in left}
