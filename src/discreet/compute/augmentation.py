"""True counts behind noisy tables, drawn together with the network that they come from: data augmentation.

Two draws take turns, in many chains at once [Tanner & Wong 1987]. Given a network, the true count n of a cell that it
expects to hold E varies around E, and the noisy one c is off by the known noise:

    P(n | c, network) ∝ P(n | E) · P(noise = c − n),   n ≥ 0

with P(n | E) Poisson, or negative binomial of variance φE for a table in which the graph does not hold. Given counts,
the conditionals of a network are Dirichlet around them. What is kept is the counts, because they, and not the
parameters, are what a release without noise would have shown.

The network ties the tables together: cells that it expects to be empty stay empty, however many of them a margin sums;
taken one by one, each would be held a little above zero, and their sum far above.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from discreet.compute.consistency import find_intersections
from discreet.compute.contraction import Margin
from discreet.compute.expectation import LEAST
from discreet.compute.smoothing import measure_spread
from discreet.values.graph import DAG
from discreet.values.laws.sums import NoiseSum
from discreet.values.measurement import DiscreteGaussian, DiscreteLaplace, Exact, Law, Measurement
from discreet.values.table import MAX_CELLS, Array, Table

CHAINS = 40
"""Chains side by side, each from a start of its own."""

WARM_UP = 20
"""Turns before the first draw is kept; the starts are spread as widely as the noise is expected to leave them."""

APART = 4
"""Turns between draws that are kept of the same chain."""

WALKS = 3
"""Steps of each count within a turn."""

STRIDE = 1.7
"""A step in standard deviations of what the count may be; about half of such steps are taken."""

PULL = 0.5
"""Rows of data that the learned network is worth in each conditional of a drawn one."""

EVEN = 1.0
"""Rows that an even distribution is worth instead, to see what the learned network had to say in it."""

CAUTION = 3.0
"""The standard deviations beyond which a table that is off shows that the graph does not hold, and not noise alone."""


@dataclass(slots=True, eq=False)
class _Cells:
    """One measured table: its noisy counts, and one table of true counts for each chain."""

    axes: tuple[str, ...]
    noisy: Array
    law: Law
    margin: Margin
    expected: Array
    """What the learned network expects the cells to hold."""
    spread: float
    """φ: how much more than a Poisson count the cells vary around what the network expects."""
    counts: Array


def draw_counts(
    dag: DAG,
    cpts: Sequence[Table],
    measurements: Sequence[Measurement],
    homes: Sequence[int],
    draws: int,
    rng: np.random.Generator,
    *,
    even: bool = False,
) -> list[Array]:
    """For each node so many draws of the true counts over its family, the draws along the first axis.

    `cpts` is the network that was learned from the noisy tables, `homes` for each node the number of the table that
    it is drawn with. Before the tables, one believes in the learned network with the weight of half a row, or with
    `even` that every level is as probable as any other, with the weight of a row.
    """
    chains = min(CHAINS, draws)
    learned = [np.asarray(cpt.values, dtype=np.float64) for cpt in cpts]
    tables = {home: _begin(dag, cpts, measurements[home], chains) for home in sorted(set(homes))}
    conditionals = [
        _start_conditionals(dag, name, tables[home], cpt, chains, rng)
        for name, home, cpt in zip(dag.nodes, homes, learned, strict=True)
    ]
    for table in tables.values():
        _start_counts(table, conditionals)
    kept: list[list[Array]] = []
    turn = 0
    while len(kept) * chains < draws:
        total = _count_rows(list(tables.values()))
        for table in tables.values():
            _walk(table, _expect(table, conditionals, total), rng)
        families = _read_families(dag, homes, {home: table.counts for home, table in tables.items()}, tables)
        conditionals = [
            _draw_conditionals(counts, EVEN / cpt.shape[-1] if even else PULL * cpt + 1e-3, rng)
            for counts, cpt in zip(families, learned, strict=True)
        ]
        turn += 1
        if turn >= WARM_UP and (turn - WARM_UP) % APART == 0:
            kept.append(_read_families(dag, homes, _agree(tables), tables))
    return [np.concatenate([found[i] for found in kept])[:draws] for i in range(len(dag))]


def _read_families(
    dag: DAG, homes: Sequence[int], counts: Mapping[int, Array], tables: Mapping[int, _Cells]
) -> list[Array]:
    """For each node the counts over its family, from the table that it is drawn with."""
    return [
        Table(("", *tables[home].axes), counts[home]).project(("", *dag.family(name))).values
        for name, home in zip(dag.nodes, homes, strict=True)
    ]


def _agree(tables: Mapping[int, _Cells]) -> dict[int, Array]:
    """The counts of each chain, moved until tables agree on the margins that they share: they count the same rows.

    Tables are drawn one by one, and a network ties them only as closely as rows vary around it. Of independent draws
    from Gaussian factors, the mean by precision is a draw from their product: so each shared margin, smallest first,
    becomes that mean, and the cells that add up to it are scaled to it, which leaves empty ones empty.
    """
    counts = {home: table.counts for home, table in tables.items()}
    unsure = {
        home: table.spread * table.expected * table.law.variance
        / (table.spread * table.expected + table.law.variance)
        for home, table in tables.items()
    }  # fmt: skip
    for shared in find_intersections(table.axes for table in tables.values()):
        holders = [home for home, table in tables.items() if shared <= set(table.axes)]
        if len(holders) < 2:
            continue
        axes = sorted(shared)
        margins = [
            Table(("", *tables[home].axes), counts[home]).project(("", *axes)).values for home in holders
        ]
        weights = [
            1.0 / (Table(tables[home].axes, unsure[home]).project(axes).values + 1e-9) for home in holders
        ]
        total = sum(weights)
        agreed = sum(weight * margin for weight, margin in zip(weights, margins, strict=True)) / total
        for home, margin in zip(holders, margins, strict=True):
            factor = np.divide(agreed, margin, out=np.ones_like(margin), where=margin > 0)
            counts[home] = counts[home] * Table(("", *axes), factor).spread(("", *tables[home].axes))
    return counts


def _begin(dag: DAG, cpts: Sequence[Table], measured: Measurement, chains: int) -> _Cells:
    noisy = np.asarray(measured.noisy.values, dtype=np.float64)
    sizes = {cpt.axes[-1]: cpt.values.shape[-1] for cpt in cpts}
    margin = Margin.plan(dag, sizes, measured.axes, MAX_CELLS // chains)
    table = _Cells(measured.axes, noisy, measured.law, margin, noisy, 1.0, noisy[None])
    learned = [np.asarray(cpt.values, dtype=np.float64)[None] for cpt in cpts]
    table.expected = _expect(table, learned, np.array([max(noisy.sum(), 1.0)]))[0]
    if isinstance(measured.law, Exact):
        start = table.expected = np.maximum(noisy, LEAST)
    else:
        table.spread = measure_spread(noisy, table.expected, measured.law.variance, CAUTION)
        share = table.expected / (table.expected + measured.law.variance)
        start = np.maximum(np.rint(table.expected + share * (noisy - table.expected)), 0.0)
    table.counts = np.repeat(start[None], chains, axis=0)
    return table


def _start_conditionals(
    dag: DAG, name: str, table: _Cells, learned: Array, chains: int, rng: np.random.Generator
) -> Array:
    """Conditionals around the learned ones, as far off as the noise is expected to leave them.

    A family's cell that is expected to hold S, and to vary by A once its noisy parts are known, was learned with the
    variance W, 1/W = 1/A − 1/φS: what is missing of the information in true counts.
    """
    whole = table.spread * table.expected
    known = whole * table.law.variance / (whole + table.law.variance)
    mean, whole, known = (
        Table(table.axes, values).project(dag.family(name)).values
        for values in (table.expected, whole, known)
    )
    squared = known * whole / np.maximum(whole - known, 1e-9 * whole)
    off = np.sqrt(np.minimum(squared, mean**2)) * rng.standard_normal((chains, *mean.shape))
    counts = np.maximum(mean + off, 0.0) + PULL * learned
    return np.asarray(counts / counts.sum(axis=-1, keepdims=True))


def _start_counts(table: _Cells, conditionals: Sequence[Array]) -> None:
    """Counts that go with the chain's own conditionals.

    Steps are no longer than a count varies around what its network expects, so counts that began in one place would
    pull all chains there again, and keep them far closer together than the noise leaves them.
    """
    if isinstance(table.law, Exact):
        return
    expected = _expect(table, conditionals, np.full(len(table.counts), max(table.noisy.sum(), 1.0)))
    share = table.spread * expected / (table.spread * expected + table.law.variance)
    table.counts = np.maximum(np.rint(expected + share * (table.noisy - expected)), 0.0)


def _count_rows(tables: Sequence[_Cells]) -> Array:
    """How many rows there are in each chain: the totals of all tables, weighed by precision."""
    weights = np.array([1.0 / max(table.law.variance * table.noisy.size, 1e-9) for table in tables])
    totals = np.array([table.counts.reshape(len(table.counts), -1).sum(axis=1) for table in tables])
    return np.asarray(np.maximum(weights @ totals / weights.sum(), 1.0))


def _expect(table: _Cells, conditionals: Sequence[Array], total: Array) -> Array:
    """What the network of each chain expects the cells of a table to hold."""
    joint = table.margin.read(conditionals)
    return np.asarray(np.maximum(joint * total.reshape(-1, *[1] * table.noisy.ndim), LEAST))


def _walk(table: _Cells, expected: Array, rng: np.random.Generator) -> None:
    """Metropolis steps of all counts of all chains."""
    if isinstance(table.law, Exact):
        return
    noise, varies, counts = _weigh_noise(table.law), _weigh_counts(expected, table.spread), table.counts
    stride = STRIDE / np.sqrt(1.0 / table.law.variance + 1.0 / (table.spread * expected + 0.25))
    now = varies(counts) + noise(table.noisy - counts)
    for _ in range(WALKS):
        moved = counts + np.rint(rng.standard_normal(counts.shape) * stride)
        allowed = np.maximum(moved, 0.0)
        then = varies(allowed) + noise(table.noisy - allowed)
        taken = (moved >= 0) & (rng.standard_exponential(counts.shape) > now - then)
        counts, now = np.where(taken, moved, counts), np.where(taken, then, now)
    table.counts = counts


def _weigh_counts(expected: Array, spread: float) -> Callable[[Array], Array]:
    """log P(n | E) up to a constant: Poisson, or negative binomial with variance φE."""
    if spread <= 1.0:
        log_expected = np.log(expected)
        return lambda counts: np.asarray(counts * log_expected - gammaln(counts + 1.0))
    size, log_share = expected / (spread - 1.0), math.log1p(-1.0 / spread)
    return lambda counts: np.asarray(gammaln(counts + size) - gammaln(counts + 1.0) + counts * log_share)


def gammaln(x: Array) -> Array:
    """log Γ(x) for x > 0: Stirling's series from x + 8 on, and the recurrence down to x; exact to 1e-11."""
    y = x * (x + 7.0)
    shift = y * (y + 6.0) * (y + 10.0) * (y + 12.0)  # x (x + 1) … (x + 7), by pairs from both ends
    z = x + 8.0
    r = 1.0 / z
    s = r * r
    series = r * (1.0 / 12.0 - s * (1.0 / 360.0 - s * (1.0 / 1260.0 - s / 1680.0)))
    return np.asarray((z - 0.5) * np.log(z) - z + 0.5 * math.log(2.0 * math.pi) + series - np.log(shift))


def _weigh_noise(law: DiscreteLaplace | DiscreteGaussian | NoiseSum) -> Callable[[Array], Array]:
    if isinstance(law, DiscreteLaplace):
        rate = float(1 / law.scale)
        return lambda noise: -rate * np.abs(noise)
    if isinstance(law, DiscreteGaussian):
        half = 0.5 / float(law.sigma2)
        return lambda noise: -half * noise * noise
    return lambda noise: law.log_pmf(np.rint(noise).astype(np.int64))


def _draw_conditionals(counts: Array, prior: Array | float, rng: np.random.Generator) -> Array:
    """Conditionals from their Dirichlet posterior."""
    weights = rng.standard_gamma(counts + prior) + 1e-300
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))
