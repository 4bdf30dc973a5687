"""Exact inference in discrete Bayesian networks."""

from discreet.algorithms.inference.engine import Engine, Marginals

__all__ = ["Engine", "Marginals"]
