"""Posteriors and the four mechanisms that release one: their parts, their costs, how far a row moves them."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from chance import within_attempts
from discreet.core.airlock import Airlock
from discreet.entrance import open_airlock
from discreet.networks.formats.release import make_release
from discreet.networks.network import Network
from discreet.networks.posterior import Posterior
from discreet.papers import posterior
from discreet.papers.parameters.independent import independent
from discreet.papers.posterior.basis import close_downward
from discreet.papers.posterior.grid_draws import (
    GRAIN,
    PosteriorDraw,
    SplitGrid,
    calibrate_maximum,
    calibrate_sample,
    measure_reach,
)
from discreet.papers.posterior.halving import bound_split, list_splits, spread_above, spread_within
from discreet.values.budget import ZCDP, PureDP
from discreet.values.errors import (
    AirlockError,
    FormatError,
    MechanismError,
    NetworkError,
    Overspent,
    TableError,
)
from discreet.values.graph import DAG
from discreet.values.schema import Schema
from discreet.values.table import Table
from discreet.values.unit import ROW_UNITS, Unit

SCHEMA = Schema.of({"y": ["no", "yes"], "x": ["a", "b", "c"]})
DAG_YX = DAG.build({"y": [], "x": ["y"]})
ROWS = {"y": ["no"] * 30 + ["yes"] * 10, "x": ["a"] * 20 + ["b"] * 15 + ["c"] * 5}


def open_rows(unit: Unit | str = Unit.REPLACE_ONE, budget: str = "1000") -> Airlock:
    return open_airlock(ROWS, SCHEMA, budget=PureDP(budget), unit=unit)


def exact_posterior(prior: float = 1.0) -> Posterior:
    x = np.array([[20, 10, 0], [0, 5, 5]]) + prior
    return Posterior(SCHEMA, DAG_YX, (Table(("y",), np.array([30, 10]) + prior), Table(("y", "x"), x)))


def test_mean_mode_and_intervals_are_those_of_the_dirichlet_rows() -> None:
    found = exact_posterior()
    assert found.mean()[1].values[0] == pytest.approx([21 / 33, 11 / 33, 1 / 33])
    assert found.mode()[1].values[0] == pytest.approx([20 / 30, 10 / 30, 0])
    low, high = found.interval("x", 0.9)
    margin = stats.beta(11, 22)
    assert low.values[0, 1] == pytest.approx(margin.ppf(0.05))
    assert high.values[0, 1] == pytest.approx(margin.ppf(0.95))
    assert found.network().cpt("x").close_to(found.mean()[1])
    assert found.mode()[0].values == pytest.approx([0.75, 0.25])
    assert found.network().query("x", {"y": "no"})["a"] == pytest.approx(21 / 33)
    assert found.draw(3).cpt("y").values.sum() == pytest.approx(1.0)


def test_the_mode_of_a_row_without_excess_is_uniform() -> None:
    flat = Posterior(SCHEMA, DAG_YX, (Table(("y",), np.full(2, 0.5)), Table(("y", "x"), np.ones((2, 3)))))
    assert flat.mode()[0].values == pytest.approx([0.5, 0.5])
    assert flat.mode()[1].values == pytest.approx(np.full((2, 3), 1 / 3))


def test_divergence_is_zero_to_itself_and_agrees_with_an_integral() -> None:
    one, other = exact_posterior(), exact_posterior(3.0)
    assert one.kl(one) == pytest.approx(0.0, abs=1e-12)
    theta = np.linspace(1e-6, 1 - 1e-6, 400_001)
    p, q = stats.beta(31, 11), stats.beta(33, 13)
    of_y = np.trapezoid(p.pdf(theta) * (p.logpdf(theta) - q.logpdf(theta)), theta)
    rows = 0.0
    rng = np.random.default_rng(5)
    for mine, theirs in zip(one.alphas[1].values, other.alphas[1].values, strict=True):
        draws = rng.dirichlet(mine, size=40_000)
        rows += float(
            np.mean(stats.dirichlet.logpdf(draws.T, mine) - stats.dirichlet.logpdf(draws.T, theirs))
        )
    assert one.kl(other) == pytest.approx(of_y + rows, rel=0.05)
    assert one.kl(other) > 0


def test_a_posterior_that_does_not_fit_is_refused() -> None:
    y, x = exact_posterior().alphas
    for alphas in [
        (y,),
        (x, y),
        (y, Table(("y", "x"), np.zeros((2, 3)))),
        (y, Table(("y", "x"), np.ones((2, 2)))),
    ]:
        with pytest.raises(NetworkError):
            Posterior(SCHEMA, DAG_YX, alphas)
    with pytest.raises(TableError, match="coverage"):
        exact_posterior().interval("y", 1.0)
    with pytest.raises(NetworkError, match="same schema"):
        exact_posterior().kl(
            Posterior(SCHEMA.select(["y"]), DAG.build({"y": []}), (Table(("y",), np.ones(2)),))
        )


@pytest.mark.parametrize(("unit", "scale"), [(Unit.ADD_REMOVE, 4), (Unit.REPLACE_ONE, 8)])
def test_laplace_has_the_scale_of_the_paper_and_projects(unit: Unit, scale: int) -> None:
    """[002, Alg. 1] Lap(2|I|/ε) if rows are replaced, half of it under add-remove; Z in [0, n] or [0, ∞)."""
    airlock = open_rows(unit)
    found = posterior.laplace(airlock, DAG_YX, spend="1/2", prior=0.5)
    assert found.provenance is not None
    for measured in found.provenance.measurements:
        assert measured.law.to_json() == {"law": "discrete-laplace", "scale": str(scale)}
    assert airlock.remaining == PureDP(1000) - PureDP("1/2")
    assert found.updates is not None
    most = 40.0 if unit == Unit.REPLACE_ONE else math.inf
    for alpha, update in zip(found.alphas, found.updates, strict=True):
        assert np.array_equal(alpha.values, 0.5 + np.clip(update.values, 0, most))


def test_under_add_remove_counts_above_n_are_left_alone() -> None:
    """A cut at n = 40 would be seen: at ε = 1/1000 nearly all positive noise is far above 40.

    Half of 8 cells have such noise; that none has in any of 5 releases happens once in 2^40 times.
    """

    def find_most(unit: Unit) -> float:
        found = posterior.laplace(open_rows(unit), DAG_YX, spend="1/1000")
        return float(max(alpha.values.max() for alpha in found.alphas))

    assert within_attempts(lambda: find_most(Unit.ADD_REMOVE) > 41)
    assert find_most(Unit.REPLACE_ONE) <= 41


@pytest.mark.parametrize("unit", ROW_UNITS)
def test_perturbed_updates_move_by_what_is_charged(unit: Unit) -> None:
    """[002, Lemma 1] by brute force: one row moves the two families' tables by 2 (add-remove) or 4 in L1."""
    rows = list(itertools.product(range(2), range(3)))

    def tables(row: tuple[int, int]) -> np.ndarray:
        y, x = np.zeros(2, dtype=int), np.zeros((2, 3), dtype=int)
        y[row[0]] += 1
        x[row] += 1
        return np.concatenate([y, x.ravel()])

    if unit == Unit.ADD_REMOVE:
        moved = max(int(np.abs(tables(row)).sum()) for row in rows)
    else:
        moved = max(int(np.abs(tables(a) - tables(b)).sum()) for a in rows for b in rows)
    found = posterior.laplace(open_rows(unit), DAG_YX, spend=1)
    assert found.provenance is not None
    scales = {Fraction(measured.law.to_json()["scale"]) for measured in found.provenance.measurements}
    assert scales == {Fraction(moved)}


