"""Credal networks as JSON, by the same strict rules as networks.

    {"format": "discreet-credal-network", "version": 1, "schema": {...}, "parents": [["lung", ["smoke"]],
    ...], "lower": [[0.1, 0.8, ...], ...], "upper": [[0.2, 0.9, ...], ...], "meaning": "..."}

Nodes come in schema order. A table is flat: the parents' axes in order, then the child's, the last fastest.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from discreet.networks.credal.network import CredalNetwork
from discreet.networks.formats.network_json import (
    MAX_BYTES,
    load_strictly,
    require_list,
    restore_graph,
    restore_table,
)
from discreet.values.errors import DiscreetError, FormatError, TooLarge
from discreet.values.files import read_text, write_text
from discreet.values.graph import DAG
from discreet.values.schema import Schema
from discreet.values.table import Table
from discreet.values.wording import list_some, show

FORMAT = "discreet-credal-network"
VERSION = 1
KEYS = ("format", "version", "schema", "parents", "lower", "upper", "meaning")


def read_credal(path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> CredalNetwork:
    """The credal network in a JSON file, plain or gzip."""
    return parse_credal(read_text(path, max_bytes), os.fspath(path))


def write_credal(credal: CredalNetwork, path: str | os.PathLike[str]) -> None:
    """Write a credal network as JSON, all or nothing; packed by gzip if the name ends in .gz."""
    write_text(path, format_credal(credal))


def parse_credal(text: str, source: str = "JSON text") -> CredalNetwork:
    """The credal network in a JSON text; `source` is how messages call it."""
    try:
        return _restore(load_strictly(text))
    except TooLarge as error:
        raise TooLarge(f"{source}: {error}") from None
    except DiscreetError as error:
        raise FormatError(f"{source}: {error}") from None


def format_credal(credal: CredalNetwork) -> str:
    """A credal network as JSON text, a part to a line; the same one always gives the same text."""
    document: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "schema": credal.schema.to_json(),
        "parents": [[name, list(credal.dag.parents_of(name))] for name in credal.nodes],
        "lower": [table.values.ravel().tolist() for table in credal.lower],
        "upper": [table.values.ravel().tolist() for table in credal.upper],
        "meaning": credal.meaning,
    }
    parts = (
        f'"{key}": {json.dumps(value, ensure_ascii=False, allow_nan=False)}'
        for key, value in document.items()
    )
    return "{" + ",\n".join(parts) + "}\n"


def _restore(document: object) -> CredalNetwork:
    if not isinstance(document, Mapping) or document.get("format") != FORMAT:
        raise FormatError(f"not a credal network of discreet: the key 'format' must be {FORMAT!r}")
    version = document.get("version")
    if type(version) is not int or version < 1:
        raise FormatError(f"version {show(version)} is not a whole number above 0")
    if version > VERSION:
        raise FormatError(
            f"version {version} was written by a newer discreet; this one reads up to {VERSION}"
        )
    if set(document) != set(KEYS):
        odd = next((key for key in document if key not in KEYS), None)
        what = f"the key {show(odd)} is unknown" if odd is not None else "a key is missing"
        raise FormatError(f"{what}; a credal network has {list_some(KEYS)}")
    if not isinstance(document["meaning"], str):
        raise FormatError(f"the meaning must be text, not {show(document['meaning'])}")
    schema = Schema.from_json(document["schema"])
    dag = restore_graph(document["parents"], schema)
    ends = [_restore_tables(document[what], what, dag, schema) for what in ("lower", "upper")]
    return CredalNetwork(schema, dag, ends[0], ends[1], document["meaning"])


def _restore_tables(document: object, what: str, dag: DAG, schema: Schema) -> tuple[Table, ...]:
    columns = require_list(document, what)
    if len(columns) != len(dag):
        raise FormatError(f"{what} has {len(columns)} tables for {len(dag)} nodes")
    sizes = schema.sizes
    return tuple(
        restore_table(dag.family(name), values, sizes)
        for name, values in zip(dag.nodes, columns, strict=True)
    )
