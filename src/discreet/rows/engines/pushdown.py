"""Counting where the rows are: inside the engine that holds them, to which Ibis speaks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discreet.core.counter import Numbers, Sample
from discreet.rows.engines.addresses import open_table
from discreet.rows.engines.coded import MOST_SAMPLED
from discreet.rows.engines.ibis_codes import encode_columns
from discreet.rows.engines.ibis_numbers import fetch_numbers
from discreet.rows.engines.ibis_people import bound_people, write_ids
from discreet.rows.engines.ways import GroupingSets, HeldRows, SparkBlocks, Way, fetch
from discreet.rows.limits import MAX_WEIGHT, Limits
from discreet.rows.readers.batches import refuse_weight
from discreet.rows.readers.sources import place_columns
from discreet.values.errors import AirlockError, DataError, TooLarge, import_extra
from discreet.values.schema import Schema
from discreet.values.schema.encoding import Encoding
from discreet.values.table import CountedTables, Table
from discreet.values.text import list_some, show
from discreet.values.unit import Unit


class PushdownCounter:
    """Counts inside DuckDB, PostgreSQL, Spark or another engine of Ibis; codes, bins and checks are its work too."""

    __slots__ = (
        "_closed",
        "_known",
        "_label",
        "_limits",
        "_names",
        "_numbers",
        "_release",
        "_schema",
        "_units",
        "_way",
    )

    def __init__(
        self,
        way: Way,
        schema: Schema,
        units: int,
        *,
        limits: Limits,
        label: str,
        release: Callable[[], None],
        names: Sequence[str] = (),
        numbers: Numbers | None = None,
    ) -> None:
        """A counter of rows that were checked; `numbers` are those of the number columns with these `names`."""
        self._way, self._schema, self._units, self._limits = way, schema, units, limits
        self._label, self._release = label, release
        self._names, self._numbers = tuple(names), numbers
        self._closed = False
        self._known = CountedTables(schema.sizes)

    @classmethod
    def open(
        cls,
        data: Any,
        schema: Schema,
        *,
        weight: str | None,
        limits: Limits,
        numbers: Sequence[str] = (),
        unit: Unit = Unit.ADD_REMOVE,
    ) -> PushdownCounter:
        """A counter over an Ibis table, a Spark frame, or a text such as 'postgresql://host/db::table'.

        Every row is checked inside the engine, so that a bad one is refused before anything is asked.
        """
        import_extra("ibis", "counting inside a database", "pushdown")
        table, label, release = open_table(data)
        try:
            opening = _Opening(table, schema, weight, limits, label, unit)
            way, units = opening.find_way()
            values = opening.fetch_numbers(numbers) if numbers else None
        except BaseException:
            release()
            raise
        return cls(
            way, schema, units, limits=limits, label=label, release=release, names=numbers, numbers=values
        )

    @property
    def rows(self) -> int:
        """The true number of rows, or the sum of the weights."""
        return self._units

    def check(self, sets: Sequence[Sequence[str]], sample: Sample | None = None) -> None:
        """Refuse what `count` would refuse, without asking the engine."""
        self._limits.require_request(self._schema, sets)
        if sample is None:
            return
        if not isinstance(self._way, HeldRows) or self._way.weighted:
            raise DataError(
                f"{self._label}: a secret sample can be drawn only where the database's distinct rows are held here: "
                "its random numbers can be predicted, and a task that it repeats draws others; raise the memory limit "
                "(--memory), or read the rows, without weights, from a file or a frame"
            )
        if sample.unit == Unit.REPLACE_ONE and self._units > MOST_SAMPLED:
            raise TooLarge(f"a sample of fixed size takes at most {MOST_SAMPLED:,} rows")
        sample.require_rows(self._units)

    def count(self, sets: Sequence[Sequence[str]], sample: Sample | None = None) -> list[Table]:
        """One exact int64 table for each attribute set, axes in the order asked; one pass for all that are new."""
        if self._closed:
            raise AirlockError("the data is closed; open it again")
        self.check(sets, sample)
        asked = self._limits.require_request(self._schema, sets)
        if sample is not None:
            assert isinstance(self._way, HeldRows)
            return self._way.sample(asked, sample)
        return self._known.count(asked, self._count)

    def _count(self, sets: list[tuple[str, ...]]) -> list[Table]:
        place = {name: i for i, name in enumerate(self._schema.names)}
        grouped = [tuple(sorted(place[name] for name in members)) for members in sets if members]
        counted = self._way.count(grouped) if grouped else []
        tables = [
            Table(tuple(self._schema.names[i] for i in places), cells)
            for places, cells in zip(grouped, counted, strict=True)
        ]
        if () in sets:
            tables.append(Table((), np.array(self._units, dtype=np.int64)))
        return tables

    def check_numbers(self, names: Sequence[str]) -> None:
        """Refuse a column that was not opened as a number."""
        for name in names:
            if name not in self._names:
                opened = list_some(self._names) if self._names else "none"
                raise DataError(
                    f"{self._label}: cannot sum {show(name)}; columns opened as numbers: {opened}"
                )

    def read_numbers(self, names: Sequence[str]) -> Iterator[Numbers]:
        """The distinct values of number columns, as they were at opening, and how often each is there."""
        if self._closed:
            raise AirlockError("the data is closed; open it again")
        self.check_numbers(names)
        assert self._numbers is not None
        values, weights = self._numbers
        yield [values[self._names.index(name)] for name in names], weights

    def count_values(self, columns: Sequence[str]) -> list[dict[str, int]]:
        """Refuse: which texts are equal is the engine's own opinion."""
        raise DataError(
            f"{self._label}: values that nobody declared can be found only in a file or a frame; declare a schema"
        )

    def encode(self, encoding: Encoding) -> PushdownCounter:
        """The same rows over the attributes of an encoding's view, whose codes the engine looks up."""
        if encoding.schema != self._schema:
            raise DataError(f"{self._label}: the encoding belongs to another schema")
        return PushdownCounter(
            self._way.encode(encoding),
            encoding.view,
            self._units,
            limits=self._limits,
            label=self._label,
            release=lambda: None,
        )

    def close(self) -> None:
        """Let go of the engine."""
        if not self._closed:
            self._closed, self._numbers = True, None
            self._known.forget()
            self._way.close()
            self._release()


