"""Networks, learners and errors for `paper000.py`, and the file of finished cells that makes it resumable."""

from __future__ import annotations

import csv
import importlib.util
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np

import discreet
from _distances import compare_cpts
from _running import digest_sources
from discreet.compute.metrics import l1
from discreet.core.airlock import Airlock
from discreet.entrance import open_airlock
from discreet.networks import examples
from discreet.networks.formats.bif import read_bif
from discreet.networks.network import Network
from discreet.values.budget import PureDP
from discreet.values.table import Table

ROWS = 10_000
RUNS_PER_DATASET = 10
"""So many runs share a sample of rows; the next ones get another."""
BUDGET = PureDP(10**9)
"""A simulation spends again and again on one table; a custodian cannot."""

INDEPENDENT, PRINTED, WEIGHED, PLANNED = "D-Ind", "Algorithm 1", "Algorithm 1, inverse variance", "planned"
EVEN = "D-Ind, inverse variance"
LEARNERS = (INDEPENDENT, EVEN, PRINTED, WEIGHED, PLANNED)
_SOURCES = {
    INDEPENDENT: ["papers/parameters/independent.py", "compute/consistency.py"],
    PRINTED: [
        "papers/parameters/independent.py",
        "papers/parameters/dependent.py",
        "papers/parameters/allocation.py",
        "compute/consistency.py",
    ],
    PLANNED: [
        "learning/plan*.py",
        "compute/expectation.py",
        "compute/smoothing.py",
        "compute/contraction.py",
        "compute/consistency.py",
    ],
}
_SOURCES[WEIGHED] = _SOURCES[PRINTED]
_SOURCES[EVEN] = _SOURCES[INDEPENDENT]


@dataclass(slots=True, eq=False)
class Case:
    """A network, the rows drawn from it behind airlocks, and what every estimate is compared with."""

    name: str
    network: Network
    weights: list[Table]
    marginals: dict[str, np.ndarray]
    rows: int = ROWS
    _airlocks: dict[int, Airlock] = field(default_factory=dict)
    _counts: dict[int, list[Table]] = field(default_factory=dict)

    @classmethod
    def load(cls, name: str) -> Case:
        """One of the four bundled networks, or one of those that come with pgmpy."""
        if name in examples.names():
            network = examples.load(name)
        else:
            path = find_peer_file(name)
            if path is None:
                raise FileNotFoundError(f"network {name!r} comes with pgmpy, which is not installed")
            network = read_bif(path)
        engine = network.engine
        weights = [engine.joint(family, {}) for family in network.dag.families()]
        return cls(name, network, weights, engine.posteriors({}).to_dict())

    def airlock(self, run: int) -> Airlock:
        """The airlock of this run's rows; opened once."""
        seed = run // RUNS_PER_DATASET + 1
        if seed not in self._airlocks:
            rows = self.network.sample(self.rows, rng=seed).arrow()
            self._airlocks[seed] = open_airlock(rows, self.network.schema, budget=BUDGET)
        return self._airlocks[seed]

    def counts(self, run: int) -> list[Table]:
        """The true family tables of this run's rows, counted from the generator that made them."""
        seed = run // RUNS_PER_DATASET + 1
        if seed not in self._counts:
            codes = self.network.sample(self.rows, rng=seed).codes()
            tables = []
            for family in self.network.dag.families():
                shape = tuple(self.network.schema.sizes[name] for name in family)
                index = np.ravel_multi_index([codes[name].astype(np.intp) for name in family], shape)
                counted = np.bincount(index, minlength=int(np.prod(shape))).reshape(shape)
                tables.append(Table(family, counted.astype(np.float64)))
            self._counts[seed] = tables
        return self._counts[seed]

    def measure_errors(self, learned: Network, run: int) -> dict[str, float]:
        """The errors that the ε saving is about, each a mean over nodes.

        weighted, unweighted: L1 of the conditionals against the network that made the rows, the rows of a table weighed
        by their probability or alike; marginal: L1 of the single attributes; weighted_data: like weighted, against the
        frequencies in the rows, which is what privacy alone costs.
        """
        dag, truth = self.network.dag, self.network.cpts
        found = learned.engine.posteriors({})
        counts = self.counts(run)
        frequencies = [table.normalise(table.axes[-1]) for table in counts]
        return {
            "weighted": compare_cpts(dag, truth, learned.cpts, weights=self.weights),
            "unweighted": compare_cpts(dag, truth, learned.cpts),
            "marginal": float(np.mean([l1(self.marginals[name], found[name]) for name in dag.nodes])),
            "weighted_data": compare_cpts(dag, frequencies, learned.cpts, weights=counts),
        }


