"""Data-dependent private parameter learning for directed graphical models [000, 001]: baseline, Algorithm 1, bounds."""
