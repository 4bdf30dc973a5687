"""The four posterior mechanisms lose no more privacy than they claim, on neighbours chosen to show the most."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from chance import SURE, check_claim, first_is_quick
from discreet.core.counter import TrueCounts
from discreet.core.mechanism import calibrate_counts
from discreet.core.noise import add_noise
from discreet.entrance import open_counter
from discreet.judge.experiments.empirical_epsilon import Draw, empirical_epsilon
from discreet.papers.estimators.ball_draw import calibrate_ball
from discreet.papers.estimators.sums import BoundedColumn
from discreet.papers.posterior.basis import close_downward, make_basis
from discreet.papers.posterior.grid_draws import (
    PosteriorDraw,
    calibrate_maximum,
    calibrate_sample,
)
from discreet.papers.posterior.linear import LinearStatistics, ProductStatistics
from discreet.values.budget import PureDP
from discreet.values.schema import Attribute, Schema
from discreet.values.table import Table
from discreet.values.unit import ROW_UNITS, Unit

EPSILON = 2
FAMILIES = (("y",), ("y", "x"))
# Neighbours that differ in one row: (0, 0) gives way to (1, 1), or is simply not there.
ONE = np.array([[6, 0], [0, 0]])
OTHER = {Unit.ADD_REMOVE: np.array([[5, 0], [0, 0]]), Unit.REPLACE_ONE: np.array([[5, 0], [0, 1]])}


def perturbed(counts: np.ndarray, unit: Unit) -> Draw:
    """[002, Alg. 1] as the airlock runs it."""
    mechanisms = calibrate_counts(FAMILIES, PureDP(EPSILON), unit=unit)

    def draw(trials: int) -> np.ndarray:
        tables = [np.tile(found.ravel(), (trials, 1)) for found in (counts.sum(axis=1), counts)]
        noisy = [add_noise(table, mechanism) for table, mechanism in zip(tables, mechanisms, strict=True)]
        return np.concatenate(noisy, axis=1)

    return draw


def transformed(counts: np.ndarray, unit: Unit) -> Draw:
    """[002, Alg. 2] as the airlock runs it."""
    sets = close_downward(FAMILIES)[1 if unit == Unit.REPLACE_ONE else 0 :]
    asked = ProductStatistics(sets, {"y": make_basis(2), "x": make_basis(2)})
    mechanism = LinearStatistics.price(asked, PureDP(EPSILON), unit=unit, sizes={}).mechanism
    exact = np.concatenate([block.values.ravel() for block in asked.evaluate([Table(("y", "x"), counts)])])
    return lambda trials: add_noise(np.tile(exact, (trials, 1)), mechanism)


def drawn(specification: PosteriorDraw, counts: np.ndarray) -> Draw:
    """A draw of all parameters, as the airlock runs it: the numbers of the points of all splits."""
    tables = {("y",): counts.sum(axis=1), ("y", "x"): counts}

    def draw_once() -> list[int]:
        return [
            number
            for grid in specification.grids
            for line in grid.draw(tables[grid.family])
            for number in line
        ]

    return lambda trials: np.array([draw_once() for _ in range(trials)])


def specify(kind: str, unit: Unit, nodes: int) -> PosteriorDraw:
    families, priors = FAMILIES[:nodes], [np.ones(2), np.ones((2, 2))][:nodes]
    if kind == "sample":
        return calibrate_sample(families, priors, PureDP(EPSILON), unit=unit, points=33)
    return calibrate_maximum(families, priors, PureDP(EPSILON), unit=unit, floor=0.1, points=33)


@pytest.mark.parametrize("unit", first_is_quick(ROW_UNITS))
@pytest.mark.parametrize("mechanism", [perturbed, transformed])
def test_perturbation_keeps_its_claim(mechanism: object, unit: Unit) -> None:
    sides = mechanism(ONE, unit), mechanism(OTHER[unit], unit)
    # It finds about 1.7 and 1.3, give or take 0.03.
    check_claim(lambda: empirical_epsilon(*sides, trials=12_000, confidence=SURE), EPSILON, least=0.5)


@pytest.mark.parametrize("unit", first_is_quick(ROW_UNITS))
@pytest.mark.parametrize("kind", ["sample", "maximum"])
@pytest.mark.parametrize(
    ("nodes", "trials"), [(1, 1500), pytest.param(2, 6000, marks=pytest.mark.slow)], ids=["one", "network"]
)
def test_draws_keep_their_claim(kind: str, unit: Unit, nodes: int, trials: int) -> None:
    """One row in all, so that it decides; that the bound is nearly reached is computed in `tests/laws`."""
    specification = specify(kind, unit, nodes)
    one, other = np.array([[1, 0], [0, 0]]), np.array([[0, 0], [0, int(unit == Unit.REPLACE_ONE)]])
    evidence = empirical_epsilon(
        drawn(specification, one), drawn(specification, other), trials=trials, confidence=SURE
    )
    assert not evidence.contradicts(EPSILON), str(evidence)


@pytest.mark.parametrize("unit", first_is_quick(ROW_UNITS))
def test_a_draw_of_regression_weights_keeps_its_claim(unit: Unit) -> None:
    """One weight, the constant's, and a label at one end of its bounds or the other."""
    column = BoundedColumn("0*1", -1, 1, "1/1048576")
    found = calibrate_ball([(0, 1)], [column], 1, PureDP(EPSILON), unit=unit, precision=1e-6, radius=1.0)

    def release(labels: list[float]) -> Draw:
        schema = Schema((Attribute.binned("label", (-1.0, 0.0, 1.0)),))
        rows = {"label": labels, "0*1": labels}
        counts = TrueCounts(open_counter(rows, schema, numbers=["0*1"]), schema.sizes)
        return lambda trials: np.array([found.draw(counts) for _ in range(trials)])

    other = [1.0] if unit == Unit.ADD_REMOVE else [1.0, -1.0]
    evidence = empirical_epsilon(release([1.0, 1.0]), release(other), trials=800, confidence=SURE)
    assert not evidence.contradicts(EPSILON), str(evidence)


