"""PrivBayes as it is often written: each known fault is caught by a check that passes the sound twin."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from chance import SURE, within_attempts
from discreet.core.mechanism import Selection, calibrate_choice, calibrate_counts
from discreet.core.noise import add_noise, choose
from discreet.core.scores import IndependenceDistance, MutualInformation
from discreet.entrance import open_airlock
from discreet.judge.empirical_epsilon import empirical_epsilon
from discreet.learning.greedy import greedy
from discreet.values.budget import PureDP
from discreet.values.schema import Schema
from discreet.values.table import Table
from discreet.values.unit import Unit

Rows = np.ndarray
Release = Callable[[Rows, int], np.ndarray]
"""From rows of codes to the outputs of so many runs, one in each line."""

PAIRS = list(itertools.combinations(range(3), 2))
ABSENT = -(10**6)
PLAIN = np.array([[0, 0, 0]] * 3 + [[0, 0, 1]] * 3)
ROW = np.array([[1, 1, 1]])
WITH, WITHOUT = np.concatenate([PLAIN, ROW]), PLAIN
REPLACED = np.concatenate([PLAIN, PLAIN[:1]])


def count(rows: Rows, members: tuple[int, ...], sizes: tuple[int, ...] = (2, 2, 2)) -> np.ndarray:
    index = np.ravel_multi_index(rows[:, members].T, [sizes[i] for i in members])
    shape = [sizes[i] for i in members]
    return np.bincount(index, minlength=int(np.prod(shape))).reshape(shape).astype(np.int64)


@dataclass(frozen=True)
class Pipeline:
    """A chain a → b → c of fixed order, whose one choice is the parent of c; then two noisy tables."""

    choice: Fraction = Fraction(1, 2)
    tables: Fraction = Fraction(1, 4)
    """The ε of each table."""
    unit: Unit = Unit.ADD_REMOVE
    shrink: float = 1.0
    normalised: bool = False
    total: str = "none"
    seen_only: bool = False

    def __call__(self, rows: Rows, runs: int) -> np.ndarray:
        scores, mechanism = self._judge(rows)
        parents = np.array([choose(scores, mechanism) for _ in range(runs)])
        noisy = {}
        for members in PAIRS:
            table = np.tile(count(rows, members).ravel(), (runs, 1))
            (noise,) = calibrate_counts([("table",)], PureDP(self.tables), unit=self.unit)
            drawn = add_noise(np.zeros_like(table), noise) * self.shrink + table
            noisy[members] = np.where(table > 0, drawn, ABSENT) if self.seen_only else drawn
        chosen = np.where(parents[:, None] == 0, noisy[0, 2], noisy[1, 2])
        parts = [parents[:, None], noisy[0, 1], chosen]
        if self.total == "exact":
            parts.append(np.full((runs, 1), len(rows)))
        return np.concatenate(parts, axis=1)

    def _judge(self, rows: Rows) -> tuple[np.ndarray, object]:
        tables = [Table(("p", "x"), count(rows, (i, 2))) for i in (0, 1)]
        if self.normalised:
            scores = np.array([normalise(table.values) for table in tables])
            sensitivity = MutualInformation().sensitivity([(2, 2)], Unit.REPLACE_ONE, max(2, len(rows)))
        else:
            scores = IndependenceDistance().evaluate(tables)
            sensitivity = IndependenceDistance().sensitivity([(2, 2)] * 2, self.unit)
        mechanism = calibrate_choice(
            "score", sensitivity, PureDP(self.choice), unit=self.unit, selection=Selection.EXPONENTIAL
        )
        return scores, mechanism


def normalise(counts: np.ndarray) -> float:
    """I(X; Π)/min(H(X), H(Π)), which has no useful sensitivity [READINGS 4.2]."""

    def entropy(margin: np.ndarray) -> float:
        p = margin[margin > 0] / margin.sum()
        return float(-(p * np.log2(p)).sum())

    least = min(entropy(counts.sum(axis=0)), entropy(counts.sum(axis=1)))
    information = float(MutualInformation().evaluate([Table(("p", "x"), counts)])[0])
    return information / least if least > 0 else 0.0


def refuted(release: Release, before: Rows, after: Rows, trials: int = 1600) -> bool:
    sides = [lambda runs, rows=rows: release(rows, runs) for rows in (before, after)]
    return empirical_epsilon(*sides, trials=trials, confidence=SURE).contradicts(1.0)


SOUND = {unit: Pipeline(unit=unit) for unit in Unit}

BROKEN = {
    "ε not split between the choice and the tables": Pipeline(Fraction(1), Fraction(1)),
    "ε not split among the tables": Pipeline(Fraction(1, 2), Fraction(1)),
    "Lap(2(d−k)/(nε)) on counts: the noise of a probability": Pipeline(shrink=1 / len(WITH)),
    "the exact number of rows": Pipeline(total="exact"),
    "levels read from the rows": Pipeline(seen_only=True),
}


@pytest.mark.parametrize("unit", list(Unit))
def test_the_sound_pipeline_passes(unit: Unit) -> None:
    assert not refuted(SOUND[unit], WITH, WITHOUT if unit is Unit.ADD_REMOVE else REPLACED)


@pytest.mark.parametrize("fault", BROKEN)
def test_the_broken_pipeline_is_caught(fault: str) -> None:
    assert within_attempts(lambda: refuted(BROKEN[fault], WITH, WITHOUT))


def test_a_choice_by_normalised_information_is_caught() -> None:
    """One row makes Π decide X where nothing did before: from 0 to 1, and Lemma 1 allows some thousandths."""
    plain = np.array([[0, 0, 0]] * 400)
    before, after = plain.copy(), plain.copy()
    before[0], after[0] = (1, 0, 1), (0, 1, 1)
    sound = Pipeline(Fraction(1, 2), Fraction(1, 4), Unit.REPLACE_ONE)
    broken = Pipeline(Fraction(1, 2), Fraction(1, 4), Unit.REPLACE_ONE, normalised=True)

    def only_choice(pipeline: Pipeline) -> Release:
        return lambda rows, runs: pipeline(rows, runs)[:, :1]

    assert not refuted(only_choice(sound), before, after)
    assert within_attempts(lambda: refuted(only_choice(broken), before, after))


def test_a_domain_read_from_the_rows_changes_what_is_asked() -> None:
    """With a declared schema, neighbours ask for the same tables; with levels from the rows they do not."""

    def shapes(rows: Rows, *, declared: bool) -> list[tuple[int, ...]]:
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
