"""Exact bounds: branch and bound, and HiGHS beside it in a thread where its program is small.

The optimum sits at a vertex of every conditional, because E[1_e·(f − μ)] is linear in each of them. So a conditional
that backward induction chose differently in different contexts may be replaced by each of its vertices in turn, and
the least of the bounds of all parts is a bound. Parts whose bound meets the best value found are closed; the part
with the lowest bound is split next.

The two are good at different questions: branching where few conditionals are in conflict, however large the graph is;
the program where many are and the graph is narrow. Each tells the other what it has found. Of the 60 questions each on
Child and on Alarm of `benchmarks/intervals.py` they close 57 and 49 to 1e-4 within 10 s of two processors.
"""

from __future__ import annotations

import heapq
import threading
import time
from collections.abc import Sequence
from itertools import chain, count
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from discreet.compute.bounds.conflict import Conflicts, find_conflicts
from discreet.compute.bounds.inner import Elimination, evaluate, improve
from discreet.compute.bounds.outer import Induction, Tape, find_root
from discreet.compute.bounds.problem import ConditionalSets, Floats, list_vertices
from discreet.values.errors import MissingExtra, TooLarge

if TYPE_CHECKING:
    from discreet.compute.bounds.milp import Solver

POLL = 0.05
"""Seconds after which the two tell each other what they have found."""

NEAR = 0.95
"""HiGHS proves that nothing is better by this part of the precision: the whole would leave nothing for rounding."""

ROUNDING = 1e-9
"""How far below 0 a bound of HiGHS may be and still count as 0; costs are of the size of f's range."""

BATCH, CELLS = 400, 2**22
"""How many parts are bounded at once, and with how many cells: arrays that are worth a call of numpy, and that fit."""

Part = tuple[int, ...]
"""The numbers of the vertices that conditionals are fixed to, in a list of all that were ever looked at."""


class Search:
    """A branching that is narrowed again and again, from where it was left; HiGHS joins in from the second time on."""

    def __init__(self, branching: Branching) -> None:
        self._branching = branching
        self._runs = 0

    @property
    def bracket(self) -> tuple[float, float]:
        """What the least E[f | e] lies between."""
        return self._branching.lower, self._branching.upper

    @property
    def done(self) -> bool:
        """Whether nothing is left to do: the ends have met, or a conditional has too many vertices to list."""
        return self._branching.done

    def run(self, seconds: float) -> None:
        """Narrow the bracket for so long, or until its ends meet."""
        deadline = time.monotonic() + seconds
        self._runs += 1
        if self._runs == 1:
            self._branching.run(seconds)
        elif not self.done:
            self._join(deadline)

    def _join(self, deadline: float) -> None:
        """Branch on, with HiGHS beside."""
        branching = self._branching
        with Programme(branching, deadline) as programme:
            while not branching.done and time.monotonic() < deadline:
                branching.run(min(POLL, deadline - time.monotonic()))
                branching.learn(programme.lower, programme.upper)
                programme.upper = min(programme.upper, branching.upper)
        branching.learn(programme.lower, programme.upper)  # what it had when it was stopped


class Programme:
    """HiGHS on the same question, in a thread of its own: it works outside of Python, so both get ahead."""

    def __init__(self, branching: Branching, deadline: float) -> None:
        self.lower = -np.inf
        self.upper = branching.upper
        self._elimination = branching.elimination
        self._function = branching.function
        self._precision = branching.precision
        self._deadline = deadline
        self._solver: Solver | None = None
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Programme:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        while self._thread.is_alive():  # it may have begun another run meanwhile
            if self._solver is not None:
                self._solver.stop()
            self._thread.join(POLL)

    def _run(self) -> None:
        from discreet.compute.bounds.milp import Solver

        problem = self._elimination.problem
        _, known, _ = evaluate(
            self._elimination, self._function[None], [local.sets.centre for local in problem.locals]
        )
        try:
            solver = self._solver = Solver(problem, float(known[0]))
        except (TooLarge, MissingExtra):
            return
        while not self._stopped.is_set() and time.monotonic() < self._deadline:
            level = self.upper - NEAR * self._precision
            found = solver.minimise(
                self._function, level, self._precision / 4, self._deadline - time.monotonic()
            )
            if found.bound >= -ROUNDING * float(self._function.max() - self._function.min()):
                self.lower = level
                return
            self.lower = max(self.lower, divide(level, found.bound * solver.likely, solver.model.least))
            if found.conditionals is None:
                return
            better = float(improve(self._elimination, self._function[None], found.conditionals)[0])
            if not better < level:
                return  # out of time before the bound came up to 0
            self.upper = min(self.upper, better)


