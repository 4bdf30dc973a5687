"""From the scopes of tables to a junction tree: elimination orders, cliques, and the tree that joins them."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import inf, log2

from discreet.values.errors import TooLarge
from discreet.values.patience import require_time
from discreet.values.text import show_count

Neighbours = list[set[int]]
Cost = Callable[[Neighbours, Sequence[float], int], float]


@dataclass(frozen=True, slots=True)
class CliqueTree:
    """Cliques in depth-first order: `parent[i] < i`, `parent[0]` is -1; empty separators join a forest."""

    cliques: tuple[tuple[int, ...], ...]
    parent: tuple[int, ...]

    def separator(self, i: int) -> tuple[int, ...]:
        """The variables that clique `i` shares with its parent, in the order of clique `i`."""
        if self.parent[i] < 0:
            return ()
        above = set(self.cliques[self.parent[i]])
        return tuple(v for v in self.cliques[i] if v in above)


def interaction_graph(scopes: Iterable[Sequence[int]], variables: int) -> Neighbours:
    """Each variable with those that share a table with it."""
    neighbours: Neighbours = [set() for _ in range(variables)]
    for scope in scopes:
        for v in scope:
            neighbours[v].update(scope)
    for v, found in enumerate(neighbours):
        found.discard(v)
    return neighbours


def fill_edges(neighbours: Neighbours, weights: Sequence[float], v: int) -> float:
    """Min-fill: the number of edges that eliminating `v` adds."""
    around = neighbours[v]
    k = len(around)
    present = sum(len(neighbours[u] & around) for u in around)
    return (k * (k - 1) - present) / 2


def fill_weight(neighbours: Neighbours, weights: Sequence[float], v: int) -> float:
    """Weighted min-fill: the added edges, each weighted by the product of its ends' sizes."""
    around = neighbours[v]
    return sum(2 ** (weights[a] + weights[b]) for a, b in combinations(around, 2) if b not in neighbours[a])


def clique_weight(neighbours: Neighbours, weights: Sequence[float], v: int) -> float:
    """Min-weight: the logarithm of the number of cells of the clique that eliminating `v` makes."""
    return weights[v] + sum(weights[u] for u in neighbours[v])


WIDE = 64
"""A variable with more neighbours, or in more cliques, is not looked at for each of them: that would be quadratic."""

RULES: tuple[Cost, ...] = (clique_weight, fill_edges, fill_weight)


HOPELESS = 1000
"""How many times more cells than are allowed no other order would save."""


def eliminate_greedily(
    graph: Neighbours,
    weights: Sequence[float],
    rule: Cost,
    eliminated: Iterable[int],
    rng: random.Random | None = None,
    most: float = inf,
) -> list[int]:
    """Order `eliminated` by the least cost of `rule`; ties are broken by clique weight, then at random.

    Without an `rng` the order is the same every time. There is none if a clique would weigh more than `most`: the last
    cliques of a hopeless graph are its largest, and would take minutes.

    Variables whose neighbours are all neighbours of each other go first: their cliques are in every triangulation.
    """
    ties = rng or random.Random(0)
    neighbours = [set(found) for found in graph]
    version = [0] * len(neighbours)
    left = set(eliminated)
    order = _peel(neighbours, left)

    def price(v: int) -> tuple[float, float, float, int, int]:
        return (
            rule(neighbours, weights, v),
            clique_weight(neighbours, weights, v),
            ties.random(),
            v,
            version[v],
        )

    heap = [price(v) for v in sorted(left)]
    heapq.heapify(heap)
    while left:
        *_, v, stamp = heapq.heappop(heap)
        if v not in left or stamp != version[v]:
            continue
        if clique_weight(neighbours, weights, v) > most:
            return []
        around = neighbours[v]
        new = [(a, b) for a, b in combinations(around, 2) if b not in neighbours[a]]
        for a, b in new:
            neighbours[a].add(b)
            neighbours[b].add(a)
        for u in around:
            neighbours[u].discard(v)
        neighbours[v] = set()
        left.discard(v)
        order.append(v)
        # A new edge changes the fill of every variable that sees both of its ends.
        changed = set(around)
        for a, b in new:
            changed |= neighbours[a] & neighbours[b]
        for u in changed & left:
            version[u] += 1
            heapq.heappush(heap, price(u))
    return order


def _peel(neighbours: Neighbours, left: set[int]) -> list[int]:
    """Take out of `left` and of the graph, again and again, what adds no edge; leaves cost their hub nothing."""
    order: list[int] = []
    agenda = sorted(left, reverse=True)
    while agenda:
        v = agenda.pop()
        around = neighbours[v]
        if v not in left or not all(len(neighbours[u] & around) == len(around) - 1 for u in around):
            continue
        for u in around:
            neighbours[u].discard(v)
        agenda += sorted((u for u in around if len(neighbours[u]) < WIDE), reverse=True)
        neighbours[v] = set()
        left.discard(v)
        order.append(v)
    return order


def cliques_of(graph: Neighbours, order: Sequence[int]) -> list[frozenset[int]]:
    """The maximal cliques of the graph triangulated by eliminating in this order, in order of appearance."""
    return clique_tree_of(graph, order)[0]


