"""The junction tree of a network: its cliques filled with tables, calibrated without evidence, and flattened.

The flat form, two arrays, is what the compiled path reads and nothing else does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum, auto
from functools import cached_property
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from discreet.compute.triangulation import CliqueTree, join, triangulate
from discreet.values.errors import TooLarge
from discreet.values.table import MAX_CELLS, Table, count_cells
from discreet.values.text import list_some, show_count

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

NO_WEIGHTS: Floats = np.empty(0)

STRIP = 2048
"""Neighbouring axes are merged into strips of at most this many cells, so that one stays in the first-level cache."""

SAFE = 1e-150
"""Two numbers above this have a product that keeps all its digits; trees with smaller ones need logarithms."""


class Section(IntEnum):
    """The integer arrays of a program, in order; `program[k]` and `program[k + 1]` bound section k."""

    SCALARS = 0
    PARENT = auto()  # per clique
    AXIS_START = auto()  # per clique, one more at the end
    CLIQUE_AT = auto()  # per clique: offset of its prior marginal in `data`
    SEPARATOR_SIZE = auto()
    SEPARATOR_PRIOR = auto()  # offset of the separator's prior marginal in `data`
    SEPARATOR_AT = auto()  # offset of the separator in each of the two message buffers
    CHILD_START = auto()
    CHILDREN = auto()
    LINK = auto()  # per clique: where its separator's strides along its parent's axes start in LINK_STRIDES
    LINK_STRIDES = auto()
    TOP = auto()  # per variable: the clique nearest the root that holds it
    LEVEL_START = auto()  # per variable: offset of its marginal
    AXIS_VARIABLE = auto()  # per axis of each clique
    AXIS_SIZE = auto()
    AXIS_STRIDE = auto()
    AXIS_UP = auto()  # stride in the clique's own separator, 0 if absent
    AXIS_MARGINAL = auto()  # offset of the marginal that is read off this clique, or -1
    READOFF_START = auto()  # per clique, one more at the end
    READOFF = auto()  # marginals read off a separator: (offset, stride, size) triples


class Scalar(IntEnum):
    """The single numbers of a program."""

    MESSAGES = 0  # cells of all separators
    AXES = auto()  # the most axes of a clique
    POINTERS = auto()  # the most tables that one sweep touches
    STRIP_CELLS = auto()
    LEAST = auto()  # offset in `data` of the smallest positive cell of each clique


@dataclass(frozen=True, slots=True)
class FlatTree:
    """The flat form of a calibrated tree."""

    program: Ints
    data: Floats


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
            widest = max(cells)
            raise TooLarge(
                f"exact inference needs {show_count(sum(cells))} cells, the largest clique {show_count(widest)} over "
                f"{list_some(names[v] for v in tree.cliques[cells.index(widest)])}; at most {max_cells:,} are allowed"
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
    def cells(self) -> int:
        """The cells of all cliques."""
        return sum(count_cells(self.sizes[v] for v in clique) for clique in self.tree.cliques)

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
    def flat(self) -> FlatTree | None:
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


def flatten(
    tree: CliqueTree,
    sizes: Sequence[int],
    top: Sequence[int],
    beliefs: Sequence[Floats],
    separators: Sequence[Floats],
    least: Sequence[float],
) -> FlatTree:
    """Write program and data of a tree whose cliques (`beliefs`) and separators hold prior marginals.

    `least` is the smallest positive cell of each clique.
    """
    cliques = len(tree.cliques)
    strides = [_strides(clique, sizes) for clique in tree.cliques]
    inside = [tree.separator(i) for i in range(cliques)]
    separator_strides = [_strides(found, sizes) for found in inside]
    children: list[list[int]] = [[] for _ in range(cliques)]
    for i in range(1, cliques):
        children[tree.parent[i]].append(i)
    level_start = _starts(sizes)
    in_clique, in_separator = _choose_homes(tree, inside, sizes)

    link_strides: list[int] = []
    link = [0] * cliques
    for i in range(1, cliques):
        link[i] = len(link_strides)
        link_strides += [separator_strides[i].get(v, 0) for v in tree.cliques[tree.parent[i]]]
    readoff = [
        [(level_start[v], separator_strides[i][v], sizes[v]) for v in inside[i] if in_separator.get(v) == i]
        for i in range(cliques)
    ]
    separator_cells = [table.size for table in separators]
    clique_cells = [table.size for table in beliefs]
    widest = max(len(clique) for clique in tree.cliques)
    sections: dict[Section, Sequence[int]] = {
        Section.SCALARS: (
            sum(separator_cells),
            widest,
            2 * widest + 2 + 2 * max(len(found) for found in children),
            max(min(STRIP, max(clique_cells)), *sizes),
            sum(clique_cells) + sum(separator_cells),
        ),
        Section.PARENT: tree.parent,
        Section.AXIS_START: _starts(len(clique) for clique in tree.cliques),
        Section.CLIQUE_AT: _starts(clique_cells)[:-1],
        Section.SEPARATOR_SIZE: separator_cells,
        Section.SEPARATOR_PRIOR: [sum(clique_cells) + at for at in _starts(separator_cells)[:-1]],
        Section.SEPARATOR_AT: _starts(separator_cells)[:-1],
        Section.CHILD_START: _starts(len(found) for found in children),
        Section.CHILDREN: [child for found in children for child in found],
        Section.LINK: link,
        Section.LINK_STRIDES: link_strides,
        Section.TOP: top,
        Section.LEVEL_START: level_start,
        Section.AXIS_VARIABLE: [v for clique in tree.cliques for v in clique],
        Section.AXIS_SIZE: [sizes[v] for clique in tree.cliques for v in clique],
        Section.AXIS_STRIDE: [strides[i][v] for i, clique in enumerate(tree.cliques) for v in clique],
        Section.AXIS_UP: [
            separator_strides[i].get(v, 0) for i, clique in enumerate(tree.cliques) for v in clique
        ],
        Section.AXIS_MARGINAL: [
            level_start[v] if in_clique.get(v) == i else -1
            for i, clique in enumerate(tree.cliques)
            for v in clique
        ],
        Section.READOFF_START: _starts(3 * len(found) for found in readoff),
        Section.READOFF: [number for found in readoff for triple in found for number in triple],
    }
    header = len(Section) + 1
    bounds = [header + at for at in _starts(len(sections[section]) for section in Section)]
    program = np.array(bounds + [n for section in Section for n in sections[section]], dtype=np.int64)
    data = np.concatenate([*(np.ravel(table) for table in (*beliefs, *separators)), least])
    return FlatTree(program, data)


def smallest_positive(table: Floats) -> float:
    """The smallest positive cell, 1 if there is none."""
    return float(np.min(table, where=table > 0, initial=1.0))


def _starts(lengths: Iterable[int]) -> list[int]:
    return [0, *accumulate(lengths)]


def _strides(variables: Sequence[int], sizes: Sequence[int]) -> dict[int, int]:
    """The stride of each variable in a C-ordered table."""
    found: dict[int, int] = {}
    stride = 1
    for v in reversed(variables):
        found[v] = stride
        stride *= sizes[v]
    return found


def _choose_homes(
    tree: CliqueTree, inside: Sequence[Sequence[int]], sizes: Sequence[int]
) -> tuple[Mapping[int, int], Mapping[int, int]]:
    """Where each variable's marginal is read off: the smallest separator that holds it, else its only clique."""
    in_separator: dict[int, tuple[int, int]] = {}
    in_clique: dict[int, int] = {}
    for i, clique in enumerate(tree.cliques):
        cells = count_cells(sizes[v] for v in inside[i])
        for v in inside[i]:
            if v not in in_separator or cells < in_separator[v][0]:
                in_separator[v] = cells, i
        for v in clique:
            in_clique.setdefault(v, i)
    return (
        {v: i for v, i in in_clique.items() if v not in in_separator},
        {v: i for v, (_, i) in in_separator.items()},
    )