@pytest.mark.parametrize("unit", ROW_UNITS)
def test_fourier_tables_are_consistent_and_near_the_truth_at_a_large_budget(unit: Unit) -> None:
    found = posterior.fourier(open_rows(unit), DAG_YX, spend=900)
    assert found.updates is not None
    y, x = found.updates
    assert x.project(["y"]).close_to(y, 1e-9)
    assert np.abs(y.values - [30, 10]).max() < 1 and np.abs(x.values - [[20, 10, 0], [0, 5, 5]]).max() < 1


def test_fourier_asks_for_the_noise_of_the_paper_if_told_to() -> None:
    """|N_I| of the chain y → x with 2 and 3 levels: 1 + 1 + 2 + 2 coefficients, times 2 for replaced rows."""
    printed = posterior.fourier(open_rows(), DAG_YX, spend=1, sensitivity="paper").provenance
    exact = posterior.fourier(open_rows(), DAG_YX, spend=1).provenance
    added = posterior.fourier(open_rows(Unit.ADD_REMOVE), DAG_YX, spend=1).provenance
    assert printed is not None and exact is not None and added is not None
    scales = [float(Fraction(p.details["coefficients"]["law"]["scale"])) for p in (printed, exact, added)]
    assert scales[0] == 12 and scales[1] < 12 and scales[2] == 6


