"""The schema: the attributes of a table and the levels of each; declared by people, never read from rows."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.values.errors import SchemaError
from discreet.values.schema import columns
from discreet.values.schema.bins import Bins, Closed
from discreet.values.schema.constraints import Constraint, Follows, close_order
from discreet.values.schema.dates import By, Dates, cut_edges, read_end
from discreet.values.schema.reading import AS_WRITTEN, Reading
from discreet.values.schema.taxonomy import Group, Taxonomy
from discreet.values.schema.types import Type, infer_type, require_consistent
from discreet.values.text import list_some, require_name, show

__all__ = ["MAX_LEVELS", "Attribute", "Bins", "Group", "Schema", "Taxonomy"]

MAX_LEVELS = 65_536
"""The most levels that an attribute may have: what a 16-bit code can tell apart."""


@dataclass(frozen=True, slots=True, repr=False)
class Attribute:
    """One column: a name, a label for each code, and the type of its values.

    The level for missing values, if any, is the last; that for all other values, if any, comes before it. `reading`
    says how cells are read, and what becomes of values outside the declaration. Bins of dates count days or seconds.
    """

    name: str
    levels: tuple[str, ...]
    bins: Bins | None = None
    ordered: bool = False
    taxonomy: Taxonomy | None = None
    missing: str | None = None
    other: str | None = None
    type: Type = ""  # type: ignore[assignment]
    decimals: int | None = None
    dates: Dates | None = None
    reading: Reading = AS_WRITTEN
    _codes: dict[str, int] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        require_name("attribute name", self.name)
        object.__setattr__(
            self, "name", str(self.name)
        )  # NumPy's own texts are written otherwise in messages
        try:
            if len(self.type) == 0:
                object.__setattr__(self, "type", self.inferred_type)
            require_consistent(self, MAX_LEVELS)
        except SchemaError as error:
            raise SchemaError(f"attribute {show(self.name)}: {error}") from None
        object.__setattr__(self, "_codes", {level: code for code, level in enumerate(self.levels)})

    @classmethod
    def of(
        cls,
        name: str,
        levels: Iterable[object],
        *,
        ordered: bool = False,
        missing: str | None = None,
        other: str | None = None,
        taxonomy: Taxonomy | None = None,
        type: Type | None = None,
        decimals: int | None = None,
        reading: Reading = AS_WRITTEN,
    ) -> Attribute:
        """An attribute with these levels; integers and booleans are written as text, `missing` goes last."""
        if isinstance(levels, str):
            raise SchemaError(
                f"attribute {show(name)}: levels are the text {show(levels)}; give a list of levels"
            )
        found = tuple(_write_level(level) for level in levels)
        for what, extra in (("missing", missing), ("other", other)):
            if extra is not None and extra in found:
                raise SchemaError(
                    f"attribute {show(name)}: {show(extra)} is both a level and the {what} level"
                )
        kind: Any = type or ""
        levels = _extend(found, other, missing)
        return cls(name, levels, None, ordered, taxonomy, missing, other, kind, decimals, None, reading)

    @classmethod
    def binned(
        cls,
        name: str,
        edges: Iterable[float] | Bins,
        *,
        closed: Closed = "left",
        missing: str | None = None,
        other: str | None = None,
        taxonomy: Taxonomy | None = None,
        type: Type | None = None,
        decimals: int | None = None,
        lowest: float | None = None,
        highest: float | None = None,
        reading: Reading = AS_WRITTEN,
    ) -> Attribute:
        """A number cut into bins at these edges; -inf and inf leave an end open, `lowest` and `highest` end it."""
        try:
            bins = edges if isinstance(edges, Bins) else Bins(tuple(edges), closed, lowest, highest)
        except SchemaError as error:
            raise SchemaError(f"attribute {show(name)}: {error}") from None
        kind: Any = type or ""
        levels = _extend(bins.labels, other, missing)
        return cls(name, levels, bins, True, taxonomy, missing, other, kind, decimals, None, reading)

    @classmethod
    def dated(
        cls,
        name: str,
        *,
        by: By = "edges",
        first: date | None = None,
        last: date | None = None,
        edges: Iterable[object] = (),
        closed: Closed = "left",
        lowest: object = None,
        highest: object = None,
        moments: bool = False,
        missing: str | None = None,
        other: str | None = None,
        taxonomy: Taxonomy | None = None,
        reading: Reading = AS_WRITTEN,
    ) -> Attribute:
        """Dates, or datetimes if `moments`, by the calendar or at edges.

        By year, quarter, month, week or weekday of the days from `first` to `last`; or cut at `edges`, which are dates,
        datetimes or their ISO texts, where -inf and inf leave an end open.
        """
        try:
            dates = Dates(by, moments, first, last)
            if by == "edges":
                bins = cut_edges(tuple(edges), moments, closed)
                ends = [None if end is None else read_end(end, dates) for end in (lowest, highest)]
                bins = Bins(bins.edges, bins.closed, ends[0], ends[1])
            else:
                bins = dates.cut()
            levels = _extend(dates.label(bins), other, missing)
        except SchemaError as error:
            raise SchemaError(f"attribute {show(name)}: {error}") from None
        kind: Type = "datetime" if moments else "date"
        return cls(name, levels, bins, True, taxonomy, missing, other, kind, None, dates, reading)

    def __len__(self) -> int:
        return len(self.levels)

    def __iter__(self) -> Iterator[str]:
        return iter(self.levels)

    def __contains__(self, level: object) -> bool:
        return level in self._codes

    def __repr__(self) -> str:
        what = f"{len(self.bins)} bins" if self.bins else f"{self.size} levels"
        marks = ", ordered" * (self.ordered and not self.bins) + ", taxonomy" * (self.taxonomy is not None)
        return f"Attribute({self.name!r}, {what}: {list_some(self.levels)}{marks})"

    @property
    def size(self) -> int:
        """The number of levels, the missing one included."""
        return len(self.levels)

    @property
    def values(self) -> tuple[str, ...]:
        """The levels that stand for values of the column, without the other and the missing one."""
        return self.levels[: self.size - (self.other is not None) - (self.missing is not None)]

    @property
    def inferred_type(self) -> Type:
        """The type that the levels or bins have if none is declared."""
        return infer_type(self.values, self.bins is not None)

    @property
    def absent_code(self) -> int | None:
        """The code of a missing value: that of the missing level, else of the other one; None if there is neither."""
        return self.size - 1 if self.missing is not None or self.other is not None else None

    @property
    def outside_code(self) -> int | None:
        """The code of a value outside the declaration that has no nearest bin; None if it is refused or left out."""
        if self.other is not None:
            return self.size - 1 - (self.missing is not None)
        spare = self.missing is not None and self.reading.outside in ("missing", "nearest")
        return self.size - 1 if spare else None

    @property
    def leaves_out(self) -> bool:
        """Whether a record is left out if its value is outside the declaration."""
        return self.reading.outside == "leave out"

    @property
    def total(self) -> bool:
        """Whether every value that a cell can hold has a code or leaves its record out, so that none is refused."""
        return self.leaves_out or self.outside_code is not None

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the codes: uint8 up to 256 levels, else uint16."""
        return np.dtype(np.uint8 if self.size <= 256 else np.uint16)

    @property
    def height(self) -> int:
        """The number of generalisation depths, depth 0 included."""
        return 1 if self.taxonomy is None else self.taxonomy.height

    def code(self, level: str) -> int:
        """The code of a level."""
        try:
            return self._codes[level]
        except (KeyError, TypeError):
            raise SchemaError(
                f"{show(level)} is not a level of {show(self.name)}; allowed are {list_some(self.levels)}"
            ) from None

    def generalise(self, depth: int) -> tuple[tuple[str, ...], npt.NDArray[Any]]:
        """The coarser labels at this depth of the taxonomy, and an array that maps each code to its group.

        Depth 0 is the attribute itself; a missing level outside the taxonomy is a group of its own.
        """
        if self.taxonomy is None and depth != 0:
            raise SchemaError(
                f"attribute {show(self.name)} has no taxonomy, so depth {depth} does not exist; only 0 does"
            )
        names = {} if self.taxonomy is None else self.taxonomy.cut(depth)
        groups: dict[str, int] = {}
        found = [groups.setdefault(names.get(level, level), len(groups)) for level in self.levels]
        return tuple(groups), np.asarray(found, dtype=self.dtype)

    def encode(self, column: Any, *, first_row: int = 1, strict: bool = False) -> npt.NDArray[Any]:
        """The code of every value of a column; the module `columns` says which value is which level.

        Values that leave their record out are dropped; if it is `strict`, all that is outside is refused.
        """
        return columns.encode_column(self, column, first_row=first_row, strict=strict)

    def decode(
        self, codes: npt.ArrayLike, *, rng: np.random.Generator | int | None = None
    ) -> npt.NDArray[Any]:
        """The label of every code; with `rng`, a binned number becomes a uniform draw inside its bin."""
        return columns.decode_column(self, codes, rng=rng)


