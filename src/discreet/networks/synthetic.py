"""Synthetic rows: drawn only when asked for, as codes, Arrow or frames, or slice by slice into a file."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.compute.inference import Engine
from discreet.compute.sampling import (
    COMPILED_FROM,
    Sampler,
    Seed,
    cut_rows,
    open_stream,
    prepare,
    require_rows,
)
from discreet.networks.formats.synthetic_files import write_rows
from discreet.values.errors import MissingExtra, SchemaError, TooLarge
from discreet.values.schema import Attribute, Schema
from discreet.values.table import Array, Table

CHUNK = 2**17
"""Rows drawn and written at a time; 5 MB of codes for 40 attributes."""

RETRIES = 8
"""How often a row is drawn again whose bits spell no level [004 does not say what to do with it]."""

_NUMBERS_KEY = 0x6E756D73
"""Sets the streams of numbers within bins apart from those of the codes."""


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """n synthetic rows that exist only while they are looked at; every look shows the same ones.

    What is `hidden`, such as the bits of a code, is drawn on the way to the rest and not shown. `spelling` says which
    values of them spell a level; a row in which some do not is drawn again, up to `RETRIES` times, and then taken as it
    is: its level is the one that the network draws for such bits.
    """

    schema: Schema
    sampler: Sampler
    n: int
    hidden: frozenset[str] = frozenset()
    spelling: tuple[Table, ...] = ()

    def __post_init__(self) -> None:
        require_rows(self.n)
        drawn = {found.name: found.thresholds.shape[1] + 1 for found in self.sampler.draws}
        for name, size in drawn.items():
            if name not in self.hidden and self.schema[name].size != size:
                raise SchemaError(
                    f"attribute {name!r} has {self.schema[name].size} levels, but {size} in its table"
                )
        missing = [name for name in self.schema.names if name not in drawn]
        if missing:
            raise SchemaError(f"no table draws attribute {missing[0]!r}")

    @classmethod
    def draw(
        cls,
        schema: Schema,
        factors: Sequence[Table],
        n: int,
        *,
        rng: Seed,
        hidden: frozenset[str] = frozenset(),
        spelling: tuple[Table, ...] = (),
    ) -> Rows:
        """n rows from conditional tables in sampling order; nothing is drawn yet."""
        return cls(schema, prepare(factors, rng), require_rows(n), hidden, spelling)

    def __len__(self) -> int:
        return self.n

    def __repr__(self) -> str:
        return f"Rows({self.n:,} rows of {len(self.schema)} attributes)"

    def codes(self) -> dict[str, Array]:
        """The codes of all rows, one array for each attribute."""
        return self._slice(0, self.n)

    def chunks(self, size: int = CHUNK) -> Iterator[dict[str, Array]]:
        """The codes of consecutive slices of `size` rows, the last one perhaps shorter."""
        return (self._slice(start, stop) for start, stop in cut_rows(self.n, size))

    def arrow(self, *, numbers: bool = False) -> Any:
        """An Arrow table of dictionary columns; with `numbers`, bins become uniform draws inside them."""
        import pyarrow as pa

        batch = self._batch(0, self.n, self._numeric(numbers))
        return pa.Table.from_batches([batch])

    def pandas(self, *, numbers: bool = False) -> Any:
        """A pandas frame of categorical columns; see `arrow`."""
        _require_package("pandas")
        return self.arrow(numbers=numbers).to_pandas()

    def polars(self, *, numbers: bool = False) -> Any:
        """A Polars frame of categorical columns; see `arrow`."""
        polars = _require_package("polars")
        return polars.from_arrow(self.arrow(numbers=numbers))

    def write(
        self,
        path: str | os.PathLike[str],
        *,
        numbers: bool = False,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        """Write .csv, .parquet, .arrow or .feather, all or nothing, a slice at a time.

        Bins are written as their labels; with `numbers`, as uniform draws inside them, missing ones as nulls.
        `progress` is told the number of rows in each slice once it is written. In CSV, a text that a
        spreadsheet would run as a formula is made harmless (see `synthetic_files.neutralise`).
        """
        numeric = self._numeric(numbers)
        batches = (self._batch(start, stop, numeric) for start, stop in cut_rows(self.n, CHUNK))
        write_rows(path, self._arrow_schema(numeric), batches, progress)

    def _slice(self, start: int, stop: int) -> dict[str, Array]:
        # The whole job decides, not the slice: ten million rows in small slices are worth a compiler too.
        compiled = self.sampler.count_cells(self.n) >= COMPILED_FROM
        found = self.sampler.draw(start, stop, compiled=compiled)
        for retry in range(RETRIES):
            stray = np.flatnonzero(self._find_stray(found, stop - start))
            if not stray.size:
                break
            # Row r of another endless table, so that slices still do not matter.
            other = self.sampler.restart(retry).draw(start, stop, compiled=compiled)
            for name, column in found.items():
                column[stray] = other[name][stray]
        return {name: found[name] for name in self.schema.names}

    def _find_stray(self, codes: dict[str, Array], rows: int) -> Array:
        stray = np.zeros(rows, dtype=bool)
        for table in self.spelling:
            stray |= ~table.values[tuple(codes[name] for name in table.axes)]
        return stray

    def _numeric(self, numbers: bool) -> frozenset[str]:
        """The attributes to be written as numbers; refused at once if some bin has no uniform law."""
        found = [attribute for attribute in self.schema if numbers and attribute.bins is not None]
        for attribute in found:
            assert attribute.bins is not None
            ends = attribute.bins.edges[0], attribute.bins.edges[-1]
            if not all(math.isfinite(end) for end in ends):
                raise SchemaError(
                    f"attribute {attribute.name!r} has bins from {ends[0]:g} to {ends[1]:g}; numbers can be "
                    "drawn only between finite edges, so declare those or write the bins as labels"
                )
        return frozenset(attribute.name for attribute in found)

    def _arrow_schema(self, numeric: frozenset[str]) -> Any:
        import pyarrow as pa

        return pa.schema([(found.name, _arrow_type(found, found.name in numeric)) for found in self.schema])

    def _batch(self, start: int, stop: int, numeric: frozenset[str]) -> Any:
        import pyarrow as pa

        codes = self._slice(start, stop)
        columns = [
            self._draw_numbers(i, codes[found.name], start)
            if found.name in numeric
            else _label(found, codes[found.name])
            for i, found in enumerate(self.schema)
        ]
        return pa.record_batch(columns, schema=self._arrow_schema(numeric))

    def _draw_numbers(self, position: int, codes: Array, start: int) -> Any:
        import pyarrow as pa

        bins = self.schema.attributes[position].bins
        assert bins is not None
        absent = codes >= len(bins)
        # A missing value uses up a number too, so that row r always takes number r of the stream.
        stand_ins = np.where(absent, 0, codes)
        return pa.array(
            bins.draw(stand_ins, open_stream(self.sampler.root, (_NUMBERS_KEY, position), start)), mask=absent
        )


def weigh_stray(engine: Engine, spelling: tuple[Table, ...]) -> float:
    """At most how probable it is, before any evidence, that hidden attributes spell no level; 1 if that is unknown."""
    weight = 0.0
    for table in spelling:
        if table.values.all():
            continue
        try:
            weight += float(engine.joint(table.axes, {}).values[~table.values].sum())
        except TooLarge:
            return 1.0
    return min(1.0, weight)


def _arrow_type(attribute: Attribute, numeric: bool) -> Any:
    import pyarrow as pa

    if numeric:
        return pa.float64()
    return pa.dictionary(pa.from_numpy_dtype(attribute.dtype), pa.string(), ordered=attribute.ordered)


def _label(attribute: Attribute, codes: Array) -> Any:
    import pyarrow as pa

    levels = pa.array(attribute.levels, type=pa.string())
    return pa.DictionaryArray.from_arrays(pa.array(codes), levels, ordered=attribute.ordered)


def _require_package(name: str) -> Any:
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError:
        raise MissingExtra(f"{name} is not installed; install it, or ask for .arrow() instead") from None
