"""The tight audit of the default search: a worst-case pair of tables, and an attacker who knows all but one unit."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from discreet.entrance import open_airlock
from discreet.judge.experiments.empirical_epsilon import empirical_epsilon, empirical_mu
from discreet.judge.experiments.likelihood import Listener, read_losses
from discreet.learning.adaptive import adaptive
from discreet.values.budget import Finite
from discreet.values.schema import Schema
from discreet.values.table import Table
from discreet.values.unit import Unit


def measure_shift(inside: np.ndarray, outside: np.ndarray) -> float:
    """μ between two samples of one statistic, in standard deviations."""
    spread = math.sqrt((inside.var(ddof=1) + outside.var(ddof=1)) / 2)
    return float((inside.mean() - outside.mean()) / spread)


def jackknife(lines: np.ndarray, each: int, statistic: Callable[[np.ndarray], float]) -> float:
    """The standard error of a statistic of releases of so many lines each: those of one release hang together."""
    releases = lines.reshape(-1, each, lines.shape[1])
    parts = np.array_split(np.arange(len(releases)), min(GROUPS, len(releases)))
    left = [statistic(np.delete(releases, part, axis=0).reshape(-1, lines.shape[1])) for part in parts]
    return math.sqrt((len(parts) - 1) * float(np.var(left)))


GROUPS = 40
"""Releases are left out in so many groups to see how far a share would move."""


@dataclass(frozen=True)
class Share:
    """How much of a claim the attacker gets, and its standard error."""

    value: float
    error: float

    def __str__(self) -> str:
        return f"{self.value:.3f} ± {self.error:.3f}"


@dataclass(frozen=True)
class Setting:
    """A table, a budget for the default search, and canaries: units that are in it or not by a coin each.

    The others fill cells (i, i, −i), canary i has level i in all attributes. Given all other coins, a release with
    canary i and one without are those of two neighbouring tables, and the attacker knows all coins but that one. So
    every canary is an experiment of its own on a worst-case pair: its rows are all in one cell of every table.
    """

    spend: Finite
    rows: int
    unit: Unit = Unit.ADD_REMOVE
    names: str = "abc"
    levels: int = 40

    def list_others(self) -> np.ndarray:
        """The rows that are in any case."""
        level = np.arange(self.rows) % self.levels
        return np.stack([level, level, self.levels - 1 - level], axis=1)[:, : len(self.names)]


@dataclass(slots=True, eq=False)
class Canary(Listener):
    """One who knows all coins but that of one canary."""

    known: Callable[[tuple[str, ...]], np.ndarray] = field(kw_only=True)
    """The true tables of a release."""
    level: int = field(kw_only=True)
    moves: int = field(kw_only=True)
    is_in: bool = field(kw_only=True)

    def count(self, members: Sequence[str], sizes: dict[str, int]) -> tuple[Table, Table]:
        """The tables with the canary and without."""
        true, moved = self.known(tuple(members)), np.zeros([sizes[name] for name in members], dtype=np.int64)
        moved[(self.level,) * len(members)] = self.moves
        return (
            Table(tuple(members), true if self.is_in else true + moved),
            Table(tuple(members), true - moved if self.is_in else true),
        )


def attack_once(setting: Setting, rng: np.random.Generator) -> np.ndarray:
    """One release, a line for each canary: its coin, its loss, the choices' part, what the law expects of its side."""
    coins = rng.random(setting.levels) < 0.5
    each = setting.unit.at_most
    inside = np.repeat(np.flatnonzero(coins), each)
    rows = np.concatenate([setting.list_others(), np.stack([inside] * len(setting.names), axis=1)])
    columns: dict[str, Any] = dict(zip(setting.names, rows.T, strict=True))
    schema = Schema.of({name: range(setting.levels) for name in setting.names})

    @lru_cache
    def count(members: tuple[str, ...]) -> np.ndarray:
        shape = [setting.levels] * len(members)
        cells = (
            np.ravel_multi_index([columns[name] for name in members], shape)
            if members
            else np.zeros(len(rows), int)
        )
        return np.bincount(cells, minlength=math.prod(shape)).reshape(shape)

    asked = dict(columns)
    if setting.unit.person:
        asked[setting.unit.person] = np.concatenate([np.arange(setting.rows), -1 - inside])
    with open_airlock(asked, schema, budget=setting.spend, unit=setting.unit) as airlock:
        network = adaptive(airlock, spend=setting.spend)
    canaries = [
        Canary(({}, {}), known=count, level=level, moves=each, is_in=bool(coins[level]))
        for level in range(setting.levels)
    ]
    losses = read_losses(network, canaries)
    return np.array(
        [
            (coin, loss.whole, loss.choices, loss.ahead if coin else loss.back)
            for coin, loss in zip(coins, losses, strict=True)
        ]
    )