def test_on_bits_the_whole_release_is_the_papers() -> None:
    """[002, Alg. 2] written out on the full contingency table, fed with the same noise, gives the same tables."""
    schema = Schema.of({name: ["0", "1"] for name in "abc"})
    dag = DAG.build({"a": [], "b": ["a"], "c": ["a", "b"]})
    rng = np.random.default_rng(8)
    rows = {name: rng.integers(0, 2, 60) for name in "abc"}
    airlock = open_airlock(rows, schema, budget=PureDP(9), unit="replace-one")
    found = posterior.fourier(airlock, dag, spend=1, sensitivity="paper", stealth=1.5)
    assert found.provenance is not None and found.updates is not None
    z = {
        frozenset(block["axes"]): block["counts"][0] * 2 ** (-3 / 2)
        for block in found.provenance.details["coefficients"]["blocks"]
    }
    assert set(z) == {frozenset(members) for members in close_downward(dag.families())}
    size = len(z)
    z[frozenset()] += 4 * 1.5 * size**2 / 2 ** (3 / 2)
    for family, ours in zip(dag.families(), found.updates, strict=True):
        h = np.zeros([2] * len(family))
        for gamma in close_downward([family]):
            for x in itertools.product((0, 1), repeat=3):
                sign = (-1) ** sum(x["abc".index(name)] for name in gamma)
                h[tuple(x["abc".index(name)] for name in family)] += (
                    z[frozenset(gamma)] * sign * 2 ** (-3 / 2)
                )
        assert ours.values == pytest.approx(h)


def test_stealth_keeps_every_cell_above_zero_as_often_as_it_says() -> None:
    negative = 0
    for _ in range(100):
        found = posterior.fourier(open_rows(budget="1000"), DAG_YX, spend=1, stealth=1.0)
        assert found.updates is not None
        negative += any((update.values < 0).any() for update in found.updates)
    assert negative <= 100 * math.exp(-1.0)


@pytest.mark.parametrize("levels", [2, 3, 5, 8, 16, 50])
def test_halving_reaches_every_level_and_no_row_counts_twice_at_a_depth(levels: int) -> None:
    depths = list_splits(levels)
    assert sum(map(len, depths)) == levels - 1 and len(depths) == math.ceil(math.log2(levels))
    for splits in depths:
        seen = [level for start, _, stop in splits for level in range(start, stop)]
        assert len(seen) == len(set(seen))
        assert all(start < middle < stop for start, middle, stop in splits)
    paths = {
        tuple(
            (start, level < middle)
            for splits in depths
            for start, middle, stop in splits
            if start <= level < stop
        )
        for level in range(levels)
    }
    assert len(paths) == levels  # the splits tell all levels apart


@settings(deadline=None, max_examples=40)
@given(st.integers(2, 40), st.floats(0.01, 8.0))
def test_the_spread_makes_the_log_ratio_that_is_paid_for(levels: int, reach: float) -> None:
    for splits in list_splits(levels):
        ends = [bound_split(split, spread_within(splits, reach)) for split in splits]
        found = max(max(math.log(high / low), math.log((1 - low) / (1 - high))) for low, high in ends)
        assert found == pytest.approx(reach)


