"""Intervals beside an answer: which ones a network can have, what they are about, why not, and how that is said.

There is one policy for everyone who asks: `Network.query` and written questions, `credal.from_noise` and
`credal.calibrated`, and the report. It works on the parts of a network, so a network can own one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TypeVar

from discreet.compute.bounds.outer import bound_outer
from discreet.compute.region.program import Contradiction
from discreet.networks.answer import Answer
from discreet.networks.evidence import CodeSets
from discreet.networks.intervals.calibrated import INSTEAD, Calibrated, draw_calibrated
from discreet.networks.intervals.ends import (
    COVERAGE,
    bound_tables,
    explain_lack,
    pose_levels,
    require_intervals,
    shape_ends,
    state_guarantee,
)
from discreet.networks.intervals.resampled import Resampled, draw_releases
from discreet.networks.intervals.table import TableIntervals
from discreet.networks.intervals.words import (
    ASK,
    IMPOSSIBLE,
    OUTWEIGHED,
    REMADE,
    SLOW,
    SOFT,
    VAGUE,
    find_stray,
    state_cover,
    tell_cover,
)
from discreet.networks.intervals.world import widen
from discreet.networks.provenance import Provenance
from discreet.values.errors import ImpossibleEvidence, NetworkError, QueryError, TooLarge
from discreet.values.graph import DAG
from discreet.values.schema import Schema
from discreet.values.table import Array, Table, count_cells
from discreet.values.text import show

Word = TypeVar("Word", bound=StrEnum)

MOST_CELLS = 2**20
"""The most measured cells from which intervals are made unasked."""

MOST_LEVELS = 64
"""The most levels, or combinations of levels, that get an interval unasked."""

MOST_WORK = 2**20
"""The most cells that may be worked through for intervals that nobody asked for: some tenths of a second."""

SEED = 0
"""The draws behind calibrated intervals are always the same, so that the same question has the same answer."""

VACUOUS = 1.0 - 1e-6
"""From this width on an interval says nothing."""


class Intervals(StrEnum):
    """Which intervals stand beside an answer; by default guaranteed ones where that is quick."""

    GUARANTEED = "guaranteed"
    """They hold for all questions at once, as surely as they say."""
    CALIBRATED = "calibrated"
    """As many of them hold as they say, on average over questions and releases; several times narrower."""
    NONE = "none"

    @classmethod
    def read(cls, wanted: Intervals | str | None) -> Intervals | None:
        """The kind that a text names; None is the default."""
        return _read_word(cls, "intervals", wanted)


class Whose(StrEnum):
    """Whose answer lies in an interval; by default the network's where the graph was given, else the table's."""

    TABLE = "table"
    """The share of the table's rows: what the graph leaves out is covered too."""
    NETWORK = "network"
    """What the network would say without the noise: narrow, and it assumes the graph."""
    WORLD = "world"
    """The probability in the population that the rows are a random sample of."""

    @classmethod
    def read(cls, wanted: Whose | str | None) -> Whose | None:
        """What a text names; None is the default."""
        return _read_word(cls, "of", wanted)


def _read_word(words: type[Word], option: str, wanted: Word | str | None) -> Word | None:
    """The member of a list of words that a caller wrote, or None if nothing was."""
    try:
        return None if wanted is None else words(wanted)
    except ValueError:
        *first, last = words
        raise QueryError(f"{option} must be {', '.join(first)} or {last}, not {show(wanted)}") from None


