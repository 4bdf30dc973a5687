"""Files: written so that a reader sees the old or the new one, never half of either; read up to a limit."""

from __future__ import annotations

import gzip
import os
import secrets
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from discreet.values.errors import FormatError, TooLarge


@contextmanager
def replace_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path beside `path`; rename it over `path` if the block ends well, else remove it."""
    target = Path(path)
    draft = target.with_name(f".{target.name[:80]}.{secrets.token_hex(8)}.part")
    try:
        # Made once, new, and with its final mode: nobody can slip a file or a link in between.
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o666))
    except OSError as error:
        raise FormatError(f"{target}: cannot be written: {error.strerror}") from None
    try:
        yield draft
        with draft.open("rb+") as written:
            os.fsync(written.fileno())
        draft.replace(target)
        sync_folder(target.parent)
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


def make_new(path: str | os.PathLike[str], data: bytes, mode: int) -> None:
    """Make a file that is not there yet, from the first moment with this mode; one that is there is left alone."""
    try:
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, mode)
    except FileExistsError:
        raise FormatError(f"{os.fspath(path)} already exists; choose another name") from None
    except OSError as error:
        raise FormatError(f"{os.fspath(path)}: cannot be written: {error.strerror}") from None
    with os.fdopen(handle, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    sync_folder(Path(path).parent)


def read_text(path: str | os.PathLike[str], limit: int) -> str:
    """The text of a UTF-8 file, plain or gzip; `TooLarge` if it has more than `limit` bytes, unpacked."""
    return decode_text(read_bytes(path, limit), os.fspath(path))


def read_bytes(path: str | os.PathLike[str], limit: int) -> bytes:
    """What a file holds, plain or gzip; at most `limit` bytes and one are unpacked: a bomb does not go off."""
    source = os.fspath(path)
    try:
        with open(path, "rb") as raw:
            packed = raw.peek(2)[:2] == b"\x1f\x8b"
            data = (gzip.GzipFile(fileobj=raw) if packed else raw).read(limit + 1)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise FormatError(f"{source}: not a complete gzip file: {error}") from None
    except IsADirectoryError:
        raise FormatError(f"{source} is a folder; name a file in it") from None
    except OSError as error:
        raise FormatError(f"{source}: cannot be read: {error.strerror}") from None
    if len(data) > limit:
        raise TooLarge(f"{source}: more than {limit:,} bytes{' unpacked' * packed}, the most that is read")
    return data


def require_own_file(path: Path) -> None:
    """Refuse what is no file of the folder that it lies in: a pipe never ends, and a link's target can be exchanged."""
    try:
        mode = path.lstat().st_mode
    except OSError as error:
        raise FormatError(f"{path}: cannot be read: {error.strerror}") from None
    if not stat.S_ISREG(mode):
        kind = "a link" if stat.S_ISLNK(mode) else "a folder" if stat.S_ISDIR(mode) else "a pipe or a device"
        raise FormatError(f"{path} is {kind}; put the file itself into the folder")


def decode_text(data: bytes, source: str) -> str:
    """The text of these bytes, which must be UTF-8; `source` is how messages call it."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise FormatError(f"{source}, line {line}: byte {data[error.start]:#04x} is not UTF-8 text") from None


def packs_more(path: str | os.PathLike[str], limit: int) -> bool:
    """Whether a gzip file holds more than its text: a name, a comment, a time, or something after the end."""
    with open(path, "rb") as raw:
        data = raw.read(limit + 1)
    if data[:2] != b"\x1f\x8b":
        return False
    unpacker = zlib.decompressobj(wbits=31)
    unpacker.decompress(data, limit + 1)
    plain = data[:9] == b"\x1f\x8b\x08\0\0\0\0\0\x02" and data[9] in (3, 255)  # 3 before Python 3.13
    return not plain or not unpacker.eof or bool(unpacker.unused_data)


def make_folder(folder: Path) -> None:
    """Make a folder, and those above it, if it is not there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FormatError(f"{folder}: cannot be made: {error.strerror}") from None


def sync_folder(folder: Path) -> None:
    """Make a rename in a folder outlast a power failure; where folders cannot be synced there is nothing to do."""
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError:
        pass
    finally:
        os.close(handle)
