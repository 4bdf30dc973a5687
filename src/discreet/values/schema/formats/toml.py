"""The schema as the TOML file that people write and read."""

from __future__ import annotations

import os
import re
from typing import Any

from discreet.values.errors import DiscreetError
from discreet.values.files import read_text
from discreet.values.schema import Attribute, Schema
from discreet.values.schema.bins import write_number
from discreet.values.schema.formats.document import FORMAT, make_attribute, make_document, parse_document
from discreet.values.schema.taxonomy import Group
from discreet.values.text import load_toml

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
    return parse_document(load_toml(text))


def write_toml(schema: Schema) -> str:
    """The TOML text that `parse_toml` reads back as an equal schema."""
    document = make_document(schema)
    parts = [f"format = {FORMAT}\n", *(_write_attribute(attribute) for attribute in schema)]
    parts += [
        "\n".join(["[[constraints]]", *(_write_entry(*item) for item in constraint.items())]) + "\n"
        for constraint in document.get("constraints", ())
    ]
    for follows in document.get("follows", ()):
        header = f"[follows.{_write_key(follows.pop('name'))}]"
        parts.append("\n".join([header, *(_write_entry(*item) for item in follows.items())]) + "\n")
    return "\n".join(parts)


def _write_attribute(attribute: Attribute) -> str:
    header = f"attributes.{_write_key(attribute.name)}"
    lines = [f"[{header}]"]
    for key, value in make_attribute(attribute).items():
        if key in ("edges", "points"):
            lines.append(_write_array(f"{key} = ", [_write_bound(edge) for edge in value]))
        elif key in ("from", "to", "lowest", "highest"):
            lines.append(f"{key} = {_write_bound(value)}")
        elif key not in ("name", "taxonomy"):
            lines.append(_write_entry(key, value))
    if attribute.taxonomy is not None:
        members = attribute.taxonomy.members
        groups = _only_groups(members)
        if groups:
            lines.append(f"\n[{header}.taxonomy]")
            lines += [_write_branch(group, wrap=True) for group in groups]
        else:
            lines.append(_write_array("taxonomy = ", _write_nodes(members)))
    return "\n".join(lines) + "\n"


def _write_bound(value: float | str) -> str:
    """An edge: a number, an open end, or a date, which TOML writes without quotes."""
    return value.replace(" ", "T") if isinstance(value, str) else write_number(value)


def _write_entry(key: str, value: Any) -> str:
    prefix = f"{_write_key(key)} = "
    return (
        _write_array(prefix, [_write_value(one) for one in value])
        if isinstance(value, list)
        else (prefix + _write_value(value))
    )


def _write_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{_write_key(key)} = {_write_value(one)}' for key, one in value.items())} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_write_value, value))}]"
    return _write_text(value)


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
