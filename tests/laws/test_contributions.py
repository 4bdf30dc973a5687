"""How many rows of a person count, chosen privately: its sensitivity, its law, and that it is paid for once."""

from __future__ import annotations

import itertools
import json
import sqlite3
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import discreet as dc
from chance import SURE, within_attempts
from discreet.core import contributions
from discreet.core.contributions import (
    MOST,
    SENSITIVITY,
    choose_bound,
    list_bounds,
    price_bound,
    score_bounds,
)
from discreet.core.queries import Tables
from discreet.entrance import count_rows_of_people, open_airlock, open_ledger
from discreet.judge.experiments.empirical_epsilon import EpsilonBound, empirical_epsilon
from discreet.stores.memory import MemoryLedger
from discreet.values.budget import ZCDP, ApproxDP, Finite, PureDP, allow
from discreet.values.errors import AirlockError, BudgetError, DiscreetError, LedgerError
from discreet.values.schema import Schema
from discreet.values.unit import Unit

SCHEMA = Schema.of({"x": ["a", "b"]})
AUTO = Unit("add-remove", "id", 0)


def table(*rows_of: int) -> dict[str, list[str]]:
    """People with so many rows each."""
    ids = [f"p{i}" for i, rows in enumerate(rows_of) for _ in range(rows)]
    return {"id": ids, "x": ["a"] * len(ids)}


def test_one_person_moves_no_score_by_more_than_its_sensitivity_and_some_by_all_of_it() -> None:
    """Over all populations of up to five people with 1, 2, 3 or more rows, and whoever comes in."""
    worst = 0.0
    for size in range(6):
        for people in itertools.combinations_with_replacement(range(4), size):
            before = np.bincount(np.array(people, dtype=np.int64), minlength=4)
            for more in range(4):
                after = before + np.eye(4, dtype=np.int64)[more]
                worst = max(worst, float(np.abs(score_bounds(after) - score_bounds(before)).max()))
    assert worst == SENSITIVITY


def test_the_best_score_is_what_nine_in_ten_do_not_pass() -> None:
    rows = np.concatenate([np.ones(500), np.full(300, 2), np.full(110, 3), np.full(90, 20)]).astype(np.int64)
    people = np.bincount(np.minimum(rows, MOST + 1), minlength=MOST + 2)[1:]
    assert list_bounds(AUTO)[int(np.argmax(score_bounds(people)))] == 3


@pytest.mark.parametrize("rows", [1, 8, MOST])
def test_people_who_all_have_as_many_rows_are_bounded_by_just_that(rows: int) -> None:
    """A score that is the same for all larger numbers chose 19 where everybody has 8."""
    found = draw_bounds((rows,) * 200, PureDP(4))(50)
    assert set(found) == {rows}


