"""The exact likelihood-ratio attack: its formulas by brute force; the search never loses more than it claims."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from chance import SURE, within_attempts
from discreet.core import queries
from discreet.core.mechanism import AdditiveNoise, NoisyChoice, Selection, calibrate_choice
from discreet.core.noise import choose
from discreet.entrance import open_airlock
from discreet.judge.experiments.empirical_epsilon import empirical_mu
from discreet.judge.experiments.likelihood import Listener, PrivacyLoss, diverge, log_chances, read_loss
from discreet.judge.tails import chi_squared_tail
from discreet.learning.adaptive import adaptive
from discreet.learning.privbayes import privbayes
from discreet.values.budget import ZCDP, Finite, PureDP
from discreet.values.errors import DataError
from discreet.values.measurement import DiscreteGaussian, DiscreteLaplace
from discreet.values.schema import Schema
from discreet.values.unit import Unit

SCHEMA = Schema.of({name: ["0", "1"] for name in "abc"})
TARGET = (1, 1, 1)
PERSON = Unit("add-remove", "id", 4)


def mechanism_of(selection: Selection) -> NoisyChoice:
    return calibrate_choice("s", Fraction(1), PureDP(1), unit=Unit.ADD_REMOVE, selection=selection)


def flip(chances: np.ndarray) -> np.ndarray:
    """Permute-and-flip by its definition: the mean over all orders."""
    found = np.zeros(len(chances))
    orders = list(itertools.permutations(range(len(chances))))
    for order in orders:
        left = 1.0
        for i in order:
            found[i] += left * chances[i] / len(orders)
            left *= 1.0 - chances[i]
    return found


@pytest.mark.parametrize(
    "scores", [[3.0], [0.0, 0.0], [5.0, 4.0, -2.5], [1.0, 1.0, 0.0, 9.0, 8.5, -40.0, 2.0]]
)
def test_the_chances_of_a_choice_are_those_of_its_definition(scores: list[float]) -> None:
    values = np.array(scores)
    for selection, expected in (
        (Selection.PERMUTE_AND_FLIP, lambda found: flip(found)),
        (Selection.EXPONENTIAL, lambda found: found / found.sum()),
    ):
        mechanism = mechanism_of(selection)
        wanted = expected(np.exp((values - values.max()) / mechanism.scale))
        assert np.exp(log_chances(values, mechanism)) == pytest.approx(wanted, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("selection", list(Selection))
def test_candidates_are_drawn_as_often_as_the_attacker_expects(selection: Selection) -> None:
    values, mechanism = np.array([5.0, 4.0, 4.0, 1.0]), mechanism_of(selection)
    drawn = np.bincount([choose(values, mechanism) for _ in range(3000)], minlength=4)
    expected = 3000 * np.exp(log_chances(values, mechanism))
    assert chi_squared_tail(float(((drawn - expected) ** 2 / expected).sum()), 3) > 1 - SURE


@pytest.mark.parametrize(
    "law", [DiscreteLaplace(3), DiscreteLaplace("1/2"), DiscreteGaussian(5), DiscreteGaussian(1)]
)
def test_divergences_are_sums_over_the_law(law: DiscreteLaplace | DiscreteGaussian) -> None:
    k = np.arange(-120, 121)
    for by in (1, 2, 4):
        summed = float((law.pmf(k) * (law.log_pmf(k) - law.log_pmf(k + by))).sum())
        assert diverge(law, by) == pytest.approx(summed, rel=1e-9)


def make_pair(rows: int, unit: Unit) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
    """a = b ≠ c in all rows but the target's: then all pairs are equally wrong at first, and one row decides."""
    others = [(0, 0, 1), (1, 1, 0)] * (rows // 2)
    if unit.fixes_rows:
        return [*others, TARGET], [*others, (1, 0, 0)]
    return [*others, *[TARGET] * unit.at_most], others


def attack(
    rows: int, spend: Finite, unit: Unit, runs: int, learn: Any = adaptive
) -> tuple[list[PrivacyLoss], list[PrivacyLoss]]:
    """The privacy losses of so many releases with the target and of as many without."""
    pair = make_pair(rows, unit)
    listener = Listener(
        tuple({name: np.array([row[i] for row in side]) for i, name in enumerate("abc")} for side in pair)  # type: ignore[arg-type]
    )
    found = []
    for side in pair:
        columns: dict[str, list[Any]] = {name: [str(row[i]) for row in side] for i, name in enumerate("abc")}
        if unit.person:
            columns["id"] = [*range(rows), *["p"] * (len(side) - rows)]
        with open_airlock(columns, SCHEMA, budget=spend * runs, unit=unit) as airlock:
            found.append([read_loss(learn(airlock, spend=spend), listener) for _ in range(runs)])
    return found[0], found[1]


@pytest.mark.parametrize("unit", [Unit.ADD_REMOVE, Unit.REPLACE_ONE, PERSON], ids=str)
@pytest.mark.parametrize("rows", [60, 300, 4000])
@pytest.mark.parametrize("spend", [PureDP(1), ZCDP("1/2")], ids=str)
def test_no_release_loses_more_than_the_search_claims(unit: Unit, rows: int, spend: Finite) -> None:
    """Not on average but each of them: likelihoods are exact, so one release over the claim is a proof."""
    limit = float(spend.amounts[0]) * (1 + 1e-9)
    losses = [loss for side in attack(rows, spend, unit, 6) for loss in side]
    assert all(reach(loss, spend) <= limit for loss in losses)
    assert any(loss.whole for loss in losses)


def reach(loss: PrivacyLoss, spend: Finite) -> float:
    """What the claim bounds."""
    return abs(loss.whole) if isinstance(spend, PureDP) else max(loss.ahead, loss.back)


@pytest.mark.parametrize("spend", [PureDP(1), ZCDP("1/2")], ids=str)
def test_greedy_searches_are_followed_too(spend: Finite) -> None:
    """No loss is above the claim; and choices are read and tell something, in most runs of four releases."""
    limit = float(spend.amounts[0]) * (1 + 1e-9)

    def tells() -> bool:
        losses = attack(400, spend, Unit.ADD_REMOVE, 4, privbayes)[0]
        assert all(reach(loss, spend) <= limit for loss in losses)
        return any(loss.choices for loss in losses)

    assert within_attempts(tells, 10)


@pytest.mark.parametrize("unit", [Unit.ADD_REMOVE, PERSON], ids=str)
def test_the_claim_is_tight(unit: Unit) -> None:
    """With many rows choices are cheap, and all but a few percent of the claim can be attained."""
    inside, outside = attack(4000 * unit.at_most, ZCDP("1/2"), unit, 5)
    mu = math.sqrt(np.mean([loss.ahead for loss in inside]) + np.mean([loss.back for loss in outside]))
    assert 0.95 <= mu <= 1 + 1e-9
    assert all(any(step.is_choice for step in loss.steps) for loss in inside)

    def reaches() -> bool:
        return any(
            abs(loss.whole) >= 0.95 * 6 for loss in attack(4000 * unit.at_most, PureDP(6), unit, 12)[0]
        )

    assert within_attempts(reaches)


def test_a_shift_is_bounded_from_below() -> None:
    rng = np.random.default_rng(4)
    found = empirical_mu(rng.normal(1, 1, 20_000), rng.normal(0, 1, 20_000), confidence=SURE)
    assert 0.8 < found < 1.0
    assert empirical_mu(rng.normal(0, 1, 500), rng.normal(0, 1, 500), confidence=SURE) == 0.0


def test_noise_that_is_narrower_than_it_says_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The attacker believes the stated law; how far apart the sides really are tells that it is not the true one."""

    def prove() -> float:
        sides = attack(4000, ZCDP("1/50"), Unit.ADD_REMOVE, 60)  # μ = 0.2 is claimed
        return empirical_mu(
            *(np.array([loss.whole - loss.choices for loss in side]) for side in sides), confidence=SURE
        )

    honest = queries.add_noise

    def narrow(counts: np.ndarray, mechanism: AdditiveNoise) -> np.ndarray:
        return counts + np.fix((honest(counts, mechanism) - counts) / 100).astype(np.int64)

    assert prove() <= 0.2
    monkeypatch.setattr(queries, "add_noise", narrow)
    assert within_attempts(lambda: prove() > 0.2)


def test_what_cannot_be_followed_is_refused() -> None:
    from discreet.networks.examples import asia

    with pytest.raises(DataError, match="does not say how it was learned"):
        read_loss(asia(), Listener(({}, {})))
