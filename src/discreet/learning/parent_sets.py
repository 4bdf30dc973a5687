"""Which parent sets a search may look at: by degree or by cells, and by what people know already."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from discreet.values.errors import GraphError, TooLarge
from discreet.values.graph import DAG
from discreet.values.schema.encoding import Encoding
from discreet.values.table import count_cells

MOST_CANDIDATES = 2**18
"""A choice looks at no more candidates than this: their list alone takes a hundred megabytes."""

Edge = tuple[str, str]
"""(parent, child)"""
Coarser = Mapping[str, tuple[str, ...]]
"""The coarser versions of an attribute that may stand for it as a parent, finest first."""


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What is known of the graph without the rows: edges that must or must not be, an order, a graph to grow from."""

    names: tuple[str, ...]
    required: frozenset[Edge] = frozenset()
    forbidden: frozenset[Edge] = frozenset()
    order: tuple[str, ...] | None = None
    start: DAG | None = None

    def __post_init__(self) -> None:
        for parent, child in self.required | self.forbidden:
            for name in (parent, child):
                if name not in self.names:
                    raise GraphError(f"an edge names {name!r}, which is not in the schema")
            if parent == child:
                raise GraphError(f"an edge cannot lead from {parent!r} to itself")
        both = sorted(self.required & self.forbidden)
        if both:
            raise GraphError(f"the edge {both[0][0]} → {both[0][1]} is both required and forbidden")
        DAG.from_edges(sorted(self.required), self.names)  # refuses a cycle
        if self.order is not None:
            self._require_order(self.order)
        if self.start is not None:
            self._require_start(self.start)

    @classmethod
    def read(
        cls,
        encoding: Encoding,
        required: Iterable[Edge],
        forbidden: Iterable[Edge],
        order: Sequence[str] | None,
        start: DAG | None,
    ) -> Knowledge:
        """What the arguments of a search say of the declared attributes, put in terms of those that are searched."""
        if start is not None and not isinstance(start, DAG):
            raise GraphError(f"the graph to start from must be a DAG, not a {type(start).__name__}")
        known = cls(
            encoding.schema.names,
            _read_edges(required),
            _read_edges(forbidden),
            None if order is None else tuple(order),
            start,
        )
        if encoding.kind != "binary":
            return known
        if known.required or start is not None:
            raise GraphError(
                "the binary encoding takes no required edge and no graph to start from; use the vanilla encoding"
            )
        return replace(
            known,
            names=encoding.view.names,
            forbidden=frozenset(
                edge
                for parent, child in known.forbidden
                for edge in itertools.product(encoding.spell(parent), encoding.spell(child))
            ),
            order=None
            if known.order is None
            else tuple(part for name in known.order for part in encoding.spell(name)),
        )

    def needs(self, child: str) -> tuple[str, ...]:
        """The parents that a node must have, in schema order."""
        return tuple(name for name in self.names if (name, child) in self.required)

    def allows(self, parent: str, child: str) -> bool:
        """Whether the edge is not forbidden."""
        return (parent, child) not in self.forbidden

    def firsts(self) -> tuple[str, ...]:
        """The attributes with which a search may begin."""
        if self.order is not None:
            return self.order[:1]
        return tuple(name for name in self.names if not self.needs(name))

    def nexts(self, placed: Collection[str]) -> tuple[str, ...]:
        """The attributes that may come next."""
        left = [name for name in self.order or self.names if name not in placed]
        if self.order is not None:
            return tuple(left[:1])
        return tuple(name for name in left if all(parent in placed for parent in self.needs(name)))

    def list_largest(self, sizes: Mapping[str, int], degree: int | None) -> list[tuple[str, ...]]:
        """The largest families that a search may have to measure together: of this degree, or as far as required.

        Whatever it chooses, d − k families of degree k answer for all others.
        """
        families = []
        for child in self.names:
            needed = self.needs(child)
            others = sorted(
                (sizes[name], name) for name in self.names if name != child and name not in needed
            )
            more = others[len(others) - max(0, (degree or 0) - len(needed)) :]
            families.append((*needed, *(name for _, name in more), child))
        families.sort(key=lambda family: -count_cells(sizes[name] for name in family))
        return families[: max(1, len(families) - (degree or 0))]

    def _require_order(self, order: tuple[str, ...]) -> None:
        if sorted(order) != sorted(self.names):
            raise GraphError(
                f"the order has {len(order)} names; it must have every attribute of the schema once"
            )
        place = {name: i for i, name in enumerate(order)}
        for parent, child in sorted(self.required):
            if place[parent] > place[child]:
                raise GraphError(
                    f"the order puts {child!r} before {parent!r}, but {parent} → {child} is required"
                )

    def _require_start(self, start: DAG) -> None:
        strange = [name for name in start.nodes if name not in self.names]
        if strange:
            raise GraphError(f"the graph to start from has {strange[0]!r}, which is not in the schema")
        edges = set(start.edges())
        clash = sorted(edges & self.forbidden) or sorted(
            (parent, child) for parent, child in self.required - edges if child in start
        )
        if clash:
            raise GraphError(
                f"the graph to start from disagrees about the edge {clash[0][0]} → {clash[0][1]}"
            )
        if self.order is not None and sorted(self.order[: len(start)]) != sorted(start.nodes):
            raise GraphError("the order must begin with the attributes of the graph to start from")


def _read_edges(edges: Iterable[Edge]) -> frozenset[Edge]:
    found = set()
    for edge in edges:
        if isinstance(edge, str) or len(edge) != 2:
            raise GraphError(f"an edge must be a pair (parent, child), not {edge!r}")
        found.add((edge[0], edge[1]))
    return frozenset(found)


