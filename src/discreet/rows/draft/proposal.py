"""What is proposed for one column: an attribute with what was guessed, or the reason why it is left out.

Nothing is proposed that fewer rows (or people) hold than the public threshold: neither a level, nor an end of a range,
nor a bin. What is not held often enough falls to the level `other`, to the nearest bin, or to the missing level.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta

import numpy as np

from discreet.rows.draft.heaps import count_between, fit_bins
from discreet.rows.draft.profile import Column, Numbers
from discreet.rows.files.writing import Said, describe_writing
from discreet.rows.readers.texts import LONGEST_VALUE, NULLS, is_value
from discreet.values.errors import SchemaError
from discreet.values.schema import Attribute
from discreet.values.schema.bins import Bins
from discreet.values.schema.edges import (
    BINS,
    MOST_PLACES,
    SHARES,
    cut_dates,
    cut_quantiles,
    find_places,
    round_near,
    thin,
)
from discreet.values.schema.reading import BLANKS, Ignored, Reading
from discreet.values.schema.types import is_whole
from discreet.values.text import is_id_name, show

REVIEW = "review: this is public from now on"
FEW_NUMBERS = 12
"""Whole numbers with no more different values than this are levels, each by itself."""
COVERED = 0.5
"""The share of the cells that the frequent values of a text must hold together; else they are names or identifiers."""
ALL_DIFFERENT = 0.9
EVENLY = 0.95
"""The share of whole numbers that equally many rows must hold for them to number people."""
YEARS = (1500, 2200)
MANY = 0.002
"""The share of the rows that hold a number next to which an edge is moved away from it."""

HOUR = re.compile(r"([01]?[0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9])?")
"""Times of the day, which come in their own order: 9:00 is before 10:00."""
HOURS_HINT = "times of the day; write them as texts of hours or quarters in the file, such as 11:30"
SOME_FILE = Said("file.csv")
IGNORED: tuple[tuple[Ignored, ...], ...] = (("case",), ("blanks",), ("blanks", "case"))

INDEX_NAME = re.compile(
    r"__index_level_[0-9]+__|Unnamed: ?[0-9]+|index|rownames|row_?(id|nr|no|number|names)?|", re.I
)
"""How columns are called that only number the rows."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """What is proposed for one column: an attribute and what was guessed, or None and why not."""

    column: str
    attribute: Attribute | None
    notes: tuple[str, ...]
    repeats: bool = False
    """Whether it looks like an id that repeats: then somebody may have several rows."""


def propose(
    column: Column, most_levels: int, least: int, people: bool = False, said: Said = SOME_FILE
) -> Proposal:
    """A proposal for one column; people are counted in place of rows where they are protected."""
    why = find_reason(column, most_levels, people)
    if column.writing and (why is not None or (column.distinct > FEW_NUMBERS and column.writing != "hours")):
        return _leave_out(column, _hint(column, said))
    if why is not None:
        return _leave_out(column, why)
    if _has_levels(column, most_levels):
        return _propose_levels(column, most_levels)
    if (
        column.form == "decimal"
        and column.all_frequent
        and 2 <= column.distinct <= FEW_NUMBERS
        and column.numbers
    ):
        return _propose_bins(column, _stand_alone(column.numbers.values.tolist(), column.decimals))
    bins = _cut(column)
    if bins is not None and column.numbers is not None:
        kept = merge_rare(bins.edges, column.numbers.count(bins.edges), least, people)
        if kept is not None:
            try:
                found = _propose_bins(column, _fit(column, Bins(kept), least))
            except SchemaError:  # a heap beside which the grid of the numbers has no room for a bin
                found = _propose_bins(column, Bins(kept))
            return replace(found, repeats=_numbers_people(column, most_levels))
    return _leave_out(column, "its values are nearly all the same")


def find_reason(column: Column, most_levels: int, people: bool = False) -> str | None:
    """Why a column is no attribute, if it is none."""
    name, many = column.name, column.distinct > ALL_DIFFERENT * column.present
    if name.strip() and column.twice:
        return "several columns have this name; rename them in the file"
    if column.form == "other":
        if column.declared.startswith("time"):
            return f"it holds {HOURS_HINT}"
        return f"its type is {column.declared}, neither text, nor a number, nor a date"
    if name.strip() and not name.isprintable():
        return "its name has invisible characters"
    if not column.present:
        return "it is empty in every row"
    spread = None if column.numbers is None else column.numbers.spread
    numbered = column.form == "whole" and many and spread is not None and spread <= 2 * column.present
    different = bool(name.strip()) and column.distinct > ALL_DIFFERENT * column.rows
    if INDEX_NAME.fullmatch(name.strip()) and (numbered or different):
        return "it numbers the rows"
    if not name.strip():
        return "it has no name; if another row is the header, say which, such as 'file.xlsx?header=2'"
    if is_id_name(name) and column.form in ("text", "whole") and column.distinct > most_levels:
        return "it looks like an id" if many else "it looks like an id, and it repeats"
    if numbered and column.present > 2 * most_levels and spread == column.present - 1:
        return "it numbers the rows"
    if column.distinct == 1 and not column.absent:
        return "it has only one value"
    if column.form == "text":
        return _find_text_reason(column, most_levels, people)
    if column.form != "boolean" and not column.all_frequent and column.numbers is None:
        return "too few rows have a value"
    return None


def _find_text_reason(column: Column, most_levels: int, people: bool) -> str | None:
    levels = [value for value, _ in column.values if _is_level(value)]
    held = sum(held for value, held in column.values[:most_levels] if _is_level(value))
    # Of people each value is held by enough; of times of the day they would be any minutes all the same.
    scattered = (not people or column.writing == "hours") and held < COVERED * column.present
    if not levels or scattered or (people and column.distinct > 20 * len(levels)):
        if column.words >= 3:
            return "it looks like free text"
        if column.distinct > max(most_levels, ALL_DIFFERENT * column.present):
            return "nearly every row has a text of its own, which may be a name or an id"
        return (
            "no value is held often enough"
            if not levels
            else "most of its texts are rare, and may be names or ids"
        )
    if len(levels) == 1 and held > 0.995 * column.present and not column.absent:
        return "nearly all of its values are the same"
    return None


def _numbers_people(column: Column, most_levels: int) -> bool:
    """Whether whole numbers without gaps are held by equally many rows each, several of them; years are not meant."""
    if column.numbers is None or column.form not in ("whole", "decimal") or column.decimals:
        return False
    values, held = column.numbers.values, column.numbers.held
    steps = len(values) > most_levels and column.numbers.spread == len(values) - 1
    even = np.mean(held == np.median(held)) >= EVENLY and np.median(held) >= 2
    return bool(steps and even and not (values[0] >= YEARS[0] and values[-1] <= YEARS[1]))


def _is_level(value: str) -> bool:
    return len(value) <= LONGEST_VALUE and is_value(value)


def _has_levels(column: Column, most_levels: int) -> bool:
    if column.form in ("text", "boolean"):
        return True
    few = column.all_frequent and 2 <= column.frequent <= min(FEW_NUMBERS, most_levels)
    if column.form == "whole":
        return few and all(is_whole(value) for value, _ in column.values)
    # Whole numbers that came as 1.0 because some are missing.
    return column.form == "decimal" and few and not column.decimals and not column.strange


def _leave_out(column: Column, why: str) -> Proposal:
    return Proposal(
        column.name, None, (f"{show(column.name)} is left out: {why}",), why.endswith("it repeats")
    )


def _hint(column: Column, said: Said) -> str:
    if column.writing == "hours":
        return f"it holds very many {HOURS_HINT}"
    if column.writing == "years":
        return "its dates have years of two digits, and 94 may be 1994 or 2094; write four in the file"
    typed = said.add(column.writing)
    return (
        f"its numbers have {describe_writing(column.writing)}; say so behind the file's name, as in {typed}"
    )


def _propose_levels(column: Column, most_levels: int) -> Proposal:
    """Levels in a sensible order: numbers by size, texts by the alphabet; everything rare is `other`."""
    name = column.name
    missing, reading = _read_missing(column, binned=False)
    if column.form == "boolean":
        attribute = Attribute.of(name, ["false", "true"], type="boolean", missing=missing, reading=reading)
        return Proposal(name, attribute, _note_missing(column))
    kept = [value for value, _ in column.values if _is_level(value)][:most_levels]
    rare = not column.all_frequent or len(kept) < column.frequent
    whole = column.form in ("whole", "decimal")
    kept, reading = (_join_numbers if whole else _join_spellings)(kept, reading)
    clock = bool(kept) and all(map(HOUR.fullmatch, kept))
    levels = sorted(kept, key=float if whole else _read_clock if clock else None)
    taken = [*map(reading.fold, levels)]
    missing = _rename("missing", taken) if missing else None
    other = _rename("other", taken) if rare else None
    attribute = Attribute.of(
        name,
        levels,
        ordered=len(levels) > 2 and (whole or clock),
        type="decimal" if column.form == "decimal" else None,
        missing=missing,
        other=other,
        reading=reading,
    )
    found = "these values were found often, all others are one level" if rare else "these values were found"
    verb = "does" if reading.ignore == ("case",) else "do"
    also = f", and {' and '.join(reading.ignore)} {verb} not matter" if reading.ignore else ""
    note = f"{show(name)}: {found}{also}; others may be possible ({REVIEW})"
    return Proposal(name, attribute, (note, *_note_missing(column)))


def _read_clock(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(":")))


def _join_spellings(kept: Sequence[str], reading: Reading) -> tuple[list[str], Reading]:
    """The values without those that differ by case or outer blanks only from a more frequent one."""
    loose = [replace(reading, ignore=ignore) for ignore in IGNORED]
    best = min(loose, key=lambda one: len({*map(one.fold, kept)}))
    first = {best.fold(value): value for value in reversed(kept)}
    if len(first) == len(kept) or any(best.fold(null) in first for null in reading.nulls):
        return list(kept), reading
    joined = [first[key] for key in dict.fromkeys(map(best.fold, kept))]
    return [value.strip(BLANKS) if "blanks" in best.ignore else value for value in joined], best


def _join_numbers(kept: Sequence[str], reading: Reading) -> tuple[list[str], Reading]:
    """Each number once, in its most frequent spelling; others, as where files were put together, are its aliases."""
    first = {float(value): value for value in reversed(kept)}
    joined = list(dict.fromkeys(first[float(value)] for value in kept))
    if len(joined) in (1, len(kept)):
        return list(kept), reading
    others = tuple((value, first[float(value)]) for value in kept if value not in joined)
    return joined, replace(reading, aliases=others)


def _propose_bins(column: Column, bins: Bins) -> Proposal:
    name = column.name
    missing, reading = _read_missing(column, binned=True)
    heaps = ", and numbers that many rows hold" if bins.points else ""
    note = (
        f"{show(name)}: round edges near its quantiles{heaps}; what lies beyond counts in the nearest bin "
        f"({REVIEW})"
    )
    if column.form in ("date", "time"):
        seconds = 86_400 if column.form == "date" else 1
        edges = [_write_edge(edge * seconds, column.form == "time") for edge in bins.edges]
        attribute = Attribute.dated(
            name, edges=edges, moments=column.form == "time", missing=missing, reading=reading
        )
    else:
        decimals = (
            None if column.form == "whole" else find_places(column.decimals, bins.edges[-1] - bins.edges[0])
        )
        attribute = Attribute.binned(
            name,
            bins,
            type="integer" if column.form == "whole" else "decimal",
            decimals=decimals,
            missing=missing,
            reading=reading,
        )
    return Proposal(name, attribute, (note, *_note_missing(column)))


def _read_missing(column: Column, *, binned: bool) -> tuple[str | None, Reading]:
    """The missing level and how cells are read; spellings of missing come from a public list."""
    missing = "missing" if column.absent or column.strange else None
    return missing, Reading.of(
        nulls=NULLS if column.spelled else (),
        outside="nearest" if binned else "refuse",
        order=("dmy" if column.days_first else "mdy") if column.slashed else None,
    )


def _note_missing(column: Column) -> tuple[str, ...]:
    name = show(column.name)
    notes = []
    if column.absent:
        notes.append(f"{name} has empty cells, so they get a level ({REVIEW})")
    if column.strange:
        notes.append(f"{name} has cells of another kind, which count as missing ({REVIEW})")
    if column.slashed:
        notes.append(
            f"{name}: 1/2/2020 is read with the {'day' if column.days_first else 'month'} first ({REVIEW})"
        )
    return tuple(notes)


def _rename(level: str, taken: Sequence[str]) -> str:
    while level in taken:
        level = f"{level} value"
    return level


def _cut(column: Column) -> Bins | None:
    """Bins between the ends that enough rows (or people) reach."""
    numbers = column.numbers
    if numbers is None or numbers.high <= numbers.low:
        return None
    quantiles = numbers.quantiles(SHARES)
    edges: Sequence[float] | None
    if column.form in ("date", "time"):
        edges = cut_dates(quantiles, numbers.low, numbers.high, moments=column.form == "time")
    else:
        places = 0 if column.form == "whole" else column.decimals
        edges = cut_quantiles(
            quantiles, numbers.low, numbers.high, grain=10.0**-places if places <= MOST_PLACES else 0.0
        )
        if edges is not None and places > MOST_PLACES:
            edges = thin(_move_between(edge, numbers) for edge in edges)
    try:
        return None if edges is None else Bins(tuple(edges))
    except SchemaError:
        return None


def _stand_alone(values: Sequence[float], places: int) -> Bins:
    """A bin for each of a few values, which stands for it."""
    end = values[-1] + 10.0 ** -min(MOST_PLACES, places) / 2
    return Bins((*values, float(f"{end:.12g}")), points=tuple(values))


def _fit(column: Column, bins: Bins, least: int) -> Bins:
    """Bins of numbers with heaps and lopsided ones cut; dates as they are."""
    if column.numbers is None or column.form in ("date", "time"):
        return bins
    width = bins.edges[-1] - bins.edges[0]
    places = 0 if column.form == "whole" else find_places(column.decimals, width)
    # Numbers closer than a billionth of the range are told apart by nobody.
    grain = max(10.0**-places, width * 1e-9)
    try:
        return fit_bins(bins, column.numbers, grain, least, count_between(column.numbers, least))
    except SchemaError:  # numbers that differ by less than edges can
        return bins


def _move_between(edge: float, numbers: Numbers) -> float:
    """An edge halfway between two neighbouring numbers that many rows hold, so that each is inside its bin."""
    place = int(np.searchsorted(numbers.values, edge))
    if not 0 < place < len(numbers.values):
        return edge
    shares = numbers.held[place - 1 : place + 1] / numbers.held.sum()
    if (
        shares.min() < MANY or shares.max() > 1 / BINS
    ):  # a number that holds a bin's share has a bin of its own
        return edge
    low, high = float(numbers.values[place - 1]), float(numbers.values[place])
    return round_near((low + high) / 2, (high - low) / 4)


def merge_rare(
    edges: Sequence[float], held: Sequence[int], least: int, people: bool
) -> tuple[float, ...] | None:
    """The edges without those beside a bin that too few hold; people of two bins may be the same ones."""
    edges, counts = list(edges), list(held)
    while len(counts) > 1 and min(counts) < least:
        i = counts.index(min(counts))
        j = i + 1 if i == 0 or (i + 1 < len(counts) and counts[i + 1] < counts[i - 1]) else i - 1
        first, second = min(i, j), max(i, j)
        # An outer bin that is too rare goes with its edge: the end is pulled in, and the nearest bin takes the rest.
        joined = max(counts[first], counts[second]) if people else counts[first] + counts[second]
        if i == 0:
            del edges[0]
        elif i == len(counts) - 1:
            del edges[-1]
        else:
            del edges[second]
        counts[first : second + 1] = [joined]
    return thin(edges) if len(counts) > 1 and min(counts) >= least else None


def _write_edge(seconds: float, moments: bool) -> str:
    if moments:
        return str(datetime(1970, 1, 1) + timedelta(seconds=int(seconds)))
    return str(date(1970, 1, 1) + timedelta(days=int(seconds // 86_400)))
