"""Counting where the rows are: one grouping query, sent through Ibis to the engine that holds them."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from discreet.core.counter import Numbers, Sample
from discreet.rows.engines.ibis_codes import encode_columns
from discreet.rows.limits import MAX_WEIGHT, Limits
from discreet.rows.people import draw_key
from discreet.rows.readers.batches import refuse_weight
from discreet.rows.readers.sources import place_columns
from discreet.values.errors import AirlockError, DataError, import_extra
from discreet.values.schema import Schema
from discreet.values.schema.encoding import Encoding
from discreet.values.table import Table
from discreet.values.text import show
from discreet.values.unit import Unit


class PushdownCounter:
    """Counts inside DuckDB, PostgreSQL, Spark or another engine of Ibis; codes, bins and checks are its work too."""

    __slots__ = ("_closed", "_coded", "_label", "_limits", "_release", "_schema", "_units")

    def __init__(
        self,
        table: Any,
        schema: Schema,
        *,
        weight: str | None,
        limits: Limits,
        label: str,
        release: Callable[[], None] = lambda: None,
        unit: Unit = Unit.ADD_REMOVE,
    ) -> None:
        """Check every row inside the engine, so that a bad one is refused before anything is asked."""
        self._schema, self._limits, self._label, self._release = schema, limits, label, release
        self._closed = False
        wanted = (*schema.names, *filter(None, (weight, unit.person)))
        place_columns(label, table.columns, wanted)
        given = table.select(**{f"x{i}": table[name] for i, name in enumerate(wanted)})
        joined, codes = encode_columns(label, schema.attributes, given)
        coded = {f"c{i}": code for i, code in enumerate(codes)}
        if weight is not None:
            coded["w"] = _require_weight(label, weight, joined[f"x{len(schema)}"])
            if schema.total:
                coded["w"] = coded["w"].fill_null(0)
            if unit.weight:
                coded["w"] = (coded["w"] > unit.at_most).ifelse(unit.at_most, coded["w"])
        if joined is not given:
            self._require_single(given, joined)
        joined = self._leave_out(joined, coded)
        self._units = self._check(joined, coded, wanted[: len(coded)])
        # A row that goes bad later must not pass for a row of another grouping set, whose missing keys are NULL.
        filled = {name: column.fill_null(-1) for name, column in coded.items()}
        if unit.person:
            ids = _write_ids(joined[f"x{len(schema)}"])
            self._coded = _bound_people(joined.select(**filled, p=ids), unit)
            worth = self._coded.w.sum() if unit.average else self._coded.count()
            self._units = int(self._fetch(self._coded.aggregate(rows=worth)).to_pylist()[0]["rows"] or 0)
            self._limits.require_rows(label, self._units)
        else:
            self._coded = joined.select(**filled)

    @classmethod
    def open(
        cls, data: Any, schema: Schema, *, weight: str | None, limits: Limits, unit: Unit = Unit.ADD_REMOVE
    ) -> PushdownCounter:
        """A counter over an Ibis table, a Spark frame, or a text such as 'postgresql://host/db::table'."""
        import_extra("ibis", "counting inside a database", "pushdown")
        table, label, release = _open_table(data)
        try:
            return cls(table, schema, weight=weight, limits=limits, label=label, release=release, unit=unit)
        except BaseException:
            release()
            raise

    @property
    def rows(self) -> int:
        """The true number of rows, or the sum of the weights."""
        return self._units

    def check(self, sets: Sequence[Sequence[str]], sample: Sample | None = None) -> None:
        """Refuse what `count` would refuse, without asking the engine."""
        self._limits.require_request(self._schema, sets)
        if sample is not None:
            raise DataError(
                f"{self._label}: a secret sample cannot be drawn inside a database, whose random numbers can be "
                "predicted; read the rows from a file or a frame"
            )

    def count(self, sets: Sequence[Sequence[str]], sample: Sample | None = None) -> list[Table]:
        """One exact int64 table for each attribute set, axes in the order asked; one query for all of them."""
        if self._closed:
            raise AirlockError("the data is closed; open it again")
        self.check(sets, sample)
        asked = self._limits.require_request(self._schema, sets)
        place = {name: i for i, name in enumerate(self._schema.names)}
        grouped = sorted({tuple(sorted(place[name] for name in members)) for members in asked if members})
        counted = dict(zip(grouped, self._group(grouped), strict=True)) if grouped else {}
        counted[()] = np.array(self._units, dtype=np.int64)
        tables = []
        for members in asked:
            places = tuple(sorted(place[name] for name in members))
            names = tuple(self._schema.names[i] for i in places)
            tables.append(Table(names, counted[places]).arrange(members))
        return tables

    def check_numbers(self, names: Sequence[str]) -> None:
        """Refuse: engines round and clip in ways of their own, and the sensitivity of a sum hangs on both."""
        raise DataError(f"{self._label}: columns can be summed only from a file or a frame")

    def read_numbers(self, names: Sequence[str]) -> Iterator[Numbers]:
        """Refused, as `check_numbers` says."""
        self.check_numbers(names)
        yield from ()

    def count_values(self, columns: Sequence[str]) -> list[dict[str, int]]:
        """Refuse: which texts are equal is the engine's own opinion."""
        raise DataError(
            f"{self._label}: values that nobody declared can be found only in a file or a frame; declare a schema"
        )

    def encode(self, encoding: Encoding) -> PushdownCounter:
        """Refuse: a search over bits or groups asks for more tables than an engine answers in any useful time."""
        raise DataError(f"{self._label}: the {encoding.kind} encoding works only with a file or a frame")

    def close(self) -> None:
        """Let go of the engine."""
        if not self._closed:
            self._closed = True
            self._release()

    def _leave_out(self, table: Any, coded: dict[str, Any]) -> Any:
        """The table without the records that are left out, each for its own values alone."""
        kept = [coded[f"c{i}"].notnull() for i, found in enumerate(self._schema) if found.leaves_out]
        return table.filter(*kept) if kept else table

    def _check(self, table: Any, coded: dict[str, Any], names: Sequence[str]) -> int:
        units = coded["w"].sum() if "w" in coded else table.count()
        filled = {name: column.count() for name, column in coded.items()}  # of values that are not NULL
        found = self._fetch(table.aggregate(rows=table.count(), units=units, **filled)).to_pylist()[0]
        rows = int(found["rows"])
        if not rows and not self._schema.total:
            raise DataError(f"{self._label}: no rows; at least 1 is needed")
        for i, (column, name) in enumerate(zip(coded, names, strict=True)):
            if found[column] < rows:
                bad = table.filter(coded[column].isnull()).select(value=table[f"x{i}"]).limit(1)
                value = self._fetch(bad).to_pylist()[0]["value"]
                raise self._explain(name, value, rows - int(found[column]))
        total = int(found["units"] or 0)
        if not total and not self._schema.total:
            raise DataError(f"{self._label}: no weight in any of its {rows:,} rows; at least 1 is needed")
        self._limits.require_rows(self._label, max(rows, total))
        return total

    def _require_single(self, given: Any, joined: Any) -> None:
        """Refuse levels that the engine takes for one another: a row that is counted twice would cost twice."""
        before, after = (
            int(self._fetch(table.aggregate(rows=table.count())).to_pylist()[0]["rows"])
            for table in (given, joined)
        )
        if before != after:
            raise DataError(
                f"{self._label}: the database takes two levels for the same text, perhaps because it ignores case; "
                "give the column a binary collation"
            )

    def _explain(self, name: str, value: object, rows: int) -> DataError:
        many = f" ({rows:,} such rows)" if rows > 1 else ""
        if name not in self._schema:
            return refuse_weight(self._label, name, value, None)
        try:
            self._schema[name].encode([value])
        except DataError as error:  # rows of an engine have no order, so no number
            return DataError(f"{self._label}: {str(error).replace(', row 1:', ':', 1)}{many}")
        return DataError(f"{self._label}: attribute {show(name)}: {show(value)} is not allowed{many}")

    def _group(self, sets: Sequence[tuple[int, ...]]) -> list[np.ndarray[Any, np.dtype[np.int64]]]:
        used = sorted({i for members in sets for i in members})
        columns = ", ".join(f"c{i}" for i in used)
        grouping = ", ".join(f"({', '.join(f'c{i}' for i in members)})" for members in sets)
        weighted = "w" in self._coded.columns
        total = "CAST(SUM(w) AS BIGINT)" if weighted else "COUNT(*)"
        # Ibis has no grouping sets; every name in this text is ours, so that nothing foreign becomes SQL.
        backend = self._coded.get_backend()
        needed = self._coded.select(*(f"c{i}" for i in used), *(("w",) if weighted else ()))
        query = (
            f"SELECT {columns}, {total} AS n FROM ({backend.compile(needed)}) AS coded "
            f"GROUP BY GROUPING SETS ({grouping})"
        )
        types = {**{f"c{i}": "int32" for i in used}, "n": "int64"}
        answer = self._fetch(backend.sql(query, schema=types))
        keys = np.column_stack([_as_codes(answer[f"c{i}"]) for i in used])
        amounts = _as_codes(answer["n"])
        if (keys == -1).any():
            raise DataError(f"{self._label}: the table changed after it was opened; open it again")
        present = keys >= 0
        found = []
        for members in sets:
            shape = tuple(self._schema.attributes[i].size for i in members)
            chosen = (present == [i in members for i in used]).all(axis=1)
            cells = np.zeros(shape, dtype=np.int64)
            cells[tuple(keys[chosen][:, used.index(i)] for i in members)] = amounts[chosen]
            if cells.sum() != self._units:
                raise DataError(f"{self._label}: the table changed after it was opened; open it again")
            found.append(cells)
        return found

    def _fetch(self, expression: Any) -> Any:
        return _fetch(self._label, expression)


