"""Calibrated intervals for what no measured table holds: releases made again from a searched one."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import discreet as dc
from chance import within_attempts
from discreet.compute.cliques.entropy import estimate_margins, fit_margins
from discreet.compute.cliques.model import CliqueModel
from discreet.networks.figures import compare, count
from discreet.networks.intervals import resampled, unseen
from discreet.networks.intervals.resampled import Resampled, count_like, draw_releases
from discreet.networks.intervals.unseen import HIDDEN, Sight
from discreet.networks.network import Network
from discreet.values.budget import Finite
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
    return draw_releases(network.schema, network.provenance, rng=1, draws=draws)


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
    assert sure.lower <= found.lower < found.upper < sure.upper


def test_an_unmeasured_pair_adds_what_its_noise_would_have_hidden(network: Network) -> None:
    """φ times the variance of chance, for the part of the other's rows that the evidence is; refused if it drowns."""
    made = remake(network)
    parts = [np.zeros((2, 2, 2)), np.zeros((2, 2, 2))]
    parts[0][0, 0, 0] = parts[1][0, 1, 0] = 1.0  # lung among those with smoke=yes, bronc=yes
    known = made.estimate(NAMES, parts, ["lung"], world=False)
    sight = replace(made.sight, choice=20.0)  # all pairs were given, so none was chosen
    one = replace(made, sets=tuple(held for held in made.sets if not held >= {"smoke", "lung"}), sight=sight)
    half = one.estimate(NAMES, parts, ["lung"], world=False)
    assert half.counts == pytest.approx(known.counts)
    joint = next(made.model.margins([NAMES])).values  # smoke, lung, bronc
    lung, smoke = joint.sum(axis=(0, 2)), joint.sum(axis=(1, 2))
    bronc = joint[0, :, 0].sum() / smoke[0]
    spread = np.sqrt(made.rows * np.outer(lung * (1 - lung), smoke)).sum()
    off = HIDDEN * (2 * sight.price + sight.singles["lung"] + sight.singles["smoke"]) + sight.choice
    hidden = (off / spread) ** 2 * bronc
    a, b = known.counts
    chance = a * b / (a + b) * np.array([[1, -1], [-1, 1]])
    assert half.variance - known.variance == pytest.approx(hidden * chance, rel=1e-6)
    none = replace(one, sight=replace(sight, price=made.rows / 3))
    with pytest.raises(
        NetworkError, match=r"lung and smoke were not measured together, and noise.*guaranteed"
    ):
        none.estimate(NAMES, parts, ["lung"], world=False)


@pytest.mark.parametrize("spend", [dc.PureDP("1"), dc.ZCDP("0.1")])
def test_what_a_search_can_see_is_read_from_what_it_paid(spend: dc.PureDP | dc.ZCDP) -> None:
    """The noise of pairs and of single attributes by their laws, that of a choice by its price; none, nothing."""
    asia = dc.examples.asia()
    rows = asia.sample(3_000, rng=1).arrow()
    with dc.open_airlock(rows, asia.schema, budget=spend, unit="add-remove") as airlock:
        network = dc.learn.adaptive(airlock, spend=spend, sets=[("smoke", "lung")], width=2)
    known = network.provenance
    assert known is not None
    sight = Sight.of(known, 3_000)
    pairs = [found for found in known.measurements if len(found.axes) == 2]
    typical = np.median([found.law.variance**0.5 for found in pairs])
    assert sight.price * 4**sight.power == pytest.approx(4 * typical)
    held = [found for found in known.measurements if "lung" in found.axes]
    left = 1 / sum(1 / (found.law.variance * found.cells / 2) for found in held)
    assert sight.singles["lung"] == pytest.approx(2 * left**0.5)
    epsilon = 2 / sight.choice  # of one choice, by an error that one row moves by 1
    choice = epsilon if isinstance(spend, dc.PureDP) else epsilon**2 / 8
    tables = sum(
        float(found.cost.amounts[0]) for found in known.measurements if isinstance(found.cost, Finite)
    )
    assert tables + choice * len(known.details["choices"]) == pytest.approx(float(spend.amounts[0]))
    blind = Sight.of(replace(known, details={**known.details, "choices": []}), 3_000)
    with pytest.raises(NetworkError, match="would have hidden"):
        blind.doubt(("lung", "smoke"), np.array([10.0, 90.0]), np.array([50.0, 50.0]))


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
    """Of an answer that noise outweighs, and of a comparison of two that leave it open.

    Noise that seems to tell something, because it is beyond the interval that it is given, is tried again.
    """

    def says_nothing() -> bool:
        noisy, _ = search(30, 1, "0.2")
        answer = noisy.query("lung", {"smoke": "yes"})
        compared = compare(noisy, {"lung": "yes"}, {"smoke": "yes"}, {"smoke": "no"}, "odds ratio")
        told = "As far as this release tells, it may be anything."
        return answer.meaning.startswith(told) and compared.meaning.startswith(told)

    assert within_attempts(says_nothing)
    known = compare(network, {"bronc": "yes"}, {"smoke": "yes"}, {"smoke": "no"})
    assert known.meaning.startswith("95 % sure")


