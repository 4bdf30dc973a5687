"""A search of many attributes: whose turn it is, what is looked at, when it ends, and what all of it is bounded by."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from discreet.compute.cliques.model import ModelTree
from discreet.learning.searching.attribute_sets import MANY_ATTRIBUTES, Candidates, Turns, keep_near
from discreet.learning.searching.effort import count_batches, count_looked, predict_effort
from discreet.learning.searching.prices import MANY_BATCHES, Prices, Rates, ends_search

SIZES = {f"x{i}": 2 + i % 4 for i in range(12)}
PAIRS = list(itertools.combinations(SIZES, 2))


def _link_best(weights: dict[tuple[str, ...], float]) -> set[tuple[str, ...]]:
    """The best tree by the book: the strongest link first, unless it closes a circle."""
    home = {name: name for name in SIZES}
    tree = set()
    for pair in sorted(weights, key=lambda found: -weights[found]):
        one, other = (home[name] for name in pair)
        if one != other:
            tree.add(pair)
            home = {name: one if found == other else found for name, found in home.items()}
    return tree


@pytest.mark.parametrize("seed", range(5))
def test_in_turns_the_best_tree_is_found_with_a_part_of_the_looks(seed: int) -> None:
    rng = np.random.default_rng(seed)
    weights = dict(zip(PAIRS, rng.random(len(PAIRS)), strict=True))
    turns, batch, looks = Turns(SIZES), [], 0
    while near := turns.call(batch):
        fitting = Candidates(_tables(), SIZES, 1.0).find_fitting(batch, lambda cells: 0.0, 1.0, near)
        looks += len(fitting)
        batch.append(max((PAIRS[i] for i in fitting), key=weights.__getitem__))
    assert set(batch) == _link_best(weights)
    assert looks < len(batch) * len(PAIRS) / 2


def test_a_group_that_finds_nothing_is_left_out_until_another_finds_it() -> None:
    turns = Turns(dict.fromkeys("abc", 2))
    assert turns.call([]) == {"a"}
    before = turns.left
    turns.leave_out(frozenset("a"))
    assert turns.left == before - 1
    assert turns.call([]) == {"b"}
    assert turns.call([("a", "b")]) == {"c"}
    turns.leave_out(frozenset("c"))
    assert turns.call([("a", "b")]) == {"a", "b"}
    assert turns.call([("a", "b"), ("b", "c")]) == frozenset()


def _tables() -> dict[tuple[str, ...], np.ndarray]:
    return {pair: np.ones([SIZES[name] for name in pair]) for pair in PAIRS}


def test_what_fits_links_nothing_twice_and_can_be_paid_for() -> None:
    tables = {**_tables(), ("x0", "x1", "x2"): np.ones((2, 3, 4)), ("x0", "x5", "x7"): np.ones((2, 3, 5))}
    found = Candidates(dict(tables), SIZES, 10.0)
    batch = [("x0", "x1"), ("x1", "x4")]
    fitting = {found.sets[i] for i in found.find_fitting(batch, float, 25)}
    group = {"x0", "x1", "x4"}
    assert fitting == {
        members
        for members, values in tables.items()
        if len(group.intersection(members)) < 2 and values.size <= 25
    }
    near = {found.sets[i] for i in found.find_fitting(batch, float, 25, ["x3"])}
    assert near == {members for members in fitting if "x3" in members}


def test_handicaps_follow_their_formula() -> None:
    tables = {**_tables(), ("x0", "x1", "x2"): np.ones((2, 3, 4))}
    found, rates = Candidates(dict(tables), SIZES, 10.0), Rates()
    prices = Prices(True, 1, 1, 0.5, unit=0.001)
    known = {name: 1.0 + i for i, name in enumerate(SIZES)}
    places = np.array([0, 5, len(PAIRS)])
    lost = rates.forgone * prices.forgo(list(SIZES.values()), 0.7)
    expected = [
        (rates.smooth if members == PAIRS[0] else 1.0)
        * (
            rates.handicap * prices.noise(tables[members].size, prices.table(tables[members].size))
            + rates.known * sum(known[name] for name in members)
            + lost * (prices.table(tables[members].size) + 0.01) / math.comb(len(members), 2)
        )
        for members in (found.sets[i] for i in places)
    ]
    got = found.handicap(places, known, {"x0", "x1", "x2"}, prices, rates, (0.7, 0.01))
    assert got.tolist() == expected


def test_near_pairs_are_kept_and_no_more_than_so_many() -> None:
    chain = list(itertools.pairwise(SIZES))
    tree = ModelTree.plan(SIZES, chain)
    assert keep_near(frozenset(PAIRS), tree, len(PAIRS)) == frozenset(PAIRS)
    assert keep_near(frozenset(PAIRS), tree, len(chain)) == frozenset(chain)
    assert keep_near(frozenset(PAIRS), ModelTree.plan(SIZES, []), 3) < frozenset(PAIRS)


def test_a_tree_that_is_added_to_holds_the_set() -> None:
    tree = ModelTree.plan(SIZES, list(itertools.pairwise(SIZES)))
    for members in (("x0", "x11"), ("x3", "x4", "x9")):
        grown = tree.add(members)
        assert any(set(clique).issuperset(members) for clique in grown.cliques)
        assert grown.cells <= tree.bound_cells(members)
        assert grown.neighbours == ModelTree.plan(SIZES, [*itertools.pairwise(SIZES), members]).neighbours


def test_few_attributes_go_on_and_many_end_with_a_batch_that_finds_little() -> None:
    many = MANY_ATTRIBUTES + 1
    assert not ends_search(MANY_ATTRIBUTES, [30, 1, 1, 1], 14, 1)
    assert not ends_search(many, [2], 14, 1), (
        "the first batch may end early, where some are linked to nothing"
    )
    assert ends_search(many, [30, 6], 14, 1)
    assert not ends_search(many, [30, 7], 14, 1)
    assert ends_search(many, [14] * MANY_BATCHES, 14, 1)
    assert not ends_search(many, [14] * MANY_BATCHES, 14, 2)


@pytest.mark.parametrize("gaussian", [False, True])
def test_what_many_attributes_take_is_bounded_whatever_is_spent(gaussian: bool) -> None:
    sizes = [2, 4, 6, 8, 10] * 60
    batches = count_batches(Prices(gaussian, 1, 1, 1e9), sizes, 1e6, Rates())
    assert batches <= MANY_BATCHES
    pairs = math.comb(300, 2)
    said = predict_effort(sizes, 5e4, batches=batches, candidates=pairs, cells=36 * pairs, model_cells=2**17)
    assert 20 < said.seconds < 200 and said.megabytes < 500
    assert str(said).startswith("at most about ")


def test_all_pairs_are_reckoned_with_though_attributes_take_turns() -> None:
    assert count_looked([2] * 50, [(49, 200), (700, 2800)]) == (1225, 4900)
    assert count_looked([2] * 50, []) == (0, 0)
    assert count_looked([2] * 12, [(11, 44)]) == (11, 44)
