"""Noisy tables shrunk by their noise: the halves are an orthogonal basis, what stands out stays, what is noise goes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from discreet.compute.consistency import settle, weigh_by_precision
from discreet.compute.smoothing import (
    STANDS_OUT,
    _shrink_halves,
    count_ordered,
    estimate_tables,
    score_levels,
    shrink_cells,
    shrink_levels,
)
from discreet.values.schema import Attribute, Schema
from discreet.values.table import Table


def haar(length: int) -> np.ndarray:
    """The orthonormal basis of nested halves, the constant first; one row each."""
    rows = [np.full(length, 1 / math.sqrt(length))]
    width = length
    while width > 1:
        for start in range(0, length, width):
            row = np.zeros(length)
            row[start : start + width // 2] = 1
            row[start + width // 2 : start + width] = -1
            rows.append(row / math.sqrt(width))
        width //= 2
    return np.array(rows)


def shrink_by_matrix(noisy: np.ndarray, variance: float) -> np.ndarray:
    """The same with the whole basis: coefficients of one width share a factor unless they stand out."""
    basis = haar(len(noisy))
    found = basis @ noisy
    normal = np.random.default_rng(0).normal(size=2_000_000)
    quiet_energy = float(np.mean(normal[np.abs(normal) < STANDS_OUT] ** 2))
    start, count = 1, 1
    while start < len(noisy):
        part = found[start : start + count]
        quiet = part**2 <= STANDS_OUT**2 * variance
        energy = (part[quiet] ** 2).sum() / variance
        if energy > 0:
            part[quiet] *= max(0.0, 1 - quiet_energy * quiet.sum() / energy)
        start, count = start + count, 2 * count
    return np.asarray(basis.T @ found)


@pytest.mark.parametrize("seed", range(5))
def test_halves_are_the_haar_basis(seed: int) -> None:
    rng = np.random.default_rng(seed)
    noisy = 40 * np.exp(-(((np.arange(32) - 9) / 6) ** 2)) + rng.normal(0, 7, 32)
    assert _shrink_halves(noisy, 49.0, 0) == pytest.approx(shrink_by_matrix(noisy, 49.0), abs=0.02)


@pytest.mark.parametrize("levels", [8, 9, 41, 100, 501])
def test_the_sum_is_kept_and_so_is_what_has_no_noise(levels: int) -> None:
    counts = np.random.default_rng(levels).integers(0, 1000, levels).astype(float)
    assert shrink_levels(counts, 400.0).sum() == pytest.approx(counts.sum())
    assert shrink_levels(counts, 1e-9) == pytest.approx(counts)


def test_a_smooth_law_is_found_and_a_spike_stays() -> None:
    rng = np.random.default_rng(1)
    true = 30 * np.exp(-(((np.arange(100) - 40) / 20) ** 2))
    noisy = true + rng.normal(0, 15, 100)
    assert np.abs(shrink_levels(noisy, 225.0) - true).sum() < 0.5 * np.abs(noisy - true).sum()
    true[70] = 5_000
    noisy = true + rng.normal(0, 15, 100)
    found = shrink_levels(noisy, 225.0)
    assert abs(found[70] - 5_000) < 0.02 * 5_000
    assert np.abs(found - true).sum() < np.abs(noisy - true).sum()


def test_cells_that_noise_explains_go_to_the_product_and_others_stay() -> None:
    rng = np.random.default_rng(2)
    rows, columns = rng.dirichlet(np.ones(12)), rng.dirichlet(np.ones(10))
    product = 3_000 * np.outer(rows, columns)
    noisy = Table(("a", "b"), product + rng.normal(0, 30, product.shape))
    found = shrink_cells(noisy, 3_000.0, 900.0).values
    assert np.abs(found - product).sum() < 0.5 * np.abs(noisy.values - product).sum()
    same = Table(("a", "b"), np.diag(np.full(10, 1_000.0)))
    assert shrink_cells(same, 10_000.0, 25.0).values == pytest.approx(same.values, abs=2.0)
    assert shrink_cells(same, 10_000.0, 0.0) is same


def test_a_table_of_three_is_expected_from_its_pairs() -> None:
    """Its own interaction is noise alone here; that of each pair is large, and is kept."""
    rng = np.random.default_rng(3)
    first, second, third = np.exp(rng.normal(0, 1, (3, 4, 4)))
    true = np.einsum("ab,bc,ac->abc", first, second, third)
    true *= 20_000 / true.sum()
    noisy = Table(("a", "b", "c"), true + rng.normal(0, 40, true.shape))
    found = shrink_cells(noisy, 20_000.0, 1_600.0).values
    assert np.abs(found - true).sum() < np.abs(noisy.values - true).sum()


def make_tables() -> tuple[list[Table], list[float]]:
    rng = np.random.default_rng(4)
    true = rng.dirichlet(np.ones(60)).reshape(20, 3) * 5_000
    noisy = [
        Table((), np.array(5_040.0)),
        Table(("age",), true.sum(axis=1) + rng.normal(0, 30, 20)),
        Table(("age", "sex"), true + rng.normal(0, 25, true.shape)),
        Table(("age",), true.sum(axis=1) + rng.normal(0, 60, 20)),
    ]
    return noisy, [100.0, 900.0, 625.0, 3_600.0]


def test_tables_agree_have_no_negative_cell_and_one_total() -> None:
    noisy, variances = make_tables()
    tables = estimate_tables(noisy, variances, {"age": 20, "sex": 0}, rounds=20, total=5_000.0)
    assert [table.axes for table in tables] == [(), ("age",), ("age", "sex")]  # each set once
    assert all((table.values >= 0).all() for table in tables)
    assert [table.total() for table in tables] == pytest.approx([5_000.0] * 3)
    assert tables[2].project(("age",)).values == pytest.approx(tables[1].values, abs=5.0)


def test_without_noise_it_is_what_settling_makes() -> None:
    noisy, _ = make_tables()
    small = [1e-9] * len(noisy)
    exact = [Table(table.axes, np.maximum(table.values, 0.0)) for table in noisy[2:3]]
    (found,) = estimate_tables(exact, small[:1], {"age": 20}, rounds=5)
    (plain,) = settle(exact, weigh_by_precision(exact, small[:1]), rounds=5)
    assert found.values == pytest.approx(plain.values, abs=1e-3)
    (zero,) = estimate_tables(exact, [0.0], {"age": 20}, rounds=5)
    assert zero.values == pytest.approx(plain.values, abs=1e-3)


def test_what_is_not_shrunk_is_off_by_noise_alone() -> None:
    """A weak dependence is right on average over the noise; what is shrunk has less of it."""
    rng = np.random.default_rng(5)
    true = np.array([[300.0, 260.0], [180.0, 260.0]])
    found = {True: 0.0, False: 0.0}
    for _ in range(80):
        noisy = [Table(("a", "b"), true + rng.normal(0, 25, true.shape)), Table(("a",), true.sum(axis=1))]
        for shrunk in found:
            pair, _ = estimate_tables(noisy, [625.0, 100.0], {}, rounds=5, shrunk=shrunk)
            found[shrunk] += (
                pair.values[0, 0] - pair.values.sum(axis=1)[0] * pair.values.sum(axis=0)[0] / 1_000
            ) / 80
    weak = 300 - 560 * 480 / 1_000
    assert found[False] == pytest.approx(weak, abs=4)
    assert found[True] < 0.75 * weak


def test_no_rows_are_no_reason_to_fail() -> None:
    noisy = [Table(("age",), np.full(20, -3.0))]
    (found,) = estimate_tables(noisy, [4.0], {"age": 20}, rounds=5)
    assert found.total() == 0


def test_only_numbers_and_declared_orders_have_neighbours() -> None:
    schema = Schema(
        (
            Attribute.of("age", range(90), missing="unknown"),
            Attribute.of("town", ["here", "there"]),
            Attribute.of("size", ["small", "large"], ordered=True, other="odd"),
            Attribute.binned("pay", [0, 10, 20, 30]),
        )
    )
    assert count_ordered(schema) == {"age": 90, "town": 0, "size": 2, "pay": 3}


def test_margins_that_forbid_every_cell_leave_the_table_as_it_is() -> None:
    """Five rows, and noise that puts them where the sums over noisy cells want none: no table may vanish."""
    cells = np.array([[[1.0, -11.0], [2.0, -14.0]], [[3.0, 0.0], [8.0, -8.0]]])
    found = estimate_tables(
        [Table((), np.array(5.0)), Table(("a", "b", "c"), cells)], [3.3, 32.0], {}, rounds=5
    )
    assert found[1].total() == pytest.approx(found[0].total()) and found[0].total() > 0


def test_the_largest_numbers_have_scores_whose_squares_are_finite() -> None:
    """A schema may have edges near 1.8e308; what follows from them fails after a payment, if it fails."""
    edges = [-1.7e308, *range(1, 10), 1.7e308 / 2, 1.7e308]
    (scores,) = score_levels(Schema((Attribute.binned("a", edges),))).values()
    assert np.isfinite(scores**2).all() and (np.diff(scores) >= 0).all()
    small = score_levels(Schema((Attribute.binned("a", range(12)),)))["a"]
    assert np.allclose(small, np.arange(11) + 0.5)
