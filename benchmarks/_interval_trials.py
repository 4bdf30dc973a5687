"""Tables, releases, questions and truths for `intervals.py`; finished trials are kept by `_credal_trials.Trials`."""

from __future__ import annotations

import csv
import json
import math
import os
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from discreet.core.airlock import Airlock
from discreet.entrance import open_airlock
from discreet.learning.adaptive import adaptive
from discreet.learning.planned import planned
from discreet.networks import examples
from discreet.networks.intervals import Intervals, Whose
from discreet.networks.intervals.shares import estimate_counts
from discreet.networks.network import Network
from discreet.values.budget import ZCDP, PureDP
from discreet.values.errors import ImpossibleEvidence, NetworkError
from discreet.values.graph import DAG
from discreet.values.schema import Schema
from discreet.values.table import Table

DATA = Path(os.environ.get("DISCREET_DATA", "/work/shared/data"))
ROUNDING = 1e-9
AGAIN = 3
"""So many releases of one table are asked the same questions."""
LARGE = 10**9
Codes = Mapping[str, np.ndarray]
AIM = {"adult-fine": "adult", "titanic": "titanic", "salary": "salary", "msnbc": "msnbc"}
"""Tables of codes from AIM's family, by the names that they have here."""
SHARED = ("adult", "nltcs", *AIM)


@dataclass(frozen=True, slots=True)
class Source:
    """Rows as codes, what they may hold, and a graph if there is one."""

    schema: Schema
    codes: dict[str, np.ndarray]
    dag: DAG | None

    @property
    def rows(self) -> int:
        """How many there are."""
        return len(next(iter(self.codes.values())))

    def open(self, kind: str) -> Airlock:
        """An airlock that a simulation may ask again and again."""
        labels = {
            name: np.array(self.schema[name].levels, dtype=object)[codes]
            for name, codes in self.codes.items()
        }
        budget = PureDP(LARGE) if kind == "epsilon" else ZCDP(LARGE)
        return open_airlock(labels, self.schema, budget=budget, unit="add-remove")

    def count(self, names: tuple[str, ...]) -> np.ndarray:
        """The true counts over some attributes."""
        shape = [self.schema[name].size for name in names]
        if not names:
            return np.array(self.rows)
        cells = np.ravel_multi_index([self.codes[name] for name in names], shape)
        return np.bincount(cells, minlength=math.prod(shape)).reshape(shape)


@cache
def open_source(name: str, rows: int, seed: int) -> Source:
    """A table of the examples' networks, drawn anew for each seed, or rows of a shared one; asia:5 has five columns."""
    table, _, few = name.partition(":")
    if few:
        whole = open_source(table, rows, seed)
        kept = whole.schema.names[: int(few)]
        return Source(whole.schema.select(kept), {column: whole.codes[column] for column in kept}, None)
    if table in SHARED:
        schema, codes = _read_shared(table)
        chosen = np.random.default_rng(seed).permutation(len(codes[schema.names[0]]))[: rows or None]
        return Source(schema, {column: found[chosen] for column, found in codes.items()}, None)
    network = examples.load(table)
    drawn = network.sample(rows, rng=seed).codes()
    return Source(network.schema, {key: found.astype(np.int64) for key, found in drawn.items()}, network.dag)


