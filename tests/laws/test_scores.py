"""Every score's sensitivity by brute force over all tiny tables in both units, and F's program by exhaustion."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cache, partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.core.scores import (
    IndependenceDistance,
    MaximumDistance,
    ModelError,
    MutualInformation,
    Score,
    TreeGain,
)
from discreet.values.errors import MechanismError
from discreet.values.table import Table
from discreet.values.unit import ROW_UNITS, Unit

UNITS = ROW_UNITS
SHAPES = {(2, 2): 20, (3, 2): 12, (2, 3): 12, (4, 2): 8, (3, 3): 7}
"""Tiny tables, parents by child, and up to how many rows all of them are looked at."""
LARGER = [pytest.param(shape, 20, marks=pytest.mark.slow) for shape in [(3, 2), (2, 3)]]

Evaluate = Callable[[np.ndarray], np.ndarray]
"""From tables, one in each line, to their values: one for each table, or a line of them."""


@cache
def _tables(shape: tuple[int, ...], rows: int) -> np.ndarray:
    """All tables of this shape and total, as lines of a matrix in lexicographic order."""
    cells = math.prod(shape)
    bars = np.array(list(itertools.combinations(range(rows + cells - 1), cells - 1)), dtype=np.int64)
    edges = np.pad(bars, ((0, 0), (1, 1)), constant_values=((0, 0), (-1, rows + cells - 1)))
    return np.diff(edges, axis=1) - 1


def _evaluate(score: Score, counts: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    if isinstance(score, ModelError):
        score = ModelError(score.expected * len(counts))
    return score.evaluate([Table(("p", "x"), table.reshape(shape)) for table in counts])


def _largest_changes(evaluate: Evaluate, shape: tuple[int, ...], rows: int, unit: Unit) -> np.ndarray:
    """Of each value, over all tables with so many rows and all their neighbours (one row more, for add-remove)."""
    before = _tables(shape, rows)
    values = evaluate(before)
    after = _tables(shape, rows + 1) if unit == Unit.ADD_REMOVE else before
    moved = evaluate(after) if unit == Unit.ADD_REMOVE else values
    # A table is a number whose digits are its counts, and a neighbour's differs in one or two digits.
    digits = (rows + 2) ** np.arange(before.shape[1] - 1, -1, -1)
    numbers = after @ digits
    found = []
    for start, step in _steps(before, digits, unit):
        wanted = before[start] @ digits + step
        at = np.searchsorted(numbers, wanted)
        assert (numbers[at] == wanted).all()
        found.append(np.abs(moved[at] - values[start]).max(axis=0))
    return np.asarray(np.max(found, axis=0))


def _steps(tables: np.ndarray, digits: np.ndarray, unit: Unit) -> Iterator[tuple[np.ndarray, int]]:
    """Which tables have a neighbour of each kind, and by how much its number is larger."""
    for i, more in enumerate(digits):
        if unit == Unit.ADD_REMOVE:
            yield np.full(len(tables), True), more
        else:
            yield from ((tables[:, j] > 0, more - less) for j, less in enumerate(digits) if j != i)


def _largest_change(score: Score, shape: tuple[int, int], rows: int, unit: Unit) -> float:
    return float(_largest_changes(lambda counts: _evaluate(score, counts, shape), shape, rows, unit))


def _models(shape: tuple[int, int]) -> ModelError:
    return ModelError((np.linspace(0.3, 2.9, shape[0] * shape[1]).reshape(shape),))


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize(("shape", "most"), [*SHAPES.items(), *LARGER], ids=str)
@pytest.mark.parametrize("name", ["information", "maximum", "independence", "model"])
def test_no_row_moves_a_score_by_more_than_its_sensitivity(
    name: str, shape: tuple[int, int], most: int, unit: Unit
) -> None:
    scores: dict[str, Score] = {
        "information": MutualInformation(),
        "maximum": MaximumDistance(),
        "independence": IndependenceDistance(),
        "model": _models(shape),
    }
    score = scores[name]
    if (name == "information" and unit == Unit.ADD_REMOVE) or (name == "maximum" and shape[1] != 2):
        with pytest.raises(MechanismError):
            score.sensitivity([shape], unit, 5)
        return
    closest = 0.0
    for rows in range(2, most + 1):
        stated = float(score.sensitivity([shape], unit, rows))
        found = _largest_change(score, shape, rows, unit)
        assert found <= stated, (rows, found, stated)
        closest = max(closest, found / stated)
        # Nor are the bounds slack: this is how near tables of so few rows come, and no nearer.
        if name == "maximum":
            assert found == stated, rows  # odd and even
        if name == "independence":
            assert found == pytest.approx(float(_attain(shape, rows, unit)), rel=1e-12), rows
    assert closest > 0.99 or name == "independence"


WIDE = {
    2: Fraction(1),
    3: Fraction(4, 3),
    4: Fraction(7, 4),
    5: Fraction(9, 5),
    6: Fraction(2),
    7: Fraction(2),
}
"""How far replacing one of so many rows moves n·R of a 3×3 table at most; it needs many rows to come near 3."""


def _attain(shape: tuple[int, int], rows: int, unit: Unit) -> Fraction:
    """The most that a row moves n·R: 2 less 2/(n+1) or 2/n, so at most 1/21 and 1/20 of the bound are missing."""
    if unit == Unit.ADD_REMOVE:
        return Fraction(2 * rows, rows + 1)
    return Fraction(2 * (rows - 1), rows) if 2 in shape else WIDE[rows]


def _compare(
    score: Score,
    shapes: Sequence[tuple[int, ...]],
    project: Callable[[np.ndarray], list[Table]],
    shape: tuple[int, ...],
    rows: int,
    unit: Unit,
) -> tuple[np.ndarray, float]:
    """How far a unit moves each value of a score of several candidates at most, and how far it is stated to."""
    found = _largest_changes(
        lambda counts: np.array([score.evaluate(project(table)) for table in counts]), shape, rows, unit
    )
    return found, float(score.sensitivity(shapes, unit, rows))


CANDIDATES: list[tuple[str, ...]] = [(), ("p",), ("x",), ("p", "x")]
"""What a search chooses from: nothing, whose table is the number of rows, and sets of attributes."""


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize(("shape", "most"), [((2, 2), 12), ((3, 2), 7), ((2, 3), 7)], ids=str)
@pytest.mark.parametrize("scale", [0.0, 0.1, 1.0, 1e6 / 7])
def test_no_row_moves_the_error_of_any_candidate_of_a_search_by_more(
    scale: float, shape: tuple[int, int], most: int, unit: Unit
) -> None:
    """Also of the empty set, and with handicaps: those are amounts that no float has exactly, some below 0."""
    sizes = dict(zip("px", shape, strict=True))
    shapes = [tuple(sizes[name] for name in axes) for axes in CANDIDATES]
    expected = tuple(scale * np.linspace(0.3, 2.9, math.prod(each)).reshape(each) for each in shapes)
    handicaps = (0.0, 1 / 3, 1e6 + 0.1, -0.7)
    score = ModelError(expected, handicaps=handicaps)
    tables = _project(_tables(shape, 3)[5], shape)
    assert ModelError(expected).evaluate(tables) - score.evaluate(tables) == pytest.approx(
        handicaps, abs=2.0**-16
    )
    closest = np.zeros(len(CANDIDATES))
    for rows in range(1, most + 1):
        found, stated = _compare(score, shapes, partial(_project, shape=shape), shape, rows, unit)
        assert (found <= stated).all(), (rows, found, stated)
        closest = np.maximum(closest, found / stated)
    if unit == Unit.ADD_REMOVE:
        assert closest.tolist() == [1.0] * 4
    else:  # rows keep their number; both cells of a replaced one count only where the model lies between tables
        assert closest[0] == 0.0
        assert scale != 1.0 or closest[1:].tolist() == [1.0] * 3


def _project(table: np.ndarray, shape: tuple[int, int]) -> list[Table]:
    whole = Table(("p", "x"), table.reshape(shape))
    return [whole.project(axes) for axes in CANDIDATES]


PAIRS = [("a", "b"), ("a", "c"), ("b", "c")]


def _list_pairs(table: np.ndarray, shape: tuple[int, ...]) -> list[Table]:
    whole = Table(("a", "b", "c"), table.reshape(shape))
    return [whole.project(pair) for pair in PAIRS]


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize(("shape", "most"), [((2, 2, 2), 6), ((3, 2, 2), 4), ((3, 3, 2), 3)], ids=str)
@pytest.mark.parametrize("links", [1, 2])
@pytest.mark.parametrize("handicaps", [(0.0, 0.0, 0.0), (0.1, 1 / 3, -0.7)], ids=str)
def test_no_row_moves_the_gain_of_a_tree_by_more(
    handicaps: tuple[float, ...], links: int, shape: tuple[int, ...], most: int, unit: Unit
) -> None:
    """Neither that it is worth it nor that it is not; of one link, and of a tree of all attributes."""
    score = TreeGain(handicaps, links, 0.1)
    shapes = [(shape["abc".index(one)], shape["abc".index(other)]) for one, other in PAIRS]
    closest = 0.0
    for rows in range(1, most + 1):
        found, stated = _compare(score, shapes, partial(_list_pairs, shape=shape), shape, rows, unit)
        assert (found <= stated).all() and found[0] == found[1], (rows, found, stated)
        closest = max(closest, found[0] / stated)
    # Nor is the bound slack: a row moves n·R of two levels by 2 less 2/n, and this is as near as so few rows come.
    assert closest > (0.7 if shape == (2, 2, 2) else 0.4)


def test_the_gain_of_a_tree_comes_near_its_sensitivity_with_more_rows() -> None:
    """One row in otherwise empty cells, in all pairs of two levels."""
    score = TreeGain((0.0,) * 3, 2, 0.0)
    rows = np.zeros((2, 2, 2, 2), dtype=np.int64)
    rows[0, 1, 1, 1], rows[1, 1, 1, 1], rows[1, 0, 0, 0] = 1000, 999, 1
    before, after = (score.evaluate(_list_pairs(table, (2, 2, 2)))[0] for table in rows)
    assert 0.99 < after - before < float(score.sensitivity([(2, 2)] * 3, Unit.REPLACE_ONE))


@given(st.integers(2, 5), st.integers(1, 4), st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=60)
def test_the_gain_is_that_of_the_best_of_all_trees(attributes: int, links: int, seed: int) -> None:
    """Every set of at most so many pairs that closes no cycle is tried."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 4, attributes)
    codes = rng.integers(0, sizes, (30, attributes)) // rng.integers(1, 3, attributes)
    names = "abcde"[:attributes]
    pairs = list(itertools.combinations(range(attributes), 2))
    tables = []
    for one, other in pairs:
        counts = np.zeros((sizes[one], sizes[other]), dtype=np.int64)
        np.add.at(counts, (codes[:, one], codes[:, other]), 1)
        tables.append(Table((names[one], names[other]), counts))
    handicaps = tuple(rng.uniform(-1, 6, len(pairs)).tolist())
    moved = [2 if 2 in table.values.shape else 3 for table in tables]
    gains = (IndependenceDistance().evaluate(tables) - handicaps) / moved
    best = 0.0
    for count in range(1, links + 1):
        for chosen in itertools.combinations(range(len(pairs)), count):
            label = list(range(attributes))
            for i in chosen:
                one, other = (label[end] for end in pairs[i])
                label = [one if found == other else found for found in label]
            if len(set(label)) == attributes - count:
                best = max(best, float(gains[list(chosen)].sum()))
    found = TreeGain(handicaps, links, 0.25).evaluate(tables)
    assert found == pytest.approx([best / links - 0.25, 0.25 - best / links], abs=1e-9)


def test_a_tree_without_sense_is_refused() -> None:
    for links, threshold in ((0, 0.0), (1, math.nan), (1, 2.0**32)):
        with pytest.raises(MechanismError, match="gain of the best tree"):
            TreeGain((0.0,), links, threshold)
    with pytest.raises(MechanismError, match="handicaps"):
        TreeGain((0.0,), 1, 0.0).sensitivity([(2, 2), (2, 2)], Unit.REPLACE_ONE)
    with pytest.raises(MechanismError, match="parent"):
        TreeGain((0.0,), 1, 0.0).sensitivity([(2,)], Unit.REPLACE_ONE)
    assert TreeGain((0.0,), 1, 0.0).digest != TreeGain((0.0,), 1, 0.5).digest


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
