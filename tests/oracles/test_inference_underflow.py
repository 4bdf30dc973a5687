"""Probabilities far below what a float can hold: answers are compared with exact fractions, on both paths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cache
from itertools import product
from math import log, prod

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.networks.network import Network

Floats = npt.NDArray[np.float64]
PATHS = ("numpy", "numba")


def log_fraction(value: Fraction) -> float:
    """The logarithm of a fraction whose terms no float can hold."""
    power = value.numerator.bit_length() - value.denominator.bit_length()
    return log(value / Fraction(2) ** power) + power * log(2)


def exactly(rows: npt.ArrayLike) -> list[list[Fraction]]:
    """The floats of a matrix as the fractions that they are."""
    return [[Fraction(value) for value in row] for row in np.asarray(rows, dtype=float).tolist()]


def chain_network(start: Floats, move: Floats, emit: Sequence[Floats]) -> Network:
    """A hidden Markov model: x0 → x1 → …, and a leaf y_t below each x_t."""
    levels, parents, cpts = {}, {}, {}
    for t, rows in enumerate(emit):
        levels |= {f"x{t}": [str(i) for i in range(len(start))], f"y{t}": ["0", "1"]}
        parents |= {f"x{t}": [f"x{t - 1}"] if t else [], f"y{t}": [f"x{t}"]}
        cpts |= {f"x{t}": move if t else start, f"y{t}": rows}
    return Network.build(levels, parents, cpts)


def leaning(chance: float) -> Floats:
    """Rows of a leaf that is wrong with this chance."""
    return np.array([[1 - chance, chance], [chance, 1 - chance]])


START = np.array([0.5, 0.5])
CHAINS = {
    # Undecided only because both halves say the same: whoever forgets the loser of the first half is certain.
    "still, 120 each": (np.eye(2), [leaning(1e-3)] * 240 + [leaning(0.5)] * 60, [0] * 120 + [1] * 120 + [1] * 60),
    "still, 3 each": (np.eye(2), [leaning(1e-120)] * 6 + [leaning(0.5)] * 10, [0] * 3 + [1] * 3 + [0] * 10),
    "still, 40 to 39": (np.eye(2), [leaning(1e-8)] * 79 + [leaning(0.3)] * 40, [1] * 40 + [0] * 39 + [0] * 40),
    "sluggish": (leaning(1e-200), [leaning(1e-90)] * 12, [0, 0, 1, 1, 0, 1, 1, 1, 0, 0, 0, 1]),
    "restless": (leaning(0.3), [leaning(1e-250)] * 40, [t // 7 % 2 for t in range(40)]),
    "long": (leaning(0.02), [leaning(0.05)] * 150, [int(t % 17 < 6) for t in range(150)]),
}  # fmt: skip


@cache
def smooth(name: str) -> tuple[list[list[Fraction]], Fraction]:
    """Exact posteriors of every hidden state, and P(seen), by the forward and backward recursions."""
    move, emit, seen = CHAINS[name]
    (first,), steps = exactly([START]), exactly(move)
    weights = [[row[code] for row in exactly(rows)] for rows, code in zip(emit, seen, strict=True)]
    states = range(len(first))
    forward = [[first[i] * weights[0][i] for i in states]]
    for found in weights[1:]:
        forward.append([sum(forward[-1][i] * steps[i][j] for i in states) * found[j] for j in states])
    backward = [[Fraction(1)] * len(first)]
    for found in reversed(weights[1:]):
        ahead = backward[-1]
        backward.append([sum(steps[i][j] * found[j] * ahead[j] for j in states) for i in states])
    total = sum(forward[-1], Fraction(0))
    posteriors = [
        [f * b / total for f, b in zip(front, back, strict=True)]
        for front, back in zip(forward, reversed(backward), strict=True)
    ]
    return posteriors, total


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("name", CHAINS)
def test_chains(name: str, path: str) -> None:
    move, emit, seen = CHAINS[name]
    network = chain_network(START, move, emit)
    expected, total = smooth(name)
    found = network.engine.posteriors({f"y{t}": code for t, code in enumerate(seen)}, path=path)
    assert found.log_evidence == pytest.approx(log_fraction(total), rel=1e-12)
    for t, row in enumerate(expected):
        np.testing.assert_allclose(found[f"x{t}"], [float(p) for p in row], rtol=0, atol=1e-11)


@pytest.mark.parametrize("name", CHAINS)
def test_chains_by_every_other_question(name: str) -> None:
    move, emit, seen = CHAINS[name]
    network = chain_network(START, move, emit)
    expected, total = smooth(name)
    evidence = {f"y{t}": code for t, code in enumerate(seen)}
    middle = len(seen) // 2
    exact = [float(p) for p in expected[middle]]
    engine = network.engine
    np.testing.assert_allclose(engine.marginal(f"x{middle}", evidence), exact, rtol=0, atol=1e-11)
    np.testing.assert_allclose(engine.joint([f"x{middle}"], evidence).values, exact, rtol=0, atol=1e-10)
    rows = np.full((3, len(network.nodes)), -1)
    rows[1] = [evidence.get(node, -1) for node in network.nodes]
    found, log_evidence = engine.posteriors_of_rows(rows)
    start_of = int(np.cumsum([0] + [network.schema[node].size for node in network.nodes])[2 * middle])
    np.testing.assert_allclose(found[1, start_of : start_of + 2], exact, rtol=0, atol=1e-11)
    np.testing.assert_allclose(log_evidence, [0, log_fraction(total), 0], rtol=1e-12, atol=1e-12)
    drawn = [table for table in engine.decompose(evidence) if table.axes[-1] == f"x{middle}"]
    assert len(drawn) == 1
    assert np.isfinite(drawn[0].values).all()
    codes, log_joint = engine.most_probable(evidence)
    path = [codes[f"x{t}"] for t in range(len(seen))]
    assert log_joint == pytest.approx(log_path(START, move, emit, seen, path), rel=1e-12)
    assert log_joint == pytest.approx(viterbi(START, move, emit, seen), rel=1e-12)


def log_path(
    start: Floats, move: Floats, emit: Sequence[Floats], seen: Sequence[int], path: Sequence[int]
) -> float:
    """log P(path, seen)."""
    first = log(start[path[0]]) + sum(log(emit[t][path[t], code]) for t, code in enumerate(seen))
    return first + sum(log(move[path[t - 1], path[t]]) for t in range(1, len(path)))


def viterbi(start: Floats, move: Floats, emit: Sequence[Floats], seen: Sequence[int]) -> float:
    """max over paths of log P(path, seen)."""
    with np.errstate(divide="ignore"):
        best = np.log(start) + np.log(emit[0][:, seen[0]])
        for rows, code in zip(emit[1:], seen[1:], strict=True):
            best = (best[:, None] + np.log(move)).max(axis=0) + np.log(rows[:, code])
    return float(best.max())


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("chance", [0.02, 1e-5, 1e-200, 1e-307])
@pytest.mark.parametrize("votes", [(150, 150), (151, 150), (300, 0)])
def test_naive_bayes_with_hundreds_of_leaves(votes: tuple[int, int], chance: float, path: str) -> None:
    network, evidence = poll(votes, chance)
    rows = exactly(leaning(chance))
    weight = [
        Fraction(1, 3 if side else 1) * rows[side][0] ** votes[0] * rows[side][1] ** votes[1]
        for side in (0, 1)
    ]
    found = network.engine.posteriors(evidence, path=path)
    expected = [float(w / sum(weight)) for w in weight]
    np.testing.assert_allclose(found["side"], expected, rtol=0, atol=1e-11)
    total = log_fraction(sum(weight, Fraction(0)) * Fraction(3, 4))
    assert found.log_evidence == pytest.approx(total, rel=1e-12)


def poll(votes: tuple[int, int], chance: float) -> tuple[Network, dict[str, int]]:
    """A side, 3 to 1 for the first, and leaves that vote for it except by a small chance."""
    leaves = [f"v{i}" for i in range(sum(votes))]
    network = Network.build(
        {name: ["0", "1"] for name in ("side", *leaves)},
        {"side": [], **{name: ["side"] for name in leaves}},
        {"side": [0.75, 0.25], **{name: leaning(chance) for name in leaves}},
    )
    return network, {name: int(i >= votes[0]) for i, name in enumerate(leaves)}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("rare", [1e-3, 1e-100, 1e-200, 1e-300])
def test_a_rare_cause_explains_away_another(rare: float, path: str) -> None:
    """P(a) and P(b) are rare, an alarm without either still rarer; another of both is c's."""
    network = Network.build(
        {name: ["no", "yes"] for name in ("a", "b", "alarm", "call")},
        {"a": [], "b": [], "alarm": ["a", "b"], "call": ["alarm"]},
        {
            "a": [1 - rare, rare],
            "b": [1 - rare, rare],
            "alarm": [[[1 - rare / 1e7, rare / 1e7], [0.5, 0.5]], [[0.25, 0.75], [0.0, 1.0]]],
            "call": [[1 - rare / 1e6, rare / 1e6], [0.1, 0.9]],
        },
    )
    for evidence in ({"call": 1}, {"call": 1, "a": 1}, {"call": 1, "b": 0}, {"alarm": 1, "a": 0}):
        compare_with_fractions(network, evidence, {}, path)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("size", [1e-300, 1e-160, 1e160, 1e300])
