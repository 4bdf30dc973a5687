"""Outer bounds by elimination with intervals: guaranteed, and a few passes over the graph instead of a search.

What is computed. Two kinds of functions are kept: a signed one V, which begins as f(targets) − μ, and
messages, intervals [l, u] of non-negative numbers. Variables are eliminated one after the other, in any
order. To eliminate X:

- conditionals of children of X that are still whole are taken apart into messages, their intervals [l, u];
- all functions that mention X are multiplied: messages end by end, V with the end that makes it less (V·l
  where V ≥ 0, V·u elsewhere);
- X is summed out. If X's own conditionals are still whole, each p(X | parents) is chosen to make Σ_x p(x)·V(x, …)
  least (for a message: least for l and greatest for u), separately for each context, that is, each
  combination of the other variables that the product mentions. If they were taken apart before, the sum is a
  plain one.

Children before parents is backward induction and keeps every conditional whole. Parents before children follows
the evidence down and gives up that conditionals sum to 1, but lets fewer contexts share one. Which loses less
depends on the question, so both and mixtures of them are tried, and the best bound counts.

Why it is a bound. Take any precise network of the strong extension. Eliminating in the same order with its
own conditionals gives its exact functions. By induction each of its messages lies within [l, u], and its signed
function is not below V: the product keeps this because messages are not negative, and a sum over x keeps it
because the network's own conditional is one of those that were optimised over, or within the ends that it was
replaced by. At the end V is a number, not above E[1_e·(f − μ)] of this network, and E[f | e] ≥ μ if that is
at least 0. So the greatest μ with V(μ) ≥ 0 bounds every network from below. What is lost is that one conditional
may be chosen differently in different contexts.

V(μ) is a minimum of finitely many functions A − μB, one for each choice of conditionals; it is concave and falls with
μ. Newton's method, μ ← A/B at the minimising choice, therefore comes down to the root in a few steps.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from discreet.compute.bounds.problem import (
    ConditionalSets,
    Direction,
    Floats,
    LevelSets,
    Problem,
    expect,
    list_orders,
    order_greedily,
    pose,
)
from discreet.values.errors import ImpossibleEvidence, TooLarge
from discreet.values.graph import DAG
from discreet.values.table import Table, count_cells

Scope = tuple[int, ...]
Ints = npt.NDArray[np.intp]
Message = tuple[Floats, Floats]

TRIES = 6
"""How many elimination orders the outer bound tries."""

CELLS = 2**20
"""The cells of the largest array: above it, outer bounds are taken over fewer contexts, and there are no inner ones."""

LEAST = 2**12
"""The cells that a single function may have in any case."""

WORK = 2**23
"""Orders are tried, cheapest first, until they have this many cells together; a pass takes about a second then."""

NEWTON = 60
"""The most Newton steps; four or five are usual."""

SETTLED = 1e-12
"""Newton's method has arrived when a step is shorter than this share of f's range."""

WIDENING = 1e-9
"""Bounds are moved outwards by this share of f's range, a thousand times what rounding can do to them.

Every term of V is at most B·(max f − min f) under the same choice of conditionals, so a sum of N rounded products
moves μ = A/B by at most about N·2⁻⁵³ of the range, and N is the number of nodes and levels on the way to the
root: some thousands.
"""


@dataclass(frozen=True, slots=True)
class Summation:
    """How one variable is summed out: which functions meet, and how their axes lie in the product."""

    node: int | None
    """The node whose conditionals are optimised; None if they were taken apart, and the sum is a plain one."""
    allowed: Ints
    inputs: Scope
    shapes: tuple[Scope, ...]
    """For each input its sizes in the product, with an axis of length 1 for each variable that it lacks."""
    dropped: tuple[Scope, ...]
    """For each input the axes (counted with the batch axis) over which it is replaced by its worst value first."""
    parents: Scope
    """The sizes of the node's parents in the product, with 1 for each context variable."""
    signed: bool


@dataclass(frozen=True, slots=True)
class Record:
    """What a summation worked on, for those who want to know what its choices were worth."""

    low: Floats
    high: Floats
    """The functions over all levels of the variable; both are V if it was signed."""
    made: Message
    """What was made of the two."""
    before: Floats | None
    """V before it met the messages."""
    message: Floats | None
    """The ends of the messages' product that V took."""