@dataclass(frozen=True, slots=True, repr=False)
class Schema:
    """The attributes of a table, in order; what holds between them, and columns that follow from them.

    Constraints hold in every synthetic row. A column that follows is neither read nor measured.
    """

    attributes: tuple[Attribute, ...]
    constraints: tuple[Constraint, ...] = ()
    follows: tuple[Follows, ...] = ()
    _index: dict[str, Attribute] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        if not self.attributes:
            raise SchemaError("the schema has no attributes; at least 1 is needed")
        index: dict[str, Attribute] = {}
        for attribute in self.attributes:
            if attribute.name in index:
                raise SchemaError(f"attribute {show(attribute.name)} is declared twice")
            index[attribute.name] = attribute
        object.__setattr__(self, "_index", index)
        for found in self.follows:
            if found.name in index:
                raise SchemaError(
                    f"{show(found.name)} is both an attribute and a column that follows from others"
                )
            found.require(self)
        for constraint in self.constraints:
            constraint.require(self)
        if self.constraints:
            close_order(self)  # refused if it goes round in a circle

    @classmethod
    def of(cls, declared: Mapping[str, Iterable[object] | Bins | Attribute]) -> Schema:
        """A schema from a mapping of names to levels, bins or whole attributes."""
        found = []
        for name, what in declared.items():
            if isinstance(what, Attribute):
                if what.name != name:
                    raise SchemaError(f"attribute {show(what.name)} is declared under the name {show(name)}")
                found.append(what)
            else:
                found.append(
                    Attribute.binned(name, what) if isinstance(what, Bins) else Attribute.of(name, what)
                )
        return cls(tuple(found))

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Schema:
        """The schema that a TOML file declares."""
        from discreet.values.schema.formats.toml import read_schema

        return read_schema(path)

    @classmethod
    def draft(cls, data: Any, **options: Any) -> Any:
        """A draft of a schema for a file or a frame, to be reviewed: `discreet.draft`, found by its address.

        Values know no rows; this knows only the front door, where those who do can be found.
        """
        return import_module("discreet.doors.draft").draft(data, **options)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the schema as TOML, all or nothing."""
        from discreet.values.files import write_text
        from discreet.values.schema.formats.toml import write_toml

        write_text(path, write_toml(self))

    @classmethod
    def from_json(cls, document: object) -> Schema:
        """The schema that `to_json` made."""
        from discreet.values.schema.formats.document import parse_document

        return parse_document(document)

    def to_json(self) -> dict[str, Any]:
        """The schema as plain JSON values; order is kept in arrays, open ends are 'inf' and '-inf'."""
        from discreet.values.schema.formats.document import make_document

        return make_document(self)

    def __len__(self) -> int:
        return len(self.attributes)

    def __iter__(self) -> Iterator[Attribute]:
        return iter(self.attributes)

    def __contains__(self, name: object) -> bool:
        return name in self._index

    def __getitem__(self, name: str) -> Attribute:
        try:
            return self._index[name]
        except (KeyError, TypeError):
            raise SchemaError(
                f"unknown attribute {show(name)}; the schema has {list_some(self.names, name)}"
            ) from None

    def __repr__(self) -> str:
        some = ", ".join(f"{found.name}[{found.size}]" for found in self.attributes[:8])
        return f"Schema({len(self)} attributes: {some}{', …' * (len(self) > 8)})"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the attributes, in order."""
        return tuple(self._index)

    @property
    def sizes(self) -> dict[str, int]:
        """The number of levels of each attribute."""
        return {attribute.name: attribute.size for attribute in self.attributes}

    @property
    def total(self) -> bool:
        """Whether no content of a row can be refused: each attribute says what becomes of values outside it."""
        return all(attribute.total for attribute in self.attributes)

    def select(self, names: Iterable[str]) -> Schema:
        """The schema of these attributes only, in this order, with what holds between them and follows from them."""
        chosen = tuple(self[name] for name in names)
        kept = {attribute.name for attribute in chosen}
        return Schema(
            chosen,
            tuple(found for found in self.constraints if kept.issuperset(found.names)),
            tuple(found for found in self.follows if kept.issuperset(found.sources)),
        )

    def encode(self, table: Any, *, first_row: int = 1, strict: bool = False) -> dict[str, npt.NDArray[Any]]:
        """The codes of every attribute, from a mapping, frame or Arrow table; other columns are ignored.

        Records that are left out are not in it; if it is `strict`, all that is outside is refused.
        """
        return columns.encode_table(self, table, first_row=first_row, strict=strict)

    def decode(
        self, codes: Mapping[str, npt.ArrayLike], *, rng: np.random.Generator | int | None = None
    ) -> dict[str, npt.NDArray[Any]]:
        """The labels of every column of codes; with `rng`, binned numbers become draws inside their bins."""
        source = None if rng is None else np.random.default_rng(rng)
        return {name: self[name].decode(column, rng=source) for name, column in codes.items()}


def _extend(levels: tuple[str, ...], other: str | None, missing: str | None) -> tuple[str, ...]:
    return (*levels, *(() if other is None else (other,)), *(() if missing is None else (missing,)))


def _write_level(level: object) -> Any:
    if isinstance(level, bool):
        return "true" if level else "false"
    return str(int(level)) if isinstance(level, int | np.integer) else level
