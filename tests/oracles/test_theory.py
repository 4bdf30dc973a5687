"""Theorems 4.1 and 4.2 of [000] beside the errors that they are about: one holds, the other does not."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq, minimize

from discreet.compute.inference import Engine
from discreet.networks import examples
from discreet.networks.network import Network
from discreet.papers.parameters.allocation import estimate_error, plan_allocation
from discreet.papers.theory.query_bounds import (
    Bounds,
    bound_above,
    bound_below,
    bound_by_ancestors,
    bound_query,
    bound_saving,
    choose_order,
    count_degree,
    find_extremes,
    find_width,
    read_order,
)
from discreet.values.errors import QueryError
from discreet.values.graph import DAG
from discreet.values.table import Table

FIGURE_1 = DAG.build({"A": [], "B": [], "C": ["A", "B"], "D": ["C"], "E": ["C"], "F": ["D", "E"]})


@dataclass(frozen=True, slots=True)
class Step:
    """One sum-product step of variable elimination, in the true and in the noisy network at once."""

    variable: str
    scope: tuple[str, ...]
    """The attributes of all factors with the variable, itself included."""
    factors: int
    error: float
    """Σ_a |φ_A[a] − φ̃_A[a]| of the factor that the step makes."""
    bounds: Bounds

    @property
    def covered(self) -> bool:
        """Whether the theorems speak about the step: they are about products of at least two factors."""
        return self.factors >= 2


def trace_elimination(
    dag: DAG,
    true: Sequence[Table],
    noisy: Sequence[Table],
    targets: Sequence[str],
    order: Sequence[str] | None = None,
) -> tuple[Step, ...]:
    """Every step of eliminating `order` from P(targets): its error, and the bounds from the factors that enter it."""
    eliminated = read_order(dag, targets, order)
    kept = [name for name in dag.nodes if name in {*targets, *eliminated}]
    pairs = [
        (true[dag.index(name)], noisy[dag.index(name)].arrange(true[dag.index(name)].axes)) for name in kept
    ]
    degree, levels = count_degree(dag), max(max(table.values.shape) for table in true)
    found: list[tuple[str, tuple[str, ...], int, float, float, float, float]] = []
    for name in eliminated:
        entering = [pair for pair in pairs if name in pair[0].axes]
        pairs = [pair for pair in pairs if name not in pair[0].axes]
        products = [multiply([pair[side] for pair in entering]) for side in (0, 1)]
        left = [axis for axis in products[0].axes if axis != name]
        made = products[0].project(left), products[1].project(left)
        pairs.append(made)
        found.append((name, products[0].axes, len(entering), distance(made), *find_extremes(entering)))
    width = max((len(scope) - 1 for _, scope, *_ in found), default=0)
    return tuple(
        Step(
            name,
            scope,
            factors,
            error,
            Bounds(
                bound_below(degree, least, value),
                bound_above(degree, levels, width, greatest),
                degree,
                width,
                levels,
            ),
        )
        for name, scope, factors, error, least, greatest, value in found
    )


def multiply(tables: Sequence[Table]) -> Table:
    product = tables[0]
    for table in tables[1:]:
        product = product.multiply(table)
    return product


def distance(pair: tuple[Table, Table]) -> float:
    return float(np.abs(pair[0].values - pair[1].arrange(pair[0].axes).values).sum())


def randomise(dag: DAG, rng: np.random.Generator, levels: int = 4) -> list[Table]:
    """Random tables over random domains."""
    sizes = {name: int(rng.integers(2, levels)) for name in dag.nodes}
    return [
        Table(family, rng.gamma(0.5, size=[sizes[name] for name in family]) + 1e-9).normalise(family[-1])
        for family in dag.families()
    ]


def disturb(cpts: Sequence[Table], rng: np.random.Generator, noise: float) -> list[Table]:
    """The tables as noise of this size would leave them: clamped and renormalised."""
    return [
        Table(cpt.axes, np.maximum(cpt.values + rng.laplace(0, noise, cpt.values.shape), 0.0)).normalise(
            cpt.axes[-1]
        )
        for cpt in cpts
    ]


def enumerate_marginal(cpts: Sequence[Table], targets: Sequence[str]) -> Table:
    joint = cpts[0]
    for cpt in cpts[1:]:
        joint = joint.multiply(cpt)
    return joint.project(targets)


def random_graph(rng: np.random.Generator, nodes: int) -> DAG:
    names = [f"x{i}" for i in range(nodes)]
    return DAG.build(
        {
            name: list(rng.choice(names[:i], size=rng.integers(0, min(i, 3) + 1), replace=False)) if i else []
            for i, name in enumerate(names)
        }
    )


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32), st.integers(3, 7), st.floats(1e-4, 0.5), st.booleans())
def test_every_step_stays_below_the_upper_bound(seed: int, nodes: int, noise: float, shuffled: bool) -> None:
    """[000, Thm. 4.2] in any order, with the width of that order; half of the printed bound is enough."""
    rng = np.random.default_rng(seed)
    dag = random_graph(rng, nodes)
    true = randomise(dag, rng)
    noisy = disturb(true, rng, noise)
    targets = [str(name) for name in rng.choice(dag.nodes, size=rng.integers(1, 3), replace=False)]
    order = list(choose_order(dag, targets))
    if shuffled:
        rng.shuffle(order)
    steps = trace_elimination(dag, true, noisy, targets, order)
    for step in steps:
        if step.covered:
            assert step.error <= step.bounds.upper / 2 + 1e-12
    whole = np.abs(enumerate_marginal(true, targets).values - enumerate_marginal(noisy, targets).values).sum()
    assert whole <= bound_by_ancestors(dag, true, noisy, targets) + 1e-12


def test_the_steps_compute_the_query() -> None:
    """Eliminating down to one target leaves the error of its marginal."""
    rng = np.random.default_rng(2)
    true = randomise(FIGURE_1, rng)
    noisy = disturb(true, rng, 0.05)
    for order in itertools.permutations("ABCDE"):
        last = trace_elimination(FIGURE_1, true, noisy, ["F"], order)[-1]
        exact = enumerate_marginal(true, ["F"]).values - enumerate_marginal(noisy, ["F"]).values
        assert last.error == pytest.approx(np.abs(exact).sum(), rel=1e-9)


def test_the_numbers_of_the_example_of_the_paper() -> None:
    """[000, Sec. 4]: "for the DGM in Fig. 1, the maximum error is bounded by 2·η·d²·δ"."""
    assert count_degree(FIGURE_1) == 5  # C: two parents, two children, plus 1
    assert find_width(FIGURE_1, ["F"]) == 2
    assert find_width(FIGURE_1, ["F"], "CABDE") == 4  # a worse order leaves A, B, D and E at once
    assert bound_above(5, 2, 2, 0.01) == pytest.approx(2 * 5 * 4 * 0.01)
    assert bound_below(5, 0.01, 0.1) == pytest.approx(2 * 0.01 * 0.1**3)
    assert bound_below(1, 0.5, 0.5) == 0.0


def test_the_lower_bound_does_not_hold() -> None:
    """[000, Thm. 4.1] Every parameter of X → Y is off by 0.1, and P(Y) is exact: the errors cancel.

    This is the case of the proof, where φ_1 is a distribution of X alone; "dropping ±" is where it goes wrong.
    """
    dag = DAG.build({"X": [], "Y": ["X"]})
    true = [Table(("X",), np.array([0.5, 0.5])), Table(("X", "Y"), np.array([[0.6, 0.4], [0.4, 0.6]]))]
    noisy = [Table(("X",), np.array([0.6, 0.4])), Table(("X", "Y"), np.array([[0.5, 0.5], [0.5, 0.5]]))]
    (step,) = trace_elimination(dag, true, noisy, ["Y"])
    assert step.covered
    assert step.bounds.lower == pytest.approx(0.1)
    assert step.error == pytest.approx(0.0, abs=1e-12)
    assert bound_query(dag, true, noisy, ["Y"]).lower == pytest.approx(0.1)


def test_the_lower_bound_fails_on_ordinary_noise_too() -> None:
    """[000, Thm. 4.1] On X → Y with random tables and noise, the error is often below the bound."""
    rng = np.random.default_rng(41)
    dag = DAG.build({"X": [], "Y": ["X"]})
    below = 0
    for _ in range(400):
        true = randomise(dag, rng, levels=3)
        (step,) = trace_elimination(dag, true, disturb(true, rng, 0.05), ["Y"])
        below += step.error < step.bounds.lower
    assert below > 20


def test_parameter_errors_do_not_bound_a_whole_query() -> None:
    """[000, Table 2] A chain of 60 copies, each wrong with probability 0.01, leaves the bound of a step behind."""
    names = [f"x{i}" for i in range(60)]
    dag = DAG.build({name: names[max(i - 1, 0) : i] for i, name in enumerate(names)})
    true = [
        Table(family, np.eye(2)) if len(family) == 2 else Table(family, np.array([1.0, 0.0]))
        for family in dag.families()
    ]
    flipped = np.array([[0.99, 0.01], [0.0, 1.0]])
    noisy = [Table(cpt.axes, flipped if len(cpt.axes) == 2 else cpt.values) for cpt in true]
    error = 2 * (1 - 0.99**59)
    assert trace_elimination(dag, true, noisy, names[-1:])[-1].error == pytest.approx(error)
    assert error > 3 * bound_query(dag, true, noisy, names[-1:]).upper
    assert error <= bound_by_ancestors(dag, true, noisy, names[-1:]) == pytest.approx(2 * 59 * 0.01)


@pytest.mark.parametrize(("name", "degree", "levels"), [("asia", 5, 2), ("sachs", 8, 3)])
def test_the_structure_of_the_networks(name: str, degree: int, levels: int) -> None:
    network = examples.load(name)
    bounds = bound_query(network.dag, network.cpts, network.cpts, [network.nodes[-1]])
    assert (bounds.degree, bounds.levels) == (degree, levels)
    assert bounds.lower == bounds.upper == 0.0  # no error, no bounds


def test_scale_normalised_errors() -> None:
    """[000, Sec. 5.2]: 0 at the lower bound, 1 at the upper."""
    bounds = Bounds(0.1, 0.5, 3, 1, 2)
    assert [bounds.normalise(error) for error in (0.1, 0.3, 0.5)] == pytest.approx([0.0, 0.5, 1.0])


@settings(deadline=None, max_examples=50)
@given(st.lists(st.floats(0.01, 100), min_size=2, max_size=6), st.integers(0, 2**32))
def test_no_split_saves_more_than_the_best_one(costs: list[float], seed: int) -> None:
    """An even split at ε = saving has the error of the best split at ε = 1, and no other split has less."""
    a = np.array(costs)
    shares = np.sqrt(a) / np.sqrt(a).sum()
    saving = bound_saving(costs)
    assert (a / shares).sum() == pytest.approx(len(a) * a.sum() / saving)
    others = np.random.default_rng(seed).dirichlet(np.ones(len(a)), size=200)
    assert ((a / np.maximum(others, 1e-12)).sum(axis=1) >= len(a) * a.sum() / saving * (1 - 1e-9)).all()


def test_the_claim_of_the_paper_is_beyond_any_split() -> None:
    """[000, Sec. 5.2] claims that a split saves two thirds of ε; in the error of the conditionals it cannot."""
    limits = {
        name: bound_saving([float(cpt.cells) for cpt in examples.load(name).cpts])
        for name in examples.names()
    }
    assert max(limits.values()) < 1.5


def expect_counts(network: Network, rows: float) -> list[np.ndarray]:
    """The expected number of rows with each combination of a node's parents."""
    engine = Engine(network.dag, network.cpts)
    return [
        rows * np.asarray(engine.joint(list(cpt.axes[:-1]), {}).arrange(cpt.axes[:-1]).values)
        for cpt in network.cpts
    ]


