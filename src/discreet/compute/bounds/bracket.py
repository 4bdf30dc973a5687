"""Lower and upper expectations over a credal network: from outside, from inside, or exactly."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from discreet.compute.bounds.inner import STARTS, Elimination, descend
from discreet.compute.bounds.outer import (
    CELLS,
    LEAST,
    TRIES,
    Induction,
    Sides,
    bound_outside,
    require_possible,
    search_outside,
)
from discreet.compute.bounds.problem import Floats, LevelSets, Problem, pose
from discreet.values.errors import TooLarge
from discreet.values.graph import DAG
from discreet.values.table import Table

Method = Literal["both", "outer", "inner", "exact"]

PRECISION = 1e-4
"""How far apart, in shares of f's range, the ends of an exact bound may lie and still be called one number."""

FIRST_LOOK = 0.1
"""The share of the time in which all ends are tried, to see which of them are hard."""

MEETING = 1e-6
"""How near the outer bound must be to the inner one for the two to have met."""


@dataclass(frozen=True, slots=True)
class Bracket:
    """For each function, what its lower and upper expectations lie between.

    No network of the credal set gives less than `lower` or more than `upper`; some network gives
    `inner_lower`, some gives `inner_upper`. So the lower expectation lies in [lower, inner_lower], the upper
    in [inner_upper, upper].
    """

    lower: Floats
    upper: Floats
    inner_lower: Floats | None = None
    inner_upper: Floats | None = None
    coarse: bool = False
    """Whether tables had to be coarsened to fit, so that the outer bounds are wider than they need be."""

    def met(self, tolerance: float = MEETING) -> npt.NDArray[np.bool_]:
        """For which functions the outer bounds are exact up to `tolerance`, because inner ones meet them."""
        if self.inner_lower is None or self.inner_upper is None:
            return np.zeros(len(self.lower), dtype=np.bool_)
        return (self.inner_lower - self.lower <= tolerance) & (self.upper - self.inner_upper <= tolerance)


def bound(
    dag: DAG,
    lower: Sequence[Table],
    upper: Sequence[Table],
    targets: Sequence[str],
    functions: Floats,
    evidence: LevelSets,
    *,
    method: Method = "both",
    seconds: float = 10.0,
    precision: float = PRECISION,
    max_work: int | None = None,
) -> Bracket:
    """Bound E[f(targets) | evidence] over the strong extension, for each f along the first axis of `functions`.

    Networks in which the evidence is impossible do not count (regular extension). `seconds` limits the exact
    method, for each function on average; what it has reached by then is still a valid bracket.
    """
    require_possible(dag, lower, upper, evidence)
    problem = pose(dag, lower, upper, targets, functions, evidence)
    if problem.settled:
        return Bracket(problem.functions, problem.functions, problem.functions, problem.functions)
    # An upper bound on f is a lower one on −f.
    doubled = np.concatenate([problem.functions, -problem.functions])
    elimination = None if method == "outer" else plan_elimination(problem, len(doubled) * STARTS)
    if elimination is None:
        return _fold(bound_outside(problem, doubled, TRIES, max_work), None)
    inner = descend(problem, doubled, elimination)
    if method == "inner":
        low, high = problem.ranges
        return _fold(Sides(np.concatenate([low, -high]), False), inner.values)
    found, inductions, best = search_outside(problem, doubled, inner.values, TRIES, max_work)
    if method == "exact" and not found.coarse:
        values, reached = _search(
            doubled, elimination, (inductions, best), (found.values, inner.values), seconds / 2, precision
        )
        return _fold(replace(found, values=np.maximum(found.values, values)), reached)
    return _fold(found, inner.values)


def _search(
    functions: Floats,
    elimination: Elimination,
    outer: tuple[Sequence[Induction], npt.NDArray[np.intp]],
    known: tuple[Floats, Floats],
    seconds: float,
    precision: float,
) -> tuple[Floats, Floats]:
    """What branching makes of known brackets, with so many seconds for each function on average.

    All get a first look; the time that easy ones leave over is for the hard ones, which go on where they were.
    """
    from discreet.compute.bounds.exact import Branching, Search

    inductions, best = outer
    ends = zip(functions, best, known[0].tolist(), known[1].tolist(), strict=True)
    searches = [
        Search(Branching(inductions[k], elimination, function, low, high, precision))
        for function, k, low, high in ends
    ]
    deadline = time.monotonic() + seconds * len(functions)
    for part in (FIRST_LOOK, 1.0, 1.0):
        left = [one for one in searches if not one.done]
        for k, one in enumerate(left):
            share = part * (deadline - time.monotonic()) / (len(left) - k)
            if share > 0:
                one.run(share)
    lower, upper = zip(*(one.bracket for one in searches), strict=True)
    return np.array(lower), np.array(upper)


def plan_elimination(problem: Problem, batch: int) -> Elimination | None:
    """Exact elimination for so many networks at once; None if the graph is too dense for that."""
    try:
        return Elimination(problem, max(CELLS // batch, LEAST))
    except TooLarge:
        return None


def _fold(outer: Sides, inner: Floats | None) -> Bracket:
    """The two halves, for f and for −f, as lower and upper ends."""
    half = len(outer.values) // 2
    ends = outer.values[:half], -outer.values[half:]
    if inner is None:
        return Bracket(*ends, coarse=outer.coarse)
    return Bracket(*ends, inner[:half], -inner[half:], outer.coarse)
