"""What intervals give away: ratios exactly for any S, counts with S, and of noisy intervals nothing but the noise."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.judge.attacks.flat_tables import FlatTables
from discreet.judge.attacks.recovery import recover_contamination, recover_counts, recover_ratios
from discreet.values.errors import TableError
from discreet.values.graph import DAG
from discreet.values.table import Table

GRAPH = DAG.build({"a": [], "b": ["a"], "c": ["a", "b"]})


@st.composite
def counted(draw: st.DrawFn) -> tuple[FlatTables, np.ndarray]:
    """Counts of a random table of rows over three attributes, with rows of data missing in places."""
    sizes = {name: draw(st.integers(2, 4)) for name in GRAPH.nodes}
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rows = draw(st.integers(1, 200))
    codes = {name: np.minimum(rng.geometric(0.6, rows) - 1, size - 1) for name, size in sizes.items()}
    cells = FlatTables.arrange(GRAPH, sizes)
    return cells, cells.count(cells.locate(codes)).astype(np.float64)


def widen(
    cells: FlatTables, counts: np.ndarray, strength: np.ndarray | float
) -> tuple[tuple[Table, ...], tuple[Table, ...]]:
    """The local imprecise Dirichlet model, [n_ij/(n_j + S), (n_ij + S)/(n_j + S)], with an S for each cell's row."""
    totals = cells.total_conditionals(counts)
    return cells.split(counts / (totals + strength)), cells.split((counts + strength) / (totals + strength))


@settings(deadline=None, max_examples=80)
@given(counted(), st.integers(0, 2**32 - 1), st.booleans())
def test_ratios_come_back_for_any_strength_even_another_one_in_every_row(
    data: tuple[FlatTables, np.ndarray], seed: int, through_a_file: bool
) -> None:
    cells, counts = data
    rng = np.random.default_rng(seed)
    per_row = 10.0 ** rng.uniform(-3, 6, cells.size)
    strength = np.concatenate([np.full(0, 0.0), per_row])
    for rows in cells.group_conditionals():  # one S for all the cells of a row
        strength[rows] = strength[rows[:, :1]]
    lower, _ = widen(cells, counts, strength)
    if through_a_file:
        lower = tuple(
            Table(t.axes, np.array(json.loads(json.dumps(t.values.ravel().tolist()))).reshape(t.values.shape))
            for t in lower
        )
    found = recover_ratios(lower)
    assert np.abs(cells.flatten(found.cpts) - cells.normalise(counts)).max() <= 1e-12
    assert np.array_equal(cells.flatten(found.seen) > 0, cells.total_conditionals(counts) > 0)
    possible = cells.flatten(found.possible)
    assert (possible[cells.total_conditionals(counts) == 0] == 0).all()


@settings(deadline=None, max_examples=60)
@given(counted(), st.floats(0.01, 1000.0))
def test_counts_come_back_once_the_strength_is_known(
    data: tuple[FlatTables, np.ndarray], strength: float
) -> None:
    cells, counts = data
    lower, upper = widen(cells, counts, strength)
    found = recover_counts(lower, upper, strength)
    assert found.counts is not None and found.rows is not None
    assert np.abs(cells.flatten(found.counts) - counts).max() < 1e-6
    assert round(found.rows) == counts[: cells.shapes[0][0]].sum()
    relative = recover_counts(lower, upper)
    assert relative.counts is not None
    assert np.abs(cells.flatten(relative.counts) * strength - counts).max() < 1e-6


@settings(deadline=None, max_examples=60)
@given(counted(), st.floats(0.001, 0.999))
def test_a_contaminated_network_gives_itself_and_its_epsilon_away(
    data: tuple[FlatTables, np.ndarray], epsilon: float
) -> None:
    cells, counts = data
    plain = cells.normalise(counts)
    found, epsilons = recover_contamination(cells.split((1 - epsilon) * plain))
    assert np.abs(cells.flatten(found.cpts) - plain).max() <= 1e-12
    assert all(np.allclose(table.values, epsilon, rtol=0, atol=1e-12) for table in epsilons)


def test_intervals_around_noisy_counts_do_not_give_the_network_away() -> None:
    """The lower ends of a private credal network, normalised, are far from the frequencies that noise hides."""
    cells = FlatTables.arrange(DAG.build({"a": []}), {"a": 3})
    counts, noise, reach = np.array([40.0, 30.0, 30.0]), np.array([-7.0, 9.0, 2.0]), 15.0
    low, high = counts + noise - reach, counts + noise + reach
    lower = low / (low + high.sum() - high)
    found = recover_ratios(cells.split(lower))
    assert np.abs(found.cpts[0].values - counts / 100).max() > 0.05


def test_what_are_no_intervals_of_the_model_is_refused() -> None:
    low, high = Table(("a",), np.array([0.1, 0.2])), Table(("a",), np.array([0.5, 0.9]))
    with pytest.raises(TableError, match="Dirichlet"):
        recover_counts([low], [high], 1.0)
    with pytest.raises(TableError, match="positive"):
        recover_counts([low], [high], 0.0)
    with pytest.raises(TableError, match="lower ends"):
        recover_ratios([Table(("a",), np.array([0.8, 0.9]))])
    with pytest.raises(TableError, match="lower ends"):
        recover_ratios([Table(("a",), np.array([-0.1, 0.9]))])
