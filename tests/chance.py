"""Tests whose noise cannot be seeded: how they are kept from failing by chance.

A sound implementation fails any one of them with probability about 1e-6 at most. What must not be accused is judged
at the confidence `SURE`, once. What must be caught may be tried again: if chance hides a fault from one attempt in
thirty, it hides it from five of them once in 24 million times, and a check that cannot see the fault fails all five.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from discreet.judge.experiments.empirical_epsilon import EpsilonBound

SURE = 1 - 1e-6
"""The confidence at which the innocent are judged."""


def within_attempts(attempt: Callable[[], bool], attempts: int = 5) -> bool:
    """Whether one of some independent attempts succeeds; with power p each, all miss with probability (1 − p)^k."""
    return any(attempt() for _ in range(attempts))


def check_claim(audit: Callable[[], EpsilonBound], claim: float, *, least: float) -> None:
    """No audit refutes the claim, and one of some finds more than `least` of what is lost.

    Half of the runs choose what to look for, now and then badly: what one audit finds has a long tail towards nothing.
    """

    def finds() -> bool:
        evidence = audit()
        assert not evidence.contradicts(claim), str(evidence)
        return evidence.epsilon > least

    assert within_attempts(finds), f"no audit found more than {least}: this experiment sees nothing"


def first_is_quick(cases: Sequence[Any]) -> list[Any]:
    """Parameters of which `make test` takes the first and `make test-slow` all.

    For audits of whole learners under several units: a learner has no arithmetic of units of its own, and what a unit
    does to each mechanism that it calls is computed by brute force, under every unit and every time, in `tests/laws`.
    """
    return [cases[0], *(pytest.param(case, marks=pytest.mark.slow) for case in cases[1:])]
