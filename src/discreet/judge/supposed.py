"""Made-up rows that follow a graph: what is supposed of rows that nobody has looked at.

Rows that are spread evenly over all cells have no dependence. Then what is not known of an attribute's parents does not
matter to it, and an interval that assumes the graph looks narrower than it will be. An arrow claims a dependence, so
half of the rows are supposed to follow one: each attribute x with k levels has

    P(x | parents) = 1/2k + 1/2 · the mean over its parents y of F(x | y)

where F puts x as high among its levels as y is among its own: with x covering [x/k, (x + 1)/k) of the way from the
first level to the last, F(x | y) is the share of y's part that lies in x's. Every level stays as frequent as any other
of its attribute, because F makes even shares of even ones.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from discreet.compute.contraction import Margin
from discreet.networks.network import Network
from discreet.values.errors import TooLarge
from discreet.values.measurement import Measurement
from discreet.values.table import MAX_CELLS, Array, Table

FOLLOWING = 0.5
"""The part of the rows in which an attribute follows a parent: as much as it does not."""


@lru_cache(maxsize=2)  # a plan asks one network several questions
def suppose(network: Network, rows: int) -> Network:
    """A rehearsed network as it would be of rows that follow its graph; as it is where their tables are too large."""
    known = network.provenance
    assert known is not None
    dag, sizes = network.dag, network.schema.sizes
    cpts = tuple(_follow([sizes[name] for name in dag.family(node)]) for node in dag.nodes)
    measured = []
    for found in known.measurements:
        if found.axes:
            try:
                margin = Margin.plan(dag, sizes, found.axes, MAX_CELLS)
            except TooLarge:
                return network
            expected = margin.read([cpt[None] for cpt in cpts])[0] * (
                rows * known.unit.grain * float(found.rate)
            )
            counts = Table(found.axes, _round(expected))
            found = Measurement(counts, found.law, found.unit, found.cost, found.rate)
        measured.append(found)
    tables = tuple(Table(dag.family(node), cpt) for node, cpt in zip(dag.nodes, cpts, strict=True))
    return replace(network, cpts=tables, provenance=replace(known, measurements=tuple(measured)))


def _follow(shape: list[int]) -> Array:
    """The conditionals of an attribute, the last axis, given its parents."""
    *parents, levels = shape
    cpt = np.full(shape, 1.0 / levels)
    for axis, size in enumerate(parents):
        placed = _place(size, levels).reshape(
            [size if k == axis else 1 for k in range(len(parents))] + [levels]
        )
        cpt += FOLLOWING / len(parents) * (placed - 1.0 / levels)
    return cpt


def _place(size: int, levels: int) -> Array:
    """F: for each of so many levels of a parent, how its part of the way lies in those of the levels."""
    own, other = np.arange(size + 1) / size, np.arange(levels + 1) / levels
    shared = np.minimum(own[1:, None], other[None, 1:]) - np.maximum(own[:-1, None], other[None, :-1])
    return np.asarray(np.maximum(shared, 0.0) * size)


def _round(expected: Array) -> Array:
    """Whole counts with the same sum, up to one."""
    sums = np.rint(np.cumsum(expected.ravel())).astype(np.int64)
    return np.asarray(np.diff(sums, prepend=0).reshape(expected.shape))
