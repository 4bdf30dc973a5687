"""The residual basis and what one row does to its coefficients, against brute force over all rows."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet.papers.posterior.linear as linear
from discreet.papers.posterior.basis import (
    bound_cells,
    close_downward,
    count_coefficients,
    make_basis,
    make_inverse,
    reconstruct,
)
from discreet.papers.posterior.linear import Coefficients, LinearStatistics, ProductStatistics
from discreet.values.budget import PureDP
from discreet.values.errors import FormatError, MechanismError, TableError
from discreet.values.measurement import DiscreteLaplace
from discreet.values.table import Table
from discreet.values.unit import ROW_UNITS, Unit

NAMES = ("a", "b", "c", "d")


@st.composite
def families(draw: st.DrawFn) -> tuple[dict[str, int], tuple[tuple[str, ...], ...]]:
    """A few attributes of two to four levels, and a family for each: some earlier ones and itself."""
    names = NAMES[: draw(st.integers(1, 4))]
    sizes = {name: draw(st.integers(2, 4)) for name in names}
    found = []
    for i, name in enumerate(names):
        parents = draw(st.lists(st.sampled_from(names[:i]), unique=True)) if i else []
        found.append((*parents, name))
    return sizes, tuple(found)


def transform(table: Table) -> Table:
    """The coefficients of a table's highest order: the basis of each attribute applied along its axis."""
    values = table.values
    for axis, size in enumerate(table.values.shape):
        values = np.moveaxis(np.tensordot(make_basis(size), values, axes=(1, axis)), 0, axis)
    return Table(table.axes, np.asarray(values))


def statistics(sizes: dict[str, int], sets: tuple[tuple[str, ...], ...]) -> ProductStatistics:
    return ProductStatistics(sets, {name: make_basis(size) for name, size in sizes.items()})


def contributions(found: ProductStatistics, sizes: dict[str, int]) -> dict[tuple[int, ...], np.ndarray]:
    """What every possible row adds to all coefficients, by counting the table that holds this row only."""
    rows = {}
    for row in itertools.product(*(range(size) for size in sizes.values())):
        counts = np.zeros(tuple(sizes.values()), dtype=np.int64)
        counts[row] = 1
        joint = Table(tuple(sizes), counts)
        blocks = found.evaluate([joint.project(members) for members in found.maximal])
        rows[row] = np.concatenate([block.values.ravel() for block in blocks])
    return rows


@pytest.mark.parametrize("levels", range(2, 12))
def test_the_basis_is_orthogonal_integer_and_equally_heavy_in_every_column(levels: int) -> None:
    basis = make_basis(levels)
    assert basis.dtype == np.int64
    assert not basis.sum(axis=1).any()
    squares = basis @ basis.T
    assert np.array_equal(squares, np.diag(np.diag(squares)))
    assert np.array_equal(np.abs(basis).sum(axis=0), np.full(levels, levels - 1))
    assert np.allclose(basis @ make_inverse(levels), np.eye(levels - 1))


def test_on_two_levels_it_is_the_basis_of_the_paper() -> None:
    """[002]: f^γ has the entries (−1)^⟨γ, x⟩·2^(−|I|/2); ours are the same without the factor."""
    rng = np.random.default_rng(2)
    counts = rng.integers(0, 50, size=(2, 2, 2))
    for members in close_downward([NAMES[:3]]):
        gamma = [int(name in members) for name in NAMES[:3]]
        signs = np.array([(-1) ** np.dot(gamma, x) for x in itertools.product((0, 1), repeat=3)])
        printed = signs @ counts.ravel() * 2 ** (-3 / 2)
        ours = transform(Table(NAMES[:3], counts).project(members)).values.item()
        assert ours * 2 ** (-3 / 2) == pytest.approx(printed)


