"""Consistency: agreement on every shared margin, nothing lost, least variance, and projection by its definition."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from discreet.compute.consistency import (
    clamp,
    condition,
    find_intersections,
    project_on_simplex,
    reconcile,
    settle,
    weigh_by_precision,
)
from discreet.values.errors import TableError
from discreet.values.table import Table

NAMES = "abcde"
SIZES = {"a": 2, "b": 3, "c": 2, "d": 4, "e": 2}

attribute_sets = st.lists(st.lists(st.sampled_from(NAMES), unique=True, max_size=3), min_size=1, max_size=6)
seeds = st.integers(0, 2**32 - 1)


def draw_tables(sets: list[list[str]], seed: int, scale: float = 10.0) -> list[Table]:
    rng = np.random.default_rng(seed)
    return [Table(tuple(axes), rng.normal(5.0, scale, [SIZES[name] for name in axes])) for axes in sets]


def draw_exact(sets: list[list[str]], seed: int) -> list[Table]:
    joint = Table(tuple(NAMES), np.random.default_rng(seed).gamma(0.3, 50.0, [SIZES[name] for name in NAMES]))
    return [joint.project(axes) for axes in sets]


@given(attribute_sets)
def test_intersections_are_all_there_smallest_first(sets: list[list[str]]) -> None:
    found = find_intersections(sets)
    by_hand = {
        frozenset.intersection(*map(frozenset, group))
        for size in range(2, len(sets) + 1)
        for group in itertools.combinations(sets, size)
    } | {frozenset()}
    assert set(found) == by_hand
    assert len(found) == len(by_hand)
    assert [len(shared) for shared in found] == sorted(len(shared) for shared in found)


@settings(deadline=None, max_examples=60)
@given(attribute_sets, seeds)
def test_tables_agree_on_every_shared_margin(sets: list[list[str]], seed: int) -> None:
    tables = draw_tables(sets, seed)
    weights = np.random.default_rng(seed + 1).uniform(0.1, 10, len(sets)).tolist()
    agreed = reconcile(tables, weights)
    for one, other in itertools.combinations(agreed, 2):
        shared = sorted(set(one.axes) & set(other.axes))
        assert np.allclose(one.project(shared).values, other.project(shared).values, rtol=0, atol=1e-9)
    whole = math.fsum(w * t.total() for w, t in zip(weights, tables, strict=True)) / math.fsum(weights)
    assert all(math.isclose(table.total(), whole, abs_tol=1e-8) for table in agreed)


@settings(deadline=None, max_examples=40)
@given(attribute_sets, seeds)
def test_tables_that_agree_stay_as_they_are(sets: list[list[str]], seed: int) -> None:
    tables = draw_exact(sets, seed)
    weights = [1.0 + i for i in range(len(sets))]
    for found in (
        reconcile(tables, weights),
        settle(tables, weights),
        settle(tables, weights, remedy="clamp"),
    ):
        for before, after in zip(tables, found, strict=True):
            assert np.allclose(before.values, after.values, rtol=0, atol=1e-9 * max(before.total(), 1.0))


@settings(deadline=None, max_examples=25)
@given(attribute_sets, seeds)
def test_one_pass_is_generalised_least_squares(sets: list[list[str]], seed: int) -> None:
    """The pass equals the weighted least squares fit of one joint table to all measured cells, by its matrix."""
    tables = draw_tables(sets, seed)
    variances = np.random.default_rng(seed + 1).uniform(0.5, 20, len(sets)).tolist()
    agreed = reconcile(tables, weigh_by_precision(tables, variances))
    cells = math.prod(SIZES.values())
    basis = [Table(tuple(NAMES), cell.reshape(tuple(SIZES.values()))) for cell in np.eye(cells)]
    blocks = [np.stack([cell.project(t.axes).values.ravel() for cell in basis], axis=1) for t in tables]
    scaled = np.concatenate([block / math.sqrt(v) for block, v in zip(blocks, variances, strict=True)])
    target = np.concatenate([t.values.ravel() / math.sqrt(v) for t, v in zip(tables, variances, strict=True)])
    joint = np.linalg.lstsq(scaled, target, rcond=None)[0]
    for block, table in zip(blocks, agreed, strict=True):
        assert np.allclose(block @ joint, table.values.ravel(), rtol=0, atol=1e-7)


def test_inverse_variance_has_the_least_variance() -> None:
    """By simulation: no other weights, the printed ones included, give a smaller variance of the shared margin."""
    rng = np.random.default_rng(3)
    scales, sets = (2.0, 8.0), (("a",), ("a", "b", "d"))
    variances = [2 * scale**2 for scale in scales]
    spread = {}
    weighings = {"precision": None, "paper": [1 / scale for scale in scales], "equal": [1.0, 1.0]}
    for name, weights in weighings.items():
        found = []
        for _ in range(4000):
            tables = [
                Table(axes, rng.laplace(0, scale, [SIZES[n] for n in axes]))
                for axes, scale in zip(sets, scales, strict=True)
            ]
            found.append(reconcile(tables, weights or weigh_by_precision(tables, variances))[0].values)
        spread[name] = float(np.var(found))
    # The second table's margin sums 12 cells: the least variance is that of precisions 1/8 and 1/(128·12) together.
    assert spread["precision"] == pytest.approx(1 / (1 / 8 + 1 / (128 * 12)), rel=0.08)
    assert spread["precision"] < 0.5 * min(spread["paper"], spread["equal"])


def test_an_exact_table_outweighs_noisy_ones() -> None:
    exact, noisy = Table(("a",), np.array([7.0, 3.0])), draw_tables([["a", "b"]], 5)[0]
    agreed = reconcile([exact, noisy], weigh_by_precision([exact, noisy], [0.0, 4.0]))
    assert np.allclose(agreed[0].values, exact.values)
    assert np.allclose(agreed[1].project(("a",)).values, exact.values)


@example([1.0], 1e-308, 0)
@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=12), st.floats(0, 1e3), seeds)
def test_projection_is_the_nearest_table_of_the_total(cells: list[float], total: float, seed: int) -> None:
    found = project_on_simplex(cells, total)
    assert (found >= 0).all()
    assert math.isclose(found.sum(), total, rel_tol=1e-9, abs_tol=1e-9)
    others = np.random.default_rng(seed).dirichlet(np.full(len(cells), 0.5), 20) * total
    best = np.square(np.array(cells) - found).sum()
    assert (np.square(np.array(cells) - others).sum(axis=1) >= best - 1e-6).all()


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=12), st.floats(1e-3, 1e3))
def test_clamping_keeps_the_total(cells: list[float], total: float) -> None:
    found = clamp(cells, total)
    assert (found >= 0).all()
    assert math.isclose(found.sum(), total, rel_tol=1e-9)


@settings(deadline=None, max_examples=40)
@given(attribute_sets, seeds, st.sampled_from(["clamp", "project"]))
def test_settled_tables_are_counts(sets: list[list[str]], seed: int, remedy: str) -> None:
    tables = draw_tables(sets, seed)
    settled = settle(tables, [1.0] * len(tables), remedy=remedy, rounds=2)  # type: ignore[arg-type]
    total = max(np.mean([table.total() for table in tables]), 0.0)
    for table in settled:
        assert (table.values >= 0).all()
        assert math.isclose(table.total(), total, rel_tol=1e-9, abs_tol=1e-9)


def test_conditionals_follow_the_rows() -> None:
    counts = Table(("b", "a"), np.array([[3.0, 1.0], [-2.0, -1.0], [0.0, 4.0]]))
    assert np.allclose(condition(counts, ("b", "a")).values, [[0.75, 0.25], [0.5, 0.5], [0, 1]])
    assert np.allclose(
        condition(counts, ("b", "a"), [3, 1]).values, [[0.75, 0.25], [0.75, 0.25], [3 / 8, 5 / 8]]
    )
    assert np.allclose(condition(counts, ("a",)).values, [1 / 5, 4 / 5])
    with pytest.raises(TableError, match="the prior of 'a'"):
        condition(counts, ("b", "a"), -1.0)


def test_wrong_input_is_named() -> None:
    tables = draw_tables([["a"], ["a", "b"]], 1)
    with pytest.raises(TableError, match="as many weights"):
        reconcile(tables, [1.0])
    with pytest.raises(TableError, match="above 0"):
        reconcile(tables, [1.0, 0.0])
    with pytest.raises(TableError, match="'clamp' or 'project'"):
        settle(tables, [1.0, 1.0], remedy="hope")  # type: ignore[arg-type]
    with pytest.raises(TableError, match="same levels"):
        reconcile([tables[0], Table(("a",), np.ones(3))], [1.0, 1.0])