def clique_tree_of(
    graph: Neighbours, order: Sequence[int]
) -> tuple[list[frozenset[int]], list[tuple[int, int]]]:
    """The maximal cliques of `cliques_of`, and the pairs of their positions that join them into a junction tree.

    Each variable's clique hangs on that of its neighbour eliminated next; one that only lacks the variable is no
    clique of its own and is merged into it.
    """
    neighbours = [set(found) for found in graph]
    turn = {v: k for k, v in enumerate(order)}
    cliques: dict[int, frozenset[int]] = {}
    for v in order:
        around = neighbours[v]
        cliques[v] = frozenset(around | {v})
        for u in around:
            neighbours[u].update(w for w in around if w != u)
            neighbours[u].discard(v)
    owner: dict[int, int] = {}
    links: list[tuple[int, int]] = []
    for v in order:
        owner.setdefault(v, v)
        above = min((u for u in cliques[v] if u != v and u in turn), key=turn.__getitem__, default=None)
        if above is None:
            continue
        if above not in owner and len(cliques[above]) == len(cliques[v]) - 1:
            owner[above] = owner[v]
        else:
            links.append((v, above))
    leaders = [v for v in order if owner[v] == v]
    position = {v: k for k, v in enumerate(leaders)}
    return [cliques[v] for v in leaders], [(position[owner[a]], position[owner[b]]) for a, b in links]


def total_cells(cliques: Iterable[Iterable[int]], weights: Sequence[float]) -> float:
    """The number of cells over all cliques, as a float because it may be astronomical."""
    return sum(2.0 ** min(1000.0, sum(weights[v] for v in clique)) for clique in cliques)


def find_order(graph: Neighbours, weights: Sequence[float], eliminated: Sequence[int]) -> list[int]:
    """The order with the fewest cells that the greedy rules find; the same input gives the same one."""
    orders = [eliminate_greedily(graph, weights, rule, eliminated, random.Random(0)) for rule in RULES]
    return min(orders, key=lambda order: total_cells(cliques_of(graph, order), weights))


def triangulate(
    scopes: Sequence[Sequence[int]], sizes: Sequence[int], max_cells: float = inf, tries: int = 3
) -> tuple[list[frozenset[int]], list[tuple[int, int]]]:
    """The cheapest triangulation that the greedy rules find, as `clique_tree_of`; the same input gives the same one."""
    graph = interaction_graph(scopes, len(sizes))
    weights = [log2(size) for size in sizes]
    core = set(range(len(sizes)))
    peeled = _peel([set(found) for found in graph], core)
    # With no core the graph is chordal, and there is nothing to choose.
    best = None if core else (0.0, peeled)
    most = log2(HOPELESS * max_cells)
    for attempt in range(tries if core else 0):
        for rule in RULES:
            require_time()
            order = eliminate_greedily(graph, weights, rule, range(len(sizes)), random.Random(attempt), most)
            cells = total_cells(cliques_of(graph, order), weights) if order else inf
            if order and (best is None or cells < best[0]):
                best = cells, order
        if best is None:
            raise TooLarge(
                f"exact inference needs more than {show_count(int(HOPELESS * max_cells))} cells in every order that "
                f"was tried; at most {show_count(int(max_cells))} are allowed"
            )
        if best[0] < 4096 or best[0] > HOPELESS * max_cells:
            break  # nothing to gain: the tree fits in the first-level cache, or no luck would make it fit at all
    assert best is not None
    return clique_tree_of(graph, best[1])


def join(
    cliques: Sequence[frozenset[int]], joined: Iterable[tuple[int, int]], sizes: Sequence[int]
) -> CliqueTree:
    """A maximum spanning tree by separator size, rooted near its centre, in depth-first order.

    `joined` is a junction tree already, so the pairs left out for variables in many cliques cannot be missed.
    """
    weights = [log2(size) for size in sizes]
    home: dict[int, list[int]] = {}
    for i, clique in enumerate(cliques):
        for v in clique:
            home.setdefault(v, []).append(i)
    pairs = {pair for members in home.values() if len(members) <= WIDE for pair in combinations(members, 2)}
    pairs |= {(min(pair), max(pair)) for pair in joined}
    ranked = sorted(
        pairs,
        key=lambda pair: (
            -len(cliques[pair[0]] & cliques[pair[1]]),
            sum(weights[v] for v in cliques[pair[0]] | cliques[pair[1]]),
            pair,
        ),
    )
    leader = list(range(len(cliques)))

    def find(i: int) -> int:
        while leader[i] != i:
            leader[i] = leader[leader[i]]
            i = leader[i]
        return i

    links: list[list[int]] = [[] for _ in cliques]
    for a, b in [*ranked, *((0, i) for i in range(1, len(cliques)))]:  # the last join what shares nothing
        if find(a) != find(b):
            leader[find(a)] = find(b)
            links[a].append(b)
            links[b].append(a)
    root = _centre(links)
    order: list[int] = []
    above: dict[int, int] = {root: -1}
    agenda = [root]
    while agenda:
        i = agenda.pop()
        order.append(i)
        for j in links[i]:
            if j not in above:
                above[j] = i
                agenda.append(j)
    position = {i: k for k, i in enumerate(order)}
    return CliqueTree(
        tuple(tuple(sorted(cliques[i])) for i in order),
        tuple(position[above[i]] if above[i] >= 0 else -1 for i in order),
    )


def _centre(links: list[list[int]]) -> int:
    """The node left last when leaves are pruned layer by layer."""
    degree = [len(found) for found in links]
    layer = [i for i, k in enumerate(degree) if k <= 1]
    last = layer
    while layer:
        last = layer
        following = []
        for i in layer:
            degree[i] = 0
            for j in links[i]:
                if degree[j] > 0:
                    degree[j] -= 1
                    if degree[j] == 1:
                        following.append(j)
        layer = following
    return min(last)
