"""Credal inference: lower and upper probabilities over all networks whose rows lie within given intervals."""

from discreet.algorithms.bounds.bracket import Bracket, Method, bound
from discreet.algorithms.bounds.decision import find_candidates
from discreet.algorithms.bounds.intervals import list_vertices, tighten

__all__ = ["Bracket", "Method", "bound", "find_candidates", "list_vertices", "tighten"]
