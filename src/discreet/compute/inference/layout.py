"""A junction tree flattened into two arrays, which the compiled path reads and nothing else does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum, auto

import numpy as np
import numpy.typing as npt

from discreet.compute.triangulation import CliqueTree

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

NO_WEIGHTS: Floats = np.empty(0)
EVERYWHERE: Flags = np.empty(0, dtype=np.bool_)
"""The flags that restrict an answer to no part of the tree."""

ROW = 2048
"""Neighbouring axes are merged into rows of at most this many cells, so that a row stays in the first-level cache."""


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
    ROW_CELLS = auto()
    LEAST = auto()  # offset in `data` of the smallest positive cell of each clique


@dataclass(frozen=True, slots=True)
class Layout:
    """The flat form of a calibrated tree."""

    program: Ints
    data: Floats
    readers: tuple[int, ...]  # per variable: the clique during whose visit its marginal is read off


def flatten(
    tree: CliqueTree,
    sizes: Sequence[int],
    top: Sequence[int],
    beliefs: Sequence[Floats],
    separators: Sequence[Floats],
    least: Sequence[float],
) -> Layout:
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
    level_start = np.concatenate([[0], np.cumsum(sizes)])
    in_clique, in_separator = _choose_homes(tree, inside, sizes)

    link_strides: list[int] = []
    link = [0] * cliques
    for i in range(1, cliques):
        link[i] = len(link_strides)
        link_strides += [separator_strides[i].get(v, 0) for v in tree.cliques[tree.parent[i]]]
    readoff = [
        [
            (int(level_start[v]), separator_strides[i][v], sizes[v])
            for v in inside[i]
            if in_separator.get(v) == i
        ]
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
            max(min(ROW, max(clique_cells)), *sizes),
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
        Section.LEVEL_START: [int(at) for at in level_start],
        Section.AXIS_VARIABLE: [v for clique in tree.cliques for v in clique],
        Section.AXIS_SIZE: [sizes[v] for clique in tree.cliques for v in clique],
        Section.AXIS_STRIDE: [strides[i][v] for i, clique in enumerate(tree.cliques) for v in clique],
        Section.AXIS_UP: [
            separator_strides[i].get(v, 0) for i, clique in enumerate(tree.cliques) for v in clique
        ],
        Section.AXIS_MARGINAL: [
            int(level_start[v]) if in_clique.get(v) == i else -1
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
    homes = {**in_clique, **in_separator}
    return Layout(program, data, tuple(homes[v] for v in range(len(sizes))))


def smallest_positive(table: Floats) -> float:
    """The smallest positive cell, 1 if there is none."""
    return float(np.min(table, where=table > 0, initial=1.0))


def _starts(lengths: object) -> list[int]:
    return [0, *(int(at) for at in np.cumsum(list(lengths), dtype=np.int64))]  # type: ignore[call-overload]


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
        cells = int(np.prod([sizes[v] for v in inside[i]], dtype=np.float64)) if inside[i] else 1
        for v in inside[i]:
            if v not in in_separator or cells < in_separator[v][0]:
                in_separator[v] = cells, i
        for v in clique:
            in_clique.setdefault(v, i)
    return (
        {v: i for v, i in in_clique.items() if v not in in_separator},
        {v: i for v, (_, i) in in_separator.items()},
    )
