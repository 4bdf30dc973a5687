"""Questions, truths and single trials for `credal.py`, and the file of finished trials that makes it resumable."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from _running import digest_sources
from discreet.core.airlock import Airlock
from discreet.entrance import open_airlock
from discreet.learning.planned import planned
from discreet.networks import examples
from discreet.networks.credal import CredalNetwork, calibrated, from_noise, idm
from discreet.networks.network import Network
from discreet.values.budget import PureDP
from discreet.values.errors import ImpossibleEvidence
from discreet.values.table import Table

Question = tuple[str, str, dict[str, str]]
"""A target, one of its levels, and what is given."""

BUDGET = PureDP(10**9)
"""A simulation spends again and again on one table; a custodian cannot."""

RELEASES_PER_DATASET = 25
"""So many releases share a sample of rows; the next ones get another."""

QUESTIONS = 4
"""Questions to each release; each release gets others."""

ROUNDING = 1e-9
"""By how much an interval may miss the truth and still count as right."""

SOURCES = (
    "compute/bounds/*.py",
    "compute/region/*.py",
    "compute/augmentation.py",
    "networks/intervals/*.py",
    "learning/plan*.py",
)


@cache
def version() -> str:
    """A digest of the sources that the trials are about, so that no stale one is taken for a new one."""
    return digest_sources(SOURCES, Path(__file__))


@dataclass(slots=True, eq=False)
class Trials:
    """Finished trials, one line of JSON each: what was tried, with which sources, and the numbers found."""

    path: Path
    sources: str = ""
    """The digest of what the trials are about."""
    found: dict[str, list[list[float]]] = field(default_factory=dict)

    @classmethod
    def open(cls, path: Path, *, fresh: bool = False, sources: str = "") -> Trials:
        """The trials of an earlier run whose sources have not changed since."""
        trials = cls(path, sources or version())
        if fresh:
            path.unlink(missing_ok=True)
        for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
            try:
                trial = json.loads(line)
            except ValueError:
                continue  # a line that was cut short
            if trial["version"] == trials.sources:
                trials.found[trial["key"]] = trial["values"]
        return trials

    def fill(self, key: str, compute: Callable[[], list[list[float]]]) -> list[list[float]]:
        """The numbers of a trial, computed and written if they are not there yet."""
        if key not in self.found:
            values = compute()
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"key": key, "version": self.sources, "values": values}) + "\n")
            self.found[key] = values
        return self.found[key]


@dataclass(slots=True, eq=False)
class Custodian:
    """Rows drawn from a network behind an airlock, and the network that would be published without noise."""

    network: Network
    rows: int
    name: str = ""
    _dataset: int = -1
    _airlock: Airlock | None = None
    _truth: Network | None = None

    def cover(self, epsilon: str, release: int) -> list[list[float]]:
        """For each question to a release: whether either interval contains the truth, and its width.

        A question whose evidence no row shows has no true answer, and is left out.
        """
        airlock, truth = self._open(release // RELEASES_PER_DATASET)
        private = planned(airlock, self.network.dag, spend=epsilon)
        sure, likely = from_noise(private), calibrated(private, rng=release)
        found = []
        for target, level, given in ask(self.network, QUESTIONS, 1000 + release):
            try:
                exact = truth.query(target, given)[level]
            except ImpossibleEvidence:
                continue
            line: list[float] = []
            for low, high in (
                _bound(lambda: sure.query(target, given, method="outer").interval(level)),  # noqa: B023
                _bound(lambda: likely.query(target, given).interval(level)),  # noqa: B023
            ):
                line += [float(low - ROUNDING <= exact <= high + ROUNDING), high - low]
            found.append(line)
        return found

    def _open(self, dataset: int) -> tuple[Airlock, Network]:
        if dataset != self._dataset or self._airlock is None or self._truth is None:
            self.close()
            sample = self.network.sample(self.rows, rng=dataset + 1)
            self._truth = count_frequencies(self.network, sample.codes())
            self._airlock = open_airlock(
                sample.arrow(), self.network.schema, budget=BUDGET, unit="add-remove"
            )
            self._dataset = dataset
        return self._airlock, self._truth

    def close(self) -> None:
        """Let go of the rows."""
        if self._airlock is not None:
            self._airlock.close()


def _bound(answer: Callable[[], tuple[float, float]]) -> tuple[float, float]:
    """The interval, or one that misses if the evidence is held to be impossible."""
    try:
        return answer()
    except ImpossibleEvidence:
        return np.inf, np.inf


def certify(credal: CredalNetwork, question: Question, seconds: float) -> list[list[float]]:
    """How far the two ends for one level are from certain after so many seconds for both."""
    target, level, given = question
    found = credal.probability({target: level}, given, method="exact", seconds=seconds)
    return [[found.gap, found.width]]


def fit_idm(name: str, rows: int, seed: int) -> CredalNetwork:
    """The imprecise Dirichlet model with S = 1 on rows drawn from one of the examples."""
    network = examples.load(name)
    return idm(count_families(network, network.sample(rows, rng=seed).codes()), network.dag, network.schema)


def count_families(network: Network, codes: Mapping[str, Any]) -> list[Table]:
    """The counts over every family."""
    found = []
    for family in network.dag.families():
        shape = [network.schema[name].size for name in family]
        cells = np.ravel_multi_index([codes[name].astype(np.int64) for name in family], shape)
        counts = np.bincount(cells, minlength=int(np.prod(shape))).reshape(shape)
        found.append(Table(family, counts.astype(np.float64)))
    return found


def count_frequencies(network: Network, codes: Mapping[str, Any]) -> Network:
    """The network that would have been published without noise."""
    counts = count_families(network, codes)
    return Network(network.schema, network.dag, tuple(table.normalise(table.axes[-1]) for table in counts))


def ask(network: Network, count: int, seed: int) -> Iterator[Question]:
    """Random targets, and up to three other attributes as a random row has them."""
    rng = np.random.default_rng(seed)
    codes = network.sample(count, rng=seed + 1).codes()
    for row in range(count):
        order = rng.permutation(len(network.nodes))
        names = [network.nodes[k] for k in order[: 1 + int(rng.integers(0, 4))]]
        levels = {name: network.schema[name].levels[int(codes[name][row])] for name in names}
        target = names[0]
        yield target, levels.pop(target), levels
