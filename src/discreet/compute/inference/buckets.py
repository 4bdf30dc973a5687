"""Multiply tables and sum variables out of the product, compiled: bucket elimination (Dechter, 1999).

The order is greedy: next is the variable whose product has the fewest cells. The product of all tables with that
variable, summed over it, is a new table. Inside, every table has the variable that it waits for as its last axis, so
the innermost loop runs along memory.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from discreet.compute.inference.ordering import order_greedily
from discreet.compute.inference.products import copy_table, sum_products
from discreet.compute.inference.propagation import TINY

FAILED, NOTHING = -1.0, -2.0
"""Instead of a number of cells: a product might underflow or is too large; all products are 0."""

WHOLE = np.empty(0, dtype=np.int64), np.empty(0)
"""The last arguments of `contract` if the answer is to be one table."""


@njit(cache=True, nogil=True)
def contract(  # type: ignore[no-untyped-def]
    sizes,
    evidence,
    start,
    members,
    strides,
    bases,
    sources,
    least,
    data,
    other,
    keep,
    limit,
    out,
    to,
    out_strides,
    parts,
    floors,
):
    """Multiply tables, sum out all but `keep`, and write the result to `out`, divided by its scale.

    Table t has the variables `members[start[t] : start[t + 1]]` with their strides, its first cell at `bases[t]` of
    `data` or, if `sources[t]`, of `other`, and no positive cell below `least[t]`. Observed variables are cut away;
    those to keep are not observed, stand in some table, and have `out_strides`. Returns the logarithm of the scale, the
    least positive cell, and how many cells that took: `FAILED` if a product might underflow or that is more than
    `limit`, `NOTHING` if all is 0.

    If `parts` has room, the tables that are left at the end are not multiplied unless that makes them smaller: they are
    written one after the other, `parts` tells how many, and for each how many axes, where, and which ones (in the order
    of its cells, the last fastest), and `floors` their least positive cells. If they were multiplied, it tells 0.
    """
    count = sizes.size
    rank, scope_start, scopes, cells = order_greedily(start, members, sizes, evidence, keep)
    if cells > limit:
        return 0.0, 1.0, FAILED
    steps = scope_start.size - 1
    tables = start.size - 1

    answer_cells = np.int64(1)  # a plain 1 would have what is called with it compiled twice
    for v in keep:
        answer_cells *= sizes[v]
    room = answer_cells
    width = keep.size
    for r in range(steps):
        new = 1
        for k in range(scope_start[r], scope_start[r + 1]):
            new *= sizes[scopes[k]]
        room += new
        width = max(width, scope_start[r + 1] - scope_start[r])
    for t in range(tables):
        new = 1
        free = 0
        for k in range(start[t], start[t + 1]):
            if evidence[members[k]] < 0:
                new *= sizes[members[k]]
                free += 1
        room += new
        width = max(width, free)
    work = np.empty(room)
    at = answer_cells  # the first cells are for the answer
    log_scale = 0.0
    table_base = np.empty(tables + steps, dtype=np.int64)
    axis_start = np.zeros(tables + steps + 1, dtype=np.int64)
    table_axes = np.empty(start[-1] + scope_start[steps], dtype=np.int64)
    floor = np.empty(tables + steps)
    head = np.full(steps + 1, -1, dtype=np.int64)
    following = np.empty(tables + steps, dtype=np.int64)
    known = 0
    index = np.empty(width, dtype=np.int64)
    hops = np.empty(width, dtype=np.int64)
    levels = np.empty(width, dtype=np.int64)
    for t in range(tables):
        begin = axis_start[known]
        end = begin
        base = bases[t]
        for k in range(start[t], start[t + 1]):
            v = members[k]
            if evidence[v] >= 0:
                base += evidence[v] * strides[k]
                continue
            slot = end  # by rank, the first to go last
            while slot > begin and rank[table_axes[slot - 1]] < rank[v]:
                table_axes[slot] = table_axes[slot - 1]
                hops[slot - begin] = hops[slot - 1 - begin]
                slot -= 1
            table_axes[slot] = v
            hops[slot - begin] = strides[k]
            end += 1
        source = other if sources[t] else data
        if end == begin:
            if not source[base] > 0.0:
                return 0.0, 1.0, NOTHING
            log_scale += np.log(source[base])
            continue
        table_base[known] = at
        taken = 1
        for a in range(end - begin):
            levels[a] = sizes[table_axes[begin + a]]
            taken *= levels[a]
        copy_table(work, at, source, base, levels[: end - begin], hops)
        at += taken
        floor[known] = least[t]
        bucket = min(rank[table_axes[end - 1]], steps)
        following[known] = head[bucket]
        head[bucket] = known
        known += 1
        axis_start[known] = end

    smallest = 1.0
    starts = np.empty(tables + steps, dtype=np.int64)
    moves = np.empty((tables + steps, width), dtype=np.int64)
    new_strides = np.empty(width, dtype=np.int64)
    shared = np.zeros(count, dtype=np.int64)
    place = np.empty(count, dtype=np.int64)
    order = np.empty(width, dtype=np.int64)
    eliminated = np.empty(steps, dtype=np.int64)
    longest = 1
    for v in range(count):
        if rank[v] >= 0:
            longest = max(longest, sizes[v])
            if rank[v] < steps:
                eliminated[rank[v]] = v
    outer = np.empty((width + 2, longest))
    for r in range(steps + 1):
        final = r == steps
        spread = keep.size if final else scope_start[r + 1] - scope_start[r]
        for a in range(spread):
            order[a] = keep[a] if final else scopes[scope_start[r] + a]
            shared[order[a]] = 0
        if final and parts.size > 0:
            parts[0] = 0
            together = 0
            f = head[r]
            while f >= 0:
                new = 1
                for k in range(axis_start[f], axis_start[f + 1]):
                    new *= sizes[table_axes[k]]
                together += new
                f = following[f]
            if together <= answer_cells:
                slot = 1
                f = head[r]
                while f >= 0:
                    floors[parts[0]] = floor[f]
                    parts[0] += 1
                    parts[slot] = axis_start[f + 1] - axis_start[f]
                    parts[slot + 1] = to
                    slot += 2
                    new = 1
                    for k in range(axis_start[f], axis_start[f + 1]):
                        parts[slot] = table_axes[k]
                        slot += 1
                        new *= sizes[table_axes[k]]
                    for x in range(new):
                        out[to + x] = work[table_base[f] + x]
                    to += new
                    f = following[f]
                return log_scale, 1.0, cells
        smallest = 1.0
        f = head[r]
        while f >= 0:
            smallest *= floor[f]
            for k in range(axis_start[f], axis_start[f + 1]):
                shared[table_axes[k]] += 1
            f = following[f]
        if not smallest > TINY:
            return 0.0, 1.0, FAILED
        begin = axis_start[known]
        if not final:
            for a in range(1, spread):  # the new table's axes by rank, the first to go last
                v = order[a]
                slot = a
                while slot > 0 and rank[order[slot - 1]] < rank[v]:
                    order[slot] = order[slot - 1]
                    slot -= 1
                order[slot] = v
        new = 1
        for a in range(spread - 1, -1, -1):
            if not final:
                table_axes[begin + a] = order[a]
            place[order[a]] = new  # for a moment the stride in the new table, then the loop
            new *= sizes[order[a]]
        for a in range(1, spread):  # the loops: what many tables share outside
            v = order[a]
            slot = a
            while slot > 0 and shared[order[slot - 1]] < shared[v]:
                order[slot] = order[slot - 1]
                slot -= 1
            order[slot] = v
        for a in range(spread):
            levels[a] = sizes[order[a]]
            new_strides[a] = place[order[a]]
            place[order[a]] = a
        factors = 0
        f = head[r]
        while f >= 0:
            for a in range(spread):
                moves[factors, a] = 0
            starts[factors] = table_base[f]
            hop = 1
            for k in range(axis_start[f + 1] - 1, axis_start[f] - 1, -1):
                v = table_axes[k]
                if final or rank[v] != r:
                    moves[factors, place[v]] = hop
                hop *= sizes[v]
            factors += 1
            f = following[f]
        first = 0 if final else at
        length = 1 if final else sizes[eliminated[r]]
        sum_products(work, starts[:factors], moves, levels[:spread], outer, first, new_strides, length)
        peak = 0.0
        smallest = np.inf
        for x in range(first, first + new):
            if work[x] > 0.0:
                peak = max(peak, work[x])
                smallest = min(smallest, work[x])
        if not peak > 0.0:
            return 0.0, 1.0, NOTHING
        log_scale += np.log(peak)
        smallest /= peak
        for x in range(first, first + new):
            work[x] /= peak
        if not final and spread > 0:
            table_base[known] = at
            at += new
            floor[known] = smallest
            axis_start[known + 1] = begin + spread
            bucket = min(rank[table_axes[begin + spread - 1]], steps)
            following[known] = head[bucket]
            head[bucket] = known
            known += 1

    for a in range(keep.size):
        index[a] = 0
    x = 0
    a = 0
    while a >= 0:
        out[to] = work[x]
        x += 1
        a = keep.size - 1
        while a >= 0:
            index[a] += 1
            to += out_strides[a]
            if index[a] < sizes[keep[a]]:
                break
            to -= index[a] * out_strides[a]
            index[a] = 0
            a -= 1
    return log_scale, smallest, cells
