"""Networks as JSON: the one format that keeps all of a schema, every float to the last bit, and no code.

    {"format": "discreet-network", "version": 1, "schema": {...},
     "parents": [["lung", ["smoke"]], ...], "cpts": [[0.1, 0.9, ...], ...]}

Nodes come in schema order. A table is flat: the parents' axes in order, then the child's, the last fastest.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from discreet.networks.network import Network
from discreet.values.errors import DiscreetError, FormatError, TooLarge
from discreet.values.files import read_text, write_text
from discreet.values.graph import DAG
from discreet.values.schema import Schema
from discreet.values.table import Table, count_cells
from discreet.values.wording import list_some, show

FORMAT = "discreet-network"
VERSION = 1
KEYS = ("format", "version", "schema", "parents", "cpts")

MAX_BYTES = 2**26
"""The longest text that is read unasked, unpacked."""

MAX_DEPTH = 100
"""The deepest nesting of arrays and objects; a taxonomy of 32 groups in each other needs about 70."""

MAX_PARENTS = 63
"""An array has at most 64 axes."""

_HOLDERS = frozenset({list, dict})


def read_network(path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> Network:
    """The network in a JSON file, plain or gzip."""
    return parse_network(read_text(path, max_bytes), os.fspath(path))


def write_network(network: Network, path: str | os.PathLike[str]) -> None:
    """Write a network as JSON, all or nothing; packed by gzip if the name ends in .gz."""
    write_text(path, format_network(network))


def parse_network(text: str, source: str = "JSON text") -> Network:
    """The network in a JSON text; `source` is how messages call it."""
    try:
        return restore_network(load_strictly(text))
    except TooLarge as error:
        raise TooLarge(f"{source}: {error}") from None
    except DiscreetError as error:
        raise FormatError(f"{source}: {error}") from None


def format_network(network: Network) -> str:
    """A network as JSON text, one table to a line; the same network always gives the same text."""
    document = describe_network(network)
    parts = [f'"{key}": {_dump(document[key])}' for key in ("format", "version", "schema")]
    for key in ("parents", "cpts"):
        rows = ",\n".join(_dump(row) for row in document[key])
        parts.append(f'"{key}": [\n{rows}\n]')
    return "{" + ",\n".join(parts) + "}\n"


def describe_network(network: Network) -> dict[str, Any]:
    """A network as plain JSON values, to be part of a larger document."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "schema": network.schema.to_json(),
        "parents": [[name, list(network.dag.parents_of(name))] for name in network.nodes],
        "cpts": [cpt.values.ravel().tolist() for cpt in network.cpts],
    }


def restore_network(document: object) -> Network:
    """The network that `describe_network` described; anything else is refused before a table is made."""
    if not isinstance(document, Mapping) or document.get("format") != FORMAT:
        raise FormatError(f"not a network of discreet: the key 'format' must be {FORMAT!r}")
    version = document.get("version")
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise FormatError(f"version {show(version)} is not a whole number above 0")
    if version > VERSION:
        raise FormatError(
            f"version {show(version)} was written by a newer discreet; this one reads up to {VERSION}"
        )
    if set(document) != set(KEYS):
        odd = next((key for key in document if key not in KEYS), None)
        what = f"the key {show(odd)} is unknown" if odd is not None else "a key is missing"
        raise FormatError(f"{what}; a network has {list_some(KEYS)}")
    schema = Schema.from_json(document["schema"])
    dag = restore_graph(document["parents"], schema)
    columns = require_list(document["cpts"], "cpts")
    if len(columns) != len(dag):
        raise FormatError(f"cpts has {len(columns)} tables for {len(dag)} nodes")
    sizes = schema.sizes
    tables = [
        restore_table(dag.family(name), values, sizes)
        for name, values in zip(dag.nodes, columns, strict=True)
    ]
    return Network(schema, dag, tuple(tables))


def load_strictly(text: str) -> Any:
    """The values in a JSON text, without what JSON itself forbids: NaN, infinities and a key given twice."""
    try:
        document = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_refuse_twice)
    except json.JSONDecodeError as error:
        raise FormatError(f"line {error.lineno}: not JSON: {error.msg}") from None
    except RecursionError:
        raise FormatError("not a document of discreet: it is nested too deeply") from None
    except DiscreetError:
        raise
    except ValueError as error:  # an integer with thousands of digits
        raise FormatError(f"not a document of discreet: {error}") from None
    _require_shallow(document)
    return document


def _require_shallow(document: object) -> None:
    level = [document]
    for _ in range(MAX_DEPTH):
        # Arrays of numbers are the bulk of a document, and are passed over without a look at each number.
        parts = [_contents(value) for value in level if isinstance(value, list | dict)]
        level = [value for part in parts if not _HOLDERS.isdisjoint(map(type, part)) for value in part]
        if not level:
            return
    raise FormatError(f"not a document of discreet: it is nested more than {MAX_DEPTH} deep")


def _contents(value: list[Any] | dict[str, Any]) -> list[Any]:
    return list(value.values()) if isinstance(value, dict) else value


def restore_graph(document: object, schema: Schema) -> DAG:
    """The graph in a list of [name, parents] pairs in schema order."""
    entries = require_list(document, "parents")
    if len(entries) != len(schema):
        raise FormatError(f"parents has {len(entries)} entries for {len(schema)} attributes")
    found: dict[str, tuple[str, ...]] = {}
    for name, entry in zip(schema.names, entries, strict=True):
        if not isinstance(entry, list) or len(entry) != 2 or entry[0] != name:
            raise FormatError(f"parents: found {show(entry)} where [{show(name)}, [...]] should be")
        parents = require_list(entry[1], f"the parents of {show(name)}")
        if not all(isinstance(parent, str) for parent in parents) or len(parents) > MAX_PARENTS:
            raise FormatError(f"the parents of {show(name)} must be at most {MAX_PARENTS} names")
        found[name] = tuple(parents)
    return DAG.build(found)


def restore_table(family: Sequence[str], document: object, sizes: Mapping[str, int]) -> Table:
    """The table over a family in a flat list of numbers between 0 and 1."""
    name = show(family[-1])
    values = require_list(document, f"the table of {name}")
    shape = [sizes[member] for member in family]
    if len(values) != count_cells(shape):
        raise FormatError(f"the table of {name} has {len(values):,} numbers; it needs {_count(shape)}")
    # Checked before the conversion, which would take '0.5', true and null for numbers.
    if not set(map(type, values)) <= {float, int}:
        odd = next(value for value in values if type(value) not in (float, int))
        raise FormatError(f"the table of {name} holds {show(odd)}, which is not a number")
    if not (min(values) >= 0 and max(values) <= 1):
        odd = next(value for value in values if not 0 <= value <= 1)
        raise FormatError(f"the table of {name} holds {show(odd)}, which is not between 0 and 1")
    return Table(tuple(family), np.array(values, dtype=np.float64).reshape(shape))


def _count(shape: Sequence[int]) -> str:
    cells = count_cells(shape)
    return f"{cells:,}" if cells < 10**18 else "more than 10^18"


def require_list(value: object, what: str) -> list[Any]:
    """The value if it is an array, else a refusal that calls it `what`."""
    if not isinstance(value, list):
        raise FormatError(f"{what} must be an array, not {show(value)}")
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise FormatError(f"{name} is not a number that JSON allows")


def _refuse_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise FormatError(f"the key {show(key)} is given twice")
            seen.add(key)
    return found


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
