"""The default engine: rows become small integers once, and every request is counted from those."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.core.counter import Numbers, Sample
from discreet.rows.engines.kept_codes import KeptCodes, Shelf
from discreet.rows.limits import Limits
from discreet.rows.readers.batches import Batch, Reader
from discreet.rows.readers.duck import DuckReader, open_reader
from discreet.rows.readers.recoded import CappedReader, RecodedReader
from discreet.values.errors import AirlockError, DataError, TooLarge
from discreet.values.schema import Schema
from discreet.values.schema.encoding import Encoding
from discreet.values.table import CountedTables, Table
from discreet.values.text import list_some, show
from discreet.values.unit import Unit

MOST_SAMPLED = 2**27
"""A sample of fixed size takes a 64-bit key for every row while it is drawn."""


Held = tuple[dict[str, npt.NDArray[Any]], npt.NDArray[np.int64] | None]
"""The codes of every attribute, and the weights of the rows if there are any."""


class CodedCounter:
    """Counts from codes: held in memory if they fit the limit, else read again, in batches, for each request."""

    def __init__(
        self,
        reader: Reader,
        schema: Schema,
        *,
        weighted: bool,
        limits: Limits,
        numbers: Sequence[str] = (),
        texts: Sequence[str] = (),
        people: Unit | None = None,
    ) -> None:
        """Read every row once, so that a bad one is refused before anything is asked of the counter."""
        self._reader, self._schema, self._limits = reader, schema, limits
        self._weighted = weighted or (people is not None and people.average)
        self._closed = False
        self._packed: dict[str, npt.NDArray[np.uint64]] = {}
        self._known = CountedTables(schema.sizes)
        self._stamp = reader.stamp()
        self._rows, self._units, self._held = self._load(people)
        self._numbers = tuple(numbers)
        # Counted now: what does not fit the memory is refused before a debit, and a person's rows are bounded once.
        self._values = dict(zip(texts, self._count_texts(texts, people), strict=True)) if texts else {}
        if numbers:
            for _ in reader.read_numbers(numbers):
                pass

    @classmethod
    def open(
        cls,
        data: Any,
        schema: Schema,
        *,
        weight: str | None,
        limits: Limits,
        numbers: Sequence[str] = (),
        texts: Sequence[str] = (),
        unit: Unit = Unit.ADD_REMOVE,
        codes: str | os.PathLike[str] | None = None,
    ) -> CodedCounter:
        """A counter over a path, a `(connection, table)` pair, an Arrow table or dataset, or a frame.

        With a folder for `codes`, they are kept there, and taken from there if they are of the same content.
        """
        if codes is not None and (numbers or texts):
            raise DataError("kept codes hold no numbers and no texts: leave out --codes")
        shelf = None if codes is None else Shelf.of(codes, data, schema, weight, unit)
        if shelf is not None and (kept := shelf.find()) is not None:
            return cls(kept, schema, weighted=shelf.weighted, limits=limits)
        reader = open_reader(data, schema, weight, limits, (*numbers, *texts), unit.person)
        shown = CappedReader(reader, unit.at_most) if unit.weight else reader
        people = unit if unit.person else None
        try:
            if shelf is not None and people is None:  # kept while they are read for the first time
                return cls(cls._keep(shelf, shown), schema, weighted=shelf.weighted, limits=limits)
            counter = cls(
                shown,
                schema,
                weighted=weight is not None,
                limits=limits,
                numbers=numbers,
                texts=texts,
                people=people,
            )
            if shelf is None:
                return counter
            return cls(cls._keep(shelf, counter), schema, weighted=shelf.weighted, limits=limits)
        except BaseException:
            reader.close()
            raise

    @staticmethod
    def _keep(shelf: Shelf, rows: Reader | CodedCounter) -> KeptCodes:
        """The codes of all rows, now in a file."""
        kept = shelf.keep(rows.read(shelf.schema.names))
        rows.close()
        return kept

    @property
    def rows(self) -> int:
        """The true number of rows, or the sum of the weights."""
        return self._units

    @property
    def in_memory(self) -> bool:
        """Whether the codes are held, or read again for each request."""
        return self._held is not None

    def check(self, sets: Sequence[Sequence[str]], sample: Sample | None = None) -> None:
        """Refuse what `count` would refuse, without touching a row."""
        self._limits.require_request(self._schema, sets)
        if sample is None:
            return
        if self._weighted:
            raise DataError(f"{self._reader.label}: rows with weights cannot be sampled")
        if sample.unit == Unit.REPLACE_ONE and self._rows > MOST_SAMPLED:
            raise TooLarge(f"a sample of fixed size takes at most {MOST_SAMPLED:,} rows")
        sample.require_rows(self._rows)

    def count(self, sets: Sequence[Sequence[str]], sample: Sample | None = None) -> list[Table]:
        """One exact int64 table for each attribute set, axes in the order asked; one pass for all of them.

        Rows that are read again for each request are not read for tables that follow from what was counted before.
        With `sample`, of a fresh and secret sample of the rows; the same sample for all sets of the request.
        """
        if self._closed:
            raise AirlockError("the data is closed; open it again")
        self.check(sets, sample)
        asked = self._limits.require_request(self._schema, sets)
        if self._held is None and sample is None:
            self._require_unchanged()
            return self._known.count(asked, self._count)
        return self._count(asked, sample)

    def _count(self, asked: Sequence[tuple[str, ...]], sample: Sample | None = None) -> list[Table]:
        from discreet.rows.engines.kernels import Tally, count_packed, suits

        names = [name for name in self._schema.names if any(name in members for members in asked)]
        chosen = None if sample is None else sample.draw(self._rows)
        if not names:  # the table without axes is the number of rows, or of those in the sample
            total = self._units if chosen is None else np.count_nonzero(chosen)
            return [Table((), np.array(total, dtype=np.int64)) for _ in asked]
        place = {name: i for i, name in enumerate(names)}
        sizes = [self._schema[name].size for name in names]
        places = [[place[name] for name in members] for members in asked]
        if chosen is None and self._held is not None and not self._weighted and suits(sizes, places):
            columns = self._pack(names)
            counted = count_packed(columns, self._rows, places)
            return [Table(members, values) for members, values in zip(asked, counted, strict=True)]
        tally = Tally(
            sizes,
            places,
            weighted=self._weighted,
            threads=self._limits.threads,
            rows=self._rows,
            most_cells=self._limits.cells - sum(math.prod(sizes[i] for i in members) for members in places),
        )
        rows = 0
        for batch in self.read(names):
            if chosen is None:
                tally.add(batch.codes, batch.weights)
            else:
                kept = chosen[rows : rows + batch.rows]
                tally.add([np.ascontiguousarray(column[kept]) for column in batch.codes], None)
            rows += batch.rows
        if rows != self._rows:
            raise DataError(
                f"{self._reader.label}: {rows:,} rows now, {self._rows:,} when it was opened; open it again"
            )
        return [Table(members, values) for members, values in zip(asked, tally.finish(), strict=True)]

    def check_numbers(self, names: Sequence[str]) -> None:
        """Refuse a column that was not opened as a number."""
        for name in names:
            if name not in self._numbers:
                opened = list_some(self._numbers) if self._numbers else "none"
                raise DataError(f"cannot sum {show(name)}; columns opened as numbers: {opened}")

    def read_numbers(self, names: Sequence[str]) -> Iterator[Numbers]:
        """The values of number columns, read again in batches."""
        if self._closed:
            raise AirlockError("the data is closed; open it again")
        self.check_numbers(names)
        self._require_unchanged()
        yield from self._reader.read_numbers(names)
        self._require_unchanged()

    def count_values(self, columns: Sequence[str]) -> list[dict[str, int]]:
        """How many rows hold which text, of at most so many rows of a person as the unit says."""
        if self._closed:
            raise AirlockError("the data is closed; open it again")
        for name in columns:
            if name not in self._values:
                opened = list_some(self._values) if self._values else "none"
                raise DataError(f"cannot count the values of {show(name)}; columns opened for that: {opened}")
        return [dict(self._values[name]) for name in columns]

    def _count_texts(self, texts: Sequence[str], people: Unit | None) -> list[dict[str, int]]:
        reader = self._reader if people is None else self._reader.bound(people)
        if self._weighted or not isinstance(reader, DuckReader):
            raise DataError(
                f"{reader.label}: values that nobody declared can be found only in a file, an Arrow table or DuckDB, "
                "and not with weights"
            )
        return reader.count_values(texts)

    def encode(self, encoding: Encoding) -> CodedCounter:
        """The same rows over the attributes of an encoding's view; what it keeps of them comes on top."""
        if encoding.schema != self._schema:
            raise DataError(f"{self._reader.label}: the encoding belongs to another schema")
        reader = RecodedReader(self._reader.label, self.read, encoding)
        return CodedCounter(reader, encoding.view, weighted=self._weighted, limits=self._limits)

    def close(self) -> None:
        """Forget the codes and let go of the file or connection."""
        self._held, self._packed, self._values, self._closed = None, {}, {}, True
        self._known.forget()
        self._reader.close()

    def read(self, names: Sequence[str]) -> Iterator[Batch]:
        """The codes of these attributes of every row, from memory or read again."""
        if self._closed:
            raise AirlockError("the data is closed; open it again")
        if self._held is not None:
            codes, weights = self._held
            yield Batch(self._rows, [codes[name] for name in names], weights)
            return
        self._require_unchanged()
        yield from self._reader.read(names)
        self._require_unchanged()

    def _pack(self, names: Sequence[str]) -> list[npt.NDArray[np.uint64]]:
        """The columns of two-level attributes as bits, an eighth of their codes, kept for the next request."""
        from discreet.rows.engines.kernels import pack

        assert self._held is not None
        for name in names:
            if name not in self._packed:
                self._packed[name] = pack(self._held[0][name])
        return [self._packed[name] for name in names]

    def _load(self, unit: Unit | None) -> tuple[int, int, Held | None]:
        """Count the rows and keep their codes if they fit; of people only as many rows as the unit says."""
        names = self._schema.names
        width = sum(attribute.dtype.itemsize for attribute in self._schema) + 8 * self._weighted
        kept: list[Batch] | None = []
        rows = units = 0
        batches: Iterable[Batch] = self._reader.read(names)
        if isinstance(self._reader, KeptCodes) and self._reader.rows * width > self._limits.codes:
            kept, batches, rows, units = None, (), self._reader.rows, self._reader.units
            self._limits.require_rows(self._reader.label, max(rows, units))
        for batch in batches:
            rows += batch.rows
            units += batch.rows if batch.weights is None else int(batch.weights.sum())
            self._limits.require_rows(self._reader.label, max(rows, units))
            if kept is not None:
                kept.append(batch)
                if rows * (width + 24 * (unit is not None)) > self._limits.codes:
                    kept = None
        # Of a view, that was seen before; and nothing that rows hold, or do not, makes a total schema refuse.
        if not units and not self._schema.total and not isinstance(self._reader, RecodedReader):
            what = "no rows" if not rows else f"no weight in any of its {rows:,} rows"
            raise DataError(f"{self._reader.label}: {what}; at least 1 is needed")
        self._require_unchanged()
        if unit is None:
            return rows, units, None if kept is None else self._join(kept)
        if kept is None:
            self._reader = self._reader.bound(unit)
            # All columns, as no request needs more: what does not fit the memory is refused now, and not after a debit.
            rows = units = 0
            for batch in self._reader.read(names):
                rows += batch.rows
                units += batch.rows if batch.weights is None else int(batch.weights.sum())
            self._limits.require_rows(self._reader.label, units)
            return rows, units, None
        return self._bound(kept, unit)

    def _bound(self, kept: list[Batch], unit: Unit) -> tuple[int, int, Held]:
        """The codes with at most so many rows of each person; rows without an id are left out."""
        from discreet.rows.people import choose_rows, weigh_rows

        none = np.empty((0, 2), dtype=np.uint64)
        people = np.concatenate([none, *(batch.people for batch in kept if batch.people is not None)])
        chosen = choose_rows(people, unit.at_most)
        codes, _ = self._join(kept)
        held = {name: column[chosen] for name, column in codes.items()}
        rows = int(np.count_nonzero(chosen))
        if not unit.average:
            return rows, rows, (held, None)
        weights = weigh_rows(people, chosen, unit.grain)
        units = int(weights.sum())
        self._limits.require_rows(self._reader.label, units)
        return rows, units, (held, weights)

    def _join(self, kept: list[Batch]) -> Held:
        codes: dict[str, npt.NDArray[Any]] = {}
        # Popped from the end, so that nothing is held twice for long.
        for name in reversed(self._schema.names):
            none = np.empty(0, dtype=self._schema[name].dtype)
            codes[name] = np.concatenate([none, *(batch.codes.pop() for batch in kept)])
        weights = [batch.weights for batch in kept if batch.weights is not None]
        return codes, np.concatenate(weights) if weights else None

    def _require_unchanged(self) -> None:
        if self._reader.stamp() != self._stamp:
            raise DataError(f"{self._reader.label}: the data changed after it was opened; open it again")