def choose_degree(rows: float, noise_at: Mapping[int, float], theta: float) -> int:
    """The largest k for which n/2^(k+1) rows in a cell are θ times the noise; 0 if there is none [004, Lemma 3].

    `noise_at[k]` is the mean absolute noise if the d − k tables of degree k share the budget.
    """
    useful = [k for k, noise in noise_at.items() if k >= 1 and rows / 2 ** (k + 1) >= theta * noise]
    return max(useful, default=0)


def choose_room(rows: float, noise: float, theta: float) -> int:
    """The most cells of a family whose mean count is θ times the noise [004, Def. 5, for any sizes]."""
    return max(0, math.floor(rows / (theta * noise)))


def limit_degree(
    attributes: int, degree: int, most: int = MOST_CANDIDATES, heights: Sequence[int] = ()
) -> int:
    """The largest degree up to this one at which no choice among all attributes has too many candidates.

    `heights` are the numbers of versions of each attribute that can be a parent, where there is more than one.
    """
    tallest = sorted(heights, reverse=True)

    def count(k: int) -> int:
        return max(((attributes - i) * choose(i, min(k, i)) for i in range(1, attributes)), default=0)

    def choose(i: int, k: int) -> int:
        if not tallest:
            return math.comb(i, k)
        ways = [1] + [0] * k  # ways to take j attributes, each in one of its versions
        for height in tallest[:i]:
            ways = [ways[0], *(ways[j] + height * ways[j - 1] for j in range(1, k + 1))]
        return ways[k]

    return next((k for k in range(degree, 0, -1) if count(k) <= most), min(degree, 1))


def fixed_sets(pool: Sequence[str], needed: Sequence[str], degree: int) -> Iterator[tuple[str, ...]]:
    """All sets of min(k, |V|) parents that hold the needed ones [004, Alg. 2, line 5]."""
    free = [name for name in pool if name not in needed]
    extra = max(0, min(degree, len(pool)) - len(needed))
    if not needed:
        yield from itertools.combinations(free, extra)
        return
    for more in itertools.combinations(free, extra):
        yield tuple(name for name in pool if name in needed or name in more)


def maximal_sets(
    pool: Sequence[str],
    needed: Sequence[str],
    sizes: Mapping[str, int],
    room: int,
    degree: int,
    coarser: Coarser = MappingProxyType({}),
) -> Iterator[tuple[str, ...]]:
    """All parent sets with at most `room` joint levels and `degree` members to which no attribute can be added.

    Where attributes have `coarser` versions, a set takes at most one of each, and none that could be finer.
    """
    ladders = [(name, *coarser.get(name, ())) for name in pool if name not in needed]
    base = count_cells(sizes[name] for name in needed)
    smallest = [math.inf] * (len(ladders) + 1)  # the least size among those that come later
    for i in range(len(ladders) - 1, -1, -1):
        smallest[i] = min(smallest[i + 1], sizes[ladders[i][-1]])

    def grow(
        i: int, taken: tuple[str, ...], cells: int, skipped: float, refined: float
    ) -> Iterator[tuple[str, ...]]:
        full = len(needed) + len(taken) >= degree
        if full or i == len(ladders) or cells * smallest[i] > room:
            # Something that was left out would still fit, or a finer version: another branch has the larger set.
            if (full or cells * skipped > room) and cells * refined > room + 0.5:
                yield taken
            return
        finer = math.inf
        for version in ladders[i]:
            size = sizes[version]
            if cells * size <= room:
                yield from grow(i + 1, (*taken, version), cells * size, skipped, min(refined, finer / size))
            finer = size
        yield from grow(i + 1, taken, cells, min(skipped, sizes[ladders[i][-1]]), refined)

    if base > room or len(needed) > degree:
        yield tuple(needed)
        return
    place = {version: i for i, name in enumerate(pool) for version in (name, *coarser.get(name, ()))}
    for more in grow(0, (), base, math.inf, math.inf):
        yield tuple(sorted((*needed, *more), key=place.__getitem__))


@dataclass(frozen=True, slots=True)
class Bounds:
    """How large a family may get: a degree, and a number of cells."""

    degree: int
    cells: int | None
    """None for a fixed degree: every set then has exactly min(k, |V|) parents, as printed."""

    def list_sets(
        self,
        child: str,
        placed: Sequence[str],
        knowledge: Knowledge,
        sizes: Mapping[str, int],
        coarser: Coarser = MappingProxyType({}),
    ) -> Iterator[tuple[str, ...]]:
        """The parent sets that a child may get from those that are placed."""
        pool = [name for name in placed if knowledge.allows(name, child)]
        needed = knowledge.needs(child)
        if self.cells is None:
            return fixed_sets(pool, needed, self.degree)
        return maximal_sets(pool, needed, sizes, self.cells // sizes[child], self.degree, coarser)


def list_candidates(
    placed: Sequence[str],
    knowledge: Knowledge,
    sizes: Mapping[str, int],
    bounds: Bounds,
    most: int = MOST_CANDIDATES,
    coarser: Coarser = MappingProxyType({}),
) -> list[tuple[str, ...]]:
    """Every family (parents in the order placed, then the child) that may come next; those without parents as (child,).

    Refused, before anything is counted, if there are more than `most`.
    """
    found: list[tuple[str, ...]] = []
    for child in knowledge.nexts(placed):
        for parents in bounds.list_sets(child, placed, knowledge, sizes, coarser):
            found.append((*parents, child))
            if len(found) > most:
                raise TooLarge(
                    f"after {len(placed)} attributes there are more than {most:,} families of up to "
                    f"{bounds.degree} parents to choose from; set a smaller k"
                )
    return found
