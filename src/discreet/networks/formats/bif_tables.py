"""The numbers of a BIF file: one conditional probability table from the entries of its probability block."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from discreet.networks.formats.bif_tokens import STRUCTURE, Tokens, unquote
from discreet.values.table import Array, count_cells
from discreet.values.wording import show

SUM_TOLERANCE = 1e-3
"""How far a row's sum may be from 1: thirds are written 0.333. In the public networks it is at most 3e-7."""

EXACT_TOLERANCE = 1e-12
"""A row this close to 1 keeps its digits; others are divided by their sum, once and for all."""

_DIGITS = re.compile(r"[0-9eE.+-]*")


class TableReader:
    """The table of one variable from the entries of its probability block."""

    __slots__ = ("name", "parents", "place", "rows", "shape", "size", "tokens")

    def __init__(
        self, tokens: Tokens, name: str, size: int, parents: Sequence[tuple[str, dict[str, int]]], place: int
    ) -> None:
        self.tokens = tokens
        self.name = name
        self.size = size
        self.parents = parents
        self.shape = [len(codes) for _, codes in parents]
        self.rows = count_cells(self.shape)
        self.place = place

    def read(self, entries: Sequence[tuple[int, int]]) -> Array:
        """The probabilities, every row of them summing to 1."""
        listed: dict[int, int] = {}  # row -> place of its first number
        table = default = -1
        for start, stop in entries:
            keyword = self.tokens.words[start]
            if keyword == "(":
                close = self.tokens.find(")", start, stop)
                row = self._locate(start + 1, close)
                if row in listed:
                    self.tokens.refuse(start, f"variable {show(self.name)} has row {self._label(row)} twice")
                listed[row] = self._require_count(close + 1, stop, self.size)
            elif keyword == "table" and table < 0:
                table = self._require_count(start + 1, stop, self.rows * self.size)
            elif keyword == "default" and default < 0:
                default = self._require_count(start + 1, stop, self.size)
            else:
                self.tokens.refuse(start, f"found {show(keyword)} where a row of {show(self.name)} begins")
        if table >= 0 and (listed or default >= 0):
            self.tokens.refuse(table, f"variable {show(self.name)} has a whole table and also single rows")
        if table >= 0:
            # The child counts slowest in a flat table and is the last axis of ours.
            values = self._convert([table], self.rows * self.size).reshape(self.size, self.rows).T.copy()
        else:
            values = self._gather(listed, default)
        self._normalise(values, listed, max(table, default))
        return values.reshape([*self.shape, self.size])

    def _gather(self, listed: dict[int, int], default: int) -> Array:
        if default < 0 and len(listed) < self.rows:
            gap = next(row for row in range(self.rows) if row not in listed)
            self.tokens.refuse(self.place, f"variable {show(self.name)} lacks row {self._label(gap)}")
        values = np.empty((self.rows, self.size))
        if default >= 0:
            values[:] = self._convert([default], self.size)
        if listed:
            values[list(listed)] = self._convert(list(listed.values()), self.size)
        return values

    def _locate(self, start: int, stop: int) -> int:
        if stop - start != len(self.parents):
            self.tokens.refuse(
                start - 1,
                f"a row of {show(self.name)} has {stop - start} states, not {len(self.parents)}",
            )
        row = 0
        for place, (parent, codes) in enumerate(self.parents, start):
            label = unquote(self.tokens.words[place])
            code = codes.get(label)
            if code is None:
                self.tokens.refuse(
                    place,
                    f"a row of {show(self.name)} names {show(label)}, no state of {show(parent)}",
                )
            row = row * len(codes) + code
        return row

    def _require_count(self, start: int, stop: int, count: int) -> int:
        if stop - start != count:
            # A forgotten ';' shows as a bracket among the numbers, and says more than their count does.
            for place in range(start, min(stop, start + count + 1)):
                if self.tokens.words[place] in STRUCTURE:
                    found = show(self.tokens.words[place])
                    self.tokens.refuse(
                        place, f"found {found} where ';' should end a row of {show(self.name)}"
                    )
            self.tokens.refuse(
                start - 1, f"a row of {show(self.name)} has {stop - start} numbers, not {count}"
            )
        return start

    def _convert(self, places: Sequence[int], count: int) -> Array:
        words = [word for place in places for word in self.tokens.words[place : place + count]]
        # The alphabet comes first: float() by itself also takes 'nan', '1_0' and the digits of other scripts.
        strange = not _DIGITS.fullmatch("".join(words))
        try:
            values = np.full(1, np.nan) if strange else np.array(list(map(float, words)))
        except ValueError:
            values = np.full(1, np.nan)
        if not ((values >= 0.0) & (values <= 1.0)).all():
            for i, word in enumerate(words):
                if not _is_probability(word):
                    place = places[i // count] + i % count
                    self.tokens.refuse(
                        place, f"variable {show(self.name)}: {show(word)} is not a number between 0 and 1"
                    )
        return values.reshape(len(places), count)

    def _normalise(self, values: Array, listed: dict[int, int], elsewhere: int) -> None:
        sums = values.sum(axis=1)
        off = np.abs(sums - 1.0)
        if off.max() > SUM_TOLERANCE + EXACT_TOLERANCE:
            row = int(off.argmax())
            self.tokens.refuse(
                listed.get(row, elsewhere),
                f"row {self._label(row)} of {show(self.name)} sums to {sums[row]:.9g}; "
                f"it must sum to 1 within {SUM_TOLERANCE:g}",
            )
        loose = off > EXACT_TOLERANCE
        values[loose] /= sums[loose, None]

    def _label(self, row: int) -> str:
        labels: list[str] = []
        for _, codes in reversed(self.parents):
            row, code = divmod(row, len(codes))
            labels.append(show(list(codes)[code]))
        return f"({', '.join(reversed(labels))})"


def _is_probability(word: str) -> bool:
    try:
        return bool(_DIGITS.fullmatch(word)) and 0.0 <= float(word) <= 1.0
    except ValueError:
        return False
