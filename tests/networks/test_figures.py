"""Differences, ratios, odds ratios, means, quantiles, counts and sure levels: right numbers, in intervals that hold."""

from __future__ import annotations

import itertools
import json
import math
from datetime import date
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest

import discreet as dc
from _interval_trials import find_doubt
from chance import SURE
from discreet.doors.cli import main
from discreet.judge.tails import bound_share_above, bound_share_below
from discreet.networks import figures
from discreet.networks.answer import Figure
from discreet.networks.intervals.shares import Estimate, accept, bound_mean, estimate_counts
from discreet.networks.written import parse
from discreet.values.budget import PureDP
from discreet.values.errors import QueryError
from discreet.values.measurement import DiscreteLaplace, Measurement
from discreet.values.table import Table
from discreet.values.unit import Unit

EDGES = (0, 20, 40, 60, 80)


@pytest.fixture(scope="module")
def rows() -> dict[str, list[object]]:
    """Ages, some missing, and an illness that goes with them."""
    rng = np.random.default_rng(3)
    ages = rng.integers(0, 80, 6000)
    ill = rng.random(6000) < 0.1 + 0.5 * (ages >= 40)
    return {
        "age": [None if k % 20 == 0 else int(age) for k, age in enumerate(ages)],
        "ill": ["yes" if found else "no" for found in ill],
        "kids": [str(k % 3) for k in range(6000)],
    }


@pytest.fixture(scope="module")
def release(rows: dict[str, list[object]]) -> dc.Release:
    """A private release of them on the graph age → ill."""
    age = dc.Attribute.binned("age", EDGES, missing="unknown")
    schema = dc.Schema((age, dc.Attribute.of("ill", ["no", "yes"]), dc.Attribute.of("kids", ["0", "1", "2"])))
    return dc.release(rows, schema, {"ill": ["age"]}, epsilon=4)


def share(rows: dict[str, list[object]], low: int, high: int) -> float:
    """The share of the ill in an age group."""
    found = [
        ill == "yes"
        for age, ill in zip(rows["age"], rows["ill"], strict=True)
        if age is not None and low <= age < high
    ]
    return sum(found) / len(found)


def holds(found: Figure, truth: float, times: float = 1.0) -> bool:
    """Whether the truth lies in the interval, or so many times its width beside it: noise may make any of them miss."""
    assert found.lower is not None and found.upper is not None
    assert found.lower < found.upper
    room = times * (found.upper - found.lower)
    return (
        found.lower - room <= truth <= found.upper + room
        and abs(found.value - truth) <= room + found.upper - found.lower
    )


@pytest.mark.parametrize("kind", [None, "guaranteed", "calibrated"])
@pytest.mark.parametrize("of", ["table", "network"])
def test_two_groups_are_compared(
    release: dc.Release, rows: dict[str, list[object]], kind: str | None, of: str
) -> None:
    """Difference, ratio and odds ratio of the old and the young; the sentence of the intervals comes along."""
    old, young = share(rows, 60, 80), share(rows, 0, 20)
    truths = {
        "difference": old - young,
        "ratio": old / young,
        "odds ratio": old / (1 - old) / (young / (1 - young)),
    }
    for measure, truth in truths.items():
        found = release.compare(
            {"ill": "yes"},
            {"age": 70},
            {"age": 10},
            measure,
            intervals=kind,
            of=of,  # type: ignore[arg-type]
        )
        assert holds(found, truth, 3.0)
        assert "95 %" in found.meaning
    assert release.compare({"ill": "yes"}, {"age": 70}, {"age": 10}, intervals="none").lower is None


