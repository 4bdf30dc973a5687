"""Columns of values to columns of codes, and back."""

from __future__ import annotations

import re

_NUMBER = re.compile(r"[+-]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|inf)")


def read_number(text: str) -> float | None:
    """The number that a text such as '-3', '4.5', '1e6' or 'inf' writes, or None."""
    return float(text) if _NUMBER.fullmatch(text) else None
