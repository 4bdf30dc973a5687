"""Intervals for the noise in an answer: which ones a network can have, why not, what they cover, and how that is said.

There is one policy for everyone who asks: `Network.query` and written questions, `credal.from_noise` and
`credal.calibrated`, and the report. It works on the parts of a network, so a network can own one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from discreet.compute.bounds.counting import bound_conditionals, bound_counts
from discreet.compute.bounds.outer import bound_outer
from discreet.networks.answer import Answer
from discreet.networks.calibrated import MOST_LEVELS as MOST_ASKED
from discreet.networks.calibrated import Calibrated, draw_calibrated
from discreet.networks.evidence import CodeSets
from discreet.networks.provenance import Provenance
from discreet.values.errors import ImpossibleEvidence, NetworkError, QueryError, TableError, TooLarge
from discreet.values.graph import DAG
from discreet.values.schema import Schema
from discreet.values.table import Array, Table, count_cells, require_cells
from discreet.values.text import require_share, show

COVERAGE = 0.95
"""How sure the intervals beside answers are."""

MOST_CELLS = 2**20
"""The most measured cells from which intervals are made unasked."""

MOST_LEVELS = 64
"""The most levels, or combinations of levels, that get an interval unasked."""

MOST_WORK = 2**20
"""The most cells that may be worked through for intervals that nobody asked for: some tenths of a second."""

SUM_TOLERANCE = 1e-6
"""How far the sum of a conditional may be from 1; conditionals are taken as they are, never mended silently."""

SEED = 0
"""The draws behind calibrated intervals are always the same, so that the same question has the same answer."""

ASK = 'ask for them with intervals="guaranteed" (--interval guaranteed)'
SLOW = f"No intervals: they would take more than a second here; {ASK}."
IMPOSSIBLE = "No intervals: without the noise, this evidence would most likely be impossible."
SOFT = "they are not worked out for evidence that is given as a likelihood"

Strength = float | Mapping[str, npt.ArrayLike]
"""The S of the imprecise Dirichlet model: one for all, or for each node an array over the levels of its parents."""


class Intervals(StrEnum):
    """Which intervals stand beside an answer."""

    GUARANTEED = "guaranteed"
    """They hold for all questions at once, as surely as they say."""
    CALIBRATED = "calibrated"
    """As many of them hold as they say, on average over questions and releases; several times narrower."""
    NONE = "none"

    @classmethod
    def read(cls, wanted: Intervals | str | None) -> Intervals | None:
        """The kind that a text names; None is the default, guaranteed ones where that is quick."""
        if wanted is None:
            return None
        try:
            return cls(wanted)
        except ValueError:
            raise QueryError(
                f"intervals must be guaranteed, calibrated or none, not {show(wanted)}"
            ) from None


def explain_lack(dag: DAG, provenance: Provenance | None) -> str:
    """Why no interval can be given for a network, and what to do about it; empty if there can be intervals.

    The counts behind a conditional are bounded by a table that holds its whole family. What was fitted to several
    smaller tables has the noise of all of them and the error of the fit, and nothing published bounds that error. And
    where tables were chosen in the light of noise in earlier ones, a bound for a fixed list of tables proves nothing.
    """
    if provenance is None:
        return "the network does not say what was measured; only a privately learned one does"
    if provenance.details.get("batches"):
        return (
            "the learner adaptive chose its tables by what earlier noisy ones had shown, and no bound is known for the "
            "noise in that; to have intervals, release again with --graph (this network will do) or --learner "
            "privbayes, which costs budget again"
        )
    held = [frozenset(found.axes) for found in provenance.measurements if found.rate == 1]
    unheld = [family for family in dag.families() if not any(axes.issuperset(family) for axes in held)]
    if not unheld:
        return ""
    if provenance.details.get("auxiliary"):
        return (
            "they are not worked out through bits or groups of levels; to have intervals, release again with "
            "--encoding vanilla, which costs budget again"
        )
    return f"no table over all rows was measured that contains {', '.join(unheld[0])}"


def require_intervals(dag: DAG, provenance: Provenance | None) -> Provenance:
    """The provenance of a network that can have intervals, or a refusal that says why not and what to do."""
    lack = explain_lack(dag, provenance)
    if lack or provenance is None:
        raise NetworkError(f"no intervals: {lack}")
    return provenance


def state_guarantee(coverage: float, *, sampling: bool = False) -> str:
    """What guaranteed intervals cover, in a sentence."""
    said = f"{100 * coverage:g} % sure, for all answers together: without the noise, the answer would lie in [ ]."
    return said + " It is widened for sampling by the imprecise Dirichlet model." * sampling


def bound_tables(
    schema: Schema,
    dag: DAG,
    provenance: Provenance | None,
    coverage: float = COVERAGE,
    strength: Strength = 0.0,
) -> tuple[tuple[Table, ...], tuple[Table, ...]]:
    """The least and the greatest conditionals that the noisy measurements leave possible, together with `coverage`."""
    require_share(coverage, "the coverage", NetworkError)
    known = require_intervals(dag, provenance)
    for measurement in known.measurements:
        for name, size in measurement.noisy.sizes.items():
            if name in schema and schema[name].size != size:
                raise NetworkError(
                    f"no intervals: the measured table over {measurement.axes} has {size} levels of {name!r}; the "
                    f"schema has {schema[name].size}"
                )
    sets = [members for family in dag.families() for members in (family, family[:-1])]
    counts = bound_counts(known.measurements, sets, schema.names, coverage)
    lower, upper = [], []
    for name in dag.nodes:
        family = dag.family(name)
        cells, totals = counts[frozenset(family)], counts[frozenset(family[:-1])]
        spread = Table(
            family[:-1], read_strength(strength, name, [schema[parent].size for parent in family[:-1]])
        ).arrange(totals.axes)
        low, high = bound_conditionals(cells, totals, name, spread.values)
        if (
            (low > high).any()
            or low.sum(axis=-1).max() > 1 + SUM_TOLERANCE
            or high.sum(axis=-1).min() < 1 - SUM_TOLERANCE
        ):
            raise NetworkError(
                f"no intervals: the noisy tables contradict each other about {name!r}, as happens in at most "
                f"{100 * (1 - coverage):g} % of releases"
            )
        lower.append(Table((*totals.axes, name), low).arrange(family))
        upper.append(Table((*totals.axes, name), high).arrange(family))
    return tuple(lower), tuple(upper)


def read_strength(strength: Strength, name: str, shape: Sequence[int]) -> Array:
    """The S of every conditional of a node, finite and not negative."""
    if isinstance(strength, Mapping):
        if name not in strength:
            raise TableError(f"there is no S for {name!r}")
        given = np.asarray(strength[name], dtype=np.float64)
    else:
        given = np.asarray(strength, dtype=np.float64)
    require_cells(f"the conditionals of {name}", shape)
    if given.ndim and given.shape != tuple(shape):
        raise TableError(f"S for {name!r} has shape {given.shape}; its conditionals have {tuple(shape)}")
    if not np.isfinite(given).all() or (given < 0).any():
        raise TableError(f"S for {name!r} must be finite and not negative")
    return np.broadcast_to(given, tuple(shape))


def pose_levels(targets: Sequence[str], shape: tuple[int, ...]) -> Array:
    """The functions whose expectations are the probabilities of all levels; of two levels, the first one's will do."""
    cells = require_cells(f"the answer over {', '.join(targets)}", shape, MOST_ASKED)
    functions = np.eye(cells).reshape(cells, *shape)
    return functions[:1] if cells == 2 else functions


