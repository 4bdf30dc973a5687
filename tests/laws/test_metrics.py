"""Distances between distributions: identities, inequalities, and brute force."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from _distances import compare_cpts, mean_variation
from discreet.compute.metrics import FLOOR, compare_conditionals, kl, l1, total_variation
from discreet.values.errors import DataError, TableError
from discreet.values.graph import DAG
from discreet.values.table import Array, Table

some = settings(deadline=None, max_examples=60)

weight = st.floats(0, 1).map(lambda x: 0.0 if x < 1e-3 else x)


@st.composite
def distributions(draw: st.DrawFn, count: int = 2) -> list[Array]:
    """Several distributions over the same levels, zeros included."""
    size = draw(st.integers(1, 6))
    found = []
    for _ in range(count):
        values = np.array(
            draw(st.lists(weight, min_size=size, max_size=size).filter(lambda row: sum(row) > 0))
        )
        found.append(values / values.sum())
    return found


@some
@given(distributions())
def test_ranges_and_symmetry(pair: list[Array]) -> None:
    """TV is symmetric and in [0, 1], L1 is twice TV, KL is non-negative and finite."""
    p, q = pair
    for distance, top in ((l1, 2.0), (total_variation, 1.0)):
        assert 0 <= distance(p, q) <= top + 1e-9
        assert distance(p, q) == pytest.approx(float(distance(q, p)), abs=1e-12)
        assert distance(p, p) == 0
    assert float(l1(p, q)) == pytest.approx(2 * float(total_variation(p, q)), abs=1e-9)
    assert 0 <= kl(p, q) <= math.log((1 + 6 * FLOOR) / FLOOR)
    assert kl(p, p) == 0


@some
@given(distributions())
def test_pinsker(pair: list[Array]) -> None:
    """TV ≤ √(KL/2), up to what the floor moves."""
    p, q = pair
    assert total_variation(p, q) <= math.sqrt(float(kl(p, q)) / 2) + 2 * len(p) * FLOOR + 1e-9


@some
@given(distributions(count=3))
def test_triangles(triple: list[Array]) -> None:
    """The metrics among them obey the triangle inequality."""
    p, q, r = triple
    for distance in (l1, total_variation):
        assert distance(p, r) <= distance(p, q) + distance(q, r) + 1e-9


@some
@given(distributions())
def test_total_variation_is_the_largest_gap_of_an_event(pair: list[Array]) -> None:
    """TV = max over events A of |P(A) − P̃(A)|, by enumerating all events."""
    p, q = pair
    events = itertools.product([False, True], repeat=len(p))
    assert float(total_variation(p, q)) == pytest.approx(
        max(abs(p[list(event)].sum() - q[list(event)].sum()) for event in events), abs=1e-9
    )


def test_kl_runs_from_the_estimate_to_the_truth() -> None:
    """Σ P̃ ln(P̃/P), as printed, where no floor is felt."""
    p, q = np.array([0.5, 0.5]), np.array([0.9, 0.1])
    assert float(kl(p, q)) == pytest.approx(0.9 * math.log(0.9 / 0.5) + 0.1 * math.log(0.1 / 0.5), abs=1e-12)


def test_kl_against_a_deterministic_truth_is_the_floors() -> None:
    """It is finite, and grows as the floor falls: the reason to print the floor."""
    truth, estimate = np.array([1.0, 0.0]), np.array([0.99, 0.01])
    found = [float(kl(truth, estimate, floor)) for floor in (1e-3, 1e-6, 1e-9)]
    assert found == sorted(found)
    assert np.isfinite(found).all()
    expected = 0.99 * math.log(0.99) + 0.01 * math.log(0.01 / 1e-6)
    assert found[1] == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("floor", [0.0, -1e-6, 1.0, float("nan")])
def test_bad_floors_are_refused(floor: float) -> None:
    """A floor lies strictly between 0 and 1."""
    with pytest.raises(DataError, match="floor"):
        kl([0.5, 0.5], [0.5, 0.5], floor)


@pytest.mark.parametrize(
    ("p", "q"),
    [
        ([0.5, 0.5], [1.0]),
        ([0.5, 0.6], [0.5, 0.5]),
        ([1.5, -0.5], [0.5, 0.5]),
        ([np.nan, 1], [0.5, 0.5]),
        (1.0, 1.0),
    ],
)
def test_what_is_no_distribution_is_refused(p: object, q: object) -> None:
    """Neither is mended in silence."""
    with pytest.raises(TableError):
        l1(p, q)  # type: ignore[arg-type]


def random_tables(seed: int, shape: tuple[int, ...], axes: tuple[str, ...]) -> tuple[Table, Table]:
    """Two random conditionals of the last axis."""
    rng = np.random.default_rng(seed)
    return tuple(Table(axes, rng.dirichlet(np.ones(shape[-1]), size=shape[:-1])) for _ in range(2))  # type: ignore[return-value]


METRICS: dict[str, Callable[[Array, Array], Array]] = {"l1": l1, "kl": kl}


@pytest.mark.parametrize("metric", METRICS)
def test_conditionals_by_brute_force(metric: str) -> None:
    """Mean and weighted mean over the conditionals equal loops over them, in any axis order."""
    true, estimate = random_tables(3, (2, 3, 4), ("a", "b", "c"))
    counts = Table(("c", "b", "a"), np.arange(24).reshape(4, 3, 2))
    each = {
        (i, j): float(METRICS[metric](true.values[i, j], estimate.values[i, j]))
        for i in range(2)
        for j in range(3)
    }
    share = {(i, j): counts.values[:, j, i].sum() / counts.values.sum() for i, j in each}
    turned = estimate.arrange(("c", "a", "b"))

    def compare(**options: object) -> float:
        return compare_conditionals(true, turned, ("b", "a"), metric, **options)  # type: ignore[arg-type]

    assert compare() == pytest.approx(np.mean(list(each.values())))
    assert compare(weights=counts) == pytest.approx(sum(share[key] * each[key] for key in each))


def test_several_targets_at_once() -> None:
    """P(b, c | a) is compared as one distribution for each a."""
    rng = np.random.default_rng(4)
    values = rng.dirichlet(np.ones(6), size=(2, 2)).reshape(2, 2, 2, 3)
    true, estimate = Table(("a", "b", "c"), values[0]), Table(("a", "b", "c"), values[1])
    assert compare_conditionals(true, estimate, ("a",)) == pytest.approx(
        np.abs(values[0] - values[1]).sum() / 2
    )


def test_cpts_node_by_node() -> None:
    """Each node is weighted by its own parents' frequencies; the mean counts nodes alike."""
    dag = DAG.build({"a": (), "b": ("a",), "c": ("a", "b")})
    shapes = {"a": (2,), "b": (2, 3), "c": (2, 3, 2)}
    true, estimate = zip(
        *(random_tables(i, shapes[n], dag.family(n)) for i, n in enumerate(dag.nodes)), strict=True
    )
    rng = np.random.default_rng(6)
    counts = [Table(dag.family(name), rng.integers(1, 50, shapes[name])) for name in dag.nodes]
    expected = []
    for p, q, tally in zip(true, estimate, counts, strict=True):
        distances = np.abs(p.values - q.values).sum(axis=-1)
        expected.append(float((distances * tally.values.sum(axis=-1) / tally.values.sum()).sum()))
    assert compare_cpts(dag, true, estimate, "l1", weights=counts) == pytest.approx(np.mean(expected))
    assert compare_cpts(dag, true, true, "kl") == 0


