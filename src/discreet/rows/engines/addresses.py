"""Where a table is that is counted inside its engine: an Ibis table, a Spark frame, an address of PostgreSQL."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from typing import Any

from discreet.values.errors import DataError, import_extra
from discreet.values.text import show


def open_table(data: Any) -> tuple[Any, str, Callable[[], None]]:
    """The Ibis table, what errors call it, and how to let go of it."""
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
