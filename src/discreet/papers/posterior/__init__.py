"""Private Bayesian inference for a public graph: four ways to release what the rows say about its tables [002]."""

from discreet.papers.posterior.coefficients import fourier
from discreet.papers.posterior.optimum import maximum
from discreet.papers.posterior.samples import sample
from discreet.papers.posterior.updates import laplace

__all__ = ["fourier", "laplace", "maximum", "sample"]
