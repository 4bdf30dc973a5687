"""How far one row moves what is measured, by brute force over all tiny tables; and that no cost is too low for it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.core import noise as noise_module
from discreet.core.mechanism import (
    AdditiveNoise,
    Noise,
    NoisyChoice,
    Selection,
    calibrate_choice,
    calibrate_counts,
    is_covered,
)
from discreet.core.noise import add_noise, choose
from discreet.papers.estimators.sums import BoundedColumn, Sums
from discreet.papers.parameters.subsample import Subsampling
from discreet.values.budget import ZCDP, Finite, PureDP
from discreet.values.errors import DataError, DiscreetError, MechanismError
from discreet.values.measurement import DiscreteGaussian, DiscreteLaplace
from discreet.values.unit import ROW_UNITS, Unit

Rows = tuple[tuple[int, ...], ...]
SIZES = (2, 3)
ROW_VALUES = list(itertools.product(*(range(size) for size in SIZES)))
UNITS = ROW_UNITS

SPENDS = st.one_of(
    st.fractions(Fraction(1, 10**6), 50).map(PureDP),
    st.fractions(Fraction(1, 10**6), 50).map(ZCDP),
    st.floats(1e-6, 50).map(PureDP),
)


def _neighbours(rows: Rows, values: Sequence[tuple[int, ...]], unit: Unit) -> Iterator[Rows]:
    if unit == Unit.ADD_REMOVE:
        yield from ((*rows, value) for value in values)
        yield from (rows[:i] + rows[i + 1 :] for i in range(len(rows)))
    else:
        for i in range(len(rows)):
            yield from ((*rows[:i], value, *rows[i + 1 :]) for value in values)


def _databases(values: Sequence[tuple[int, ...]], most: int) -> Iterator[Rows]:
    for size in range(most + 1):
        yield from itertools.combinations_with_replacement(values, size)


def _count(rows: Rows, axes: tuple[int, ...]) -> np.ndarray:
    table = np.zeros([SIZES[axis] for axis in axes], dtype=np.int64)
    for row in rows:
        table[tuple(row[axis] for axis in axes)] += 1
    return table


def _largest_moves(
    statistic: Callable[[Rows], np.ndarray], unit: Unit, most: int = 3
) -> set[tuple[int, ...]]:
    """Every way in which one row can move the cells, as sorted sizes."""
    found = set()
    for rows in _databases(ROW_VALUES, most):
        before = statistic(rows)
        for other in _neighbours(rows, ROW_VALUES, unit):
            moved = np.abs(statistic(other) - before).ravel()
            found.add(tuple(sorted(moved[moved > 0].tolist())))
    return found


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1)])
def test_one_row_moves_a_table_of_counts_as_stated(unit: Unit, axes: tuple[int, ...]) -> None:
    seen = _largest_moves(lambda rows: _count(rows, axes), unit)
    stated = unit.moves
    assert max(map(sum, seen)) == sum(stated) == (1 if unit == Unit.ADD_REMOVE else 2)
    assert max(sum(move * move for move in moves) for moves in seen) == sum(move * move for move in stated)


@pytest.mark.parametrize("unit", UNITS)
def test_one_row_moves_all_tables_of_a_request_together_within_the_sum(unit: Unit) -> None:
    sets = [(0,), (1,), (0, 1)]
    seen = _largest_moves(lambda rows: np.concatenate([_count(rows, axes).ravel() for axes in sets]), unit)
    mechanisms = calibrate_counts([("a",), ("b",), ("a", "b")], PureDP(1), unit=unit)
    assert max(map(sum, seen)) == sum(each.l1 for each in mechanisms)
    spent = sum(each.l1 / Fraction(each.scale) for each in mechanisms)
    assert Fraction(999, 1000) < spent <= 1


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize(
    "column",
    [
        BoundedColumn("x", 0, 3),
        BoundedColumn("x", -2, 1),
        BoundedColumn("x", "0.5", "2.75", "1/4"),
        BoundedColumn("x", 18, 21, "1/2", origin=20),
        BoundedColumn("x", "0", "1", "1/3"),
        BoundedColumn("x", "-1.1", "1.3", "0.5"),
    ],
    ids=lambda column: f"{column.lower}..{column.upper}/{column.granularity}",
)
def test_one_row_moves_a_bounded_sum_by_its_sensitivity_and_no_more(
    unit: Unit, column: BoundedColumn
) -> None:
    low, high = float(column.lower), float(column.upper)
    values = [-np.inf, low - 5, low, (low + high) / 2, *np.linspace(low, high, 23), high, high + 1e9, np.inf]
    steps = set(column.count_steps(values).tolist())
    worst = max(abs(step) for step in steps) if unit == Unit.ADD_REMOVE else max(steps) - min(steps)
    assert worst == column.sensitivity(unit)
    alone = [column.count_steps([value]).tolist() for value in values]
    assert column.count_steps(values).tolist() == [step for (step,) in alone]


def test_a_sum_approximates_the_clipped_column() -> None:
    column = BoundedColumn("age", 18, 90, "1/2", origin=54)
    assert column.sensitivity(Unit.ADD_REMOVE) == 72
    ages = np.array([20.2, 35.0, 89.9, 120.0, 3.0])
    recovered = float(column.granularity) * column.count_steps(ages).sum() + 54 * len(ages)
    assert recovered == pytest.approx(np.clip(ages, 18, 90).sum(), abs=0.25 * len(ages))


def test_columns_that_make_no_sense_are_refused() -> None:
    for arguments in [
        (3, 3),
        (5, 1),
        (0, 1, 0),
        (0, 1, -1),
        (0, "inf"),
        (0, 2**40),
        (0, "1/10", 1),
        ("nan", 1),
    ]:
        with pytest.raises(MechanismError):
            BoundedColumn("x", *arguments)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="missing"):
        BoundedColumn("x", 0, 1).count_steps([0.5, np.nan])


def _said(mechanism: AdditiveNoise | NoisyChoice) -> PureDP | ZCDP:
    """What OpenDP says of the very measurement that is drawn from."""
    if isinstance(mechanism, NoisyChoice):
        return noise_module._map_choice(
            noise_module._open_choice(mechanism.selection, mechanism.scale), mechanism
        )
    return noise_module._map_additive(
        noise_module._open_additive(mechanism.noise, mechanism.scale), mechanism
    )


def _agrees(mechanism: AdditiveNoise) -> bool:
    """OpenDP says that no more is lost; the ρ of Laplace noise is ours (test_accounting), and OpenDP's is its ε."""
    said = _said(mechanism)
    if isinstance(said, PureDP) and isinstance(mechanism.cost, ZCDP):
        return said.epsilon <= Fraction(mechanism.l1) / Fraction(mechanism.scale) * (1 + Fraction(1, 2**50))
    return is_covered(said, mechanism.cost)


