"""All posteriors in a tree of large cliques whose tables are never multiplied out.

A clique of millions of cells is a product of small tables: the conditionals that live in it and the messages that
come in. Messages are contracted from those (Shafer and Shenoy, 1990; lazy propagation, Madsen and Jensen, 1999), so no
clique is ever swept, an observed axis costs nothing, and conditionals of variables that nobody asks for are left out.
A message is over those variables of its separator that its tables mention; one that mentions none is left out too.

Messages that do not wait for each other are made on all cores. Each is made by one thread, so the numbers do not
depend on how many there are.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeVar

import numpy as np

from discreet.compute.inference.buckets import WHOLE, contract
from discreet.compute.inference.junction import Floats, Ints, JunctionTree, smallest_positive
from discreet.values.table import count_cells

LARGE = 2**19
"""From so many cells on that the evidence leaves of a clique, its messages are worth a thread."""

SAME = 1e-14
"""A message whose cells are all this near to 1 says nothing."""


WIDE = 2**16
"""The least mean size of cliques; with smaller ones the bookkeeping costs more than the cells."""

WORTH = 0.25
"""At most this share of the cells of all cliques may be left in the messages; a sweep is quicker by the cell."""


@dataclass(frozen=True, slots=True)
class Factor:
    """A table somewhere: its variables and strides, its first cell in `data` or in `work`, its least positive cell."""

    members: tuple[int, ...]
    strides: tuple[int, ...]
    base: int
    in_work: bool
    least: float
    child: int = -1
    """The variable whose conditional it is, so that it sums to 1 over it; -1 for a message."""


Message = tuple[Factor, ...]
"""A product of tables that is not multiplied out; the empty one says nothing."""


Task = TypeVar("Task")
Made = TypeVar("Made")


class Lost(Exception):
    """The evidence is impossible, or some product might underflow."""


class FactoredTree:
    """A junction tree with its tables apart, and the messages that go up in it without evidence."""

    def __init__(self, junction: JunctionTree, children: Sequence[int]) -> None:
        """`children[k]` is the variable whose conditional the k-th table of the tree is."""
        self._junction = junction
        self._sizes = np.array(junction.sizes, dtype=np.int64)
        cliques = len(junction.tree.cliques)
        self._own: list[list[Factor]] = [[] for _ in range(cliques)]
        at = 0
        for (scope, values), home, child in zip(junction.factors, junction.homes, children, strict=True):
            self._own[home].append(
                Factor(scope, _strides(values.shape), at, False, smallest_positive(values), child)
            )
            at += values.size
        self._data = np.concatenate([values.ravel() for _, values in junction.factors])
        self._below: list[list[int]] = [[] for _ in range(cliques)]
        depth = [0] * cliques
        for i in range(1, cliques):
            above = junction.tree.parent[i]
            self._below[above].append(i)
            depth[i] = depth[above] + 1
        self._layers = [[i for i in range(cliques) if depth[i] == d] for d in range(max(depth) + 1)]
        room = [count_cells(junction.sizes[v] for v in found) for found in junction.separators_of]
        self._up_at = [0, *accumulate(room)][:-1]
        self._room = sum(room)
        self._readers = self._choose_readers(room)
        self._prior_up: list[Message] = [()] * cliques
        blank = np.full(2 * len(junction.sizes), -1, dtype=np.int64)
        work = np.empty(self._room)
        self._prior_scale = [0.0] * cliques
        run = _Run(self, blank, work, {})
        run.collect(range(cliques))
        run.close()
        self._prior_scale = run.scales
        self.cells = run.cells
        """How many cells the messages up take without evidence: beside those of the cliques, what is won by this."""
        data = [self._data]
        at = len(self._data)
        for i, message in enumerate(run.up):
            for f in message:
                cells = work[f.base : f.base + count_cells(junction.sizes[v] for v in f.members)]
                if np.abs(cells - 1.0).max() > SAME:
                    self._prior_up[i] += (Factor(f.members, f.strides, at, False, f.least),)
                    data.append(cells)
                    at += len(cells)
        self._data = np.concatenate(data)

    def _choose_readers(self, room: Sequence[int]) -> list[tuple[bool, int]]:
        """Per variable: whether it is read off a separator, and which; else which clique."""
        junction = self._junction
        best: dict[int, tuple[int, bool, int]] = {}
        for i, clique in enumerate(junction.tree.cliques):
            cells = count_cells(junction.sizes[v] for v in clique)
            for v in clique:
                best[v] = min(best.get(v, (cells, False, i)), (cells, False, i))
            for v in junction.separators_of[i]:
                best[v] = min(best[v], (room[i], True, i))
        return [(best[v][1], best[v][2]) for v in range(len(junction.sizes))]

    def condition(self, observed: Ints, weights: Floats) -> tuple[Floats, float]:
        """All posterior marginals, one after the other, and log P(evidence); NaN if it is 0 or might underflow."""
        junction, count = self._junction, len(self._sizes)
        out = np.zeros(int(self._sizes.sum()))
        if (observed[:count] >= self._sizes).any():
            return out, np.nan
        work = np.empty(2 * self._room + len(weights))
        soft: dict[int, list[Factor]] = {}
        log_scale = 0.0
        at = 2 * self._room
        for v in np.flatnonzero(observed[count:] >= 0):
            begin = int(observed[count + v])
            values = weights[begin : begin + junction.sizes[v]]
            peak = float(values.max())
            if not peak > 0:
                return out, np.nan
            log_scale += float(np.log(peak))
            work[at + begin : at + begin + len(values)] = values / peak
            factor = Factor((int(v),), (1,), at + begin, True, smallest_positive(values / peak))
            soft.setdefault(junction.top[v], []).append(factor)
        touched: set[int] = set()
        for v in np.flatnonzero((observed[:count] >= 0) | (observed[count:] >= 0)):
            i = junction.top[v]
            while i >= 0 and i not in touched:
                touched.add(i)
                i = junction.tree.parent[i]
        run = _Run(self, observed, work, soft)
        try:
            log_evidence = run.collect(touched)
            run.distribute(out)
        except Lost:
            return out, np.nan
        finally:
            run.close()
        return out, log_evidence + log_scale


class _Run:
    """One propagation: messages up to the root, down again, and the marginals on the way."""

    def __init__(
        self,
        tree: FactoredTree,
        observed: Ints,
        work: Floats,
        soft: dict[int, list[Factor]],
    ) -> None:
        self._tree = tree
        self._observed = observed
        self._work = work
        self._soft = soft
        self._pool: ThreadPoolExecutor | None = None
        self.up: list[Message] = list(tree._prior_up)
        self.scales = list(tree._prior_scale)
        self.cells = 0.0
        self._down: list[Message] = [()] * len(self.up)

    def close(self) -> None:
        """Let go of the threads; they live for one propagation, because a process that forks would lose them."""
        if self._pool is not None:
            self._pool.shutdown()

    def _map(self, make: Callable[[Task], Made], tasks: Sequence[Task], cliques: Iterable[int]) -> list[Made]:
        """Make what does not wait for each other: on all cores if one of the cliques is large, else here and now."""
        if len(tasks) > 1 and max(self._count(i) for i in cliques) > LARGE:
            self._pool = self._pool or ThreadPoolExecutor(os.cpu_count() or 1)
            return list(self._pool.map(make, tasks))
        return [make(task) for task in tasks]

    def _count(self, i: int) -> int:
        junction = self._tree._junction
        return count_cells(junction.sizes[v] for v in junction.tree.cliques[i] if self._observed[v] < 0)

    def collect(self, touched: Iterable[int]) -> float:
        """Send messages from the leaves to the root; returns log P(evidence)."""
        touched = set(touched)
        for layer in reversed(self._tree._layers):
            cliques = [i for i in layer if i in touched]
            found = self._map(self._rise, cliques, cliques)
            for i, (message, scale) in zip(cliques, found, strict=True):
                self.up[i] = message
                self.scales[i] = scale
        return float(sum(self.scales))

    def _rise(self, i: int) -> tuple[Message, float]:
        tree = self._tree
        return self._send(self._inside(i), tree._junction.separators_of[i], tree._up_at[i])

    def distribute(self, out: Floats) -> None:
        """Send messages from the root to the leaves, and write every variable's marginal to `out`."""
        tree = self._tree
        for layer in tree._layers:
            pairs = [(i, c) for i in layer for c in tree._below[i]]
            for (_, c), message in zip(pairs, self._map(self._fall, pairs, layer), strict=True):
                self._down[c] = message
        starts = np.concatenate([[0], np.cumsum(tree._sizes)])
        readers = [i for between, i in tree._readers if not between]
        variables = range(len(tree._sizes))
        for v, marginal in zip(variables, self._map(self._read, variables, readers or [0]), strict=True):
            out[starts[v] : starts[v + 1]] = marginal

    def _fall(self, pair: tuple[int, int]) -> Message:
        i, c = pair
        tree = self._tree
        to = tree._room + tree._up_at[c]
        return self._send(self._inside(i, leaving=c), tree._junction.separators_of[c], to)[0]

    def _read(self, v: int) -> Floats:
        tree = self._tree
        code = int(self._observed[v])
        if code >= 0:
            return np.asarray(np.eye(int(tree._sizes[v]))[code])
        between, i = tree._readers[v]
        factors = self._prune([*self.up[i], *self._down[i]] if between else self._inside(i), [v])
        out = np.ones(int(tree._sizes[v]))
        if any(v in f.members for f in factors):
            self._contract(factors, [v], out, 0, WHOLE)
        return np.asarray(out / out.sum())

    def _inside(self, i: int, leaving: int = -1) -> list[Factor]:
        """The tables in a clique and the messages that came in, but for the one from a child."""
        tree = self._tree
        found = [*tree._own[i], *self._soft.get(i, ()), *self._down[i]]
        for c in tree._below[i]:
            if c != leaving:
                found += self.up[c]
        return found

    def _send(self, factors: Sequence[Factor], onto: Sequence[int], to: int) -> tuple[Message, float]:
        """The message over a separator, written at `to`, and the logarithm of what it was divided by."""
        factors = self._prune(factors, onto)
        if not factors:
            return (), 0.0
        mentioned = {v for f in factors for v in f.members}
        keep = [v for v in onto if self._observed[v] < 0 and v in mentioned]
        most = len(factors) + len(mentioned)
        parts = np.empty(1 + most * (2 + len(keep)), dtype=np.int64)
        floors = np.empty(most)
        scale, least = self._contract(factors, keep, self._work, to, (parts, floors))
        if not keep:
            return (), scale
        sizes = self._tree._junction.sizes
        if parts[0] == 0:
            return (Factor(tuple(keep), _strides([sizes[v] for v in keep]), to, True, least),), scale
        found = []
        listed = parts.tolist()
        at = 1
        for k in range(listed[0]):
            members = tuple(listed[at + 2 : at + 2 + listed[at]])
            found.append(
                Factor(members, _strides([sizes[v] for v in members]), listed[at + 1], True, float(floors[k]))
            )
            at += 2 + len(members)
        return tuple(found), scale

    def _prune(self, factors: Sequence[Factor], keep: Sequence[int]) -> list[Factor]:
        """Leave out conditionals of variables that occur nowhere else: they sum to 1."""
        left = list(factors)
        while True:
            mentions: dict[int, int] = {}
            for f in left:
                for v in f.members:
                    mentions[v] = mentions.get(v, 0) + 1
            barren = [
                f
                for f in left
                if f.child >= 0
                and mentions[f.child] == 1
                and f.child not in keep
                and self._observed[f.child] < 0
            ]
            if not barren:
                return left
            left = [f for f in left if not any(f is other for other in barren)]

    def _contract(
        self, factors: Sequence[Factor], keep: Sequence[int], out: Floats, to: int, parts: tuple[Ints, Floats]
    ) -> tuple[float, float]:
        """Contract tables onto `keep`; returns the logarithm of the scale and the least positive cell."""
        sizes = self._tree._junction.sizes
        scale, least, cells = contract(
            self._tree._sizes,
            self._observed,
            np.array([0, *accumulate(len(f.members) for f in factors)], dtype=np.int64),
            np.array([v for f in factors for v in f.members], dtype=np.int64),
            np.array([stride for f in factors for stride in f.strides], dtype=np.int64),
            np.array([f.base for f in factors], dtype=np.int64),
            np.array([f.in_work for f in factors]),
            np.array([f.least for f in factors]),
            self._tree._data,
            self._work,
            np.array(keep, dtype=np.int64),
            np.inf,
            out,
            to,
            np.array(_strides([sizes[v] for v in keep]), dtype=np.int64),
            *parts,
        )
        if cells < 0:
            raise Lost
        self.cells += cells
        return scale, least


def factor_if_worth(junction: JunctionTree, children: Sequence[int]) -> FactoredTree | None:
    """The tree with its tables apart if that is quicker than sweeping its cliques, as far as can be told."""
    if junction.cells < WIDE * len(junction.tree.cliques):
        return None
    try:
        found = FactoredTree(junction, children)
    except Lost:
        return None
    return found if found.cells < WORTH * junction.cells else None


def _strides(shape: Sequence[int]) -> tuple[int, ...]:
    found = []
    stride = 1
    for size in reversed(shape):
        found.append(stride)
        stride *= size
    return tuple(reversed(found))
