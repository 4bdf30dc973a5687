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
from discreet.values.measurement import Measurement
from discreet.values.schema import Schema
from discreet.values.schema.encoding import Derived, Encoding
from discreet.values.table import Array, Table

FEWEST_GROUPS = 24
"""The fewest groups that an attribute is cut into, but for levels that hold more than an even share by themselves."""
GROUP_ROWS = 150.0
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
    """The attributes that a search looks at: those of the schema, some of them with their levels in groups."""

    schema: Schema
    groups: Mapping[str, Derived] = field(default_factory=dict)
    """For each attribute that is searched in groups these groups."""
    shares: Mapping[str, Array] = field(default_factory=dict)
    """How the rows of such an attribute are spread over its levels, about."""

    @classmethod
    def of(cls, schema: Schema, margins: Sequence[Table], most: float, kept: Container[str] = ()) -> Self:
        """Groups of at most about one part in `most` of the rows, by these margins; none of what is to be kept."""
        most = max(most, FEWEST_GROUPS)
        ordered, codes, shares = count_ordered(schema), {}, {}
        for margin in margins:
            (name,), found = margin.axes, schema[margin.axes[0]]
            if found.size > most and name not in kept:
                numbers = find_groups(margin.values, len(found.values), bool(ordered[name]), most)
                if 1 < max(numbers) + 1 <= WORTH * found.size:
                    codes[name], shares[name] = numbers, margin.values / margin.values.sum()
        derived = {one.source: one for one in Encoding.merge(schema, codes).derived}
        return cls(schema, derived, shares)

    @property
    def encoding(self) -> Encoding:
        """The schema with the groups beside it."""
        if not self.groups:
            return Encoding.of("vanilla", self.schema)
        return Encoding.merge(self.schema, {name: found.codes for name, found in self.groups.items()})

    @property
    def sizes(self) -> dict[str, int]:
        """The number of levels or groups of each attribute as it is searched."""
        seen = ((found, self.groups.get(found.name)) for found in self.schema)
        return {
            found.name if group is None else group.name: found.size if group is None else group.attribute.size
            for found, group in seen
        }

    def find_source(self, name: str) -> str:
        """The attribute that is searched by this name."""
        return next((source for source, found in self.groups.items() if found.name == name), name)

    def merge(self, found: Measurement) -> tuple[Table, float]:
        """A noisy table with levels put in groups, and the mean variance of its cells' noise."""
        table = found.noisy
        for source, group in self.groups.items():
            if source in table.axes:
                axis = table.axes.index(source)
                same = np.eye(group.attribute.size)[group.lookup()]
                values = np.moveaxis(np.tensordot(table.values, same, axes=(axis, 0)), -1, axis)
                table = Table(
                    tuple(group.name if name == source else name for name in table.axes), np.asarray(values)
                )
        return table, found.law.variance * found.cells / max(1, table.cells)

    def count_ordered(self) -> dict[str, int]:
        """How many levels or groups of each searched attribute are in order (`smoothing.count_ordered`)."""
        found = count_ordered(self.schema)
        merged = count_ordered(self.encoding.view)
        return {name: merged[name] if name in merged else found[name] for name in self.sizes}

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
        """The network with the levels of attributes that were searched in groups: each follows from its group alone."""
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
