"""The laws of noise: probabilities sum to one, tails keep their digits, quantiles and bounds are tight."""

from __future__ import annotations

import json
import math
from decimal import Decimal, getcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.papers.estimators.sums import SumMeasurement
from discreet.values import measurement as law_module
from discreet.values.budget import PureDP
from discreet.values.errors import FormatError, MechanismError, TableError
from discreet.values.measurement import (
    DiscreteGaussian,
    DiscreteLaplace,
    Exact,
    Law,
    Measurement,
    law_from_json,
)
from discreet.values.table import Table
from discreet.values.unit import Unit

WIDTHS = st.fractions(min_value=Fraction(1, 50), max_value=60, max_denominator=1000)
LAWS = st.one_of(WIDTHS.map(DiscreteLaplace), WIDTHS.map(lambda width: DiscreteGaussian(width**2)))
FIXED: list[Law] = [
    DiscreteLaplace("1/5"),
    DiscreteLaplace(1),
    DiscreteLaplace("20"),
    DiscreteGaussian("1/10"),
    DiscreteGaussian("1/2"),
    DiscreteGaussian(3),
    DiscreteGaussian("1000/3"),
]


@given(LAWS)
@settings(deadline=None, max_examples=60)
def test_probabilities_sum_to_one_and_accumulate_to_the_cdf(law: Law) -> None:
    k = np.arange(-3000, 3001)
    pmf = law.pmf(k)
    assert pmf.sum() == pytest.approx(1.0, abs=1e-12)
    assert np.allclose(np.cumsum(pmf), law.cdf(k), atol=1e-12)
    assert np.allclose(law.cdf(k) + law.survival(k), 1.0, atol=1e-14)
    seen = pmf > 1e-300
    assert np.allclose(np.log(pmf[seen]), law.log_pmf(k[seen]), rtol=1e-12)
    assert law.variance == pytest.approx(float((pmf * k.astype(float) ** 2).sum()), rel=1e-10)


def _exact_survival(law: Law, k: int) -> Decimal:
    """P(X > k) to 50 digits, by summing the definition."""
    getcontext().prec = 60
    if isinstance(law, DiscreteLaplace):
        rate = Decimal(law.scale.denominator) / Decimal(law.scale.numerator)
        weigh = [(-abs(j) * rate).exp() for j in range(k + 1, k + 1 + int(150 / rate) + 5)]
        total = (1 + (-rate).exp()) / (1 - (-rate).exp())
        return sum(weigh, Decimal(0)) / total
    assert isinstance(law, DiscreteGaussian)
    s = Decimal(law.sigma2.numerator) / Decimal(law.sigma2.denominator)
    reach = int(60 * math.sqrt(law.sigma2)) + 60
    weights = [(-Decimal(j) * j / (2 * s)).exp() for j in range(reach)]
    return sum(weights[k + 1 :], Decimal(0)) / (2 * sum(weights, Decimal(0)) - 1)


@pytest.mark.parametrize("law", FIXED, ids=str)
def test_tails_keep_their_digits_far_out(law: Law) -> None:
    deviation = math.sqrt(law.variance) + 1
    for k in (0, int(deviation), int(5 * deviation), int(20 * deviation)):
        exact = _exact_survival(law, k)
        if exact < Decimal("1e-290"):
            continue
        found = float(law.survival(k))
        assert abs(Decimal(found) / exact - 1) < Decimal("1e-12"), (k, found, exact)
        assert float(law.cdf(-k - 1)) == found


def test_wide_gaussians_agree_with_the_summed_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    law = DiscreteGaussian(9000**2)
    k = np.array([0, 1, 5, 9000, 45_000, 90_000, 300_000])
    summed = law.survival(k)
    monkeypatch.setattr(law_module, "_TABULATED", 1.0)
    assert np.allclose(law.survival(k), summed, rtol=1e-11, atol=0)


@given(LAWS, st.lists(st.floats(1e-12, 1 - 1e-12), min_size=1, max_size=20))
@settings(deadline=None, max_examples=60)
def test_quantiles_are_the_smallest_that_suffice(law: Law, chances: list[float]) -> None:
    p = np.array(chances)
    k = law.quantile(p)
    assert k.dtype == np.int64
    slack = 4e-16
    assert np.all(law.cdf(k) >= p - slack)
    assert np.all(law.cdf(k - 1) < p + slack)


