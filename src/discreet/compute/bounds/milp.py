"""Exact bounds by mixed-integer programming: HiGHS chooses the vertex that each conditional sits at.

Nodes are added to a running table over the frontier, parents before children; a node leaves the frontier when
all its children are in. A cell g(c) that meets a conditional with vertices v splits into shares z_v(c) = b_v·g(c),
one binary b_v for each vertex, which is exact as linear constraints: Σ_v z_v(c) = g(c) and L(c)·b_v ≤ z_v(c)
≤ U(c)·b_v with bounds L ≤ g ≤ U. The new cells are Σ_v v(x)·z_v(c). Without the integrality the shares can
stray from b_v·g(c) only as far as U and L are apart, so the relaxation is tight to second order in the width
of the intervals. Products of interval ends forget that conditionals sum to 1, so L and U come from backward induction,
too (`bound_cells`).
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import log2
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.compute.bounds.outer import Induction
from discreet.compute.bounds.problem import Direction, Floats, Problem, list_orders, list_vertices
from discreet.values.errors import TooLarge
from discreet.values.table import count_cells

MOST_CELLS = 4_000
"""The largest program that is tried, in cells of all running tables; beyond it the relaxation alone takes seconds."""

MOST_VERTICES = 40
"""The most vertices of a conditional that become binaries."""

MOST_WORK = 2**22
"""The most cells that backward induction works through for the bounds of one running table: a tenth of a second."""

ROUNDED = 1e-9
"""Such bounds are moved outwards by this part, a thousand times what rounding can do to them."""

TRIES = 8
"""How many orders are drawn to keep the frontier small."""

Entry = tuple[int, float]
"""A column and its coefficient."""


@dataclass(slots=True)
class Program:
    """A mixed-integer program as it grows: columns with bounds, and constraints of entries with bounds."""

    lower: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)
    binary: list[bool] = field(default_factory=list)
    least: list[float] = field(default_factory=list)
    most: list[float] = field(default_factory=list)
    starts: list[int] = field(default_factory=lambda: [0])
    index: list[int] = field(default_factory=list)
    value: list[float] = field(default_factory=list)

    def add_column(self, lower: float, upper: float, *, binary: bool = False) -> int:
        """A new variable; returns its number."""
        self.lower.append(lower)
        self.upper.append(upper)
        self.binary.append(binary)
        return len(self.lower) - 1

    def add_constraint(self, entries: Iterable[Entry], lower: float, upper: float) -> None:
        """A new constraint, lower ≤ Σ coefficient·column ≤ upper."""
        for column, coefficient in entries:
            self.index.append(column)
            self.value.append(coefficient)
        self.starts.append(len(self.index))
        self.least.append(lower)
        self.most.append(upper)


@dataclass(slots=True)
class Frontier:
    """The running table: for each cell its column (−1 if the cell is impossible) and its bounds L and U.

    Columns hold cells in units of their own U, so that rare contexts are computed as exactly as common ones.
    """

    axes: list[str]
    columns: npt.NDArray[np.intp]
    low: Floats
    high: Floats


class Model:
    """The program of a problem; `choices` tells for each conditional of each node its binaries and its vertices."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.program = Program()
        self.choices: dict[tuple[int, int], tuple[list[int], Floats]] = {}
        self._waiting = count_children(problem)
        self._added: list[int] = []
        one = np.array(self.program.add_column(1.0, 1.0), dtype=np.intp).reshape(())
        frontier = Frontier([], one, np.ones(()), np.ones(()))
        for i in order_forward(problem):
            frontier = self._add(i, frontier)
        back = [frontier.axes.index(name) for name in problem.targets]
        self.columns = frontier.columns.transpose(back)
        self.units = frontier.high.transpose(back)
        self.least = float(frontier.low.sum())
        """No network gives the evidence a smaller probability."""

    def _add(self, i: int, frontier: Frontier) -> Frontier:
        """The frontier after the i-th node came in, and whatever has no children left went out."""
        problem, local = self.problem, self.problem.locals[i]
        for parent in local.parents:
            self._waiting[parent] -= 1
        grown = frontier.axes + ([] if local.observed else [local.name])
        axes = [name for name in grown if self._waiting[name] or name in problem.targets]
        place = [grown.index(name) for name in axes]
        where = [frontier.axes.index(parent) for parent in local.parents]
        low, high = (end.reshape(-1, end.shape[-1]) for end in (local.sets.lower, local.sets.upper))
        shape = [problem.sizes[name] for name in axes]
        found = Frontier(axes, np.full(shape, -1, dtype=np.intp), np.zeros(shape), np.zeros(shape))
        terms: dict[tuple[int, ...], dict[int, float]] = {}
        for context in np.ndindex(*frontier.columns.shape):
            unit = float(frontier.high[context])
            if unit <= 0.0:
                continue
            at = tuple(context[w] for w in where)
            r = int(np.ravel_multi_index(at, local.sets.lower.shape[1:-1])) if where else 0
            binaries, vertices = self._choose(i, r)
            shares = self._share(
                int(frontier.columns[context]), float(frontier.low[context]) / unit, binaries
            )
            for x, code in enumerate(local.allowed):
                cell = tuple((*context, x)[p] for p in place)
                entries = terms.setdefault(cell, {})
                for share, vertex in zip(shares, vertices, strict=True):
                    entries[share] = entries.get(share, 0.0) + float(vertex[code]) * unit
                found.low[cell] += frontier.low[context] * low[r, code]
                found.high[cell] += frontier.high[context] * high[r, code]
        self._added.append(i)
        known = bound_cells(problem, self._added, axes)
        if known is not None:
            np.maximum(found.low, known[0], out=found.low)
            np.minimum(found.high, known[1], out=found.high)
        for cell, entries in terms.items():
            unit = float(found.high[cell])
            if unit > 0.0:
                column = self.program.add_column(min(1.0, float(found.low[cell]) / unit), 1.0)
                scaled = [(share, amount / unit) for share, amount in entries.items()]
                self.program.add_constraint([*scaled, (column, -1.0)], 0.0, 0.0)
                found.columns[cell] = column
        return found

    def _choose(self, i: int, r: int) -> tuple[list[int], Floats]:
        """The binaries and the vertices of a conditional; one that is a point needs no binary."""
        if (i, r) not in self.choices:
            sets = self.problem.locals[i].sets
            vertices = list_vertices(*(end.reshape(-1, end.shape[-1])[r] for end in (sets.lower, sets.upper)))
            if len(vertices) > MOST_VERTICES:
                raise TooLarge(
                    f"a conditional with {len(vertices)} vertices; at most {MOST_VERTICES} are tried"
                )
            binaries = []
            if len(vertices) > 1:
                binaries = [self.program.add_column(0.0, 1.0, binary=True) for _ in vertices]
                self.program.add_constraint([(binary, 1.0) for binary in binaries], 1.0, 1.0)
            self.choices[i, r] = binaries, vertices
        return self.choices[i, r]

    def _share(self, column: int, ratio: float, binaries: list[int]) -> list[int]:
        """z_v = b_v·g for each vertex, as constraints between L·b_v and U·b_v; `ratio` is L/U."""
        if not binaries:
            return [column]
        shares = []
        for binary in binaries:
            share = self.program.add_column(0.0, 1.0)
            self.program.add_constraint([(share, 1.0), (binary, -1.0)], -np.inf, 0.0)
            if ratio > 0:
                self.program.add_constraint([(share, 1.0), (binary, -ratio)], 0.0, np.inf)
            shares.append(share)
        self.program.add_constraint([*((share, 1.0) for share in shares), (column, -1.0)], 0.0, 0.0)
        return shares


