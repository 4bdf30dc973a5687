"""Which tables to measure together, and what each gets of the budget: everything follows from public numbers.

A table over S that holds the family f answers it by sums. With noise of variance v in every cell, and counts that
vary by themselves like Poisson counts around their expectation E_j, the best estimate of a cell of f with expectation
E = Σ_j E_j knows it up to the variance W with

    1/W = 1/A − 1/E,    A = Σ_j E_j·v/(E_j + v)    (j runs over the cells of S that sum to the cell of f):

v if S = f, v·|S|/|f| if all cells are full, and much less if most of the rows sit in few of them, because an
empty cell can be told from a full one. That is why larger tables pay more often than sums of noise suggest.
How rows spread is private, so the plan supposes the same of every attribute: its k-th level is k^−2.3 times as frequent
as its first, a fifth for the second. Nothing but the choice of tables and shares rests on it, and that choice is not
sensitive: plans for a hundred times too few or too many rows lose a few percent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from discreet.values.patience import require_time
from discreet.values.table import count_cells

Floats = npt.NDArray[np.float64]
Members = frozenset[str]

FALL = 2.3
"""The k-th level of an attribute is supposed to be k^−FALL times as frequent as the first [measured]."""
FACTOR = 5.0
"""A cell is never off by more than so many times what it is supposed to hold: estimates are not negative."""
HOPELESS = 3.0
"""In a table with so many times more noise than rows, empty cells cannot be told from full ones: all are summed up."""
FINENESS = 100.0
"""Supposed frequencies that agree within one part in so many are taken together: no table is too large to judge."""
FEW = 2**10
"""So many supposed frequencies are kept one by one."""
LEAST = 0.25
"""No table gets less than this part of an even share: the supposed spread must not starve one."""
STRANGERS = 48
"""Up to so many tables, merges of two without a common attribute are looked at, too; they seldom pay."""
TRIES = 8
"""So many merges are tried, best first, before it is concluded that none helps."""
_COARSE: Floats = np.exp(np.linspace(math.log(1e-3), 0.0, 33))
_FINE: Floats = np.exp(np.linspace(math.log(1e-3), 0.0, 193))


@dataclass(frozen=True, slots=True)
class Group:
    """A set to be measured, and the nodes whose families it answers."""

    members: Members
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Solution:
    """Groups with their shares of the budget, and the error that is expected of all together."""

    groups: tuple[Group, ...]
    shares: tuple[float, ...]
    error: float
    price: float
    """What a small further share would take off the error."""


@dataclass(slots=True, eq=False)
class Planner:
    """Errors of families by table and share, remembered by shape: equal shapes have equal errors."""

    families: Mapping[str, tuple[str, ...]]
    sizes: Mapping[str, int]
    weights: Mapping[str, float]
    variance: Callable[[float], float]
    """The variance of the noise of a table that gets this share."""
    rows: float
    max_cells: int
    alone: float = 0.0
    """What the marginal of each node counts, read off the table that answers its family; a family counts its weight."""
    _curves: dict[tuple[object, ...], Floats] = field(default_factory=dict)

    def expect_error(self, members: Members, node: str, variance: float) -> float:
        """Σ √W over the cells of the node's family, in rows, for a table with such noise."""
        return float(self._errors(members, self.families[node], np.array([variance]))[0])

    def solve(self, groups: Sequence[Group]) -> Solution:
        """The shares with the least weighted error; for errors ∝ 1/share they are ∝ √error, as in [000, Eq. 13].

        At the optimum a small further share is worth the same everywhere; that price is found by bisection.
        """
        curves = np.stack([self._curve(group) for group in groups])
        if len(groups) == 1:
            return Solution(tuple(groups), (1.0,), float(curves[0, -1]), 0.0)
        low, high = 1e-9, 1e9
        floor = LEAST / len(groups)
        for _ in range(60):
            price = math.sqrt(low * high)
            shares = np.maximum(_FINE[np.argmin(curves + price * _FINE, axis=1)], floor)
            low, high = (price, high) if shares.sum() > 1 else (low, price)
        shares = np.maximum(shares / shares.sum(), floor)
        shares = shares / shares.sum()
        error = sum(
            float(np.exp(np.interp(math.log(share), np.log(_FINE), np.log(curve))))
            for share, curve in zip(shares, curves, strict=True)
        )
        return Solution(tuple(groups), tuple(shares.tolist()), error, price)

    def merge(self, groups: Sequence[Group]) -> Solution:
        """Merge two groups again and again, as long as the expected error falls.

        A merge spares a share and makes the noise add up over more cells. Those that gain most at the present price of
        a share are tried first, and one is kept only if the error of the whole plan is smaller with it.
        """
        best = self.solve(groups)
        while True:
            for merged in self._propose(best):
                require_time()
                tried = self.solve(merged)
                if tried.error < best.error * (1 - 1e-9):
                    best = tried
                    break
            else:
                return best

    def split(self, known: Solution) -> Solution:
        """Give families that a larger table answers a table of their own, as long as the expected error falls.

        A large table is a poor answer to a small question: the noise of all its cells adds up in each margin.
        """
        best, most = known, len(self.families)
        while most:
            require_time()
            chosen = self._propose_splits(best)[:most]
            if not chosen:
                break
            tried = self.solve(_part(best.groups, {node: frozenset(self.families[node]) for node in chosen}))
            if tried.error < best.error * (1 - 1e-9):
                best = tried
            else:
                most = min(most, len(chosen)) // 2
        return best

    def _propose_splits(self, known: Solution) -> list[str]:
        """The nodes that would gain from a table of their own at the present price of a share, best first."""
        gains = []
        measured = {group.members for group in known.groups}
        for group in known.groups:
            before = self._cost(group, known.price)
            for node in group.nodes:
                own = frozenset(self.families[node])
                if own in measured:
                    continue
                rest = tuple(name for name in group.nodes if name != node)
                after = self._cost(Group(own, (node,)), known.price)
                after += self._cost(Group(group.members, rest), known.price) if rest else 0.0
                if before > after:
                    gains.append((before - after, node))
        return [node for _, node in sorted(gains, key=lambda found: (-round(found[0], 12), found[1]))]

    def _cost(self, group: Group, price: float) -> float:
        """The least of a group's error and what its share is worth."""
        return float(np.min(self._curve(group) + price * _FINE))

    def _propose(self, known: Solution) -> list[tuple[Group, ...]]:
        """The groups after each of the most promising merges of two."""
        costs = [self._cost(group, known.price) for group in known.groups]
        gains: list[tuple[float, int, int, Group]] = []
        for i, one in enumerate(known.groups):
            for j, other in enumerate(known.groups[:i]):
                union = one.members | other.members
                apart = len(known.groups) > STRANGERS and not one.members & other.members
                if apart or self._cells(union) > self.max_cells:
                    continue
                both = Group(union, other.nodes + one.nodes)
                gain = costs[i] + costs[j] - self._cost(both, known.price)
                if gain > 0:
                    gains.append((gain, i, j, both))
        gains.sort(key=lambda found: (-round(found[0], 12), found[1], found[2]))
        return [_absorb(known.groups, both) for *_, both in gains[:TRIES]]

    def _curve(self, group: Group) -> Floats:
        """The weighted error of a group by its share, on the fine grid; between the coarse points it is a power."""
        key = (group.members, group.nodes)
        if key not in self._curves:
            variances = np.array([max(self.variance(share), 1e-12) for share in _COARSE])
            total = np.zeros(len(_COARSE))
            for node in group.nodes:
                total += self.weights[node] * self._errors(group.members, self.families[node], variances)
                if self.alone:
                    total += self.alone * self._errors(group.members, (node,), variances)
            logs = np.interp(np.log(_FINE), np.log(_COARSE), np.log(np.maximum(total, 1e-12)))
            self._curves[key] = np.exp(logs)
        return self._curves[key]

    def _errors(self, members: Members, wanted: tuple[str, ...], variances: Floats) -> Floats:
        inside = sorted(self.sizes[name] for name in wanted)
        extra = sorted(self.sizes[name] for name in members - set(wanted))
        key = (tuple(inside), tuple(extra), tuple(variances.tolist()))
        if key not in self._curves:
            self._curves[key] = expect_errors(inside, extra, variances, self.rows)
        return self._curves[key]

    def _cells(self, members: Members) -> int:
        return count_cells(self.sizes[name] for name in members)