@dataclass(frozen=True, slots=True, eq=False)
class _Opening:
    """A table of an engine whose rows are still to be encoded, checked and bounded there."""

    table: Any
    schema: Schema
    weight: str | None
    limits: Limits
    label: str
    unit: Unit

    def find_way(self) -> tuple[Way, int]:
        """How the rows are counted, and how many there are, or how much they weigh."""
        schema, unit, weight = self.schema, self.unit, self.weight
        wanted = (*schema.names, *filter(None, (weight, unit.person)))
        place_columns(self.label, self.table.columns, wanted)
        given = self.table.select(**{f"x{i}": self.table[name] for i, name in enumerate(wanted)})
        joined, codes = encode_columns(self.label, schema.attributes, given)
        coded = {f"c{i}": code for i, code in enumerate(codes)}
        if weight is not None:
            coded["w"] = _require_weight(self.label, weight, joined[f"x{len(schema)}"])
            if schema.total:
                coded["w"] = coded["w"].fill_null(0)
            if unit.weight:
                coded["w"] = (coded["w"] > unit.at_most).ifelse(unit.at_most, coded["w"])
        if joined is not given:
            self._require_single(given, joined)
        joined = self._leave_out(joined, coded)
        # A row that goes bad later must not pass for a row of another grouping set, whose missing keys are NULL.
        filled = {name: column.fill_null(-1) for name, column in coded.items()}
        on_spark = joined.get_backend().name == "pyspark"
        if unit.person:
            self._check(joined, coded, wanted[: len(coded)])
            ids = write_ids(joined[f"x{len(schema)}"])
            rows = GroupingSets(self.label, schema, bound_people(joined.select(**filled, p=ids), unit), 0)
        else:
            rows = GroupingSets(self.label, schema, joined.select(**filled), 0)
        blocks = (
            SparkBlocks.open(rows) if on_spark else None
        )  # one pass makes the codes and sees whether all are fine
        if blocks is not None:
            self.limits.require_rows(self.label, max(blocks.rows, blocks.units))
            return blocks, blocks.units
        if unit.person:
            worth = rows.coded.w.sum() if unit.average else rows.coded.count()
            found = fetch(self.label, rows.coded.aggregate(rows=worth)).to_pylist()[0]["rows"]
            rows = replace(rows, units=int(found or 0))
            self.limits.require_rows(self.label, rows.units)
        else:
            rows = replace(rows, units=self._check(joined, coded, wanted[: len(coded)]))
        held = None if on_spark else rows.fetch_distinct(self.limits)
        weighted = weight is not None or unit.average
        return (rows if held is None else HeldRows(held, schema, weighted)), rows.units

    def fetch_numbers(self, names: Sequence[str]) -> Numbers:
        """The distinct values of number columns, held here."""
        import ibis

        wanted = (*names, *filter(None, (self.weight,)))
        place_columns(self.label, self.table.columns, wanted)
        given = self.table.select(**{f"x{i}": self.table[name] for i, name in enumerate(wanted)})
        worth = ibis.literal(1, type="int64")
        if self.weight is not None:
            worth = _require_weight(self.label, self.weight, given[f"x{len(names)}"]).fill_null(0)
            if self.unit.weight:
                worth = (worth > self.unit.at_most).ifelse(self.unit.at_most, worth)
        columns = [f"x{i}" for i in range(len(names))]
        return fetch_numbers(self.label, given, names, columns, worth, self.limits)

    def _leave_out(self, table: Any, coded: dict[str, Any]) -> Any:
        """The table without the records that are left out, each for its own values alone."""
        kept = [coded[f"c{i}"].notnull() for i, found in enumerate(self.schema) if found.leaves_out]
        return table.filter(*kept) if kept else table

    def _check(self, table: Any, coded: dict[str, Any], names: Sequence[str]) -> int:
        units = coded["w"].sum() if "w" in coded else table.count()
        filled = {name: column.count() for name, column in coded.items()}  # of values that are not NULL
        found = fetch(self.label, table.aggregate(rows=table.count(), units=units, **filled)).to_pylist()[0]
        rows = int(found["rows"])
        if not rows and not self.schema.total:
            raise DataError(f"{self.label}: no rows; at least 1 is needed")
        for i, (column, name) in enumerate(zip(coded, names, strict=True)):
            if found[column] < rows:
                bad = table.filter(coded[column].isnull()).select(value=table[f"x{i}"]).limit(1)
                value = fetch(self.label, bad).to_pylist()[0]["value"]
                raise self._explain(name, value, rows - int(found[column]))
        total = int(found["units"] or 0)
        if not total and not self.schema.total:
            raise DataError(f"{self.label}: no weight in any of its {rows:,} rows; at least 1 is needed")
        self.limits.require_rows(self.label, max(rows, total))
        return total

    def _require_single(self, given: Any, joined: Any) -> None:
        """Refuse levels that the engine takes for one another: a row that is counted twice would cost twice."""
        before, after = (
            int(fetch(self.label, table.aggregate(rows=table.count())).to_pylist()[0]["rows"])
            for table in (given, joined)
        )
        if before != after:
            raise DataError(
                f"{self.label}: the database takes two levels for the same text, perhaps because it ignores case; "
                "give the column a binary collation"
            )

    def _explain(self, name: str, value: object, rows: int) -> DataError:
        many = f" ({rows:,} such rows)" if rows > 1 else ""
        if name not in self.schema:
            return refuse_weight(self.label, name, value, None)
        try:
            self.schema[name].encode([value])
        except DataError as error:  # rows of an engine have no order, so no number
            return DataError(f"{self.label}: {str(error).replace(', row 1:', ':', 1)}{many}")
        return DataError(f"{self.label}: attribute {show(name)}: {show(value)} is not allowed{many}")


def _require_weight(label: str, name: str, column: Any) -> Any:
    import ibis

    if not column.type().is_integer():
        raise DataError(f"{label}: weight {show(name)} has the type {column.type()}; it must be integer")
    return ibis.ifelse((column >= 0) & (column <= MAX_WEIGHT), column.cast("int64"), ibis.null("int64"))
