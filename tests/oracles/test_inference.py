"""Every path of exact inference gives what enumerating the joint gives, on networks of every small shape."""

from __future__ import annotations

from functools import partial, reduce

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.compute.inference import Engine
from discreet.values.errors import ImpossibleEvidence
from enumerated import EXACT, Case, cases, refuses

PATHS = ("numpy", "numba", "auto")
"""The last comes after the second, so the tree is compiled: small joints are then answered without it."""


@settings(deadline=None, max_examples=200)
@given(cases())
def test_posteriors_and_probability_of_evidence(case: Case) -> None:
    engine = case.network.engine
    asks = [
        *(partial(engine.posteriors, case.evidence, case.likelihoods, path) for path in PATHS),
        partial(case.network.posteriors, case.labels(case.evidence), likelihood=case.likelihoods),
    ]
    if case.total == 0:
        for ask in asks:
            refuses(ask)
        assert engine.log_probability(case.evidence, case.likelihoods) == -np.inf
        return
    for ask in asks:
        found = ask()
        assert list(found) == list(case.network.nodes)
        for name in case.network.nodes:
            np.testing.assert_allclose(found[name], case.margin([name]) / case.total, **EXACT)
        assert found.log_evidence == pytest.approx(np.log(case.total), rel=1e-12, abs=1e-12)
    found_log = engine.log_probability(case.evidence, case.likelihoods)
    assert found_log == pytest.approx(np.log(case.total), rel=1e-12, abs=1e-12)


@settings(deadline=None, max_examples=100)
@given(cases())
def test_the_marginal_of_one_target_with_and_without_the_compiled_path(case: Case) -> None:
    plain = Engine(case.network.dag, case.network.cpts)
    compiled = Engine(case.network.dag, case.network.cpts)
    compiled.posteriors({}, path="numba")
    for engine in (plain, compiled):
        for target in case.pick()[:3]:
            ask = partial(engine.marginal, target, case.evidence, case.likelihoods)
            if case.total == 0:
                refuses(ask)
            else:
                found = ask()
                np.testing.assert_allclose(found, case.margin([target]) / case.total, **EXACT)


@settings(deadline=None, max_examples=100)
@given(cases())
def test_the_joint_of_any_set_observed_targets_included(case: Case) -> None:
    targets = case.pick()
    ask = partial(case.network.engine.joint, targets, case.evidence, case.likelihoods)
    query = partial(case.network.query, targets, case.labels(case.evidence), likelihood=case.likelihoods)
    if case.total == 0:
        refuses(ask)
        refuses(query)
        return
    expected = case.margin(targets) / case.total
    found = ask()
    assert found.axes == tuple(targets)
    np.testing.assert_allclose(found.values, expected, **EXACT)
    answer = query()
    np.testing.assert_allclose(answer.probabilities, expected, **EXACT)
    for level, probability in list(answer.items())[:20]:
        codes = [
            case.network.schema[name].code(label)
            for name, label in zip(targets, (level,) if isinstance(level, str) else level, strict=True)
        ]
        assert probability == pytest.approx(expected[tuple(codes)], abs=1e-12)


@settings(deadline=None, max_examples=100)
@given(cases())
def test_the_probability_of_an_event(case: Case) -> None:
    rng = np.random.default_rng([case.seed, 1])
    event = {name: int(rng.integers(case.network.schema[name].size)) for name in case.pick()}
    ask = partial(
        case.network.probability,
        case.labels(event),
        case.labels(case.evidence),
        likelihood=case.likelihoods,
    )
    if case.total == 0:
        refuses(ask)
    else:
        expected = case.margin(event)[tuple(event.values())] / case.total
        assert ask() == pytest.approx(expected, rel=1e-12, abs=1e-12)


@settings(deadline=None, max_examples=120)
@given(cases())
def test_the_most_probable_levels_of_all_and_of_some(case: Case) -> None:
    engine = case.network.engine
    targets = case.pick()
    for asked in (None, targets):
        ask = partial(engine.most_probable, case.evidence, case.likelihoods, asked)
        say = partial(
            case.network.most_probable,
            case.labels(case.evidence),
            targets=asked,
            likelihood=case.likelihoods,
        )
        if case.total == 0:
            refuses(ask)
            refuses(say)
            continue
        codes, log_joint = ask()
        wanted = [name for name in asked or case.network.nodes if name not in case.evidence]
        assert list(codes) == wanted
        margin = case.margin(wanted)
        assert log_joint == pytest.approx(np.log(margin.max()), rel=1e-12, abs=1e-12)
        assert margin[tuple(codes.values())] == pytest.approx(margin.max(), rel=1e-12)
        said = say()
        assert said.levels == case.labels(codes)
        assert said.probability == pytest.approx(margin.max() / case.total, rel=1e-12)


