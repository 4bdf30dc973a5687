"""What a question says of an attribute: a level, several, or a comparison; which levels that means, exactly."""

from __future__ import annotations

import re
from dataclasses import dataclass

from discreet.networks.evidence import encode_evidence, require_attribute
from discreet.values.errors import QueryError, SchemaError
from discreet.values.schema import Attribute, Schema
from discreet.values.schema.constraints import choose_levels
from discreet.values.text import list_some, show

SIGNS = ("=", "!=", "<=", ">=", "<", ">")
_BETWEEN = re.compile(r"(?P<name>.+?)\s+between(?:\s+(?P<low>.+?)\s+and\s+(?P<high>.+))?", re.IGNORECASE)
_AMONG = re.compile(r"(?P<name>.+?)\s+(?P<sign>not\s+in|in)", re.IGNORECASE)


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
    between = _BETWEEN.fullmatch(word)
    if between is not None:
        operands = (between["low"], between["high"]) if between["low"] else ()
        return between["name"].strip(), "between", operands
    among = _AMONG.fullmatch(word)
    if among is not None:
        return among["name"].strip(), " ".join(among["sign"].lower().split()), ()
    return word, None, ()


def _compare(attribute: Attribute, sign: str, operand: str) -> list[str]:
    try:
        chosen = choose_levels(attribute, [f"{sign} {operand}"])
    except SchemaError as error:
        said = str(error).removeprefix("constraint on ")
        raise QueryError(f"{said}; its levels are {list_some(attribute.levels)}") from None
    return [level for level, kept in zip(attribute.levels, chosen, strict=True) if kept]
