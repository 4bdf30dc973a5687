"""Free questions: what refusals give away if a schema is silent on values outside; a total one refuses none."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from discreet.core.airlock import Airlock
from discreet.doors.cli import main
from discreet.entrance import open_airlock, open_counter
from discreet.values.errors import DataError
from discreet.values.schema import Attribute, Reading, Schema
from discreet.values.unit import Unit

SECRET = 28_764
OLD = '[attributes.income]\ntype = "integer"\nedges = [0, {half}, {edge}]\n'
TOTAL = OLD + 'missing = "missing"\noutside = "nearest"\n'


def run(*arguments: object) -> int:
    return main([str(argument) for argument in arguments])


def find_maximum(schema: str, folder: Path, data: Path, most: int) -> tuple[int, int]:
    """The attack: halve the interval by whether a schema with that last edge is refused; the guess, and the calls."""
    low, high, calls = 0, most, 0
    while low < high:
        edge = (low + high) // 2
        (folder / "guess.toml").write_text(schema.format(half=max(edge / 2, 1), edge=max(edge, 2)))
        calls += 1
        if run("schema", "check", folder / "guess.toml", data) == 0:
            high = edge
        else:
            low = edge + 1
    return low, calls


def write_rows(folder: Path, values: list[object]) -> Path:
    path = folder / "rows.csv"
    path.write_text("income,other\n" + "".join(f"{value},1\n" for value in values))
    return path


def test_without_a_declaration_15_free_calls_find_a_private_maximum(tmp_path: Path) -> None:
    """The planted twin: commands refuse values outside, and that is an oracle for whoever may watch."""
    data = write_rows(tmp_path, [17, 230, SECRET, 4])
    assert find_maximum(OLD, tmp_path, data, 2**15 - 1) == (SECRET, 15)


def test_under_a_total_schema_no_number_of_calls_finds_anything(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code and output are the same whatever the rows hold: huge numbers, text, nothing at all, or no rows."""
    said = set()
    tables: list[list[object]] = [
        [17, 230, SECRET, 4],
        [1],
        [10**400, "abc", "", "NaN", "=1+1", "'"],
        ['"a\nb"'],
        [],
    ]
    for values in tables:
        data = write_rows(tmp_path, values)
        (tmp_path / "schema.toml").write_text(TOTAL.format(half=10, edge=100))
        capsys.readouterr()
        code = run("schema", "check", tmp_path / "schema.toml", data)
        said.add((code, *capsys.readouterr()))
        ledger, out = tmp_path / f"{len(values)}.ledger", tmp_path / f"{len(values)}.json"
        code = run(
            "release", data, "--schema", tmp_path / "schema.toml", "--epsilon", "1", "--account", "a",
            "--ledger", ledger, "--create-ledger", "--out", out,
        )  # fmt: skip
        printed = "".join(capsys.readouterr())
        assert code == 0 and str(SECRET) not in printed and "abc" not in printed
    assert len(said) == 1
    data = write_rows(tmp_path, [17, 230, SECRET, 4])
    assert find_maximum(TOTAL, tmp_path, data, 2**8 - 1) == (0, 8)


CELLS: list[Any] = ["a", "B ", "zz", None, "", 3, 7.5, float("nan"), True, b"x", [1], 10**400]
SCHEMA = Schema(
    (
        Attribute.of("out", ["a", "b"], reading=Reading.of(outside="leave out", ignore=["case", "blanks"])),
        Attribute.binned("near", [0, 5, 6], missing="?", reading=Reading.of(outside="nearest")),
        Attribute.of("other", ["a", "3"], other="else"),
    )
)


def count(rows: list[tuple[Any, Any, Any]]) -> np.ndarray[Any, Any]:
    table = {name: [row[i] for row in rows] for i, name in enumerate(SCHEMA.names)}
    counter = open_counter(table, SCHEMA)
    return np.asarray(counter.count([SCHEMA.names])[0].values)


def test_a_record_moves_the_tables_by_one_whatever_it_holds_and_whoever_else_is_there() -> None:
    """By brute force: one row more is one count more or none, and which does not depend on the other rows."""
    rows = list(itertools.product(CELLS, CELLS[:6], CELLS[:3]))
    others: list[list[Any]] = [[], rows[40:43]]
    before = [count(other) for other in others]
    for row in rows:
        moves = [count([*other, row]) - start for other, start in zip(others, before, strict=True)]
        assert all(np.array_equal(move, moves[0]) for move in moves)
        assert np.abs(moves[0]).sum() == (1 if row[0] in ("a", "B ") else 0)


@pytest.mark.parametrize("ids", [CELLS, []], ids=["odd", "none"])
def test_no_id_is_refused_under_a_total_schema(ids: list[Any]) -> None:
    """Also if it is to be chosen how many rows count, and if there are no rows at all."""
    table = {**{name: ["a"] * len(ids) for name in SCHEMA.names}, "id": ids}
    people = len(ids) - 3 if ids else 0  # None, "" and NaN are nobody's
    for average in (False, True):
        unit = Unit("add-remove", "id", 2, average=average)
        assert open_counter(table, SCHEMA, unit=unit).rows == people * unit.grain
        with open_airlock(
            table, SCHEMA, budget="1", unit=Unit("add-remove", "id", 0, average=average)
        ) as airlock:
            assert airlock.account.unit.at_most >= 1


def test_records_are_not_left_out_where_their_number_is_public() -> None:
    """Under replace-one a record that is left out would change n, which is published as it is."""
    with pytest.raises(DataError, match="'out' leaves records out, but the number of rows is public"):
        open_counter({name: ["a"] for name in SCHEMA.names}, SCHEMA, unit=Unit.REPLACE_ONE)
    with open_airlock({name: ["a"] for name in SCHEMA.names}, SCHEMA, budget="1") as airlock:
        assert isinstance(airlock, Airlock)
