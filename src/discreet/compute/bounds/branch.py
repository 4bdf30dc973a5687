"""Branch and bound: rows that backward induction chose differently in different contexts are split, vertex by vertex.

The optimum sits at a vertex of every row, because E[1_e·(f − μ)] is linear in each of them. So a row in
conflict may be replaced by each of its vertices in turn, and the least of the bounds of all parts is a bound.
Parts whose bound meets the best value found are closed; the part with the lowest bound is split next.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Sequence
from itertools import count

import numpy as np
import numpy.typing as npt

from discreet.compute.bounds.conflict import Conflicts, find_conflicts
from discreet.compute.bounds.inner import evaluate, improve
from discreet.compute.bounds.intervals import Floats, RowSets, list_vertices
from discreet.compute.bounds.multilinear import Elimination
from discreet.compute.bounds.outer import Induction, Tape, find_root

BATCH = 24
"""How many parts are split at once; numpy then works on arrays long enough to be worth a call."""

Cut = tuple[int, int, Floats]
"""A node, one of its rows, and the vertex that the row is fixed to."""

Part = tuple[Cut, ...]


class Branching:
    """A search for the least value of one function; it may be continued as often as there is time."""

    def __init__(
        self,
        induction: Induction,
        elimination: Elimination,
        function: Floats,
        lower: float,
        upper: float,
        precision: float,
    ) -> None:
        self.lower = lower
        self.upper = upper
        self.parts = 0
        self._induction = induction
        self._elimination = elimination
        self._function = function
        self._rows = [local.rows for local in induction.problem.locals]
        self._precision = precision * float(function.max() - function.min())
        self._ticket = count()
        self._floor = np.inf  # the least bound of the parts that were closed
        self._open: list[tuple[float, int, Part, list[Cut]]] = []
        self._assess([((), lower)])

    @property
    def done(self) -> bool:
        """Whether the two bounds have met, or nothing is left to split."""
        return not self._open or self.upper - self.lower <= self._precision

    def run(self, seconds: float) -> None:
        """Split parts until the bounds meet or the time is over."""
        deadline = time.monotonic() + seconds
        while not self.done and time.monotonic() < deadline:
            fresh: list[tuple[Part, float]] = []
            while self._open and len(fresh) < BATCH:
                bound, _, part, cuts = heapq.heappop(self._open)
                fresh += [((*part, cut), bound) for cut in cuts]
            self._assess(fresh)

    def learn(self, lower: float, upper: float) -> None:
        """Take over better bounds that were found elsewhere."""
        self.upper = min(self.upper, upper)
        self.lower = min(max(self.lower, lower), self.upper)
        self._close()

    def _assess(self, parts: Sequence[tuple[Part, float]]) -> None:
        """Bound each part and queue it; the bound that it inherits holds too."""
        known = np.array([bound for _, bound in parts])
        found, conflicts = self._bound([part for part, _ in parts], known)
        bounds = np.maximum(found, known)
        self.parts += len(parts)
        values, _, _ = evaluate(self._elimination, self._function[None], list(conflicts.rows))
        best = int(np.argmin(np.nan_to_num(values, nan=np.inf)))
        if values[best] < self.upper:
            self._descend([rows[best : best + 1] for rows in conflicts.rows])
        for k, (part, _) in enumerate(parts):
            cuts = self._split(conflicts, k, part) if bounds[k] < self.upper - self._precision else []
            if cuts:
                heapq.heappush(self._open, (float(bounds[k]), next(self._ticket), part, cuts))
            else:
                self._floor = min(self._floor, float(bounds[k]))
        self._close()

    def _descend(self, rows: list[Floats]) -> None:
        rows = [found.copy() for found in rows]
        self.upper = min(self.upper, float(improve(self._elimination, self._function[None], rows)[0]))

    def _close(self) -> None:
        while self._open and self._open[0][0] >= self.upper - self._precision:
            self._floor = min(self._floor, heapq.heappop(self._open)[0])
        least = min([self._floor, *(entry[0] for entry in self._open[:1])])
        self.lower = min(max(self.lower, least), self.upper)

    def _bound(self, parts: Sequence[Part], start: Floats) -> tuple[Floats, Conflicts]:
        rows = self._restrict(parts)
        spread = self._induction.spread(rows)
        tape: Tape = {}
        messages = self._induction.listen(rows, spread, tape)
        functions = np.repeat(self._function[None], len(parts), axis=0)
        current = start.copy()

        def descend(level: Floats, which: npt.NDArray[np.intp]) -> tuple[Floats, Floats]:
            current[which] = level  # all parts are recomputed, for the tape must tell of all of them
            values, weights = self._induction.descend(functions, current, messages, spread, tape)
            return values[which], weights[which]

        level = find_root(descend, functions, start)
        return level, find_conflicts(self._induction, rows, spread, messages, tape)

    def _restrict(self, parts: Sequence[Part]) -> list[RowSets]:
        changed = {node for part in parts for node, _, _ in part}
        found = []
        for i, rows in enumerate(self._rows):
            if i not in changed:
                found.append(rows)
                continue
            ends = [np.repeat(end, len(parts), axis=0) for end in (rows.lower, rows.upper)]
            for k, part in enumerate(parts):
                for node, row, vertex in part:
                    if node == i:
                        for end in ends:
                            end[k].reshape(-1, end.shape[-1])[row] = vertex
            found.append(RowSets(*ends))
        return found

    def _split(self, conflicts: Conflicts, k: int, part: Part) -> list[Cut]:
        """The vertices of the row whose conflict is worth most; of the widest row left if none is worth anything."""
        most = [float(worth[k].max()) for worth in conflicts.worth]
        node = int(np.argmax(most))
        if most[node] > 0:
            row = int(conflicts.worth[node][k].argmax())
            if not any(cut[:2] == (node, row) for cut in part):
                return self._cut(node, row)
        fixed = {cut[:2] for cut in part}
        wide = [
            (float(room), i, row)
            for i, rows in enumerate(self._rows)
            for row, room in enumerate(rows.room.max(axis=-1).ravel())
            if room > 0 and (i, row) not in fixed
        ]
        return self._cut(*max(wide)[1:]) if wide else []

    def _cut(self, node: int, row: int) -> list[Cut]:
        rows = self._rows[node]
        ends = [end.reshape(-1, end.shape[-1])[row] for end in (rows.lower, rows.upper)]
        return [(node, row, vertex) for vertex in list_vertices(*ends)]