def bound_cells(problem: Problem, added: Sequence[int], axes: Sequence[str]) -> tuple[Floats, Floats] | None:
    """The least and the greatest P(axes, evidence) of the nodes added so far, from outside; None if that is much work.

    It is E[1_e·f] for the indicator f of each cell: V of backward induction at μ = 0, and that of −f.
    """
    nodes = tuple(problem.locals[i] for i in sorted(added))
    sizes = {local.name: problem.sizes[local.name] for local in nodes if not local.observed}
    shape = [problem.sizes[name] for name in axes]
    cells = count_cells(shape)
    functions = np.eye(cells).reshape(cells, *shape)
    part = Problem(nodes, sizes, tuple(axes), functions)
    if not axes:
        return None
    found: tuple[Floats, Floats] | None = None
    for order in list_orders(part, len(Direction)):
        induction = Induction(part, order, MOST_WORK)
        if induction.coarse or induction.cells * cells > MOST_WORK:
            continue
        sets = [local.sets for local in nodes]
        spread = induction.spread(sets)
        messages = induction.listen(sets, spread)
        low, high = (
            sign * induction.descend(sign * functions, np.zeros(cells), messages, spread)[0]
            for sign in (1, -1)
        )
        for key in induction.unmet:
            low, high = low * messages[key][0].min(), high * messages[key][1].max()
        low, high = low.reshape(shape) * (1.0 - ROUNDED), high.reshape(shape) * (1.0 + ROUNDED)
        found = (low, high) if found is None else (np.maximum(low, found[0]), np.minimum(high, found[1]))
    return found


