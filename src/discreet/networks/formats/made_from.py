"""What a file was made from: pages, networks and rows carry the digest of the release that they show.

network.bif      property made_from = sha256-… ;
*.html           <meta name="discreet-release" content="sha256 …">
rows.csv         a small document beside it, rows.csv.from.json, with the seed: whoever has the release draws the
                 same rows again
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from discreet.networks.formats.documents import Kind, parse_document
from discreet.networks.formats.release import Release, format_release
from discreet.values.errors import FormatError
from discreet.values.files import read_text, write_text
from discreet.values.statement import HASH
from discreet.values.text import show

ROWS = Kind(
    "the origin of rows",
    "discreet-rows",
    ("release", "rows", "seed", "given", "balanced", "labels", "sha256"),
)
MOST_BYTES = 2**20


def digest_release(release: Release) -> str:
    """The SHA-256 of a release's canonical bytes, as its files name it."""
    return hashlib.sha256(format_release(release).encode()).hexdigest()


def digest_file(path: str | os.PathLike[str]) -> str:
    """The SHA-256 of a file as it is."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise FormatError(f"{os.fspath(path)}: cannot be read: {error.strerror}") from None


def name_origin(rows: str | os.PathLike[str]) -> Path:
    """The document beside a file of synthetic rows that says what they were made from."""
    return Path(f"{os.fspath(rows)}.from.json")


@dataclass(frozen=True, slots=True)
class Origin:
    """How a file of synthetic rows was drawn, and from which release."""

    release: str
    rows: int
    seed: int
    given: list[str]
    """As it is written for `--given`: name=level."""
    balanced: bool
    labels: bool
    sha256: str

    def write(self, rows: str | os.PathLike[str]) -> Path:
        """Write it beside a file of rows."""
        path = name_origin(rows)
        write_text(path, self.format_text())
        return path

    def format_text(self) -> str:
        """The document as it is written, in one way only."""
        return ROWS.format_text(ROWS.describe(**{key: getattr(self, key) for key in ROWS.keys}))

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Origin:
        """The document in a file; anything else is refused."""
        return parse_document(read_text(path, MOST_BYTES), os.fspath(path), cls._restore)

    @classmethod
    def _restore(cls, document: object) -> Origin:
        found = ROWS.check(document)
        for key in ("release", "sha256"):
            if not isinstance(found[key], str) or not HASH.fullmatch(found[key]):
                raise FormatError(f"{key} must have 64 hexadecimal digits, not {show(found[key])}")
        for key in ("rows", "seed"):
            if type(found[key]) is not int or not 0 <= found[key] < 2**63:
                raise FormatError(f"{key} must be a whole number, 0 or more, not {show(found[key])}")
        for key in ("balanced", "labels"):
            if not isinstance(found[key], bool):
                raise FormatError(f"{key} must be true or false, not {show(found[key])}")
        given = found["given"]
        if not isinstance(given, list) or not all(isinstance(text, str) for text in given):
            raise FormatError(f"given must be a list of texts such as smoke=yes, not {show(given)}")
        return cls(**{key: found[key] for key in ROWS.keys})
