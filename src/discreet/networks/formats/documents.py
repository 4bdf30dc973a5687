"""JSON documents of discreet: read strictly, told apart by their format, made of the same few parts.

    {"format": "discreet-network", "version": 1, "schema": {...},
     "parents": [["lung", ["smoke"]], ...], "cpts": [[0.1, 0.9, ...], ...]}

Nodes come in schema order. A table is flat: the parents' axes in order, then the child's, the last fastest. JSON is
the one format that keeps all of a schema, every float to the last bit, and no code.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

import numpy as np

from discreet.networks.provenance import Provenance
from discreet.values.budget import budget_from_json
from discreet.values.errors import DiscreetError, FormatError, TooLarge
from discreet.values.graph import DAG
from discreet.values.measurement import Measurement, read_unit
from discreet.values.schema import Schema
from discreet.values.statement import Statement
from discreet.values.table import Table, count_cells
from discreet.values.text import require_keys, show

MAX_BYTES = 2**26
"""The longest text that is read unasked, unpacked."""

MAX_DEPTH = 100
"""The deepest nesting of arrays and objects; a taxonomy of 32 groups in each other needs about 70."""

MAX_PARENTS = 63
"""An array has at most 64 axes."""

LARGEST = sys.float_info.max
"""The largest number that a table may hold."""

_LONG_NUMBER = re.compile(r"[eE]\+?[0-9]{3}|[0-9]{300}")
"""What every text holds in which a number is too large for a float."""
_BIF = re.compile(r"\s*network\b[^{]{0,1000}\{")
_HOLDERS = frozenset({list, dict})

_PROVENANCE = {
    "learner": str,
    "unit": str,
    "cost": dict,
    "measurements": list,
    "predicted error": dict,
    "details": dict,
    "statement": dict,
}

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of document: what people call it, how it names itself, and its keys in order."""

    what: str
    format: str
    keys: tuple[str, ...]
    """What follows the keys 'format' and 'version'."""
    listed: tuple[str, ...] = ()
    """The keys whose members are written on lines of their own."""
    version: int = 1
    optional: tuple[str, ...] = ()
    """Keys that a document may lack; they come last."""

    def check(self, document: object) -> Mapping[str, Any]:
        """The document if it has this format, a version that is known, and exactly these keys."""
        if not isinstance(document, Mapping) or document.get("format") != self.format:
            raise FormatError(f"not {self.what} of discreet: the key 'format' must be {self.format!r}")
        found = document.get("version")
        if type(found) is not int or found < 1:
            raise FormatError(f"version {show(found)} is not a whole number above 0")
        if found > self.version:
            raise FormatError(
                f"version {show(found)} was written by a newer discreet; this one reads up to {self.version}"
            )
        return require_keys(document, self.what, ("format", "version", *self.keys), self.optional)

    def names(self, text: str) -> bool:
        """Whether a text begins as documents of this kind do, as discreet writes them."""
        return text.startswith(f'{{"format": "{self.format}"')

    def describe(self, **values: Any) -> dict[str, Any]:
        """The document with these values of its keys."""
        present = [*self.keys, *(key for key in self.optional if values.get(key) is not None)]
        return {"format": self.format, "version": self.version, **{key: values[key] for key in present}}

    def format_text(self, document: Mapping[str, Any]) -> str:
        """The document as JSON text, a key to a line; the same document always gives the same text."""
        parts = (f'"{key}": {self._format_value(key, value)}' for key, value in document.items())
        return "{" + ",\n".join(parts) + "}\n"

    def _format_value(self, key: str, value: Any) -> str:
        if key not in self.listed:
            return _dump(value)
        return "[\n" + ",\n".join(map(_dump, value)) + "\n]"


def parse_document(text: str, source: str, restore: Callable[[object], Found]) -> Found:
    """What `restore` makes of a JSON text; every refusal begins with `source`."""
    try:
        return restore(load_strictly(text))
    except TooLarge as error:
        raise TooLarge(f"{source}: {error}") from None
    except DiscreetError as error:
        raise FormatError(f"{source}: {error}") from None


def load_strictly(text: str) -> Any:
    """The values in a JSON text, without what JSON itself forbids: NaN, infinities and a key given twice.

    A number such as 1e999, which would be read as an infinity, is refused as well.
    """
    # Numbers are looked at one by one only where one could be too large: a document may hold millions.
    read = _read_float if _LONG_NUMBER.search(text) else None
    try:
        document = json.loads(
            text, parse_constant=_refuse_constant, object_pairs_hook=_refuse_twice, parse_float=read
        )
    except json.JSONDecodeError as error:
        if _BIF.match(text):
            raise FormatError(
                "a BIF file, which holds no more than a network; give its release.json"
            ) from None
        raise FormatError(f"line {error.lineno}: not JSON: {error.msg}") from None
    except RecursionError:
        raise FormatError("not a document of discreet: it is nested too deeply") from None
    except DiscreetError:
        raise
    except ValueError as error:  # an integer with thousands of digits
        raise FormatError(f"not a document of discreet: {error}") from None
    _require_shallow(document)
    return document


