"""Shares of noise behind masks: what the sum loses is at most what it costs, and nothing else is told."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import discreet as dc
from chance import SURE, check_claim, within_attempts
from discreet.core.mechanism import AdditiveNoise, Noise
from discreet.core.noise import add_noise
from discreet.judge.experiments.empirical_epsilon import Draw, empirical_epsilon
from discreet.judge.noise_fit import fit_law
from discreet.papers.aggregation.masked import MaskedTables, draw_mask, find_joint_loss
from discreet.papers.aggregation.simulation import share_noise
from discreet.values.budget import ZCDP, PureDP, imply_approx
from discreet.values.errors import FormatError, MechanismError
from discreet.values.laws.sums import NoiseSum
from discreet.values.measurement import DiscreteGaussian
from discreet.values.unit import ROW_UNITS, Unit

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
PERSON = Unit("add-remove", "who", 3)


def price(
    cost: ZCDP | PureDP, unit: Unit = Unit.ADD_REMOVE, parties: int = 3, honest: int = 3
) -> MaskedTables:
    return MaskedTables.price([("a",)], cost, unit=unit, parties=parties, honest=honest, round="r")


@pytest.mark.parametrize("sigma2", ["1/4", "1/2", "1", "4"])
@pytest.mark.parametrize("honest", [1, 2, 5, 20])
@pytest.mark.parametrize("moved", [1, 3])
def test_the_loss_is_at_least_the_exact_divergence(sigma2: str, honest: int, moved: int) -> None:
    """The Rényi divergence of the very sum, by its exact chances, stays below α·ρ at every order that is tried."""
    single = DiscreteGaussian(sigma2)
    law = single if honest == 1 else NoiseSum([single] * honest)
    k = np.arange(-400, 401)
    one, other = law.log_pmf(k), law.log_pmf(k - moved)
    seen = (one > -300) & (other > -300)
    rho = float(find_joint_loss((moved,), Fraction(sigma2), honest).rho)
    for order in (1.01, 1.5, 2.0, 4.0, 8.0, 16.0):
        logs = (order * one + (1.0 - order) * other)[seen]
        divergence = (math.log(float(np.exp(logs - logs.max()).sum())) + float(logs.max())) / (order - 1.0)
        assert divergence <= order * rho * (1 + 1e-6)
    assert rho >= moved**2 / (2.0 * honest * float(single.sigma2)) * (1 - 1e-9)


@pytest.mark.parametrize("unit", [*ROW_UNITS, PERSON])
def test_one_unit_moves_the_sum_no_further_than_it_is_priced_for(unit: Unit) -> None:
    """All tiny tables of two custodians: whoever is added to, taken from or replaced in one of them."""
    mechanism = price(ZCDP("1/8"), unit).mechanisms[0]
    l2 = sum(move * move for move in mechanism.moves)
    worst = 0
    for mine in itertools.product(range(3), repeat=2):
        for units in itertools.product(range(2), repeat=unit.at_most):
            added = np.bincount(units, minlength=2)
            changes = (
                [added]
                if not unit.fixes_rows
                else [added - np.bincount([cell], minlength=2) for cell in (0, 1)]
            )
            for change in changes:
                if (np.array(mine) + change >= 0).all():
                    worst = max(worst, int((change**2).sum()))
    assert worst == l2


@pytest.mark.parametrize("unit", [*ROW_UNITS, PERSON])
@pytest.mark.parametrize(("parties", "honest"), [(2, 1), (3, 3), (10, 7)])
def test_a_query_that_costs_less_than_it_loses_cannot_be_made(unit: Unit, parties: int, honest: int) -> None:
    query = price(ZCDP("1/8"), unit, parties, honest)
    narrow = query.mechanisms[0].scale * 0.999
    alone = ZCDP(Fraction(sum(m * m for m in unit.moves)) / (2 * Fraction(narrow) ** 2))
    broken = AdditiveNoise("a", unit, unit.moves, Noise.GAUSSIAN, narrow, alone)
    with pytest.raises(MechanismError, match="shares lose"):
        replace(query, mechanisms=(broken,))
    with pytest.raises(MechanismError, match="shares lose"):
        replace(query, charges=(ZCDP("1/9"),), cost=ZCDP("1/9"))
    if honest > 1:
        with pytest.raises(MechanismError, match="shares lose"):
            replace(query, honest=honest - 1)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"parties": 1, "honest": 1}, "2 to 1,000 parties"),
        ({"honest": 0}, "1 or more"),
        ({"honest": 4}, "at most all"),
        ({"cost": PureDP(1)}, "paid for with a ρ"),
    ],
)
def test_what_cannot_be_shared_is_refused(change: dict[str, Any], what: str) -> None:
    given = {"cost": ZCDP("1/8"), "parties": 3, "honest": 3, **change}
    with pytest.raises(MechanismError, match=what):
        price(**given)
    with pytest.raises(MechanismError, match=r"at least 0\.5"):
        find_joint_loss((1,), Fraction(1, 5), 3)


def publish_sum(true: int, query: MaskedTables, colluding: int) -> Draw:
    """What colluding parties see of one cell: the sum less their own noise; they know their rows and their masks."""

    def draw(trials: int) -> np.ndarray:
        zeros = np.zeros(trials, dtype=np.int64)
        noise = sum(add_noise(zeros, query.mechanisms[0]) for _ in range(query.parties - colluding))
        return (true + noise)[:, None]

    return draw


def test_the_sum_keeps_its_claim_though_others_collude() -> None:
    query = price(ZCDP("1/2"), parties=4, honest=3)
    claim = float(imply_approx(ZCDP("1/2"), "1e-2").epsilon)
    sides = publish_sum(1, query, 1), publish_sum(0, query, 1)
    # It finds about 0.9, give or take 0.1.
    check_claim(lambda: empirical_epsilon(*sides, trials=8000, delta=1e-2, confidence=SURE), claim, least=0.2)


def test_a_planted_twin_whose_shares_count_on_everybody_is_caught() -> None:
    """Noise for 8 honest parties, of whom 7 collude: one share is left, and the claim is refuted."""
    query = price(ZCDP("1/8"), parties=8, honest=8)
    claim = float(imply_approx(ZCDP("1/8"), "1e-2").epsilon)

    def attempt() -> bool:
        sides = publish_sum(1, query, 7), publish_sum(0, query, 7)
        return empirical_epsilon(*sides, trials=4000, delta=1e-2, confidence=0.99).contradicts(claim)

    assert within_attempts(attempt)


def test_one_answer_alone_is_uniform_and_all_together_are_the_sum(tmp_path: Path) -> None:
    """Without its masks an answer is 64 random bits in every cell: its top byte fits the uniform law."""
    schema = dc.Schema.of({"a": [str(i) for i in range(4000)]})
    query = price(ZCDP("1/2"), parties=2, honest=2)
    mask = draw_mask(4000)
    answers = {}
    for name, signed in (("x", mask), ("y", np.zeros(4000, dtype=np.uint64) - mask)):
        asked = replace(query, masks=(signed,))
        with dc.open_airlock({"a": ["7"] * 50}, schema, budget=ZCDP("1/2")) as airlock:
            answers[name] = airlock.ask(asked, request="r")
            again = airlock.ask(asked, request="r")
            assert np.array_equal(answers[name][0], again[0])  # stored once, handed out as often as asked for
            with pytest.raises(dc.errors.DiscreetError, match="request"):
                airlock.ask(replace(asked, round="another"), request="r")
    top = np.bincount((answers["x"][0] >> np.uint64(61)).astype(int), minlength=8)
    assert (np.abs(top - 500) < 160).all()  # 7.6 deviations of √437.5: once in 10^12
    (found,) = query.unmask(answers, schema.sizes)
    noise = found.noisy.values.copy()
    noise[7] -= 100
    assert found.law == NoiseSum([query.mechanisms[0].law] * 2) and fit_law(noise, found.law) > 1e-7
    with pytest.raises(FormatError, match="1 of 2 parties have answered"):
        query.unmask({"x": answers["x"]}, schema.sizes)
    with pytest.raises(FormatError, match="not made for these tables"):
        query.unmask({"x": answers["x"], "y": [mask[:5]]}, schema.sizes)
    with (
        pytest.raises(MechanismError, match="one mask for every cell"),
        dc.open_airlock({"a": ["7"]}, schema, budget=ZCDP("1/2")) as airlock,
    ):
        airlock.ask(query, request="r")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_processes_share_noise_and_one_that_drops_out_stops_the_round(tmp_path: Path) -> None:
    clinic = dc.examples.asia()
    names = ["north", "south", "west"]
    plan = dc.agree(names, clinic.schema, clinic.dag, rho="1/8")
    rows = {name: clinic.sample(200, rng=i).arrow() for i, name in enumerate(names)}
    (tmp_path / "one").mkdir()
    for found in share_noise(rows, plan, folder=tmp_path / "one"):
        assert abs(found.noisy.total() - 600) < 8 * (found.law.variance * found.cells) ** 0.5
    with dc.open_ledger(str(tmp_path / "one" / "south.ledger")) as ledger:
        assert [entry.cost for entry in ledger.entries("south")] == [ZCDP("1/8")]
    (tmp_path / "two").mkdir()
    with pytest.raises(FormatError, match="2 of 3 parties have answered"):
        share_noise(rows, plan, folder=tmp_path / "two", absent=["west"])
    with pytest.raises(FormatError, match="the plan is for north, south, west"):
        share_noise({"north": rows["north"]}, plan, folder=tmp_path)


def test_a_custodian_s_rows_keep_their_own_claim_beside_and_within_the_sum() -> None:
    """Everybody sees the part of one custodian, for ε = 1, and the sum with two others, who spent more."""
    from discreet.core.mechanism import calibrate_counts

    parts = [calibrate_counts([("a",)], PureDP(spend), unit=Unit.ADD_REMOVE)[0] for spend in (1, 2, 3)]

    def publish(true: int) -> Draw:
        def draw(trials: int) -> np.ndarray:
            drawn = [
                add_noise(np.full(trials, count), part)
                for count, part in zip((true, 5, 9), parts, strict=True)
            ]
            return np.stack([drawn[0], sum(drawn)], axis=1)

        return draw

    # It finds about 0.8, give or take 0.05.
    check_claim(
        lambda: empirical_epsilon(publish(1), publish(0), trials=8000, confidence=SURE), 1.0, least=0.05
    )
