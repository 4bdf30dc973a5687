"""`discreet query` and `discreet synthesize`, as a user runs them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import discreet as dc
from discreet.doors.cli import main


@pytest.fixture
def asia(tmp_path: Path) -> str:
    path = tmp_path / "asia.json"
    dc.examples.asia().write(path)
    return str(path)


def test_questions_are_answered_in_order(
    asia: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    more = tmp_path / "questions.txt"
    more.write_text("# a comment\n\nP(lung=yes)\n")
    assert main(["query", asia, "P(lung | smoke=yes)", "MAP(lung | dysp=yes)", "--file", str(more)]) == 0
    out = capsys.readouterr().out
    assert "yes  0.1000" in out
    assert "lung = no" in out
    assert out.rstrip().endswith("P(lung=yes) = 0.055000")


def test_json_for_machines(asia: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["query", asia, "P(lung, bronc | smoke=yes)", "MPE()", "P(lung=no)", "--json"]) == 0
    joint, best, number = map(json.loads, capsys.readouterr().out.splitlines())
    assert joint["targets"] == ["lung", "bronc"]
    assert sum(cell["probability"] for cell in joint["distribution"]) == pytest.approx(1)
    assert set(best["levels"]) == set(dc.examples.asia().nodes)
    assert number["probability"] == pytest.approx(0.945)


@pytest.mark.parametrize("suffix", ["csv", "parquet", "arrow"])
def test_synthetic_rows_of_some_patients_only(asia: str, tmp_path: Path, suffix: str) -> None:
    out = tmp_path / f"rows.{suffix}"
    assert main(["synthesize", asia, "--rows", "50", "--given", "smoke=yes", "--out", str(out)]) == 0
    first = out.read_bytes()
    assert main(["synthesize", asia, "--rows", "50", "--given", "smoke=yes", "--out", str(out)]) == 0
    assert out.read_bytes() == first, "the same seed gives the same rows"
    if suffix == "csv":
        lines = first.decode().splitlines()
        assert len(lines) == 51
        assert all(line.split(",")[2] == "yes" for line in lines[1:])


@pytest.mark.parametrize(
    "command",
    [
        ["query", "ASIA"],
        ["query", "ASIA", "P(lungs)"],
        ["query", "ASIA", "P(lung | smoke=maybe)"],
        ["query", "ASIA", "P(lung | either=no, lung=yes)"],
        ["query", "nowhere.json", "P(lung)"],
        ["synthesize", "ASIA", "--rows", "-1", "--out", "OUT/rows.csv"],
        ["synthesize", "ASIA", "--rows", "many", "--out", "OUT/rows.csv"],
        ["synthesize", "ASIA", "--out", "OUT/rows.xls"],
        ["synthesize", "ASIA", "--out", "OUT/no/such/folder/rows.csv"],
        ["synthesize", "ASIA", "--given", "smoke", "--out", "OUT/rows.csv"],
        ["synthesize", "ASIA", "--given", "smoke=maybe", "--out", "OUT/rows.csv"],
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(
    asia: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    given = [part.replace("ASIA", asia).replace("OUT", str(folder)) for part in command]
    assert main(given) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("error: ")
    assert told.err.count("\n") == 1
    assert list(folder.iterdir()) == []
