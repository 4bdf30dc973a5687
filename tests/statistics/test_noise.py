"""What is drawn has the law that it states, and the test would notice if it had another."""

from __future__ import annotations

import itertools
import math
import os
import random
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from discreet.core import noise as noise_module
from discreet.core.mechanism import AdditiveNoise, Noise, Selection, calibrate_choice, calibrate_counts
from discreet.core.noise import add_noise, choose
from discreet.judge.noise_fit import _join_cells, fit_law
from discreet.papers.parameters.subsample import Subsampling, draw_below, draw_subset
from discreet.values.budget import ZCDP, PureDP
from discreet.values.measurement import DiscreteGaussian, DiscreteLaplace
from discreet.values.unit import Unit

ALPHA = 1e-6


def _mechanism(noise: Noise, amount: str) -> AdditiveNoise:
    spend = PureDP(amount) if noise is Noise.LAPLACE else ZCDP(amount)
    return calibrate_counts([("a",)], spend, unit=Unit.ADD_REMOVE, noise=noise)[0]


def _widen(mechanism: AdditiveNoise, factor: str) -> DiscreteLaplace | DiscreteGaussian:
    law, exact = mechanism.law, Fraction(factor)
    return (
        DiscreteLaplace(law.scale * exact)
        if isinstance(law, DiscreteLaplace)
        else DiscreteGaussian(law.sigma2 * exact**2)
    )


def _check(mechanism: AdditiveNoise, draws: int, wrong: tuple[str, ...]) -> None:
    true = np.full(draws, 1234, dtype=np.int64)
    drawn = add_noise(true, mechanism) - true
    assert fit_law(drawn, mechanism.law) > ALPHA
    for factor in wrong:
        assert fit_law(drawn, _widen(mechanism, factor)) < ALPHA, factor


@pytest.mark.parametrize(
    ("noise", "amount", "draws"),
    [
        (Noise.LAPLACE, "0.3", 100_000),
        (Noise.LAPLACE, "2", 60_000),
        (Noise.GAUSSIAN, "0.02", 60_000),
        (Noise.GAUSSIAN, "1/2", 40_000),
    ],
)
def test_noise_fits_its_law_and_not_one_five_percent_off(noise: Noise, amount: str, draws: int) -> None:
    _check(_mechanism(noise, amount), draws, ("0.95", "1.05"))


@pytest.mark.slow
@pytest.mark.parametrize(("noise", "amount"), [(Noise.LAPLACE, "1/20"), (Noise.GAUSSIAN, "1/200")])
def test_a_million_draws_fit_and_two_percent_off_is_noticed(noise: Noise, amount: str) -> None:
    _check(_mechanism(noise, amount), 1_000_000, ("0.98", "1.02"))


def test_the_p_value_is_that_of_chi_square() -> None:
    """Against SciPy's own, on draws of a law that is a little off, so that the p-values are small and large."""
    rng = np.random.default_rng(11)
    law = DiscreteLaplace(5)
    for scale in (5.0, 5.05, 5.2):
        q = math.exp(-1 / scale)
        draws = rng.geometric(1 - q, 20_000) - rng.geometric(1 - q, 20_000)
        low, high = int(law.quantile(20 / draws.size)), int(law.quantile(1 - 20 / draws.size))
        expected = draws.size * np.array(
            [law.cdf(low), *law.pmf(np.arange(low + 1, high)), law.survival(high - 1)]
        )
        observed = np.bincount(np.clip(draws, low, high) - low, minlength=expected.size)
        joined = [[0.0, 0]]
        for hoped, seen in zip(expected, observed, strict=True):
            if joined[-1][0] >= 20 * (1 - 1e-9):
                joined.append([0.0, 0])
            joined[-1] = [joined[-1][0] + hoped, joined[-1][1] + seen]
        if joined[-1][0] < 20 * (1 - 1e-9):
            joined[-2:] = [[sum(pair) for pair in zip(*joined[-2:], strict=True)]]
        hoped, seen = np.array(joined).T
        outside = stats.chisquare(seen, hoped * (seen.sum() / hoped.sum())).pvalue
        assert fit_law(draws, law) == pytest.approx(outside, rel=0.1)


@pytest.mark.parametrize("wide", [0.3, 1.0, 30.0, 400.0])
def test_every_cell_of_a_histogram_expects_twenty_draws(wide: float) -> None:
    """Of 1,000 draws at scale 100 every number is rare; in cells of one, 25 of 20,000 tables had p < 1e-4."""
    rng = np.random.default_rng(12)
    for _ in range(50):
        expected = rng.exponential(20.0 / wide, rng.integers(2, 3000))
        expected[[0, -1]] = 20.0  # as the tails do
        starts = _join_cells(expected)
        joined = np.add.reduceat(expected, starts)
        assert starts[0] == 0 and joined.min() > 20 - 1e-6
        assert (
            len(starts) >= expected.sum() / (20 + expected.max()) - 1
        )  # and no more are joined than need be


