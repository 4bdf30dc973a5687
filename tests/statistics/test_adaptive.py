"""The adaptive search, from rows to choices and tables, loses no more than it claims; broken twins are caught."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from chance import SURE, first_is_quick, within_attempts
from discreet.core.queries import Choice, Tables
from discreet.entrance import open_airlock
from discreet.judge.experiments.empirical_epsilon import EpsilonBound, empirical_epsilon
from discreet.learning.adaptive import adaptive
from discreet.learning.searching.prices import Rates
from discreet.networks.network import Network
from discreet.values.budget import Finite, PureDP
from discreet.values.measurement import Measurement
from discreet.values.schema import Schema
from discreet.values.unit import ROW_UNITS, Unit

Rows = list[tuple[int, ...]]

SCHEMA = Schema.of({name: ["0", "1"] for name in "abc"})
SETS = [members for k in (2, 3) for members in itertools.combinations("abc", k)]

# Never hand over to the greedy search nor to all pairs without a choice, let no candidate have a handicap and none be
# wider than a pair, and pay a third for single attributes and as much for a choice as for a table: this is where
# choices tell most. What is lost is the same at any rates.
RATES = Rates(
    signal=0.0, covered=0.0, handicap=0.0, known=0.0, forgone=0.0, wide=0.0, noisy=0.0, singles=1e-6, noise=1e-6,
    choice=1e-6, fewest=1.5,
)  # fmt: skip

# a = b ≠ c, and every level is as frequent as the other: then all pairs are wrong by the same number of rows, however
# noisy the single attributes are (their noise counts by its square over the number of rows only), and one row decides.
# (1, 1, 1) makes the pair ab more wrong by 1 and the others less; (1, 0, 0) makes it ac, and ab less.
ROWS = [(0, 0, 1)] * 10_000 + [(1, 1, 0)] * 10_000
NEIGHBOURS = {
    Unit.ADD_REMOVE: ([*ROWS, (1, 1, 1)], ROWS),
    Unit.REPLACE_ONE: ([*ROWS, (1, 1, 1)], [*ROWS, (1, 0, 0)]),
}


def _count(rows: Rows, axes: tuple[str, ...]) -> np.ndarray:
    codes = np.array(rows)[:, ["abc".index(name) for name in axes]]
    return (
        np.histogramdd(codes, bins=[np.array([-0.5, 0.5, 1.5])] * len(axes))[0]
        if axes
        else np.array(len(rows))
    )


@dataclass(frozen=True)
class Reader:
    """All that tells two neighbours apart in what is released, as numbers."""

    tables: tuple[dict[tuple[str, ...], np.ndarray], ...]
    """The exact tables of both."""

    @classmethod
    def of(cls, neighbours: tuple[Rows, Rows]) -> Reader:
        every = [members for k in range(4) for members in itertools.combinations("abc", k)]
        return cls(tuple({axes: _count(rows, axes) for axes in every} for rows in neighbours))

    def read(self, network: Network) -> list[float]:
        """The first choice, the place of each set among those chosen, and how the noise speaks for either side."""
        assert network.provenance is not None
        details = network.provenance.details
        assert any(details.get("choices", ())), (
            "no private choice of a set was made: this audits another search"
        )
        order = [tuple(sorted(found)) for batch in details["batches"] for found in batch]
        places = [order.index(members) + 1.0 if members in order else 0.0 for members in SETS]
        speaks = sum(map(self._weigh, network.provenance.measurements))
        # The first set also within what the tables say: evidence from both adds up.
        lead = {("a", "b"): 1.0, ("a", "c"): -1.0}.get(order[0], 0.0)
        return [float(details["choices"][0]), *places, speaks, speaks + lead / 4]

    def _weigh(self, found: Measurement) -> float:
        """The logarithm of the likelihood ratio of a table with Laplace noise."""
        axes = tuple(sorted(found.axes))
        noisy = found.noisy.arrange(axes).values
        one, other = (np.abs(noisy - side[axes]).sum() for side in self.tables)
        return float((other - one) / found.law.scale)


def _audit(unit: Unit, trials: int) -> EpsilonBound:
    neighbours = NEIGHBOURS[unit]
    reader = Reader.of(neighbours)

    def run(rows: Rows) -> Callable[[int], np.ndarray]:
        columns = {name: [str(row[i]) for row in rows] for i, name in enumerate("abc")}

        def draw(trials: int) -> np.ndarray:
            # One account pays for all trials, each of which spends 1.
            airlock = open_airlock(columns, SCHEMA, budget=PureDP(trials), unit=unit)
            found = [reader.read(adaptive(airlock, spend=1, rates=RATES)) for _ in range(trials)]
            assert airlock.remaining.is_zero
            return np.array(found)

        return draw

    return empirical_epsilon(*map(run, neighbours), trials=trials, confidence=SURE)


QUICK = 120
"""Runs on each side. Half are held out: 60 of 60 against none prove ε ≥ 1.3, and with fewer than 94 none refute 1."""


@pytest.mark.parametrize("trials", [QUICK, pytest.param(4000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("unit", first_is_quick(ROW_UNITS))
def test_the_search_keeps_its_claim_on_the_worst_neighbours(unit: Unit, trials: int) -> None:
    evidence = _audit(unit, trials)
    assert not evidence.contradicts(1.0), str(evidence)


class Cheap:
    """A query that says it costs less than what its answer is drawn with."""

    def __init__(self, query: Tables | Choice, cost: Finite) -> None:
        self._query, self.cost = query, cost

    def __getattr__(self, name: str) -> Any:
        return getattr(self._query, name)


def _overdraw(
    monkeypatch: pytest.MonkeyPatch, kind: type[Tables | Choice], afford: Callable[[Any, Finite], Finite]
) -> None:
    """Draw the answers to a query with more than is debited for it."""
    honest = kind.price

    def price(sets: list[Any], *rest: Any, **options: Any) -> Cheap:
        given = list(rest)
        (place,) = (i for i, value in enumerate(given) if isinstance(value, Finite))
        cost, given[place] = given[place], afford(sets, given[place])
        return Cheap(honest(sets, *given, **options), cost)

    monkeypatch.setattr(kind, "price", price)


def test_the_same_audit_catches_choices_by_fractions_of_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The score counts rows, and its noise is that of a score which a row moves by 1/n."""
    _overdraw(monkeypatch, Choice, lambda candidates, cost: cost * len(ROWS))
    assert within_attempts(lambda: _audit(Unit.REPLACE_ONE, QUICK).contradicts(1.0))


def test_the_same_audit_catches_tables_with_a_hundredth_of_their_noise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The noise is that of percents."""
    _overdraw(monkeypatch, Tables, lambda sets, cost: cost * 100)
    assert within_attempts(lambda: _audit(Unit.ADD_REMOVE, QUICK).contradicts(1.0))


@pytest.mark.slow
def test_a_longer_audit_catches_a_budget_that_is_not_split(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every choice and every table is drawn with the whole ε, and only its part is debited: 2 are proved."""
    _overdraw(monkeypatch, Choice, lambda candidates, cost: PureDP(1))
    _overdraw(monkeypatch, Tables, lambda sets, cost: PureDP(len(sets)))
    assert within_attempts(lambda: _audit(Unit.ADD_REMOVE, 800).contradicts(1.0))
