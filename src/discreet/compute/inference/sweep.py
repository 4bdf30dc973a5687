"""One pass over a clique: multiply its cells by some tables, add them up into others; written for numba.

A *frame* is a flat array of integers that says where everything is: the clique's offset in `data`, `axes` sizes, `axes`
strides, then one pointer for each table (its offset in `work` and its stride along each axis), last an odometer. Only
unobserved axes are in it. Everything is an offset into one array, because slices would cost more than small cliques do.
"""

from __future__ import annotations

from numba import njit

from discreet.compute.inference.junction import STRIP

FAST = {"reassoc", "contract", "arcp", "nsz"}  # let sums be vectorised; NaN and infinity keep their meaning


@njit(cache=True, nogil=True)
def aim(frame, axes, base, program, variables, sizes, strides, count, evidence):  # type: ignore[no-untyped-def]
    """Set `frame` on the unobserved part of a clique of `count` axes; returns how many of them are unobserved.

    `variables`, `sizes` and `strides` are offsets in `program`.
    """
    free = 0
    for a in range(count):
        code = evidence[program[variables + a]]
        if code >= 0:
            base += code * program[strides + a]
        else:
            frame[1 + free] = program[sizes + a]
            frame[1 + axes + free] = program[strides + a]
            free += 1
    frame[0] = base
    return free


@njit(cache=True, nogil=True)
def point(frame, at, base, program, variables, strides, count, evidence):  # type: ignore[no-untyped-def]
    """Write a pointer to a table at `base` with these strides along the clique's axes."""
    free = at + 1
    for a in range(count):
        code = evidence[program[variables + a]]
        if code >= 0:
            base += code * program[strides + a]
        else:
            frame[free] = program[strides + a]
            free += 1
    frame[at] = base


@njit(cache=True, nogil=True)
def point_axis(frame, at, base, program, variables, axis, count, evidence):  # type: ignore[no-untyped-def]
    """Write a pointer to a vector along one unobserved axis of the clique, or to a single number if `axis` is -1."""
    free = at + 1
    for a in range(count):
        if evidence[program[variables + a]] < 0:
            frame[free] = 1 if a == axis else 0
            free += 1
    frame[at] = base


@njit(cache=True, nogil=True, fastmath=FAST)
def _merge_axes(frame, axes, free, count):  # type: ignore[no-untyped-def]
    """Join neighbouring axes that every pointer walks evenly: longer strips, fewer carries. Returns how many."""
    pointers = 1 + 2 * axes
    last = 0
    for a in range(1, free):
        size = frame[1 + a]
        even = frame[1 + axes + last] == frame[1 + axes + a] * size and frame[1 + last] * size <= STRIP
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


@njit(cache=True, nogil=True, fastmath=FAST)
def sweep(data, work, frame, axes, free, factors, sums, strip):  # type: ignore[no-untyped-def]
    """Multiply the cells of a clique by `factors` tables in `work` and add them up into `sums` others.

    `strip` is a buffer for one strip of cells; only the first `free` axes of the frame count.
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
                strip[j] = data[cell + j]
        else:
            for j in range(inner):
                strip[j] = data[cell + j * hop]
        for p in range(factors):
            at = pointers + p * step
            base = frame[at]
            walk = frame[at + free] if free > 0 else 0
            if walk == 0:
                scale *= work[base]
            elif walk == 1:
                for j in range(inner):
                    strip[j] *= work[base + j]
            else:
                for j in range(inner):
                    strip[j] *= work[base + j * walk]
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
                            total += strip[j]
                        total *= scale
                    work[base] += total
                elif walk == 1:
                    for j in range(inner):
                        work[base + j] += scale * strip[j]
                else:
                    for j in range(inner):
                        work[base + j * walk] += scale * strip[j]
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
