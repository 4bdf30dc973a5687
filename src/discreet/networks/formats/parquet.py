"""Parquet files of synthetic rows: a row group is encoded by the thread that drew it, and appended as it is.

A column of levels is stored as what it is: its values once, and for each row the place among them, in as few bits as
that takes. Arrow's own writer looks every value up again, one column after the other. The format is Apache Parquet's,
its headers are in Thrift's compact protocol; data pages are of version 1, because every reader knows it.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

MAGIC = b"PAR1"
PLAIN, RLE, RLE_DICTIONARY = 0, 3, 8
"""Encodings: values one after the other, runs of levels, runs of places in a dictionary."""
DATA_PAGE, DICTIONARY_PAGE = 0, 2
ZSTD = 6
INT32, INT64 = 5, 6
"""Thrift's types of numbers."""
BOOLEANS, INTEGERS, LONGS, DOUBLES, TEXTS = 0, 1, 2, 5, 6
"""Parquet's physical types."""

Written = tuple[int, bytes]
"""A value in Thrift's compact protocol: the number of its type, and its bytes."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """The pages of one column of a row group."""

    pages: bytes
    dictionary: int
    """Bytes of its dictionary page, 0 if there is none."""
    plain: int
    """Bytes of its pages before they were compressed."""


@dataclass(frozen=True, slots=True)
class Group:
    """A row group, ready to be written."""

    rows: int
    chunks: tuple[Chunk, ...]


def encode_group(batch: Any) -> Group:
    """The row group of an Arrow batch."""
    return Group(batch.num_rows, tuple(map(_encode_column, batch.columns)))


@contextmanager
def append_groups(draft: Path, schema: Any, *, keep_schema: bool) -> Iterator[Callable[[Group], None]]:
    """A file to which row groups are appended; with `keep_schema`, Arrow reads columns of labels as dictionaries."""
    groups: list[Written] = []
    rows = 0

    def append(group: Group) -> None:
        nonlocal rows
        at, columns = file.tell(), []
        for field, chunk in zip(schema, group.chunks, strict=True):
            columns.append(_describe_chunk(field, chunk, group.rows, at))
            file.write(chunk.pages)
            at += len(chunk.pages)
        size = sum(chunk.plain for chunk in group.chunks)
        groups.append(_struct({1: _items(columns), 2: _long(size), 3: _long(group.rows)}))
        rows += group.rows

    with draft.open("wb") as file:
        file.write(MAGIC)
        yield append
        root = _struct({4: _text("schema"), 5: _int(len(schema))})
        footer = {
            1: _int(2),
            2: _items([root, *map(_describe_field, schema)]),
            3: _long(rows),
            4: _items(groups, kind=12),
        }
        if keep_schema:
            written = base64.b64encode(schema.serialize()).decode()
            footer[5] = _items([_struct({1: _text("ARROW:schema"), 2: _text(written)})])
        _, body = _struct({**footer, 6: _text("discreet version 1")})
        file.write(body + struct.pack("<I", len(body)) + MAGIC)


def pack_bits(codes: npt.NDArray[Any], width: int) -> bytes:
    """Whole numbers below 2^width, every eight of them in `width` bytes, the first in the lowest bits."""
    room = -(-len(codes) // 8) * 8
    held = np.zeros(room, dtype="<u2" if width > 8 else np.uint8)
    held[: len(codes)] = codes
    if width in (8, 16):
        return held.tobytes()
    words = held.view("<u8")
    for half in (8, 16, 32):  # neighbouring fields move together, then pairs of them, then fours
        low = np.uint64(sum(((1 << half) - 1) << at for at in range(0, 64, 2 * half)))
        high = words & ~low
        high >>= np.uint64(half - half * width // 8)
        words &= low
        words |= high
    if width in (1, 2, 4):
        return words.astype(f"<u{width}").tobytes()
    return words.view(np.uint8).reshape(-1, 8)[:, :width].tobytes()


def _encode_column(array: Any) -> Chunk:
    import pyarrow as pa

    levels = _encode_levels(array)
    found = array.drop_null() if array.null_count else array
    kind = found.type
    if pa.types.is_string(kind):
        found, kind = found.dictionary_encode(), pa.dictionary(pa.int32(), pa.string())
    if not pa.types.is_dictionary(kind) or pa.types.is_boolean(kind.value_type):
        values = found.dictionary_decode() if pa.types.is_dictionary(kind) else found
        page, plain = _make_page(DATA_PAGE, levels + _write_plain(values), len(array), PLAIN)
        return Chunk(page, 0, plain)
    listed = found.dictionary
    width = max(1, (len(listed) - 1).bit_length())
    width = width if width <= 8 else 16
    packed = pack_bits(found.indices.to_numpy(zero_copy_only=False), width)
    runs = bytes([width]) + _varint(len(packed) // width << 1 | 1) + packed
    first, few = _make_page(DICTIONARY_PAGE, _write_plain(listed), len(listed), PLAIN)
    second, many = _make_page(DATA_PAGE, levels + runs, len(array), RLE_DICTIONARY)
    return Chunk(first + second, len(first), few + many)


def _encode_levels(array: Any) -> bytes:
    """Which rows have a value: one run if all have, else a bit for each."""
    if not array.null_count:
        runs = _varint(len(array) << 1) + b"\1"
    else:
        bits = pack_bits(array.is_valid().to_numpy(zero_copy_only=False), 1)
        runs = _varint(len(bits) << 1 | 1) + bits
    return struct.pack("<I", len(runs)) + runs


def _write_plain(values: Any) -> bytes:
    """Values one after the other; texts with their lengths, booleans as bits, dates and times as numbers."""
    import pyarrow as pa

    kind = values.type
    if pa.types.is_string(kind):
        texts = [text.encode() for text in values.to_pylist()]
        return b"".join(struct.pack("<I", len(text)) + text for text in texts)
    if pa.types.is_boolean(kind):
        return pack_bits(values.to_numpy(zero_copy_only=False), 1)
    if pa.types.is_temporal(kind):
        values = values.cast(pa.int32() if kind.bit_width == 32 else pa.int64())
    return bytes(np.ascontiguousarray(values.to_numpy(zero_copy_only=False)).tobytes())


def _make_page(kind: int, body: bytes, values: int, encoding: int) -> tuple[bytes, int]:
    """A page with its header, and its size before it was compressed."""
    import pyarrow as pa

    pressed = pa.compress(body, "zstd", asbytes=True)
    about = {1: _int(values), 2: _int(encoding)}
    if kind == DATA_PAGE:
        about |= {3: _int(RLE), 4: _int(RLE)}
    head = {1: _int(kind), 2: _int(len(body)), 3: _int(len(pressed))}
    _, header = _struct({**head, 5 if kind == DATA_PAGE else 7: _struct(about)})
    return header + pressed, len(header) + len(body)


def _describe_chunk(field: Any, chunk: Chunk, rows: int, at: int) -> Written:
    encodings = [PLAIN, RLE, RLE_DICTIONARY] if chunk.dictionary else [PLAIN, RLE]
    about = {
        1: _int(_find_type(field.type)[0]),
        2: _items([_int(encoding) for encoding in encodings]),
        3: _items([_text(field.name)]),
        4: _int(ZSTD),
        5: _long(rows),
        6: _long(chunk.plain),
        7: _long(len(chunk.pages)),
        9: _long(at + chunk.dictionary),
    }
    if chunk.dictionary:
        about[11] = _long(at)
    return _struct({2: _long(at), 3: _struct(about)})


def _describe_field(field: Any) -> Written:
    physical, logical = _find_type(field.type)
    return _struct({1: _int(physical), 3: _int(1), 4: _text(field.name), **logical})


def _find_type(kind: Any) -> tuple[int, dict[int, Written]]:
    """The physical type, and what a reader makes of it, told in the old way (6) and in the new one (10)."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    nothing = _struct({})
    if pa.types.is_string(kind):
        return TEXTS, {6: _int(0), 10: _struct({1: nothing})}
    if pa.types.is_date32(kind):
        return INTEGERS, {6: _int(6), 10: _struct({6: nothing})}
    if pa.types.is_timestamp(kind):
        local, micros = (2, b""), _struct({2: nothing})
        return LONGS, {10: _struct({8: _struct({1: local, 2: micros})})}
    return {pa.bool_(): BOOLEANS, pa.int64(): LONGS, pa.float64(): DOUBLES}[kind], {}


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)


def _int(number: int) -> Written:
    return INT32, _varint(number << 1)


def _long(number: int) -> Written:
    return INT64, _varint(number << 1)


def _text(text: str) -> Written:
    body = text.encode()
    return 8, _varint(len(body)) + body


def _items(values: Sequence[Written], kind: int = 0) -> Written:
    kind = values[0][0] if values else kind
    head = (
        bytes([len(values) << 4 | kind]) if len(values) < 15 else bytes([0xF0 | kind]) + _varint(len(values))
    )
    return 9, head + b"".join(body for _, body in values)


def _struct(fields: Mapping[int, Written]) -> Written:
    found, last = bytearray(), 0
    for field, (kind, body) in fields.items():
        found.append((field - last) << 4 | kind)
        found += body
        last = field
    return 12, bytes(found) + b"\0"
