"""Attacks on a release, and how much they can win."""
