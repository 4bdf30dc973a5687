"""The counts behind noisy tables, as a network expects them, and the network that expects those counts: in turn.

One step takes the network's expectation E of every measured cell. The true count varies around it like a Poisson count,
or φ times as much where the table shows that the network does not hold, and the noise has a known law; so the
expected true count lies between E and the noisy one, the closer to E the more the noise outweighs what the count may
vary by. The tables are then made to agree, each cell moving by its uncertainty, and give the next network [EM].

Counts that cannot be negative are too high where they are small, and over many small cells that adds up: a rare level
of a child with many combinations of parents would be published as too frequent. The sums over a noisy table have no
such bias. So the bias is found by doing the same once more with simulated noise, and where it outweighs the noise that
the sums would add, the conditionals are raked to those.

Where a cell is expected to hold little, noise is set aside: zeros stay near zero without a threshold, attributes that
a table holds for the sake of other families add little noise, and no count is negative. Where rows are many, E
hardly matters, and the counts are those of `consistency.reconcile`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from discreet.compute.consistency import (
    Holder,
    agree,
    plan_agreement,
    project_on_simplex,
    reconcile,
    weigh_by_precision,
)
from discreet.compute.contraction import Margin
from discreet.compute.smoothing import (
    expect_skill,
    measure_spread,
    measure_unevenness,
    rake_conditionals,
    shrink_counts,
    temper,
)
from discreet.values.errors import TableError, TooLarge
from discreet.values.graph import DAG
from discreet.values.measurement import DiscreteLaplace, Measurement
from discreet.values.patience import require_time
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
FOLLOWED = 6
"""Further steps after it is known which margins the network should have."""
RAKED = 3
"""And how often the margins are restored in the end: that of a parent weighs those of its children."""
FREE = 0.01
"""No margin is taken to add less than this part of its variance: two differences of noise may both be small."""
ACCURATE = 0.02
"""And it is taken only half as much if it is off by this part of the rows: then nothing is accurate [measured]."""
MOST, HEEDED = 1e6, 0.01
"""No bias is taken to be more times smaller than what mending it adds; and less than this is not worth the steps."""
SEED = 20_000
"""The noise that shows the bias is always the same, so that the same tables give the same network."""
LEAST = 1e-6
"""No cell is expected to hold less, so that a zero can be unlearned."""


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


@dataclass(frozen=True, slots=True, eq=False)
class _Task:
    """All that stays the same from step to step: the tables, where each family is read off, and how tables agree."""

    dag: DAG
    sets: tuple[_Set, ...]
    homes: tuple[int, ...]
    own: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]
    margins: Sequence[Sequence[Holder]]
    smooth: Smooth
    rows: float | None
    rounds: int

    def read(self, tables: Sequence[Array], k: int) -> Array:
        """The margin over the family of the k-th node, the child last."""
        drop, order = self.own[k]
        return np.asarray(tables[self.homes[k]].sum(axis=drop).transpose(order))


@dataclass(frozen=True, slots=True, eq=False)
class _State:
    """Where the steps ended."""

    cpts: list[Array]
    counts: list[Array]
    expected: list[Array]
    spreads: list[float]
    """φ of each table."""
    agreed: list[Array]
    """The least-squares fit of all tables, which may be negative."""
    total: float
    steps: int


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
    homes = tuple(_find_home(dag, name, sets) for name in dag.nodes)
    own = tuple(_plan_family(dag, name, sets[home]) for name, home in zip(dag.nodes, homes, strict=True))
    task = _Task(
        dag,
        tuple(sets),
        homes,
        own,
        plan_agreement([(found.axes, found.noisy.shape) for found in sets]),
        smooth,
        rows,
        rounds,
    )
    state = _climb(task, [found.noisy for found in sets])
    goals = _find_goals(task, state)
    if any(goal is not None for goal in goals):
        state = _follow(task, state, goals)
    errors = tuple(
        _predict_error(sets[home], state.expected[home], drop, state.total)
        for home, (drop, _) in zip(homes, own, strict=True)
    )
    return Fit(_temper(task, state, errors), state.total, errors, state.steps)


def _climb(task: _Task, noisy: Sequence[Array]) -> _State:
    """Steps from the least-squares fit of the tables until they settle."""
    tables = [Table(found.axes, values) for found, values in zip(task.sets, noisy, strict=True)]
    weights = [*weigh_by_precision(tables, [found.variance for found in task.sets])]
    known = [] if task.rows is None else [Table((), np.array(task.rows))]
    agreed = [table.values for table in reconcile([*tables, *known], weights + [math.inf] * len(known))]
    total = max(float(agreed[0].sum()) if task.rows is None else task.rows, 1.0)
    counts = [project_on_simplex(values, total) for values in agreed[: len(tables)]]
    state = _State(_estimate(task, counts), counts, counts, [1.0] * len(counts), agreed, total, 0)
    while state.steps < task.rounds:
        require_time()
        before = state
        state = _step(task, noisy, state)
        moved = max(
            float(np.abs(new - old).sum()) for new, old in zip(state.counts, before.counts, strict=True)
        )
        if moved <= STRIDE * SETTLED * total:
            break
    return _look(task, noisy, state)


def _step(
    task: _Task, noisy: Sequence[Array], state: _State, goals: Sequence[Array | None] | None = None
) -> _State:
    """Expect every cell, shrink the noisy counts towards that, let the tables agree, and read the network off."""
    state = _look(task, noisy, state)
    shrunk = [
        _shrink(found, values, around, spread)
        for found, values, around, spread in zip(task.sets, noisy, state.expected, state.spreads, strict=True)
    ]
    fresh = agree([mean for mean, _ in shrunk], [unsure for _, unsure in shrunk], task.margins)
    counts = [
        np.maximum(old + STRIDE * (new - old), 0.0) for new, old in zip(fresh, state.counts, strict=True)
    ]
    cpts = _estimate(task, counts)
    state = replace(state, counts=counts, cpts=cpts, steps=state.steps + 1)
    return state if goals is None else _rake(task, state, goals)


def _look(task: _Task, noisy: Sequence[Array], state: _State) -> _State:
    """What the present network expects, and how far the tables stray from it."""
    expected = _expect(task.dag, task.sets, state.cpts, state.counts, state.total)
    spreads = [
        measure_spread(values, around, found.variance)
        for found, values, around in zip(task.sets, noisy, expected, strict=True)
    ]
    return replace(state, expected=expected, spreads=spreads)


def _estimate(task: _Task, counts: Sequence[Array]) -> list[Array]:
    return [task.smooth(name, task.read(counts, k)) for k, name in enumerate(task.dag.nodes)]


def _weigh_parents(task: _Task, state: _State, k: int) -> Array:
    """How often each combination of parents occurs: as the network expects, or as counted where it does not hold."""
    expected, counted = (
        task.read(tables, k).sum(axis=-1, keepdims=True) for tables in (state.expected, state.counts)
    )
    doubt = 1.0 - 1.0 / state.spreads[task.homes[k]]
    # Where noise is all there is, every count may be 0, and nothing is expected of any.
    return np.asarray(np.maximum(expected + doubt * (counted - expected), 1e-200))


def _find_goals(task: _Task, state: _State) -> list[Array | None]:
    """The margin that each node should have; None where the network's own is better.

    Counts that cannot be negative are too high where they are small, and parents that the graph calls independent never
    are quite that in the rows. How much of it adds up in a margin e is found by doing it again: noise of the same law,
    and the same with the signs turned, on the counts that were found. The sum t over the noisy table has no bias. So
    the mean of e − t over both is the bias β, because all that is odd in the noise cancels; half their difference is
    what the noise moves t − e by, and so is t − e + β of the release itself. With their mean square A, what is added to
    the variance by t instead of e, the goal is e + w(t − e) with w = 1/(1 + (A/β²)²). Where e and t are moved
    by the same noise, t costs nothing, and the least bias is mended.
    """
    goals: list[Array | None] = [None] * len(task.dag)
    sizes = [cpt.shape[-1] for cpt in state.cpts]
    variances = [
        _vary(task, name) / size / state.total**2 for name, size in zip(task.dag.nodes, sizes, strict=True)
    ]
    heeded = [
        size > 1 and variance > 0 and _trust(variance, 1.0) >= HEEDED
        for size, variance in zip(sizes, variances, strict=True)
    ]
    if not any(heeded):
        return goals
    rng = np.random.default_rng(SEED)
    noise = [_simulate(found, rng) for found in task.sets]
    twins = [
        _climb(task, [count + sign * drawn for count, drawn in zip(state.counts, noise, strict=True)])
        for sign in (1.0, -1.0)
    ]
    for k, (size, variance) in enumerate(zip(sizes, variances, strict=True)):
        if not heeded[k]:
            continue
        own = _read_margin(task, state, k)
        gap, one, other = (
            _read_sums(task, found, k) - _read_margin(task, found, k) for found in (state, *twins)
        )
        bias, odd = -(one + other) / 2.0, (one - other) / 2.0
        added = float((odd**2).sum() + ((gap + bias) ** 2).sum()) / (2.0 * (size - 1))
        least = min(max(added, FREE * variance), variance)
        squared = max(float((bias**2).mean()), least / MOST)
        weight = _trust(variance, squared) / (1.0 + (least / squared) ** 2)
        if weight >= HEEDED:
            goals[k] = np.maximum(own + weight * gap, 0.1 * own)
    return goals


def _trust(variance: float, squared: float) -> float:
    """How much of a sum with this variance is taken at most, where the bias squared is so much.

    Half of one that is off by ACCURATE, less of a worse one, and more where the bias is larger still than its noise.
    """
    return 1.0 / (1.0 + (variance / ACCURATE**2) ** 2 * min(1.0, variance / squared))


def _follow(task: _Task, state: _State, goals: Sequence[Array | None]) -> _State:
    """A few more steps, in which the conditionals keep the margins that they should have."""
    noisy = [found.noisy for found in task.sets]
    state = _rake(task, state, goals)
    for _ in range(FOLLOWED):
        state = _step(task, noisy, state, goals)
    for _ in range(RAKED):
        state = _rake(task, _look(task, noisy, state), goals)
    return state


def _rake(task: _Task, state: _State, goals: Sequence[Array | None]) -> _State:
    cpts = [
        cpt if goal is None else rake_conditionals(cpt, _weigh_parents(task, state, k), goal)
        for k, (cpt, goal) in enumerate(zip(state.cpts, goals, strict=True))
    ]
    return replace(state, cpts=cpts)


def _temper(task: _Task, state: _State, errors: Sequence[float]) -> tuple[Array, ...]:
    """The conditionals, those that are little but noise moved towards simpler ones; see `temper`."""
    nodes = range(len(task.dag))
    sums = [_read_sums(task, state, k) for k in nodes]
    noises = [_vary(task, task.dag.nodes[k]) / sums[k].size / state.total**2 for k in nodes]
    shares = [found.noisy / state.total for found in task.sets]
    uneven = measure_unevenness(
        [*sums, *shares], [*noises, *(found.variance / state.total**2 for found in task.sets)]
    )
    skills = [expect_skill(found.variance / state.total**2, found.noisy.size) for found in task.sets]
    margins = [_read_margin(task, state, k) for k in nodes]
    return tuple(
        temper(cpt, margin, told, noise, error, uneven, skills[home])
        for cpt, margin, told, noise, error, home in zip(
            state.cpts, margins, sums, noises, errors, task.homes, strict=True
        )
    )


def _read_margin(task: _Task, state: _State, k: int) -> Array:
    """The marginal of a node under its conditionals."""
    weights = _weigh_parents(task, state, k)
    return _sum_parents(weights * state.cpts[k]) / float(weights.sum())


def _read_sums(task: _Task, state: _State, k: int) -> Array:
    """The marginal of a node by the least-squares fit of the noisy tables: without bias, and maybe negative."""
    return _sum_parents(task.read(state.agreed, k)) / state.total


def _sum_parents(values: Array) -> Array:
    return np.asarray(values.sum(axis=tuple(range(values.ndim - 1))))


def _vary(task: _Task, name: str) -> float:
    """The variance of the sum over all cells of the least-squares fit of the tables that hold a node."""
    held = [found.variance * found.noisy.size for found in task.sets if name in found.axes]
    return 1.0 / sum(1.0 / spread for spread in held) if all(spread > 0 for spread in held) else 0.0


def _simulate(found: _Set, rng: np.random.Generator) -> Array:
    deviation = math.sqrt(max(found.variance, 0.0))
    draw = rng.laplace(0.0, deviation / math.sqrt(2.0), found.noisy.shape) if found.heavy else None
    return deviation * rng.standard_normal(found.noisy.shape) if draw is None else draw


def _shrink(found: _Set, noisy: Array, expected: Array, spread: float) -> tuple[Array, Array]:
    """The expected counts of a table and the variance that is left in each; true counts vary by φE."""
    varies = spread * expected
    mean = shrink_counts(noisy, expected, varies, found.variance, found.heavy)
    return mean, varies * found.variance / (varies + found.variance)


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


def _predict_error(found: _Set, expected: Array, drop: tuple[int, ...], total: float) -> float:
    """√(2/π)·Σ √W/n over the cells of a family, 1/W = 1/A − 1/φE as in `plan_merging`, W at most E²; at most 2."""
    spread = expected * measure_spread(found.noisy, expected, found.variance)
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
