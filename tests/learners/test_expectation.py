"""Expected counts: marginals by elimination, rows that follow coarser ones, shrinkage by its integral, exact tables."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.compute import expectation
from discreet.compute.contraction import Margin
from discreet.compute.expectation import fit_network
from discreet.compute.smoothing import rake_conditionals, shrink_counts, smooth_conditionals
from discreet.networks import examples
from discreet.values.errors import TableError, TooLarge
from discreet.values.graph import DAG
from discreet.values.measurement import DiscreteGaussian, DiscreteLaplace, Exact, Measurement
from discreet.values.table import Array, Table
from discreet.values.unit import Unit

COST = '{"epsilon": "1"}'


def smooth(name: str, counts: Array) -> Array:
    return smooth_conditionals(counts, 0.5)


def measure(table: Table, law: Any) -> Measurement:
    return Measurement(Table(table.axes, np.rint(table.values).astype(np.int64)), law, Unit.ADD_REMOVE, COST)


@pytest.mark.parametrize("name", ["asia", "sachs", "child"])
def test_a_margin_is_that_of_the_network(name: str) -> None:
    network = examples.load(name)
    cpts = [np.asarray(cpt.values)[None] for cpt in network.cpts]
    rng = np.random.default_rng(4)
    for size in (1, 2, 4):
        members = rng.choice(network.nodes, size, replace=False).tolist()
        margin = Margin.plan(network.dag, network.schema.sizes, members, 2**18)
        assert np.allclose(margin.read(cpts)[0], network.engine.joint(members, {}).values, atol=1e-12)
    with pytest.raises(TooLarge):
        Margin.plan(network.dag, network.schema.sizes, network.nodes[-1:], 1)


@settings(deadline=None)
@given(st.lists(st.integers(2, 3), max_size=4), st.floats(0.01, 5), st.integers(0, 2**32 - 1))
def test_rows_are_distributions_and_follow_the_data(parents: list[int], strength: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    counts = rng.gamma(0.3, 20.0, (*parents, 3))
    found = smooth_conditionals(counts, strength)
    assert found.shape == counts.shape
    assert np.allclose(found.sum(axis=-1), 1.0)
    assert (found >= 0).all()
    rows = counts.sum(axis=-1, keepdims=True)
    assert (np.abs(found - counts / rows) <= strength / (rows + strength) + 1e-9).all()
    full = smooth_conditionals(counts * 1e9, strength)
    assert np.allclose(full, counts / rows, atol=1e-5)


def test_a_row_without_data_follows_its_neighbours() -> None:
    counts = np.array([[[90.0, 10.0], [80.0, 20.0]], [[70.0, 30.0], [0.0, 0.0]]])
    found = smooth_conditionals(counts, 0.5)
    alone = [counts[:, 1].sum(axis=0), counts[1].sum(axis=0)]
    between = sorted(row[0] / row.sum() for row in alone)
    assert between[0] - 0.01 <= found[1, 1, 0] <= between[1] + 0.01
    assert np.allclose(smooth_conditionals(np.zeros((2, 2, 3)), 0.5), 1 / 3)


@settings(deadline=None)
@given(st.floats(-60, 60), st.floats(0.05, 400), st.floats(0.3, 30))
def test_shrinkage_is_the_posterior_mean(off: float, spread: float, scale: float) -> None:
    """Against the integral over a Gaussian count: equal for Gaussian noise, within 0.17·D/b for Laplace noise."""
    around = 100.0
    grid = around + math.sqrt(spread) * np.linspace(-12, 12, 40_001)
    weight = -((grid - around) ** 2) / (2 * spread)
    noisy, expected = np.array([around + off]), np.array([around])

    def integrate(log_likelihood: np.ndarray) -> float:
        density = np.exp(weight + log_likelihood - (weight + log_likelihood).max())
        return float((grid * density).sum() / density.sum())

    variance = 2 * scale**2
    gaussian = shrink_counts(noisy, expected, spread, variance, False)[0]
    if abs(off) < 6 * math.sqrt(spread + variance):
        assert gaussian == pytest.approx(integrate(-((noisy - grid) ** 2) / (2 * variance)), abs=1e-3)
    laplace = shrink_counts(noisy, expected, spread, variance, True)[0]
    assert abs(laplace - integrate(-np.abs(noisy - grid) / scale)) <= 0.17 * spread / scale + 1e-3
    assert abs(laplace - around) <= min(abs(off), spread / scale) + 1e-9
    assert shrink_counts(noisy, expected, spread, 0.0, True)[0] == noisy[0]


@pytest.mark.parametrize("cells", [2**18, 0], ids=["by inference", "by the chain rule within a set"])
def test_exact_tables_give_the_frequencies(cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways to expect a marginal; a million rows of each family, so that the coarser rows hardly count."""
    monkeypatch.setattr(expectation, "PRODUCT_CELLS", cells)
    network = examples.sachs()
    tables = [network.engine.joint(family, {}) for family in network.dag.maximal_families()]
    exact = [measure(Table(t.axes, t.values * 1e9), Exact()) for t in tables]
    fit = fit_network(network.dag, exact, smooth, rows=10**9)
    for cpt, found, family in zip(network.cpts, fit.cpts, network.dag.families(), strict=True):
        weight = network.engine.joint(family[:-1], {}).values if family[:-1] else np.array(1.0)
        assert (np.abs(cpt.values - found).sum(axis=-1) * weight).sum() < 1e-6
    assert max(fit.errors) < 1e-4


