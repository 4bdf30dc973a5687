"""The distribution of largest entropy with given margins, on a junction tree, and the network that it is.

Margins over pairs and triples say nothing about how their attributes depend on each other beyond them; of all
distributions that have these margins, the one of largest entropy adds nothing of its own. It is found by iterative
proportional fitting, one clique at a time on a walk along the tree, so that only the cliques' tables are ever made.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log2

import numpy as np

from discreet.algorithms.inference.triangulation import (
    RULES,
    CliqueTree,
    clique_tree_of,
    cliques_of,
    eliminate_greedily,
    interaction_graph,
    join,
    total_cells,
)
from discreet.vocabulary.errors import TableError, TooLarge
from discreet.vocabulary.graph import DAG
from discreet.vocabulary.table import Array, Table, count_cells

SWEEPS = 40
"""Walks along the tree: noisy margins never agree quite, and further ones only go round in circles."""
TOLERANCE = 1e-4
"""The mean L1 distance from the margins at which a fit is done."""
LEAST = 1e-9
"""Every margin is raised to this part of its independent cells: a noisy zero must not forbid what others hold."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The cliques that a model over these attribute sets needs."""

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    tree: CliqueTree
    order: tuple[int, ...]
    """The order of elimination that made the tree."""
    neighbours: tuple[int, ...]
    """The attributes that share a set with each attribute, as bits."""

    @classmethod
    def plan(cls, sizes: Mapping[str, int], sets: Iterable[Sequence[str]]) -> Layout:
        """A junction tree in which every set lies in a clique."""
        names = tuple(sizes)
        place = {name: i for i, name in enumerate(names)}
        scopes = [[place[name] for name in members] for members in sets]
        levels = [sizes[name] for name in names]
        weights = [log2(size) for size in levels]
        graph = interaction_graph(scopes, len(names))
        orders = [
            eliminate_greedily(graph, weights, rule, range(len(names)), random.Random(0)) for rule in RULES
        ]
        order = min(orders, key=lambda found: total_cells(cliques_of(graph, found), weights))
        bits = tuple(sum(1 << v for v in found) for found in graph)
        return cls(names, tuple(levels), join(*clique_tree_of(graph, order), levels), tuple(order), bits)

    @property
    def cliques(self) -> tuple[tuple[str, ...], ...]:
        """The attributes of each clique, those before it in the tree first."""
        return tuple(tuple(self.names[v] for v in clique) for clique in self.tree.cliques)

    @property
    def cells(self) -> int:
        """The cells of all cliques together."""
        return sum(count_cells(self.sizes[v] for v in clique) for clique in self.tree.cliques)

    def bound_cells(self, members: Sequence[str]) -> int:
        """The cells, at most, if one more set had to lie in a clique: what the same order of elimination would make."""
        graph, added = list(self.neighbours), [self.names.index(name) for name in members]
        mask = sum(1 << v for v in added)
        for v in added:
            graph[v] |= mask & ~(1 << v)
        cells, largest = 0, 0
        for v in self.order:
            around = graph[v]
            clique = around | (1 << v)
            product, rest = self.sizes[v], around
            while rest:
                low = rest & -rest
                u = low.bit_length() - 1
                product *= self.sizes[u]
                graph[u] = (graph[u] | around) & ~(low | (1 << v))
                rest ^= low
            if clique & ~largest:  # a clique inside the one before adds no cells
                cells, largest = cells + product, clique
        return cells


