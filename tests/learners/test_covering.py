"""A small table in pure ε: few sets hold all its pairs, if their noise is bearable and triples are out of reach."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from discreet.entrance import open_airlock
from discreet.judge.preview import rehearse
from discreet.learning.adaptive import adaptive
from discreet.learning.attribute_sets import cover_pairs, sum_roots
from discreet.learning.search_prices import Prices, Rates, cover_small, expect_margins
from discreet.values.budget import ZCDP, Finite, PureDP
from discreet.values.schema import Schema

BITS = {f"x{i}": 2 for i in range(12)}


@pytest.mark.parametrize(
    "levels", [[2] * 12, [2] * 16, [8, 2, 8, 4, 5], [16, 4, 2, 2, 2, 8], [2, 2], [3, 70]]
)
def test_every_pair_is_held_for_less_than_the_pairs_cost_by_themselves(levels: list[int]) -> None:
    sizes = {f"x{i}": size for i, size in enumerate(levels)}
    sets = cover_pairs(sizes)
    pairs = list(itertools.combinations(sizes, 2))
    assert all(any(set(pair) <= set(found) for found in sets) for pair in pairs)
    assert sum_roots(sets, sizes) <= sum_roots(pairs, sizes)
    assert sets == cover_pairs(dict(sizes))  # a replay must find the same


def test_many_small_attributes_share_few_sets() -> None:
    sizes = {f"x{i}": 2 for i in range(12)}
    assert sum_roots(cover_pairs(sizes), sizes) < 0.4 * sum_roots(itertools.combinations(sizes, 2), sizes)


@pytest.mark.parametrize("ways", [2, 3])
def test_the_noise_of_margins_is_as_predicted(ways: int) -> None:
    """Laplace noise in one table of all attributes, summed to every margin, against the formula."""
    levels, epsilon = [2, 3, 4, 5], 0.5
    prices = Prices(False, 2, 2, epsilon)
    rng = np.random.default_rng(1)
    draws = rng.laplace(0.0, 2 / epsilon, (400, *levels))
    found = [
        np.abs(draws.sum(axis=tuple(1 + i for i in range(4) if i not in kept)))
        .reshape(400, -1)
        .sum(axis=1)
        .mean()
        for kept in itertools.combinations(range(4), ways)
    ]
    predicted = expect_margins(prices, levels, ways, math.sqrt(math.prod(levels)))
    assert np.mean(found) == pytest.approx(predicted, rel=0.05)


def test_it_is_left_to_the_search_where_noise_is_little_or_much_and_in_rho() -> None:
    def cover(epsilon: float, rows: float, gaussian: bool = False, cells: int = 2**17) -> bool:
        return bool(cover_small(Prices(gaussian, 1, 1, epsilon), BITS, rows, Rates(), cells))

    assert cover(1, 3_000)
    assert not cover(1, 100), "all pairs drown"
    assert not cover(1, 100_000), "dependences of three can be found"
    assert not cover(1, 3_000, gaussian=True)
    few = {name: BITS[name] for name in ("x0", "x1", "x2")}
    prices = Prices(False, 1, 1, 1.0)
    assert cover_small(prices, few, 1e6, Rates(), 2**17) == [("x0", "x1", "x2")], "one table misses no triple"
    assert not cover(1, 3_000, cells=200), "a model of all pairs has all cells"


def _open(rows: int, budget: Finite):  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(2)
    first = rng.integers(0, 2, rows)
    columns = {name: np.where(rng.random(rows) < 0.2, 1 - first, first) for name in BITS}
    return open_airlock(columns, Schema.of({name: range(2) for name in BITS}), budget=budget)


def test_no_choice_is_made_and_the_budget_is_spent_exactly() -> None:
    with _open(3_000, PureDP(1)) as airlock:
        network = adaptive(airlock, spend=1)
        assert airlock.remaining.is_zero
    known = network.provenance
    assert known is not None and known.details["choices"] == []
    held = [set(found) for found in known.details["sets"]]
    assert all(any(set(pair) <= found for found in held) for pair in itertools.combinations(BITS, 2))
    joint = network.engine.joint(("x0", "x11"), {}).arrange(("x0", "x11")).values
    assert joint[0, 0] + joint[1, 1] == pytest.approx(0.68, abs=0.06)  # 0.8² + 0.2²


@pytest.mark.parametrize("budget", [PureDP(100), ZCDP("1/10")])
def test_with_little_noise_or_in_rho_sets_are_chosen(budget: Finite) -> None:
    with _open(3_000, budget) as airlock:
        known = adaptive(airlock, spend=budget, width=2).provenance
    assert known is not None and known.details["choices"]


def test_a_plan_says_that_nothing_is_chosen() -> None:
    schema = Schema.of({name: range(2) for name in BITS})
    assert "it would choose nothing" in rehearse(schema, None, spend=PureDP(1), rows=3_000).explain()
    assert (
        "private choices"
        in rehearse(schema, None, spend=PureDP(100), rows=3_000, options={"width": 2}).explain()
    )
