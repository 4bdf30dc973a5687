"""Sampling: the right law, by chi-square, and the same rows however they are drawn."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from discreet.compute import sampling
from discreet.compute.sampling import TILE, open_stream, prepare, read_seed, require_rows
from discreet.values.errors import DataError, TableError, TooLarge
from discreet.values.table import Array, Table, count_cells

ALPHA = 1e-6
"""How often a right sampler may fail one check; seeds are fixed, so a pass today is a pass tomorrow."""


def make_network(seed: int, sizes: list[int], zeros: float = 0.3) -> list[Table]:
    """Random conditionals in sampling order, each with up to two parents, and some impossible levels."""
    rng = np.random.default_rng(seed)
    names = [f"a{i}" for i in range(len(sizes))]
    found = []
    for i, size in enumerate(sizes):
        given = sorted(rng.permutation(i)[: rng.integers(0, 3)].tolist())
        shape = [*(sizes[j] for j in given), size]
        values = rng.dirichlet(np.ones(size), size=shape[:-1]) * (rng.random(shape) > zeros)
        values[..., 0] += values.sum(axis=-1) == 0
        table = Table((*(names[j] for j in given), names[i]), values)
        found.append(table.normalise(names[i]))
    return found


def multiply_out(factors: list[Table]) -> Table:
    """The joint distribution, by brute force."""
    joint = Table((), np.ones(()))
    for factor in factors:
        joint = joint.multiply(factor)
    return joint


def count(codes: dict[str, Array], joint: Table) -> Array:
    """How often each cell of the joint occurs."""
    shape = joint.values.shape
    index = np.ravel_multi_index([codes[name].astype(np.intp) for name in joint.axes], shape)
    return np.bincount(index, minlength=count_cells(shape)).reshape(shape)


def chi_square(counts: Array, expected: Array) -> float:
    """The p-value of Pearson's test, with cells that expect fewer than 10 pooled into one."""
    large = expected >= 10
    seen = [*counts[large], counts[~large].sum()]
    hoped = [*expected[large], expected[~large].sum()]
    if hoped[-1] < 10:
        seen, hoped = seen[:-1], hoped[:-1]
    statistic = sum((a - b) ** 2 / b for a, b in zip(seen, hoped, strict=True))
    return float(chi2.sf(statistic, len(hoped) - 1))


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    ("seed", "sizes"),
    [(1, [2, 3, 4, 2]), (2, [5, 2, 3, 3]), (3, [12, 3, 20]), (4, [3, 2, 2, 4, 3]), (5, [300, 4])],
)
def test_the_joint_law_is_right(seed: int, sizes: list[int], compiled: bool) -> None:
    """Frequencies of whole rows fit the product of the tables, and impossible rows never occur."""
    factors = make_network(seed, sizes)
    joint = multiply_out(factors)
    n = 200_000
    counts = count(prepare(factors, seed).draw(0, n, compiled=compiled), joint)
    assert counts.sum() == n
    assert counts[joint.values == 0].sum() == 0
    assert chi_square(counts, joint.values * n) > ALPHA


def test_the_check_can_fail() -> None:
    """A coin of 0.5 that falls as 0.524 is rejected at the same size, as λ = nΣ(Δp)²/p foretells."""
    factors = [Table(("a0",), np.array([0.5, 0.5])), *make_network(1, [2, 3, 4, 2], zeros=0.0)[1:]]
    wrong = [Table(("a0",), np.array([0.55, 0.5])).normalise(), *factors[1:]]
    joint, n = multiply_out(factors), 200_000
    excess = n * ((multiply_out(wrong).values - joint.values) ** 2 / joint.values).sum()
    assert excess > 400, "far beyond the 99.9999th percentile of 23 degrees of freedom, which is 71"
    assert chi_square(count(prepare(wrong, 1).draw(0, n), joint), joint.values * n) < ALPHA