@dataclass(frozen=True, slots=True, eq=False)
class CliqueModel:
    """A distribution as the margins of its cliques, which agree on all separators."""

    layout: Layout
    beliefs: tuple[Table, ...]
    gap: float
    """The mean L1 distance that is left from the margins that were asked for."""

    def margin(self, axes: Sequence[str]) -> Table | None:
        """The margin over attributes that share a clique, else None."""
        wanted = set(axes)
        holders = [belief for belief in self.beliefs if wanted <= set(belief.axes)]
        return min(holders, key=lambda belief: belief.cells).project(axes) if holders else None

    def pairs(self) -> Iterator[Table]:
        """The margin of every pair of attributes: P(a, C) = P(a, S)·P(C | S) from clique to clique."""
        for i, name in enumerate(self.layout.names):
            for table in self._reach(name):
                if self.layout.names.index(table.axes[1]) > i:
                    yield table

    def network(self) -> tuple[DAG, tuple[Table, ...]]:
        """The same distribution as a graph and its conditionals: in each clique, its new attributes one by one."""
        parents: dict[str, tuple[str, ...]] = {}
        tables: dict[str, Table] = {}
        for i, belief in enumerate(self.beliefs):
            above = self._separator(i)
            for name in (found for found in belief.axes if found not in above):
                family = (*above, name)
                parents[name], tables[name] = above, belief.project(family).normalise(name)
                above = family
        names = self.layout.names
        return DAG.build({name: parents[name] for name in names}), tuple(tables[name] for name in names)

    def _separator(self, i: int) -> tuple[str, ...]:
        """The attributes that clique i shares with the clique that it hangs on."""
        return tuple(self.layout.names[v] for v in self.layout.tree.separator(i))

    def _reach(self, name: str) -> Iterator[Table]:
        """P(name, other) for every other attribute, from a clique with the name outwards."""
        tree = self.layout.tree
        links: list[list[int]] = [[] for _ in self.beliefs]
        for i, above in enumerate(tree.parent):
            if above >= 0:
                links[i].append(above)
                links[above].append(i)
        home = min(
            (i for i, belief in enumerate(self.beliefs) if name in belief.axes),
            key=lambda i: self.beliefs[i].cells,
        )
        seen = {name}
        agenda: list[tuple[int, int, Table | None]] = [(home, -1, None)]
        while agenda:
            i, source, incoming = agenda.pop()
            belief = self.beliefs[i]
            shared = [] if incoming is None else [found for found in incoming.axes if found != name]
            for other in belief.axes:
                if other not in seen:
                    seen.add(other)
                    yield self._carry(belief, incoming, shared, name, (name, other))
            for j in links[i]:
                if j != source:
                    cut = self._separator(max(i, j))
                    wanted = (name, *(found for found in cut if found != name))
                    agenda.append((j, i, self._carry(belief, incoming, shared, name, wanted)))

    @staticmethod
    def _carry(
        belief: Table, incoming: Table | None, shared: list[str], name: str, wanted: tuple[str, ...]
    ) -> Table:
        if name in belief.axes:
            return belief.project(wanted)
        assert incoming is not None
        fresh = [found for found in wanted if found != name and found not in shared]
        local = belief.project([*shared, *fresh])
        given = local.project(shared).spread(local.axes)
        conditional = Table(
            local.axes, np.divide(local.values, given, out=np.zeros_like(local.values), where=given > 0)
        )
        return incoming.multiply(conditional).project(wanted)


def fit_margins(
    sizes: Mapping[str, int],
    margins: Sequence[Table],
    *,
    max_cells: int = 2**24,
    sweeps: int = SWEEPS,
    tolerance: float = TOLERANCE,
) -> CliqueModel:
    """The distribution of largest entropy with these margins, if they agree; else one that is near to all of them.

    Every attribute must be in some margin. A margin is a table of non-negative numbers; totals are taken as 1.
    """
    layout = Layout.plan(sizes, [table.axes for table in margins])
    if layout.cells > max_cells:
        raise TooLarge(
            f"a model of {len(margins)} margins would have {layout.cells:,} cells; allowed are {max_cells:,}"
        )
    ones = _single_margins(sizes, margins)
    beliefs = [_multiply_out([ones[name] for name in clique]) for clique in layout.cliques]
    wide = [table for table in margins if len(table.axes) > 1]
    fitter = _Fitter(layout, beliefs, [_raise_zeros(table, ones) for table in wide], ones)
    gap = 0.0
    for _ in range(sweeps if wide else 0):
        gap = fitter.sweep()
        if gap < tolerance:
            break
    fitter.spread()
    return CliqueModel(
        layout,
        tuple(Table(axes, belief) for axes, belief in zip(layout.cliques, fitter.beliefs, strict=True)),
        gap,
    )


@dataclass(slots=True, eq=False)
class _Target:
    """A margin as one clique sees it: which axes to sum out, how to broadcast back, and the values to reach."""

    drop: tuple[int, ...]
    shape: tuple[int, ...]
    values: Array