def test_means_and_quantiles_reach_from_edge_to_edge(
    release: dc.Release, rows: dict[str, list[object]]
) -> None:
    """Missing numbers do not count; the interval covers where in its bin a number is."""
    known = [age for age in rows["age"] if age is not None]
    assert holds(release.mean("age"), float(np.mean(known)))  # type: ignore[arg-type]
    sick = [
        age for age, ill in zip(rows["age"], rows["ill"], strict=True) if ill == "yes" and age is not None
    ]
    found = release.mean("age", {"ill": "yes"})
    assert holds(found, float(np.mean(sick)))  # type: ignore[arg-type]
    assert "known by their bins only" in found.meaning
    assert found.upper - found.lower < 26  # type: ignore[operator]
    assert holds(release.mean("kids"), float(np.mean([int(str(k)) for k in rows["kids"]])))
    assert "bins" not in release.mean("kids").meaning
    for part in (0.1, 0.5, 0.9):
        assert holds(release.quantile("age", part), float(np.quantile(known, part)))  # type: ignore[arg-type]
    with pytest.raises(QueryError, match="holds no numbers"):
        release.mean("ill")
    with pytest.raises(QueryError, match="asked for and given"):
        release.mean("age", {"age": 10})
    with pytest.raises(QueryError, match="between 0 and 1"):
        release.quantile("age", 1.5)


@pytest.mark.parametrize("of", ["table", "network"])
def test_calibrated_means_lie_inside_guaranteed_ones(
    release: dc.Release, rows: dict[str, list[object]], of: str
) -> None:
    """A mean of the table is no share: its ends are numbers of the attribute, and narrower than what is guaranteed."""
    ages = {kind: [a for a, ill in zip(rows["age"], rows["ill"], strict=True) if a is not None and kind in ("", ill)]
            for kind in ("", "yes")}  # fmt: skip
    for kind, found in ages.items():
        given = {"ill": kind} if kind else None
        likely = release.mean("age", given, intervals="calibrated", of=of)
        sure = release.mean("age", given, intervals="guaranteed", of=of)
        assert holds(likely, float(np.mean(found)), 1.0)  # type: ignore[arg-type]
        assert sure.lower is not None and sure.upper is not None
        assert likely.upper - likely.lower < sure.upper - sure.lower  # type: ignore[operator]
    table, world = (release.mean("age", intervals="calibrated", of=whose) for whose in ("table", "world"))
    assert world.lower < table.lower < table.upper < world.upper  # type: ignore[operator]
    sure = release.mean("age", of="world")
    assert sure.lower < world.lower < world.upper < sure.upper  # type: ignore[operator]
    assert "in the population" in sure.meaning
    assert "in the population" in release.decide("ill", of="world").meaning


def test_calibrated_means_hold_as_often_as_they_say() -> None:
    """Noisy tables of known counts: the interval of a mean given another attribute holds its 95 %."""
    rng, law = np.random.default_rng(11), DiscreteLaplace(6)
    counts, values = np.array([[30, 80], [60, 10], [50, 90]]), np.array([2.0, 7.0, -4.0])
    parts = [np.array([[float(k == line), 0.0] for line in range(3)]) for k in range(3)]
    truth, hits, trials = float(values @ counts[:, 0] / counts[:, 0].sum()), 0, 2000
    rate = 1 - np.exp(-1 / 6)
    for _ in range(trials):
        noise = rng.geometric(rate, (2, 3, 2)) - rng.geometric(rate, (2, 3, 2))
        full = Measurement(Table(("a", "b"), counts + noise[0]), law, Unit.ADD_REMOVE, PureDP(1))
        side = Measurement(Table(("b",), counts.sum(axis=0) + noise[1][0]), law, Unit.ADD_REMOVE, PureDP(1))
        low, high = bound_mean(estimate_counts((full, side), ("a", "b"), parts), values, 0.95, world=False)
        hits += low <= truth <= high
    assert bound_share_above(hits, trials, 1 - SURE) > 0.95
    assert bound_share_below(hits, trials, 1 - SURE) < 0.97


