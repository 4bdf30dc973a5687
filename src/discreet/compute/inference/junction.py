"""The junction tree of a network: its cliques filled with tables and calibrated once, without evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from discreet.compute.inference.layout import Floats, Layout, flatten, smallest_positive
from discreet.compute.triangulation import CliqueTree, join, triangulate
from discreet.values.errors import TooLarge
from discreet.values.table import MAX_CELLS, Table, count_cells
from discreet.values.wording import list_some

SAFE = 1e-150
"""Two numbers above this have a product that keeps all its digits; trees with smaller ones need logarithms."""


@dataclass(frozen=True)
class JunctionTree:
    """A tree of cliques over variables 0…V−1, which are ordered by size: the last axis of a table is its longest.

    `beliefs[i]` is P(clique i) and `separators[i]` is P(the separator towards its parent), both without evidence.
    """

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    tree: CliqueTree
    factors: tuple[tuple[tuple[int, ...], Floats], ...]
    homes: tuple[int, ...]

    @classmethod
    def build(cls, tables: Sequence[Table], max_cells: int = MAX_CELLS) -> JunctionTree:
        """Triangulate, join and assign each table to the smallest clique that holds it; refuse what would not fit."""
        found: dict[str, int] = {}
        for table in tables:
            found.update(table.sizes)
        names = tuple(sorted(found, key=lambda name: found[name]))
        index = {name: v for v, name in enumerate(names)}
        sizes = tuple(found[name] for name in names)
        factors = []
        for table in tables:
            axes = sorted(table.axes, key=index.__getitem__)
            factors.append((tuple(index[a] for a in axes), np.ascontiguousarray(table.arrange(axes).values)))
        tree = join(*triangulate([scope for scope, _ in factors], sizes, max_cells), sizes)
        cells = [count_cells(sizes[v] for v in clique) for clique in tree.cliques]
        if sum(cells) > max_cells:
            widest = tree.cliques[int(np.argmax([float(c) for c in cells]))]
            raise TooLarge(
                f"exact inference needs {sum(cells):,} cells, the largest clique {max(cells):,} over "
                f"{list_some(names[v] for v in widest)}; at most {max_cells:,} are allowed"
            )
        holders: list[list[int]] = [[] for _ in names]  # smallest clique first
        for i in sorted(range(len(cells)), key=cells.__getitem__):
            for v in tree.cliques[i]:
                holders[v].append(i)
        members = [frozenset(clique) for clique in tree.cliques]
        homes = tuple(
            next(i for i in min((holders[v] for v in scope), key=len) if members[i].issuperset(scope))
            for scope, _ in factors
        )
        return cls(names, sizes, tree, tuple(factors), homes)

    @cached_property
    def index(self) -> dict[str, int]:
        """The variable of each attribute name."""
        return {name: v for v, name in enumerate(self.names)}

    @cached_property
    def separators_of(self) -> tuple[tuple[int, ...], ...]:
        """The variables of each clique's separator."""
        return tuple(self.tree.separator(i) for i in range(len(self.tree.cliques)))

    @cached_property
    def top(self) -> tuple[int, ...]:
        """The clique nearest the root that holds each variable; all others that hold it lie below."""
        first: dict[int, int] = {}
        for i, clique in enumerate(self.tree.cliques):
            for v in clique:
                first.setdefault(v, i)
        return tuple(first[v] for v in range(len(self.sizes)))

    @cached_property
    def log_potentials(self) -> tuple[Floats, ...]:
        """The logarithm of the product of the tables in each clique, in which nothing can underflow."""
        logs = [np.zeros([self.sizes[v] for v in clique]) for clique in self.tree.cliques]
        with np.errstate(divide="ignore"):
            for (scope, values), home in zip(self.factors, self.homes, strict=True):
                logs[home] += np.log(self.spread(values, scope, home))
        return tuple(logs)

    @cached_property
    def calibrated(self) -> tuple[tuple[Floats, ...], tuple[Floats, ...]] | None:
        """Prior clique and separator marginals, or None if some product comes too close to underflow."""
        beliefs = [np.ones([self.sizes[v] for v in clique]) for clique in self.tree.cliques]
        separators: list[Floats] = [np.ones(())] * len(beliefs)
        safe = True
        for (scope, values), home in zip(self.factors, self.homes, strict=True):
            safe &= _multiply(beliefs[home], self.spread(values, scope, home))
        for i in range(len(beliefs) - 1, 0, -1):
            above = self.tree.parent[i]
            separators[i] = self.project(beliefs[i], i)
            safe &= _multiply(beliefs[above], self.spread(separators[i], self.separators_of[i], above))
        for i in range(1, len(beliefs)):
            mass = self.project(beliefs[self.tree.parent[i]], self.tree.parent[i], self.separators_of[i])
            ratio = np.divide(mass, separators[i], out=np.zeros_like(mass), where=separators[i] > 0)
            safe &= _multiply(beliefs[i], self.spread(ratio, self.separators_of[i], i))
            separators[i] = mass
        return (tuple(beliefs), tuple(separators)) if safe else None

    @cached_property
    def least(self) -> tuple[float, ...]:
        """The smallest positive cell of each calibrated clique."""
        assert self.calibrated is not None
        return tuple(smallest_positive(belief) for belief in self.calibrated[0])

    @cached_property
    def layout(self) -> Layout | None:
        """The flat form for the compiled path; None if the tree must be answered with logarithms."""
        if self.calibrated is None:
            return None
        beliefs, separators = self.calibrated
        return flatten(self.tree, self.sizes, self.top, beliefs, separators, self.least)

    @cached_property
    def prior(self) -> Floats:
        """The prior marginals of all variables, one after the other."""
        assert self.calibrated is not None
        beliefs, _ = self.calibrated
        smallest: dict[int, int] = {}
        for i, clique in enumerate(self.tree.cliques):
            for v in clique:
                if v not in smallest or beliefs[i].size < beliefs[smallest[v]].size:
                    smallest[v] = i
        return np.concatenate(
            [self.project(beliefs[smallest[v]], smallest[v], (v,)) for v in range(len(self.sizes))]
        )

    def multiply_out(self, max_cells: int) -> Floats | None:
        """The joint distribution as a flat array, first variable slowest; None if it is larger or might underflow."""
        if count_cells(self.sizes) > max_cells:
            return None
        joint, safe = np.ones(self.sizes), True
        for scope, values in self.factors:
            shape = [size if v in scope else 1 for v, size in enumerate(self.sizes)]
            safe &= _multiply(joint, values.reshape(shape))
        return joint.ravel() if safe else None

    def spread(self, values: Floats, scope: Sequence[int], clique: int) -> Floats:
        """A table over `scope`, reshaped to broadcast against a clique."""
        shape = iter(values.shape)
        return values.reshape([next(shape) if v in scope else 1 for v in self.tree.cliques[clique]])

    def project(self, belief: Floats, clique: int, onto: Sequence[int] | None = None) -> Floats:
        """Sum a clique's table down to its separator, or to the given variables."""
        kept = self.separators_of[clique] if onto is None else onto
        drop = tuple(a for a, v in enumerate(self.tree.cliques[clique]) if v not in kept)
        result: Floats = belief.sum(axis=drop)
        return result


def _multiply(belief: Floats, other: Floats) -> bool:
    """Multiply in place; whether no positive number in either was small enough to risk an underflow."""
    least = min(smallest_positive(values) for values in (belief, other))
    belief *= other
    return least > SAFE
