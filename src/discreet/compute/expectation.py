"""The counts behind noisy tables, as a network expects them, and the network that expects those counts: in turn.

One step takes the network's expectation E of every measured cell. The true count varies around it like a Poisson count,
or φ times as much where the table shows that the network does not hold, and the noise has a known law; so the
expected true count lies between E and the noisy one, the closer to E the more the noise outweighs what the count may
vary by. The tables are then made to agree, each cell moving by its uncertainty, and give the next network [EM].

Where a cell is expected to hold little, noise is set aside: zeros stay near zero without a threshold, attributes that
a table holds for the sake of other families add little noise, and no count is negative. Where rows are many, E
hardly matters, and the counts are those of `consistency.reconcile`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from discreet.compute.consistency import find_intersections, project_on_simplex, reconcile, weigh_by_precision
from discreet.compute.contraction import Margin
from discreet.values.errors import TableError, TooLarge
from discreet.values.graph import DAG
from discreet.values.measurement import DiscreteLaplace, Measurement
from discreet.values.table import Array, Table

Smooth = Callable[[str, Array], Array]
"""The conditional of a node from counts over its family, the child's axis last."""

ROUNDS = 24
"""Steps at most; with so many the error is that of the limit within a percent."""
STRIDE = 1.8
"""Every step goes this much further than it would: EM creeps, and below 2 it still ends where it would have ended;
24 such steps are as good as 50 plain ones."""
SETTLED = 1e-5
"""It ends when no table moves by more than this part of the rows."""
PRODUCT_CELLS = 2**18
"""A marginal whose elimination needs a larger product is expected from the table's own counts instead."""
LEAST = 1e-6
"""No cell is expected to hold less, so that a zero can be unlearned."""
TINY = 1e-5
"""A factor below this says no more than this in a mean of logarithms."""


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """Conditionals by node, the number of rows, and how sure each is."""

    cpts: tuple[Array, ...]
    rows: float
    errors: tuple[float, ...]
    """For each node, the L1 error that noise is expected to leave in its conditionals, weighed by frequency."""
    steps: int


@dataclass(frozen=True, slots=True, eq=False)
class _Set:
    """A measured set with its axes in the order of the nodes."""

    axes: tuple[str, ...]
    noisy: Array
    variance: float
    heavy: bool
    """Whether the noise is Laplace, so that a far-off cell says no more than one that is off by a few scales."""
    margin: Margin | None
    """How the network's marginal over the set is found; None if that takes too large a product."""


@dataclass(frozen=True, slots=True)
class _Holder:
    """How one table gives the margin over an intersection: axes summed out, and the shape to broadcast it back."""

    table: int
    drop: tuple[int, ...]
    shape: tuple[int, ...]


def fit_network(
    dag: DAG,
    measurements: Sequence[Measurement],
    smooth: Smooth,
    *,
    rows: float | None = None,
    rounds: int = ROUNDS,
) -> Fit:
    """The conditionals of a graph from noisy tables that hold all its families; `rows` if their number is public."""
    sets = _arrange(dag, _read_sizes(measurements), measurements)
    homes = [_find_home(dag, name, sets) for name in dag.nodes]
    agreed = reconcile(
        [Table(found.axes, found.noisy) for found in sets]
        + ([] if rows is None else [Table((), np.array(rows))]),
        [*weigh_by_precision([Table(s.axes, s.noisy) for s in sets], [s.variance for s in sets])]
        + ([] if rows is None else [math.inf]),
    )
    total = max(agreed[0].total() if rows is None else rows, 1.0)
    counts = [project_on_simplex(table.values, total) for table in agreed[: len(sets)]]
    margins = _plan_agreement(sets)
    own = [_plan_family(dag, name, sets[home]) for name, home in zip(dag.nodes, homes, strict=True)]

    def estimate(counts: Sequence[Array]) -> list[Array]:
        return [
            smooth(name, counts[home].sum(axis=drop).transpose(order))
            for name, home, (drop, order) in zip(dag.nodes, homes, own, strict=True)
        ]

    cpts = estimate(counts)
    steps = 0
    while steps < rounds:
        steps += 1
        expected = _expect(dag, sets, cpts, counts, total)
        shrunk = [_shrink(found, around) for found, around in zip(sets, expected, strict=True)]
        fresh = _agree([mean for mean, _ in shrunk], [spread for _, spread in shrunk], margins)
        moved = max(float(np.abs(new - old).sum()) for new, old in zip(fresh, counts, strict=True))
        counts = [np.maximum(old + STRIDE * (new - old), 0.0) for new, old in zip(fresh, counts, strict=True)]
        cpts = estimate(counts)
        if moved <= SETTLED * total:
            break
    expected = _expect(dag, sets, cpts, counts, total)
    errors = tuple(
        _predict_error(sets[home], expected[home], drop, total)
        for home, (drop, _) in zip(homes, own, strict=True)
    )
    return Fit(tuple(cpts), total, errors, steps)


