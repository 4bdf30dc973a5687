"""Encodings: attributes that follow from the declared ones, as bits of their codes or as groups of their levels [004].

An encoding is made from a schema alone. Every derived attribute is a function of one declared attribute, so a row
that is added, removed or replaced moves a table over derived attributes no further than a table over declared ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Self, get_args

import numpy as np
import numpy.typing as npt

from discreet.values.errors import SchemaError, TableError
from discreet.values.schema import Attribute, Schema
from discreet.values.table import Array, Table
from discreet.values.text import show

Kind = Literal["vanilla", "binary", "hierarchical"]
"""What can be asked for by name; an encoding whose groups follow from paid answers is `merged`."""


@dataclass(frozen=True, slots=True)
class Derived:
    """An attribute that follows from another: `codes` holds its code for each code of the source."""

    attribute: Attribute
    source: str
    codes: tuple[int, ...]

    @property
    def name(self) -> str:
        """The name of the attribute."""
        return self.attribute.name

    def lookup(self) -> npt.NDArray[np.uint16]:
        """The codes as an array, to be indexed by codes of the source."""
        return np.array(self.codes, dtype=self.attribute.dtype)


@dataclass(frozen=True, slots=True)
class Encoding:
    """What a search sees in place of a schema: `view`, whose attributes are declared ones and derived ones.

    binary: each attribute of more than two levels becomes the bits of its code, ⌈log₂ levels⌉ of them, the most
    significant first [004, Sec. 4.5]. hierarchical: each attribute stays, and beside it stand its coarser versions, one
    for each depth of its taxonomy. merged: each attribute stays, and beside some stand their levels in groups, which
    somebody has found from what is public. vanilla: every attribute as it is.
    """

    kind: Kind | Literal["merged"]
    schema: Schema
    view: Schema
    derived: tuple[Derived, ...] = ()
    _index: dict[str, Derived] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_index", {found.name: found for found in self.derived})
        for found in self.derived:
            _require_lookup(found, self.schema)
        known = {found.name: found for found in (*self.schema, *(found.attribute for found in self.derived))}
        for attribute in self.view:
            if known.get(attribute.name) != attribute:
                raise SchemaError(
                    f"{show(attribute.name)} is neither declared nor derived from what is declared"
                )

    @classmethod
    def of(cls, kind: str, schema: Schema) -> Self:
        """The encoding of this kind; refused if a name is taken, or if there is no taxonomy to generalise by."""
        if kind == "vanilla":
            return cls("vanilla", schema, schema)
        if kind == "binary":
            made = [derived for found in schema for derived in _cut_bits(found)]
            kept = [found for found in schema if found.size == 2]
        elif kind == "hierarchical":
            made = [derived for found in schema for derived in _climb(found)]
            kept = list(schema)
            if not made:
                raise SchemaError(
                    "the hierarchical encoding needs an attribute with a taxonomy that groups its levels; "
                    "declare one in the schema, or use the vanilla encoding"
                )
        else:
            raise SchemaError(f"an encoding is {', '.join(get_args(Kind))}, not {kind!r}")
        for derived in made:
            if derived.name in schema:
                raise SchemaError(
                    f"the {kind} encoding calls a part of {show(derived.source)} {show(derived.name)}, which is "
                    "also an attribute of the schema; rename that"
                )
        view = _interleave(schema, kept, made)
        return cls(kind, schema, view, tuple(made))  # type: ignore[arg-type]

    @classmethod
    def merge(cls, schema: Schema, groups: Mapping[str, Sequence[int]]) -> Self:
        """Beside some attributes their levels in groups, of which each level has the number.

        Groups are in order if levels are. They are named by their first and last level, or by how many names they hold.
        """
        taken, made = set(schema.names), []
        for name, numbers in groups.items():
            derived = _group(schema[name], f"{name}_groups", numbers)
            while derived.name in taken:
                derived = _group(schema[name], f"{derived.name}_", derived.codes)
            taken.add(derived.name)
            made.append(derived)
        return cls("merged", schema, Schema((*schema, *(found.attribute for found in made))), tuple(made))

    @property
    def nests(self) -> bool:
        """Whether derived attributes are coarser versions of declared ones that stay."""
        return self.kind in ("hierarchical", "merged")

    def source(self, name: str) -> str:
        """The declared attribute that an attribute of the view is, or follows from."""
        return self._index[name].source if name in self._index else name

    def find(self, name: str) -> Derived | None:
        """The derived attribute of this name; None for a declared one."""
        return self._index.get(name)

    def parts(self, name: str) -> tuple[str, ...]:
        """The attributes that are derived from a declared one: its bits, or its coarser versions, finest first."""
        return tuple(found.name for found in self.derived if found.source == name)

    def spell(self, name: str) -> tuple[str, ...]:
        """What stands for a declared attribute in the view when all of it is meant: its bits, or itself."""
        return self.parts(name) or (name,) if self.kind == "binary" else (name,)

    def holds(self, name: str, axes: Sequence[str]) -> str | None:
        """The one of these attributes from which `name` follows: itself, or a finer version of it."""
        if name in axes:
            return name
        if not self.nests or name not in self._index:
            return None
        source = self._index[name].source
        finer = (source, *self.parts(source))
        return next((found for found in finer[: finer.index(name)] if found in axes), None)

    def coarsen(self, table: Table, axes: Sequence[str]) -> Table:
        """The table over these attributes of the view, each of which follows from one of the table's."""
        held = [self.holds(name, table.axes) for name in axes]
        missing = [name for name, found in zip(axes, held, strict=True) if found is None]
        if missing:
            raise TableError(f"{missing[0]!r} does not follow from a table over {table.axes}")
        values = table.project([str(found) for found in held]).values
        for i, (name, found) in enumerate(zip(axes, held, strict=True)):
            if name == found:
                continue
            levels, groups = np.arange(self.schema[self.source(name)].size), self._index[name].lookup()
            fine = levels if (version := self.find(str(found))) is None else version.lookup()
            joined = np.zeros((values.shape[i], self._index[name].attribute.size))
            joined[fine, groups] = 1.0
            values = np.moveaxis(np.tensordot(values, joined, axes=(i, 0)), -1, i)
        return Table(tuple(axes), values)

    def extend(self, parents: Mapping[str, Sequence[str]]) -> tuple[Schema, dict[str, tuple[str, ...]]]:
        """A schema and a graph of the declared attributes and the derived ones that `parents` needs beside them.

        `parents` is the graph over the view. A coarser version gets its source as only parent, and an attribute that
        was cut into bits gets these bits: so the declared attributes are in the network, whatever was searched.
        """
        used = {name for child, found in parents.items() for name in (child, *found)}
        needed = [found for found in self.derived if found.name in used]
        graph: dict[str, tuple[str, ...]] = {}
        for name in self.schema.names:
            graph[name] = tuple(parents[name]) if name in parents else self.spell(name)
        for found in needed:
            graph[found.name] = tuple(parents[found.name]) if found.name in parents else (found.source,)
        attributes = (*self.schema, *(found.attribute for found in needed))
        return Schema(attributes, self.schema.constraints, self.schema.follows), graph

    def link(self, name: str, family: Sequence[str]) -> Table:
        """The fixed conditional that ties a declared attribute and what is derived from it, with the child last.

        Where bits spell no level, the level is drawn evenly from those that share the most leading bits.
        """
        derived = self.find(name)
        if derived is not None:
            return Table(tuple(family), np.eye(derived.attribute.size)[derived.lookup()])
        bits = np.array([self._index[bit].codes for bit in family[:-1]], dtype=np.int64)
        codes = np.array(list(np.ndindex(*([2] * len(bits)))), dtype=np.int64)
        same = np.cumprod(codes[:, :, None] == bits[None], axis=1).sum(axis=1)  # leading bits that agree
        fitting = (same == same.max(axis=1, keepdims=True)).astype(np.float64)
        values = fitting / fitting.sum(axis=1, keepdims=True)
        return Table(tuple(family), values.reshape([2] * len(bits) + [len(self.schema[name])]))

    def possible(self, axes: Sequence[str]) -> Array:
        """Which cells of a table over attributes of the view can hold a row at all: some level has all its parts."""
        mask = np.ones([self.view[name].size for name in axes], dtype=bool)
        for source in dict.fromkeys(map(self.source, axes)):
            mine = [i for i, name in enumerate(axes) if self.source(name) == source]
            if len(mine) < 2 and axes[mine[0]] not in self._index:
                continue
            levels = np.arange(self.schema[source].size)
            places = [levels if (found := self.find(axes[i])) is None else found.lookup() for i in mine]
            shape = [mask.shape[i] if i in mine else 1 for i in range(len(axes))]
            some = np.zeros([mask.shape[i] for i in mine], dtype=bool)
            some[tuple(places)] = True
            mask &= some.reshape(shape)
        return mask


