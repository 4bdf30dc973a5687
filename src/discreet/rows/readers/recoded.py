"""Rows as an encoding shows them: codes of derived attributes, looked up from those of their sources."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from discreet.rows.readers.batches import Batch, Numbers, Reader
from discreet.values.errors import DataError
from discreet.values.schema.encoding import Encoding


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

    def bound(self, at_most: int) -> Reader:
        """Bounded already, as its source is."""
        return self

    def close(self) -> None:
        """Nothing: the rows belong to the source."""
