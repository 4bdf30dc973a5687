"""The airlock: what it lets out, what it charges, and what it refuses before charging."""

from __future__ import annotations

import copy
import os
import pickle
import sqlite3
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import discreet as dc
from discreet.core.airlock import Airlock
from discreet.core.chain import Anchor
from discreet.core.scores import IndependenceDistance, ModelError, MutualInformation
from discreet.entrance import open_airlock, open_ledger
from discreet.papers.estimators.sums import BoundedColumn, Sums
from discreet.papers.parameters.subsample import Subsampling, sample_tables
from discreet.values.budget import ZCDP, ApproxDP, Infinite, PureDP
from discreet.values.errors import AirlockError, BudgetError, DiscreetError, LedgerError, Overspent
from discreet.values.measurement import DiscreteGaussian, DiscreteLaplace, Exact
from discreet.values.unit import Unit

NETWORK = dc.examples.asia()
ROWS = 2_000
DATA = {
    name: NETWORK.schema[name].decode(codes) for name, codes in NETWORK.sample(ROWS, rng=1).codes().items()
}


def open_simulation(budget: object = "100", unit: str = "add-remove") -> Airlock:
    return open_airlock(DATA, NETWORK.schema, budget=budget, unit=unit)  # type: ignore[arg-type]


def true_table(axes: tuple[str, ...]) -> np.ndarray:
    if not axes:
        return np.array(ROWS)
    codes = NETWORK.schema.encode(DATA)
    table = np.zeros([NETWORK.schema[name].size for name in axes], dtype=np.int64)
    np.add.at(table, tuple(codes[name].astype(int) for name in axes), 1)
    return table


def test_a_measurement_is_the_true_table_plus_noise_of_the_stated_law() -> None:
    airlock = open_simulation()
    for measurement in airlock.measure([("smoke", "lung"), ("dysp",), ()], spend="90"):
        assert isinstance(measurement.law, DiscreteLaplace)
        assert measurement.law.scale == pytest.approx(3 / 90, rel=1e-9)
        # scale 1/30: a cell is off by 1 with probability about 1e-13
        assert np.array_equal(measurement.noisy.values, true_table(measurement.axes))


@pytest.mark.parametrize(("unit", "factor"), [("add-remove", 1), ("replace-one", 2)])
def test_the_scale_follows_the_unit_and_the_shares(unit: str, factor: int) -> None:
    airlock = open_simulation(unit=unit)
    wide, narrow = airlock.measure([("smoke",), ("lung",)], spend="4", shares=["1", "3"])
    assert wide.law.scale == factor and narrow.law.scale == pytest.approx(factor / 3)
    assert wide.cost.to_json() == {"epsilon": "1"} and narrow.cost.to_json() == {"epsilon": "3"}
    assert airlock.remaining == PureDP("96")


def test_gaussian_noise_is_paid_in_rho_or_epsilon_delta_only() -> None:
    airlock = open_simulation(ZCDP("2"))
    (measured,) = airlock.measure([("smoke",)], spend="1/2", noise="gaussian")
    assert isinstance(measured.law, DiscreteGaussian)
    assert float(measured.law.sigma2) == pytest.approx(1.0, rel=1e-9)
    assert open_simulation(ApproxDP("1", "1e-6")).measure([("smoke",)], spend="1/10")
    pure = open_simulation()
    with pytest.raises(DiscreetError, match="Gaussian noise cannot be paid for with"):
        pure.measure([("smoke",)], spend="1", noise="gaussian")
    assert pure.remaining == PureDP("100")


def test_a_secret_sample_is_counted_with_the_noise_that_amplification_affords() -> None:
    airlock = open_simulation()
    sampling = Subsampling(Fraction(1, 10), Unit.ADD_REMOVE)
    (measured,) = airlock.ask(sample_tables([()], PureDP(20), sampling))
    assert measured.law.scale < 1 / 20
    assert abs(int(measured.noisy.values) - ROWS / 10) < 8 * np.sqrt(ROWS * 0.09)
    fixed = open_simulation(unit="replace-one")
    (exactly,) = fixed.ask(sample_tables([()], PureDP(20), Subsampling.fixed(100, ROWS)))
    assert abs(int(exactly.noisy.values) - 100) <= 3
    assert (measured.rate, measured.cost.to_json()) == (Fraction(1, 10), {"epsilon": "20"}), (
        "the cost is what was charged"
    )
    before = fixed.statement().head
    with pytest.raises(DiscreetError, match="whole number"):
        fixed.ask(sample_tables([()], PureDP(1), Subsampling(Fraction(1, 3), Unit.REPLACE_ONE)))
    assert fixed.statement().head == before
    with pytest.raises(AirlockError, match="add-remove"):
        fixed.ask(sample_tables([()], PureDP(1), sampling))


