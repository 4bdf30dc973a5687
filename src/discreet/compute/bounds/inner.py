"""Inner bounds: answers that some network of the credal set really gives, improved one node's rows at a time.

For fixed rows of all other nodes, E[f | e] = (Σ_rows α·p) / (Σ_rows β·p) is linear-fractional in the rows p
of one node, and its minimum is where (α − μβ)·p is least with μ the minimum itself (Dinkelbach): each row
sits at a vertex found by sorting. A step with the present value as μ never makes the value worse, and stands
still only at the optimum of every single node.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.compute.bounds.intervals import Floats
from discreet.compute.bounds.multilinear import Elimination
from discreet.compute.bounds.query import Problem
from discreet.values.errors import ImpossibleEvidence

STARTS = 3
"""From how many networks the ascent begins: the centre, and vertices drawn at random."""

ROUNDS = 200
"""The most steps of one ascent; a handful is usual."""

STILL = 1e-13
"""Improvements below this share of P(evidence) are rounding."""


@dataclass(frozen=True, slots=True)
class Inner:
    """The least value found for each function, and rows that give it (one batch entry for each function)."""

    values: Floats
    rows: tuple[Floats, ...]


def descend(
    problem: Problem, functions: Floats, elimination: Elimination, *, starts: int = STARTS, seed: int = 0
) -> Inner:
    """An upper bound on the minimum of E[f | e] for each f, attained by the rows that are returned."""
    count = len(functions)
    rows = _begin(problem, count, starts, np.random.default_rng(seed))
    wanted = np.tile(functions, (starts, *[1] * (functions.ndim - 1)))
    values = improve(elimination, wanted, rows)
    if np.isinf(values[:count]).any():
        raise ImpossibleEvidence("the evidence has probability zero in every network of the credal set")
    best = values.reshape(starts, count).argmin(axis=0) * count + np.arange(count)
    flat = functions.reshape(count, -1)
    reached = np.clip(values[best], flat.min(axis=1), flat.max(axis=1))  # a mean that rounding pushed out
    return Inner(reached, tuple(found[best] for found in rows))


def evaluate(
    elimination: Elimination, functions: Floats, rows: list[Floats]
) -> tuple[Floats, Floats, list[list[Floats]]]:
    """E[f | e] and P(e) of each precise network, and the tape; NaN where the evidence is impossible."""
    joint, tape = elimination.run([elimination.factor(i, found) for i, found in enumerate(rows)])
    axes = tuple(range(1, joint.ndim))
    known = joint.sum(axis=axes)
    with np.errstate(invalid="ignore", divide="ignore"):
        return (joint * functions).sum(axis=axes) / known, known, tape


def _begin(problem: Problem, count: int, starts: int, rng: np.random.Generator) -> list[Floats]:
    found = []
    for local in problem.locals:
        rows = local.rows
        centre = centre_of(rows.lower, rows.upper)
        drawn = [np.repeat(centre, count, axis=0)]
        drawn += [rows.choose(rng.random((count, *rows.lower.shape[1:]))) for _ in range(starts - 1)]
        found.append(np.concatenate(drawn))
    return found


def centre_of(lower: Floats, upper: Floats) -> Floats:
    """The point of each row's set between its lower and its upper ends: l + (u − l)·(1 − Σl)/Σ(u − l)."""
    room = upper - lower
    width = room.sum(axis=-1, keepdims=True)
    share = (1.0 - lower.sum(axis=-1, keepdims=True)) / np.where(width > 0, width, 1.0)
    return np.asarray(lower + room * np.clip(share, 0.0, 1.0))


def improve(elimination: Elimination, functions: Floats, rows: list[Floats]) -> Floats:
    """Improve `rows` in place until no single node can be improved, and return the values reached."""
    problem = elimination.problem
    values, known, _ = evaluate(elimination, functions, rows)
    values[np.isnan(values)] = np.inf  # a vertex at which the evidence is impossible is no start
    active = np.flatnonzero(values < np.inf)
    for _ in range(ROUNDS):
        if not len(active):
            break
        here = [found[active] for found in rows]
        wanted = functions[active]
        now, known, tape = evaluate(elimination, wanted, here)
        slopes = elimination.differentiate(tape, wanted - now.reshape(-1, *[1] * (wanted.ndim - 1)))
        better, gains = [], []
        for i, (local, slope) in enumerate(zip(problem.locals, slopes, strict=True)):
            whole = elimination.unfold(i, slope)
            better.append(local.rows.choose(whole))
            gains.append(((here[i] - better[i]) * whole).reshape(len(active), -1).sum(axis=1))
        gain = np.array(gains)
        moving = gain.max(axis=0) > STILL * known
        # All nodes at once is most often right, and then saves a step for each node; the best single node always is.
        leader = gain.argmax(axis=0)
        single = [
            np.where((leader == i).reshape(-1, *[1] * (found.ndim - 1)), better[i], found)
            for i, found in enumerate(here)
        ]
        jump, _, _ = evaluate(elimination, wanted, better)
        step, _, _ = evaluate(elimination, wanted, single)
        jump, step = np.nan_to_num(jump, nan=np.inf), np.nan_to_num(step, nan=np.inf)
        take = np.where(moving & (np.minimum(jump, step) < now), np.where(jump < step, 2, 1), 0)
        for i, found in enumerate(rows):
            found[active[take == 2]] = better[i][take == 2]
            found[active[take == 1]] = single[i][take == 1]
        values[active] = np.where(take == 2, jump, np.where(take == 1, step, now))
        active = active[take > 0]
    return values
