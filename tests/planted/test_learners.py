"""A planned learner that forgets to split the budget over its tables: the audit catches it, and spares the honest."""

from __future__ import annotations

import numpy as np

from chance import SURE, within_attempts
from discreet.core.mechanism import calibrate_counts
from discreet.core.noise import add_noise
from discreet.entrance import open_airlock
from discreet.judge.empirical_epsilon import Draw, empirical_epsilon
from discreet.learning.plan import plan
from discreet.values.budget import PureDP
from discreet.values.graph import DAG
from discreet.values.schema import Schema

CHAIN = DAG.build({"a": [], "b": ["a"], "c": ["b"], "d": ["c"]})
FOUR = Schema.of({name: ["no", "yes"] for name in "abcd"})
WITH = {name: ["no", "yes"] for name in "abcd"}
WITHOUT = {name: ["no"] for name in "abcd"}
CLAIM = PureDP(1)
PLAN = plan(CHAIN, FOUR, spend=CLAIM, max_cells=1)
"""Three tables that a row is in all of: nothing is merged, so that there is something to split."""


def release(rows: dict[str, list[str]], price: PureDP) -> Draw:
    """The tables of the plan for what they really cost, with the noise that the airlock gives for it."""
    airlock = open_airlock(rows, FOUR, budget=PureDP(10**6))
    asked = {"noise": PLAN.noise, "shares": list(PLAN.shares)}
    mechanisms = calibrate_counts(PLAN.sets, price, unit=airlock.unit, **asked)
    # Runs by the thousand, each through the airlock, take minutes: its laws and true tables are taken once.
    measured = airlock.measure(PLAN.sets, spend=price, **asked)
    assert [found.law for found in measured] == [found.law for found in mechanisms]
    exact = [table.noisy.values.ravel() for table in airlock.reveal(PLAN.sets, reason="to add noise often")]

    def draw(trials: int) -> np.ndarray:
        noisy = [add_noise(np.tile(t, (trials, 1)), m) for t, m in zip(exact, mechanisms, strict=True)]
        return np.concatenate(noisy, axis=1)

    return draw


def is_caught(price: PureDP) -> bool:
    evidence = empirical_epsilon(release(WITH, price), release(WITHOUT, price), trials=2000, confidence=SURE)
    return evidence.contradicts(float(CLAIM.epsilon))


def test_a_forgotten_split_is_caught_and_an_honest_one_is_not() -> None:
    """Every table gets the noise of the whole budget, or of its share."""
    assert len(PLAN.sets) == 3
    assert within_attempts(lambda: is_caught(CLAIM * len(PLAN.sets)))
    assert not is_caught(CLAIM)
