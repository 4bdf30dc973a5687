"""The shares of Algorithm 1: sensitivities by brute force, the square-root rule, and budgets that sum exactly."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.networks import examples
from discreet.papers.parameters.allocation import (
    LEAST_SHARE,
    allocate,
    estimate_error,
    find_sensitivities,
    plan_allocation,
)
from discreet.values.errors import BudgetError
from discreet.values.graph import DAG
from discreet.values.table import Table

FIGURE_1 = DAG.build({"A": [], "B": [], "C": ["A", "B"], "D": ["C"], "E": ["C"], "F": ["D", "E"]})
"""The example of [000, Fig. 1]."""


@st.composite
def networks(draw: Any) -> tuple[DAG, list[Table]]:
    """A small graph with random tables, zeros included."""
    nodes = [f"x{i}" for i in range(draw(st.integers(2, 5)))]
    parents = {
        name: draw(st.lists(st.sampled_from(nodes[:i]), unique=True, max_size=2)) if i else []
        for i, name in enumerate(nodes)
    }
    sizes = {name: draw(st.integers(2, 3)) for name in nodes}
    dag = DAG.build(parents)
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    cpts = []
    for family in dag.families():
        values = rng.gamma(0.3, size=[sizes[name] for name in family]) * rng.integers(0, 2, size=1)
        cpts.append(Table(family, values).normalise(family[-1]))
    return dag, cpts


def differentiate_children(dag: DAG, cpts: Sequence[Table], name: str) -> float:
    """∆_i by enumerating the ancestors of every child and differentiating entry by entry [000, Eq. 7 and 8].

    P(Y) is linear in each entry of node i's table, so its derivative by Θ[x|x_pa] is P(Y) with that entry set to 1
    and all others of the table to 0. (So does the paper's example; Eq. 8 as printed keeps the factor Θ[x|x_pa].)
    """
    own = cpts[dag.index(name)]
    children = dag.children_of(name)
    if not children:
        return 0.0
    total = 0.0
    for child in children:
        above = dag.ancestors([child])
        others = [cpts[dag.index(other)] for other in dag.order if other in above and other != name]
        for entry in np.ndindex(own.values.shape):
            only = np.zeros(own.values.shape)
            only[entry] = 1.0
            joint = Table(own.axes, only)
            for table in others:
                joint = joint.multiply(table)
            derivatives = joint.project([child]).values
            total += float(derivatives.sum()) / derivatives.size
    return total / (len(children) * own.cells)


@settings(deadline=None, max_examples=40)
@given(networks())
def test_the_sensitivity_needs_no_data(network: tuple[DAG, list[Table]]) -> None:
    """[000, Eq. 7 and 8] by enumeration equal the closed form, whatever the parameters are."""
    dag, cpts = network
    sizes = {cpt.axes[-1]: cpt.values.shape[-1] for cpt in cpts}
    closed = find_sensitivities(dag, sizes)
    for name in dag.nodes:
        assert differentiate_children(dag, cpts, name) == pytest.approx(float(closed[name]), rel=1e-9)


def test_the_sensitivity_on_asia_is_the_closed_form() -> None:
    asia = examples.asia()
    closed = find_sensitivities(asia.dag, asia.schema.sizes)
    for name in asia.nodes:
        assert differentiate_children(asia.dag, asia.cpts, name) == pytest.approx(float(closed[name]))


def test_the_example_of_the_paper() -> None:
    """[000, Sec. 3.4]: h_A = 3, o_A = 1, and four derivatives that sum to 2, times 1/4."""
    found = plan_allocation(FIGURE_1, dict.fromkeys("ABCDEF", 2), dict.fromkeys("ABCDEF", 1.0))
    assert (found.heights["A"], found.out_degrees["A"]) == (3, 1)
    assert found.sensitivities["A"] == Fraction(1, 2)
    assert found.sensitivities["F"] == 0
    assert found.weights["A"] == 4 * 2 * 1.5
    assert found.weights["F"] == 1.0
    assert found.order[-1] == "F"  # "node A would typically have a higher privacy budget than node F"
    assert sum(found.shares.values()) == 1


positive = st.floats(1e-8, 1e8)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(positive, positive), min_size=1, max_size=30))
def test_shares_sum_exactly_to_one_and_starve_nobody(pairs: list[tuple[float, float]]) -> None:
    weights, errors = [list(column) for column in zip(*pairs, strict=True)]
    shares = allocate(weights, errors)
    assert sum(shares) == 1
    assert min(shares) >= LEAST_SHARE / len(shares) * (1 - Fraction(1, 10**6))


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.tuples(st.floats(0.1, 10), st.floats(0.1, 10)), min_size=2, max_size=8), st.integers(0, 2**32)
)
def test_shares_minimise_the_objective(pairs: list[tuple[float, float]], seed: int) -> None:
    """[000, Eq. 10]: no other split has a smaller Σ W_i·δ_i/ε_i."""
    products = np.array([weight * error for weight, error in pairs])
    shares = np.array([float(share) for share in allocate(*map(list, zip(*pairs, strict=True)))])
    best = (products / shares).sum()
    others = np.random.default_rng(seed).dirichlet(np.full(len(pairs), 5.0), size=200)
    assert (products / np.maximum(others, 1e-12)).sum(axis=1).min() >= best * (1 - 1e-6)


def test_shares_are_those_of_the_printed_products_and_reach_farther() -> None:
    """[000, Eq. 13] on a few nodes; on two hundred the printed products have left float64."""
    rng = np.random.default_rng(5)
    weights, errors = rng.uniform(1, 40, 11), rng.uniform(1e-3, 1e-1, 11)
    roots = 1 / np.sqrt(weights * errors)
    products = np.array([np.prod(np.delete(roots, i)) for i in range(11)])
    found = np.array([float(share) for share in allocate(list(weights), list(errors))])
    assert np.allclose(found, products / products.sum(), rtol=1e-6)
    assert sum(allocate([1e-300] * 200, [1e-300] * 200)) == 1


def test_shares_of_nonsense_are_refused() -> None:
    for weights, errors in (
        ([], []),
        ([1.0], [1.0, 2.0]),
        ([1.0], [0.0]),
        ([math.inf], [1.0]),
        ([math.nan], [1.0]),
    ):
        with pytest.raises(BudgetError):
            allocate(weights, errors)


def test_the_error_of_a_node_is_the_printed_one_and_stays_finite() -> None:
    """[000, Eq. 12] for counts above the noise; counts at or below it, negative ones too, count as the noise."""
    conditional = Table(("p", "x"), np.array([[0.25, 0.75], [0.5, 0.5]]))
    family, parents = np.array([[50, 150], [40, 40]]), np.array([200, 80])
    printed = (conditional.values * np.sqrt(1 / parents[:, None] ** 2 + 1 / family**2)).mean()
    found = estimate_error(conditional, Table(("x", "p"), family.T), Table(("p",), parents), least=5.0)
    assert found == pytest.approx(printed)
    empty = estimate_error(
        conditional,
        Table(("p", "x"), np.array([[0, -7], [3, 40]])),
        Table(("p",), np.array([-2, 80])),
        least=5.0,
    )
    same = estimate_error(
        conditional,
        Table(("p", "x"), np.array([[5, 5], [5, 40]])),
        Table(("p",), np.array([5, 80])),
        least=5.0,
    )
    assert empty == same
    assert (
        estimate_error(conditional, Table(("p", "x"), np.zeros((2, 2))), Table(("p",), np.zeros(2)), 0.0)
        <= 1.0
    )
