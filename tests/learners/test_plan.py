"""The plan: what it measures, that its shares are the best ones, that merging pays, and what it says of itself."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.core.mechanism import calibrate_counts
from discreet.learning.plan import (
    choose_noise,
    group_families,
    noise_variance,
    plan,
    weigh_nodes,
)
from discreet.learning.plan_merging import Group, Planner, expect_errors
from discreet.networks import examples
from discreet.values.budget import ZCDP, ApproxDP, PureDP, allow
from discreet.values.errors import DiscreetError
from discreet.values.graph import DAG
from discreet.values.table import count_cells


@st.composite
def graphs(draw: Any) -> tuple[DAG, dict[str, int]]:
    nodes = [f"x{i}" for i in range(draw(st.integers(1, 6)))]
    parents = {
        name: draw(st.lists(st.sampled_from(nodes[:i]), unique=True, max_size=3)) if i else []
        for i, name in enumerate(nodes)
    }
    return DAG.build(parents), {name: draw(st.integers(2, 4)) for name in nodes}


def make_planner(
    dag: DAG, sizes: dict[str, int], epsilon: float = 1.0, rows: float = 1e4, noise: str = "laplace"
) -> Planner:
    families = dict(zip(dag.nodes, dag.families(), strict=True))
    weights = dict.fromkeys(dag.nodes, 1.0)
    return Planner(
        families, sizes, weights, lambda share: noise_variance((noise, epsilon, 1), share), rows, 1000
    )


def error_of(planner: Planner, groups: tuple[Group, ...], shares: Any) -> float:
    return sum(
        planner.expect_error(group.members, node, planner.variance(share))
        for group, share in zip(groups, shares, strict=True)
        for node in group.nodes
    )


# What is measured


@settings(deadline=None, max_examples=60)
@given(graphs(), st.sampled_from(["1/100", "1", "100"]))
def test_every_family_is_answered_and_nothing_is_measured_for_nothing(
    case: tuple[DAG, dict[str, int]], spend: str
) -> None:
    dag, sizes = case
    found = plan(dag, sizes, spend=spend)
    assert sum(found.shares) == Fraction(1)
    assert min(found.shares) > 0
    assert sorted(name for nodes in found.answers for name in nodes) == sorted(dag.nodes)
    for members, nodes in zip(found.sets, found.answers, strict=True):
        assert nodes, "a table that answers nothing"
        assert all(set(dag.family(name)) <= set(members) for name in nodes)
    for (one, nodes), (other, _) in itertools.permutations(zip(found.sets, found.answers, strict=True), 2):
        assert set(one) != set(other)
        # A table that another implies is there for the one family that it is: the larger one is too noisy for it.
        assert not set(one) <= set(other) or [set(dag.family(name)) for name in nodes] == [set(one)]
    for members, cells in zip(found.sets, found.cells, strict=True):
        assert cells == count_cells(sizes[name] for name in members)
    assert all(0 < error <= 2 for error in found.predict_error().values())


def test_the_cap_holds_for_merged_tables_and_only_for_them() -> None:
    network = examples.alarm()
    for cap in (1, 50, 1000):
        found = plan(network.dag, network.schema, spend="1", max_cells=cap)
        families = {frozenset(family) for family in network.dag.families()}
        assert all(
            cells <= cap or frozenset(members) in families
            for members, cells in zip(found.sets, found.cells, strict=True)
        )
    alone = plan(network.dag, network.schema, spend="1", max_cells=1)
    assert {frozenset(members) for members in alone.sets} == set(
        map(frozenset, network.dag.maximal_families())
    )


def test_the_same_question_has_the_same_plan() -> None:
    network = examples.child()
    one, other = (plan(network.dag, network.schema, spend=PureDP(1)) for _ in range(2))
    assert one == other


# Arithmetic


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.integers(2, 4), min_size=1, max_size=2),
    st.lists(st.integers(2, 3), max_size=2),
    st.floats(0.1, 500),
    st.sampled_from([300.0, 1e4]),
)
def test_the_variance_is_that_of_the_best_linear_estimate(
    inside: list[int], extra: list[int], variance: float, rows: float
) -> None:
    """min Σ (w_j − 1)²E_j + w_j²·v over all w with Σ w_j·E_j = Σ E_j, by solving its equations for each cell."""
    levels = [np.arange(1.0, size + 1) ** -2.3 for size in (*inside, *extra)]
    joint = np.ones(1)
    for found in levels:
        joint = np.multiply.outer(joint, found / found.sum())
    cells = rows * joint.reshape(count_cells(inside), -1)
    total = 0.0
    for expected in cells:
        count = len(expected)
        matrix = np.block(
            [
                [np.diag(2 * (expected + variance)), expected[:, None]],
                [expected[None, :], np.zeros((1, 1))],
            ]
        )
        solved = np.linalg.solve(matrix, np.append(2 * expected, expected.sum()))[:count]
        least = ((solved - 1) ** 2 * expected + solved**2 * variance).sum()
        total += math.sqrt(1 / (1 / least + 1 / (5.0 * expected.sum()) ** 2))
    assert expect_errors(inside, extra, np.array([variance]), rows)[0] == pytest.approx(total, rel=1e-6)


def test_full_cells_sum_their_noise_and_skew_does_not() -> None:
    """With very many rows the error is |f|·√(v·|S|/|f|); with few, extra attributes cost less than their levels."""
    many = expect_errors([2, 3], [4], np.array([50.0]), 1e12)[0]
    assert many == pytest.approx(6 * math.sqrt(50 * 4), rel=1e-3)
    few = expect_errors([2, 3], [4], np.array([1e4]), 1e4)[0]
    assert few < 0.75 * 6 * math.sqrt(1e4 * 4)


@settings(deadline=None, max_examples=12)
@given(
    graphs(), st.sampled_from([0.3, 3.0]), st.sampled_from(["laplace", "gaussian"]), st.integers(0, 2**32 - 1)
)
def test_no_other_shares_have_a_smaller_error(
    case: tuple[DAG, dict[str, int]], epsilon: float, noise: str, seed: int
) -> None:
    dag, sizes = case
    planner = make_planner(dag, sizes, epsilon, noise=noise)
    groups = group_families(dag, sizes)
    known = planner.solve(groups)
    mine = error_of(planner, known.groups, known.shares)
    rng = np.random.default_rng(seed)
    count = len(groups)
    others = [rng.dirichlet(np.full(count, 3.0)) for _ in range(200)]
    others += [np.abs(np.array(known.shares) * rng.normal(1, 0.1, count)) for _ in range(200)]
    # Floors keep every table alive, so only shares above them compete.
    fair = [share / share.sum() for share in others if (share / share.sum()).min() >= 0.25 / count]
    assert all(error_of(planner, known.groups, share) >= mine * (1 - 0.01) for share in fair)


def test_with_many_rows_the_shares_are_the_closed_ones() -> None:
    """ε_S ∝ √a_S for Laplace noise, ρ_S ∝ a_S^⅔ for Gaussian noise, with a_S = Σ |f| in the linear case."""
    dag = DAG.build({"a": [], "b": ["a"], "c": [], "d": ["c"], "e": []})
    sizes = {"a": 2, "b": 2, "c": 4, "d": 4, "e": 3}
    for noise, power in (("laplace", 1 / 2), ("gaussian", 2 / 3)):
        planner = make_planner(dag, sizes, 1.0, 1e12, noise)
        groups = group_families(dag, sizes)
        errors = [
            sum(
                math.sqrt(
                    count_cells(sizes[x] for x in dag.family(node)) * count_cells(sizes[x] for x in g.members)
                )
                for node in g.nodes
            )
            for g in groups
        ]
        wanted = np.array(errors) ** power
        assert np.allclose(planner.solve(groups).shares, wanted / wanted.sum(), atol=0.02)


@settings(deadline=None, max_examples=30)
@given(graphs(), st.sampled_from([0.1, 1.0, 10.0]))
def test_merging_never_makes_the_plan_worse(case: tuple[DAG, dict[str, int]], epsilon: float) -> None:
    dag, sizes = case
    planner = make_planner(dag, sizes, epsilon)
    groups = group_families(dag, sizes)
    merged = planner.merge(groups)
    assert merged.error <= planner.solve(groups).error * (1 + 1e-9)
    assert error_of(planner, merged.groups, merged.shares) == pytest.approx(merged.error, rel=0.02)
    best = min(planner.solve(found).error for found in partitions(groups, planner))
    assert merged.error <= 1.1 * best


def partitions(groups: tuple[Group, ...], planner: Planner) -> Any:
    """Every way to merge groups into fewer ones, by brute force."""
    if not groups:
        yield ()
        return
    first, rest = groups[0], groups[1:]
    for size in range(len(rest) + 1):
        for chosen in itertools.combinations(range(len(rest)), size):
            members = first.members.union(*(rest[k].members for k in chosen))
            if size and count_cells(planner.sizes[x] for x in members) > planner.max_cells:
                continue
            nodes = first.nodes + tuple(x for k in chosen for x in rest[k].nodes)
            left = tuple(group for k, group in enumerate(rest) if k not in chosen)
            for found in partitions(left, planner):
                yield (Group(members, nodes), *found)


@pytest.mark.parametrize("unit", ["add-remove", "replace-one"])
@pytest.mark.parametrize("spend", [PureDP("1/3"), PureDP(100), ZCDP("1/8"), ApproxDP(1, "1e-6")])
def test_the_noise_is_that_of_the_airlock(spend: Any, unit: str) -> None:
    network = examples.asia()
    found = plan(network.dag, network.schema, spend=spend, unit=unit)
    drawn = calibrate_counts(found.sets, allow(spend), unit=unit, noise=found.noise, shares=found.shares)  # type: ignore[arg-type]
    assert [law.law.variance for law in drawn] == pytest.approx(list(found.variances), rel=1e-6)


def test_an_epsilon_with_a_delta_is_planned_in_the_rho_that_it_buys() -> None:
    network, spend = examples.asia(), ApproxDP(1, "1e-6")
    assert choose_noise(spend) == "gaussian"
    found = plan(network.dag, network.schema, spend=spend)
    assert found.variances == plan(network.dag, network.schema, spend=allow(spend)).variances


# Workloads


@settings(deadline=None, max_examples=30)
@given(graphs())
def test_nodes_weigh_as_often_as_they_are_above_a_marginal(case: tuple[DAG, dict[str, int]]) -> None:
    dag, _ = case
    queries = [c for size in (1, 2) for c in itertools.combinations(dag.nodes, size)]
    hits = {name: sum(name in dag.ancestors(query) for query in queries) for name in dag.nodes}
    mean = sum(hits.values()) / len(hits)
    found = weigh_nodes(dag, tuple(queries))
    assert found == pytest.approx({name: max(hit / mean, 0.05) for name, hit in hits.items()})


def test_a_plan_for_marginals_expects_less_error_of_them() -> None:
    """Each attribute's own marginal, as the tables of either plan are supposed to know it."""
    network = examples.child()
    sizes = network.schema.sizes

    def expect(workload: Any) -> float:
        found = plan(network.dag, network.schema, spend="1", workload=workload)
        home = {node: i for i, nodes in enumerate(found.answers) for node in nodes}
        return sum(
            float(
                expect_errors(
                    [sizes[node]],
                    [sizes[name] for name in found.sets[home[node]] if name != node],
                    np.array([found.variances[home[node]]]),
                    found.rows,
                )[0]
            )
            for node in network.nodes
        )

    assert expect("marginals") < expect("cpds")


