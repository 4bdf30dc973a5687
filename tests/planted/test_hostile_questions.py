"""Questions that are built to cost less than they give away: each must be refused before anything is paid or told."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from discreet.core.airlock import Airlock
from discreet.core.scores import ModelError
from discreet.entrance import open_airlock, open_counter
from discreet.papers.estimators.ball_draw import calibrate_ball
from discreet.papers.estimators.sums import BoundedColumn
from discreet.papers.posterior.grid_draws import calibrate_sample
from discreet.papers.posterior.linear import MOST_MOVE, ProductStatistics
from discreet.values.budget import PureDP
from discreet.values.errors import AirlockError, DataError, MechanismError, SchemaError, TooLarge
from discreet.values.schema import Attribute, Schema
from discreet.values.schema.encoding import Derived, Encoding
from discreet.values.unit import ROW_UNITS, Unit

SCHEMA = Schema.of({"a": ["0", "1", "2"], "b": ["0", "1"]})
ROWS = {"a": ["0", "1", "1"], "b": ["0", "1", "0"]}


def open_simulation() -> Airlock:
    return open_airlock(ROWS, SCHEMA, budget="1")


@pytest.mark.parametrize("unit", ROW_UNITS)
def test_a_sensitivity_that_wraps_around_64_bits(unit: Unit) -> None:
    """2^13 cells that one row moves by 2^51 each add up to 2^64, which is 0 in 64 bits."""
    names = ("a", "b", "c")
    wide = np.full((2**13, 2), 2**17, dtype=np.int64)
    matrices = {"a": wide, "b": np.full((1, 2), 2**17), "c": np.full((1, 2), 2**17)}
    with pytest.raises(MechanismError, match="one row might move the statistics by"):
        ProductStatistics((names,), matrices).l1(unit)
    least = np.array([[np.iinfo(np.int64).min, 1]])  # whose absolute value is negative in 64 bits
    with pytest.raises(MechanismError, match="one row might move"):
        ProductStatistics((("a",),), {"a": least}).l1(unit)
    fine = ProductStatistics((("a",),), {"a": np.array([[MOST_MOVE // 2, 0]])})
    assert fine.l1(Unit.ADD_REMOVE) == MOST_MOVE // 2


def test_what_was_priced_cannot_be_changed_afterwards() -> None:
    matrix = np.array([[1, 0]])
    statistics = ProductStatistics((("b",),), {"b": matrix})
    matrix[:] = 2**40
    assert statistics.l1(Unit.ADD_REMOVE) == 1
    with pytest.raises(ValueError, match="read-only"):
        statistics.matrices["b"][:] = 5
    with pytest.raises(ValueError, match="read-only"):
        ModelError((np.zeros((3, 2)),)).expected[0][:] = 2.0**60


def test_bounds_that_an_origin_shifts_away() -> None:
    column = BoundedColumn("0*1", -1, 1, "1/1048576", origin=-2000)
    with pytest.raises(MechanismError, match="counted from the origin 0"):
        calibrate_ball([(0, 1)], [column], 1, PureDP(1), unit=Unit.ADD_REMOVE, precision=1.0, radius=1.0)


def test_a_draw_for_another_unit_than_its_nodes() -> None:
    drawn = calibrate_sample([("b",)], [np.ones(2)], PureDP(1), unit=Unit.ADD_REMOVE)
    with pytest.raises(MechanismError, match="'b' is drawn for add-remove, not replace-one"):
        replace(drawn, unit=Unit.REPLACE_ONE)


@pytest.mark.parametrize("codes", [(0, 1), (0, 1, 2), (0, 1, -1), (0, 1, 1, 1)])
def test_an_encoding_that_fails_only_for_rows_with_a_certain_level(codes: tuple[int, ...]) -> None:
    """Without a code for the third level, an error would tell whether anybody has it, and cost nothing."""
    spy = Derived(Attribute("spy", ("0", "1")), "a", codes)
    with pytest.raises(SchemaError, match="needs a code from 0 to 1 for each of the 3 levels of 'a'"):
        Encoding("hierarchical", SCHEMA, Schema((*SCHEMA, spy.attribute)), (spy,))


@pytest.mark.parametrize(
    ("view", "derived"),
    [
        (Schema.of({"a": ["0", "1"]}), ()),
        (Schema.of({"c": ["0", "1"]}), ()),
        (SCHEMA, (Derived(Attribute("spy", ("0", "1")), "c", (0, 1)),)),
    ],
    ids=["fewer levels", "from nowhere", "unknown source"],
)
def test_an_encoding_of_something_else(view: Schema, derived: tuple[Derived, ...]) -> None:
    with pytest.raises(SchemaError, match=r"neither declared nor derived|which is not declared"):
        Encoding("hierarchical", SCHEMA, view, derived)


@pytest.mark.parametrize(
    "take", [copy.copy, copy.deepcopy, lambda airlock: airlock.__getstate__()], ids=["copy", "deep", "state"]
)
def test_no_copy_takes_the_rows_out(take: Callable[[Airlock], object]) -> None:
    with pytest.raises(AirlockError, match="cannot be copied or pickled"):
        take(open_simulation())


def test_more_rows_than_scores_are_exact_for_are_refused_at_the_door() -> None:
    """A refusal after the debit would tell whether there are more."""
    heavy = {"a": ["0", "1"], "b": ["0", "1"], "n": [2**31, 1]}
    with pytest.raises(TooLarge, match="at most 2,147,483,647 are allowed"):
        open_counter(heavy, SCHEMA, weight="n")


def test_an_engine_that_takes_levels_for_one_another() -> None:
    """Under a collation that ignores case one row would be counted as x and as X: two cells for the price of one."""
    ibis = pytest.importorskip("ibis")
    engine = ibis.duckdb.connect()
    engine.raw_sql("CREATE TABLE t (a VARCHAR COLLATE NOCASE)")
    engine.raw_sql("INSERT INTO t VALUES ('x'), ('y'), ('y')")
    schema = Schema((Attribute("a", ("x", "X", "y", *(f"level {i}" for i in range(70)))),))
    with pytest.raises(DataError, match="takes two levels for the same text"):
        open_counter(engine.table("t"), schema)
