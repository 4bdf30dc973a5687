"""Whether a table has a column of ids that repeat: then a promise about rows may not be the one that is meant."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from discreet.rows.draft.proposal import is_id_name
from discreet.rows.engines.addresses import lives_elsewhere
from discreet.rows.limits import Limits
from discreet.rows.people import write_id
from discreet.rows.readers import sources


def find_repeated_id(data: Any, known: Collection[str], limits: Limits | None = None) -> str | None:
    """A column outside the schema that is called like an id and repeats: its people may have several rows each."""
    if lives_elsewhere(data):
        return _find_there(data, known)
    if isinstance(data, Mapping) or hasattr(data, "iloc"):
        held = (name for name in data if isinstance(name, str) and name not in known and is_id_name(name))
        return next((name for name in held if _repeats(data[name])), None)
    source = sources.open_source(data, limits or Limits())
    try:
        scan = f"{source.scan} AS rows({', '.join(f'c{i}' for i in range(len(source.names)))})"
        for place, name in enumerate(source.names):
            if name not in known and is_id_name(name):
                query = f"SELECT count(c{place}) > count(DISTINCT c{place}) FROM {scan}"
                if sources.run(source.connection, source.label, query)[0][0]:
                    return name
    finally:
        source.close()
    return None


def _repeats(column: Any) -> bool:
    ids = [text for text in map(write_id, column) if text]
    return len(set(ids)) < len(ids)


def _find_there(data: Any, known: Collection[str]) -> str | None:
    from discreet.rows.engines.addresses import open_table
    from discreet.rows.engines.ways import fetch

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
