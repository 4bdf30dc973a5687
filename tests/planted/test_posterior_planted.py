"""Posterior mechanisms that are not private: the audit that passes ours refutes each of them.

They are the printed MAP mechanism, clamping after sampling, a sample whose prior is not truncated at all, and Fourier
coefficients with too little noise. The printed cost of a sample is refuted by computing what it loses.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import stats

from chance import SURE, within_attempts
from discreet.core.noise import add_noise
from discreet.judge.experiments.empirical_epsilon import EpsilonBound, empirical_epsilon
from discreet.papers.posterior.basis import close_downward, make_basis
from discreet.papers.posterior.grid_draws import calibrate_maximum, calibrate_sample
from discreet.papers.posterior.linear import LinearStatistics, ProductStatistics
from discreet.values.budget import PureDP
from discreet.values.table import Table
from discreet.values.unit import Unit

Release = Callable[[np.ndarray, int], np.ndarray]
"""From a table of counts and a number of runs to as many outputs."""
POINTS = 41


@dataclass(frozen=True, slots=True)
class Planted:
    """A sound mechanism, a broken one that claims the same ε, and neighbours on which it shows."""

    claim: float
    sound: Release
    broken: Release
    one: np.ndarray
    other: np.ndarray
    trials: int = 1500


def audit(release: Release, case: Planted) -> EpsilonBound:
    sides = [lambda trials, counts=counts: release(counts, trials) for counts in (case.one, case.other)]
    return empirical_epsilon(*sides, trials=case.trials, confidence=SURE)


def sound_draw(kind: str, epsilon: float, floor: float = 0.4) -> Release:
    """Our mechanisms on one bit without parents; the output is its probability of 0."""
    spend, unit = PureDP(epsilon), Unit.REPLACE_ONE
    if kind == "sample":
        found = calibrate_sample([("x",)], [np.ones(2)], spend, unit=unit, points=POINTS)
    else:
        found = calibrate_maximum([("x",)], [np.ones(2)], spend, unit=unit, floor=floor, points=POINTS)
    (grid,) = found.grids
    return lambda counts, trials: np.array(
        [[grid.place(grid.splits[0], grid.draw(counts)[0][0])] for _ in range(trials)]
    )


def grid_of(floor: float) -> np.ndarray:
    return np.linspace(floor, 1 - floor, POINTS)


def posterior_weights(bit: np.ndarray, theta: np.ndarray) -> np.ndarray:
    logs = bit[0] * np.log(theta) + bit[1] * np.log(1 - theta)
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum())


def printed_map(epsilon: float, floor: float) -> Release:
    """[002, Alg. 3] as printed: ∝ exp(ε·ξ(θ|D)/(2Δ)) with the posterior DENSITY and Δ = √(L·r), r = 1 for one bit."""
    theta = grid_of(floor)
    delta = math.sqrt(math.log((1 - floor) / floor))
    width = (1 - 2 * floor) / (POINTS - 1)

    def run(counts: np.ndarray, trials: int) -> np.ndarray:
        rng = np.random.default_rng()
        density = posterior_weights(counts, theta) / width
        chance = np.exp(epsilon * (density - density.max()) / (2 * delta))
        return rng.choice(theta, size=(trials, 1), p=chance / chance.sum())

    return run


def clamped(epsilon: float) -> Release:
    """A sample of the whole posterior, clamped into [ω, 1−ω] afterwards, at the price of a truncated one."""
    floor = 1 / (1 + math.exp(epsilon / 2))

    def run(counts: np.ndarray, trials: int) -> np.ndarray:
        rng = np.random.default_rng()
        drawn = rng.beta(counts[0] + 1, counts[1] + 1, size=(trials, 1))
        return np.clip(drawn, floor, 1 - floor)

    return run


def whole_posterior(counts: np.ndarray, trials: int) -> np.ndarray:
    """A sample of the posterior under a prior that was not truncated: no claim has a basis."""
    return np.random.default_rng().beta(counts[0] + 1, counts[1] + 1, size=(trials, 1))


def coefficients(epsilon: float, narrow: int) -> Release:
    """The Fourier coefficients of y → x with noise of the right scale, divided by `narrow`."""
    asked = ProductStatistics(close_downward([("y", "x")])[1:], {"y": make_basis(2), "x": make_basis(2)})
    mechanism = LinearStatistics.price(
        asked, PureDP(epsilon * narrow), unit=Unit.REPLACE_ONE, sizes={}
    ).mechanism

    def run(counts: np.ndarray, trials: int) -> np.ndarray:
        blocks = asked.evaluate([Table(("y", "x"), counts)])
        return add_noise(np.tile([block.values.item() for block in blocks], (trials, 1)), mechanism)

    return run


CASES = {
    "the MAP mechanism as printed": Planted(
        2.0,
        sound_draw("maximum", 2.0, 0.45),
        printed_map(2.0, 0.45),
        np.array([1, 1]),
        np.array([0, 2]),
        trials=3000,
    ),
    "clamping after sampling": Planted(
        0.5, sound_draw("sample", 0.5), clamped(0.5), np.array([5, 0]), np.array([4, 1]), trials=3000
    ),
    "a prior that is not truncated": Planted(
        0.5, sound_draw("sample", 0.5), whole_posterior, np.array([5, 0]), np.array([4, 1]), trials=3000
    ),
    "a third of the scale of the Fourier coefficients": Planted(
        0.5,
        coefficients(0.5, 1),
        coefficients(0.5, 3),
        np.array([[5, 0], [0, 0]]),
        np.array([[4, 0], [0, 1]]),
        trials=6000,
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_the_audit_passes_the_sound_one_and_refutes_the_broken_one(case: Planted) -> None:
    sound = audit(case.sound, case)
    assert not sound.contradicts(case.claim), str(sound)
    assert within_attempts(lambda: audit(case.broken, case).contradicts(case.claim))


def test_a_clamped_sample_is_worse_the_more_rows_there_are() -> None:
    """Exactly: the probability of not being clamped to 1−ω gets about n times as large if one zero becomes a one."""
    for rows in (5, 50, 400):
        inside = [stats.beta(a, b).cdf(0.5622) for a, b in ((rows + 1, 1), (rows, 2))]
        assert math.log(inside[1] / inside[0]) > math.log(rows) - math.log(3)


def test_the_printed_cost_of_a_sample_is_refuted_by_its_exact_loss() -> None:
    """[002, Thm. 4.1] ω from ε = 2·log((1−ω)/ω), whatever the number of nodes: six bits lose far more than that ε."""
    claim, nodes = 0.5, 6
    families, priors = [(f"x{i}",) for i in range(nodes)], [np.ones(2)] * nodes
    ours = calibrate_sample(families, priors, PureDP(claim), unit=Unit.REPLACE_ONE, points=POINTS)
    printed = calibrate_sample(families, priors, PureDP(claim * nodes), unit=Unit.REPLACE_ONE, points=POINTS)
    lost = []
    for found in (ours, printed):
        total = 0.0
        for grid in found.grids:
            logs = grid.round_logs(grid.splits[0])
            scores = [logs @ bit / grid.choice.scale for bit in (np.array([90, 0]), np.array([89, 1]))]
            logs = [score - np.logaddexp.reduce(score) for score in scores]
            total += float(np.abs(logs[0] - logs[1]).max())
        lost.append(total)
    assert lost[0] <= claim < 2 * claim < lost[1]
