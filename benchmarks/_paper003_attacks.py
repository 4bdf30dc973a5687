"""The attacks of paper 003 on networks and credal networks without noise, and two faults planted on purpose."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from discreet.judge.attacks.flat_tables import FlatTables
from discreet.judge.attacks.recovery import recover_ratios
from discreet.judge.attacks.reference import Reference, centre, log_values
from discreet.values.table import Table

DRAWN_POINTS = 500
"""The paper looks for θ̂_R^K by drawing so many points of the credal set."""
STRENGTHS = (1, 10, 50, 100, 1000)
TIED = 60
"""The most members of whom a conditional of exactly ½ is thought to be half and half."""


def plain_attacks(cells: FlatTables, counts: Any, known: Reference, rng: Any) -> Iterator[tuple[str, Any]]:
    """The network that each attack takes for the target's, without any noise in the release."""
    network = cells.normalise(counts)
    yield "network", network
    yield (
        "network, halves read",
        read_halves(cells, network, known, float(counts[: cells.shapes[0][-1]].sum())),
    )
    totals = cells.total_conditionals(counts)
    for strength in STRENGTHS:
        lower, upper = counts / (totals + strength), (counts + strength) / (totals + strength)
        yield f"definition 6, S={strength}", known.fit_within(lower, upper)
        if strength not in (1, 1000):
            continue
        if strength == 1:
            yield "definition 6 by drawing, S=1", draw_point(known, lower, upper, rng)
            yield "centroid, S=1", centre(cells, lower, upper)
        recovered = recover_ratios(cells.split(lower))
        yield f"recovery, S={strength}", cells.flatten(recovered.cpts)
        yield f"recovery, unseen out, S={strength}", cells.flatten(recovered.possible)


def faulty_attacks(cells: FlatTables, counts: Any, known: Reference, rng: Any) -> Iterator[tuple[str, Any]]:
    """Definition 6 with one fault or two: rows swapped, and the first point that is drawn in place of the best."""
    totals = cells.total_conditionals(counts)
    yield "network", cells.normalise(counts)
    for strength in (1, 1000):
        lower, upper = counts / (totals + strength), (counts + strength) / (totals + strength)
        yield f"any point, S={strength}", draw_any_point(lower, upper, rng)
        strange = [swap_rows(cells, bounds) for bounds in (lower, upper)]
        yield f"any point, rows swapped, S={strength}", draw_any_point(*strange, rng)
        yield f"best point, rows swapped, S={strength}", draw_point(known, *strange, rng)


def draw_any_point(lower: Any, upper: Any, rng: Any) -> Any:
    """A fault on purpose: one point drawn uniformly from the intervals of binary variables, whatever its likelihood.

    It is what a search finds that starts from a best likelihood of 0, which no log-likelihood exceeds.
    """
    zero = lower[0::2] + (upper[0::2] - lower[0::2]) * rng.random(len(lower) // 2)
    return np.stack([zero, 1.0 - zero], axis=1).ravel()


def swap_rows(cells: FlatTables, values: Any) -> Any:
    """A fault on purpose: rows of a table listed with the first parent running fastest, read with the last one."""
    swapped = []
    for table in cells.split(values):
        parents = range(table.values.ndim - 1)
        turned = table.values.transpose(*reversed(parents), table.values.ndim - 1)
        swapped.append(Table(table.axes, turned.reshape(table.values.shape)))
    return cells.flatten(swapped)


def draw_point(known: Reference, lower: Any, upper: Any, rng: Any) -> Any:
    """The best of 500 points drawn uniformly from the intervals of binary variables, as the paper does."""
    low, room = lower[0::2], upper[0::2] - lower[0::2]
    best, chosen = -np.inf, lower
    for _ in range(DRAWN_POINTS):
        zero = low + room * rng.random(len(low))
        point = np.stack([zero, 1.0 - zero], axis=1).ravel()
        likelihood = float((known.counts * np.maximum(log_values(point), -1e9)).sum())
        if likelihood > best:
            best, chosen = likelihood, point
    return chosen


def read_halves(cells: FlatTables, values: Any, known: Reference, members: float) -> Any:
    """An attack on the plain network of bits: a conditional of exactly ½ says that probably nobody had these parents.

    Such a conditional is weighed by the chance that somebody did: with e members expected there by the reference, of
    whom a share p has the first level, P(tie)/(P(tie) + e^−e), P(tie) = e^−e·Σ_{h ≥ 1} (e²·p(1−p))^h/(h!)².
    """
    totals = cells.total_conditionals(known.counts)[0::2]
    share = known.values[0::2]
    start = cells.shapes[0][-1]  # the first node has no parents: its conditional holds all of R
    expected = members * totals / float(known.counts[:start].sum())
    term, tie = np.exp(-expected), np.zeros_like(expected)
    nobody = term.copy()
    for half in range(1, TIED // 2 + 1):
        term = term * expected**2 * share * (1.0 - share) / half**2  # e^n/n!·C(n, n/2) = (e^(n/2)/(n/2)!)²
        tie += term
    total = tie + nobody
    seen = np.where(total > 0, tie / np.where(total > 0, total, 1.0), 1.0)
    weights = np.repeat(seen, 2)
    return np.where(values == 0.5, values * weights, values)
