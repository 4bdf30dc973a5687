"""What a question says of an attribute: a level, several, or a comparison; which levels that means, exactly."""

from __future__ import annotations

import re
from dataclasses import dataclass

from discreet.networks.evidence import encode_evidence, require_attribute
from discreet.values.errors import QueryError, SchemaError
from discreet.values.schema import Attribute, Schema
from discreet.values.schema.constraints import choose_levels
from discreet.values.text import list_some, show

_WORD = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class Condition:
    """A sign with what stands behind it: age >= 70, sex != F, ward in {eye, ear}, age between 60 and 70."""

    sign: str
    operands: tuple[str, ...]

    def list_levels(self, attribute: Attribute) -> list[str]:
        """The levels that are meant; a comparison that would cut a bin in two is refused, so that answers are exact."""
        if self.sign in ("=", "in", "!=", "not in"):
            wanted = [find_level(attribute, text) for text in self.operands]
            return [level for level in attribute.levels if (level in wanted) is (self.sign in ("=", "in"))]
        if self.sign == "between":
            low, high = self.operands
            above = _compare(attribute, ">=", low)
            try:
                below = _compare(attribute, "<=", high)
            except QueryError:  # between 60 and 70 with a bin [70, 75) means up to 70
                below = _compare(attribute, "<", high)
            return [level for level in above if level in below]
        return _compare(attribute, self.sign, self.operands[0])


Conditions = dict[str, tuple[Condition, ...]]


def list_levels(schema: Schema, name: str, conditions: tuple[Condition, ...]) -> list[str]:
    """The levels of an attribute that fulfil all conditions; a refusal if there are none."""
    attribute = require_attribute(schema, name)
    found = list(attribute.levels)
    for condition in conditions:
        allowed = set(condition.list_levels(attribute))
        found = [level for level in found if level in allowed]
    if not found:
        raise QueryError(
            f"no level of {show(name)} is left by the question; it has {list_some(attribute.levels)}"
        )
    return found


def find_level(attribute: Attribute, text: str) -> str:
    """The level that a text names, blanks aside: [70,75) is [70, 75); a number or a date names its bin."""
    if text in attribute:
        return text
    plain = {"".join(level.split()): level for level in attribute.levels}
    found = plain.get("".join(text.split()))
    if found is not None:
        return found
    alone = Schema((attribute,))
    return attribute.levels[encode_evidence(alone, {attribute.name: text})[attribute.name]]


def split_name(word: str) -> tuple[str, str | None, tuple[str, ...]]:
    """The name in words such as 'age between 60 and 70' or 'ward in', with the sign and the operands that follow it."""
    # By words, once through: patterns with several stretches of blanks take the cube of a text's length.
    words = list(_WORD.finditer(word))
    said = [found[0].lower() for found in words]
    first = said.index("between", 1) if "between" in said[1:] else len(said)
    joint = next((at for at in range(first + 2, len(said) - 1) if said[at] == "and"), None)
    if joint is not None:
        low = word[words[first + 1].start() : words[joint - 1].end()]
        high = word[words[joint + 1].start() : words[-1].end()]
        return _cut(word, words, first), "between", (low, high)
    for sign in ("between", "not in", "in"):
        names = len(said) - len(sign.split())
        if names > 0 and said[names:] == sign.split():
            return _cut(word, words, names), sign, ()
    return word, None, ()


def _cut(word: str, words: list[re.Match[str]], count: int) -> str:
    """The first words as they are written."""
    return word[words[0].start() : words[count - 1].end()]


def _compare(attribute: Attribute, sign: str, operand: str) -> list[str]:
    try:
        chosen = choose_levels(attribute, [f"{sign} {operand}"])
    except SchemaError as error:
        said = str(error).removeprefix("constraint on ")
        listed = "" if " in two; " in said else f"; its levels are {list_some(attribute.levels)}"
        raise QueryError(said + listed) from None
    return [level for level, kept in zip(attribute.levels, chosen, strict=True) if kept]