Tape = dict[int, Record]

Descend = Callable[[Floats, Ints], tuple[Floats, Floats]]
"""V and B at the given levels μ, for the functions of the given numbers."""


class Induction:
    """Elimination with intervals over one problem in one order, planned once."""

    def __init__(self, problem: Problem, order: Sequence[str], max_cells: int) -> None:
        self.problem = problem
        self.order = tuple(order)
        self.coarse = False
        self.cells = 0
        """The cells of all products together."""
        self._rank = {name: len(order) - 1 - t for t, name in enumerate(order)}
        self._sizes = [problem.sizes[name] for name in reversed(order)]
        self.signed_key = len(problem.locals) + len(order)
        """The number of the signed function; nodes' messages and those of summations have the numbers before."""
        own = {found.name: i for i, found in enumerate(problem.locals)}
        scopes = [self._sort(found.parents) for found in problem.locals]
        self.apart = {i for i, found in enumerate(problem.locals) if found.observed}
        """The nodes that enter as messages."""
        pool = {i: scopes[i] for i in sorted(self.apart)}
        pool[self.signed_key] = self._sort(problem.targets)
        # A message that was replaced by its worst values over r still differs from one level of r to the next, so it
        # must meet V before r is summed out: there V's sign decides, level by level, which end counts.
        hidden: dict[int, set[int]] = {}
        done: set[int] = set()
        self.summations: list[Summation] = []
        for t, name in enumerate(order):
            r, i = self._rank[name], own[name]
            for child, scope in enumerate(scopes):
                if r in scope and child not in self.apart and child not in done:
                    self.apart.add(child)
                    pool[child] = self._sort(problem.locals[child].scope)
            whole = i not in self.apart
            inputs = [key for key, scope in pool.items() if r in scope or r in hidden.get(key, ())]
            needed = {*scopes[i], r} if whole else {r}
            dropped = self._shrink([pool[key] for key in inputs], needed, max_cells)
            union = sorted(needed.union(*(pool[key] for key in inputs)) - dropped)
            self.cells += count_cells(self._sizes[q] for q in union)
            signed = self.signed_key in inputs
            self.summations.append(
                Summation(
                    i if whole else None,
                    problem.locals[i].allowed,
                    tuple(inputs),
                    tuple(tuple(self._sizes[q] if q in pool[key] else 1 for q in union) for key in inputs),
                    tuple(tuple(1 + k for k, q in enumerate(pool[key]) if q in dropped) for key in inputs),
                    tuple(self._sizes[q] if whole and q in scopes[i] else 1 for q in union[:-1]),
                    signed,
                )
            )
            lost = (dropped | set().union(*(hidden.pop(key, set()) for key in inputs))) - {*union}
            for key in inputs:
                del pool[key]
            made = self.signed_key if signed else len(problem.locals) + t
            pool[made] = tuple(union[:-1])
            done.add(i)
            if not signed:  # V itself is below its values on all levels
                hidden[made] = lost
        self.unmet = [key for key in pool if key != self.signed_key]
        """The messages that never meet V: what the evidence separates from the targets, if the problem kept it."""

    def parents_first(self, i: int) -> tuple[int, ...]:
        """The axes of the i-th node's conditionals (batch, parents, levels), parents sorted as in the products."""
        parents = self.problem.locals[i].parents
        order = sorted(range(len(parents)), key=lambda k: self._rank[parents[k]])
        return (0, *(1 + k for k in order), len(parents) + 1)

    def message_axes(self, i: int) -> tuple[int, ...]:
        """The axes of the i-th node's message (batch, its scope), sorted as in the products."""
        scope = self.problem.locals[i].scope
        return (0, *(1 + k for k in sorted(range(len(scope)), key=lambda k: self._rank[scope[k]])))

    def spread(self, sets: Sequence[ConditionalSets]) -> list[ConditionalSets | None]:
        """For each summation the sets that it optimises over, spread over its product."""
        found: list[ConditionalSets | None] = []
        for step in self.summations:
            if step.node is None:
                found.append(None)
                continue
            axes = self.parents_first(step.node)
            low, high = (
                end.transpose(axes).reshape(len(end), *step.parents, end.shape[-1])
                for end in (sets[step.node].lower, sets[step.node].upper)
            )
            found.append(ConditionalSets(low, high))
        return found

    def listen(
        self,
        sets: Sequence[ConditionalSets],
        spread: Sequence[ConditionalSets | None],
        tape: Tape | None = None,
    ) -> dict[int, Message]:
        """All messages, which depend neither on the functions nor on μ."""
        pool: dict[int, Message] = {}
        for i in self.apart:
            local, axes = self.problem.locals[i], self.message_axes(i)
            low, high = (local.restrict(end).transpose(axes) for end in (sets[i].lower, sets[i].upper))
            pool[i] = low, high
        for t, step in enumerate(self.summations):
            if step.signed:
                continue
            low, high = self._multiply(step, pool)
            here = spread[t]
            if here is None or step.node is None:
                made = np.einsum("...k->...", low), np.einsum("...k->...", high)
            else:
                low, high = (self.problem.locals[step.node].embed(end) for end in (low, high))
                made = here.minimise(low), here.maximise(high)
            pool[len(self.problem.locals) + t] = made
            if tape is not None:
                tape[t] = Record(low, high, made, None, None)
        return pool

    def descend(
        self,
        functions: Floats,
        level: Floats,
        messages: dict[int, Message],
        spread: Sequence[ConditionalSets | None],
        tape: Tape | None = None,
    ) -> tuple[Floats, Floats]:
        """V and B at the root, for each function less its own μ."""
        targets = sorted(range(len(self.problem.targets)), key=lambda k: self._rank[self.problem.targets[k]])
        values = functions - level.reshape(-1, *[1] * (functions.ndim - 1))
        values = values.transpose(0, *(1 + k for k in targets))
        weights = np.ones(values.shape)
        for t, step in enumerate(self.summations):
            if not step.signed:
                continue
            k = step.inputs.index(self.signed_key)
            for axis in reversed(step.dropped[k]):
                worst = np.argmin(values, axis=axis, keepdims=True)
                weights = np.take_along_axis(weights, worst, axis).squeeze(axis)
                values = np.take_along_axis(values, worst, axis).squeeze(axis)
            values, weights = (found.reshape(len(found), *step.shapes[k]) for found in (values, weights))
            before, chosen = values, None
            if len(step.inputs) > 1:
                low, high = self._multiply(step, messages)
                chosen = np.where(values >= 0, low, high)
                values, weights = values * chosen, weights * chosen
            here = spread[t]
            if step.node is not None:
                local = self.problem.locals[step.node]
                values, weights = (local.embed(found) for found in (values, weights))
            whole = values
            if here is None:
                values, weights = (np.einsum("...k->...", found) for found in (values, weights))
            else:
                picked = here.choose(values)
                values, weights = expect(picked, values), expect(picked, weights)
            if tape is not None:
                tape[t] = Record(whole, whole, (values, values), before, chosen)
        return values, weights

    def _multiply(self, step: Summation, pool: dict[int, Message]) -> Message:
        low: Floats | None = None
        high: Floats | None = None
        for key, shape, dropped in zip(step.inputs, step.shapes, step.dropped, strict=True):
            if key == self.signed_key:
                continue
            least, most = pool[key]
            if dropped:
                least, most = least.min(axis=dropped), most.max(axis=dropped)
            least, most = least.reshape(len(least), *shape), most.reshape(len(most), *shape)
            low = least if low is None else low * least
            high = most if high is None else high * most
        if low is None or high is None:  # a node that the evidence restricts, and nothing else
            one = np.ones([1] * (len(step.parents) + 1) + [len(step.allowed)])
            return one, one
        return low, high

    def _sort(self, names: Sequence[str]) -> Scope:
        return tuple(sorted(self._rank[name] for name in names))

    def _shrink(self, scopes: Sequence[Scope], needed: set[int], max_cells: int) -> set[int]:
        """The variables to leave out of a product that would be too large: those that few factors mention."""
        left = needed.union(*scopes)
        dropped: set[int] = set()
        while count_cells(self._sizes[r] for r in left) > max_cells:
            spare = left - needed
            if not spare:
                raise TooLarge(
                    f"the conditionals of one node have {count_cells(self._sizes[r] for r in needed):,} cells; "
                    f"at most {max_cells:,} are allowed"
                )
            worst = min(spare, key=lambda r: (sum(r in scope for scope in scopes), -self._sizes[r], r))
            left.discard(worst)
            dropped.add(worst)
        self.coarse |= bool(dropped)
        return dropped


