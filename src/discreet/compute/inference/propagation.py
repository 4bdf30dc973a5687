"""The numpy path: the same two sweeps as the compiled one, with arrays; with logarithms; and with maxima for sums.

Messages are ratios to prior marginals; `kernels.py` says why. An observed axis is kept with length 1, so that tables
still broadcast.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from discreet.compute.inference.junction import Floats, JunctionTree, smallest_positive

TINY = 1e-280
"""Products below this may lose digits, so they count as 0."""

UNLIKELY = -575.0
"""If the evidence above a lost product has a smaller log-probability, it may rest on what was lost: use logarithms."""

Codes = Mapping[int, int]
Likelihoods = Mapping[int, Floats]


@dataclass(frozen=True, slots=True)
class Beliefs:
    """P(clique | evidence) for every clique, observed axes kept with length 1, and log P(evidence)."""

    cliques: tuple[Floats, ...]
    log_evidence: float


def propagate(junction: JunctionTree, evidence: Codes, likelihoods: Likelihoods) -> Beliefs | None:
    """Posterior cliques in plain arithmetic; None if underflow may have spoilt them.

    A lost product was below `TINY`, and what the rest of the evidence makes of it is at most 1. So it matters only if
    P(evidence) is that small beside the probability of the evidence that had come in when it was lost.
    """
    if junction.calibrated is None:
        return None
    tree, (priors, separators) = junction.tree, junction.calibrated
    beliefs = [observe(junction, priors[i], i, evidence) for i in range(len(priors))]
    lifted: list[Floats | None] = [None] * len(priors)
    peaks = {v: float(values.max()) for v, values in likelihoods.items()}
    if not all(peaks.values()):
        return None
    scaled = {v: values / peaks[v] for v, values in likelihoods.items()}
    touched = enter(junction, evidence, scaled, beliefs, np.multiply)
    below = [0.0] * len(priors)  # log P of the evidence in a subtree
    log_lost = -np.inf
    floors = list(junction.least)  # no positive product made in a clique is smaller
    for v, values in likelihoods.items():
        floors[junction.top[v]] *= float(scaled[v][values > 0].min())
    for i in range(len(priors) - 1, -1, -1):
        if not touched[i]:
            continue
        if not floors[i] > TINY:
            log_lost = max(log_lost, below[i])
        mass = beliefs[i].sum(axis=separator_axes(junction, i), keepdims=True)
        mass[mass < TINY] = 0.0
        if not mass.any():
            return Beliefs((), -np.inf) if log_lost == -np.inf else None
        if i == 0:
            total = float(mass.sum())
            beliefs[0] = beliefs[0] / total
            below[0] += float(np.log(total))
            if below[0] - log_lost < UNLIKELY:
                return None
            break
        before = _cut(junction, separators[i], i, evidence)
        ratio = np.divide(mass, before, out=np.zeros_like(mass), where=before > 0)
        peak = float(ratio.max())
        below[i] += float(np.log(peak))
        beliefs[i] = beliefs[i] / peak
        lifted[i] = mass / peak
        above = tree.parent[i]
        below[above] += below[i]
        floors[above] *= smallest_positive(ratio / peak)
        beliefs[above] = beliefs[above] * transfer(junction, ratio / peak, i, above)
    for i in range(1, len(priors)):
        above = tree.parent[i]
        mass = beliefs[above].sum(axis=separator_axes(junction, above, i), keepdims=True)
        mass = transfer(junction, mass, i, i)
        raised = lifted[i]
        before = _cut(junction, separators[i], i, evidence) if raised is None else raised
        beliefs[i] = beliefs[i] * np.divide(mass, before, out=np.zeros_like(mass), where=before > 0)
    return Beliefs(tuple(beliefs), below[0] + float(sum(np.log(peak) for peak in peaks.values())))


def propagate_log(junction: JunctionTree, evidence: Codes, likelihoods: Likelihoods) -> Beliefs:
    """Posterior cliques with messages in logarithms, which cannot underflow; log P(evidence) is -inf if it is 0."""
    tree, logs = junction.tree, _enter_logs(junction, evidence, likelihoods)
    upward: list[Floats] = [np.zeros(())] * len(logs)
    for i in range(len(logs) - 1, 0, -1):
        upward[i] = log_sum(logs[i], separator_axes(junction, i))
        above = tree.parent[i]
        logs[above] = logs[above] + transfer(junction, upward[i], i, above)
    total = float(log_sum(logs[0], tuple(range(logs[0].ndim))).ravel()[0])
    if total == -np.inf:
        return Beliefs((), total)
    logs[0] = logs[0] - total
    for i in range(1, len(logs)):
        above = tree.parent[i]
        mass = transfer(junction, log_sum(logs[above], separator_axes(junction, above, i)), i, i)
        logs[i] = logs[i] + np.where(
            upward[i] == -np.inf, -np.inf, mass - np.where(upward[i] == -np.inf, 0.0, upward[i])
        )
    return Beliefs(tuple(np.exp(table) for table in logs), total)


def maximise(
    junction: JunctionTree, evidence: Codes, likelihoods: Likelihoods
) -> tuple[dict[int, int], float] | None:
    """The codes of all variables that maximise P(codes, evidence), and its logarithm; None if that is 0.

    Maxima are passed up the tree, then read back down.
    """
    tree, logs = junction.tree, _enter_logs(junction, evidence, likelihoods)
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


def log_sum(table: Floats, axis: tuple[int, ...]) -> Floats:
    """log Σ exp along `axis`, keeping dimensions; a sum of nothing but zeros is -inf."""
    peak = table.max(axis=axis, keepdims=True)
    peak = np.where(np.isfinite(peak), peak, 0.0)
    with np.errstate(divide="ignore"):
        result: Floats = np.log(np.exp(table - peak).sum(axis=axis, keepdims=True)) + peak
    return result


def marginals(junction: JunctionTree, beliefs: Beliefs, evidence: Codes) -> Floats:
    """Every variable's marginal, read off the smallest clique that holds it."""
    home: dict[int, int] = {}
    for i, clique in enumerate(junction.tree.cliques):
        for v in clique:
            if v not in home or beliefs.cliques[i].size < beliefs.cliques[home[v]].size:
                home[v] = i
    found = []
    for v, size in enumerate(junction.sizes):
        if v in evidence:
            found.append(np.eye(size)[evidence[v]])
        else:
            found.append(junction.project(beliefs.cliques[home[v]], home[v], (v,)).reshape(size))
    return np.concatenate(found)


