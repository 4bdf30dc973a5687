"""Figure 2 of paper 004: the greedy search by one score or another, many times over the same exact scores.

Which family has which score depends on the rows alone, so every family is scored once and a search only draws. The draw
is the exponential mechanism's (the largest score with Gumbel noise) from a seeded generator, so nothing here may be
released. `tests/oracles/test_paper004_scores.py` holds it to the search of the library.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from _paper004_data import Data
from discreet.core.counter import cut_families
from discreet.core.scores import IndependenceDistance, MaximumDistance, MutualInformation, Score
from discreet.rows.engines.coded import CodedCounter
from discreet.rows.limits import Limits
from discreet.values.schema.encoding import Encoding
from discreet.values.table import Table
from discreet.values.unit import Unit

SCORES: dict[str, type[Score]] = {
    "I": MutualInformation,
    "F": MaximumDistance,
    "R": IndependenceDistance,
}
INFORMATION = "I"
"""What a graph is judged by, whatever score it was found with."""


@dataclass(frozen=True, slots=True, eq=False)
class Families:
    """All sets of one size, and for each score its value and its sensitivity with each member as the child."""

    sets: np.ndarray
    values: dict[str, np.ndarray]
    reach: dict[str, np.ndarray]

    @classmethod
    def score(cls, counter: CodedCounter, encoded: Encoding, size: int, scores: Sequence[str]) -> Families:
        """Count every set of this many attributes once, and score each of its members given the others."""
        names, sizes = encoded.view.names, encoded.view.sizes
        sets = np.array(list(itertools.combinations(range(len(names)), size)), dtype=np.intp)
        every = [tuple(names[i] for i in members) for members in sets]
        values = {score: np.empty(sets.shape) for score in scores}
        start = 0
        for batch in cut_families(every, sizes):
            tables = counter.count(batch)
            for child in range(size):
                turned = [_put_last(table, child) for table in tables]
                for score in scores:
                    values[score][start : start + len(batch), child] = SCORES[score]().evaluate(turned)
            start += len(batch)
        levels = np.array([sizes[name] for name in names])[sets]
        return cls(sets, values, {score: _find_reach(score, levels, counter.rows) for score in scores})


@dataclass(frozen=True, slots=True, eq=False)
class ScoredTable:
    """The families of a table with up to so many parents, scored."""

    attributes: int
    by_parents: dict[int, Families]

    @classmethod
    def of(cls, data: Data, degree: int, scores: Sequence[str], *, bits: bool = False) -> ScoredTable:
        """Score the attributes as they are, or the bits of their codes."""
        encoded = Encoding.of("binary" if bits else "vanilla", data.schema)
        counter = CodedCounter.open(data.columns, data.schema, weight=None, limits=Limits())
        if bits:
            counter = counter.encode(encoded)
        found = {k: Families.score(counter, encoded, k + 1, scores) for k in range(1, degree + 1)}
        return cls(len(encoded.view.names), found)

    def search(self, k: int, score: str, epsilon: float, seed: int, first: int | None = None) -> float:
        """ΣI(X, Π) of one graph, found with half of ε; without `first`, the first attribute is drawn at random."""
        rng = np.random.default_rng([seed, k])
        placed = np.zeros(self.attributes, dtype=bool)
        placed[rng.integers(self.attributes) if first is None else first] = True
        share = epsilon / 2 / (self.attributes - 1)
        return math.fsum(self._extend(placed, k, score, share, rng))

    def _extend(
        self, placed: np.ndarray, k: int, score: str, share: float, rng: np.random.Generator
    ) -> Iterator[float]:
        """Place the others one by one; yields the information of each choice."""
        for step in range(1, self.attributes):
            found = self.by_parents[min(k, step)]
            inside = placed[found.sets]
            rows = np.flatnonzero(
                inside.sum(axis=1) == min(k, step)
            )  # all but one are there: that one is the child
            children = inside[rows].argmin(axis=1)
            scale = 2 * found.reach[score][rows, children].max() / share
            noisy = found.values[score][rows, children] / scale + rng.gumbel(size=len(rows))
            row, child = (chosen[noisy.argmax()] for chosen in (rows, children))
            placed[found.sets[row, child]] = True
            yield float(found.values[INFORMATION][row, child])


def _put_last(table: Table, child: int) -> Table:
    axes = (*table.axes[:child], *table.axes[child + 1 :], table.axes[child])
    return Table(axes, np.moveaxis(table.values, child, -1))


def _find_reach(score: str, levels: np.ndarray, rows: int) -> np.ndarray:
    """How far one replaced row moves the score of each family, by the sizes of child and parents."""
    cells = levels.prod(axis=1, keepdims=True)
    reach = np.empty(levels.shape)
    for pi, x in {*zip((cells // levels).flat, levels.flat, strict=True)}:
        moved = SCORES[score]().sensitivity([(int(pi), int(x))], Unit.REPLACE_ONE, rows)
        reach[(levels == x) & (cells // levels == pi)] = float(moved)
    return reach
