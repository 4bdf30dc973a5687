"""Calibrated intervals: networks drawn from what the noise leaves likely, and the middle of their answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discreet.compute.augmentation import draw_counts
from discreet.compute.bounds.inner import Elimination
from discreet.compute.bounds.problem import pose
from discreet.compute.inference.elimination import eliminate
from discreet.compute.sampling import Seed
from discreet.networks.answer import Answer
from discreet.networks.evidence import (
    CodeSets,
    Given,
    describe_evidence,
    encode_sets,
    require_targets,
    weigh_sets,
)
from discreet.networks.provenance import Provenance
from discreet.values.errors import ImpossibleEvidence, NetworkError
from discreet.values.graph import DAG
from discreet.values.measurement import Measurement
from discreet.values.schema import Schema
from discreet.values.table import MAX_CELLS, Array, Table, count_cells, require_cells
from discreet.values.text import require_share

DRAWS = 200
"""How many networks are drawn; an end of a 95 % interval then rests on the fifth of them."""

CAUTION = 0.8
"""The share of the tails that is used up: the rest is for what the draws leave out, that tables agree exactly."""

TRUSTED = 0.04
"""Intervals hold as often as they say up to this mean predicted error of a conditional [measured]."""

MOST_LEVELS = 4096
"""The most combinations of target levels in one question."""


@dataclass(frozen=True, slots=True, eq=False)
class Calibrated:
    """A privately learned network with draws of the network that would have been published without noise."""

    schema: Schema
    dag: DAG
    cpts: tuple[Table, ...]
    draws: tuple[Array, ...]
    """For each node its tables, one for each draw along the first axis."""
    coverage: float
    expected_error: float
    """The mean over nodes of the L1 error that the learner predicts for their conditionals; 0 if it does not."""

    @property
    def meaning(self) -> str:
        """What the intervals promise, in a sentence."""
        share = f"{100 * self.coverage:g} %"
        if self.expected_error > TRUSTED:
            return (
                f"Fewer than {share} of such intervals contain what the answer would be without the noise, because the "
                "noise outweighs many counts; guaranteed intervals hold."
            )
        return f"About {share} of such intervals contain what the answer would be without the noise."

    def query(self, target: str | Sequence[str], given: Given | None = None) -> Answer:
        """P(target | given) of the learned network, with the draws' central interval."""
        targets = require_targets(self.schema, target)
        codes, weights = encode_sets(self.schema, given), weigh_sets(self.schema, given)
        shape = tuple(self.schema[name].size for name in targets)
        cells = require_cells(f"the answer over {', '.join(targets)}", shape, MOST_LEVELS)
        low, high = self.bound(targets, np.eye(cells).reshape(cells, *shape), codes)
        point = eliminate(self.dag, self.cpts, targets, {}, weights, MAX_CELLS)
        if point is None:
            raise ImpossibleEvidence(
                f"the evidence ({describe_evidence(given)}) has probability zero in this network"
            )
        return Answer(
            point.arrange(targets),
            tuple(self.schema[name].levels for name in targets),
            describe_evidence(given),
            low.reshape(shape),
            high.reshape(shape),
            self.meaning,
        )

    def bound(self, targets: Sequence[str], functions: Array, evidence: CodeSets) -> tuple[Array, Array]:
        """The ends of an interval for E[f(targets) | evidence], for each function f."""
        tail = CAUTION * (1.0 - self.coverage) / 2.0
        found = self.answer(targets, functions, evidence)
        # The rank k/(draws + 1) is that of a further draw, so the interval is not too narrow for being drawn.
        ends = np.quantile(found, [tail, 1.0 - tail], axis=1, method="weibull")
        return ends[0], ends[1]

    def answer(self, targets: Sequence[str], functions: Array, evidence: CodeSets) -> Array:
        """E[f(targets) | evidence] of every drawn network that allows the evidence, one line for each function."""
        count = len(self.draws[0])
        problem = pose(self.dag, self.cpts, self.cpts, targets, functions, evidence)
        if problem.settled:
            return np.repeat(problem.functions[:, None], count, axis=1)
        elimination = Elimination(problem)
        factors = []
        for i, local in enumerate(problem.locals):
            whole = self.draws[self.dag.index(local.name)]
            kept = whole[np.ix_(np.arange(count), *local.cut, np.arange(whole.shape[-1]))]
            sizes = [problem.sizes[parent] for parent in local.parents]
            factors.append(elimination.factor(i, kept.reshape(count, *sizes, whole.shape[-1])))
        joint = elimination.run(factors)[0].reshape(count, -1)
        known = joint.sum(axis=1)
        possible = known > 0
        if not possible.any():
            raise ImpossibleEvidence("the evidence has probability zero in all networks that were drawn")
        flat = problem.functions.reshape(len(problem.functions), -1)
        return np.asarray(flat @ joint[possible].T / known[possible])


def draw_calibrated(
    schema: Schema,
    dag: DAG,
    cpts: tuple[Table, ...],
    provenance: Provenance,
    coverage: float,
    *,
    rng: Seed,
    draws: int = DRAWS,
) -> Calibrated:
    """Draws of the network without noise, for a network of which each family lies in a measured table.

    True counts are drawn from their posterior under the exact law of the noise, with the graph as what is known about
    them (see `compute.augmentation`); each family takes the table that tells most about it.
    """
    require_share(coverage, "the coverage", NetworkError)
    if draws < 2:
        raise NetworkError(f"draws must be at least 2, not {draws}")
    source = np.random.default_rng(rng)
    homes = [_find_table(provenance.measurements, family) for family in dag.families()]
    counts = draw_counts(dag, cpts, provenance.measurements, homes, draws, source)
    shares = tuple(_share(found, cpt) for found, cpt in zip(counts, cpts, strict=True))
    predicted = list(provenance.predicted_error.values())
    return Calibrated(schema, dag, cpts, shares, coverage, float(np.mean(predicted)) if predicted else 0.0)


def _share(counts: Array, learned: Table) -> Array:
    """The relative frequencies in each conditional; one without counts is that of the learned network."""
    raised = counts + 1e-9 * learned.values
    return np.asarray(raised / raised.sum(axis=-1, keepdims=True))


def _find_table(measurements: Sequence[Measurement], family: Sequence[str]) -> int:
    """The number of the measurement of all rows whose margin over the family has the least noise."""
    holders = [
        (found.law.variance * found.cells / count_cells(found.noisy.sizes[name] for name in family), k)
        for k, found in enumerate(measurements)
        if found.rate == 1 and set(family) <= set(found.axes)
    ]
    return min(holders)[1]
