"""Columns that follow from others: each level of one always stands beside the same level of the other.

Looked for first among some rows, where most pairs already fail, and then confirmed on all rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.rows.draft.profile import Column
from discreet.values.schema import Attribute

SOME_ROWS = 2000


@dataclass(frozen=True, slots=True)
class Dependence:
    """Every level of `source` always comes with the same value of `column`."""

    column: str
    source: str
    pairs: tuple[tuple[str, str], ...]
    mutual: bool
    """Whether the source follows from the column as well."""


def find_dependences(columns: Sequence[Column], attributes: Sequence[Attribute | None]) -> list[Dependence]:
    """For each column that follows from another one the source with the fewest levels; sources follow from none.

    Only columns take part all of whose values are held often enough, so every pair that is written is held as often.
    """
    parts = [
        column
        for column, attribute in zip(columns, attributes, strict=True)
        if attribute is not None
        and attribute.bins is None
        and attribute.type != "boolean"
        and not attribute.reading.ignore
        and column.codes is not None
        and column.all_frequent
        and not column.absent
    ]
    some = [column.codes[:SOME_ROWS] for column in parts if column.codes is not None]
    confirmed = [
        (i, j)
        for i, first in enumerate(some)
        for j in _find_followers(first, some, [column.distinct for column in parts], i)
        if _follows(parts[i].codes, parts[j].codes)
    ]
    return _choose(parts, confirmed)


def _find_followers(source: Any, others: Sequence[Any], sizes: Sequence[int], at: int) -> Iterator[int]:
    """The columns of which these rows do not show that they do not follow."""
    stand_in = _find_first(source)[source]
    for j, column in enumerate(others):
        if at != j and sizes[at] >= sizes[j] and np.array_equal(column, column[stand_in]):
            yield j


def _follows(source: Any, column: Any) -> bool:
    return bool(np.array_equal(column, column[_find_first(source)[source]]))


def _find_first(codes: Any) -> Any:
    """For each code a row that holds it."""
    first = np.zeros(int(codes.max()) + 1, dtype=np.int64)
    first[codes] = np.arange(len(codes))
    return first


def _choose(columns: Sequence[Column], confirmed: Sequence[tuple[int, int]]) -> list[Dependence]:
    """One source for each column; of two that follow from each other the second follows from the first."""
    both = set(confirmed)
    chosen: dict[int, int] = {}
    for i, j in sorted(confirmed, key=lambda pair: (columns[pair[0]].distinct, pair)):
        mutual = (j, i) in both
        if i in chosen or j in chosen or j in chosen.values() or (mutual and i > j):
            continue
        chosen[j] = i
    return [
        Dependence(columns[j].name, columns[i].name, _pair(columns[i], columns[j]), (j, i) in both)
        for j, i in sorted(chosen.items())
    ]


def _pair(source: Column, column: Column) -> tuple[tuple[str, str], ...]:
    assert source.codes is not None and column.codes is not None
    texts = source.texts, column.texts
    found = {
        (texts[0][int(a)], texts[1][int(b)])
        for a, b in np.unique(np.column_stack([source.codes, column.codes]), axis=0)
    }
    return tuple(sorted(found))
