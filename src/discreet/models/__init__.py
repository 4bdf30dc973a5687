"""Bayesian networks and the file formats that carry them."""