def find_root(descend: Descend, functions: Floats, start: Floats) -> Floats:
    """The greatest μ with V(μ) ≥ 0 for each function, by Newton's method from `start`."""
    flat = functions.reshape(len(functions), -1)
    low, high = flat.min(axis=1), flat.max(axis=1)
    level = np.clip(start, low, high)
    active = np.arange(len(functions))
    for _ in range(NEWTON):
        values, weights = descend(level[active], active)
        with np.errstate(invalid="ignore", divide="ignore"):
            moved = np.where(weights > 0, level[active] + values / weights, level[active])
        moved = np.clip(moved, low[active], high[active])
        step = np.abs(moved - level[active])
        level[active] = moved
        active = active[step > SETTLED * (high - low)[active]]
        if not len(active):
            break
    level[active] = low[active]  # not arrived, which has not been seen: what holds in any case
    return level


def bound_below(
    problem: Problem, functions: Floats, start: Floats, inductions: Sequence[Induction]
) -> tuple[Floats, Ints]:
    """For each function the best bound that any of the orders gives, and the number of that order."""
    sets = [local.sets for local in problem.locals]
    found = []
    for induction in inductions:
        spread = induction.spread(sets)
        messages = induction.listen(sets, spread)

        def descend(
            level: Floats,
            which: Ints,
            induction: Induction = induction,
            messages: dict[int, Message] = messages,
            spread: Sequence[ConditionalSets | None] = spread,
        ) -> tuple[Floats, Floats]:
            return induction.descend(functions[which], level, messages, spread)

        found.append(find_root(descend, functions, start))
    best = np.array(found)
    return best.max(axis=0), best.argmax(axis=0)


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
        induction = Induction(problem, order_greedily(problem, Direction.FREE, 0.0, random.Random(0)), CELLS)
    except TooLarge:
        return
    if induction.coarse:
        return  # too wide to tell; the outer bounds hold all the same
    sets = [local.sets for local in problem.locals]
    messages = induction.listen(sets, induction.spread(sets))
    if not all((messages[key][1] > 0).all() for key in induction.unmet):
        raise ImpossibleEvidence("the evidence has probability zero in every network of the credal set")


