"""Whoever answers written questions: a network with the intervals that were asked for, or a credal network."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum

from discreet.networks.answer import Answer, Explanation
from discreet.networks.credal.attachment import COVERAGE, MOST_WORK, SLOW, UNSURE, surround
from discreet.networks.credal.calibrated import Calibrated, calibrated
from discreet.networks.credal.evidence import pose_event
from discreet.networks.credal.guaranteed import from_noise
from discreet.networks.credal.interval import Decision
from discreet.networks.credal.network import CredalNetwork
from discreet.networks.network import Network
from discreet.networks.question import Question
from discreet.values.errors import ImpossibleEvidence, QueryError, TooLarge


class Kind(StrEnum):
    """Which intervals stand beside an answer."""

    GUARANTEED = "guaranteed"
    CALIBRATED = "calibrated"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Event:
    """The probability of an event, with its interval if it has one."""

    probability: float
    ends: tuple[float, float] | None = None
    meaning: str = ""
    """What the interval promises, or why there is none."""


@dataclass(slots=True, eq=False)
class Respondent:
    """Answers questions to one model; without a `kind`, private networks have guaranteed intervals if that is quick."""

    model: Network | CredalNetwork
    kind: Kind | None = None
    _bounds: CredalNetwork | Calibrated | str | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        if isinstance(self.model, CredalNetwork):
            if self.kind is not None:
                raise QueryError(
                    f"a credal network has intervals of its own; leave out that they be {self.kind.value}"
                )
        elif self.kind is Kind.GUARANTEED:
            self._bounds = from_noise(self.model, COVERAGE)
        elif self.kind is Kind.CALIBRATED:
            self._bounds = calibrated(self.model, COVERAGE, rng=0)

    def answer(self, question: Question) -> Answer | Explanation | Decision | Event:
        """The answer to one question."""
        if isinstance(self.model, CredalNetwork):
            return _ask_credal(self.model, question)
        if question.verb != "P":
            return self.model.most_probable(question.given, targets=question.targets or None)
        if question.event:
            return self._weigh(self.model, question)
        targets, given = question.targets, question.given
        if self.kind is None:
            return self.model.query(targets, given)
        point = self.model.query(targets, given, intervals=False)
        if isinstance(self._bounds, Calibrated):
            found = self._bounds.query(targets, given)
            return replace(point, lower=found.lower, upper=found.upper, meaning=found.meaning)
        if isinstance(self._bounds, CredalNetwork):
            sure = self._bounds.bound(targets, given)
            return replace(point, lower=sure.lower, upper=sure.upper, meaning=self._bounds.meaning)
        return point

    def _weigh(self, network: Network, question: Question) -> Event:
        event, given = question.event, question.given
        point = network.probability(event, given)
        if self.kind is Kind.NONE or (self.kind is None and network.provenance is None):
            return Event(point)
        if self._bounds is None:
            self._bounds = surround(network)
        if isinstance(self._bounds, str):
            return Event(point, None, self._bounds)
        if isinstance(self._bounds, Calibrated):
            names, function = pose_event(network.schema, event)
            low, high = self._bounds.bound(names, function[None], given)
            return Event(point, (float(low[0]), float(high[0])), self._bounds.meaning)
        try:
            found = self._bounds.probability(event, given, max_work=None if self.kind else MOST_WORK)
        except TooLarge:
            if self.kind:
                raise
            return Event(point, None, SLOW)
        except ImpossibleEvidence:
            return Event(point, None, UNSURE)
        return Event(point, (found.lower, found.upper), self._bounds.meaning)


def _ask_credal(credal: CredalNetwork, question: Question) -> Answer | Decision | Event:
    given = question.given
    if question.verb == "P" and question.event:
        found = credal.probability(question.event, given)
        middle = min(max(credal.centre.probability(question.event, given), found.lower), found.upper)
        return Event(middle, (found.lower, found.upper), credal.meaning)
    if question.verb == "P":
        return credal.query(question.targets, given)
    if question.verb == "MAP" and len(question.targets) == 1:
        return credal.decide(question.targets[0], given)
    raise QueryError(
        "a credal network answers P(…), and MAP(…) of one attribute; other explanations it has none"
    )
