"""Credal inference: lower and upper probabilities over all networks whose rows lie within given intervals."""

from discreet.compute.bounds.bracket import Bracket, Method, bound
from discreet.compute.bounds.decision import find_candidates
from discreet.compute.bounds.intervals import list_vertices, tighten

__all__ = ["Bracket", "Method", "bound", "find_candidates", "list_vertices", "tighten"]
