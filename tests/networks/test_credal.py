"""Laws of credal networks: what the makers contain, what files keep, what noise intervals promise."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.compute.augmentation import draw_counts
from discreet.compute.bounds.counting import bound_by_chernoff, bound_sum
from discreet.compute.bounds.problem import list_vertices, tighten
from discreet.entrance import open_airlock
from discreet.learning.planned import planned
from discreet.networks import examples
from discreet.networks.credal import (
    CredalNetwork,
    calibrated,
    contaminate,
    from_noise,
    idm,
    read_credal,
    write_credal,
)
from discreet.networks.network import Network
from discreet.networks.provenance import Provenance
from discreet.values.budget import PureDP
from discreet.values.errors import NetworkError
from discreet.values.measurement import DiscreteGaussian, DiscreteLaplace, Exact, Measurement
from discreet.values.schema import Schema
from discreet.values.table import Table
from discreet.values.unit import Unit

SEEDS = st.integers(0, 2**32 - 1)


def count_families(network: Network, rows: int, seed: int) -> list[Table]:
    """The true counts over every family of rows drawn from a network."""
    codes = network.sample(rows, rng=seed).codes()
    found = []
    for family in network.dag.families():
        shape = [network.schema[name].size for name in family]
        cells = np.ravel_multi_index([codes[name].astype(np.int64) for name in family], shape)
        counts = np.bincount(cells, minlength=int(np.prod(shape))).reshape(shape)
        found.append(Table(family, counts.astype(np.int64)))
    return found


def without_noise(network: Network, counts: list[Table]) -> Network:
    """The network of the relative frequencies."""
    cpts = tuple(table.normalise(table.axes[-1]) for table in counts)
    return Network(network.schema, network.dag, cpts)


def release(network: Network, counts: list[Table], scale: int, seed: int) -> Network:
    """A network learned from noisy tables of families and parents, with noise drawn here for the test only."""
    rng = np.random.default_rng(seed)
    stop = -np.expm1(-1.0 / scale)
    law = DiscreteLaplace(Fraction(scale))
    measured = []
    for table in counts:
        for part in (table, table.project(table.axes[:-1])):
            shape = part.values.shape
            noise = rng.geometric(stop, shape) - rng.geometric(stop, shape)
            noisy = np.asarray(part.values + noise, dtype=np.int64)
            measured.append(Measurement(Table(part.axes, noisy), law, Unit.ADD_REMOVE, PureDP(1)))
    cpts = tuple(
        Table(found.axes, np.maximum(found.noisy.values, 0).astype(np.float64)).normalise(found.axes[-1])
        for found in measured[::2]
    )
    provenance = Provenance("test", Unit.ADD_REMOVE, PureDP(1), tuple(measured))
    return Network(network.schema, network.dag, cpts, provenance=provenance)


@settings(max_examples=150, deadline=None)
@given(SEEDS, st.integers(2, 5))
def test_reachable_ends_are_reached_and_vertices_span_the_row(seed: int, levels: int) -> None:
    """Over the vertices of a row, the least and the greatest of each level are its tightened ends."""
    rng = np.random.default_rng(seed)
    point = rng.dirichlet(np.ones(levels))
    low = np.maximum(point - 0.3 * rng.random(levels), 0.0)
    high = np.minimum(point + 0.3 * rng.random(levels), 1.0)
    vertices = list_vertices(low, high)
    ends = tighten(low, high)
    assert np.allclose(vertices.sum(axis=1), 1.0)
    assert np.allclose(vertices.min(axis=0), ends[0], atol=1e-11)
    assert np.allclose(vertices.max(axis=0), ends[1], atol=1e-11)
    assert (ends[0] >= low - 1e-15).all()
    assert (ends[1] <= high + 1e-15).all()


def test_the_idm_is_its_formula_and_hides_nothing() -> None:
    """[n/(N+S), (n+S)/(N+S)], vacuous without counts; normalised lower ends are the frequencies, whatever S is."""
    asia = examples.asia()
    counts = count_families(asia, 500, 1)
    credal = idm(counts, asia.dag, asia.schema, 2.0)
    low, high = credal.ends("lung")
    n = counts[asia.nodes.index("lung")].values
    total = n.sum(axis=-1, keepdims=True)
    assert np.allclose(low.values, n / (total + 2))
    assert np.allclose(high.values, (n + 2) / (total + 2))
    assert credal.contains(without_noise(asia, counts))
    recovered = low.values / low.values.sum(axis=-1, keepdims=True)
    assert np.allclose(recovered, n / total)
    empty = [Table(table.axes, np.zeros_like(table.values)) for table in counts]
    assert idm(empty, asia.dag, asia.schema, 0.0).width == 1.0


def test_strength_may_differ_from_row_to_row() -> None:
    """An array over the parents' levels gives each row its own S."""
    asia = examples.asia()
    counts = count_families(asia, 500, 1)
    shapes = {name: asia.cpt(name).values.shape[:-1] for name in asia.nodes}
    strength = {name: np.full(shape, 1.0) for name, shape in shapes.items()}
    strength["lung"] = np.array([0.0, 50.0])
    low, high = idm(counts, asia.dag, asia.schema, strength).ends("lung")
    assert np.allclose(low.values[0], high.values[0])
    assert (high.values[1] - low.values[1] > 0.1).all()


