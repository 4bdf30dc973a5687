"""A small table in pure ε: few sets hold all its pairs if their noise is bearable, and triples as far as these pay."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from discreet.entrance import open_airlock
from discreet.judge.preview import rehearse
from discreet.learning.adaptive import adaptive
from discreet.learning.searching.attribute_sets import cover_pairs, sum_roots
from discreet.learning.searching.prices import Prices, Rates, cover_small, expect_margins
from discreet.values.budget import ZCDP, Finite, PureDP
from discreet.values.schema import Schema

BITS = {f"x{i}": 2 for i in range(12)}


@pytest.mark.parametrize(
    "levels", [[2] * 12, [2] * 16, [8, 2, 8, 4, 5], [16, 4, 2, 2, 2, 8], [2, 2], [3, 70]]
)
def test_every_pair_is_held_for_less_than_the_pairs_cost_by_themselves(levels: list[int]) -> None:
    sizes = {f"x{i}": size for i, size in enumerate(levels)}
    pairs = list(itertools.combinations(sizes, 2))
    covers = cover_pairs(sizes)
    for sets in covers:
        assert all(any(set(pair) <= set(found) for found in sets) for pair in pairs)
    assert min(sum_roots(sets, sizes) for sets in covers) <= sum_roots(pairs, sizes)
    assert covers == cover_pairs(dict(sizes))  # a replay must find the same


def test_many_small_attributes_share_few_sets() -> None:
    sizes = {f"x{i}": 2 for i in range(12)}
    least = min(sum_roots(sets, sizes) for sets in cover_pairs(sizes))
    assert least < 0.4 * sum_roots(itertools.combinations(sizes, 2), sizes)


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


def test_it_is_left_to_the_search_where_noise_is_much_or_the_table_large_and_in_rho() -> None:
    def cover(epsilon: float, rows: float, gaussian: bool = False, cells: int = 2**17) -> bool:
        return bool(cover_small(Prices(gaussian, 1, 1, epsilon), BITS, rows, Rates(), cells))

    assert cover(1, 3_000)
    assert not cover(1, 100), "all pairs drown"
    assert not cover(1, 3_000, gaussian=True)
    assert not cover(1, 3_000, cells=200), "a model of all pairs has all cells"


def test_the_less_noise_the_more_triples_are_held() -> None:
    def miss(rows: float) -> int:
        sets = cover_small(Prices(False, 1, 1, 1.0), BITS, rows, Rates(), 2**17)
        held = {found for members in sets for found in itertools.combinations(sorted(members), 3)}
        return math.comb(len(BITS), 3) - len(held)

    missed = [miss(rows) for rows in (1e3, 1e4, 1e5, 1e6)]
    assert missed == sorted(missed, reverse=True)
    assert missed[0] > 0 and missed[-1] == 0


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
    # 0.8² + 0.2², give or take 0.014; of attributes that have nothing to do with each other it would be 0.5.
    assert joint[0, 0] + joint[1, 1] == pytest.approx(0.68, abs=0.1)


def test_in_rho_sets_are_chosen() -> None:
    budget = ZCDP("1/10")
    with _open(3_000, budget) as airlock:
        known = adaptive(airlock, spend=budget, width=2).provenance
    assert known is not None and known.details["choices"]


def test_links_that_chance_explains_are_not_published() -> None:
    """Two groups that have nothing to do with each other; with so large an ε the seed of the rows decides."""
    rng = np.random.default_rng(3)
    first, second = rng.integers(0, 2, 3_000), rng.integers(0, 2, 3_000)
    columns = {
        name: np.where(rng.random(3_000) < 0.1, rng.integers(0, 2, 3_000), first if i < 3 else second)
        for i, name in enumerate(BITS)
    }
    columns["x10"], columns["x11"] = rng.integers(0, 2, 3_000), rng.integers(0, 2, 3_000)
    with open_airlock(columns, Schema.of({name: range(2) for name in BITS}), budget=PureDP(1000)) as airlock:
        dag = adaptive(airlock, spend=1000).dag
    arrows = {frozenset((above, name)) for name in dag.nodes for above in dag.parents_of(name)}
    inside = [set(itertools.combinations(group, 2)) for group in (list(BITS)[:3], list(BITS)[3:10])]
    strange = [pair for pair in arrows if not any(tuple(sorted(pair)) in group for group in inside)]
    assert len(strange) <= 6, "of 42 pairs that have nothing to do with each other, one in twenty by chance"
    assert {frozenset(("x0", "x1")), frozenset(("x3", "x4"))} <= arrows


def test_a_plan_says_that_nothing_is_chosen() -> None:
    schema = Schema.of({name: range(2) for name in BITS})
    assert "it would choose nothing" in rehearse(schema, None, spend=PureDP(1), rows=3_000).explain()
    wide = Schema.of({name: range(9) for name in BITS})
    told = rehearse(wide, None, spend=PureDP(100), rows=3_000, options={"width": 2}).explain()
    assert "private choices" in told