@settings(deadline=None, max_examples=30)
@given(st.integers(2, 40), st.floats(0.001, 0.99))
def test_every_level_keeps_the_floor(levels: int, share: float) -> None:
    floor = max(share / levels, 2.0**-20)
    found = calibrate_maximum([("x",)], [np.ones(levels)], PureDP(1), unit=Unit.ADD_REMOVE, floor=floor)
    lowest = found.floors()["x"]
    assert lowest == pytest.approx(floor) and lowest >= floor * (1 - 1e-12)
    assert found.grids[0].spread == spread_above(levels, floor)
    ends = (
        [[[0] * len(grid.splits)] for grid in found.grids],
        [[[grid.steps] * len(grid.splits)] for grid in found.grids],
    )
    for drawn in ends:
        (values,) = found.join(drawn)
        assert values.sum() == pytest.approx(1.0) and values.min() >= floor * (1 - 1e-9)


@settings(deadline=None, max_examples=30)
@given(st.sampled_from(ROW_UNITS), st.sampled_from(["1/2", "2", "10"]), st.booleans(), st.data())
def test_the_exact_loss_of_a_draw_is_within_its_cost(
    unit: Unit, spend: str, sampling: bool, data: st.DataObject
) -> None:
    """The probability of every point of the grid on neighbouring counts, computed in full: log-ratio ≤ ε."""
    levels = data.draw(st.sampled_from([2, 3, 5, 8, 13]))
    families, priors = [("y",), ("y", "x")], [np.ones(2), np.full((2, levels), 0.7)]
    if sampling:
        found = calibrate_sample(families, priors, PureDP(spend), unit=unit, points=60)
    else:
        found = calibrate_maximum(families, priors, PureDP(spend), unit=unit, floor=0.03, points=60)
    counts = data.draw(st.lists(st.integers(0, 40), min_size=2 * levels, max_size=2 * levels))
    before = np.array(counts).reshape(2, levels)
    rows = list(itertools.product(range(2), range(levels)))
    gone, came = data.draw(st.sampled_from(rows)), data.draw(st.sampled_from(rows))
    after = before.copy()
    after[came] += 1
    if unit == Unit.REPLACE_ONE:
        before[gone] += 1
    worst = 0.0
    for grid in found.grids:
        one, other = (table.sum(axis=1) if grid.family == ("y",) else table for table in (before, after))
        worst += worst_log_ratio(grid, one, other)
    assert worst <= float(Fraction(spend)) + 1e-9


def worst_log_ratio(grid: SplitGrid, one: np.ndarray, other: np.ndarray) -> float:
    """The sum over parent rows and splits of the largest log-ratio: all are drawn independently."""
    total = 0.0
    alphas = grid.prior.reshape(-1, grid.prior.shape[-1])
    for mine, theirs, alpha in zip(
        one.reshape(alphas.shape), other.reshape(alphas.shape), alphas, strict=True
    ):
        for split in grid.splits:
            sides = []
            for counts in (mine, theirs):
                scores = grid.score(split, counts, alpha) / grid.choice.scale
                sides.append(scores - np.logaddexp.reduce(scores))
            total += float(np.abs(sides[0] - sides[1]).max())
    return total


@pytest.mark.parametrize("levels", [2, 4, 16])
def test_the_bound_on_a_sample_is_nearly_reached(levels: int) -> None:
    """Many rows at one end of the grids: one more depth or a factor less in the bound would be found out."""
    found = calibrate_sample([("y",)], [np.ones(levels)], PureDP(8), unit=Unit.REPLACE_ONE)
    far = np.zeros((2, levels), dtype=np.int64)
    far[0, 0], far[1, 0], far[1, -1] = 4000, 3999, 1
    nearly = sum(worst_log_ratio(grid, far[0], far[1]) for grid in found.grids)
    assert nearly <= 8.0
    first = worst_log_ratio(found.grids[0], far[0], far[1])
    assert first > 0.95 * 8.0 / len(
        found.grids
    )  # the first depth sees both rows; below it each split sees one
    even = np.full(levels, 400)
    moved = even.copy()
    moved[0], moved[-1] = 399, 401
    assert sum(worst_log_ratio(grid, even, moved) for grid in found.grids) < 8.0


def test_splits_without_parts_of_their_own_would_lose_more_than_they_claim() -> None:
    """A planted twin: each depth drawn as if it had the whole ε. One more row of a level shows more than the claim."""
    levels, claim = 4, 2.0
    sound = calibrate_sample([("y",)], [np.ones(levels)], PureDP(2), unit=Unit.ADD_REMOVE)
    broken = calibrate_sample(
        [("y",)], [np.ones(levels)], PureDP(4), unit=Unit.ADD_REMOVE
    )  # ε for each of two depths
    before, after = np.array([0, 0, 0, 4000]), np.array([1, 0, 0, 4000])
    lost = [sum(worst_log_ratio(grid, before, after) for grid in found.grids) for found in (sound, broken)]
    assert lost[0] <= claim < lost[1]


