"""Whether a page may show what a release promises: only if the release adds up as far as it can be checked at all."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.judge.verify import OPTIONAL, Verification, verify, verify_bytes
from discreet.networks.formats.documents import MAX_BYTES
from discreet.networks.formats.release import ROWS, Model, Release, find_document, parse, parse_release, read
from discreet.values.errors import FormatError
from discreet.values.files import decode_text, read_bytes

if TYPE_CHECKING:
    from discreet.core.ledger import Ledger


@dataclass(frozen=True, slots=True)
class CheckedFile:
    """The release in a file and what was found about it, both from the same bytes."""

    release: Release
    found: Verification
    data: bytes
    """What the file held, unpacked; a signature is for these."""


def check_file(
    path: str | os.PathLike[str], choose: Callable[[Release], Ledger | None] = lambda _: None
) -> CheckedFile:
    """Read a file once, and verify what was read: a file that is exchanged meanwhile cannot pass for another.

    `choose` gives the ledger to compare the release with.
    """
    data = read_bytes(path, MAX_BYTES)
    release = parse_release(decode_text(data, os.fspath(path)), os.fspath(path))
    return CheckedFile(release, verify_bytes(data, path, choose(release)), data)


def read_release_with_doubt(path: str | os.PathLike[str]) -> tuple[Release, str]:
    """The release in a file or folder, and why it is not verified, from one read; refused if it does not add up."""
    path = find_document(path)
    checked = check_file(path)
    return checked.release, _judge(checked.found, os.fspath(path))


def read_with_doubt(path: str | os.PathLike[str]) -> tuple[Model, str]:
    """The same of any model; only a release can be doubted."""
    path = find_document(path)
    if Path(path).suffix.lower() in ROWS:
        return read(path), ""  # refuses rows, in its own words
    name, data = os.fspath(path), read_bytes(path, MAX_BYTES)
    model = parse(decode_text(data, name), name)
    return model, _judge(verify_bytes(data, path, None), name) if isinstance(model, Release) else ""


def find_doubt(release: Release, name: str) -> str:
    """Why a release is not verified, in words; empty if it adds up. One that does not add up is refused."""
    return _judge(verify(release), name)


def _judge(found: Verification, name: str) -> str:
    if found.problems:
        raise FormatError(f"{name} does not add up ({found.problems[0]}); see: discreet verify {name}")
    missing = [check for check in found.checks if check.holds is None and check.name not in OPTIONAL]
    return missing[0].words if missing else ""
