"""Balanced rows: counts next to those of the network, every event in its exact expectation, whatever the slices."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from discreet.compute import balancing
from discreet.compute.balancing import draw_balanced
from discreet.compute.sampling import Sampler, prepare
from discreet.networks import examples
from discreet.networks.synthetic import Rows
from discreet.values.schema import Schema
from discreet.values.table import Array, Table, count_cells

ALPHA = 1e-6


def make_factors(seed: int, sizes: list[int]) -> list[Table]:
    """Random conditionals in sampling order, each with up to two parents."""
    rng = np.random.default_rng(seed)
    found = []
    for i, size in enumerate(sizes):
        parents = sorted(rng.permutation(i)[: rng.integers(0, 3)].tolist())
        shape = [*(sizes[j] for j in parents), size]
        values = rng.dirichlet(np.ones(size), size=shape[:-1])
        found.append(Table((*(f"a{j}" for j in parents), f"a{i}"), values))
    return found


def count(codes: dict[str, Array], axes: tuple[str, ...], shape: tuple[int, ...]) -> Array:
    index = np.ravel_multi_index([codes[name].astype(np.intp) for name in axes], shape)
    return np.bincount(index, minlength=count_cells(shape)).reshape(shape)


def draw(sampler: Sampler, n: int) -> dict[str, Array]:
    return draw_balanced(sampler, n, 0, n, compiled=False)


def farthest(codes: dict[str, Array], factors: list[Table]) -> float:
    """The most that a count of a family is off, given the count of the parents."""
    worst = 0.0
    for factor in factors:
        counts = count(codes, factor.axes, factor.values.shape)
        worst = max(worst, float(np.abs(counts - counts.sum(axis=-1, keepdims=True) * factor.values).max()))
    return worst


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 2**40),
    sizes=st.lists(st.sampled_from([2, 3, 5, 11]), min_size=1, max_size=5),
    n=st.integers(0, 700),
)
def test_no_level_is_given_to_one_row_more_or_less_than_it_should(
    seed: int, sizes: list[int], n: int
) -> None:
    factors = make_factors(seed % 1000, sizes)
    codes = draw(prepare(factors, seed), n)
    assert all(len(column) == n for column in codes.values())
    assert farthest(codes, factors) < 1.0 + 1e-9


def test_independent_rows_fail_the_same_check() -> None:
    factors = make_factors(3, [3, 4, 2])
    assert farthest(prepare(factors, 1).draw(0, 700), factors) > 2.0


def weigh_deviations(factors: list[Table], n: int, runs: int) -> Array:
    """For every cell of the joint, how many standard errors its mean count is from n times its probability."""
    joint = Table((), np.ones(()))
    for factor in factors:
        joint = joint.multiply(factor)
    counts = np.array(
        [count(draw(prepare(factors, seed), n), joint.axes, joint.values.shape) for seed in range(runs)]
    )
    off = counts.mean(axis=0) - n * joint.values
    # A binomial count varies by np(1 − p); balanced ones by less, but that is not to be taken on trust.
    error = np.sqrt(np.maximum(counts.var(axis=0), n * joint.values * (1 - joint.values) / 4) / runs)
    return np.asarray(np.abs(off) / error)


@pytest.mark.parametrize(("seed", "sizes", "n"), [(1, [2, 3, 2, 2], 7), (2, [3, 2, 2], 20), (5, [2, 2], 1)])
def test_every_cell_has_its_exact_expectation(seed: int, sizes: list[int], n: int) -> None:
    found = weigh_deviations(make_factors(seed, sizes), n, 3000)
    assert found.max() < norm.isf(ALPHA / found.size / 2)


def test_the_check_of_expectations_catches_a_lattice_that_never_shifts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without its random offset the grid always begins at 0, and the first level of a few rows has too many."""

    class Fixed(np.random.Generator):
        def random(self, size=None, dtype=np.float64, out=None):  # type: ignore[no-untyped-def]
            return np.zeros(size)

    honest = balancing.open_stream

    def open_fixed(*arguments: object) -> np.random.Generator:
        return Fixed(honest(*arguments).bit_generator)  # type: ignore[arg-type]

    monkeypatch.setattr(balancing, "open_stream", open_fixed)
    found = weigh_deviations(make_factors(2, [3, 2, 2]), 20, 1000)
    assert found.max() > norm.isf(ALPHA / found.size / 2)


def test_rows_are_in_random_order() -> None:
    """Row 0 and the last row alone have the law of the network, and neighbours are not alike."""
    factors = [Table(("a",), np.array([0.2, 0.8]))]
    runs = 2000
    first, second, last = np.array(
        [draw(prepare(factors, seed), 10)["a"][[0, 1, 9]] for seed in range(runs)]
    ).T
    for found in (first, last):
        assert abs(found.mean() - 0.8) < norm.isf(ALPHA / 2) * math.sqrt(0.16 / runs)
    # Exactly two of ten rows are 0: both of two given ones are with probability 1/45.
    both = ((first == 0) & (second == 0)).mean()
    assert abs(both - 1 / 45) < norm.isf(ALPHA / 2) * math.sqrt(1 / 45 / runs)


@pytest.mark.parametrize("block", [64, 1000])
def test_slices_do_not_matter(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    """Blocks are balanced by themselves, and any slices put together are the whole."""
    monkeypatch.setattr(balancing, "BLOCK", block)
    factors = make_factors(4, [3, 300, 2, 4])
    sampler = prepare(factors, 9)
    whole = draw(sampler, 500)
    for compiled in (False, True):
        cuts = [0, 1, 63, 64, 200, 200, 449, 500]
        parts = [draw_balanced(sampler, 500, a, b, compiled=compiled) for a, b in itertools.pairwise(cuts)]
        for name, codes in whole.items():
            joined = np.concatenate([part[name] for part in parts])
            assert np.array_equal(codes, joined)
            assert codes.dtype == joined.dtype
    assert farthest(whole, factors) < 1.0 + 500 / block


def test_learned_networks_give_balanced_rows_and_declared_ones_independent_rows() -> None:
    """Rows of a declared network stand for people; those of a release for its network."""
    asia = examples.asia()
    assert not asia.sample(10, rng=1).balanced
    assert asia.sample(10, rng=1, balanced=True).balanced
    schema = Schema.of({"a": ["0", "1"]})
    rows = Rows.draw(schema, [Table(("a",), np.array([0.25, 0.75]))], 400, rng=1, balanced=True)
    assert rows.codes()["a"].sum() == 300
    assert np.concatenate([part["a"] for part in rows.chunks(37)]).tolist() == rows.codes()["a"].tolist()


def test_rows_that_are_not_in_a_clique_are_balanced_too() -> None:
    """Pairs that no table holds are nearer to the network than independent rows are: ten runs of each, summed."""
    network = examples.child()
    pairs = list(itertools.combinations(network.nodes[:8], 2))
    exact = {pair: network.engine.joint(pair, {}).arrange(pair).values for pair in pairs}

    def miss(balanced: bool, seed: int) -> float:
        codes = network.sample(2000, rng=seed, balanced=balanced).codes()
        return sum(
            float(np.abs(count(codes, pair, table.shape) / 2000 - table).sum())
            for pair, table in exact.items()
        )

    even, free = (sum(miss(balanced, seed) for seed in range(10)) for balanced in (True, False))
    assert even < 0.7 * free