def _require_lookup(found: Derived, schema: Schema) -> None:
    """Refuse a derived attribute without one code for each level of its source: rows would show which is missing."""
    if found.source not in schema:
        raise SchemaError(f"{show(found.name)} is derived from {show(found.source)}, which is not declared")
    size = schema[found.source].size
    if len(found.codes) != size or not all(0 <= code < found.attribute.size for code in found.codes):
        raise SchemaError(
            f"{show(found.name)} needs a code from 0 to {found.attribute.size - 1} for each of the {size} levels "
            f"of {show(found.source)}"
        )


def _cut_bits(found: Attribute) -> list[Derived]:
    if found.size == 2:
        return []
    width = math.ceil(math.log2(found.size))
    return [
        Derived(
            Attribute(f"{found.name}_bit{i + 1}", ("0", "1")),
            found.name,
            tuple(code >> (width - 1 - i) & 1 for code in range(found.size)),
        )
        for i in range(width)
    ]


def _climb(found: Attribute) -> list[Derived]:
    """The coarser versions of an attribute, finest first, without those that join nothing more or all levels."""
    versions: list[Derived] = []
    size = found.size
    for depth in range(1, found.height):
        labels, groups = found.generalise(depth)
        if 2 <= len(labels) < size:
            attribute = Attribute(f"{found.name}_group{depth}", labels)
            versions.append(Derived(attribute, found.name, tuple(map(int, groups))))
            size = len(labels)
    return versions


