"""Synthetic rows: drawn only when asked for, as codes, Arrow or frames, or slice by slice into a file."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from discreet.compute.balancing import draw_balanced
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
from discreet.networks.formats.synthetic_files import Column, Encode, Form, write_rows
from discreet.values.errors import FormatError, MissingExtra, SchemaError, TooLarge
from discreet.values.schema import Schema
from discreet.values.schema.draws import draw_values
from discreet.values.table import Array, Table
from discreet.values.text import show_bytes

CHUNK = 2**17
"""Rows drawn and written at a time; 5 MB of codes for 40 attributes."""

MOST_WORKERS = 4
"""Threads that draw ahead of the one that writes, which more would not make faster."""

RETRIES = 8
"""How often a row is drawn again whose bits spell no level [004 does not say what to do with it]."""

_NUMBERS_KEY = 0x6E756D73
"""Sets the streams of numbers within bins apart from those of the codes."""


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """n synthetic rows that exist only while they are looked at; every look shows the same ones.

    What is `hidden`, such as the bits of a code, is drawn on the way to the rest and not shown. `spelling` says which
    values of them spell a level; a row in which some do not is drawn again, up to `RETRIES` times, and then taken as it
    is: its level is the one that the network draws for such bits. `balanced` rows follow the network as closely as n
    rows can (see `compute.balancing`); else they are independent draws.
    """

    schema: Schema
    sampler: Sampler
    n: int
    hidden: frozenset[str] = frozenset()
    spelling: tuple[Table, ...] = ()
    balanced: bool = False

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
        balanced: bool = False,
    ) -> Rows:
        """n rows from conditional tables in sampling order; nothing is drawn yet."""
        return cls(schema, prepare(factors, rng), require_rows(n), hidden, spelling, balanced)

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

    def arrow(self, *, labels: bool = False) -> Any:
        """An Arrow table of values of the columns' own types; with `labels`, of the levels' labels, as dictionaries.

        Inside a bin a value is drawn uniformly; missing values are nulls, and so are other values unless they are text.
        """
        import pyarrow as pa

        return pa.Table.from_batches([self._batch(0, self.n, "labels" if labels else "values")])

    def pandas(self, *, labels: bool = False) -> Any:
        """A pandas frame; see `arrow`. Whole numbers and booleans that can be missing have pandas' nullable types."""
        pandas = _require_package("pandas")
        table = self.arrow(labels=labels)
        frame = table.to_pandas(date_as_object=False)
        if not labels:
            import pyarrow as pa

            # Days would come in milliseconds, a unit in which pandas itself never reads them.
            for field in table.schema:
                if pa.types.is_date(field.type):
                    frame[field.name] = frame[field.name].astype("datetime64[us]")
            kinds = {pa.int64(): pandas.Int64Dtype(), pa.bool_(): pandas.BooleanDtype()}
            for found in self._list_columns():
                if found.nullable and table.schema.field(found.name).type in kinds:
                    frame[found.name] = table[found.name].to_pandas(types_mapper=kinds.get)
        return frame

    def polars(self, *, labels: bool = False) -> Any:
        """A Polars frame; see `arrow`."""
        polars = _require_package("polars")
        return polars.from_arrow(self.arrow(labels=labels))

    def write(
        self,
        path: str | os.PathLike[str],
        *,
        labels: bool = False,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        """Write .csv, .parquet, .arrow or .feather, all or nothing, a slice at a time.

        Values have the types of the columns; with `labels`, they are the labels of the levels. `progress` is told the
        number of rows in each slice once it is written. In CSV, a text that a spreadsheet would run as a formula is
        made harmless (see `synthetic_files.neutralise`).
        """
        # Cells of a few levels are spelt once in CSV, so they stay codes with a list.
        forms: dict[str, Form] = {".csv": "cells", ".parquet": "stored"}
        form: Form = "labels" if labels else forms.get(Path(path).suffix.lower(), "values")
        schema = self._batch(0, 0, form).schema
        write_rows(path, schema, lambda encode: self._draw_ahead(form, encode), progress, form=form)

    def require_room(self, path: str | os.PathLike[str], *, labels: bool = False, tables: int = 1) -> int:
        """About how many bytes `write` would write, if there is room for as many on the disk; else it is refused."""
        place = Path(path)
        if not place.parent.is_dir():
            raise FormatError(f"{place.parent}: no such folder")
        some = min(self.n, CHUNK)
        with tempfile.TemporaryDirectory(prefix="discreet-rows-") as folder:
            sample = Path(folder) / f"rows{place.suffix}"
            replace(self, n=some).write(sample, labels=labels)
            needed = sample.stat().st_size * self.n * tables // some
        free = shutil.disk_usage(place.parent).free
        if needed > free:
            raise TooLarge(
                f"{place}: {self.n * tables:,} rows take about {show_bytes(needed)}, and {show_bytes(free)} are free "
                "there; draw fewer (--rows), or write them to another disk"
            )
        return needed

    def _draw_ahead(self, form: Form, encode: Encode) -> Generator[tuple[int, Any]]:
        """The batches in order, encoded, a few of them by other threads while the last one is written."""
        cuts = cut_rows(self.n, CHUNK)
        workers = min(MOST_WORKERS, os.cpu_count() or 1)

        def make(start: int, stop: int, threads: int | None = None) -> tuple[int, Any]:
            return stop - start, encode(self._batch(start, stop, form, threads=threads))

        if workers == 1 or self.n <= CHUNK:
            yield from (make(start, stop) for start, stop in cuts)
            return
        with ThreadPoolExecutor(workers) as pool:
            waiting: deque[Future[Any]] = deque()
            for start, stop in cuts:
                waiting.append(pool.submit(make, start, stop, 1))
                if len(waiting) > workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()

    def _slice(self, start: int, stop: int, threads: int | None = None) -> dict[str, Array]:
        # The whole job decides, not the slice: ten million rows in small slices are worth a compiler too.
        compiled = self.sampler.count_cells(self.n) >= COMPILED_FROM
        if self.balanced:
            found = draw_balanced(self.sampler, self.n, start, stop, compiled=compiled)
        else:
            found = self.sampler.draw(start, stop, threads=threads, compiled=compiled)
        for retry in range(RETRIES):
            stray = np.flatnonzero(self._find_stray(found, stop - start))
            if not stray.size:
                break
            # Row r of another endless table, so that slices still do not matter.
            other = self.sampler.restart(retry).draw(start, stop, threads=threads, compiled=compiled)
            for name, column in found.items():
                column[stray] = other[name][stray]
        return {name: found[name] for name in self.schema.names}

    def _find_stray(self, codes: dict[str, Array], rows: int) -> Array:
        stray = np.zeros(rows, dtype=bool)
        for table in self.spelling:
            stray |= ~table.values[tuple(codes[name] for name in table.axes)]
        return stray

    def _list_columns(self) -> list[Column]:
        return [*map(Column.of, self.schema), *map(Column.following, self.schema.follows)]

    def _batch(self, start: int, stop: int, form: Form, threads: int | None = None) -> Any:
        import pyarrow as pa

        codes = self._slice(start, stop, threads)
        drawn: dict[str, Array] = {}
        if form != "labels":
            # A missing value uses up a number too, so that row r always takes number r of the stream.
            shares = {
                found.name: open_stream(self.sampler.root, (_NUMBERS_KEY, i), start).random(stop - start)
                for i, found in enumerate(self.schema)
                if found.bins is not None or self.schema.constraints
            }
            drawn = draw_values(self.schema, codes, shares)
        for found in self.schema.follows:
            places = found.lookup(self.schema)[tuple(codes[name] for name in found.sources)]
            codes[found.name] = np.where(places < 0, len(found.values), places)
        columns = self._list_columns()
        arrays = [found.make(form, codes[found.name], drawn.get(found.name)) for found in columns]
        return pa.record_batch(arrays, names=[found.name for found in columns])


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


def _require_package(name: str) -> Any:
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError:
        raise MissingExtra(f"{name} is not installed; install it, or ask for .arrow() instead") from None