class _Fitter:
    """Iterative proportional fitting along a walk through the tree [Jiroušek and Přeučil 1995]."""

    def __init__(
        self, layout: Layout, beliefs: list[Array], margins: Sequence[Table], ones: Mapping[str, Array]
    ) -> None:
        self.layout, self.beliefs = layout, beliefs
        self._cliques = layout.cliques
        self._sizes = dict(zip(layout.names, layout.sizes, strict=True))
        self._targets: list[list[_Target]] = [[] for _ in beliefs]
        for table in margins:
            holders = [i for i, clique in enumerate(self._cliques) if set(table.axes) <= set(clique)]
            self._assign(min(holders, key=lambda i: beliefs[i].size), table)
        self._count = max(1, len(margins))
        self._below: list[list[int]] = [[] for _ in beliefs]
        for i, above in enumerate(layout.tree.parent):
            if above >= 0:
                self._below[above].append(i)
        self._separators = [
            tuple(layout.names[v] for v in layout.tree.separator(i)) if above >= 0 else ()
            for i, above in enumerate(layout.tree.parent)
        ]
        self._messages = [_multiply_out([ones[name] for name in axes]) for axes in self._separators]
        self._tour = list(self._walk())

    def sweep(self) -> float:
        """One walk over all cliques and back; the mean L1 distance from the margins on the way."""
        distances = [0.0] * len(self.beliefs)
        for what, i in self._tour:
            if what == "fit":
                distances[i] = self._scale(i)
            else:
                self._send(i, downwards=what == "down")
        return sum(distances) / self._count

    def spread(self) -> None:
        """Carry what the root knows to all others, so that every pair of neighbours agrees."""
        for i, above in enumerate(self.layout.tree.parent):
            if above >= 0:
                self._send(i, downwards=True)

    def _walk(self) -> Iterator[tuple[str, int]]:
        """The steps of a walk: fit a clique, or carry what is known down or up the separator above it."""
        agenda = [("visit", 0)]
        while agenda:
            what, i = agenda.pop()
            yield ("fit" if what == "visit" else what), i
            if what == "visit":
                for j in reversed(self._below[i]):
                    agenda += [("fit", i), ("up", j), ("visit", j), ("down", j)]

    def _assign(self, i: int, table: Table) -> None:
        axes = self._cliques[i]
        kept = [name for name in axes if name in table.axes]
        drop = tuple(k for k, name in enumerate(axes) if name not in table.axes)
        shape = tuple(self._sizes[name] if name in table.axes else 1 for name in axes)
        self._targets[i].append(_Target(drop, shape, table.project(kept).values))

    def _scale(self, i: int) -> float:
        belief, distance = self.beliefs[i], 0.0
        for target in self._targets[i]:
            now = belief.sum(axis=target.drop)
            distance += float(np.abs(now - target.values).sum())
            factor = np.divide(target.values, now, out=np.zeros_like(now), where=now > 0)
            belief *= factor.reshape(target.shape)
        return distance

    def _send(self, edge: int, *, downwards: bool) -> None:
        """Make the clique at the other end of a separator agree with the one at this end."""
        above = self.layout.tree.parent[edge]
        source, goal = (above, edge) if downwards else (edge, above)
        cut = self._separators[edge]
        new = self.beliefs[source].sum(
            axis=tuple(k for k, name in enumerate(self._cliques[source]) if name not in cut)
        )
        old = self._messages[edge]
        factor = np.divide(new, old, out=np.zeros_like(new), where=old > 0)
        self.beliefs[goal] *= factor.reshape([self._sizes[n] if n in cut else 1 for n in self._cliques[goal]])
        self._messages[edge] = new


def _single_margins(sizes: Mapping[str, int], margins: Sequence[Table]) -> dict[str, Array]:
    """The margin of every attribute, from the smallest table that has it."""
    ones: dict[str, Array] = {}
    for table in sorted(margins, key=lambda found: found.cells):
        for name in table.axes:
            if name not in ones:
                values = np.asarray(table.project([name]).values, dtype=np.float64)
                if values.shape != (sizes[name],) or not (values >= 0).all() or not values.sum() > 0:
                    raise TableError(
                        f"a margin over {table.axes} is not a non-negative table of the declared sizes"
                    )
                values = np.maximum(values / values.sum(), LEAST / values.size)
                ones[name] = values / values.sum()
    missing = [name for name in sizes if name not in ones]
    if missing:
        raise TableError(f"no margin says anything about {missing[0]!r}")
    return ones


def _raise_zeros(table: Table, ones: Mapping[str, Array]) -> Table:
    values = np.asarray(table.values, dtype=np.float64)
    floor = LEAST * _multiply_out([ones[name] for name in table.axes])
    values = np.maximum(values / values.sum(), floor)
    return Table(table.axes, values / values.sum())


def _multiply_out(factors: Sequence[Array]) -> Array:
    product = np.ones(())
    for factor in factors:
        product = np.multiply.outer(product, factor)
    return np.asarray(product)
