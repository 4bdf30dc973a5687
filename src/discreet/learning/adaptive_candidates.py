"""Which attribute sets an adaptive search may measure next, and which of them get in each other's way."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from discreet.algorithms.clique_model import CliqueModel
from discreet.vocabulary.table import Array, count_cells

MOST_CANDIDATES = 2**11
"""Sets that one choice looks at."""

Set = tuple[str, ...]


def list_candidates(
    model: CliqueModel, chosen: Sequence[Set], width: int, most_cells: float, sizes: dict[str, int]
) -> dict[Set, Array]:
    """Sets that could be measured next, with what the model expects: all pairs, and wider ones inside cliques."""
    holders: dict[str, list[frozenset[str]]] = {name: [] for name in sizes}
    for members in chosen:
        for name in members:
            holders[name].append(frozenset(members))

    def is_new(members: Set) -> bool:
        return not any(found.issuperset(members) for found in holders[members[0]])

    found = {table.axes: table.values for table in model.pairs() if is_new(table.axes)}
    for size in range(3, width + 1):
        for belief in sorted(model.beliefs, key=lambda table: table.cells):
            for members in itertools.combinations(belief.axes, size):
                if len(found) >= MOST_CANDIDATES:
                    return found
                small = count_cells(sizes[name] for name in members) <= most_cells
                if small and members not in found and is_new(members):
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
