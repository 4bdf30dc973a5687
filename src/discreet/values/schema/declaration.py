"""The schema: the attributes of a table and the levels of each; declared by people, never read from rows."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.values.errors import SchemaError
from discreet.values.schema import columns
from discreet.values.schema.bins import Bins, Closed
from discreet.values.schema.taxonomy import Group, Taxonomy
from discreet.values.text import list_some, require_label, require_name, show

__all__ = ["MAX_LEVELS", "Attribute", "Bins", "Group", "Schema", "Taxonomy"]

MAX_LEVELS = 65_536
"""The most levels that an attribute may have: what a 16-bit code can tell apart."""


@dataclass(frozen=True, slots=True, repr=False)
class Attribute:
    """One column: a name and a label for each code; the level for missing values, if any, is the last."""

    name: str
    levels: tuple[str, ...]
    bins: Bins | None = None
    ordered: bool = False
    taxonomy: Taxonomy | None = None
    missing: str | None = None
    _codes: dict[str, int] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        require_name("attribute name", self.name)
        try:
            self._require_consistent()
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
        taxonomy: Taxonomy | None = None,
    ) -> Attribute:
        """An attribute with these levels; integers and booleans are written as text, `missing` goes last."""
        if isinstance(levels, str):
            raise SchemaError(
                f"attribute {show(name)}: levels are the text {show(levels)}; give a list of levels"
            )
        found = tuple(_write_level(level) for level in levels)
        if missing is not None and missing in found:
            raise SchemaError(
                f"attribute {show(name)}: {show(missing)} is both a level and the missing level"
            )
        return cls(name, found if missing is None else (*found, missing), None, ordered, taxonomy, missing)

    @classmethod
    def binned(
        cls,
        name: str,
        edges: Iterable[float] | Bins,
        *,
        closed: Closed = "left",
        missing: str | None = None,
        taxonomy: Taxonomy | None = None,
    ) -> Attribute:
        """A number cut into bins at these edges; -inf and inf leave an end open."""
        try:
            bins = edges if isinstance(edges, Bins) else Bins(tuple(edges), closed)
        except SchemaError as error:
            raise SchemaError(f"attribute {show(name)}: {error}") from None
        levels = bins.labels if missing is None else (*bins.labels, missing)
        return cls(name, levels, bins, True, taxonomy, missing)

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

    def encode(self, column: Any, *, first_row: int = 1) -> npt.NDArray[Any]:
        """The code of every value of a column; the module `columns` says which value is which level."""
        return columns.encode_column(self, column, first_row=first_row)

    def decode(
        self, codes: npt.ArrayLike, *, rng: np.random.Generator | int | None = None
    ) -> npt.NDArray[Any]:
        """The label of every code; with `rng`, a binned number becomes a uniform draw inside its bin."""
        return columns.decode_column(self, codes, rng=rng)

    def _require_consistent(self) -> None:
        for level in self.levels:
            require_label("level", level)
        if len(set(self.levels)) != len(self.levels):
            twice = next(level for level, times in Counter(self.levels).items() if times > 1)
            raise SchemaError(f"level {show(twice)} is declared twice")
        if not 2 <= self.size <= MAX_LEVELS:
            raise SchemaError(f"{self.size} levels; at least 2 and at most {MAX_LEVELS:,} are allowed")
        if self.missing is not None and self.levels[-1] != self.missing:
            raise SchemaError(
                f"the missing level {show(self.missing)} must be the last level, not {show(self.levels[-1])}"
            )
        if self.bins is not None:
            self._require_bins(self.bins)
        if self.taxonomy is not None:
            self.taxonomy.require_levels(self.levels, self.missing)

    def _require_bins(self, bins: Bins) -> None:
        if self.levels != bins.labels + (() if self.missing is None else (self.missing,)):
            raise SchemaError(
                f"levels {list_some(self.levels)} are not the labels of its bins, {list_some(bins.labels)}"
            )
        if not self.ordered:
            raise SchemaError("bins are ordered; leave `ordered` true")
        value = None if self.missing is None else columns.read_number(self.missing)
        if value is not None and bins.holds(value):
            raise SchemaError(
                f"the missing level {show(self.missing)} is a number inside the bins; "
                f"it must lie outside {show(bins.edges[0])} to {show(bins.edges[-1])}, or not be a number"
            )


@dataclass(frozen=True, slots=True, repr=False)
class Schema:
    """The attributes of a table, in order."""

    attributes: tuple[Attribute, ...]
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
        from discreet.values.schema.document import read_schema

        return read_schema(path)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the schema as TOML, all or nothing."""
        from discreet.values.files import write_text
        from discreet.values.schema.document import write_toml

        write_text(path, write_toml(self))

    @classmethod
    def from_json(cls, document: object) -> Schema:
        """The schema that `to_json` made."""
        from discreet.values.schema.document import parse_document

        return parse_document(document)

    def to_json(self) -> dict[str, Any]:
        """The schema as plain JSON values; order is kept in arrays, open ends are 'inf' and '-inf'."""
        from discreet.values.schema.document import make_document

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
                f"unknown attribute {show(name)}; the schema has {list_some(self.names)}"
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

    def select(self, names: Iterable[str]) -> Schema:
        """The schema of these attributes only, in this order."""
        return Schema(tuple(self[name] for name in names))

    def encode(self, table: Any, *, first_row: int = 1) -> dict[str, npt.NDArray[Any]]:
        """The codes of every attribute, from a mapping, frame or Arrow table; other columns are ignored."""
        return columns.encode_table(self, table, first_row=first_row)

    def decode(
        self, codes: Mapping[str, npt.ArrayLike], *, rng: np.random.Generator | int | None = None
    ) -> dict[str, npt.NDArray[Any]]:
        """The labels of every column of codes; with `rng`, binned numbers become draws inside their bins."""
        source = None if rng is None else np.random.default_rng(rng)
        return {name: self[name].decode(column, rng=source) for name, column in codes.items()}


def _write_level(level: object) -> Any:
    if isinstance(level, bool):
        return "true" if level else "false"
    return str(int(level)) if isinstance(level, int | np.integer) else level
