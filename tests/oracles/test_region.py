"""Bounds over all tables that noisy margins leave possible, against an enumeration and against the whole program."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

from discreet.compute.region.margins import Batch, Region, list_margins
from discreet.compute.region.program import Contradiction, Program
from discreet.compute.region.relaxation import Relaxation, choose_helpers
from discreet.values.budget import PureDP
from discreet.values.measurement import DiscreteLaplace, Measurement
from discreet.values.table import Table
from discreet.values.unit import Unit

NAMES = ("a", "b", "c", "d")


def measure(true: np.ndarray, axes: tuple[str, ...], rng: np.random.Generator, scale: str) -> Measurement:
    """A noisy margin; the noise of a test may be seeded."""
    law = DiscreteLaplace(Fraction(scale))
    q = np.exp(-1 / float(law.scale))
    drop = tuple(k for k, name in enumerate(NAMES) if name not in axes)
    margin = true.sum(axis=drop)
    noise = rng.geometric(1 - q, margin.shape) - rng.geometric(1 - q, margin.shape)
    return Measurement(Table(axes, (margin + noise).astype(np.int64)), law, Unit.ADD_REMOVE, PureDP(1))


def make_region(true: np.ndarray, sets: list[tuple[str, ...]], seed: int, scale: str = "1/2") -> Region:
    """The region of one table for each set, each a batch of its own."""
    rng = np.random.default_rng(seed)
    tables = [measure(true, axes, rng, scale) for axes in sets]
    return Region(NAMES, tuple(Batch((table,), Fraction(1, len(sets))) for table in tables), 0.95)


def list_rows(region: Region) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All intervals as rows l ≤ A·n ≤ h over the 16 cells of the whole table."""
    lines, low, high = [], [], []
    places = np.indices((2,) * 4).reshape(4, -1)
    for count in range(5):
        for members in itertools.combinations(NAMES, count):
            found = region.bound(members)
            if found is None:
                continue
            for cell in itertools.product(range(2), repeat=count):
                mine = [places[NAMES.index(name)] == code for name, code in zip(members, cell, strict=True)]
                lines.append(np.all(mine, axis=0) if mine else np.ones(16))
                low.append(np.asarray(found.low)[cell])
                high.append(np.asarray(found.high)[cell])
    return np.array(lines, dtype=float), np.array(low, dtype=float), np.array(high, dtype=float)


def solve_whole(region: Region, function: np.ndarray, given: np.ndarray) -> tuple[float, float]:
    """The exact least and greatest share over the whole region, by Charnes and Cooper's program with SciPy."""
    lines, low, high = list_rows(region)
    above = np.hstack([lines, -high[:, None]])
    below = np.hstack([-lines, low[:, None]])
    ends = []
    for sign in (1.0, -1.0):
        cost = np.append(sign * (function * given).ravel(), 0.0)
        found = linprog(
            cost,
            A_ub=np.vstack([above, below]),
            b_ub=np.zeros(2 * len(lines)),
            A_eq=np.append(given.ravel(), 0.0)[None],
            b_eq=[1.0],
            bounds=[(0, None)] * 16 + [(0, 1)],
        )
        assert found.status == 0
        ends.append(sign * found.fun)
    return ends[0], ends[1]


def relax(region: Region, base: tuple[str, ...]) -> Relaxation:
    """The relaxation of a question about these attributes, with all levels told apart."""
    helpers = choose_helpers(region, base, 2 ** len(base), dict.fromkeys(NAMES, 2), {}, 4096)
    made = Relaxation(region, base, helpers)
    made.regroup({name: np.arange(2) for name in NAMES})
    return made


