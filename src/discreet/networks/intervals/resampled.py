"""Calibrated intervals for what no measured table holds: the release is made again from its own tables, many times.

A model is fitted to the noisy tables, taken at their word. Rows are drawn from it, as many as the table has. The same
sets of attributes are counted, noise of the same laws is added, and a model is fitted likewise. How far each such model
is from its own rows tells how far the first one is from the table: by the noise, by cells that may not be negative, and
by what rows differ from every model by chance (the parametric bootstrap [Efron & Tibshirani 1993, Ch. 6]).

The published network is not asked. Its tables are drawn to what is simpler by a factor s < 1, which brings them nearer
to the truth on average; but that a dependence δ is then off by (1 − s)·δ is not seen in releases that are made again
from it, where δ is only s times as large. What noise alone makes wrong can be made again.

What the search left out is not in the network, so no release made again shows it: for every pair that was not measured
together, what noise would have hidden of it is added, and where that could be anything the question is refused
(`unseen`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from discreet.compute.cliques.entropy import fit_tables
from discreet.compute.cliques.model import CliqueModel
from discreet.compute.sampling import Seed, prepare
from discreet.networks.intervals.calibrated import INSTEAD
from discreet.networks.intervals.shares import Estimate
from discreet.networks.intervals.unseen import Sight
from discreet.networks.provenance import Provenance
from discreet.values.errors import NetworkError
from discreet.values.measurement import DiscreteGaussian, DiscreteLaplace, Law
from discreet.values.schema import Schema
from discreet.values.table import Array, Table, count_cells

DRAWS = 40
"""How many releases are made again; a standard deviation is then known to a ninth."""

MOST_ROWS = 2**15
"""The most rows that are drawn for one; of more, what chance does is scaled from so many."""

STUDENT = 1.03
"""Student's quantile over the normal one, for a standard deviation that so many draws tell."""


BEYOND = 0.3
"""How much more than by chance rows differ from a model of few attributes, in parts of what chance does [measured]."""


@dataclass(frozen=True, slots=True, eq=False)
class Draw:
    """One release that was made again: its rows, and what was learned from them."""

    codes: dict[str, Array]
    model: CliqueModel
    rows: float
    """How many rows the model believes there are."""


@dataclass(frozen=True, slots=True, eq=False)
class Resampled:
    """A model of a search's noisy tables, with releases that were made again from it."""

    model: CliqueModel
    rows: float
    """How many rows the table is estimated to have."""
    sets: tuple[frozenset[str], ...]
    """The attributes of each measured table."""
    sight: Sight
    """What the search could see."""
    draws: tuple[Draw, ...]
    _kept: dict[tuple[tuple[str, ...], bool], tuple[Array, Array]] = field(init=False, default_factory=dict)

    def estimate(
        self, names: Sequence[str], parts: Sequence[Array], targets: Sequence[str], *, world: bool
    ) -> Estimate:
        """The model's counts of the rows in each part, with how far the drawn releases were off.

        The parts are indicators over the attributes in order. About the world, each drawn release is held against the
        model that its rows are a sample of.
        """
        learned, off = self._compare(tuple(names), world)
        weights = np.array([part.ravel() for part in parts])
        errors = off @ weights.T
        counts = weights @ learned
        likely = np.maximum(counts, 0.0)
        chance = np.diag(likely) - np.outer(likely, likely) / max(likely.sum(), 1e-9)
        table = Table(tuple(names), learned.reshape(parts[0].shape))
        given = Table(tuple(names), np.sum(parts, axis=0))
        beyond = BEYOND + sum(
            self._doubt(table, given, pair, targets) for pair in self._list_unseen(names, targets)
        )
        spread = STUDENT**2 * errors.T @ errors / len(errors) + beyond * chance
        return Estimate(counts, spread, np.zeros((len(parts), 1)), np.zeros(1))

    def _doubt(self, learned: Table, given: Table, pair: tuple[str, str], targets: Sequence[str]) -> float:
        """How many times the variance of chance an unmeasured dependence of the first of a pair may add.

        The rows of all the evidence are only some of those of the second's own: what these are off by, they share.
        """
        first, second = (np.maximum(learned.project([name]).values, 0.0) for name in pair)
        hidden = self.sight.doubt(pair, first, second)
        if pair[1] in targets:
            return hidden
        inside = given.project([pair[1]]).values > 0
        share = (learned.values * (given.values > 0)).sum() / max(second[inside].sum(), 1e-9)
        return hidden * min(1.0, float(share))

    def _list_unseen(self, names: Sequence[str], targets: Sequence[str]) -> list[tuple[str, str]]:
        """The pairs of a target and another attribute that no table holds."""
        others = [name for name in names if name not in targets]
        pairs = [*itertools.combinations(targets, 2), *itertools.product(targets, others)]
        return [pair for pair in pairs if not any(held.issuperset(pair) for held in self.sets)]

    def _compare(self, names: tuple[str, ...], world: bool) -> tuple[Array, Array]:
        """The learned counts of all cells over some attributes, and how far each drawn release is off in them."""
        if (names, world) not in self._kept:
            learned = self.rows * _find_margin(self.model, names)
            off = np.empty((len(self.draws), learned.size))
            for k, draw in enumerate(self.draws):
                true = learned if world else count_like(draw.codes, names, learned, self.rows)
                off[k] = (draw.rows * _find_margin(draw.model, names) - true).ravel()
            self._kept.clear()  # a question asks for the same attributes level by level
            self._kept[names, world] = learned.ravel(), off
        return self._kept[names, world]