def _group(found: Attribute, name: str, numbers: Sequence[int]) -> Derived:
    """The attribute with its levels in groups; missing and other values keep their names where they are alone."""
    whole = isinstance(numbers, list | tuple) and all(type(number) is int for number in numbers)
    if not whole or len(numbers) != found.size or set(numbers) != set(range(len(set(numbers)))):
        raise SchemaError(
            f"the groups of {show(found.name)} need a number for each of its {found.size} levels, counted from 0 "
            "without a gap"
        )
    ordered = found.ordered or found.type in ("integer", "decimal", "date", "datetime")
    labels: list[str] = []
    for number in range(max(numbers) + 1):
        members = [level for level, mine in zip(found.levels, numbers, strict=True) if mine == number]
        label = members[0]
        if len(members) > 1:
            label = f"{label} … {members[-1]}" if ordered else f"{label} and {len(members) - 1} more"
            while label in (*found.levels, *labels):
                label += " (group)"
        labels.append(label)
    missing, other = (level if level in labels else None for level in (found.missing, found.other))
    attribute = Attribute(name, tuple(labels), None, ordered, None, missing, other, "text")
    return Derived(attribute, found.name, tuple(numbers))


def _interleave(schema: Schema, kept: Iterable[Attribute], made: Sequence[Derived]) -> Schema:
    """The attributes of the view, each derived one where its source stood."""
    stay = {found.name for found in kept}
    attributes: list[Attribute] = []
    for found in schema:
        attributes += [found] if found.name in stay else []
        attributes += [derived.attribute for derived in made if derived.source == found.name]
    return Schema(tuple(attributes))
