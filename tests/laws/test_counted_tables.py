"""Tables that follow from others take no pass, are equal to counted ones, and are known without any rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import discreet as dc
from discreet.entrance import open_airlock, open_counter
from discreet.learning.planned import planned
from discreet.learning.rehearsal import Rehearsal
from discreet.rows.engines.coded import CodedCounter
from discreet.values import table as tables_module
from discreet.values.budget import PureDP
from discreet.values.table import CountedTables, Table

SIZES = {"a": 2, "b": 3, "c": 2, "d": 4}
JOINT = Table(tuple(SIZES), np.arange(48, dtype=np.int64).reshape(2, 3, 2, 4))
SETS = st.lists(
    st.permutations(list(SIZES)).flatmap(lambda names: st.integers(0, 4).map(lambda n: tuple(names[:n])))
)


@given(st.lists(SETS, max_size=5), st.sampled_from([0, 10, 30, 2**22]))
def test_remembered_tables_are_those_that_would_be_counted(
    requests: list[list[tuple[str, ...]]], most: int
) -> None:
    """Whatever is asked in which order, and however little may be remembered; and the sets alone tell what is new."""
    asked: list[list[tuple[str, ...]]] = []

    def count(sets: list[tuple[str, ...]]) -> list[Table]:
        asked.append(sets)
        return [JOINT.project(members) for members in sets]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables_module, "MOST_REMEMBERED", most)
        tables, sets = CountedTables(SIZES), CountedTables(SIZES)
        for request in requests:
            new = sets.find_new(request)
            sets.add(new)
            passes = len(asked)
            found = tables.count(request, count)
            assert asked[passes:] == ([new] if new else [])
            for members, table in zip(request, found, strict=True):
                assert table.axes == members
                np.testing.assert_array_equal(table.values, JOINT.project(members).values)


def test_a_plan_says_how_often_rows_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A release with a graph counts all of its tables in one pass; a search over few attributes in few."""
    asia = dc.examples.asia()
    passes = []
    honest = CodedCounter._count
    monkeypatch.setattr(
        CodedCounter, "_count", lambda counter, *given: (passes.append(given), honest(counter, *given))[1]
    )
    with open_airlock(asia.sample(300, rng=1).arrow(), asia.schema, budget=PureDP(1), memory=16) as airlock:
        planned(airlock, asia.dag, spend=1)
    rehearsal = Rehearsal(asia.schema, "add-remove", PureDP(1), 300)
    planned(rehearsal, asia.dag, spend=1)
    assert len(passes) == len(rehearsal.passes) == 1
    made = dc.plan(asia.schema, asia.dag, epsilon=1, rows=300)
    assert "would be read once to be checked, and in one pass to count" in str(made)
    assert made.to_json()["passes"] == 1
    searched = dc.plan(asia.schema, rho="1/8", rows=10_000)
    assert 1 <= searched.passes < len(searched.choices)


def test_rows_that_are_held_are_counted_as_they_are() -> None:
    """Nothing is remembered of rows in memory, which are counted faster than a set is looked for among thousands."""
    asia = dc.examples.asia()
    counter = open_counter(asia.sample(300, rng=1).arrow(), asia.schema)
    assert isinstance(counter, CodedCounter) and counter.in_memory
    (pair,), (single,) = counter.count([asia.schema.names[:2]]), counter.count([asia.schema.names[:1]])
    np.testing.assert_array_equal(pair.values.sum(axis=1), single.values)
