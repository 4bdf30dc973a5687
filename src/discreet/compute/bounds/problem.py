"""A question to a credal network, cut down to what can change its answer.

A conditional, the distribution of a node given one combination of its parents, is known within intervals only: it
stands for the set {p : l ≤ p ≤ u, Σp = 1}. Arrays hold many of them: the last axis runs over the levels, all others
are broadcast.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property, reduce
from itertools import product
from math import log2

import numpy as np
import numpy.typing as npt

from discreet.values.errors import TableError, TooLarge
from discreet.values.graph import DAG
from discreet.values.table import Table, count_cells

Floats = npt.NDArray[np.float64]
LevelSets = Mapping[str, Sequence[int]]
"""For each observed node, the levels that it may have: one, or several."""

SLACK = 1e-12
"""How far two ends of an interval may disagree and still count as one number."""

NOISE = 1e-14
"""Differences of sums of probabilities below this are rounding."""

FEW_LEVELS = 4
"""Up to so many levels, comparing each two of them is faster than sorting."""

MOST_LEVELS = 10
"""The most levels of a conditional whose vertices are listed; k levels have up to k·2^(k−1) candidates."""


def tighten(lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
    """The reachable intervals: the least and the greatest value that each level really takes.

    l'_x = max(l_x, 1 − Σ_{y≠x} u_y),  u'_x = min(u_x, 1 − Σ_{y≠x} l_y).
    """
    spare = _mend(1.0 - lower.sum(axis=-1, keepdims=True))
    excess = _mend(upper.sum(axis=-1, keepdims=True) - 1.0)
    low = np.maximum(lower, upper - excess)
    high = np.minimum(upper, lower + spare)
    return np.minimum(low, high), np.maximum(low, high)  # rounding must not turn a point inside out


def _mend(difference: Floats) -> Floats:
    """A difference of sums with rounding taken for what it is: a level that is impossible must not become 1e-17."""
    return np.where(difference < NOISE, 0.0, difference)


def centre_of(lower: Floats, upper: Floats) -> Floats:
    """The point of each set between its lower and its upper ends: l + (u − l)·(1 − Σl)/Σ(u − l)."""
    room = upper - lower
    width = room.sum(axis=-1, keepdims=True)
    share = (1.0 - lower.sum(axis=-1, keepdims=True)) / np.where(width > 0, width, 1.0)
    return np.asarray(lower + room * np.clip(share, 0.0, 1.0))


def list_vertices(lower: Floats, upper: Floats) -> Floats:
    """The extreme points of one conditional's set, one a line: all levels but one are at an end of their interval."""
    low, high = tighten(np.asarray(lower, dtype=np.float64), np.asarray(upper, dtype=np.float64))
    levels, spare = len(low), 1.0 - low.sum()
    if spare <= SLACK:
        return np.asarray(low[None])
    if (high - low >= spare - SLACK).all():
        return np.asarray(low + spare * np.eye(levels))
    if levels > MOST_LEVELS:
        raise TooLarge(
            f"a conditional of {levels} levels may have millions of vertices; at most {MOST_LEVELS} are listed"
        )
    found: list[Floats] = []
    for free in range(levels):
        others = [x for x in range(levels) if x != free]
        ends = [(low[x],) if high[x] - low[x] <= SLACK else (low[x], high[x]) for x in others]
        for chosen in product(*ends):
            rest = 1.0 - sum(chosen)
            if low[free] - SLACK <= rest <= high[free] + SLACK:
                ends_of_free = [end for end in (low[free], high[free]) if abs(rest - end) <= NOISE]
                vertex = np.insert(np.array(chosen), free, [*ends_of_free, rest][0])
                if not any(np.abs(vertex - other).max() <= SLACK for other in found):
                    found.append(vertex)
    return np.array(found)


def expect(weights: Floats, values: Floats) -> Floats:
    """Σ weights·values over the last axis: numpy's product and sum take four times as long where levels are few."""
    return np.asarray(np.einsum("...k,...k->...", weights, values))


class Shape(StrEnum):
    """What a conditional's set looks like, because two common shapes are optimised without sorting."""

    POINT = "point"
    BINARY = "binary"
    SIMPLEX = "simplex"
    """All mass beyond the lower ends may go to any one level: what the IDM and contamination make."""
    BOX = "box"


