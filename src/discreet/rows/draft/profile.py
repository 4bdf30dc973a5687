"""What all columns of a table look like, each read once: forms, counts of values, numbers, keys.

Everything in here is private. A proposal takes over only what at least so many rows (or people) hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from discreet.rows.draft.cells import (
    Facts,
    find_decimals,
    find_writing,
    look_at_texts,
    prefers_days,
    read_dates,
    read_numbers,
)
from discreet.rows.readers import sources
from discreet.values.errors import DataError
from discreet.values.schema.dates import DAY
from discreet.values.text import show

Array = npt.NDArray[Any]
Form = Literal["text", "whole", "decimal", "boolean", "date", "time", "other"]
"""What the cells of a column are, nearly all of them."""

Told = Callable[[int, int, str], None]
"""Told how many columns are done, of how many, and the name of the last."""

CELLS = 3 * 10**7
"""Cells that are read at a time."""
WIDEST = 100
"""Columns that are read at a time."""
NEARLY = 0.95
"""The share of cells that must be numbers, or dates, for a column of texts to be one."""
MOST_CODED = 200
"""Columns with no more values than this may follow from others, so what each row holds is kept."""


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """One column: how many cells of which form, its values, and its numbers."""

    name: str
    form: Form
    declared: str
    rows: int
    present: int = 0
    distinct: int = 0
    absent: int = 0
    """Empty cells and spellings of missing."""
    spelled: int = 0
    """Cells that spell missing."""
    strange: int = 0
    """Cells that are neither of the form nor missing."""
    decimals: int = 0
    words: float = 1.0
    """Words in a text, on average."""
    slashed: bool = False
    """Whether dates are written with slashes."""
    days_first: bool = False
    values: tuple[tuple[str, int], ...] = ()
    """Values that enough rows (or people) hold, with how many rows do; the most frequent first."""
    numbers: Numbers | None = None
    codes: Array | None = None
    """Which value each row holds, if they are few; -1 where it is missing."""
    texts: tuple[str, ...] = ()
    """The values that codes stand for."""
    moments: Array | None = None
    """The date of each row, in days or seconds; NaN where it has none."""
    writing: str = ""
    """What to say of the file so that texts are read as the numbers that they write."""
    twice: bool = False
    """Whether another column has the same name."""

    @property
    def frequent(self) -> int:
        """How many values are held often enough."""
        return len(self.values)

    @property
    def all_frequent(self) -> bool:
        """Whether no value is rare."""
        return self.frequent == self.distinct > 0


@dataclass(frozen=True, slots=True, eq=False)
class Numbers:
    """The different numbers of a column in order, and how many rows hold each; dates count as days or seconds."""

    values: Array
    held: Array
    low: float
    """The number such that enough rows (or people) hold one as low or lower."""
    high: float
    people: People | None = None

    @property
    def spread(self) -> float:
        """From the least to the largest number; it tells row numbers, and is never written."""
        return float(self.values[-1] - self.values[0])

    def quantiles(self, shares: Sequence[float]) -> list[float]:
        """The numbers below which these shares of the rows lie."""
        below = np.cumsum(self.held)
        places = np.searchsorted(below, np.asarray(shares) * below[-1])
        return [float(found) for found in self.values[np.minimum(places, len(self.values) - 1)]]

    def count(self, edges: Sequence[float]) -> list[int]:
        """How many rows (or people) fall into each bin; what lies beyond the ends is in the nearest."""
        inner = np.asarray(edges[1:-1])
        if self.people is None:
            place = np.searchsorted(inner, self.values, side="right")
            return [int(n) for n in np.bincount(place, weights=self.held, minlength=len(edges) - 1)]
        place = np.searchsorted(inner, self.people.numbers, side="right")
        return [int(n) for n in count_people(place, self.people.who, len(edges) - 1)]


@dataclass(frozen=True, slots=True, eq=False)
class People:
    """Whose number each is."""

    numbers: Array
    who: Array


def profile(
    source: sources.Source, least: int, person: str | None = None, told: Told | None = None
) -> list[Column]:
    """All columns of a table, some at a time so that they fit into memory."""
    names = source.names
    if person is not None and names.count(person) != 1:
        many = "no column" if person not in names else "several columns are called"
        raise DataError(f"{source.label}: {many} {show(person)}, which --person names")
    who = None
    if person is not None:
        (ids,) = _read(source, [names.index(person)])
        who = _code(_as_text(ids))[0]
    found: list[Column] = []
    for places in _cut(source):
        for place, column in zip(places, _read(source, places), strict=True):
            seen = _look(names[place], column, least, who)
            found.append(replace(seen, twice=True) if names.count(names[place]) > 1 else seen)
            if told is not None:
                told(len(found), len(names), names[place])
    return found


def _cut(source: sources.Source) -> Iterator[range]:
    rows = source.rows
    if rows is None:
        rows = int(sources.run(source.connection, source.label, f"SELECT count(*) FROM {source.scan}")[0][0])
    if not rows:
        raise DataError(f"{source.label}: no rows; at least 1 is needed")
    width = max(1, min(WIDEST, CELLS // rows))
    return (range(at, min(at + width, len(source.names))) for at in range(0, len(source.names), width))


def _read(source: sources.Source, places: Sequence[int]) -> list[Any]:
    """Some columns as Arrow arrays."""
    listed = ", ".join(f"c{i}" for i in range(len(source.names)))
    wanted = ", ".join(f"c{i}" for i in places)
    table = sources.fetch_table(source, f"SELECT {wanted} FROM {source.scan} AS t({listed})")
    return [column.combine_chunks() for column in table.columns]


def classify(kind: Any) -> Form | Literal["number"]:
    """What an Arrow type holds."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return classify(kind.value_type)
    if (
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_null(kind)
        or str(kind) == "string_view"
    ):
        return "text"
    if pa.types.is_boolean(kind):
        return "boolean"
    if pa.types.is_integer(kind):
        return "whole"
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "number"
    if pa.types.is_date(kind):
        return "date"
    return "time" if pa.types.is_timestamp(kind) else "other"


