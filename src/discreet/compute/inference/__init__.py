"""Exact inference in discrete Bayesian networks."""

from discreet.compute.inference.engine import Engine, Marginals

__all__ = ["Engine", "Marginals"]