@dataclass(frozen=True)
class ConditionalSets:
    """The sets of an array of conditionals, with reachable intervals, and optima of linear functions over each."""

    lower: Floats
    upper: Floats

    @classmethod
    def reachable(cls, lower: Floats, upper: Floats) -> ConditionalSets:
        """The sets with their intervals tightened."""
        return cls(*tighten(lower, upper))

    @property
    def centre(self) -> Floats:
        """The middle of each set; it gives weight to every level that any distribution of the set gives weight to."""
        return centre_of(self.lower, self.upper)

    @cached_property
    def room(self) -> Floats:
        """u − l."""
        return self.upper - self.lower

    @cached_property
    def spare(self) -> Floats:
        """1 − Σl, the mass that the lower ends leave to be placed."""
        return _mend(1.0 - self.lower.sum(axis=-1))

    @cached_property
    def shape(self) -> Shape:
        """The simplest shape that all the sets share."""
        if not self.room.any():
            return Shape.POINT
        if self.lower.shape[-1] == 2:
            return Shape.BINARY
        return Shape.SIMPLEX if (self.room >= self.spare[..., None] - SLACK).all() else Shape.BOX

    def choose(self, values: Floats) -> Floats:
        """The distribution of each set that minimises Σ p·values: spare mass goes where the value is least."""
        if self.shape is Shape.POINT:
            return np.broadcast_to(self.lower, self._meet(values).shape)
        if self.shape is Shape.BINARY:
            to_first = values[..., 0] < values[..., 1]
            first = np.where(to_first, self.upper[..., 0], self.lower[..., 0])
            return np.stack([first, np.where(to_first, self.lower[..., 1], self.upper[..., 1])], axis=-1)
        if self.shape is Shape.SIMPLEX:
            best = np.argmin(values, axis=-1)[..., None] == np.arange(values.shape[-1])
            return np.asarray(self.lower + self.spare[..., None] * best)
        if values.shape[-1] <= FEW_LEVELS:
            return np.asarray(self.lower + self._place(values))
        order = np.argsort(self._meet(values), axis=-1)
        filled = self._fill(order)
        placed = np.empty_like(filled)
        np.put_along_axis(placed, order, filled, axis=-1)
        return np.asarray(self.lower + placed)

    def minimise(self, values: Floats) -> Floats:
        """min Σ p·values over each set."""
        if self.shape is Shape.POINT:
            return expect(self.lower, values)
        if self.shape is Shape.BINARY:
            return expect(self.choose(values), values)
        if self.shape is Shape.SIMPLEX:
            least = reduce(np.minimum, np.moveaxis(values, -1, 0))
            return np.asarray(expect(self.lower, values) + self.spare * least)
        if values.shape[-1] <= FEW_LEVELS:
            return expect(self.lower + self._place(values), values)
        values = self._meet(values)
        order = np.argsort(values, axis=-1)
        placed = self._fill(order) * np.take_along_axis(values, order, axis=-1)
        return np.asarray(expect(self.lower, values) + placed.sum(axis=-1))

    def maximise(self, values: Floats) -> Floats:
        """max Σ p·values over each set."""
        return -self.minimise(-values)

    def _meet(self, values: Floats) -> Floats:
        return np.broadcast_to(values, np.broadcast_shapes(self.lower.shape, values.shape))

    def _place(self, values: Floats) -> Floats:
        """The spare mass that each level gets: what those of lesser value leave over, as far as it has room."""
        before = np.zeros(np.broadcast_shapes(self.lower.shape, values.shape))
        for x in range(values.shape[-1]):
            for y in range(x):
                first = values[..., y] <= values[..., x]
                before[..., x] += np.where(first, self.room[..., y], 0.0)
                before[..., y] += np.where(first, 0.0, self.room[..., x])
        return np.minimum(np.maximum(self.spare[..., None] - before, 0.0), self.room)

    def _fill(self, order: npt.NDArray[np.intp]) -> Floats:
        room = np.broadcast_to(self.room, order.shape)
        room = np.take_along_axis(room, order, axis=-1)
        before = np.cumsum(room, axis=-1) - room
        return np.clip(self.spare[..., None] - before, 0.0, room)


@dataclass(frozen=True, slots=True)
class Local:
    """The conditionals of one node: axes of observed parents are cut away, those of restricted ones thinned out.

    The first axis of the arrays is a batch axis, the last one runs over ALL levels of the node: a conditional is a
    distribution over all of them, even if the evidence allows only some.
    """

    name: str
    parents: tuple[str, ...]
    sets: ConditionalSets
    allowed: npt.NDArray[np.intp]
    """The node's own levels that the evidence allows."""
    observed: bool
    """Whether that is one level only, so that the node is no variable any more."""
    cut: tuple[npt.NDArray[np.intp], ...]
    """For each axis of the whole table but the last, which levels were kept."""

    @property
    def scope(self) -> tuple[str, ...]:
        """The variables that the node's factor depends on."""
        return self.parents if self.observed else (*self.parents, self.name)

    def restrict(self, conditionals: Floats) -> Floats:
        """What the evidence leaves of values on all levels: the allowed ones, and no axis if that is one only."""
        if self.observed:
            return conditionals[..., self.allowed[0]]
        return (
            conditionals if len(self.allowed) == conditionals.shape[-1] else conditionals[..., self.allowed]
        )

    def embed(self, values: Floats) -> Floats:
        """Values on the allowed levels, as values on all levels: 0 elsewhere."""
        if self.observed:
            values = values[..., None]
        levels = self.sets.lower.shape[-1]
        if values.shape[-1] == levels:
            return values
        whole = np.zeros((*values.shape[:-1], levels))
        whole[..., self.allowed] = values
        return whole