@dataclass(frozen=True, slots=True)
class Sides:
    """For each function a value that no network of the credal set goes below; coarse if tables had to be."""

    values: Floats
    coarse: bool


def search_outside(
    problem: Problem, functions: Floats, start: Floats, tries: int, max_work: int | None
) -> tuple[Sides, list[Induction], npt.NDArray[np.intp]]:
    """The best bounds of several orders of elimination, the orders, and which was best for each function."""
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
    return Sides(values, all(induction.coarse for induction in fine)), fine, best


def bound_outside(problem: Problem, functions: Floats, tries: int, max_work: int | None) -> Sides:
    """A value below every network's E[f | evidence], for each function; Newton's method starts at the greatest f."""
    greatest = functions.reshape(len(functions), -1).max(axis=1)
    return search_outside(problem, functions, greatest, tries, max_work)[0]


def bound_outer(
    dag: DAG,
    lower: Sequence[Table],
    upper: Sequence[Table],
    targets: Sequence[str],
    functions: Floats,
    evidence: LevelSets,
    *,
    max_work: int | None = None,
) -> tuple[Floats, Floats]:
    """Outer bounds alone on E[f(targets) | evidence], for each f along the first axis of `functions`."""
    require_possible(dag, lower, upper, evidence)
    problem = pose(dag, lower, upper, targets, functions, evidence)
    if problem.settled:
        return problem.functions, problem.functions
    doubled = np.concatenate([problem.functions, -problem.functions])  # above f is below −f
    ends = bound_outside(problem, doubled, TRIES, max_work).values
    count = len(problem.functions)
    return ends[:count], -ends[count:]
