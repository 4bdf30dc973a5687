"""BIF files: every public Bayesian-network repository speaks this format, so discreet reads and writes it.

BIF holds names, states and numbers only; bins, taxonomies and missing levels stay behind (the JSON of a network keeps
them). A conditional that sums to 1 within 1e-12 is read digit for digit, so what was written is read back equal; one
up to 1e-3 away is divided by its sum; any other is refused. The language: see `bif_reader`.
"""

from __future__ import annotations

import os

from discreet.networks.formats.bif_reader import read_blocks
from discreet.networks.formats.bif_tables import TableReader, format_bif_text
from discreet.networks.network import Network
from discreet.values.errors import DiscreetError, FormatError, TooLarge
from discreet.values.files import read_text, write_text
from discreet.values.graph import DAG
from discreet.values.schema import Attribute, Schema
from discreet.values.table import Table

MAX_BYTES = 2**25
"""The longest text that is read unasked, unpacked: six times the largest public network."""


def read_bif(path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> Network:
    """The network in a BIF file, plain or gzip; a malformed one is a `FormatError` with its name and line."""
    return parse_bif(read_text(path, max_bytes), os.fspath(path), max_bytes=max_bytes)


def parse_bif(text: str, source: str = "BIF text", *, max_bytes: int = MAX_BYTES) -> Network:
    """The network in a BIF text; `source` is how messages call it."""
    if len(text) > max_bytes:
        raise TooLarge(f"{source} has {len(text):,} characters; at most {max_bytes:,} are read")
    tokens, variables, blocks = read_blocks(text, source)
    cpts = tuple(
        Table((*blocks[name].parents, name), TableReader(tokens, name, variables, blocks[name]).read())
        for name in variables
    )
    attributes = []
    for name, variable in variables.items():
        try:
            attributes.append(Attribute(name, variable.levels))
        except DiscreetError as error:
            raise FormatError(f"{tokens.where(variable.place)}: {error}") from None
    return Network(
        Schema(tuple(attributes)), DAG.build({name: blocks[name].parents for name in variables}), cpts
    )


def write_bif(network: Network, path: str | os.PathLike[str]) -> None:
    """Write a network as BIF, all or nothing; packed by gzip if the name ends in .gz."""
    write_text(path, format_bif(network))


def format_bif(network: Network) -> str:
    """A network as BIF text, with the shortest decimals that read back as the same floats."""
    return format_bif_text(network.schema, network.dag, network.cpts)