def test_the_weights_matter() -> None:
    """A conditional that never occurs does not count when weighted, and counts when not."""
    true = Table(("a", "b"), np.array([[0.5, 0.5], [1.0, 0.0]]))
    estimate = Table(("a", "b"), np.array([[0.5, 0.5], [0.0, 1.0]]))
    assert compare_conditionals(true, estimate, ("a",), weights=Table(("a",), np.array([9, 0]))) == 0
    assert compare_conditionals(true, estimate, ("a",)) == 1


def test_bad_comparisons_are_refused() -> None:
    """Unknown metric, no target, bad weights, mismatched tables."""
    true, estimate = random_tables(7, (2, 3), ("a", "b"))
    for weights in (np.array([-1.0, 2.0]), np.zeros(2), np.ones(3)):
        with pytest.raises(TableError, match="weights"):
            compare_conditionals(true, estimate, ("a",), weights=Table(("a",), weights))
    with pytest.raises(DataError, match="'l2'"):
        compare_conditionals(true, estimate, ("a",), "l2")  # type: ignore[arg-type]
    with pytest.raises(TableError, match="no target"):
        compare_conditionals(true, estimate, ("a", "b"))
    with pytest.raises(TableError):
        compare_conditionals(true, Table(("a", "c"), estimate.values), ("a",))


@some
@given(st.integers(0, 10_000), st.integers(1, 40), st.integers(1, 40))
def test_rows_by_brute_force(seed: int, m: int, n: int) -> None:
    """Frequencies counted one row at a time give the same total variation."""
    rng = np.random.default_rng(seed)
    sizes = {"a": 2, "b": 3, "c": 4}
    one, other = (
        {name: rng.integers(0, size, rows).astype(np.uint8) for name, size in sizes.items()}
        for rows in (m, n)
    )
    sets = [("a",), ("c", "a"), ("a", "b", "c")]
    gaps = []
    for names in sets:
        gap = 0.0
        for cell in itertools.product(*(range(sizes[name]) for name in names)):
            p, q = (
                np.mean(
                    np.all([codes[name] == level for name, level in zip(names, cell, strict=True)], axis=0)
                )
                for codes in (one, other)
            )
            gap += abs(p - q)
        gaps.append(gap / 2)
    assert mean_variation(one, other, sizes, sets) == pytest.approx(np.mean(gaps))
