"""All posteriors in a tree of large cliques whose tables are never multiplied out.

A clique of millions of cells is a product of small tables: the conditionals that live in it and the messages that
come in. Messages are contracted from those (Shafer and Shenoy, 1990; lazy propagation, Madsen and Jensen, 1999), so no
clique is ever swept, an observed axis costs nothing, and conditionals of variables that nobody asks for are left out.
A message is over those variables of its separator that its tables mention; one that mentions none is left out too.
Messages are made once without evidence; one of the same tables, none of them cut, is taken from there.

One thread makes them all: on Barley a second one, for messages that do not wait for each other, gained nothing, because
one message is mostly as large as all others together, and the small ones waited for the interpreter's lock.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from discreet.compute.inference.buckets import WHOLE, contract
from discreet.compute.inference.junction import Floats, Ints, JunctionTree, smallest_positive
from discreet.values.table import count_cells

SAME = 1e-14
"""A message whose cells are all this near to 1 says nothing."""


WIDE = 2**16
"""The least mean size of cliques; with smaller ones the bookkeeping costs more than the cells."""

WORTH = 0.5
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


@dataclass(frozen=True, slots=True)
class Sent:
    """A message, the logarithm of what it was divided by, and the tables that it was made from."""

    message: Message
    scale: float
    origin: tuple[Factor, ...]


NEVER = Sent((), 0.0, (Factor((), (), -1, False, 1.0),))
"""What no message repeats."""

Read = tuple[Floats, tuple[Factor, ...]]
"""A marginal, and the tables that it was made from."""


class Lost(Exception):
    """The evidence is impossible, some product might underflow, or it is not worth it."""


class FactoredTree:
    """A junction tree with its tables apart, and the messages and marginals in it without evidence."""

    def __init__(self, junction: JunctionTree, children: Sequence[int], most: float = np.inf) -> None:
        """`children[k]` is the variable whose conditional the k-th table of the tree is.

        Raises `Lost` if the messages up take more than `most` cells without evidence.
        """
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
        self._below: list[list[int]] = [[] for _ in range(cliques)]
        for i in range(1, cliques):
            self._below[junction.tree.parent[i]].append(i)
        room = [count_cells(junction.sizes[v] for v in found) for found in junction.separators_of]
        self._up_at = [0, *accumulate(room)][:-1]
        self._room = sum(room)
        self._readers = self._choose_readers(room)
        self._data = np.concatenate(
            [*(values.ravel() for _, values in junction.factors), np.empty(2 * self._room)]
        )
        self._prior_up = self._prior_down = [NEVER] * cliques
        self._prior_read = [(np.empty(0), NEVER.origin)] * len(junction.sizes)
        blank = np.full(2 * len(junction.sizes), -1, dtype=np.int64)
        run = _Run(self, blank, self._data, at, {})
        run.collect(range(cliques))
        if run.cells > most:
            raise Lost
        self._prior_read = run.distribute()
        self._prior_up, self._prior_down = run.up, run.down

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
        run = _Run(self, observed, work, 0, soft)
        try:
            log_evidence = run.collect(touched)
            out = np.concatenate([marginal for marginal, _ in run.distribute()])
        except Lost:
            return out, np.nan
        return out, log_evidence + log_scale


class _Run:
    """One propagation: messages up to the root, down again, and the marginals on the way."""

    def __init__(
        self,
        tree: FactoredTree,
        observed: Ints,
        work: Floats,
        start: int,
        soft: dict[int, list[Factor]],
    ) -> None:
        """Messages are written to `work`, from `start` on; that is the tree's own array for those without evidence."""
        self._tree = tree
        self._observed = observed
        self._work = work
        self._start = start
        self._soft = soft
        self.up = list(tree._prior_up)
        self.down = [NEVER] * len(self.up)
        self.cells = 0.0

    def collect(self, touched: Iterable[int]) -> float:
        """Send messages from the leaves to the root; returns log P(evidence)."""
        for i in sorted(touched, reverse=True):  # a clique comes after its parent
            self.up[i] = self._rise(i)
        return float(sum(sent.scale for sent in self.up))

    def _rise(self, i: int) -> Sent:
        tree = self._tree
        to = self._start + tree._up_at[i]
        return self._send(self._inside(i), tree._junction.separators_of[i], to, tree._prior_up[i])

    def distribute(self) -> list[Read]:
        """Send messages from the root to the leaves; returns every variable's marginal, and what it was made from."""
        tree = self._tree
        for c in range(1, len(self.down)):
            self.down[c] = self._fall(tree._junction.tree.parent[c], c)
        return [self._read(v) for v in range(len(tree._sizes))]

    def _fall(self, i: int, c: int) -> Sent:
        tree = self._tree
        to = self._start + tree._room + tree._up_at[c]
        factors = self._inside(i, leaving=c)
        return self._send(factors, tree._junction.separators_of[c], to, tree._prior_down[c])

    def _read(self, v: int) -> Read:
        tree = self._tree
        code = int(self._observed[v])
        if code >= 0:
            return np.eye(int(tree._sizes[v]))[code], ()
        between, i = tree._readers[v]
        found = [*self.up[i].message, *self.down[i].message] if between else self._inside(i)
        factors = self._prune(found, [v])
        if self._repeats(factors, tree._prior_read[v][1], [v]):
            return tree._prior_read[v]
        out = np.ones(int(tree._sizes[v]))
        if any(v in f.members for f in factors):
            self._contract(factors, [v], out, 0, WHOLE)
        return out / out.sum(), factors

    def _inside(self, i: int, leaving: int = -1) -> list[Factor]:
        """The tables in a clique and the messages that came in, but for the one from a child."""
        tree = self._tree
        found = [*tree._own[i], *self._soft.get(i, ()), *self.down[i].message]
        for c in tree._below[i]:
            if c != leaving:
                found += self.up[c].message
        return found

    def _send(self, factors: Sequence[Factor], onto: Sequence[int], to: int, prior: Sent) -> Sent:
        """The message over a separator, written at `to`, unless it is the one without evidence."""
        factors = self._prune(factors, onto)
        if self._repeats(factors, prior.origin, onto):
            return prior
        if not factors:
            return Sent((), 0.0, ())
        mentioned = {v for f in factors for v in f.members}
        keep = [v for v in onto if self._observed[v] < 0 and v in mentioned]
        most = len(factors) + len(mentioned)
        parts = np.empty(1 + most * (2 + len(keep)), dtype=np.int64)
        floors = np.empty(most)
        scale, least = self._contract(factors, keep, self._work, to, (parts, floors))
        if not keep:
            return Sent((), scale, factors)
        made: list[tuple[tuple[int, ...], int, float]] = []
        listed = parts.tolist()
        at = 1
        for k in range(listed[0]):
            members = tuple(listed[at + 2 : at + 2 + listed[at]])
            made.append((members, listed[at + 1], float(floors[k])))
            at += 2 + len(members)
        sizes = self._tree._junction.sizes
        apart = self._work is not self._tree._data
        message = tuple(
            Factor(members, _strides([sizes[v] for v in members]), base, apart, floor)
            for members, base, floor in made or [(tuple(keep), to, least)]
        )
        if not apart:
            message = tuple(f for f in message if self._tells(f))
        return Sent(message, scale, factors)

    def _tells(self, factor: Factor) -> bool:
        """Whether a message is more than ones."""
        cells = count_cells(self._tree._junction.sizes[v] for v in factor.members)
        return bool(np.abs(self._work[factor.base : factor.base + cells] - 1.0).max() > SAME)

    def _repeats(self, factors: Sequence[Factor], prior: Sequence[Factor], onto: Sequence[int]) -> bool:
        """Whether these are the tables that were taken without evidence, of which nothing summed out is observed."""
        return (
            len(factors) == len(prior)
            and all(one is other for one, other in zip(factors, prior, strict=True))
            and not any(self._observed[v] >= 0 and v not in onto for f in factors for v in f.members)
        )

    def _prune(self, factors: Sequence[Factor], keep: Sequence[int]) -> tuple[Factor, ...]:
        """Leave out conditionals of variables that occur nowhere else: they sum to 1."""
        left = tuple(factors)
        while True:
            mentions: dict[int, int] = {}
            for f in left:
                for v in f.members:
                    mentions[v] = mentions.get(v, 0) + 1
            barren = {
                f.child
                for f in left
                if f.child >= 0
                and mentions[f.child] == 1
                and f.child not in keep
                and self._observed[f.child] < 0
            }
            if not barren:
                return left
            left = tuple(f for f in left if f.child not in barren)

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
        return FactoredTree(junction, children, WORTH * junction.cells)
    except Lost:
        return None


def _strides(shape: Sequence[int]) -> tuple[int, ...]:
    found = []
    stride = 1
    for size in reversed(shape):
        found.append(stride)
        stride *= size
    return tuple(reversed(found))
