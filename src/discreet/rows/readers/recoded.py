"""Rows as they are shown on: through an encoding, or with weights that are cut off."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.rows.readers.batches import Batch, Numbers, Reader
from discreet.values.errors import DataError
from discreet.values.schema.encoding import Encoding
from discreet.values.unit import Unit


@dataclass(frozen=True, slots=True, eq=False)
class RecodedReader:
    """A reader over another counter's rows, which checks and closes them itself."""

    label: str
    source: Callable[[Sequence[str]], Iterator[Batch]]
    encoding: Encoding

    def stamp(self) -> object:
        """Nothing: the source looks for changes whenever it is read."""
        return None

    def read(self, names: Sequence[str]) -> Iterator[Batch]:
        """The codes of these attributes of the view."""
        sources = list(dict.fromkeys(map(self.encoding.source, names)))
        lookups = [None if (found := self.encoding.find(name)) is None else found.lookup() for name in names]
        places = [sources.index(self.encoding.source(name)) for name in names]
        for batch in self.source(sources):
            columns = [
                batch.codes[place] if lookup is None else lookup[batch.codes[place]]
                for place, lookup in zip(places, lookups, strict=True)
            ]
            yield Batch(batch.rows, columns, batch.weights)

    def read_numbers(self, names: Sequence[str]) -> Iterator[Numbers]:
        """Refused: an encoding has no numbers."""
        raise DataError(f"{self.label}: column {names[0]!r} cannot be summed through an encoding")

    def bound(self, unit: Unit) -> Reader:
        """Bounded already, as its source is."""
        return self

    def close(self) -> None:
        """Nothing: the rows belong to the source."""


@dataclass(frozen=True, slots=True)
class CappedReader:
    """The same rows, none of which weighs more than the unit of privacy allows."""

    source: Reader
    most: int

    @property
    def label(self) -> str:
        """How errors name the table."""
        return self.source.label

    def stamp(self) -> object:
        """That of the table."""
        return self.source.stamp()

    def read(self, names: Sequence[str]) -> Iterator[Batch]:
        """The codes of these attributes, with weights that are cut off."""
        for batch in self.source.read(names):
            yield replace(
                batch, weights=None if batch.weights is None else np.minimum(batch.weights, self.most)
            )

    def read_numbers(self, names: Sequence[str]) -> Iterator[Numbers]:
        """The values of these number columns, with weights that are cut off."""
        for numbers, weights in self.source.read_numbers(names):
            yield numbers, None if weights is None else np.minimum(weights, self.most)

    def bound(self, unit: Unit) -> Reader:
        """Rows with weights are not those of people."""
        return self

    def close(self) -> None:
        """Let go of the table."""
        self.source.close()


@dataclass(frozen=True, slots=True, eq=False)
class CodesReader:
    """Codes that are at hand already, each row with how often it counts."""

    label: str
    codes: dict[str, npt.NDArray[Any]]
    weights: npt.NDArray[np.int64]

    def stamp(self) -> object:
        """Nothing: they do not change."""
        return None

    def read(self, names: Sequence[str]) -> Iterator[Batch]:
        """The codes of these attributes."""
        yield Batch(len(self.weights), [self.codes[name] for name in names], self.weights)

    def read_numbers(self, names: Sequence[str]) -> Iterator[Numbers]:
        """Refused: codes are no numbers."""
        raise DataError(f"{self.label}: column {names[0]!r} cannot be summed from codes")

    def bound(self, unit: Unit) -> Reader:
        """Bounded already, if they are people's."""
        return self

    def close(self) -> None:
        """Nothing is open."""
