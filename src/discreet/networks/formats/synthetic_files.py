"""Files of rows, written from Arrow batches one after the other: Parquet, Arrow, and CSV without formulas."""

from __future__ import annotations

import itertools
import math
import os
import re
import unicodedata
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from discreet.networks.formats.parquet import append_groups, encode_group
from discreet.values.errors import FormatError
from discreet.values.files import replace_file
from discreet.values.schema import Attribute, Follows
from discreet.values.schema.types import Type, read_number

PHRASES = 4096
"""How many combinations of neighbouring CSV cells are spelt out once, at most."""

PHRASE_BYTES = 2**22
"""How long those may be together; long labels are spelt out one by one."""

LINES_BYTES = 2**26
"""How long the lines made at one time may be."""

NUMBER_BYTES = 26
"""How long a number and its separator may be in CSV."""

NULL_CELL = '""'
"""A missing number in CSV; in quotes, because a blank line in a file of one column would be skipped."""

_FORMULA_STARTS = frozenset("=+-@\N{MINUS SIGN}")
_MUST_QUOTE = re.compile(r'[",;\s]')

Append = Callable[[Any], None]
Encode = Callable[[Any], Any]


Form = Literal["labels", "values", "cells", "stored"]
"""How rows are shown: labels of levels, values of the columns' types, or values of which CSV spells and Parquet stores
each level once."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of synthetic rows: the label of each code, and its value as text, None where there is none."""

    name: str
    type: Type
    labels: tuple[str, ...]
    values: tuple[str | None, ...]
    ordered: bool = False

    @classmethod
    def of(cls, attribute: Attribute) -> Column:
        """The column of an attribute; what is missing has no value, and neither has another one but text."""
        values: list[str | None] = list(attribute.values)
        if attribute.other is not None:
            values.append(attribute.other if attribute.type == "text" else None)
        if attribute.missing is not None:
            values.append(None)
        return cls(attribute.name, attribute.type, attribute.levels, tuple(values), attribute.ordered)

    @classmethod
    def following(cls, follows: Follows) -> Column:
        """The column that follows from others; the last code is that of combinations without a value."""
        none = "" if "" not in follows.values else "(none)"
        return cls(follows.name, follows.type, (*follows.values, none), (*follows.values, None))

    @property
    def nullable(self) -> bool:
        """Whether it may hold nulls: known from the declaration, whatever was drawn."""
        return None in self.values

    def make(self, form: Form, codes: Any, drawn: Any) -> Any:
        """The Arrow array of some codes; `drawn` holds the values inside bins."""
        import pyarrow as pa

        if form == "labels" or (form == "cells" and drawn is None):
            listed = self.labels if form == "labels" else self._spell()
            index = pa.array(np.asarray(codes, dtype=np.uint8 if len(listed) <= 256 else np.uint16))
            return pa.DictionaryArray.from_arrays(index, pa.array(listed, pa.string()), ordered=self.ordered)
        if form == "stored" and drawn is None:
            return self._point(codes)
        if drawn is not None:
            absent = np.array([value is None for value in self.values])[codes]
            counts = np.asarray(drawn, dtype=np.int32) if self.type == "date" else drawn
            made = pa.array(counts, mask=absent)
            return (
                made.cast(pa.timestamp("s")).cast(pa.timestamp("us"))
                if self.type == "datetime"
                else made.cast(_arrow_type(self.type))
            )
        return self._read().take(pa.array(np.asarray(codes, dtype=np.int64)))

    def _point(self, codes: Any) -> Any:
        """A dictionary of values, as Parquet stores them: nothing is looked up to find out that there are few."""
        import pyarrow as pa

        known = self._read().drop_null()
        # As they are, if they can be: a copy costs more than all the rest, for its pages are new to the process.
        bytewise = codes.dtype == np.uint8 and len(known) <= 128
        index = pa.array(codes.view(np.int8) if bytewise else codes.astype(np.int32))
        if self.nullable:
            places = np.cumsum([value is not None for value in self.values], dtype=np.int32) - 1
            absent = np.array([value is None for value in self.values])[codes]
            index = pa.array(places[codes], mask=absent)
        return pa.DictionaryArray.from_arrays(index, known)

    def _spell(self) -> tuple[str | None, ...]:
        """The cells of a CSV file; where the empty text is a level, a missing value is written as its label."""
        if "" in self.values:
            return self.labels
        small = self.type == "boolean"
        return tuple(value.lower() if value is not None and small else value for value in self.values)

    def _read(self) -> Any:
        import pyarrow as pa

        readers: dict[str, Callable[[str], Any]] = {
            "integer": int,
            "decimal": float,
            "boolean": lambda text: text in ("true", "True"),
        }
        read = readers.get(self.type, str)
        found = [None if value is None else read(value) for value in self.values]
        return pa.array(found, _arrow_type(self.type))


def _arrow_type(kind: Type) -> Any:
    import pyarrow as pa

    return {
        "integer": pa.int64(),
        "decimal": pa.float64(),
        "boolean": pa.bool_(),
        "date": pa.date32(),
        "datetime": pa.timestamp("us"),
    }.get(kind, pa.string())


