"""Which attribute sets an adaptive search may measure next, and which of them get in each other's way."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence

from discreet.compute.clique_model import CliqueModel
from discreet.values.table import Array, count_cells

MOST_CANDIDATES = 2**11
"""Sets that one choice looks at, if they are not all pairs."""
CANDIDATE_CELLS = 2**23
"""Cells of all sets that one choice looks at: 64 megabytes, of which a choice needs a handful of copies."""

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


def list_candidates(
    model: CliqueModel,
    chosen: Sequence[Set],
    width: int,
    pairs: frozenset[Set],
    most_cells: float,
    sizes: dict[str, int],
) -> dict[Set, Array]:
    """Sets that could be measured next, with what the model expects: these pairs, and wider ones inside cliques."""
    holders: dict[str, list[frozenset[str]]] = {name: [] for name in sizes}
    for members in chosen:
        for name in members:
            holders[name].append(frozenset(members))

    def is_new(members: Set) -> bool:
        return not any(found.issuperset(members) for found in holders[members[0]])

    wanted = frozenset(pair for pair in pairs if is_new(pair))
    found = {table.axes: table.values for table in model.pairs(wanted)}
    held = sum(values.size for values in found.values())
    for size in range(3, width + 1):
        for belief in sorted(model.beliefs, key=lambda table: table.cells):
            for members in itertools.combinations(belief.axes, size):
                cells = count_cells(sizes[name] for name in members)
                if cells > most_cells or members in found or not is_new(members):
                    continue
                held += cells
                if len(found) >= MOST_CANDIDATES or held > CANDIDATE_CELLS:
                    return found
                found[members] = belief.project(members).values
    return found


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
