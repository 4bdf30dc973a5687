"""Columns of dates of which one is never before another in any row: admission and discharge, first and last visit."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

import numpy as np

from discreet.rows.draft.profile import Array, Column
from discreet.values.schema import Attribute
from discreet.values.schema.constraints import Ordered

TELLING = 0.01
"""An order is told only if so many dates of other rows would break it: what lies years apart is in order anyway."""


def find_orders(
    columns: Sequence[Column], attributes: Sequence[Attribute | None], least: int
) -> list[Ordered]:
    """Pairs of dates in order in all rows that have both, at least so many; without those that follow from others."""
    dated = {
        column.name: (attribute.type, column.moments)
        for column, attribute in zip(columns, attributes, strict=True)
        if attribute is not None and column.moments is not None
    }
    found: list[tuple[str, str]] = []
    for (left, (kind, before)), (right, (other, after)) in permutations(dated.items(), 2):
        if kind == other and (right, left) not in found and _is_order(before, after, least):
            found.append((left, right))
    return [
        Ordered(left, "<=", right)
        for left, right in found
        if not any((left, middle) in found and (middle, right) in found for middle in dated)
    ]


def _is_order(before: Array, after: Array, least: int) -> bool:
    both = np.isfinite(before) & np.isfinite(after)
    one, other = before[both], after[both]
    if len(one) < least or (one > other).any():
        return False
    broken = np.searchsorted(np.sort(other), one).mean() / len(other)
    return bool(broken >= TELLING)
