"""Audits of people and of weighted rows: their arithmetic by brute force, sound releases kept, broken ones caught."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import discreet as dc
from chance import SURE, within_attempts
from discreet.doors.cli import main
from discreet.judge.attacks.noisy_tables import PSEUDO_COUNT, log_mixture, score_noisy
from discreet.judge.attacks.overlap import refuse_overlap
from discreet.judge.attacks.units import Units
from discreet.judge.audit import Audit, Outcome
from discreet.judge.experiments.empirical_epsilon import EpsilonBound, empirical_epsilon
from discreet.networks.formats.release import write_release
from discreet.papers.parameters.independent import independent
from discreet.rows import people
from discreet.rows.readers.recoded import CappedReader
from discreet.values.budget import PureDP
from discreet.values.errors import BudgetError, DataError
from discreet.values.graph import DAG
from discreet.values.measurement import DiscreteLaplace, Measurement
from discreet.values.schema import Schema
from discreet.values.table import Table
from discreet.values.unit import Unit

SCHEMA = Schema.of({"x": ["a", "b", "c"], "y": ["0", "1"]})
GRAPH = DAG.build({"x": (), "y": ("x",)})
PERSON = Unit("add-remove", "id", 2)
WEIGHT = Unit("add-remove", weight="w", at_most=3)

# Three people: one with three visits of whom two count, one with two, one with one.
CODES = {"x": np.array([0, 0, 1, 1, 1, 2]), "y": np.array([0, 1, 0, 0, 0, 1])}
OWNERS = np.array([0, 0, 0, 1, 1, 2])


def list_choices() -> Iterator[np.ndarray]:
    """Every way to let two rows of each person count; all are equally likely."""
    for pair in itertools.combinations(range(3), 2):
        yield np.array([*(i in pair for i in range(3)), True, True, True])


@pytest.mark.parametrize("axes", [("x",), ("y",), ("x", "y")])
def test_what_may_count_is_what_some_choice_of_rows_counts(axes: tuple[str, ...]) -> None:
    units = Units(CODES, OWNERS, None, 2)
    shape = [SCHEMA.sizes[name] for name in axes]
    tables = []
    for chosen in list_choices():
        cells = np.ravel_multi_index([CODES[name][chosen] for name in axes], shape)
        tables.append(np.bincount(cells, minlength=np.prod(shape)))
    low, high = units.bound_tally(axes, shape)
    assert low.tolist() == np.min(tables, axis=0).tolist()
    assert high.tolist() == np.max(tables, axis=0).tolist()
    assert units.tally(axes, shape) == pytest.approx(np.mean(tables, axis=0))
    assert {int(table.sum()) for table in tables} == {units.total}
    averaged = Units(CODES, OWNERS, None, 2, 2)  # the third person's only row weighs 2 parts, all others 1
    parts = np.array([1, 1, 1, 1, 1, 2])
    tables = []
    for chosen in list_choices():
        cells = np.ravel_multi_index([CODES[name][chosen] for name in axes], shape)
        tables.append(np.bincount(cells, parts[chosen], np.prod(shape)))
    low, high = averaged.bound_tally(axes, shape)
    assert low.tolist() == np.min(tables, axis=0).tolist()
    assert high.tolist() == np.max(tables, axis=0).tolist()
    assert averaged.tally(axes, shape) == pytest.approx(np.mean(tables, axis=0))
    assert {int(table.sum()) for table in tables} == {averaged.total}


def test_a_person_is_scored_by_the_mean_likelihood_over_what_may_count() -> None:
    """One cell: of three rows with two in it, one or two count with chances 2/3 and 1/3."""
    reference = {"x": np.array([0] * 30 + [1] * 50 + [2] * 20), "y": np.zeros(100, dtype=np.int64)}
    noisy = Measurement(Table(("x",), np.array([31, 52, 20])), DiscreteLaplace(2), PERSON, PureDP(1))
    found = score_noisy([noisy], reference, 100, Units(CODES, OWNERS, None, 2))

    def ratio(cell: int, added: int) -> float:
        seen = np.array([30, 50, 20])[cell : cell + 1] + PSEUDO_COUNT
        args = (seen, 101.5 - seen)
        y = noisy.noisy.values[cell : cell + 1]
        return float(
            (log_mixture(y - added, *args, 100 - added, noisy.law) - log_mixture(y, *args, 100, noisy.law))[0]
        )

    first = np.log(2 / 3 * np.exp(ratio(0, 1)) + 1 / 3 * np.exp(ratio(0, 2)))
    second = np.log(2 / 3 * np.exp(ratio(1, 1)) + 1 / 3)
    assert found == pytest.approx([first + second, ratio(1, 2), ratio(2, 1)])


def test_units_are_taken_and_picked_whole() -> None:
    units = Units.of_people(CODES, np.array([[0, 7], [0, 7], [0, 7], [3, 3], [3, 3], [0, 0]]), 2)
    assert units.number == 2 and units.held.tolist() == [3, 2]  # nobody's row is left out
    second = units.take(np.array([1]))
    assert second.codes["x"].tolist() == [1, 1] and second.number == 1
    rows = units.pick_rows(np.random.default_rng(0))
    assert rows["x"][0] in (0, 1) and rows["x"][1] == 1
    assert units.add_up(np.ones(5)) == pytest.approx([2.0, 2.0])
    assert units.find_best(np.arange(5.0)).tolist() == [2.0, 4.0]


def draw_visits(number: int, rng: np.random.Generator, start: int = 0) -> dict[str, Any]:
    """People with one to six visits, each with a habit."""
    visits = rng.integers(1, 7, number)
    owners = np.repeat(np.arange(number), visits)
    habit = rng.integers(0, 3, number)[owners]
    x = np.where(rng.random(len(owners)) < 0.7, habit, rng.integers(0, 3, len(owners)))
    y = (rng.random(len(owners)) < 0.2 + 0.3 * x).astype(int)
    ids = [f"p{start + owner}" for owner in owners]
    return {"id": ids, "x": [list("abc")[i] for i in x], "y": [str(i) for i in y]}


def weigh_rows(number: int, rng: np.random.Generator) -> dict[str, Any]:
    """Rows that stand for one to nine."""
    x = rng.integers(0, 3, number)
    y = (rng.random(number) < 0.2 + 0.3 * x).astype(int)
    return {"w": rng.integers(1, 10, number), "x": [list("abc")[i] for i in x], "y": [str(i) for i in y]}


def run_audit(unit: Unit, epsilon: str, rng: np.random.Generator) -> Audit:
    """A release of 120 units, audited with all its rows and 200 other units."""
    members, others = (
        (draw_visits(120, rng), draw_visits(200, rng, 1000))
        if unit.person
        else (weigh_rows(120, rng), weigh_rows(200, rng))
    )
    with dc.open_airlock(members, SCHEMA, budget=epsilon, unit=unit) as airlock:
        network = independent(airlock, GRAPH, spend=epsilon)
    return dc.audit(network, members=members, reference=others, complete=True, confidence=SURE)


@pytest.mark.parametrize(
    "unit", [PERSON, WEIGHT, Unit("add-remove", "id", 6), Unit("add-remove", "id", 3, average=True)], ids=str
)
@pytest.mark.parametrize("epsilon", ["1", "20"])
def test_a_sound_release_keeps_its_promise_to_units(unit: Unit, epsilon: str) -> None:
    found = run_audit(unit, epsilon, np.random.default_rng(3))
    assert found.outcome is Outcome.KEPT, str(found)
    assert found.noise and found.tracing.members == 120 and found.tracing.strangers == 100
    assert found.tracing.theory is None  # Theorem 1 speaks of rows
    said = str(found)
    assert ("A member is a person" if unit.person else "A member is a row that counts") in said
    assert found.to_json()["tracing"]["unit"] == unit.value


def test_people_whose_rows_are_not_bounded_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(people, "choose_rows", lambda ids, at_most: np.ones(len(ids), dtype=bool))
    rng = np.random.default_rng(4)
    assert within_attempts(lambda: run_audit(PERSON, "20", rng).outcome is Outcome.BROKEN)


def first_come(ids: np.ndarray, at_most: int) -> np.ndarray:
    """A broken bound: as many rows as it allows on average, those that come first in the file."""
    return np.arange(len(ids)) < at_most * len(np.unique(ids, axis=0))


def audit_newcomer() -> EpsilonBound:
    """What runs with and without a person at the head of the file prove about ε = 1."""
    others = {"id": list("qqrrsstt"), "x": ["b"] * 8, "y": ["0"] * 8}
    beside = {"id": ["p"] * 10 + others["id"], "x": ["a"] * 10 + others["x"], "y": ["0"] * 18}

    def release(rows: dict[str, Any]) -> Callable[[int], np.ndarray]:
        def draw(trials: int) -> np.ndarray:
            with dc.open_airlock(rows, SCHEMA, budget=str(trials), unit=PERSON) as airlock:
                return np.array([airlock.measure([("x",)], spend=1)[0].noisy.values for _ in range(trials)])

        return draw

    return empirical_epsilon(release(beside), release(others), trials=200, confidence=SURE)


def test_a_bound_by_the_order_of_the_file_is_caught_by_running_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """One release cannot show it, since all totals are right; two neighbours can: a newcomer pushes others out."""
    assert not audit_newcomer().contradicts(1.0)
    monkeypatch.setattr(people, "choose_rows", first_come)
    assert within_attempts(lambda: audit_newcomer().contradicts(1.0))


def test_a_weight_that_is_not_cut_off_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CappedReader, "read", lambda self, names: self.source.read(names))
    rng = np.random.default_rng(6)
    assert within_attempts(lambda: run_audit(WEIGHT, "20", rng).outcome is Outcome.BROKEN)


def code(rows: dict[str, Any]) -> Units:
    return Units(
        {"x": np.array([ord(found) - 97 for found in rows["x"]]), "y": np.array(rows["y"], dtype=int)}
    )


def test_tables_of_the_same_rows_are_refused_and_others_are_not() -> None:
    """Ten attributes of four levels: hardly any two people are alike."""
    rng = np.random.default_rng(7)
    table = {name: rng.integers(0, 4, 600) for name in "abcdefghij"}

    def part(rows: Any) -> Units:
        return Units({name: column[rows] for name, column in table.items()})

    with pytest.raises(DataError, match="the same 600 rows"):
        refuse_overlap(part(slice(None)), part(rng.permutation(600)))
    with pytest.raises(DataError, match="holds rows of the members"):
        refuse_overlap(part(slice(0, 200)), part(slice(None)))
    with pytest.raises(DataError, match="holds rows of the members"):
        refuse_overlap(part(slice(0, 320)), part(slice(280, 600)))
    refuse_overlap(part(slice(0, 300)), part(slice(300, 600)))
    for _ in range(20):  # few levels: many are alike without being the same
        refuse_overlap(code(weigh_rows(50, rng)), code(weigh_rows(500, rng)))


def write_csv(path: Path, rows: dict[str, Any]) -> Path:
    lines = [",".join(rows), *(",".join(map(str, line)) for line in zip(*rows.values(), strict=True))]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def test_the_command_attacks_people_and_splits_a_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(8)
    table, others = draw_visits(200, rng), draw_visits(150, rng, 1000)
    rows, reference = write_csv(tmp_path / "rows.csv", table), write_csv(tmp_path / "others.csv", others)
    with dc.open_airlock(str(rows), SCHEMA, budget="2", unit=PERSON) as airlock:
        network = independent(airlock, GRAPH, spend=2)
    write_release(network, tmp_path / "release.json")
    audit = ["audit", str(tmp_path / "release.json"), "--confidence", str(SURE)]
    assert main([*audit, "--members", str(rows), "--reference", str(reference), "--complete"]) == 0
    assert (
        "A member is a person, all rows with one id, of which at most 2 rows count" in capsys.readouterr().out
    )
    assert main([*audit, "--members", str(rows), "--reference", str(rows)]) == 2
    assert "200 people are in members and reference both" in capsys.readouterr().err
    assert main([*audit, "--split", str(rows), "--json"]) == 0
    printed = capsys.readouterr()
    found = json.loads(printed.out)
    assert found["release"] == "a trial release like release.json" and found["noise"]["tests"] > 3
    assert found["tracing"]["members"] == 100 and found["tracing"]["strangers"] == 50
    assert "--split holds private rows" in printed.err
    for more, words in (
        (["--split", str(rows), "--members", str(rows)], "not both"),
        (["--members", str(rows)], "needs members and a reference"),
        (["--split", str(rows), "--person", "x", "--at-most", "3"], "itself protects"),
    ):
        assert main([*audit, *more]) == 2
        assert words in capsys.readouterr().err
    network.write_bif(tmp_path / "network.bif")
    assert main(["audit", str(tmp_path / "network.bif"), "--split", str(rows)]) == 2
    assert "does not say how it was learned" in capsys.readouterr().err


def test_synthetic_rows_are_attacked_by_people_where_the_unit_is_stated(tmp_path: Path) -> None:
    rng = np.random.default_rng(9)
    members, others = draw_visits(60, rng), draw_visits(80, rng, 1000)
    copies = {name: values for name, values in members.items() if name != "id"}
    found = dc.audit(
        copies, members=members, reference=others, schema=SCHEMA, promise=PureDP(1), person="id", at_most=2
    )
    assert found.tracing.members == 60 and found.tracing.unit == PERSON
    with pytest.raises(BudgetError, match="at-most"):
        dc.audit(copies, members=members, reference=others, schema=SCHEMA, person="id")