@pytest.mark.parametrize("share", [0.0, 0.05, 1.0])
def test_contamination_is_its_formula(share: float) -> None:
    """r ≥ (1 − ε)·p; nothing at 0, everything at 1."""
    asia = examples.asia()
    credal = contaminate(asia, share)
    low, high = credal.ends("dysp")
    assert np.allclose(low.values, (1 - share) * asia.cpt("dysp").values)
    assert np.allclose(high.values - low.values, share)
    assert credal.contains(asia)
    assert credal.centre.close_to(asia, 1e-12) == (share == 0.0)


def test_a_file_keeps_every_bit(tmp_path: Path) -> None:
    """Written and read, plain and packed, a credal network is the same to the last bit."""
    credal = contaminate(examples.child(), 0.07)
    for name in ("credal.json", "credal.json.gz"):
        write_credal(credal, tmp_path / name)
        back = read_credal(tmp_path / name)
        assert (back.schema, back.dag, back.meaning) == (credal.schema, credal.dag, credal.meaning)
        for mine, theirs in zip((*credal.lower, *credal.upper), (*back.lower, *back.upper), strict=True):
            assert np.array_equal(mine.values, theirs.values)


def test_a_precise_network_has_precise_answers() -> None:
    """With nothing left open, bounds are the exact answer, and the decision is the most probable level."""
    asia = examples.asia()
    credal = contaminate(asia, 0.0)
    given = {"smoke": "yes", "xray": "yes"}
    answer, exact = credal.query("lung", given), asia.query("lung", given)
    assert answer.lower is not None
    assert answer.upper is not None
    assert np.allclose(answer.lower, exact.probabilities, atol=2e-9)
    assert np.allclose(answer.upper, exact.probabilities, atol=2e-9)
    assert credal.decide("lung", given).levels == (exact.best,)


def test_a_decision_names_what_cannot_be_ruled_out() -> None:
    """Two levels that overlap remain, the third is certainly worse."""
    credal = CredalNetwork.build(
        {"a": ["x", "y", "z"]}, {"a": []}, {"a": [0.35, 0.35, 0.1]}, {"a": [0.5, 0.5, 0.2]}
    )
    found = credal.decide("a")
    assert found.levels == found.seen == ("x", "y")
    assert str(found) == "the most probable a is certainly one of {x, y}"


