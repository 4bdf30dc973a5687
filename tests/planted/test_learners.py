"""A planned learner that forgets to split the budget over its tables: the audit catches it, and spares the honest."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.judgement.auditing import Draw, empirical_epsilon
from discreet.learning.plan import plan
from discreet.privacy.airlock import Airlock
from discreet.privacy.budget import PureDP
from discreet.vocabulary.graph import DAG
from discreet.vocabulary.schema import Schema

CHAIN = DAG.build({"a": [], "b": ["a"], "c": ["b"], "d": ["c"]})
FOUR = Schema.of({name: ["no", "yes"] for name in "abcd"})
WITH = {name: ["no", "yes"] for name in "abcd"}
WITHOUT = {name: ["no"] for name in "abcd"}
CLAIM = PureDP(1)
PLAN = plan(CHAIN, FOUR, spend=CLAIM, max_cells=1)
"""Three tables that a row is in all of: nothing is merged, so that there is something to split."""


def release(rows: dict[str, list[str]], price: PureDP) -> Draw:
    """The tables of the plan for what they really cost; so many independent runs in one request."""
    airlock = Airlock.open(rows, FOUR, budget=PureDP(10**6))

    def draw(trials: int) -> np.ndarray:
        found = airlock.measure(
            PLAN.sets * trials, spend=price * trials, noise=PLAN.noise, shares=list(PLAN.shares) * trials
        )
        return np.concatenate([measured.noisy.values.ravel() for measured in found]).reshape(trials, -1)

    return draw


@pytest.mark.parametrize(
    ("price", "caught"),
    [(CLAIM, False), (CLAIM * len(PLAN.sets), True)],
    ids=["honest", "every table gets the noise of the whole budget"],
)
def test_a_forgotten_split_is_caught(price: PureDP, caught: bool) -> None:
    assert len(PLAN.sets) == 3
    evidence = empirical_epsilon(
        release(WITH, price), release(WITHOUT, price), trials=3000, confidence=0.9999
    )
    assert evidence.contradicts(float(CLAIM.epsilon)) is caught, evidence
