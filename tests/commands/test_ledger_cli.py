"""`discreet budget` from the outside: what it prints, its exit codes, and no traceback whatever it is given."""

from __future__ import annotations

import json
import os
import re
import resource
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from discreet.doors.cli import main
from discreet.entrance import open_ledger
from discreet.values.budget import PureDP

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)

    def run_it(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        said = capsys.readouterr()
        return code, said.out, said.err

    return run_it


@pytest.fixture(params=["file", "postgres"])
def place(request: pytest.FixtureRequest) -> str:
    return "a.ledger" if request.param == "file" else str(request.getfixturevalue("postgres_schema")())


def test_init_show_and_verify(run: Run, place: str) -> None:
    code, out, err = run("budget", "init", place, "--account", "clinic", "--epsilon", "1")
    assert (code, err) == (0, "")
    assert "account 'clinic': budget ε = 1, unit add-remove" in out
    anchor = re.search(r"anchor +(\d+:[0-9a-f]{64})", out)
    assert anchor
    with open_ledger(place) as ledger:
        ledger.answer(ledger.debit("clinic", "r[bold]1", PureDP("1/3"), {"for": "[red]"}), b"x")
        ledger.debit("clinic", "r2", PureDP("1/3"))
        ledger.mark_revealed("clinic", "compared with the real rows")

    code, out, err = run("budget", "show", place)
    assert (code, err) == (0, "")
    assert "remaining ε = 1/3 (0.333333)" in out
    assert re.search(r"r\[bold\]1 .*\[red\].* yes", out)
    assert re.search(r"r2 .* NO", out)
    assert "1 paid but without an answer" in out
    assert "ε = ∞: looked at without noise" in out

    code, out, err = run("budget", "show", place, "--account", "clinic", "--json")
    shown = json.loads(out)
    assert (code, err) == (0, "")
    assert shown["accounts"][0]["remaining"] == {"epsilon": "1/3"}
    assert shown["accounts"][0]["loss"] == {"epsilon": "infinite"}
    assert [debit["answered"] for debit in shown["accounts"][0]["debits"]] == [True, False]

    assert run("budget", "verify", place, "--anchor", anchor.group(1))[0] == 0
    code, out, err = run("budget", "verify", place, "--json")
    assert (code, json.loads(out)) == (
        0,
        {"sound": True, "anchor": shown["ledger"]["anchor"], "problems": []},
    )


@pytest.mark.parametrize(
    ("amounts", "budget"),
    [
        (["--rho", "1/8"], {"rho": "1/8"}),
        (["--epsilon", "0.1"], {"epsilon": "1/10"}),
        (["--epsilon", "1", "--delta", "1e-6"], {"epsilon": "1", "delta": "1/1000000"}),
    ],
)
def test_each_kind_of_budget(run: Run, amounts: list[str], budget: dict[str, str]) -> None:
    assert run("budget", "init", "a.ledger", "--account", "x", *amounts, "--unit", "replace-one")[0] == 0
    shown = json.loads(run("budget", "show", "a.ledger", "--json")[1])
    assert shown["accounts"][0]["budget"] == budget
    assert shown["accounts"][0]["unit"] == "replace-one"


@pytest.mark.parametrize(
    "amounts",
    [
        [],
        ["--delta", "1e-6"],
        ["--rho", "1", "--epsilon", "1"],
        ["--epsilon", "0"],
        ["--epsilon", "-1"],
        ["--epsilon", "nan"],
        ["--epsilon", "inf"],
        ["--epsilon", "1", "--delta", "1"],
        ["--epsilon", "1", "--unit", "household"],
        ["--epsilon", "1", "--account", "two\nlines"],
        ["--epsilon", "1", "--account", ""],
        ["--epsilon"],
        ["--bogus"],
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing_behind(
    run: Run, tmp_path: Path, amounts: list[str]
) -> None:
    code, out, err = run("budget", "init", "a.ledger", "--account", "clinic", *amounts)
    assert (code, out) == (2, "")
    assert re.fullmatch(r"error: [^\n]+\n", err)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["budget"],
        ["budget", "frobnicate"],
        ["frobnicate"],
        ["budget", "show"],
        ["budget", "show", "missing.ledger"],
        ["budget", "verify", "missing.ledger"],
        ["budget", "verify", "good.ledger", "--anchor", "nonsense"],
        ["budget", "show", "good.ledger", "--account", "nobody"],
        ["budget", "init", "good.ledger", "--account", "clinic", "--epsilon", "2"],
        ["budget", "init", "no/such/folder/a.ledger", "--account", "clinic", "--epsilon", "2"],
        ["budget", "show", "notes.txt"],
        ["budget", "show", "."],
        ["budget", "show", "postgresql://me:secret@127.0.0.1:1/none?connect_timeout=2"],
    ],
)
def test_refusals_are_one_line_and_exit_with_2(run: Run, tmp_path: Path, arguments: list[str]) -> None:
    run("budget", "init", "good.ledger", "--account", "clinic", "--epsilon", "1")
    (tmp_path / "notes.txt").write_text("not a ledger\n" * 100)
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert re.fullmatch(r"error: [^\n]+\n", err)
    assert "secret" not in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["good.ledger", "notes.txt"]


def test_problems_exit_with_1(run: Run, tmp_path: Path) -> None:
    run("budget", "init", "a.ledger", "--account", "clinic", "--epsilon", "1")
    connection = sqlite3.connect(tmp_path / "a.ledger", isolation_level=None)
    connection.execute("DROP TRIGGER event_never_changed")
    connection.execute("UPDATE event SET body = replace(body, '\"1\"', '\"9\"')")
    connection.close()
    code, out, _ = run("budget", "verify", "a.ledger")
    assert code == 1
    assert "problem: event 2 was altered" in out
    code, out, _ = run("budget", "verify", "a.ledger", "--json")
    assert code == 1
    assert json.loads(out)["sound"] is False
    assert run("budget", "show", "a.ledger")[0] == 2


def test_help_and_version(run: Run) -> None:
    for arguments in ([], ["--help"], ["budget", "--help"], ["budget", "init", "-h"]):
        code, out, _ = run(*arguments)
        assert code == 0
        assert "discreet" in out
    assert re.match(r"discreet \d+\.\d+", run("--version")[1])


def test_help_is_quick_and_a_closed_pipe_is_no_error() -> None:
    script = "import sys; from discreet.doors.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", script, "--help"]
    times = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
    # Processor time, 0.4 s as a rule and 1.4 s where no bytecode may be written: a busy machine stretches the clock.
    assert min(times) < 3
    closed = subprocess.run(
        f'"{sys.executable}" -c "{script}" --help | true',
        shell=True,
        capture_output=True,
        text=True,
        check=True,
    )
    assert closed.stderr == ""


@pytest.mark.skipif(os.name != "posix", reason="modes of files are POSIX's")
def test_a_ledger_is_its_owners_alone(tmp_path: Path) -> None:
    """Who asked what of whom is nobody else's business, whatever the umask."""
    before = os.umask(0)
    try:
        assert main(["budget", "init", str(tmp_path / "ledger"), "--account", "a", "--epsilon", "1"]) == 0
    finally:
        os.umask(before)
    assert (tmp_path / "ledger").stat().st_mode & 0o777 == 0o600
