"""Which attribute sets an adaptive search may measure next, and which of them get in each other's way."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from discreet.compute.cliques.model import CliqueModel
from discreet.values.patience import require_time
from discreet.values.table import Array, count_cells

MOST_LISTED = 2**16
"""Sets of one size that are gone through in search of candidates; where there are more, those inside cliques are."""
MOST_CANDIDATES = 2**12
"""Sets of three and more attributes that one choice looks at, those of few cells first."""
CANDIDATE_CELLS = 2**23
"""Cells of all sets that one choice looks at: 64 megabytes, of which a choice needs a handful of copies."""
COVER_CELLS = (16, 32, 64, 128, 256, 1024, 4096, 2**17)
"""Limits that sets which cover all pairs are tried with: wider ones cost more and hold more triples."""

Set = tuple[str, ...]


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
