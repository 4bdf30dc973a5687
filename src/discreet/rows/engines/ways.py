"""Ways to count coded rows that an engine holds: by its grouping sets, from its distinct rows, by Spark's executors.

All give the same integers. Which one is taken follows from the engine and the memory limit, and shows in nothing that
is published.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from discreet.core.counter import Sample
from discreet.rows.engines.coded import CodedCounter
from discreet.rows.limits import Limits
from discreet.rows.readers.recoded import CodesReader
from discreet.values.errors import DataError
from discreet.values.schema import Schema
from discreet.values.schema.encoding import Encoding
from discreet.values.table import Table
from discreet.values.unit import Unit

Counts = npt.NDArray[np.int64]
Set = tuple[int, ...]
"""Places of attributes in the schema, in order."""

FAN = 32
"""Tables that are added up in one place; more go through one more level of the tree."""
DRIVER_BYTES = 2**27
"""Bytes of tables that come to the driver at a time, unless those of two parts are more."""
COINS = 2**24
"""Coins that are thrown at a time for a secret sample."""
FEW_BLOCKS = 16
"""Blocks of codes that Spark hands to a task at a time: by default it would be ten thousand."""


class Way(Protocol):
    """Something that counts the coded rows of one table."""

    def count(self, sets: Sequence[Set]) -> list[Counts]:
        """One table for each set, none of them empty."""

    def encode(self, encoding: Encoding) -> Way:
        """The same rows over the attributes of an encoding's view."""

    def close(self) -> None:
        """Let go of what is held."""


@dataclass(frozen=True, slots=True, eq=False)
class GroupingSets:
    """One query for all sets, which multiplies the rows by their number: what every engine can do."""

    label: str
    schema: Schema
    coded: Any
    """The Ibis table of codes c0, c1, … and perhaps weights w; −1 where a row went bad after it was checked."""
    units: int

    def count(self, sets: Sequence[Set]) -> list[Counts]:
        """One table for each set; refused if the rows are others than those that were checked."""
        used = sorted({i for members in sets for i in members})
        grouping = ", ".join(f"({', '.join(f'c{i}' for i in members)})" for members in sets)
        answer = self._group(used, f"GROUP BY GROUPING SETS ({grouping})")
        keys = np.column_stack([as_codes(answer[f"c{i}"]) for i in used])
        amounts = as_codes(answer["n"])
        if (keys == -1).any():
            raise self.refuse_change()
        present = keys >= 0
        found = []
        for members in sets:
            chosen = (present == [i in members for i in used]).all(axis=1)
            cells = np.zeros([self.schema.attributes[i].size for i in members], dtype=np.int64)
            cells[tuple(keys[chosen][:, used.index(i)] for i in members)] = amounts[chosen]
            if cells.sum() != self.units:
                raise self.refuse_change()
            found.append(cells)
        return found

    def encode(self, encoding: Encoding) -> GroupingSets:
        """The codes of the view, looked up by the engine."""
        place = {name: i for i, name in enumerate(self.schema.names)}
        columns = {}
        for i, name in enumerate(encoding.view.names):
            column, derived = self.coded[f"c{place[encoding.source(name)]}"], encoding.find(name)
            columns[f"c{i}"] = column if derived is None else _look_up(column, derived.codes)
        if "w" in self.coded.columns:
            columns["w"] = self.coded["w"]
        return replace(self, schema=encoding.view, coded=self.coded.select(**columns))

    def close(self) -> None:
        """Nothing is held."""

    def fetch_distinct(self, limits: Limits) -> CodedCounter | None:
        """The distinct coded rows, and how often each is there, if they fit the memory limit; None if not.

        Every table is then counted from them here, as if they were a file of rows with weights.
        """
        places = list(range(len(self.schema)))
        # Four bytes for each code while they arrive, then one or two.
        width = sum(4 + attribute.dtype.itemsize for attribute in self.schema) + 16
        most = limits.codes // width
        if not most or not self.units:  # that there is nobody must not be told by a refusal
            return None
        columns = ", ".join(f"c{i}" for i in places)
        answer = self._group(places, f"GROUP BY {columns} LIMIT {most + 1}")
        if answer.num_rows > most:
            return None
        codes = {}
        for i, attribute in enumerate(self.schema):
            column = as_codes(answer[f"c{i}"])
            if column.size and column.min() < 0:
                raise self.refuse_change()
            codes[attribute.name] = column.astype(attribute.dtype)
        weights = as_codes(answer["n"])
        if int(weights.sum()) != self.units:
            raise self.refuse_change()
        reader = CodesReader(self.label, codes, weights)
        return CodedCounter(reader, self.schema, weighted=True, limits=limits)

    def refuse_change(self) -> DataError:
        """The error for rows that are not those that were checked."""
        return DataError(f"{self.label}: the table changed after it was opened; open it again")

    def _group(self, used: Sequence[int], grouping: str) -> Any:
        weighted = "w" in self.coded.columns
        total = "CAST(SUM(w) AS BIGINT)" if weighted else "COUNT(*)"
        # Ibis has no grouping sets; every name in this text is ours, so that nothing foreign becomes SQL.
        backend = self.coded.get_backend()
        needed = self.coded.select(*(f"c{i}" for i in used), *(("w",) if weighted else ()))
        columns = ", ".join(f"c{i}" for i in used)
        query = f"SELECT {columns}, {total} AS n FROM ({backend.compile(needed)}) AS coded {grouping}"
        types = {**{f"c{i}": "int32" for i in used}, "n": "int64"}
        return fetch(self.label, backend.sql(query, schema=types))


