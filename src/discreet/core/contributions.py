"""How many rows of a person count, chosen privately: about the number that nine people in ten do not pass.

With W(k) people of at most k rows among N, k is that number if W(k − 1) ≤ 0.9·N ≤ W(k). Its score is how far it is from
that, −max(10·W(k − 1) − 9·N, 9·N − 10·W(k), 0), a whole number. A person who is added moves each of the two by 1 or
by 9; so the score moves by at most 9, however many rows they have [Smith 2011, for the quantile by the exponential
mechanism]. Where all have eight rows, no k but 8 has the score 0. Among k that noise does not tell apart a small one is
likelier, as 1 : k² (a public weight, which costs nothing): too large a k multiplies the noise of all that follows.
"""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from discreet.core.book import Account
from discreet.core.ledger import Ledger
from discreet.core.mechanism import NoisyChoice, calibrate_choice
from discreet.core.noise import choose
from discreet.values.budget import Finite
from discreet.values.errors import AirlockError
from discreet.values.unit import MOST_AVERAGED, Unit

MOST = 32
"""The largest k that is ever chosen unasked."""
SCORE = "people with at most k rows, against nine in ten; k weighs 1 : k²"
SENSITIVITY = Fraction(9)

Counts = npt.NDArray[np.int64]


def list_bounds(unit: Unit) -> range:
    """The numbers of rows among which one is chosen."""
    return range(1, (MOST_AVERAGED if unit.average else MOST) + 1)


def score_bounds(true_people: Counts) -> npt.NDArray[np.float64]:
    """The score of k = 1, 2, …, from how many people have 1, 2, … rows, and last how many have more than any k."""
    within = np.cumsum(true_people)
    below, nine_tenths = np.concatenate([[0], within[:-2]]), 9 * within[-1]
    missed = np.maximum(10 * below - nine_tenths, nine_tenths - 10 * within[:-1])
    return np.asarray(-np.maximum(missed, 0), dtype=np.float64)


def price_bound(cost: Finite, unit: Unit) -> NoisyChoice:
    """The surest choice that the cost pays for."""
    return calibrate_choice(SCORE, SENSITIVITY, cost, unit=unit)


def weigh_bounds(unit: Unit, scale: float) -> npt.NDArray[np.float64]:
    """What is added to the scores so that k = 1, 2, … are chosen as 1 : k² where they say nothing; whole numbers."""
    return np.floor(-2 * scale * np.log(list_bounds(unit)))


def choose_bound(
    ledger: Ledger, account: Account, true_people: Counts, *, cost: Finite, request: str
) -> Account:
    """The account with its unit fixed: debit, draw, store, and only then let it be used.

    A repeated request gets the same number and pays nothing.
    """
    unit = account.unit
    bounds = list_bounds(unit)
    if not unit.is_open:
        raise AirlockError(f"account {account.name!r} counts {unit.at_most} rows of each person already")
    if true_people.shape != (len(bounds) + 1,):
        raise AirlockError(f"{len(bounds)} bounds need {len(bounds) + 1} numbers of people")
    mechanism = price_bound(cost, unit)
    said = {"verb": "bound", "score": SCORE, "candidates": len(bounds), "sensitivity": str(SENSITIVITY)}
    law = {"selection": mechanism.selection.value, "scale": mechanism.scale.hex()}
    entry = ledger.debit(account.name, request, cost, {**said, **law})
    stored = entry.answer
    if stored is None:
        chosen = bounds[choose(score_bounds(true_people) + weigh_bounds(unit, mechanism.scale), mechanism)]
        stored = ledger.answer(entry, json.dumps([chosen]).encode())
    (at_most,) = json.loads(stored)
    return ledger.fix_unit(account.name, request, int(at_most))
