"""The planned learner through a real airlock: exact budgets, valid networks, less error, the claimed loss."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from _distances import compare_cpts
from chance import SURE
from discreet.core.airlock import Airlock
from discreet.entrance import open_airlock
from discreet.judge.experiments.empirical_epsilon import Draw, empirical_epsilon
from discreet.judge.noise_fit import fit_law
from discreet.learning.plan import plan
from discreet.learning.planned import estimate, planned
from discreet.networks import examples
from discreet.networks.network import Network
from discreet.papers.parameters.independent import independent
from discreet.values.budget import ZCDP, ApproxDP, PureDP
from discreet.values.errors import DiscreetError, GraphError, TableError
from discreet.values.graph import DAG
from discreet.values.schema import Schema

UNITS = ["add-remove", "replace-one"]
FOUR = Schema.of({"a": ["x", "y"], "b": ["u", "v", "w"], "c": ["0", "1"], "d": ["p", "q"]})
ROWS = {"a": ["x"] * 5 + ["y"], "b": ["u"] * 5 + ["v"], "c": ["0"] * 5 + ["1"], "d": ["p"] * 6}
GRAPHS = {
    "no edges": DAG.build({"a": [], "b": [], "c": [], "d": []}),
    "complete": DAG.build({"a": [], "b": ["a"], "c": ["a", "b"], "d": ["a", "b", "c"]}),
    "two parts": DAG.build({"a": ["b"], "b": [], "c": ["d"], "d": []}),
}
PAIR = Schema.of({"a": ["no", "yes"], "b": ["low", "high"]})
ARROW = DAG.build({"a": [], "b": ["a"]})


def open_rows(network: Network, rows: int, seed: int, unit: str = "add-remove") -> Airlock:
    return open_airlock(
        network.sample(rows, rng=seed).arrow(), network.schema, budget=PureDP(10**6), unit=unit
    )


def mean_error(network: Network, learned: Network) -> float:
    weights = [network.engine.joint(family, {}) for family in network.dag.families()]
    return compare_cpts(network.dag, network.cpts, learned.cpts, weights=weights)


# Budgets and provenance


@pytest.mark.parametrize("unit", UNITS)
def test_the_whole_spend_is_paid_and_not_a_bit_more(unit: str) -> None:
    network = examples.asia()
    airlock = open_airlock(
        network.sample(500, rng=3).arrow(), network.schema, budget=PureDP("5/3"), unit=unit
    )
    learned = planned(airlock, network.dag, spend="2/3")
    assert airlock.remaining == PureDP(1)
    known = learned.provenance
    assert known is not None
    assert (known.learner, known.unit.value) == ("planned", unit)
    assert known.cost == PureDP("2/3")
    costs = [found.cost for found in known.measurements]
    assert sum((cost.epsilon for cost in costs), Fraction(0)) == Fraction(2, 3)  # type: ignore[union-attr]
    assert set(known.predicted_error) == set(network.nodes)
    assert all(0 < error <= 2 for error in known.predicted_error.values())
    chosen = plan(network.dag, network.schema, spend="2/3", unit=unit, rows=known.details["planned for rows"])
    assert [found.axes for found in known.measurements] == list(chosen.sets)
    json.dumps(known.details)


def test_a_repeated_request_is_the_same_network_for_nothing() -> None:
    airlock = open_airlock(ROWS, FOUR, budget=PureDP(1))
    one, other = (planned(airlock, GRAPHS["complete"], spend="1", request="once") for _ in range(2))
    assert airlock.remaining.is_zero
    assert one.close_to(other, 0.0)


def test_what_was_measured_is_all_that_is_needed() -> None:
    """The same tables give the same network again, without the airlock."""
    network = examples.sachs()
    learned = planned(open_rows(network, 5000, 1), network.dag, spend=1)
    assert learned.provenance is not None
    again = estimate(network.dag, learned.provenance.measurements)
    assert all(one.close_to(other, 0.0) for one, other in zip(learned.cpts, again, strict=True))


def test_the_noise_has_the_planned_law() -> None:
    """A wide table of one row, whose true counts are known: what is left in 1,199 cells is noise of its law."""
    wide = Schema.of({"a": range(30), "b": range(40)})
    airlock = open_airlock({"a": [0], "b": [0]}, wide, budget=PureDP(1))
    known = planned(airlock, ARROW, spend="1").provenance
    assert known is not None
    (found,) = (table for table in known.measurements if len(table.axes) == 2)
    noise = found.noisy.values.ravel()[1:]
    assert noise.size == 1199 and fit_law(noise, found.law) > 1e-6


# Valid networks, whatever is asked


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("graph", list(GRAPHS))
@pytest.mark.parametrize(
    ("budget", "spend"),
    [
        (PureDP(1000), "0.01"),
        (PureDP(1000), 1),
        (PureDP(1000), 100),
        (ZCDP(100), "0.0001"),
        (ZCDP(100), "1/2"),
        (ZCDP(100), 50),
        (ApproxDP(10, "1e-3"), ApproxDP(1, "1e-6")),
        (ApproxDP(10, "1e-3"), "1"),
    ],
)
def test_networks_are_valid(graph: str, unit: str, budget: Any, spend: Any) -> None:
    """Parent rows without data, attributes of one value only, six rows, tiny and huge budgets, all kinds of them."""
    airlock = open_airlock(ROWS, FOUR, budget=budget, unit=unit)
    learned = planned(airlock, GRAPHS[graph], spend=spend)  # a Network checks its tables itself
    assert learned.provenance is not None
    kind = learned.provenance.details["noise"]
    assert kind == ("laplace" if isinstance(budget, PureDP) else "gaussian")
    alone = open_airlock({"a": ["x", "x", "y"]}, Schema.of({"a": ["x", "y", "z"]}), budget=budget, unit=unit)
    planned(alone, DAG.build({"a": []}), spend=spend)


def test_with_a_huge_budget_it_is_the_frequencies() -> None:
    network = examples.asia()
    airlock = open_rows(network, 10_000, 5)
    learned = planned(airlock, network.dag, spend=1000)
    exact = estimate(network.dag, airlock.reveal(network.dag.maximal_families(), reason="test"))
    assert all(one.close_to(other, 0.02) for one, other in zip(learned.cpts, exact, strict=True))
    sure = learned.cpt("either").values  # deterministic: tuberculosis or lung cancer
    assert np.minimum(sure, 1 - sure).max() < 0.02


@pytest.mark.parametrize("workload", ["cpds", "marginals", [["asia", "dysp"], ["xray"]]])
def test_workloads_and_priors(workload: Any) -> None:
    network = examples.asia()
    airlock = open_rows(network, 2000, 2)
    learned = planned(airlock, network.dag, spend=1, workload=workload, prior=1.0, rows=2000)
    assert min(cpt.values.min() for cpt in learned.cpts) > 0
    assert learned.provenance is not None
    assert learned.provenance.details["options"]["prior"] == 1.0


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"workload": "all"}, DiscreetError),
        ({"noise": "gaussian"}, DiscreetError),
        ({"prior": -1.0}, TableError),
        ({"rounds": 0}, DiscreetError),
        ({"rows": 0}, DiscreetError),
    ],
)
def test_refusals_spend_nothing(options: dict[str, Any], error: type[DiscreetError]) -> None:
    airlock = open_airlock(ROWS, FOUR, budget=PureDP(1))
    with pytest.raises(error):
        planned(airlock, GRAPHS["complete"], spend=1, **options)
    with pytest.raises(GraphError):
        planned(airlock, DAG.build({"a": [], "b": []}), spend=1)
    assert airlock.remaining == PureDP(1)


# Less error


@pytest.mark.parametrize(("name", "runs"), [("asia", 16), ("sachs", 4), ("child", 4), ("alarm", 4)])
def test_the_error_is_below_that_of_even_shares_at_twice_the_budget(name: str, runs: int) -> None:
    """It needs about a third to a sixth of the budget: against twice of it, the means are 6 deviations apart."""
    network = examples.load(name)
    airlock = open_rows(network, 10_000, 11)
    ours = np.mean([mean_error(network, planned(airlock, network.dag, spend="1/4")) for _ in range(runs)])
    even = [mean_error(network, independent(airlock, network.dag, spend="1/2")) for _ in range(runs)]
    theirs = np.mean(even)
    assert ours < theirs


@pytest.mark.parametrize("name", ["sachs", "child"])
def test_a_graph_that_lacks_edges_is_not_believed_against_the_data(name: str) -> None:
    """Its conditionals are those of the rows; merged tables must not bend them to independences that do not hold."""
    network = examples.load(name)
    rng = np.random.default_rng(1)
    kept = {v: [p for p in network.dag.parents_of(v) if rng.random() > 0.33] for v in network.nodes}
    dag = DAG.build(kept)
    assert len(dag.edges()) < 0.75 * len(network.dag.edges())
    joints = [network.engine.joint(family, {}) for family in dag.families()]
    truth = [joint.normalise(joint.axes[-1]) for joint in joints]
    airlock = open_rows(network, 10_000, 1)

    def error(learn: Any) -> float:
        found = [learn(airlock, dag, spend=1).cpts for _ in range(4)]
        return float(np.mean([compare_cpts(dag, truth, cpts, weights=joints) for cpts in found]))

    assert error(planned) < 0.8 * error(independent)


@pytest.mark.parametrize("name", ["sachs", "alarm"])
def test_the_predicted_error_is_about_the_one_that_is_made(name: str) -> None:
    """The noise's part, at a budget where it dominates what the sample of rows is off by.

    One release is off by a twelfth, the mean of four by half of that: half of the prediction is ten deviations away.
    """
    network = examples.load(name)
    airlock = open_rows(network, 10_000, 4)
    predicted, made = [], []
    for _ in range(4):
        learned = planned(airlock, network.dag, spend="1/4")
        assert learned.provenance is not None
        predicted.append(np.mean(list(learned.provenance.predicted_error.values())))
        made.append(mean_error(network, learned))
    assert 0.5 < np.mean(predicted) / np.mean(made) < 2.0


# The claimed loss


def runs(rows: dict[str, list[str]], spend: str) -> Draw:
    """What one run of the whole learner shows: its noisy tables and its conditionals."""
    airlock = open_airlock(rows, PAIR, budget=PureDP(10**6))

    def draw(trials: int) -> np.ndarray:
        found = []
        for _ in range(trials):
            learned = planned(airlock, ARROW, spend=spend, max_cells=1)
            assert learned.provenance is not None
            noisy = [found.noisy.values.ravel() for found in learned.provenance.measurements]
            found.append(np.concatenate([*noisy, *(cpt.values.ravel() for cpt in learned.cpts)]))
        return np.array(found)

    return draw


# With fewer than 94 runs no evidence could refute 1.
@pytest.mark.parametrize("trials", [120, pytest.param(4000, marks=pytest.mark.slow)])
def test_the_empirical_loss_stays_below_the_claim(trials: int) -> None:
    """Neighbours that differ in a row that nobody else is like."""
    evidence = empirical_epsilon(
        runs({"a": ["no", "yes"], "b": ["low", "high"]}, "1"),
        runs({"a": ["no"], "b": ["low"]}, "1"),
        trials=trials,
        confidence=SURE,
    )
    assert not evidence.contradicts(1.0), evidence
