"""Calibrated intervals for what no measured table holds: releases made again from a searched one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import discreet as dc
from discreet.networks.figures import compare, count
from discreet.networks.intervals import resampled
from discreet.networks.intervals.resampled import Resampled, count_like, draw_releases
from discreet.networks.network import Network
from discreet.values.errors import NetworkError

NAMES = ("smoke", "lung", "bronc")
PAIRS = [("smoke", "lung"), ("smoke", "bronc"), ("lung", "bronc")]
GIVEN = {"smoke": "yes", "bronc": "yes"}


def search(rows: int, seed: int, epsilon: str = "1") -> tuple[Network, float]:
    """A release of three attributes of which only pairs were measured, and the table's own answer."""
    asia = dc.examples.asia()
    table = asia.sample(rows, rng=seed).arrow().select(list(NAMES))
    with dc.open_airlock(
        table, asia.schema.select(NAMES), budget=dc.PureDP(epsilon), unit="add-remove"
    ) as airlock:
        network = dc.learn.adaptive(airlock, spend=epsilon, sets=PAIRS, width=2)
    kept = [row for row in table.to_pylist() if row["smoke"] == "yes" and row["bronc"] == "yes"]
    return network, float(np.mean([row["lung"] == "yes" for row in kept]))


@pytest.fixture(scope="module")
def network() -> Network:
    """Such a release."""
    return search(2_000, 1)[0]


def remake(network: Network, draws: int = 10) -> Resampled:
    """Releases made again from it."""
    assert network.provenance is not None
    return draw_releases(network.schema, network.dag, network.cpts, network.provenance, rng=1, draws=draws)


def test_they_lie_within_guaranteed_ones_and_are_always_the_same(network: Network) -> None:
    """In Python for a distribution, an event and a comparison; read again from a file, the same numbers."""
    sure = network.query("lung", GIVEN)
    likely = network.query("lung", GIVEN, intervals="calibrated")
    assert sure.lower is not None and sure.upper is not None
    assert likely.lower is not None and likely.upper is not None
    assert (sure.lower < likely.lower).all() and (likely.upper < sure.upper).all()
    assert "made again" in likely.meaning and "lung, smoke and bronc" in likely.meaning
    event = network.query_event({"lung": "yes"}, GIVEN, intervals="calibrated")
    assert (event.lower, event.upper) == pytest.approx(likely.interval("yes"), abs=1e-6)
    again = replace(network).query("lung", GIVEN, intervals="calibrated")
    assert again.lower == pytest.approx(likely.lower)
    world = network.query("lung", GIVEN, intervals="calibrated", of="world")
    assert world.lower is not None and world.lower[0] < likely.lower[0]


def test_a_count_that_no_table_holds_has_one_too(network: Network) -> None:
    """Of rows with three levels."""
    event = {"lung": "yes", **GIVEN}
    found = count(network, event, intervals="calibrated")
    sure = count(network, event)
    assert sure.lower is not None and sure.upper is not None
    assert found.lower is not None and found.upper is not None
    assert sure.lower <= found.lower <= found.value <= found.upper < sure.upper


def test_what_was_not_measured_together_in_pairs_is_refused(network: Network) -> None:
    """Of two pairs with the target one may be unmeasured, and widens the interval; not both."""
    made = remake(network)
    parts = [np.zeros((2, 2, 2)), np.zeros((2, 2, 2))]
    parts[0][0, 0, 0] = parts[1][0, 1, 0] = 1.0
    known = made.estimate(NAMES, parts, ["lung"], world=False)
    one = replace(made, sets=tuple(held for held in made.sets if not held >= {"smoke", "lung"}))
    half = one.estimate(NAMES, parts, ["lung"], world=False)
    assert half.counts == pytest.approx(known.counts)
    assert half.variance - known.variance == pytest.approx(made.noise * np.array([[0.5, -0.5], [-0.5, 0.5]]))
    none = replace(one, sets=tuple(frozenset({name}) for name in NAMES))
    with pytest.raises(NetworkError, match=r"smoke and lung were not measured together.*guaranteed"):
        none.estimate(NAMES, parts, ["lung"], world=False)


def test_a_given_graph_and_an_encoding_are_refused() -> None:
    """There the network was fitted in another way, or its attributes are not those of the question."""
    asia = dc.examples.asia()
    rows = asia.sample(1_000, rng=1).arrow()
    with dc.open_airlock(rows, asia.schema, budget=dc.PureDP("1"), unit="add-remove") as airlock:
        planned = dc.learn.planned(airlock, asia.dag, spend="1")
    with pytest.raises(NetworkError, match=r"no measured table holds .* cannot be told; guaranteed"):
        planned.query("asia", {"bronc": "yes"}, intervals="calibrated", of="table")


def test_counts_of_many_rows_deviate_like_many() -> None:
    """Where fewer rows are drawn than there are, what chance does is scaled by the root of their ratio."""
    codes = {"a": np.array([0, 0, 1, 0], dtype=np.uint8)}
    assert count_like(codes, ("a",), np.array([2.0, 2.0]), 4.0) == pytest.approx([3, 1])
    assert count_like(codes, ("a",), np.array([200.0, 200.0]), 400.0) == pytest.approx([210, 190])
    rng = np.random.default_rng(2)
    drawn = [
        count_like({"a": rng.integers(0, 2, 1_000)}, ("a",), np.array([5e5, 5e5]), 1e6)[0] for _ in range(400)
    ]
    assert np.std(drawn) == pytest.approx(500, rel=0.15)


def test_an_interval_that_says_nothing_is_called_that(network: Network) -> None:
    """Of an answer that noise outweighs, and of a comparison of two that leave it open."""
    noisy, _ = search(30, 1, "0.2")
    for found in (
        noisy.query("lung", {"smoke": "yes"}),
        compare(noisy, {"lung": "yes"}, {"smoke": "yes"}, {"smoke": "no"}, "odds ratio"),
    ):
        assert found.meaning.startswith("As far as this release tells, it may be anything.")
    known = compare(network, {"bronc": "yes"}, {"smoke": "yes"}, {"smoke": "no"})
    assert known.meaning.startswith("95 % sure")


@pytest.mark.slow
def test_they_hold_as_often_as_they_say_and_not_without_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """In 90 to 100 % of 60 releases; a twin that makes releases again without noise holds far less often."""

    def rate(epsilon: str) -> float:
        held = 0
        for seed in range(60):
            network, truth = search(1_000, seed, epsilon)
            low, high = network.query("lung", GIVEN, intervals="calibrated").interval("yes")
            held += low - 1e-9 <= truth <= high + 1e-9
        return held / 60

    assert 0.9 <= rate("0.5") <= 1.0
    monkeypatch.setattr(resampled, "draw_noise", lambda law, shape, rng: np.zeros(shape))
    assert rate("0.5") < 0.8
