"""One policy for intervals: whoever asks gets the same answer, and a release that cannot have them says why."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import discreet as dc
from discreet.doors.cli import main
from discreet.judge.report import make_page
from discreet.networks.credal import calibrated, from_noise
from discreet.networks.formats.release import Release, read_release
from discreet.networks.intervals import Intervals, explain_lack
from discreet.networks.network import Network
from discreet.values.errors import NetworkError, QueryError
from discreet.values.table import Table
from discreet.values.unit import Unit

GOLDEN = Path(__file__).parents[1] / "golden"
QUESTION, EVENT = "P(ill | smoke=yes)", "P(ill=severe | smoke=yes)"
PROMISE = "95 % sure, for all answers together: without the noise, the answer on this graph would lie in [ ]."
TABLE_PROMISE = (
    "95 % sure, for all answers together: the table's own answer lies in [ ], whatever the graph leaves out."
)


def open_golden(name: str) -> Release:
    """A release that was made once."""
    return read_release(GOLDEN / f"{name}.json")


def ask(capsys: pytest.CaptureFixture[str], name: str, *options: str) -> tuple[int, str, str]:
    """The exit code of `discreet query`, and what it prints."""
    code = main(["query", str(GOLDEN / f"{name}.json"), QUESTION, EVENT, *options])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


@pytest.mark.parametrize(
    "name", ["adaptive", "adaptive-rho", "privbayes", "privbayes-binary", "privbayes-hierarchical"]
)
def test_a_search_has_intervals_about_its_table_at_every_door(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Unasked and by name, in Python, on the command line and in JSON: the same numbers, and the same sentence."""
    network = open_golden(name).network
    answer = network.query("ill", {"smoke": "yes"})
    assert answer.meaning.startswith(TABLE_PROMISE)
    assert answer.lower is not None and answer.upper is not None
    assert (answer.lower >= 0).all() and (answer.lower < answer.upper).all() and (answer.upper <= 1).all()
    again = network.query("ill", {"smoke": "yes"}, intervals="guaranteed", of="table")
    assert again.lower == pytest.approx(answer.lower) and again.upper == pytest.approx(answer.upper)
    event = network.query_event({"ill": "severe"}, {"smoke": "yes"})
    assert (event.lower, event.upper) == pytest.approx(answer.interval("severe"), abs=1e-6)
    code, out, _ = ask(capsys, name)
    assert code == 0
    assert f"[{answer.lower[0]:.4f}, {answer.upper[0]:.4f}]" in out
    found = json.loads(ask(capsys, name, "--json", "--of", "table")[1].splitlines()[0])
    assert [cell["lower"] for cell in found["distribution"]] == pytest.approx(answer.lower)
    likely = network.query("ill", {"smoke": "yes"}, intervals="calibrated")
    assert likely.lower is not None and likely.upper is not None
    assert (likely.upper - likely.lower < answer.upper - answer.lower).all()
    assert "table's own answer" in likely.meaning
    world = network.query("ill", {"smoke": "yes"}, of="world")
    assert world.lower is not None and world.upper is not None
    assert (world.lower < answer.lower).all() and (answer.upper < world.upper).all()
    assert "population" in world.meaning


