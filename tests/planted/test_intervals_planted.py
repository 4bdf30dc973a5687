"""Guaranteed intervals against an adversary who chooses the next table by the noise so far; broken twins are caught.

The adversary sees everything, the noise included, and goes on measuring until some interval misses. The rule of
`compute.region.margins` must hold all the same; one that divides α by the final number of cells must not, nor one that
lets a second table reuse the noise of the first.
"""

from __future__ import annotations

from _interval_adversary import ALPHA, rate_misses
from chance import SURE
from discreet.judge.tails import bound_share_below


def least_rate(rule: str, trials: int) -> float:
    """The least rate of misses that so many trials leave possible, at the confidence `SURE`."""
    return bound_share_below(round(rate_misses(rule, trials) * trials), trials, 1 - SURE)


def test_the_rule_holds_against_an_adversary_and_a_split_by_final_cells_does_not() -> None:
    """New tables until one misses: Σ α/t grows without end, Σ α·cost/budget does not."""
    assert least_rate("rule", 300) <= ALPHA
    assert least_rate("final cells", 900) > ALPHA


def test_tables_measured_again_hold_at_all_times_and_reused_noise_is_caught() -> None:
    """The mean of all tables so far is bounded at every time at once; noise that is used twice does not average."""
    assert least_rate("again", 200) <= ALPHA
    assert least_rate("reused noise", 200) > ALPHA
