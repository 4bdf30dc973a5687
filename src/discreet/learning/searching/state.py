"""What an adaptive search has found so far, and its four steps: measure, choose, fit, and the network in the end."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.compute.cliques.blending import blend
from discreet.compute.cliques.entropy import estimate_margins, fit_margins
from discreet.compute.cliques.model import REACH_CELLS, CliqueModel
from discreet.compute.cliques.thinning import Evidence, thin
from discreet.compute.grouping import FEWEST_GROUPS, GROUP_ROWS, Grouping
from discreet.compute.smoothing import MANY_LEVELS, count_ordered
from discreet.learning.learner import noise_for, predict_noise
from discreet.learning.searching.attribute_sets import (
    CANDIDATE_CELLS,
    MANY_ATTRIBUTES,
    Candidates,
    Places,
    Set,
    expect_noise,
)
from discreet.learning.searching.prices import Prices, Rates, price_likeness
from discreet.networks.network import Network
from discreet.networks.provenance import Provenance
from discreet.values.measurement import Measurement
from discreet.values.table import Array, Table, count_cells

if TYPE_CHECKING:
    from discreet.core.queries import Keeper
    from discreet.values.budget import Finite


AFFORDED = 0.25
"""The most that a pair may cost that keeps its levels, as a part of what is left."""


@dataclass(slots=True, eq=False)
class Search:
    """What the search has found so far; all of it is public."""

    airlock: Keeper
    whole: Finite
    request: str | None
    rates: Rates
    prices: Prices
    most_cells: float
    """The most cells of a set that is chosen."""
    rows: float = 1.0
    left: Fraction = Fraction(1)
    measured: list[Measurement] = field(default_factory=list)
    chosen: list[Set] = field(default_factory=list)
    choices: list[int] = field(default_factory=list)
    batches: list[list[Set]] = field(default_factory=list)
    grouping: Grouping = field(init=False)
    sizes: dict[str, int] = field(init=False)
    """The number of levels, or of groups of levels, of each attribute as it is searched."""
    scored: frozenset[str] = field(init=False)
    """Attributes with many levels that stand for numbers."""

    def __post_init__(self) -> None:
        self.group(Grouping.none(self.airlock.schema))

    def group(self, grouping: Grouping) -> None:
        """Search these groups from now on."""
        self.grouping, self.sizes = grouping, grouping.sizes
        self.scored = frozenset(grouping.score(MANY_LEVELS))

    def count_cells(self, members: Iterable[str]) -> int:
        """The cells of a set."""
        levels = self.grouping.encoding.view.sizes
        return count_cells(levels[name] for name in members)

    def find_groups(self, kept: frozenset[str]) -> Grouping:
        """Levels put together that noise would drown in a pair, by the margins so far; none of what is kept."""
        most = max(self.rows / self.prices.noise(1, 1 / len(self.sizes)) / GROUP_ROWS, FEWEST_GROUPS)
        if len(self.sizes) > MANY_ATTRIBUTES or max(self.sizes.values()) <= most:
            return self.grouping
        noisy, variances = self.read_measured()
        margins, _ = estimate_margins(noisy, variances, self.grouping.count_ordered(), self.rows)
        return Grouping.of(self.grouping.schema, margins, most, kept)

    def find_alike(self, kept: frozenset[str], unit: float) -> frozenset[str]:
        """Attributes that are to keep their levels besides: those that say nearly the same as another one.

        Two moments of one call, or a sum and the same sum with tax, follow each other level by level, and groups lose
        that. One pair after the other is looked for of which one would be put in groups, as long as one is nearly as
        far from independence as it can be: L1 = 2·(1 − Σp²), if the one decides the other, whose shares are p. A pair
        that would cost too much at this unit is none of them: it could not be measured level by level.
        """
        most = min(self.most_cells, replace(self.prices, unit=unit).reach(AFFORDED * float(self.left)))
        wide = set(self.find_groups(kept).groups)
        large = [name for name, size in self.sizes.items() if size > FEWEST_GROUPS]
        part = price_likeness(self.prices, self.rows, self.rates)
        if not wide or part > self.rates.likeness:
            return kept
        fitting = {
            pair
            for pair in itertools.combinations(large, 2)
            if wide.intersection(pair) and self.count_cells(pair) <= most
        }
        expected: dict[Set, Array] = {}
        farthest: dict[Set, float] = {}
        cells = 0
        for table in self.fit().pairs(fitting):
            even = max(float((table.values.sum(axis=axis) ** 2).sum()) for axis in (0, 1))
            cells += table.cells
            if cells <= CANDIDATE_CELLS and 1 - even >= self.rates.uneven:
                expected[table.axes] = self.rows * table.values
                farthest[table.axes] = self.rates.alike * 2 * (1 - even) * self.rows
        for _ in range(int(self.rates.likeness / part)):
            left = [pair for pair in expected if not kept.issuperset(wide.intersection(pair))]
            if not left:
                break
            handicaps = [farthest[pair] for pair in left]
            index = self._find_worst({pair: expected[pair] for pair in left}, handicaps, part)
            if index is None:
                break
            kept |= frozenset(left[index])
        return kept

    def read_measured(self) -> tuple[list[Table], list[float]]:
        """All noisy tables with the variances of their cells, in what is searched."""
        pairs = [self.grouping.merge_noisy(found.noisy, found.law.variance) for found in self.measured]
        return [table for table, _ in pairs], [variance for _, variance in pairs]

    def allows(self, members: Set, cells: int) -> bool:
        """Whether a set of three and more attributes is worth a look: its noise is small, or it spares many pairs."""
        if cells > self.most_cells:
            return False
        if cells <= self.prices.widest(self.rates.wide * self.rows):
            return True
        if cells > self.prices.widest(self.rates.noisy * self.rows):
            return False
        pairs = itertools.combinations((self.sizes[name] for name in members), 2)
        apart = sum(self.prices.weigh(one * other) for one, other in pairs)
        return self.prices.weigh(cells) <= self.rates.saving * apart

    def measure(self, sets: Sequence[Set], part: Fraction) -> None:
        """Measure these sets together for a part of the budget."""
        shares = [
            Fraction(max(1, round(1000 * self.prices.weigh(self.count_cells(found)))), 1000) for found in sets
        ]
        self.measured += self.airlock.measure(
            sets,
            spend=self.whole * part,
            noise=noise_for(self.whole),
            shares=shares,
            request=self.request and f"{self.request}/tables-{len(self.measured)}",
        )
        self.left -= part

    def choose(self, candidates: Candidates, fitting: Places, part: Fraction) -> int | None:
        """Which of these candidates is most wrong under the model beyond its handicap; None if nothing is.

        Nothing is one of the candidates: the empty set, whose table is the number of rows and never wrong by much.
        """
        known = expect_noise(*self.read_measured(), self.sizes)
        parts = float(self.left), float(part)
        handicaps = candidates.handicap(fitting, known, self.scored, self.prices, self.rates, parts)
        expected = {candidates.sets[i]: candidates.tables[i] for i in fitting}
        index = self._find_worst(expected, handicaps.tolist(), part)
        return None if index is None else int(fitting[index])

    def _find_worst(
        self, expected: Mapping[Set, Array], handicaps: Sequence[float], part: Fraction
    ) -> int | None:
        """Which of these sets is furthest from what is expected of it, beyond its handicap; None if none is."""
        from discreet.core.scores import ModelError

        index = self.airlock.select(
            [(), *expected],
            ModelError((np.array(self.rows), *expected.values()), handicaps=(0.0, *handicaps)),
            spend=self.whole * part,
            selection="exponential" if self.prices.gaussian else "permute-and-flip",
            request=self.request and f"{self.request}/choice-{len(self.choices)}",
        )
        self.choices.append(index)
        self.left -= part
        return index - 1 if index else None

    def is_worth(self, pairs: Sequence[Set], typical: float) -> bool:
        """Whether the best tree of pairs depends by more than its noise would cost, asked for a part of the budget."""
        from discreet.core.scores import MOST_ROWS, TreeGain

        noise = self.prices.noise(1, 1 / len(self.sizes))
        own = (self.rates.linked * noise * math.sqrt(self.count_cells(pair) * typical) for pair in pairs)
        threshold, *handicaps = (min(cost, MOST_ROWS) for cost in (self.rates.worth * noise, *own))
        answer = self.airlock.select(
            pairs,
            TreeGain(tuple(handicaps), len(self.sizes) - 1, threshold),
            spend=self.whole * self.rates.asking,
            selection="permute-and-flip",
            request=self.request and f"{self.request}/worth",
        )
        self.choices.append(answer)
        self.left -= self.rates.asking
        return answer == 0

    def fit(self, *, thinned: bool = False) -> CliqueModel:
        """The model of everything that was measured so far, on request without the links that chance explains.

        A better number of rows is taken from it, too.
        """
        noisy, variances = self.read_measured()
        ordered, scores = self.grouping.count_ordered(), self.grouping.score()
        public = float(self.airlock.rows) if self.airlock.unit.fixes_rows else None
        margins, self.rows = estimate_margins(noisy, variances, ordered, public, scores)
        if thinned:
            evidence = Evidence.of(noisy, variances, self.rows)
            hidden = evidence.hides(chosen=bool(self.choices))
            # Models are compared in all pairs, and none of these may be out of reach, whichever links they have.
            if hidden and not self.choices and count_cells(self.sizes.values()) <= REACH_CELLS:
                return blend(
                    self.sizes,
                    noisy,
                    variances,
                    self.rows,
                    lambda tables: estimate_margins(tables, variances, ordered, self.rows, scores)[0],
                )
        # Sets were held against `model_cells` before they were paid for; nothing may be refused after that.
        model = fit_margins(self.sizes, margins)
        return thin(model, margins, evidence) if thinned and not hidden else model

    def make_network(self, model: CliqueModel) -> Network:
        """The network of a model, with the levels of what was searched in groups."""
        encoding = self.grouping.encoding
        margins = {name: self._estimate_single(name) for name in self.grouping.groups}
        schema, dag, cpts = self.grouping.complete(*model.network(), margins)
        noise = {
            name: min(
                predict_noise(found, self.rows)
                for found in self.measured
                if name in found.axes or encoding.source(name) in found.axes
            )
            for name in schema.names
        }
        details: dict[str, Any] = {
            "sets": [list(found) for found in self.chosen],
            "batches": [[list(found) for found in batch] for batch in self.batches],
            "choices": self.choices,
            "model cells": model.tree.cells,
        }
        if encoding.derived:
            details["auxiliary"] = [found.name for found in encoding.derived]
            details["groups"] = {found.source: list(found.codes) for found in encoding.derived}
        provenance = Provenance(
            "adaptive", self.airlock.unit, self.whole, tuple(self.measured), noise, details
        )
        return Network(schema, dag, cpts, provenance=provenance)

    def _estimate_single(self, name: str) -> Array:
        """The margin of an attribute by the tables of it alone."""
        own = [found for found in self.measured if found.axes == (name,)]
        noisy, variances = [found.noisy for found in own], [found.law.variance for found in own]
        (margin,), _ = estimate_margins(noisy, variances, count_ordered(self.grouping.schema), self.rows)
        return margin.values
