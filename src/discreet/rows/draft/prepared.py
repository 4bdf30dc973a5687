"""A table made ready for a private draft: with the form of each cell beside it, as a column of its own.

The form of a cell follows from that cell alone and is one of a public list, so it can be measured like any attribute.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.rows.draft.cells import CLOCK, DATE, LATE, MIDNIGHT, SLASHES
from discreet.rows.draft.profile import classify
from discreet.rows.draft.proposal import INDEX_NAME
from discreet.rows.limits import Limits
from discreet.rows.readers import foreign, sources
from discreet.rows.readers.texts import NULLS
from discreet.values.schema.types import NUMBER
from discreet.values.text import is_id_name

PLACES = 6
DECIMALS = ("whole", *(f"{i} decimals" for i in range(1, PLACES + 1)), "more decimals")
FORMS = (*DECIMALS, "date", "time", "slashes", "slashes, day first", "true or false", "text", "missing")
"""What a cell can be."""


@dataclass(frozen=True, slots=True)
class Given:
    """One column as its file or frame declares it, which is public: no cell was looked at."""

    name: str
    kind: str
    """text, number, whole, boolean, date, time or other."""
    form: str = ""
    """The name of the column that holds the forms of its cells, if these are not known from its type."""
    left_out: str = ""
    """Why it is no attribute, as far as its name and type tell."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """An Arrow table with columns of forms, and what is public about its own columns."""

    label: str
    table: Any
    columns: tuple[Given, ...]

    @property
    def own(self) -> Any:
        """The table without the columns of forms."""
        return self.table.select(range(len(self.columns)))


def prepare(data: Any, person: str | None = None) -> Prepared:
    """The table with the forms of cells whose type does not tell them; all of it is held in memory.

    Where the type of a column follows from its cells, one cell would tell of itself through it: there all are texts.
    """
    source = sources.open_source(data, Limits(memory=2**32))
    try:
        if person is not None:
            sources.place_columns(source.label, source.names, [person])
        listed = ", ".join(f"c{i}" for i in range(len(source.names)))
        scan, loose = f"{source.scan} AS t({listed})", _list_loose(data, source.names)
        shape = sources.fetch_table(source, f"SELECT {listed} FROM {scan} LIMIT 0").schema
        if loose:
            written = [
                f"{_write_text(f'c{i}', shape.field(i).type) if name in loose else f'c{i}'} AS c{i}"
                for i, name in enumerate(source.names)
            ]
            scan = f"(SELECT {', '.join(written)} FROM {scan}) AS t"
            shape = sources.fetch_table(source, f"SELECT {listed} FROM {scan} LIMIT 0").schema
        columns = [
            _declare(name, field.type, person, source.names.count(name) > 1)
            for name, field in zip(source.names, shape, strict=True)
        ]
        made = [
            f"{_write_form(f'c{i}', column.kind)} AS f{i}" for i, column in enumerate(columns) if column.form
        ]
        table = sources.fetch_table(source, f"SELECT {', '.join([listed, *made])} FROM {scan}")
    finally:
        source.close()
    names = [*source.names, *(column.form for column in columns if column.form)]
    return Prepared(source.label, table.rename_columns(names), tuple(columns))


def _list_loose(data: Any, names: Sequence[str]) -> frozenset[str]:
    """The columns whose types follow from their cells: a missing number makes pandas' integers floats, for one."""
    if isinstance(data, str | os.PathLike):
        text = os.fspath(data)
        path = text if sources.look_up_path(text) != "nothing" else text.rpartition("::")[0] or text
        endings = (*foreign.EXCEL_ENDINGS, *foreign.STATISTICS_ENDINGS, *foreign.JSON_ENDINGS)
        return frozenset(names if sources.is_sqlite(path) or sources.find_ending(path) in endings else ())
    if isinstance(data, tuple):
        return frozenset(names if isinstance(data[0], sqlite3.Connection) else ())
    if type(data).__module__.partition(".")[0] == "pandas" or isinstance(data, Mapping):
        return frozenset(name for name in names if is_loose(getattr(data[name], "dtype", None)))
    return frozenset()


