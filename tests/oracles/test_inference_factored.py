"""Trees whose large cliques are never multiplied out give what the joint gives, on any number of threads."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from discreet.compute.inference import Engine, factored
from discreet.compute.inference.factored import FactoredTree, factor_if_worth
from discreet.networks import examples
from discreet.networks.network import Network
from enumerated import EXACT, Case, cases


def take_apart(network: Network) -> tuple[Engine, FactoredTree]:
    engine = Engine(network.dag, network.cpts)
    return engine, FactoredTree(
        engine.junction, [engine.junction.index[cpt.axes[-1]] for cpt in network.cpts]
    )


def check(case: Case) -> None:
    engine, tree = take_apart(case.network)
    out, log_evidence = tree.condition(*engine._enter(case.evidence, case.likelihoods))
    if case.total == 0:
        assert np.isnan(log_evidence)
        return
    assert log_evidence == pytest.approx(np.log(case.total), rel=1e-12, abs=1e-12)
    for name in case.network.nodes:
        np.testing.assert_allclose(out[engine._at[name]], case.margin([name]) / case.total, **EXACT)


@settings(deadline=None, max_examples=100)
@given(cases())
def test_posteriors_and_probability_of_evidence(case: Case) -> None:
    check(case)


def test_threads_change_no_digit(monkeypatch: pytest.MonkeyPatch) -> None:
    network = examples.load("alarm")
    engine, tree = take_apart(network)
    codes = network.sample(12, rng=3).codes()
    rng = np.random.default_rng(3)
    for row in range(12):
        names = [str(name) for name in rng.choice(network.nodes, 4, replace=False)]
        entered = engine._enter({name: int(codes[name][row]) for name in names}, {})
        monkeypatch.setattr(factored, "LARGE", 2**40)
        alone, log_alone = tree.condition(*entered)
        monkeypatch.setattr(factored, "LARGE", 0)
        together, log_together = tree.condition(*entered)
        np.testing.assert_array_equal(alone, together)
        assert log_alone == log_together
        evidence = {name: int(codes[name][row]) for name in names}
        expected = engine.posteriors(evidence, path="numpy")
        for name in network.nodes:
            np.testing.assert_allclose(alone[engine._at[name]], expected[name], **EXACT)


def test_a_tree_of_small_cliques_is_left_as_it_is_and_a_wide_one_is_taken_apart() -> None:
    engine, _ = take_apart(examples.load("alarm"))
    children = [engine.junction.index[cpt.axes[-1]] for cpt in engine.cpts]
    assert factor_if_worth(engine.junction, children) is None
    # Two layers, each child with three of the parents: one clique of all parents, and small tables.
    rng = np.random.default_rng(0)
    parents: dict[str, list[str]] = {f"p{i}": [] for i in range(7)}
    parents |= {f"c{i}{j}": [f"p{i}", f"p{j}"] for i in range(7) for j in range(i)}
    levels = {name: [f"{name}{k}" for k in range(8 if name[0] == "p" else 2)] for name in parents}
    network = Network.build(
        levels,
        parents,
        {
            name: rng.dirichlet(np.ones(len(levels[name])), size=[8] * len(above))
            if above
            else rng.dirichlet(np.ones(8))
            for name, above in parents.items()
        },
    )
    wide = Engine(network.dag, network.cpts)
    wide.posteriors({}, path="numba")
    compiled = wide._compiled
    assert compiled is not None
    assert compiled.factored is not None
    for evidence in ({}, {"c10": 1, "c65": 0, "c43": 1}, {"c20": 0, "p3": 5}):
        found = wide.posteriors(evidence)
        expected = wide.posteriors(evidence, path="numpy")
        assert found.log_evidence == pytest.approx(expected.log_evidence, abs=1e-12)
        for name in network.nodes:
            np.testing.assert_allclose(found[name], expected[name], **EXACT)