def test_a_selection_prefers_the_better_candidate_and_is_charged() -> None:
    airlock = open_simulation()
    candidates = [("asia", "xray"), ("either", "xray"), ("smoke", "asia")]
    picks = [airlock.select(candidates, IndependenceDistance(), spend="1") for _ in range(20)]
    assert picks == [1] * 20
    assert airlock.remaining == PureDP("80")
    expected = tuple(np.asarray(true_table(members), dtype=float) for members in candidates)
    spoiled = (expected[0], expected[1] + 500.0, expected[2])
    assert airlock.select(candidates, ModelError(spoiled), spend="1") == 1


def test_the_same_request_gets_the_same_bytes_and_pays_once() -> None:
    airlock = open_simulation()
    first = airlock.measure([("smoke", "lung")], spend="1/10", request="monthly")
    for _ in range(3):
        again = airlock.measure([("smoke", "lung")], spend="1/10", request="monthly")
        assert np.array_equal(first[0].noisy.values, again[0].noisy.values)
    assert airlock.remaining == PureDP("99.9")
    with pytest.raises(LedgerError, match="another question"):
        airlock.measure([("smoke", "dysp")], spend="1/10", request="monthly")
    with pytest.raises(LedgerError, match="give the new question another request id"):
        airlock.measure([("smoke", "lung")], spend="2/10", request="monthly")
    select = [
        airlock.select(
            [("asia", "tub"), ("smoke", "lung")], IndependenceDistance(), spend="1/10", request="s"
        )
    ]
    select.append(
        airlock.select(
            [("asia", "tub"), ("smoke", "lung")], IndependenceDistance(), spend="1/10", request="s"
        )
    )
    assert select[0] == select[1] and airlock.remaining == PureDP("99.8")


def test_fresh_requests_draw_fresh_noise() -> None:
    airlock = open_simulation()
    draws = {int(airlock.measure([()], spend="1/100")[0].noisy.values) for _ in range(12)}
    assert len(draws) > 6


def test_a_reveal_makes_the_loss_infinite_for_good() -> None:
    airlock = open_simulation()
    (table,) = airlock.reveal([("smoke", "lung")], reason="compare synthetic rows with real ones")
    assert isinstance(table.law, Exact) and np.array_equal(table.noisy.values, true_table(("smoke", "lung")))
    assert airlock.loss == Infinite()
    airlock.measure([()], spend="1")
    assert airlock.loss == Infinite() and airlock.account.reveals[0].reason.startswith("compare")


BAD_QUESTIONS = {
    "unknown attribute": lambda a: a.measure([("weight",)], spend="1"),
    "attribute twice": lambda a: a.measure([("smoke", "smoke")], spend="1"),
    "text for a set": lambda a: a.measure(["smoke"], spend="1"),
    "nothing asked": lambda a: a.measure([], spend="1"),
    "spend of 0": lambda a: a.measure([()], spend="0"),
    "negative spend": lambda a: a.measure([()], spend="-1"),
    "spend NaN": lambda a: a.measure([()], spend=float("nan")),
    "spend infinite": lambda a: a.measure([()], spend=float("inf")),
    "another kind": lambda a: a.measure([()], spend=ZCDP("1")),
    "more than there is": lambda a: a.measure([()], spend="101"),
    "wrong number of shares": lambda a: a.measure([(), ("smoke",)], spend="1", shares=[1]),
    "share of 0": lambda a: a.measure([(), ("smoke",)], spend="1", shares=[1, 0]),
    "unknown noise": lambda a: a.measure([()], spend="1", noise="uniform"),
    "no candidate": lambda a: a.select([], IndependenceDistance(), spend="1"),
    "candidate without parent": lambda a: a.select([("smoke",)], IndependenceDistance(), spend="1"),
    "score without sensitivity": lambda a: a.select([("smoke", "lung")], MutualInformation(), spend="1"),
    "unknown selection": lambda a: a.select(
        [("smoke", "lung")], IndependenceDistance(), spend="1", selection="best"
    ),
    "request id with a line break": lambda a: a.measure([()], spend="1", request="a\nb"),
    "reveal without a reason": lambda a: a.reveal([()], reason=""),
    "reveal of nothing known": lambda a: a.reveal([("weight",)], reason="look"),
}