def test_questions_that_share_their_noise_make_a_share_no_surer() -> None:
    """The benchmark's error of a coverage counts tables: 48 answers that stand or fall together are worth one."""
    alone = {k: [float(k % 20 > 0)] for k in range(40)}
    expected = math.sqrt(0.95 * 0.05 / 39)
    assert find_doubt(alone) == pytest.approx(expected)
    assert find_doubt({k: 48 * held for k, held in alone.items()}) == pytest.approx(expected)
    rng = np.random.default_rng(5)
    shares, doubts = [], []
    for _ in range(400):  # tables of unequal size, whose own coverage varies
        tables = {k: list(rng.random(rng.integers(1, 60)) < rng.beta(19.0, 1.0)) for k in range(30)}
        shares.append(np.concatenate(list(tables.values())).mean())
        doubts.append(find_doubt(tables))
    assert np.mean(doubts) == pytest.approx(np.std(shares), rel=0.15)
    assert math.isnan(find_doubt({0: [1.0], 1: []}))


@pytest.mark.parametrize("coverage", [0.9, 0.95])
def test_noise_that_can_mislead_one_way_only_is_counted_once(coverage: float) -> None:
    """What is accepted has the coverage wherever the ends are: far off two equal tails, at an end one of them."""
    law = NormalDist()
    offs = np.linspace(0.0, 4.0, 41)
    for below, above in itertools.product(offs, offs):
        down, up = (float(side[0]) for side in accept(np.array([below]), np.array([above]), coverage))
        assert law.cdf(up) + law.cdf(down) - 1 == pytest.approx(coverage, abs=2e-4)
    far, end = accept(np.array([9.0, 0.0]), np.array([9.0, 9.0]), coverage)
    assert far[0] == end[0] == pytest.approx(law.inv_cdf((1 + coverage) / 2))
    assert end[1] == pytest.approx(law.inv_cdf(coverage), abs=1e-3)


def test_a_figure_without_an_interval_says_why(release: dc.Release) -> None:
    """And what cannot be meant is refused: a comparison with itself, a sure level by likely intervals."""
    sick, young, old = {"ill": "yes"}, {"age": 10}, {"age": 70}
    told = release.compare(sick, young, old, of="world")
    assert told.lower is None and told.meaning.startswith(
        "No intervals: of the world, two answers are compared"
    )
    with pytest.raises(QueryError, match="of the world, two answers are compared with calibrated"):
        release.compare(sick, young, old, of="world", intervals="guaranteed")
    with pytest.raises(QueryError, match="both sides ask for ill=yes"):
        release.compare(sick, young, young)
    with pytest.raises(QueryError, match=r"surely\(…\) is told by guaranteed intervals, not by 'calibrated'"):
        release.ask("surely(ill)", intervals="calibrated")


def test_an_interval_at_an_end_is_never_empty() -> None:
    """However far beyond 0 noise leads an estimate: the interval holds 0, and what is nearest to the estimate."""
    for counts in ([-90.0, 400.0], [-3.0, 400.0], [0.0, 400.0], [395.0, -80.0]):
        found = Estimate(np.array(counts), 200.0 * np.eye(2), np.eye(2), np.zeros(2))
        low, high = bound_mean(found, np.array([1.0, 0.0]), 0.95, world=False)
        assert low <= np.clip(counts[0] / sum(counts), 0.0, 1.0) <= high
        assert 0.0 < high - low < 0.2


def test_counts_and_sure_levels(release: dc.Release, rows: dict[str, list[object]]) -> None:
    """Rows with certain levels, of one table and of several; and which level is the most frequent one for sure."""
    sick = sum(ill == "yes" for ill in rows["ill"])
    for kind in (None, "guaranteed", "calibrated"):
        assert holds(release.count({"ill": "yes"}, intervals=kind), sick, 3.0)
    both = sum(ill == "yes" and kids == "1" for ill, kids in zip(rows["ill"], rows["kids"], strict=True))
    found = release.count({"ill": "yes", "kids": "1"})
    assert found.lower is not None and found.upper is not None
    room = 3 * (found.upper - found.lower)  # the interval itself misses once in thousands of releases
    assert found.lower - room <= both <= found.upper + room and found.upper <= sick * 1.2
    sure = release.decide("ill", {"age": 10})
    assert sure.levels == ("no",)
    assert "certainly no" in str(sure) and "95 % sure" in str(sure)
    assert set(release.decide("kids").levels) == {"0", "1", "2"}


