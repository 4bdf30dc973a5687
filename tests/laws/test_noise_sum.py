"""The law of a sum of noises: equal to the convolution, far out as near 0; and what everybody asks of a law."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from discreet.values.errors import FormatError, MechanismError
from discreet.values.measurement import DiscreteGaussian, DiscreteLaplace, Exact, Law, law_from_json
from discreet.values.noise_sum import NoiseSum, add_laws

SUMS: dict[str, list[Law]] = {
    "three Laplace": [DiscreteLaplace(2)] * 3,
    "mixed": [DiscreteLaplace(3), DiscreteLaplace("1/2"), DiscreteGaussian(9)],
    "twenty Gaussian": [DiscreteGaussian(4)] * 20,
    "narrow": [DiscreteGaussian("0.3")] * 3,
    "very narrow": [DiscreteLaplace("1/20")] * 2,
}


def convolve(laws: list[Law], reach: int) -> np.ndarray:
    """The chances of 0, 1, …, from sums of products: all terms are positive, so no digit is lost."""
    k = np.arange(-reach, reach + 1)
    found = laws[0].pmf(k)
    for law in laws[1:]:
        found = np.convolve(found, law.pmf(k))
    return found[len(found) // 2 :]


@pytest.mark.parametrize("name", SUMS)
def test_chances_are_those_of_the_convolution(name: str) -> None:
    law = NoiseSum(SUMS[name])
    direct = convolve(SUMS[name], 600 if "Gaussian" not in name else 90)
    known = np.flatnonzero(direct > 1e-40)
    assert law.log_pmf(known) == pytest.approx(np.log(direct[known]), abs=1e-9)
    tails = np.cumsum(direct[::-1])[::-1]
    assert law.survival(known[:-1]) == pytest.approx(tails[known[1:]], rel=1e-8)
    assert float(law.cdf(0) + law.survival(0)) == pytest.approx(1.0, abs=1e-12)
    squares = 2.0 * float((np.arange(len(direct)) ** 2 * direct).sum())
    assert law.variance == pytest.approx(squares, rel=1e-9)


@pytest.mark.parametrize("name", SUMS)
def test_moments_quantiles_and_bounds_agree(name: str) -> None:
    law = NoiseSum(SUMS[name])
    for p in (0.001, 0.2, 0.5, 0.9, 0.999):
        k = int(law.quantile(p))
        assert float(law.cdf(k)) >= p > float(law.cdf(k - 1))
    h = law.bound(0.95, 7)
    assert (1 - 2 * float(law.survival(h))) ** 7 >= 0.95
    assert h == 0 or (1 - 2 * float(law.survival(h - 1))) ** 7 < 0.95
    t = 0.3 * min(law.steepest, 2.0)
    reach = 6 + int(40 * law.variance**0.5)
    k = np.arange(-reach, reach + 1)
    assert math.log(float((law.pmf(k) * np.exp(t * k)).sum())) <= float(law.log_moment(np.array(t))) + 1e-9
    fourth = float((law.pmf(k) * k.astype(float) ** 4).sum()) - 3 * law.variance**2
    assert law.excess == pytest.approx(fourth, abs=0.3 * max(1.0, law.variance))


def test_wide_noise_is_tabulated_on_a_coarse_grid_and_rounded_up() -> None:
    """Sums of Laplace noises scale: the 97.5 % point of three of scale s is 4.968·s [by sums of gamma laws]."""
    narrow = NoiseSum([DiscreteLaplace(50)] * 3)
    exact = float(narrow.quantile(0.975)) / 50
    wide = NoiseSum([DiscreteLaplace(2**30)] * 3)
    found = float(wide.quantile(0.975)) / 2**30
    assert exact <= found * 1.001 and found == pytest.approx(exact, rel=0.02)
    assert wide.bound(0.95) >= 2**30 * exact * 0.999


def test_documents_keep_the_parts_and_refuse_others() -> None:
    law = NoiseSum(SUMS["mixed"])
    assert law_from_json(law.to_json()) == law
    assert add_laws([Exact(), DiscreteLaplace(2)]) == DiscreteLaplace(2) and add_laws([Exact()]) == Exact()
    assert add_laws([law, DiscreteLaplace(2)]) == NoiseSum([*SUMS["mixed"], DiscreteLaplace(2)])
    single = DiscreteLaplace(2).to_json()
    for broken in ([], [single], [single, law.to_json()], [single, Exact().to_json()], {}, [single] * 1001):
        with pytest.raises(FormatError):
            law_from_json({"law": "sum", "of": broken})
    with pytest.raises(FormatError):
        law_from_json({"law": "sum", "of": [single, single], "more": "x"})
    with pytest.raises(MechanismError, match="2 to 1,000"):
        NoiseSum([DiscreteLaplace(1)])


def test_the_order_of_the_parts_does_not_matter_for_chances() -> None:
    k = np.arange(-30, 31)
    first, *others = (NoiseSum(order).pmf(k) for order in itertools.permutations(SUMS["mixed"]))
    assert all(np.array_equal(first, other) for other in others)