@pytest.mark.parametrize("kind", ["sample", "maximum"])
@pytest.mark.parametrize("unit", first_is_quick(ROW_UNITS))
def test_draws_of_many_levels_keep_their_claim(kind: str, unit: Unit) -> None:
    """Five levels, three depths, one row in all: what a row shows on its way down adds up to ε at most."""
    calibrate = calibrate_sample if kind == "sample" else calibrate_maximum
    found = calibrate([("x",)], [np.ones(5)], PureDP(EPSILON), unit=unit, points=9)
    one, other = np.array([1, 0, 0, 0, 0]), np.array([0, 0, 0, 0, int(unit == Unit.REPLACE_ONE)])

    def release(counts: np.ndarray) -> Draw:
        return lambda trials: np.array(
            [[number for grid in found.grids for number in grid.draw(counts)[0]] for _ in range(trials)]
        )

    evidence = empirical_epsilon(release(one), release(other), trials=500, confidence=SURE)
    assert not evidence.contradicts(EPSILON), str(evidence)


def test_a_node_is_drawn_from_the_posterior_on_its_grid() -> None:
    """χ² of 1500 draws of a three-level row, two splits, against the posterior, computed in full."""
    found = calibrate_sample([("x",)], [np.full(3, 1.5)], PureDP(6), unit=Unit.REPLACE_ONE, points=6)
    counts, alpha = np.array([4, 1, 0]), np.full(3, 1.5)
    chances = []
    for grid, both, pseudo in zip(found.grids, ([5, 0], [4, 1]), ([2.0, 0.5], [0.5, 0.5]), strict=True):
        logs = grid.round_logs(grid.splits[0])
        scores = (logs @ np.array(both) + np.rint(logs @ np.array(pseudo))) / grid.choice.scale
        chances.append(np.exp(scores - np.logaddexp.reduce(scores)))
        assert np.allclose(
            grid.score(grid.splits[0], counts, alpha) / grid.choice.scale, scores - scores.max()
        )
    chance = np.outer(*chances).ravel()
    lattice = range(len(chance))
    hits = np.zeros(len(chance))
    for _ in range(1500):
        ((first,),), ((second,),) = (grid.draw(counts) for grid in found.grids)
        hits[6 * first + second] += 1
    # χ² needs cells that are hit now and then: the rarest are taken together, until they are expected 20 times.
    order = np.argsort(chance)
    rare = int(np.searchsorted(np.cumsum(1500 * chance[order]), 20)) + 1
    seen, expected = (
        np.append(values[order][rare:], values[order][:rare].sum()) for values in (hits, 1500 * chance)
    )
    assert len(expected) > 8
    assert stats.chisquare(seen, expected).pvalue > 1e-6
    uniform = float(((hits - 1500 / len(lattice)) ** 2 / (1500 / len(lattice))).sum())
    degrees = len(lattice) - 1
    assert uniform > degrees + 15 * math.sqrt(2 * degrees)  # the test would notice another law
