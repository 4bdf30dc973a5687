"""Intervals beside answers: what noise, the graph and sampling leave open, and how that is said."""

from discreet.networks.intervals.ends import (
    COVERAGE,
    SUM_TOLERANCE,
    Strength,
    bound_tables,
    explain_lack,
    pose_levels,
    read_strength,
    require_intervals,
    shape_ends,
    state_guarantee,
)
from discreet.networks.intervals.policy import SEED, IntervalPolicy, Intervals, Whose
from discreet.networks.intervals.words import VAGUE

__all__ = [
    "COVERAGE",
    "SEED",
    "SUM_TOLERANCE",
    "VAGUE",
    "IntervalPolicy",
    "Intervals",
    "Strength",
    "Whose",
    "bound_tables",
    "explain_lack",
    "pose_levels",
    "read_strength",
    "require_intervals",
    "shape_ends",
    "state_guarantee",
]
