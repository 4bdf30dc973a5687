"""What is expected of a pair of ordered attributes: correlations that stand out stay, noise goes, margins are kept."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.compute.association import expect_association, keep_correlation
from discreet.compute.smoothing import FEW_LEVELS, estimate_tables, score_levels, shrink_cells
from discreet.values.schema import Attribute, Schema
from discreet.values.table import Array, Table

LEVELS, ROWS, DEVIATION = 20, 20_000, 20.0
SCORES = np.arange(LEVELS, dtype=np.float64)


def make_pair(strength: float) -> Array:
    """Counts of two attributes that go together."""
    near = np.exp(-strength * (SCORES[:, None] - SCORES) ** 2 / LEVELS)
    return np.asarray(ROWS * near / near.sum())


def correlate(table: Array, scores: Array = SCORES) -> float:
    shares = table / table.sum()
    one, other = shares.sum(axis=1), shares.sum(axis=0)
    ends = scores - one @ scores, scores - other @ scores
    return float(ends[0] @ shares @ ends[1] / np.sqrt((one @ ends[0] ** 2) * (other @ ends[1] ** 2)))


def expect_independence(table: Array) -> Array:
    return np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()


def test_a_correlation_stays_that_cells_alone_would_lose() -> None:
    true = make_pair(0.1)
    noisy = true + np.random.default_rng(1).laplace(0.0, DEVIATION / 2**0.5, true.shape)
    scores = {"a": SCORES, "b": SCORES}
    table = Table(("a", "b"), noisy)
    alone = shrink_cells(table, ROWS, DEVIATION**2).values
    together = shrink_cells(table, ROWS, DEVIATION**2, scores).values
    truth = correlate(true)
    assert abs(correlate(together) - truth) < 0.05 < abs(correlate(alone) - truth)
    assert np.abs(together - true).sum() < 0.8 * np.abs(alone - true).sum()


def test_noise_is_no_association() -> None:
    even = np.full((LEVELS, LEVELS), 50.0)
    noisy = even + np.random.default_rng(2).laplace(0.0, DEVIATION / 2**0.5, even.shape)
    found = expect_association(noisy, even, DEVIATION**2, [SCORES, SCORES])
    assert abs(correlate(found)) < 0.02
    assert np.abs(found - even).sum() < 0.1 * np.abs(noisy - even).sum()


def test_margins_are_kept_and_no_cell_is_negative() -> None:
    true = make_pair(0.5)
    known = np.append(SCORES[:-1], np.nan)  # the last level is that of missing values
    for seed in range(3):
        noisy = true + np.random.default_rng(seed).laplace(0.0, 4 * DEVIATION, true.shape)
        around = expect_independence(true)
        found = expect_association(noisy, around, 32 * DEVIATION**2, [known, SCORES])
        assert (found >= 0).all() and np.isfinite(found).all()
        assert found.sum(axis=1) == pytest.approx(around.sum(axis=1), rel=0.02)
        assert found.sum(axis=0) == pytest.approx(around.sum(axis=0), rel=1e-9)


def test_nothing_to_go_by_leaves_independence() -> None:
    around = expect_independence(make_pair(0.1))
    assert expect_association(around, around, 0.0, [SCORES, SCORES]) is around
    empty = np.zeros((LEVELS, LEVELS))
    assert expect_association(around, empty, 1.0, [SCORES, SCORES]) is empty
    nothing = np.full(LEVELS, np.nan)
    assert expect_association(around + 9.0, around, 1.0, [nothing, SCORES]) is around
    assert keep_correlation(around, around + 9.0, around, 1.0, [np.full(LEVELS, 3.0), SCORES]) is around
    assert keep_correlation(around, around + 9.0, around, 0.0, [SCORES, SCORES]) is around


def test_rare_levels_far_out_do_not_drown_a_correlation() -> None:
    """Delays: most are small, few are large; the worst of ten tables is nearer than noisy ones are on average."""
    ends = np.concatenate([np.arange(14.0), [16, 20, 25, 32, 40, 60]])
    shares = np.concatenate([np.full(14, 1.0), [0.6, 0.4, 0.25, 0.15, 0.1, 0.05]])
    near = np.outer(shares, shares) * np.exp(-((ends[:, None] - ends) ** 2) / (20 + ends[:, None] + ends))
    true, scores = ROWS * near / near.sum(), {"a": ends, "b": ends}
    off: dict[str, list[float]] = {"raw": [], "kept": []}
    for seed in range(10):
        noisy = true + np.random.default_rng(seed).laplace(0.0, DEVIATION / 2**0.5, true.shape)
        (kept,) = estimate_tables(
            [Table(("a", "b"), noisy)], [DEVIATION**2], {"a": LEVELS, "b": LEVELS}, rounds=5, scores=scores
        )
        for name, values in (("raw", np.maximum(noisy, 0.0)), ("kept", kept.values)):
            off[name].append(abs(correlate(values, ends) - correlate(true, ends)))
    assert max(off["kept"]) < np.mean(off["raw"]) and np.mean(off["kept"]) < 0.1


def test_a_tilted_table_keeps_its_margins_and_comes_nearer_to_the_noisy_moment() -> None:
    true = make_pair(0.1)
    flat = make_pair(0.08)
    flat *= (true.sum(axis=1) / flat.sum(axis=1))[:, None]
    kept = keep_correlation(flat, true, flat, 1.0, [SCORES, SCORES])
    assert abs(correlate(kept) - correlate(true)) < 0.3 * abs(correlate(flat) - correlate(true))
    assert kept.sum(axis=1) == pytest.approx(flat.sum(axis=1), rel=1e-3) and (kept >= 0).all()
    assert correlate(keep_correlation(flat, true, flat, 1e9, [SCORES, SCORES])) == pytest.approx(
        correlate(flat), abs=1e-3
    )


def test_a_table_follows_a_likely_one_where_noise_says_nothing() -> None:
    """Its cells were cut off at 0; the likely one has negative cells, and the correlation that goes with them."""
    flat, likely = make_pair(0.08), make_pair(0.1)
    likely[0, -1] -= 1.0
    kept = keep_correlation(flat, flat, likely, 1e9, [SCORES, SCORES])
    assert correlate(kept) == pytest.approx(correlate(likely), abs=0.01)


def make_gusts() -> Array:
    """Winds and their gusts: most winds have none, the strong ones do, and the strongest are rare."""
    winds = np.exp(-(((SCORES - 7) / 5) ** 2)) + 0.0005
    near = np.exp(-((SCORES[:, None] - SCORES) ** 2) / 6)
    known = winds / (1 + np.exp((9 - SCORES) / 1.5))
    table = np.column_stack([near / near.sum(axis=1, keepdims=True) * known[:, None], winds - known])
    return np.asarray(12_000 * table / table.sum())


def test_a_correlation_of_few_rows_with_both_numbers_stays() -> None:
    """It was 0.24 too low on average: cells cut off at 0 made margins heavy far out, and most rows lack one number."""
    true, scores, off = make_gusts(), [SCORES, np.append(SCORES, np.nan)], []
    for seed in range(5):
        noisy = true + np.random.default_rng(seed).laplace(0.0, 15.0 / 2**0.5, true.shape)
        tables = [Table(("a", "b"), noisy), Table(("a",), true.sum(axis=1)), Table(("b",), true.sum(axis=0))]
        found, *_ = estimate_tables(
            tables,
            [225.0, 1.0, 1.0],
            {"a": LEVELS, "b": LEVELS},
            rounds=5,
            scores=dict(zip("ab", scores, strict=True)),
        )
        off.append(correlate(found.values[:, :-1]) - correlate(true[:, :-1]))
    assert max(map(abs, off)) < 0.12 and abs(np.mean(off)) < 0.1


def test_rare_levels_far_out_stay_where_a_straight_line_has_them() -> None:
    """The strongest gusts are drowned by noise, and up to nine in ten of them were expected with the weakest winds."""
    true = make_gusts()
    for seed in range(8):
        noisy = true + np.random.default_rng(seed).laplace(0.0, 15.0 / 2**0.5, true.shape)
        found = expect_association(
            noisy, expect_independence(true), 225.0, [SCORES, np.append(SCORES, np.nan)]
        )
        assert found[:8, 17:-1].sum() < 0.05 * found[:, 17:-1].sum()


def test_few_levels_that_are_numbers_keep_their_correlation() -> None:
    """Five categories of some of twenty speeds, and none of the others: cell by cell, noise takes much of it."""
    few = np.searchsorted([12.0, 14.0, 16.0, 18.0], SCORES, side="right")
    true = np.zeros((LEVELS, 6))
    true[np.arange(LEVELS), np.where(SCORES < 10, 5, few)] = 4_000 * 0.8**SCORES
    classes = np.append(np.arange(5.0), np.nan)
    noisy = Table(("a", "b"), true + np.random.default_rng(3).laplace(0.0, 10.0, true.shape))

    def measure(table: Array) -> float:
        shares = table[:, :5] / table[:, :5].sum()
        x, y = SCORES - shares.sum(axis=1) @ SCORES, classes[:5] - shares.sum(axis=0) @ classes[:5]
        return float(x @ shares @ y / np.sqrt((shares.sum(axis=1) @ x**2) * (shares.sum(axis=0) @ y**2)))

    (alone,) = estimate_tables([noisy], [200.0], {"a": LEVELS, "b": 5}, rounds=5, scores={"a": SCORES})
    (found,) = estimate_tables(
        [noisy], [200.0], {"a": LEVELS, "b": 5}, rounds=5, scores={"a": SCORES, "b": classes}
    )
    off = [abs(measure(table.values) - measure(true)) for table in (alone, found)]
    assert off[1] < 0.5 * off[0], off


def test_scores_are_middles_of_levels_in_order() -> None:
    schema = Schema(
        (
            Attribute.binned("age", [0, 10, 20, 30, 40, 50, 60, 80, 100], missing="missing"),
            Attribute.of("town", ["a", "b", "c", "d"]),
            Attribute.of("grade", list("abcdefgh"), ordered=True),
            Attribute.of("stage", ["I", "II", "III"], ordered=True),
        )
    )
    found = score_levels(schema)
    assert set(found) == {"age", "grade"}
    assert found["age"][:8] == pytest.approx([5, 15, 25, 35, 45, 55, 70, 90], abs=0.6)
    assert np.isnan(found["age"][8])
    assert found["grade"].tolist() == [*range(8)]
    assert set(score_levels(schema, FEW_LEVELS)) == {"age", "grade", "stage"}


@pytest.mark.parametrize("seed", range(60))
def test_no_noise_and_no_rare_level_makes_a_table_that_is_none(seed: int) -> None:
    """Functions of levels that one row in a billion has are huge: their exponentials once ended a paid release."""
    rng = np.random.default_rng(seed)
    for _ in range(5):
        sizes = rng.integers(2, 14, 2)
        shares = [10.0 ** rng.uniform(-rng.choice([1, 4, 9, 14]), 0, size) for size in sizes]
        independent = np.outer(*(share / share.sum() for share in shares)) * 10.0 ** rng.uniform(0, 6)
        variance = 10.0 ** rng.uniform(-2, 8)
        noisy = independent + rng.laplace(0, np.sqrt(variance), independent.shape)
        scores = [np.sort(rng.normal(size=size) * 10.0 ** rng.uniform(-3, 9)) for size in sizes]
        scores[0][-1] = np.nan
        expected = expect_association(noisy, independent, variance, scores)
        for table in (expected, keep_correlation(expected, noisy, noisy, variance, scores)):
            assert np.isfinite(table).all() and (table >= 0).all()