@dataclass(slots=True, eq=False)
class IntervalPolicy:
    """The intervals of one network: made when first asked for, then kept."""

    schema: Schema
    dag: DAG
    cpts: tuple[Table, ...]
    provenance: Provenance | None
    _lack: dict[Whose, str] = field(init=False, default_factory=dict)
    _guaranteed: tuple[tuple[Table, ...], tuple[Table, ...]] | None = field(init=False, default=None)
    _tables: dict[float, TableIntervals] = field(init=False, default_factory=dict)
    _calibrated: Calibrated | None = field(init=False, default=None)
    _resampled: Resampled | None = field(init=False, default=None)

    @property
    def default(self) -> Whose:
        """What intervals are about if nobody says: the network on a graph that was given, else the table."""
        found = self.provenance
        searched = found is not None and ("structure" in found.details or "batches" in found.details)
        return Whose.TABLE if searched else Whose.NETWORK

    def surround(
        self,
        answer: Answer,
        evidence: CodeSets,
        kind: Intervals | None,
        of: Whose | None = None,
        *,
        soft: bool,
    ) -> Answer:
        """The answer with intervals, or with a sentence on why it has none; refused if they were asked for by name.

        `soft` says that there was a likelihood besides the evidence.
        """
        targets, shape = answer.table.axes, answer.table.values.shape
        lack = self._find_reason(kind, of or self.default, count_cells(shape), soft)
        if lack is not None:
            return replace(answer, meaning=lack)
        ends, meaning = self.bound(targets, pose_levels(targets, shape), evidence, kind, of)
        if ends is None:
            return replace(answer, meaning=meaning)
        low, high = shape_ends(*ends, shape)
        meaning += find_stray(answer.table.values, low, high)
        return replace(answer, lower=low, upper=high, meaning=meaning)

    def bound_event(
        self,
        point: float,
        targets: Sequence[str],
        function: Array,
        evidence: CodeSets,
        kind: Intervals | None,
        of: Whose | None = None,
    ) -> tuple[float | None, float | None, str]:
        """The ends for the probability of an event, the function that is 1 where it happens, and what they promise.

        `point` is the network's own answer.
        """
        lack = self._find_reason(kind, of or self.default, 1, soft=False)
        if lack is not None:
            return None, None, lack
        ends, meaning = self.bound(targets, function[None], evidence, kind, of)
        if ends is None:
            return None, None, meaning
        return float(ends[0][0]), float(ends[1][0]), meaning + find_stray(point, *ends)

    def explain_lack(self, of: Whose) -> str:
        """Why there can be no intervals about this; empty if there can be."""
        if of not in self._lack:
            found = self.provenance
            if of is Whose.WORLD and found is not None and (found.unit.at_most > 1 or found.unit.average):
                self._lack[of] = (
                    "those of the world are worked out for rows that are drawn one by one; here one person, or one "
                    'weighted row, may count more than once; ask for those of the table (of="table", --of table)'
                )
                return self._lack[of]
            if of is Whose.NETWORK or found is None:
                self._lack[of] = explain_lack(self.dag, found)
            else:
                counted = any(table.rate == 1 for table in found.measurements)
                self._lack[of] = "" if counted else "no table over all rows was measured"
        return self._lack[of]

    def bound(
        self,
        targets: Sequence[str],
        functions: Array,
        evidence: CodeSets,
        kind: Intervals | None,
        of: Whose | None = None,
    ) -> tuple[tuple[Array, Array] | None, str]:
        """The ends for E[f(targets) | evidence] of each function and what they promise; or none, and why."""
        target = of or self.default
        try:
            if target is not Whose.NETWORK:
                targets, functions, evidence = self.table().lift(targets, functions, evidence)
            if kind is Intervals.CALIBRATED:
                return self._calibrate(target, targets, functions, evidence)
            if target is Whose.NETWORK:
                return self._bound_network(kind, targets, functions, evidence)
            return self._bound_table(kind, target, targets, functions, evidence)
        except ImpossibleEvidence:  # within the intervals, though not at the estimate
            return None, IMPOSSIBLE
        except Contradiction as error:
            text = f"{error}, as happens in at most {100 * (1 - COVERAGE):g} % of releases"
            if kind is not None:
                raise NetworkError(f"no intervals: {text}") from None
            return None, f"No intervals: {text}."
        except (TooLarge, NetworkError) as error:
            if kind is not None:
                raise
            return None, SLOW if isinstance(error, TooLarge) else f"{str(error)[:1].upper()}{str(error)[1:]}."

    def table(self, coverage: float = COVERAGE) -> TableIntervals:
        """The intervals of the table's own answers."""
        if self.provenance is None:
            raise NetworkError(f"no intervals: {self.explain_lack(Whose.TABLE)}")
        if coverage not in self._tables:
            self._tables[coverage] = TableIntervals(self.schema, self.provenance, coverage)
        return self._tables[coverage]

    def state(self, of: Whose) -> str:
        """What guaranteed intervals about the table or the world cover, in a sentence."""
        return state_cover(COVERAGE, self.provenance, world=of is Whose.WORLD)

    def tell(self, of: Whose, names: Sequence[str]) -> str:
        """What calibrated intervals about the table or the world hold, in a sentence."""
        said = tell_cover(COVERAGE, self.provenance, world=of is Whose.WORLD)
        reason = self.table().explain(names)
        return f"{said} {reason} {REMADE}" if reason else said

    def estimate_count(self, event: CodeSets) -> tuple[float, float]:
        """The ends of a calibrated interval for a number of rows."""
        return self.table().estimate_count(event, lambda: self._resample(list(event)))

    def _resample(self, names: Sequence[str]) -> Resampled:
        """Releases made again from this one, once; refused where the network was not fitted by a search."""
        if self._resampled is None:
            known = self.provenance
            if known is None or not known.details.get("batches") or known.details.get("auxiliary"):
                reason = self.table().explain(names)
                raise NetworkError(
                    f"no calibrated intervals: {reason[:1].lower()}{reason[1:-1]}, so how far the network's guess is "
                    f"off cannot be told; {INSTEAD}"
                )
            self._resampled = draw_releases(self.schema, known, rng=SEED)
        return self._resampled

    def _find_reason(self, kind: Intervals | None, of: Whose, levels: int, soft: bool) -> str | None:
        """Why an answer has no intervals, and None if it has; intervals that were asked for by name are refused."""
        if kind is Intervals.NONE or (kind is None and self.provenance is None):
            return ""
        lack = self.explain_lack(of)
        if kind is not None:
            if soft:
                raise QueryError(f"no intervals: {SOFT}")
            if lack:
                raise NetworkError(f"no intervals: {lack}")
            return None
        measured = sum(found.cells for found in self.provenance.measurements) if self.provenance else 0
        if soft:
            lack = SOFT
        elif not lack and of is Whose.NETWORK and measured > MOST_CELLS:
            lack = f"{measured:,} measured cells take more than a second; {ASK}"
        elif not lack and of is not Whose.TABLE and levels > MOST_LEVELS:
            lack = f"more than {MOST_LEVELS} levels take more than a second; {ASK}"
        return f"No intervals: {lack}." if lack else None

    def _bound_network(
        self, kind: Intervals | None, targets: Sequence[str], functions: Array, evidence: CodeSets
    ) -> tuple[tuple[Array, Array], str]:
        if self._guaranteed is None:
            self._guaranteed = bound_tables(self.schema, self.dag, self.provenance)
        work = None if kind else MOST_WORK
        ends = bound_outer(self.dag, *self._guaranteed, targets, functions, evidence, max_work=work)
        return ends, state_guarantee(COVERAGE) + self._find_misfit(targets, functions, evidence, ends)

    def _find_misfit(
        self, targets: Sequence[str], functions: Array, evidence: CodeSets, ends: tuple[Array, Array]
    ) -> str:
        """A sentence where the table's own answer, if it was measured, is certainly another than the graph's."""
        table = self.table()
        if not table.answers([*targets, *evidence]):
            return ""
        try:
            low, high = table.bound(targets, functions, evidence, quick=True)
        except (ImpossibleEvidence, Contradiction):
            return ""
        apart = (low > ends[1] + 1e-9) | (high < ends[0] - 1e-9)
        if not apart.any():
            return ""
        k = int(apart.argmax())
        return (
            f" But the table's own answer lies in [{low[k]:.4f}, {high[k]:.4f}], outside of "
            f"[{ends[0][k]:.4f}, {ends[1][k]:.4f}]: the graph leaves something out here; "
            'ask for the interval of the table (of="table", --of table).'
        )

    def _bound_table(
        self,
        kind: Intervals | None,
        of: Whose,
        targets: Sequence[str],
        functions: Array,
        evidence: CodeSets,
    ) -> tuple[tuple[Array, Array], str]:
        assert self.provenance is not None
        if of is Whose.WORLD:
            ends = widen(self.table((1.0 + COVERAGE) / 2.0), targets, functions, evidence, COVERAGE)
        else:  # what nobody asked for must not take long
            quick = kind is None and len(functions) > MOST_LEVELS
            ends = self.table().bound(targets, functions, evidence, quick=quick)
        reason = self.table().explain([*targets, *evidence])
        flat = functions.reshape(len(functions), -1)
        if (ends[1] - ends[0] >= VACUOUS * (flat.max(axis=1) - flat.min(axis=1))).all():
            return ends, f"{VAGUE} {reason or OUTWEIGHED}"
        return ends, f"{self.state(of)} {reason}".rstrip()

    def _calibrate(
        self, of: Whose, targets: Sequence[str], functions: Array, evidence: CodeSets
    ) -> tuple[tuple[Array, Array], str]:
        if of is not Whose.NETWORK:
            asked = [*targets, *evidence]
            ends = self.table().estimate(
                targets, functions, evidence, lambda: self._resample(asked), world=of is Whose.WORLD
            )
            return ends, self.tell(of, asked)
        if self._calibrated is None:
            known = require_intervals(self.dag, self.provenance)
            self._calibrated = draw_calibrated(self.schema, self.dag, self.cpts, known, COVERAGE, rng=SEED)
        return self._calibrated.bound(targets, functions, evidence), self._calibrated.meaning
