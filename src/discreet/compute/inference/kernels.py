"""The compiled path: posterior marginals on a flattened junction tree, in two sweeps of its cliques.

`data` holds the tree calibrated without evidence, so a message is a ratio to a prior that is already there: a
subtree without evidence sends nothing up, and one whose separator keeps its prior is left alone on the way down. That
prunes barren and d-separated nodes without looking for them. An observed axis is not multiplied by zeros; it is not
swept at all.

Names such as `parent` are offsets: `program[parent + i]` is the parent of clique i. `junction.Section` lists them all.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from discreet.compute.inference.junction import Scalar, Section
from discreet.compute.inference.propagation import TINY, UNLIKELY
from discreet.compute.inference.sweep import aim, point, point_axis, sweep

UNCHANGED = 1e-14
"""A separator whose posterior differs from its prior by less, relatively, carries no news."""


@njit(cache=True, nogil=True)
def propagate(program, data, evidence, likelihoods, out):  # type: ignore[no-untyped-def]
    """Turn the prior marginals in `out` into posterior ones; return log P(evidence), NaN if it is 0 or underflowed.

    `evidence[v]` is the observed code of v or -1; `evidence[V + v]` is where its likelihood starts, or -1.
    """
    scalars = program[Section.SCALARS]
    parent = program[Section.PARENT]
    axis_start = program[Section.AXIS_START]
    clique_at = program[Section.CLIQUE_AT]
    separator_size = program[Section.SEPARATOR_SIZE]
    separator_prior = program[Section.SEPARATOR_PRIOR]
    separator_at = program[Section.SEPARATOR_AT]
    child_start = program[Section.CHILD_START]
    children = program[Section.CHILDREN]
    link = program[Section.LINK]
    link_strides = program[Section.LINK_STRIDES]
    top = program[Section.TOP]
    level_start = program[Section.LEVEL_START]
    axis_variable = program[Section.AXIS_VARIABLE]
    axis_size = program[Section.AXIS_SIZE]
    axis_stride = program[Section.AXIS_STRIDE]
    axis_up = program[Section.AXIS_UP]
    axis_marginal = program[Section.AXIS_MARGINAL]
    readoff_start = program[Section.READOFF_START]
    readoff = program[Section.READOFF]

    cliques = axis_start - parent  # sections follow each other
    count = level_start - top
    levels = program[level_start + count]
    messages = program[scalars + Scalar.MESSAGES]
    axes = program[scalars + Scalar.AXES]
    step = axes + 1
    touched = np.zeros(cliques, dtype=np.bool_)  # evidence lies in the clique or below it
    changed = np.zeros(cliques, dtype=np.bool_)  # the clique was visited on the way down
    for v in range(count):
        if evidence[v] >= program[level_start + v + 1] - program[level_start + v]:
            return np.nan  # no such level: let the numpy path refuse it
        if evidence[v] >= 0 or evidence[count + v] >= 0:
            i = program[top + v]
            while i >= 0 and not touched[i]:
                touched[i] = True
                i = program[parent + i]
    if not touched[0]:
        return 0.0

    # work: ratios on their way up, separators on their way down, marginals, likelihoods, three numbers a clique.
    down = messages
    marginals = 2 * messages
    soft = marginals + levels
    peak = soft + likelihoods.size  # per clique: the largest entry of its message on its way up
    least = peak + cliques  # the smallest positive one
    below = least + cliques  # log P of the evidence in the clique or below it
    work = np.empty(below + cliques)
    strip = np.empty(program[scalars + Scalar.STRIP_CELLS])
    frame = np.empty(1 + 3 * axes + program[scalars + Scalar.POINTERS] * step, dtype=np.int64)
    log_evidence = 0.0
    log_scale = 0.0  # of the likelihoods, which are used with a peak of 1
    log_lost = -np.inf  # the largest log P of the evidence below a product that was lost
    for v in range(count):
        start = evidence[count + v]
        if start >= 0:
            length = program[level_start + v + 1] - program[level_start + v]
            top_weight = 0.0
            for j in range(length):
                top_weight = max(top_weight, likelihoods[start + j])
            log_scale += np.log(top_weight)
            for j in range(length):
                work[soft + start + j] = likelihoods[start + j] / top_weight

    for visit in range(2 * cliques):
        rising = visit < cliques
        i = cliques - 1 - visit if rising else visit - cliques
        first, last = program[axis_start + i], program[axis_start + i + 1]
        variables = axis_variable + first
        width = last - first
        size = program[separator_size + i]
        prior = program[separator_prior + i]
        lifted = program[separator_at + i]
        lowered = down + program[separator_at + i]
        if rising:
            if not touched[i]:
                continue
        else:
            if i == 0:
                work[lowered] = 1.0 / work[peak + 0]
            else:
                if not (touched[i] or changed[program[parent + i]]):
                    continue
                for h in range(program[readoff_start + i], program[readoff_start + i + 1], 3):
                    target, stride, length = (
                        program[readoff + h],
                        program[readoff + h + 1],
                        program[readoff + h + 2],
                    )
                    for j in range(length):
                        out[target + j] = 0.0
                    for s in range(size):
                        out[target + (s // stride) % length] += work[lowered + s]
                news = touched[i]
                for s in range(size):
                    if work[lowered + s] > 0.0:
                        ratio = work[lowered + s] / data[prior + s]
                        if touched[i]:
                            ratio /= work[lifted + s] * work[peak + i]
                        elif abs(ratio - 1.0) > UNCHANGED:
                            news = True
                        work[lowered + s] = ratio
                    elif data[prior + s] > 0.0:
                        news = True
                if not news:
                    continue
            changed[i] = True

        free = aim(
            frame,
            axes,
            program[clique_at + i],
            program,
            variables,
            axis_size + first,
            axis_stride + first,
            width,
            evidence,
        )
        at = 1 + 2 * axes
        factors = np.int64(0)  # not the number 0, for which numba would compile `sweep` once more
        floor = data[program[scalars + Scalar.LEAST] + i]  # no positive product of this sweep is smaller
        log_below = 0.0
        for c in range(program[child_start + i], program[child_start + i + 1]):
            child = program[children + c]
            if touched[child]:
                strides = link_strides + program[link + child]
                point(frame, at, program[separator_at + child], program, variables, strides, width, evidence)
                floor *= work[least + child]
                log_below += work[below + child]
                at += step
                factors += 1
        for a in range(width):
            v = program[variables + a]
            if evidence[count + v] >= 0 and program[top + v] == i:
                if evidence[v] >= 0:
                    point_axis(
                        frame,
                        at,
                        soft + evidence[count + v] + evidence[v],
                        program,
                        variables,
                        np.int64(-1),
                        width,
                        evidence,
                    )
                else:
                    point_axis(frame, at, soft + evidence[count + v], program, variables, a, width, evidence)
                smallest = 1.0
                for j in range(program[axis_size + first + a]):
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
            point(frame, at, lifted, program, variables, axis_up + first, width, evidence)
            sweep(data, work, frame, axes, free, factors, np.int64(1), strip)
            work[peak + i] = 0.0
            work[least + i] = np.inf
            for s in range(size):
                if work[lifted + s] < TINY:
                    work[lifted + s] = 0.0
                else:
                    work[lifted + s] /= data[prior + s]
                    work[peak + i] = max(work[peak + i], work[lifted + s])
                    work[least + i] = min(work[least + i], work[lifted + s])
            if not work[peak + i] > 0.0:
                return np.nan
            work[least + i] /= work[peak + i]
            work[below + i] = log_below + np.log(work[peak + i])
            for s in range(size):
                work[lifted + s] /= work[peak + i]
            if i == 0:
                if work[below + 0] - log_lost < UNLIKELY:
                    return np.nan
                log_evidence = work[below + 0] + log_scale
            continue

        point(frame, at, lowered, program, variables, axis_up + first, width, evidence)
        at += step
        factors += 1
        sums = np.int64(0)
        for c in range(program[child_start + i], program[child_start + i + 1]):
            child = program[children + c]
            for s in range(program[separator_size + child]):
                work[down + program[separator_at + child] + s] = 0.0
            strides = link_strides + program[link + child]
            point(
                frame, at, down + program[separator_at + child], program, variables, strides, width, evidence
            )
            at += step
            sums += 1
        for a in range(width):
            target = program[axis_marginal + first + a]
            if target >= 0 and evidence[program[variables + a]] < 0:
                for j in range(program[axis_size + first + a]):
                    work[marginals + target + j] = 0.0
                point_axis(frame, at, marginals + target, program, variables, a, width, evidence)
                at += step
                sums += 1
        if sums > 0:
            sweep(data, work, frame, axes, free, factors, sums, strip)
        for a in range(width):
            target = program[axis_marginal + first + a]
            if target >= 0 and evidence[program[variables + a]] < 0:
                for j in range(program[axis_size + first + a]):
                    out[target + j] = work[marginals + target + j]

    for v in range(count):
        if evidence[v] >= 0:
            for j in range(program[level_start + v], program[level_start + v + 1]):
                out[j] = 1.0 if j - program[level_start + v] == evidence[v] else 0.0
    return log_evidence


@njit(cache=True, nogil=True)
def propagate_rows(program, data, prior, evidence, likelihoods, out, log_evidence):  # type: ignore[no-untyped-def]
    """`propagate` for every row of `evidence`."""
    for r in range(evidence.shape[0]):
        # One by one: an assignment of the whole would compile numba's formatting of texts, for its error.
        for i in range(prior.size):
            out[r, i] = prior[i]
        log_evidence[r] = propagate(program, data, evidence[r], likelihoods, out[r])