def shrink_counts(
    noisy: Array, expected: Array, spread: Array | float, variance: float, heavy: bool
) -> Array:
    """The expected true count of a cell that varies by `spread` around `expected`, given its noisy count.

    For Gaussian noise it is E + D·(c − E)/(D + v). For Laplace noise of scale b it is E + (D/b)·s with s between −1 and
    1; the s of a Gaussian count, a quotient of tails, is within 0.17 of tanh((c − E)/(D/b + 2b·x/√(1 + x²))) with
    x = √(πD/8)/b: right for small D and for small c − E at large D, and as good in the end [measured].
    """
    if variance <= 0:
        return np.array(noisy, dtype=np.float64)
    if not heavy:
        return np.asarray(expected + spread / (spread + variance) * (noisy - expected))
    scale = math.sqrt(variance / 2.0)
    x = np.sqrt(np.pi / 8.0 * spread) / scale
    width = spread / scale + 2.0 * scale * x / np.sqrt(1.0 + x * x)
    return np.asarray(expected + spread / scale * np.tanh((noisy - expected) / width))


def measure_spread(noisy: Array, expected: Array, variance: float, deviations: float = 1.0) -> float:
    """φ = (Σ w((c − E)² − v) − s)/Σ wE with w = 1/(E + v), at least 1, the Poisson case.

    s is so many standard deviations √(5·cells) of the sum, so that noise alone is seldom taken for a wrong graph.
    Without φ, a graph that lacks edges would impose its independences on tables that hold several families.
    """
    trust = 1.0 / (expected + variance)
    excess = (trust * ((noisy - expected) ** 2 - variance)).sum() - deviations * math.sqrt(
        5.0 * expected.size
    )
    return max(float(excess / (trust * expected).sum()), 1.0)


def _shrink(found: _Set, expected: Array) -> tuple[Array, Array]:
    """The expected counts of a table and the variance that is left in each."""
    spread = _spread(found, expected)
    mean = shrink_counts(found.noisy, expected, spread, found.variance, found.heavy)
    return mean, spread * found.variance / (spread + found.variance)


def _spread(found: _Set, expected: Array) -> Array:
    """How much the true counts vary around what the network expects: φE."""
    return np.asarray(expected * measure_spread(found.noisy, expected, found.variance))


def _expect(
    dag: DAG, sets: Sequence[_Set], cpts: Sequence[Array], counts: Sequence[Array], total: float
) -> list[Array]:
    """What the network expects every measured cell to hold."""
    batch = [cpt[None] for cpt in cpts]
    margins = [
        _chain(dag, found, cpts, known) if found.margin is None else found.margin.read(batch)[0]
        for found, known in zip(sets, counts, strict=True)
    ]
    return [np.maximum(total * margin, LEAST) for margin in margins]


def _chain(dag: DAG, found: _Set, cpts: Sequence[Array], counts: Array) -> Array:
    """The marginal by the chain rule within the set: a node's table if its family is there, else the counts' own."""
    product = np.ones((1,) * len(found.axes))
    seen: set[str] = set()
    for name in dag.order:
        if name not in found.axes:
            continue
        seen.add(name)
        family = dag.family(name)
        if set(family) <= set(found.axes):
            conditional = Table(family, cpts[dag.index(name)])
        else:
            known = Table(found.axes, counts).project([other for other in found.axes if other in seen])
            conditional = Table(known.axes, known.values + 1e-9).normalise(name)
        product = product * conditional.spread(found.axes)
    return product


def _agree(
    means: Sequence[Array], spreads: Sequence[Array], margins: Sequence[Sequence[_Holder]]
) -> list[Array]:
    """The tables after one pass over their intersections, smallest first, each cell moved by its share of the variance.

    Like `consistency.reconcile`, but every cell has a variance of its own; none goes below zero.
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


def _plan_agreement(sets: Sequence[_Set]) -> list[list[_Holder]]:
    plans = []
    for shared in find_intersections(found.axes for found in sets):
        holders = [
            _Holder(
                t,
                tuple(i for i, name in enumerate(found.axes) if name not in shared),
                tuple(
                    size if name in shared else 1
                    for name, size in zip(found.axes, found.noisy.shape, strict=True)
                ),
            )
            for t, found in enumerate(sets)
            if shared <= set(found.axes)
        ]
        if len(holders) > 1:
            plans.append(holders)
    return plans


def _predict_error(found: _Set, expected: Array, drop: tuple[int, ...], total: float) -> float:
    """√(2/π)·Σ √W/n over the cells of a family, 1/W = 1/A − 1/φE as in `plan_merging`, W at most E²; at most 2."""
    spread = _spread(found, expected)
    whole, known = spread.sum(axis=drop), (spread * found.variance / (spread + found.variance)).sum(axis=drop)
    squared = known * whole / np.maximum(whole - known, 1e-12 * whole)
    off = np.sqrt(np.minimum(squared, expected.sum(axis=drop) ** 2))
    return min(2.0, math.sqrt(2.0 / math.pi) * float(off.sum()) / total)


def _plan_family(dag: DAG, name: str, found: _Set) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The axes to sum out of a table, and the order that puts a node's parents first and the node last."""
    family = dag.family(name)
    drop = tuple(i for i, other in enumerate(found.axes) if other not in family)
    kept = [other for other in found.axes if other in family]
    return drop, tuple(kept.index(other) for other in family)