@pytest.mark.parametrize("law", [DiscreteLaplace(20), DiscreteGaussian(800)])
@pytest.mark.parametrize(("cells", "part"), [(2**18, 0.86), (0, 0.97)], ids=["by inference", "within a set"])
def test_noisy_tables_are_fitted_better_than_row_by_row(
    law: Any, cells: int, part: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Expecting marginals by inference gains more than the chain rule within a set, which is for graphs too dense."""
    monkeypatch.setattr(expectation, "PRODUCT_CELLS", cells)
    network = examples.alarm()
    rng = np.random.default_rng(8)
    truth = [network.engine.joint(family, {}) for family in network.dag.families()]
    noisy = []
    for family in network.dag.maximal_families():
        table = network.engine.joint(family, {})
        draw = rng.laplace(0, 20, table.values.shape) if isinstance(law, DiscreteLaplace) else None
        added = rng.normal(0, math.sqrt(800), table.values.shape) if draw is None else draw
        noisy.append(measure(Table(table.axes, table.values * 1e4 + added), law))
    fit = fit_network(network.dag, noisy, smooth)
    assert fit.rows == pytest.approx(1e4, rel=0.05)
    ours = plain = predicted = 0.0
    for i, (family, joint) in enumerate(zip(network.dag.families(), truth, strict=True)):
        weight = joint.values.sum(axis=-1)
        home = min((m for m in noisy if set(family) <= set(m.axes)), key=lambda m: m.cells)
        rows = np.maximum(home.noisy.project(family).values, 0.0)
        simple = Table(family, rows).normalise(family[-1]).values
        cpt = network.cpts[i].values
        ours += (np.abs(fit.cpts[i] - cpt).sum(axis=-1) * weight).sum()
        plain += (np.abs(simple - cpt).sum(axis=-1) * weight).sum()
        predicted += fit.errors[i]
    assert ours < part * plain
    assert 0.5 < predicted / ours < 2.0


def test_wrong_input_is_named() -> None:
    network = examples.asia()
    one = measure(Table(("smoke",), np.array([5.0, 5.0])), Exact())
    with pytest.raises(TableError, match="no measured table holds 'asia'"):
        fit_network(network.dag, [one], smooth)
    with pytest.raises(TableError, match="'nobody', which is not in the graph"):
        fit_network(network.dag, [measure(Table(("nobody",), np.ones(2)), Exact())], smooth)
    with pytest.raises(TableError, match="2 levels in one table, 3 in another"):
        fit_network(network.dag, [one, measure(Table(("smoke",), np.ones(3)), Exact())], smooth)


@settings(deadline=None)
@given(st.lists(st.integers(2, 5), min_size=1, max_size=3), st.integers(2, 4), st.integers(0, 2**32 - 1))
def test_raked_conditionals_have_the_margin_and_keep_odds_ratios(
    parents: list[int], levels: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    cpt = rng.dirichlet(np.full(levels, 2.0), parents)
    weights = rng.gamma(1.0, 100.0, (*parents, 1))
    before = (weights * cpt).reshape(-1, levels).sum(axis=0) / weights.sum()
    goal = before * rng.uniform(0.8, 1.25, levels)
    goal /= goal.sum()
    found = rake_conditionals(cpt, weights, goal)
    margin = (weights * found).reshape(-1, levels).sum(axis=0) / weights.sum()
    assert np.allclose(found.sum(axis=-1), 1.0)
    assert np.abs(margin - goal).max() < 0.1 * np.abs(before - goal).max() + 1e-9
    odds = np.log(found[..., 1:] / found[..., :1]) - np.log(cpt[..., 1:] / cpt[..., :1])
    assert np.allclose(odds, odds.reshape(-1, levels - 1)[0])


def test_a_rare_level_with_many_parents_is_as_frequent_as_in_the_rows() -> None:
    """2,500 combinations of parents and 0.4 rare rows in each; without the correction it is 40 standard errors off."""
    rng = np.random.default_rng(11)
    true = rng.multinomial(17_549, np.repeat([0.924, 0.076], 2500) / 2500).reshape(2, 50, 50)
    dag = DAG(("a", "b", "status"), ((), (), ("a", "b")))
    found = []
    for _ in range(10):
        noise = rng.geometric(1 - math.exp(-1), true.shape) - rng.geometric(1 - math.exp(-1), true.shape)
        table = Table(("status", "a", "b"), (true + noise).astype(np.float64))
        fit = fit_network(dag, [measure(table, DiscreteLaplace(1))], smooth)
        one, two, three = fit.cpts
        found.append(float((one[:, None] * two[None] * three[..., 1]).sum()))
    off = np.mean(found) - true[1].sum() / true.sum()
    assert abs(off) < 5 * np.std(found, ddof=1) / math.sqrt(len(found))
    assert np.std(found, ddof=1) < 0.008  # the sums over the table are off by 0.004
