"""Tables for the experiments of paper 004: a CSV with a JSON of declared levels, and the error of synthetic rows."""

from __future__ import annotations

import csv
import itertools
import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from _distances import count_shares
from discreet.compute.metrics import total_variation
from discreet.values.schema import Attribute, Group, Schema, Taxonomy
from discreet.values.schema.encoding import Encoding
from discreet.values.table import Table

QUICK_MARGINALS = 200
"""So many random marginals, always the same for one table, where all would take too long."""


@dataclass(frozen=True, slots=True, eq=False)
class Data:
    """A table of labels, its declared schema, its codes, and the marginals it is judged by."""

    name: str
    schema: Schema
    codes: dict[str, np.ndarray]
    most: int | None = None
    """How many marginals it is judged by at most; None: all."""
    known: dict[tuple[str, ...], np.ndarray] = field(default_factory=dict)
    """The true marginals that were counted already: many synthetic tables are held to the same ones."""

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(next(iter(self.codes.values())))

    @property
    def columns(self) -> Any:
        """The labels as an Arrow table of codes, which an airlock opens ten times as fast as lists of texts."""
        import pyarrow as pa

        return pa.table(
            {
                name: pa.DictionaryArray.from_arrays(self.codes[name], list(self.schema[name].levels))
                for name in self.schema.names
            }
        )

    @property
    def binary(self) -> bool:
        """Whether every attribute has two levels."""
        return set(self.schema.sizes.values()) == {2}

    def count(self, members: tuple[str, ...]) -> Table:
        """The exact counts over some attributes."""
        shape = [self.schema[name].size for name in members]
        index = np.ravel_multi_index([self.codes[name].astype(np.intp) for name in members], shape)
        return Table(members, np.bincount(index, minlength=math.prod(shape)).reshape(shape))

    def marginals(self, ways: int) -> list[tuple[str, ...]]:
        """All attribute sets of this size, or so many of them, drawn with a fixed seed."""
        every = list(itertools.combinations(self.schema.names, ways))
        if self.most is None or len(every) <= self.most:
            return every
        return [every[i] for i in np.random.default_rng(4).choice(len(every), self.most, replace=False)]

    def cut_bits(self) -> Data:
        """The same rows as the bits of their codes, as the paper encodes attributes of more than two levels."""
        encoding = Encoding.of("binary", self.schema)
        codes = {}
        for name in encoding.view.names:
            found = encoding.find(name)
            codes[name] = self.codes[name] if found is None else found.lookup()[self.codes[found.source]]
        return Data(self.name, encoding.view, codes, self.most)

    def error(self, codes: dict[str, np.ndarray], ways: int = 3) -> float:
        """The mean total variation between these rows and the true ones."""
        sizes = self.schema.sizes
        apart = []
        for found in self.marginals(ways):
            if found not in self.known:
                self.known[found] = count_shares(self.codes, sizes, found)
            apart.append(total_variation(self.known[found], count_shares(codes, sizes, found)))
        return float(np.mean(apart))

    def take(self, index: np.ndarray) -> Data:
        """Some of the rows."""
        return self.wear({name: codes[index] for name, codes in self.codes.items()})

    def wear(self, codes: dict[str, np.ndarray]) -> Data:
        """Other rows of the same attributes."""
        return Data(self.name, self.schema, codes, self.most)


def read_data(folder: Path, name: str, most: int | None = None) -> Data | None:
    """The table NAME.csv with the levels in NAME.domain.json, or None with a message."""
    table, domain = folder / f"{name}.csv", folder / f"{name}.domain.json"
    if not (table.exists() and domain.exists()):
        print(f"{name}: {table} or {domain} is not there; skipped")
        return None
    declared = json.loads(domain.read_text("utf-8"))
    schema = Schema(tuple(_declare(column, found) for column, found in declared.items()))
    with table.open(newline="", encoding="utf-8") as file:
        reader = csv.reader(file)
        header = next(reader)
        values = list(zip(*reader, strict=True))
    columns = {column: list(values[header.index(column)]) for column in schema.names}
    return Data(name, schema, schema.encode(columns), most)


def _declare(name: str, found: dict[str, Any]) -> Attribute:
    """The attribute with its taxonomy: the declared one, or neighbours in pairs where the levels are in order."""
    levels = [str(level) for level in found["levels"]]
    taxonomy = None
    if "taxonomy" in found:
        taxonomy = Taxonomy(_read_members(found["taxonomy"], "group"))
    elif found.get("kind", "").startswith(("continuous", "ordinal")) and len(levels) > 2:
        taxonomy = Taxonomy.halve(levels)
    return Attribute.of(name, levels, taxonomy=taxonomy)


def _read_members(node: dict[str, Any], label: str) -> tuple[str | Group, ...]:
    groups = [
        Group(f"{label} {i + 1}", _read_members(below, f"{label} {i + 1}"))
        for i, below in enumerate(node["groups"])
    ]
    return (*node["levels"], *groups)