def divide(level: float, bound: float, least: float) -> float:
    """What E[f | e] is not below, if E[1_e·(f − μ)] is not below a bound b < 0 and P(e) not below `least`.

    E[f | e] − μ = E[1_e·(f − μ)]/P(e) ≥ b/P(e) ≥ b/least.
    """
    return level + bound / least if least > 0 else -np.inf


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
        self.elimination = elimination
        self.function = function
        self.precision = precision * float(function.max() - function.min())
        """How far apart the ends may lie in the end."""
        self._induction = induction
        self._sets = [local.sets for local in induction.problem.locals]
        self._vertices: list[Floats] = []
        self._homes: list[tuple[int, int]] = []  # of each vertex: the node, and the number of its conditional
        self._listed: dict[tuple[int, int], range] = {}
        self._ticket = count()
        self._batch = max(1, min(BATCH, CELLS // induction.cells))
        self._floor = np.inf  # the least bound of the parts that were closed
        self._open: list[tuple[float, int, Part, range]] = []
        self._begun = self._stuck = False

    @property
    def done(self) -> bool:
        """Whether the two bounds have met, or nothing is left to split, or nothing can be."""
        met = self.upper - self.lower <= self.precision
        return met or self._stuck or (self._begun and not self._open)

    def run(self, seconds: float) -> None:
        """Split parts until the bounds meet or the time is over."""
        deadline = time.monotonic() + seconds
        try:
            while not self.done and time.monotonic() < deadline:
                self._assess(self._take())
        except TooLarge:
            # A conditional with too many vertices to list: what was being split is lost, and bounds hold.
            self._stuck = True

    def _take(self) -> list[tuple[Part, float]]:
        """What the parts with the lowest bounds are split into, each with the bound that it inherits."""
        if not self._begun:
            self._begun = True
            return [((), self.lower)]
        fresh: list[tuple[Part, float]] = []
        while self._open and len(fresh) < self._batch:
            bound, _, part, cuts = heapq.heappop(self._open)
            fresh += [((*part, cut), bound) for cut in cuts]
        return fresh

    def learn(self, lower: float, upper: float) -> None:
        """Take over better bounds that were found elsewhere."""
        self.upper = min(self.upper, upper)
        self.lower = min(max(self.lower, lower), self.upper)
        if (
            self._begun and not self._stuck
        ):  # before the first part nothing is open, and nothing is proved by that
            self._close()

    def _assess(self, parts: Sequence[tuple[Part, float]]) -> None:
        """Close each part, or bound it and queue it; the bound that it inherits holds too.

        Most can be closed, and that is seen at once: V is not below 0 at the level below which a part is of interest.
        """
        limit = np.full(len(parts), self.upper - self.precision)
        look = self._look([part for part, _ in parts])
        values, _ = look.descend(limit)
        left = [found for found, value in zip(parts, values, strict=True) if value < 0]
        if 2 * len(left) < len(parts):
            self._floor = min(self._floor, float(limit[0]))
            look, parts, limit = self._look([part for part, _ in left]), left, limit[: len(left)]
        if parts:
            self._bound(look, parts, limit)
        self._close()

    def _bound(self, look: Look, parts: Sequence[tuple[Part, float]], start: Floats) -> None:
        """Bound each part and queue it with the vertices that it is split by."""
        current = start.copy()

        def descend(level: Floats, which: npt.NDArray[np.intp]) -> tuple[Floats, Floats]:
            current[which] = level  # all parts are recomputed, for the tape must tell of all of them
            values, weights = look.descend(current)
            return values[which], weights[which]

        bounds = np.maximum(find_root(descend, look.functions, start), [bound for _, bound in parts])
        conflicts = look.find_conflicts()
        values, _, _ = evaluate(self.elimination, self.function[None], conflicts.conditionals)
        best = int(np.argmin(np.nan_to_num(values, nan=np.inf)))
        if values[best] < self.upper:
            self._descend([found[best : best + 1].copy() for found in conflicts.conditionals])
        limit = self.upper - self.precision
        for bound, (part, _), cuts in zip(
            bounds.tolist(), parts, self._split(conflicts, [part for part, _ in parts]), strict=True
        ):
            if cuts and bound < limit:
                heapq.heappush(self._open, (bound, next(self._ticket), part, cuts))
            else:
                self._floor = min(self._floor, bound)

    def _descend(self, conditionals: Sequence[Floats]) -> None:
        reached = improve(self.elimination, self.function[None], conditionals)[0]
        self.upper = min(self.upper, float(reached))

    def _close(self) -> None:
        while self._open and self._open[0][0] >= self.upper - self.precision:
            self._floor = min(self._floor, heapq.heappop(self._open)[0])
        least = min([self._floor, *(entry[0] for entry in self._open[:1])])
        self.lower = min(max(self.lower, least), self.upper)

    def _look(self, parts: Sequence[Part]) -> Look:
        return Look(
            self._induction, self._restrict(parts), np.repeat(self.function[None], len(parts), axis=0)
        )

    def _restrict(self, parts: Sequence[Part]) -> list[ConditionalSets]:
        """The sets of all parts, along the batch axis: those that are cut in some part, and the others as they are."""
        cuts, rows = _flatten(parts)
        homes = np.array(self._homes, dtype=np.intp).reshape(-1, 2)[cuts]
        found = list(self._sets)
        for node in np.unique(homes[:, 0]):
            here = homes[:, 0] == node
            vertices = np.array([self._vertices[cut] for cut in cuts[here]])
            ends = [np.repeat(end, len(parts), axis=0) for end in (found[node].lower, found[node].upper)]
            for end in ends:
                end.reshape(len(parts), -1, end.shape[-1])[rows[here], homes[here, 1]] = vertices
            found[node] = ConditionalSets(*ends)
        return found

    def _split(self, conflicts: Conflicts, parts: Sequence[Part]) -> list[range]:
        """For each part the vertices of the conditional whose conflict is worth most; of the widest left if none is."""
        worth = np.concatenate(conflicts.worth, axis=1)
        starts = np.cumsum([0, *(found.shape[1] for found in conflicts.worth)])
        cuts, rows = _flatten(parts)
        homes = np.array(self._homes, dtype=np.intp).reshape(-1, 2)[cuts]
        worth[rows, starts[homes[:, 0]] + homes[:, 1]] = 0.0  # what is fixed already
        best = worth.argmax(axis=1)
        nodes = np.searchsorted(starts, best, side="right") - 1
        found = []
        for k, part in enumerate(parts):
            if worth[k, best[k]] > 0:
                found.append(self._cut(int(nodes[k]), int(best[k] - starts[nodes[k]])))
                continue
            fixed = {self._homes[cut] for cut in part}
            wide = [
                (float(room), i, number)
                for i, sets in enumerate(self._sets)
                for number, room in enumerate(sets.room.max(axis=-1).ravel())
                if room > 0 and (i, number) not in fixed
            ]
            found.append(self._cut(*max(wide)[1:]) if wide else range(0))
        return found

    def _cut(self, node: int, number: int) -> range:
        """The vertices of a conditional, by their numbers; listed when first asked for."""
        if (node, number) not in self._listed:
            sets = self._sets[node]
            vertices = list_vertices(
                *(end.reshape(-1, end.shape[-1])[number] for end in (sets.lower, sets.upper))
            )
            first = len(self._vertices)
            self._vertices += list(vertices)
            self._homes += [(node, number)] * len(vertices)
            self._listed[node, number] = range(first, len(self._vertices))
        return self._listed[node, number]


def _flatten(parts: Sequence[Part]) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """All cuts of all parts, one after the other, and which part each is of."""
    lengths = [len(part) for part in parts]
    cuts = np.fromiter(chain.from_iterable(parts), dtype=np.intp, count=sum(lengths))
    return cuts, np.repeat(np.arange(len(parts)), lengths)


class Look:
    """Backward induction over several parts at once, remembered so that it can tell where it cheated."""

    def __init__(self, induction: Induction, sets: list[ConditionalSets], functions: Floats) -> None:
        self.functions = functions
        self._induction = induction
        self._sets = sets
        self._spread = induction.spread(sets)
        self._tape: Tape = {}
        self._messages = induction.listen(sets, self._spread, self._tape)

    def descend(self, level: Floats) -> tuple[Floats, Floats]:
        """V and B of every part at its level μ."""
        return self._induction.descend(self.functions, level, self._messages, self._spread, self._tape)

    def find_conflicts(self) -> Conflicts:
        """Which conditionals were chosen differently in different contexts at the last level."""
        return find_conflicts(self._induction, self._sets, self._spread, self._messages, self._tape)