@dataclass(frozen=True, slots=True, eq=False)
class HeldRows:
    """Distinct rows that are held here, and counted as a file of rows with weights would be."""

    counter: CodedCounter
    schema: Schema
    weighted: bool = False
    """Whether the rows had weights before they were counted."""

    def count(self, sets: Sequence[Set]) -> list[Counts]:
        """One table for each set."""
        names = [tuple(self.schema.names[i] for i in members) for members in sets]
        return [table.values for table in self.counter.count(names)]

    def encode(self, encoding: Encoding) -> HeldRows:
        """The same rows over the attributes of the view."""
        return HeldRows(self.counter.encode(encoding), encoding.view, self.weighted)

    def sample(self, sets: Sequence[tuple[str, ...]], sample: Sample) -> list[Table]:
        """The tables of one secret sample of the rows: of each distinct one as many as are in it."""
        from discreet.rows.engines.kernels import Tally

        names = self.schema.names
        places = [[names.index(name) for name in members] for members in sets]
        tally = Tally([attribute.size for attribute in self.schema], places, weighted=True)
        batches = list(self.counter.read(names))
        weights = np.concatenate([np.zeros(0, np.int64), *(found.weights for found in batches)])
        kept, start = thin(weights, sample), 0
        for batch in batches:
            tally.add(batch.codes, kept[start : start + batch.rows])
            start += batch.rows
        return [Table(tuple(members), values) for members, values in zip(sets, tally.finish(), strict=True)]

    def close(self) -> None:
        """Forget the rows."""
        self.counter.close()


def thin(weights: Counts, sample: Sample) -> Counts:
    """How many of each row's copies are in the sample; coins are thrown for so many copies at a time as fit."""
    ends = np.cumsum(weights)
    copies = int(weights.sum())
    step = copies if sample.unit == Unit.REPLACE_ONE else COINS
    before, kept = 0, np.zeros(len(weights) + 1, dtype=np.int64)
    for start in range(0, copies, max(step, 1)):
        stop = min(copies, start + step)
        sums = np.cumsum(sample.draw(stop - start), dtype=np.int64)
        low, high = np.searchsorted(ends, (start, stop), side="right")
        kept[low + 1 : high + 1] = before + sums[ends[low:high] - start - 1]
        before += int(sums[-1])
    return np.diff(kept)