def _permute_and_flip(scores: np.ndarray, scale: float) -> np.ndarray:
    """The exact probabilities, over all orders in which the coins can be flipped."""
    heads = np.exp((scores - scores.max()) / scale)
    chances = np.zeros(len(scores))
    orders = list(itertools.permutations(range(len(scores))))
    for order in orders:
        left = 1.0
        for i in order:
            chances[i] += left * heads[i] / len(orders)
            left *= 1 - heads[i]
    return chances


@pytest.mark.parametrize("selection", list(Selection))
def test_choices_have_the_probabilities_of_their_mechanism(selection: Selection) -> None:
    scores = np.array([0.0, 1.0, 1.5, 3.0])
    mechanism = calibrate_choice("s", Fraction(1), PureDP(1), unit=Unit.ADD_REMOVE, selection=selection)
    softmax = np.exp(scores / mechanism.scale) / np.exp(scores / mechanism.scale).sum()
    flipped = _permute_and_flip(scores, mechanism.scale)
    exact, other = (flipped, softmax) if selection is Selection.PERMUTE_AND_FLIP else (softmax, flipped)
    drawn = np.bincount([choose(scores, mechanism) for _ in range(4000)], minlength=4)
    assert stats.chisquare(drawn, 4000 * exact).pvalue > ALPHA
    assert stats.chisquare(drawn, 4000 * other).pvalue < ALPHA


def test_permute_and_flip_is_never_worse_at_the_same_epsilon() -> None:
    rng = np.random.default_rng(3)
    for _ in range(50):
        scores = rng.exponential(3.0, 5)
        softmax = np.exp(scores / 2) / np.exp(scores / 2).sum()
        assert scores @ _permute_and_flip(scores, 2.0) >= scores @ softmax - 1e-12


@pytest.mark.parametrize("bound", [1, 2, 3, 7, 255, 256, 257, 1000, 2**40 + 1])
def test_uniform_integers_are_uniform(bound: int) -> None:
    drawn = draw_below(bound, 40_000)
    assert drawn.max() < bound
    if bound == 1:
        return
    cells = min(bound, 50)
    found = np.bincount((drawn.astype(object) * cells // bound).astype(int), minlength=cells)
    widths = np.array(
        [-(-(i + 1) * bound // cells) - -(-i * bound // cells) for i in range(cells)], dtype=float
    )
    assert stats.chisquare(found, 40_000 * widths / bound).pvalue > ALPHA


def test_coins_of_a_sample_fall_at_the_exact_rate() -> None:
    rate = Fraction(3, 17)
    taken = Subsampling(rate, Unit.ADD_REMOVE).draw(200_000)
    assert stats.binomtest(int(taken.sum()), 200_000, float(rate)).pvalue > ALPHA
    pairs = np.bincount(taken[:-1:2] * 2 + taken[1::2], minlength=4)
    p = float(rate)
    assert (
        stats.chisquare(pairs, 100_000 * np.array([(1 - p) ** 2, p * (1 - p), p * (1 - p), p * p])).pvalue
        > ALPHA
    )


def test_every_sample_of_a_fixed_size_is_as_likely() -> None:
    subsets = {chosen: i for i, chosen in enumerate(itertools.combinations(range(5), 2))}
    drawn = [subsets[tuple(np.flatnonzero(draw_subset(2, 5)))] for _ in range(10_000)]
    assert stats.chisquare(np.bincount(drawn, minlength=10)).pvalue > ALPHA
    sampling = Subsampling.fixed(2, 5)
    assert {int(sampling.draw(5).sum()) for _ in range(50)} == {2}
    assert int(sampling.draw(500).sum()) == 200


def test_no_seed_reaches_the_noise() -> None:
    mechanism = _mechanism(Noise.LAPLACE, "1/10")
    true = np.zeros(60, dtype=np.int64)
    seen = set()
    for _ in range(4):
        random.seed(0)
        np.random.seed(0)  # noqa: NPY002
        seen.add(tuple(add_noise(true, mechanism).tolist()))
    assert len(seen) == 4


def test_forked_processes_draw_different_noise() -> None:
    mechanism = _mechanism(Noise.LAPLACE, "1/10")
    true = np.zeros(60, dtype=np.int64)
    add_noise(true, mechanism)  # the sampler is open before the fork
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, add_noise(true, mechanism).tobytes())
        os._exit(0)
    parent = add_noise(true, mechanism)
    os.close(write)
    os.waitpid(child, 0)
    assert not np.array_equal(np.frombuffer(os.read(read, 10_000), dtype=np.int64), parent)


def test_large_tables_are_drawn_in_chunks_that_do_not_repeat(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise_module, "CHUNK", 64)
    mechanism = _mechanism(Noise.LAPLACE, "1/100")
    noisy = add_noise(np.arange(1000, dtype=np.int64).reshape(10, 100), mechanism).ravel() - np.arange(1000)
    chunks = [tuple(noisy[start : start + 64].tolist()) for start in range(0, 960, 64)]
    assert len(set(chunks)) == 15
    assert fit_law(noisy, mechanism.law) > ALPHA
