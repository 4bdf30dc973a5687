"""Every score's sensitivity by brute force over all tiny tables in both units, and F's program by exhaustion."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.privacy.budget import Unit
from discreet.privacy.scores import (
    IndependenceDistance,
    MaximumDistance,
    ModelError,
    MutualInformation,
    Score,
)
from discreet.vocabulary.errors import MechanismError
from discreet.vocabulary.table import Table

UNITS = list(Unit)
SHAPES = {(2, 2): 8, (3, 2): 6, (2, 3): 6, (4, 2): 5, (3, 3): 5}
"""Tiny tables, parents by child, and up to how many rows all of them are looked at."""


@cache
def _tables(shape: tuple[int, int], rows: int) -> np.ndarray:
    """All tables of this shape and total, as rows of a matrix."""
    cells = shape[0] * shape[1]
    found = []
    for bars in itertools.combinations(range(rows + cells - 1), cells - 1):
        edges = (-1, *bars, rows + cells - 1)
        found.append([after - before - 1 for before, after in itertools.pairwise(edges)])
    return np.array(found, dtype=np.int64)


def _evaluate(score: Score, counts: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    if isinstance(score, ModelError):
        score = ModelError(score.expected * len(counts))
    return score.evaluate([Table(("p", "x"), table.reshape(shape)) for table in counts])


def _largest_change(score: Score, shape: tuple[int, int], rows: int, unit: Unit) -> float:
    """Over all tables with so many rows and all their neighbours (with one row more, for add-remove)."""
    before = _tables(shape, rows)
    values = _evaluate(score, before, shape)
    index = {tuple(table): value for table, value in zip(before.tolist(), values, strict=True)}
    if unit is Unit.ADD_REMOVE:
        after = _tables(shape, rows + 1)
        index |= {tuple(t): v for t, v in zip(after.tolist(), _evaluate(score, after, shape), strict=True)}
    return max(
        (
            abs(index[other] - index[tuple(table)])
            for table in before.tolist()
            for other in _moved(table, unit)
        ),
        default=0.0,
    )


def _moved(table: list[int], unit: Unit) -> Iterator[tuple[int, ...]]:
    for i in range(len(table)):
        more = [*table[:i], table[i] + 1, *table[i + 1 :]]
        if unit is Unit.ADD_REMOVE:
            yield tuple(more)
        else:
            yield from (
                (*more[:j], more[j] - 1, *more[j + 1 :]) for j in range(len(table)) if j != i and table[j]
            )


def _models(shape: tuple[int, int]) -> ModelError:
    return ModelError((np.linspace(0.3, 2.9, shape[0] * shape[1]).reshape(shape),))


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("shape", list(SHAPES), ids=str)
@pytest.mark.parametrize("name", ["information", "maximum", "independence", "model"])
def test_no_row_moves_a_score_by_more_than_its_sensitivity(
    name: str, shape: tuple[int, int], unit: Unit
) -> None:
    scores: dict[str, Score] = {
        "information": MutualInformation(),
        "maximum": MaximumDistance(),
        "independence": IndependenceDistance(),
        "model": _models(shape),
    }
    score = scores[name]
    if (name == "information" and unit is Unit.ADD_REMOVE) or (name == "maximum" and shape[1] != 2):
        with pytest.raises(MechanismError):
            score.sensitivity([shape], unit, 5)
        return
    closest = 0.0
    for rows in range(2, SHAPES[shape] + 1):
        stated = float(score.sensitivity([shape], unit, rows))
        found = _largest_change(score, shape, rows, unit)
        assert found <= stated, (rows, found, stated)
        closest = max(closest, found / stated)
    # The bound is not slack by much either: someone who halves it must fail this test.
    assert closest > {"independence": 0.55}.get(name, 0.99)


def test_mutual_information_attains_lemma_1() -> None:
    """[004, Sec. 4.2]: the printed example for binary tables; odd n for the others."""
    for shape, rows in [((2, 2), 7), ((3, 2), 5), ((3, 3), 3), ((3, 3), 5)]:
        stated = float(MutualInformation().sensitivity([shape], Unit.REPLACE_ONE, rows))
        assert _largest_change(MutualInformation(), shape, rows, Unit.REPLACE_ONE) == pytest.approx(
            stated, rel=1e-9
        )
    example = MutualInformation().evaluate([Table(("p", "x"), np.array([[1, 0], [0, 9]]))])
    assert example[0] == pytest.approx(0.1 * math.log2(10) + 0.9 * math.log2(10 / 9))


def test_independence_comes_near_its_sensitivity_with_more_rows() -> None:
    """n·R moves by nearly 2 on a binary child, and by more than 2.7 where both sides have three levels."""
    score = IndependenceDistance()

    def change(before: list[list[int]], after: list[list[int]]) -> float:
        values = score.evaluate([Table(("p", "x"), np.array(table)) for table in (before, after)])
        return abs(values[1] - values[0])

    binary = change([[0, 0], [0, 1000]], [[1, 0], [0, 999]])
    assert 1.99 < binary < score.sensitivity([(2, 2)], Unit.REPLACE_ONE)
    three = change([[0, 0, 0], [1, 0, 60], [60, 0, 3600]], [[0, 1, 0], [0, 0, 60], [60, 0, 3600]])
    assert 2.9 < three < score.sensitivity([(3, 3)], Unit.REPLACE_ONE)
    added = change([[0, 0, 0], [0, 0, 0], [0, 0, 1000]], [[1, 0, 0], [0, 0, 0], [0, 0, 1000]])
    assert 1.99 < added < score.sensitivity([(3, 3)], Unit.ADD_REMOVE)


def _exhaust(table: np.ndarray) -> float:
    """n·F by its definition: the best over all ways to give each parent level to one level of the child."""
    n = int(table.sum())
    ways = itertools.product([0, 1], repeat=len(table))
    shortfalls = []
    for way in ways:
        got = [sum(int(table[i, x]) for i, given in enumerate(way) if given == x) for x in (0, 1)]
        shortfalls.append(sum(max(n - 2 * each, 0) for each in got))
    return -min(shortfalls) / 2


@pytest.mark.parametrize("shape", [(2, 2), (3, 2), (4, 2)], ids=str)
def test_the_program_for_f_equals_exhaustive_search_on_all_small_tables(shape: tuple[int, int]) -> None:
    for rows in range(SHAPES[shape] + 2):  # odd and even
        counts = _tables(shape, rows)
        found = _evaluate(MaximumDistance(), counts, shape)
        assert found.tolist() == [_exhaust(table.reshape(shape)) for table in counts]


@given(st.lists(st.tuples(st.integers(0, 400), st.integers(0, 400)), min_size=2, max_size=9))
@settings(deadline=None, max_examples=100)
def test_the_program_for_f_equals_exhaustive_search_on_larger_tables(rows: list[tuple[int, int]]) -> None:
    table = np.array(rows, dtype=np.int64)
    assert MaximumDistance().evaluate([Table(("p", "x"), table)])[0] == _exhaust(table)


def test_f_is_the_distance_to_a_maximum_joint_distribution() -> None:
    """[004, Table 3]: the example lies at L1 distance 0.4, so F = −0.2."""
    table = np.array([[6, 1], [0, 1], [0, 1], [0, 1]], dtype=np.int64)
    assert MaximumDistance().evaluate([Table(("p", "x"), table)])[0] == pytest.approx(-0.2 * 10)


def test_scores_of_many_candidates_equal_those_of_each() -> None:
    rng = np.random.default_rng(4)
    shapes = [(2, 2), (2, 2, 2), (3, 2), (2, 2), (4, 3, 2)] * 5
    tables = [Table(tuple("abcd"[: len(s)]), rng.integers(0, 50, s)) for s in shapes]
    for score in (MutualInformation(), MaximumDistance(), IndependenceDistance()):
        together = score.evaluate(tables)
        assert together.shape == (25,)
        assert together.tolist() == [score.evaluate([table])[0] for table in tables]
        assert score.sensitivity(shapes, Unit.REPLACE_ONE, 1000) > 0
    model = ModelError(tuple(np.full(shape, 0.5) for shape in shapes))
    assert model.evaluate(tables).tolist() == [float(np.abs(t.values - 0.5).sum()) for t in tables]


def test_values_agree_with_their_definitions() -> None:
    rng = np.random.default_rng(5)
    counts = rng.integers(0, 30, (3, 4, 3))
    table, p = Table(("a", "b", "x"), counts), counts.reshape(12, 3) / counts.sum()
    product = p.sum(axis=1, keepdims=True) * p.sum(axis=0, keepdims=True)
    information = float(np.where(p > 0, p * np.log2(np.where(p > 0, p / product, 1)), 0).sum())
    assert MutualInformation().evaluate([table])[0] == pytest.approx(information, rel=1e-12)
    apart = counts.sum() * np.abs(p - product).sum() / 2
    assert IndependenceDistance().evaluate([table])[0] == pytest.approx(apart, rel=1e-12)


def test_an_empty_table_scores_nothing() -> None:
    table = Table(("p", "x"), np.zeros((2, 2), dtype=np.int64))
    for score in (MutualInformation(), MaximumDistance(), IndependenceDistance()):
        assert score.evaluate([table]).tolist() == [0.0]


def test_the_widest_candidate_sets_the_sensitivity() -> None:
    score = IndependenceDistance()
    assert score.sensitivity([(2, 2), (3, 3)], Unit.REPLACE_ONE) == score.sensitivity(
        [(3, 3)], Unit.REPLACE_ONE
    )
    mixed = MutualInformation().sensitivity([(2, 2), (3, 3)], Unit.REPLACE_ONE, 100)
    assert mixed == MutualInformation().sensitivity([(3, 3)], Unit.REPLACE_ONE, 100)


@pytest.mark.parametrize("rows", [None, 0, 1, 2**31])
def test_mutual_information_needs_a_public_number_of_rows(rows: int | None) -> None:
    with pytest.raises(MechanismError, match="public number of rows"):
        MutualInformation().sensitivity([(2, 2)], Unit.REPLACE_ONE, rows)


def test_candidates_that_make_no_sense_are_refused() -> None:
    for score in (MutualInformation(), MaximumDistance(), IndependenceDistance()):
        with pytest.raises(MechanismError):
            score.sensitivity([], Unit.REPLACE_ONE, 10)
        with pytest.raises(MechanismError, match="parent"):
            score.sensitivity([(2,)], Unit.REPLACE_ONE, 10)
        with pytest.raises(MechanismError, match="whole counts"):
            score.evaluate([Table(("p", "x"), np.ones((2, 2)))])
    with pytest.raises(MechanismError, match="shapes"):
        ModelError((np.ones((2, 2)),)).sensitivity([(2, 3)], Unit.ADD_REMOVE)
    with pytest.raises(MechanismError, match="finite"):
        ModelError((np.array([np.nan]),))
    assert ModelError((np.ones(2),)).sensitivity([(2,)], Unit.ADD_REMOVE) == Fraction(1)