@dataclass(frozen=True, slots=True, eq=False)
class SparkBlocks:
    """Codes that Spark's executors hold as blocks of bytes, and count with our own kernel, a partition at a time."""

    blocks: Any
    parts: int
    types: tuple[str, ...]
    columns: tuple[tuple[int, Any], ...]
    schema: Schema
    weighted: bool
    fallback: GroupingSets
    rows: int
    owned: bool = True

    @classmethod
    def open(cls, fallback: GroupingSets) -> SparkBlocks | None:
        """Codes made once and kept by the executors; None where executors cannot run it.

        Also None if there are no rows or one has no code, which the caller explains better.
        """
        from pyspark import StorageLevel

        from discreet.rows.engines.spark_tasks import BLOCKS, pack_rows

        schema, weighted = fallback.schema, "w" in fallback.coded.columns
        types = tuple(attribute.dtype.str for attribute in schema)
        backend = fallback.coded.get_backend()
        names = [f"c{i}" for i in range(len(schema))]
        small = [f"CAST({name} AS INT) AS {name}" for name in names] + ["w"] * weighted
        try:
            frame = backend._session.sql(backend.compile(fallback.coded)).selectExpr(*small)
            blocks = frame.mapInArrow(pack_rows(types, weighted), BLOCKS).persist(
                StorageLevel.MEMORY_AND_DISK
            )
            shares = blocks.selectExpr("spark_partition_id() AS p", "rows", "units", "stray")
            sums = ("sum(stray)", "sum(rows)", "sum(units)", "count(DISTINCT p)")
            stray, counted, units, parts = shares.selectExpr(*sums).collect()[0]
        except Exception as error:  # of executors without Python, without numba, of another version …
            warnings.warn(
                f"Spark's executors cannot count by themselves ({type(error).__name__}): tables come from grouping "
                "sets, which takes many times as long; give executors a Python with discreet in it "
                "(PYSPARK_PYTHON, or spark.pyspark.python)",
                UserWarning,
                stacklevel=2,
            )
            return None
        if stray or not units:
            blocks.unpersist()
            return None
        columns = tuple((i, None) for i in range(len(schema)))
        checked = replace(fallback, units=int(units))
        return cls(blocks, int(parts), types, columns, schema, weighted, checked, int(counted))

    @property
    def units(self) -> int:
        """The number of rows, or the sum of their weights."""
        return self.fallback.units

    def count(self, sets: Sequence[Set]) -> list[Counts]:
        """One table for each set, from one pass of the executors and a tree of sums."""
        try:
            found = self._count(sets)
        except Exception:  # executors that came later, say, without what the first ones had
            return self.fallback.count(sets)
        if any(cells.sum() != self.fallback.units for cells in found):
            raise self.fallback.refuse_change()
        return found

    def encode(self, encoding: Encoding) -> SparkBlocks:
        """The same blocks, whose codes the executors look up."""
        place = {name: i for i, name in enumerate(self.schema.names)}
        columns = []
        for name in encoding.view.names:
            derived = encoding.find(name)
            columns.append((place[encoding.source(name)], None if derived is None else derived.lookup()))
        return replace(
            self,
            columns=tuple(columns),
            schema=encoding.view,
            fallback=self.fallback.encode(encoding),
            owned=False,
        )

    def close(self) -> None:
        """Let the executors forget the codes."""
        if self.owned:
            self.blocks.unpersist()

    def _count(self, sets: Sequence[Set]) -> list[Counts]:
        from discreet.rows.engines.spark_tasks import SLICES, add_slice, add_slices, count_blocks

        used = sorted({i for members in sets for i in members})
        place = {column: i for i, column in enumerate(used)}
        sizes = [self.schema.attributes[i].size for i in used]
        asked = [tuple(place[i] for i in members) for members in sets]
        shapes = [tuple(sizes[i] for i in members) for members in asked]
        cells = [int(np.prod(shape, dtype=np.int64)) for shape in shapes]
        columns = [self.columns[i] for i in used]
        task = count_blocks(self.types, columns, sizes, asked, self.weighted, self.rows // self.parts)
        tables = self.blocks.select("rows", "block").mapInArrow(task, SLICES)
        parts = self.parts
        while parts > FAN or (parts > 1 and parts * sum(cells) * 8 > DRIVER_BYTES):
            parts = -(-parts // FAN)
            tables = tables.repartition(parts).mapInArrow(add_slices(), SLICES)
        sums: dict[int, Counts] = {}
        with _few_blocks(self.blocks.sparkSession):
            for row in tables.collect():
                add_slice(sums, row[0], bytes(row[1]))
        whole = np.concatenate([sums[i] for i in range(len(sums))])
        cuts = np.cumsum([0, *cells])
        return [whole[cuts[i] : cuts[i + 1]].reshape(shape) for i, shape in enumerate(shapes)]


@contextmanager
def _few_blocks(session: Any) -> Iterator[None]:
    """Let Spark hand over few blocks at a time, each of which is a megabyte or two."""
    name = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = session.conf.get(name)
    session.conf.set(name, str(FEW_BLOCKS))
    try:
        yield
    finally:
        session.conf.set(name, before)


def fetch(label: str, expression: Any) -> Any:
    """The answer of an engine as an Arrow table; what it refuses becomes one line that names the table."""
    try:
        return expression.to_pyarrow()
    except Exception as error:  # each engine has exceptions of its own, and none is imported here
        lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
        raise DataError(f"{label}: the database could not run the query: {lines[0][:200]}") from error


def as_codes(column: Any) -> Counts:
    """A column of integers, with -2 for the NULL of a key outside its grouping set."""
    import pyarrow as pa
    import pyarrow.compute as pc

    whole = column.cast(pa.int64(), safe=pa.types.is_integer(column.type))
    return np.asarray(pc.fill_null(whole, -2).to_numpy())


def _look_up(column: Any, codes: Sequence[int]) -> Any:
    """The code of a derived attribute for each code of its source; −1 stays."""
    import ibis

    pairs = [(i, ibis.literal(code, type="int32")) for i, code in enumerate(codes)]
    return column.cases(*pairs, else_=ibis.literal(-1, type="int32"))
