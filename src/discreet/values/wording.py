"""How values appear in messages: short, on one line, and never more than a handful of them."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from itertools import islice

from discreet.values.errors import SchemaError

LISTED = 8
"""How many of a list's members a message names before it trails off."""

SHOWN = 60
"""How many characters of a value a message shows."""


def show(value: object) -> str:
    """The repr of a value, cut to `SHOWN` characters."""
    if isinstance(value, str) and len(value) > SHOWN:
        value = value[: SHOWN + 1]  # so that the repr of a huge cell is never made
    try:
        text = repr(value)
    except ValueError:  # Python refuses to write integers of thousands of digits
        text = f"a huge {type(value).__name__}"
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


def list_some(values: Iterable[object]) -> str:
    """The first `LISTED` values, shown and separated by commas, with an ellipsis for the rest."""
    found = [show(value) for value in islice(values, LISTED + 1)]
    return ", ".join(found[:LISTED] + ["…"] * (len(found) > LISTED))


def require_name(what: str, name: object) -> None:
    """Refuse a name that is not text, is blank, or holds a character that would break a line or a file."""
    if not isinstance(name, str):
        raise SchemaError(f"{what} {show(name)} is a {type(name).__name__}; it must be text")
    if not name.strip():
        raise SchemaError(f"{what} {show(name)} is empty; it needs at least one visible character")
    for char in name:
        if unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp"):
            raise SchemaError(
                f"{what} {show(name)} contains {char!r}; control characters and surrogates are not allowed"
            )


def require_label(what: str, label: object) -> None:
    """Refuse a level that is not text, or that UTF-8 or a C string cannot hold."""
    if not isinstance(label, str):
        raise SchemaError(f"{what} {show(label)} is a {type(label).__name__}; levels are text")
    if "\0" in label or not _encodable(label):
        raise SchemaError(
            f"{what} {show(label)} contains a NUL or a surrogate; neither is allowed in a level"
        )


def _encodable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
