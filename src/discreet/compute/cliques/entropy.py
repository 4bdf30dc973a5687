"""The distribution of largest entropy with given margins, on a junction tree.

Margins over pairs and triples say nothing about how their attributes depend on each other beyond them; of all
distributions that have these margins, the one of largest entropy adds nothing of its own. It is found by iterative
proportional fitting, one clique at a time on a walk along the tree, so that only the cliques' tables are ever made.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from discreet.compute.cliques.model import CliqueModel, ModelTree
from discreet.compute.smoothing import estimate_tables
from discreet.values.errors import TableError, TooLarge
from discreet.values.patience import require_time
from discreet.values.table import MAX_CELLS, MOST_EXPECTED, Array, Table

SWEEPS = 40
"""Walks along the tree: noisy margins never agree quite, and further ones only go round in circles."""
TOLERANCE = 1e-4
"""The mean L1 distance from the margins at which a fit is done."""
PATIENCE = 3
"""Walks that are looked at together: one alone may bring nothing, or lose something, and the next ones much."""
STALL = 0.9
"""So many walks that leave more than this part of the distance have met margins that contradict each other."""
FEWEST = 8
"""Walks before a fit is given up as stalled."""
ROUNDS = 5
"""How often tables are made to agree and kept from going negative, in turn."""
LEAST = 1e-9
"""Every margin is raised to this part of its independent cells: a noisy zero must not forbid what others hold."""


def fit_margins(
    sizes: Mapping[str, int],
    margins: Sequence[Table],
    *,
    max_cells: int = MAX_CELLS,
    sweeps: int = SWEEPS,
    tolerance: float = TOLERANCE,
) -> CliqueModel:
    """The distribution of largest entropy with these margins, if they agree; else one that is near to all of them.

    Every attribute must be in some margin. A margin is a table of non-negative numbers; totals are taken as 1.
    """
    tree = ModelTree.plan(sizes, [table.axes for table in margins])
    if tree.cells > max_cells:
        raise TooLarge(
            f"a model of {len(margins)} margins would have {tree.cells:,} cells; allowed are {max_cells:,}"
        )
    ones = _single_margins(sizes, margins)
    beliefs = [_multiply_out([ones[name] for name in clique]) for clique in tree.cliques]
    wide = [table for table in margins if len(table.axes) > 1]
    fitter = _Fitter(tree, beliefs, [_raise_zeros(table, ones) for table in wide], ones)
    gaps: list[float] = []
    for _ in range(sweeps if wide else 0):
        require_time()
        gaps.append(fitter.sweep())
        stalled = len(gaps) >= FEWEST and gaps[-1] > STALL * gaps[-1 - PATIENCE]
        if gaps[-1] < tolerance or stalled:
            break
    fitter.spread()
    fitted = zip(tree.cliques, fitter.beliefs, strict=True)
    return CliqueModel(tree, tuple(Table(axes, belief) for axes, belief in fitted))


def fit_tables(
    sizes: Mapping[str, int], noisy: Sequence[Table], variances: Sequence[float], total: float | None = None
) -> tuple[CliqueModel, float]:
    """The model of noisy tables taken at their word, and how many rows they agree on.

    Every attribute must be in some table; the total is given where it is public.
    """
    margins, rows = estimate_margins(noisy, variances, {}, total, shrunk=False)
    return fit_margins(sizes, margins), rows


def estimate_margins(
    noisy: Sequence[Table],
    variances: Sequence[float],
    ordered: Mapping[str, int],
    total: float | None = None,
    scores: Mapping[str, Array] | None = None,
    shrunk: bool = True,
) -> tuple[list[Table], float]:
    """What noisy tables say of each set that no other contains, and how many rows they agree on.

    `ordered` says how many levels of each attribute are in order, `scores` which numbers its levels stand for; the
    total is given where it is public; `shrunk` as in `smoothing.estimate_tables`.
    """
    tables = estimate_tables(
        noisy, variances, ordered, rounds=ROUNDS, total=total, scores=scores, shrunk=shrunk
    )
    rows = tables[0].total()
    if rows <= 0:  # so few that noise left nothing of them
        tables = tuple(Table(table.axes, np.ones(table.values.shape)) for table in tables)
    held = [set(table.axes) for table in tables]
    kept = [table for table in tables if not any(set(table.axes) < other for other in held)]
    return list({frozenset(table.axes): table for table in kept}.values()), min(max(1.0, rows), MOST_EXPECTED)


@dataclass(slots=True, eq=False)
class _Target:
    """A margin as one clique sees it: which axes to sum out, how to broadcast back, and the values to reach."""

    drop: tuple[int, ...]
    shape: tuple[int, ...]
    values: Array


class _Fitter:
    """Iterative proportional fitting along a walk through the tree [Jiroušek and Přeučil 1995]."""

    def __init__(
        self, tree: ModelTree, beliefs: list[Array], margins: Sequence[Table], ones: Mapping[str, Array]
    ) -> None:
        self.tree, self.beliefs = tree, beliefs
        self._cliques = tree.cliques
        self._sizes = dict(zip(tree.names, tree.sizes, strict=True))
        self._targets: list[list[_Target]] = [[] for _ in beliefs]
        for table in margins:
            holders = [i for i, clique in enumerate(self._cliques) if set(table.axes) <= set(clique)]
            self._assign(min(holders, key=lambda i: beliefs[i].size), table)
        self._count = max(1, len(margins))
        self._below: list[list[int]] = [[] for _ in beliefs]
        for i, above in enumerate(tree.joined.parent):
            if above >= 0:
                self._below[above].append(i)
        self._separators = [tree.separator(i) for i in range(len(tree.joined.parent))]
        self._messages = [_multiply_out([ones[name] for name in axes]) for axes in self._separators]
        self._tour = list(self._walk())

    def sweep(self) -> float:
        """One walk over all cliques and back; the mean L1 distance from the margins on the way."""
        distances = [0.0] * len(self.beliefs)
        for what, i in self._tour:
            if what == "fit":
                distances[i] = self._scale(i)
            else:
                self._send(i, downwards=what == "down")
        return sum(distances) / self._count

    def spread(self) -> None:
        """Carry what the root knows to all others, so that every pair of neighbours agrees."""
        for i, above in enumerate(self.tree.joined.parent):
            if above >= 0:
                self._send(i, downwards=True)

    def _walk(self) -> Iterator[tuple[str, int]]:
        """The steps of a walk: fit a clique, or carry what is known down or up the separator above it."""
        agenda = [("visit", 0)]
        while agenda:
            what, i = agenda.pop()
            yield ("fit" if what == "visit" else what), i
            if what == "visit":
                for j in reversed(self._below[i]):
                    agenda += [("fit", i), ("up", j), ("visit", j), ("down", j)]

    def _assign(self, i: int, table: Table) -> None:
        axes = self._cliques[i]
        kept = [name for name in axes if name in table.axes]
        drop = tuple(k for k, name in enumerate(axes) if name not in table.axes)
        shape = tuple(self._sizes[name] if name in table.axes else 1 for name in axes)
        self._targets[i].append(_Target(drop, shape, table.project(kept).values))

    def _scale(self, i: int) -> float:
        belief, distance = self.beliefs[i], 0.0
        for target in self._targets[i]:
            now = belief.sum(axis=target.drop)
            distance += float(np.abs(now - target.values).sum())
            factor = np.divide(target.values, now, out=np.zeros_like(now), where=now > 0)
            belief *= factor.reshape(target.shape)
        return distance

    def _send(self, edge: int, *, downwards: bool) -> None:
        """Make the clique at the other end of a separator agree with the one at this end."""
        above = self.tree.joined.parent[edge]
        source, goal = (above, edge) if downwards else (edge, above)
        cut = self._separators[edge]
        new = self.beliefs[source].sum(
            axis=tuple(k for k, name in enumerate(self._cliques[source]) if name not in cut)
        )
        old = self._messages[edge]
        factor = np.divide(new, old, out=np.zeros_like(new), where=old > 0)
        self.beliefs[goal] *= factor.reshape([self._sizes[n] if n in cut else 1 for n in self._cliques[goal]])
        self._messages[edge] = new


def _single_margins(sizes: Mapping[str, int], margins: Sequence[Table]) -> dict[str, Array]:
    """The margin of every attribute, from the smallest table that has it."""
    ones: dict[str, Array] = {}
    for table in sorted(margins, key=lambda found: found.cells):
        for name in table.axes:
            if name not in ones:
                values = np.asarray(table.project([name]).values, dtype=np.float64)
                if values.shape != (sizes[name],) or not (values >= 0).all() or not values.sum() > 0:
                    raise TableError(
                        f"a margin over {table.axes} is not a non-negative table of the declared sizes"
                    )
                values = np.maximum(values / values.sum(), LEAST / values.size)
                ones[name] = values / values.sum()
    missing = [name for name in sizes if name not in ones]
    if missing:
        raise TableError(f"no margin says anything about {missing[0]!r}")
    return ones


def _raise_zeros(table: Table, ones: Mapping[str, Array]) -> Table:
    values = np.asarray(table.values, dtype=np.float64)
    floor = LEAST * _multiply_out([ones[name] for name in table.axes])
    values = np.maximum(values / values.sum(), floor)
    return Table(table.axes, values / values.sum())


def _multiply_out(factors: Sequence[Array]) -> Array:
    product = np.ones(())
    for factor in factors:
        product = np.multiply.outer(product, factor)
    return np.asarray(product)