def shape_ends(low: Array, high: Array, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """The ends of the functions of `pose_levels`, shaped like the answer."""
    if len(low) < count_cells(shape):
        low, high = np.append(low, 1.0 - high), np.append(high, 1.0 - low)
    return low.reshape(shape), high.reshape(shape)


@dataclass(slots=True, eq=False)
class IntervalPolicy:
    """The intervals of one network: made when first asked for, then kept."""

    schema: Schema
    dag: DAG
    cpts: tuple[Table, ...]
    provenance: Provenance | None
    _lack: str | None = field(init=False, default=None)
    _guaranteed: tuple[tuple[Table, ...], tuple[Table, ...]] | None = field(init=False, default=None)
    _calibrated: Calibrated | None = field(init=False, default=None)

    def surround(self, answer: Answer, evidence: CodeSets, kind: Intervals | None, *, soft: bool) -> Answer:
        """The answer with intervals, or with a sentence on why it has none; refused if they were asked for by name.

        `soft` says that there was a likelihood besides the evidence.
        """
        targets, shape = answer.table.axes, answer.table.values.shape
        lack = self._find_reason(kind, count_cells(shape), soft)
        if lack is not None:
            return replace(answer, meaning=lack)
        ends, meaning = self._bound(kind, targets, pose_levels(targets, shape), evidence)
        if ends is None:
            return replace(answer, meaning=meaning)
        low, high = shape_ends(*ends, shape)
        return replace(answer, lower=low, upper=high, meaning=meaning)

    def bound_event(
        self, targets: Sequence[str], function: Array, evidence: CodeSets, kind: Intervals | None
    ) -> tuple[float | None, float | None, str]:
        """The ends for the probability of an event, the function that is 1 where it happens, and what they promise."""
        lack = self._find_reason(kind, 1, soft=False)
        if lack is not None:
            return None, None, lack
        ends, meaning = self._bound(kind, targets, function[None], evidence)
        return (None, None, meaning) if ends is None else (float(ends[0][0]), float(ends[1][0]), meaning)

    def _find_reason(self, kind: Intervals | None, levels: int, soft: bool) -> str | None:
        """Why an answer has no intervals, and None if it has; intervals that were asked for by name are refused."""
        if kind is Intervals.NONE or (kind is None and self.provenance is None):
            return ""
        if kind is not None:
            if soft:
                raise QueryError(f"no intervals: {SOFT}")
            require_intervals(self.dag, self.provenance)
            return None
        measured = sum(found.cells for found in self.provenance.measurements) if self.provenance else 0
        if self._lack is None:
            self._lack = explain_lack(self.dag, self.provenance)
        lack = self._lack
        if soft:
            lack = SOFT
        elif not lack and measured > MOST_CELLS:
            lack = f"{measured:,} measured cells take more than a second; {ASK}"
        elif not lack and levels > MOST_LEVELS:
            lack = f"more than {MOST_LEVELS} levels take more than a second; {ASK}"
        return f"No intervals: {lack}." if lack else None

    def _bound(
        self, kind: Intervals | None, targets: Sequence[str], functions: Array, evidence: CodeSets
    ) -> tuple[tuple[Array, Array] | None, str]:
        """The ends for E[f(targets) | evidence] of each function and what they promise; or none, and why."""
        try:
            if kind is Intervals.CALIBRATED:
                if self._calibrated is None:
                    known = require_intervals(self.dag, self.provenance)
                    self._calibrated = draw_calibrated(
                        self.schema, self.dag, self.cpts, known, COVERAGE, rng=SEED
                    )
                return self._calibrated.bound(targets, functions, evidence), self._calibrated.meaning
            if self._guaranteed is None:
                self._guaranteed = bound_tables(self.schema, self.dag, self.provenance)
            work = None if kind else MOST_WORK
            ends = bound_outer(self.dag, *self._guaranteed, targets, functions, evidence, max_work=work)
        except ImpossibleEvidence:  # within the intervals, though not at the estimate
            return None, IMPOSSIBLE
        except (TooLarge, NetworkError) as error:
            if kind is not None:
                raise
            return None, SLOW if isinstance(error, TooLarge) else f"{str(error)[:1].upper()}{str(error)[1:]}."
        return ends, state_guarantee(COVERAGE)
