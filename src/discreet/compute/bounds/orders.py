"""Orders of elimination: greedy in the cells of each product, from the leaves up, from the roots down, or freely."""

from __future__ import annotations

import random
from collections.abc import Iterable
from enum import StrEnum
from math import log2

from discreet.compute.bounds.query import Problem
from discreet.values.table import count_cells


class Direction(StrEnum):
    """Which variables may go next."""

    UP = "children before parents"
    DOWN = "parents before children"
    FREE = "any"


def list_orders(problem: Problem, tries: int, seed: int = 0) -> list[tuple[str, ...]]:
    """Up to `tries` different orders, the directions taking turns; later ones are drawn with some noise."""
    rng = random.Random(seed)
    found: dict[tuple[str, ...], None] = {}
    directions = list(Direction)
    for attempt in range(tries):
        noise = 0.0 if attempt < len(directions) else 1.5
        found.setdefault(_order(problem, directions[attempt % len(directions)], noise, rng))
    return list(found)


def _order(problem: Problem, direction: Direction, noise: float, rng: random.Random) -> tuple[str, ...]:
    families = {found.name: frozenset(found.scope) for found in problem.locals if not found.observed}
    parents = {found.name: found.parents for found in problem.locals if not found.observed}
    pool = [frozenset(found.parents) for found in problem.locals if found.observed]
    pool.append(frozenset(problem.targets))
    left = set(families)
    waiting = {name: set[str]() for name in left}
    for name, above in parents.items():
        for parent in above:
            if direction is Direction.UP:
                waiting[parent].add(name)
            elif direction is Direction.DOWN:
                waiting[name].add(parent)
    order: list[str] = []
    while left:
        best: tuple[float, str, frozenset[str]] | None = None
        for name in sorted(name for name in left if not waiting[name]):
            touched = [scope for scope in (*pool, *families.values()) if name in scope]
            union = frozenset[str]().union(*touched)
            price = log2(count_cells(problem.sizes[member] for member in union)) + noise * rng.random()
            if best is None or price < best[0]:
                best = price, name, union
        assert best is not None
        _, name, union = best
        # With children before parents only the node's own rows mention it; taken apart, the children's do too.
        families = {key: scope for key, scope in families.items() if name not in scope}
        pool = [*_without(pool, name), union - {name}]
        order.append(name)
        left.discard(name)
        for others in waiting.values():
            others.discard(name)
    return tuple(order)


def _without(scopes: Iterable[frozenset[str]], name: str) -> list[frozenset[str]]:
    return [scope for scope in scopes if name not in scope]