@pytest.mark.parametrize("question", BAD_QUESTIONS)
def test_a_bad_question_is_refused_in_one_line_and_costs_nothing(question: str) -> None:
    airlock = open_simulation()
    before = airlock.statement().head
    with pytest.raises(DiscreetError) as refused:
        BAD_QUESTIONS[question](airlock)
    assert "\n" not in str(refused.value)
    assert airlock.statement().head == before, "an event was written for a refused question"
    assert airlock.remaining == PureDP("100")


def test_a_table_that_does_not_fit_is_refused_before_it_is_paid_for() -> None:
    wide = dc.Schema.of({f"a{i}": [str(k) for k in range(256)] for i in range(5)})
    airlock = open_airlock({name: ["0"] for name in wide.names}, wide, budget="1")
    with pytest.raises(DiscreetError, match="1,099,511,627,776 cells"):
        airlock.measure([wide.names], spend="1")
    assert airlock.remaining == PureDP("1")


def test_bad_rows_open_no_account(tmp_path: Path) -> None:
    with open_ledger(tmp_path / "ledger", create=True) as ledger:
        with pytest.raises(DiscreetError, match="purple"):
            open_airlock(
                {**DATA, "smoke": ["purple"] * ROWS},
                NETWORK.schema,
                budget="1",
                ledger=ledger,
                account="a",
                create=True,
            )
        assert ledger.accounts() == ()
        with pytest.raises(AirlockError, match="give `account`"):
            open_airlock(DATA, NETWORK.schema, budget="1", ledger=ledger)
        with pytest.raises(BudgetError, match="not open"):
            open_airlock(DATA, NETWORK.schema, ledger=ledger, account="a", create=True)
        with pytest.raises(LedgerError, match="no account 'b' in this ledger"):
            open_airlock(DATA, NETWORK.schema, budget="1", ledger=ledger, account="b")
        assert ledger.accounts() == ()


def test_an_account_lasts_and_its_terms_cannot_change(tmp_path: Path) -> None:
    place = tmp_path / "ledger"
    with open_ledger(place, create=True) as ledger:
        first = open_airlock(DATA, NETWORK.schema, budget="1", ledger=ledger, account="clinic", create=True)
        first.measure([()], spend="3/4")
    again = open_airlock(DATA, NETWORK.schema, ledger=place, account="clinic")
    assert again.remaining == PureDP("1/4") and again.statement().durable
    with pytest.raises(Overspent, match="short by"):
        again.measure([()], spend="1/2")
    with pytest.raises(LedgerError, match="cannot be opened again"):
        open_airlock(DATA, NETWORK.schema, budget="2", ledger=place, account="clinic")
    with pytest.raises(LedgerError, match="replace-one"):
        open_airlock(DATA, NETWORK.schema, ledger=place, account="clinic", unit="replace-one")


def test_the_number_of_rows_is_told_only_where_it_is_public() -> None:
    assert open_simulation(unit="replace-one").rows == ROWS
    private = open_simulation()
    with pytest.raises(AirlockError, match="private"):
        _ = private.rows
    assert str(ROWS) not in repr(private) and f"{ROWS:,}" not in repr(private)


def test_rows_cannot_be_taken_out() -> None:
    airlock = open_simulation()
    for take in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(AirlockError, match="copied or pickled"):
            take(airlock)
    assert not hasattr(airlock, "__dict__")
    airlock.close()
    with pytest.raises(AirlockError, match="closed"):
        airlock.measure([()], spend="1")
    assert "closed" in repr(airlock)