def _fetch(label: str, expression: Any) -> Any:
    try:
        return expression.to_pyarrow()
    except Exception as error:  # each engine has exceptions of its own, and none is imported here
        lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
        raise DataError(f"{label}: the database could not run the query: {lines[0][:200]}") from error


def _write_ids(column: Any) -> Any:
    """Ids as text, as `people.write_id` writes them."""
    text = column.cast("string")
    if column.type().is_floating():
        whole = (column == column.floor()) & (column.abs() < 1e18)
        text = whole.ifelse(column.cast("int64").cast("string"), text)
        text = column.isnan().ifelse("", text)
    return text.strip()


def count_people_there(data: Any, person: str, most: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """How many people have 1, 2, … up to `most` rows, and last how many have more, counted inside the engine."""
    import_extra("ibis", "counting inside a database", "pushdown")
    table, label, release = _open_table(data)
    try:
        (place,) = place_columns(label, table.columns, (person,))
        ids = table.select(p=_write_ids(table[table.columns[place]]))
        known = ids.filter(ids.p.notnull() & (ids.p != ""))
        each = known.group_by("p").aggregate(rows=known.count())
        capped = each.select(rows=(each.rows > most).ifelse(most + 1, each.rows))
        answer = _fetch(label, capped.group_by("rows").aggregate(people=capped.count()))
    finally:
        release()
    counts = np.zeros(most + 1, dtype=np.int64)
    for found in answer.to_pylist():
        counts[int(found["rows"]) - 1] = int(found["people"])
    return counts


def _bound_people(table: Any, unit: Unit) -> Any:
    """As many rows of each person `p` as the unit says, and their weights `w` if people are averaged.

    They are taken in the order of a keyed hash of the coded row.

    Rows of a person with the same codes count as different ones, the first, the second and so on; which is which does
    not matter, for nothing else of them is ever read. The key is drawn anew and kept in this counter alone.
    """
    import ibis

    @ibis.udf.scalar.builtin  # type: ignore[untyped-decorator]
    def md5(text: str) -> str:  # type: ignore[empty-body]
        """The engine's own."""

    codes = [name for name in table.columns if name != "p"]
    known = table.filter(table.p.notnull() & (table.p != ""))
    known = known.mutate(nth=ibis.row_number().over(group_by=["p", *codes], order_by="p"))
    text = ibis.literal(draw_key().hex()) + "|" + known.p
    for name in (*codes, "nth"):
        text = text + "|" + known[name].cast("string")
    hashed = known.mutate(h=md5(text))
    ranked = hashed.mutate(place=ibis.row_number().over(group_by="p", order_by="h"))
    kept = ranked.filter(ranked.place < unit.at_most)
    if not unit.average:
        return kept.select(*codes)
    weights = {j: unit.grain // j for j in range(1, unit.at_most + 1)}
    kept = kept.mutate(j=kept.count().over(group_by="p"))
    return kept.select(*codes, w=kept.j.cases(*weights.items()).cast("int64"))


def _as_codes(column: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
    """A column of integers, with -2 for the NULL of a key outside its grouping set."""
    import pyarrow as pa
    import pyarrow.compute as pc

    whole = (
        column.cast(pa.int64(), safe=False)
        if not pa.types.is_integer(column.type)
        else column.cast(pa.int64())
    )
    return np.asarray(pc.fill_null(whole, -2).to_numpy())


def _require_weight(label: str, name: str, column: Any) -> Any:
    import ibis

    if not column.type().is_integer():
        raise DataError(f"{label}: weight {show(name)} has the type {column.type()}; it must be integer")
    return ibis.ifelse((column >= 0) & (column <= MAX_WEIGHT), column.cast("int64"), ibis.null("int64"))


def _open_table(data: Any) -> tuple[Any, str, Callable[[], None]]:
    import ibis

    if isinstance(data, ibis.Table):
        name = data.get_name() if data.op().__class__.__name__ in ("DatabaseTable", "InMemoryTable") else None
        return data, f"table {show(name)}" if name else "the table", lambda: None
    if isinstance(data, str | os.PathLike):
        return _open_postgres(os.fspath(data))
    if type(data).__module__.startswith("pyspark") and hasattr(data, "createOrReplaceTempView"):
        view = f"discreet_{uuid.uuid4().hex}"
        data.createOrReplaceTempView(view)
        session = data.sparkSession
        return (
            ibis.pyspark.connect(session).table(view),
            "the Spark frame",
            lambda: session.catalog.dropTempView(view),
        )
    raise DataError(f"cannot count inside a {type(data).__module__}.{type(data).__qualname__}")


def _open_postgres(address: str) -> tuple[Any, str, Callable[[], None]]:
    import ibis

    url, mark, name = address.rpartition("::")
    if not mark or not name:
        raise DataError("a PostgreSQL address needs the table after '::', as in postgresql://host/db::visits")
    psycopg = import_extra("psycopg", "counting inside PostgreSQL", "postgres")
    label = f"table {show(name)}"
    try:
        connection = psycopg.connect(url, autocommit=True)
    except psycopg.Error as error:
        raise DataError(f"PostgreSQL: {str(error).splitlines()[0]}") from None
    backend = ibis.postgres.from_connection(connection)
    schema, dot, bare = name.rpartition(".")
    try:
        table = backend.table(bare, database=schema) if dot else backend.table(name)
    except Exception as error:
        connection.close()
        lines = str(error).splitlines() or [type(error).__name__]
        raise DataError(f"{label}: no such table in PostgreSQL: {lines[0][:200]}") from None
    return table, label, connection.close
