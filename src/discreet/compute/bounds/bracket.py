"""Lower and upper expectations over a credal network: from outside, from inside, or exactly."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import log2
from typing import Literal

import numpy as np
import numpy.typing as npt

from discreet.compute.bounds.inner import STARTS, Elimination, descend
from discreet.compute.bounds.outer import WIDENING, Induction, bound_below
from discreet.compute.bounds.problem import Floats, LevelSets, Problem, pose
from discreet.values.errors import ImpossibleEvidence, TooLarge
from discreet.values.graph import DAG
from discreet.values.table import Table, count_cells

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
    evidence: LevelSets,
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
    elimination = None if method == "outer" else plan_elimination(problem, len(doubled) * starts)
    if elimination is None:
        greatest = doubled.reshape(len(doubled), -1).max(axis=1)
        return _fold(_outside(problem, doubled, greatest, tries, max_work)[0], None)
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


def require_possible(dag: DAG, lower: Sequence[Table], upper: Sequence[Table], evidence: LevelSets) -> None:
    """Refuse evidence that has probability zero in every network of the credal set.

    An upper bound on P(evidence) is 0 exactly then: it is positive if some levels with positive upper ends lead to
    the evidence, and then some network gives weight to all of them.
    """
    above = dag.ancestors(evidence)
    if all(upper[dag.index(name)].values.min() > 0 for name in above):
        return
    problem = pose(dag, lower, upper, (), np.zeros(1), evidence, whole=True)
    try:
        induction = Induction(problem, _order(problem, Direction.FREE, 0.0, random.Random(0)), CELLS)
    except TooLarge:
        return
    if induction.coarse:
        return  # too wide to tell; the outer bounds hold all the same
    sets = [local.sets for local in problem.locals]
    messages = induction.listen(sets, induction.spread(sets))
    if not all((messages[key][1] > 0).all() for key in induction.unmet):
        raise ImpossibleEvidence("the evidence has probability zero in every network of the credal set")


class Direction(StrEnum):
    """Which variables may go next."""

    UP = "children before parents"
    DOWN = "parents before children"
    FREE = "any"


def list_orders(problem: Problem, tries: int, seed: int = 0) -> list[tuple[str, ...]]:
    """Up to `tries` different orders of elimination, greedy in the cells of each product.

    The directions take turns; later ones are drawn with some noise.
    """
    rng = random.Random(seed)
    found: dict[tuple[str, ...], None] = {}
    directions = list(Direction)
    for attempt in range(tries):
        noise = 0.0 if attempt < len(directions) else 1.5
        found.setdefault(_order(problem, directions[attempt % len(directions)], noise, rng))
    return list(found)


def _order(problem: Problem, direction: Direction, noise: float, rng: random.Random) -> tuple[str, ...]:
    families = {found.name: frozenset(found.scope) for found in problem.locals if not found.observed}
    parents = {found.name: found.parents for found in problem.locals if not found.observed}
    pool = [frozenset(found.parents) for found in problem.locals if found.observed]
    pool.append(frozenset(problem.targets))
    left = set(families)
    waiting = {name: set[str]() for name in left}
    for name, above in parents.items():
        for parent in above:
            if direction is Direction.UP:
                waiting[parent].add(name)
            elif direction is Direction.DOWN:
                waiting[name].add(parent)
    order: list[str] = []
    while left:
        best: tuple[float, str, frozenset[str]] | None = None
        for name in sorted(name for name in left if not waiting[name]):
            touched = [scope for scope in (*pool, *families.values()) if name in scope]
            union = frozenset[str]().union(*touched)
            price = log2(count_cells(problem.sizes[member] for member in union)) + noise * rng.random()
            if best is None or price < best[0]:
                best = price, name, union
        assert best is not None
        _, name, union = best
        # With children before parents only the node's own conditionals mention it; taken apart, the children's do too.
        families = {key: scope for key, scope in families.items() if name not in scope}
        pool = [*(scope for scope in pool if name not in scope), union - {name}]
        order.append(name)
        left.discard(name)
        for others in waiting.values():
            others.discard(name)
    return tuple(order)


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
    flat = functions.reshape(len(functions), -1)
    low, high = flat.min(axis=1), flat.max(axis=1)
    values = np.maximum(values - WIDENING * (high - low), low)
    return _Sides(values, all(induction.coarse for induction in fine)), fine, best


def _fold(outer: _Sides, inner: Floats | None) -> Bracket:
    """The two halves, for f and for −f, as lower and upper ends."""
    half = len(outer.values) // 2
    ends = outer.values[:half], -outer.values[half:]
    if inner is None:
        return Bracket(*ends, coarse=outer.coarse)
    return Bracket(*ends, inner[:half], -inner[half:], outer.coarse)
