"""Calibrated intervals: networks drawn from what the noise leaves likely, and the middle of their answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discreet.compute.augmentation import draw_counts
from discreet.compute.bounds import Elimination, pose
from discreet.compute.sampling import Seed
from discreet.networks.answer import Answer
from discreet.networks.credal.evidence import describe_sets, encode_sets, weigh_sets
from discreet.networks.evidence import Given, require_targets
from discreet.networks.network import Network
from discreet.values.errors import ImpossibleEvidence, NetworkError
from discreet.values.measurement import Measurement
from discreet.values.table import Array, Table, count_cells, require_cells

DRAWS = 200
"""How many networks are drawn; an end of a 95 % interval then rests on the fifth of them."""

CAUTION = 0.8
"""The share of the tails that is used up: the rest is for what the draws leave out, that tables agree exactly."""

TRUSTED = 0.04
"""The mean error of a row that the learner predicts up to which intervals hold as often as they say [measured]."""

MOST_LEVELS = 4096
"""The most combinations of target levels in one question."""


@dataclass(frozen=True, slots=True, eq=False)
class Calibrated:
    """A privately learned network with draws of the network that would have been published without noise."""

    network: Network
    draws: tuple[Array, ...]
    """For each node its tables, one for each draw along the first axis."""
    coverage: float

    @property
    def meaning(self) -> str:
        """What the intervals promise, in a sentence."""
        if _expect_error(self.network) > TRUSTED:
            return (
                f"Fewer than {self.coverage:.0%} of such intervals contain the answer that noise has hidden, "
                "because it outweighs many counts; guaranteed ones hold."
            )
        return f"About {self.coverage:.0%} of such intervals contain the answer that noise has hidden."

    def query(self, target: str | Sequence[str], given: Given | None = None) -> Answer:
        """P(target | given) of the learned network, with the draws' central interval."""
        schema = self.network.schema
        targets = require_targets(schema, target)
        shape = tuple(schema[name].size for name in targets)
        cells = require_cells(f"the answer over {', '.join(targets)}", shape, MOST_LEVELS)
        low, high = self.bound(targets, np.eye(cells).reshape(cells, *shape), given)
        point = self.network.query(targets, likelihood=weigh_sets(schema, given), intervals=False)
        return Answer(
            point.table,
            point.levels,
            describe_sets(given),
            low.reshape(shape),
            high.reshape(shape),
            self.meaning,
        )

    def bound(
        self, targets: Sequence[str], functions: Array, given: Given | None = None
    ) -> tuple[Array, Array]:
        """The ends of an interval for E[f(targets) | given], for each function f."""
        tail = CAUTION * (1.0 - self.coverage) / 2.0
        found = self.answer(targets, functions, given)
        # The rank k/(draws + 1) is that of a further draw, so the interval is not too narrow for being drawn.
        ends = np.quantile(found, [tail, 1.0 - tail], axis=1, method="weibull")
        return ends[0], ends[1]

    def answer(self, targets: Sequence[str], functions: Array, given: Given | None = None) -> Array:
        """E[f(targets) | given] of every drawn network that allows the evidence, one line for each function."""
        network, count = self.network, len(self.draws[0])
        codes = encode_sets(network.schema, given)
        problem = pose(network.dag, network.cpts, network.cpts, targets, functions, codes)
        if problem.settled:
            return np.repeat(problem.functions[:, None], count, axis=1)
        elimination = Elimination(problem)
        factors = []
        for i, local in enumerate(problem.locals):
            whole = self.draws[network.dag.index(local.name)]
            kept = whole[np.ix_(np.arange(count), *local.cut, np.arange(whole.shape[-1]))]
            sizes = [problem.sizes[parent] for parent in local.parents]
            factors.append(elimination.factor(i, kept.reshape(count, *sizes, whole.shape[-1])))
        joint = elimination.run(factors)[0].reshape(count, -1)
        known = joint.sum(axis=1)
        possible = known > 0
        if not possible.any():
            raise ImpossibleEvidence(
                f"the evidence ({describe_sets(given)}) has probability zero in all networks that were drawn"
            )
        flat = problem.functions.reshape(len(problem.functions), -1)
        return np.asarray(flat @ joint[possible].T / known[possible])


def calibrated(network: Network, coverage: float = 0.95, *, rng: Seed, draws: int = DRAWS) -> Calibrated:
    """Draws of the network without noise, given the noisy measurements, for intervals that are right on average.

    True counts are drawn from their posterior under the exact law of the noise, with the graph as what is
    known about them (see `compute.augmentation`); each family takes the table that tells most about it. An
    interval covers the answer without noise about as often as it says, on average over questions and
    releases; it promises nothing for each of them as `from_noise` does, and is several times narrower.
    """
    provenance = network.provenance
    if provenance is None:
        raise NetworkError("the network does not say what was measured; only a privately learned one does")
    if not 0 < coverage < 1:
        raise NetworkError(f"a coverage lies strictly between 0 and 1, not {coverage}")
    if draws < 2:
        raise NetworkError(f"an interval needs at least 2 draws, not {draws}")
    source = np.random.default_rng(rng)
    homes = [find_table(provenance.measurements, network.dag.family(name)) for name in network.nodes]
    counts = draw_counts(network.dag, network.cpts, provenance.measurements, homes, draws, source)
    return Calibrated(
        network,
        tuple(_share(found, cpt) for found, cpt in zip(counts, network.cpts, strict=True)),
        coverage,
    )


def _share(counts: Array, learned: Table) -> Array:
    """The relative frequencies in each row; a row without counts is that of the learned network."""
    raised = counts + 1e-9 * learned.values
    return np.asarray(raised / raised.sum(axis=-1, keepdims=True))


def _expect_error(network: Network) -> float:
    """The mean over nodes of the L1 error that the learner predicts for its rows; 0 if it does not."""
    predicted = network.provenance.predicted_error if network.provenance is not None else {}
    return float(np.mean(list(predicted.values()))) if predicted else 0.0


def find_table(measurements: Sequence[Measurement], family: Sequence[str]) -> int:
    """The number of the measurement of all rows whose margin over the family has the least noise."""
    holders = [
        (found.law.variance * found.cells / count_cells(found.noisy.sizes[name] for name in family), k)
        for k, found in enumerate(measurements)
        if found.rate == 1 and set(family) <= set(found.axes)
    ]
    if not holders:
        raise NetworkError(f"no table over all rows was measured that contains {', '.join(family)}")
    return min(holders)[1]