@given(
    SPENDS,
    st.lists(st.floats(0.05, 20), min_size=1, max_size=6),
    st.sampled_from(UNITS),
    st.sampled_from(list(Noise)),
)
@settings(deadline=None, max_examples=120)
def test_costs_of_tables_are_at_least_what_opendp_says_and_hardly_more(
    spend: Finite, shares: list[float], unit: Unit, noise: Noise
) -> None:
    if noise is Noise.GAUSSIAN and isinstance(spend, PureDP):
        with pytest.raises(MechanismError, match="Gaussian noise cannot be paid for with"):
            calibrate_counts([("a",)] * len(shares), spend, unit=unit, noise=noise, shares=shares)
        return
    mechanisms = calibrate_counts([("a",)] * len(shares), spend, unit=unit, noise=noise, shares=shares)
    assert sum((each.cost for each in mechanisms), type(spend).zero()) == spend
    for each in mechanisms:
        assert _agrees(each)
        assert is_covered(each.loss, each.cost)
        narrower = Fraction(each.scale) * Fraction(9999, 10000)
        wasteful = type(each.loss)(each.loss.amounts[0] * (Fraction(each.scale) / narrower) ** 2)
        assert not is_covered(wasteful, each.cost)


@given(
    st.lists(st.integers(1, 10**4), min_size=1, max_size=4),
    SPENDS,
    st.sampled_from(UNITS),
    st.sampled_from(list(Noise)),
)
@settings(deadline=None, max_examples=60)
def test_costs_of_sums_are_at_least_what_opendp_says(
    widths: list[int], spend: Finite, unit: Unit, noise: Noise
) -> None:
    if noise is Noise.GAUSSIAN and isinstance(spend, PureDP):
        return
    columns = [BoundedColumn("x", 0, width) for width in widths]
    mechanisms = Sums.price(columns, spend, unit=unit, noise=noise).mechanisms
    for each, width in zip(mechanisms, widths, strict=True):
        assert each.moves == (width,)
        assert _agrees(each)


@given(SPENDS, st.fractions(Fraction(1, 10**6), 10), st.sampled_from(list(Selection)))
@settings(deadline=None, max_examples=120)
def test_costs_of_choices_are_at_least_what_opendp_says(
    spend: Finite, sensitivity: Fraction, selection: Selection
) -> None:
    mechanism = calibrate_choice("s", sensitivity, spend, unit=Unit.REPLACE_ONE, selection=selection)
    assert is_covered(_said(mechanism), mechanism.cost)
    epsilon = 2 * sensitivity / Fraction(mechanism.scale)
    if isinstance(spend, PureDP):
        assert spend.epsilon * Fraction(999999, 10**6) < epsilon <= spend.epsilon
    elif isinstance(spend, ZCDP) and selection is Selection.EXPONENTIAL:
        assert spend.rho * Fraction(999999, 10**6) < epsilon**2 / 8 <= spend.rho


