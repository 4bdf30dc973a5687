"""Lower and upper expectations over a credal network: from outside, from inside, or exactly."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from discreet.compute.bounds.inner import STARTS, centre_of, descend, evaluate
from discreet.compute.bounds.intervals import Floats
from discreet.compute.bounds.multilinear import Elimination
from discreet.compute.bounds.orders import list_orders
from discreet.compute.bounds.outer import WIDENING, Induction, bound_below
from discreet.compute.bounds.query import Evidence, Problem, pose
from discreet.values.errors import ImpossibleEvidence, TooLarge
from discreet.values.graph import DAG
from discreet.values.table import Table

Method = Literal["both", "outer", "inner", "exact"]

TRIES = 6
"""How many elimination orders the outer bound tries."""

CELLS = 2**20
"""The cells of the largest array: above it, outer bounds are taken over fewer contexts, and there are no inner ones."""

LEAST = 2**12
"""The cells that a single function may have in any case."""

WORK = 2**23
"""Orders are tried, cheapest first, until they have this many cells together; a pass takes about a second then."""

PRECISION = 1e-4
"""How far apart, in shares of f's range, the ends of an exact bound may lie and still be called one number."""

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
    evidence: Evidence,
    *,
    method: Method = "both",
    seconds: float = 10.0,
    precision: float = PRECISION,
    tries: int = TRIES,
    starts: int = STARTS,
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
    doubled = np.concatenate(
        [problem.functions, -problem.functions]
    )  # an upper bound on f is a lower one on −f
    elimination = plan_elimination(problem, len(doubled) * starts)
    if elimination is None and method != "outer":
        method = "outer"
    if method == "outer" or elimination is None:
        found = _outside(problem, doubled, _guess(doubled, elimination), tries, max_work)[0]
        return _fold(found, None)
    inner = descend(problem, doubled, elimination, starts=starts)
    if method == "inner":
        low, high = problem.ranges
        return _fold(_Sides(np.concatenate([low, -high]), False), inner.values)
    found, inductions, best = _outside(problem, doubled, inner.values, tries, max_work)
    if method == "exact" and not found.coarse:
        from discreet.compute.bounds.exact import search

        values, reached = found.values.copy(), inner.values.copy()
        deadline = time.monotonic() + seconds * len(problem.functions)
        for again in (False, True):  # the time that easy ends leave over is for the hard ones
            for k, function in enumerate(doubled):
                share = (deadline - time.monotonic()) / (1 if again else len(doubled) - k)
                span = float(function.max() - function.min())
                if share > 0 and reached[k] - values[k] > precision * span:
                    least, most = search(
                        inductions[best[k]], elimination, function, values[k], reached[k],
                        seconds=share, precision=precision,
                    )  # fmt: skip
                    values[k], reached[k] = max(values[k], least), min(reached[k], most)
        return _fold(replace(found, values=np.maximum(found.values, values)), reached)
    return _fold(found, inner.values)


def require_possible(dag: DAG, lower: Sequence[Table], upper: Sequence[Table], evidence: Evidence) -> None:
    """Refuse evidence that has probability zero in every network of the credal set.

    The centre of each row gives weight to every level that any distribution of the row gives weight to, so
    evidence that is impossible at the centre is impossible everywhere.
    """
    above = dag.ancestors(evidence)
    if all(upper[dag.index(name)].values.min() > 0 for name in above):
        return
    problem = pose(dag, lower, upper, (), np.zeros(1), evidence, whole=True)
    elimination = plan_elimination(problem, 1) if problem.locals else None
    if elimination is None:
        return  # too wide to tell; the outer bounds hold all the same
    centre = [centre_of(local.rows.lower, local.rows.upper) for local in problem.locals]
    _, known, _ = evaluate(elimination, np.zeros(1), centre)
    if not known[0] > 0:
        raise ImpossibleEvidence("the evidence has probability zero in every network of the credal set")


@dataclass(frozen=True, slots=True)
class _Sides:
    values: Floats
    coarse: bool


def plan_elimination(problem: Problem, batch: int) -> Elimination | None:
    """Exact elimination for so many networks at once; None if the graph is too dense for that."""
    try:
        return Elimination(problem, max(CELLS // batch, LEAST))
    except TooLarge:
        return None


def _guess(functions: Floats, elimination: Elimination | None) -> Floats:
    """Where Newton's method starts: the answer at the centre, or the greatest value if that is out of reach."""
    if elimination is None:
        return np.asarray(functions.reshape(len(functions), -1).max(axis=1))
    centre = [centre_of(local.rows.lower, local.rows.upper) for local in elimination.problem.locals]
    values, _, _ = evaluate(elimination, functions, centre)
    return values


def _outside(
    problem: Problem, functions: Floats, start: Floats, tries: int, max_work: int | None
) -> tuple[_Sides, list[Induction], npt.NDArray[np.intp]]:
    limit = max(CELLS // len(functions), LEAST)
    inductions = [Induction(problem, order, limit) for order in list_orders(problem, tries)]
    fine = [induction for induction in inductions if not induction.coarse]
    if not fine:  # coarse bounds gain little from size, and take many Newton steps
        fine = [Induction(problem, induction.order, max(limit // 8, LEAST)) for induction in inductions]
    fine.sort(key=lambda induction: induction.cells)
    cheapest = fine[0].cells * len(functions)
    if max_work is not None and cheapest > max_work:
        raise TooLarge(f"bounds would work through {cheapest:,} cells; at most {max_work:,} are allowed")
    spent = np.cumsum([induction.cells * len(functions) for induction in fine])
    most = WORK if max_work is None else min(WORK, max_work)
    fine = fine[: max(1, int(np.searchsorted(spent, most)))]  # the cheapest in any case
    values, best = bound_below(problem, functions, start, fine)
    low, high = (
        functions.reshape(len(functions), -1).min(axis=1),
        functions.reshape(len(functions), -1).max(axis=1),
    )
    values = np.maximum(values - WIDENING * (high - low), low)
    return _Sides(values, all(induction.coarse for induction in fine)), fine, best


def _fold(outer: _Sides, inner: Floats | None) -> Bracket:
    """The two halves, for f and for −f, as lower and upper ends."""
    half = len(outer.values) // 2
    ends = outer.values[:half], -outer.values[half:]
    if inner is None:
        return Bracket(*ends, coarse=outer.coarse)
    return Bracket(*ends, inner[:half], -inner[half:], outer.coarse)
