"""The compiled path: posterior marginals on a flattened junction tree, in two sweeps of its cliques.

`data` holds the tree calibrated without evidence, so a message is a ratio to a prior that is already there: a
subtree without evidence sends nothing up, and one whose separator keeps its prior is left alone on the way down. That
prunes barren and d-separated nodes without looking for them. An observed axis is not multiplied by zeros; it is not
swept at all.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from discreet.algorithms.inference.layout import ROW, Scalar, Section

UNCHANGED = 1e-14
"""A separator whose posterior differs from its prior by less, relatively, carries no news."""

TINY = 1e-280
"""Products below this may lose digits, so they count as 0."""

UNLIKELY = -575.0
"""If the evidence above a lost product has a smaller log-probability, it may rest on what was lost: use logarithms."""

_FAST = {"reassoc", "contract", "arcp", "nsz"}  # let sums be vectorised; NaN and infinity keep their meaning

_SCALARS, _PARENT, _AXIS_START, _CLIQUE_AT = (
    Section.SCALARS.value,
    Section.PARENT.value,
    Section.AXIS_START.value,
    Section.CLIQUE_AT.value,
)
_SEPARATOR_SIZE, _SEPARATOR_PRIOR, _SEPARATOR_AT = (
    Section.SEPARATOR_SIZE.value,
    Section.SEPARATOR_PRIOR.value,
    Section.SEPARATOR_AT.value,
)
_CHILD_START, _CHILDREN, _LINK, _LINK_STRIDES = (
    Section.CHILD_START.value,
    Section.CHILDREN.value,
    Section.LINK.value,
    Section.LINK_STRIDES.value,
)
_TOP, _LEVEL_START = Section.TOP.value, Section.LEVEL_START.value
_AXIS_VARIABLE, _AXIS_SIZE, _AXIS_STRIDE = (
    Section.AXIS_VARIABLE.value,
    Section.AXIS_SIZE.value,
    Section.AXIS_STRIDE.value,
)
_AXIS_UP, _AXIS_MARGINAL, _READOFF_START, _READOFF = (
    Section.AXIS_UP.value,
    Section.AXIS_MARGINAL.value,
    Section.READOFF_START.value,
    Section.READOFF.value,
)
_MESSAGES, _AXES, _POINTERS, _ROW_CELLS, _LEAST = (scalar.value for scalar in Scalar)


@njit(cache=True, nogil=True, inline="always")
def _section(program, k):  # type: ignore[no-untyped-def]
    return program[program[k] : program[k + 1]]


@njit(cache=True, nogil=True, fastmath=_FAST)
def _merge_axes(frame, axes, free, count):  # type: ignore[no-untyped-def]
    """Join neighbouring axes that every pointer walks evenly: longer rows, fewer carries. Returns how many are left."""
    pointers = 1 + 2 * axes
    last = 0
    for a in range(1, free):
        size = frame[1 + a]
        even = frame[1 + axes + last] == frame[1 + axes + a] * size and frame[1 + last] * size <= ROW
        p = 0
        while even and p < count:
            at = pointers + p * (axes + 1) + 1
            even = frame[at + last] == frame[at + a] * size
            p += 1
        if even:
            frame[1 + last] *= size
        else:
            last += 1
            frame[1 + last] = size
        frame[1 + axes + last] = frame[1 + axes + a]
        for p in range(count):
            at = pointers + p * (axes + 1) + 1
            frame[at + last] = frame[at + a]
    return last + 1


@njit(cache=True, nogil=True, fastmath=_FAST)
def _sweep(data, work, frame, axes, free, factors, sums, row):  # type: ignore[no-untyped-def]
    """Multiply the cells of a clique by `factors` tables in `work` and add them up into `sums` others.

    `frame` holds the clique's offset, `axes` sizes, `axes` strides, then one pointer for each table (an offset and
    `axes` strides), last the odometer. Only the first `free` axes count.
    """
    step = axes + 1
    count = factors + sums
    pointers = 1 + 2 * axes
    odometer = pointers + count * step
    if free > 0:
        free = _merge_axes(frame, axes, free, count)
        inner = frame[free]
        hop = frame[axes + free]
    else:
        inner = 1
        hop = 0
    outer = max(free - 1, 0)
    for a in range(outer):
        frame[odometer + a] = 0
    cell = frame[0]
    while True:
        scale = 1.0
        if hop == 1:
            for j in range(inner):
                row[j] = data[cell + j]
        else:
            for j in range(inner):
                row[j] = data[cell + j * hop]
        for p in range(factors):
            at = pointers + p * step
            base = frame[at]
            walk = frame[at + free] if free > 0 else 0
            if walk == 0:
                scale *= work[base]
            elif walk == 1:
                for j in range(inner):
                    row[j] *= work[base + j]
            else:
                for j in range(inner):
                    row[j] *= work[base + j * walk]
        if scale != 0.0:
            total = -1.0
            for p in range(factors, count):
                at = pointers + p * step
                base = frame[at]
                walk = frame[at + free] if free > 0 else 0
                if walk == 0:
                    if total < 0.0:
                        total = 0.0
                        for j in range(inner):
                            total += row[j]
                        total *= scale
                    work[base] += total
                elif walk == 1:
                    for j in range(inner):
                        work[base + j] += scale * row[j]
                else:
                    for j in range(inner):
                        work[base + j * walk] += scale * row[j]
        a = outer - 1
        while a >= 0:
            frame[odometer + a] += 1
            carry = frame[odometer + a] == frame[1 + a]
            move = -(frame[1 + a] - 1) if carry else 1
            cell += move * frame[1 + axes + a]
            for p in range(count):
                at = pointers + p * step
                frame[at] += move * frame[at + 1 + a]
            if not carry:
                break
            frame[odometer + a] = 0
            a -= 1
        if a < 0:
            return


@njit(cache=True, nogil=True)
def _aim(frame, axes, base, variables, sizes, strides, evidence):  # type: ignore[no-untyped-def]
    """Set `frame` on the unobserved part of a clique; returns the number of its unobserved axes."""
    free = 0
    for a in range(variables.size):
        code = evidence[variables[a]]
        if code >= 0:
            base += code * strides[a]
        else:
            frame[1 + free] = sizes[a]
            frame[1 + axes + free] = strides[a]
            free += 1
    frame[0] = base
    return free


@njit(cache=True, nogil=True)
def _point(frame, at, base, variables, strides, evidence):  # type: ignore[no-untyped-def]
    """Write a pointer to a table with these strides along the clique's axes."""
    free = 0
    for a in range(variables.size):
        code = evidence[variables[a]]
        if code >= 0:
            base += code * strides[a]
        else:
            frame[at + 1 + free] = strides[a]
            free += 1
    frame[at] = base


