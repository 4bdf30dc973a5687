"""The most probable explanation: maxima passed up the junction tree, then read back down."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from discreet.compute.inference.junction import JunctionTree
from discreet.compute.inference.layout import Floats
from discreet.compute.inference.propagation import enter, observe, separator_axes, transfer


def maximise(
    junction: JunctionTree, evidence: Mapping[int, int], likelihoods: Mapping[int, Floats]
) -> tuple[dict[int, int], float] | None:
    """The codes of all variables that maximise P(codes, evidence), and its logarithm; None if that is 0."""
    tree = junction.tree
    logs = [observe(junction, table, i, evidence) for i, table in enumerate(junction.log_potentials)]
    with np.errstate(divide="ignore"):
        enter(junction, evidence, {v: np.log(values) for v, values in likelihoods.items()}, logs, np.add)
    for i in range(len(logs) - 1, 0, -1):
        above = tree.parent[i]
        message = logs[i].max(axis=separator_axes(junction, i), keepdims=True)
        logs[above] = logs[above] + transfer(junction, message, i, above)
    value = float(logs[0].max())
    if value == -np.inf:
        return None
    found = dict(evidence)
    for clique, table in zip(tree.cliques, logs, strict=True):
        known = tuple(0 if v in evidence else found.get(v, slice(None)) for v in clique)
        free = [v for v in clique if v not in found]
        part = table[known]
        best = np.unravel_index(int(np.argmax(part)), part.shape)
        found.update({v: int(code) for v, code in zip(free, best, strict=True)})
    return found, value
