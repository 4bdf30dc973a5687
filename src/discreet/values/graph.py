"""A directed acyclic graph over attributes: families, order, heights."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from discreet.values.errors import GraphError
from discreet.values.table import count_cells


@dataclass(frozen=True, slots=True)
class DAG:
    """An immutable directed acyclic graph; the order of a node's parents is the axis order of its table."""

    nodes: tuple[str, ...]
    parents: tuple[tuple[str, ...], ...]
    order: tuple[str, ...] = field(init=False, compare=False, repr=False)
    _index: dict[str, int] = field(init=False, compare=False, repr=False)
    _children: dict[str, tuple[str, ...]] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        if len(self.nodes) != len(self.parents):
            raise GraphError(f"{len(self.nodes)} nodes but {len(self.parents)} parent sets")
        index = {name: i for i, name in enumerate(self.nodes)}
        if len(index) != len(self.nodes):
            twice = next(name for name in self.nodes if self.nodes.count(name) > 1)
            raise GraphError(f"node {twice!r} is declared twice")
        children: dict[str, list[str]] = {name: [] for name in self.nodes}
        for name, parents in zip(self.nodes, self.parents, strict=True):
            if len(set(parents)) != len(parents):
                raise GraphError(f"node {name!r} lists a parent twice: {', '.join(parents)}")
            for parent in parents:
                if parent not in index:
                    raise GraphError(f"node {name!r} has the unknown parent {parent!r}")
                children[parent].append(name)
        object.__setattr__(self, "_index", index)
        object.__setattr__(self, "_children", {name: tuple(found) for name, found in children.items()})
        object.__setattr__(self, "order", self._sort())

    @classmethod
    def build(cls, parents: Mapping[str, Iterable[str]]) -> DAG:
        """A graph from a mapping of each node to its parents."""
        return cls(tuple(parents), tuple(tuple(found) for found in parents.values()))

    @classmethod
    def from_edges(cls, edges: Iterable[tuple[str, str]], nodes: Iterable[str] = ()) -> DAG:
        """A graph from (parent, child) pairs; `nodes` names isolated ones and fixes the order."""
        parents: dict[str, list[str]] = {name: [] for name in nodes}
        for parent, child in edges:
            parents.setdefault(parent, [])
            parents.setdefault(child, []).append(parent)
        return cls.build(parents)

    def arrange(self, names: Sequence[str]) -> DAG:
        """The same graph with its nodes in this order, that of a schema; refused if either lacks an attribute."""
        strange = sorted(set(self.nodes) ^ set(names))
        if strange:
            where = ("graph", "schema") if strange[0] in self else ("schema", "graph")
            raise GraphError(f"attribute {strange[0]!r} is in the {where[0]}, but not in the {where[1]}")
        return (
            self if self.nodes == tuple(names) else DAG.build({name: self.parents_of(name) for name in names})
        )

    def __contains__(self, name: object) -> bool:
        return name in self._index

    def __len__(self) -> int:
        return len(self.nodes)

    def index(self, name: str) -> int:
        """The position of a node."""
        try:
            return self._index[name]
        except KeyError:
            raise GraphError(f"unknown node {name!r}; the graph has {', '.join(self.nodes)}") from None

    def parents_of(self, name: str) -> tuple[str, ...]:
        """The parents of a node, in the axis order of its table."""
        return self.parents[self.index(name)]

    def children_of(self, name: str) -> tuple[str, ...]:
        """The children of a node, in node order."""
        self.index(name)
        return self._children[name]

    def family(self, name: str) -> tuple[str, ...]:
        """The parents of a node and then the node itself."""
        return (*self.parents_of(name), name)

    def families(self) -> tuple[tuple[str, ...], ...]:
        """Every family, in node order."""
        return tuple(self.family(name) for name in self.nodes)

    def maximal_families(self) -> tuple[tuple[str, ...], ...]:
        """The families that no other family contains; of two equal ones, the first."""
        families = [(family, frozenset(family)) for family in self.families()]
        return tuple(
            family
            for i, (family, members) in enumerate(families)
            if not any(
                members < other or (members == other and j < i) for j, (_, other) in enumerate(families)
            )
        )

    def edges(self) -> tuple[tuple[str, str], ...]:
        """Every (parent, child) pair."""
        return tuple(
            (parent, name) for name, found in zip(self.nodes, self.parents, strict=True) for parent in found
        )

    def out_degree(self, name: str) -> int:
        """The number of children of a node [000, Sec. 3.2]."""
        return len(self.children_of(name))

    def ancestors(self, names: Iterable[str]) -> frozenset[str]:
        """The named nodes and everything above them."""
        found: set[str] = set()
        agenda = list(names)
        while agenda:
            name = agenda.pop()
            if name not in found:
                found.add(name)
                agenda.extend(self.parents_of(name))
        return frozenset(found)

    def heights(self) -> dict[str, int]:
        """The length of the longest directed path from each node down to a leaf [000, Sec. 3.2]."""
        found: dict[str, int] = {}
        for name in reversed(self.order):
            found[name] = max((found[child] + 1 for child in self._children[name]), default=0)
        return {name: found[name] for name in self.nodes}

    def complexity(self, sizes: Mapping[str, int]) -> int:
        """The number of free parameters, C(G) = Σ |Π|·(|X| − 1) [003, Thm. 1]."""
        return sum(
            count_cells(sizes[parent] for parent in found) * (sizes[name] - 1)
            for name, found in zip(self.nodes, self.parents, strict=True)
        )

    def _cycle(self, waiting: Mapping[str, int]) -> list[str]:
        """Some cycle: every node that still waits has a parent that does, so climbing must come round."""
        climbed: dict[str, int] = {}
        name = next(name for name in self.nodes if waiting[name])
        while name not in climbed:
            climbed[name] = len(climbed)
            name = next(parent for parent in self.parents_of(name) if waiting[parent])
        return list(climbed)[climbed[name] :]

    def _sort(self) -> tuple[str, ...]:
        waiting = {name: len(found) for name, found in zip(self.nodes, self.parents, strict=True)}
        ready = [name for name in self.nodes if not waiting[name]]
        order: list[str] = []
        for name in ready:  # grows while it is read: Kahn's algorithm, stable in node order
            order.append(name)
            for child in self._children[name]:
                waiting[child] -= 1
                if not waiting[child]:
                    ready.append(child)
        if len(order) < len(self.nodes):
            raise GraphError(f"the graph has a cycle through {', '.join(sorted(self._cycle(waiting))[:5])}")
        return tuple(order)
