"""Numbers, names and files that are meant to break a command: one line, exit code 2, nothing left behind."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

import discreet as dc
from discreet.doors.cli import commands, main
from discreet.networks.formats.edges import parse_edges
from discreet.networks.formats.release import read_graph
from discreet.values.errors import DiscreetError, FormatError
from discreet.values.files import replace_file
from discreet.values.schema import Schema
from discreet.values.text import show_line

SCHEMA = 'format = 1\n[attributes.smoke]\nlevels = ["yes", "no"]\n[attributes.lung]\nlevels = ["yes", "no"]\n'
HUGE = "9" * 300


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "schema.toml").write_text(SCHEMA)
    (tmp_path / "rows.csv").write_text("smoke,lung\nyes,no\nno,no\n")
    dc.examples.asia().write(tmp_path / "asia.json")
    return tmp_path


@pytest.mark.parametrize(
    "command",
    [
        "plan --schema schema.toml --epsilon 1 --rows HUGE",
        "synthesize asia.json --rows HUGE --seed 1 --out rows-made.csv",
        *(
            f"release rows.csv --schema schema.toml {amount} --ledger new.ledger --account a --create-ledger --out out"
            for amount in (
                "--epsilon 1e-17",
                "--epsilon 1/HUGE",
                "--rho 1e-300",
                "--epsilon 1 --delta 1/HUGE",
            )
        ),
        "release rows.csv --schema schema.toml --epsilon 1 --memory HUGE --ledger l --account a --create-ledger -o o",
    ],
)
def test_absurd_numbers_are_refused_in_one_line(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    monkeypatch.chdir(place)
    before = sorted(place.iterdir())
    assert main(command.replace("HUGE", HUGE).split()) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ") and said.count("\n") == 1 and "unexpected" not in said
    assert sorted(place.iterdir()) == before


def test_what_nobody_foresaw_is_one_line_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("float division\nby zero")

    monkeypatch.setattr(commands, "build", lambda: fail)
    assert main(["query"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    monkeypatch.setenv(commands.TRACEBACK, "1")
    with pytest.raises(ZeroDivisionError):
        main(["query"])


def test_nothing_that_moves_a_terminal_reaches_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["query", "no\x1b[31m\u202efile\u0007.json", "P(a)"]) == 2
    said = capsys.readouterr().err
    assert "\\x1b[31m\\u202e" in said and not any(char in said for char in "\x1b\u202e\u0007")
    assert show_line("ε\n  = 1\x9b2J") == "ε = 1\\x9b2J"


@pytest.mark.parametrize(
    "text", ["\n" * 400_000, "network\n" * 60_000, "smoke " * 60_000, "smoke -> lung\n#" + " #" * 200_000]
)
def test_a_long_graph_file_takes_time_in_proportion(place: Path, text: str) -> None:
    """Each is read or refused; a pattern that looks at a text from each of its places would take minutes."""
    (place / "graph.txt").write_text(text)
    schema = Schema.of({"smoke": ["yes", "no"], "lung": ["yes", "no"]})
    began = time.process_time()
    with suppress(DiscreetError):
        assert len(read_graph(place / "graph.txt", schema)) == 2
    assert time.process_time() - began < 10


def test_edges_still_read_as_before() -> None:
    schema = Schema.of({name: ["yes", "no"] for name in ("smoke", "chest pain", "x-ray")})
    dag = parse_edges('  smoke ->\t"chest pain"→ x-ray  # known\n\n#\n smoke', schema)
    assert tuple(dag.edges()) == (("smoke", "chest pain"), ("chest pain", "x-ray"))


def test_a_file_is_made_once_with_its_final_mode_and_its_folder_is_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[tuple[str, int]] = []
    synced: list[bool] = []
    real_open, real_sync = os.open, os.fsync

    def watch_open(path: str, flags: int, mode: int = 0o777, **more: int) -> int:
        opened.append((os.fspath(path), flags))
        return real_open(path, flags, mode, **more)

    def watch_sync(handle: int) -> None:
        synced.append(os.path.isdir(f"/proc/self/fd/{handle}"))
        real_sync(handle)

    monkeypatch.setattr(os, "open", watch_open)
    monkeypatch.setattr(os, "fsync", watch_sync)
    old = os.umask(0o027)
    try:
        with replace_file(tmp_path / "made.txt") as draft:
            assert draft.stat().st_mode & 0o777 == 0o640  # before anything is in it
            draft.write_text("x")
    finally:
        os.umask(old)
    made = next(flags for path, flags in opened if path.endswith(".part"))
    assert made & os.O_EXCL and made & os.O_NOFOLLOW
    assert synced == [False, True]  # first the file, then the folder that names it
    assert [found.name for found in tmp_path.iterdir()] == ["made.txt"]


def test_a_draft_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="cannot be written"), replace_file(tmp_path / "made.txt"):
        raise OSError(28, "No space left on device")
    assert not list(tmp_path.iterdir())


def test_ctrl_c_while_the_commands_load_is_no_traceback() -> None:
    script = (
        "import sys, importlib.abc\n"
        "class Impatient(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'discreet.doors.cli.commands':\n"
        "            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Impatient())\n"
        "from discreet.doors.cli import main\n"
        "sys.exit(main(['--help']))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_the_package_runs_as_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "discreet", "--version"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 and done.stdout.startswith("discreet ")


def test_only_one_door_leads_to_the_terminal() -> None:
    """Whatever a command prints passes `terminal.echo`, which lets no escape through."""
    folder = Path(commands.__file__).parent
    offenders = [
        f"{path.name}: {line.strip()}"
        for path in [*folder.rglob("*.py"), folder.parent / "demo.py"]
        if path.name != "terminal.py"
        for line in path.read_text("utf-8").splitlines()
        if "typer.echo(" in line or "secho(" in line or (" print(" in line and "show_line" not in line)
    ]
    assert offenders == []


HOSTILE = "red\x1b[31m\x9b2J\u202e"


def test_names_of_files_do_not_move_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = {"smoke": ["yes", "no"] * 20, "lung": ["no"] * 40}
    made = dc.release(
        rows, Schema.of({name: ["yes", "no"] for name in rows}), {"smoke": (), "lung": ("smoke",)}, epsilon=1,
        ledger=tmp_path / "l", account="clinic", create=True, budget=1,
    )  # fmt: skip
    made.write(tmp_path / "published")
    (tmp_path / "published" / f"{HOSTILE}.txt").write_text("x")
    document = str(tmp_path / "published" / "release.json")
    hostile = str(tmp_path / f"{HOSTILE}.json")
    for command in (
        ["catalog", str(tmp_path / "published"), "--title", HOSTILE],
        ["statement", document],
        ["statement", document, "--json"],
        ["statement", document, "--format", "json-ld"],
        ["verify", str(tmp_path / "published")],
        ["report", document, "--out", str(tmp_path / f"{HOSTILE}.html")],
        ["credal", "noise", document, "--out", hostile],
        ["credal", "recover", hostile],
        ["query", hostile, "P(lung)"],
        ["synthesize", document, "--rows", "5", "--out", str(tmp_path / f"{HOSTILE}.csv")],
        ["budget", "show", str(tmp_path / HOSTILE)],
        ["keys", str(tmp_path / f"{HOSTILE}.key")],
    ):
        assert main(command) in (0, 1, 2)
        said = "".join(capsys.readouterr())
        assert said and not set("\x1b\x9b\u202e") & set(said), command
