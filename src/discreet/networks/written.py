"""Figures as people write them: P(a=x | b=y) - P(a=x | b=z), odds(…) / odds(…), mean(age | b=y), count(a=x, b=y)."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from discreet.networks import figures
from discreet.networks.answer import Decision, Figure
from discreet.networks.credal_network import CredalNetwork
from discreet.networks.figures import Kind, Measure, Subject
from discreet.networks.intervals import Intervals, Whose
from discreet.networks.network import Network
from discreet.networks.question import Question
from discreet.values.errors import DiscreetError, QueryError
from discreet.values.text import show

VERBS = ("mean", "median", "quantile", "count", "surely")
FORMS = (
    "P(lung=yes | smoke=yes) - P(lung=yes | smoke=no), P(…) / P(…), odds(…) / odds(…), mean(age | smoke=yes), "
    "median(age), quantile(age, 0.9), count(lung=yes, smoke=yes) or surely(bronc | smoke=yes)"
)
_VERB = re.compile(r"\s*([A-Za-z]+)\s*\(")


@dataclass(frozen=True, slots=True)
class WrittenFigure:
    """What is asked: a comparison of two probabilities, or one figure of one attribute or event."""

    verb: str
    first: Question
    second: Question | None = None
    share: float | None = None

    def ask(
        self, model: Network | CredalNetwork, intervals: Kind = None, of: Subject = None
    ) -> Figure | Decision:
        """The model's figure, with the intervals that were asked for."""
        if isinstance(model, CredalNetwork):
            raise QueryError("a credal network answers P(…) and MAP(…) of one attribute only")
        given = self.first.list_evidence(model.schema)
        options: dict[str, Any] = {"intervals": intervals, "of": of}
        if self.second is not None:
            measure: Measure = self.verb  # type: ignore[assignment]
            other = self.second.list_evidence(model.schema)
            return figures.compare(
                model,
                self.first.list_event(model.schema),
                given,
                other,
                measure,
                other_event=self.second.list_event(model.schema),
                **options,
            )
        if self.verb == "count":
            return figures.count(model, self.first.list_event(model.schema), **options)
        name = self.first.targets[0]
        if self.verb == "surely":
            if Intervals.read(intervals) is Intervals.CALIBRATED:
                raise QueryError(f"surely(…) is told by guaranteed intervals, not by {show(str(intervals))}")
            return figures.decide(model, name, given, of=of)
        if self.verb == "mean":
            return figures.mean(model, name, given, **options)
        return figures.quantile(model, name, 0.5 if self.share is None else self.share, given, **options)


def ask_for_some(
    question: Question | WrittenFigure,
    model: Network | CredalNetwork,
    intervals: Intervals | None,
    of: Whose | None,
) -> Any:
    """The answer with the intervals that were asked for; where no calibrated ones hold, with guaranteed ones.

    The sentence beside them says so.
    """
    try:
        return question.ask(model, intervals, of)
    except DiscreetError as refused:  # what is wrong with the question itself is said by the second attempt
        if intervals is not Intervals.CALIBRATED:
            raise
        answer: Any = question.ask(model, Intervals.GUARANTEED, of)
        reason = str(refused).removeprefix("no calibrated intervals: ").partition(";")[0]
        return replace(answer, meaning=f"No calibrated interval: {reason}. {answer.meaning}")


def parse(text: str) -> Question | WrittenFigure:
    """Read a question or a figure; anything else is refused with examples of both."""
    cut = _find_operator(text)
    if cut is not None:
        return _parse_comparison(text, text[:cut], text[cut], text[cut + 1 :])
    found = _VERB.match(text)
    verb = found[1].lower() if found else ""
    if found is None or verb not in VERBS:
        return Question.parse(text)
    inner = Question.parse("P(" + text[found.end() :])
    if verb == "count":
        if not inner.has_event or inner.given or inner.excluded or inner.conditions:
            raise QueryError(f"cannot read {show(text)}; write count(lung=yes, smoke=yes)")
        return WrittenFigure(verb, inner)
    share = None
    targets = inner.targets
    if verb == "quantile" and len(targets) == 2:
        try:
            share = float(targets[1])
        except ValueError:
            raise QueryError(
                f"{show(targets[1])} in {show(text)} is no share; write quantile(age, 0.9)"
            ) from None
        targets = targets[:1]
    if len(targets) != 1 or inner.has_event or (verb == "quantile" and share is None):
        raise QueryError(f"cannot read {show(text)}; write for example {FORMS}")
    return WrittenFigure(verb, replace(inner, targets=targets), share=share)


def _parse_comparison(text: str, first: str, operator: str, second: str) -> WrittenFigure:
    sides = []
    verbs = set()
    for side in (first, second):
        found = _VERB.match(side)
        if found is None or found[1].lower() not in ("p", "odds"):
            raise QueryError(f"cannot read {show(text)}; write for example {FORMS}")
        verbs.add(found[1].lower())
        question = Question.parse("P(" + side[found.end() :])
        if not question.has_event:
            raise QueryError(
                f"cannot compare distributions in {show(text)}; give levels, such as P(lung=yes | …)"
            )
        sides.append(question)
    if len(verbs) > 1 or (operator == "-" and verbs == {"odds"}):
        raise QueryError(f"cannot read {show(text)}; write P(…) - P(…), P(…) / P(…) or odds(…) / odds(…)")
    measure = "difference" if operator == "-" else "odds ratio" if verbs == {"odds"} else "ratio"
    return WrittenFigure(measure, sides[0], sides[1])


def _find_operator(text: str) -> int | None:
    """Where a minus or a slash stands between two brackets, outside of quotes."""
    depth, quote, closed = 0, "", False
    skip = False
    for at, sign in enumerate(text):
        if skip:
            skip = False
        elif quote:
            skip = sign == "\\"
            quote = "" if sign == quote else quote
        elif sign in "\"'" and depth:
            quote = sign
        elif sign in "()":
            depth += 1 if sign == "(" else -1
            closed = closed or depth == 0
        elif depth == 0 and closed and sign in "-/":
            return at
    return None