def test_a_forked_child_is_refused() -> None:
    airlock = open_simulation()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            airlock.measure([()], spend="1")
            os.write(writing, b"answered")
        except AirlockError as error:
            os.write(writing, str(error).encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    assert b"another process" in os.read(reading, 1000)
    assert airlock.remaining == PureDP("100")


def test_the_debit_stands_even_if_counting_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    airlock = open_simulation()
    monkeypatch.setattr(
        "discreet.core.queries.add_noise", lambda *_: (_ for _ in ()).throw(OSError("power cut"))
    )
    with pytest.raises(OSError, match="power cut"):
        airlock.measure([()], spend="1", request="r")
    assert airlock.remaining == PureDP("99"), "a failure after the debit must not refund it"
    monkeypatch.undo()
    airlock.measure([()], spend="1", request="r")
    assert airlock.remaining == PureDP("99"), "the retry of an unanswered request pays nothing more"


INCOME = np.random.default_rng(3).normal(30_000, 20_000, ROWS)


@pytest.mark.parametrize("suffix", ["frame", "arrow", "csv", "parquet", "sqlite"])
@pytest.mark.parametrize("weight", [None, "w"])
def test_a_bounded_sum_clips_every_value_whatever_holds_the_rows(
    tmp_path: Path, suffix: str, weight: str | None
) -> None:
    import pandas as pd
    import pyarrow as pa

    weights = np.arange(ROWS) % 3 + 1
    frame = pd.DataFrame({"smoke": DATA["smoke"], "income": INCOME, "w": weights})
    place: object = frame
    if suffix == "arrow":
        place = pa.Table.from_pandas(frame)
    elif suffix == "csv":
        place = tmp_path / "rows.csv"
        frame.to_csv(place, index=False)
    elif suffix == "parquet":
        place = tmp_path / "rows.parquet"
        frame.to_parquet(place)
    elif suffix == "sqlite":
        with sqlite3.connect(tmp_path / "rows.db") as connection:
            frame.to_sql("people", connection, index=False)
        place = f"{tmp_path / 'rows.db'}::people"
    column = BoundedColumn("income", 0, 60_000, granularity=1000)
    unit = Unit.ADD_REMOVE if weight is None else Unit("add-remove", weight=weight, at_most=2)
    airlock = open_airlock(
        place, NETWORK.schema.select(["smoke"]), budget="10000000", unit=unit, numbers=["income"]
    )
    query = Sums.price([column], PureDP(9_000_000), unit=airlock.unit)
    (measured,) = airlock.ask(query, request="sum")
    steps = np.clip(np.rint(np.clip(INCOME, 0, 60_000) / 1000), 0, 60).astype(int)
    expected = int((steps * (np.minimum(weights, 2) if weight else 1)).sum())
    assert measured.steps == expected  # the scale is 60/9e6: no noise to speak of
    assert measured.law.scale == pytest.approx(60 * unit.at_most / 9e6)
    assert airlock.ask(query, request="sum")[0] == measured
    before = airlock.statement().head
    with pytest.raises(DiscreetError, match="cannot sum 'age'"):
        airlock.ask(Sums.price([BoundedColumn("age", 0, 100)], PureDP(1), unit=airlock.unit))
    assert airlock.statement().head == before


@pytest.mark.parametrize("bad", [None, "much", float("nan")])
def test_a_number_column_with_a_hole_is_refused_at_the_door(bad: object) -> None:
    rows = {"smoke": DATA["smoke"], "income": [*INCOME[:-1].tolist(), bad]}
    with pytest.raises(DiscreetError, match=r"'income'.*needs a number"):
        open_airlock(rows, NETWORK.schema.select(["smoke"]), budget="1", numbers=["income"])


def test_the_statement_can_be_held_against_the_ledger(tmp_path: Path) -> None:
    with open_ledger(tmp_path / "ledger", create=True) as ledger:
        airlock = open_airlock(DATA, NETWORK.schema, budget="2", ledger=ledger, account="clinic", create=True)
        airlock.measure([()], spend="1/2")
        said = airlock.statement()
        assert said.spent == said.loss == PureDP("1/2")
        assert said.budget == PureDP(2)
        assert said.durable
        airlock.measure([()], spend="1/2")  # the ledger goes on; the statement's head stays in its chain
        head = Anchor(said.events, said.head)
        assert ledger.verify(head).sound
        assert not ledger.verify(Anchor(head.count, "0" * 64)).sound
        airlock.reveal([()], reason="a look")
        assert airlock.statement().loss == Infinite()
    assert not open_simulation().statement().durable