def test_where_noise_decides_a_small_number_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred heart patients at ε = 2: the choice has 0.1 of it, and counted 14 rows of each, who have 1 or 2."""
    draw = draw_bounds((1,) * 34 + (2,) * 69, PureDP("1/10"))
    assert np.median(draw(60)) <= 4  # each passes 4 with a chance of 0.2, so half of them with one below 1e-6
    monkeypatch.setattr(contributions, "weigh_bounds", lambda unit, scale: np.zeros(MOST))
    assert within_attempts(lambda: bool(np.median(draw(60)) > 4))


def draw_bounds(rows_of: tuple[int, ...], cost: Finite) -> Callable[[int], np.ndarray]:
    """The number of rows that a fresh account counts, as often as asked."""
    true_people = count_rows_of_people(table(*rows_of), SCHEMA, "id", MOST)

    def draw(trials: int) -> np.ndarray:
        ledger = MemoryLedger()
        found = []
        for i in range(trials):
            account = ledger.open_account(f"a{i}", cost, AUTO)
            found.append(choose_bound(ledger, account, true_people, cost=cost, request="r").unit.at_most)
        return np.array(found)

    return draw


def audit() -> EpsilonBound:
    """What runs with and without a person of twenty rows prove about ε = 1, among nine of one row and one of two."""
    ten = (*(1,) * 9, 2)
    alone, beside = draw_bounds(ten, PureDP(1)), draw_bounds((*ten, 20), PureDP(1))
    return empirical_epsilon(alone, beside, trials=600, confidence=SURE)


def test_the_choice_keeps_its_promise_and_one_priced_for_a_ninth_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = audit()
    assert not found.contradicts(1.0), str(found)
    # A planted twin: as if a person moved the score by 1, as they move a count.
    monkeypatch.setattr(contributions, "SENSITIVITY", Fraction(1))
    assert within_attempts(lambda: audit().contradicts(1.0))


@pytest.mark.parametrize("budget", [PureDP(2), ZCDP("1/2"), ApproxDP(2, "1e-6")])
@pytest.mark.parametrize("average", [False, True])
def test_a_release_pays_a_twentieth_for_it_and_the_account_keeps_it(
    tmp_path: Path, budget: Finite, average: bool
) -> None:
    place = tmp_path / "ledger"
    options: dict[str, Any] = {
        **{name: str(amount) for name, amount in budget.to_json().items()},
        "ledger": place, "account": "visits", "person": "id", "at_most": "auto", "create": True,
        "per_person": "average" if average else "rows", "graph": {"x": []},
    }  # fmt: skip
    rows = table(*[1] * 60, *[2] * 40, *[3] * 30)
    first = dc.release(rows, SCHEMA, **options)
    again = dc.release(rows, SCHEMA, **options)
    assert first.promise == again.promise and str(first.network.cpts) == str(again.network.cpts)
    with open_ledger(place) as ledger:
        account = ledger.account("visits")
        entries = ledger.entries("visits")
        assert ledger.verify().sound
        assert not account.unit.is_open and account.unit.average == average and account.asked is not None
        assert (
            entries[0].cost == allow(budget) / 20
            and sum(1 for one in entries if one.cost == entries[0].cost) == 1
        )
        assert account.remaining.is_zero
    assert f"at most {account.unit.at_most}" in first.promise
    assert dc.verify(first, place).sound


def test_an_account_whose_bound_is_not_chosen_yet_answers_nothing(tmp_path: Path) -> None:
    ledger = MemoryLedger()
    account = ledger.open_account("a", PureDP(1), AUTO)
    with pytest.raises(BudgetError, match="not chosen yet"):
        Tables.price([("x",)], PureDP(1), unit=account.unit)
    with pytest.raises(LedgerError, match="not what was chosen"):
        ledger.fix_unit("a", "nobody", 3)


def test_a_bound_is_fixed_once_and_only_as_it_was_drawn() -> None:
    ledger = MemoryLedger()
    account = ledger.open_account("a", PureDP(1), AUTO)
    entry = ledger.debit("a", "r", PureDP("1/20"))
    ledger.answer(entry, json.dumps([3]).encode())
    with ledger._writing() as book:
        ledger._append(book, "fix", **{"account": "a", "request": "r", "at most": 2})  # type: ignore[arg-type]
    with pytest.raises(LedgerError, match="not what was chosen"):
        ledger.accounts()
    other = MemoryLedger()
    account = other.open_account("a", PureDP(1), AUTO)
    people = count_rows_of_people(table(1, 2), SCHEMA, "id", MOST)
    fixed = choose_bound(other, account, people, cost=PureDP("1/20"), request="r")
    assert choose_bound(other, account, people, cost=PureDP("1/20"), request="r") == fixed  # paid once
    with pytest.raises(AirlockError, match="already"):
        choose_bound(other, fixed, people, cost=PureDP("1/20"), request="again")
    assert other.open_account("a", PureDP(1), AUTO) == fixed == other.open_account("a", PureDP(1), fixed.unit)
    assert price_bound(PureDP(1), AUTO).sensitivity == 9


def test_all_that_can_be_refused_is_refused_before_it_is_paid_for(tmp_path: Path) -> None:
    place = tmp_path / "ledger"
    bad = {"id": ["p", "q"], "x": ["a", "strange"]}
    with pytest.raises(DiscreetError, match="strange"):
        open_airlock(bad, SCHEMA, budget="1", unit=AUTO, ledger=place, account="a", create=True)
    assert not place.exists()
    with pytest.raises(BudgetError, match="a plan reads no rows"):
        dc.plan(SCHEMA, {"x": []}, epsilon=1, person="id", at_most="auto")


@pytest.mark.parametrize("kind", ["mapping", "frame", "parquet", "csv", "sqlite"])
def test_readers_agree_on_how_many_rows_people_have(kind: str, tmp_path: Path) -> None:
    import pandas as pd

    frame = pd.DataFrame({"id": [*"ppppp", "q", "r", "r", None, ""], "x": ["a"] * 10})
    data: Any = frame if kind == "frame" else frame.to_dict("list")
    if kind == "parquet":
        data = tmp_path / "rows.parquet"
        frame.to_parquet(data)
    elif kind == "csv":
        data = tmp_path / "rows.csv"
        frame.to_csv(data, index=False)
    elif kind == "sqlite":
        with sqlite3.connect(tmp_path / "rows.db") as connection:
            frame.to_sql("rows", connection, index=False)
        data = f"{tmp_path / 'rows.db'}::rows"
    assert count_rows_of_people(data, SCHEMA, "id", 3).tolist() == [1, 1, 0, 1]