@dataclass(frozen=True, slots=True)
class Problem:
    """Bound E[f(targets) | evidence] for each of several functions f over all choices of a distribution in each set."""

    locals: tuple[Local, ...]
    """The nodes that matter, parents before children."""
    sizes: dict[str, int]
    """The number of allowed levels of each variable, i.e. of each node that is not observed."""
    targets: tuple[str, ...]
    functions: Floats
    """One function for each entry of the first axis; the other axes are the targets that are not observed."""

    @property
    def settled(self) -> bool:
        """Whether the evidence fixes every target, so that the functions are plain numbers."""
        return not self.targets

    @property
    def ranges(self) -> tuple[Floats, Floats]:
        """The least and the greatest value of each function."""
        flat = self.functions.reshape(len(self.functions), -1)
        return flat.min(axis=1), flat.max(axis=1)


def pose(
    dag: DAG,
    lower: Sequence[Table],
    upper: Sequence[Table],
    targets: Sequence[str],
    functions: Floats,
    evidence: LevelSets,
    *,
    whole: bool = False,
) -> Problem:
    """The problem without what cannot matter: barren nodes, and what the evidence separates from the targets.

    Only ancestors of targets and evidence matter. Among their families, with the observed nodes taken out,
    only those matter that hang together with a target; the rest multiplies E[f·1_e] and P(e) by one and the
    same number (d-separation in the moral graph of the ancestors). `whole` keeps that rest, for those who
    want P(e) itself.
    """
    sizes = {name: table.values.shape[-1] for name, table in zip(dag.nodes, lower, strict=True)}
    kept = {name: np.arange(size, dtype=np.intp) for name, size in sizes.items()}
    observed = {name: codes for name, codes in evidence.items() if len(set(codes)) < sizes[name]}
    for name, codes in observed.items():
        kept[name] = np.array(sorted(set(codes)), dtype=np.intp)
        if not len(kept[name]) or kept[name][0] < 0 or kept[name][-1] >= sizes[name]:
            raise TableError(f"evidence on {name!r} allows the levels {list(codes)} of {sizes[name]}")
    if functions.shape[1:] != tuple(sizes[name] for name in targets):
        raise TableError(f"functions of {tuple(targets)} have the shape {functions.shape[1:]}")
    cut = functions[np.ix_(np.arange(len(functions)), *(kept[name] for name in targets))]
    free = tuple(name for name in targets if len(kept[name]) > 1)
    cut = cut.reshape([len(functions), *(len(kept[name]) for name in free)])
    relevant = dag.ancestors([*free, *observed])
    scopes = {
        name: [member for member in dag.family(name) if len(kept[member]) > 1]
        for name in dag.order
        if name in relevant
    }
    reached = _component(scopes, [name for scope in scopes.values() for name in scope] if whole else free)
    chosen = []
    for name in dag.order:
        if name not in relevant or not (whole or reached.intersection(scopes[name])):
            continue
        position = dag.index(name)
        family = dag.family(name)
        axes = tuple(kept[parent] for parent in family[:-1])
        parents = tuple(parent for parent in family[:-1] if len(kept[parent]) > 1)
        shape = [1, *(len(kept[parent]) for parent in parents), sizes[name]]
        ends = [
            np.asarray(table.values, dtype=np.float64)[np.ix_(*axes, np.arange(sizes[name]))].reshape(shape)
            for table in (lower[position], upper[position])
        ]
        chosen.append(
            Local(name, parents, ConditionalSets.reachable(*ends), kept[name], len(kept[name]) == 1, axes)
        )
    variables = {name: len(kept[name]) for name in dag.order if name in reached}
    return Problem(tuple(chosen), variables, free, np.asarray(cut, dtype=np.float64))


def _component(scopes: Mapping[str, Sequence[str]], start: Sequence[str]) -> frozenset[str]:
    """The variables that hang together with `start` through common scopes."""
    homes: dict[str, list[str]] = {}
    for name, scope in scopes.items():
        for member in scope:
            homes.setdefault(member, []).append(name)
    found = set(start)
    agenda = list(start)
    while agenda:
        for name in homes[agenda.pop()]:
            for member in scopes[name]:
                if member not in found:
                    found.add(member)
                    agenda.append(member)
    return frozenset(found)


class Direction(StrEnum):
    """Which variables may go next."""

    UP = "children before parents"
    DOWN = "parents before children"
    FREE = "any"


def list_orders(problem: Problem, tries: int) -> list[tuple[str, ...]]:
    """Up to `tries` different orders of elimination, greedy in the cells of each product.

    The directions take turns; later ones are drawn with some noise.
    """
    rng = random.Random(0)
    found: dict[tuple[str, ...], None] = {}
    directions = list(Direction)
    for attempt in range(tries):
        noise = 0.0 if attempt < len(directions) else 1.5
        found.setdefault(order_greedily(problem, directions[attempt % len(directions)], noise, rng))
    return list(found)


def order_greedily(
    problem: Problem, direction: Direction, noise: float, rng: random.Random
) -> tuple[str, ...]:
    """One order of elimination: next is the variable whose product has the fewest cells, up to some noise."""
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