def draw_releases(schema: Schema, provenance: Provenance, *, rng: Seed, draws: int = DRAWS) -> Resampled:
    """Releases made again from the tables of an adaptive search: rows, tables, noise, model."""
    measured = [found for found in provenance.measurements if found.rate == 1]
    public = None if provenance.rows is None else float(provenance.rows)
    variances = [found.law.variance for found in measured]
    model, rows = fit_tables(schema.sizes, [found.noisy for found in measured], variances, public)
    dag, cpts = model.network()
    source = np.random.default_rng(rng)
    sampler = prepare([cpts[dag.index(name)] for name in dag.order], int(source.integers(2**31)))
    expected = [rows * _find_margin(model, found.axes) for found in measured]
    made = []
    for k in range(draws):
        codes = sampler.restart(k).draw(0, min(math.ceil(rows), MOST_ROWS))
        noisy = [
            Table(
                found.axes,
                count_like(codes, found.axes, mean, rows)
                + draw_noise(found.law, found.noisy.values.shape, source),
            )
            for found, mean in zip(measured, expected, strict=True)
        ]
        made.append(Draw(codes, *fit_tables(schema.sizes, noisy, variances, public)))
    sets = tuple(frozenset(found.axes) for found in measured)
    return Resampled(model, rows, sets, Sight.of(provenance, rows), tuple(made))


def count_like(codes: dict[str, Array], names: Sequence[str], expected: Array, rows: float) -> Array:
    """Counts over some attributes in as many rows as are expected, with the deviations of those that were drawn."""
    shape = expected.shape
    if not names:
        return np.asarray(expected)
    cells = np.ravel_multi_index([codes[name].astype(np.int64) for name in names], shape)
    counts = np.bincount(cells, minlength=count_cells(shape)).reshape(shape)
    drawn = len(cells)
    off = counts - expected * (drawn / rows)
    return np.asarray(expected + math.sqrt(rows / drawn) * off)


def draw_noise(law: Law, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Noise by a law, for a simulation; what protects rows is drawn elsewhere."""
    if isinstance(law, DiscreteLaplace):
        stop = -math.expm1(-float(1 / law.scale))
        return np.asarray(rng.geometric(stop, shape) - rng.geometric(stop, shape), dtype=np.float64)
    if isinstance(law, DiscreteGaussian):
        return np.rint(rng.normal(0.0, math.sqrt(float(law.sigma2)), shape))
    drawn = np.zeros(shape)
    for part in getattr(law, "parts", ()):
        drawn += draw_noise(part, shape, rng)
    return drawn


def _find_margin(model: CliqueModel, names: tuple[str, ...]) -> Array:
    if not names:
        return np.ones(())
    found = next(model.margins([names]), None)
    if found is None:
        raise NetworkError(
            f"no calibrated intervals: the table over {', '.join(names)} is too large; {INSTEAD}"
        )
    return found.values
