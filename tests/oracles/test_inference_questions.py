"""Single questions: pruned, compiled, and with the last evidence remembered, they give what the joint gives."""

from __future__ import annotations

import gc
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings

from discreet.compute.inference import Engine
from discreet.compute.inference.questions import Questions
from discreet.networks import examples
from discreet.networks.network import Network
from discreet.values.errors import ImpossibleEvidence
from enumerated import EXACT, Case, cases, refuses


def compile_engine(network: Network) -> Engine:
    engine = Engine(network.dag, network.cpts)
    engine.posteriors({}, path="numba")
    return engine


@settings(deadline=None, max_examples=60)
@given(cases())
def test_every_target_in_turn_and_jointly_with_other_evidence_between(case: Case) -> None:
    engine, nodes = compile_engine(case.network), case.network.nodes
    rng = np.random.default_rng(case.seed)
    other = Case(case.network, {nodes[0]: 0}, {}, case.seed)
    for target in [*nodes, *nodes]:
        for asked in (case, other) if rng.random() < 0.5 else (case,):
            if asked.total == 0:
                refuses(lambda: engine.marginal(target, asked.evidence, asked.likelihoods))  # noqa: B023
                continue
            found = engine.marginal(target, asked.evidence, asked.likelihoods)
            np.testing.assert_allclose(found, asked.margin([target]) / asked.total, **EXACT)
            found[:] = -1.0  # the caller's to keep
    targets = case.pick()
    if case.total == 0:
        refuses(lambda: engine.joint(targets, case.evidence, case.likelihoods))
    else:
        joint = engine.joint(targets, case.evidence, case.likelihoods)
        np.testing.assert_allclose(joint.values, case.margin(targets) / case.total, **EXACT)


@settings(deadline=None, max_examples=60)
@given(cases())
def test_the_elimination_itself_answers_or_says_that_it_does_not(case: Case) -> None:
    """Without the tree to fall back on: possible evidence is answered, impossible evidence never is."""
    engine = compile_engine(case.network)
    for target in (name for name in case.network.nodes if name not in case.evidence):
        found, cells = engine._ask([target], case.evidence, case.likelihoods, possible=False, limit=1e6)
        assert (found is None) == (case.total == 0)
        if found is not None:
            np.testing.assert_allclose(found, case.margin([target]) / case.total, **EXACT)
            again, fewer = engine._ask([target], case.evidence, case.likelihoods, possible=True, limit=1e6)
            np.testing.assert_allclose(again, found, **EXACT)
            assert fewer <= cells
    assert engine._ask([case.network.nodes[0]], {}, {}, possible=True, limit=-1.0)[0] is None


def test_evidence_that_contradicts_itself_apart_from_the_target() -> None:
    flip = [[1.0, 0.0], [0.0, 1.0]]
    network = Network.build(
        {name: ["no", "yes"] for name in "abc"},
        {"a": [], "b": ["a"], "c": []},
        {"a": [0.5, 0.5], "b": flip, "c": [0.25, 0.75]},
    )
    engine = compile_engine(network)
    for _ in range(2):
        with pytest.raises(ImpossibleEvidence):
            engine.marginal("c", {"a": 0, "b": 1})
        np.testing.assert_allclose(engine.marginal("c", {"a": 0, "b": 0}), [0.25, 0.75])
        np.testing.assert_allclose(engine.marginal("a", {"b": 1}), [0.0, 1.0])
    with pytest.raises(ImpossibleEvidence):
        engine.marginal("c", {"a": 0}, {"a": np.array([0.0, 1.0])})


def test_products_that_would_underflow_are_left_to_logarithms() -> None:
    leaves = [f"leaf{i}" for i in range(120)]
    network = Network.build(
        {name: ["no", "yes"] for name in ["root", *leaves]},
        {"root": [], **{leaf: ["root"] for leaf in leaves}},
        {"root": [0.5, 0.5], **{leaf: [[1 - 1e-3, 1e-3], [1 - 2e-3, 2e-3]] for leaf in leaves}},
    )
    engine = compile_engine(network)
    observed = dict.fromkeys(leaves, 1)
    assert engine._ask(["root"], observed, {}, possible=False, limit=1e6)[0] is None
    odds = 2.0**120
    np.testing.assert_allclose(
        engine.marginal("root", observed), [1 / (1 + odds), odds / (1 + odds)], rtol=1e-9
    )


def test_the_prior_and_the_last_evidence_cost_no_elimination(monkeypatch: pytest.MonkeyPatch) -> None:
    network = examples.load("alarm")
    engine = compile_engine(network)
    evidence = {"HRBP": 1, "CVP": 0}
    expected = engine.posteriors(evidence).to_dict()
    prior = engine.posteriors({}).to_dict()
    asked = []
    ask = Questions.ask

    def count(*arguments: object, **options: object) -> object:
        asked.append(1)
        return ask(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Questions, "ask", count)
    for _ in range(3):
        for name in network.nodes:
            np.testing.assert_allclose(engine.marginal(name, evidence), expected[name], **EXACT)
            np.testing.assert_allclose(engine.marginal(name, {}), prior[name], **EXACT)
    # Once they have cost as much as all posteriors, those are made; after that nothing costs anything.
    assert 1 <= len(asked) < len(network.nodes)


def test_threads_share_an_engine_and_nothing_piles_up() -> None:
    network = examples.load("alarm")
    engine = compile_engine(network)
    rng = np.random.default_rng(0)
    codes = network.sample(40, rng=1).codes()
    questions = []
    for row in range(40):
        names = [str(name) for name in rng.choice(network.nodes, 4, replace=False)]
        evidence = {name: int(codes[name][row]) for name in names[1:]}
        questions.append((names[0], evidence, engine.posteriors(evidence)[names[0]].copy()))

    def run(turn: int) -> float:
        order = np.random.default_rng(turn).permutation(len(questions))
        return max(
            float(np.abs(engine.marginal(t, e) - p).max()) for t, e, p in (questions[k] for k in order)
        )

    with ThreadPoolExecutor(6) as pool:
        assert max(pool.map(run, range(24))) < 1e-12
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for turn in range(5):
        run(turn)
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < 20_000