def describe_graph(dag: DAG) -> list[list[Any]]:
    """A graph as a list of [name, parents] pairs."""
    return [[name, list(dag.parents_of(name))] for name in dag.nodes]


def describe_tables(tables: Sequence[Table]) -> list[list[float]]:
    """Each table as a flat list of numbers."""
    return [table.values.ravel().tolist() for table in tables]


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


def restore_tables(
    document: object, what: str, dag: DAG, schema: Schema, most: float = 1.0
) -> tuple[Table, ...]:
    """One table for each node of a graph, from flat lists of numbers between 0 and `most`."""
    columns = require_list(document, what)
    if len(columns) != len(dag):
        raise FormatError(f"{what} has {len(columns)} tables for {len(dag)} nodes")
    sizes = schema.sizes
    return tuple(
        _restore_table(dag.family(name), values, sizes, most)
        for name, values in zip(dag.nodes, columns, strict=True)
    )


def describe_provenance(provenance: Provenance) -> dict[str, Any]:
    """Where a model comes from, as plain JSON values."""
    return {
        "learner": provenance.learner,
        "unit": provenance.unit.value,
        "cost": provenance.cost.to_json(),
        "measurements": [measurement.to_json() for measurement in provenance.measurements],
        "predicted error": dict(provenance.predicted_error),
        "details": dict(provenance.details),
        "statement": {} if provenance.statement is None else provenance.statement.to_json(),
        **({"parts": [describe_provenance(part) for part in provenance.parts]} if provenance.parts else {}),
    }


def restore_provenance(document: object, schema: Schema, *, whole: bool = True) -> Provenance:
    """Where a model over this schema comes from; whatever else stood there would be published without a look.

    Only a `whole` provenance may have parts.
    """
    known = require_keys(document, "a provenance", tuple(_PROVENANCE), ("parts",) if whole else ())
    for key, kind in _PROVENANCE.items():
        if not isinstance(known[key], kind):
            raise FormatError(f"the {key} of a provenance cannot be {show(known[key])}")
    errors = known["predicted error"]
    if not all(isinstance(value, float | int) for value in errors.values()):
        raise FormatError("the predicted error of a provenance holds a number for each attribute")
    measurements = tuple(Measurement.from_json(found) for found in known["measurements"])
    for measurement in measurements:
        for name, size in measurement.noisy.sizes.items():
            if name not in schema or schema[name].size != size:
                raise FormatError(
                    f"a measurement over {show(name)} with {size} levels does not fit the schema"
                )
    return Provenance(
        known["learner"],
        read_unit(known["unit"]),
        budget_from_json(known["cost"]),
        measurements,
        errors,
        known["details"],
        Statement.from_json(known["statement"]) if known["statement"] else None,
        tuple(
            restore_provenance(part, schema, whole=False)
            for part in require_list(known.get("parts", []), "the parts of a provenance")
        ),
    )


def _restore_table(family: Sequence[str], document: object, sizes: Mapping[str, int], most: float) -> Table:
    name = show(family[-1])
    values = require_list(document, f"the table of {name}")
    shape = [sizes[member] for member in family]
    cells = count_cells(shape)
    if len(values) != cells:
        needed = f"{cells:,}" if cells < 10**18 else "more than 10^18"
        raise FormatError(f"the table of {name} has {len(values):,} numbers; it needs {needed}")
    # Checked before the conversion, which would take '0.5', true and null for numbers.
    if not set(map(type, values)) <= {float, int}:
        odd = next(value for value in values if type(value) not in (float, int))
        raise FormatError(f"the table of {name} holds {show(odd)}, which is not a number")
    if not (min(values) >= 0 and max(values) <= most):
        odd = next(value for value in values if not 0 <= value <= most)
        allowed = (
            f"between 0 and {most:g}" if most < LARGEST else "a number of at least 0 that a float can hold"
        )
        raise FormatError(f"the table of {name} holds {show(odd)}, which is not {allowed}")
    return Table(tuple(family), np.array(values, dtype=np.float64).reshape(shape))


def require_list(value: object, what: str) -> list[Any]:
    """The value if it is an array, else a refusal that calls it `what`."""
    if not isinstance(value, list):
        raise FormatError(f"{what} must be an array, not {show(value)}")
    return value


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


def _read_float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise FormatError(f"{show(text)} is larger than any number that a float can hold")
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