def attack_some(setting: Setting, runs: int, seed: int) -> np.ndarray:
    """The lines of some releases."""
    rng = np.random.default_rng(seed)  # of coins only: noise has no seed
    return np.concatenate([attack_once(setting, rng) for _ in range(runs)])


def attack_search(setting: Setting, runs: int) -> np.ndarray:
    """What so many releases tell, release by release."""
    parts = 4
    with ProcessPoolExecutor(max_workers=2) as pool:
        asked = [pool.submit(attack_some, setting, math.ceil(runs / parts), seed) for seed in range(parts)]
        return np.concatenate([part.result() for part in asked])


def part_sides(lines: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The canaries that are in, and the others."""
    coins = lines[:, 0] > 0
    return lines[coins, 1:], lines[~coins, 1:]


def audit_mu(what: str, setting: Setting, runs: int) -> tuple[Share, Share]:
    """The share of the claimed μ that the attacker reads off the releases, and that by the law of their steps."""

    def read(lines: np.ndarray) -> float:
        return measure_shift(*(side[:, 0] for side in part_sides(lines)))

    def derive(lines: np.ndarray) -> float:
        return math.sqrt(sum(side[:, 2].mean() for side in part_sides(lines)))

    claim = math.sqrt(2 * float(setting.spend.amounts[0]))
    lines = attack_search(setting, runs)
    inside, outside = part_sides(lines)
    tables = measure_shift(inside[:, 0] - inside[:, 1], outside[:, 0] - outside[:, 1])
    proved = empirical_mu(inside[:, 0], outside[:, 0])
    share, law = (
        Share(found(lines) / claim, jackknife(lines, setting.levels, found) / claim)
        for found in (read, derive)
    )
    print(
        f"{what} ({setting.spend}, {setting.unit}, {setting.rows:,} rows, {len(lines):,} canaries): {share} of μ = "
        f"{claim:.3f}, {tables / claim:.3f} without reading choices, {law} by the law, ≥ {proved / claim:.3f} with "
        "confidence 0.99",
        flush=True,
    )
    return share, law


def audit_epsilon(what: str, setting: Setting, runs: int) -> Share:
    """The share of the claimed ε that the frequencies of one set of releases differ by, told with its error."""
    claim = float(setting.spend.amounts[0])
    inside, outside = (side[:, 0] for side in part_sides(attack_search(setting, runs)))
    most = max(np.abs(inside).max(), np.abs(outside).max())
    # Fixed beforehand: all releases that are likelier by 0.9 of the claim or more.
    hits = [int((side >= 0.9 * claim).sum()) for side in (inside, outside)]
    epsilon = math.log(max(hits[0], 1) / max(hits[1], 1))
    error = math.sqrt(sum(1 / max(found, 1) for found in hits))
    proved = empirical_epsilon(
        lambda n: inside[:n], lambda n: outside[:n], trials=min(len(inside), len(outside))
    )
    print(
        f"{what} ({setting.spend}, {setting.rows:,} rows): ε {epsilon:.3f} ± {error:.3f} of {claim:g} claimed, by "
        f"{hits[0]} against {hits[1]} of {len(inside)} canaries; none lost more than {most:.3f}; at least "
        f"{proved.epsilon:.3f} with confidence 0.99",
        flush=True,
    )
    return Share(epsilon / claim, error / claim)
