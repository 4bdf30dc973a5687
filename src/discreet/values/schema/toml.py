"""The schema as a TOML file, for people to write and read."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path

from discreet.values.errors import DiscreetError, FormatError
from discreet.values.schema import Attribute, Schema
from discreet.values.schema.bins import write_number
from discreet.values.schema.document import FORMAT, parse_document
from discreet.values.schema.taxonomy import Group

MAX_BYTES = 8 * 2**20
"""The largest schema file read: room for several attributes with the most levels allowed."""

WIDTH = 100
"""Arrays that would make a longer line are written with one member on each line."""

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPES = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}


def read_schema(path: str | os.PathLike[str]) -> Schema:
    """The schema that a TOML file declares; every refusal begins with the name of the file."""
    try:
        with Path(path).open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise FormatError(f"{os.fspath(path)}: cannot be read: {error.strerror}") from None
    try:
        return parse_toml(content)
    except DiscreetError as error:
        raise type(error)(f"{os.fspath(path)}: {error}") from None


def parse_toml(content: bytes | str) -> Schema:
    """The schema that TOML text declares."""
    if len(content) > MAX_BYTES:
        raise FormatError(f"a schema of more than {MAX_BYTES // 2**20} MiB; larger ones are not read")
    try:
        text = content if isinstance(content, str) else content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise FormatError(
            f"not UTF-8 text: byte 0x{error.object[error.start]:02x} (at line {line})"
        ) from None
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
    return (
        _write_array(prefix, nodes) if wrap else f"{prefix}[{', '.join(nodes)}]"
    )  # an inline table has one line


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