@cache
def _read_shared(name: str) -> tuple[Schema, Codes]:
    if name in AIM:
        sizes = json.loads((DATA / "aim" / f"{AIM[name]}-domain.json").read_text("utf-8"))
        with zipfile.ZipFile(DATA / "aim" / f"{AIM[name]}.zip") as pack:
            lines = pack.read(f"{AIM[name]}.csv").decode("utf-8").splitlines()
        found = np.loadtxt(lines[1:], delimiter=",", dtype=np.int64).T
        schema = Schema.of({column: [str(code) for code in range(size)] for column, size in sizes.items()})
        return schema, dict(zip(lines[0].split(","), found, strict=True))
    domain = json.loads((DATA / f"{name}.domain.json").read_text("utf-8"))
    schema = Schema.of({column: found["levels"] for column, found in domain.items()})
    with (DATA / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    return schema, {
        column: np.array([schema[column].code(line[column]) for line in lines], dtype=np.int64)
        for column in schema.names
    }


def ask_measured(
    network: Network, source: Source, count: int, seed: int
) -> Iterator[tuple[str, dict[str, int]]]:
    """Questions that some measured table answers: a target and the levels of a random row in that table."""
    rng = np.random.default_rng(seed)
    assert network.provenance is not None
    sets = [table.axes for table in network.provenance.measurements if table.axes and table.rate == 1]
    for _ in range(count):
        axes = list(rng.permutation(sets[rng.integers(len(sets))]))[:4]
        row = int(rng.integers(source.rows))
        yield axes[0], {name: int(source.codes[name][row]) for name in axes}


def ask_any(network: Network, source: Source, count: int, seed: int) -> Iterator[tuple[str, dict[str, int]]]:
    """A random target given two others, as a random row has them."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        names = [str(name) for name in rng.permutation(network.declared.names)[:3]]
        row = int(rng.integers(source.rows))
        yield names[0], {name: int(source.codes[name][row]) for name in names}


def find_truth(source: Source, target: str, levels: Mapping[str, int]) -> float:
    """The share of the rows with the evidence that have the target's level."""
    given = np.ones(source.rows, dtype=bool)
    for name, code in levels.items():
        if name != target:
            given &= source.codes[name] == code
    return float((source.codes[target][given] == levels[target]).mean())


def find_network_truth(source: Source, dag: DAG) -> Network:
    """The network that would be published without noise."""
    tables = [
        Table(family, source.count(family).astype(np.float64)).normalise(family[-1])
        for family in dag.families()
    ]
    return Network(source.schema, dag, tuple(tables))


def learn(source: Source, learner: str, amount: str) -> Network:
    """A private release of the table; `amount` is an ε, or a ρ written r0.1."""
    kind, spend = ("rho", ZCDP(amount[1:])) if amount.startswith("r") else ("epsilon", PureDP(amount))
    with source.open(kind) as airlock:
        if learner == "planned":
            assert source.dag is not None
            return planned(airlock, source.dag, spend=spend)
        return adaptive(airlock, spend=spend)


def check_margins(network: Network, source: Source) -> tuple[bool, int]:
    """Whether all intervals of all cells of all margins of all measured tables hold, and how many there are."""
    region = network._intervals.table().region
    cells, right = 0, True
    for members in {members for batch in region.batches for members in batch.list_sets()}:
        found = region.bound(members)
        assert found is not None
        true = source.count(found.axes)
        right &= bool(((found.low <= true) & (true <= found.high)).all())
        cells += true.size
    return right, cells


def bound(
    network: Network,
    target: str,
    levels: Mapping[str, int],
    kind: Intervals,
    about: Whose,
) -> tuple[float, float] | None:
    """The interval of one answer; None where it is refused."""
    function = np.zeros((1, network.schema[target].size))
    function[0, levels[target]] = 1.0
    evidence = {name: [code] for name, code in levels.items() if name != target}
    try:
        ends, _ = network._intervals.bound([target], function, evidence, kind, about)
    except (NetworkError, ImpossibleEvidence):
        return None
    return None if ends is None else (float(ends[0][0]), float(ends[1][0]))


def holds(ends: tuple[float, float], truth: float) -> bool:
    """Whether the truth lies in the interval, up to rounding."""
    return ends[0] - ROUNDING <= truth <= ends[1] + ROUNDING


@dataclass(frozen=True, slots=True)
class Setting:
    """One kind of release: whose rows, how many (0: all), the budget, the learner."""

    name: str
    rows: int
    amount: str
    learner: str
    few: bool = False
    """Whether its releases take long: a third of them are made, and each is asked three times as much."""

    def __str__(self) -> str:
        return f"{self.learner} {self.name} {self.rows or 'all'} {self.amount}"


@dataclass(frozen=True, slots=True)
class Held:
    """How often the intervals of a setting hold, give or take how much, and their width in terms of the oracle's."""

    share: float
    doubt: float
    ratio: float


def find_doubt(tables: Mapping[int, Sequence[float]]) -> float:
    """The standard error of the share of intervals that hold, from one list of ones and zeros for each table.

    Questions to one release share its noise, and releases of one table its rows: so tables are counted, not questions.
    If h_t of m_t intervals of each of T tables hold, the share is s = Σ h_t / Σ m_t, and its error

        √(T/(T − 1) · Σ (h_t − s·m_t)²) / Σ m_t   [Cochran 1977, Sec. 2.11].
    """
    sums = np.array([[sum(found), len(found)] for found in tables.values() if found], dtype=np.float64)
    if len(sums) < 2:
        return math.nan
    held, asked = sums.T
    off = held - held.sum() / asked.sum() * asked
    return float(math.sqrt(len(sums) / (len(sums) - 1) * (off**2).sum()) / asked.sum())


def cover(setting: Setting, release: int, questions: int = 16) -> list[list[float]]:
    """For each question: 1 if the calibrated interval holds, 0 if not, −1 if refused; its width; what the oracle needs;
    and a number for the question.

    The truth is the network of frequencies on a graph, and the table's own answer after a search. After a search the
    oracle knows the true counts and the noise, and its width is given; on a graph the error of the answer is given, and
    the oracle knows how large it is over all releases of the same table.
    """
    source = open_source(setting.name, setting.rows, release // AGAIN)
    network = learn(source, setting.learner, setting.amount)
    if setting.few:
        questions *= 3
    if setting.learner == "planned":
        return _cover_network(source, network, release, questions)
    found = []
    for target, levels in ask_measured(network, source, questions, release):
        ends = bound(network, target, levels, Intervals.CALIBRATED, Whose.TABLE)
        if ends is None:
            found.append([-1.0, 0.0, 0.0, -1.0])
            continue
        oracle = _spread_of_share(network, source, target, levels)
        hit = holds(ends, find_truth(source, target, levels))
        found.append([float(hit), ends[1] - ends[0], oracle, -1.0])
    return found


def cover_beyond(setting: Setting, release: int, questions: int = 16) -> list[list[float]]:
    """As `cover`, after a search, for questions about three attributes that no measured table holds.

    The oracle knows how large the error of the answer is over all releases of the same table.
    """
    source = open_source(setting.name, setting.rows, release // AGAIN)
    network = learn(source, setting.learner, setting.amount)
    table = network._intervals.table()
    if setting.few:
        questions *= 3
    found = []
    for k, (target, levels) in enumerate(ask_any(network, source, questions, 1000 + release // AGAIN)):
        if table.answers(list(levels)):
            continue
        ends = bound(network, target, levels, Intervals.CALIBRATED, Whose.TABLE)
        if ends is None:
            found.append([-1.0, 0.0, 0.0, 0.0])
            continue
        given = {name: source.schema[name].levels[code] for name, code in levels.items() if name != target}
        answer = network.query(target, given, intervals="none").probabilities[levels[target]]
        true = find_truth(source, target, levels)
        number = float(questions * (release // AGAIN) + k)
        found.append([float(holds(ends, true)), ends[1] - ends[0], float(answer - true), number])
    return found


def _spread_of_share(network: Network, source: Source, target: str, levels: Mapping[str, int]) -> float:
    """The width of ±1.96 standard deviations of the share, within [0, 1], for true counts and noise that are known."""
    names = tuple(name for name in network.schema.names if name in levels)
    shape = [network.schema[name].size for name in names]
    event, given = np.zeros(shape), np.zeros(shape)
    event[tuple(levels[name] for name in names)] = 1.0
    given[tuple(slice(None) if name == target else levels[name] for name in names)] = 1.0
    assert network.provenance is not None
    spread = estimate_counts(network.provenance.measurements, names, (event, given - event))
    true = source.count(names)
    share, rows = (true * event).sum() / (true * given).sum(), float((true * given).sum())
    reach = 1.96 * math.sqrt(spread.spread(np.array([[1 - share, -share]]))[0][0]) / rows
    return max(min(1.0, share + reach) - max(0.0, share - reach), 1e-6)


def _cover_network(source: Source, network: Network, release: int, questions: int) -> list[list[float]]:
    assert source.dag is not None
    truth = find_network_truth(source, source.dag)
    rng = np.random.default_rng(release // AGAIN)
    found = []
    for k, (target, chosen) in enumerate(ask_any(network, source, questions, 7 * (release // AGAIN) + 1)):
        kept = {target: chosen[target], **dict(list(chosen.items())[: int(rng.integers(1, 4))])}
        given = {name: source.schema[name].levels[code] for name, code in kept.items() if name != target}
        try:
            true = truth.query(target, given, intervals="none").probabilities[kept[target]]
        except ImpossibleEvidence:
            continue
        ends = bound(network, target, kept, Intervals.CALIBRATED, Whose.NETWORK)
        if ends is None:
            found.append([-1.0, 0.0, 0.0, 0.0])
            continue
        answer = network.query(target, given, intervals="none").probabilities[kept[target]]
        number = float(questions * (release // AGAIN) + k)
        found.append([float(holds(ends, true)), ends[1] - ends[0], float(answer - true), number])
    return found
