"""Levels in groups: what a group may hold, tables with their levels put together, and networks with them undone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import discreet as dc
from discreet.compute.grouping import RARE, Grouping, find_groups
from discreet.networks.intervals.grouped import put_together
from discreet.values.errors import SchemaError
from discreet.values.schema.encoding import Encoding
from discreet.values.table import Table

counts = st.lists(st.floats(0, 1000), min_size=3, max_size=30).filter(lambda found: sum(found) > 0)


@given(counts, st.integers(0, 2), st.booleans(), st.floats(2, 20))
def test_a_group_holds_an_even_share_or_one_level(
    held: list[float], special: int, ordered: bool, most: float
) -> None:
    rows = np.array(held)
    values = len(held) - special
    groups = np.array(find_groups(rows, values, ordered, most))
    assert set(groups) == set(range(groups.max() + 1))
    full = rows.sum() / most
    for group in range(groups.max() + 1):
        members = np.flatnonzero(groups == group)
        assert len(members) == 1 or rows[members].sum() <= full * (1 + 1e-9)
        assert len(members) == 1 or members.max() < values  # missing and other values stay alone
        if ordered:
            assert np.ptp(members) == len(members) - 1  # neighbours
        elif len(members) > 1:
            assert rows[members].max() < RARE * full  # a name that is frequent stays alone


def test_as_few_groups_as_can_be() -> None:
    """Two neighbouring groups never fit into one; else noise would be bought for nothing."""
    rows = np.array([5.0, 5, 1, 1, 1, 90, 2, 2, 2, 2])
    groups = np.array(find_groups(rows, 10, True, 10))
    sums = np.bincount(groups, rows)
    assert (sums[1:] + sums[:-1] > rows.sum() / 10).all()
    assert groups.max() + 1 == 4


def _group_two() -> Grouping:
    schema = dc.Schema.of({"a": range(6), "b": ["x", "y"], "c": range(4)})
    return Grouping(
        Encoding.merge(schema, {"a": [0, 0, 1, 1, 1, 2], "c": [0, 1, 1, 0]}),
        {"a": np.full(6, 1 / 6), "c": np.full(4, 1 / 4)},
    )


def test_a_merged_table_sums_its_cells_and_their_variance() -> None:
    grouping, draw = _group_two(), np.random.default_rng(1)
    table = Table(("c", "b", "a"), draw.normal(size=(4, 2, 6)))
    merged, variance = grouping.merge_noisy(table, 7.0)
    assert merged.axes == ("c_groups", "b", "a_groups") and merged.values.shape == (2, 2, 3)
    for c, b, a in np.ndindex(2, 2, 3):
        cells = [
            table.values[k, b, i]
            for k in np.flatnonzero(np.array([0, 1, 1, 0]) == c)
            for i in np.flatnonzero(np.array([0, 0, 1, 1, 1, 2]) == a)
        ]
        assert merged.values[c, b, a] == pytest.approx(sum(cells))
    assert variance * merged.cells == pytest.approx(7.0 * table.cells)  # the sum over all cells stays
    alone = Table(("b",), np.ones(2))
    assert grouping.merge(alone) is alone


def test_a_network_of_groups_spreads_them_by_the_margins() -> None:
    """P(a, b, c) = P(groups of a, b, groups of c)·P(a | its group)·P(c | its group)."""
    grouping, draw = _group_two(), np.random.default_rng(2)
    assert grouping.sizes == {"a_groups": 3, "b": 2, "c_groups": 2}
    joint = draw.random((3, 2, 2))
    joint /= joint.sum()
    dag = dc.DAG.build({"a_groups": [], "b": ["a_groups"], "c_groups": ["a_groups", "b"]})
    cpts = (
        Table(("a_groups",), joint.sum(axis=(1, 2))),
        Table(("a_groups", "b"), joint.sum(axis=2) / joint.sum(axis=(1, 2))[:, None]),
        Table(("a_groups", "b", "c_groups"), joint / joint.sum(axis=2, keepdims=True)),
    )
    margins = {"a": draw.random(6), "c": draw.random(4)}
    network = dc.Network(*grouping.complete(dag, cpts, margins))
    found = network.engine.joint(("a", "b", "c"), {}).arrange(("a", "b", "c")).values
    codes = {"a": np.array([0, 0, 1, 1, 1, 2]), "c": np.array([0, 1, 1, 0])}
    share = {name: margins[name] / np.bincount(codes[name], margins[name])[codes[name]] for name in codes}
    for a, b, c in np.ndindex(6, 2, 4):
        expected = joint[codes["a"][a], b, codes["c"][c]] * share["a"][a] * share["c"][c]
        assert found[a, b, c] == pytest.approx(expected)


@given(st.sets(st.integers(0, 5)), st.integers(0, 1))
def test_a_question_is_put_to_groups_only_if_it_tells_none_of_their_levels_apart(
    chosen: set[int], level: int
) -> None:
    encoding = _group_two().encoding
    derived = encoding.find("a_groups")
    assert derived is not None
    groups = np.array(derived.codes)
    function = np.eye(2)[None, :, level]
    targets, functions, evidence = put_together(derived, ("b",), function, {"a": sorted(chosen)})
    whole = {int(group) for group in groups if set(np.flatnonzero(groups == group)) <= chosen}
    if chosen == {int(i) for i in np.flatnonzero(np.isin(groups, sorted(whole)))}:
        assert evidence == {"a_groups": sorted(whole)}
    else:
        assert evidence == {"a": sorted(chosen)}
    assert targets == ("b",) and functions is function
    weights = np.isin(np.arange(6), sorted(chosen)).astype(float)
    asked, lifted, _ = put_together(derived, ("a",), weights[None], {})
    if asked == ("a_groups",):
        assert np.array_equal(lifted[0][groups], weights)
    else:
        assert asked == ("a",) and np.array_equal(lifted[0], weights)


@pytest.mark.parametrize(
    "codes", [[0, 0, 1], [0, 0, 1, 1, 1, 3], [0, 0, 1, 1, 1, -1], "001112", [0.0] * 6, {0: 1}, 7, [True] * 6]
)
def test_groups_that_are_none_are_refused(codes: object) -> None:
    schema = dc.Schema.of({"a": range(6)})
    with pytest.raises(SchemaError, match="the groups of 'a' need a number for each of its 6 levels"):
        Encoding.merge(schema, {"a": codes})  # type: ignore[dict-item]


def test_names_of_groups_are_never_taken_already() -> None:
    schema = dc.Schema.of({"a": ["1 … 2", "1", "2", "3"], "a_groups": ["x", "y"]})
    encoding = Encoding.merge(schema, {"a": [0, 1, 1, 1]})
    (derived,) = encoding.derived
    assert derived.name == "a_groups_" and derived.attribute.levels == ("1 … 2", "1 and 2 more")