@given(LAWS, st.floats(0.01, 1 - 1e-9), st.integers(1, 10**6))
@settings(deadline=None, max_examples=80)
def test_bounds_cover_all_cells_and_no_smaller_one_does(law: Law, coverage: float, cells: int) -> None:
    h = law.bound(coverage, cells)

    def log_cover(bound: int) -> float:
        return cells * math.log1p(-min(2 * float(law.survival(bound)), 1 - 1e-300))

    assert log_cover(h) >= math.log(coverage) * (1 + 1e-9)
    if h > 0:
        assert log_cover(h - 1) < math.log(coverage) * (1 - 1e-9)


def test_a_known_bound() -> None:
    law = DiscreteLaplace(1)
    q = math.exp(-1)
    misses = [2 * q ** (h + 1) / (1 + q) for h in range(10)]
    assert law.bound(0.95) == next(h for h, miss in enumerate(misses) if miss <= 0.05) == 3


@given(LAWS)
@settings(deadline=None, max_examples=40)
def test_laws_survive_json(law: Law) -> None:
    assert law_from_json(json.loads(json.dumps(law.to_json()))) == law


def test_no_noise_is_a_law_too() -> None:
    law = Exact()
    assert law.pmf([-1, 0, 1]).tolist() == [0, 1, 0]
    assert law.cdf([-1, 0, 1]).tolist() == [0, 1, 1]
    assert law.survival([-1, 0, 1]).tolist() == [1, 0, 0]
    assert law.quantile([0.1, 0.9]).tolist() == [0, 0]
    assert (law.variance, law.bound(0.999, 10**6)) == (0.0, 0)
    assert law_from_json(law.to_json()) == law


@pytest.mark.parametrize("width", [0, -1, "nan", math.inf, 2**41, None])
def test_widths_that_are_none_are_refused(width: object) -> None:
    with pytest.raises(MechanismError):
        DiscreteLaplace(width)  # type: ignore[arg-type]
    with pytest.raises(MechanismError):
        DiscreteGaussian(width if not isinstance(width, int) else width * abs(width))  # type: ignore[arg-type]


def test_arguments_that_make_no_sense_are_refused() -> None:
    law = DiscreteLaplace(1)
    with pytest.raises(MechanismError, match="whole numbers"):
        law.pmf(0.5)
    for p in (0.0, 1.0, math.nan):
        with pytest.raises(MechanismError):
            law.quantile(p)
    for coverage in (0.0, 1.0, math.nan):
        with pytest.raises(MechanismError):
            law.bound(coverage)


@pytest.mark.parametrize(
    "document",
    [
        *(None, {}, ["exact"], {"law": "discrete-laplace"}, {"law": "laplace", "scale": "1"}),
        *({"law": "discrete-laplace", "scale": "-1"}, {"law": "discrete-laplace", "scale": 1.0}),
        {"law": "exact", "scale": "1"},
    ],
)
def test_json_that_is_no_law_is_refused(document: object) -> None:
    with pytest.raises(FormatError):
        law_from_json(document)


def _measurement() -> Measurement:
    noisy = Table(("a", "b"), np.array([[3, -1, 0], [7, 2, -4]], dtype=np.int64))
    return Measurement(noisy, DiscreteLaplace("20/3"), Unit.ADD_REMOVE, PureDP("3/20"))


def test_measurements_survive_json() -> None:
    before = _measurement()
    after = Measurement.from_json(json.loads(json.dumps(before.to_json())))
    assert (after.axes, after.law, after.unit, after.cost) == (
        before.axes,
        before.law,
        before.unit,
        before.cost,
    )
    assert np.array_equal(after.noisy.values, before.noisy.values)
    total = SumMeasurement("age", -12, Fraction(1, 2), Fraction(54), Exact(), Unit.REPLACE_ONE, PureDP(1))
    assert SumMeasurement.from_json(json.loads(json.dumps(total.to_json()))) == total
    assert total.total(10) == 534.0


@pytest.mark.parametrize(
    "change",
    [
        {"axes": ["a", "a"]},
        {"axes": "ab"},
        {"shape": [2, 2]},
        {"shape": [2, 0]},
        {"shape": [10**9, 10**9]},
        {"counts": [1.5] * 6},
        {"counts": [2**70] * 6},
        {"counts": None},
        {"law": {"law": "none"}},
        {"unit": "bounded"},
        {"more": 1},
    ],
)
def test_malformed_measurements_are_refused(change: dict[str, object]) -> None:
    with pytest.raises((FormatError, MechanismError, ValueError)) as refused:
        Measurement.from_json({**_measurement().to_json(), **change})
    assert type(refused.value).__module__ == "discreet.values.errors"


def test_measured_tables_hold_whole_counts() -> None:
    with pytest.raises(TableError, match="int64"):
        Measurement(Table(("a",), np.array([0.5])), Exact(), Unit.ADD_REMOVE, PureDP(1))
