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
from discreet.networks.intervals.shares import TooNoisy, guess_rows
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
"""The share of the tails that is used up: the rest is for what draws of the emptiest cells leave out [measured]."""

HALF = 0.5
"""Rows by which both ends are widened: counts are whole, and draws end a little short of shares that are 0 or 1."""

TRUSTED = 0.02
"""Intervals hold as often as they say up to this mean predicted error of a conditional [measured]."""

APART = 1.5
"""Where two beliefs together span so many times the width of one of them, the tables did not decide [measured]."""

NEGLIGIBLE = 0.002
"""Two beliefs that are no further apart than this agree, however narrow their intervals are."""

INSTEAD = 'guaranteed ones hold (intervals="guaranteed", --interval guaranteed)'

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
    others: tuple[Array, ...]
    """Draws by somebody who believed in no network before: where they differ, the tables did not decide."""
    coverage: float
    rows: float
    """How many rows the table is estimated to have."""
    expected_error: float
    """The mean over nodes of the L1 error that the learner predicts for their conditionals; 0 if it does not."""

    @property
    def meaning(self) -> str:
        """What the intervals promise, in a sentence."""
        return (
            f"About {100 * self.coverage:g} % of such intervals contain what the answer on this graph would be without "
            "the noise."
        )

    def require_signal(self) -> None:
        """Refuse where the noise outweighs so many counts that no narrow interval holds as often as it says."""
        if self.expected_error > TRUSTED:
            raise TooNoisy(
                "no calibrated intervals: the noise outweighs many counts of this release (expected error "
                f"{self.expected_error:.2g}, allowed is {TRUSTED:g}), so fewer would hold than they say; {INSTEAD}"
            )

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
        self.require_signal()
        low, high = self._cut(self.answer(targets, functions, evidence))
        least, most = self._cut(self.answer(targets, functions, evidence, self.others))
        both, narrow = np.maximum(high, most) - np.minimum(low, least), np.minimum(high - low, most - least)
        if (both > APART * narrow + NEGLIGIBLE).any():
            raise TooNoisy(
                "no calibrated intervals: the noise leaves this answer to what one believed before, so they would not "
                f"hold as often as they say; {INSTEAD}"
            )
        if set(targets) <= set(evidence):
            return low, high
        flat = functions.reshape(len(functions), -1)
        floor, ceiling = flat.min(axis=1), flat.max(axis=1)
        share, weights = self._weigh(evidence)
        point = eliminate(self.dag, self.cpts, tuple(targets), {}, weights, MAX_CELLS)
        if point is not None:  # what was learned is as likely as what was drawn
            learned = flat @ point.arrange(tuple(targets)).values.ravel()
            low, high = np.minimum(low, learned), np.maximum(high, learned)
        reach = HALF / max(self.rows * share, HALF) * (ceiling - floor)
        return np.maximum(low - reach, floor), np.minimum(high + reach, ceiling)

    def _weigh(self, evidence: CodeSets) -> tuple[float, dict[str, Array]]:
        """The learned network's probability of the evidence, one attribute after the other; and it as likelihoods."""
        share, known = 1.0, dict[str, Array]()
        for name, codes in evidence.items():
            found = eliminate(self.dag, self.cpts, (name,), {}, known, MAX_CELLS)
            known[name] = np.isin(np.arange(self.schema[name].size), list(codes)).astype(np.float64)
            share *= 0.0 if found is None else float((found.values * known[name]).sum())
        return share, known

    def _cut(self, found: Array) -> tuple[Array, Array]:
        tail = CAUTION * (1.0 - self.coverage) / 2.0
        # The rank k/(draws + 1) is that of a further draw, so the interval is not too narrow for being drawn.
        ends = np.quantile(found, [tail, 1.0 - tail], axis=1, method="weibull")
        return ends[0], ends[1]

    def answer(
        self,
        targets: Sequence[str],
        functions: Array,
        evidence: CodeSets,
        draws: tuple[Array, ...] | None = None,
    ) -> Array:
        """E[f(targets) | evidence] of every drawn network that allows the evidence, one line for each function."""
        drawn = self.draws if draws is None else draws
        count = len(drawn[0])
        problem = pose(self.dag, self.cpts, self.cpts, targets, functions, evidence)
        if problem.settled:
            return np.repeat(problem.functions[:, None], count, axis=1)
        elimination = Elimination(problem)
        factors = []
        for i, local in enumerate(problem.locals):
            whole = drawn[self.dag.index(local.name)]
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
    homes = [find_home(provenance.measurements, family) for family in dag.families()]
    shares, others = (
        tuple(
            _share(found, cpt)
            for found, cpt in zip(
                draw_counts(dag, cpts, provenance.measurements, homes, draws, source, even=even),
                cpts,
                strict=True,
            )
        )
        for even in (False, True)
    )
    predicted = list(provenance.predicted_error.values())
    expected = float(np.mean(predicted)) if predicted else 0.0
    tables = [found for found in provenance.measurements if found.rate == 1]
    rows = guess_rows(tables, provenance.rows)
    return Calibrated(schema, dag, cpts, shares, others, coverage, rows, expected)


def _share(counts: Array, learned: Table) -> Array:
    """The relative frequencies in each conditional; one without counts is that of the learned network."""
    raised = counts + 1e-9 * learned.values
    return np.asarray(raised / raised.sum(axis=-1, keepdims=True))


def find_home(measurements: Sequence[Measurement], family: Sequence[str]) -> int:
    """The number of the measurement of all rows whose margin over the family has the least noise."""
    holders = [
        (found.law.variance * found.cells / count_cells(found.noisy.sizes[name] for name in family), k)
        for k, found in enumerate(measurements)
        if found.rate == 1 and set(family) <= set(found.axes)
    ]
    return min(holders)[1]
