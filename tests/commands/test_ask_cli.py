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


def test_evidence_may_be_repeated_but_not_contradicted(
    asia: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same level twice is one condition; two levels of one attribute are named in the refusal."""
    once, twice = tmp_path / "once.csv", tmp_path / "twice.csv"
    given = ["--given", "smoke=yes", "--rows", "50"]
    assert main(["synthesize", asia, *given, "--out", str(once)]) == 0
    assert main(["synthesize", asia, *given, "--given", "smoke=yes", "--out", str(twice)]) == 0
    assert once.read_bytes() == twice.read_bytes()
    capsys.readouterr()
    assert main(["synthesize", asia, *given, "--given", "smoke=no", "--out", str(tmp_path / "no.csv")]) == 2
    assert "'smoke' as 'yes' and as 'no'" in capsys.readouterr().err


@pytest.mark.parametrize(("levels", "noted"), [(5, True), (4, False)])
def test_answers_say_where_rows_have_other_shares(
    levels: int, noted: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Three bits can spell more than five levels; two bits spell four, and there is nothing to say."""
    values = [str(code % levels) for code in range(2000)]
    schema = dc.Schema.of({"grade": range(levels)})
    with dc.open_airlock({"grade": values}, schema, budget=dc.PureDP("1"), unit="add-remove") as airlock:
        network = dc.learn.privbayes(airlock, spend="1", encoding="binary", k=0)
    path = tmp_path / "release.json"
    dc.write_release(network, path)
    assert main(["query", str(path), "P(grade)", "P(grade=1)", "--json"]) == 0
    told = capsys.readouterr()
    assert len([json.loads(line) for line in told.out.splitlines()]) == 2
    assert told.err.count("\n") == noted
    assert told.err.startswith("note: bits that spell no level") == noted


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
        ["synthesize", "ASIA", "--given", "smoke=yes", "--given", "smoke=no", "--out", "OUT/rows.csv"],
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
