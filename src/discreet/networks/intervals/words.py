"""What is said beside intervals: what they cover, why they are wide, why there are none."""

from __future__ import annotations

import numpy as np

from discreet.networks.provenance import Provenance
from discreet.values.table import Array

ROUNDED = 1e-6
"""An answer that is no further beyond an end is not outside."""

VAGUE = "As far as this release tells, it may be anything."
OUTWEIGHED = "Noise outweighs the rows that it is about."
STRAY = " The network's own answer lies outside: go by the interval."
ASK = 'ask for them with intervals="guaranteed" (--interval guaranteed)'
SLOW = f"No intervals: they would take more than a second here; {ASK}."
IMPOSSIBLE = "No intervals: without the noise, this evidence would most likely be impossible."
SOFT = "they are not worked out for evidence that is given as a likelihood"
REMADE = "Its error is judged by releases that were made again from the noisy tables."


def state_cover(coverage: float, provenance: Provenance | None, *, world: bool) -> str:
    """What guaranteed intervals about the table or the world cover, in a sentence."""
    told = (
        "for this answer: in the population of which the rows are a random sample, it lies in [ ]."
        if world
        else "for all answers together: the table's own answer lies in [ ], whatever the graph leaves out."
    )
    return f"{100 * coverage:g} % sure, {told}{describe_rows(provenance)}"


def tell_cover(coverage: float, provenance: Provenance | None, *, world: bool) -> str:
    """What calibrated intervals about the table or the world hold, in a sentence."""
    whose = "the answer in the population" if world else "the table's own answer"
    return f"About {100 * coverage:g} % of such intervals contain {whose}.{describe_rows(provenance)}"


def describe_rows(provenance: Provenance | None) -> str:
    """What the table is, where not all of its rows count; empty where they do."""
    if provenance is None:
        return ""
    unit = provenance.unit
    if unit.average:
        return f" In the table, each person counts once, as the average of at most {unit.at_most} rows."
    if unit.person:
        rows = (
            "1 row of each person counts"
            if unit.at_most == 1
            else f"{unit.at_most} rows of each person count"
        )
        return f" In the table, at most {rows}."
    if unit.weight:
        return f" In the table, a row counts as often as {unit.weight} says, at most {unit.at_most} times."
    return ""


def find_stray(point: Array | float, low: Array, high: Array) -> str:
    """A sentence where the network's own answer lies outside of the interval, as it may where it does not fit."""
    stray = (low > np.asarray(point) + ROUNDED).any() or (high < np.asarray(point) - ROUNDED).any()
    return STRAY if stray else ""
