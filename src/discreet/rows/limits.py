"""How much one counter may hold and answer: bytes, rows, cells; checked before anything is allocated."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

from discreet.values.errors import DataError, TooLarge
from discreet.values.schema import Schema
from discreet.values.table import MAX_CELLS, require_cells
from discreet.values.text import list_some, show

DEFAULT_MEMORY = 2**30
"""Half of it for codes kept between requests, half for the tables of one request; batches come on top."""

MAX_WEIGHT = 2**31
"""The largest weight of a row."""

MAX_ROWS = 2**31 - 1
"""The most rows, or units of weight, of one table: scores and sums over so many are exact in 64 bits. More are refused
when rows are read, because a refusal after a question was paid for would tell a count."""

CELL_BYTES = 24
"""A 64-bit cell that is added up, one that goes out, and 32-bit private ones for two threads."""

_UNITS = {
    "": 1,
    "k": 10**3,
    "m": 10**6,
    "g": 10**9,
    "t": 10**12,
    "ki": 2**10,
    "mi": 2**20,
    "gi": 2**30,
    "ti": 2**40,
}


MOST_MEMORY = 10**15
"""More than any machine has."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a counter may use: bytes of memory, rows of input, threads."""

    memory: int = DEFAULT_MEMORY
    rows: int = MAX_ROWS
    threads: int | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.memory <= MOST_MEMORY:
            raise DataError(
                f"the memory limit must be between 1 byte and 1 PB, not {show(self.memory)} bytes"
            )
        if not 1 <= self.rows <= MAX_ROWS:
            raise DataError(f"the limit on rows must lie between 1 and {MAX_ROWS:,}, not {self.rows:,}")
        if self.threads is not None and self.threads < 1:
            raise DataError(f"the number of threads must be at least 1, not {self.threads}")

    @property
    def codes(self) -> int:
        """The bytes of codes that are kept between requests; more are read again for each request."""
        return self.memory // 2

    @property
    def cells(self) -> int:
        """The most cells that the tables of one request may have together."""
        return max(2**16, self.memory // 2 // CELL_BYTES)

    def require_rows(self, label: str, rows: int) -> None:
        """Refuse more rows than allowed."""
        if rows > self.rows:
            raise TooLarge(f"{label} has at least {rows:,} rows; at most {self.rows:,} are allowed")

    def require_request(self, schema: Schema, sets: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
        """The attribute sets of a request; an unknown or repeated attribute or too many cells are refused."""
        found = []
        total = 0
        sizes, most = schema.sizes, min(MAX_CELLS, self.cells)
        for members in sets:  # of which a search asks for a hundred thousand
            if isinstance(members, tuple) and sizes.keys() >= (distinct := set(members)):
                cells = math.prod(map(sizes.__getitem__, members))
                if cells <= most and len(distinct) == len(members):
                    total += cells
                    found.append(members)
                    continue
            if isinstance(members, str):
                raise DataError(f"an attribute set must be a list of names, not the text {show(members)}")
            names = tuple(members)
            for name in names:
                if name not in schema:
                    raise DataError(
                        f"unknown attribute {show(name)}; the schema has {list_some(schema.names, name)}"
                    )
            if len(set(names)) != len(names):
                raise DataError(f"the attribute set {names} names an attribute twice")
            what = f"the table over {list_some(names)}"
            total += require_cells(what, (sizes[name] for name in names), most)
            found.append(names)
        if total > self.cells:
            raise TooLarge(
                f"{len(found)} tables would have {total:,} cells; at most {self.cells:,} fit into the memory limit of "
                f"{self.memory:,} bytes: raise it (--memory), or ask for less at a time"
            )
        return found


def choose_threads(threads: int | None = None) -> int:
    """The number of threads to use: what was asked, else one for each core that this process may run on."""
    if threads is not None:
        return threads
    allowed = getattr(os, "sched_getaffinity", None)  # not on every system
    return len(allowed(0)) if allowed is not None else os.cpu_count() or 1


def read_memory(memory: int | str | None) -> int:
    """A number of bytes from 2**30, '512MB' (10⁶ bytes each) or '1GiB' (2³⁰ bytes); None is the default."""
    if memory is None:
        return DEFAULT_MEMORY
    if isinstance(memory, int) and not isinstance(memory, bool):
        return memory
    found = (
        re.fullmatch(r"([0-9]{1,18}(?:\.[0-9]{1,9})?) ?([kmgt]i?)?b?", memory.strip().lower())
        if isinstance(memory, str)
        else None
    )
    if found is None:
        raise DataError(f"memory {show(memory)} is not a size; write bytes as 500000000, '512MB' or '1GiB'")
    return int(float(found[1]) * _UNITS[found[2] or ""])
