"""A search that looks at less than θ allows says so, and no model that was allowed is refused after its payment."""

from __future__ import annotations

import warnings
from inspect import signature
from typing import Any

import numpy as np
import pytest

import discreet as dc
from discreet.compute.cliques import blending, model
from discreet.compute.cliques.entropy import fit_margins
from discreet.learning.greedy import greedy
from discreet.learning.learner import LIMITS
from discreet.learning.searching import prices as search_prices
from discreet.learning.searching import state as search
from discreet.values.budget import ZCDP
from discreet.values.errors import SearchWarning
from discreet.values.table import MAX_CELLS, Table


def test_a_degree_that_is_cut_is_told() -> None:
    """Fifty bits and so large a budget that θ allows more parents than can be searched."""
    schema = dc.Schema.of({f"x{i:02d}": ["0", "1"] for i in range(50)})
    codes = np.zeros(2000, dtype=np.int64)
    rows = {name: np.array(["0", "1"])[codes] for name in schema.names}
    with (
        dc.open_airlock(rows, schema, budget="10000000", unit="replace-one") as airlock,
        pytest.warns(SearchWarning, match="θ = 4 allows k = .*; with 50 attributes k = 3 is the most"),
    ):
        greedy(
            airlock,
            spend="1000000",
            order=schema.names,
            start=dc.DAG.build({n: [] for n in schema.names[:48]}),
        )
    few = dc.Schema.of({f"x{i}": ["0", "1"] for i in range(4)})
    with (
        dc.open_airlock(dict.fromkeys(few.names, rows["x00"]), few, budget="10") as airlock,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("error", SearchWarning)
        greedy(airlock, spend="1")


def test_what_was_allowed_before_the_payment_is_fitted_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """No fit of a search may have a lower limit of cells than the largest model that can be asked for."""
    limits: list[int] = []
    fit = search.fit_margins

    def note(*tables: object, max_cells: int = MAX_CELLS, **others: object) -> object:
        limits.append(max_cells)
        return fit(*tables, max_cells=max_cells, **others)  # type: ignore[arg-type]

    assert signature(fit).parameters["max_cells"].default == MAX_CELLS
    monkeypatch.setattr(search, "fit_margins", note)
    monkeypatch.setattr(blending, "fit_margins", note)
    schema = dc.Schema.of({name: ["0", "1"] for name in "abc"})
    # So many rows that no noise makes them few: where they are, attributes are left independent and nothing is fitted.
    rows = dict.fromkeys(schema.names, np.array(["0", "1"] * 500))
    with dc.open_airlock(rows, schema, budget="10") as airlock:
        dc.learn.adaptive(airlock, spend="10")
    assert limits and min(limits) >= LIMITS["model_cells"][1]


def test_models_are_averaged_only_where_all_pairs_are_in_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which pairs a model reaches hangs on its links; nothing of that may be found out after the payment."""
    averaged: list[int] = []
    blend = search.blend

    def note(*given: Any) -> object:
        averaged.append(1)
        return blend(*given)

    monkeypatch.setattr(search, "blend", note)
    schema = dc.Schema.of({name: [str(k) for k in range(20)] for name in "ab"})
    rows = dict.fromkeys(schema.names, np.array([str(k % 20) for k in range(20_000)]))
    for reach, expected in ((2**22, [1]), (300, [1])):
        monkeypatch.setattr(model, "REACH_CELLS", reach)
        monkeypatch.setattr(search, "REACH_CELLS", reach)
        with dc.open_airlock(rows, schema, budget="1/4") as airlock:
            dc.learn.adaptive(airlock, spend="1/4")
        assert averaged == expected


@pytest.mark.parametrize(("shares", "all_linked"), [(search_prices.ROOM_SHARES, True), (np.inf, False)])
def test_no_pair_takes_the_room_of_all_the_others(
    shares: float, all_linked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two equal columns of 150 levels would fill the model; ten equal ones of ten levels each need a little of it."""
    monkeypatch.setattr(search_prices, "ROOM_SHARES", shares)
    sizes = {"one": 150, "other": 150, **{f"x{i}": 10 for i in range(10)}}
    schema = dc.Schema.of({name: [str(k) for k in range(size)] for name, size in sizes.items()})
    codes = np.arange(30_000)
    rows = {name: (codes % size).astype(str) for name, size in sizes.items()}
    with dc.open_airlock(rows, schema, budget=ZCDP("10")) as airlock:
        found = dc.learn.adaptive(airlock, spend=ZCDP("10"), model_cells=23_000, width=2)
    assert found.provenance is not None
    linked = {name for members in found.provenance.details["sets"] for name in members}
    assert (linked == set(sizes)) == all_linked


def test_a_model_that_keeps_nothing_finds_the_same_margins(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is forgotten for want of room is worked out again."""
    sizes = dict.fromkeys("abcdef", 3)
    draw = np.random.default_rng(4)
    pairs = [Table(pair, draw.random((3, 3)) + 0.1) for pair in zip("abcde", "bcdef", strict=True)]
    chain = fit_margins(sizes, [Table(pair.axes, pair.values / pair.values.sum()) for pair in pairs])
    wanted = [("a", "c", "f"), ("b", "d", "f"), ("a", "d", "e"), ("a", "c", "f", "e")]
    kept = [table.values for table in chain.margins(wanted)]
    monkeypatch.setattr(model, "KEPT_CELLS", 1)
    for values, again in zip(kept, chain.margins(wanted), strict=True):
        np.testing.assert_array_equal(values, again.values)