def test_the_formula_of_the_readings_for_bits() -> None:
    """ω = 1/(1 + e^{ε/2|I|}), up to the grain of the logarithms."""
    found = calibrate_sample([("a",), ("b",), ("c",)], [np.ones(2)] * 3, PureDP(3), unit=Unit.REPLACE_ONE)
    assert list(found.floors().values()) == pytest.approx([1 / (1 + math.exp(3 / 6))] * 3, abs=2e-5)
    for grid in found.grids:
        assert grid.measure_reach(grid.splits[0]) <= 0.5 * GRAIN


@pytest.mark.parametrize("mechanism", ["sample", "maximum"])
@pytest.mark.parametrize("levels", [16, 50])
def test_many_levels_are_drawn_as_finely_as_few(mechanism: str, levels: int) -> None:
    """20 000 rows, ε = 20: a lattice of 1025 points over all levels at once was worse than the uniform guess."""
    truth = np.random.default_rng(16).dirichlet(np.ones(levels))
    counts = np.random.default_rng(17).multinomial(20_000, truth)
    calibrate = calibrate_sample if mechanism == "sample" else calibrate_maximum
    found = calibrate([("x",)], [np.ones(levels)], PureDP(20), unit=Unit.REPLACE_ONE)

    def miss() -> float:
        (drawn,) = found.join([grid.draw(counts) for grid in found.grids])
        return float(np.abs(drawn[0] - truth).sum())

    assert np.mean([miss() for _ in range(3)]) < 0.3 * np.abs(truth - 1 / levels).sum()


@pytest.mark.parametrize("unit", ROW_UNITS)
def test_samples_and_maxima_are_networks_above_their_floor_and_cost_what_they_say(unit: Unit) -> None:
    airlock = open_rows(unit)
    drawn = posterior.sample(airlock, DAG_YX, spend=30, samples=3)
    assert len(drawn) == 3 and airlock.remaining == PureDP(970)
    best = posterior.maximum(airlock, DAG_YX, spend=600, floor=0.02)
    assert airlock.remaining == PureDP(370)
    assert best.cpt("y").values == pytest.approx([0.75, 0.25], abs=0.1)  # its deviation is 0.012
    for network in (*drawn, best):
        assert isinstance(network, Network) and network.provenance is not None
        floors = network.provenance.details["floors"]
        assert all(network.cpt(name).values.min() >= floors[name] - 1e-12 for name in network.nodes)
    with pytest.raises(Overspent):
        posterior.sample(airlock, DAG_YX, spend=371)


def test_a_repeated_request_pays_once_and_gets_the_same() -> None:
    airlock = open_rows()
    for run in (
        lambda: posterior.laplace(airlock, DAG_YX, spend=1, request="l").alphas[1].values,
        lambda: posterior.fourier(airlock, DAG_YX, spend=1, request="f").alphas[1].values,
        lambda: posterior.sample(airlock, DAG_YX, spend=1, samples=2, request="s")[1].cpt("x").values,
        lambda: posterior.maximum(airlock, DAG_YX, spend=1, request="m").cpt("x").values,
    ):
        first = run()
        left = airlock.remaining
        assert np.array_equal(run(), first) and airlock.remaining == left


def test_a_draw_can_be_paid_in_other_kinds() -> None:
    airlock = open_airlock(ROWS, SCHEMA, budget=ZCDP(2), unit="replace-one")
    posterior.sample(airlock, DAG_YX, spend=1)
    posterior.maximum(airlock, DAG_YX, spend="1/2")
    posterior.fourier(airlock, DAG_YX, spend="1/2")
    assert airlock.remaining.is_zero


