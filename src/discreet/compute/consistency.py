"""Noisy tables made to agree on every margin that they share, kept from going negative, and turned into conditionals.

One pass over the intersections, smallest first, is enough, and it is the best linear estimate: the noise of a table
is equal and independent in all its cells, so its components along orthogonal interaction spaces are independent, too;
the pass averages each component once, over all tables that have it. With weights 1/(variance·cells) it is therefore
the generalised least squares fit of all tables together, without a matrix.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from discreet.values.errors import TableError
from discreet.values.patience import require_time
from discreet.values.table import Array, Table

Remedy = Literal["clamp", "project"]
"""What is done about negative cells: cut them off and rescale, or go to the nearest table without any."""

SCALED = 8
"""How often a table is scaled to its margins in turn; they are all but met after a few times."""


def find_intersections(sets: Iterable[Sequence[str]]) -> tuple[frozenset[str], ...]:
    """Every set that two or more of the attribute sets have in common, smallest first [001, Sec. 8.2.1].

    They are closed under intersection; the empty set, whose margin is the total, is always among them.
    """
    members = Counter(frozenset(found) for found in sets)
    holders: dict[str, list[frozenset[str]]] = {}
    for found in members:
        for name in found:
            holders.setdefault(name, []).append(found)
    closed = {frozenset[str](), *(found for found, times in members.items() if times > 1)}
    agenda = list(members)
    while agenda:
        one = agenda.pop()
        near = {other for name in one for other in holders[name] if other != one}
        fresh = {one & other for other in near} - closed
        closed |= fresh
        agenda += fresh
    return tuple(sorted(closed, key=lambda found: (len(found), sorted(found))))


def average_sets(noisy: Sequence[Table], variances: Sequence[float]) -> tuple[list[Table], list[float]]:
    """The tables of each set as one, averaged by precision, and its variance."""
    groups: dict[tuple[str, ...], list[int]] = {}
    for i, table in enumerate(noisy):
        groups.setdefault(table.axes, []).append(i)
    tables, spreads = [], []
    for axes, members in groups.items():
        exact = [i for i in members if variances[i] <= 0]
        parts = dict.fromkeys(exact, 1.0) or {i: 1 / variances[i] for i in members}
        whole = sum(parts.values())
        mean = np.sum([part / whole * noisy[i].values for i, part in parts.items()], axis=0)
        tables.append(Table(axes, np.asarray(mean)))
        spreads.append(0.0 if exact else 1 / whole)
    return tables, spreads


def weigh_by_precision(tables: Sequence[Table], variances: Sequence[float]) -> tuple[float, ...]:
    """Weights that make `reconcile` the least-variance linear estimate: 1/(variance · cells).

    A cell of a margin over A sums |T|/|A| cells, so its variance is variance·|T|/|A|; |A| is common to all tables.
    """
    return tuple(
        1.0 / (variance * table.cells) if variance > 0 else math.inf
        for table, variance in zip(tables, variances, strict=True)
    )


def reconcile(tables: Sequence[Table], weights: Sequence[float]) -> tuple[Table, ...]:
    """The tables, moved as little as it takes for all to agree on all margins that they share.

    For each intersection A, smallest first: M_A = Σ w_t·M_t[A] / Σ w_t over all tables t ⊇ A, then
    M_t += (|A|/|M_t|)·(M_A − M_t[A]) [001, Eq. 17 and 18]. The printed weights are the tables' shares of ε,
    the least-variance ones those of `weigh_by_precision`; an infinite weight marks an exact table. Cells may go
    negative.
    """
    if len(weights) != len(tables):
        raise TableError(f"{len(tables)} tables need as many weights, not {len(weights)}")
    if not all(weight > 0 for weight in weights):
        raise TableError(f"weights must be above 0, not {min(weights)}")
    values = [np.array(table.values, dtype=np.float64) for table in tables]
    members = [frozenset(table.axes) for table in tables]
    for shared in find_intersections(table.axes for table in tables):
        holders = [t for t, found in enumerate(members) if shared <= found]
        if len(holders) < 2:
            continue
        axes = sorted(shared)
        margins = [_sum_out(tables[t].axes, values[t], axes) for t in holders]
        _require_same_shape(margins, axes)
        agreed = _average(margins, [weights[t] for t in holders])
        for t, margin in zip(holders, margins, strict=True):
            change = (agreed - margin) * (margin.size / values[t].size)
            values[t] += Table(tuple(axes), change).spread(tables[t].axes)
    return tuple(Table(table.axes, found) for table, found in zip(tables, values, strict=True))


def settle(
    tables: Sequence[Table],
    weights: Sequence[float],
    *,
    remedy: Remedy = "project",
    rounds: int = 3,
    total: float | None = None,
) -> tuple[Table, ...]:
    """Tables that agree, without negative cells: `reconcile`, then the remedy, a few times over.

    The total is the one that the tables agree on, or the public one. The last step is the remedy, so the tables are
    non-negative exactly, and agree up to what that last step moved.
    """
    if rounds < 1:
        raise TableError(f"rounds must be at least 1, not {rounds}")
    mend = {"clamp": clamp, "project": project_on_simplex}.get(remedy)
    if mend is None:
        raise TableError(f"the remedy must be 'clamp' or 'project', not {remedy!r}")
    settled = tuple(tables)
    whole = total
    for _ in range(rounds):
        require_time()
        settled = reconcile(settled, weights)
        if whole is None:
            whole = max(settled[0].total(), 0.0) if settled else 0.0
        settled = tuple(Table(table.axes, mend(table.values, whole)) for table in settled)
    return settled


def restore_margins(tables: Sequence[Table], agreed: Sequence[Table]) -> tuple[Table, ...]:
    """The tables with the margins of single attributes that the least-squares fit `agreed` has, as far as they can.

    Cells that may not be negative are too high where they are small, and over many of them that adds up: a rare level
    would be published as too frequent. The sums over noisy cells have no such bias, so each is found from the smallest
    table that has it, kept from going negative, and the tables of several attributes are scaled to them in turn
    [Deming & Stephan 1940].
    """
    margins: dict[str, Array] = {}
    for table in sorted(agreed, key=lambda found: found.cells):
        for name in table.axes:
            if name not in margins:
                margins[name] = project_on_simplex(table.project([name]).values, max(table.total(), 0.0))
    return tuple(_scale(table, [margins[name] for name in table.axes]) for table in tables)


def _scale(table: Table, margins: Sequence[Array]) -> Table:
    total = table.total()
    if not margins or total <= 0 or any(margin.sum() <= 0 for margin in margins):
        return table
    if len(margins) == 1:
        return Table(table.axes, margins[0] * (total / margins[0].sum()))
    values = np.array(table.values, dtype=np.float64)
    for _ in range(SCALED):
        for axis, margin in enumerate(margins):
            others = tuple(k for k in range(values.ndim) if k != axis)
            found = values.sum(axis=others, keepdims=True)
            wanted = (margin * (total / margin.sum())).reshape(found.shape)
            values *= np.divide(wanted, found, out=np.ones_like(found), where=found > 0)
    # Margins that noise has drowned can forbid every cell that is left: then the table is as good as they are.
    return Table(table.axes, values) if values.sum() > total / 2 else table


def clamp(values: npt.ArrayLike, total: float) -> Array:
    """Negative cells cut off, the rest rescaled to the total; uniform if nothing is left."""
    kept = np.maximum(np.asarray(values, dtype=np.float64), 0.0)
    found = float(kept.sum())
    if found <= 0:
        return np.full(kept.shape, total / max(kept.size, 1))
    return np.asarray(kept / found * total)  # in this order: a tiny sum must not make the quotient overflow


def project_on_simplex(values: npt.ArrayLike, total: float) -> Array:
    """The nearest array, in L2, with no negative cell and this total: max(0, x − τ) for the one τ that fits."""
    found = np.asarray(values, dtype=np.float64)
    if total <= 0:
        return np.zeros(found.shape)
    falling = np.sort(found, axis=None)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, falling.size + 1)
    threshold = excess[np.count_nonzero(falling > excess) - 1]
    kept = np.maximum(found - threshold, 0.0)
    if not kept.any():  # a total that is lost beside the largest cell: all of it lies there
        kept = np.where(found == falling[0], 1.0, 0.0)
    return np.asarray(kept * (total / kept.sum()))  # takes off what rounding left


def condition(table: Table, family: Sequence[str], prior: npt.ArrayLike | None = None) -> Table:
    """P(child | parents) from a table of counts over at least the family, its last member the child.

    Each is (C + α)/Σ(C + α), with negative counts taken as 0 and `prior` the public Dirichlet α, a number or an array
    that broadcasts to the family; one without positive counts is the prior's mean, or uniform [000, Eq. 2].
    """
    counts = np.maximum(np.asarray(table.project(family).values, dtype=np.float64), 0.0)
    if prior is not None:
        pseudo = np.broadcast_to(np.asarray(prior, dtype=np.float64), counts.shape)
        if not (np.isfinite(pseudo).all() and (pseudo >= 0).all()):
            raise TableError(f"the prior of {family[-1]!r} must be finite and not negative")
        counts = counts + pseudo
    return Table(tuple(family), counts).normalise(family[-1])


def _average(margins: Sequence[Array], weights: Sequence[float]) -> Array:
    """The weighted mean; exact tables, if there are any, outweigh all others."""
    if math.inf in weights:
        margins = [margin for margin, weight in zip(margins, weights, strict=True) if weight == math.inf]
        weights = [1.0] * len(margins)
    whole = math.fsum(weights)
    mean = np.zeros_like(margins[0])
    for margin, weight in zip(margins, weights, strict=True):
        mean += (weight / whole) * margin
    return mean


def _sum_out(axes: Sequence[str], values: Array, kept: Sequence[str]) -> Array:
    """The margin over `kept`, in that order, of an array over `axes`."""
    drop = tuple(i for i, name in enumerate(axes) if name not in kept)
    left = [name for name in axes if name in kept]
    return np.asarray(values.sum(axis=drop).transpose([left.index(name) for name in kept]))


def _require_same_shape(margins: Sequence[Array], axes: Sequence[str]) -> None:
    shapes = {margin.shape for margin in margins}
    if len(shapes) > 1:
        raise TableError(
            f"tables over {axes} have the shapes {sorted(shapes)}; they must have the same levels"
        )


@dataclass(frozen=True, slots=True)
class Holder:
    """How one table gives the margin over an intersection: axes summed out, and the shape to broadcast it back."""

    table: int
    drop: tuple[int, ...]
    shape: tuple[int, ...]


def plan_agreement(tables: Sequence[tuple[Sequence[str], Sequence[int]]]) -> list[list[Holder]]:
    """Who holds each intersection of tables with these axes and shapes, smallest first, where two or more do."""
    plans = []
    for shared in find_intersections(axes for axes, _ in tables):
        holders = [
            Holder(
                t,
                tuple(i for i, name in enumerate(axes) if name not in shared),
                tuple(size if name in shared else 1 for name, size in zip(axes, shape, strict=True)),
            )
            for t, (axes, shape) in enumerate(tables)
            if shared <= set(axes)
        ]
        if len(holders) > 1:
            plans.append(holders)
    return plans


def agree(
    means: Sequence[Array], spreads: Sequence[Array], margins: Sequence[Sequence[Holder]]
) -> list[Array]:
    """The tables after one pass over their intersections, smallest first, each cell moved by its share of the variance.

    Like `reconcile`, but every cell has a variance of its own; none goes below zero.
    """
    counts = [np.array(mean) for mean in means]
    for holders in margins:
        seen = [counts[held.table].sum(axis=held.drop) for held in holders]
        unsure = [np.maximum(spreads[held.table].sum(axis=held.drop), 1e-12) for held in holders]
        precision = sum(1.0 / spread for spread in unsure)
        agreed = sum(mean / spread for mean, spread in zip(seen, unsure, strict=True)) / precision
        for held, mean, spread in zip(holders, seen, unsure, strict=True):
            counts[held.table] += spreads[held.table] * ((agreed - mean) / spread).reshape(held.shape)
    return [np.maximum(found, 0.0) for found in counts]
