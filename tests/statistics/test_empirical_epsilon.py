"""No mechanism loses more privacy than it claims, as far as an experiment can tell.

That the experiment can tell is shown beside it: it finds a good part of the ε that is really there, and in
`tests/planted` it refutes mechanisms that break their claim.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from chance import SURE, check_claim
from discreet.core.mechanism import AdditiveNoise, Noise, Selection, calibrate_choice, calibrate_counts
from discreet.core.noise import add_noise, choose
from discreet.judge.experiments.empirical_epsilon import Draw, empirical_epsilon
from discreet.judge.tails import bound_share_above, bound_share_below
from discreet.papers.estimators.sums import BoundedColumn, Sums
from discreet.papers.parameters.subsample import Subsampling
from discreet.values.budget import ZCDP, PureDP, imply_approx
from discreet.values.errors import MechanismError
from discreet.values.unit import ROW_UNITS, Unit

SOME = 12_000
MANY = pytest.param(64_000, marks=pytest.mark.slow)
"""Half of them held out: at ε = 1 and α = .01, as many as it takes to see a truth that is 5 % above."""

# One row that lies in otherwise empty cells, in different cells of different tables.
WITHOUT = [np.array([0, 5]), np.array([4, 0])]
WITH = [np.array([1, 5]), np.array([4, 1])]
REPLACED = [np.array([0, 6]), np.array([5, 0])]


def _release(tables: Sequence[np.ndarray], mechanisms: Sequence[AdditiveNoise]) -> Draw:
    def draw(trials: int) -> np.ndarray:
        repeated = [np.tile(table.astype(np.int64), (trials, 1)) for table in tables]
        return np.concatenate([add_noise(t, m) for t, m in zip(repeated, mechanisms, strict=True)], axis=1)

    return draw


@pytest.mark.parametrize(
    ("hits", "trials", "doubt"),
    [
        (0, 100, 0.01),
        (5, 100, 0.005),
        (50, 100, 1e-6),
        (100, 100, 0.01),
        (300, 10_000, 1e-4),
        (40_000, 100_000, 1e-6),
    ],
)
def test_the_bounds_are_those_of_clopper_and_pearson(hits: int, trials: int, doubt: float) -> None:
    low = stats.beta.ppf(doubt, hits, trials - hits + 1) if hits else 0.0
    high = stats.beta.ppf(1 - doubt, hits + 1, trials - hits) if hits < trials else 1.0
    assert bound_share_below(hits, trials, doubt) == pytest.approx(low, rel=1e-9)
    assert bound_share_above(hits, trials, doubt) == pytest.approx(high, rel=1e-9)


def _geometric(scale: float, shift: Sequence[int], rng: np.random.Generator) -> Draw:
    q = math.exp(-1 / scale)
    return lambda n: (
        np.array(shift) + rng.geometric(1 - q, (n, len(shift))) - rng.geometric(1 - q, (n, len(shift)))
    )


@pytest.mark.parametrize(
    ("claim", "truth", "trials"), [(0.5, 0.75, 2200), (1.0, 1.25, 3000), (1.0, 2.0, 400), (2.0, 2.5, 2000)]
)
def test_the_audit_has_the_power_that_was_measured_for_it(claim: float, truth: float, trials: int) -> None:
    """With as many held-out runs as should catch 19 of 20 at α = .01, at least 15 of 20 are caught."""
    rng = np.random.default_rng(17)
    caught = 0
    for _ in range(20):
        sides = _geometric(1 / truth, [1], rng), _geometric(1 / truth, [0], rng)
        caught += empirical_epsilon(*sides, trials=trials, confidence=0.98).contradicts(claim)
    assert caught >= 15


def test_the_audit_rarely_accuses_the_innocent() -> None:
    rng = np.random.default_rng(18)
    accused = 0
    for _ in range(200):
        sides = _geometric(1.0, [1, 0], rng), _geometric(1.0, [0, 0], rng)
        accused += empirical_epsilon(*sides, trials=1000, confidence=0.9).contradicts(1.0)
    assert accused <= 30  # 20 expected at worst


@pytest.mark.parametrize("trials", [SOME, MANY])
@pytest.mark.parametrize("unit", ROW_UNITS)
def test_laplace_tables_keep_their_claim(unit: Unit, trials: int) -> None:
    mechanisms = calibrate_counts([("a",), ("b",)], PureDP(1), unit=unit, shares=["0.4", "0.6"])
    other = WITHOUT if unit == Unit.ADD_REMOVE else REPLACED
    sides = _release(WITH, mechanisms), _release(other, mechanisms)
    # It finds about 0.8 and 0.5, give or take 0.05.
    check_claim(lambda: empirical_epsilon(*sides, trials=trials, confidence=SURE), 1.0, least=0.2)


@pytest.mark.parametrize("trials", [8000, MANY])
@pytest.mark.parametrize("unit", ROW_UNITS)
def test_gaussian_tables_keep_their_claim(unit: Unit, trials: int) -> None:
    spend = ZCDP("1/4")
    mechanisms = calibrate_counts([("a",), ("b",)], spend, unit=unit, noise=Noise.GAUSSIAN)
    other = WITHOUT if unit == Unit.ADD_REMOVE else REPLACED
    claim = float(imply_approx(spend, "1e-2").epsilon)
    sides = _release(WITH, mechanisms), _release(other, mechanisms)
    # It finds about 0.7 and 0.35, give or take 0.1, of 2.4.
    check_claim(
        lambda: empirical_epsilon(*sides, trials=trials, delta=1e-2, confidence=SURE), claim, least=0.1
    )


@pytest.mark.parametrize("trials", [SOME, MANY])
@pytest.mark.parametrize("unit", ROW_UNITS)
def test_bounded_sums_keep_their_claim(unit: Unit, trials: int) -> None:
    columns = [BoundedColumn("age", 0, 10), BoundedColumn("cost", -3, 4, "1/2")]
    mechanisms = Sums.price(columns, PureDP(1), unit=unit).mechanisms
    rest = [(3.0, 0.5)]
    target = (10.0, 4.0)
    neighbour = [] if unit == Unit.ADD_REMOVE else [(-99.0, -99.0)]
    sides = []
    for rows in ([*rest, target], [*rest, *neighbour]):
        sums = [
            column.count_steps([row[i] for row in rows]).sum(keepdims=True)
            for i, column in enumerate(columns)
        ]
        sides.append(_release(sums, mechanisms))
    # It finds about 0.7, give or take 0.1.
    check_claim(lambda: empirical_epsilon(*sides, trials=trials, confidence=SURE), 1.0, least=0.2)


@pytest.mark.parametrize("trials", [3000, pytest.param(16_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("selection", list(Selection))
def test_choices_keep_their_claim(selection: Selection, trials: int) -> None:
    mechanism = calibrate_choice("s", Fraction(1), PureDP(1), unit=Unit.REPLACE_ONE, selection=selection)
    before, after = np.array([5.0, 4.0, 0.0]), np.array([4.0, 5.0, 1.0])

    def repeat(scores: np.ndarray) -> Draw:
        return lambda trials: np.array([choose(scores, mechanism) for _ in range(trials)])

    sides = repeat(before), repeat(after)
    # It finds about 0.55 and, of the exponential mechanism, 0.25, give or take 0.07.
    check_claim(lambda: empirical_epsilon(*sides, trials=trials, confidence=SURE), 1.0, least=0.05)


@pytest.mark.parametrize("trials", [SOME, MANY])
@pytest.mark.parametrize("unit", ROW_UNITS)
def test_samples_keep_their_amplified_claim(unit: Unit, trials: int) -> None:
    """Noise for ε = 2.1 on a sample of a fifth of the rows, sold as ε = 0.9."""
    sampling = (
        Subsampling(Fraction(1, 5), Unit.ADD_REMOVE) if unit == Unit.ADD_REMOVE else Subsampling.fixed(2, 10)
    )
    claim = PureDP("0.9")
    (mechanism,) = calibrate_counts([("a",)], sampling.afford(claim), unit=unit)
    assert Fraction(mechanism.scale) < Fraction(len(mechanism.moves), 2)  # narrower than without a sample
    without = np.zeros(9, dtype=np.int64)
    neighbour = without if unit == Unit.ADD_REMOVE else np.array([*without, 0])

    def release(rows: np.ndarray) -> Draw:
        def draw(trials: int) -> np.ndarray:
            if unit == Unit.ADD_REMOVE:
                taken = sampling.draw(trials * len(rows)).reshape(trials, len(rows))
            else:
                taken = np.array([sampling.draw(len(rows)) for _ in range(trials)])
            counts = np.stack([(taken & (rows == level)).sum(axis=1) for level in (0, 1)], axis=1)
            return add_noise(counts, mechanism)

        return draw

    sides = release(np.array([*without, 1])), release(neighbour)
    # It finds about 0.55, give or take 0.03.
    check_claim(lambda: empirical_epsilon(*sides, trials=trials, confidence=SURE), 0.9, least=0.1)


def test_audits_that_make_no_sense_are_refused() -> None:
    def draw(trials: int) -> np.ndarray:
        return np.zeros(trials)

    for arguments in ({"trials": 3}, {"trials": 100, "confidence": 1.0}, {"trials": 100, "delta": -0.1}):
        with pytest.raises(MechanismError):
            empirical_epsilon(draw, draw, **arguments)  # type: ignore[arg-type]
    with pytest.raises(MechanismError, match="shape"):
        empirical_epsilon(draw, lambda trials: np.zeros(3), trials=100)
    assert empirical_epsilon(draw, draw, trials=100).epsilon == 0.0