def test_likelihoods_of_any_size(size: float, path: str) -> None:
    """Only the ratios of soft weights matter to a posterior; their size enters P(evidence) alone."""
    network, _ = poll((3, 4), 0.2)
    weights = {f"v{i}": np.array([1.0, 3.0]) * size for i in range(7)}
    compare_with_fractions(network, {}, weights, path)
    compare_with_fractions(network, {"v6": 0}, weights, path)
    lopsided = {f"v{i}": np.array([1e-290, 1e-5]) * min(size, 1.0) ** 0.05 for i in range(7)}
    compare_with_fractions(network, {"side": 1}, lopsided, path)


@st.composite
def extreme_networks(draw: st.DrawFn) -> tuple[Network, dict[str, int], dict[str, Floats], str]:
    """1 to 5 nodes of 2 or 3 levels, whose rows mix ordinary numbers with 1e-50 … 1e-320 and zeros."""
    count = draw(st.integers(1, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    names = [f"n{i}" for i in range(count)]
    sizes = {name: draw(st.integers(2, 3 if count < 5 else 2)) for name in names}
    parents, cpts = {}, {}
    for i, name in enumerate(names):
        parents[name] = draw(st.lists(st.sampled_from(names[:i]), max_size=2, unique=True)) if i else []
        shape = tuple(sizes[member] for member in (*parents[name], name))
        rows = rng.random(shape)
        tiny = 10.0 ** -rng.uniform(50, 320, shape) * (rng.random(shape) < 0.9)
        rows = np.where(rng.random(shape) < 0.6, tiny, rows)
        large = rng.integers(shape[-1], size=(*shape[:-1], 1))
        np.put_along_axis(rows, large, 0.0, axis=-1)
        rows /= np.maximum(1.0, rows.sum(axis=-1, keepdims=True) * 1.5)
        np.put_along_axis(rows, large, 1.0 - rows.sum(axis=-1, keepdims=True), axis=-1)
        cpts[name] = rows
    network = Network.build({name: [str(c) for c in range(sizes[name])] for name in names}, parents, cpts)
    evidence = {
        name: int(rng.integers(sizes[name]))
        for name in draw(st.lists(st.sampled_from(names), max_size=count, unique=True))
    }
    likelihoods = {
        name: 10.0 ** rng.uniform(-200, 200, sizes[name])
        for name in draw(st.lists(st.sampled_from(names), max_size=2, unique=True))
    }
    return network, evidence, likelihoods, draw(st.sampled_from(PATHS))


@settings(deadline=None, max_examples=250)
@given(extreme_networks())
def test_small_networks_with_extreme_numbers(
    case: tuple[Network, dict[str, int], dict[str, Floats], str],
) -> None:
    compare_with_fractions(*case)


def compare_with_fractions(
    network: Network, evidence: Mapping[str, int], likelihoods: Mapping[str, Floats], path: str
) -> None:
    """Enumerate the joint in fractions; compare all posteriors, log P(evidence) and the best explanation."""
    nodes = network.nodes
    cells: dict[tuple[int, ...], Fraction] = {}
    for codes in product(*(range(network.schema[name].size) for name in nodes)):
        at = dict(zip(nodes, codes, strict=True))
        if all(at[name] == code for name, code in evidence.items()):
            cells[codes] = prod(
                (Fraction(float(cpt.values[tuple(at[member] for member in cpt.axes)])) for cpt in network.cpts),
                start=prod((Fraction(float(w[at[name]])) for name, w in likelihoods.items()), start=Fraction(1)),
            )  # fmt: skip
    total = sum(cells.values(), Fraction(0))
    engine = network.engine
    if total == 0:
        assert engine.log_probability(evidence, likelihoods) == -np.inf
        return
    found = engine.posteriors(evidence, likelihoods, path)  # type: ignore[arg-type]
    joint = engine.joint(nodes[:2], evidence, likelihoods).values
    assert found.log_evidence == pytest.approx(log_fraction(total), rel=1e-12, abs=1e-12)
    for i, name in enumerate(nodes):
        exact = np.zeros(network.schema[name].size)
        for code in range(len(exact)):
            exact[code] = float(sum(p for codes, p in cells.items() if codes[i] == code) / total)
        np.testing.assert_allclose(found[name], exact, rtol=0, atol=1e-11)
        if i < 2:
            margin = joint.sum(axis=tuple(a for a in range(joint.ndim) if a != i))
            np.testing.assert_allclose(margin, exact, rtol=0, atol=1e-11)
    codes, log_joint = engine.most_probable(evidence, likelihoods)
    best = {**evidence, **codes}
    assert log_joint == pytest.approx(log_fraction(max(cells.values())), rel=1e-12, abs=1e-12)
    assert float(cells[tuple(best[name] for name in nodes)] / max(cells.values())) == pytest.approx(
        1, abs=1e-9
    )
