"""Last year's release and this year's: which differences are more than noise?

For every share of a level, and every conditional that both releases have, the interval of the difference is
[l₂ − h₁, h₂ − l₁], from guaranteed intervals of the two tables' own answers, each right for all its answers at once
with 1 − α/2. So all differences lie in theirs together with 1 − α (union bound), whatever the noises have to do with
each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.judge.verify import PATIENCE
from discreet.networks.formats.release import Release
from discreet.networks.intervals.ends import pose_levels, shape_ends
from discreet.networks.intervals.table import TableIntervals
from discreet.networks.network import Network
from discreet.values.errors import DiscreetError
from discreet.values.patience import limit_time, require_time
from discreet.values.table import count_cells

COVERAGE = 0.95
MOST_CONDITIONALS = 64
"""Conditionals of one attribute beyond this many are left to `discreet query`."""


@dataclass(frozen=True, slots=True)
class Change:
    """One probability in two releases, and what the difference of the two tables can be."""

    question: str
    before: float
    after: float
    low: float
    high: float

    @property
    def sure(self) -> bool:
        """Whether the tables differ, whatever the noise."""
        return self.low > 0 or self.high < 0

    def __str__(self) -> str:
        return (
            f"{self.question}: {self.before:.4f} → {self.after:.4f}  {self.after - self.before:+.4f} "
            f"[{self.low:+.4f}, {self.high:+.4f}]"
        )

    def to_json(self) -> dict[str, Any]:
        """The change as plain values."""
        return {
            "question": self.question,
            "before": self.before,
            "after": self.after,
            "difference": [self.low, self.high],
            "more than noise": self.sure,
        }


@dataclass(frozen=True, slots=True)
class Differences:
    """All that was compared, in the order of the attributes."""

    changes: tuple[Change, ...]

    @property
    def sure(self) -> tuple[Change, ...]:
        """What differs by more than noise, the largest first."""
        return tuple(sorted((c for c in self.changes if c.sure), key=lambda c: -min(abs(c.low), abs(c.high))))

    def explain(self) -> str:
        """What differs, in lines that can be read aloud."""
        head = (
            f"{len(self.sure)} of {len(self.changes)} probabilities differ by more than noise "
            f"({100 * COVERAGE:g} % sure, for all of them together)"
        )
        tail = "The tables differ so; whether all people do, of whom they are samples, is another question."
        return "\n".join([head, *(f"  {change}" for change in self.sure), *([tail] if self.sure else [])])

    def to_json(self) -> dict[str, Any]:
        """All of it as plain values."""
        return {
            "coverage": COVERAGE,
            "more than noise": len(self.sure),
            "changes": [change.to_json() for change in self.changes],
        }


def find_differences(one: Release, other: Release) -> Differences:
    """What `other` says otherwise than `one`, over the same attributes and levels (`judge.comparison` checks that).

    Releases whose answers take longer than a command may take are refused: strangers may have written them.
    """
    with limit_time(PATIENCE):
        sides = [
            (release.network, TableIntervals(release.network.schema, release.provenance, (1 + COVERAGE) / 2))
            for release in (one, other)
        ]
        return Differences(tuple(_list_changes(sides)))


def _list_changes(sides: list[tuple[Network, TableIntervals]]) -> Iterator[Change]:
    first, second = (network for network, _ in sides)
    for name in first.declared.names:
        yield from _compare(sides, name, {})
        parents = first.dag.parents_of(name)
        shape = [first.schema[parent].size for parent in parents]
        same = set(parents) == set(second.dag.parents_of(name)) <= set(first.declared.names)
        if parents and same and count_cells(shape) <= MOST_CONDITIONALS:
            for codes in np.ndindex(*shape):
                yield from _compare(sides, name, dict(zip(parents, codes, strict=True)))


def _compare(
    sides: list[tuple[Network, TableIntervals]], name: str, given: dict[str, int]
) -> Iterator[Change]:
    """The levels of one attribute under one condition; nothing if one of the tables may hold no such rows at all."""
    schema = sides[0][0].schema
    levels = schema[name].levels
    labels = {parent: schema[parent].levels[code] for parent, code in given.items()}
    shown, ends = [], []
    for network, intervals in sides:
        require_time()
        evidence = {parent: [code] for parent, code in given.items()}
        try:
            shape = (len(levels),)
            found = intervals.bound([name], pose_levels([name], shape), evidence, quick=bool(given))
            ends.append(shape_ends(*found, shape))
            shown.append(network.query(name, labels or None, intervals="none").table.values)
        except DiscreetError:
            return
    condition = f" | {', '.join(f'{parent}={label}' for parent, label in labels.items())}" if labels else ""
    for k, level in enumerate(levels):
        low, high = ends[1][0][k] - ends[0][1][k], ends[1][1][k] - ends[0][0][k]
        yield Change(
            f"P({name}={level}{condition})", float(shown[0][k]), float(shown[1][k]), float(low), float(high)
        )