def test_known_scales() -> None:
    (one,) = calibrate_counts([("a",)], PureDP(1), unit=Unit.ADD_REMOVE)
    assert one.law == DiscreteLaplace(1)
    first, second = calibrate_counts([("a",), ("b",)], PureDP(1), unit=Unit.REPLACE_ONE)
    assert first.law == second.law == DiscreteLaplace(4)
    (gaussian,) = calibrate_counts([("a",)], ZCDP("1/8"), unit=Unit.ADD_REMOVE, noise=Noise.GAUSSIAN)
    assert isinstance(gaussian.law, DiscreteGaussian)
    assert 4 <= gaussian.law.sigma2 < 4 + Fraction(1, 10**9)
    assert calibrate_counts([("a",)], PureDP(1), unit="add-remove")[0] == one  # type: ignore[arg-type]


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan"), float("inf"), 2.0**41])
def test_scales_that_are_none_are_refused(scale: float) -> None:
    with pytest.raises(DiscreetError):
        AdditiveNoise("counts", Unit.ADD_REMOVE, (1,), Noise.LAPLACE, scale, PureDP(1))
    with pytest.raises(DiscreetError):
        NoisyChoice("score", Unit.ADD_REMOVE, Fraction(1), Selection.EXPONENTIAL, scale, PureDP(1))


def test_a_specification_that_undercharges_cannot_be_made() -> None:
    with pytest.raises(MechanismError, match="more than its cost"):
        AdditiveNoise("counts", Unit.REPLACE_ONE, (1, 1), Noise.LAPLACE, 1.0, PureDP(1))
    with pytest.raises(MechanismError, match="more than its cost"):
        AdditiveNoise("counts", Unit.ADD_REMOVE, (1,), Noise.GAUSSIAN, 1.0, ZCDP("0.49"))
    with pytest.raises(MechanismError, match="more than its cost"):
        NoisyChoice("score", Unit.ADD_REMOVE, Fraction(1), Selection.PERMUTE_AND_FLIP, 1.99, PureDP(1))


def test_requests_that_make_no_sense_are_refused() -> None:
    with pytest.raises(MechanismError, match="empty"):
        calibrate_counts([], PureDP(1), unit=Unit.ADD_REMOVE)
    with pytest.raises(MechanismError, match="shares"):
        calibrate_counts([("a",)], PureDP(1), unit=Unit.ADD_REMOVE, shares=[1, 2])
    with pytest.raises(MechanismError, match="laplace or gaussian"):
        calibrate_counts([("a",)], PureDP(1), unit=Unit.ADD_REMOVE, noise="uniform")  # type: ignore[arg-type]
    with pytest.raises(MechanismError, match="2\\^40"):
        calibrate_counts([("a",)], PureDP("1e-20"), unit=Unit.ADD_REMOVE)


def test_noise_goes_on_whole_counts_only() -> None:
    (mechanism,) = calibrate_counts([("a",)], PureDP(1), unit=Unit.ADD_REMOVE)
    for wrong in (np.array([1.0]), np.array([np.nan]), np.array([True]), np.array(["1"])):
        with pytest.raises(MechanismError, match="whole counts"):
            add_noise(wrong, mechanism)
    # A refusal after the debit would tell that a count is above the limit; both sides of it look alike.
    for far in (2**61, 2**62, -(2**62)):
        assert abs(abs(int(add_noise(np.array([far]), mechanism)[0])) - 2**61) < 2**20
    noisy = add_noise(np.arange(6, dtype=np.uint8).reshape(2, 3), mechanism)
    assert noisy.shape == (2, 3)
    assert noisy.dtype == np.int64
    assert add_noise(np.zeros((0, 2), dtype=np.int64), mechanism).shape == (0, 2)


def test_choices_take_finite_scores_only() -> None:
    mechanism = calibrate_choice("s", Fraction(1), PureDP(1), unit=Unit.REPLACE_ONE)
    for wrong in ([], [np.nan, 1.0], [np.inf, 1.0], [[1.0]]):
        with pytest.raises(MechanismError):
            choose(np.array(wrong), mechanism)
    assert choose(np.array([3.0]), mechanism) == 0
    assert choose(np.array([0.0, 1e6]), mechanism) == 1


@given(
    st.fractions(Fraction(1, 10**6), 100),
    st.fractions(Fraction(1, 1000), Fraction(999, 1000), max_denominator=1000),
    st.sampled_from(UNITS),
)
@settings(deadline=None, max_examples=100)
def test_what_a_sample_may_spend_costs_no_more_than_the_spend(
    epsilon: Fraction, rate: Fraction, unit: Unit
) -> None:
    sampling, spend = Subsampling(rate, unit), PureDP(epsilon)
    inner = sampling.afford(spend)
    assert inner >= spend
    assert sampling.amplify(inner) <= spend
    assert sampling.amplify(inner).epsilon > epsilon * Fraction(999999, 10**6)


@pytest.mark.parametrize("rate", [Fraction(0), Fraction(1), Fraction(-1, 2), Fraction(1, 2**64)])
def test_rates_that_are_none_are_refused(rate: Fraction) -> None:
    with pytest.raises(MechanismError):
        Subsampling(rate, Unit.ADD_REMOVE)


def test_samples_of_a_fixed_size_have_a_whole_number_of_rows() -> None:
    with pytest.raises(MechanismError, match="whole number"):
        Subsampling(Fraction(1, 3), Unit.REPLACE_ONE).draw(10)
    for size in (0, 10, 11):
        with pytest.raises(MechanismError, match="must have 1 to 9 of them"):
            Subsampling.fixed(size, 10)