@pytest.mark.parametrize("seed", range(12))
def test_a_relaxation_contains_the_whole_region_and_is_near_it(seed: int) -> None:
    """Unmeasured pairs and triples: never narrower than the whole program, and seldom much wider."""
    rng = np.random.default_rng(100 + seed)
    true = rng.integers(0, 60, (2,) * 4)
    region = make_region(true, [("a", "b"), ("b", "c"), ("c", "d"), ("a", "d"), ("b", "d")], seed)
    for base, target in ((("a", "c"), "c"), (("a", "b", "c"), "a"), (("a", "c", "d"), "d")):
        made = relax(region, base)
        shape = (2,) * len(base)
        at = tuple(slice(None) if name == target else 1 for name in base)
        given, function = np.zeros(shape), np.zeros(shape)
        given[at] = 1.0
        function[(1,) * len(base)] = 1.0
        wide = [2 if name in base else 1 for name in NAMES]
        whole_given = np.broadcast_to(given.reshape(wide), (2,) * 4)
        whole_function = np.broadcast_to(function.reshape(wide), (2,) * 4)
        fewest = max(1.0, made.bound_sum(given)[0])
        low, high = made.bound_share(function, given, fewest)
        least, most = solve_whole(region, whole_function, whole_given)
        assert low <= least + 1e-6
        assert most <= high + 1e-6
        assert high - low <= most - least + 0.15
        share = (true * whole_function * whole_given).sum() / (true * whole_given).sum()
        assert low <= share <= high


def test_bounds_hold_every_whole_table_that_fits() -> None:
    """All tables of 5 rows over three attributes whose pairs fit the intervals: none lies outside of the bounds."""
    true = np.zeros((2,) * 4, dtype=np.int64)
    true[0, 0, 1, 0], true[1, 1, 1, 0], true[1, 0, 0, 0] = 2, 2, 1
    region = make_region(true, [("a", "b"), ("b", "c")], 3, "1/6")
    made = relax(region, ("a", "b", "c"))
    given, function = np.zeros((2,) * 3), np.zeros((2,) * 3)
    given[1, :, :], function[1, :, 1] = 1.0, 1.0
    low, high = made.bound_share(function, given, 1.0)
    pairs = {axes: region.bound(axes) for axes in (("a", "b"), ("b", "c"), ("a",), ("b",), ("c",), ())}
    seen = []
    for bars in itertools.combinations(range(5 + 7), 7):
        edges = np.array([-1, *bars, 12])
        table = (np.diff(edges) - 1).reshape((2,) * 3)
        fits = all(
            found is not None
            and (np.asarray(found.low) <= margin).all()
            and (margin <= np.asarray(found.high)).all()
            for axes, found in pairs.items()
            for margin in [table.sum(axis=tuple(k for k, name in enumerate("abc") if name not in axes))]
        )
        if fits and table[1].sum() > 0:
            seen.append(table[1, :, 1].sum() / table[1].sum())
    assert len(seen) > 3
    assert low <= min(seen) and max(seen) <= high


def test_any_multipliers_prove_a_bound() -> None:
    """The certificate is right for random multipliers, and meets the optimum at the solver's own."""
    rng = np.random.default_rng(4)
    matrix = rng.integers(0, 2, (6, 8)).astype(float)
    inside = rng.random(8)
    centre = matrix @ inside
    rows, columns = np.nonzero(matrix)
    program = Program(rows, columns, matrix[rows, columns], centre - 0.1, centre + 0.1, np.ones(8))
    cost = rng.standard_normal(8)
    bound, found = program.minimise(cost)
    assert bound == pytest.approx(float(cost @ found), abs=1e-7)
    for _ in range(200):
        assert program.certify(cost, rng.standard_normal(6)) <= bound + 1e-9
    program.move(centre + 5, centre + 6)
    with pytest.raises(Contradiction):
        program.minimise(cost)


def test_every_margin_of_a_table_is_listed_unless_there_are_too_many() -> None:
    """All subsets of few attributes; of many, those of at most three and the whole."""
    small = measure(np.ones((2,) * 4, dtype=np.int64), NAMES, np.random.default_rng(0), "1")
    assert len(list_margins(small)) == 16
    wide = Measurement(
        Table(tuple("abcdefghijkl"), np.zeros((2,) * 12, dtype=np.int64)), small.law, small.unit, small.cost
    )
    margins = list_margins(wide)
    assert max(len(found) for found in margins[:-1]) == 3
    assert len(margins[-1]) == 12
