"""Tracing attacks equal what they are defined to be: optima by search, ratios by enumeration, bands by SciPy."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

from discreet.judge.attacks.ceiling import (
    expect_power,
    limit_approx,
    limit_concentrated,
    limit_power,
    shift_normal,
)
from discreet.judge.attacks.flat_tables import FlatTables
from discreet.judge.attacks.noisy_tables import (
    estimate_total,
    log_mixture,
    score_jointly,
    score_noisy,
    weigh_cells,
)
from discreet.judge.attacks.power import measure_power
from discreet.judge.attacks.reference import Reference, centre, maximise_likelihood
from discreet.judge.attacks.synthetic_rows import fit_tree, measure_nearest
from discreet.networks import examples
from discreet.values.budget import ZCDP, ApproxDP, Infinite, PureDP, imply_zcdp
from discreet.values.errors import DataError, TableError
from discreet.values.graph import DAG
from discreet.values.measurement import DiscreteGaussian, DiscreteLaplace, Exact, Measurement
from discreet.values.table import Table
from discreet.values.unit import Unit

COST = '{"epsilon": "1"}'
ERRORS = np.array([0.0, 1e-6, 1e-3, 0.01, 0.1, 0.3, 0.5, 0.9, 0.999, 1.0])


@st.composite
def rows_of_intervals(
    draw: st.DrawFn, levels: int | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Counts and intervals that hold a distribution, ends at 0 and 1 and empty counts included."""
    k = levels or draw(st.integers(2, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    point = rng.dirichlet(np.full(k, draw(st.sampled_from([0.2, 1.0, 5.0]))))
    width = draw(st.sampled_from([0.0, 0.05, 0.3, 1.0]))
    lower = np.maximum(point - width * rng.random(k), 0.0)
    upper = np.minimum(point + width * rng.random(k), 1.0)
    counts = rng.integers(0, draw(st.sampled_from([1, 3, 50])), k).astype(np.float64)
    return counts, lower, upper


@settings(deadline=None, max_examples=150)
@given(rows_of_intervals())
def test_definition_6_is_the_numerical_optimum(row: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    counts, lower, upper = row
    found = maximise_likelihood(counts[None], lower[None], upper[None])[0]
    assert found.sum() == pytest.approx(1.0, abs=1e-12)
    assert (found >= lower - 1e-12).all() and (found <= upper + 1e-12).all()

    def loss(p: np.ndarray) -> float:
        return -float((counts * np.log(np.maximum(p, 1e-12))).sum())

    middle = lower + (upper - lower) * min(1.0, (1 - lower.sum()) / max((upper - lower).sum(), 1e-300))
    searched = optimize.minimize(
        loss, middle, method="SLSQP", bounds=list(zip(lower, upper, strict=True)),
        constraints={"type": "eq", "fun": lambda p: p.sum() - 1.0}, options={"ftol": 1e-12, "maxiter": 300},
    )  # fmt: skip
    if searched.success:
        assert loss(found) <= searched.fun + 1e-6 * (1 + abs(searched.fun))
    # No exchange of mass between two levels helps: the conditions of Karush, Kuhn and Tucker.
    for up, down in itertools.permutations(range(len(counts)), 2):
        step = 1e-6
        if found[up] + step <= upper[up] and found[down] - step >= lower[down]:
            moved = found.copy()
            moved[up] += step
            moved[down] -= step
            assert loss(found) <= loss(moved) + 1e-9 * (1 + abs(loss(found)))


@settings(deadline=None, max_examples=100)
@given(rows_of_intervals(levels=2))
def test_definition_6_clips_the_reference_into_the_interval_of_a_binary_variable(
    row: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    counts, lower, upper = row
    share = counts[0] / counts.sum() if counts.sum() else 0.5
    clipped = np.clip(share, max(lower[0], 1 - upper[1]), min(upper[0], 1 - lower[1]))
    found = maximise_likelihood(counts[None], lower[None], upper[None])[0]
    assert found == pytest.approx([clipped, 1 - clipped], abs=1e-12)


def test_definition_6_of_a_whole_binary_network_is_found_by_no_search_to_be_improved() -> None:
    """Coordinate by coordinate over a grid of each interval, on a random binary network with IDM intervals."""
    rng = np.random.default_rng(5)
    dag = DAG.build({"a": [], "b": ["a"], "c": ["a", "b"], "d": ["c"]})
    sizes = dict.fromkeys(dag.nodes, 2)
    cells = FlatTables.arrange(dag, sizes)
    counts = rng.integers(0, 6, cells.size)
    lower, upper = (
        counts / (cells.total_conditionals(counts) + 2.0),
        (counts + 2.0) / (cells.total_conditionals(counts) + 2.0),
    )
    known = Reference.fit(dag, sizes, {name: rng.integers(0, 2, 300) for name in dag.nodes}, pseudo_count=0.0)
    found = known.fit_within(lower, upper)
    best = float((known.counts * np.log(found)).sum())
    for zero in range(0, cells.size, 2):
        for share in np.linspace(lower[zero], upper[zero], 101):
            tried = found.copy()
            tried[zero : zero + 2] = share, 1 - share
            with np.errstate(divide="ignore"):
                assert float((known.counts * np.log(tried)).sum()) <= best + 1e-9


def test_intervals_that_hold_no_distribution_are_refused() -> None:
    one = np.ones((1, 2))
    for lower, upper in (
        ([[0.7, 0.6]], [[1.0, 1.0]]),
        ([[0.0, 0.0]], [[0.3, 0.3]]),
        ([[0.5, 0.2]], [[0.4, 0.9]]),
    ):
        with pytest.raises(TableError):
            maximise_likelihood(one, np.array(lower), np.array(upper))
    with pytest.raises(TableError, match="finite"):
        maximise_likelihood(one, np.array([[math.nan, 0.0]]), one)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[DAG, dict[str, int]]:
    names = [f"v{i}" for i in range(draw(st.integers(1, 5)))]
    parents = {name: [p for p in names[:i] if draw(st.booleans())][:3] for i, name in enumerate(names)}
    return DAG.build(parents), {name: draw(st.integers(2, 4)) for name in names}


@settings(deadline=None, max_examples=60)
@given(graphs(), st.integers(0, 2**32 - 1))
def test_flat_cells_are_the_tables(graph: tuple[DAG, dict[str, int]], seed: int) -> None:
    dag, sizes = graph
    rng = np.random.default_rng(seed)
    codes = {name: rng.integers(0, sizes[name], 50).astype(np.uint8) for name in dag.nodes}
    cells = FlatTables.arrange(dag, sizes)
    counts = cells.count(cells.locate(codes))
    for family, table in zip(dag.families(), cells.split(counts), strict=True):
        true = np.zeros([sizes[name] for name in family], dtype=np.int64)
        np.add.at(true, tuple(codes[name] for name in family), 1)
        assert table.axes == family and np.array_equal(table.values, true)
    tables = cells.split(cells.normalise(counts))
    for own, raw in zip(tables, cells.split(counts), strict=True):
        assert own.close_to(raw.normalise(raw.axes[-1]))
    assert np.array_equal(cells.flatten(tables), cells.normalise(counts))
    assert sorted(np.concatenate([rows.ravel() for rows in cells.group_conditionals()])) == list(
        range(cells.size)
    )


def test_the_score_is_the_difference_of_log_likelihoods() -> None:
    network, other = examples.asia(), examples.asia()
    rows = network.sample(200, rng=3)
    known = Reference.fit(other.dag, other.schema.sizes, other.sample(400, rng=4).codes())
    fitted = type(network)(network.schema, network.dag, known.tables.split(known.values))
    scores = known.score_tables(network.cpts, known.tables.locate(rows.codes()))
    expected = network.log_likelihood(rows.arrow()) - fitted.log_likelihood(rows.arrow())
    assert np.allclose(scores, expected, rtol=0, atol=1e-10)


def test_a_row_that_the_release_rules_out_is_no_member_and_one_that_only_the_reference_rules_out_is() -> None:
    dag = DAG.build({"a": []})
    known = Reference.fit(dag, {"a": 3}, {"a": np.array([0, 0, 1])}, pseudo_count=0.0)
    places = known.tables.locate({"a": np.array([0, 1, 2])})
    assert known.score(np.array([1.0, 0.0, 0.0]), places).tolist() == [
        pytest.approx(math.log(1.5)),
        -np.inf,
        -np.inf,
    ]
    assert known.score(np.array([0.5, 0.0, 0.5]), places)[2] == np.inf


def test_the_centroid_lies_within_idm_intervals() -> None:
    cells = FlatTables.arrange(DAG.build({"a": []}), {"a": 4})
    counts = np.array([0.0, 3.0, 5.0, 1.0])
    found = centre(cells, counts / 11, (counts + 2) / 11)
    assert found.sum() == pytest.approx(1.0) and ((found >= counts / 11) & (found <= (counts + 2) / 11)).all()


@pytest.mark.parametrize("law", [DiscreteLaplace(3), DiscreteLaplace("1/2"), DiscreteGaussian(20)])
def test_the_noise_aware_mixture_is_the_sum_over_all_others(law: DiscreteLaplace | DiscreteGaussian) -> None:
    rows = 60
    first, rest = np.array([0.5, 3.5, 40.5, 99.5]), np.array([100.0, 97.0, 60.0, 1.0])
    noisy = np.array([-4, 2, 30, 60])
    others = np.arange(rows + 1)
    expected = [
        math.log((stats.betabinom.pmf(others, rows, a, b) * law.pmf(y - others)).sum())
        for y, a, b in zip(noisy, first, rest, strict=True)
    ]
    assert np.allclose(log_mixture(noisy, first, rest, rows, law), expected, rtol=0, atol=1e-8)


def test_without_noise_the_noise_aware_ratio_is_that_of_frequencies() -> None:
    """With a large reference and exact counts, the ratio tends to log p̂/p, the likelihood ratio of the cell."""
    counts = np.array([10, 25, 65])
    reference = {"a": np.repeat([0, 1, 2], [20_000, 20_000, 60_000])}
    exact = Measurement(Table(("a",), counts), Exact(), Unit.ADD_REMOVE, COST)
    weights = weigh_cells(exact, reference, 100)
    assert np.allclose(weights, np.log(counts / 100 / np.array([0.2, 0.2, 0.6])), atol=2e-3)
    # A law of almost no noise says nearly the same.
    narrow = Measurement(Table(("a",), counts), DiscreteLaplace("1/40"), Unit.ADD_REMOVE, COST)
    assert np.allclose(weigh_cells(narrow, reference, 100), weights, atol=2e-3)
    empty = Measurement(Table(("a",), np.array([0, 25, 75])), Exact(), Unit.ADD_REMOVE, COST)
    assert weigh_cells(empty, reference, 100)[0] == -np.inf


def test_wide_noise_makes_the_ratio_that_of_the_noise_alone() -> None:
    """Then the ratio is f(y − 1 − μ)/f(y − μ), but for the chance p that a stranger is in the same cell."""
    reference = {"a": np.repeat([0, 1], [5000, 5000])}
    law = DiscreteLaplace(200)
    noisy = Measurement(Table(("a",), np.array([-500, 700])), law, Unit.ADD_REMOVE, COST)
    assert np.allclose(weigh_cells(noisy, reference, 100), [-0.5 / 200, 0.5 / 200], rtol=0.02)


def test_a_member_is_in_a_secret_sample_only_with_its_rate() -> None:
    """log(r·L + 1 − r) of the ratio L that the table would give if every member were counted."""
    reference = {"a": np.repeat([0, 1], [5000, 5000])}
    table = Table(("a",), np.array([10, 40]))
    whole = Measurement(table, DiscreteLaplace(2), Unit.ADD_REMOVE, COST)
    sample = Measurement(table, DiscreteLaplace(2), Unit.ADD_REMOVE, COST, Fraction(1, 5))
    ratio = np.exp(weigh_cells(whole, reference, 50))
    assert weigh_cells(sample, reference, 250) == pytest.approx(np.log(0.2 * ratio + 0.8))
    assert estimate_total([sample]) == 250


def test_the_total_is_read_from_the_quietest_tables_and_scores_add_up() -> None:
    loud = Measurement(Table(("a",), np.array([500, 900])), DiscreteLaplace(1000), Unit.ADD_REMOVE, COST)
    quiet = Measurement(Table((), np.array(321)), DiscreteLaplace(1), Unit.ADD_REMOVE, COST)
    assert estimate_total([loud, quiet]) == 321
    exact = Measurement(Table((), np.array(300)), Exact(), Unit.ADD_REMOVE, COST)
    assert estimate_total([loud, quiet, exact]) == 300
    reference, codes = {"a": np.array([0, 1, 1])}, {"a": np.array([1, 0])}
    both = score_noisy([loud, loud, quiet], reference, 321, codes)
    assert both == pytest.approx(2 * weigh_cells(loud, reference, 321)[[1, 0]])


def test_the_joint_attack_is_the_linear_discriminant_of_all_cells() -> None:
    """(φ(x) − μ)ᵀ (nC + D)⁻¹ (y − nμ) with the whole covariance written out, up to a constant."""
    rng = np.random.default_rng(6)
    reference, codes = ({n: rng.integers(0, k, size) for n, k in (("a", 3), ("b", 2))} for size in (400, 25))
    reference["b"] = (reference["a"] + rng.integers(0, 2, 400) > 1).astype(np.int64)
    tables = [
        Measurement(Table(("a",), np.array([20, 31, 40])), DiscreteLaplace(2), Unit.ADD_REMOVE, COST),
        Measurement(
            Table(("b", "a"), np.array([[9, 20, 3], [17, 8, 33]])), DiscreteGaussian(9), Unit.ADD_REMOVE, COST
        ),
        Measurement(Table((), np.array(90)), DiscreteLaplace(1), Unit.ADD_REMOVE, COST),
    ]

    def spell(rows: dict[str, np.ndarray]) -> np.ndarray:
        return np.concatenate([np.eye(3)[rows["a"]], np.eye(6)[rows["b"] * 3 + rows["a"]]], axis=1)

    mean, spread = spell(reference).mean(axis=0), np.cov(spell(reference).T, bias=True)
    noise = np.repeat([tables[0].law.variance, tables[1].law.variance], [3, 6])
    counts = np.concatenate([table.noisy.values.ravel() for table in tables[:2]])
    weights = np.linalg.solve(90 * spread + np.diag(noise), counts - 90 * mean)
    expected = (spell(codes) - mean) @ weights
    found = score_jointly(tables, reference, 90, codes)
    assert np.ptp(found - expected) < 1e-4 and np.ptp(found) > 0.1


def test_the_nearest_row_is_the_nearest() -> None:
    rng = np.random.default_rng(8)
    sizes = {"a": 3, "b": 2, "c": 5, "d": 2}
    codes, others = ({n: rng.integers(0, s, rows) for n, s in sizes.items()} for rows in (40, 23))
    table, pool = (np.stack(list(found.values()), axis=1) for found in (codes, others))
    expected = (table[:, None, :] != pool[None]).sum(axis=2).min(axis=1)
    assert np.array_equal(measure_nearest(codes, others, sizes), expected)


def test_the_tree_is_a_maximum_spanning_tree_by_mutual_information() -> None:
    rows = examples.sachs().sample(3000, rng=5)
    codes, sizes = rows.codes(), rows.schema.sizes
    found = fit_tree(codes, sizes)

    def information(one: str, two: str) -> float:
        table = np.zeros((sizes[one], sizes[two]))
        np.add.at(table, (codes[one], codes[two]), 1.0)
        return float(
            stats.entropy(
                (table / table.sum()).ravel(), np.outer(table.sum(1), table.sum(0)).ravel() / table.sum() ** 2
            )
        )

    graph = nx.Graph()
    graph.add_weighted_edges_from((a, b, information(a, b)) for a, b in itertools.combinations(sizes, 2))
    best = nx.maximum_spanning_tree(graph).size(weight="weight")
    assert sum(information(a, b) for a, b in found.edges()) == pytest.approx(best)
    assert len(found.edges()) == len(sizes) - 1


def test_power_is_counted_above_the_order_statistic_and_banded_exactly() -> None:
    rng = np.random.default_rng(2)
    members, strangers = rng.normal(1, 1, 300), rng.normal(0, 1, 1000)
    found = measure_power("x", members, strangers, errors=(1e-4, 0.01, 0.25), confidence=0.9)
    for point in found.points:
        threshold = np.sort(strangers)[::-1][math.floor(point.error * 1000)]
        hits = int((members > threshold).sum())
        assert (point.hits, point.false_hits) == (hits, math.floor(point.error * 1000))
        band = stats.binomtest(hits, 300).proportion_ci(0.9, method="exact")
        assert (point.low, point.high) == pytest.approx((band.low, band.high), abs=1e-9)
    assert found.points[0].false_hits == 0  # α = 1e-4 of 1000 strangers rests on none, and says so
    assert found.auc == pytest.approx(stats.mannwhitneyu(members, strangers).statistic / 300_000)
    assert found.advantage == pytest.approx(stats.ks_2samp(strangers, members).statistic, abs=1e-9)
    assert (np.diff(found.curve) >= -1e-12).all()


def test_equal_scores_are_a_coin() -> None:
    found = measure_power("x", np.zeros(2000), np.full(2000, 0.0), errors=(0.1, 0.5))
    assert found.auc == pytest.approx(0.5, abs=0.03)
    assert found.points[1].power == pytest.approx(0.5, abs=0.05)
    certain = measure_power("x", np.full(50, np.inf), np.full(50, -np.inf), errors=(0.0, 0.1))
    assert certain.points[0].power == 1.0 and certain.auc == 1.0


def test_scores_that_are_none_are_refused() -> None:
    with pytest.raises(DataError, match="not a number"):
        measure_power("x", np.array([math.nan]), np.zeros(3))
    with pytest.raises(DataError, match="shape"):
        measure_power("x", np.zeros(0), np.zeros(3))
    with pytest.raises(DataError, match="error level"):
        measure_power("x", np.zeros(3), np.zeros(3), errors=(1.5,))


def test_theorem_1_by_its_definition() -> None:
    """z_α + z_{1−β} = √(C/|T|), with quantiles from SciPy."""
    for alpha, beta in zip([0.001, 0.01, 0.3], expect_power(14_246, 500, [0.001, 0.01, 0.3]), strict=True):
        assert stats.norm.isf(alpha) + stats.norm.isf(1 - beta) == pytest.approx(math.sqrt(14_246 / 500))
    assert expect_power(0, 5, ERRORS) == pytest.approx(ERRORS, abs=1e-12)
    with pytest.raises(DataError):
        expect_power(10, 0, [0.1])


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("delta", [0.0, 1e-3])
def test_the_ceiling_of_epsilon_delta_is_reached_by_randomised_response_and_passed_by_nothing(
    epsilon: float, delta: float
) -> None:
    """The best test between the dominating pair of (ε, δ)-DP, by Neyman and Pearson over its four outputs."""
    rest = (1 - delta) / (1 + math.exp(epsilon))
    inside = np.array([delta, rest * math.exp(epsilon), rest, 0.0])
    outside = inside[::-1]
    for alpha in ERRORS:
        left, power = alpha, 0.0
        for p, q in zip(inside, outside, strict=True):  # in falling order of the likelihood ratio
            share = 1.0 if q <= left else left / q
            power, left = power + share * p, left - share * q
        expected = min(1.0, power)
        assert float(limit_approx(epsilon, delta, alpha)) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("rho", [0.01, 0.125, 0.5, 2.0])
def test_the_ceiling_of_zcdp_is_above_gaussian_noise_and_tight(rho: float) -> None:
    ceiling = limit_concentrated(rho, ERRORS)
    assert (ceiling >= shift_normal(math.sqrt(2 * rho), ERRORS) - 1e-9).all()
    assert (np.diff(ceiling) >= 0).all() and (ceiling >= ERRORS).all()
    inner = slice(2, -2)

    def divergence(p: np.ndarray, q: np.ndarray, order: float) -> np.ndarray:
        return np.log(p**order * q ** (1 - order) + (1 - p) ** order * (1 - q) ** (1 - order)) / (order - 1)

    alpha, beta = ERRORS[inner], ceiling[inner]
    orders = 1 + np.geomspace(1e-3, 50, 200)
    slack = np.array(
        [1 - np.maximum(divergence(beta, alpha, a), divergence(alpha, beta, a)) / (rho * a) for a in orders]
    )
    assert (slack > -1e-3).all()  # the two coins at the ceiling are ρ-zCDP themselves
    raised = np.minimum(beta + 1e-3 * (1 - beta), 1 - 1e-12)
    assert all(
        any(
            max(divergence(b, a, order), divergence(a, b, order)) > rho * order
            for order in 1 + np.geomspace(1e-4, 1e5, 400)
        )
        for a, b in zip(alpha[:4], raised[:4], strict=True)
    )


@pytest.mark.parametrize("epsilon", ["1/4", "1", "3"])
def test_the_ceilings_of_two_notions_agree_where_one_implies_the_other(epsilon: str) -> None:
    pure = PureDP(epsilon)
    assert (limit_power(imply_zcdp(pure), ERRORS) >= limit_power(pure, ERRORS) - 1e-9).all()
    assert limit_power(ApproxDP(epsilon, 0), ERRORS) == pytest.approx(limit_power(pure, ERRORS))
    assert (limit_power(Infinite(), ERRORS) == 1.0).all()
    assert (limit_power(ZCDP(epsilon), ERRORS)[[0, -1]] == [0.0, 1.0]).all()
    with pytest.raises(DataError):
        limit_power(pure, [1.2])