def test_nor_does_a_split_save_that_in_the_papers_own_error() -> None:
    """[000, Sec. 5.2] Every conditional counts alike: levels/m each, and if the error levels off at 1, far less."""
    expected = {"asia": (2.7, 1.5), "sachs": (2.1, 1.2), "child": (1.2, 1.1), "alarm": (2.7, 1.2)}
    for name, (limit, levelled) in expected.items():
        network = examples.load(name)
        costs = [
            cpt.values.shape[-1] / np.maximum(np.ravel(counts), 1.0)
            for cpt, counts in zip(network.cpts, expect_counts(network, 10_000), strict=True)
        ]
        assert bound_saving([float(cost.mean()) for cost in costs]) == pytest.approx(limit, abs=0.05)

        def level_off(shares: np.ndarray, costs: list[np.ndarray] = costs) -> float:
            noise = [2 * cost / share for cost, share in zip(costs, shares, strict=True)]
            return float(sum((found / (1 + found)).mean() for found in noise))

        def lose(logits: np.ndarray, level_off: Callable[[np.ndarray], float] = level_off) -> float:
            return level_off(np.exp(logits - np.logaddexp.reduce(logits)))

        best = minimize(lose, [0.5 * math.log(cost.mean()) for cost in costs], method="L-BFGS-B").fun
        even = np.full(len(costs), 1 / len(costs))
        saved = brentq(lambda total: level_off(total * even) - best, 0.5, 10)  # noqa: B023
        assert saved == pytest.approx(levelled, abs=0.06)


