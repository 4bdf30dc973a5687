"""Broken versions of the papers' learners: the audit and the ledger must catch each of them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from chance import SURE, within_attempts
from discreet.core.mechanism import calibrate_counts
from discreet.core.noise import add_noise
from discreet.entrance import open_airlock
from discreet.judge.empirical_epsilon import Draw, empirical_epsilon
from discreet.papers.independent import compute_parameters
from discreet.papers.subsample import Subsampling
from discreet.values.budget import PureDP
from discreet.values.graph import DAG
from discreet.values.schema import Schema

PAIR = Schema.of({"a": ["no", "yes"], "b": ["low", "high"]})
ARROW = DAG.build({"a": [], "b": ["a"]})
TABLES = [members for family in ARROW.families() for members in (family, family[:-1])]
WITH = {"a": ["no", "yes"], "b": ["low", "high"]}
WITHOUT = {"a": ["no"], "b": ["low"]}
CLAIM = PureDP(1)

HONEST = CLAIM
HALVES_FORGOTTEN = CLAIM * 2
"""Lap(1/E[i]) where Lap(2/E[i]) is due: each of a node's two tables gets the whole share of the node."""
SPLIT_FORGOTTEN = CLAIM * len(TABLES)
"""Every table gets the noise of the whole budget."""
SAMPLE_FORGOTTEN = Subsampling(Fraction(1, 100), "add-remove").afford(CLAIM)  # type: ignore[arg-type]
"""The noise that a secret sample of a hundredth affords, put on all rows."""


def release(rows: dict[str, list[str]], price: PureDP) -> Draw:
    """The tables of Procedure 1 for what they really cost, with the noise that the airlock gives for it."""
    airlock = open_airlock(rows, PAIR, budget=PureDP(10**6))
    mechanisms = calibrate_counts(TABLES, price, unit=airlock.unit)
    # Runs by the thousand, each through the airlock, take minutes: its laws and true tables are taken once.
    assert [found.law for found in airlock.measure(TABLES, spend=price)] == [
        found.law for found in mechanisms
    ]
    exact = [table.noisy.values.ravel() for table in airlock.reveal(TABLES, reason="to add noise often")]

    def draw(trials: int) -> np.ndarray:
        noisy = [add_noise(np.tile(t, (trials, 1)), m) for t, m in zip(exact, mechanisms, strict=True)]
        return np.concatenate(noisy, axis=1)

    return draw


def is_caught(price: PureDP, trials: int) -> bool:
    """Whether so many runs on either side prove that more than the claim was lost."""
    evidence = empirical_epsilon(
        release(WITH, price), release(WITHOUT, price), trials=trials, confidence=SURE
    )
    return evidence.contradicts(float(CLAIM.epsilon))


@pytest.mark.parametrize(
    ("price", "trials"),
    [(SPLIT_FORGOTTEN, 1500), (SAMPLE_FORGOTTEN, 1000), (HALVES_FORGOTTEN, 6000)],
    ids=["split", "sample", "halves"],
)
def test_the_audit_catches_what_was_forgotten(price: PureDP, trials: int) -> None:
    assert within_attempts(lambda: is_caught(price, trials))


def test_the_audit_does_not_accuse_the_honest_split() -> None:
    assert not is_caught(HONEST, 6000)


def test_the_ledger_does_not_believe_a_learner() -> None:
    """Tables measured one by one at the whole spend cost four times as much, whatever the learner calls it."""
    airlock = open_airlock(WITH, PAIR, budget=PureDP(10))
    compute_parameters(airlock, ARROW, spend=CLAIM)
    assert airlock.remaining == PureDP(9)
    for members in TABLES:
        airlock.measure([members], spend=CLAIM)
    assert airlock.remaining == PureDP(9) - SPLIT_FORGOTTEN
