"""Values of a table that a schema does not declare: all of them in one run, each with the line that would mend it.

This is for the custodian alone: it names values of rows, and nothing pays for it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from discreet.rows.files.writing import Said, describe_writing, name_writing
from discreet.rows.limits import Limits
from discreet.rows.readers.duck import DuckReader, open_reader
from discreet.values.schema import Attribute, Schema
from discreet.values.schema.columns import spell_levels
from discreet.values.schema.dates import is_short, read_text
from discreet.values.schema.reading import Reading
from discreet.values.schema.types import read_number

MOST_DROPPED = 0.5
"""Of more of the rows than this, no line is proposed that would drop them or their values."""

SHOWN = 8
"""How many different values of an attribute are listed."""

_WORDS = "na n/a n.a. nan nil none null missing unknown unbekannt nd n/d k.a. - -- . ? * #n/a (null) (none)"
NOTHING = frozenset(_WORDS.split())
"""How people write that there is no value, in small letters."""

CODES = frozenset(("-1", "-9", "-99", "-999", "-9999", "99", "999", "9999"))
"""Whole numbers that often stand for no value."""


@dataclass(frozen=True, slots=True)
class Misfit:
    """A value that an attribute does not declare, in how many rows, and the TOML that would mend it."""

    attribute: str
    value: object
    rows: int
    mend: str


@dataclass(frozen=True, slots=True)
class Misfits:
    """What does not fit one attribute: in how many rows, the most frequent values, and what becomes of them now."""

    attribute: Attribute
    rows: int
    values: tuple[Misfit, ...]

    @property
    def fate(self) -> str:
        """What becomes of such values in a release."""
        found = self.attribute
        if found.leaves_out:
            return "their records are left out"
        if found.other is not None:
            return f"they become {found.other!r}"
        kinds = {"nearest": "numbers go to the nearest bin", "missing": f"they become {found.missing!r}"}
        return kinds.get(found.reading.outside, "a release refuses them")


def find_misfits(data: Any, schema: Schema, *, outside: bool = False) -> list[Misfits] | None:
    """The values that a release would refuse, attribute by attribute; with `outside`, all that are not declared.

    None if the data is where only a release can look.
    """
    asked = Schema(tuple(_make_strict(one) for one in schema)) if outside else Schema(schema.attributes)
    if type(data).__module__.partition(".")[0] == "pandas":
        import pyarrow as pa

        data = pa.Table.from_pandas(data[list(schema.names)], preserve_index=False)
    reader = open_reader(data, asked, None, Limits())
    try:
        if not isinstance(reader, DuckReader):
            return None
        found = []
        for attribute in schema:
            rows, values = reader.count_misfits(attribute.name, SHOWN)
            if rows:
                listed = [
                    Misfit(attribute.name, value, count, propose_mend(attribute, value, reader.source.said))
                    for value, count in values
                ]
                dropped = rows - sum(one.rows for one in listed if not _drops(one.mend))
                if dropped > MOST_DROPPED * reader.count_rows():
                    listed = [replace(one, mend=_keep_rows(one.mend)) for one in listed]
                found.append(Misfits(attribute, rows, tuple(listed)))
        return found
    finally:
        reader.close()


DROPPING = (
    'outside = "leave out"',
    'outside = "missing"',
    'outside = "nearest", or ',
    'other = "other", or ',
)
"""How lines begin that keep nothing of a value."""


def _drops(mend: str) -> bool:
    return mend.startswith(DROPPING)


def _keep_rows(mend: str) -> str:
    """A mend without what would drop the values of most rows."""
    if not _drops(mend):
        return mend
    return (
        mend.partition(", or ")[2] or "most rows have such values: declare what they are (see `schema draft`)"
    )


def propose_mend(attribute: Attribute, value: object, said: Said | None = None) -> str:
    """The line of TOML, below the attribute's header, or the file's name, that would give this value a place."""
    missing = "" if attribute.missing is not None else 'missing = "missing"'
    if value is None or value == "" or (isinstance(value, float) and value != value):
        return missing
    text = str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
    bare = text.strip()
    folded = Reading.of(ignore=["case", "blanks"])
    if folded.fold(text) in {folded.fold(spelt) for spelt in spell_levels(attribute)}:
        return 'ignore = ["case", "blanks"]'
    if bare.lower() in NOTHING or (bare in CODES and bare not in attribute.levels):
        nulls = json.dumps([*attribute.reading.nulls, bare], ensure_ascii=False)
        return f"nulls = {nulls}" + (f" and {missing}" if missing else "")
    if attribute.dates is not None:
        return _mend_date(attribute, value, bare)
    number = value if isinstance(value, int | float) else read_number(bare)
    if attribute.bins is not None:
        if number is not None:
            return 'outside = "nearest", or edges that reach it'
        if writing := name_writing(bare):
            typed = "take it out of the table" if said is None else f"write {said.add(writing)}"
            return f"this number has {describe_writing(writing)}: {typed}"
        return 'outside = "leave out"' if attribute.missing is None else 'outside = "missing"'
    if number is not None and float(number).is_integer() and str(int(number)) in attribute:
        level = json.dumps(str(int(number)))
        return f"aliases = {{ {level} = {json.dumps([text], ensure_ascii=False)} }}"
    return f'other = "other", or the level {json.dumps(text, ensure_ascii=False)}'


def _mend_date(attribute: Attribute, value: object, text: str) -> str:
    fits = [order for order in ("dmy", "mdy") if read_text(text, order) is not None]
    if isinstance(value, date) or read_text(text, attribute.reading.order) is not None:
        return 'outside = "nearest", or dates that reach it'
    if fits and attribute.reading.order is None:
        return f'order = "{fits[0]}"' + (', or "mdy" if the month comes first' if len(fits) > 1 else "")
    if is_short(text):
        return "years of four digits in the file; of two, the century is not known"
    return 'outside = "leave out"' if attribute.missing is None else 'outside = "missing"'


def _make_strict(attribute: Attribute) -> Attribute:
    """The attribute without a word on what is outside; a missing level stays, and `other` is a level like others."""
    bare = replace(attribute.reading, outside="refuse")
    if attribute.other is None:
        return replace(attribute, reading=bare)
    levels = tuple(level for level in attribute.levels if level != attribute.other)
    if len(levels) < 2:
        return replace(attribute, reading=bare)
    aliases = tuple(pair for pair in bare.aliases if pair[1] != attribute.other)
    return replace(
        attribute,
        levels=levels,
        other=None,
        taxonomy=None,
        type=attribute.type,
        reading=replace(bare, aliases=aliases),
    )
