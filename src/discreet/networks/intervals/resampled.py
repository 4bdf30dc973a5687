"""Calibrated intervals for what no measured table holds: the release is made again from its own network, many times.

Rows are drawn from the learned network, as many as the table has. The same sets of attributes are counted, noise of the
same laws is added, and the same model is fitted. How far each such model is from its own rows tells how far the learned
one is from the table: by the noise, by what was shrunk for it, and by what rows differ from every model by chance
(the parametric bootstrap [Efron & Tibshirani 1993, Ch. 6]). What the search did not measure because noise would have
hidden it is not in it: so for each pair of attributes that was not measured together, as much is added as noise would
have hidden, and where that is most pairs the question is refused.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from discreet.compute.clique_model import CliqueModel
from discreet.compute.entropy import fit_tables
from discreet.compute.inference.elimination import eliminate
from discreet.compute.sampling import Seed, prepare
from discreet.compute.smoothing import count_ordered, score_levels
from discreet.networks.intervals.calibrated import INSTEAD
from discreet.networks.intervals.shares import Estimate, guess_rows
from discreet.networks.provenance import Provenance
from discreet.values.errors import NetworkError
from discreet.values.graph import DAG
from discreet.values.measurement import DiscreteGaussian, DiscreteLaplace, Law
from discreet.values.schema import Schema
from discreet.values.table import MAX_CELLS, Array, Table, count_cells

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
    """A searched release with releases that were made again from its network."""

    dag: DAG
    cpts: tuple[Table, ...]
    rows: float
    """How many rows the table is estimated to have."""
    sets: tuple[frozenset[str], ...]
    """The attributes of each measured table."""
    noise: float
    """The least variance of noise in a cell of two or more attributes: about what a search can see."""
    draws: tuple[Draw, ...]
    _kept: dict[tuple[tuple[str, ...], bool], tuple[Array, Array]] = field(init=False, default_factory=dict)

    def estimate(
        self, names: Sequence[str], parts: Sequence[Array], targets: Sequence[str], *, world: bool
    ) -> Estimate:
        """The network's counts of the rows in each part, with how far the drawn releases were off.

        The parts are indicators over the attributes in order. About the world, each drawn release is held against the
        network that its rows are a sample of.
        """
        unseen = self._list_unseen(names, targets)
        weights = np.array([part.ravel() for part in parts])
        learned, off = self._compare(tuple(names), world)
        errors = off @ weights.T
        counts = weights @ learned
        spread = STUDENT**2 * errors.T @ errors / len(errors)
        # As many rows as noise hides may have another of the asked levels for each dependence that was not measured.
        spread += len(unseen) * self.noise * (np.eye(len(parts)) - 1.0 / len(parts))
        spread += BEYOND * (np.diag(counts) - np.outer(counts, counts) / max(counts.sum(), 1e-9))
        return Estimate(counts, spread, np.zeros((len(parts), 1)), np.zeros(1))

    def _list_unseen(self, names: Sequence[str], targets: Sequence[str]) -> list[tuple[str, str]]:
        """The pairs with a target that no table holds; refused where these are most of them."""
        pairs = [pair for pair in itertools.combinations(names, 2) if not set(pair).isdisjoint(targets)]
        unseen = [pair for pair in pairs if not any(held.issuperset(pair) for held in self.sets)]
        if 2 * len(unseen) > len(pairs):
            raise NetworkError(
                f"no calibrated intervals: {' and '.join(unseen[0])} were not measured together, so the network only "
                f"guesses how one depends on the other; {INSTEAD}"
            )
        return unseen

    def _compare(self, names: tuple[str, ...], world: bool) -> tuple[Array, Array]:
        """The learned counts of all cells over some attributes, and how far each drawn release is off in them."""
        if (names, world) not in self._kept:
            learned = self.rows * _require(eliminate(self.dag, self.cpts, names, {}, {}, MAX_CELLS))
            off = np.empty((len(self.draws), learned.size))
            for k, draw in enumerate(self.draws):
                found = next(draw.model.margins([names]), None)
                if found is None:
                    raise NetworkError(
                        f"no calibrated intervals: the table over {', '.join(names)} is too large; {INSTEAD}"
                    )
                true = learned if world else count_like(draw.codes, names, learned, self.rows)
                off[k] = (draw.rows * found.values - true).ravel()
            self._kept.clear()  # a question asks for the same attributes level by level
            self._kept[names, world] = learned.ravel(), off
        return self._kept[names, world]


def draw_releases(
    schema: Schema,
    dag: DAG,
    cpts: tuple[Table, ...],
    provenance: Provenance,
    *,
    rng: Seed,
    draws: int = DRAWS,
) -> Resampled:
    """Releases made again from the network of an adaptive search: rows, tables, noise, model."""
    measured = [found for found in provenance.measurements if found.rate == 1]
    rows = max(1.0, guess_rows(measured, provenance.rows))
    public = None if provenance.rows is None else float(provenance.rows)
    source = np.random.default_rng(rng)
    sampler = prepare([cpts[dag.index(name)] for name in dag.order], int(source.integers(2**31)))
    expected = [rows * _require(eliminate(dag, cpts, found.axes, {}, {}, MAX_CELLS)) for found in measured]
    variances = [found.law.variance for found in measured]
    ordered, scores = count_ordered(schema), score_levels(schema)
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
        made.append(Draw(codes, *fit_tables(schema.sizes, noisy, variances, ordered, public, scores)))
    sets = tuple(frozenset(found.axes) for found in measured)
    noise = min(found.law.variance for found in measured if len(found.axes) > 1)
    return Resampled(dag, cpts, rows, sets, noise, tuple(made))


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


def _require(table: Table | None) -> Array:
    assert table is not None
    return table.values