def expect_errors(inside: Sequence[int], extra: Sequence[int], variances: Floats, rows: float) -> Floats:
    """Σ √W over the cells of a family with these sizes, in a table with these extra attributes, for each variance."""
    shares, times = _suppose(inside)
    parts, copies = _suppose(extra)
    whole = rows * shares
    cells = np.multiply.outer(whole, parts)
    found = []
    for noise in variances:
        if times.sum() * copies.sum() * math.sqrt(noise) > HOPELESS * rows:
            squared = np.full(whole.shape, noise * copies.sum())
        else:
            known = (cells * (noise / (cells + noise))) @ copies
            squared = known * whole / np.maximum(whole - known, 1e-12 * whole)
        found.append(np.sqrt(1.0 / (1.0 / squared + 1.0 / (FACTOR * whole) ** 2)) @ times)
    return np.array(found)


def _suppose(sizes: Sequence[int]) -> tuple[Floats, Floats]:
    """The supposed frequencies of cells over attributes of these sizes, and how many cells have each.

    Attributes are independent, and frequencies fall by level.
    """
    cells: Floats = np.ones(1)
    times: Floats = np.ones(1)
    for size in sizes:
        levels = (1.0 + np.arange(size)) ** -FALL
        cells = np.multiply.outer(cells, levels / levels.sum()).ravel()
        times = np.repeat(times, size)
        if cells.size > FEW:
            kinds, place = np.unique(np.rint(FINENESS * np.log(cells)), return_inverse=True)
            mass = np.bincount(place, cells * times, kinds.size)
            times = np.asarray(np.bincount(place, times, kinds.size), dtype=np.float64)
            cells = mass / times
    return cells, times


def _absorb(groups: Sequence[Group], merged: Group) -> tuple[Group, ...]:
    """The groups with the merged one in place of all that it implies, which need no table of their own."""
    implied = [group for group in groups if group.members <= merged.members]
    nodes = tuple(dict.fromkeys((*merged.nodes, *(node for group in implied for node in group.nodes))))
    return (*(group for group in groups if group not in implied), Group(merged.members, nodes))


def _part(groups: Sequence[Group], apart: Mapping[str, Members]) -> tuple[Group, ...]:
    """The groups without these nodes, and a group for each of the nodes; a group that answers nothing goes."""
    left = [
        Group(group.members, tuple(name for name in group.nodes if name not in apart)) for group in groups
    ]
    own = [Group(members, (node,)) for node, members in apart.items()]
    return (*(group for group in left if group.nodes), *own)