def observe(junction: JunctionTree, table: Floats, clique: int, evidence: Codes) -> Floats:
    """The part of a clique's table that agrees with the evidence."""
    if not evidence:
        return table
    cut = tuple(
        slice(evidence[v], evidence[v] + 1) if v in evidence else slice(None)
        for v in junction.tree.cliques[clique]
    )
    return table[cut]


def enter(
    junction: JunctionTree,
    evidence: Codes,
    likelihoods: Likelihoods,
    tables: list[Floats],
    combine: Callable[[Floats, Floats], Floats],
) -> list[bool]:
    """Enter likelihoods at the clique nearest the root; flag every clique on a path from evidence to the root."""
    touched = [False] * len(tables)
    for v in {**evidence, **likelihoods}:
        i = junction.top[v]
        if v in likelihoods:
            vector = likelihoods[v][evidence[v] : evidence[v] + 1] if v in evidence else likelihoods[v]
            tables[i] = combine(tables[i], junction.spread(vector, (v,), i))
        while i >= 0 and not touched[i]:
            touched[i] = True
            i = junction.tree.parent[i]
    return touched


def _enter_logs(junction: JunctionTree, evidence: Codes, likelihoods: Likelihoods) -> list[Floats]:
    logs = [observe(junction, table, i, evidence) for i, table in enumerate(junction.log_potentials)]
    with np.errstate(divide="ignore"):
        enter(junction, evidence, {v: np.log(values) for v, values in likelihoods.items()}, logs, np.add)
    return logs


def separator_axes(junction: JunctionTree, clique: int, child: int | None = None) -> tuple[int, ...]:
    """The axes to sum out of a clique on the way to its own separator, or to that of a child."""
    kept = junction.separators_of[clique if child is None else child]
    return tuple(a for a, v in enumerate(junction.tree.cliques[clique]) if v not in kept)


def _cut(junction: JunctionTree, separator: Floats, i: int, evidence: Codes) -> Floats:
    """A prior separator, cut to the evidence and shaped to broadcast against its clique."""
    kept = junction.separators_of[i]
    cut = tuple(slice(evidence[v], evidence[v] + 1) if v in evidence else slice(None) for v in kept)
    return junction.spread(separator[cut], kept, i)


def transfer(junction: JunctionTree, message: Floats, i: int, clique: int) -> Floats:
    """A message over separator `i` in the shape of one of its two cliques, reshaped for the other, `clique`."""
    source = junction.tree.parent[i] if clique == i else i
    lengths = dict(zip(junction.tree.cliques[source], message.shape, strict=True))
    return message.reshape(
        [lengths[v] if v in junction.separators_of[i] else 1 for v in junction.tree.cliques[clique]]
    )