def is_loose(dtype: Any) -> bool:
    """Whether a column of this NumPy or pandas type would have another one if a cell were missing, or odd."""
    kind = getattr(dtype, "kind", "V")
    if kind in "iufb" and not isinstance(dtype, np.dtype):
        return False  # pandas' nullable types, which somebody has asked for
    return dtype is None or str(dtype) == "category" or kind in "iufcbMmOSU"


def _write_text(column: str, kind: Any) -> str:
    """A cell as text in SQL, the same whatever the other cells have made of the column's type."""
    import pyarrow as pa

    text = f"CAST({column} AS VARCHAR)"
    if pa.types.is_floating(kind):
        whole = f"{column} = floor({column}) AND abs({column}) < 1e15"
        return f"CASE WHEN {whole} THEN CAST(CAST({column} AS BIGINT) AS VARCHAR) ELSE {text} END"
    if pa.types.is_timestamp(kind) and kind.tz is None:
        day = f"CAST({column} AS DATE)"
        return f"CASE WHEN {column} = {day} THEN CAST({day} AS VARCHAR) ELSE {text} END"
    return text


def _declare(name: str, kind: Any, person: str | None, twice: bool) -> Given:
    found = classify(kind)
    why = ""
    if name == person:
        why = "it names people"
    elif found == "other":
        why = f"its type is {kind}"
    elif not name.strip() or not name.isprintable() or INDEX_NAME.fullmatch(name.strip()):
        why = "it is called like one that numbers the rows"
    elif twice:
        why = "several columns have this name"
    elif is_id_name(name) and found in ("text", "whole"):
        why = "it is called like an id"
    loose = found in ("text", "number") or (found == "time" and kind.tz is None)
    form = f"{name} (form)" if loose and not why else ""
    return Given(name, found, form, why)


def _write_form(column: str, kind: str) -> str:
    """The form of a cell as SQL."""
    if kind == "time":  # days that came as moments, because the frame has no other type for them
        day = f"CASE WHEN {column} = date_trunc('day', {column}) THEN 'date' ELSE 'time' END"
        return f"CASE WHEN {column} IS NULL OR NOT isfinite({column}) THEN 'missing' ELSE {day} END"
    if kind == "number":
        number = f"CAST({column} AS DOUBLE)"
        places = " ".join(
            f"WHEN round({number}, {i}) = {number} THEN '{DECIMALS[i]}'" for i in range(PLACES + 1)
        )
        return (
            f"CASE WHEN {column} IS NULL OR NOT isfinite({number}) THEN 'missing' {places} "
            f"ELSE '{DECIMALS[-1]}' END"
        )
    text = f"trim(CAST({column} AS VARCHAR))"
    nulls = ", ".join(sources.quote_text(spelling) for spelling in ("", *NULLS))

    def match(pattern: str) -> str:
        return f"regexp_full_match({text}, {sources.quote_text(pattern)})"

    tail = f"length(rtrim(split_part({text}, '.', 2), '0'))"
    places = " ".join(f"WHEN {tail} = {i} THEN '{DECIMALS[i]}'" for i in range(PLACES + 1))
    return (
        f"CASE WHEN {column} IS NULL OR {text} IN ({nulls}) THEN 'missing' "
        f"WHEN {match('0[0-9]+')} THEN 'text' "
        f"WHEN lower({text}) IN ('true', 'false') THEN 'true or false' "
        f"WHEN {match('[+-]?[0-9]+')} THEN 'whole' "
        f"WHEN {match(NUMBER)} THEN CASE {places} ELSE '{DECIMALS[-1]}' END "
        f"WHEN {match(LATE + CLOCK + '?')} THEN 'slashes, day first' "
        f"WHEN {match(SLASHES + CLOCK + '?')} THEN 'slashes' "
        f"WHEN {match(f'{DATE}{MIDNIGHT}?')} THEN 'date' WHEN {match(DATE + CLOCK)} THEN 'time' ELSE 'text' END"
    )
