"""Which attribute sets an adaptive search may measure next, and which of them get in each other's way."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from discreet.compute.cliques.model import CliqueModel, ModelTree
from discreet.values.patience import require_time
from discreet.values.table import Array, Table, count_cells

if TYPE_CHECKING:
    from discreet.learning.searching.prices import Prices, Rates

MOST_LISTED = 2**16
"""Sets of one size that are gone through in search of candidates; where there are more, those inside cliques are."""
MOST_CANDIDATES = 2**12
"""Sets of three and more attributes that one choice looks at, those of few cells first."""
CANDIDATE_CELLS = 2**22
"""Cells of all sets that one choice looks at: 32 megabytes, of which a choice needs a handful of copies."""
COVER_CELLS = (16, 32, 64, 128, 256, 1024, 4096, 2**17)
"""Limits that sets which cover all pairs are tried with: wider ones cost more and hold more triples."""
MEAN_NOISE = 0.75
"""The mean absolute noise for each standard deviation: 0.71 for Laplace noise, 0.8 for Gaussian."""
MOST_PAIRS = 2**13
"""Pairs that a choice of many attributes looks at once there is a tree: all of 128 attributes."""
GROWN = 1.02
"""How much a tree of many attributes grows before it is looked again which sets it has room for."""
MOST_ALONE = 3
"""Groups that may find nothing before a batch is over, if a tenth of the attributes is not more."""
MANY_ATTRIBUTES = 40
"""With more, a search looks at less and ends sooner: a look costs time by the square of their number."""

Set = tuple[str, ...]
Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]


def list_pairs(sizes: Mapping[str, int], most_cells: float) -> frozenset[Set]:
    """The pairs that a choice may look at: of at most so many cells, and the smallest that fit together."""
    pairs = sorted(
        (sizes[one] * sizes[other], (one, other)) for one, other in itertools.combinations(sizes, 2)
    )
    ends = itertools.accumulate(cells for cells, _ in pairs)
    return frozenset(
        pair
        for (cells, pair), end in zip(pairs, ends, strict=True)
        if cells <= most_cells and end <= CANDIDATE_CELLS
    )


def list_links(sizes: Mapping[str, int]) -> list[Set]:
    """The pairs that can be looked at all at once, in order."""
    listed = list_pairs(sizes, math.inf)
    return [pair for pair in itertools.combinations(sizes, 2) if pair in listed]


def keep_near(pairs: frozenset[Set], tree: ModelTree, most: int = MOST_PAIRS) -> frozenset[Set]:
    """At most so many pairs, those first that few links of the model lie between: far ones depend through many others.

    Which ones follows from the model alone, so from what was measured before.
    """
    if len(pairs) <= most:
        return pairs
    place = {name: v for v, name in enumerate(tree.names)}
    near = [[u for u in range(bits.bit_length()) if bits >> u & 1] for bits in tree.neighbours]
    steps: list[dict[int, int]] = []
    for v in range(len(near)):
        found, ring, step = {v: 0}, [v], 0
        while ring:
            step += 1
            ring = sorted({u for w in ring for u in near[w] if u not in found})
            found.update(dict.fromkeys(ring, step))
        steps.append(found)

    def rank(pair: Set) -> tuple[float, int, int]:
        one, other = (place[name] for name in pair)
        return steps[one].get(other, math.inf), one, other

    return frozenset(sorted(pairs, key=rank)[:most])


def cover_pairs(sizes: Mapping[str, int]) -> list[list[Set]]:
    """Ways to hold every pair of attributes in a few sets, each with a small sum of the roots of their cells.

    If Laplace noise is shared out by the root of the cells c, a margin over p cells has about the noise √(2p)·Σ√c,
    whichever set it is read from: so the sum is all that counts. Twelve attributes of two levels need 7 sets with a sum
    of 46; their 66 pairs have 132, and one table of all twelve has 64. Sets are grown one attribute at a time by the
    pairs that it adds, up to several limits of cells and from several starts; the best of each limit is kept
    [Qardaji, Yang & Li 2014].
    """
    names = list(sizes)
    largest = math.prod(sorted(sizes.values())[-2:])
    found = [
        min(
            (
                _trim(_grow_cover([*names[start:], *names[:start]], sizes, limit), sizes)
                for start in range(len(names))
            ),
            key=lambda sets: sum_roots(sets, sizes),
        )
        for limit in sorted({max(limit, largest) for limit in COVER_CELLS})
    ]
    return list({frozenset(sets): sets for sets in found}.values())


def sum_roots(sets: Iterable[Set], sizes: Mapping[str, int]) -> float:
    """Σ√c over the cells c of these sets."""
    return math.fsum(math.sqrt(count_cells(sizes[name] for name in members)) for members in sets)


def _grow_cover(names: Sequence[str], sizes: Mapping[str, int], limit: int) -> list[Set]:
    """Sets of at most so many cells that hold every pair; ties go to who comes first in `names`."""
    left = {frozenset(pair) for pair in itertools.combinations(names, 2)}
    sets: list[Set] = []
    while left:
        open_pairs = {name: sum(name in pair for pair in left) for name in names}
        first = max(
            (pair for pair in itertools.combinations(names, 2) if frozenset(pair) in left),
            key=lambda pair: open_pairs[pair[0]] + open_pairs[pair[1]],
        )
        members = [*first]
        while True:
            cells = count_cells(sizes[name] for name in members)
            gains = {
                name: sum(frozenset((name, other)) in left for other in members) / math.log(1 + sizes[name])
                for name in names
                if name not in members and cells * sizes[name] <= limit
            }
            best = max(gains, key=lambda name: gains[name], default=None)
            if best is None or gains[best] <= 0:
                break
            members.append(best)
        sets.append(tuple(members))
        left -= {frozenset(pair) for pair in itertools.combinations(members, 2)}
    return sets


def _trim(sets: list[Set], sizes: Mapping[str, int]) -> list[Set]:
    """The sets without attributes whose pairs other sets hold, the largest first; names in their own order."""
    held = Counter(frozenset(pair) for members in sets for pair in itertools.combinations(members, 2))
    kept = []
    for members in sorted(sets, key=lambda found: -count_cells(sizes[name] for name in found)):
        rest = list(members)
        for name in members:
            pairs = [frozenset((name, other)) for other in rest if other != name]
            if all(held[pair] > 1 for pair in pairs):
                rest.remove(name)
                held.subtract(pairs)
        if len(rest) > 1:
            kept.append(tuple(name for name in sizes if name in rest))
    return prune(kept)


def list_candidates(
    model: CliqueModel,
    chosen: Sequence[Set],
    width: int,
    pairs: frozenset[Set],
    allows: Callable[[Set, int], bool],
    sizes: Mapping[str, int],
    most: int = MOST_CANDIDATES,
) -> dict[Set, Array]:
    """Sets that could be measured next, with what the model expects: these pairs, and wider sets that are allowed.

    Wider sets need not lie in a clique: a table over four attributes of two levels costs as much as two pairs and says
    how six depend, so that a model made of pairs alone is overtaken by one of wide sets wherever levels are few.
    """
    holders: dict[str, list[frozenset[str]]] = {name: [] for name in sizes}
    for members in chosen:
        for name in members:
            holders[name].append(frozenset(members))

    def is_new(members: Set) -> bool:
        return not any(found.issuperset(members) for found in holders[members[0]])

    found = {table.axes: table.values for table in model.pairs({pair for pair in pairs if is_new(pair)})}
    held = sum(values.size for values in found.values())
    wider: list[Set] = []
    for size in range(3, width + 1):
        require_time()
        listed: Iterable[Set] = itertools.combinations(sizes, size)
        if math.comb(len(sizes), size) > MOST_LISTED:
            listed = _list_inside(model, size)
        fitting = [(count_cells(sizes[name] for name in members), members) for members in listed]
        fitting = [(cells, members) for cells, members in fitting if allows(members, cells)]
        for cells, members in sorted(fitting, key=lambda one: one[0]):
            if len(wider) >= most or held + cells > CANDIDATE_CELLS:
                break
            if is_new(members):
                wider.append(members)
                held += cells
    found.update((table.axes, table.values) for table in model.margins(wider))
    return found


def _list_inside(model: CliqueModel, size: int) -> list[Set]:
    """The sets of this size inside cliques, each once, those of small cliques first."""
    inside = (
        members
        for belief in sorted(model.beliefs, key=lambda table: table.cells)
        for members in itertools.combinations(belief.axes, size)
    )
    return list(dict.fromkeys(itertools.islice(inside, MOST_LISTED)))


def prune(sets: Iterable[Set]) -> list[Set]:
    """The sets that no other contains, each once, in order."""
    unique = list({frozenset(found): found for found in sets}.values())
    return [found for found in unique if not any(set(found) < set(other) for other in unique)]


def join_groups(batch: Sequence[Set]) -> list[set[str]]:
    """The attributes that a batch links, in groups."""
    groups: list[set[str]] = []
    for members in batch:
        joined = set(members)
        for group in [found for found in groups if found & joined]:
            groups.remove(group)
            joined |= group
        groups.append(joined)
    return groups


class Candidates:
    """Sets with what a model expects of them; a batch looks at the same ones again and again, so all is in arrays."""

    def __init__(self, expected: dict[Set, Array], sizes: Mapping[str, int], rows: float) -> None:
        """Shares of so many rows, taken out of `expected` one by one: they may have eight million cells."""
        self.sets, self.sizes = list(expected), sizes
        self.tables = [expected.pop(found) * rows for found in self.sets]
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
        self._judged = 0

    def drop(self, i: int) -> None:
        """Take one out for good that the model had no room for; of the others it is to be looked again."""
        self._left[i] = False
        self._judged = 0

    def drop_oversized(self, tree: ModelTree, model_cells: int) -> None:
        """Keep what the model has room for; what is too large for it now stays so, for sets are only added.

        Many attributes are looked at again only when the tree has grown, and of their sets of three and more those
        stay that are small or share a clique: going through an elimination for each would take minutes.
        """
        whole, pairs = tree.cells, self._ways == 2
        if count_cells(tree.sizes) <= model_cells or whole <= self._judged * GROWN:
            return
        many = len(self.sizes) > MANY_ATTRIBUTES
        self._judged = whole if many else 0
        # A set can be added to every clique: that is a junction tree, too, and needs no elimination to be counted.
        surely = self._cells <= model_cells / (whole + 1)
        # Nor does a pair need the way from one to the other: at worst one of the two is added to every clique.
        surely |= pairs & (np.maximum(whole * self._fewest, whole + self._cells) <= model_cells)
        if many:  # what shares a clique already needs no more cells
            cliques = list(map(frozenset, tree.cliques))
            homes = {name: [clique for clique in cliques if name in clique] for name in self.sizes}
            for i in np.flatnonzero(self._left & ~surely & ~pairs):
                surely[i] = any(clique.issuperset(self.sets[i]) for clique in homes[self.sets[i][0]])
            self._left &= surely | pairs
        doubtful = np.flatnonzero(self._left & ~surely)
        enough = tree.bound_pairs() if pairs[doubtful].any() else {}
        for i in doubtful:
            fits = pairs[i] and enough[self.sets[i]] <= model_cells
            self._left[i] = fits or (not many and tree.bound_cells(self.sets[i]) <= model_cells)

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
        for one, other in itertools.combinations(range(len(columns)), 2):
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


def limit_alone(sizes: Mapping[str, int]) -> int:
    """How many groups may find nothing, and how many links are found among all after that."""
    return max(MOST_ALONE, len(sizes) // 10)


class Turns:
    """Whose turn it is to find a partner, where attributes are so many that not all pairs are looked at each time.

    The smallest group that the batch has linked looks for the best link to any other: in the end that is the best tree,
    as if all had been looked at, for the best link out of a group is always in it [Borůvka 1926]. A group that finds
    nothing is left out, until another finds it.
    """

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self.names, self._alone = list(sizes), set[frozenset[str]]()
        self.left = limit_alone(sizes)
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


def expect_noise(
    noisy: Sequence[Table], variances: Sequence[float], sizes: Mapping[str, int]
) -> dict[str, float]:
    """The L1 noise that is left in the margin of each attribute, all tables that have it taken together.

    A cell of the margin sums the noise of cells/levels cells of a table, so its precision is levels/(variance·cells).
    """
    precision = dict.fromkeys(sizes, 0.0)
    for found, variance in zip(noisy, variances, strict=True):
        for name in found.axes:
            spread = variance * found.cells
            precision[name] += sizes[name] / spread if spread > 0 else math.inf
    return {name: MEAN_NOISE * sizes[name] / math.sqrt(known) for name, known in precision.items()}
