"""The schema as plain tables and arrays, and as the TOML file that people write and read."""

from __future__ import annotations

import math
import os
import re
import tomllib
from collections.abc import Collection, Mapping
from typing import Any

from discreet.values.errors import DiscreetError, FormatError, SchemaError
from discreet.values.files import read_text
from discreet.values.schema import Attribute, Schema
from discreet.values.schema.bins import Bins, write_number
from discreet.values.schema.taxonomy import MAX_HEIGHT, Group, Taxonomy
from discreet.values.text import require_keys, show

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
    require_keys(top, "the schema", (), ("format", "attributes"))
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
        require_keys(table, what, (), dict.fromkeys(LEVEL_KEYS + BIN_KEYS))
        raise SchemaError(
            f"{what} has {'both' if 'levels' in table else 'neither'} levels and edges; give one of the two"
        )
    missing = table.get("missing")
    if missing is not None:
        missing = _parse_level(what, "missing", missing)
    if "edges" in table:
        require_keys(table, what, (), BIN_KEYS)
        edges = [_parse_edge(edge) for edge in _require(table["edges"], list, f"{what}: edges", "an array")]
        try:
            bins = Bins(tuple(edges), table.get("closed", "left"))
            taxonomy = _parse_taxonomy(table.get("taxonomy"), bins.labels)
        except SchemaError as error:
            raise SchemaError(f"{what}: {error}") from None
        return Attribute.binned(name, bins, missing=missing, taxonomy=taxonomy)
    require_keys(table, what, (), LEVEL_KEYS)
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


MAX_BYTES = 8 * 2**20
"""The largest schema file read: room for several attributes with the most levels allowed."""

WIDTH = 100
"""Arrays that would make a longer line are written with one member on each line."""

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPES = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}


def read_schema(path: str | os.PathLike[str]) -> Schema:
    """The schema that a TOML file declares; every refusal begins with the name of the file."""
    text = read_text(path, MAX_BYTES)
    try:
        return parse_toml(text)
    except DiscreetError as error:
        raise type(error)(f"{os.fspath(path)}: {error}") from None


def parse_toml(text: str) -> Schema:
    """The schema that TOML text declares."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise FormatError(f"not valid TOML: {error}") from None
    except (RecursionError, ValueError) as error:  # arrays nested too deep; an integer of thousands of digits
        raise FormatError(f"not valid TOML: {type(error).__name__}: {error}") from None
    return parse_document(document)


def write_toml(schema: Schema) -> str:
    """The TOML text that `parse_toml` reads back as an equal schema."""
    return "\n".join([f"format = {FORMAT}\n", *(_write_attribute(attribute) for attribute in schema)])


def _write_attribute(attribute: Attribute) -> str:
    header = f"attributes.{_write_key(attribute.name)}"
    lines = [f"[{header}]"]
    if attribute.bins is not None:
        lines.append(_write_array("edges = ", [write_number(edge) for edge in attribute.bins.edges]))
        lines.append(f"closed = {_write_text(attribute.bins.closed)}")
    else:
        levels = attribute.levels if attribute.missing is None else attribute.levels[:-1]
        lines.append(_write_array("levels = ", [_write_text(level) for level in levels]))
        lines.append(f"ordered = {'true' if attribute.ordered else 'false'}")
    if attribute.missing is not None:
        lines.append(f"missing = {_write_text(attribute.missing)}")
    if attribute.taxonomy is not None:
        members = attribute.taxonomy.members
        groups = _only_groups(members)
        if groups:
            lines.append(f"\n[{header}.taxonomy]")
            lines += [_write_branch(group, wrap=True) for group in groups]
        else:
            lines.append(_write_array("taxonomy = ", _write_nodes(members)))
    return "\n".join(lines) + "\n"


def _write_branch(group: Group, wrap: bool = False) -> str:
    prefix = f"{_write_key(group.label)} = "
    inner = _only_groups(group.members)
    if inner:
        return f"{prefix}{{ {', '.join(_write_branch(node) for node in inner)} }}"
    nodes = _write_nodes(group.members)
    # An inline table has one line.
    return _write_array(prefix, nodes) if wrap else f"{prefix}[{', '.join(nodes)}]"


def _write_nodes(members: tuple[str | Group, ...]) -> list[str]:
    return [
        _write_text(node) if isinstance(node, str) else f"{{ {_write_branch(node)} }}" for node in members
    ]


def _only_groups(members: tuple[str | Group, ...]) -> list[Group]:
    groups = [node for node in members if isinstance(node, Group)]
    return groups if len(groups) == len(members) else []


def _write_array(prefix: str, members: list[str]) -> str:
    line = f"{prefix}[{', '.join(members)}]"
    if len(line) <= WIDTH:
        return line
    return "\n".join([f"{prefix}[", *(f"  {member}," for member in members), "]"])


def _write_key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else _write_text(name)


def _write_text(text: str) -> str:
    return '"' + "".join(_ESCAPES.get(char) or _write_char(char) for char in text) + '"'


def _write_char(char: str) -> str:
    # Invisible line breaks are legal in TOML strings but would fool the reader of the file.
    return f"\\u{ord(char):04X}" if ord(char) < 0x20 or char in "\x7f\x85\u2028\u2029" else char