def _look(name: str, column: Any, least: int, who: Array | None) -> Column:
    """One column, from its different values and which row holds which."""
    kind, rows = classify(column.type), len(column)
    if kind == "other":
        return Column(name, "other", str(column.type), rows)
    if kind == "text":
        return _look_at_text(name, _as_text(column), least, who)
    codes, values = _code(column)
    held = np.bincount(codes[codes >= 0], minlength=len(values))
    if kind == "boolean":
        texts = [str(value.as_py()).lower() for value in values]
        return _finish(name, "boolean", column, codes, texts, held, None, least, who)
    numbers = read_numbers(values, kind)
    fine = np.isfinite(numbers)
    codes = np.where((codes >= 0) & np.append(fine, False)[codes], codes, -1)
    decimals = find_decimals(numbers[fine], held[fine]) if kind == "number" else 0
    form: Any = "decimal" if kind == "number" else kind
    if kind == "time" and fine.any() and not (numbers[fine] % DAY).any():
        form, numbers = "date", np.floor(numbers / DAY)
    texts = [] if form in ("date", "time") else _write_numbers(numbers, fine)
    return _finish(name, form, column, codes, texts, held, numbers, least, who, decimals=decimals)


def _look_at_text(name: str, column: Any, least: int, who: Array | None) -> Column:
    codes, values = _code(column)
    held = np.bincount(codes[codes >= 0], minlength=len(values))
    facts = look_at_texts(values, held)
    codes = np.where((codes >= 0) & np.append(~facts.nothing, False)[codes], codes, -1)
    held = np.where(facts.nothing, 0, held)
    present = int(held.sum())
    form: Form = "text"
    numbers: Array | None = None
    strange = 0
    if present and facts.numbers >= NEARLY * present and facts.padded <= (1 - NEARLY) * present:
        form = "whole" if facts.whole == facts.numbers else "decimal"
        numbers, strange = facts.parse_numbers(), present - facts.numbers
    elif present and facts.dates >= NEARLY * present:
        form = "time" if facts.clocks > 0.5 * facts.dates else "date"
        numbers = read_dates(facts, form == "time")
        strange = present - int(held[np.isfinite(numbers)].sum())
    texts = values.to_pylist()
    found = _finish(name, form, column, codes, texts, held, numbers, least, who, decimals=facts.decimals)
    writing = find_writing(facts, held, NEARLY) if form == "text" else ""
    return replace(_add_facts(found, facts, strange), writing=writing)


