"""Signatures of custodians: who has the public key knows who vouches for a release, without its ledger.

Ed25519 by the package `cryptography`, keys as PEM files. What is signed are the canonical bytes of the release, which
hold the anchor of its ledger; so whoever has an earlier release notices a ledger that was rolled back behind it.
"""

from __future__ import annotations

import base64
import os
import re
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.values.errors import DataError, FormatError, import_extra
from discreet.values.files import make_new, read_text, write_text

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

PREFIX = b"discreet release 1\n"
"""Signed before the document, so that a signature for something else is never one for a release."""
MOST_BYTES = 10_000
"""The longest key or signature file that is read."""
LINE = re.compile(r"discreet-signature 1 ed25519 ([A-Za-z0-9+/]{86}==)\n")
PathLike = str | os.PathLike[str]


def name_signature(release: PathLike) -> Path:
    """The file beside a release that holds its signature."""
    return Path(f"{os.fspath(release)}.sig")


def name_public(private: PathLike) -> Path:
    """The file beside a private key that holds the public one."""
    return Path(f"{os.fspath(private)}.pub")


def make_keys(private: PathLike) -> Path:
    """Make a new private key, readable by its owner alone, and the public one beside it; nothing is overwritten."""
    _require_cryptography()
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key, public = Ed25519PrivateKey.generate(), name_public(private)
    if public.exists():
        raise FormatError(f"{public} already exists; choose another name")
    make_new(
        private, key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption()), 0o600
    )
    make_new(
        public,
        key.public_key().public_bytes(form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo),
        0o644,
    )
    return public


def write_signature(release: PathLike, canonical: bytes, private: PathLike) -> Path:
    """Sign the canonical bytes of a release, and write the signature beside it."""
    signature = _read_private(private).sign(PREFIX + canonical)
    path = name_signature(release)
    write_text(path, f"discreet-signature 1 ed25519 {base64.b64encode(signature).decode()}\n")
    return path


def check_signature(release: PathLike, canonical: bytes, public: PathLike) -> str | None:
    """Why the key does not vouch for this release, in words; None if it does. What is no public key is refused."""
    key, path = read_public(public), name_signature(release)
    if not path.exists():
        return f"it is not signed: there is no {path}"
    found = LINE.fullmatch(read_text(path, MOST_BYTES))
    if found is None:
        return f"{path} is not a signature of discreet"
    from cryptography.exceptions import InvalidSignature

    signature = base64.b64decode(found[1])
    if base64.b64encode(signature).decode() != found[1]:  # a second spelling of the same bytes
        return f"{path} is not a signature of discreet"
    try:
        key.verify(signature, PREFIX + canonical)
    except InvalidSignature:
        return f"{path} is not the signature of this document by the key in {os.fspath(public)}"
    return None


def read_public(path: PathLike) -> Ed25519PublicKey:
    """The public key in a PEM file; a private one is refused, which has no business with a reader."""
    _require_cryptography()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    text = read_text(path, MOST_BYTES)
    if "PRIVATE KEY" in text:
        raise DataError(
            f"{os.fspath(path)} is a private key; give the public one, such as {name_public(path)}"
        )
    try:
        key = load_pem_public_key(text.encode())
    except (ValueError, UnsupportedAlgorithm):
        raise FormatError(
            f"{os.fspath(path)}: not a public key in PEM form; make keys with `discreet keys`"
        ) from None
    if not isinstance(key, Ed25519PublicKey):
        raise FormatError(f"{os.fspath(path)}: not an Ed25519 key; make keys with `discreet keys`")
    return key


def _read_private(path: PathLike) -> Ed25519PrivateKey:
    _require_cryptography()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        with open(path, "rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            data = file.read(MOST_BYTES)
    except OSError as error:
        raise FormatError(f"{os.fspath(path)}: cannot be read: {error.strerror}") from None
    if os.name == "posix" and mode & 0o077:
        raise DataError(
            f"{os.fspath(path)}: others may read this private key (mode {mode:03o}); type chmod 600 {os.fspath(path)}, "
            "and make a new key if anybody has seen it"
        )
    try:
        key = load_pem_private_key(data, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise FormatError(
            f"{os.fspath(path)}: not a private key in PEM form without a password; make keys with `discreet keys`"
        ) from None
    if not isinstance(key, Ed25519PrivateKey):
        raise FormatError(f"{os.fspath(path)}: not an Ed25519 key; make keys with `discreet keys`")
    return key


def _require_cryptography() -> None:
    import_extra("cryptography.hazmat.primitives.asymmetric.ed25519", "a signature", "sign")
