"""Exact bounds: branch and bound first, then HiGHS where its program is small, then branch and bound again.

The optimum sits at a vertex of every conditional, because E[1_e·(f − μ)] is linear in each of them. So a conditional
that backward induction chose differently in different contexts may be replaced by each of its vertices in turn, and
the least of the bounds of all parts is a bound. Parts whose bound meets the best value found are closed; the part
with the lowest bound is split next.

The two are good at different questions: branching where few conditionals are in conflict, however large the graph is;
the program where many are and the graph is narrow. Closed to 1e-4 in 10 s, of the 60 questions each on Child and on
Alarm of `benchmarks/credal.py`: by branching alone 51 and 47, by HiGHS alone 56 and 39, by both in turn 54 and 48.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Sequence
from itertools import count

import numpy as np
import numpy.typing as npt

from discreet.compute.bounds.conflict import Conflicts, find_conflicts
from discreet.compute.bounds.inner import Elimination, evaluate, improve
from discreet.compute.bounds.outer import Induction, Tape, find_root
from discreet.compute.bounds.problem import ConditionalSets, Floats, list_vertices
from discreet.values.errors import MissingExtra, TooLarge

FIRST, SECOND = 0.2, 0.5
"""The shares of the time after which HiGHS takes over from branching, and for which it may then work."""

ROUNDING = 1e-9
"""How far below 0 a bound of HiGHS may be and still count as 0; costs are of the size of f's range."""

BATCH = 24
"""How many parts are split at once; numpy then works on arrays long enough to be worth a call."""

Cut = tuple[int, int, Floats]
"""A node, the number of one of its conditionals, and the vertex that this is fixed to."""

Part = tuple[Cut, ...]


def search(
    induction: Induction,
    elimination: Elimination,
    function: Floats,
    lower: float,
    upper: float,
    *,
    seconds: float,
    precision: float,
) -> tuple[float, float]:
    """The best bracket of the least E[f | e] that the time allows, given one that is known."""
    began = time.monotonic()
    try:
        branching = Branching(induction, elimination, function, lower, upper, precision)
        branching.run(seconds * FIRST)
        if not branching.done:
            _programme(branching, elimination, function, precision, began + seconds * (FIRST + SECOND))
            branching.run(began + seconds - time.monotonic())
    except TooLarge:  # a conditional with too many vertices to list
        return lower, upper
    return branching.lower, branching.upper


def _programme(
    branching: Branching, elimination: Elimination, function: Floats, precision: float, deadline: float
) -> None:
    from discreet.compute.bounds.milp import Solver

    problem = elimination.problem
    centre = [local.sets.centre for local in problem.locals]
    _, known, _ = evaluate(elimination, function[None], centre)
    try:
        solver = Solver(problem, float(known[0]))
    except (TooLarge, MissingExtra):
        return
    span = float(function.max() - function.min())
    while not branching.done and time.monotonic() < deadline:
        level = branching.upper - precision * span / 2
        found = solver.minimise(function, level, precision * span / 4, deadline - time.monotonic())
        if found.bound >= -ROUNDING * span:
            branching.learn(level, branching.upper)
            return
        if found.conditionals is None:
            return
        better = float(improve(elimination, function[None], found.conditionals)[0])
        if not better < level:
            return  # out of time before the bound came up to 0
        branching.learn(-np.inf, better)


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
        self._induction = induction
        self._elimination = elimination
        self._function = function
        self._sets = [local.sets for local in induction.problem.locals]
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
        values, _, _ = evaluate(self._elimination, self._function[None], conflicts.conditionals)
        best = int(np.argmin(np.nan_to_num(values, nan=np.inf)))
        if values[best] < self.upper:
            self._descend([found[best : best + 1].copy() for found in conflicts.conditionals])
        for k, (part, _) in enumerate(parts):
            cuts = self._split(conflicts, k, part) if bounds[k] < self.upper - self._precision else []
            if cuts:
                heapq.heappush(self._open, (float(bounds[k]), next(self._ticket), part, cuts))
            else:
                self._floor = min(self._floor, float(bounds[k]))
        self._close()

    def _descend(self, conditionals: Sequence[Floats]) -> None:
        reached = improve(self._elimination, self._function[None], conditionals)[0]
        self.upper = min(self.upper, float(reached))

    def _close(self) -> None:
        while self._open and self._open[0][0] >= self.upper - self._precision:
            self._floor = min(self._floor, heapq.heappop(self._open)[0])
        least = min([self._floor, *(entry[0] for entry in self._open[:1])])
        self.lower = min(max(self.lower, least), self.upper)

    def _bound(self, parts: Sequence[Part], start: Floats) -> tuple[Floats, Conflicts]:
        sets = self._restrict(parts)
        spread = self._induction.spread(sets)
        tape: Tape = {}
        messages = self._induction.listen(sets, spread, tape)
        functions = np.repeat(self._function[None], len(parts), axis=0)
        current = start.copy()

        def descend(level: Floats, which: npt.NDArray[np.intp]) -> tuple[Floats, Floats]:
            current[which] = level  # all parts are recomputed, for the tape must tell of all of them
            values, weights = self._induction.descend(functions, current, messages, spread, tape)
            return values[which], weights[which]

        level = find_root(descend, functions, start)
        return level, find_conflicts(self._induction, sets, spread, messages, tape)

    def _restrict(self, parts: Sequence[Part]) -> list[ConditionalSets]:
        changed = {node for part in parts for node, _, _ in part}
        found = []
        for i, sets in enumerate(self._sets):
            if i not in changed:
                found.append(sets)
                continue
            ends = [np.repeat(end, len(parts), axis=0) for end in (sets.lower, sets.upper)]
            for k, part in enumerate(parts):
                for node, number, vertex in part:
                    if node == i:
                        for end in ends:
                            end[k].reshape(-1, end.shape[-1])[number] = vertex
            found.append(ConditionalSets(*ends))
        return found

    def _split(self, conflicts: Conflicts, k: int, part: Part) -> list[Cut]:
        """The vertices of the conditional whose conflict is worth most; of the widest one left if none is."""
        most = [float(worth[k].max()) for worth in conflicts.worth]
        node = int(np.argmax(most))
        fixed = {cut[:2] for cut in part}
        if most[node] > 0:
            number = int(conflicts.worth[node][k].argmax())
            if (node, number) not in fixed:
                return self._cut(node, number)
        wide = [
            (float(room), i, number)
            for i, sets in enumerate(self._sets)
            for number, room in enumerate(sets.room.max(axis=-1).ravel())
            if room > 0 and (i, number) not in fixed
        ]
        return self._cut(*max(wide)[1:]) if wide else []

    def _cut(self, node: int, number: int) -> list[Cut]:
        sets = self._sets[node]
        ends = [end.reshape(-1, end.shape[-1])[number] for end in (sets.lower, sets.upper)]
        return [(node, number, vertex) for vertex in list_vertices(*ends)]