@settings(deadline=None, max_examples=100)
@given(cases())
def test_the_chain_of_conditionals_multiplies_to_the_posterior(case: Case) -> None:
    nodes = case.network.nodes
    if case.total == 0:
        refuses(lambda: case.network.engine.decompose(case.evidence, case.likelihoods))
        observed = case.labels(case.evidence)
        refuses(lambda: case.network.sample(1, rng=0, given=observed, likelihood=case.likelihoods))
        return
    chain = case.network.engine.decompose(case.evidence, case.likelihoods)
    drawn: set[str] = set()
    for table in chain:
        assert drawn.issuperset(table.axes[:-1])
        drawn.add(table.axes[-1])
        np.testing.assert_allclose(table.values.sum(axis=-1), 1.0, **EXACT)
    assert len(chain) == len(nodes)
    assert drawn == set(nodes)
    product = reduce(np.multiply, (table.spread(nodes) for table in chain))
    np.testing.assert_allclose(product, case.joint / case.total, **EXACT)


@settings(deadline=None, max_examples=60)
@given(cases(soft=False), st.integers(1, 6), st.data())
def test_rows_of_evidence_and_the_row_that_is_impossible(case: Case, rows: int, data: st.DataObject) -> None:
    network, nodes = case.network, case.network.nodes
    rng = np.random.default_rng([case.seed, 2])
    drawn = network.sample(rows, rng=case.seed).codes()
    evidence = np.stack([drawn[name].astype(np.int64) for name in nodes], axis=1)
    evidence[rng.random(evidence.shape) < 0.5] = -1
    found, log_evidence = network.engine.posteriors_of_rows(evidence)
    singles = [
        Case(network, {name: int(code) for name, code in zip(nodes, row, strict=True) if code >= 0}, {}, 0)
        for row in evidence
    ]
    for r, single in enumerate(singles):
        expected = np.concatenate([single.margin([name]) / single.total for name in nodes])
        np.testing.assert_allclose(found[r], expected, **EXACT)
        assert log_evidence[r] == pytest.approx(np.log(single.total), rel=1e-12, abs=1e-12)
    labelled = {
        name: [None if code < 0 else network.schema[name].levels[code] for code in evidence[:, i]]
        for i, name in enumerate(nodes)
    }
    again, log_again = network.posteriors_of_rows(labelled)
    np.testing.assert_array_equal(again, found)
    np.testing.assert_array_equal(log_again, log_evidence)
    if case.total == 0:
        at = data.draw(st.integers(0, rows - 1))
        evidence[at] = [case.evidence.get(name, -1) for name in nodes]
        with pytest.raises(ImpossibleEvidence, match=rf"^row {at + 1}: .*probability zero"):
            network.engine.posteriors_of_rows(evidence)


@settings(deadline=None, max_examples=60)
@given(cases(soft=False))
def test_log_likelihood_of_complete_rows(case: Case) -> None:
    network = case.network
    rng = np.random.default_rng(case.seed)
    codes = {name: rng.integers(size, size=30) for name, size in network.schema.sizes.items()}
    joint = Case(network, {}, {}, 0).joint
    with np.errstate(divide="ignore"):
        expected = np.log(joint[tuple(codes[name] for name in network.nodes)])
    found = network.log_likelihood(network.schema.decode(codes))
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    for r in range(0, 30, 10):
        row = {name: int(codes[name][r]) for name in network.nodes}
        assert network.engine.log_probability(row) == pytest.approx(expected[r], rel=1e-12, abs=1e-12)


@settings(deadline=None, max_examples=40)
@given(cases())
def test_asking_changes_nothing(case: Case) -> None:
    """The same question after others, on any path, gives the same numbers; an answer is the caller's to keep."""
    engine = case.network.engine
    before = np.concatenate([*engine.posteriors({}, path="numba").values()])
    if case.total > 0:
        found = engine.posteriors(case.evidence, case.likelihoods, "numba")
        kept = np.concatenate([*found.values()])
        engine.posteriors({}, path="numba")
        np.testing.assert_array_equal(np.concatenate([*found.values()]), kept)
        found[case.network.nodes[0]][:] = -1.0
        engine.marginal(case.network.nodes[0], {})[:] = -1.0
    np.testing.assert_array_equal(np.concatenate([*engine.posteriors({}, path="numba").values()]), before)