def test_bad_requests_cost_nothing() -> None:
    airlock = open_rows()
    wrong = calibrate_sample([("y",)], [np.ones(2)], PureDP(1), unit=Unit.ADD_REMOVE)
    for run, error in [
        (lambda: posterior.sample(airlock, DAG_YX, spend=1, samples=0), MechanismError),
        (lambda: posterior.sample(airlock, DAG_YX, spend="1e-7"), MechanismError),
        (lambda: posterior.sample(airlock, DAG_YX, spend=1, points=2), MechanismError),
        (lambda: calibrate_sample([("y",)], [np.ones(1)], PureDP(1), unit=Unit.ADD_REMOVE), MechanismError),
        (lambda: calibrate_maximum([("y",)], [np.ones(1)], PureDP(1), unit=Unit.ADD_REMOVE), MechanismError),
        (lambda: posterior.maximum(airlock, DAG_YX, spend=1, floor=0.34), MechanismError),
        (lambda: posterior.maximum(airlock, DAG_YX, spend=1, floor=0.0), MechanismError),
        (lambda: posterior.maximum(airlock, DAG_YX, spend=1, prior=1e12), MechanismError),
        (lambda: posterior.fourier(airlock, DAG_YX, spend=1, stealth=0.0), MechanismError),
        (lambda: posterior.fourier(airlock, DAG_YX, spend=1, sensitivity="half"), MechanismError),
        (lambda: posterior.laplace(airlock, DAG_YX, spend=1, prior=0.0), TableError),
        (lambda: posterior.laplace(airlock, DAG_YX, spend=1, prior=1e308), TableError),  # its sum is infinite
        (lambda: posterior.fourier(airlock, DAG_YX, spend=1, prior=1e-300), TableError),
        (lambda: independent(airlock, DAG_YX, spend=1, prior={"y": [1.0, np.nan]}), TableError),
        (lambda: airlock.ask(wrong), AirlockError),
    ]:
        with pytest.raises(error):
            run()
    assert airlock.remaining == PureDP(1000)


def test_a_specification_cannot_state_less_than_it_loses() -> None:
    found = calibrate_sample([("y",), ("z",)], [np.ones(2)] * 2, PureDP(2), unit=Unit.REPLACE_ONE)
    with pytest.raises(MechanismError, match="more than the stated"):
        PosteriorDraw("cheap", found.grids, PureDP(1), Unit.REPLACE_ONE)
    grid = found.grids[0]
    with pytest.raises(MechanismError, match="is wider than its choice allows"):
        replace(grid, spread=1.1 * grid.spread)
    with pytest.raises(MechanismError, match="no split at depth 1"):
        replace(grid, depth=1)
    assert json.dumps(found.describe())
    assert measure_reach(grid.round_logs(grid.splits[0])) == grid.choice.sensitivity


@pytest.mark.parametrize("learner", ["laplace", "fourier", "maximum", "sample"])
def test_a_release_of_a_posterior_speaks_for_the_whole_account(learner: str) -> None:
    """It lists its own spends, adds what else was paid, and after a look without noise promises nothing."""
    options = {"samples": 3} if learner == "sample" else {}

    def learn(airlock: Airlock) -> tuple[Network, ...]:
        found = getattr(posterior, learner)(airlock, DAG_YX, spend="9", **options)
        found = found.network() if isinstance(found, Posterior) else found
        return found if isinstance(found, tuple) else (found,)

    with open_rows(budget="40") as airlock:
        airlock.measure([("x",)], spend="2")
        for network in learn(airlock):
            known = network.provenance
            assert known is not None
            assert known.cost.to_json() == {"epsilon": "9"}  # all samples, whichever one is published
            assert sum(debit.cost.epsilon for debit in known.statement.debits) == 9
            assert known.statement.loss == known.statement.spent == PureDP(11)
            assert known.details["options"] == options and known.statement.purpose
            assert "(ε = 40). This release is ε = 9 of it." in make_release(network).promise
        airlock.reveal([("x",)], reason="a look")
        for network in learn(airlock):
            assert make_release(network).promise.startswith("No privacy is promised")


def test_without_a_statement_there_is_no_release() -> None:
    with open_rows() as airlock:
        network = posterior.laplace(airlock, DAG_YX, spend="1").network()
    assert network.provenance is not None
    bare = replace(network, provenance=replace(network.provenance, statement=None))
    with pytest.raises(FormatError, match="without the statement of the account"):
        make_release(bare)
