"""The schema as plain tables and arrays: what JSON and TOML hold, and how it is read back."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from datetime import date
from typing import Any

from discreet.values.errors import FormatError, SchemaError
from discreet.values.schema import Attribute, Schema
from discreet.values.schema.bins import Bins
from discreet.values.schema.constraints import Choice, Constraint, Follows, Implied, Listed, Ordered
from discreet.values.schema.dates import Dates, read_day
from discreet.values.schema.reading import Reading
from discreet.values.schema.taxonomy import MAX_HEIGHT, Group, Taxonomy
from discreet.values.text import require_keys, show

FORMAT = 1
"""The version of the format; a file that says another one is refused, a file that says none has this one."""

COMMON_KEYS = ("missing", "taxonomy", "other", "type", "nulls", "aliases", "ignore", "outside")
LEVEL_KEYS = ("levels", "ordered", *COMMON_KEYS, "decimals")
BIN_KEYS = ("edges", "closed", "points", *COMMON_KEYS, "lowest", "highest", "decimals")
DATE_EDGE_KEYS = ("edges", "closed", *COMMON_KEYS, "lowest", "highest", "order")
CALENDAR_KEYS = ("by", "from", "to", *COMMON_KEYS, "order")
ALL_KEYS = tuple(
    dict.fromkeys(("levels", "edges", "by", *LEVEL_KEYS, *BIN_KEYS, *DATE_EDGE_KEYS, *CALENDAR_KEYS))
)


def make_document(schema: Schema) -> dict[str, Any]:
    """The schema as JSON values; every order that matters is kept by an array, and what is not declared is left out."""
    found: dict[str, Any] = {"format": FORMAT, "attributes": [make_attribute(one) for one in schema]}
    if schema.constraints:
        found["constraints"] = [_make_constraint(one) for one in schema.constraints]
    if schema.follows:
        found["follows"] = [_make_follows(one) for one in schema.follows]
    return found


def parse_document(document: object) -> Schema:
    """The schema that a document declares, as `{name: {...}}` or as `[{"name": name, ...}]`."""
    top = _require(document, dict, "a schema", "a table")
    require_keys(top, "the schema", (), ("format", "attributes", "constraints", "follows"))
    version = top.get("format", FORMAT)
    if version != FORMAT or isinstance(version, bool):
        raise FormatError(f"schema format {show(version)} is not known; this version reads format {FORMAT}")
    if "attributes" not in top:
        raise SchemaError("the schema has no attributes; at least 1 is needed")
    listed = _require(top.get("constraints", []), list, "constraints", "an array of tables")
    return Schema(
        tuple(_parse_attribute(name, entry) for name, entry in _list_named(top["attributes"], "attribute")),
        tuple(_parse_constraint(f"constraint {i}", entry) for i, entry in enumerate(listed, start=1)),
        tuple(_parse_follows(name, entry) for name, entry in _list_named(top.get("follows", []), "follows")),
    )


def make_attribute(attribute: Attribute) -> dict[str, Any]:
    """One attribute as JSON values, its name first."""
    found: dict[str, Any] = {"name": attribute.name}
    dates, bins = attribute.dates, attribute.bins
    if attribute.type != attribute.inferred_type:
        found["type"] = attribute.type
    if dates is not None and dates.by != "edges":
        found |= {"by": dates.by, "from": str(dates.first), "to": str(dates.last)}
    elif bins is not None:
        found["edges"] = [_make_edge(edge, dates) for edge in bins.edges]
        found["closed"] = bins.closed
        if bins.points:
            found["points"] = [_make_edge(point, dates) for point in bins.points]
        ends = {"lowest": bins.lowest, "highest": bins.highest}
        found |= {name: _make_edge(end, dates) for name, end in ends.items() if end is not None}
    else:
        found["levels"] = list(attribute.values)
        found["ordered"] = attribute.ordered
    if attribute.decimals is not None:
        found["decimals"] = attribute.decimals
    for name, label in (("other", attribute.other), ("missing", attribute.missing)):
        if label is not None:
            found[name] = label
    found |= _make_reading(attribute.reading)
    if attribute.taxonomy is not None:
        found["taxonomy"] = [_make_node(node) for node in attribute.taxonomy.members]
    return found


def _make_reading(reading: Reading) -> dict[str, Any]:
    aliases: dict[str, list[str]] = {}
    for alias, level in reading.aliases:
        aliases.setdefault(level, []).append(alias)
    found: dict[str, Any] = {
        "nulls": list(reading.nulls),
        "aliases": aliases,
        "ignore": list(reading.ignore),
        "outside": "" if reading.outside == "refuse" else reading.outside,
        "order": reading.order,
    }
    return {key: value for key, value in found.items() if value}


def _make_node(node: str | Group) -> str | dict[str, Any]:
    return node if isinstance(node, str) else {node.label: [_make_node(member) for member in node.members]}


def _make_edge(edge: float, dates: Dates | None) -> int | float | str:
    if dates is not None:
        return dates.write(edge)
    if math.isinf(edge):
        return "inf" if edge > 0 else "-inf"  # JSON has no infinite numbers
    return int(edge) if edge == int(edge) and abs(edge) < 2**53 else edge


def _make_constraint(constraint: Constraint) -> dict[str, Any]:
    if isinstance(constraint, Ordered):
        return {"holds": [constraint.left, constraint.sign, constraint.right]}
    if isinstance(constraint, Implied):
        return {"if": _make_choice(constraint.when), "then": _make_choice(constraint.then)}
    return {"columns": list(constraint.names), "combinations": [list(row) for row in constraint.rows]}


def _make_choice(choice: Choice) -> dict[str, Any]:
    return {name: wanted[0] if len(wanted) == 1 else list(wanted) for name, wanted in choice}


def _make_follows(follows: Follows) -> dict[str, Any]:
    found: dict[str, Any] = {"name": follows.name, "from": list(follows.sources)}
    if follows.type != follows.inferred_type:
        found["type"] = follows.type
    return {**found, "rows": [list(row) for row in follows.rows]}


def _list_named(declared: object, what: str) -> list[tuple[Any, object]]:
    """The names and tables of a mapping of tables, or of an array of tables that name themselves."""
    if not isinstance(declared, list):
        plural = "attributes" if what == "attribute" else what
        return list(_require(declared, dict, plural, "a table or an array of tables").items())
    found: list[tuple[Any, object]] = []
    for position, entry in enumerate(declared, start=1):
        table = _require(entry, dict, f"{what} {position}", "a table")
        if "name" not in table:
            raise FormatError(f"{what} {position} has no name; it needs the key 'name'")
        found.append((table["name"], {key: value for key, value in table.items() if key != "name"}))
    return found


def _parse_attribute(name: Any, entry: object) -> Attribute:
    what = f"attribute {show(name)}"
    table = _require(entry, dict, what, "a table")
    given = [key for key in ("levels", "edges", "by") if key in table]
    if len(given) != 1:
        require_keys(table, what, (), ALL_KEYS)
        if given == ["levels", "edges"] or not given:
            raise SchemaError(
                f"{what} has {'both' if given else 'neither'} levels and edges; give one of the two"
            )
        raise SchemaError(f"{what} has {' and '.join(given)}; give one of them")
    try:
        return _parse_kind(name, what, table)
    except SchemaError as error:
        text = str(error)
        raise SchemaError(text if text.startswith(what) else f"{what}: {text}") from None


def _parse_kind(name: Any, what: str, table: dict[str, Any]) -> Attribute:
    kind = table.get("type")
    require_keys(table, what, (), _choose_keys(table, kind))
    labels = {key: _parse_label(what, key, table.get(key)) for key in ("missing", "other")}
    if kind is not None:
        _require(kind, str, f"{what}: type", "text")
    reading = _parse_reading(what, table)
    if kind in ("date", "datetime") or "by" in table:
        return _parse_dates(name, what, table, labels, reading)
    common: dict[str, Any] = {**labels, "type": kind, "decimals": table.get("decimals"), "reading": reading}
    if "edges" in table:
        edges = [_parse_edge(edge) for edge in _require(table["edges"], list, f"{what}: edges", "an array")]
        points = [
            _parse_edge(point)
            for point in _require(table.get("points", []), list, f"{what}: points", "an array")
        ]
        bins = Bins(
            tuple(edges),
            table.get("closed", "left"),
            table.get("lowest"),
            table.get("highest"),
            tuple(points),
        )
        taxonomy = _parse_taxonomy(table.get("taxonomy"), bins.labels)
        return Attribute.binned(name, bins, taxonomy=taxonomy, **common)
    levels = [
        _parse_level(what, "level", level)
        for level in _require(table["levels"], list, f"{what}: levels", "an array")
    ]
    ordered = _require(table.get("ordered", False), bool, f"{what}: ordered", "true or false")
    taxonomy = _parse_taxonomy(table.get("taxonomy"), levels)
    return Attribute.of(name, levels, ordered=ordered, taxonomy=taxonomy, **common)


def _choose_keys(table: dict[str, Any], kind: object) -> tuple[str, ...]:
    if "by" in table:
        return CALENDAR_KEYS
    if "levels" in table:
        return LEVEL_KEYS
    return DATE_EDGE_KEYS if kind in ("date", "datetime") else BIN_KEYS


def _parse_dates(
    name: Any, what: str, table: dict[str, Any], labels: dict[str, Any], reading: Reading
) -> Attribute:
    kind = table.get("type", "date")
    if kind not in ("date", "datetime"):
        raise SchemaError(f"type {show(kind)} with `by`; allowed are date and datetime")
    moments = kind == "datetime"
    if "by" in table:
        days = [_parse_day(table.get(key)) for key in ("from", "to")]
        dates = Dates(table["by"], moments, *days)
        given: dict[str, Any] = {"by": dates.by, "first": dates.first, "last": dates.last}
        shown = dates.label(dates.cut())
    else:
        edges = _require(table["edges"], list, f"{what}: edges", "an array")
        given = {"edges": edges, "closed": table.get("closed", "left")}
        given |= {key: table.get(key) for key in ("lowest", "highest")}
        shown = Attribute.dated(name, moments=moments, **given).levels
    taxonomy = _parse_taxonomy(table.get("taxonomy"), shown)
    return Attribute.dated(name, moments=moments, taxonomy=taxonomy, reading=reading, **given, **labels)


def _parse_day(value: object) -> Any:
    day: date | None = read_day(value)
    return value if day is None else day


def _parse_reading(what: str, table: dict[str, Any]) -> Reading:
    nulls = _require(table.get("nulls", []), list, f"{what}: nulls", "an array")
    aliases = _require(table.get("aliases", {}), dict, f"{what}: aliases", "a table of levels")
    ignore = _require(table.get("ignore", []), list, f"{what}: ignore", "an array")
    outside = table.get("outside", "refuse")
    return Reading.of(
        nulls=nulls,
        aliases={
            level: _list_texts(f"{what}: alias of {show(level)}", spelt) for level, spelt in aliases.items()
        },
        ignore=ignore,
        outside=outside,
        order=table.get("order"),
    )


def _parse_constraint(what: str, entry: object) -> Constraint:
    table = _require(entry, dict, what, "a table")
    if "holds" in table:
        require_keys(table, what, ("holds",))
        words = table["holds"].split() if isinstance(table["holds"], str) else table["holds"]
        if not isinstance(words, list) or len(words) != 3 or not all(isinstance(word, str) for word in words):
            raise SchemaError(
                f'{what} holds {show(table["holds"])}; write \'a <= b\' or \'a < b\', and ["a b", "<=", "c"] '
                "for names with blanks"
            )
        return Ordered(*words)
    if "if" in table or "then" in table:
        require_keys(table, what, ("if", "then"))
        return Implied(_parse_choice(what, table["if"]), _parse_choice(what, table["then"]))
    require_keys(table, what, ("columns", "combinations"))
    return Listed(_list_texts(what, table["columns"]), _parse_rows(what, table["combinations"]))


def _parse_choice(what: str, entry: object) -> Choice:
    table = _require(entry, dict, what, "a table of attributes and levels")
    return tuple((name, _list_texts(what, wanted)) for name, wanted in table.items())


def _parse_follows(name: Any, entry: object) -> Follows:
    what = f"follows {show(name)}"
    table = _require(entry, dict, what, "a table")
    require_keys(table, what, ("from",), ("map", "rows", "type"))
    sources = _list_texts(what, table["from"])
    if ("map" in table) == ("rows" in table):
        raise SchemaError(
            f"{what} needs a `map` from the levels of one column, or `rows` of levels and a value"
        )
    if "map" in table:
        pairs = _require(table["map"], dict, f"{what}: map", "a table of levels and values").items()
        rows: tuple[tuple[str, ...], ...] = tuple(
            (level, _parse_level(what, "value", value)) for level, value in pairs
        )
    else:
        rows = _parse_rows(what, table["rows"])
    return Follows(name, sources, rows, table.get("type", ""))


def _parse_rows(what: str, entry: object) -> tuple[tuple[str, ...], ...]:
    return tuple(_list_texts(what, row) for row in _require(entry, list, what, "an array of arrays"))


def _list_texts(what: str, value: object) -> tuple[str, ...]:
    """A level or an array of levels, as texts."""
    return tuple(_parse_level(what, "level", one) for one in (value if isinstance(value, list) else [value]))


def _parse_label(what: str, key: str, label: object) -> str | None:
    return None if label is None else _parse_level(what, key, label)


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
