"""The compiled path of one junction tree; importing this module imports numba.

A tree of tiny cliques spends its time on bookkeeping. Below `JOINT_CELLS` it is faster to keep the cells of the joint
distribution that agree with the evidence and to sum the axes out one after the other, each marginal being read off on
the way: about four additions a cell, whatever the number of variables.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
from numba import njit

from discreet.compute.inference.factored import factor_if_worth
from discreet.compute.inference.junction import NO_WEIGHTS, FlatTree, Floats, Ints, JunctionTree
from discreet.compute.inference.kernels import propagate, propagate_rows
from discreet.compute.inference.sweep import FAST

JOINT_CELLS = 512
"""The largest joint; on Asia's 256 cells an answer takes a third of the time of its junction tree."""


@njit(cache=True, nogil=True, fastmath=FAST)
def condition(sizes, joint, evidence, out):  # type: ignore[no-untyped-def]
    """Write the posterior marginals to `out`; return log P(evidence), NaN if it is 0 or a code has no level.

    `joint` is flat, its first variable slowest; `evidence[v]` is the observed code of v or -1.
    """
    kept = np.empty(joint.size, dtype=np.int64)  # offsets of the cells that agree with the evidence
    kept[0] = 0
    cells = 1
    stride = joint.size
    for v in range(sizes.size):
        size = sizes[v]
        code = evidence[v]
        stride //= size
        if code >= size:
            return np.nan
        if code >= 0:
            for c in range(cells):
                kept[c] += code * stride
        else:
            for j in range(size - 1, -1, -1):
                for c in range(cells):
                    kept[j * cells + c] = kept[c] + j * stride
            cells *= size
    part = np.empty(cells)
    total = 0.0
    for c in range(cells):
        part[c] = joint[kept[c]]
        total += part[c]
    if not total > 0.0:
        return np.nan
    at = out.size
    for v in range(sizes.size - 1, -1, -1):  # the last unobserved variable varies slowest in `part`
        size = sizes[v]
        at -= size
        if evidence[v] >= 0:
            for j in range(size):
                out[at + j] = 0.0
            out[at + evidence[v]] = 1.0
            continue
        cells //= size
        for j in range(size):
            mass = 0.0
            for c in range(cells):
                mass += part[j * cells + c]
            out[at + j] = mass / total
        for j in range(1, size):
            for c in range(cells):
                part[c] += part[j * cells + c]
    return np.log(total)


class Compiled:
    """A flattened tree and the function that answers from it."""

    def __init__(self, junction: JunctionTree, flat: FlatTree, children: Sequence[int]) -> None:
        """`children[k]` is the variable whose conditional the k-th table of the tree is."""
        self.program, self.data, self.prior = flat.program, flat.data, junction.prior
        self.sizes = np.array(junction.sizes)
        self.joint = junction.multiply_out(JOINT_CELLS)
        self.factored = factor_if_worth(junction, children)

    def condition(self, observed: Ints) -> tuple[Floats, float]:
        """All posterior marginals without soft evidence, and log P(evidence) or NaN: the shortest way there is."""
        if self.joint is None:
            return self.answer(observed, NO_WEIGHTS)
        out = np.empty(self.prior.size)
        return out, condition(self.sizes, self.joint, observed, out)

    def answer(self, observed: Ints, weights: Floats) -> tuple[Floats, float]:
        """All posterior marginals, and log P(evidence) or NaN (see `kernels.propagate`)."""
        if self.factored is not None:
            found, log_evidence = self.factored.condition(observed, weights)
            if log_evidence == log_evidence:
                return found, log_evidence
        out = self.prior.copy()
        return out, propagate(self.program, self.data, observed, weights, out)

    def answer_rows(self, observed: Ints, out: Floats, log_evidence: Floats) -> None:
        """Answer every row; on all cores, because the compiled code lets go of the interpreter."""

        def run(part: slice) -> None:
            propagate_rows(
                self.program,
                self.data,
                self.prior,
                observed[part],
                NO_WEIGHTS,
                out[part],
                log_evidence[part],
            )

        workers = os.cpu_count() or 1
        cuts = np.linspace(0, len(observed), 4 * workers + 1).astype(int)
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(run, [slice(a, b) for a, b in pairwise(cuts) if b > a]))
