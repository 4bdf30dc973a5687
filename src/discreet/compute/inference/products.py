"""Products of tables, summed over one variable that all of them have as their last axis, and how it gets there."""

from __future__ import annotations

import numpy as np
from numba import njit

from discreet.compute.inference.sweep import FAST

LINE = 8
"""Numbers that come into the cache together."""


@njit(cache=True, nogil=True)
def copy_table(work, at, source, base, levels, hops):  # type: ignore[no-untyped-def]
    """Write the cells of a table one after the other, its last axis fastest; `hops` are its strides in `source`.

    Axes are merged where they can be. Where another axis is the fastest in `source`, a few of its cells are taken at a
    time, because they come into the cache together.
    """
    last = 0
    for a in range(1, levels.size):
        if hops[last] == hops[a] * levels[a]:
            levels[last] *= levels[a]
        else:
            last += 1
            levels[last] = levels[a]
        hops[last] = hops[a]
    index, steps = np.empty(last + 1, dtype=np.int64), np.empty(last + 1, dtype=np.int64)
    for a in range(last, -1, -1):
        index[a] = 0
        steps[a] = steps[a + 1] * levels[a + 1] if a < last else 1
    fast = last
    for a in range(last):
        if hops[a] == 1 and hops[last] != 1:
            fast = a
    length, hop, step = levels[last], hops[last], steps[fast]
    width = levels[fast] if fast < last else 1
    while True:
        if hop == 1:
            for j in range(length):
                work[at + j] = source[base + j]
        for start in range(0, 0 if hop == 1 else width, LINE):
            for j in range(length):
                for t in range(start, min(start + LINE, width)):
                    work[at + j + t * step] = source[base + j * hop + t]
        a = last - 1
        while a >= 0:
            if a != fast:
                index[a] += 1
                base += hops[a]
                at += steps[a]
                if index[a] < levels[a]:
                    break
                base -= index[a] * hops[a]
                at -= index[a] * steps[a]
                index[a] = 0
            a -= 1
        if a < 0:
            return


@njit(cache=True, nogil=True, fastmath=FAST)
def merge_loops(levels, factors, strides, out_strides):  # type: ignore[no-untyped-def]
    """Join neighbouring loops that all tables walk evenly: longer loops, fewer carries. Returns how many are left."""
    last = 0
    for a in range(1, levels.size):
        size = levels[a]
        even = out_strides[last] == out_strides[a] * size
        f = 0
        while even and f < factors:
            even = strides[f, last] == strides[f, a] * size
            f += 1
        if even:
            levels[last] *= size
        else:
            last += 1
            levels[last] = size
        out_strides[last] = out_strides[a]
        for f in range(factors):
            strides[f, last] = strides[f, a]
    return min(last + 1, levels.size)


@njit(cache=True, nogil=True, fastmath=FAST)
def sum_products(work, bases, strides, levels, outer, out, out_strides, length):  # type: ignore[no-untyped-def]
    """out[x] = Σ_j Π_f work[bases[f] + x·strides[f] + j] for every x in the box `levels`, whose last axis is fastest.

    Factors are multiplied in as far outside as their axes allow: `deepest[f]` is the last axis along which f moves, and
    `outer[a + 1]` keeps the product over j of those that move along the axes up to a.
    """
    factors = bases.size
    axes = merge_loops(levels, factors, strides, out_strides)
    index, deepest = np.empty(axes, dtype=np.int64), np.empty(factors, dtype=np.int64)
    for a in range(axes):
        index[a] = 0
    for f in range(factors):
        deepest[f] = -1
        for a in range(axes):
            if strides[f, a] != 0:
                deepest[f] = a
    fresh = -1  # from this axis on the products must be made anew
    inner = axes - 1
    while True:
        for a in range(fresh, inner if axes > 0 else 0):
            for j in range(length):
                outer[a + 1, j] = 1.0 if a < 0 else outer[a, j]
            for f in range(factors):
                if deepest[f] == a:
                    base = bases[f]
                    for j in range(length):
                        outer[a + 1, j] *= work[base + j]
        if axes == 0:
            total = 0.0
            for j in range(length):
                total += outer[0, j]
            work[out] = total
            return
        above = outer[inner]
        first = -1
        second = -1
        more = 0
        for f in range(factors):
            if deepest[f] == inner:
                if first < 0:
                    first = f
                elif second < 0:
                    second = f
                more += 1
        base, hop = bases[first], strides[first, inner]
        to, step = out, out_strides[inner]
        # Three or four levels are what most variables have: without a loop over them this takes half the time.
        if more == 1 and length <= 4:
            p = above[0]
            q = above[1] if length > 1 else 0.0
            r = above[2] if length > 2 else 0.0
            s = above[3] if length > 3 else 0.0
            if length == 1:
                for _ in range(levels[inner]):
                    work[to] = p * work[base]
                    base += hop
                    to += step
            elif length == 2:
                for _ in range(levels[inner]):
                    work[to] = p * work[base] + q * work[base + 1]
                    base += hop
                    to += step
            elif length == 3:
                for _ in range(levels[inner]):
                    work[to] = p * work[base] + q * work[base + 1] + r * work[base + 2]
                    base += hop
                    to += step
            else:
                for _ in range(levels[inner]):
                    work[to] = (p * work[base] + q * work[base + 1]) + (
                        r * work[base + 2] + s * work[base + 3]
                    )
                    base += hop
                    to += step
        elif more == 1:
            for _ in range(levels[inner]):
                total = 0.0
                for j in range(length):
                    total += above[j] * work[base + j]
                work[to] = total
                base += hop
                to += step
        elif more == 2:
            other, leap = bases[second], strides[second, inner]
            for _ in range(levels[inner]):
                total = 0.0
                for j in range(length):
                    total += above[j] * work[base + j] * work[other + j]
                work[to] = total
                base += hop
                other += leap
                to += step
        else:
            product = outer[axes]
            for x in range(levels[inner]):
                for j in range(length):
                    product[j] = above[j] * work[base + j]
                for f in range(first + 1, factors):
                    if deepest[f] == inner:
                        other = bases[f] + x * strides[f, inner]
                        for j in range(length):
                            product[j] *= work[other + j]
                total = 0.0
                for j in range(length):
                    total += product[j]
                work[to] = total
                base += hop
                to += step
        a = inner - 1
        while a >= 0:
            index[a] += 1
            move = 1
            if index[a] == levels[a]:
                index[a] = 0
                move = 1 - levels[a]
            for f in range(factors):
                bases[f] += move * strides[f, a]
            out += move * out_strides[a]
            if move == 1:
                break
            a -= 1
        if a < 0:
            return
        fresh = a
