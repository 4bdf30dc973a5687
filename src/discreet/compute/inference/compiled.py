"""The compiled path of one junction tree; importing this module imports numba."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np

from discreet.compute.inference.joint import JOINT_CELLS, condition
from discreet.compute.inference.junction import JunctionTree
from discreet.compute.inference.kernels import propagate, propagate_rows
from discreet.compute.inference.layout import EVERYWHERE, NO_WEIGHTS, Flags, Floats, Ints, Layout


class Compiled:
    """A flattened tree and the function that answers from it."""

    def __init__(self, junction: JunctionTree, layout: Layout) -> None:
        self.program, self.data, self.prior = layout.program, layout.data, junction.prior
        self.sizes = np.array(junction.sizes)
        self.joint = junction.multiply_out(JOINT_CELLS)
        self._parent = junction.tree.parent
        self._readers = layout.readers
        self._paths: dict[int, Flags] = {}

    def condition(self, observed: Ints) -> tuple[Floats, float]:
        """All posterior marginals without soft evidence, and log P(evidence) or NaN: the shortest way there is."""
        if self.joint is None:
            out = self.prior.copy()
            return out, propagate(self.program, self.data, observed, NO_WEIGHTS, EVERYWHERE, out)
        out = np.empty(self.prior.size)
        return out, condition(self.sizes, self.joint, observed, out)

    def answer(self, observed: Ints, weights: Floats, wanted: Flags) -> tuple[Floats, float]:
        """Posterior marginals of the wanted cliques, and log P(evidence) or NaN (see `kernels.propagate`)."""
        out = self.prior.copy()
        return out, propagate(self.program, self.data, observed, weights, wanted, out)

    def answer_rows(self, observed: Ints, out: Floats, log_evidence: Floats) -> None:
        """Answer every row; on all cores, because the compiled code lets go of the interpreter."""

        def run(part: slice) -> None:
            propagate_rows(
                self.program,
                self.data,
                self.prior,
                observed[part],
                NO_WEIGHTS,
                EVERYWHERE,
                out[part],
                log_evidence[part],
            )

        workers = os.cpu_count() or 1
        cuts = np.linspace(0, len(observed), 4 * workers + 1).astype(int)
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(run, [slice(a, b) for a, b in pairwise(cuts) if b > a]))

    def path_to(self, variable: int) -> Flags:
        """The cliques from the root to the one where a variable's marginal is read off."""
        if variable not in self._paths:
            flags = np.zeros(len(self._parent), dtype=np.bool_)
            i = self._readers[variable]
            while i >= 0:
                flags[i] = True
                i = self._parent[i]
            self._paths[variable] = flags
        return self._paths[variable]
