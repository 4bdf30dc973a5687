"""Exact answers from a junction tree: the one object that queries go through."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Literal

import numpy as np

from discreet.compute.inference.elimination import eliminate, maximise_subset
from discreet.compute.inference.junction import NO_WEIGHTS, Floats, Ints, JunctionTree
from discreet.compute.inference.propagation import Beliefs, marginals, maximise, propagate, propagate_log
from discreet.values.errors import ImpossibleEvidence, QueryError
from discreet.values.graph import DAG
from discreet.values.table import MAX_CELLS, Table, require_cells
from discreet.values.text import list_some

if TYPE_CHECKING:
    from discreet.compute.inference.compiled import Compiled
    from discreet.compute.inference.questions import Questions

Path = Literal["auto", "numpy", "numba"]

PATIENCE = 2.0
"""Seconds that numpy may spend on an engine's queries before the compiled path is loaded: a first look never waits
for a compiler, and whoever asks thousands of times gets one."""


class Marginals(Mapping[str, Floats]):
    """The posterior marginals of all attributes, and the log-probability of the evidence."""

    __slots__ = ("_at", "_flat", "log_evidence")

    def __init__(self, flat: Floats, at: Mapping[str, slice], log_evidence: float) -> None:
        self._flat = flat
        self._at = at
        self.log_evidence = log_evidence

    def __getitem__(self, name: str) -> Floats:
        return self._flat[self._at[name]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._at)

    def __len__(self) -> int:
        return len(self._at)

    def __repr__(self) -> str:
        return f"Marginals({len(self)} attributes, log P(evidence) = {self.log_evidence:.6g})"

    def to_dict(self) -> dict[str, Floats]:
        """A plain dictionary of name to probabilities."""
        flat = self._flat
        return {name: flat[at] for name, at in self._at.items()}


@dataclass(frozen=True, slots=True)
class Remembered:
    """The marginals, of some attributes or all, that were found for the last evidence asked about.

    It is replaced as a whole and never changed, so threads may share it.
    """

    evidence: object
    marginals: Mapping[str, Floats]
    cells: float
    """What single questions about this evidence have cost so far."""


class Engine:
    """Exact inference in the network with this graph and these tables (axes: parents in order, then the child)."""

    def __init__(self, dag: DAG, cpts: Sequence[Table], max_cells: int = MAX_CELLS) -> None:
        self.dag = dag
        self.cpts = tuple(cpts)
        self.max_cells = max_cells
        self.junction = JunctionTree.build(self.cpts, max_cells)
        starts = np.concatenate([[0], np.cumsum(self.junction.sizes)])
        where = {
            name: slice(int(starts[v]), int(starts[v + 1])) for v, name in enumerate(self.junction.names)
        }
        self._at = {name: where[name] for name in dag.nodes}
        self._index = self.junction.index
        self._sizes = dict(zip(self.junction.names, self.junction.sizes, strict=True))
        self._levels = int(starts[-1])
        self._blank = np.full(2 * len(dag), -1, dtype=np.int64)
        self._seconds = 0.0
        self._compiled: Compiled | None = None
        self._questions: Questions | None = None
        self._last: Remembered | None = None

    def posteriors(
        self,
        evidence: Mapping[str, int],
        likelihoods: Mapping[str, Floats] | None = None,
        path: Path = "auto",
    ) -> Marginals:
        """P(X | evidence) of every attribute; `likelihoods` are soft evidence, one weight for each level."""
        compiled = self._compiled
        if compiled is None or path != "auto" or likelihoods:
            return self._posteriors(evidence, likelihoods or {}, path)
        # The straight way, for callers who ask a million times: every microsecond here shows on a small network.
        observed = self._blank.copy()
        index = self._index
        for name, code in evidence.items():
            if code < 0:
                break
            observed[index[name]] = code
        else:
            out, log_evidence = compiled.condition(observed)
            if log_evidence == log_evidence:
                return Marginals(out, self._at, log_evidence)
        return self._posteriors(evidence, {}, "numpy")

    def marginal(
        self, target: str, evidence: Mapping[str, int], likelihoods: Mapping[str, Floats] | None = None
    ) -> Floats:
        """P(target | evidence); what cannot matter is left out, and the last evidence is remembered.

        As soon as questions about the same evidence have cost as much as all its posteriors would, those are made.
        """
        soft = likelihoods or {}
        self._number(evidence, soft)
        if not evidence and not soft and self.junction.calibrated is not None:
            return self.junction.prior[self._at[target]].copy()
        key = (
            frozenset(evidence.items()),
            frozenset(
                (name, np.asarray(values, dtype=np.float64).tobytes()) for name, values in soft.items()
            ),
        )
        last = self._last
        if last is None or last.evidence != key:
            last = Remembered(key, {}, 0.0)
        if target in last.marginals:
            return last.marginals[target].copy()
        if target not in evidence and last.cells <= self.junction.cells:
            found, cells = self._ask(
                [target], evidence, soft, possible=bool(last.marginals), limit=self.junction.cells
            )
            if found is not None:
                self._last = Remembered(key, {**last.marginals, target: found}, last.cells + cells)
                return found.copy()
        self._last = last = Remembered(key, self._posteriors(evidence, soft, "auto"), 0.0)
        return last.marginals[target].copy()

    def posteriors_of_rows(self, evidence: Ints) -> tuple[Floats, Floats]:
        """Posteriors of every attribute for each row of codes (columns in node order, -1 for unobserved).

        Returns one line for each row, the levels of all attributes side by side in node order, and log P(row).
        """
        rows = len(evidence)
        sizes = [self._sizes[name] for name in self.dag.nodes]
        if evidence.shape != (rows, len(sizes)) or ((evidence < -1) | (evidence >= sizes)).any():
            raise QueryError(
                f"evidence of shape {evidence.shape} must be rows of {len(sizes)} codes, "
                "each -1 or below the number of levels"
            )
        order = [self._index[name] for name in self.dag.nodes]
        observed = np.full((rows, 2 * len(self.dag)), -1, dtype=np.int64)
        observed[:, order] = evidence
        out = np.empty((rows, self._levels))
        log_evidence = np.full(rows, np.nan)
        compiled = self._compile()
        if compiled is not None:
            compiled.answer_rows(observed, out, log_evidence)
        for r in np.flatnonzero(np.isnan(log_evidence)):
            codes = {
                name: int(code) for name, code in zip(self.dag.nodes, evidence[r], strict=True) if code >= 0
            }
            try:
                found = self._posteriors(codes, {}, "numpy")
            except ImpossibleEvidence as error:
                refusal = ImpossibleEvidence(f"row {r + 1}: {error}")
                refusal.row = int(r) + 1
                raise refusal from None
            out[r], log_evidence[r] = found._flat, found.log_evidence
        columns = np.concatenate(
            [np.arange(self._at[name].start, self._at[name].stop) for name in self.dag.nodes]
        )
        return out[:, columns], log_evidence

    def log_probability(
        self, evidence: Mapping[str, int], likelihoods: Mapping[str, Floats] | None = None
    ) -> float:
        """log P(evidence), -inf if it is impossible."""
        try:
            return self.posteriors(evidence, likelihoods).log_evidence
        except ImpossibleEvidence:
            return -np.inf

    def joint(
        self,
        targets: Sequence[str],
        evidence: Mapping[str, int],
        likelihoods: Mapping[str, Floats] | None = None,
    ) -> Table:
        """P(targets | evidence) as one table with its axes in the order asked for."""
        require_cells(f"the joint of {list_some(targets)}", (self._sizes[t] for t in targets), self.max_cells)
        soft = likelihoods or {}
        self._number(evidence, soft)
        unobserved = [name for name in targets if name not in evidence]
        values, _ = self._ask(unobserved, evidence, soft, possible=False, limit=self.max_cells)
        if values is None:
            start = perf_counter()
            table = eliminate(self.dag, self.cpts, unobserved, evidence, soft, self.max_cells)
            if table is None:
                raise impossible(evidence, soft)
            values = table.arrange(unobserved).values
            self._seconds += perf_counter() - start
        for axis, name in enumerate(targets):
            if name in evidence:
                point = np.eye(self._sizes[name])[evidence[name]]
                values = np.expand_dims(values, axis) * point.reshape([-1] + [1] * (values.ndim - axis))
        return Table(tuple(targets), values)

    def most_probable(
        self,
        evidence: Mapping[str, int],
        likelihoods: Mapping[str, Floats] | None = None,
        targets: Sequence[str] | None = None,
    ) -> tuple[dict[str, int], float]:
        """The most probable levels of the targets (of all attributes if None), and the log of P(levels, evidence)."""
        free = [name for name in self.dag.nodes if name not in evidence]
        wanted = free if targets is None else [name for name in targets if name not in evidence]
        numbered = self._number(evidence, likelihoods or {})
        found: tuple[dict[str, int], float] | None
        if set(wanted) == set(free):
            best = maximise(self.junction, *numbered)
            found = best and ({name: best[0][self._index[name]] for name in wanted}, best[1])
        else:
            found = maximise_subset(self.dag, self.cpts, wanted, evidence, likelihoods or {}, self.max_cells)
        if found is None:
            raise impossible(evidence, likelihoods or {})
        return {name: found[0][name] for name in wanted}, found[1]

    def decompose(
        self, evidence: Mapping[str, int], likelihoods: Mapping[str, Floats] | None = None
    ) -> list[Table]:
        """The posterior as conditionals that can be sampled one after the other: axes are (given…, child).

        Down the tree, P(clique | separator, evidence) is split by the chain rule; what was observed comes first.
        """
        codes, _ = self._number(evidence, {})
        beliefs = self._believe(evidence, likelihoods or {})
        names = self.junction.names
        chain = [Table((name,), np.eye(self._sizes[name])[code]) for name, code in evidence.items()]
        known = set(codes)
        for clique, belief in zip(self.junction.tree.cliques, beliefs.cliques, strict=True):
            free = [v for v in clique if v not in codes]
            values = belief.reshape([self.junction.sizes[v] for v in free])
            given = [v for v in free if v in known]
            for v in free:
                if v not in known:
                    keep = [*given, v]
                    margin = Table(tuple(names[u] for u in free), values).project([names[u] for u in keep])
                    chain.append(margin.normalise(names[v]))
                    given.append(v)
                    known.add(v)
        return chain

    def _ask(
        self,
        targets: Sequence[str],
        evidence: Mapping[str, int],
        likelihoods: Mapping[str, Floats],
        *,
        possible: bool,
        limit: float,
    ) -> tuple[Floats | None, float]:
        """P(targets | evidence) by the compiled elimination and the cells it took; None if that is not to be had."""
        if not targets or (self._compiled is None and self._seconds <= PATIENCE):
            return None, 0.0
        if self._questions is None:
            from discreet.compute.inference.questions import Questions

            place = {cpt.axes[-1]: cpt for cpt in self.cpts}
            families = [place[name] for name in self.junction.names]
            self._questions = Questions(
                self.junction.sizes,
                [
                    ([self._index[a] for a in cpt.axes], np.ascontiguousarray(cpt.values, dtype=np.float64))
                    for cpt in families
                ],
            )
        found, cells = self._questions.ask(
            *self._enter(evidence, likelihoods),
            [self._index[name] for name in targets],
            possible=possible,
            limit=limit,
        )
        return (found if cells >= 0 else None), cells

    def _posteriors(
        self, evidence: Mapping[str, int], likelihoods: Mapping[str, Floats], path: Path
    ) -> Marginals:
        if path == "numba" or (path == "auto" and self._seconds > PATIENCE):
            compiled = self._compile()
            if compiled is not None:
                out, log_evidence = compiled.answer(*self._enter(evidence, likelihoods))
                if log_evidence == log_evidence:
                    return Marginals(out, self._at, log_evidence)
        start = perf_counter()
        beliefs = self._believe(evidence, likelihoods)
        codes, _ = self._number(evidence, {})
        flat = marginals(self.junction, beliefs, codes)
        self._seconds += perf_counter() - start
        return Marginals(flat, self._at, beliefs.log_evidence)

    def _believe(self, evidence: Mapping[str, int], likelihoods: Mapping[str, Floats]) -> Beliefs:
        numbered = self._number(evidence, likelihoods)
        beliefs = propagate(self.junction, *numbered)
        if beliefs is None:
            beliefs = propagate_log(self.junction, *numbered)
        if beliefs.log_evidence == -np.inf:
            raise impossible(evidence, likelihoods)
        return beliefs

    def _number(
        self, evidence: Mapping[str, int], likelihoods: Mapping[str, Floats]
    ) -> tuple[dict[int, int], dict[int, Floats]]:
        for name, code in evidence.items():
            if not 0 <= code < self._sizes[name]:
                raise QueryError(f"code {code} of {name!r}; allowed are 0 to {self._sizes[name] - 1}")
        for name, values in likelihoods.items():
            if len(values) != self._sizes[name]:
                raise QueryError(
                    f"likelihood of {name!r} has {len(values)} weights; it needs {self._sizes[name]}"
                )
        return (
            {self._index[name]: code for name, code in evidence.items()},
            {self._index[name]: np.asarray(values, dtype=np.float64) for name, values in likelihoods.items()},
        )

    def _enter(self, evidence: Mapping[str, int], likelihoods: Mapping[str, Floats]) -> tuple[Ints, Floats]:
        self._number(evidence, likelihoods)
        observed = self._blank.copy()
        for name, code in evidence.items():
            observed[self._index[name]] = code
        if not likelihoods:
            return observed, NO_WEIGHTS
        at = 0
        for name, values in likelihoods.items():
            observed[len(self.dag) + self._index[name]] = at
            at += len(values)
        return observed, np.concatenate(
            [np.asarray(values, dtype=np.float64) for values in likelihoods.values()]
        )

    def _compile(self) -> Compiled | None:
        if self._compiled is None and self.junction.flat is not None:
            from discreet.compute.inference.compiled import Compiled

            children = [self._index[cpt.axes[-1]] for cpt in self.cpts]
            self._compiled = Compiled(self.junction, self.junction.flat, children)
        return self._compiled


def impossible(evidence: Mapping[str, int], likelihoods: Mapping[str, Floats]) -> ImpossibleEvidence:
    """The error for evidence of probability zero, in codes; the network restates it in labels."""
    observed = [f"{name}={code}" for name, code in evidence.items()] + [
        f"{name}~soft" for name in likelihoods
    ]
    return ImpossibleEvidence(f"the evidence ({', '.join(observed)}) has probability zero in this network")
