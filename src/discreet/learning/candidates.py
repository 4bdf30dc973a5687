"""The candidates of a batch of choices: which of them fit the model and the budget, and what each must be wrong by."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
import numpy.typing as npt

from discreet.compute.cliques.model import ModelTree
from discreet.learning.attribute_sets import Set, join_groups
from discreet.learning.search_prices import Prices, Rates
from discreet.values.measurement import Measurement
from discreet.values.table import Array, count_cells

MEAN_NOISE = 0.75
"""The mean absolute noise for each standard deviation: 0.71 for Laplace noise, 0.8 for Gaussian."""

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]


@dataclass(slots=True, eq=False)
class Candidates:
    """Sets with what a model expects of them; a batch looks at the same ones again and again, so all is in arrays."""

    expected: dict[Set, Array]
    sizes: Mapping[str, int]
    rows: float
    sets: list[Set] = field(init=False)
    tables: list[Array] = field(init=False)
    """The counts that the model expects."""
    cells: Places = field(init=False)
    members: Places = field(init=False)
    """The places of each set's attributes; sets of fewer are filled up with the place after the last."""
    left: npt.NDArray[np.bool_] = field(init=False)
    """Which ones are still in the running."""

    def __post_init__(self) -> None:
        self.sets = list(self.expected)
        self.tables = [values * self.rows for values in self.expected.values()]
        place = {name: i for i, name in enumerate(self.sizes)}
        self.cells = np.array([values.size for values in self.expected.values()], dtype=np.int64)
        widest = max(map(len, self.sets), default=0)
        self.members = np.full((len(self.sets), widest), len(place), dtype=np.int64)
        for i, found in enumerate(self.sets):
            self.members[i, : len(found)] = [place[name] for name in found]
        self.left = np.ones(len(self.sets), dtype=bool)

    def drop(self, i: int) -> None:
        """Take one out for good."""
        self.left[i] = False

    def drop_oversized(self, tree: ModelTree, model_cells: int) -> None:
        """Keep what the model has room for; what is too large for it now stays so, for sets are only added."""
        if count_cells(tree.sizes) <= model_cells:
            return
        whole = tree.cells
        # A set can be added to every clique: that is a junction tree, too, and needs no elimination to be counted.
        surely = self.cells <= model_cells / (whole + 1)
        # Nor does a pair need the way from one to the other: at worst one of the two is added to every clique.
        levels = np.array([*tree.sizes, 1])[self.members]
        pairs = (self.members < len(tree.sizes)).sum(axis=1) == 2
        fewest = np.where(self.members < len(tree.sizes), levels, levels.max(initial=1)).min(
            axis=1, initial=2**31
        )
        surely |= pairs & (np.maximum(whole * fewest, whole + self.cells) <= model_cells)
        doubtful = np.flatnonzero(self.left & ~surely)
        if not doubtful.size:
            return
        enough = tree.bound_pairs() if pairs[doubtful].any() else {}
        for i in doubtful:
            found = self.sets[i]
            fits = (pairs[i] and enough[found] <= model_cells) or tree.bound_cells(found) <= model_cells
            self.left[i] = fits

    def find_fitting(self, batch: Sequence[Set], price: Callable[[float], float], room: float) -> Places:
        """Those that can be paid for and link nothing that the batch has linked: there the model is about to change."""
        label = np.arange(len(self.sizes) + 1)
        place = {name: i for i, name in enumerate(self.sizes)}
        for group in join_groups(batch):
            places = [place[name] for name in group]
            label[places] = min(places)
        groups = label[self.members]
        groups = np.where(self.members < len(place), groups, -1 - np.arange(groups.shape[1]))
        apart = np.ones(len(self.sets), dtype=bool)
        for one, other in combinations(range(groups.shape[1]), 2):
            apart &= groups[:, one] != groups[:, other]
        return np.flatnonzero(self.left & apart & (self.look_up(price) <= room))

    def look_up(self, law: Callable[[float], float]) -> Floats:
        """A number for each set that depends on its cells alone: worked out once for each number of cells."""
        distinct, where = np.unique(self.cells, return_inverse=True)
        return np.array([law(int(cells)) for cells in distinct], dtype=np.float64)[where]

    def handicap(
        self,
        prices: Prices,
        rates: Rates,
        known: Mapping[str, float],
        left: float,
        part: float,
        scored: frozenset[str],
    ) -> Floats:
        """What each must be wrong by: its noise, that in its single attributes, and what its price could do elsewhere.

        `known` is the noise in the margin of each attribute, `left` and `part` are what is left of the budget and what
        a choice costs, `scored` the attributes whose levels stand for numbers.
        """
        lost = rates.forgone * prices.forgo(list(self.sizes.values()), left)
        ways = (self.members < len(self.sizes)).sum(axis=1)
        smooth = np.array([*(name in scored for name in self.sizes), False])[self.members].all(
            axis=1, where=self.members < len(self.sizes)
        )
        margins = np.zeros(len(self.sets))
        for column in np.array([*known.values(), 0.0])[self.members].T:
            margins = margins + column
        table = self.look_up(prices.table)
        noise = self.look_up(lambda cells: prices.noise(cells, prices.table(cells)))
        pairs = np.array([math.comb(way, 2) for way in range(self.members.shape[1] + 1)])[ways]
        own = rates.handicap * noise + rates.known * margins + lost * (table + part) / pairs
        return np.asarray(np.where(smooth & (ways == 2), rates.smooth, 1.0) * own)


def expect_noise(measured: Sequence[Measurement], sizes: Mapping[str, int]) -> dict[str, float]:
    """The L1 noise that is left in the margin of each attribute, all tables that have it taken together.

    A cell of the margin sums the noise of cells/levels cells of a table, so its precision is levels/(variance·cells).
    """
    precision = dict.fromkeys(sizes, 0.0)
    for found in measured:
        for name in found.axes:
            spread = found.law.variance * found.cells
            precision[name] += sizes[name] / spread if spread > 0 else math.inf
    return {name: MEAN_NOISE * sizes[name] / math.sqrt(known) for name, known in precision.items()}
