"""One question at a time, compiled: what cannot matter is left out, and the rest is contracted.

Descendants of neither targets nor evidence are barren: they sum to 1. Of the rest, with the observed variables taken
out, what does not hang together with a target multiplies all cells by one number (Shachter, 1988). That number is
looked at only where it can be 0, for then the evidence is impossible.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numba import njit

from discreet.compute.inference.buckets import FAILED, WHOLE, contract
from discreet.compute.inference.junction import Floats, Ints, smallest_positive


@njit(cache=True, nogil=True)
def find_relevant(start, family, child_start, children, positive, evidence, targets, possible):  # type: ignore[no-untyped-def]
    """Flags of the families that matter, and of the variables in them that are not observed.

    `positive[v]` says that no cell of v's table is 0. Families apart from the targets are kept if the evidence in them
    might be impossible, unless it is known to be `possible`.
    """
    count = start.size - 1
    above = np.zeros(count, dtype=np.bool_)
    stack = np.empty(count, dtype=np.int64)
    top = 0
    for v in range(count + targets.size):
        u = v if v < count else targets[v - count]
        if not above[u] and (v >= count or evidence[u] >= 0 or evidence[count + u] >= 0):
            above[u] = True
            stack[top] = u
            top += 1
    while top > 0:
        top -= 1
        v = stack[top]
        for k in range(start[v], start[v + 1] - 1):
            u = family[k]
            if not above[u]:
                above[u] = True
                stack[top] = u
                top += 1
    kept = np.zeros(count, dtype=np.bool_)
    free = np.zeros(count, dtype=np.bool_)
    for turn in range(targets.size + count):
        if turn < targets.size:
            v = targets[turn]
        else:
            v = turn - targets.size
            if possible or not above[v] or kept[v]:
                continue
            if positive[v]:
                continue
            kept[v] = True
            for k in range(
                start[v], start[v + 1]
            ):  # a family without zeros of its own may matter to this one
                u = family[k]
                if evidence[u] < 0 and not free[u]:
                    free[u] = True
                    stack[top] = u
                    top += 1
        if turn < targets.size and evidence[v] < 0 and not free[v]:
            free[v] = True
            stack[top] = v
            top += 1
        while top > 0:
            top -= 1
            u = stack[top]
            for c in range(child_start[u] - 1, child_start[u + 1]):
                w = u if c < child_start[u] else children[c]
                if above[w] and not kept[w]:
                    kept[w] = True
                    for k in range(start[w], start[w + 1]):
                        x = family[k]
                        if evidence[x] < 0 and not free[x]:
                            free[x] = True
                            stack[top] = x
                            top += 1
    return kept, free


@njit(cache=True, nogil=True)
def gather(  # type: ignore[no-untyped-def]
    sizes, start, family, strides, child_start, children, table_at, positive, least,
    evidence, weights, targets, possible,
):  # fmt: skip
    """The tables that matter, as `buckets.contract` takes them, and the likelihoods with a peak of 1.

    No tables if the evidence names no level, or a likelihood leaves none.
    """
    count = sizes.size
    scaled = np.empty(weights.size)
    kept = np.zeros(count, dtype=np.bool_)
    free = np.zeros(count, dtype=np.bool_)
    valid = True
    for v in range(count):
        valid = valid and evidence[v] < sizes[v]
        soft = evidence[count + v]
        if soft >= 0 and valid:
            peak = 0.0
            for j in range(sizes[v]):
                if evidence[v] < 0 or evidence[v] == j:
                    peak = max(peak, weights[soft + j])
            valid = peak > 0.0
            for j in range(sizes[v]):
                scaled[soft + j] = weights[soft + j] / peak if valid else 0.0
    if valid:
        kept, free = find_relevant(
            start, family, child_start, children, positive, evidence, targets, possible
        )
    tables = 0
    entries = 0
    for v in range(count):
        if kept[v]:
            tables += 1
            entries += start[v + 1] - start[v]
        if free[v] and evidence[count + v] >= 0:
            tables += 1
            entries += 1
    starts = np.zeros(tables + 1, dtype=np.int64)
    members = np.empty(entries, dtype=np.int64)
    hops = np.empty(entries, dtype=np.int64)
    bases = np.empty(tables, dtype=np.int64)
    sources = np.zeros(tables, dtype=np.bool_)
    floor = np.empty(tables)
    t = 0
    for v in range(count):
        if kept[v]:
            at = starts[t]
            for k in range(start[v], start[v + 1]):
                members[at] = family[k]
                hops[at] = strides[k]
                at += 1
            bases[t] = table_at[v]
            floor[t] = least[v]
            t += 1
            starts[t] = at
        soft = evidence[count + v]
        if free[v] and soft >= 0:
            members[starts[t]] = v
            hops[starts[t]] = 1
            bases[t] = soft
            sources[t] = True
            floor[t] = 1.0
            for j in range(sizes[v]):
                if weights[soft + j] > 0.0:
                    floor[t] = min(floor[t], scaled[soft + j])
            t += 1
            starts[t] = starts[t - 1] + 1
    return starts, members, hops, bases, sources, floor, scaled


class Questions:
    """The tables of a network, flat, and the function that answers single questions from them."""

    def __init__(self, sizes: Sequence[int], factors: Sequence[tuple[Sequence[int], Floats]]) -> None:
        """`factors[v]` are the variables of v's table, v last, and its cells."""
        count = len(sizes)
        children: list[list[int]] = [[] for _ in range(count)]
        for v, (scope, _) in enumerate(factors):
            for u in scope[:-1]:
                children[u].append(v)
        self._sizes = sizes
        self._flat = (
            np.array(sizes, dtype=np.int64),
            _starts([len(scope) for scope, _ in factors]),
            np.array([v for scope, _ in factors for v in scope], dtype=np.int64),
            np.concatenate([np.array(values.strides) // values.itemsize for _, values in factors]),
            _starts([len(found) for found in children]),
            np.array([v for found in children for v in found], dtype=np.int64),
            _starts([values.size for _, values in factors])[:-1],
            np.array([bool((values > 0).all()) for _, values in factors]),
            np.array([smallest_positive(values) for _, values in factors]),
        )
        self._data = np.concatenate([values.ravel() for _, values in factors])

    def ask(
        self, observed: Ints, weights: Floats, targets: Sequence[int], *, possible: bool, limit: float
    ) -> tuple[Floats, float]:
        """P(targets | evidence) as a table, and how many cells that took; below 0 if there is no answer this way.

        That is so if the evidence is impossible, if a product might underflow, or beyond `limit` cells. Evidence
        that is known to be `possible` need not be looked at where it has no say.
        """
        wanted = np.array(targets, dtype=np.int64)
        out = np.empty([self._sizes[v] for v in targets])
        *tables, scaled = gather(*self._flat, observed, weights, wanted, possible)
        if not len(tables[3]):
            return out, FAILED
        _, _, cells = contract(
            self._flat[0],
            observed,
            *tables,
            self._data,
            scaled,
            wanted,
            float(limit),  # one type, one compilation
            out.reshape(-1),
            0,
            np.array(out.strides, dtype=np.int64) // out.itemsize,
            *WHOLE,
        )
        return (out / out.sum() if cells >= 0 else out), cells


def _starts(lengths: Sequence[int]) -> Ints:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