def test_neighbouring_rows_are_independent() -> None:
    """Pairs (row r, row r + 1) of one attribute fit the product law, also across tiles and slices."""
    share = np.array([0.2, 0.5, 0.3])
    sampler = prepare([Table(("a",), share)], 11)
    n = 20 * TILE
    codes = np.concatenate([sampler.draw(i * TILE, (i + 1) * TILE)["a"] for i in range(20)]).astype(np.intp)
    pairs = np.bincount(codes[:-1:2] * 3 + codes[1::2], minlength=9)
    assert chi_square(pairs, np.outer(share, share).ravel() * n / 2) > ALPHA


@settings(deadline=None, max_examples=30)
@given(
    seed=st.integers(0, 2**70),
    sizes=st.lists(st.sampled_from([2, 3, 4, 9, 10, 257]), min_size=1, max_size=4),
    cuts=st.lists(st.integers(0, 3 * TILE), max_size=4),
    threads=st.integers(1, 3),
)
def test_rows_depend_on_seed_and_number_only(
    seed: int, sizes: list[int], cuts: list[int], threads: int
) -> None:
    """Any slicing, thread count and path gives the rows that one plain draw gives."""
    sampler = prepare(make_network(seed % 1000, sizes), seed)
    n = 3 * TILE // 2
    whole = sampler.draw(0, n, threads=1, compiled=False)
    bounds = sorted({0, n, *(cut for cut in cuts if cut < n)})
    for compiled in (False, True):
        parts = [
            sampler.draw(a, b, threads=threads, compiled=compiled) for a, b in itertools.pairwise(bounds)
        ]
        for name, codes in whole.items():
            assert np.array_equal(codes, np.concatenate([part[name] for part in parts]))


def test_a_longer_sample_begins_with_the_shorter() -> None:
    """Asking for more rows later changes none of the first ones."""
    factors = make_network(6, [3, 4, 2])
    short, long = prepare(factors, 5).draw(0, 100), prepare(factors, 5).draw(0, TILE + 1)
    assert all(np.array_equal(short[name], long[name][:100]) for name in short)


def test_seeds() -> None:
    """Equal seeds give equal rows; other seeds, spawned children and a generator used twice do not."""
    factors = make_network(7, [4, 4, 4])

    def draw(rng: sampling.Seed) -> bytes:
        return b"".join(codes.tobytes() for codes in prepare(factors, rng).draw(0, 200).values())

    root = np.random.SeedSequence(9)
    assert draw(9) == draw(np.int64(9)) == draw(root) == draw(root)  # type: ignore[arg-type]
    assert root.n_children_spawned == 0
    assert len({draw(9), draw(10), *(draw(child) for child in root.spawn(3))}) == 5
    generator = np.random.default_rng(9)
    first, second = draw(generator), draw(generator)
    assert first != second
    assert first == draw(np.random.default_rng(9))


@pytest.mark.parametrize("rng", [None, True, 1.0, "7", -1])
def test_bad_seeds_are_refused(rng: object) -> None:
    """There is no default and no guessing."""
    with pytest.raises(DataError, match="rng"):
        read_seed(rng)


@pytest.mark.parametrize("n", [True, 1.0, "5", None, -1, np.float64(3)])
def test_bad_row_numbers_are_refused(n: object) -> None:
    """A number of rows is a whole number, 0 or more."""
    with pytest.raises(DataError, match="number of rows"):
        require_rows(n)


def test_no_rows() -> None:
    """Nothing is a valid number of rows."""
    codes = prepare(make_network(8, [2, 300]), 1).draw(0, 0)
    assert {name: (len(found), found.dtype) for name, found in codes.items()} == {
        "a0": (0, np.dtype(np.uint8)),
        "a1": (0, np.dtype(np.uint16)),
    }