@settings(deadline=None, max_examples=60)
@given(families(), st.integers(0, 2**32 - 1))
def test_tables_come_back_from_their_coefficients(
    found: tuple[dict[str, int], tuple[tuple[str, ...], ...]], seed: int
) -> None:
    """[002, Thm. 2], for any number of levels."""
    sizes, sets = found
    joint = Table(tuple(sizes), np.random.default_rng(seed).integers(0, 99, size=tuple(sizes.values())))
    exact = [transform(joint.project(members)) for members in close_downward(sets)]
    for family, table in zip(sets, reconstruct(exact, sets, sizes), strict=True):
        assert table.close_to(joint.project(family), 1e-9)


@settings(deadline=None, max_examples=60)
@given(families(), st.integers(0, 2**32 - 1))
def test_tables_of_noisy_coefficients_agree_on_every_margin(
    found: tuple[dict[str, int], tuple[tuple[str, ...], ...]], seed: int
) -> None:
    sizes, sets = found
    rng = np.random.default_rng(seed)
    blocks = [
        Table(members, rng.integers(-9999, 9999, size=[sizes[name] - 1 for name in members]))
        for members in close_downward(sets)
    ]
    tables = reconstruct(blocks, sets, sizes)
    for one, other in itertools.combinations(tables, 2):
        common = [name for name in one.axes if name in other.axes]
        assert one.project(common).close_to(other.project(common), 1e-9)


@settings(deadline=None, max_examples=80)
@given(families(), st.booleans())
def test_the_sensitivity_is_exact_in_both_units(
    found: tuple[dict[str, int], tuple[tuple[str, ...], ...]], whole: bool
) -> None:
    """Brute force over all rows and all pairs of rows equals what elimination finds."""
    sizes, sets = found
    asked = statistics(sizes, close_downward(sets) if whole else sets)
    rows = list(contributions(asked, sizes).values())
    assert asked.l1(Unit.ADD_REMOVE) == max(int(np.abs(row).sum()) for row in rows)
    apart = max((int(np.abs(x - y).sum()) for x, y in itertools.combinations(rows, 2)), default=0)
    assert asked.l1(Unit.REPLACE_ONE) == apart
    if whole:
        assert asked.l1(Unit.ADD_REMOVE) == count_coefficients(asked.sets, sizes)
        assert apart <= 2 * count_coefficients(asked.sets, sizes)


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_the_sensitivity_is_exact_for_any_integer_matrices(data: st.DataObject) -> None:
    sizes = {name: data.draw(st.integers(2, 3)) for name in NAMES[:3]}
    entries = st.integers(-5, 5)
    matrices = {
        name: np.array(
            data.draw(st.lists(st.lists(entries, min_size=size, max_size=size), min_size=1, max_size=3))
        )
        for name, size in sizes.items()
    }
    asked = ProductStatistics(((), ("a",), ("a", "b"), ("b", "c")), matrices)
    rows = list(contributions(asked, sizes).values())
    assert asked.l1(Unit.ADD_REMOVE) == max(int(np.abs(row).sum()) for row in rows)
    assert asked.l1(Unit.REPLACE_ONE) == max(int(np.abs(x - y).sum()) for x in rows for y in rows)


def test_a_search_that_would_be_too_large_charges_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {"a": 2, "b": 3, "c": 2}
    asked = statistics(sizes, close_downward([("a", "b", "c")]))
    exact = [asked.l1(unit) for unit in ROW_UNITS]
    monkeypatch.setattr(linear, "MOST_STATES", 4)
    coarse = [asked.l1(unit) for unit in ROW_UNITS]
    assert coarse == [12, 22] and all(wide >= narrow for wide, narrow in zip(coarse, exact, strict=True))
    assert coarse != exact


def test_naive_bayes_costs_less_than_printed() -> None:
    """[002]: |N_I| = 2d + 2, so 2|N_I| = 4d + 4; the worst pair of rows moves 2d coefficients by 2."""
    sizes = {"y": 2, **{f"x{i}": 2 for i in range(16)}}
    closure = close_downward([("y",), *(("y", f"x{i}") for i in range(16))])
    assert len(closure) == count_coefficients(closure, sizes) == 34
    assert statistics(sizes, closure).l1(Unit.ADD_REMOVE) == 34
    assert statistics(sizes, closure).l1(Unit.REPLACE_ONE) == 64


