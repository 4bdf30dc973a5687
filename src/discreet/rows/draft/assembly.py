"""From a table to a draft: look at all columns in few passes, propose, and write it down with every guess marked."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discreet.rows.draft.dependence import Dependence, find_dependences
from discreet.rows.draft.order import find_orders
from discreet.rows.draft.profile import Told, profile
from discreet.rows.draft.proposal import REVIEW, SOME_FILE, Proposal, propose
from discreet.rows.limits import Limits
from discreet.rows.readers import sources
from discreet.values.errors import SchemaError
from discreet.values.files import write_text
from discreet.values.schema import Schema
from discreet.values.schema.constraints import Follows, Ordered
from discreet.values.schema.formats.toml import write_toml
from discreet.values.text import show, show_line

MOST_LEVELS = 50
"""A text with more frequent values keeps so many of them; the rest are one level."""
LEAST = 10
"""The public threshold: what fewer rows (or people) hold is not written."""
MOST_LEAST = 10**6


@dataclass(frozen=True, slots=True)
class Draft:
    """Proposals for all columns of a table, which of them follow from others, and which dates are in order."""

    label: str
    proposals: tuple[Proposal, ...]
    dependences: tuple[Dependence, ...] = ()
    least: int = LEAST
    person: str | None = None
    orders: tuple[Ordered, ...] = ()
    hint: str = ""
    """What to say of the file, if its header looks like none."""

    @property
    def schema(self) -> Schema:
        """The schema as it would be if every guess were right."""
        derived = {found.column for found in self.dependences}
        kept = [
            found.attribute for found in self.proposals if found.attribute and found.column not in derived
        ]
        if not kept:
            advice = f"write the schema by hand, or lower the threshold (now {self.least}) with --at-least"
            raise SchemaError(f"{self.label}: no column looks like an attribute; {self.hint or advice}")
        follows = [Follows(found.column, (found.source,), found.pairs) for found in self.dependences]
        return Schema(tuple(kept), self.orders, tuple(follows))

    @property
    def guesses(self) -> int:
        """How many guesses are to be reviewed."""
        return self.format().count(REVIEW)

    @property
    def repeated(self) -> str | None:
        """A column that looks like an id and repeats, so that its people may have several rows each."""
        if self.person is not None:
            return None
        repeated = [found for found in self.proposals if found.repeats]
        repeated.sort(key=lambda found: found.attribute is not None)  # what is called an id comes first
        return repeated[0].column if repeated else None

    def format(self) -> str:
        """The draft as TOML, with a comment above every guess."""
        who = "rows" if self.person is None else "people"
        lines = [
            f"# A draft for {self.label}, made by looking at its rows; nothing is in it that fewer than {self.least} "
            f"{who} hold.",
            "# A schema is public, with all its levels and edges. Where a comment says `review`, put what you know",
            "# about the world in place of what happens to be in this table, then delete the comment.",
        ]
        if self.hint:
            lines.append(f"# {show_line(self.label)}: {show_line(self.hint)}.")
        if self.repeated is not None:
            lines += [
                f"# {show(self.repeated)} repeats. If it names people, protect people and not rows: draft again with",
                f"# --person {self.repeated}, and release with --person {self.repeated} --at-most 4.",
            ]
        lines += ["", "format = 1", ""]
        derived = {found.column: found for found in self.dependences}
        for proposal in self.proposals:
            if proposal.column in derived:
                continue
            lines += [f"# {note}" for note in proposal.notes]
            if proposal.attribute is not None:
                lines.append(_write_part(Schema((proposal.attribute,))))
            lines.append("")
        whole = write_toml(self.schema) if self.dependences or self.orders else ""
        for order in self.orders:
            lines.append(f"# {order} in every row that has both, and so in every synthetic row ({REVIEW})")
        if self.orders:
            lines += [whole[whole.index("[[constraints]]") :].partition("[follows")[0].rstrip("\n"), ""]
        if self.dependences:
            for found in self.dependences:
                also = ", and the other way round" if found.mutual else ""
                lines.append(
                    f"# {show(found.column)} follows from {show(found.source)} in every row{also}, so it is neither "
                    f"read nor measured ({REVIEW})"
                )
            lines += [whole[whole.index("[follows") :].rstrip("\n"), ""]
        return "\n".join(lines).rstrip("\n") + "\n"

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the draft as TOML, to be reviewed."""
        write_text(Path(path), self.format())

    def __repr__(self) -> str:
        return f"<Draft of {self.label}: {len(self.schema)} of {len(self.proposals)} columns, {self.guesses} guesses>"


def draft_schema(
    data: Any,
    *,
    most_levels: int = MOST_LEVELS,
    least: int = LEAST,
    person: str | None = None,
    progress: Told | None = None,
) -> Draft:
    """Propose a schema for a file, a frame or a table of a database, by looking at its rows.

    What fewer than `least` rows hold is not written; with `person`, the column of people's ids, fewer people.
    """
    if not 2 <= most_levels <= 1000:
        raise SchemaError(f"--levels must lie between 2 and 1000, not {most_levels}")
    if not 1 <= least <= MOST_LEAST:
        raise SchemaError(f"--at-least must lie between 1 and {MOST_LEAST:,}, not {least}")
    source = sources.open_source(data, Limits(memory=2**32))
    try:
        columns = [column for column in profile(source, least, person, progress) if column.name != person]
        people, said = person is not None, source.said or SOME_FILE
        proposals = [propose(column, most_levels, least, people, said) for column in columns]
        dependences = find_dependences(columns, [found.attribute for found in proposals])
        orders = find_orders(columns, [found.attribute for found in proposals], least)
        return Draft(
            source.label, tuple(proposals), tuple(dependences), least, person, tuple(orders), source.hint
        )
    finally:
        source.close()


def _write_part(schema: Schema) -> str:
    return write_toml(schema).partition("\n\n")[2].rstrip("\n")