class Scripted(np.random.Generator):
    """A generator that always says the same, to stand at the edges of [0, 1)."""

    value = 0.0

    def random(self, size=None, dtype=np.float64, out=None):  # type: ignore[no-untyped-def]
        out[:] = self.value
        return out


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("value", [0.0, np.nextafter(0.0, 1.0), 0.5, np.nextafter(1.0, 0.0)])
def test_the_edges_of_the_unit_interval(
    monkeypatch: pytest.MonkeyPatch, compiled: bool, value: float
) -> None:
    """The smallest and the largest uniform number yield a level that is possible, whatever was rounded."""

    def open_scripted(*_: object) -> Scripted:
        found = Scripted(np.random.PCG64DXSM(1))
        found.value = value
        return found

    monkeypatch.setattr(sampling, "open_stream", open_scripted)
    rows = [
        [0.0, 1.0, 0.0],
        [0.0, 0.0, 1.0],
        [1.0, 0.0, 0.0],
        [0.1] * 10 + [0.0] * 3,
        [0.0] * 3 + [1 / 3] * 3,
        [1e-300, 1.0, 0.0],
        [0.7, 0.2, 0.1 - 1e-7, 0.0],
        [0.0, 0.3, 0.7 + 9e-7, 0.0, 0.0],
        [0.0, *([1 / 49] * 49), 0.0],
        [0.0, *([1 / 299] * 299), 0.0],
    ]
    for row in rows:
        (codes,) = prepare([Table(("a",), np.array(row))], 1).draw(0, 8, compiled=compiled).values()
        assert all(row[code] > 0 for code in codes), (row, codes)


@settings(deadline=None, max_examples=200)
@given(
    st.lists(st.sampled_from([0.0, 0.0, 1e-17, 1e-9, 0.1, 1 / 3, 0.7, 1.0]), min_size=1, max_size=40).filter(
        any
    ),
    st.sampled_from([0.0, 2**-53, 0.25, 0.9999, 1 - 2**-53]),
)
def test_thresholds_never_lead_to_an_impossible_level(row: list[float], uniform: float) -> None:
    """Counting the thresholds at most u gives a level of the row that has a positive probability."""
    (draw,) = prepare([Table(("a",), np.array(row))], 1).draws
    level = int((draw.thresholds[0] <= uniform).sum())
    assert row[level] > 0
    assert np.all(np.diff(draw.thresholds[0]) >= 0)


def test_streams_can_be_entered_anywhere() -> None:
    """Entering at a position equals drawing up to it."""
    root = np.random.SeedSequence(3)
    numbers = open_stream(root, (1, 2), 0).random(100)
    assert np.array_equal(open_stream(root, (1, 2), 40).random(60), numbers[40:])
    assert not np.array_equal(open_stream(root, (1, 3), 0).random(100), numbers)


def test_unreachable_conditionals_of_zeros_do_no_harm() -> None:
    """A conditional of parents that cannot occur may be all zeros, as in a posterior given evidence."""
    factors = [Table(("a",), np.array([1.0, 0.0])), Table(("a", "b"), np.array([[0.0, 1.0], [0.0, 0.0]]))]
    codes = prepare(factors, 1).draw(0, 1000)
    assert codes["a"].sum() == 0
    assert codes["b"].sum() == 1000


@pytest.mark.parametrize(
    ("factors", "message"),
    [
        ([Table(("b", "a"), np.ones((2, 2)))], "given 'b'"),
        ([Table(("a",), np.ones(2)), Table(("a",), np.ones(2))], "two tables"),
        ([Table(("a",), np.ones(2)), Table(("a", "b"), np.ones((3, 2)))], "2 levels, but 3"),
        ([Table(("a",), np.array([1.0, -0.1]))], "negative"),
        ([Table(("a",), np.array([1.0, np.nan]))], "not finite"),
        ([Table(("a",), np.array([1e308, 1e308]))], "not finite"),
        ([Table((), np.array(1.0))], "without axes"),
        ([Table(("a",), np.ones(2**16 + 1))], "levels; at most 65,536"),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow")
def test_bad_factors_are_refused(factors: list[Table], message: str) -> None:
    """Each refusal names the attribute and what is wrong."""
    with pytest.raises(TableError, match=message):
        prepare(factors, 1)


def test_a_huge_table_is_refused_before_it_is_copied() -> None:
    """The cells are counted first."""
    names = [f"a{i}" for i in range(29)]
    small = [Table((name,), np.full(2, 0.5)) for name in names]
    huge = Table((*names, "b"), np.broadcast_to(np.float64(0.5), (2,) * 30))
    with pytest.raises(TooLarge, match="'b'"):
        prepare([*small, huge], 1)
