"""The question whether a tree is worth it: the sound one keeps its claim, and twins that are not means are caught."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from chance import SURE, check_claim, within_attempts
from discreet.core.scores import Floats, TreeGain
from discreet.entrance import open_airlock
from discreet.judge.experiments.empirical_epsilon import Draw, EpsilonBound, empirical_epsilon
from discreet.values.budget import PureDP
from discreet.values.schema import Schema
from discreet.values.table import Table
from discreet.values.unit import Unit

SCHEMA = Schema.of({name: ["0", "1"] for name in "abc"})
PAIRS = list(itertools.combinations("abc", 2))
TRIALS = 3000

# All rows but one are alike. That one makes every pair depend by nearly 2 rows, and without it none does at all: so
# the mean gain, by the rows that one row may move, is 1 or 0.
ALIKE = [(1, 1, 1)] * 1000
NEIGHBOURS = ([*ALIKE[1:], (0, 0, 0)], ALIKE)


@dataclass(frozen=True, slots=True)
class SumForgotten(TreeGain):
    """The sum over the links, sold as their mean."""

    def evaluate(self, tables: Sequence[Table]) -> Floats:
        """As many times too much as there are links."""
        return TreeGain.evaluate(self, tables) * self.links


@dataclass(frozen=True, slots=True)
class ShareForgotten(TreeGain):
    """Rows to move, sold as if one row moved them by 1."""

    def evaluate(self, tables: Sequence[Table]) -> Floats:
        """Twice too much."""
        return TreeGain.evaluate(self, tables) * 2.0


def audit(kind: type[TreeGain]) -> EpsilonBound:
    """By experiment, where a yes is unlikely without the row: there a mean is as likely as ε allows with it."""
    score = kind((0.0,) * 3, 2, 1.0)

    def ask(rows: list[tuple[int, ...]]) -> Draw:
        columns = {name: [str(row[i]) for row in rows] for i, name in enumerate("abc")}

        def draw(trials: int) -> np.ndarray:
            with open_airlock(columns, SCHEMA, budget=PureDP(trials), unit=Unit.REPLACE_ONE) as airlock:
                return np.array([airlock.select(PAIRS, score, spend=1) for _ in range(trials)])

        return draw

    return empirical_epsilon(*map(ask, NEIGHBOURS), trials=TRIALS, confidence=SURE)


def find_change(score: TreeGain, rows: int) -> float:
    """By exhaustion: how far replacing one of so many rows of three attributes moves the score at most."""
    people = list(itertools.product((0, 1), repeat=3))

    def evaluate(found: tuple[tuple[int, ...], ...]) -> Floats:
        whole = np.zeros((2, 2, 2), dtype=np.int64)
        for person in found:
            whole[person] += 1
        return score.evaluate([Table(("a", "b", "c"), whole).project(pair) for pair in PAIRS])

    known = {found: evaluate(found) for found in itertools.combinations_with_replacement(people, rows)}
    return max(
        float(np.abs(values - known[tuple(sorted((*found[:i], person, *found[i + 1 :])))]).max())
        for found, values in known.items()
        for i in range(rows)
        for person in people
    )


def test_the_sound_question_keeps_its_claim() -> None:
    # It finds about 0.8, give or take 0.06.
    check_claim(lambda: audit(TreeGain), 1.0, least=0.4)


@pytest.mark.parametrize("kind", [SumForgotten, ShareForgotten])
def test_the_same_audit_catches_a_question_that_is_no_mean(kind: type[TreeGain]) -> None:
    assert within_attempts(lambda: audit(kind).contradicts(1.0))


def test_exhaustion_spares_the_sound_one_and_catches_both_twins() -> None:
    stated = float(TreeGain((0.0,) * 3, 2, 0.0).sensitivity([(2, 2)] * 3, Unit.REPLACE_ONE))
    assert find_change(TreeGain((0.0,) * 3, 2, 0.0), 5) <= stated
    for kind in (SumForgotten, ShareForgotten):
        assert find_change(kind((0.0,) * 3, 2, 0.0), 5) > 1.5 * stated