def count_children(problem: Problem) -> dict[str, int]:
    """How many of the problem's nodes have each variable as a parent."""
    found = dict.fromkeys(problem.sizes, 0)
    for local in problem.locals:
        for parent in local.parents:
            found[parent] += 1
    return found


def order_forward(problem: Problem) -> list[int]:
    """Parents before children, with small tables; `TooLarge` if none of several tries has few enough cells."""
    tries = [_order(problem, random.Random(k), noise=float(k > 0)) for k in range(TRIES)]
    cells, order = min(tries)
    if cells > MOST_CELLS:
        raise TooLarge(f"the program would have {cells:,} cells; at most {MOST_CELLS:,} are tried")
    return order


def _order(problem: Problem, rng: random.Random, noise: float) -> tuple[int, list[int]]:
    waiting = count_children(problem)
    frontier: set[str] = set()
    left = dict(enumerate(problem.locals))
    order: list[int] = []
    total = 0
    while left:
        best: tuple[float, int, set[str]] | None = None
        for i, local in left.items():
            if any(waiting_node.name in local.parents for waiting_node in left.values()):
                continue  # a parent is not in yet
            after = frontier | set(local.scope)
            gone = {name for name in local.parents if waiting[name] == 1 and name not in problem.targets}
            price = log2(count_cells(problem.sizes[name] for name in after - gone)) + noise * rng.random()
            if best is None or price < best[0]:
                best = price, i, after
        assert best is not None
        _, i, grown = best
        total += count_cells(problem.sizes[name] for name in grown)
        for parent in left.pop(i).parents:
            waiting[parent] -= 1
        frontier = {name for name in grown if waiting[name] or name in problem.targets}
        order.append(i)
    return total, order


@dataclass(frozen=True, slots=True)
class Solution:
    """What HiGHS found: a bound from below on E[1_e·(f − μ)]/P̂(e), and conditionals that come near it, if any."""

    bound: float
    conditionals: list[Floats] | None


class Solver:
    """A program loaded into HiGHS; only its costs change from one function and μ to the next."""

    def __init__(self, problem: Problem, likely: float) -> None:
        import highspy

        self.problem = problem
        self.likely = likely
        self.model = Model(problem)
        program = self.model.program
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = len(program.lower), len(program.least)
        lp.col_cost_ = np.zeros(lp.num_col_)
        lp.col_lower_, lp.col_upper_ = np.array(program.lower), np.array(program.upper)
        lp.row_lower_, lp.row_upper_ = np.array(program.least), np.array(program.most)
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_ = np.array(program.starts, dtype=np.int32)
        lp.a_matrix_.index_ = np.array(program.index, dtype=np.int32)
        lp.a_matrix_.value_ = np.array(program.value)
        kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
        lp.integrality_ = [kinds[binary] for binary in program.binary]
        self._highs = highspy.Highs()
        self._highs.setOptionValue("output_flag", False)
        self._highs.setOptionValue("threads", 1)
        self._highs.setOptionValue("mip_rel_gap", 0.0)
        self._stopped = False
        self._highs.cbMipInterrupt += self._interrupt
        self._highs.passModel(lp)

    def minimise(self, function: Floats, level: float, gap: float, seconds: float) -> Solution:
        """Bound E[1_e·(f − μ)]/P̂(e) from below, to within `gap` if the time suffices."""
        there = self.model.columns >= 0
        at = self.model.columns[there].astype(np.int32)
        cost = ((function - level) * self.model.units)[there] / self.likely
        highs = self._highs
        highs.clearSolver()
        highs.changeColsCost(len(at), at, cost)
        highs.setOptionValue("mip_abs_gap", gap)
        # Its clock runs on from solve to solve.
        highs.setOptionValue("time_limit", highs.getRunTime() + seconds)
        highs.run()
        info = highs.getInfo()
        found = None
        if abs(info.objective_function_value) < 1e20:
            found = self._read(np.array(highs.getSolution().col_value))
        return Solution(float(info.mip_dual_bound), found)

    def stop(self) -> None:
        """End a run that another thread has begun; what it has found so far is valid."""
        self._stopped = True

    def _interrupt(self, event: Any) -> None:
        if self._stopped:
            event.interrupt()

    def _read(self, columns: Floats) -> list[Floats] | None:
        found = [local.sets.centre for local in self.problem.locals]
        for (i, r), (binaries, vertices) in self.model.choices.items():
            if binaries:
                flat = found[i].reshape(-1, found[i].shape[-1])
                flat[r] = vertices[int(np.argmax(columns[binaries]))]
        return found
