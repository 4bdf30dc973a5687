"""The candidates of a batch of choices: which of them fit the model and the budget, and what each must be wrong by."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
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
MOST_ALONE = 3
"""Groups that may find nothing before a batch is over, if a tenth of the attributes is not more."""

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]


class Candidates:
    """Sets with what a model expects of them; a batch looks at the same ones again and again, so all is in arrays."""

    def __init__(self, expected: Mapping[Set, Array], sizes: Mapping[str, int], rows: float) -> None:
        self.sets, self.sizes = list(expected), sizes
        self.tables = [values * rows for values in expected.values()]
        """The counts that the model expects."""
        self._place = {name: i for i, name in enumerate(sizes)}
        # The places of each set's attributes; sets of fewer are filled up with the place after the last.
        self._members = np.full((len(self.sets), max(map(len, self.sets), default=0)), len(sizes))
        for i, found in enumerate(self.sets):
            self._members[i, : len(found)] = [self._place[name] for name in found]
        self._there = self._members < len(sizes)
        self._ways = self._there.sum(axis=1)
        self._cells = np.array([values.size for values in self.tables], dtype=np.int64)
        self._distinct, self._where = np.unique(self._cells, return_inverse=True)
        levels = np.array([*sizes.values(), 2**31])[self._members]
        self._fewest = levels.min(axis=1, initial=2**31)
        self._left = np.ones(len(self.sets), dtype=bool)

    def drop(self, i: int) -> None:
        """Take one out for good."""
        self._left[i] = False

    def drop_oversized(self, tree: ModelTree, model_cells: int) -> None:
        """Keep what the model has room for; what is too large for it now stays so, for sets are only added."""
        if count_cells(tree.sizes) <= model_cells:
            return
        whole, pairs = tree.cells, self._ways == 2
        # A set can be added to every clique: that is a junction tree, too, and needs no elimination to be counted.
        surely = self._cells <= model_cells / (whole + 1)
        # Nor does a pair need the way from one to the other: at worst one of the two is added to every clique.
        surely |= pairs & (np.maximum(whole * self._fewest, whole + self._cells) <= model_cells)
        doubtful = np.flatnonzero(self._left & ~surely)
        enough = tree.bound_pairs() if pairs[doubtful].any() else {}
        for i in doubtful:
            fits = pairs[i] and enough[self.sets[i]] <= model_cells
            self._left[i] = fits or tree.bound_cells(self.sets[i]) <= model_cells

    def find_fitting(
        self, batch: Sequence[Set], price: Callable[[float], float], room: float, near: Iterable[str] = ()
    ) -> Places:
        """Those that can be paid for and link nothing that the batch has linked: there the model is about to change.

        With attributes that are `near`, only those that have one of them.
        """
        label = np.arange(len(self.sizes) + 1)
        for group in join_groups(batch):
            places = [self._place[name] for name in group]
            label[places] = min(places)
        columns = list(label[self._members].T)
        fitting = self._left & (self._look_up(price) <= room)
        for one, other in combinations(range(len(columns)), 2):
            fitting &= (columns[one] != columns[other]) | ~self._there[:, other]
        if wanted := [self._place[name] for name in near]:
            fitting &= np.isin(self._members, wanted).any(axis=1)
        return np.flatnonzero(fitting)

    def handicap(
        self,
        fitting: Places,
        known: Mapping[str, float],
        scored: Container[str],
        prices: Prices,
        rates: Rates,
        parts: tuple[float, float],
    ) -> Floats:
        """What each must be wrong by: its noise, that in its single attributes, and what its price could do elsewhere.

        `known` is the noise in the margin of each attribute, `scored` are those whose levels stand for numbers, `parts`
        what is left of the budget and what a choice costs.
        """
        left, choice = parts
        members, ways = self._members[fitting], self._ways[fitting]
        lost = rates.forgone * prices.forgo(list(self.sizes.values()), left)
        smooth = np.array([*(name in scored for name in self.sizes), True])[members].all(axis=1) & (ways == 2)
        margins = np.zeros(len(fitting))
        for column in np.array([*known.values(), 0.0])[members].T:
            margins = margins + column
        table = self._look_up(prices.table)[fitting]
        noise = self._look_up(lambda cells: prices.noise(cells, prices.table(cells)))[fitting]
        own = rates.handicap * noise + rates.known * margins
        own = own + lost * (table + choice) / (ways * (ways - 1) // 2)
        return np.asarray(np.where(smooth, rates.smooth, 1.0) * own)

    def _look_up(self, law: Callable[[float], float]) -> Floats:
        """A number for each set that depends on its cells alone: worked out once for each number of cells."""
        return np.array([law(int(cells)) for cells in self._distinct], dtype=np.float64)[self._where]


class Turns:
    """Whose turn it is to find a partner, where attributes are so many that not all pairs are looked at each time.

    The smallest group that the batch has linked looks for the best link to any other: in the end that is the best tree,
    as if all had been looked at, for the best link out of a group is always in it [Borůvka 1926]. A group that finds
    nothing is left out, until another finds it.
    """

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self.names, self._alone = list(sizes), set[frozenset[str]]()
        self.left = max(MOST_ALONE, len(sizes) // 10)
        """How many groups may find nothing: each pays for its choice."""

    def call(self, batch: Sequence[Set]) -> frozenset[str]:
        """The group whose turn it is; nobody's if all are linked or left out."""
        linked = list(map(frozenset, join_groups(batch)))
        groups = [
            *(frozenset([name]) for name in self.names if not any(name in group for group in linked)),
            *linked,
        ]
        waiting = [group for group in groups if group not in self._alone] if len(groups) > 1 else []
        return min(waiting, key=len, default=frozenset())

    def leave_out(self, group: frozenset[str]) -> None:
        """The group found nothing."""
        self._alone.add(group)
        self.left -= 1


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