def test_an_event() -> None:
    """One level lies in its interval; an event of all levels is certain."""
    credal = CredalNetwork.build({"a": ["x", "y"]}, {"a": []}, {"a": [0.4, 0.4]}, {"a": [0.6, 0.6]})
    assert tuple(credal.probability({"a": "y"})) == pytest.approx((0.4, 0.6), abs=1e-7)
    assert tuple(credal.probability({"a": ["x", "y"]})) == pytest.approx((1.0, 1.0), abs=1e-7)


@pytest.mark.parametrize("law", [DiscreteLaplace(Fraction(5)), DiscreteGaussian(Fraction(30))])
def test_the_bound_on_a_sum_of_noises_is_a_bound_and_no_more(law: DiscreteLaplace | DiscreteGaussian) -> None:
    """By convolving the law with itself in the plainest way: h is enough, h − 1 is not; Chernoff is enough, too."""
    k = np.arange(-400, 401)
    chances = np.convolve(np.convolve(law.pmf(k), law.pmf(k)), law.pmf(k))
    reach = (len(chances) - 1) // 2
    sizes = np.abs(np.arange(-reach, reach + 1))
    found = bound_sum(((law, 1, 3),), 1e-4)
    assert chances[sizes > found].sum() <= 1e-4
    assert chances[sizes > found - 1].sum() > 1e-4
    assert found <= bound_by_chernoff(((law, 1, 3),), 1e-4) + 1
    assert bound_sum(((Exact(), 1, 3),), 1e-4) == 0


def test_noise_intervals_hold_all_at_once_as_often_as_they_say() -> None:
    """Of 300 releases of Asia, the network without noise is inside at least .95 − 3 standard errors of the time."""
    asia = examples.asia()
    counts = count_families(asia, 5000, 2)
    truth = without_noise(asia, counts)
    inside = [from_noise(release(asia, counts, 16, seed), 0.95).contains(truth) for seed in range(300)]
    assert np.mean(inside) >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / 300)


def test_exact_tables_leave_no_doubt_and_less_noise_leaves_less() -> None:
    """Without noise the intervals are the frequencies; they widen with the noise, the coverage and S."""
    asia = examples.asia()
    counts = count_families(asia, 100_000, 3)
    exact = tuple(Measurement(table, Exact(), Unit.ADD_REMOVE, PureDP(1)) for table in counts)
    revealed = Network(
        asia.schema, asia.dag, asia.cpts, provenance=Provenance("test", Unit.ADD_REMOVE, PureDP(1), exact)
    )
    credal = from_noise(revealed)
    truth = without_noise(asia, counts)
    assert credal.contains(truth)
    occurring = asia.nodes.index("dysp")
    assert np.allclose(credal.lower[occurring].values, truth.cpts[occurring].values)
    widths = [from_noise(release(asia, counts, scale, 1)).width for scale in (4, 16, 64)]
    assert widths == sorted(widths)
    private = release(asia, counts, 16, 1)
    assert from_noise(private, 0.99).width > from_noise(private, 0.9).width
    assert from_noise(private, 0.9, 10.0).width > from_noise(private, 0.9).width


def test_a_private_network_answers_with_intervals() -> None:
    """`Network.query` puts them beside the point, says what they mean, and leaves a plain network as it was."""
    asia = examples.asia()
    counts = count_families(asia, 100_000, 4)
    private = release(asia, counts, 16, 5)
    answer = private.query("lung", {"smoke": "yes"})
    low, high = answer.interval("yes")
    assert low < without_noise(asia, counts).query("lung", {"smoke": "yes"})["yes"] < high
    assert f"[{low:.4f}, {high:.4f}]" in repr(answer)
    assert "95 % sure" in answer.meaning
    assert asia.query("lung").lower is None
    assert asia.query("lung").meaning == ""