def test_a_query_gets_more_of_the_budget_for_what_it_needs() -> None:
    network = examples.alarm()
    usual = plan(network.dag, network.schema, spend="1")
    asked = plan(network.dag, network.schema, spend="1", workload=[["HISTORY", "LVFAILURE"]])
    for name in ("HISTORY", "LVFAILURE"):
        assert asked.errors[name] < usual.errors[name]


# What it says


def test_it_explains_itself_before_anything_is_spent() -> None:
    network = examples.asia()
    found = plan(network.dag, network.schema, spend="epsilon=1", rows=5000)
    text = found.explain()
    assert "laplace noise for ε = 1 (add-remove)" in text
    assert "5,000 rows" in text
    for members, share in zip(found.sets, found.shares, strict=True):
        assert " × ".join(members) in text
        assert f"{float(share):.1%}" in text
    assert "either | lung, tub" in text or "either | tub, lung" in text
    for name, error in found.predict_error().items():
        assert name in text
        assert f"{error:.4f}" in text
    assert found._repr_html_().startswith("<pre>")
    assert found.predict_error(0) == dict.fromkeys(network.nodes, 2.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"workload": "queries"}, "'cpds', 'marginals' or a list"),
        ({"workload": [["smoke", "nobody"]]}, "'nobody', which is not in the graph"),
        ({"workload": [[]]}, "at least one attribute"),
        ({"rows": 0}, "at least 1, not 0"),
        ({"max_cells": 0}, "max_cells must be at least 1"),
        ({"noise": "uniform"}, "laplace or gaussian"),
        ({"noise": "gaussian"}, "without a δ above 0"),
        ({"unit": "swap"}, "add-remove or replace-one"),
        ({"spend": "epsilon=0"}, "above 0"),
    ],
)
def test_wrong_input_is_named(options: dict[str, Any], message: str) -> None:
    network = examples.asia()
    with pytest.raises(DiscreetError, match=message):
        plan(network.dag, network.schema, **{"spend": "1", **options})
    with pytest.raises(DiscreetError, match="'dysp' is not in the schema"):
        plan(network.dag, {name: 2 for name in network.nodes if name != "dysp"}, spend="1")