def _add_facts(column: Column, facts: Facts, strange: int) -> Column:
    return replace(
        column,
        strange=strange,
        spelled=facts.spelled,
        words=facts.words,
        slashed=facts.slashed > 0 and column.form in ("date", "time"),
        days_first=prefers_days(facts),
    )


def _finish(
    name: str,
    form: Form,
    column: Any,
    codes: Array,
    texts: Sequence[str],
    held: Array,
    numbers: Array | None,
    least: int,
    who: Array | None,
    decimals: int = 0,
) -> Column:
    """The values and numbers that enough rows (or people) hold."""
    present = int(np.count_nonzero(codes >= 0))
    real = np.bincount(codes[codes >= 0], minlength=len(held))
    enough = real if who is None else count_people(codes, who, len(held))
    often = [int(i) for i in np.flatnonzero(enough >= least)] if texts else []
    often.sort(key=lambda i: (-int(real[i]), texts[i]))
    distinct = int(np.count_nonzero(real))
    return Column(
        name,
        form,
        str(column.type),
        len(column),
        present,
        distinct,
        len(column) - present,
        decimals=decimals,
        values=tuple((texts[i], int(real[i])) for i in often),
        numbers=None if numbers is None else _order(numbers, real, codes, least, who),
        codes=codes.astype(np.int16) if texts and len(held) <= MOST_CODED else None,
        texts=tuple(texts) if len(held) <= MOST_CODED else (),
        moments=np.append(numbers, np.nan)[codes]
        if numbers is not None and form in ("date", "time")
        else None,
    )


def _order(numbers: Array, held: Array, codes: Array, least: int, who: Array | None) -> Numbers | None:
    """The numbers in order with their ends, if there are enough of them at all."""
    fine = np.isfinite(numbers) & (held > 0)
    order = np.flatnonzero(fine)[np.argsort(numbers[fine], kind="stable")]
    values, counts = numbers[order], held[order]
    if who is None:
        below = np.cumsum(counts)
        if not len(values) or below[-1] < least:
            return None
        above = np.cumsum(counts[::-1])
        low = values[np.searchsorted(below, least)]
        high = values[::-1][np.searchsorted(above, least)]
        return Numbers(values, counts, float(low), float(high))
    mine = (codes >= 0) & (who >= 0) & np.append(fine, False)[codes]
    people = People(numbers[codes[mine]], who[mine])
    lowest, highest = (
        np.full(int(who.max(initial=0)) + 1, np.inf),
        np.full(int(who.max(initial=0)) + 1, -np.inf),
    )
    np.minimum.at(lowest, people.who, people.numbers)
    np.maximum.at(highest, people.who, people.numbers)
    ends = np.sort(lowest[np.isfinite(lowest)]), np.sort(highest[np.isfinite(highest)])
    if len(ends[0]) < least:
        return None
    return Numbers(values, counts, float(ends[0][least - 1]), float(ends[1][-least]), people)


def count_people(codes: Array, who: Array, size: int) -> Array:
    """For each code how many different people hold it."""
    fine = (codes >= 0) & (who >= 0)
    pairs = np.unique(codes[fine].astype(np.int64) * (int(who.max(initial=0)) + 1) + who[fine])
    return np.bincount(pairs // (int(who.max(initial=0)) + 1), minlength=size)


def _code(column: Any) -> tuple[Array, Any]:
    """The code of each row, -1 where it is missing, and the different values."""
    import pyarrow as pa

    found = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    indices = found.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    return np.asarray(indices), found.dictionary


def _as_text(column: Any) -> Any:
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return column.cast(pa.large_string())


def _write_numbers(numbers: Array, fine: Array) -> list[str]:
    """Numbers as levels write them: whole ones without a point."""
    small = len(numbers) <= 10_000
    whole = fine & (np.abs(numbers) < 2**53) & (np.trunc(numbers) == numbers)
    # Of a column with very many different numbers, none is a level.
    return (
        [str(int(v)) if w else repr(float(v)) for v, w in zip(numbers, whole, strict=True)] if small else []
    )
