"""Learners whose airlock forgets what a budget is for: the audit spares each honest learner and accuses the other."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from chance import SURE, within_attempts
from discreet.core.queries import Tables
from discreet.entrance import open_airlock
from discreet.judge.attacks.published import Published
from discreet.judge.audit import Outcome, audit_codes
from discreet.judge.experiments.neighbours import audit_learner, make_neighbours
from discreet.learning.adaptive import adaptive
from discreet.learning.planned import planned
from discreet.learning.privbayes import privbayes
from discreet.networks.network import Network
from discreet.papers.parameters.dependent import dependent
from discreet.papers.parameters.independent import compute_parameters, independent
from discreet.values.budget import PureDP
from discreet.values.graph import DAG
from discreet.values.measurement import Measurement
from discreet.values.schema import Schema
from lying import Codes, Lie, LyingAirlock, put_under, sound, split_forgotten

NAMES = tuple("abcdef")
SCHEMA = Schema.of({name: range(4) for name in NAMES})
CHAIN = DAG.build({name: NAMES[max(i - 1, 0) : i] for i, name in enumerate(NAMES)})
CLAIM = PureDP(1)

LEARNERS: dict[str, Callable[[Any], Network]] = {
    "planned": lambda airlock: planned(airlock, CHAIN, spend=1, max_cells=1),
    "independent": lambda airlock: independent(airlock, CHAIN, spend=1),
    "dependent": lambda airlock: dependent(airlock, CHAIN, spend=1),
    "privbayes": lambda airlock: privbayes(airlock, spend=1, k=1),
    "adaptive": lambda airlock: adaptive(airlock, spend=1),
}


def draw_rows(rows: int, seed: int) -> Codes:
    """People of whom each attribute resembles the one before."""
    rng = np.random.default_rng(seed)
    codes = {NAMES[0]: rng.integers(0, 4, rows)}
    for above, name in pairwise(NAMES):
        codes[name] = np.where(rng.random(rows) < 0.7, codes[above], rng.integers(0, 4, rows))
    return {name: column.astype(np.uint8) for name, column in codes.items()}


def judge_release(learner: str, lie: Lie) -> Outcome:
    """The verdict on one release of one learner, by somebody who has all its rows."""
    rows, reference = draw_rows(2000, 1), draw_rows(400, 2)
    network = LEARNERS[learner](LyingAirlock(rows, SCHEMA, lie))
    assert network.provenance is not None and network.provenance.learner == learner
    found = audit_codes(Published.of_network(network), rows, reference, complete=True, confidence=SURE)
    return found.outcome


@pytest.mark.parametrize("learner", LEARNERS)
def test_the_honest_learner_is_spared(learner: str) -> None:
    assert judge_release(learner, sound) is Outcome.KEPT


@pytest.mark.parametrize("learner", LEARNERS)
def test_a_forgotten_split_is_caught(learner: str) -> None:
    assert within_attempts(lambda: judge_release(learner, split_forgotten) is Outcome.BROKEN)


PAIR = Schema.of({"a": ["no", "yes"], "b": ["low", "high"]})
ARROW = DAG.build({"a": [], "b": ["a"]})


def sample_forgotten(airlock: LyingAirlock, query: Tables, honest: list[Measurement]) -> list[Measurement]:
    """The noise that a secret sample affords, put on all rows."""
    if query.sample is None:
        return honest
    price = sum((mechanism.cost for mechanism in query.mechanisms), PureDP.zero())
    return put_under(honest, airlock.ask_freely(Tables.price(query.sets, price, unit=query.unit)))


@pytest.mark.parametrize(("lie", "caught"), [(sound, False), (sample_forgotten, True)])
def test_a_forgotten_sample_is_caught(lie: Lie, caught: bool) -> None:
    """Algorithm 1 looks at a secret sample first, which affords less noise; here all rows get that noise."""

    def learn(rows: Codes) -> Published:
        network = dependent(LyingAirlock(rows, PAIR, lie), ARROW, spend=1, rate="1e-12", stage_one="9/10")  # type: ignore[arg-type]
        return Published.of_network(network)

    def is_caught() -> bool:
        return audit_learner(learn, make_neighbours(PAIR.sizes), trials=140, confidence=SURE).contradicts(1.0)

    assert within_attempts(is_caught) if caught else not is_caught()


def test_the_ledger_does_not_believe_a_learner() -> None:
    """Tables measured one by one at the whole spend cost that for each of them, whatever the learner calls it."""
    airlock = open_airlock({"a": ["no", "yes"], "b": ["low", "high"]}, PAIR, budget=PureDP(10))
    compute_parameters(airlock, ARROW, spend=CLAIM)
    assert airlock.remaining == PureDP(9)
    tables = [members for family in ARROW.families() for members in (family, family[:-1])]
    for members in tables:
        airlock.measure([members], spend=CLAIM)
    assert airlock.remaining == PureDP(9) - CLAIM * len(tables)
