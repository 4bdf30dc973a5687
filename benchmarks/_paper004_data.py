"""Tables for the experiments of paper 004: a CSV with a JSON of declared levels, and the error of synthetic rows."""

from __future__ import annotations

import csv
import itertools
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from discreet.algorithms.metrics import mean_variation
from discreet.vocabulary.schema import Schema

MARGINALS = 200
"""Random marginals of three attributes, always the same for one table."""


@dataclass(frozen=True, slots=True, eq=False)
class Data:
    """A table of labels, its declared schema, its codes, and the marginals it is judged by."""

    name: str
    schema: Schema
    columns: dict[str, list[str]]
    codes: dict[str, np.ndarray]

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(next(iter(self.columns.values())))

    def marginals(self, ways: int, most: int | None = MARGINALS) -> list[tuple[str, ...]]:
        """All attribute sets of this size, or so many of them, drawn with a fixed seed."""
        every = list(itertools.combinations(self.schema.names, ways))
        if most is None or len(every) <= most:
            return every
        return [every[i] for i in np.random.default_rng(4).choice(len(every), most, replace=False)]

    def error(self, codes: dict[str, np.ndarray], ways: int = 3) -> float:
        """The mean total variation between these rows and the true ones."""
        return mean_variation(self.codes, codes, self.schema.sizes, self.marginals(ways))

    def take(self, index: np.ndarray) -> Data:
        """Some of the rows."""
        columns = {name: [column[i] for i in index] for name, column in self.columns.items()}
        return Data(
            self.name, self.schema, columns, {name: codes[index] for name, codes in self.codes.items()}
        )


def read_data(folder: Path, name: str) -> Data | None:
    """The table NAME.csv with the levels in NAME.domain.json, or None with a message."""
    table, domain = folder / f"{name}.csv", folder / f"{name}.domain.json"
    if not (table.exists() and domain.exists()):
        print(f"{name}: {table} or {domain} is not there; skipped")
        return None
    declared = json.loads(domain.read_text("utf-8"))
    schema = Schema.of({column: found["levels"] for column, found in declared.items()})
    with table.open(newline="", encoding="utf-8") as file:
        reader = csv.reader(file)
        header = next(reader)
        values = list(zip(*reader, strict=True))
    columns = {column: list(values[header.index(column)]) for column in schema.names}
    return Data(name, schema, columns, schema.encode(columns))
