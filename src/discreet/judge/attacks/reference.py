"""The reference: what an attacker knows about people in general, and likelihood ratios of a release against it.

The numerator is what the release says about its rows, the denominator what the reference says about anybody.
Members have higher ratios than strangers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discreet.judge.attacks.codes import Codes, Floats
from discreet.judge.attacks.flat_tables import FlatTables, Places
from discreet.values.errors import TableError
from discreet.values.graph import DAG
from discreet.values.table import Table

PSEUDO_COUNT = 0.5
"""Added to each reference count (Krichevsky and Trofimov), or nobody new would be possible under the reference."""

SLACK = 1e-9
"""How far the ends of the intervals of a conditional may miss a distribution by rounding."""


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """What an attacker knows about the general population: a network fitted to reference rows."""

    tables: FlatTables
    counts: Floats
    """Counts of the reference rows, with pseudo-counts."""
    log_values: Floats
    """log θ̂_R of every cell."""

    @classmethod
    def fit(
        cls, dag: DAG, sizes: dict[str, int], codes: Codes, pseudo_count: float = PSEUDO_COUNT
    ) -> Reference:
        """The reference network of a public graph; `pseudo_count=0` is the plain maximum of the likelihood."""
        tables = FlatTables.arrange(dag, sizes)
        counts = np.add(tables.count(tables.locate(codes)), pseudo_count, dtype=np.float64)
        return cls.of_counts(tables, counts)

    @classmethod
    def of_counts(cls, tables: FlatTables, counts: Floats) -> Reference:
        """The reference network with these counts."""
        return cls(tables, counts, log_values(tables.normalise(counts)))

    @property
    def values(self) -> Floats:
        """θ̂_R of every cell."""
        return np.exp(self.log_values)

    def score(self, values: Floats, places: Places) -> Floats:
        """L(x) = log P(x | θ) − log P(x | θ̂_R) for the network with these flat values [003, Eq. 11].

        A row that θ rules out cannot be a member, whatever the reference says: −∞. One that only the reference
        rules out must be: +∞.
        """
        log_target = self.tables.sum(log_values(values), places)
        log_reference = self.tables.sum(self.log_values, places)
        possible = np.isfinite(log_target)
        return np.where(possible, np.where(possible, log_target, 0.0) - log_reference, -np.inf)

    def score_tables(self, cpts: Sequence[Table], places: Places) -> Floats:
        """The same for tables, one for each node."""
        return self.score(self.tables.flatten(cpts), places)

    def fit_within(self, lower: Floats, upper: Floats) -> Floats:
        """θ̂_R^K: of all networks within the intervals, the one that makes the reference most likely [003, Def. 6]."""
        found = np.empty(self.tables.size)
        for cells in self.tables.group_conditionals():
            found[cells] = maximise_likelihood(self.counts[cells], lower[cells], upper[cells])
        return found


def log_values(values: Floats) -> Floats:
    """Logarithms, −∞ at 0 without a warning."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(values))


def centre(tables: FlatTables, lower: Floats, upper: Floats) -> Floats:
    """The centroid of the intervals, each conditional normalised."""
    return tables.normalise((lower + upper) / 2.0)


def maximise_likelihood(counts: Floats, lower: Floats, upper: Floats) -> Floats:
    """argmax Σ_k n_k·log p_k over l ≤ p ≤ u, Σp = 1, exactly, for arrays of conditionals, levels along the last axis.

    The optimum is p_k = clip(n_k·t, l_k, u_k) with the t at which the sum is 1 (a level without counts
    stays at its lower end). Σ_k clip(n_k·t, l_k, u_k) is piecewise linear in t, so t is found by sorting its
    2k corners. For two levels it is n_0/n clipped into [max(l_0, 1 − u_1), min(u_0, 1 − l_1)]. Where the
    likelihood does not say (no counts, or mass left over that only levels without counts can take), the point
    is the most even one.
    """
    low, high = _require_intervals(lower, upper)
    weights = np.where(counts.sum(axis=-1, keepdims=True) > 0, counts, 1.0)
    found = _fill(weights, low, high)
    left = 1.0 - found.sum(axis=-1, keepdims=True)
    room = np.where(weights > 0, 0.0, high - found)
    space = room.sum(axis=-1, keepdims=True)
    share = np.where(left > 1e-15, left / np.where(space > 0, space, 1.0), 0.0)
    return np.asarray(found + np.minimum(share, 1.0) * room)


def _fill(weights: Floats, low: Floats, high: Floats) -> Floats:
    """clip(w·t, l, u) at the t where a conditional reaches sum 1, or at its upper ends where it never does."""
    used = weights > 0
    safe = np.where(used, weights, 1.0)
    never = np.inf
    corners = np.concatenate([np.where(used, low / safe, never), np.where(used, high / safe, never)], axis=-1)
    slopes = np.concatenate([np.where(used, weights, 0.0), np.where(used, -weights, 0.0)], axis=-1)
    order = np.argsort(corners, axis=-1, kind="stable")
    corners = np.take_along_axis(corners, order, axis=-1)
    slope = np.cumsum(np.take_along_axis(slopes, order, axis=-1), axis=-1)
    finite = np.where(np.isfinite(corners), corners, 0.0)
    steps = np.where(np.isfinite(corners[..., 1:]), np.diff(finite, axis=-1), 0.0)
    heights = low.sum(axis=-1, keepdims=True) + np.cumsum(np.maximum(slope[..., :-1], 0.0) * steps, axis=-1)
    heights = np.concatenate([low.sum(axis=-1, keepdims=True), heights], axis=-1)
    # The last corner at which the sum is still below 1; just after it the free levels are known, and t follows exactly.
    last = np.maximum((heights < 1.0).sum(axis=-1, keepdims=True) - 1, 0)
    start = np.take_along_axis(corners, last, axis=-1)
    free = used & (low / safe <= start) & (high / safe > start)
    fixed = np.where(free, 0.0, np.where(used & (high / safe <= start), high, low)).sum(
        axis=-1, keepdims=True
    )
    free_weight = np.where(free, weights, 0.0).sum(axis=-1, keepdims=True)
    t = np.where(free_weight > 0, (1.0 - fixed) / np.where(free_weight > 0, free_weight, 1.0), start)
    reached = np.isfinite(t)
    values = np.where(reached, weights * np.where(reached, t, 0.0), high)
    return np.where(used, np.clip(values, low, high), low)


def _require_intervals(lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
    low, high = np.asarray(lower, dtype=np.float64), np.asarray(upper, dtype=np.float64)
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        raise TableError("an interval has an end that is not a finite number")
    if low.min(initial=0.0) < -SLACK or (low > high + SLACK).any():
        raise TableError("an interval needs 0 ≤ lower ≤ upper; one is the other way round or negative")
    if (low.sum(axis=-1) > 1 + SLACK).any() or (high.sum(axis=-1) < 1 - SLACK).any():
        raise TableError(
            "the intervals of a conditional hold no distribution: lower ends above 1 or upper ends below 1 in sum"
        )
    return low, high
