"""Questions as people write them: P(lung | smoke=yes), MPE(dysp=yes), MAP(lung, bronc | dysp=yes)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from discreet.networks.answer import Answer, Decision, EventProbability, Explanation
from discreet.networks.credal_network import CredalNetwork
from discreet.networks.intervals import Intervals, require_intervals
from discreet.networks.network import Network
from discreet.values.errors import QueryError
from discreet.values.text import show

FORMS = "P(lung | smoke=yes), P(lung=yes | smoke=yes), P(lung, bronc), MPE(dysp=yes) or MAP(lung | dysp=yes)"

_TOKEN = re.compile(
    r"""\s*(?:(?P<quoted>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?P<mark>[=,|()])|(?P<word>[^\s=,|()"'][^=,|()]*))"""
)


class Mark(Enum):
    """A bracket, bar, comma or equal sign that stands outside quotes."""

    OPEN = "("
    CLOSE = ")"
    BAR = "|"
    COMMA = ","
    EQUALS = "="


Token = str | Mark


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked: a distribution over `targets`, the probability of an `event`, or the most probable levels."""

    verb: str
    targets: tuple[str, ...]
    event: dict[str, str]
    given: dict[str, str]

    @classmethod
    def parse(cls, text: str) -> Question:
        """Read a question; names and levels with commas, bars, brackets or equal signs stand in quotes."""
        match list(_tokens(text)):
            case [str(name), Mark.OPEN, *inside, Mark.CLOSE] if name.upper() in ("P", "MPE", "MAP"):
                verb = name.upper()
            case _:
                raise QueryError(f"cannot read the question {show(text)}; write for example {FORMS}")
        if inside.count(Mark.BAR) > 1 or Mark.OPEN in inside or Mark.CLOSE in inside:
            raise QueryError(
                f"cannot read the question {show(text)}; one bar and one pair of brackets are allowed"
            )
        bar = inside.index(Mark.BAR) if Mark.BAR in inside else len(inside)
        before, after = _terms(text, inside[:bar]), _terms(text, inside[bar + 1 :])
        if verb == "MPE":
            if bar < len(inside) and before:
                raise QueryError(
                    f"cannot read the question {show(text)}; MPE takes evidence only, MAP takes targets"
                )
            return cls(verb, (), {}, _evidence(text, before or after))
        event = {name: level for name, level in before if level is not None}
        targets = tuple(name for name, level in before if level is None)
        if not before or len({name for name, _ in before}) < len(before):
            raise QueryError(f"cannot read the question {show(text)}; name at least one attribute, each once")
        if event and (targets or verb == "MAP"):
            what = (
                "MAP finds the levels: give only names before the bar"
                if verb == "MAP"
                else "give levels to all targets or to none"
            )
            raise QueryError(f"cannot read the question {show(text)}; {what}")
        return cls(verb, targets, event, _evidence(text, after))

    def ask(
        self, model: Network | CredalNetwork, intervals: Intervals | str | None = None
    ) -> Answer | EventProbability | Explanation | Decision:
        """The model's answer, with the intervals that were asked for; a credal network has intervals of its own."""
        kind = Intervals.read(intervals)
        check_intervals(model, kind)
        if isinstance(model, CredalNetwork):
            return self._ask_credal(model)
        if self.verb != "P":
            return model.most_probable(self.given, targets=self.targets or None)
        if self.event:
            return model.query_event(self.event, self.given, intervals=kind)
        return model.query(self.targets, self.given, intervals=kind)

    def _ask_credal(self, credal: CredalNetwork) -> Answer | EventProbability | Decision:
        if self.verb == "P" and self.event:
            found = credal.probability(self.event, self.given)
            middle = min(max(credal.centre.probability(self.event, self.given), found.lower), found.upper)
            return EventProbability(middle, found.lower, found.upper, credal.meaning)
        if self.verb == "P":
            return credal.query(self.targets, self.given)
        if self.verb == "MAP" and len(self.targets) == 1:
            return credal.decide(self.targets[0], self.given)
        raise QueryError("a credal network answers P(…) and MAP(…) of one attribute only")


def check_intervals(model: Network | CredalNetwork, kind: Intervals | None) -> None:
    """Refuse intervals that a model cannot have, before anything is asked of it."""
    if isinstance(model, CredalNetwork):
        if kind is not None:
            raise QueryError(f"a credal network has intervals of its own; do not ask for {kind.value}")
    elif kind in (Intervals.GUARANTEED, Intervals.CALIBRATED):
        require_intervals(model.dag, model.provenance)


def _tokens(text: str) -> Iterator[Token]:
    at = 0
    while text[at:].strip():
        found = _TOKEN.match(text, at)
        if found is None:
            raise QueryError(
                f"cannot read the question {show(text)} at character {at + 1}: a quote is not closed"
            )
        at = found.end()
        if found["quoted"]:
            yield re.sub(r"\\(.)", r"\1", found["quoted"][1:-1])
        else:
            yield Mark(found["mark"]) if found["mark"] else found["word"].strip()


def _terms(text: str, tokens: list[Token]) -> list[tuple[str, str | None]]:
    """The comma-separated names, each with the level after its equal sign if there is one."""
    terms: list[tuple[str, str | None]] = []
    part: list[Token] = []
    for token in [*tokens, Mark.COMMA] if tokens else []:
        if token != Mark.COMMA:
            part.append(token)
            continue
        match part:
            case [str(name)]:
                terms.append((name, None))
            case [str(name), Mark.EQUALS, str(level)]:
                terms.append((name, level))
            case _:
                written = " ".join(piece.value if isinstance(piece, Mark) else piece for piece in part)
                raise QueryError(
                    f"cannot read {show(written)} in the question {show(text)}; write name or name=level"
                )
        part = []
    return terms


def _evidence(text: str, terms: list[tuple[str, str | None]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, level in terms:
        if level is None:
            raise QueryError(f"the evidence {show(name)} in {show(text)} has no level; write {name}=level")
        if name in found:
            raise QueryError(f"the evidence in {show(text)} gives {show(name)} twice")
        found[name] = level
    return found


def read_levels(terms: list[str]) -> dict[str, str]:
    """Evidence from texts such as 'smoke=yes' or '"chest pain"=no'; they may repeat a level, not contradict it."""
    found: dict[str, str] = {}
    for text in terms:
        for name, level in _evidence(text, _terms(text, list(_tokens(text)))).items():
            if found.setdefault(name, level) != level:
                raise QueryError(
                    f"the evidence gives {show(name)} as {show(found[name])} and as {show(level)}; one level is allowed"
                )
    return found
