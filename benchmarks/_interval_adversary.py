"""An adversary who chooses the next table by the noise so far, for `intervals.py` and the planted tests."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache

import numpy as np

from discreet.compute.region.margins import Batch, Region, cut_batches
from discreet.values.budget import ZCDP, PureDP
from discreet.values.measurement import DiscreteGaussian, DiscreteLaplace, Law, Measurement
from discreet.values.table import Table
from discreet.values.unit import Unit

BATCHES = 24
ALPHA = 0.05
TRUTH = 1000
LAWS: tuple[Law, ...] = (DiscreteLaplace(Fraction(12)), DiscreteGaussian(Fraction(200)))


@cache
def _tabulate(law: Law) -> tuple[np.ndarray, np.ndarray]:
    support = np.arange(-400, 401)
    chances = law.pmf(support)
    return support, chances / chances.sum()


def draw(law: Law, rng: np.random.Generator, cells: int = 2) -> np.ndarray:
    """Noise for a simulation, which may be seeded."""
    support, chances = _tabulate(law)
    return rng.choice(support, cells, p=chances)


def measure(noise: np.ndarray, law: Law, name: str) -> Measurement:
    """A table of 1000 rows in each cell with this noise, for an equal share of the budget."""
    cost = PureDP(Fraction(1, BATCHES)) if isinstance(law, DiscreteLaplace) else ZCDP(Fraction(1, BATCHES))
    return Measurement(Table((name,), TRUTH + noise), law, Unit.ADD_REMOVE, cost)


def misses(region: Region, names: list[str]) -> bool:
    """Whether some interval of some table does not hold the truth."""
    for name in dict.fromkeys(names):
        found = region.bound((name,))
        assert found is not None
        if ((found.low > TRUTH) | (found.high < TRUTH)).any():
            return True
    return False


def by_cost(tables: list[Measurement], number: int) -> Region:
    """The rule: α in proportion to the cost, whatever follows and however many tables there are."""
    names = tuple(dict.fromkeys(table.axes[0] for table in tables))
    return Region(names, cut_batches(tables, Fraction(1), None), 1 - ALPHA)


def by_final_cells(tables: list[Measurement], number: int) -> Region:
    """Planted: α divided by the number of tables that there happen to be in the end."""
    names = tuple(dict.fromkeys(table.axes[0] for table in tables))
    share = Fraction(2, number)  # twice, so that nothing is kept for sequences
    return Region(names, tuple(Batch((table,), share) for table in tables), 1 - ALPHA)


def stop_when_wrong(
    law: Law, make: Callable[[list[Measurement], int], Region], rng: np.random.Generator
) -> bool:
    """Measure one new attribute after the other until an interval misses or the budget is spent."""
    tables: list[Measurement] = []
    while len(tables) < BATCHES:
        tables.append(measure(draw(law, rng), law, f"x{len(tables)}"))
        if misses(make(tables[-1:], len(tables)), [tables[-1].axes[0]]):
            return True
    return misses(make(tables, len(tables)), [table.axes[0] for table in tables])


def go_on_while_lucky(law: Law, rng: np.random.Generator, *, reuse: bool) -> bool:
    """Measure the same attribute again until the mean is further off than noise usually is."""
    tables = [measure(draw(law, rng), law, "x")]
    while len(tables) < BATCHES:
        off = np.abs(np.mean([table.noisy.values for table in tables], axis=0) - TRUTH).max()
        if off > 2.0 * np.sqrt(law.variance / len(tables)) and len(tables) > 1 and not reuse:
            break
        noise = np.asarray(tables[0].noisy.values) - TRUTH if reuse else draw(law, rng)
        tables.append(measure(noise, law, "x"))
    return misses(by_cost(tables, len(tables)), ["x"])


def rate_misses(rule: str, trials: int, seed: int = 8) -> float:
    """How often some interval misses; half of the trials with each law."""
    attempts: dict[str, Callable[[Law, np.random.Generator], bool]] = {
        "rule": lambda law, rng: stop_when_wrong(law, by_cost, rng),
        "final cells": lambda law, rng: stop_when_wrong(law, by_final_cells, rng),
        "again": lambda law, rng: go_on_while_lucky(law, rng, reuse=False),
        "reused noise": lambda law, rng: go_on_while_lucky(law, rng, reuse=True),
    }
    rng = np.random.default_rng(seed)
    return float(np.mean([attempts[rule](LAWS[k % 2], rng) for k in range(trials)]))
