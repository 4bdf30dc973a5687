"""Names for data that do not give its contents away: of a file for an account, and of tables for a ledger's memory."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from discreet.values.errors import LedgerError

SAMPLED_BYTES = 2**26
"""Of a longer file only the first and the last so many bytes, and its length, are looked at."""
SAMPLED_VALUES = 10_000
"""Likewise of a longer column."""


def fingerprint_file(path: str | os.PathLike[str], key: bytes) -> str:
    """A name for the account of a data file: HMAC-SHA-256 of its bytes under a secret key of the custodian.

    Keyed, because the name is published with each release, and from a bare hash anyone could confirm a guess
    at the whole file.
    """
    if len(key) < 16:
        raise LedgerError(f"the key of a fingerprint needs at least 16 bytes, not {len(key)}")
    try:
        with open(path, "rb") as file:
            return hmac.new(key, hashlib.file_digest(file, "sha256").digest(), "sha256").hexdigest()
    except OSError as problem:
        raise LedgerError(f"cannot read {os.fspath(path)}: {problem.strerror}") from None


def mark_source(data: Any, key: bytes) -> tuple[str, ...]:
    """What a ledger remembers a table by: keyed digests of where it is and of what is in it, as far as that is known.

    Only to warn: a copy that was changed and moved is not recognised. Without the key, which never leaves the ledger,
    a digest confirms no guess.
    """
    found: list[tuple[str, bytes]] = []
    if isinstance(data, str | os.PathLike):
        text = os.fspath(data)
        if text.startswith(("postgres://", "postgresql://")):
            parts = urlsplit(text)
            found.append(("place", f"{parts.hostname}:{parts.port}{parts.path}".encode()))
        else:
            path, mark, table = text.rpartition("::") if "::" in text else (text, "", "")
            place = os.path.realpath(path)
            found.append(("place", f"{place}{mark}{table}".encode("utf-8", "surrogatepass")))
            if not mark and Path(place).is_file():
                found.append(("content", _digest_file(place)))
    else:
        content = _digest_columns(data)
        if content is not None:
            found.append(("columns", content))
    return tuple(hmac.new(key, kind.encode() + b"\0" + text, "sha256").hexdigest() for kind, text in found)


def mark_words(request: str, words: object, key: bytes) -> tuple[str, str]:
    """What a ledger remembers a release by that no answer holds: that there is one of this request, and its words.

    `words` are what the custodian says of it and the versions of software, as plain JSON values.
    """
    texts = (
        b"release\0" + request.encode(),
        b"words\0" + json.dumps([request, words], sort_keys=True).encode(),
    )
    one, other = (hmac.new(key, text, "sha256").hexdigest() for text in texts)
    return one, other


def _digest_file(path: str) -> bytes:
    size = os.path.getsize(path)
    digest = hashlib.sha256(str(size).encode())
    with open(path, "rb") as file:
        digest.update(file.read(SAMPLED_BYTES))
        file.seek(max(size - SAMPLED_BYTES, 0))
        digest.update(file.read(SAMPLED_BYTES))
    return digest.digest()


def _digest_columns(data: Any) -> bytes | None:
    """Of a mapping, a frame or an Arrow table; None for what has no columns at hand, such as a connection."""
    if hasattr(data, "to_arrow"):
        data = data.to_arrow()
    if not isinstance(data, Mapping) and not (hasattr(data, "columns") and hasattr(data, "shape")):
        return None
    digest = hashlib.sha256()
    for name, values in sorted(_list_columns(data), key=lambda column: column[0]):
        digest.update(f"{name}|{len(values)}".encode("utf-8", "surrogatepass"))
        for part in (values[:SAMPLED_VALUES], values[-SAMPLED_VALUES:]):
            listed = part.to_pylist() if hasattr(part, "to_pylist") else list(part)
            digest.update("\x1f".join(map(str, listed)).encode("utf-8", "surrogatepass"))
    return digest.digest()


def _list_columns(data: Any) -> Iterator[tuple[str, Any]]:
    names = data.column_names if hasattr(data, "column_names") else list(data)
    for name in names:
        yield str(name), data[name]
