"""A model without the links that chance explains: far fewer arrows, and what was measured is met within its noise.

A wide noisy table joins all its attributes, whether they depend on each other or not. Here a model is built up from no
link at all: a pair is linked only if, without that, the model is further from the noisy tables than noise, and the
chance by which rows fall, would make it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from discreet.compute.cliques.entropy import fit_margins
from discreet.compute.cliques.model import CliqueModel, ModelTree
from discreet.compute.consistency import average_sets, reconcile, weigh_by_precision
from discreet.values.patience import require_time
from discreet.values.table import Array, Table

LIMITS = {2: 2.0, 3: 5.0}
"""A dependence of two or three is kept if its χ² lies so many standard deviations above what chance makes of it."""
WORTH = 0.7
"""A graph that keeps more than this part of its links stays as it is: all depends on all, and small parts add up."""
CLEAR, CLEAR_IF_CHOSEN = 0.03, 0.1
"""The L1 noise of a pair, as a part of the rows, up to which a dependence worth having stands out from it; where sets
were chosen for it, less can hide."""
LEAST = 0.1
"""Rows that a cell may be off by in any case: an exact table may hold one where none is expected."""

Pair = frozenset[str]


@dataclass(frozen=True, slots=True)
class Apart:
    """A χ² and its degrees of freedom."""

    energy: float
    freedom: int

    def stand_out(self) -> float:
        """(χ² − f)/√(2f): how many standard deviations it lies above what chance makes of it."""
        return (self.energy - self.freedom) / math.sqrt(2 * self.freedom) if self.freedom else -math.inf


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """What noisy tables together say of the margins that they hold, and how well they know them."""

    tables: tuple[Table, ...]
    weights: tuple[float, ...]
    rows: float

    @classmethod
    def of(cls, noisy: Sequence[Table], variances: Sequence[float], rows: float) -> Evidence:
        """The least-squares fit of all tables; cells may be negative, so that noise keeps its law."""
        tables, spreads = average_sets(noisy, variances)
        weights = weigh_by_precision(tables, spreads)
        return cls(reconcile(tables, weights), weights, rows)

    def holders(self, members: Iterable[str]) -> list[int]:
        """The tables that hold these attributes."""
        wanted = frozenset(members)
        return [i for i, table in enumerate(self.tables) if wanted.issubset(table.axes)]

    def read(self, members: Sequence[str]) -> tuple[Table, float]:
        """What the tables that hold these attributes say of them, and the noise variance of a cell."""
        holders = self.holders(members)
        known = self.tables[min(holders, key=lambda i: self.tables[i].cells)].project(members)
        return known, 1.0 / (known.cells * math.fsum(self.weights[i] for i in holders))

    def measure(self, expected: Table) -> Apart:
        """How far noisy tables are from a margin of a model, in what all its attributes have to do with each other.

        χ² = Σ d²/(v + E): d is the difference without what fewer of the attributes have a hand in, v the noise variance
        of a cell, and E, the count expected there, the variance of rows that fall by chance.
        """
        if not self.holders(expected.axes):
            return Apart(0.0, 0)
        known, variance = self.read(expected.axes)
        counts = self.rows * expected.values
        off = centre(known.values - counts)
        freedom = math.prod(size - 1 for size in off.shape)
        return Apart(float((off**2 / (variance + counts + LEAST)).sum()), freedom)

    def contradict(self, expected: Table) -> float:
        """By how many limits a margin of a model is off; −∞ if no table holds its attributes."""
        return self.measure(expected).stand_out() / LIMITS[len(expected.axes)]

    def list_sets(self, ways: int) -> list[tuple[str, ...]]:
        """The sets of so many attributes that some table holds, each once, in the order of the tables."""
        held = (found for table in self.tables for found in combinations(table.axes, ways))
        return list({frozenset(found): found for found in held}.values())

    def noise(self) -> float:
        """The mean L1 noise of the pairs that were measured, as a part of the rows: cells·√(2v/π)."""
        found = []
        for pair in self.list_sets(2):
            holders = self.holders(pair)
            cells = self.tables[holders[0]].project(pair).cells
            found.append(math.sqrt(2 / math.pi * cells / math.fsum(self.weights[i] for i in holders)))
        return math.fsum(found) / max(1, len(found)) / self.rows

    def hides(self, *, chosen: bool) -> bool:
        """Whether noise is so large that dependence could hide in it; less could, if sets were chosen for it."""
        return self.noise() > (CLEAR_IF_CHOSEN if chosen else CLEAR)


def thin(model: CliqueModel, estimated: Sequence[Table], evidence: Evidence) -> CliqueModel:
    """The model of these estimated tables on a graph without the links that chance explains; the old one if most stay.

    From no link at all, those are added, strongest first, that the noisy tables ask for; then those are dropped that
    the others made superfluous; and again. So no pair or triple that was measured contradicts the result. Not where
    noise `hides` dependence: weak links that are many say more together than the few that happen to stand out.
    """
    most = len(list_links(model.tree))
    sparse = _link(model.tree, estimated, evidence, set(), most)
    if sparse is not None:
        sparse = _link(model.tree, estimated, evidence, drop_links(sparse, evidence), WORTH * most)
    return model if sparse is None else sparse


def link_loud(
    model: CliqueModel, estimated: Sequence[Table], evidence: Evidence, limit: float
) -> CliqueModel:
    """The model of these tables on a graph of the links alone that stand out by so many limits, each for itself."""
    found = _link(model.tree, estimated, evidence, set(), len(list_links(model.tree)), limit)
    return model if found is None else found


def _link(
    tree: ModelTree,
    estimated: Sequence[Table],
    evidence: Evidence,
    links: set[Pair],
    most: float,
    limit: float | None = None,
) -> CliqueModel | None:
    """A model with these links and all that the noisy tables ask for besides.

    With a `limit`, those that stand out by so many limits. There is none if links are more than `most`, or cells more
    than those of `tree`.
    """
    sizes = dict(zip(tree.names, tree.sizes, strict=True))
    while True:
        require_time()
        margins = _split(estimated, links)
        planned = ModelTree.plan(sizes, [table.axes for table in margins])
        linked = set(list_links(planned))
        if not linked <= links:  # what shares a clique anyway may as well be fitted
            links = links | linked
            continue
        if len(links) > most or planned.cells > tree.cells:
            return None
        found = fit_margins(sizes, margins, max_cells=tree.cells)
        wanted = _find_missing(found, evidence, links, limit)
        if not wanted:
            return found
        groups: list[set[str]] = []
        for members in sorted(wanted, key=lambda members: -wanted[members]):
            if not any(len(group.intersection(members)) > 1 for group in groups):
                links = links | _pairs(members)
                joined = set(members).union(*(group for group in groups if group.intersection(members)))
                groups = [group for group in groups if not group.intersection(members)] + [joined]


def _find_missing(
    model: CliqueModel, evidence: Evidence, links: set[Pair], limit: float | None
) -> dict[tuple[str, ...], float]:
    """Sets to be linked, with their weight: pairs that stand out, else triples, else pairs that only do so together.

    With a `limit`, pairs and triples that stand out by so many limits, and no others.
    """
    pairs: dict[tuple[str, ...], Apart] = {}
    for ways in (2, 3):
        apart = [members for members in evidence.list_sets(ways) if not _pairs(members) <= links]
        found = {table.axes: evidence.measure(table) for table in model.margins(apart)}
        pairs = pairs or found
        least = (1.0 if limit is None else limit) * LIMITS[ways]
        wanted = {members: one.stand_out() for members, one in found.items() if one.stand_out() > least}
        if wanted:
            return wanted
    if limit is not None or _sum(pairs.values()).stand_out() <= LIMITS[2]:
        return {}
    return {members: one.stand_out() for members, one in pairs.items() if one.energy > one.freedom}


def centre(values: Array) -> Array:
    """What all axes have to do with each other: without the means along each of them."""
    for axis in range(values.ndim):
        values = values - values.mean(axis=axis, keepdims=True)
    return values


def _sum(parts: Iterable[Apart]) -> Apart:
    found = list(parts)
    return Apart(math.fsum(one.energy for one in found), sum(one.freedom for one in found))


def _pairs(members: Iterable[str]) -> set[Pair]:
    return {frozenset(pair) for pair in combinations(members, 2)}


def list_links(tree: ModelTree) -> list[Pair]:
    """The pairs that share a clique, each once, in the order of the attributes."""
    linked = {frozenset(pair) for clique in tree.cliques for pair in combinations(clique, 2)}
    return [frozenset(pair) for pair in combinations(tree.names, 2) if frozenset(pair) in linked]


def drop_links(model: CliqueModel, evidence: Evidence) -> set[Pair]:
    """The links of a model that are left when those are dropped, weakest first, that chance explains.

    A link i–j whose common neighbours S are all linked is in the clique C = {i, j} ∪ S alone: without it the graph
    stays chordal, and the nearest distribution has P(C) = P(i, S)·P(j, S)/P(S) and all else as before [Lauritzen 1996].
    """
    links = list_links(model.tree)
    near: dict[str, set[str]] = {name: set() for name in model.tree.names}
    for one, other in links:
        near[one].add(other)
        near[other].add(one)
    known: dict[tuple[Pair, Pair], float] = {}

    def weigh(pair: Pair) -> float:
        one, other = pair
        between = frozenset(near[one] & near[other])
        if any(not between - {name} <= near[name] for name in between):
            return math.inf
        if (pair, between) not in known:
            part = _part(model, pair, between)
            known[pair, between] = max(
                evidence.contradict(
                    part.project([name for name in part.axes if name in pair or name == third])
                )
                for third in (None, *sorted(between))
            )
        return known[pair, between]

    while True:
        require_time()
        weights = {pair: weigh(pair) for pair in links}
        weak = sorted((pair for pair in links if weights[pair] <= 1.0), key=lambda pair: weights[pair])
        for pair in weak:
            if weigh(pair) <= 1.0:  # others that went before may have changed it
                one, other = pair
                near[one].discard(other)
                near[other].discard(one)
                links.remove(pair)
        if len(links) == len(weights):
            return set(links)


def _part(model: CliqueModel, pair: Pair, between: Pair) -> Table:
    """P(i, S)·P(j, S)/P(S): the clique of a link, without it."""
    wanted = pair | between
    holders = (belief for belief in model.beliefs if wanted.issubset(belief.axes))
    holder = min(holders, key=lambda belief: belief.cells)
    joint = holder.project([name for name in holder.axes if name in wanted])
    one, other = (joint.axes.index(name) for name in joint.axes if name in pair)
    first, second = joint.values.sum(axis=other, keepdims=True), joint.values.sum(axis=one, keepdims=True)
    both = first.sum(axis=one, keepdims=True)
    return Table(joint.axes, first * np.divide(second, both, out=np.zeros_like(second), where=both > 0))


def _split(tables: Sequence[Table], links: set[Pair]) -> list[Table]:
    """The margins of the tables over all that is linked with each other, each once, and none inside another."""
    parts: dict[Pair, Table] = {}
    for table in sorted(tables, key=lambda found: found.cells):
        inside = [pair for pair in combinations(table.axes, 2) if frozenset(pair) in links]
        for clique in ModelTree.plan(table.sizes, inside).cliques:
            parts.setdefault(frozenset(clique), table.project(clique))
    return [table for members, table in parts.items() if not any(members < other for other in parts)]
