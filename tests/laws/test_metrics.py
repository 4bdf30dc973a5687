"""Distances between distributions: identities, inequalities, and brute force."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.compute.metrics import (
    FLOOR,
    Comparison,
    compare_conditionals,
    compare_cpts,
    compare_marginals,
    compare_rows,
    hellinger,
    kl,
    l1,
    mean_variation,
    total_variation,
)
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
    """TV and Hellinger are symmetric and in [0, 1], L1 is twice TV, KL is non-negative and finite."""
    p, q = pair
    for distance, top in ((l1, 2.0), (total_variation, 1.0), (hellinger, 1.0)):
        assert 0 <= distance(p, q) <= top + 1e-9
        assert distance(p, q) == pytest.approx(float(distance(q, p)), abs=1e-12)
        assert distance(p, p) == 0
    assert float(l1(p, q)) == pytest.approx(2 * float(total_variation(p, q)), abs=1e-9)
    assert 0 <= kl(p, q) <= math.log((1 + 6 * FLOOR) / FLOOR)
    assert kl(p, p) == 0


@some
@given(distributions())
def test_inequalities(pair: list[Array]) -> None:
    """H² ≤ TV ≤ √2·H, and Pinsker's TV ≤ √(KL/2) up to what the floor moves."""
    p, q = pair
    tv, h = float(total_variation(p, q)), float(hellinger(p, q))
    assert h**2 <= tv + 1e-9
    assert tv <= math.sqrt(2) * h + 1e-9
    assert tv <= math.sqrt(float(kl(p, q)) / 2) + 2 * len(p) * FLOOR + 1e-9


@some
@given(distributions(count=3))
def test_triangles(triple: list[Array]) -> None:
    """The metrics among them obey the triangle inequality."""
    p, q, r = triple
    for distance in (l1, total_variation, hellinger):
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


METRICS: dict[str, Callable[[Array, Array], Array]] = {
    "l1": l1,
    "total_variation": total_variation,
    "kl": kl,
    "hellinger": hellinger,
}


@pytest.mark.parametrize("metric", METRICS)
def test_conditionals_by_brute_force(metric: str) -> None:
    """Mean, printed sum and weighted mean over the rows equal loops over them, in any axis order."""
    true, estimate = random_tables(3, (2, 3, 4), ("a", "b", "c"))
    counts = Table(("c", "b", "a"), np.arange(24).reshape(4, 3, 2))
    rows = {
        (i, j): float(METRICS[metric](true.values[i, j], estimate.values[i, j]))
        for i in range(2)
        for j in range(3)
    }
    share = {(i, j): counts.values[:, j, i].sum() / counts.values.sum() for i, j in rows}
    turned = estimate.arrange(("c", "a", "b"))

    def compare(**options: object) -> float:
        return compare_conditionals(true, turned, ("b", "a"), metric, **options)  # type: ignore[arg-type]

    assert compare() == pytest.approx(np.mean(list(rows.values())))
    assert compare(rows="sum") == pytest.approx(sum(rows.values()))
    assert compare(weights=counts) == pytest.approx(sum(share[row] * rows[row] for row in rows))


def test_several_targets_at_once() -> None:
    """P(b, c | a) is compared as one distribution for each a."""
    rng = np.random.default_rng(4)
    values = rng.dirichlet(np.ones(6), size=(2, 2)).reshape(2, 2, 2, 3)
    true, estimate = Table(("a", "b", "c"), values[0]), Table(("a", "b", "c"), values[1])
    assert compare_conditionals(true, estimate, ("a",)) == pytest.approx(
        np.abs(values[0] - values[1]).sum() / 2
    )


def test_marginals_in_any_axis_order() -> None:
    """Joint tables are compared cell by cell."""
    rng = np.random.default_rng(5)
    p, q = (rng.dirichlet(np.ones(6)).reshape(2, 3) for _ in range(2))
    found = compare_marginals(Table(("a", "b"), p), Table(("b", "a"), q.T))
    assert found == pytest.approx(np.abs(p - q).sum())


def test_cpts_node_by_node() -> None:
    """Each node is weighted by its own parents' frequencies; the mean counts nodes alike."""
    dag = DAG.build({"a": (), "b": ("a",), "c": ("a", "b")})
    shapes = {"a": (2,), "b": (2, 3), "c": (2, 3, 2)}
    true, estimate = zip(
        *(random_tables(i, shapes[n], dag.family(n)) for i, n in enumerate(dag.nodes)), strict=True
    )
    rng = np.random.default_rng(6)
    counts = [Table(dag.family(name), rng.integers(1, 50, shapes[name])) for name in dag.nodes]
    found = compare_cpts(dag, true, estimate, "l1", weights=counts)
    for name, p, q, tally in zip(dag.nodes, true, estimate, counts, strict=True):
        rows = np.abs(p.values - q.values).sum(axis=-1)
        freq = tally.values.sum(axis=-1) / tally.values.sum()
        assert found.nodes[name] == pytest.approx(float((rows * freq).sum()))
    assert found.mean == pytest.approx(sum(found.nodes.values()) / 3)
    assert found.nodes[found.worst] == max(found.nodes.values())
    assert compare_cpts(dag, true, true, "kl") == Comparison(dict.fromkeys(dag.nodes, 0.0))


def test_the_weights_matter() -> None:
    """A row that never occurs does not count when weighted, and counts when not."""
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
    with pytest.raises(DataError, match="mean"):
        compare_conditionals(true, estimate, ("a",), weights=Table(("a",), np.ones(2)), rows="sum")
    with pytest.raises(DataError, match="'l2'"):
        compare_marginals(true, estimate, "l2")  # type: ignore[arg-type]
    with pytest.raises(TableError, match="no target"):
        compare_conditionals(true, estimate, ("a", "b"))
    with pytest.raises(TableError):
        compare_marginals(true, Table(("a", "c"), estimate.values))
    with pytest.raises(TableError, match="one for each"):
        compare_cpts(DAG.build({"a": ()}), [true, true], [estimate])


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
    found = compare_rows(one, other, sizes, sets)
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
        assert found[names] == pytest.approx(gap / 2)
    assert mean_variation(one, other, sizes, sets) == pytest.approx(sum(found.values()) / 3)


def test_bad_rows_are_refused() -> None:
    """Unknown attributes, codes out of range, no rows and no sets have their messages."""
    one = {"a": np.array([0, 1], dtype=np.uint8)}
    with pytest.raises(DataError, match="'b'"):
        compare_rows(one, one, {"a": 2, "b": 2}, [("b",)])
    with pytest.raises(DataError, match="code 1"):
        compare_rows(one, one, {"a": 1}, [("a",)])
    with pytest.raises(DataError, match="no rows"):
        compare_rows({"a": np.empty(0, np.uint8)}, one, {"a": 2}, [("a",)])
    with pytest.raises(DataError, match="sets"):
        mean_variation(one, one, {"a": 2}, [])
