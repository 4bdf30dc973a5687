"""Products of tables summed down to a few variables, planned once and run on any number of networks with one graph.

The result is linear in all numbers of one table together, because every combination of levels uses exactly one of
them. So the derivative by a table's numbers is all that is needed to optimise them exactly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from discreet.values.graph import DAG
from discreet.values.table import MAX_CELLS, Array, count_cells, require_cells

Floats = npt.NDArray[np.float64]
Scope = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Bucket:
    """The tables that meet in a variable, and how each of them lies in their product."""

    inputs: Scope
    union: Scope
    """The sizes of the product's axes."""
    shapes: tuple[Scope, ...]
    """For each input the batch axis as -1, then its sizes, 1 for each variable that it lacks."""
    lacking: tuple[Scope, ...]
    """For each input the axes that it lacks, counted with the batch axis."""
    summed: bool
    """Whether the first axis is summed out; only the last bucket, which joins what is left, keeps all axes."""


class Contraction:
    """Tables over variables 0, 1, …, multiplied, and all variables but those that are kept summed out in this order.

    Every array has a batch axis first, then an axis for each variable of its scope in the order of the scope; those of
    the result are in the order of `kept`.
    """

    def __init__(
        self,
        scopes: Sequence[Sequence[int]],
        sizes: Sequence[int],
        kept: Sequence[int],
        order: Sequence[int],
        max_cells: int = MAX_CELLS,
    ) -> None:
        # Axes are sorted by when they go, so that a sum is always over the first of them, the fastest to sum over.
        ranked = [*order, *kept]
        rank = {v: r for r, v in enumerate(ranked)}
        self._sizes = [sizes[v] for v in ranked]
        self._arrange = [_sort_axes([rank[v] for v in scope]) for scope in scopes]
        self._restore = [tuple(np.argsort(axes).tolist()) for axes in self._arrange]
        self._buckets: list[Bucket] = []
        pool = {i: tuple(sorted(rank[v] for v in scope)) for i, scope in enumerate(scopes)}
        for r in range(len(order)):
            self._join([i for i, scope in pool.items() if r in scope], pool, max_cells, summed=True)
        self._join(list(pool), pool, max_cells, summed=False)

    def run(self, tables: Sequence[Floats]) -> tuple[Floats, list[list[Floats]]]:
        """The result for each entry of the batch axis, and the tape for `differentiate`."""
        values = [table.transpose(axes) for table, axes in zip(tables, self._arrange, strict=True)]
        tape: list[list[Floats]] = []
        for bucket in self._buckets:
            spread = [values[i].reshape(shape) for i, shape in zip(bucket.inputs, bucket.shapes, strict=True)]
            tape.append(spread)
            total = spread[0]
            for other in spread[1:]:
                total = total * other
            values.append(total.sum(axis=1) if bucket.summed else total)
        return values[-1], tape

    def differentiate(self, tape: list[list[Floats]], seed: Floats) -> list[Floats]:
        """The derivative of Σ seed·result by every table, in the shape of the tables given to `run`."""
        count, batch = len(self._arrange), len(seed)
        adjoint: list[Floats] = [seed] * (count + len(self._buckets))
        for s in range(len(self._buckets) - 1, -1, -1):
            bucket, spread = self._buckets[s], tape[s]
            # After the loop below, right[k] is the adjoint times all inputs that stand right of the k-th.
            right = [adjoint[count + s][:, None] if bucket.summed else adjoint[count + s]]
            for other in reversed(spread[1:]):
                right.append(right[-1] * other)
            right.reverse()
            left: Floats | None = None
            for k, i in enumerate(bucket.inputs):
                found = right[k] if left is None else right[k] * left
                left = spread[k] if left is None else left * spread[k]
                whole = np.broadcast_to(found, (batch, *bucket.union))
                adjoint[i] = whole.sum(axis=bucket.lacking[k]) if bucket.lacking[k] else whole
        return [adjoint[i].transpose(axes) for i, axes in enumerate(self._restore)]

    def _join(self, inputs: list[int], pool: dict[int, Scope], max_cells: int, *, summed: bool) -> None:
        union = sorted(set().union(*(pool[i] for i in inputs)))
        sizes = self._sizes
        require_cells(
            "the largest table of an exact answer for one network", (sizes[r] for r in union), max_cells
        )
        self._buckets.append(
            Bucket(
                tuple(inputs),
                tuple(sizes[r] for r in union),
                tuple((-1, *(sizes[r] if r in pool[i] else 1 for r in union)) for i in inputs),
                tuple(tuple(1 + k for k, r in enumerate(union) if r not in pool[i]) for i in inputs),
                summed,
            )
        )
        for i in inputs:
            del pool[i]
        pool[len(self._arrange) + len(self._buckets) - 1] = tuple(union[1:] if summed else union)


@dataclass(frozen=True, slots=True, eq=False)
class Margin:
    """P(members) of any network with one graph; only the ancestors of the members matter."""

    nodes: Scope
    """The numbers of those ancestors in the graph."""
    contraction: Contraction

    @classmethod
    def plan(cls, dag: DAG, sizes: Mapping[str, int], members: Sequence[str], max_cells: int) -> Margin:
        """Sum out next what takes the smallest product; `TooLarge` if one has more cells than allowed."""
        above = dag.ancestors(members)
        nodes = tuple(v for v, name in enumerate(dag.nodes) if name in above)
        scopes = [[dag.index(name) for name in dag.family(dag.nodes[v])] for v in nodes]
        levels = [sizes.get(name, 1) for name in dag.nodes]
        kept = [dag.index(name) for name in members]
        order = _order_cheapest(scopes, levels, {*nodes} - {*kept})
        return cls(nodes, Contraction(scopes, levels, kept, order, max_cells))

    def read(self, cpts: Sequence[Array]) -> Array:
        """The margin of each network of a batch, the members' axes in the order in which they were named.

        `cpts` has an array for each node of the graph: the batch axis, its parents, itself.
        """
        return np.ascontiguousarray(self.contraction.run([cpts[v] for v in self.nodes])[0])


def _order_cheapest(scopes: Sequence[Sequence[int]], sizes: Sequence[int], dropped: set[int]) -> list[int]:
    pool = [frozenset(scope) for scope in scopes]
    left, order = set(dropped), []
    while left:
        unions = {v: frozenset[int]().union(*(scope for scope in pool if v in scope)) for v in left}
        best = min(left, key=lambda v: (count_cells(sizes[u] for u in unions[v]), v))
        pool = [*(scope for scope in pool if best not in scope), unions[best] - {best}]
        order.append(best)
        left.discard(best)
    return order


def _sort_axes(ranks: Sequence[int]) -> Scope:
    """The batch axis, then the others in the order of their ranks."""
    return (0, *(1 + k for k in sorted(range(len(ranks)), key=lambda k: ranks[k])))
