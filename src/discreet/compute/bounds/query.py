"""A question to a credal network, cut down to what can change its answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from discreet.compute.bounds.intervals import Floats, RowSets
from discreet.values.errors import TableError
from discreet.values.graph import DAG
from discreet.values.table import Table

Evidence = Mapping[str, Sequence[int]]
"""For each observed node, the levels that it may have: one, or several."""


@dataclass(frozen=True, slots=True)
class Local:
    """The rows of one node, with the axes of observed parents cut away and those of restricted ones thinned out.

    The first axis of the arrays is a batch axis, the last one runs over ALL levels of the node: a row is a
    distribution over all of them, even if the evidence allows only some.
    """

    name: str
    parents: tuple[str, ...]
    rows: RowSets
    allowed: npt.NDArray[np.intp]
    """The node's own levels that the evidence allows."""
    observed: bool
    """Whether that is one level only, so that the node is no variable any more."""
    cut: tuple[npt.NDArray[np.intp], ...]
    """For each axis of the whole table but the last, which levels were kept."""

    @property
    def scope(self) -> tuple[str, ...]:
        """The variables that the node's factor depends on."""
        return self.parents if self.observed else (*self.parents, self.name)


@dataclass(frozen=True, slots=True)
class Problem:
    """Bound E[f(targets) | evidence] for each of several functions f over all choices of a distribution per row."""

    locals: tuple[Local, ...]
    """The nodes that matter, parents before children."""
    sizes: dict[str, int]
    """The number of allowed levels of each variable, i.e. of each node that is not observed."""
    targets: tuple[str, ...]
    functions: Floats
    """One function for each entry of the first axis; the other axes are the targets that are not observed."""

    @property
    def settled(self) -> bool:
        """Whether the evidence fixes every target, so that the functions are plain numbers."""
        return not self.targets

    @property
    def ranges(self) -> tuple[Floats, Floats]:
        """The least and the greatest value of each function."""
        flat = self.functions.reshape(len(self.functions), -1)
        return flat.min(axis=1), flat.max(axis=1)


def pose(
    dag: DAG,
    lower: Sequence[Table],
    upper: Sequence[Table],
    targets: Sequence[str],
    functions: Floats,
    evidence: Evidence,
    *,
    whole: bool = False,
) -> Problem:
    """The problem without what cannot matter: barren nodes, and what the evidence separates from the targets.

    Only ancestors of targets and evidence matter. Among their families, with the observed nodes taken out,
    only those matter that hang together with a target; the rest multiplies E[f·1_e] and P(e) by one and the
    same number (d-separation in the moral graph of the ancestors). `whole` keeps that rest, for those who
    want P(e) itself.
    """
    sizes = {name: table.values.shape[-1] for name, table in zip(dag.nodes, lower, strict=True)}
    kept = {name: np.arange(size, dtype=np.intp) for name, size in sizes.items()}
    observed = {name: codes for name, codes in evidence.items() if len(set(codes)) < sizes[name]}
    for name, codes in observed.items():
        kept[name] = np.array(sorted(set(codes)), dtype=np.intp)
        if not len(kept[name]) or kept[name][0] < 0 or kept[name][-1] >= sizes[name]:
            raise TableError(f"evidence on {name!r} allows the levels {list(codes)} of {sizes[name]}")
    if functions.shape[1:] != tuple(sizes[name] for name in targets):
        raise TableError(f"functions of {tuple(targets)} have the shape {functions.shape[1:]}")
    cut = functions[np.ix_(np.arange(len(functions)), *(kept[name] for name in targets))]
    free = tuple(name for name in targets if len(kept[name]) > 1)
    cut = cut.reshape([len(functions), *(len(kept[name]) for name in free)])
    relevant = dag.ancestors([*free, *observed])
    scopes = {
        name: [member for member in dag.family(name) if len(kept[member]) > 1]
        for name in dag.order
        if name in relevant
    }
    reached = _component(scopes, [name for scope in scopes.values() for name in scope] if whole else free)
    chosen = []
    for name in dag.order:
        if name not in relevant or not (whole or reached.intersection(scopes[name])):
            continue
        position = dag.index(name)
        family = dag.family(name)
        axes = tuple(kept[parent] for parent in family[:-1])
        parents = tuple(parent for parent in family[:-1] if len(kept[parent]) > 1)
        shape = [1, *(len(kept[parent]) for parent in parents), sizes[name]]
        ends = [
            np.asarray(table.values, dtype=np.float64)[np.ix_(*axes, np.arange(sizes[name]))].reshape(shape)
            for table in (lower[position], upper[position])
        ]
        chosen.append(Local(name, parents, RowSets.reachable(*ends), kept[name], len(kept[name]) == 1, axes))
    variables = {name: len(kept[name]) for name in dag.order if name in reached}
    return Problem(tuple(chosen), variables, free, np.asarray(cut, dtype=np.float64))


def _component(scopes: Mapping[str, Sequence[str]], start: Sequence[str]) -> frozenset[str]:
    """The variables that hang together with `start` through common scopes."""
    homes: dict[str, list[str]] = {}
    for name, scope in scopes.items():
        for member in scope:
            homes.setdefault(member, []).append(name)
    found = set(start)
    agenda = list(start)
    while agenda:
        for name in homes[agenda.pop()]:
            for member in scopes[name]:
                if member not in found:
                    found.add(member)
                    agenda.append(member)
    return frozenset(found)