def test_a_private_network_says_why_an_answer_has_no_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not asked for, a likelihood, many levels, much work, many measured cells: the point comes in any case."""
    asia = examples.asia()
    private = release(asia, count_families(asia, 10_000, 4), 16, 5)
    assert private.query("lung", intervals="none").meaning == ""
    answer = private.query("lung", likelihood={"smoke": {"yes": 0.9, "no": 0.3}})
    assert (answer.lower, answer.meaning) == (
        None,
        "No intervals: they are not worked out for evidence that is given as a likelihood.",
    )
    many = private.query(asia.nodes[:7])
    assert (many.lower, len(many)) == (None, 128)
    assert "more than 64 levels" in many.meaning
    where = "discreet.networks.intervals.policy"
    monkeypatch.setattr(f"{where}.MOST_WORK", 4)
    answer = private.query("lung", {"dysp": "yes"})
    assert answer.lower is None
    assert "would take more than a second" in repr(answer)
    monkeypatch.setattr(f"{where}.MOST_CELLS", 10)
    fresh = Network(private.schema, private.dag, private.cpts, private.provenance)
    assert "measured cells take more than a second" in fresh.query("lung").meaning


def test_draws_follow_the_noise_and_are_not_negative() -> None:
    """Far from 0 draws scatter around the noisy count like the noise; exact counts stay; nothing is below 0."""
    schema = Schema.of({"a": ["x", "y", "z"]})
    network = Network.build(schema, {"a": []}, {"a": [0.625, 0.375, 0.0]})
    law = DiscreteLaplace(Fraction(10))
    noisy = Table(("a",), np.array([50_000, 30_000, -30], dtype=np.int64))
    measured = Measurement(noisy, law, Unit.ADD_REMOVE, PureDP(1))
    drawn = draw_counts(network.dag, network.cpts, [measured], [0], 2000, np.random.default_rng(1))[0]
    assert drawn.shape == (2000, 3)
    assert drawn.min() >= 0
    assert np.abs(drawn.mean(axis=0)[:2] - noisy.values[:2]).max() < 2
    assert drawn[:, :2].std(axis=0) == pytest.approx(np.full(2, np.sqrt(law.variance)), rel=0.15)
    assert drawn[:, 2].max() < 50
    exact = Measurement(noisy.select({}), Exact(), Unit.ADD_REMOVE, PureDP(1))
    again = draw_counts(network.dag, network.cpts, [exact], [0], 3, np.random.default_rng(1))[0]
    assert (again[:, :2] == noisy.values[:2]).all()


def test_many_empty_cells_do_not_add_up() -> None:
    """A level that occurs in one of 64 rows is not drowned by what noise suggests for the other 63."""
    names = [f"n{i}" for i in range(7)]
    cpts = {name: np.tile([1.0, 0.0], (*(2,) * i, 1)) for i, name in enumerate(names)}
    network = Network.build(
        {name: ["x", "y"] for name in names}, {n: names[:i] for i, n in enumerate(names)}, cpts
    )
    counts = np.zeros((2,) * 7, dtype=np.int64)
    counts[(0,) * 7] = 5000
    rng = np.random.default_rng(2)
    stop = -np.expm1(-1.0 / 20)
    noisy = counts + rng.geometric(stop, counts.shape) - rng.geometric(stop, counts.shape)
    measured = Measurement(
        Table(tuple(names), noisy), DiscreteLaplace(Fraction(20)), Unit.ADD_REMOVE, PureDP(1)
    )
    provenance = Provenance("test", Unit.ADD_REMOVE, PureDP(1), (measured,))
    private = Network(network.schema, network.dag, network.cpts, provenance=provenance)
    drawn = calibrated(private, rng=1).answer(["n0"], np.array([[1.0, 0.0]]), {})
    low, high = np.quantile(drawn, [0.02, 0.98])
    assert low > 0.97
    assert high == pytest.approx(1.0, abs=1e-6)


def test_drawn_tables_agree_on_the_rows_that_they_share() -> None:
    """Two tables count the same rows: their shared margin is one number in every draw, surer than either tells it."""
    chain = Network.build(
        {name: ["x", "y"] for name in "abc"},
        {"a": [], "b": ["a"], "c": ["b"]},
        {"a": [0.5, 0.5], "b": [[0.7, 0.3], [0.4, 0.6]], "c": [[0.2, 0.8], [0.6, 0.4]]},
    )
    law = DiscreteLaplace(Fraction(12))
    tables = [np.array([[3500, 1500], [2000, 3000]]), np.array([[1090, 4360], [2700, 1800]])]
    measured = [
        Measurement(Table(axes, values), law, Unit.ADD_REMOVE, PureDP(1))
        for axes, values in zip((("a", "b"), ("b", "c")), tables, strict=True)
    ]
    drawn = draw_counts(chain.dag, chain.cpts, measured, [0, 0, 1], 1000, np.random.default_rng(1))
    one, other = drawn[1].sum(axis=1), drawn[2].sum(axis=2)
    assert np.allclose(one, other)
    alone = np.sqrt(2 * law.variance)
    assert 0.5 * alone < one.std(axis=0).max() < 0.85 * alone  # the mean of two has 0.71 of it


def test_a_calibrated_interval_holds_its_own_answer_and_what_is_certain() -> None:
    """Whole counts: a share that is 1 in the table is in an interval that ends at 1, not a hair before it."""
    asia = examples.asia()
    counts = count_families(asia, 200_000, 3)
    private = release(asia, counts, 6, 4)
    drawn = calibrated(private, rng=1)
    for name in asia.nodes:
        for known in ({}, {"smoke": "yes"}):
            if name not in known:
                found = drawn.query(name, known)
                assert (found.lower <= found.table.values + 1e-12).all()
                assert (found.upper >= found.table.values - 1e-12).all()
    assert drawn.query("lung", {"either": "no"}).interval("no")[1] == 1.0
    assert drawn.query("smoke", {"smoke": "yes"}).interval("yes") == (1.0, 1.0)


def test_calibrated_intervals_say_when_noise_outweighs_the_counts() -> None:
    """Where the learner itself expects large errors, fewer intervals would hold, and they are refused in words."""
    asia = examples.asia()
    private = release(asia, count_families(asia, 2000, 4), 16, 5)
    assert private.provenance is not None
    assert calibrated(private, rng=1, draws=2).meaning.startswith("About 95 %")
    worse = replace(private.provenance, predicted_error=dict.fromkeys(asia.nodes, 0.3))
    drowned = Network(private.schema, private.dag, private.cpts, worse)
    with pytest.raises(NetworkError, match="the noise outweighs many counts of this release"):
        calibrated(drowned, rng=1, draws=2).query("lung")


def test_calibrated_intervals_are_narrower_and_mostly_right() -> None:
    """They lie within the guaranteed ones in width, and the same seed gives the same ones."""
    asia = examples.asia()
    counts = count_families(asia, 20_000, 6)
    truth = without_noise(asia, counts)
    hits, narrower = [], []
    for seed in range(20):
        private = release(asia, counts, 16, seed)
        answer, sure = calibrated(private, rng=seed).query("dysp"), private.query("dysp")
        assert answer.lower is not None
        assert answer.upper is not None
        low, high = answer.interval("yes")
        hits.append(low <= truth.query("dysp")["yes"] <= high)
        wide = sure.interval("yes")
        narrower.append(high - low < wide[1] - wide[0])
    assert np.mean(hits) >= 0.8
    assert all(narrower)
    again = calibrated(private, rng=19).query("dysp")
    assert np.array_equal(again.lower, answer.lower)


@pytest.mark.parametrize("spend", ["1000", "40000"])
def test_a_budget_so_large_that_the_noise_underflows(spend: str) -> None:
    """The variance of the noise is 0 in floats; intervals then hold what the counts say, and little else."""
    asia = examples.asia()
    airlock = open_airlock(asia.sample(1000, rng=1).arrow(), asia.schema, budget=spend)
    answer = planned(airlock, asia.dag, spend=spend).query("smoke")
    low, high = answer.interval("yes")
    assert low <= answer["yes"] <= high < low + 0.01