def test_the_papers_split_is_worse_than_an_even_one() -> None:
    """[000, Eq. 11 to 13] With exact counts and the first look for free, by Σ cells/ε_i; 1 would be as good."""
    found = {}
    for name in examples.names():
        network = examples.load(name)
        errors = {
            node: estimate_error(
                cpt, Table(cpt.axes, cpt.values * above[..., np.newaxis]), Table(cpt.axes[:-1], above), 1.0
            )
            for node, cpt, above in zip(
                network.nodes, network.cpts, expect_counts(network, 10_000), strict=True
            )
        }
        shares = plan_allocation(network.dag, network.schema.sizes, errors).shares
        cells = {node: cpt.cells for node, cpt in zip(network.nodes, network.cpts, strict=True)}
        spent = sum(cells[node] / float(shares[node]) for node in network.nodes)
        found[name] = len(cells) * sum(cells.values()) / spent
    assert found == pytest.approx({"asia": 0.48, "sachs": 0.67, "child": 0.82, "alarm": 0.73}, abs=0.01)


def test_alarm_is_traced_in_a_moment() -> None:
    """A real network with the tables of a noisy release: the last step is the engine's answer."""
    alarm = examples.alarm()
    noisy = disturb(alarm.cpts, np.random.default_rng(3), 0.01)
    steps = trace_elimination(alarm.dag, alarm.cpts, noisy, ["BP"])
    engines = Engine(alarm.dag, alarm.cpts), Engine(alarm.dag, noisy)
    exact, estimate = (engine.marginal("BP", {}) for engine in engines)
    assert steps[-1].error == pytest.approx(np.abs(exact - estimate).sum(), rel=1e-6)
    assert all(
        math.isfinite(step.bounds.upper) and step.error <= step.bounds.upper for step in steps if step.covered
    )


def test_queries_and_orders_that_make_no_sense_are_refused() -> None:
    true = randomise(FIGURE_1, np.random.default_rng(1))
    for targets, order in (
        ([], None),
        (["F", "F"], None),
        (["F"], "ABCD"),
        (["C"], "ABD"),
        (["F"], "ABCDEF"),
    ):
        with pytest.raises(QueryError):
            trace_elimination(FIGURE_1, true, true, targets, order)