@pytest.mark.slow
def test_they_hold_as_often_as_they_say_and_twins_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """In 78 and more of 100 releases; one twin makes releases again without noise, one from shrunk tables.

    At a coverage of 93 % fewer hold by chance once in three million times, at 95 % once in a billion. The same releases
    are asked: the twins miss where ours holds in about 60 and 20 of 100, and 3 or fewer are as improbable.
    """

    def fit_shrunk(
        sizes: Any, noisy: Any, variances: Any, total: float | None = None
    ) -> tuple[CliqueModel, float]:
        margins, rows = estimate_margins(noisy, variances, {}, total)
        return fit_margins(sizes, margins), rows

    ways: list[dict[str, Any]] = [
        {},
        {"draw_noise": lambda law, shape, rng: np.zeros(shape)},
        {"fit_tables": fit_shrunk},
    ]
    held = np.zeros((100, len(ways)), dtype=bool)
    for seed in range(len(held)):
        network, truth = search(1_000, seed, "0.5")
        for k, changed in enumerate(ways):
            with monkeypatch.context() as patch:
                for name, twin in changed.items():
                    patch.setattr(resampled, name, twin)
                low, high = replace(network).query("lung", GIVEN, intervals="calibrated").interval("yes")
            held[seed, k] = low - 1e-9 <= truth <= high + 1e-9
    ours, *twins = held.T
    assert ours.sum() >= 78
    assert min((ours & ~twin).sum() for twin in twins) > 3


@pytest.mark.slow
def test_what_a_search_left_out_is_in_them_and_not_in_a_twin(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten attributes that all depend a little on each other: of pairs that were not measured, 90 % and more hold.

    A twin that believes that what was not measured is not there holds in about half.
    """
    names = [f"x{k}" for k in range(10)]
    schema = dc.Schema.of({name: list("abcd") for name in names})
    held: dict[Any, list[bool]] = {Sight.doubt: [], (lambda *_: 0.0): []}
    for seed in range(2):
        rng = np.random.default_rng(seed)
        common, pull = rng.normal(size=20_000), 0.25 * rng.uniform(0.5, 1.5, 10)
        codes = {
            name: np.digitize(pull[k] * common + rng.normal(size=20_000), [-0.5, 0.0, 0.5])
            for k, name in enumerate(names)
        }
        rows = {name: np.array(list("abcd"), dtype=object)[found] for name, found in codes.items()}
        with dc.open_airlock(rows, schema, budget=dc.PureDP("0.3"), unit="add-remove") as airlock:
            network = dc.learn.adaptive(airlock, spend="0.3")
        table = network._intervals.table()
        for one, other in itertools.permutations(names, 2):
            if table.answers([one, other]):
                continue
            truth = (codes[one][codes[other] == 0] == 0).mean()
            for hidden, found in held.items():
                monkeypatch.setattr(unseen.Sight, "doubt", hidden)
                low, high = network.query(one, {other: "a"}, intervals="calibrated").interval("a")
                found.append(bool(low <= truth <= high))
    ours, twins = held.values()
    assert len(ours) > 40
    assert np.mean(ours) >= 0.9
    assert np.mean(twins) < 0.85
