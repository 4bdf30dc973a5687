"""Promises about people that are not kept: each is caught by a check that the honest way passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from chance import SURE, within_attempts
from discreet.core.counter import TrueCounts
from discreet.core.queries import Tables
from discreet.entrance import open_airlock, open_counter
from discreet.judge.experiments.empirical_epsilon import EpsilonBound, empirical_epsilon
from discreet.rows import people
from discreet.values.budget import PureDP
from discreet.values.schema import Schema
from discreet.values.unit import Unit

SCHEMA = Schema.of({"x": ["a", "b"]})
OTHERS = {"id": ["q", "r"], "x": ["b", "b"]}
VISITOR = {"id": ["p"] * 4 + OTHERS["id"], "x": ["a"] * 4 + OTHERS["x"]}
"""The neighbour: one more person, with four visits."""
VISITS = 4
FEW = 400
"""Runs that tell ε = 4 from a claim of 1: what is in half of the one side's runs is in a fiftieth of the other's."""


def release(rows: dict[str, list[str]], unit: Unit) -> Callable[[int], np.ndarray]:
    """Noisy tables for ε = 1, as often as asked."""

    def draw(trials: int) -> np.ndarray:
        with open_airlock(rows, SCHEMA, budget="1000000", unit=unit) as airlock:
            return np.array([airlock.measure([("x",)], spend=1)[0].noisy.values for _ in range(trials)])

    return draw


def audit_person(unit: Unit, trials: int = 1500) -> EpsilonBound:
    """What runs with and without one person prove about ε."""
    return empirical_epsilon(release(VISITOR, unit), release(OTHERS, unit), trials=trials, confidence=SURE)


@pytest.mark.parametrize("k", [1, VISITS])
def test_a_person_is_hidden_by_the_promise_that_is_made_to_people(k: int) -> None:
    found = audit_person(Unit("add-remove", "id", k))
    assert not found.contradicts(1.0), str(found)


def test_an_averaged_person_is_hidden_and_one_whose_rows_keep_their_weight_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A planted twin: each of a person's rows weighs as much as a person."""
    unit = Unit("add-remove", "id", VISITS, average=True)
    found = audit_person(unit)
    assert not found.contradicts(1.0), str(found)
    monkeypatch.setattr(
        people, "weigh_rows", lambda ids, chosen, grain: np.full(int(chosen.sum()), grain, dtype=np.int64)
    )
    assert within_attempts(lambda: audit_person(unit, FEW).contradicts(1.0))


def test_a_person_with_four_rows_is_not_hidden_by_a_promise_about_rows() -> None:
    """Unbounded: the ε of a row account is a quarter of what it gives away about this person."""
    assert within_attempts(lambda: audit_person(Unit.ADD_REMOVE, FEW).contradicts(1.0))


def first_come(ids: np.ndarray, at_most: int) -> np.ndarray:
    """A broken bound: by the order of the file across people, so many rows for each person on average."""
    persons = len({tuple(found) for found in ids.tolist()})
    return np.arange(len(ids)) < at_most * persons - 1


def pushes_others_out(choose: Callable[[np.ndarray, int], np.ndarray]) -> bool:
    """Whether other people's rows are kept with another chance once a person comes in before them."""
    key = b"k" * 16
    ids = ["q", "q", "r"]
    alone = np.mean([choose(people.hash_ids(ids, key), 1) for _ in range(900)], axis=0)
    beside = np.mean([choose(people.hash_ids(["p"] * 4 + ids, key), 1)[4:] for _ in range(900)], axis=0)
    return bool(np.abs(alone - beside).max() > 0.15)  # 6 standard deviations of a difference of such means


def test_a_bound_by_file_order_is_caught_and_the_secret_choice_is_not() -> None:
    assert not pushes_others_out(people.choose_rows)
    assert pushes_others_out(first_come)


def is_guessable(hash_ids: Callable[[list[str], bytes], np.ndarray]) -> bool:
    """Whether somebody who knows an id, but not the key, can tell its hash."""
    return bool((hash_ids(["p"], people.draw_key()) == hash_ids(["p"], people.draw_key())).all())


def test_an_id_that_is_hashed_without_a_key_is_caught() -> None:
    assert not is_guessable(people.hash_ids)
    assert is_guessable(lambda ids, key: people.hash_ids(ids, b"always the same."))


HEAVY = {"x": ["a", "b"], "n": [900, 1]}
LIGHT = {"x": ["b"], "n": [1]}
"""The neighbour without the row that stands for 900."""


def audit_weight(cap: int, claimed: Unit) -> EpsilonBound:
    """What runs with and without a heavy row prove, if weights are cut off at `cap` and noise is made for the claim."""
    unit = Unit("add-remove", weight="n", at_most=cap)

    def release(rows: dict[str, list[Any]]) -> Callable[[int], np.ndarray]:
        counter = open_counter(rows, SCHEMA, weight="n", unit=unit)
        counts = TrueCounts(counter, SCHEMA.sizes)
        query = Tables.price([("x",)], PureDP(1), unit=claimed)
        return lambda trials: np.array(
            [query.read(query.draw(counts))[0].noisy.values for _ in range(trials)]
        )

    return empirical_epsilon(release(HEAVY), release(LIGHT), trials=1000, confidence=SURE)


def test_a_weight_without_a_cap_in_the_sensitivity_is_caught() -> None:
    """As it was once: a row of weight 900 moved a count by 900, under a promise about one row."""
    honest = audit_weight(5, Unit("add-remove", weight="n", at_most=5))
    assert not honest.contradicts(1.0), str(honest)
    assert within_attempts(lambda: audit_weight(900, Unit.ADD_REMOVE).contradicts(1.0))
