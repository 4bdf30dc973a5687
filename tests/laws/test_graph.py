"""Graphs: everything derived from the parents equals its definition, by brute force or by networkx."""

from __future__ import annotations

from itertools import combinations, product

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.networks.network import Network
from discreet.values.errors import GraphError
from discreet.values.graph import DAG


@st.composite
def dags(draw: st.DrawFn, most: int = 8) -> DAG:
    """Any graph of up to `most` nodes, declared in an order that is not a topological one."""
    count = draw(st.integers(1, most))
    order = draw(st.permutations([f"n{i}" for i in range(count)]))
    parents = {
        name: draw(st.lists(st.sampled_from(order[:i]), max_size=4, unique=True)) if i else []
        for i, name in enumerate(order)
    }
    return DAG.build({name: parents[name] for name in draw(st.permutations(order))})


def paths(dag: DAG, start: str) -> list[list[str]]:
    """Every directed path from a node down to a leaf."""
    children = [child for parent, child in dag.edges() if parent == start]
    return [[start, *rest] for child in children for rest in paths(dag, child)] or [[start]]


def as_networkx(dag: DAG) -> networkx.DiGraph:
    graph = networkx.DiGraph()
    graph.add_nodes_from(dag.nodes)
    graph.add_edges_from(dag.edges())
    return graph


@settings(deadline=None, max_examples=100)
@given(dags())
def test_order_heights_and_relatives(dag: DAG) -> None:
    assert sorted(dag.order) == sorted(dag.nodes)
    assert all(dag.order.index(parent) < dag.order.index(child) for parent, child in dag.edges())
    graph = as_networkx(dag)
    heights = dag.heights()
    assert list(heights) == list(dag.nodes)
    for name in dag.nodes:
        assert heights[name] == max(len(path) for path in paths(dag, name)) - 1
        assert dag.ancestors([name]) == networkx.ancestors(graph, name) | {name}
        assert set(dag.children_of(name)) == set(graph.successors(name))
        assert dag.out_degree(name) == graph.out_degree(name)
        assert dag.family(name) == (*dag.parents_of(name), name)
        assert dag.nodes[dag.index(name)] == name
        assert name in dag
    assert dag.ancestors(dag.nodes) == frozenset(dag.nodes)
    assert dag.ancestors([]) == frozenset()
    assert len(dag) == len(dag.nodes)


@settings(deadline=None, max_examples=100)
@given(dags())
def test_the_maximal_families_contain_all_others(dag: DAG) -> None:
    families = [set(family) for family in dag.families()]
    maximal = [set(family) for family in dag.maximal_families()]
    assert all(family in families for family in maximal)
    assert not any(a <= b for a, b in combinations(maximal, 2))
    assert not any(b <= a for a, b in combinations(maximal, 2))
    assert all(any(family <= found for found in maximal) for family in families)


@settings(deadline=None, max_examples=60)
@given(dags(5), st.integers(0, 2**32 - 1), st.data())
def test_what_is_separate_is_independent(dag: DAG, seed: int, data: st.DataObject) -> None:
    """With tables drawn at random, a posterior moves exactly when the graph says that it may."""
    graph, rng = as_networkx(dag), np.random.default_rng(seed)
    cpts = {name: rng.dirichlet([1, 1, 1], size=[3] * len(dag.parents_of(name))) for name in dag.nodes}
    network = Network.build({name: ["a", "b", "c"] for name in dag.nodes}, dag, cpts)
    target = data.draw(st.sampled_from(dag.nodes))
    observed = data.draw(st.sets(st.sampled_from(dag.nodes))) - {target}
    base = dict.fromkeys(observed, "a")
    before = network.query(target, base).probabilities
    for other in set(dag.nodes) - observed - {target}:
        after = network.query(target, {**base, other: "b"}).probabilities
        moved = float(np.abs(after - before).max())
        if not networkx.is_d_separator(graph, {target}, {other}, observed):
            assert moved > 1e-13  # tables at random are never unlucky, but the path may be long
        else:
            assert moved < 1e-12


@settings(deadline=None, max_examples=60)
@given(dags(), st.data())
def test_the_complexity_counts_free_parameters(dag: DAG, data: st.DataObject) -> None:
    sizes = {name: data.draw(st.integers(2, 5)) for name in dag.nodes}
    rows = {name: list(product(*(range(sizes[p]) for p in dag.parents_of(name)))) for name in dag.nodes}
    assert dag.complexity(sizes) == sum(len(rows[name]) * (sizes[name] - 1) for name in dag.nodes)


@settings(deadline=None, max_examples=60)
@given(dags())
def test_edges_rebuild_the_graph(dag: DAG) -> None:
    again = DAG.from_edges(dag.edges(), dag.nodes)
    assert again == dag
    assert hash(again) == hash(dag)
    assert DAG.build(dict(zip(dag.nodes, dag.parents, strict=True))) == dag


def test_known_sizes() -> None:
    """A chain, and 64 binary parents: the number of parameters is exact, however large."""
    chain = DAG.from_edges([("a", "b"), ("b", "c")])
    assert chain.heights() == {"a": 2, "b": 1, "c": 0}
    assert chain.complexity({"a": 2, "b": 3, "c": 4}) == 1 + 2 * 2 + 3 * 3
    wide = DAG.build({**{f"p{i}": [] for i in range(64)}, "child": [f"p{i}" for i in range(64)]})
    assert wide.complexity(dict.fromkeys(wide.nodes, 2)) == 64 + 2**64


def test_a_long_chain_does_not_exhaust_the_stack() -> None:
    names = [f"n{i}" for i in range(5000)]
    dag = DAG.build({name: names[max(i - 1, 0) : i] for i, name in enumerate(names)})
    assert dag.heights()["n0"] == 4999
    assert len(dag.ancestors(["n4999"])) == 5000


@pytest.mark.parametrize(
    ("parents", "message"),
    [
        ({"a": ["b"], "b": ["a"]}, "the graph has a cycle through a, b$"),
        ({"a": ["a"]}, "the graph has a cycle through a$"),
        ({"r": [], "a": ["c", "r"], "b": ["a"], "c": ["b"], "below": ["c"]}, "a cycle through a, b, c$"),
        ({"a": ["x"]}, "node 'a' has the unknown parent 'x'"),
        ({"a": [], "b": ["a", "a"]}, "node 'b' lists a parent twice: a, a"),
    ],
)
def test_what_is_no_graph_is_refused(parents: dict[str, list[str]], message: str) -> None:
    with pytest.raises(GraphError, match=message):
        DAG.build(parents)


def test_other_refusals_name_the_node() -> None:
    with pytest.raises(GraphError, match="node 'a' is declared twice"):
        DAG(("a", "b", "a"), ((), (), ()))
    with pytest.raises(GraphError, match="2 nodes but 1 parent sets"):
        DAG(("a", "b"), ((),))
    dag = DAG.build({"a": [], "b": ["a"]})
    for ask in (dag.index, dag.parents_of, dag.children_of, dag.family, dag.out_degree):
        with pytest.raises(GraphError, match="unknown node 'c'; the graph has a, b"):
            ask("c")
    with pytest.raises(GraphError, match="unknown node 'c'"):
        dag.ancestors(["c"])
