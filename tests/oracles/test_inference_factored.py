"""Trees whose large cliques are never multiplied out give what the joint gives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from discreet.compute.inference import Engine, factored
from discreet.compute.inference.buckets import contract
from discreet.compute.inference.factored import NEVER, FactoredTree, factor_if_worth
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


def test_messages_that_are_taken_from_memory_are_those_that_would_be_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And some are, else this would say nothing."""
    network = examples.load("alarm")
    engine, tree = take_apart(network)
    _, other = take_apart(network)
    other._prior_down = [NEVER] * len(other._prior_down)
    other._prior_read = [(np.empty(0), NEVER.origin)] * len(other._prior_read)
    codes = network.sample(12, rng=3).codes()
    rng = np.random.default_rng(3)
    calls: list[None] = []
    monkeypatch.setattr(factored, "contract", lambda *tables: (calls.append(None), contract(*tables))[1])
    made = [0, 0]
    for row in range(12):
        names = [str(name) for name in rng.choice(network.nodes, 1 + row % 5, replace=False)]
        evidence = {name: int(codes[name][row]) for name in names}
        found = []
        for k, each in enumerate((tree, other)):
            calls.clear()
            found.append(each.condition(*engine._enter(evidence, {})))
            made[k] += len(calls)
        assert found[0][1] == pytest.approx(found[1][1], rel=1e-12)
        np.testing.assert_allclose(found[0][0], found[1][0], **EXACT)
        expected = engine.posteriors(evidence, path="numpy")
        for name in network.nodes:
            np.testing.assert_allclose(found[0][0][engine._at[name]], expected[name], **EXACT)
    assert 0 < made[0] < made[1]


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