def test_figures_are_asked_on_the_command_line(
    release: dc.Release, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every form, as text and as JSON: the numbers of Python."""
    path = str(tmp_path / "release.json")
    release.write(path)
    asked = [
        'P(ill=yes | age="[60, 80]") - P(ill=yes | age="[0, 20)")',
        'P(ill=yes | age="[60, 80]") / P(ill=yes | age="[0, 20)")',
        'odds(ill=yes | age="[60, 80]") / odds(ill=yes | age="[0, 20)")',
        "mean(age | ill=yes)",
        "median(age)",
        "quantile(age, 0.9)",
        "count(ill=yes)",
        'surely(ill | age="[0, 20)")',
    ]
    assert main(["query", path, *asked]) == 0
    assert capsys.readouterr().out.count("95 % sure") == len(asked)
    assert main(["query", path, *asked, "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    expected = release.compare({"ill": "yes"}, {"age": 70}, {"age": 10})
    assert lines[0]["value"] == pytest.approx(expected.value)
    assert (lines[0]["lower"], lines[0]["upper"]) == pytest.approx((expected.lower, expected.upper))
    assert lines[3]["value"] == pytest.approx(release.mean("age", {"ill": "yes"}).value)
    assert lines[7]["certainly one of"] == ["no"]
    assert release.ask("count(ill=yes)").value == pytest.approx(lines[6]["value"])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("P(ill | age=1) - P(ill | age=2)", "cannot compare distributions"),
        ("P(ill=yes) - odds(ill=yes)", "odds"),
        ("odds(ill=yes) - odds(ill=no)", "odds"),
        ("P(ill=yes) - 3", "cannot read"),
        ("quantile(age)", "cannot read"),
        ("quantile(age, many)", "is no share"),
        ("count(ill)", "cannot read"),
        ("mean(age, ill)", "cannot read"),
    ],
)
def test_what_is_no_figure_is_refused(text: str, reason: str) -> None:
    """One line that says what to write instead."""
    with pytest.raises(QueryError, match=reason):
        parse(text)


def test_a_minus_inside_a_level_is_no_operator() -> None:
    """Names and levels may hold what compares two questions elsewhere."""
    assert parse('P("a-b"="c / d" | e=-1)').event == {"a-b": "c / d"}  # type: ignore[union-attr]


def test_an_open_end_has_the_mean_of_synthetic_rows_and_no_interval() -> None:
    """Nobody knows how far the true rows reach; how far the drawn ones do is declared."""
    schema = dc.Schema((dc.Attribute.binned("stay", [0, 10, math.inf], highest=30),))
    network = dc.Network.build(schema, {"stay": ()}, {"stay": [0.25, 0.75]})
    found = figures.mean(network, "stay")
    assert found.value == pytest.approx(0.25 * 5 + 0.75 * 20)
    assert found.lower is None and "from 0 to 30, as synthetic rows do" in found.meaning


def test_dates_are_no_numbers() -> None:
    schema = dc.Schema(
        (dc.Attribute.dated("came", first=date(2024, 1, 1), last=date(2024, 12, 31), by="quarter"),)
    )
    network = dc.Network.build(schema, {"came": ()}, {"came": [0.25] * 4})
    with pytest.raises(QueryError, match=r"'came' holds dates, .* ask for P\(came\)"):
        figures.quantile(network, "came")


def test_a_level_that_is_no_number_has_no_mean() -> None:
    schema = dc.Schema.of({"x": ["1", "2", "nan"]})
    network = dc.Network.build(schema, {"x": ()}, {"x": [0.5, 0.5, 0.0]})
    with pytest.raises(QueryError, match="no finite number"):
        figures.mean(network, "x")
