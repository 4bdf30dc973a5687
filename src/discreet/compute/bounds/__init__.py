"""Credal inference: lower and upper probabilities over all networks whose conditionals lie within given intervals."""
