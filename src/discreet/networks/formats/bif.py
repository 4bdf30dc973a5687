"""BIF files: every public Bayesian-network repository speaks this format, so discreet reads and writes it.

BIF holds names, states and numbers only; bins, taxonomies and missing levels stay behind (the JSON of a network keeps
them). A conditional that sums to 1 within 1e-12 is read digit for digit, so what was written is read back equal; one
up to 1e-3 away is divided by its sum; any other is refused. The language: see `bif_text`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

import numpy as np

from discreet.networks.formats.bif_text import (
    STRUCTURE,
    Block,
    Tokens,
    Variable,
    format_bif_text,
    read_blocks,
    unquote,
)
from discreet.networks.network import Network
from discreet.values.errors import DiscreetError, FormatError, TooLarge
from discreet.values.files import read_text, write_text
from discreet.values.graph import DAG
from discreet.values.schema import Attribute, Schema
from discreet.values.table import Array, Table, count_cells
from discreet.values.text import show

MAX_BYTES = 2**25
"""The longest text that is read unasked, unpacked: six times the largest public network."""


def read_bif(path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> Network:
    """The network in a BIF file, plain or gzip; a malformed one is a `FormatError` with its name and line."""
    return parse_bif(read_text(path, max_bytes), os.fspath(path), max_bytes=max_bytes)


def parse_bif(text: str, source: str = "BIF text", *, max_bytes: int = MAX_BYTES) -> Network:
    """The network in a BIF text; `source` is how messages call it."""
    if len(text) > max_bytes:
        raise TooLarge(f"{source} has {len(text):,} characters; at most {max_bytes:,} are read")
    tokens, variables, blocks = read_blocks(text, source)
    cpts = tuple(
        Table((*blocks[name].parents, name), TableReader(tokens, name, variables, blocks[name]).read())
        for name in variables
    )
    attributes = []
    for name, variable in variables.items():
        try:
            attributes.append(Attribute(name, variable.levels))
        except DiscreetError as error:
            raise FormatError(f"{tokens.where(variable.place)}: {error}") from None
    return Network(
        Schema(tuple(attributes)), DAG.build({name: blocks[name].parents for name in variables}), cpts
    )


def write_bif(network: Network, path: str | os.PathLike[str]) -> None:
    """Write a network as BIF, all or nothing; packed by gzip if the name ends in .gz."""
    write_text(path, format_bif(network))


def format_bif(network: Network, made_from: str = "") -> str:
    """A network as BIF text, with the shortest decimals that read back as the same floats."""
    return format_bif_text(network.schema, network.dag, network.cpts, made_from)


SUM_TOLERANCE = 1e-3
"""How far a conditional may be from summing to 1: thirds are written 0.333. Public networks are within 3e-7."""

EXACT_TOLERANCE = 1e-12
"""A conditional this close to 1 keeps its digits; others are divided by their sum, once and for all."""

_DIGITS = re.compile(r"[0-9eE.+-]*")


class TableReader:
    """The table of one variable: a conditional, one probability for each state, for all states of the parents."""

    __slots__ = ("block", "count", "name", "parents", "shape", "size", "tokens")

    def __init__(self, tokens: Tokens, name: str, variables: dict[str, Variable], block: Block) -> None:
        self.tokens = tokens
        self.name = name
        self.block = block
        self.size = len(variables[name].levels)
        self.parents = [(parent, variables[parent].codes) for parent in block.parents]
        self.shape = [len(codes) for _, codes in self.parents]
        self.count = count_cells(self.shape)

    def read(self) -> Array:
        """The probabilities with an axis for each parent, in order, then the child's; every conditional sums to 1."""
        listed: dict[int, int] = {}  # the number of a conditional -> the place of its first probability
        table = default = -1
        for start, stop in self.block.entries:
            keyword = self.tokens.words[start]
            if keyword == "(":
                close = self.tokens.find(")", start, stop)
                number = self._locate(start + 1, close)
                if number in listed:
                    self.tokens.refuse(
                        start, f"variable {show(self.name)} has the conditional {self._label(number)} twice"
                    )
                listed[number] = self._require_count(close + 1, stop, self.size)
            elif keyword == "table" and table < 0:
                table = self._require_count(start + 1, stop, self.count * self.size)
            elif keyword == "default" and default < 0:
                default = self._require_count(start + 1, stop, self.size)
            else:
                self.tokens.refuse(
                    start, f"found {show(keyword)} where a conditional of {show(self.name)} should begin"
                )
        if table >= 0 and (listed or default >= 0):
            self.tokens.refuse(
                table, f"variable {show(self.name)} has a whole table and also single conditionals"
            )
        if table >= 0:
            # The child counts slowest in a flat table and is the last axis of ours.
            values = self._convert([table], self.count * self.size).reshape(self.size, self.count).T.copy()
        else:
            values = self._gather(listed, default)
        self._normalise(values, listed, max(table, default))
        return values.reshape([*self.shape, self.size])

    def _gather(self, listed: dict[int, int], default: int) -> Array:
        if default < 0 and len(listed) < self.count:
            gap = next(number for number in range(self.count) if number not in listed)
            self.tokens.refuse(
                self.block.place, f"variable {show(self.name)} lacks the conditional {self._label(gap)}"
            )
        values = np.empty((self.count, self.size))
        if default >= 0:
            values[:] = self._convert([default], self.size)
        if listed:
            values[list(listed)] = self._convert(list(listed.values()), self.size)
        return values

    def _locate(self, start: int, stop: int) -> int:
        if stop - start != len(self.parents):
            self.tokens.refuse(
                start - 1,
                f"a conditional of {show(self.name)} has {stop - start} states, not {len(self.parents)}",
            )
        number = 0
        for place, (parent, codes) in enumerate(self.parents, start):
            label = unquote(self.tokens.words[place])
            code = codes.get(label)
            if code is None:
                self.tokens.refuse(
                    place,
                    f"a conditional of {show(self.name)} names {show(label)}, no state of {show(parent)}",
                )
            number = number * len(codes) + code
        return number

    def _require_count(self, start: int, stop: int, count: int) -> int:
        if stop - start != count:
            # A forgotten ';' shows as a bracket among the numbers, and says more than their count does.
            for place in range(start, min(stop, start + count + 1)):
                if self.tokens.words[place] in STRUCTURE:
                    found = show(self.tokens.words[place])
                    self.tokens.refuse(
                        place, f"found {found} where ';' should end a conditional of {show(self.name)}"
                    )
            self.tokens.refuse(
                start - 1, f"a conditional of {show(self.name)} has {stop - start} numbers, not {count}"
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
            worst = int(off.argmax())
            self.tokens.refuse(
                listed.get(worst, elsewhere),
                f"the conditional {self._label(worst)} of {show(self.name)} sums to {sums[worst]:.9g}; "
                f"it must sum to 1 within {SUM_TOLERANCE:g}",
            )
        loose = off > EXACT_TOLERANCE
        values[loose] /= sums[loose, None]

    def _label(self, number: int) -> str:
        labels: list[str] = []
        for _, codes in reversed(self.parents):
            number, code = divmod(number, len(codes))
            labels.append(show(list(codes)[code]))
        return f"({', '.join(reversed(labels))})"


def _is_probability(word: str) -> bool:
    try:
        return bool(_DIGITS.fullmatch(word)) and 0.0 <= float(word) <= 1.0
    except ValueError:
        return False
