"""A question about levels as one about groups of levels, where it tells no two levels of a group apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from discreet.values.schema.encoding import Derived
from discreet.values.table import Array

Question = tuple[tuple[str, ...], Array, Mapping[str, Sequence[int]]]
"""The targets, functions of them, and the evidence: some levels of each attribute."""


def put_together(
    found: Derived, targets: tuple[str, ...], functions: Array, evidence: Mapping[str, Sequence[int]]
) -> Question:
    """The question about groups in place of their source; as it is if it tells levels of a group apart, or has both."""
    name, groups = found.source, found.lookup()
    if found.name in targets or found.name in evidence:
        return targets, functions, evidence
    firsts = np.unique(groups, return_index=True)[1]
    lifted, known = functions, dict(evidence)
    if name in targets:
        axis = 1 + targets.index(name)
        lifted = np.take(functions, firsts, axis=axis)
        if not np.array_equal(np.take(lifted, groups, axis=axis), functions):
            return targets, functions, evidence
    if name in evidence:
        inside = np.isin(np.arange(len(groups)), list(known.pop(name)))
        if not np.array_equal(inside[firsts][groups], inside):
            return targets, functions, evidence
        known[found.name] = np.flatnonzero(inside[firsts]).tolist()
    return tuple(found.name if target == name else target for target in targets), lifted, known
