"""BIF files: every public Bayesian-network repository speaks this format, so discreet reads and writes it.

BIF holds names, states and numbers only; bins, taxonomies and missing levels stay behind (the JSON of a
network keeps them). A row that sums to 1 within 1e-12 is read digit for digit, so what was written is read
back equal; one up to 1e-3 away is divided by its sum; any other is refused. The language: see `bif_reader`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import product

from discreet.networks.formats.bif_reader import Declaration, read_declarations
from discreet.networks.formats.bif_tokens import MAX_NAME, quote
from discreet.networks.network import Network
from discreet.values.errors import DiscreetError, FormatError, TooLarge
from discreet.values.files import read_text, write_text
from discreet.values.graph import DAG
from discreet.values.schema import Attribute, Schema
from discreet.values.table import Table
from discreet.values.wording import show

MAX_BYTES = 2**25
"""The longest text that is read unasked, unpacked: six times the largest public network."""


def read_bif(path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> Network:
    """The network in a BIF file, plain or gzip; a malformed one is a `FormatError` with its name and line."""
    return parse_bif(read_text(path, max_bytes), os.fspath(path), max_bytes=max_bytes)


def parse_bif(text: str, source: str = "BIF text", *, max_bytes: int = MAX_BYTES) -> Network:
    """The network in a BIF text; `source` is how messages call it."""
    if len(text) > max_bytes:
        raise TooLarge(f"{source} has {len(text):,} characters; at most {max_bytes:,} are read")
    declarations = read_declarations(text, source)
    schema = Schema(tuple(_declare(declaration, source) for declaration in declarations))
    dag = DAG.build({declaration.name: declaration.parents for declaration in declarations})
    cpts = (Table((*found.parents, found.name), found.values) for found in declarations)
    return Network(schema, dag, tuple(cpts))


def write_bif(network: Network, path: str | os.PathLike[str]) -> None:
    """Write a network as BIF, all or nothing; packed by gzip if the name ends in .gz."""
    write_text(path, format_bif(network))


def format_bif(network: Network) -> str:
    """A network as BIF text, with the shortest decimals that read back as the same floats."""
    return "".join(_write_blocks(network))


def _declare(declaration: Declaration, source: str) -> Attribute:
    try:
        return Attribute(declaration.name, declaration.levels)
    except DiscreetError as error:
        raise FormatError(f"{source}, line {declaration.line}: {error}") from None


def _write_blocks(network: Network) -> Iterator[str]:
    names = {attribute.name: _write_name(attribute.name) for attribute in network.schema}
    levels = {
        attribute.name: [_write_name(level) for level in attribute.levels] for attribute in network.schema
    }
    yield "network unknown {\n}\n"
    for name in network.nodes:
        states = ", ".join(levels[name])
        yield f"variable {names[name]} {{\n  type discrete [ {len(levels[name])} ] {{ {states} }};\n}}\n"
    for name, parents, cpt in zip(network.nodes, network.dag.parents, network.cpts, strict=True):
        given = f" | {', '.join(names[parent] for parent in parents)}" if parents else ""
        yield f"probability ( {names[name]}{given} ) {{\n"
        # The first parent runs fastest, as in the public repositories: reverse the parents' axes.
        values = cpt.values.transpose([*reversed(range(len(parents))), len(parents)])
        rows = (values.reshape(-1, values.shape[-1]) + 0.0).tolist()  # + 0.0 turns -0.0 into 0.0
        for head, row in zip(_write_heads([levels[parent] for parent in parents]), rows, strict=True):
            yield f"  {head} {', '.join(map(repr, row))};\n"
        yield "}\n"


def _write_heads(levels: list[list[str]]) -> Iterator[str]:
    for labels in product(*reversed(levels)):
        yield f"({', '.join(reversed(labels))})" if labels else "table"


def _write_name(name: str) -> str:
    if len(name) > MAX_NAME:
        raise FormatError(f"{show(name)} has {len(name):,} characters; BIF names have at most {MAX_NAME:,}")
    return quote(name)