def _find_home(dag: DAG, name: str, sets: Sequence[_Set]) -> int:
    """The smallest table that holds a node's family; after agreement all of them have the same margin."""
    fitting = [t for t, found in enumerate(sets) if set(dag.family(name)) <= set(found.axes)]
    if not fitting:
        raise TableError(f"no measured table holds {name!r} together with its parents")
    return min(fitting, key=lambda t: sets[t].noisy.size * max(sets[t].variance, 1e-300))


def _arrange(dag: DAG, sizes: Mapping[str, int], measurements: Sequence[Measurement]) -> list[_Set]:
    sets = []
    for found in measurements:
        strange = [name for name in found.axes if name not in dag]
        if strange:
            raise TableError(f"a measured table is over {strange[0]!r}, which is not in the graph")
        if found.rate != 1:
            raise TableError("tables of a sample of the rows cannot be joined with those of all rows")
        axes = tuple(name for name in dag.nodes if name in found.axes)
        noisy = np.asarray(found.noisy.arrange(axes).values, dtype=np.float64)
        heavy = isinstance(found.law, DiscreteLaplace)
        sets.append(_Set(axes, noisy, found.law.variance, heavy, _plan_margin(dag, sizes, axes)))
    return sets


def _plan_margin(dag: DAG, sizes: Mapping[str, int], axes: Sequence[str]) -> Margin | None:
    try:
        return Margin.plan(dag, sizes, axes, PRODUCT_CELLS) if axes else None
    except TooLarge:
        return None


def _read_sizes(measurements: Sequence[Measurement]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for found in measurements:
        for name, size in found.noisy.sizes.items():
            if sizes.setdefault(name, size) != size:
                raise TableError(f"{name!r} has {sizes[name]} levels in one table, {size} in another")
    return sizes


def smooth_conditionals(counts: Array, strength: float) -> Array:
    """P(x | parents) from counts with the child's axis last: (C + m·q)/(N + m), m rows of data of what is coarser.

    q is the geometric mean of the conditionals given all parents but one; those follow the conditionals given one
    parent in the same way, and these P(x). With m of a row or less, a conditional with data hardly moves, and one
    without has the best guess that its neighbours allow instead of the uniform one.
    """
    parents = tuple(range(counts.ndim - 1))
    marginal = _normalise(counts.sum(axis=parents, keepdims=True) + 1e-12)
    if not parents:
        return marginal
    singles = [_smooth(_sum_all_but(counts, parents, j), marginal, strength) for j in parents]
    if len(parents) == 1:
        return singles[0]
    logs = [_log(single) for single in singles]
    if len(parents) > 2:
        whole: Array = sum(logs)  # type: ignore[assignment]
        logs = [
            _log(
                _smooth(
                    counts.sum(axis=j, keepdims=True),
                    _exponentiate(_drop(whole - logs[j], j), len(parents) - 1),
                    strength,
                )
            )
            for j in parents
        ]
    return _smooth(counts, _exponentiate(sum(logs), len(parents)), strength)


def _sum_all_but(counts: Array, parents: Sequence[int], kept: int) -> Array:
    return np.asarray(counts.sum(axis=tuple(j for j in parents if j != kept), keepdims=True))


def _smooth(counts: Array, coarser: Array, strength: float) -> Array:
    return np.asarray((counts + strength * coarser) / (counts.sum(axis=-1, keepdims=True) + strength))


def _normalise(values: Array) -> Array:
    return np.asarray(values / values.sum(axis=-1, keepdims=True))


def _log(values: Array) -> Array:
    return np.log(np.maximum(values, TINY))


def _exponentiate(logs: Array | int, factors: int) -> Array:
    mean = np.asarray(logs) / factors
    return _normalise(np.exp(mean - mean.max(axis=-1, keepdims=True)))


def _drop(values: Array, axis: int) -> Array:
    """The values without an axis along which they do not vary: the parent that was left out."""
    return np.take(values, [0], axis=axis)
