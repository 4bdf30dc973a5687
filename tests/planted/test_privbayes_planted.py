"""PrivBayes as it is often written: each known fault, planted below the real learner, is caught.

A budget that is not split is planted in `test_learners`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from chance import SURE, within_attempts
from discreet.core.queries import Choice, Tables
from discreet.core.scores import MutualInformation
from discreet.entrance import open_airlock
from discreet.judge.experiments.empirical_epsilon import empirical_epsilon
from discreet.learning.greedy import greedy
from discreet.learning.privbayes import privbayes
from discreet.values.budget import Finite, PureDP
from discreet.values.measurement import Measurement
from discreet.values.schema import Schema
from discreet.values.table import Table
from discreet.values.unit import Unit
from lying import Choose, Lie, LyingAirlock, multiply, put_under, relabel, sound

NAMES = tuple("abc")
SCHEMA = Schema.of({name: ["0", "1"] for name in NAMES})
ABSENT = -(10**6)
PLAIN = np.array([[0, 0, 0]] * 3 + [[0, 0, 1]] * 3)
ROW = np.array([[1, 1, 1]])
WITH, WITHOUT = np.concatenate([PLAIN, ROW]), PLAIN
TRIALS = 140
"""Runs on each side: half are held out, and 70 of 70 against none prove ε ≥ 1.4."""


def probability_noise(airlock: LyingAirlock, query: Tables, honest: list[Measurement]) -> list[Measurement]:
    """Lap(2(d−k)/(nε)) on counts: the noise of a probability."""
    return put_under(honest, airlock.ask_freely(multiply(query, int(airlock.count(())) ** 2)))


def exact_rows(airlock: LyingAirlock, query: Tables, honest: list[Measurement]) -> list[Measurement]:
    """The number of rows without noise."""
    return [m if m.axes else relabel(m, airlock.count(())) for m in honest]


def seen_levels(airlock: LyingAirlock, query: Tables, honest: list[Measurement]) -> list[Measurement]:
    """Only cells that somebody is in are published."""
    return [relabel(m, np.where(airlock.count(m.axes) > 0, m.noisy.values, ABSENT)) for m in honest]


def price_again(airlock: LyingAirlock, query: Choice, score: Any, cost: Finite) -> Choice:
    """The same choice by another score or for another price."""
    return Choice.price(
        query.candidates,
        score,
        cost,
        schema=SCHEMA,
        unit=query.unit,
        rows=int(airlock.count(())),
        selection=query.mechanism.selection,
    )


def choose_by_fractions(airlock: LyingAirlock, query: Choice) -> int:
    """The score counts rows, and its noise is that of a score which a row moves by 1/n."""
    cost = query.cost * int(airlock.count(()))
    return int(airlock.ask_freely(price_again(airlock, query, query.score, cost)))


def choose_by_normalised(airlock: LyingAirlock, query: Choice) -> int:
    """A choice by normalised information."""
    return int(airlock.ask_freely(price_again(airlock, query, NormalisedInformation(), query.cost)))


@dataclass(frozen=True, slots=True)
class NormalisedInformation:
    """I(X; Π)/min(H(X), H(Π)), sold with the sensitivity of I, which it does not have."""

    name: str = "normalised mutual information"
    has_model: bool = False
    digest: str = ""
    plain: MutualInformation = field(default_factory=MutualInformation)

    def sensitivity(self, shapes: Sequence[tuple[int, ...]], unit: Unit, rows: int | None = None) -> Fraction:
        return self.plain.sensitivity(shapes, unit, rows)

    def evaluate(self, tables: Sequence[Table]) -> np.ndarray:
        return np.array([self._normalise(table) for table in tables])

    def _normalise(self, table: Table) -> float:
        margins = table.values.sum(axis=0), table.values.sum(axis=1)
        least = min(_entropy(margin) for margin in margins)
        return float(self.plain.evaluate([table])[0]) / least if least > 0 else 0.0


def _entropy(margin: np.ndarray) -> float:
    p = margin[margin > 0] / margin.sum()
    return float(-(p * np.log2(p)).sum())


def is_caught(
    lie: Lie,
    before: np.ndarray,
    after: np.ndarray,
    *,
    choose: Choose | None = None,
    unit: Unit = Unit.ADD_REMOVE,
    **options: Any,
) -> bool:
    """Whether runs of PrivBayes on two neighbours prove that more than ε = 1 was lost."""

    def draw(rows: np.ndarray, runs: int) -> np.ndarray:
        codes = {name: rows[:, i].astype(np.uint8) for i, name in enumerate(NAMES)}
        airlock = LyingAirlock(codes, SCHEMA, lie, choose=choose, unit=unit, budget=runs)
        found = []
        for _ in range(runs):
            network = privbayes(airlock, spend=1, order=NAMES, **options)  # type: ignore[arg-type]
            assert network.provenance is not None
            parents = [float(name in network.dag.parents_of("c")) for name in "ab"]
            tables = [table.noisy.values.ravel() for table in network.provenance.measurements]
            found.append(np.concatenate([parents, *tables]))
        return np.array(found)

    sides = [lambda runs, rows=rows: draw(rows, runs) for rows in (before, after)]
    return empirical_epsilon(*sides, trials=TRIALS, confidence=SURE).contradicts(1.0)


@pytest.mark.parametrize("options", [{"k": 1}, {"theta": "1/1000"}], ids=["k", "theta"])
def test_the_sound_learner_passes(options: dict[str, Any]) -> None:
    """Where the faults in tables are planted; those in choices have it beside them, and `test_privbayes` both units."""
    assert not is_caught(sound, WITH, WITHOUT, **options)


TABLES: dict[str, tuple[Lie, dict[str, Any]]] = {
    "the noise of a probability on counts": (probability_noise, {"k": 1}),
    "the exact number of rows": (exact_rows, {"theta": "1/1000"}),
    "levels read from the rows": (seen_levels, {"k": 1}),
}


@pytest.mark.parametrize("fault", TABLES)
def test_a_fault_in_the_tables_is_caught(fault: str) -> None:
    lie, options = TABLES[fault]
    assert within_attempts(lambda: is_caught(lie, WITH, WITHOUT, **options))


CHOICES: dict[str, tuple[Choose, str]] = {
    "the noise of a score in fractions": (choose_by_fractions, "R"),
    "normalised mutual information": (choose_by_normalised, "I"),
}


@pytest.mark.parametrize("fault", CHOICES)
def test_a_fault_in_the_choice_is_caught(fault: str) -> None:
    """One row makes a or b decide c where nothing did before."""
    choose, score = CHOICES[fault]
    before, after = np.zeros((400, 3), dtype=np.int64), np.zeros((400, 3), dtype=np.int64)
    before[0], after[0] = (1, 0, 1), (0, 1, 1)
    options = {"unit": Unit.REPLACE_ONE, "k": 1, "score": score, "selection": "exponential", "beta": "1/2"}
    assert not is_caught(sound, before, after, **options)
    assert within_attempts(lambda: is_caught(sound, before, after, choose=choose, **options))


def test_a_domain_read_from_the_rows_changes_what_is_asked() -> None:
    """With a declared schema, neighbours ask for the same tables; with levels from the rows they do not."""

    def shapes(rows: np.ndarray, *, declared: bool) -> list[tuple[int, ...]]:
        columns = {name: [str(code) for code in rows[:, i]] for i, name in enumerate("abc")}
        levels = {
            name: ["0", "1"]
            if declared
            else sorted({*column, "0"} | ({"other"} if len(set(column)) < 2 else set()))
            for name, column in columns.items()
        }
        airlock = open_airlock(columns, Schema.of(levels), budget=PureDP(1))
        found = airlock.measure([tuple("abc")], spend=1)
        return [tuple(airlock.schema[name].levels) for name in found[0].axes]

    assert shapes(WITH, declared=True) == shapes(WITHOUT, declared=True)
    assert shapes(WITH, declared=False) != shapes(WITHOUT, declared=False)


def test_the_number_of_rows_is_never_exact_under_add_remove() -> None:
    """The search's own count is a paid measurement, and differs from run to run."""
    columns = {name: [str(code) for code in WITH[:, i]] for i, name in enumerate("abc")}
    schema = Schema.of({name: ["0", "1"] for name in "abc"})
    found = {
        greedy(open_airlock(columns, schema, budget=PureDP(1)), spend=1, theta="1/1000", rng=0).rows
        for _ in range(40)
    }
    assert len(found) > 3  # a noisy number below 1 is read as 1: that is more than a third of them
