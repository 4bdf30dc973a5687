"""Graphs as people write them: a line "smoke -> lung" for each arrow.

    # what we believe
    smoke -> lung -> either
    "chest pain" -> xray
    age

A name alone is an attribute without arrows; names with '->', '#' or quotes in them stand in quotes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from itertools import pairwise

from discreet.values.errors import GraphError
from discreet.values.graph import DAG
from discreet.values.schema import Schema
from discreet.values.text import show

_TOKEN = re.compile(r'("(?:[^"\\]|\\.)*")|(->|→)|((?:(?!->)[^"#→])+)')
_BLANK = re.compile(r"\s*")


def parse_edges(text: str, schema: Schema, source: str = "the list of edges") -> DAG:
    """The graph over all attributes of the schema with the arrows of a text; `source` is how messages call it."""
    parents: dict[str, list[str]] = {name: [] for name in schema.names}
    for number, line in enumerate(text.splitlines(), start=1):
        chain = _read_chain(line, f"{source}, line {number}")
        for name in chain:
            if name not in schema:
                raise GraphError(f"{source}, line {number}: {show(name)} is not an attribute of the schema")
        for parent, child in pairwise(chain):
            if parent in parents[child]:
                raise GraphError(f"{source}, line {number}: the arrow {parent} -> {child} is there twice")
            parents[child].append(parent)
    return DAG.build(parents)


def parse_arrows(texts: Iterable[str], schema: Schema, source: str) -> list[tuple[str, str]]:
    """The arrows (parent, child) in texts such as "smoke -> lung", each once; `source` is how messages call them."""
    arrows: dict[tuple[str, str], None] = {}
    for text in texts:
        chain = _read_chain(text, source)
        strange = [name for name in chain if name not in schema]
        if strange:
            raise GraphError(f"{source}: {show(strange[0])} is not an attribute of the schema")
        if len(chain) < 2:
            raise GraphError(f"{source}: {show(text)} has no arrow; write for example smoke -> lung")
        arrows.update(dict.fromkeys(pairwise(chain)))
    return list(arrows)


def _read_chain(line: str, where: str) -> list[str]:
    """The names of a line, which arrows separate; none on an empty line."""
    names: list[str] = []
    arrow = True  # whether a name may come next
    at = _skip_blanks(line, 0)
    while at < len(line) and line[at] != "#":
        found = _TOKEN.match(line, at)
        quoted, sign, plain = found.groups() if found else (None, None, None)
        if found is None or bool(sign) == arrow or (plain is not None and not plain.strip()):
            raise GraphError(f"{where}: cannot read {show(line.strip())}; write for example smoke -> lung")
        if not sign:
            names.append(_unquote(quoted, where) if quoted else (plain or "").strip())
        arrow, at = bool(sign), _skip_blanks(line, found.end())
    if names and arrow:
        raise GraphError(f"{where}: the arrow after {show(names[-1])} leads nowhere")
    return names


def _skip_blanks(line: str, at: int) -> int:
    found = _BLANK.match(line, at)
    return at if found is None else found.end()


def _unquote(text: str, where: str) -> str:
    try:
        return str(json.loads(text))
    except ValueError:
        raise GraphError(f"{where}: cannot read the quoted name {show(text)}") from None
