"""Tables: the algebra that everything else is made of, against plain loops over cells."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.values.errors import TableError, TooLarge
from discreet.values.table import MAX_CELLS, Table, count_cells, require_cells

SIZES = {"a": 2, "b": 3, "c": 1, "d": 4}


@st.composite
def tables(draw: st.DrawFn, integers: bool = True) -> Table:
    """A table over some of four attributes, in any order; whole numbers, so that sums are exact."""
    axes = tuple(draw(st.lists(st.sampled_from(sorted(SIZES)), unique=True)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = [SIZES[name] for name in axes]
    return Table(axes, rng.integers(-9, 10, shape) if integers else rng.random(shape))


def cell(table: Table, at: dict[str, int]) -> float:
    """The value where each attribute has the given code."""
    return float(table.values[tuple(at[name] for name in table.axes)])


def everywhere() -> list[dict[str, int]]:
    return [dict(zip(SIZES, codes, strict=True)) for codes in product(*map(range, SIZES.values()))]


@settings(deadline=None, max_examples=100)
@given(tables(), tables(), tables())
def test_multiplication_is_cellwise_commutative_and_associative(a: Table, b: Table, c: Table) -> None:
    both = a.multiply(b)
    assert set(both.axes) == {*a.axes, *b.axes}
    for at in everywhere():
        assert cell(both, at) == cell(a, at) * cell(b, at)
    assert both.close_to(b.multiply(a), 0)
    assert both.multiply(c).close_to(a.multiply(b.multiply(c)), 0)
    assert a.multiply(Table((), np.array(1))).close_to(a, 0)


@settings(deadline=None, max_examples=100)
@given(tables(), st.data())
def test_projection_sums_and_is_transitive(table: Table, data: st.DataObject) -> None:
    kept = data.draw(st.permutations(table.axes))[: data.draw(st.integers(0, len(table.axes)))]
    fewer = kept[: data.draw(st.integers(0, len(kept)))]
    projected = table.project(kept)
    assert projected.axes == tuple(kept)
    sums: dict[tuple[int, ...], int] = {}
    peaks: dict[tuple[int, ...], int] = {}
    for codes in np.ndindex(*table.values.shape):
        at = dict(zip(table.axes, codes, strict=True))
        key = tuple(at[name] for name in kept)
        sums[key] = sums.get(key, 0) + int(table.values[codes])
        peaks[key] = max(peaks.get(key, -10), int(table.values[codes]))
    assert {codes: int(value) for codes, value in np.ndenumerate(projected.values)} == sums
    assert {codes: int(value) for codes, value in np.ndenumerate(table.maximise(kept).values)} == peaks
    assert projected.project(fewer).close_to(table.project(fewer), 0)
    assert projected.total() == table.total()


@settings(deadline=None, max_examples=100)
@given(tables(), tables())
def test_what_a_factor_does_not_mention_may_be_summed_out_first(a: Table, b: Table) -> None:
    """Σ_x f(x, …)·g(…) = (Σ_x f)·g, the law that elimination rests on."""
    alone = [name for name in a.axes if name not in b.axes]
    rest = [name for name in a.axes if name in b.axes]
    product_first = a.multiply(b).project([name for name in a.multiply(b).axes if name not in alone])
    assert product_first.close_to(a.project(rest).multiply(b), 0)


@settings(deadline=None, max_examples=100)
@given(tables(), st.data())
def test_selection_and_arrangement(table: Table, data: st.DataObject) -> None:
    levels = {name: data.draw(st.integers(0, size - 1)) for name, size in SIZES.items()}
    chosen = {name: levels[name] for name in data.draw(st.lists(st.sampled_from(sorted(SIZES)), unique=True))}
    part = table.select(chosen)
    assert part.axes == tuple(name for name in table.axes if name not in chosen)
    for at in everywhere():
        assert cell(part, at) == cell(table, {**at, **chosen})
    order = data.draw(st.permutations(table.axes))
    assert table.arrange(order).axes == tuple(order)
    assert table.arrange(order).close_to(table, 0)
    spread = table.spread(sorted(SIZES))
    for at in everywhere():
        index = tuple(at[name] if name in table.axes else 0 for name in sorted(SIZES))
        assert float(spread[index]) == cell(table, at)


@settings(deadline=None, max_examples=60)
@given(tables(integers=False))
def test_normalising(table: Table) -> None:
    assert table.normalise().total() == pytest.approx(1)
    for child in table.axes:
        rows = table.normalise(child)
        others = [name for name in table.axes if name != child]
        np.testing.assert_allclose(rows.project(others).values, 1.0)
        again = rows.multiply(table.project(others))
        assert again.close_to(table, 1e-12)


def test_a_row_of_zeros_becomes_uniform_and_its_neighbour_does_not() -> None:
    rows = Table(("a", "b"), np.array([[0, 0, 0, 0], [1, 0, 3, 0]])).normalise("b")
    np.testing.assert_array_equal(rows.values, [[0.25] * 4, [0.25, 0, 0.75, 0]])
    np.testing.assert_array_equal(Table(("a",), np.zeros(5)).normalise().values, [0.2] * 5)


@settings(deadline=None, max_examples=60)
@given(tables(integers=False), tables(integers=False))
def test_closeness(a: Table, b: Table) -> None:
    assert a.close_to(a.arrange(a.axes[::-1]), 0)
    assert a.close_to(b) == b.close_to(a)
    if set(a.axes) != set(b.axes):
        assert not a.close_to(b, 1e9)
    near = Table(a.axes, a.values + 1e-9)
    assert near.close_to(a, 1e-8)
    assert not near.close_to(a, 1e-10)


def test_a_table_cannot_be_written_to() -> None:
    values = np.zeros((2, 2))
    table = Table(("a", "b"), values)
    with pytest.raises(ValueError, match="read-only"):
        table.values[0, 0] = 1
    assert values.flags.writeable  # the caller's own array stays the caller's
    assert table.sizes == {"a": 2, "b": 2}
    assert table.cells == 4


def test_refusals_name_the_axes() -> None:
    table = Table(("a", "b"), np.zeros((2, 3)))
    with pytest.raises(TableError, match=r"axes \('a', 'a'\) name an attribute twice"):
        Table(("a", "a"), np.zeros((2, 2)))
    with pytest.raises(TableError, match=r"axes \('a',\) need 1 dimensions, not 2"):
        Table(("a",), np.zeros((2, 2)))
    with pytest.raises(TableError, match=r"cannot project a table over \('a', 'b'\) on 'c'"):
        table.project(["a", "c"])
    with pytest.raises(TableError, match=r"cannot arrange a table over \('a', 'b'\) as \('a',\)"):
        table.arrange(["a"])
    with pytest.raises(TableError, match=r"cannot arrange"):
        table.arrange(["a", "a"])
    with pytest.raises(TableError, match=r"over \('a', 'b'\).*'c'"):
        table.maximise(["c"])
    with pytest.raises(TableError, match=r"over \('a', 'b'\).*'c'"):
        table.normalise("c")
    with pytest.raises(TableError, match="'b' has 3 levels in one table, 4 in another"):
        table.multiply(Table(("b",), np.zeros(4)))


def test_a_product_that_would_not_fit_is_refused_before_it_is_made() -> None:
    wide = [Table((f"x{i}",), np.ones(1024)) for i in range(3)]
    pair = wide[0].multiply(wide[1])
    with pytest.raises(TooLarge, match=r"1,073,741,824 cells; at most 268,435,456 are allowed"):
        pair.multiply(wide[2])
    assert count_cells([2**40, 2**40]) == 2**80
    assert count_cells([]) == 1
    assert require_cells("a table", [4, 4], limit=16) == 16
    with pytest.raises(TooLarge, match="a table would have 16 cells; at most 15 are allowed"):
        require_cells("a table", [4, 4], limit=15)
    assert MAX_CELLS == 2**28
