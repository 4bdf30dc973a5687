"""What a plan says of a search's time and memory: it grows with what is looked at, and needs no rows."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.entrance import open_airlock
from discreet.judge.preview import rehearse
from discreet.learning.adaptive import adaptive
from discreet.learning.searching.effort import count_batches, predict_effort
from discreet.learning.searching.prices import Prices, Rates, suit_rates
from discreet.values.budget import PureDP
from discreet.values.schema import Schema

SIZES = [2, 3, 5, 8] * 5


def test_it_grows_with_everything_that_is_worked_on() -> None:
    known = {"batches": 3, "candidates": 500, "cells": 10_000, "model_cells": 2**17}
    few = predict_effort(SIZES, 1e5, **known)
    for more in (
        predict_effort(SIZES, 1e6, **known),
        predict_effort(SIZES, 1e5, **{**known, "candidates": 5_000}),
        predict_effort(SIZES * 2, 1e5, **known),
    ):
        assert more.seconds > few.seconds and more.megabytes > few.megabytes
    assert predict_effort(SIZES, 1e5, **{**known, "batches": 9}).seconds > few.seconds
    assert predict_effort(SIZES, 1e5, **{**known, "model_cells": 2**10}).seconds < few.seconds


def test_more_budget_buys_more_batches_up_to_a_bound() -> None:
    found = [
        count_batches(Prices(False, 1, 1, epsilon), SIZES, 1e4, Rates()) for epsilon in (0.1, 1, 10, 1e3, 1e6)
    ]
    assert found == sorted(found) and found[0] >= 1
    assert found[-1] == found[-2], "the budget is cut into so many typical pairs and no more"


def test_a_plan_says_it_in_words_and_as_numbers() -> None:
    schema = Schema.of({f"x{i}": range(size) for i, size in enumerate([9] * 6)})
    made = rehearse(schema, None, spend=PureDP(1), rows=20_000, options={"width": 2})
    assert "of one processor and" in made.explain()
    said = made.to_json()["effort"]
    assert said["seconds"] > 0.8 and 200 < said["megabytes"] < 400
    assert rehearse(schema, None, spend=PureDP(1), learner="privbayes").effort is None


@pytest.mark.parametrize("rows", [1, 10**9])
def test_it_is_said_for_any_number_of_rows(rows: int) -> None:
    schema = Schema.of({"a": range(2), "b": range(3)})
    assert "It would take about" in rehearse(schema, None, spend=PureDP(1), rows=rows).explain()


def test_a_table_of_numbers_is_cut_into_more_pairs_than_one_of_names() -> None:
    numbers = {f"x{i}": range(9) for i in range(8)}
    names = {f"y{i}": list("abcdefghi") for i in range(4)}
    rates = Rates()
    assert suit_rates(rates, Schema.of({**numbers, **names})) == rates, "28 of 66 pairs are of numbers"
    assert suit_rates(rates, Schema.of({**numbers, "y": list("abc")})).fewest == rates.fewest_smooth
    assert suit_rates(Rates(fewest=5.0), Schema.of(numbers)).fewest == 5.0


@pytest.mark.slow
def test_a_tree_of_numbers_does_not_take_all_of_the_budget() -> None:
    """Eight noisy copies of one number: 13 or 14 pairs in four tries, where 7, a tree, were all before."""
    rng = np.random.default_rng(1)
    copied = rng.integers(0, 10, 8000)
    rows = {f"x{i}": np.clip(copied + rng.integers(-1, 2, 8000), 0, 9).astype(str) for i in range(8)}
    airlock = open_airlock(rows, Schema.of({name: range(10) for name in rows}), budget=PureDP(2))
    many, few = (
        len(adaptive(airlock, spend=1, rates=Rates(fewest_smooth=fewest), width=2).provenance.details["sets"])
        for fewest in (Rates().fewest_smooth, 1.0)
    )
    assert many > 9 > few >= 7