@njit(cache=True, nogil=True)
def _point_axis(frame, at, base, variables, axis, evidence):  # type: ignore[no-untyped-def]
    """Write a pointer to a vector along one unobserved axis of the clique."""
    free = 0
    for a in range(variables.size):
        if evidence[variables[a]] < 0:
            frame[at + 1 + free] = 1 if a == axis else 0
            free += 1
    frame[at] = base


@njit(cache=True, nogil=True)
def propagate(program, data, evidence, likelihoods, wanted, out):  # type: ignore[no-untyped-def]
    """Turn the prior marginals in `out` into posterior ones; return log P(evidence), NaN if it is 0 or underflowed.

    `evidence[v]` is the observed code of v or -1; `evidence[V + v]` is where its likelihood starts, or -1. A non-empty
    `wanted` flags the cliques to visit on the way down; marginals that are read off elsewhere are left unfinished.
    """
    scalars = _section(program, _SCALARS)
    parent = _section(program, _PARENT)
    axis_start = _section(program, _AXIS_START)
    clique_at = _section(program, _CLIQUE_AT)
    separator_size = _section(program, _SEPARATOR_SIZE)
    separator_prior = _section(program, _SEPARATOR_PRIOR)
    separator_at = _section(program, _SEPARATOR_AT)
    child_start = _section(program, _CHILD_START)
    children = _section(program, _CHILDREN)
    link = _section(program, _LINK)
    link_strides = _section(program, _LINK_STRIDES)
    top = _section(program, _TOP)
    level_start = _section(program, _LEVEL_START)
    axis_variable = _section(program, _AXIS_VARIABLE)
    axis_size = _section(program, _AXIS_SIZE)
    axis_stride = _section(program, _AXIS_STRIDE)
    axis_up = _section(program, _AXIS_UP)
    axis_marginal = _section(program, _AXIS_MARGINAL)
    readoff_start = _section(program, _READOFF_START)
    readoff = _section(program, _READOFF)

    cliques = parent.size
    count = top.size
    levels = level_start[count]
    messages = scalars[_MESSAGES]
    axes = scalars[_AXES]
    step = axes + 1
    flags = np.zeros(2 * cliques, dtype=np.bool_)
    touched = flags[:cliques]  # evidence lies in the clique or below it
    changed = flags[cliques:]  # the clique was visited on the way down
    for v in range(count):
        if evidence[v] >= level_start[v + 1] - level_start[v]:
            return np.nan  # no such level: let the numpy path refuse it
        if evidence[v] >= 0 or evidence[count + v] >= 0:
            i = top[v]
            while i >= 0 and not touched[i]:
                touched[i] = True
                i = parent[i]
    if not touched[0]:
        return 0.0

    # work: ratios on their way up, separators on their way down, marginals, likelihoods.
    down = messages
    marginals = 2 * messages
    soft = marginals + levels
    row_at = soft + likelihoods.size
    peak_at = row_at + scalars[_ROW_CELLS]
    least_at = peak_at + cliques
    below_at = least_at + cliques
    buffer = np.empty(below_at + cliques)
    work, row, peak = buffer[:row_at], buffer[row_at:peak_at], buffer[peak_at:least_at]
    least = buffer[least_at:below_at]  # the smallest positive entry of a message on its way up
    below = buffer[below_at:]  # log P of the evidence in a clique or below it
    frame = np.empty(1 + 3 * axes + scalars[_POINTERS] * step, dtype=np.int64)
    log_evidence = 0.0
    log_scale = 0.0  # of the likelihoods, which are used with a peak of 1
    log_lost = -np.inf  # the largest log P of the evidence below a product that was lost
    for v in range(count):
        start = evidence[count + v]
        if start >= 0:
            length = level_start[v + 1] - level_start[v]
            top_weight = 0.0
            for j in range(length):
                top_weight = max(top_weight, likelihoods[start + j])
            log_scale += np.log(top_weight)
            for j in range(length):
                work[soft + start + j] = likelihoods[start + j] / top_weight

    for visit in range(2 * cliques):
        rising = visit < cliques
        i = cliques - 1 - visit if rising else visit - cliques
        first, last = axis_start[i], axis_start[i + 1]
        variables = axis_variable[first:last]
        size = separator_size[i]
        prior = separator_prior[i]
        lifted = separator_at[i]
        lowered = down + separator_at[i]
        if rising:
            if not touched[i]:
                continue
        else:
            if wanted.size > 0 and not wanted[i]:
                continue
            if i == 0:
                work[lowered] = 1.0 / peak[0]
            else:
                if not (touched[i] or changed[parent[i]]):
                    continue
                for h in range(readoff_start[i], readoff_start[i + 1], 3):
                    target, stride, length = readoff[h], readoff[h + 1], readoff[h + 2]
                    for j in range(length):
                        out[target + j] = 0.0
                    for s in range(size):
                        out[target + (s // stride) % length] += work[lowered + s]
                news = touched[i]
                for s in range(size):
                    if work[lowered + s] > 0.0:
                        ratio = work[lowered + s] / data[prior + s]
                        if touched[i]:
                            ratio /= work[lifted + s] * peak[i]
                        elif abs(ratio - 1.0) > UNCHANGED:
                            news = True
                        work[lowered + s] = ratio
                    elif data[prior + s] > 0.0:
                        news = True
                if not news:
                    continue
            changed[i] = True

        free = _aim(
            frame, axes, clique_at[i], variables, axis_size[first:last], axis_stride[first:last], evidence
        )
        at = 1 + 2 * axes
        factors = 0
        floor = data[scalars[_LEAST] + i]  # no positive product of this sweep is smaller
        log_below = 0.0
        for c in range(child_start[i], child_start[i + 1]):
            child = children[c]
            if touched[child]:
                _point(frame, at, separator_at[child], variables, link_strides[link[child] :], evidence)
                floor *= least[child]
                log_below += below[child]
                at += step
                factors += 1
        for a in range(last - first):
            v = variables[a]
            if evidence[count + v] >= 0 and top[v] == i:
                if evidence[v] >= 0:
                    _point_axis(frame, at, soft + evidence[count + v] + evidence[v], variables, -1, evidence)
                else:
                    _point_axis(frame, at, soft + evidence[count + v], variables, a, evidence)
                smallest = 1.0
                for j in range(axis_size[first + a]):
                    if likelihoods[evidence[count + v] + j] > 0.0:
                        smallest = min(smallest, work[soft + evidence[count + v] + j])
                floor *= smallest
                at += step
                factors += 1
        if rising:
            if not floor > TINY:
                log_lost = max(log_lost, log_below)
            for s in range(size):
                work[lifted + s] = 0.0
            _point(frame, at, lifted, variables, axis_up[first:last], evidence)
            _sweep(data, work, frame, axes, free, factors, 1, row)
            peak[i] = 0.0
            least[i] = np.inf
            for s in range(size):
                if work[lifted + s] < TINY:
                    work[lifted + s] = 0.0
                else:
                    work[lifted + s] /= data[prior + s]
                    peak[i] = max(peak[i], work[lifted + s])
                    least[i] = min(least[i], work[lifted + s])
            if not peak[i] > 0.0:
                return np.nan
            least[i] /= peak[i]
            below[i] = log_below + np.log(peak[i])
            for s in range(size):
                work[lifted + s] /= peak[i]
            if i == 0:
                if below[0] - log_lost < UNLIKELY:
                    return np.nan
                log_evidence = below[0] + log_scale
            continue

        _point(frame, at, lowered, variables, axis_up[first:last], evidence)
        at += step
        factors += 1
        sums = 0
        for c in range(child_start[i], child_start[i + 1]):
            child = children[c]
            if wanted.size > 0 and not wanted[child]:
                continue
            for s in range(separator_size[child]):
                work[down + separator_at[child] + s] = 0.0
            _point(frame, at, down + separator_at[child], variables, link_strides[link[child] :], evidence)
            at += step
            sums += 1
        for a in range(last - first):
            target = axis_marginal[first + a]
            if target >= 0 and evidence[variables[a]] < 0:
                for j in range(axis_size[first + a]):
                    work[marginals + target + j] = 0.0
                _point_axis(frame, at, marginals + target, variables, a, evidence)
                at += step
                sums += 1
        if sums > 0:
            _sweep(data, work, frame, axes, free, factors, sums, row)
        for a in range(last - first):
            target = axis_marginal[first + a]
            if target >= 0 and evidence[variables[a]] < 0:
                for j in range(axis_size[first + a]):
                    out[target + j] = work[marginals + target + j]

    for v in range(count):
        if evidence[v] >= 0:
            for j in range(level_start[v], level_start[v + 1]):
                out[j] = 1.0 if j - level_start[v] == evidence[v] else 0.0
    return log_evidence


@njit(cache=True, nogil=True)
def propagate_rows(program, data, prior, evidence, likelihoods, wanted, out, log_evidence):  # type: ignore[no-untyped-def]
    """`propagate` for every row of `evidence`."""
    for r in range(evidence.shape[0]):
        out[r] = prior
        log_evidence[r] = propagate(program, data, evidence[r], likelihoods, wanted, out[r])
