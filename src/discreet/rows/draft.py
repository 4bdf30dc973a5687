"""A first draft of a schema from a file, for a person to review: the one other place that looks at rows.

A schema is public, and what is read off rows is not. So a draft says of every line whether it looked at values, and it
writes nothing that only a few rows hold if it can help it: numbers get round edges and open ends, and columns with many
different texts, which are names or identifiers more often than not, are left out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from discreet.rows.limits import Limits
from discreet.rows.readers import sources
from discreet.rows.readers.duck import Kind, classify_type
from discreet.values.errors import DataError, SchemaError
from discreet.values.schema import Attribute, Schema
from discreet.values.schema.columns import NUMBER
from discreet.values.schema.document import write_toml
from discreet.values.text import show

REVIEW = "review: this is public from now on"
MOST_LEVELS = 20
"""A column with more different values than this is cut into bins or left out."""
BINS = 5
"""About how many bins a number is cut into."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """What is proposed for one column: an attribute and what was guessed, or None and why not."""

    column: str
    attribute: Attribute | None
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Draft:
    """Proposals for all columns of a file, in order."""

    label: str
    proposals: tuple[Proposal, ...]

    @property
    def schema(self) -> Schema:
        """The schema as it would be if every guess were right."""
        found = tuple(proposal.attribute for proposal in self.proposals if proposal.attribute is not None)
        if not found:
            raise SchemaError(f"{self.label}: no column looks like an attribute; write the schema by hand")
        return Schema(found)

    def format(self) -> str:
        """The draft as TOML, with a comment above every guess."""
        lines = [
            f"# A draft for {self.label}, made by looking at its rows.",
            "# A schema is public, with all its levels and edges. Where a comment says `review`, put what you know",
            "# about the world in place of what happens to be in this table, then delete the comment.",
            "",
            "format = 1",
            "",
        ]
        for proposal in self.proposals:
            lines += [f"# {note}" for note in proposal.notes]
            if proposal.attribute is not None:
                body = write_toml(Schema((proposal.attribute,)))
                lines += [body.partition("\n\n")[2].rstrip("\n")]
            lines.append("")
        return "\n".join(lines).rstrip("\n") + "\n"


def draft_schema(path: str, *, most_levels: int = MOST_LEVELS) -> Draft:
    """Propose a schema for a CSV, Parquet or Arrow file, or 'file.duckdb::table'."""
    if not 2 <= most_levels <= 1000:
        raise SchemaError(f"--levels must lie between 2 and 1000, not {most_levels}")
    allowed = Limits()
    base, mark, table = path.rpartition("::")
    if mark and sources.look_up_path(path) == "nothing":
        source = sources.open_duckdb_file(base, table, allowed)
    else:
        source = sources.open_path(path, (), allowed)
    try:
        if len(set(source.names)) != len(source.names):
            twice = next(name for name in source.names if source.names.count(name) > 1)
            raise DataError(f"{source.label}: two columns are called {show(twice)}; rename one")
        columns = ", ".join(f"c{i}" for i in range(len(source.names)))
        scan = f"{source.scan} AS t({columns})"
        described = sources.run(source.connection, source.label, f"DESCRIBE SELECT {columns} FROM {scan}")
        proposals = tuple(
            _propose(source, scan, f"c{i}", name, str(row[1]), most_levels)
            for i, (name, row) in enumerate(zip(source.names, described, strict=True))
        )
        return Draft(source.label, proposals)
    finally:
        source.close()


def _propose(
    source: sources.Source, scan: str, column: str, name: str, declared: str, most_levels: int
) -> Proposal:
    try:
        kind = classify_type(source.label, name, declared)
    except DataError:
        return Proposal(
            name, None, (f"{show(name)} is left out: its type is {declared}, neither text nor a number",)
        )
    if not name.strip() or not name.isprintable():
        return Proposal(name, None, (f"{show(name)} is left out: its name has invisible characters",))

    def ask(query: str) -> list[tuple[Any, ...]]:
        return sources.run(source.connection, source.label, query)

    text = f"NULLIF(CAST({column} AS VARCHAR), '')"
    if kind == "float":
        text = f"CASE WHEN isnan({column}) THEN NULL ELSE {text} END"
    absent = bool(ask(f"SELECT count(*) > 0 FROM {scan} WHERE {text} IS NULL")[0][0])
    values = [
        row[0]
        for row in ask(
            f"SELECT DISTINCT {text} AS v FROM {scan} WHERE {text} IS NOT NULL LIMIT {most_levels + 1}"
        )
    ]
    notes = [f"{show(name)} has empty cells, so they get a level ({REVIEW})"] if absent else []
    missing = "missing" if absent else None
    if not values:
        return Proposal(name, None, (f"{show(name)} is left out: it is empty in every row",))
    if len(values) <= most_levels and kind != "float":
        return _propose_levels(name, values, kind, missing, notes)
    pattern = "'^" + NUMBER + "$'"
    numeric = f"regexp_matches({text}, {pattern})"
    others = [
        row[0]
        for row in ask(
            f"SELECT DISTINCT {text} FROM {scan} WHERE {text} IS NOT NULL AND NOT {numeric} LIMIT 2"
        )
    ]
    if len(others) > 1 or (others and missing):
        why = f"more than {most_levels} different texts, which may be names or identifiers"
        return Proposal(name, None, (f"{show(name)} is left out: {why}",))
    if others:
        missing = str(others[0])
        notes.append(f"{show(missing)} in {show(name)} is taken for a missing number ({REVIEW})")
    ((low, high),) = ask(
        f"SELECT approx_quantile(v, 0.05), approx_quantile(v, 0.95) FROM "
        f"(SELECT TRY_CAST({text} AS DOUBLE) AS v FROM {scan} WHERE {numeric}) WHERE isfinite(v)"
    )
    edges = cut_round(low, high)
    if edges is None:
        return Proposal(name, None, (f"{show(name)} is left out: its numbers are nearly all the same",))
    notes.append(f"{show(name)}: round edges around the middle of its numbers, open at both ends ({REVIEW})")
    return Proposal(name, Attribute.binned(name, edges, missing=missing), tuple(notes))


def _propose_levels(
    name: str, values: Sequence[str], kind: Kind, missing: str | None, notes: Sequence[str]
) -> Proposal:
    """Levels in a sensible order: numbers by size, texts by the alphabet."""
    whole = kind == "integer" or all(re.fullmatch(r"-?[0-9]{1,18}", value) for value in values)
    levels = sorted(values, key=(lambda value: (int(value), value)) if whole else str)
    if len(levels) == 1 and missing is None:
        return Proposal(name, None, (f"{show(name)} is left out: it has only one value",))
    while missing in levels:
        missing = f"{missing} cell"
    note = f"{show(name)}: these values were found, others may be possible ({REVIEW})"
    attribute = Attribute.of(name, levels, ordered=whole and len(levels) > 2, missing=missing)
    return Proposal(name, attribute, (note, *notes))


def cut_round(low: float | None, high: float | None) -> tuple[float, ...] | None:
    """About five bins with round edges between two numbers, the outer ones open: 18 to 77 gives 20, 40, 60."""
    if low is None or high is None or not (math.isfinite(low) and math.isfinite(high)) or high <= low:
        return None
    rough = (high - low) / (BINS - 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-12))
    first = math.ceil(low / step)
    edges = [float(f"{i * step:.12g}") for i in range(first, math.floor(high / step) + 1)]
    if not edges:
        edges = [float(f"{first * step:.12g}")]
    return (-math.inf, *edges, math.inf)


ID_NAME = re.compile(
    r"(^|[_ .-])(id|ids|nr|no|key|mrn|ssn|pid|patient|person|member|client|subject|case)($|[_ .-])", re.I
)
"""How columns that name people are called."""


def find_repeated_id(path: str, known: Collection[str], limits: Limits | None = None) -> str | None:
    """A column outside the schema that is called like an id and repeats: its people may have several rows each."""
    source = sources.open_path(path, (), limits or Limits())
    try:
        for place, name in enumerate(source.names):
            if name not in known and ID_NAME.search(name):
                scan = f"{source.scan} AS rows({', '.join(f'c{i}' for i in range(len(source.names)))})"
                query = f"SELECT count(c{place}) > count(DISTINCT c{place}) FROM {scan}"
                if sources.run(source.connection, source.label, query)[0][0]:
                    return name
    finally:
        source.close()
    return None
