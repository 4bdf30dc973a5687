"""Tests whose noise cannot be seeded: how they are kept from failing by chance.

A sound implementation fails any one of them with probability about 1e-6 at most. What must not be accused is judged
at the confidence `SURE`, once. What must be caught may be tried again: if chance hides a fault from one attempt in
thirty, it hides it from five of them once in 24 million times, and a check that cannot see the fault fails all five.
"""

from __future__ import annotations

from collections.abc import Callable

SURE = 1 - 1e-6
"""The confidence at which the innocent are judged."""


def within_attempts(attempt: Callable[[], bool], attempts: int = 5) -> bool:
    """Whether one of some independent attempts succeeds; with power p each, all miss with probability (1 − p)^k."""
    return any(attempt() for _ in range(attempts))
