"""Any file that holds a network: a release, a network of discreet, or BIF; told by its content, not by its name."""

from __future__ import annotations

import os

from discreet.models.bif import parse_bif
from discreet.models.network import Network
from discreet.models.network_json import MAX_BYTES, parse_network
from discreet.models.release import FORMAT as RELEASE
from discreet.models.release import parse_release
from discreet.vocabulary.files import read_text

HEAD = 4096
"""Both documents of discreet name their format in their first line."""


def read_model(path: str | os.PathLike[str]) -> Network:
    """The network in a release, a network document or a BIF file, plain or gzip."""
    text, name = read_text(path, MAX_BYTES), os.fspath(path)
    if not text.lstrip().startswith("{"):
        return parse_bif(text, name)
    if f'"{RELEASE}"' in text[:HEAD]:
        return parse_release(text, name).network
    return parse_network(text, name)
