"""The schema as plain tables and arrays: what its TOML and JSON forms have in common."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

from discreet.values.errors import FormatError, SchemaError
from discreet.values.schema import Attribute, Schema
from discreet.values.schema.bins import Bins
from discreet.values.schema.taxonomy import MAX_HEIGHT, Group, Taxonomy
from discreet.values.wording import list_some, show

FORMAT = 1
"""The version of the format; a file that says another one is refused, a file that says none has this one."""

LEVEL_KEYS = ("levels", "ordered", "missing", "taxonomy")
BIN_KEYS = ("edges", "closed", "missing", "taxonomy")


def make_document(schema: Schema) -> dict[str, Any]:
    """The schema as JSON values; every order that matters is kept by an array."""
    return {"format": FORMAT, "attributes": [_make_attribute(attribute) for attribute in schema]}


def parse_document(document: object) -> Schema:
    """The schema that a document declares, as `{name: {...}}` or as `[{"name": name, ...}]`."""
    top = _require(document, dict, "a schema", "a table")
    _refuse_others("the schema", top, ("format", "attributes"))
    version = top.get("format", FORMAT)
    if version != FORMAT or isinstance(version, bool):
        raise FormatError(f"schema format {show(version)} is not known; this version reads format {FORMAT}")
    if "attributes" not in top:
        raise SchemaError("the schema has no attributes; at least 1 is needed")
    declared = top["attributes"]
    if isinstance(declared, list):
        return Schema(tuple(_parse_listed(i, entry) for i, entry in enumerate(declared, start=1)))
    tables = _require(declared, dict, "attributes", "a table or an array of tables")
    return Schema(tuple(_parse_attribute(name, entry) for name, entry in tables.items()))


def _make_attribute(attribute: Attribute) -> dict[str, Any]:
    found: dict[str, Any] = {"name": attribute.name}
    if attribute.bins is not None:
        found["edges"] = [_make_edge(edge) for edge in attribute.bins.edges]
        found["closed"] = attribute.bins.closed
    else:
        found["levels"] = list(attribute.levels if attribute.missing is None else attribute.levels[:-1])
        found["ordered"] = attribute.ordered
    if attribute.missing is not None:
        found["missing"] = attribute.missing
    if attribute.taxonomy is not None:
        found["taxonomy"] = [_make_node(node) for node in attribute.taxonomy.members]
    return found


def _make_node(node: str | Group) -> str | dict[str, Any]:
    return node if isinstance(node, str) else {node.label: [_make_node(member) for member in node.members]}


def _make_edge(edge: float) -> int | float | str:
    if math.isinf(edge):
        return "inf" if edge > 0 else "-inf"  # JSON has no infinite numbers
    return int(edge) if edge == int(edge) and abs(edge) < 2**53 else edge


def _parse_listed(position: int, entry: object) -> Attribute:
    table = _require(entry, dict, f"attribute {position}", "a table")
    if "name" not in table:
        raise FormatError(f"attribute {position} has no name; it needs the key 'name'")
    return _parse_attribute(table["name"], {key: value for key, value in table.items() if key != "name"})


def _parse_attribute(name: Any, entry: object) -> Attribute:
    what = f"attribute {show(name)}"
    table = _require(entry, dict, what, "a table")
    if ("levels" in table) == ("edges" in table):
        _refuse_others(what, table, dict.fromkeys(LEVEL_KEYS + BIN_KEYS))
        raise SchemaError(
            f"{what} has {'both' if 'levels' in table else 'neither'} levels and edges; give one of the two"
        )
    missing = table.get("missing")
    if missing is not None:
        missing = _parse_level(what, "missing", missing)
    if "edges" in table:
        _refuse_others(what, table, BIN_KEYS)
        edges = [_parse_edge(edge) for edge in _require(table["edges"], list, f"{what}: edges", "an array")]
        try:
            bins = Bins(tuple(edges), table.get("closed", "left"))
            taxonomy = _parse_taxonomy(table.get("taxonomy"), bins.labels)
        except SchemaError as error:
            raise SchemaError(f"{what}: {error}") from None
        return Attribute.binned(name, bins, missing=missing, taxonomy=taxonomy)
    _refuse_others(what, table, LEVEL_KEYS)
    levels = [
        _parse_level(what, "level", level)
        for level in _require(table["levels"], list, f"{what}: levels", "an array")
    ]
    ordered = _require(table.get("ordered", False), bool, f"{what}: ordered", "true or false")
    try:
        taxonomy = _parse_taxonomy(table.get("taxonomy"), levels)
    except SchemaError as error:
        raise SchemaError(f"{what}: {error}") from None
    return Attribute.of(name, levels, ordered=ordered, missing=missing, taxonomy=taxonomy)


def _parse_level(what: str, role: str, level: object) -> str:
    if isinstance(level, bool):
        return "true" if level else "false"
    if isinstance(level, int):
        return str(level)
    text: str = _require(level, str, f"{what}: {role} {show(level)}", "text, a whole number or a boolean")
    return text


def _parse_edge(edge: object) -> Any:
    return float(edge) if isinstance(edge, str) and edge in ("inf", "-inf") else edge


def _parse_taxonomy(declared: object, levels: Collection[str]) -> Taxonomy | None:
    if declared is None:
        return None
    if declared == "halves":
        return Taxonomy.halve(tuple(levels))
    if not isinstance(declared, list | dict):
        raise SchemaError(
            f"taxonomy {show(declared)} is not allowed; give a table or array of groups, or 'halves'"
        )
    return Taxonomy(_parse_members(declared, 1))


def _parse_members(declared: object, depth: int) -> tuple[str | Group, ...]:
    if depth > MAX_HEIGHT:
        raise SchemaError(f"the taxonomy is more than {MAX_HEIGHT} groups deep")
    if isinstance(declared, Mapping):
        return tuple(Group(label, _parse_members(members, depth + 1)) for label, members in declared.items())
    found: list[str | Group] = []
    for node in _require(
        declared, list, f"taxonomy: {show(declared)}", "an array of levels or a table of groups"
    ):
        if isinstance(node, dict):
            found.extend(_parse_members(node, depth))
        else:
            found.append(_parse_level("taxonomy", "member", node))
    return tuple(found)


def _refuse_others(what: str, table: Mapping[str, object], allowed: Collection[str]) -> None:
    for key in table:
        if key not in allowed:
            raise FormatError(f"{what} has the unknown key {show(key)}; allowed are {list_some(allowed)}")


def _require(value: object, kind: type, what: str, wanted: str) -> Any:
    if not isinstance(value, kind):
        raise FormatError(f"{what} must be {wanted}, not {_NOUNS.get(type(value), type(value).__name__)}")
    return value


_NOUNS: dict[type, str] = {
    bool: "a boolean",
    int: "a number",
    float: "a number",
    str: "text",
    list: "an array",
    dict: "a table",
}
