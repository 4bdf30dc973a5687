"""Any file that holds a network or a graph: a release, a network of discreet, BIF, or a list of arrows; told by its
content, not by its name."""

from __future__ import annotations

import os
import re

from discreet.networks.credal.document import FORMAT as CREDAL
from discreet.networks.credal.document import parse_credal
from discreet.networks.credal.network import CredalNetwork
from discreet.networks.formats.bif import parse_bif
from discreet.networks.formats.edges import parse_edges
from discreet.networks.formats.network_json import MAX_BYTES, parse_network
from discreet.networks.formats.release import FORMAT as RELEASE
from discreet.networks.formats.release import parse_release
from discreet.networks.network import Network
from discreet.values.errors import GraphError
from discreet.values.files import read_text
from discreet.values.graph import DAG
from discreet.values.schema import Schema

HEAD = 4096
"""Both documents of discreet name their format in their first line."""


def read_any(path: str | os.PathLike[str]) -> Network | CredalNetwork:
    """Whatever can be asked: a network as `read_model` reads it, or a credal network."""
    text, name = read_text(path, MAX_BYTES), os.fspath(path)
    if text.lstrip().startswith("{") and f'"{CREDAL}"' in text[:HEAD]:
        return parse_credal(text, name)
    return parse_model(text, name)


def read_model(path: str | os.PathLike[str]) -> Network:
    """The network in a release, a network document or a BIF file, plain or gzip."""
    return parse_model(read_text(path, MAX_BYTES), os.fspath(path))


def parse_model(text: str, name: str) -> Network:
    """The network in a text of any of these formats; `name` is how messages call it."""
    if not text.lstrip().startswith("{"):
        return parse_bif(text, name)
    if f'"{RELEASE}"' in text[:HEAD]:
        return parse_release(text, name).network
    return parse_network(text, name)


def read_graph(path: str | os.PathLike[str], schema: Schema) -> DAG:
    """The graph in a file over the attributes of a schema: of any network, or lines such as "smoke -> lung"."""
    text, name = read_text(path, MAX_BYTES), os.fspath(path)
    if not text.lstrip().startswith("{") and not _looks_like_bif(text):
        try:
            return parse_edges(text, schema, name)
        except GraphError as error:
            raise GraphError(str(error) if str(error).startswith(name) else f"{name}: {error}") from None
    dag = parse_model(text, name).dag
    strange = sorted(set(dag.nodes) ^ set(schema.names))
    if strange:
        where = (
            "in the graph but not in the schema"
            if strange[0] in dag
            else "in the schema but not in the graph"
        )
        raise GraphError(f"{name}: attribute {strange[0]!r} is {where}; both must name the same attributes")
    return DAG.build({node: dag.parents_of(node) for node in schema.names})


def _looks_like_bif(text: str) -> bool:
    return re.search(r"^\s*(network|variable|probability)\b[^\n]*[{(]", text, re.MULTILINE) is not None