def write_rows(
    path: str | os.PathLike[str],
    schema: Any,
    draw: Callable[[Encode], Generator[tuple[int, Any]]],
    progress: Callable[[int], None] | None,
    *,
    form: Form,
) -> None:
    """Write record batches of this form and Arrow schema in the format that the suffix names, all or nothing.

    `draw` makes the batches, applies to each what the format needs to be made of it, and tells how many rows it has.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in _WRITERS:
        raise FormatError(f"{Path(path).name!r} has the suffix {suffix!r}; allowed are {', '.join(_WRITERS)}")
    encode, open_file = _WRITERS[suffix]
    with (
        replace_file(path) as draft,
        open_file(draft, schema, form) as append,
        closing(draw(encode)) as drawn,
    ):
        for rows, part in drawn:
            append(part)
            if progress is not None:
                progress(rows)


def neutralise(text: str) -> str:
    """Put a single quote before a text that a spreadsheet would run as a formula (OWASP, "CSV injection").

    Such a text begins with a tab or line break, or its first visible character is =, +, - or @, also in full
    width or small form. A plain signed number such as -1.5 runs nothing and stays. A text of that kind behind
    quotes of its own gets one more, so that different texts stay different and dropping one quote undoes it.
    """
    bare = text.lstrip("'")
    first = next((char for char in bare if not _is_invisible(char)), "")
    if bare[:1] not in ("\t", "\r", "\n") and unicodedata.normalize("NFKC", first) not in _FORMULA_STARTS:
        return text
    number = read_number(text)
    return text if number is not None and math.isfinite(number) else "'" + text


def _is_invisible(char: str) -> bool:
    return char.isspace() or unicodedata.category(char) in ("Cc", "Cf")


def quote(text: str) -> str:
    """A CSV cell: harmless, and in double quotes if empty or with a separator, a quote or white space."""
    safe = neutralise(text)
    if safe and not _MUST_QUOTE.search(safe):
        return safe
    return '"' + safe.replace('"', '""') + '"'


@contextmanager
def _append_csv(draft: Path, schema: Any, form: Form) -> Iterator[Append]:
    pieces: list[_Piece] = []

    def append(batch: Any) -> None:
        if not pieces:
            pieces.extend(_plan_pieces(batch))
        step = max(1, LINES_BYTES // sum(piece.longest for piece in pieces))
        for start in range(0, batch.num_rows, step):
            file.write(_spell_lines(pieces, batch.slice(start, step)))

    with draft.open("wb") as file:
        file.write((",".join(quote(name) for name in schema.names) + "\n").encode())
        yield append


@dataclass(frozen=True, slots=True)
class _Piece:
    """Neighbouring columns of labels, all combinations of their cells spelt out, or a column of numbers."""

    columns: tuple[int, ...]
    sizes: tuple[int, ...]
    phrases: Any
    longest: int


def _plan_pieces(batch: Any) -> list[_Piece]:
    """Group the columns of labels while the combinations stay few; lines are then made of few long pieces."""
    import pyarrow as pa

    groups: list[tuple[list[int], list[list[bytes]]]] = []
    pieces: list[_Piece] = []

    def close() -> None:
        for columns, cells in groups:
            phrases = [b"".join(combination) for combination in itertools.product(*cells)]
            sizes = tuple(len(found) for found in cells)
            pieces.append(
                _Piece(tuple(columns), sizes, pa.array(phrases, pa.large_binary()), max(map(len, phrases)))
            )
        groups.clear()

    for i, column in enumerate(batch.columns):
        end = b"\n" if i == batch.num_columns - 1 else b","
        if not pa.types.is_dictionary(column.type):
            close()
            pieces.append(_Piece((i,), (), pa.scalar(end, pa.large_binary()), NUMBER_BYTES))
            continue
        levels = column.dictionary.to_pylist()
        cells = [(NULL_CELL if level is None else quote(level)).encode() + end for level in levels]
        together = [*groups[-1][1], cells] if groups else [cells]
        count = math.prod(len(found) for found in together)
        if count > PHRASES or count * sum(max(map(len, found)) for found in together) > PHRASE_BYTES:
            close()
        if not groups:
            groups.append(([], []))
        groups[-1][0].append(i)
        groups[-1][1].append(cells)
    close()
    return pieces


def _spell_lines(pieces: list[_Piece], batch: Any) -> Any:
    """The lines of a batch, as one run of bytes; no cell becomes a Python object."""
    import pyarrow as pa
    import pyarrow.compute as pc

    parts: list[Any] = []
    for piece in pieces:
        if not piece.sizes:
            values = batch.column(piece.columns[0])
            if pa.types.is_timestamp(values.type):
                values = values.cast(pa.timestamp("s"))  # whole seconds are written without a fraction
            texts = pc.fill_null(values.cast(pa.large_string()), NULL_CELL)
            parts += [texts.cast(pa.large_binary()), piece.phrases]
            continue
        index = np.zeros(batch.num_rows, dtype=np.int32)
        for i, size in zip(piece.columns, piece.sizes, strict=True):
            index *= size
            index += batch.column(i).indices.to_numpy(zero_copy_only=False)
        parts.append(piece.phrases.take(pa.array(index)))
    lines = pc.binary_join_element_wise(*parts, pa.scalar(b"", pa.large_binary()))
    _, offsets, data = lines.buffers()
    return memoryview(data)[: int(np.frombuffer(offsets, dtype=np.int64)[len(lines)])]


def _append_parquet(draft: Path, schema: Any, form: Form) -> AbstractContextManager[Append]:
    return append_groups(draft, schema, keep_schema=form == "labels")


@contextmanager
def _append_arrow(draft: Path, schema: Any, form: Form) -> Iterator[Append]:
    import pyarrow as pa

    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.OSFile(str(draft), "wb") as file, pa.ipc.new_file(file, schema, options=options) as writer:
        yield writer.write_batch


def _as_it_is(batch: Any) -> Any:
    return batch


_WRITERS: dict[str, tuple[Encode, Callable[[Path, Any, Form], AbstractContextManager[Append]]]] = {
    ".csv": (_as_it_is, _append_csv),
    ".parquet": (encode_group, _append_parquet),
    ".arrow": (_as_it_is, _append_arrow),
    ".feather": (_as_it_is, _append_arrow),
}
"""What is made of a batch where it was drawn, and the file to which that is appended."""
