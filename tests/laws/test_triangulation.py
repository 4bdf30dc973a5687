"""Junction trees: what makes them right, whatever the order of elimination; and wide networks stay cheap."""

from __future__ import annotations

import random
import time

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.compute.triangulation import (
    RULES,
    CliqueTree,
    clique_tree_of,
    cliques_of,
    eliminate_greedily,
    interaction_graph,
    join,
    triangulate,
)
from discreet.networks.network import Network

Scopes = list[list[int]]


@st.composite
def scopes(draw: st.DrawFn) -> tuple[Scopes, list[int]]:
    """The scopes of up to 14 tables over up to 12 variables, each variable in at least one."""
    count = draw(st.integers(1, 12))
    some = st.lists(st.integers(0, count - 1), min_size=1, max_size=4, unique=True)
    return [*draw(st.lists(some, max_size=14)), *([v] for v in range(count))], [
        draw(st.integers(2, 5)) for _ in range(count)
    ]


def assert_junction_tree(tree: CliqueTree, tables: Scopes, variables: int) -> None:
    """Every table fits a clique, no clique is inside another, and each variable's cliques hang together."""
    cliques = [set(clique) for clique in tree.cliques]
    assert all(any(clique.issuperset(scope) for clique in cliques) for scope in tables)
    assert not any(a <= b for i, a in enumerate(cliques) for j, b in enumerate(cliques) if i != j)
    assert tree.parent[0] == -1
    assert all(0 <= tree.parent[i] < i for i in range(1, len(cliques)))
    for v in range(variables):
        tops = [
            i
            for i, clique in enumerate(cliques)
            if v in clique and (i == 0 or v not in cliques[tree.parent[i]])
        ]
        assert len(tops) == 1
    for i in range(1, len(cliques)):
        assert set(tree.separator(i)) == cliques[i] & cliques[tree.parent[i]]
    assert tree.separator(0) == ()


@settings(deadline=None, max_examples=80)
@given(scopes())
def test_the_tree_is_a_junction_tree(case: tuple[Scopes, list[int]]) -> None:
    tables, sizes = case
    tree = join(*triangulate(tables, sizes), sizes)
    assert_junction_tree(tree, tables, len(sizes))
    assert join(*triangulate(tables, sizes), sizes) == tree
    assert all(clique == tuple(sorted(clique)) for clique in tree.cliques)


@settings(deadline=None, max_examples=80)
@given(scopes(), st.randoms(use_true_random=False))
def test_any_order_of_elimination_gives_the_cliques_of_a_chordal_graph(
    case: tuple[Scopes, list[int]], rng: random.Random
) -> None:
    tables, sizes = case
    graph = interaction_graph(tables, len(sizes))
    order = list(range(len(sizes)))
    rng.shuffle(order)
    cliques, links = clique_tree_of(graph, order)
    filled = networkx.Graph()
    filled.add_nodes_from(order)
    filled.add_edges_from((a, b) for clique in cliques for a in clique for b in clique if a < b)
    assert all(filled.has_edge(a, b) for a in order for b in graph[a])
    assert networkx.is_chordal(filled)
    assert set(cliques) == {frozenset(found) for found in networkx.find_cliques(filled)}
    assert cliques_of(graph, order) == cliques
    assert_junction_tree(join(cliques, links, sizes), tables, len(sizes))
    forest = networkx.Graph(links)
    assert len(links) == len(cliques) - networkx.number_connected_components(filled)
    assert not links or networkx.is_forest(forest)


@settings(deadline=None, max_examples=80)
@given(scopes(), st.data())
def test_greedy_orders_are_orders_and_leave_chordal_graphs_as_they_are(
    case: tuple[Scopes, list[int]], data: st.DataObject
) -> None:
    tables, sizes = case
    graph = interaction_graph(tables, len(sizes))
    wanted = data.draw(st.sets(st.integers(0, len(sizes) - 1)))
    before = [set(found) for found in graph]
    plain = networkx.Graph([(a, b) for a in range(len(sizes)) for b in graph[a]])
    plain.add_nodes_from(range(len(sizes)))
    for rule in RULES:
        weights = [float(size) for size in sizes]
        assert sorted(eliminate_greedily(graph, weights, rule, wanted, random.Random(0))) == sorted(wanted)
        order = eliminate_greedily(graph, weights, rule, range(len(sizes)), random.Random(0))
        if networkx.is_chordal(plain):
            assert set(cliques_of(graph, order)) == {frozenset(c) for c in networkx.find_cliques(plain)}
    assert graph == before


@pytest.mark.parametrize("chained", [False, True], ids=["naive Bayes", "with a chain of leaves"])
def test_a_class_with_thousands_of_leaves_is_cheap(chained: bool) -> None:
    """Looking at all pairs of cliques that share the class took a minute for 1000 leaves."""
    count = 3000
    leaves = [f"x{i}" for i in range(count)]
    parents = {"class": [], **{name: ["class"] for name in leaves}}
    if chained:
        parents |= {leaves[i]: ["class", leaves[i - 1]] for i in range(1, count)}
    rng = np.random.default_rng(0)
    cpts = {name: rng.dirichlet([5, 5], size=[2] * len(found)) for name, found in parents.items()}
    network = Network.build({name: ["0", "1"] for name in parents}, parents, cpts)
    start = time.process_time()
    tree = network.engine.junction.tree
    assert time.process_time() - start < 10
    assert sum(2 ** len(clique) for clique in tree.cliques) == (8 * (count - 1) if chained else 4 * count)