def find_peer_file(name: str) -> Path | None:
    """The file of a network that comes with pgmpy, if pgmpy is there and has it."""
    spec = importlib.util.find_spec("pgmpy")
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).parent / "utils" / "example_models" / f"{name}.bif.gz"
    return path if path.exists() else None


def has_planned() -> bool:
    """Whether the planned learner is part of this installation."""
    return importlib.util.find_spec("discreet.learning.planned") is not None


def learn(learner: str, case: Case, epsilon: str, run: int) -> Network:
    """One network from this run's rows, through the airlock and its ledger like any other."""
    return _find_learner(learner)(case.airlock(run), case.network.dag, epsilon)


@cache
def _find_learner(learner: str) -> Callable[[Airlock, discreet.DAG, str], Network]:
    from discreet.papers.parameters.dependent import dependent
    from discreet.papers.parameters.independent import independent

    if learner == INDEPENDENT:
        return lambda airlock, dag, epsilon: independent(airlock, dag, spend=epsilon)
    if learner == EVEN:
        return lambda airlock, dag, epsilon: independent(
            airlock, dag, spend=epsilon, weights="inverse-variance"
        )
    if learner == PLANNED:
        from discreet.learning.planned import planned

        return lambda airlock, dag, epsilon: planned(airlock, dag, spend=epsilon)
    weights = "paper" if learner == PRINTED else "inverse-variance"
    return lambda airlock, dag, epsilon: dependent(airlock, dag, spend=epsilon, weights=weights)  # type: ignore[arg-type]


@cache
def version_of(learner: str) -> str:
    """A digest of the sources that a learner is made of, so that no stale cell is taken for a new one."""
    return digest_sources(_SOURCES[learner])


@dataclass(slots=True, eq=False)
class Cells:
    """Finished cells: one line for each measure of each (experiment, network, learner, ε, run)."""

    path: Path
    values: dict[tuple[str, str, str, str, int], dict[str, float]] = field(default_factory=dict)

    HEADER = ("experiment", "network", "learner", "epsilon", "run", "version", "measure", "value")

    @classmethod
    def open(cls, path: Path, *, fresh: bool = False) -> Cells:
        """The cells of an earlier run whose learners have not changed since."""
        cells = cls(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        if fresh or not path.exists():
            with path.open("w", newline="", encoding="utf-8") as file:
                csv.writer(file).writerow(cls.HEADER)
            return cells
        with path.open(newline="", encoding="utf-8") as file:
            for line in csv.DictReader(file):
                if line["value"] is None or line["learner"] not in LEARNERS:
                    continue  # a line that was cut short
                if line["version"] == version_of(line["learner"]):
                    key = (
                        line["experiment"],
                        line["network"],
                        line["learner"],
                        line["epsilon"],
                        int(line["run"]),
                    )
                    cells.values.setdefault(key, {})[line["measure"]] = float(line["value"])
        return cells

    def fill(
        self, key: tuple[str, str, str, str, int], compute: Callable[[], Mapping[str, float]]
    ) -> Mapping[str, float]:
        """The measures of a cell, computed and written if they are not there yet."""
        if key not in self.values:
            found = dict(compute())
            with self.path.open("a", newline="", encoding="utf-8") as file:
                csv.writer(file).writerows(
                    [*key, version_of(key[2]), measure, repr(float(value))]
                    for measure, value in found.items()
                )
            self.values[key] = found
        return self.values[key]

    def collect(
        self, experiment: str, network: str, learner: str, epsilon: str, measure: str, runs: Iterable[int]
    ) -> np.ndarray:
        """The values of one measure over the runs."""
        keys = [(experiment, network, learner, epsilon, run) for run in runs]
        return np.array([self.values[key][measure] for key in keys if key in self.values])
