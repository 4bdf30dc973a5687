"""Points that stand for bins, and bins fitted to heaps: what they draw, what they refuse, what they tell."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import discreet as dc
from discreet.rows.draft.heaps import LOOSE, MOST, TOLERANCE, count_between, fit_bins
from discreet.rows.draft.profile import Numbers, People
from discreet.values.errors import FormatError, SchemaError
from discreet.values.schema.bins import Bins
from discreet.values.schema.draws import draw_alone
from discreet.values.schema.formats.toml import parse_toml, write_toml
from discreet.values.schema.types import find_ranges


def make_numbers(values: np.ndarray, least: int = 10) -> Numbers:
    known, held = np.unique(values, return_counts=True)
    ordered = np.sort(values)
    return Numbers(known, held, float(ordered[least - 1]), float(ordered[-least]))


def fit(values: np.ndarray, edges: tuple[float, ...], grain: float, least: int = 10) -> Bins:
    numbers = make_numbers(values, least)
    return fit_bins(Bins(edges), numbers, grain, least, count_between(numbers, least))


def measure_ks(values: np.ndarray, drawn: np.ndarray) -> float:
    grid = np.union1d(values, drawn)
    below = [np.searchsorted(np.sort(found), grid, side="right") / len(found) for found in (values, drawn)]
    return float(np.abs(below[0] - below[1]).max())


def test_a_point_is_drawn_and_nothing_else_from_its_bin() -> None:
    third = 1 / 3
    attribute = dc.Attribute.binned("x", Bins((0, 1, 2, 3), points=(third,)), decimals=2)
    codes = np.repeat([0, 1, 2], 50)
    drawn = draw_alone(attribute, codes, np.random.default_rng(0).random(150))
    assert (drawn[:50] == third).all(), "with all of its digits"
    assert drawn[50:].min() >= 1 and len(np.unique(drawn[50:])) > 20
    low, high = find_ranges(attribute)
    assert low[0] == high[0] == 33 and (high[1:] > low[1:]).all(), (
        "in order with other columns, to its places"
    )
    assert np.allclose(attribute.bins.middles, [third, 1.5, 2.5])  # type: ignore[union-attr]


def test_points_are_written_and_read_again() -> None:
    attribute = dc.Attribute.binned("x", Bins((0, 1, 2.5), points=(0, 2.25)), missing="missing")
    schema = dc.Schema((attribute,))
    assert "points = [0, 2.25]" in write_toml(schema)
    assert parse_toml(write_toml(schema)) == schema


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Bins((0, 1, 2), points=(3,)), "point 3 lies in no bin"),
        (lambda: Bins((0, 1, 2), points=(0.2, 0.4)), "both lie in"),
        (lambda: Bins((0, 1, 2), points=(float("nan"),)), "NaN"),
        (lambda: dc.Attribute.binned("x", Bins((0, 1, 2), points=(0.5,)), type="integer"), "whole number"),
        (lambda: parse_toml("[attributes.x]\nedges = [0, 1, 2]\npoints = 1"), "points"),
    ],
)
def test_points_that_stand_for_nothing_are_refused(make, words: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises((FormatError, SchemaError), match=words):
        make()


def test_heaps_and_tails_keep_the_distribution() -> None:
    """A heap at 0, one at an odd number, a long tail: drawn from the bins, all is where it was."""
    rng = np.random.default_rng(1)
    values = np.concatenate(
        [np.zeros(6000), np.full(1500, 6.907755), rng.lognormal(2, 1, 8000).round(6), np.full(900, 40.123457)]
    )
    bins = fit(values, (0, 5, 10, 20, 400), 1e-6)
    assert len(bins) <= MOST
    attribute = dc.Attribute.binned("x", bins, decimals=6)
    codes = bins.locate(np.clip(values, bins.edges[0], bins.edges[-1]))
    drawn = draw_alone(attribute, codes, rng.random(len(codes)))
    assert measure_ks(values, drawn) < TOLERANCE + 0.01
    within = np.mean((drawn - values) ** 2) / values.var()
    assert within < 2 * LOOSE * len(bins)
    for heap in (0.0, 6.907755, 40.123457):
        assert np.mean(drawn == heap) == pytest.approx(np.mean(values == heap), abs=0.01)
    held = np.bincount(codes, minlength=len(bins))
    assert held.min() >= 10, "no bin is told that too few rows hold"


def test_a_heap_at_the_end_gets_room() -> None:
    rng = np.random.default_rng(2)
    values = np.concatenate([rng.random(500).round(2) * 0.9, np.ones(500)])
    bins = fit(values, (0, 0.5, 1), 0.01)
    drawn = draw_alone(
        dc.Attribute.binned("x", bins, decimals=2), bins.locate(values), rng.random(len(values))
    )
    assert np.mean(drawn == 1) == 0.5


def test_a_heap_beside_the_grid_is_drawn_as_it_is() -> None:
    """Incomes cut off at a number with nine decimals: what is drawn has six, and would never be that number."""
    rng = np.random.default_rng(4)
    values = np.concatenate([rng.random(500).round(6) * 20_000, np.full(500, 25564.669921875)])
    drafted = dc.Schema.draft(pd.DataFrame({"x": values, "y": ["a", "b"] * 500})).schema["x"]
    assert drafted.bins is not None
    drawn = draw_alone(drafted, drafted.bins.locate(values), rng.random(len(values)))
    assert np.mean(drawn == 25564.669921875) == 0.5


def test_a_number_that_one_person_alone_holds_is_no_heap() -> None:
    """Two hundred rows hold 7, all of them of one person."""
    values = np.concatenate([np.arange(200) % 20 / 2.0, np.full(200, 7.25)])
    who = np.concatenate([np.arange(200), np.full(200, 200)])
    known, held = np.unique(values, return_counts=True)
    numbers = Numbers(known, held, 0.5, 9.0, People(values, who))
    bins = fit_bins(Bins((0, 5, 10)), numbers, 0.01, 10, count_between(numbers, 10))
    assert 7.25 not in bins.edges and 7.25 not in bins.points
    alone = fit(values, (0, 5, 10), 0.01)
    assert 7.25 in bins.edges + alone.edges + alone.points, "counted by rows, it is one"


def test_a_draft_plants_no_number_of_few_rows() -> None:
    """Nine rows hold a striking number in the middle of nothing: it is neither an edge nor a point."""
    values = np.concatenate([np.zeros(500), np.linspace(10, 20, 500).round(3), np.full(9, 3.14159)])
    text = dc.Schema.draft(pd.DataFrame({"x": values, "y": ["a", "b", "c"] * 336 + ["a"]})).format()
    assert "3.1415" not in text and "3.142" not in text
    drafted = dc.Schema.draft(pd.DataFrame({"x": np.append(values, 3.14159), "y": ["a"] * 505 + ["b"] * 505}))
    assert drafted.schema["x"].bins is not None
