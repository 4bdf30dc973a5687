"""Private Bayesian inference for a public graph: four ways to release what the rows say about its tables [002]."""

from discreet.learning.posterior.coefficients import fourier
from discreet.learning.posterior.optimum import maximum
from discreet.learning.posterior.samples import sample
from discreet.learning.posterior.updates import laplace

__all__ = ["fourier", "laplace", "maximum", "sample"]
