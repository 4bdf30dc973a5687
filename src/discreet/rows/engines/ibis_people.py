"""People and their rows inside an engine: whose a row is, how many each has, and at most so many of them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from discreet.rows.engines.addresses import open_table
from discreet.rows.engines.ways import fetch
from discreet.rows.people import NOBODY, WHOLE, ZEROS, draw_key
from discreet.rows.readers.sources import place_columns
from discreet.values.errors import import_extra
from discreet.values.text import is_id_name
from discreet.values.unit import Unit


def write_ids(column: Any) -> Any:
    """Ids as text, as `people.write_id` writes them."""
    text = column.cast("string")
    if column.type().is_floating():
        whole = (column == column.floor()) & (column.abs() < 1e18)
        text = whole.ifelse(column.cast("int64").cast("string"), text)
        text = column.isnan().ifelse("", text)
    bare = text.strip()
    bare = bare.re_search(WHOLE).ifelse(bare.re_replace(ZEROS, ""), bare)
    return bare.lower().isin(NOBODY).ifelse("", bare)


def hash_people(ids: Any, key: str) -> Any:
    """Whose a row is: under a collation the engine may take two ids for one, and their hashes never."""
    import ibis

    @ibis.udf.scalar.builtin  # type: ignore[untyped-decorator]
    def md5(text: str) -> str:  # type: ignore[empty-body]
        """The engine's own."""

    return md5(ibis.literal(key) + "|" + ids)


def count_people_there(data: Any, person: str, most: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """How many people have 1, 2, … up to `most` rows, and last how many have more, counted inside the engine."""
    import_extra("ibis", "counting inside a database", "pushdown")
    table, label, release = open_table(data)
    try:
        (place,) = place_columns(label, table.columns, (person,))
        ids = table.select(p=write_ids(table[table.columns[place]]))
        known = ids.filter(ids.p.notnull() & (ids.p != ""))
        known = known.select(p=hash_people(known.p, draw_key().hex()))
        each = known.group_by("p").aggregate(rows=known.count())
        capped = each.select(rows=(each.rows > most).ifelse(most + 1, each.rows))
        answer = fetch(label, capped.group_by("rows").aggregate(people=capped.count()))
    finally:
        release()
    counts = np.zeros(most + 1, dtype=np.int64)
    for found in answer.to_pylist():
        counts[int(found["rows"]) - 1] = int(found["people"])
    return counts


def find_repeated_there(data: Any, known: Collection[str]) -> str | None:
    """A column outside the schema that is called like an id and repeats, found inside the engine."""
    import_extra("ibis", "counting inside a database", "pushdown")
    table, label, release = open_table(data)
    try:
        for name in table.columns:
            if name not in known and is_id_name(name):
                asked = table.aggregate(rows=table[name].count(), ids=table[name].nunique())
                found = fetch(label, asked).to_pylist()[0]
                if found["rows"] > found["ids"]:
                    return str(name)
    finally:
        release()
    return None


def bound_people(table: Any, unit: Unit) -> Any:
    """As many rows of each person `p` as the unit says, and their weights `w` if people are averaged.

    They are taken in the order of a keyed hash of the coded row.

    Rows of a person with the same codes count as different ones, the first, the second and so on; which is which does
    not matter, for nothing else of them is ever read. The key is drawn anew and kept in this counter alone.
    """
    import ibis

    key = draw_key().hex()
    codes = [name for name in table.columns if name != "p"]
    known = table.filter(table.p.notnull() & (table.p != ""))
    known = known.mutate(p=hash_people(known.p, key))
    known = known.mutate(nth=ibis.row_number().over(group_by=["p", *codes], order_by="p"))
    text = known.p
    for name in (*codes, "nth"):
        text = text + "|" + known[name].cast("string")
    hashed = known.mutate(h=hash_people(text, key))
    ranked = hashed.mutate(place=ibis.row_number().over(group_by="p", order_by="h"))
    kept = ranked.filter(ranked.place < unit.at_most)
    if not unit.average:
        return kept.select(*codes)
    weights = {j: unit.grain // j for j in range(1, unit.at_most + 1)}
    kept = kept.mutate(j=kept.count().over(group_by="p"))
    return kept.select(*codes, w=kept.j.cases(*weights.items()).cast("int64"))
