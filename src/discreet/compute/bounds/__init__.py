"""Credal inference: lower and upper probabilities over all networks whose conditionals lie within given intervals."""

from discreet.compute.bounds.bracket import Bracket, Method, bound
from discreet.compute.bounds.counting import bound_conditionals, bound_counts
from discreet.compute.bounds.decision import find_candidates
from discreet.compute.bounds.inner import Elimination
from discreet.compute.bounds.outer import bound_outer
from discreet.compute.bounds.problem import centre_of, list_vertices, pose, tighten

__all__ = [
    "Bracket",
    "Elimination",
    "Method",
    "bound",
    "bound_conditionals",
    "bound_counts",
    "bound_outer",
    "centre_of",
    "find_candidates",
    "list_vertices",
    "pose",
    "tighten",
]
