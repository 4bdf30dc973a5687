"""`discreet plan` predicts the widths of intervals, and finds the budget that buys one, before anything is paid."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import discreet as dc
from discreet.doors.cli import main
from discreet.judge.widths import predict_width, read_loosely, suppose


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    """The schema and the graph of Asia."""
    asia = dc.examples.asia()
    asia.schema.write(tmp_path / "schema.toml")
    asia.write_bif(tmp_path / "graph.bif")
    return str(tmp_path / "schema.toml"), str(tmp_path / "graph.bif")


def test_a_predicted_width_is_that_of_a_release(files: tuple[str, str]) -> None:
    """On rows that are spread evenly, as a plan assumes, the release is as wide as predicted."""
    schema, graph = files
    predicted = predict_width(dc.plan(schema, graph, epsilon=1, rows=20_000), "P(lung | smoke=yes)")
    names = dc.Schema.read(schema).names
    even = {name: [("yes", "no")[row >> k & 1] for row in range(256)] * 80 for k, name in enumerate(names)}
    made = dc.release(even, schema, graph, epsilon=1)
    for kind, width in (("guaranteed", predicted.guaranteed), ("calibrated", predicted.calibrated)):
        low, high = made.query("lung", {"smoke": "yes"}, intervals=kind).interval("yes")
        assert high - low == pytest.approx(width, rel=0.25)


def test_rows_that_follow_a_graph_keep_even_shares() -> None:
    """Every level of every attribute of Child is as frequent as any other, and no arrow is without a dependence."""
    child = dc.examples.load("child")
    preview = dc.plan(child.schema, child.dag, epsilon=1, rows=50_000)
    supposed = suppose(preview.network, preview.rows)
    known = supposed.provenance
    assert known is not None
    for found in known.measurements:
        assert found.noisy.total() == pytest.approx(50_000, abs=1)
        for name in found.axes:
            even = np.full(child.schema[name].size, 50_000 / child.schema[name].size)
            assert found.noisy.project([name]).values == pytest.approx(even, abs=found.cells / even.size + 1)
    for cpt in supposed.cpts:
        assert cpt.values.sum(axis=-1) == pytest.approx(np.ones(cpt.values.shape[:-1]))
        for axis in range(cpt.values.ndim - 1):
            assert np.ptp(cpt.values, axis=axis).max() > 0.05
    for name in child.schema.names:
        even = np.full(child.schema[name].size, 1 / child.schema[name].size)
        assert supposed.query(name, intervals="none").probabilities == pytest.approx(even)


def test_what_is_not_known_of_parents_widens_the_prediction() -> None:
    """Along a chain the width of a release is that predicted, of rows that follow the graph; even rows predict half."""
    schema = dc.Schema.of({name: ["x", "y", "z"] for name in "abcd"})
    dag = dc.DAG(tuple("abcd"), ((), ("a",), ("b",), ("c",)))
    preview = dc.plan(schema, dag, epsilon=1, rows=30_000)
    predicted = predict_width(preview, "P(d | a=x)").guaranteed
    even = preview.network.query("d", {"a": "x"}, intervals="guaranteed")
    rows = suppose(preview.network, 30_000).sample(30_000, rng=1).arrow()
    made = dc.release(rows, schema, dag, epsilon=1).query("d", {"a": "x"}, intervals="guaranteed")
    assert predicted is not None
    assert np.ptp([made.lower, made.upper], axis=0).max() == pytest.approx(predicted, rel=0.25)
    assert np.ptp([even.lower, even.upper], axis=0).max() < 0.7 * predicted


def test_the_budget_for_a_width_buys_it(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    """A little less is too little; a question may leave the level open that is given."""
    schema, graph = files
    command = ["plan", "--schema", schema, "--graph", graph, "--rows", "20000"]
    assert main([*command, "--for-width", "0.02", "P(lung | smoke)", "--json"]) == 0
    epsilon = float(Fraction(json.loads(capsys.readouterr().out)["epsilon"]))
    for part, fits in ((1.0, True), (0.9, False)):
        found = predict_width(dc.plan(schema, graph, epsilon=part * epsilon, rows=20_000), "P(lung | smoke)")
        assert found.guaranteed is not None
        assert (found.guaranteed <= 0.0201) == fits
    assert main([*command, "--for-width", "0.02", "P(lung | smoke)", "--epsilon", "1"]) == 2
    assert "--for-width finds the budget: leave out --epsilon" in capsys.readouterr().err
    assert main([*command, "--for-width", "2", "P(lung)"]) == 2
    assert "a width lies between 0 and 1" in capsys.readouterr().err


def test_people_who_are_averaged_need_less_for_a_width(
    files: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """`--for-width` takes the terms of the release: an average of four rows moves counts less than four rows do."""
    schema, graph = files
    command = ["plan", "--schema", schema, "--graph", graph, "--rows", "20000", "--json"]
    people = ["--person", "patient", "--at-most", "4", "--for-width", "0.1", "P(lung)"]
    found = []
    for per in ("rows", "average"):
        assert main([*command, *people, "--per-person", per]) == 0
        found.append(float(Fraction(json.loads(capsys.readouterr().out)["epsilon"])))
    assert found[1] < 0.5 * found[0]


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (("nan", "P(lung)"), "a width lies between 0 and 1"),
        (("-0.1", "P(lung)"), "a width lies between 0 and 1"),
        (("0.1", "P(moon)"), "moon"),
        (("0.1", "count(lung=yes)"), "a width is predicted for probabilities, comparisons and means"),
        (("0.1", "lung"), ""),
        (("0.1", ""), ""),
    ],
)
def test_a_width_that_cannot_be_meant_is_one_line(
    asked: tuple[str, str], told: str, files: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2 and a sentence, before anything is worked out."""
    command = ["plan", "--schema", files[0], "--graph", files[1]]
    assert main([*command, "--for-width", *asked]) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err.count("\n") == 1 and told in printed.err


def test_a_search_predicts_widths_if_it_measures_what_is_asked(
    files: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Printed before the plan, and in JSON."""
    schema, _ = files
    command = [
        "plan",
        "--schema",
        schema,
        "--epsilon",
        "1",
        "--rows",
        "20000",
        "--question",
        "P(xray | asia)",
    ]
    assert main(command) == 0
    assert capsys.readouterr().out.startswith("P(xray | asia): width of the interval guaranteed 0.")
    assert main([*command, "--json"]) == 0
    (width,) = json.loads(capsys.readouterr().out)["widths"]
    assert 0 < width["calibrated"] < width["guaranteed"] < 1
    assert width["note"].endswith(
        "if 0.5 of the rows have what is given; with fewer it is wider in proportion"
    )


def test_evidence_without_a_level_is_that_of_its_first() -> None:
    """Levels that need quotes get them."""
    schema = dc.Schema.of({"a": ["x, y", "z"], "b": ["u", "v"]})
    assert read_loosely("P(b | a)", schema) == 'P(b | a="x, y")'
    assert read_loosely("P(b=u | a=z)", schema) == "P(b=u | a=z)"
    assert read_loosely("P(b)", schema) == "P(b)"
