"""What is little but noise is given up, unless the marginals of the whole network say that levels are uneven."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.compute.smoothing import doubt_margin, expect_skill, measure_unevenness, temper


def test_a_marginal_gives_up_what_noise_explains_of_it() -> None:
    rng = np.random.default_rng(5)
    even, uneven = np.full(40, 1 / 40), np.arange(40) / np.arange(40).sum()
    for true, deviation, low, high in (
        (even, 0.1, 0.6, 1.0),
        (uneven, 0.001, 0.0, 0.0),
        (uneven, 0.015, 0.3, 0.9),
    ):
        found = true + rng.normal(0.0, deviation, (50, 40))
        given_up = np.array([doubt_margin(sums, deviation**2) for sums in found])
        assert low <= given_up.mean() <= high
        kept = given_up[:, None] / 40 + (1 - given_up[:, None]) * found
        errors = [float(((values - true) ** 2).sum()) for values in (kept, found)]
        assert errors[0] < errors[1] or high == 0.0
    sure = np.array([0.9, 0.05, 0.03, 0.01, 0.01])
    assert doubt_margin(sure, 0.01) == 0.0, "one level that is nearly sure is not noise"
    assert doubt_margin(np.full(5, 0.2), 0.01) == 0.0, "nothing to give up"


def draw_tables(share: float, nodes: int, variance: float, rng: np.random.Generator) -> list[np.ndarray]:
    """Noisy tables of two independent attributes each, all of one unevenness, the likeliest level anywhere."""
    tables = []
    for k in range(nodes):
        one, two = (
            share**0.5 * np.eye(levels)[rng.integers(levels)] + (1.0 - share**0.5) / levels
            for levels in (2 + k % 4, 3)
        )
        tables.append(np.outer(one, two) + rng.laplace(0.0, (variance / 2.0) ** 0.5, (one.size, two.size)))
    return tables


@pytest.mark.parametrize("share", [0.0, 0.3, 0.7, 1.0])
def test_unevenness_is_found_where_no_single_table_shows_it(share: float) -> None:
    """700 tables, each cell off by 0.5 of all rows: one says nothing, all together say how uneven they are."""
    rng = np.random.default_rng(3)
    found = [measure_unevenness(draw_tables(share, 700, 0.25, rng), [0.25] * 700) for _ in range(40)]
    assert np.mean(found) == pytest.approx(share, abs=0.15)


def test_a_table_that_is_all_noise_leaves_it_open() -> None:
    rng = np.random.default_rng(4)
    found = [measure_unevenness(draw_tables(0.0, 1, 1e4, rng), [1e4]) for _ in range(20)]
    assert np.allclose(found, 0.5, atol=0.05)
    assert measure_unevenness([np.ones(1)], [0.0]) == measure_unevenness([], []) == 0.5


def test_unevenness_without_noise_is_that_of_the_tables() -> None:
    sure, even = np.eye(4)[0].reshape(2, 2), np.full((4, 3), 1.0 / 12.0)
    assert measure_unevenness([sure] * 200, [0.0] * 200) > 0.98
    assert measure_unevenness([even] * 200, [0.0] * 200) < 0.02
    assert 0.2 < measure_unevenness([sure, even] * 100, [0.0] * 200) < 0.8


def test_unevenness_stays_between_its_ends_whatever_noise_does() -> None:
    rng = np.random.default_rng(8)
    for scale in (1e-12, 1.0, 1e12):
        found = [rng.normal(0.0, scale, shape) for shape in ((2,), (3, 2), (40, 1, 3))]
        assert 0.0 <= measure_unevenness(found, [scale**2] * 3) <= 1.0


def test_conditionals_of_uneven_networks_are_left_alone() -> None:
    cpt = np.array([[0.9, 0.1], [0.3, 0.7]])
    margin = np.array([0.6, 0.4])
    assert np.allclose(temper(cpt, margin, margin, 100.0, 0.8, 1.0, 1.0), cpt)
    assert np.allclose(temper(cpt, margin, margin, 100.0, 0.8, 0.0, 1.0), 0.5, atol=0.01)
    half = temper(cpt, margin, margin, 100.0, 0.8, 0.5, 1.0)
    assert np.allclose(half.sum(axis=-1), 1.0) and 0.5 < half[0, 0] < 0.9
    assert np.allclose(temper(cpt, margin, margin, 0.0, 0.0, 0.0, 1.0), cpt), (
        "nothing is given up without noise"
    )


def test_a_guess_without_skill_is_given_up_however_uneven_levels_are() -> None:
    cpt, margin = np.array([[0.9, 0.1], [0.3, 0.7]]), np.array([0.6, 0.4])
    firsts = [float(temper(cpt, margin, margin, 100.0, 0.8, 0.6, s)[0, 0]) for s in (1.0, 0.7, 0.4, 0.1, 0.0)]
    assert firsts == sorted(firsts, reverse=True) and firsts[0] > 0.85 and abs(firsts[-1] - 0.5) < 0.01
    assert np.isfinite(temper(cpt, margin, margin, 1e100, 0.8, 1.0, 0.0)).all()


def test_a_node_without_parents_gives_up_what_its_own_noise_hides() -> None:
    sure, far = np.array([1.0, 0.0, 0.0, 0.0, 0.0]), np.array([9.0, -2.0, -2.0, -2.0, -2.0])
    for noise, low, high in ((1e-4, 0.99, 1.0), (0.25, 0.2, 0.5), (9.0, 0.2, 0.21)):
        assert low <= temper(sure, sure, far, noise, 0.5, 0.2, 0.1)[0] <= high, (
            "noise as far off as these sums"
        )


@pytest.mark.parametrize("cells", [2, 10, 100])
@pytest.mark.parametrize("noise", [0.01, 0.25, 1.0, 4.0])
def test_the_skill_of_a_guess_is_about_that_of_the_largest_cell(cells: int, noise: float) -> None:
    rng = np.random.default_rng(6)
    shares = rng.normal(0.0, noise**0.5, (20_000, cells))
    shares[:, 0] += 1.0
    found = float((shares.argmax(axis=1) == 0).mean())
    assert expect_skill(noise, cells) == pytest.approx((found - 1 / cells) / (1 - 1 / cells), abs=0.1)


def test_where_noise_drowns_everything_a_uniform_guess_is_the_nearest_to_any_truth() -> None:
    """Why skill counts: the mean error of guesses that know nothing is no smaller than that of their mean."""
    rng = np.random.default_rng(9)
    for true in (np.eye(6)[0], np.array([0.5, 0.5, 0.0, 0.0, 0.0, 0.0]), np.full(6, 1 / 6)):
        guesses = rng.dirichlet(np.full(6, 0.2), 5_000)
        assert np.abs(guesses - true).sum(axis=1).mean() > np.abs(1 / 6 - true).sum() - 0.03
