"""Files: written so that a reader sees the old or the new one, never half of either; read up to a limit."""

from __future__ import annotations

import gzip
import os
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from discreet.values.errors import FormatError, TooLarge


@contextmanager
def replace_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path beside `path`; rename it over `path` if the block ends well, else remove it."""
    target = Path(path)
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    except OSError as error:
        raise FormatError(f"{target}: cannot be written: {error.strerror}") from None
    os.close(handle)
    draft = Path(name)
    try:
        yield draft
        with draft.open("rb+") as written:
            os.fsync(written.fileno())
        draft.chmod(0o666 & ~_umask())
        draft.replace(target)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise FormatError(f"{target}: cannot be written: {error.strerror or error}") from None
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write `text` as UTF-8 with plain newlines, all or nothing; packed by gzip if the name ends in .gz."""
    data = text.encode("utf-8")
    if Path(path).suffix == ".gz":
        data = gzip.compress(data, mtime=0)  # no time stamp: the same text gives the same bytes
    with replace_file(path) as draft:
        draft.write_bytes(data)


def read_text(path: str | os.PathLike[str], limit: int) -> str:
    """The text of a UTF-8 file, plain or gzip; `TooLarge` if it has more than `limit` bytes, unpacked.

    At most `limit` bytes and one are ever unpacked, so a bomb is refused before it goes off.
    """
    source = os.fspath(path)
    try:
        with open(path, "rb") as raw:
            packed = raw.peek(2)[:2] == b"\x1f\x8b"
            data = (gzip.GzipFile(fileobj=raw) if packed else raw).read(limit + 1)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise FormatError(f"{source}: not a complete gzip file: {error}") from None
    except OSError as error:
        raise FormatError(f"{source}: cannot be read: {error.strerror}") from None
    if len(data) > limit:
        raise TooLarge(f"{source}: more than {limit:,} bytes{' unpacked' * packed}, the most that is read")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise FormatError(f"{source}, line {line}: byte {data[error.start]:#04x} is not UTF-8 text") from None


def make_folder(folder: Path) -> None:
    """Make a folder, and those above it, if it is not there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FormatError(f"{folder}: cannot be made: {error.strerror}") from None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
