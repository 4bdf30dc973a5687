"""People as units: what one person with k rows moves, by brute force, and that no more than k of their rows count."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from discreet import entrance
from discreet.core.mechanism import calibrate_counts
from discreet.core.scores import (
    IndependenceDistance,
    MaximumDistance,
    ModelError,
    MutualInformation,
    Score,
    TreeGain,
)
from discreet.entrance import open_airlock, open_counter, open_ledger
from discreet.learning.plan import plan
from discreet.learning.planned import planned
from discreet.learning.privbayes import privbayes
from discreet.papers.estimators.sums import BoundedColumn, Sums
from discreet.papers.parameters.subsample import Subsampling
from discreet.papers.posterior.grid_draws import calibrate_maximum, calibrate_sample
from discreet.papers.posterior.linear import ProductStatistics
from discreet.rows.people import choose_rows, hash_ids
from discreet.values.budget import ZCDP, PureDP
from discreet.values.errors import BudgetError, DataError, LedgerError, MechanismError, TooLarge
from discreet.values.graph import DAG
from discreet.values.schema import Schema
from discreet.values.schema.encoding import Encoding
from discreet.values.table import Table
from discreet.values.unit import Unit

KS = (1, 2, 3, 4)
SHAPES = [(2, 2), (3, 2), (2, 3)]


def person(k: int, average: bool = False) -> Unit:
    return Unit("add-remove", "id", k, average=average)


def additions(cells: int, k: int, grain: int = 0) -> np.ndarray:
    """Every way in which the at most k rows of one person fall into cells; with a grain, of weight grain/rows each."""
    found = [
        np.bincount(np.array(rows, dtype=np.int64), minlength=cells) * (grain // size if grain else 1)
        for size in range(1, k + 1)
        for rows in itertools.combinations_with_replacement(range(cells), size)
    ]
    return np.array(found)


def tables(cells: int, rows: int) -> Iterator[np.ndarray]:
    """Every table of counts with at most so many rows."""
    for total in range(rows + 1):
        for placed in itertools.combinations_with_replacement(range(cells), total):
            yield np.bincount(np.array(placed, dtype=np.int64), minlength=cells)


@pytest.mark.parametrize("k", KS)
def test_a_person_moves_a_table_of_counts_by_at_most_what_is_charged(k: int) -> None:
    """k in L1 and, with all rows in one cell, k in L2; both are attained."""
    added = additions(4, k)
    (laplace,) = calibrate_counts([("a",)], PureDP(1), unit=person(k))
    (gaussian,) = calibrate_counts([("a",)], ZCDP(1), unit=person(k), noise="gaussian")
    assert added.sum(axis=1).max() == laplace.l1 == k
    assert (added**2).sum(axis=1).max() == gaussian.l2_squared == k * k
    assert laplace.scale == pytest.approx(k)


@pytest.mark.parametrize("k", KS)
def test_an_averaged_person_moves_a_table_by_one_person(k: int) -> None:
    """However many rows they have: lcm(1, …, k) parts in L1, and in L2 if all fall into one cell."""
    unit = person(k, average=True)
    added = additions(4, k, unit.grain)
    (laplace,) = calibrate_counts([("a",)], PureDP(1), unit=unit)
    (gaussian,) = calibrate_counts([("a",)], ZCDP(1), unit=unit, noise="gaussian")
    assert (added.sum(axis=1) == unit.grain).all() and laplace.l1 == unit.grain
    assert (added**2).sum(axis=1).max() == gaussian.l2_squared == unit.grain**2
    assert laplace.scale == pytest.approx(unit.grain)  # in parts: as much noise as for one row


@pytest.mark.parametrize("average", [False, True], ids=["rows", "average"])
@pytest.mark.parametrize("k", KS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", ["F", "R", "model"])
def test_a_person_moves_a_score_by_at_most_its_sensitivity(
    name: str, shape: tuple[int, int], k: int, average: bool
) -> None:
    """Over all tables of up to 5 rows, or people, and all ways to add a person."""
    cells = shape[0] * shape[1]
    score: Score
    if name == "F":
        if shape[1] != 2:
            with pytest.raises(MechanismError):
                MaximumDistance().sensitivity([shape], person(k, average))
            return
        score = MaximumDistance()
    else:
        score = (
            IndependenceDistance() if name == "R" else ModelError((np.linspace(0, 3, cells).reshape(shape),))
        )
    unit = person(k, average)
    claimed = float(score.sensitivity([shape], unit))
    added, worst = additions(cells, k, unit.grain if average else 0), 0.0
    for whole in tables(cells, 5 if cells == 4 else 4):
        before = whole * unit.grain
        lines = [before, *(before + more for more in added)]
        many = score if name != "model" else ModelError(score.expected * len(lines))  # type: ignore[attr-defined]
        values = many.evaluate([Table(("p", "x"), line.reshape(shape)) for line in lines])
        worst = max(worst, float(np.abs(values[1:] - values[0]).max()))
    assert worst <= claimed + 1e-9
    assert worst >= claimed / 3  # it is not many times what is needed


@pytest.mark.parametrize("average", [False, True], ids=["rows", "average"])
@pytest.mark.parametrize("k", KS[:3])
def test_a_person_moves_the_gain_of_a_tree_by_at_most_its_sensitivity(k: int, average: bool) -> None:
    """Over all tables of up to 3 rows, or people, of three attributes, and all ways to add a person."""
    unit, pairs = person(k, average), list(itertools.combinations("abc", 2))
    score = TreeGain((0.0, 0.1, -0.2), 2, 0.3)
    claimed = float(score.sensitivity([(2, 2)] * 3, unit))

    def evaluate(counts: np.ndarray) -> float:
        whole = Table(("a", "b", "c"), counts.reshape(2, 2, 2))
        return float(score.evaluate([whole.project(pair) for pair in pairs])[0])

    added, worst = additions(8, k, unit.grain if average else 0), 0.0
    for whole in tables(8, 3):
        before = evaluate(whole * unit.grain)
        worst = max(worst, *(abs(evaluate(whole * unit.grain + more) - before) for more in added))
    assert claimed / 3 <= worst <= claimed


@pytest.mark.parametrize("k", KS)
def test_sums_and_linear_statistics_and_draws_know_people(k: int) -> None:
    column = BoundedColumn("x", -2, 5)
    steps = range(column.least, column.most + 1)
    worst = max(abs(sum(rows)) for rows in itertools.combinations_with_replacement(steps, k))
    assert column.sensitivity(person(k)) == worst == 5 * k
    statistics = ProductStatistics(
        (("a", "b"), ("a",)), {"a": np.array([[1, -1, 0]]), "b": np.array([[2, 1]])}
    )
    one = [
        abs(a * b) + abs(a) for a, b in itertools.product([1, -1, 0], [2, 1])
    ]  # the L1 of what one row adds to both blocks
    assert statistics.l1(person(k)) == k * max(one)
    for found in (
        calibrate_sample([("y",)], [np.ones(2)], PureDP(2), unit=person(k)),
        calibrate_maximum([("y",)], [np.ones(2)], PureDP(2), unit=person(k), floor=0.1),
    ):
        (node,) = found.grids
        logs = node.round_logs(node.splits[0])
        reach = int(logs.max() - logs.min())
        assert node.choice.sensitivity * 2 >= reach * k  # k rows move a log-likelihood ratio k times as far
        assert node.choice.loss <= found.cost


def test_what_does_not_hold_for_people_is_refused() -> None:
    with pytest.raises(MechanismError, match="does not help to protect person"):
        Subsampling(1 / 2, person(2))  # type: ignore[arg-type]
    with pytest.raises(MechanismError, match="no bounded sensitivity"):
        MutualInformation().sensitivity([(2, 2)], person(2), 100)
    with pytest.raises(BudgetError, match="add-remove only"):
        Unit("replace-one", "id", 2)
    with pytest.raises(BudgetError, match="--at-most needs --person"):
        Unit("add-remove", "", 2)
    with pytest.raises(BudgetError, match="is empty"):
        Unit.choose(None, "", 1)
    for bad in (0, 1001, 2.5, True, "0", "many", -1):
        with pytest.raises(BudgetError, match="--at-most must be a number"):
            Unit.choose(None, "id", bad)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "unit",
    [person(1), person(12), person(4, average=True), Unit("add-remove", 'a "b", at most 3 \\', 7), person(0)],
)
def test_a_unit_survives_being_written(unit: Unit) -> None:
    assert Unit.read(unit.value) == unit
    asked = "auto" if unit.is_open else unit.at_most
    assert Unit.choose(None, unit.person, asked, "average" if unit.average else None) == unit


def test_averages_that_are_not_exact_or_mean_nothing_are_refused() -> None:
    with pytest.raises(BudgetError, match="from 1 to 10 with --per-person average, not 11"):
        person(11, average=True)
    with pytest.raises(BudgetError, match="--per-person needs --person"):
        Unit("add-remove", average=True)
    with pytest.raises(BudgetError, match="rows or average, not 'mean'"):
        Unit.choose(None, "id", 3, "mean")
    for ask in (
        lambda: calibrate_sample([("y",)], [np.ones(2)], PureDP(2), unit=person(2, average=True)),
        lambda: Sums.price([BoundedColumn("x", 0, 1)], PureDP(1), unit=person(2, average=True)),
    ):
        with pytest.raises(BudgetError, match="counts rows, not people's averages"):
            ask()
    with pytest.raises(BudgetError, match="not chosen yet"):
        person(0).moves  # noqa: B018


def test_averaged_people_give_the_network_of_people() -> None:
    """Two people, one with four visits: each weighs a half, and a plan counts in people."""
    rows = {"id": [*"pppp", "q"], "x": [*"aabb", "c"], "y": [*"0000", "1"]}
    dag = DAG.build({"x": [], "y": ["x"]})
    with open_airlock(rows, SCHEMA, budget=PureDP(10**6), unit=person(4, average=True)) as airlock:
        network = planned(airlock, dag, spend=10**6)
    shares = network.cpts[0].values
    assert shares == pytest.approx([0.25, 0.25, 0.5], abs=0.01)
    one, many = (
        plan(dag, SCHEMA, spend=PureDP(1), unit=unit) for unit in (person(1), person(4, average=True))
    )
    assert many.variances == one.variances and many.predict_error() == one.predict_error()


def test_no_more_than_k_rows_of_a_person_count_and_none_without_an_id() -> None:
    rng = np.random.default_rng(1)
    ids = [None, "", float("nan"), *rng.integers(0, 40, 500).tolist()]
    people = hash_ids(ids, b"k" * 16)
    for k in KS:
        chosen = choose_rows(people, k)
        assert not chosen[:3].any()
        kept = [found for found, keep in zip(ids, chosen, strict=True) if keep]
        counts = {one: ids.count(one) for one in set(ids[3:])}
        assert {one: kept.count(one) for one in counts} == {
            one: min(k, count) for one, count in counts.items()
        }


SCHEMA = Schema.of({"x": ["a", "b", "c"], "y": ["0", "1"]})
ROWS = {"id": [*"ppppqqqr", None], "x": list("aabbccaab"), "y": list("010101010")}


def test_a_release_for_people_counts_at_most_k_rows_of_each() -> None:
    for k, total in ((1, 3), (2, 5), (4, 8)):
        with open_airlock(ROWS, SCHEMA, budget=PureDP(10**6), unit=person(k)) as airlock:
            (found,) = airlock.measure([()], spend=10**6)
            assert int(found.noisy.values) == total and found.unit == person(k)


@pytest.mark.parametrize("learn", [planned, privbayes], ids=["planned", "privbayes"])
def test_learners_run_for_people(learn: object) -> None:
    with open_airlock(ROWS, SCHEMA, budget="2", unit=person(2)) as airlock:
        if learn is planned:
            network = planned(airlock, DAG.build({"x": [], "y": ["x"]}), spend=1)
        else:
            network = privbayes(airlock, spend=1)
        assert network.provenance is not None and network.provenance.unit == person(2)
        assert network.provenance.statement is not None
        assert airlock.remaining == PureDP(1)


IDS = [7, 7.0, "7", " 7\t", "7\n", "7.0", np.int64(7), -0.0, 0, float("nan"), None, "", "  "]
IDS += [
    np.float32("nan"),
    Decimal("NaN"),
    np.datetime64("NaT"),
    pd.NaT,
    pd.NA,
    np.ma.masked,
    "NA",
    " n/a",
    "Unknown",
    "?",
]


def test_an_id_is_the_same_person_however_it_is_written() -> None:
    """Whole numbers without a point, blanks cut off; what is missing, and words for it, are no id."""
    people = hash_ids(IDS, b"k" * 16)
    assert len({tuple(found) for found in people[:7].tolist()}) == 1
    assert tuple(people[7]) == tuple(people[8]) != tuple(people[0])
    assert not people[9:].any()


@pytest.mark.parametrize("memory", [None, 16], ids=["held", "streamed"])
@pytest.mark.parametrize("kind", ["frame", "arrow", "parquet", "text"])
def test_ids_mean_the_same_in_every_reader(kind: str, memory: int | None, tmp_path: Path) -> None:
    """Float ids, as pandas makes them of whole numbers with a hole, and texts with blanks around them."""
    import pyarrow as pa

    frame = pd.DataFrame(
        {"id": [1.0, 1.0, 2.0, np.nan, np.nan, 0.0, -0.0], "x": list("aaaabbb"), "y": list("0101010")}
    )
    if kind == "text":
        frame["id"] = ["1", " 1", "2", "", " NA", "0\t", "0"]
    data: object = frame
    if kind != "frame":
        data = pa.Table.from_pandas(frame)
    if kind == "parquet":
        data = tmp_path / "people.parquet"
        frame.to_parquet(data)
    counter = open_counter(data, SCHEMA, unit=person(1), memory=memory)
    assert counter.rows == 3  # 1, 2 and 0
    counter.close()


def test_an_index_on_ids_does_not_unbind_people(tmp_path: Path) -> None:
    """Beyond memory, SQLite gives ids alone in the order of an index, and other columns in that of the table."""
    with sqlite3.connect(tmp_path / "t.db") as connection:
        connection.execute("CREATE TABLE t (id TEXT, x TEXT, y TEXT)")
        rows = [(f"p{i}", "a", "0") for i in range(3000)] + [("aaa", "b", "1")] * 1000
        connection.executemany("INSERT INTO t VALUES (?, ?, ?)", rows[::-1])
        connection.execute("CREATE INDEX i ON t (id)")
        connection.execute("CREATE VIEW v AS SELECT * FROM t")
        connection.commit()
    counter = open_counter(f"{tmp_path / 't.db'}::t", SCHEMA, unit=person(1), memory=1000)
    assert not counter.in_memory  # type: ignore[attr-defined]
    assert counter.count([("x",)])[0].values.tolist() == [3000, 1, 0]
    counter.close()
    with pytest.raises(TooLarge, match="no numbers"):
        open_counter(f"{tmp_path / 't.db'}::v", SCHEMA, unit=person(1), memory=1000)


def test_a_view_of_rows_without_people_is_not_refused() -> None:
    """A refusal would tell, for nothing, whether there is anybody."""
    rows = {"id": [None] * 3, "x": list("abc"), "y": list("010")}
    with open_airlock(rows, SCHEMA, budget="1", unit=person(1)) as airlock:
        airlock.encode(Encoding.of("binary", SCHEMA)).close()


def test_an_account_that_somebody_opens_meanwhile_must_have_the_same_unit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that were bounded for one unit are never asked under another."""

    def meanwhile(*given: object, **options: object) -> object:
        with open_ledger(tmp_path / "ledger") as ledger:
            ledger.open_account("a", PureDP(5), person(1))
        return honest(*given, **options)  # type: ignore[arg-type]

    honest = entrance.open_counter
    open_ledger(tmp_path / "ledger", create=True).close()
    monkeypatch.setattr(entrance, "open_counter", meanwhile)
    with pytest.raises(LedgerError, match="cannot be opened again"):
        open_airlock(ROWS, SCHEMA, budget="5", ledger=tmp_path / "ledger", account="a", create=True)


