"""Posteriors as releases: learned, paid for, written, verified, and used as the next prior."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import discreet as dc
from discreet.doors.cli import main
from discreet.networks.posterior import Posterior
from discreet.values.errors import BudgetError, FormatError, NetworkError

LEARNERS = ("laplace", "fourier", "posterior-sample", "map")
SCHEMA = {"ward": ["a", "b", "c"], "smoke": ["yes", "no"], "lung": ["ill", "well"]}
GRAPH = {"lung": ("ward", "smoke"), "smoke": ("ward",)}


@pytest.fixture(scope="module")
def rows() -> dict[str, list[str]]:
    rng = np.random.default_rng(3)
    return {name: rng.choice(levels, 400).tolist() for name, levels in SCHEMA.items()}


def make(rows: Any, place: Path, learner: str, **more: Any) -> dc.Release:
    return dc.release(
        rows, SCHEMA, GRAPH, ledger=place / "l.ledger", account="clinic", create=True, learner=learner,
        **{"epsilon": 2, "budget": 8, **more},
    )  # fmt: skip


def bump(numbers: list[int]) -> None:
    """Another first number, whatever was drawn."""
    numbers[0] ^= 1


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("amount", [{"epsilon": 2, "unit": "replace-one"}, {"rho": "1/2", "epsilon": None}])
def test_it_is_paid_for_once_verifies_and_is_planned(
    tmp_path: Path, rows: dict[str, list[str]], learner: str, amount: dict[str, Any]
) -> None:
    if "rho" in amount:
        amount = {**amount, "budget": dc.ZCDP(4)}
    first = make(rows, tmp_path, learner, **amount)
    again = make(rows, tmp_path, learner, **amount)
    assert (
        first.receipt is not None
        and first.receipt.paid
        and again.receipt is not None
        and not again.receipt.paid
    )
    paths = first.write(tmp_path / "one")
    again.write(tmp_path / "two")
    assert paths["release"].read_bytes() == (tmp_path / "two" / "release.json").read_bytes()
    found = dc.verify(paths["release"], tmp_path / "l.ledger")
    assert found.sound and not found.unchecked, str(found)
    kept = {name: value for name, value in amount.items() if name != "budget"}
    planned = dc.plan(SCHEMA, GRAPH, learner=learner, **{"epsilon": 2, **kept})
    assert planned.to_json()["learner"] == learner and learner in planned.explain()


@pytest.mark.parametrize("learner", ["laplace", "fourier"])
def test_its_file_holds_the_alphas_and_is_held_to_them(
    tmp_path: Path, rows: dict[str, list[str]], learner: str
) -> None:
    made = make(rows, tmp_path, learner, options={"prior": 0.5})
    path = made.write(tmp_path / "out")["posterior"]
    read = dc.read(path)
    assert isinstance(read, Posterior)
    for name in SCHEMA:
        assert np.array_equal(read.alpha(name).values, made.posterior().alpha(name).values)
        assert (read.alpha(name).values >= 0.5).all()
    answer = read.network().query("lung", {"ward": "b"})
    mine = made.query("lung", {"ward": "b"})
    assert np.allclose(answer.table.values, mine.table.values, atol=1e-9)
    assert dc.verify(path, tmp_path / "l.ledger").sound
    document = json.loads(path.read_text())
    document["alphas"][1][0] += 1.0
    forged = tmp_path / "forged.json"
    forged.write_text(json.dumps(document))
    problems = dc.verify(forged).problems
    assert any("alphas" in problem and "smoke" in problem for problem in problems)


@pytest.mark.parametrize(
    ("learner", "forge"),
    [
        ("fourier", lambda details: bump(details["coefficients"]["blocks"][2]["counts"])),
        ("fourier", lambda details: details["coefficients"]["law"].__setitem__("scale", "1/100")),
        ("posterior-sample", lambda details: bump(details["points drawn"][0][0])),
        ("map", lambda details: details["points drawn"][0][0].__setitem__(0, 5000)),
        ("map", lambda details: details["points drawn"].pop()),
        ("map", lambda details: details["floors"].__setitem__("lung", 0.25)),
    ],
)
def test_a_forged_answer_is_found(
    tmp_path: Path, rows: dict[str, list[str]], learner: str, forge: Any
) -> None:
    path = make(rows, tmp_path, learner).write(tmp_path / "r.json")["release"]
    document = json.loads(path.read_text())
    forge(document["provenance"]["details"])
    forged = tmp_path / "forged.json"
    forged.write_text(json.dumps(document))
    assert any(problem.startswith("numbers") for problem in dc.verify(forged).problems)


def test_a_posterior_is_the_next_prior(tmp_path: Path, rows: dict[str, list[str]]) -> None:
    first = make(rows, tmp_path, "laplace")
    path = first.write(tmp_path / "out")["posterior"]
    turned = {"lung": ("smoke", "ward"), "smoke": ("ward",)}
    second = dc.release(
        rows, SCHEMA, turned, ledger=tmp_path / "l.ledger", account="clinic", learner="laplace", epsilon=2,
        options={"prior": path},
    )  # fmt: skip
    alpha, before = second.posterior().alpha("lung"), first.posterior().alpha("lung")
    noisy = next(found.noisy for found in second.provenance.measurements if found.axes[-1] == "lung")
    expected = before.arrange(alpha.axes).values + np.maximum(noisy.values, 0)
    assert np.allclose(alpha.values, expected)
    assert dc.verify(second, tmp_path / "l.ledger").sound
    with pytest.raises(NetworkError, match="the graph gives it"):
        dc.plan(SCHEMA, {"lung": ("ward",)}, epsilon=1, learner="map", options={"prior": path})
    with pytest.raises(NetworkError, match="other attributes or levels"):
        dc.plan({**SCHEMA, "ward": ["a", "b"]}, GRAPH, epsilon=1, learner="map", options={"prior": path})
    with pytest.raises(FormatError, match="a prior is a posterior"):
        dc.plan(SCHEMA, GRAPH, epsilon=1, learner="map", options={"prior": tmp_path / "out" / "release.json"})


def test_two_long_priors_are_two_questions() -> None:
    from discreet.doors.release import name_request

    schema, long = dc.Schema.of(SCHEMA), np.ones(2000)
    other = long.copy()
    other[1000] = 2.0
    names = {
        name_request("a", schema, None, dc.PureDP(1), "laplace", {"prior": {"x": found}})
        for found in (long, other)
    }
    assert len(names) == 2


@pytest.mark.parametrize("learner", LEARNERS)
def test_people_are_protected_and_their_averages_refused_before_anything_is_paid(
    tmp_path: Path, rows: dict[str, list[str]], learner: str
) -> None:
    table = {**rows, "who": [str(i // 2) for i in range(400)]}
    made = make(table, tmp_path, learner, person="who", at_most=2)
    assert dc.verify(made, tmp_path / "l.ledger").sound and "person" in made.promise
    averages = tmp_path / "averages"
    averages.mkdir()
    people = {"person": "who", "at_most": 2, "per_person": "average"}
    with pytest.raises(BudgetError, match="counts rows, not people's averages"):
        make(table, averages, learner, **people)
    assert not (averages / "l.ledger").exists()
    make(table, averages, "planned", **people)
    with dc.open_ledger(averages / "l.ledger") as ledger:
        before = ledger.account("clinic").spent
    with pytest.raises(BudgetError, match="counts rows, not people's averages"):
        dc.release(
            table, SCHEMA, GRAPH, ledger=averages / "l.ledger", account="clinic", learner=learner, epsilon=1
        )
    with dc.open_ledger(averages / "l.ledger") as ledger:
        assert ledger.account("clinic").spent == before


def test_the_commands_say_what_a_prior_is_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schema = tmp_path / "s.toml"
    schema.write_text('[attributes.a]\nlevels = ["x", "y"]\n[attributes.b]\nlevels = ["x", "y"]\n')
    graph = tmp_path / "g.txt"
    graph.write_text("a -> b\n")
    for options, words in [
        (["--prior", "1"], "--prior is for the tables of a graph"),
        (["--graph", str(graph), "--prior", "0"], "--prior must be above 0"),
        (["--graph", str(graph), "--prior", "1e400"], "--prior must lie between 1e-09 and 1e+12, not 1e400"),
        (["--graph", str(graph), "--prior", "1e-400"], "--prior must lie between"),
        (["--graph", str(graph), "--prior", "nowhere.json"], "cannot be read"),
        (["--graph", str(graph), "--learner", "fourier", "--prior", "one"], "--prior"),
    ]:
        assert main(["plan", "--schema", str(schema), "--epsilon", "1", *options]) == 2
        assert words in capsys.readouterr().err
    assert (
        main(["plan", "--schema", str(schema), "--epsilon", "1", "--graph", str(graph), "--learner", "map"])
        == 0
    )
    assert "drawn" not in capsys.readouterr().err
