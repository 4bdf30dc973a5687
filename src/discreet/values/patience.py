"""How long a computation may take that a stranger's document asks for: looked at between its steps.

Commands have the operating system's limits besides. In a library nobody sets those, and a notebook must come back.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from discreet.values.errors import DataError, OutOfTime

SECONDS = 300
"""Of processor time, unless the environment says otherwise; a release of 788 attributes takes 25 s."""
SECONDS_NAME = "DISCREET_SECONDS"

_END = ContextVar("end", default=math.inf)


@contextmanager
def limit_time(share: float = 1.0) -> Iterator[None]:
    """Within this block, steps that begin later than a share of the allowed seconds end in `OutOfTime`."""
    token = _END.set(min(_END.get(), time.process_time() + share * read_seconds()))
    try:
        yield
    finally:
        _END.reset(token)


def require_time() -> None:
    """Go on only if there is time left; without a limit there always is."""
    end = _END.get()
    if end < math.inf and time.process_time() > end:
        raise OutOfTime(describe_limit(read_seconds()))


def describe_limit(seconds: int) -> str:
    """What is said of something that takes longer."""
    return (
        f"it takes more than {seconds} s of processor time; if you trust the file, set {SECONDS_NAME} to more, such as "
        f"{SECONDS_NAME}={10 * seconds}"
    )


def read_seconds() -> int:
    """How many seconds are allowed, from the environment or as they are by default."""
    return read_whole(SECONDS_NAME, SECONDS)


def read_whole(name: str, otherwise: int) -> int:
    """A whole number above 0 in the environment."""
    text = os.environ.get(name, "")
    if not text:
        return otherwise
    if not (text.isascii() and text.isdigit() and 0 < len(text) < 8 and int(text) > 0):
        raise DataError(f"{name} must be a whole number above 0, such as {otherwise}, not {text[:40]!r}")
    return int(text)
