"""A distribution as the margins of the cliques of a junction tree: what it says of pairs, and its network."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.compute.triangulation import CliqueTree, clique_tree_of, find_order, interaction_graph, join
from discreet.values.graph import DAG
from discreet.values.table import Array, Table, count_cells

REACH_CELLS = 2**22
"""The largest table over an attribute and a separator that is made to find the margin of a pair: 32 megabytes."""
KEPT_CELLS = 2**21
"""Cells of conditionals that are kept on the way from margin to margin: 16 megabytes; beyond it all are forgotten."""


@dataclass(frozen=True, slots=True)
class ModelTree:
    """The cliques that a model over these attribute sets needs."""

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    joined: CliqueTree
    order: tuple[int, ...]
    """The order of elimination that made the tree."""
    neighbours: tuple[int, ...]
    """The attributes that share a set with each attribute, as bits."""

    @classmethod
    def plan(cls, sizes: Mapping[str, int], sets: Iterable[Sequence[str]]) -> ModelTree:
        """A junction tree in which every set lies in a clique."""
        names = tuple(sizes)
        place = {name: i for i, name in enumerate(names)}
        scopes = [[place[name] for name in members] for members in sets]
        levels = [sizes[name] for name in names]
        weights = [math.log2(size) for size in levels]
        graph = interaction_graph(scopes, len(names))
        order = find_order(graph, weights, range(len(names)))
        bits = tuple(sum(1 << v for v in found) for found in graph)
        return cls(names, tuple(levels), join(*clique_tree_of(graph, order), levels), tuple(order), bits)

    def add(self, members: Sequence[str]) -> ModelTree:
        """The tree with one more set in a clique by the same order of elimination: quick, and not always the least."""
        added = [self.names.index(name) for name in members]
        graph = [{u for u in range(bits.bit_length()) if bits >> u & 1} for bits in self.neighbours]
        for v in added:
            graph[v].update(u for u in added if u != v)
        bits = tuple(sum(1 << v for v in found) for found in graph)
        joined = join(*clique_tree_of(graph, self.order), self.sizes)
        return ModelTree(self.names, self.sizes, joined, self.order, bits)

    @property
    def cliques(self) -> tuple[tuple[str, ...], ...]:
        """The attributes of each clique, those before it in the tree first."""
        return tuple(tuple(self.names[v] for v in clique) for clique in self.joined.cliques)

    def separator(self, i: int) -> tuple[str, ...]:
        """The attributes that clique i shares with the clique that it hangs on."""
        return tuple(self.names[v] for v in self.joined.separator(i))

    @property
    def cells(self) -> int:
        """The cells of all cliques together."""
        return sum(count_cells(self.sizes[v] for v in clique) for clique in self.joined.cliques)

    def bound_pairs(self) -> dict[tuple[str, ...], int]:
        """For every pair, the earlier attribute first, cells that are enough if it had to share a clique as well.

        One of the two is added to all cliques on the way to the other, which leaves a junction tree; two attributes
        that nothing links yet get a clique of their own.
        """
        cells = [count_cells(self.sizes[v] for v in clique) for clique in self.joined.cliques]
        whole = sum(cells)
        links: list[list[int]] = [[] for _ in cells]
        linked: dict[tuple[int, int], bool] = {}
        for i, above in enumerate(self.joined.parent):
            if above >= 0:
                links[i].append(above)
                links[above].append(i)
                linked[i, above] = linked[above, i] = bool(self.joined.separator(i))
        found: dict[tuple[str, ...], int] = {}
        for v, name in enumerate(self.names):
            agenda = [(i, -1, 0, True) for i, clique in enumerate(self.joined.cliques) if v in clique]
            while agenda:
                i, source, added, near = agenda.pop()
                for u in self.joined.cliques[i]:
                    pair = (name, self.names[u]) if v < u else (self.names[u], name)
                    more = added if near else self.sizes[u] * self.sizes[v]
                    if u != v and found.get(pair, math.inf) > whole + more:
                        found[pair] = whole + more
                for j in links[i]:
                    if j != source and v not in self.joined.cliques[j]:
                        still = near and linked[i, j]
                        agenda.append((j, i, added + cells[j] * (self.sizes[v] - 1), still))
        return found

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

    tree: ModelTree
    beliefs: tuple[Table, ...]

    def pairs(self, wanted: Container[tuple[str, ...]] | None = None) -> Iterator[Table]:
        """The margins of all pairs of attributes, or of those that are wanted, each once, the earlier one first.

        A pair is left out where it would take a table of more than `REACH_CELLS` cells on the way to it.
        """
        walk, names = _Walk(self), self.tree.names
        for i, name in enumerate(names):
            others = [other for other in names[i + 1 :] if wanted is None or (name, other) in wanted]
            yield from walk.reach(name, frozenset(others))

    def margins(self, sets: Iterable[tuple[str, ...]]) -> Iterator[Table]:
        """The margins of these sets, each with its axes as given, in or across cliques.

        A set is left out where it would take a table of more than `REACH_CELLS` cells on the way to it.
        """
        gather = _Gather(self)
        for members in sets:
            found = gather.find(members)
            if found is not None:
                yield found

    def network(self) -> tuple[DAG, tuple[Table, ...]]:
        """The same distribution as a graph and its conditionals: in each clique, its new attributes one by one."""
        parents: dict[str, tuple[str, ...]] = {}
        tables: dict[str, Table] = {}
        for i, belief in enumerate(self.beliefs):
            above = self.tree.separator(i)
            for name in (found for found in belief.axes if found not in above):
                family = (*above, name)
                parents[name], tables[name] = above, belief.project(family).normalise(name)
                above = family
        names = self.tree.names
        return DAG.build({name: parents[name] for name in names}), tuple(tables[name] for name in names)


class _Walk:
    """Carries one attribute after the other through the tree: P(a, T) = Σ_S P(a, S)·P(T | S) from clique to clique.

    P(T | S) is the same for all of them, so it is worked out once for each separator S on the way into a clique.
    """

    def __init__(self, model: CliqueModel) -> None:
        self.beliefs = model.beliefs
        self._cuts: dict[tuple[int, int], tuple[str, ...]] = {}
        self._cut_cells: dict[tuple[int, int], int] = {}
        self._links: list[list[int]] = [[] for _ in model.beliefs]
        self._known: dict[tuple[int, int, tuple[str, ...]], Array] = {}
        parent = model.tree.joined.parent
        for i, above in enumerate(parent):
            if above >= 0:
                self._links[i].append(above)
                self._links[above].append(i)
                cut = self._cuts[i, above] = self._cuts[above, i] = model.tree.separator(i)
                cells = count_cells(self.beliefs[i].sizes[name] for name in cut)
                self._cut_cells[i, above] = self._cut_cells[above, i] = cells
        below = [set(belief.axes) for belief in model.beliefs]
        for i in range(len(parent) - 1, 0, -1):
            below[parent[i]] |= below[i]
        self._beyond: dict[tuple[int, int], frozenset[str]] = {}
        for i, above in enumerate(parent):
            if above >= 0:
                outside = frozenset(model.tree.names) - (below[i] - set(self._cuts[i, above]))
                self._beyond[above, i], self._beyond[i, above] = frozenset(below[i]), outside

    def reach(self, name: str, wanted: frozenset[str]) -> Iterator[Table]:
        """P(name, other) for every other attribute that is wanted, from a clique with the name outwards."""
        homes = [i for i, belief in enumerate(self.beliefs) if name in belief.axes]
        size = self.beliefs[homes[0]].sizes[name]
        left = set(wanted)
        # A clique, the one it is entered from, and P(name, separator) where the name is not in the clique itself.
        agenda: list[tuple[int, int, Table | None]] = [
            (min(homes, key=lambda i: self.beliefs[i].cells), -1, None)
        ]
        while agenda:
            i, source, incoming = agenda.pop()
            for other in self.beliefs[i].axes:
                if other in left:
                    left.discard(other)
                    yield self._carry(i, source, incoming, name, (other,))
            for j in self._links[i]:
                if j != source and self._beyond[i, j] & left:
                    if name in self.beliefs[j].axes:
                        agenda.append((j, i, None))
                    elif size * self._cut_cells[i, j] <= REACH_CELLS:
                        agenda.append((j, i, self._carry(i, source, incoming, name, self._cuts[i, j])))

    def _carry(
        self, i: int, source: int, incoming: Table | None, name: str, target: tuple[str, ...]
    ) -> Table:
        """P(name, target), the target in clique i."""
        belief = self.beliefs[i]
        if incoming is None:
            return belief.project((name, *target))
        cut = self._cuts[i, source]
        both = [found for found in cut if found in target]
        gone = [found for found in cut if found not in target]
        fresh = [found for found in target if found not in cut]
        key = i, source, target
        if key not in self._known:
            local = belief.project([*both, *gone, *fresh])
            given = local.project([*both, *gone]).spread(local.axes)
            shares = np.divide(local.values, given, out=np.zeros_like(local.values), where=given > 0)
            self._known[key] = shares.reshape(
                count_cells(belief.sizes[found] for found in both),
                count_cells(belief.sizes[found] for found in gone),
                -1,
            )
        known = self._known[key]
        message = incoming.arrange([*both, name, *gone]).values
        # einsum, not @: threads of a BLAS cost such small products more than they gain, most of all on a busy machine.
        values = np.einsum("ksg,kgf->ksf", message.reshape(known.shape[0], -1, known.shape[1]), known)
        shape = [*(belief.sizes[found] for found in both), incoming.sizes[name]]
        return Table(
            (*both, name, *fresh), values.reshape([*shape, *(belief.sizes[found] for found in fresh)])
        ).arrange((name, *target))


class _Gather:
    """Puts the margin of a set together in one clique: P(S) = Σ P(C)·Π P(what lies beyond a separator | separator).

    The conditionals are those of one or two attributes for most sets, so each is worked out once and kept, as long as
    there is room.
    """

    def __init__(self, model: CliqueModel) -> None:
        self.beliefs = model.beliefs
        tree = model.tree
        self._place = {name: v for v, name in enumerate(tree.names)}
        self._sizes = dict(zip(tree.names, tree.sizes, strict=True))
        self._axes = [tuple(self._place[name] for name in belief.axes) for belief in model.beliefs]
        self._homes: dict[str, list[int]] = {name: [] for name in tree.names}
        for i, belief in enumerate(model.beliefs):
            for name in belief.axes:
                self._homes[name].append(i)
        walk = _Walk(model)
        self._links, self._cuts, self._beyond = walk._links, walk._cuts, walk._beyond
        self._known: dict[tuple[int, int, frozenset[str]], tuple[Array, tuple[int, ...]] | None] = {}
        self._held = 0

    def find(self, members: tuple[str, ...]) -> Table | None:
        wanted = frozenset(members)
        counts: dict[int, int] = {}
        for name in members:
            for i in self._homes[name]:
                counts[i] = counts.get(i, 0) + 1
        root = min(counts, key=lambda i: (-counts[i], self.beliefs[i].cells, i))
        found = self._collect(root, -1, wanted, tuple(self._place[name] for name in members))
        return None if found is None else Table(members, found)

    def _collect(self, i: int, source: int, wanted: frozenset[str], out: tuple[int, ...]) -> Array | None:
        """The margin over `out` of clique i and of what lies beyond it, away from the source."""
        local = set(self.beliefs[i].axes)
        parts: list[tuple[Array, tuple[int, ...]]] = [(self.beliefs[i].values, self._axes[i])]
        left = wanted - local
        cells = self.beliefs[i].cells
        for j in self._links[i]:
            if j == source or not left:
                continue
            there = left & self._beyond[i, j]
            if there:
                left -= there
                part = self._condition(j, i, there)
                if part is None:
                    return None
                parts.append(part)
                cells *= count_cells(self._sizes[name] for name in there)
                if cells > REACH_CELLS:
                    return None
        # einsum numbers axes up to 52, so those of this sum are numbered by themselves.
        label = {axis: k for k, axis in enumerate(dict.fromkeys(a for _, axes in parts for a in axes))}
        operands: list[Any] = []
        for values, axes in parts:
            operands += [values, [label[axis] for axis in axes]]
        return np.asarray(np.einsum(*operands, [label[axis] for axis in out]))

    def _condition(self, i: int, source: int, wanted: frozenset[str]) -> tuple[Array, tuple[int, ...]] | None:
        """P(wanted | separator) on the way from clique i to the source."""
        key = i, source, wanted
        if key in self._known:
            return self._known[key]
        cut = self._cuts[i, source]
        axes = tuple(self._place[name] for name in (*cut, *sorted(wanted)))
        joint = self._collect(i, source, wanted, axes)
        found = None
        if joint is not None:
            given = joint.sum(axis=tuple(range(len(cut), len(axes))), keepdims=True)
            found = np.divide(joint, given, out=np.zeros_like(joint), where=given > 0), axes
            if self._held + joint.size > KEPT_CELLS:
                self._known, self._held = {}, 0
            self._held += joint.size
        self._known[key] = found
        return found
