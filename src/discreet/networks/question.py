"""Questions as people write them: P(lung | smoke=yes), P(age>=70 | sex=F), MPE(dysp=yes), MAP(lung | dysp=yes)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

from discreet.networks.answer import Answer, Decision, EventProbability, Explanation
from discreet.networks.conditions import Condition, Conditions, find_level, list_levels, split_name
from discreet.networks.credal_network import CredalNetwork
from discreet.networks.evidence import require_attribute
from discreet.networks.intervals import Intervals, Whose
from discreet.networks.network import Network
from discreet.values.errors import QueryError
from discreet.values.schema import Schema
from discreet.values.text import show

FORMS = (
    "P(lung | smoke=yes), P(lung=yes | smoke!=no), P(age>=70 | sex in {F, X}), P(lung | age between 60 and 70), "
    "MPE(dysp=yes) or MAP(lung | dysp=yes)"
)

LONGEST = 4000
"""Characters of a question."""

_TOKEN = re.compile(
    r"""\s*(?:
    (?P<quoted>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    |(?P<among>\{[^{}]*\})
    |(?P<mark>!=|<=|>=|[=<>,|()])
    |(?P<word>(?!!=)[^\s=<>,|(){}"'](?:(?!!=)[^=<>,|(){}])*)
    )""",
    re.VERBOSE,
)
_BIN = re.compile(r"\s*(?P<bin>[\[(][^\[\](){}|=,]*,[^\[\](){}|=,]*[\])])")


class Quoted(str):
    """A text that stood in quotes, in which no word is a keyword."""

    __slots__ = ()


class Mark(Enum):
    """A bracket, bar, comma or equal sign that stands outside quotes."""

    OPEN = "("
    CLOSE = ")"
    BAR = "|"
    COMMA = ","
    EQUALS = "="
    DIFFERS = "!="
    LEAST = ">="
    MOST = "<="
    ABOVE = ">"
    BELOW = "<"


Token = str | Mark | tuple[str, ...]
_COMPARING = (Mark.EQUALS, Mark.DIFFERS, Mark.LEAST, Mark.MOST, Mark.ABOVE, Mark.BELOW)


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked: a distribution over `targets`, the probability of an `event`, or the most probable levels."""

    verb: str
    targets: tuple[str, ...]
    event: dict[str, str]
    given: dict[str, str]
    excluded: dict[str, list[str]] = field(default_factory=dict)
    """The levels that an attribute does not have, written age!=old."""
    outcome: Conditions = field(default_factory=dict)
    """What else is asked of the event, written age>=70 or ward in {eye, ear}."""
    conditions: Conditions = field(default_factory=dict)
    """What else the evidence says, written in the same way."""

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
                f"cannot read the question {show(text)}; one bar and one pair of brackets are allowed: a name or level "
                'that has such marks itself stands in quotes, as in P("stay (days)" | ward)'
            )
        bar = inside.index(Mark.BAR) if Mark.BAR in inside else len(inside)
        before, after = _terms(text, inside[:bar]), _terms(text, inside[bar + 1 :])
        if verb == "MPE":
            if bar < len(inside) and before:
                raise QueryError(
                    f"cannot read the question {show(text)}; MPE takes evidence only, MAP takes targets"
                )
            given, excluded, conditions = _split_evidence(text, before or after)
            return cls(verb, (), {}, given, excluded, {}, conditions)
        event = {name: said.operands[0] for name, said in before if said is not None and said.sign == "="}
        outcome: Conditions = {}
        for name, said in before:
            if said is not None and said.sign != "=":
                outcome[name] = (*outcome.get(name, ()), said)
        targets = tuple(name for name, said in before if said is None)
        written = [*targets, *(name for name, said in before if said is not None and said.sign == "=")]
        if not before or len({*written, *outcome}) < len(written) + len(outcome):
            raise QueryError(f"cannot read the question {show(text)}; name at least one attribute, each once")
        if (event or outcome) and (targets or verb == "MAP"):
            what = (
                "MAP finds the levels: give only names before the bar"
                if verb == "MAP"
                else "give levels to all targets or to none"
            )
            raise QueryError(f"cannot read the question {show(text)}; {what}")
        given, excluded, conditions = _split_evidence(text, after)
        return cls(verb, targets, event, given, excluded, outcome, conditions)

    @property
    def has_event(self) -> bool:
        """Whether the probability of an event is asked, and not a distribution."""
        return bool(self.event or self.outcome)

    def ask(
        self,
        model: Network | CredalNetwork,
        intervals: Intervals | str | None = None,
        of: Whose | str | None = None,
    ) -> Answer | EventProbability | Explanation | Decision:
        """The model's answer, with the intervals that were asked for; a credal network has intervals of its own."""
        kind, subject = Intervals.read(intervals), Whose.read(of)
        check_intervals(model, kind, subject)
        given = self.list_evidence(model.schema)
        if isinstance(model, CredalNetwork):
            return self._ask_credal(model, given)
        if self.verb != "P":
            return model.most_probable(given, targets=self.targets or None)
        if self.has_event:
            return model.query_event(self.list_event(model.schema), given, intervals=kind, of=subject)
        return model.query(self.targets, given, intervals=kind, of=subject)

    def list_evidence(self, schema: Schema) -> dict[str, str | list[str]]:
        """For each attribute in the evidence the level that it has, or those that are left to it."""
        for name in {**self.excluded, **self.conditions}:
            if name in self.given:
                raise QueryError(
                    f"the evidence gives {show(name)} both with = and with another sign; one of them is enough"
                )
        found: dict[str, str | list[str]] = {
            name: _settle(schema, name, level) for name, level in self.given.items()
        }
        for name, excluded in self.excluded.items():
            said = (Condition("not in", tuple(excluded)), *self.conditions.get(name, ()))
            found[name] = list_levels(schema, name, said)
        for name, said in self.conditions.items():
            if name not in self.excluded:
                found[name] = list_levels(schema, name, said)
        return found

    def list_event(self, schema: Schema) -> dict[str, str | list[str]]:
        """For each attribute of the event the level, or the levels, that it is about."""
        single = {name: _settle(schema, name, level) for name, level in self.event.items()}
        return {**single, **{name: list_levels(schema, name, said) for name, said in self.outcome.items()}}

    def _ask_credal(
        self, credal: CredalNetwork, given: dict[str, str | list[str]]
    ) -> Answer | EventProbability | Decision:
        if self.verb == "P" and self.has_event:
            event = self.list_event(credal.schema)
            found = credal.probability(event, given)
            middle = min(max(credal.centre.probability(event, given), found.lower), found.upper)
            return EventProbability(middle, found.lower, found.upper, credal.meaning)
        if self.verb == "P":
            return credal.query(self.targets, given)
        if self.verb == "MAP" and len(self.targets) == 1:
            return credal.decide(self.targets[0], given)
        raise QueryError("a credal network answers P(…) and MAP(…) of one attribute only")


def check_intervals(model: Network | CredalNetwork, kind: Intervals | None, of: Whose | None = None) -> None:
    """Refuse intervals that a model cannot have, before anything is asked of it."""
    if isinstance(model, CredalNetwork):
        if kind is not None or of is not None:
            asked = kind.value if kind is not None else f"others of the {of}"
            raise QueryError(f"a credal network has intervals of its own; do not ask for {asked}")
    elif kind in (Intervals.GUARANTEED, Intervals.CALIBRATED):
        model.require_intervals(of)


def _tokens(text: str) -> Iterator[Token]:
    if len(text) > LONGEST:
        raise QueryError(f"a question has at most {LONGEST:,} characters, not {len(text):,}")
    at, end = 0, len(text.rstrip())
    before: Token | None = None
    while at < end:
        bounds = _BIN.match(text, at) if _expects_level(before) else None
        found = _TOKEN.match(text, at) if bounds is None else None
        if bounds is not None:
            at, before = bounds.end(), bounds["bin"]
        elif found is None:
            raise QueryError(
                f"cannot read the question {show(text)} at character {at + 1}: a quote is not closed"
            )
        elif found["quoted"]:
            at, before = found.end(), Quoted(re.sub(r"\\(.)", r"\1", found["quoted"][1:-1]))
        elif found["among"]:
            inside = [piece.strip().strip("\"'") for piece in found["among"][1:-1].split(",")]
            at, before = found.end(), tuple(piece for piece in inside if piece)
        else:
            at = found.end()
            before = Mark(found["mark"]) if found["mark"] else found["word"].strip()
        yield before


def _expects_level(before: Token | None) -> bool:
    """Whether an opening bracket behind this token begins a bin, such as (70, 75]."""
    if isinstance(before, str) and not isinstance(before, Quoted):
        return split_name(before)[1] is not None
    return before in _COMPARING


Term = tuple[str, Condition | None]
"""A name, and what is said of it if something is."""


def _terms(text: str, tokens: list[Token]) -> list[Term]:
    """The comma-separated names, each with what is said of it."""
    terms: list[Term] = []
    part: list[Token] = []
    for token in [*tokens, Mark.COMMA] if tokens else []:
        if token != Mark.COMMA:
            part.append(token)
            continue
        found = _read_term(part)
        if found is None:
            written = " ".join(
                piece.value if isinstance(piece, Mark) else piece if isinstance(piece, str) else "{…}"
                for piece in part
            )
            raise QueryError(
                f"cannot read {show(written)} in the question {show(text)}; write name or name=level"
            )
        terms.append(found)
        part = []
    return terms


def _read_term(part: list[Token]) -> Term | None:
    """One term, or None if it cannot be read."""
    match part:
        case [Quoted() as name]:
            return str(name), None
        case [str(word)]:
            name, sign, operands = split_name(word)
            if sign == "between" and operands:
                return name, Condition(sign, operands)
            return (word, None) if sign is None else None
        case [str(name), Mark() as sign, str(level)] if sign in _COMPARING:
            return str(name), Condition(sign.value, (str(level),))
        case [str(name), Mark.EQUALS, Mark.BELOW | Mark.ABOVE | Mark.LEAST | Mark.MOST as mark, str(level)]:
            return str(name), Condition("=", (f"{mark.value}{level}",))  # a level that is called <5
        case [str(word), str(level)] if not isinstance(word, Quoted):
            name, sign, _ = split_name(word)
            return (name, Condition(sign, (str(level),))) if sign in ("in", "not in") else None
        case [str(word), tuple(levels)] if not isinstance(word, Quoted):
            name, sign, _ = split_name(word)
            return (name, Condition(sign, levels)) if sign in ("in", "not in") and levels else None
        case [str(word), str(low), str(joint), str(high)] if str(joint).lower() == "and":
            name, sign, _ = split_name(word)
            return (name, Condition(sign, (str(low), str(high)))) if sign == "between" else None
    return None


def _split_evidence(text: str, terms: list[Term]) -> tuple[dict[str, str], dict[str, list[str]], Conditions]:
    """What the evidence says with =, with !=, and otherwise."""
    excluded: dict[str, list[str]] = {}
    conditions: Conditions = {}
    plain: list[Term] = []
    for name, said in terms:
        if said is None or said.sign == "=":
            plain.append((name, said))
        elif said.sign == "!=":
            excluded.setdefault(name, []).append(said.operands[0])
        else:
            conditions[name] = (*conditions.get(name, ()), said)
    return _evidence(text, plain), excluded, conditions


def _evidence(text: str, terms: list[Term]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, said in terms:
        if said is None:
            raise QueryError(f"the evidence {show(name)} in {show(text)} has no level; write {name}=level")
        if said.sign != "=":
            raise QueryError(f"{show(name)} in {show(text)} is given with {said.sign}; write {name}=level")
        if name in found:
            raise QueryError(f"the evidence in {show(text)} gives {show(name)} twice")
        found[name] = said.operands[0]
    return found


def _settle(schema: Schema, name: str, level: str) -> str:
    """The level that is meant, blanks aside; what there is not is left to be refused with the rest."""
    attribute = require_attribute(schema, name)
    return find_level(attribute, level)


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
