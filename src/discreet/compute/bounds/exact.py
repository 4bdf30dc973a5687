"""Exact bounds: branch and bound first, then HiGHS where its program is small, then branch and bound again.

The two are good at different questions. Branching wins where few rows are in conflict, however large the
graph is; the program wins where many rows are in conflict and the graph is narrow.
"""

from __future__ import annotations

import time

import numpy as np

from discreet.compute.bounds.branch import Branching
from discreet.compute.bounds.inner import centre_of, evaluate, improve
from discreet.compute.bounds.intervals import Floats
from discreet.compute.bounds.multilinear import Elimination
from discreet.compute.bounds.outer import Induction
from discreet.values.errors import MissingExtra, TooLarge

FIRST, SECOND = 0.2, 0.5
"""The shares of the time after which HiGHS takes over from branching, and for which it may then work."""

ROUNDING = 1e-9
"""How far below 0 a bound of HiGHS may be and still count as 0; costs are of the size of f's range."""


def search(
    induction: Induction,
    elimination: Elimination,
    function: Floats,
    lower: float,
    upper: float,
    *,
    seconds: float,
    precision: float,
) -> tuple[float, float]:
    """The best bracket of the least E[f | e] that the time allows, given one that is known."""
    began = time.monotonic()
    try:
        branching = Branching(induction, elimination, function, lower, upper, precision)
        branching.run(seconds * FIRST)
        if not branching.done:
            _programme(branching, elimination, function, precision, began + seconds * (FIRST + SECOND))
            branching.run(began + seconds - time.monotonic())
    except TooLarge:  # a row with too many vertices to list
        return lower, upper
    return branching.lower, branching.upper


def _programme(
    branching: Branching, elimination: Elimination, function: Floats, precision: float, deadline: float
) -> None:
    from discreet.compute.bounds.milp import Solver

    problem = elimination.problem
    centre = [centre_of(local.rows.lower, local.rows.upper) for local in problem.locals]
    _, known, _ = evaluate(elimination, function[None], centre)
    try:
        solver = Solver(problem, float(known[0]))
    except (TooLarge, MissingExtra):
        return
    span = float(function.max() - function.min())
    while not branching.done and time.monotonic() < deadline:
        level = branching.upper - precision * span / 2
        found = solver.minimise(function, level, precision * span / 4, deadline - time.monotonic())
        if found.bound >= -ROUNDING * span:
            branching.learn(level, branching.upper)
            return
        if found.rows is None:
            return
        better = float(improve(elimination, function[None], found.rows)[0])
        if not better < level:
            return  # out of time before the bound came up to 0
        branching.learn(-np.inf, better)
