"""Promises that hold only until the next release, or the next opening: as they were once, caught; as they are, not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import discreet as dc
from chance import SURE, within_attempts
from discreet.core.ledger import Ledger
from discreet.entrance import open_airlock
from discreet.judge.experiments.empirical_epsilon import EpsilonBound, empirical_epsilon
from discreet.values.budget import PureDP
from discreet.values.schema import Schema
from discreet.values.statement import Statement

SCHEMA = Schema.of({"x": ["a", "b"]})
WITH, WITHOUT = {"x": ["a", "b", "b"]}, {"x": ["b", "b"]}
BUDGET = 8


def release_all(rows: dict[str, list[str]], told: list[Statement]) -> Callable[[int], np.ndarray]:
    """All that an account of ε = 8 ever publishes, eight tables for ε = 1 each, as often as asked."""

    def draw(trials: int) -> np.ndarray:
        found = []
        for _ in range(trials):
            with open_airlock(rows, SCHEMA, budget=PureDP(BUDGET)) as airlock:
                tables = []
                for _ in range(BUDGET):
                    (table,) = airlock.measure([("x",)], spend=1)
                    tables.append(
                        table.noisy.values >= 1
                    )  # all that Laplace noise of scale 1 tells about one row
                    if not told:
                        told.append(airlock.statement(since=0))
                found.append(np.sum(tables, axis=0))
        return np.array(found)

    return draw


def audit() -> tuple[EpsilonBound, list[Statement]]:
    """What all releases together prove about ε, and what the first of them said when it was made."""
    told: list[Statement] = []
    bound = empirical_epsilon(
        release_all(WITH, told), release_all(WITHOUT, told), trials=320, confidence=SURE
    )
    return bound, told


def test_a_promise_of_what_was_spent_so_far_is_broken_by_the_next_release() -> None:
    """The old words named what had been spent that day; the new ones the whole budget, which all of it keeps."""

    def is_caught() -> bool:
        bound, told = audit()
        first = told[0]
        assert first.spent == PureDP(1) and first.promised == PureDP(BUDGET)
        assert not bound.contradicts(float(BUDGET)), str(bound)  # what the first release promises now
        return bound.contradicts(float(first.spent.amounts[0]))  # what it promised once

    assert within_attempts(is_caught)


def count_events(remember: Callable[..., Any], folder: Path, rows: list[str], monkeypatch: Any) -> int:
    """How many events a second release tells of, after the table was written anew."""
    folder.mkdir()
    data = folder / "rows.csv"
    monkeypatch.setattr(Ledger, "remember_source", remember)
    options: dict[str, Any] = {"ledger": folder / "l", "account": "a", "budget": "2", "create": True}
    events = 0
    for request, lines in (("one", ["a", "b", "b"]), ("two", rows)):
        data.write_text("x\n" + "\n".join(lines) + "\n")
        made = dc.release(data, SCHEMA, {"x": []}, epsilon=1, request=request, **options)
        assert made.provenance.statement is not None
        events = made.provenance.statement.events
    return events


def test_a_ledger_that_writes_down_changed_tables_only_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A release says how many lines the ledger has: one line more would tell that somebody came in between."""
    honest = Ledger.remember_source

    def only_new(ledger: Ledger, account: str, marks: Any) -> None:
        if not all(ledger.find_source([mark]) for mark in marks[:-2]):  # the last two are of the words
            honest(ledger, account, marks)

    def tells(name: str, remember: Callable[..., Any]) -> bool:
        same, changed = (
            count_events(remember, tmp_path / f"{name}-{i}", rows, monkeypatch)
            for i, rows in enumerate((["a", "b", "b"], ["a", "b", "b", "b"]))
        )
        return same != changed

    assert tells("broken", only_new)
    assert not tells("honest", honest)