@pytest.mark.parametrize("name", ["adaptive", "adaptive-rho", "privbayes-binary"])
def test_a_search_without_a_network_to_compare_with_says_so(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """About the network there is nothing to promise; every door says what to ask instead."""
    network = open_golden(name).network
    refusal = explain_lack(network.dag, network.provenance)
    assert "--of table" in refusal
    assert network.query("ill", of="network").meaning == f"No intervals: {refusal}."
    for kind in ("guaranteed", "calibrated"):
        with pytest.raises(NetworkError, match=r"ask for .* of the table"):
            network.query("ill", intervals=kind, of="network")
        options = ("--interval", kind, "--of", "network")
        assert ask(capsys, name, *options) == (2, "", f"error: no intervals: {refusal}\n")
    for make in (from_noise, lambda found: calibrated(found, rng=1)):
        with pytest.raises(NetworkError, match=r"ask for .* of the table"):
            make(network)
    with pytest.raises(QueryError, match="of must be table, network or world, not 'moon'"):
        network.query("ill", of="moon")


def test_what_the_evidence_settles_is_certain_in_the_world_too() -> None:
    """No sampling can make P(ill | ill) anything else; and no zero is negative."""
    network = open_golden("adaptive").network
    for of in ("table", "world"):
        for kind in ("guaranteed", "calibrated"):
            answer = network.query("smoke", {"smoke": "yes"}, intervals=kind, of=of)
            assert answer.interval("yes") == pytest.approx((1.0, 1.0), abs=1e-9)
            assert "-0" not in str(answer)


@pytest.mark.parametrize("name", ["planned", "privbayes"])
def test_guaranteed_intervals_of_a_network_are_never_wider_than_by_its_conditionals(name: str) -> None:
    """`from_noise` bounds each conditional and then the answer; a query gives the same or less."""
    network = open_golden(name).network
    bounds = from_noise(network)
    for target in network.declared.names:
        for given in ({}, {"smoke": "yes"}):
            if target in given:
                continue
            answer = network.query(target, given, intervals="guaranteed", of="network")
            wide = bounds.query(target, given, method="outer")
            assert answer.lower is not None and answer.upper is not None
            assert (answer.lower >= wide.lower - 1e-9).all() and (answer.upper <= wide.upper + 1e-9).all()


@pytest.mark.parametrize("name", ["adaptive", "adaptive-rho", "planned", "privbayes"])
def test_guaranteed_intervals_of_a_table_are_never_wider_than_by_one_of_its_margins(name: str) -> None:
    """What a table alone says of a share, by the counts of its cells and of the rest, is narrowed by the others."""
    network = open_golden(name).network
    region = network._intervals.table().region
    total = region.bound(())
    assert total is not None
    for target in network.declared.names:
        counts = region.bound((target,))
        answer = network.query(target, intervals="guaranteed", of="table")
        assert counts is not None and answer.lower is not None and answer.upper is not None
        rest_high = counts.high.sum() - counts.high
        rest_low = counts.low.sum() - counts.low
        assert (answer.lower >= counts.low / np.maximum(counts.low + rest_high, 1) - 1e-9).all()
        assert (answer.upper <= counts.high / np.maximum(counts.high + rest_low, 1) + 1e-9).all()
        assert (answer.upper <= counts.high / max(int(total.low), 1) + 1e-9).all()


@pytest.mark.parametrize("name", ["privbayes", "adaptive", "adaptive-rho"])
def test_the_number_of_rows_that_decides_the_tables_has_a_share_of_its_own(name: str) -> None:
    """Its debit buys nothing else, and no outcome of it lets the shares of all batches add up to more than 1."""
    network = open_golden(name).network
    known = network.provenance
    assert known is not None and known.statement is not None
    first, *later = network._intervals.table().region.batches
    assert [table.axes for table in first.tables] == [()]
    assert all(table.axes for batch in later for table in batch.tables)
    assert first.share > 0 and first.share + sum(batch.share for batch in later) <= 1
    if name == "privbayes":  # all tables after the last choice, in one debit
        assert [debit.tables > 0 for debit in known.statement.debits[1:]].count(True) == 1
        assert known.statement.debits[-1].tables > 0


def test_the_network_without_noise_is_bounded_without_the_count_that_chose_its_tables() -> None:
    """The number of cells is fixed by the count, so its noise is not fresh: another count gives the same bounds."""
    network = open_golden("privbayes").network
    known = network.provenance
    assert known is not None
    counted = known.measurements[0]
    other = replace(counted, noisy=Table((), np.asarray(counted.noisy.values) + 500))
    moved = replace(network, provenance=replace(known, measurements=(other, *known.measurements[1:])))
    one, two = from_noise(network).query("ill"), from_noise(moved).query("ill")
    assert np.array_equal(one.lower, two.lower) and np.array_equal(one.upper, two.upper)
    assert network._intervals.table().count_rows() != moved._intervals.table().count_rows()


def test_the_sentence_says_whose_rows_count() -> None:
    """Where only some rows of a person count, the table is what is left of it."""
    network = open_golden("adaptive").network
    known = network.provenance
    assert known is not None
    unit = Unit("add-remove", "patient", 4)
    told = replace(network, provenance=replace(known, unit=unit)).query("ill")
    assert told.meaning.endswith("In the table, at most 4 rows of each person count.")


def test_a_graph_that_leaves_something_out_is_found_out() -> None:
    """Two attributes that go together, measured in one table, on a graph without an arrow between them."""
    rows = {"a": ["x", "y"] * 2000, "b": ["x", "y"] * 2000, "c": ["x", "x", "y", "y"] * 1000}
    graph = {"a": [], "b": [], "c": ["a", "b"]}
    levels = {name: ["x", "y"] for name in "abc"}
    made = dc.release(rows, levels, graph, epsilon=5)
    assert "the graph leaves something out here" in made.query("a", given={"b": "x"}).meaning
    told = made.query("a", given={"b": "x"}, of="table")
    assert told.interval("x")[0] > 0.9
    event = made.network.query_event({"a": "x"}, {"b": "x"}, of="table")
    for answer in (told, event):
        assert answer.meaning.endswith("The network's own answer lies outside: go by the interval.")
    sound = dc.release(rows, levels, {"a": [], "b": ["a"], "c": []}, epsilon=5)
    assert "leaves something out" not in sound.query("a", given={"b": "x"}).meaning


def test_a_planned_release_has_the_same_intervals_at_every_door(capsys: pytest.CaptureFixture[str]) -> None:
    """The numbers of `query` are those of the command line, of JSON and of `from_noise`; the report draws them."""
    release = open_golden("planned")
    network = release.network
    assert explain_lack(network.dag, network.provenance) == ""
    answer = network.query("ill", {"smoke": "yes"}, intervals="guaranteed")
    quick = network.query("ill", {"smoke": "yes"})
    event = network.query_event({"ill": "severe"}, {"smoke": "yes"}, intervals=Intervals.GUARANTEED)
    assert answer.meaning == quick.meaning == event.meaning == PROMISE
    assert answer.lower is not None and answer.upper is not None
    assert quick.lower == pytest.approx(answer.lower) and quick.upper == pytest.approx(answer.upper)
    assert (event.lower, event.upper) == pytest.approx(answer.interval("severe"), abs=1e-9)
    assert (answer.lower < answer.probabilities).all() and (answer.probabilities < answer.upper).all()

    made = from_noise(network)
    outer = made.query("ill", {"smoke": "yes"}, method="outer")
    assert outer.lower == pytest.approx(answer.lower, abs=1e-9)
    assert outer.upper == pytest.approx(answer.upper, abs=1e-9)
    assert outer.meaning.startswith(PROMISE)

    code, out, _ = ask(capsys, "planned", "--interval", "guaranteed")
    assert code == 0
    assert f"[{answer.lower[0]:.4f}, {answer.upper[0]:.4f}]" in out
    assert out.count(PROMISE) == 2
    found, weighed = map(
        json.loads, ask(capsys, "planned", "--interval", "guaranteed", "--json")[1].splitlines()
    )
    assert [cell["lower"] for cell in found["distribution"]] == pytest.approx(answer.lower)
    assert [cell["upper"] for cell in found["distribution"]] == pytest.approx(answer.upper)
    assert (weighed["lower"], weighed["upper"]) == pytest.approx((event.lower, event.upper))
    assert found["meaning"] == weighed["meaning"] == PROMISE

    page = make_page(release)
    assert "95 % sure, for all lines together" in page
    assert "No intervals" not in page


def test_calibrated_intervals_are_those_of_a_fixed_seed(capsys: pytest.CaptureFixture[str]) -> None:
    """`query` and the command line draw with the same seed, so that the same question has the same answer."""
    network = open_golden("planned").network
    answer = network.query("ill", {"smoke": "yes"}, intervals="calibrated")
    drawn = calibrated(network, rng=0).query("ill", {"smoke": "yes"})
    assert answer.lower is not None and answer.upper is not None
    assert drawn.lower == pytest.approx(answer.lower) and drawn.upper == pytest.approx(answer.upper)
    assert drawn.probabilities == pytest.approx(answer.probabilities)
    found = json.loads(ask(capsys, "planned", "--interval", "calibrated", "--json")[1].splitlines()[0])
    assert [cell["lower"] for cell in found["distribution"]] == pytest.approx(answer.lower)
    assert found["meaning"] == answer.meaning == drawn.meaning
    wide = network.query("ill", {"smoke": "yes"})
    assert wide.lower is not None and wide.upper is not None
    assert (answer.upper - answer.lower < wide.upper - wide.lower).all()


def test_what_was_not_asked_for_is_not_said() -> None:
    """Without intervals an answer is bare, whatever the network; an unknown kind is refused before any work."""
    for name in ("planned", "adaptive"):
        network = open_golden(name).network
        answer = network.query("ill", intervals="none")
        assert (answer.lower, answer.upper, answer.meaning) == (None, None, "")
        with pytest.raises(QueryError, match="intervals must be guaranteed, calibrated or none, not 'wide'"):
            network.query("ill", intervals="wide")
    plain = Network.build({"a": ["x", "y"]}, {"a": []}, {"a": [0.5, 0.5]})
    assert plain.query("a").meaning == ""
    with pytest.raises(NetworkError, match="does not say what was measured"):
        plain.query("a", intervals="calibrated")
    private = open_golden("planned").network
    with pytest.raises(QueryError, match="given as a likelihood"):
        private.query("ill", likelihood={"smoke": np.array([0.5, 1.0])}, intervals="guaranteed")


@pytest.mark.parametrize("name", ["planned", "adaptive", "privbayes-binary"])
def test_the_report_shows_figures_with_intervals(name: str) -> None:
    """Which level is surely the most frequent, and lines through the bars that say whose answer they are about."""
    page = make_page(open_golden(name))
    assert "<h2>Figures</h2>" in page
    assert "surely" in page or "one of" in page
    assert "95 % sure, for all lines together" in page
    assert ("whatever the graph leaves out" in page) == (name != "planned")
