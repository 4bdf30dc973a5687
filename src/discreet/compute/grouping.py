"""Levels that noise would drown are searched in groups, and stand inside a group as in the attribute's own margin.

A pair of attributes with a hundred levels each has ten thousand cells, and noise in every one. Neighbouring levels in
groups have a hundredth of them, and what they say of another attribute is nearly the same. Groups follow from margins
that were paid for. A network has them as nodes of their own: P(level | group) is the margin's, and nothing else depends
on the level inside its group.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from discreet.compute.smoothing import FEW_LEVELS, count_ordered, score_levels
from discreet.values.graph import DAG
from discreet.values.schema import Schema
from discreet.values.schema.encoding import Derived, Encoding
from discreet.values.table import Array, Table

FEWEST_GROUPS = 24
"""The fewest groups that an attribute is cut into, but for levels that hold more than an even share by themselves."""
GROUP_ROWS = 200.0
"""The rows of a group, at least about, in units of noise if all attributes shared the budget."""
RARE = 0.1
"""Levels that are mere names have no neighbours: only those are put together that hold less than this part of a group's
rows."""
LEAST = 1e-9
"""No level is expected to hold less than this part of all rows."""
WORTH = 0.8
"""An attribute is searched in groups if there are no more of them than this part of its levels."""


def find_groups(counts: Array, values: int, ordered: bool, most: float) -> list[int]:
    """The group of each level, from about how many rows hold it: at most one part in `most` of them, or one level.

    The first levels stand for `values`, the others for missing and other ones, which stay alone. Levels in order are
    cut into neighbours; of mere names the rare ones are put together, those of about the same number of rows.
    """
    full = float(counts.sum()) / most
    order = list(range(values)) if ordered else [int(i) for i in np.argsort(counts[:values], kind="stable")]
    groups = np.arange(len(counts))
    number, held = -1, np.inf
    for i in order:
        alone = not ordered and counts[i] >= RARE * full
        if alone or held + counts[i] > full:
            number, held = number + 1, 0.0
        groups[i], held = number, np.inf if alone else held + counts[i]
    groups[values:] += number + 1 - values
    return [int(found) for found in groups]


@dataclass(frozen=True, slots=True, eq=False)
class Grouping:
    """The attributes that a search looks at: those that are declared, some of them with their levels in groups."""

    encoding: Encoding
    shares: Mapping[str, Array] = field(default_factory=dict)
    """How the rows of an attribute that is searched in groups are spread over its levels, about."""

    @classmethod
    def none(cls, schema: Schema) -> Self:
        """All levels as they are."""
        return cls(Encoding.of("vanilla", schema))

    @classmethod
    def of(cls, schema: Schema, margins: Sequence[Table], most: float, kept: Container[str] = ()) -> Self:
        """Groups of at most about one part in `most` of the rows, by these margins; none of what is to be kept."""
        ordered, codes, shares = count_ordered(schema), {}, {}
        for margin in margins:
            (name,), found = margin.axes, schema[margin.axes[0]]
            if found.size > most and name not in kept:
                numbers = find_groups(margin.values, len(found.values), bool(ordered[name]), most)
                if 1 < max(numbers) + 1 <= WORTH * found.size:
                    codes[name], shares[name] = numbers, margin.values / margin.values.sum()
        return cls(Encoding.merge(schema, codes), shares) if codes else cls.none(schema)

    @property
    def schema(self) -> Schema:
        """What is declared."""
        return self.encoding.schema

    @property
    def groups(self) -> dict[str, Derived]:
        """For each attribute that is searched in groups these groups."""
        return {found.source: found for found in self.encoding.derived}

    @property
    def names(self) -> dict[str, str]:
        """By which name each declared attribute is searched."""
        groups = self.groups
        return {name: groups[name].name if name in groups else name for name in self.schema.names}

    @property
    def sizes(self) -> dict[str, int]:
        """The number of levels or groups of each attribute as it is searched."""
        sizes = self.encoding.view.sizes
        return {name: sizes[name] for name in self.names.values()}

    def merge(self, table: Table) -> Table:
        """A table with its levels put in groups."""
        if self.groups.keys().isdisjoint(table.axes):
            return table
        names = self.names
        return self.encoding.coarsen(table, [names.get(name, name) for name in table.axes])

    def merge_noisy(self, noisy: Table, variance: float) -> tuple[Table, float]:
        """The same of a noisy table, with the mean variance of its cells' noise."""
        merged = self.merge(noisy)
        return merged, variance * noisy.cells / max(1, merged.cells)

    def count_ordered(self) -> dict[str, int]:
        """How many levels or groups of each searched attribute are in order (`smoothing.count_ordered`)."""
        found = count_ordered(self.encoding.view)
        return {name: found[name] for name in self.sizes}

    def score(self, fewest: int = FEW_LEVELS) -> dict[str, Array]:
        """The numbers that levels or groups stand for (`smoothing.score_levels`); groups, for their mean."""
        ordered, scores = self.count_ordered(), score_levels(self.schema, fewest)
        found = {name: scores[name] for name in self.sizes if name in scores}
        for source, group in self.groups.items():
            if source in scores and ordered[group.name] >= fewest:
                size, weights = group.attribute.size, np.maximum(self.shares[source], LEAST)
                sums = np.bincount(group.codes, weights * scores[source], size)
                found[group.name] = sums / np.bincount(group.codes, weights, size)
        return found

    def complete(
        self, dag: DAG, cpts: Sequence[Table], margins: Mapping[str, Array]
    ) -> tuple[Schema, DAG, tuple[Table, ...]]:
        """The network with the levels of attributes that were searched in groups: each follows from its group alone.

        `margins` says how the rows of such an attribute are spread over its levels.
        """
        parents = {name: dag.parents_of(name) for name in dag.nodes}
        tables = dict(zip(dag.nodes, cpts, strict=True))
        for source, group in self.groups.items():
            inside = np.eye(group.attribute.size)[group.lookup()].T
            shares = inside * np.maximum(margins[source], LEAST * margins[source].sum())
            parents[source] = (group.name,)
            tables[source] = Table((group.name, source), shares / shares.sum(axis=1, keepdims=True))
        added = tuple(found.attribute for found in self.groups.values())
        schema = Schema((*self.schema, *added), self.schema.constraints, self.schema.follows)
        graph = DAG.build({name: parents[name] for name in schema.names})
        return schema, graph, tuple(tables[name] for name in schema.names)