@pytest.mark.parametrize("cap", [1, 3, 900])
def test_a_row_with_a_weight_counts_at_most_so_often(cap: int) -> None:
    unit = Unit("add-remove", weight="n", at_most=cap)
    assert unit.moves == (cap,) and Unit.read(unit.value) == unit
    rows = {"x": list("abc"), "y": list("010"), "n": [900, 2, 0]}
    with open_airlock(rows, SCHEMA, budget=PureDP(10**6), unit=unit) as airlock:
        (found,) = airlock.measure([("x",)], spend=10**6)
        assert found.noisy.values.tolist() == [min(900, cap), min(2, cap), 0]
        assert found.law.scale * 10**6 == pytest.approx(cap)
    for bad in (
        {"person": "id", "weight": "n"},
        {"weight": "n", "at_most": 10**7},
        {"weight": "n", "at_most": 0},
    ):
        with pytest.raises(BudgetError):
            Unit("add-remove", **bad)  # type: ignore[arg-type]
    with pytest.raises(BudgetError, match="go with add-remove only"):
        Unit("replace-one", weight="n", at_most=2)


def test_ids_are_no_attributes_and_cannot_be_weighed() -> None:
    with pytest.raises(DataError, match="cannot be an attribute"):
        open_counter(ROWS, Schema.of({"id": ["p", "q", "r"]}), unit=person(2))
    with pytest.raises(DataError, match="cannot be combined with weights"):
        open_counter({**ROWS, "w": [1] * 9}, SCHEMA, unit=person(2), weight="w")
    with pytest.raises(DataError, match="patient"):
        open_counter(ROWS, SCHEMA, unit=Unit("add-remove", "patient", 2))
