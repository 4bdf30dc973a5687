"""One network, or one graph, from any file that holds one: a release, a network, a posterior, BIF, a list of arrows.

What a file holds is told by its content, not by its name.
"""

from __future__ import annotations

import os
import re

from discreet.networks.credal_network import CredalNetwork
from discreet.networks.formats.documents import MAX_BYTES, parse_document
from discreet.networks.formats.edges import parse_edges
from discreet.networks.formats.release import Model, Release, parse, read
from discreet.networks.network import Network
from discreet.networks.posterior import Posterior
from discreet.values.errors import FormatError, GraphError
from discreet.values.files import read_text
from discreet.values.graph import DAG
from discreet.values.schema import Schema


def read_model(path: str | os.PathLike[str]) -> Network:
    """The network in a file: as it is, of a release, or of the means of a posterior."""
    return find_network(read(path), os.fspath(path))


def find_network(model: Model, source: str) -> Network:
    """The one network that a model stands for; a credal network stands for many and is refused."""
    if isinstance(model, CredalNetwork):
        raise FormatError(
            f"{source}: this is a credal network, a whole set of networks; one network is needed"
        )
    if isinstance(model, Release):
        return model.network
    return model.network() if isinstance(model, Posterior) else model


def read_graph(path: str | os.PathLike[str], schema: Schema) -> DAG:
    """The graph in a file over the attributes of a schema: of any model, or lines such as "smoke -> lung"."""
    text, name = read_text(path, MAX_BYTES), os.fspath(path)
    if not text.lstrip().startswith("{") and not _looks_like_bif(text):
        try:
            return parse_edges(text, schema, name)
        except GraphError as error:
            raise GraphError(str(error) if str(error).startswith(name) else f"{name}: {error}") from None
    model = parse(text, name)
    dag = (model.network if isinstance(model, Release) else model).dag
    strange = sorted(set(dag.nodes) ^ set(schema.names))
    if strange:
        where = (
            "in the graph but not in the schema"
            if strange[0] in dag
            else "in the schema but not in the graph"
        )
        raise GraphError(f"{name}: attribute {strange[0]!r} is {where}; both must name the same attributes")
    return DAG.build({node: dag.parents_of(node) for node in schema.names})


def read_network(path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> Network:
    """The network in a JSON file, plain or gzip."""
    return parse_network(read_text(path, max_bytes), os.fspath(path))


def write_network(network: Network, path: str | os.PathLike[str]) -> None:
    """Write a network as JSON, all or nothing; packed by gzip if the name ends in .gz."""
    network.write(path)


def parse_network(text: str, source: str = "JSON text") -> Network:
    """The network in a JSON text; `source` is how messages call it."""
    return parse_document(text, source, Network.from_json)


def _looks_like_bif(text: str) -> bool:
    return re.search(r"^\s*(network|variable|probability)\b[^\n]*[{(]", text, re.MULTILINE) is not None
