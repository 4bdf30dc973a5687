"""A name for a data file that does not give its contents away."""

from __future__ import annotations

import hashlib
import hmac
import os

from discreet.values.errors import LedgerError


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