def test_a_complete_graph_costs_half_of_what_is_printed() -> None:
    """[002, Cor. 2] All 2^d subsets: any two rows differ in half of the characters, by 2 each."""
    sizes = dict.fromkeys("abcd", 2)
    closure = close_downward([tuple("abcd")])
    assert statistics(sizes, closure).l1(Unit.REPLACE_ONE) == len(closure) == 16  # 2|N_I| is 32


def test_the_scale_is_the_sensitivity_over_epsilon() -> None:
    asked = statistics({"a": 2, "b": 2}, close_downward([("a", "b")]))
    sizes = {"a": 2, "b": 2}
    half = LinearStatistics.price(asked, PureDP("1/2"), unit=Unit.ADD_REMOVE, sizes=sizes)
    assert half.mechanism.scale == 8.0
    stated = LinearStatistics.price(asked, PureDP(1), unit=Unit.REPLACE_ONE, sizes=sizes, sensitivity=8)
    assert stated.mechanism.scale == 8.0
    with pytest.raises(MechanismError, match=r"moves the statistics by 4 in L1, more than the stated 3"):
        LinearStatistics.price(asked, PureDP(1), unit=Unit.ADD_REMOVE, sizes=sizes, sensitivity=3)
    with pytest.raises(MechanismError, match=r"public already"):
        LinearStatistics.price(ProductStatistics(((),), {}), PureDP(1), unit=Unit.REPLACE_ONE, sizes={})


def test_a_raised_total_outweighs_coefficients_of_any_sign() -> None:
    """[002, Cor. 3] The weight that the stealth increment counts with is |N_I| on bits, and enough elsewhere."""
    for sizes in ({"a": 2, "b": 2}, {"a": 3, "b": 4}):
        closure = close_downward([("a", "b")])
        weight = bound_cells(closure, sizes)
        if set(sizes.values()) == {2}:
            assert weight == pytest.approx(len(closure))
        for signs in itertools.product((-1, 1), repeat=min(8, count_coefficients(closure, sizes))):
            flow = itertools.cycle(signs)
            blocks = []
            for members in closure:
                shape = [sizes[name] - 1 for name in members]
                values = np.array([next(flow) for _ in range(math.prod(shape))], dtype=float).reshape(shape)
                blocks.append(Table(members, values + (weight if not members else 0.0)))
            (table,) = reconstruct(blocks, [("a", "b")], sizes)
            assert table.values.min() >= -1e-9


def test_bad_requests_are_refused() -> None:
    bits = make_basis(2)
    for sets, matrices, why in [
        ((), {}, "empty"),
        ((("a",), ("a",)), {"a": bits}, "twice"),
        ((("a",),), {}, "integer matrix"),
        ((("a",),), {"a": np.ones((1, 2))}, "integer matrix"),
        ((("a",),), {"a": np.array([[2**30, 0]])}, "one row might move"),
    ]:
        with pytest.raises(MechanismError, match=why):
            ProductStatistics(sets, matrices)
    with pytest.raises(MechanismError, match="2 columns for 3 levels"):
        ProductStatistics((("a",),), {"a": bits}).require_sizes({"a": 3})
    with pytest.raises(TableError, match="at least 2 levels"):
        make_basis(1)
    with pytest.raises(TableError, match="missing"):
        reconstruct([Table((), np.array(3))], [("a",)], {"a": 2})


def test_coefficients_survive_json() -> None:
    blocks = (Table((), np.array(7)), Table(("a",), np.array([-3, 4])))
    found = Coefficients(blocks, DiscreteLaplace("5/2"), Unit.ADD_REMOVE, PureDP(1))
    back = Coefficients.from_json(found.to_json())
    assert back.law == found.law and back.unit == found.unit and back.cost == found.cost
    assert all(a.close_to(b, 0) for a, b in zip(back.blocks, blocks, strict=True))
    document = found.to_json()
    for broken in [{}, {**document, "blocks": []}, {**document, "blocks": [{"axes": []}]}]:
        with pytest.raises(FormatError):
            Coefficients.from_json(broken)
