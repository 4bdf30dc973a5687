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


def test_one_bad_question_does_not_take_the_others_with_it(
    asia: str, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["P(lung=yes)", "P(lungs)", "P(lung | smoke=", "P(bronc=yes | smoke in {yes})"]
    assert main(["query", asia, *asked]) == 2
    said = capsys.readouterr()
    assert [line.split(" = ")[0] for line in said.out.splitlines()] == [asked[0], asked[3]]
    assert [line.startswith("error: ") for line in said.err.splitlines()] == [True, True]
    assert main(["query", asia, *asked, "--json"]) == 2
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert ["error" in line for line in lines] == [False, True, True, False]


def test_a_folder_of_a_release_is_as_good_as_its_document(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every command takes what `release` wrote; a column that follows is told apart from one that is not there."""
    follows = '[follows.b]\nfrom = ["a"]\nrows = [["x", "one"], ["y", "two"]]\n'
    (tmp_path / "s.toml").write_text(
        'format = 1\n[attributes.a]\nlevels = ["x", "y"]\n[attributes.c]\nlevels = ["p", "q"]\n' + follows
    )
    rows = {"a": ["x", "y"] * 200, "c": ["p", "p", "q", "q"] * 100}
    made = dc.release(rows, tmp_path / "s.toml", {"c": ["a"]}, epsilon=2)
    assert made.describe_graph().startswith("1 arrow between 2 attributes")
    folder, out = tmp_path / "published", tmp_path / "rows.csv"
    made.write(folder)
    for command in (
        ["query", str(folder), "P(a)"],
        ["synthesize", str(folder), "--out", str(out)],
        ["report", str(folder), "--out", str(tmp_path / "r.html")],
        ["explore", str(folder), "--no-open", "--out", str(tmp_path / "e.html")],
        ["compare", str(folder), str(folder / "release.json")],
        ["statement", str(folder)],
    ):
        assert main(command) == 0, capsys.readouterr().err
    capsys.readouterr()
    assert main(["query", str(folder), "P(b)"]) == 2
    assert capsys.readouterr().err == "error: 'b' follows from 'a' and is not in the network; ask for that\n"
    for command in (["query", str(out), "P(a)"], ["compare", str(out), str(folder)]):
        assert main(command) == 2
        assert "a table of rows, by its name; a release or a network" in capsys.readouterr().err
    alone = dc.release(rows, tmp_path / "s.toml", {"a": [], "c": []}, epsilon=2)
    assert alone.describe_graph().startswith("no arrows: each of 2 attributes is published as independent")
    assert main(["query", str(tmp_path), "P(a)"]) == 2
    assert "is a folder; name a file in it" in capsys.readouterr().err


def test_refusals_name_what_was_typed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A year in place of a date, a number of rows without people, an audit without rows."""
    (tmp_path / "s.toml").write_text(
        'format = 1\n[attributes.day]\ntype = "date"\nby = "quarter"\nfrom = 2024-01-01\nto = 2024-12-31\n'
    )
    made = dc.release({"day": ["2024-02-01", "2024-08-01"] * 50}, tmp_path / "s.toml", {"day": []}, epsilon=2)
    made.write(tmp_path / "out.json")
    document = str(tmp_path / "out.json")
    assert main(["query", document, "P(day>=2024-07-01)"]) == 0
    capsys.readouterr()
    assert main(["query", document, "P(day>=2024)"]) == 2
    assert "write a whole date, such as 2024-01-31" in capsys.readouterr().err
    assert main(["audit", document]) == 2
    assert "warning" not in capsys.readouterr().err
    plan = ["plan", "--schema", str(tmp_path / "s.toml"), "--epsilon", "1", "--at-most", "3"]
    assert main(plan) == 2
    assert capsys.readouterr().err == "error: --at-most needs --person, the column with people's ids\n"
