"""kill -9 and Ctrl-C at every step of `discreet release`: run again, it finishes, pays once, writes the same bytes."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import discreet as dc
from discreet.core.ledger import Ledger
from discreet.doors.cli import main
from discreet.entrance import open_ledger
from discreet.values.budget import PureDP
from forked import run_script

CHILD = """
import os, signal, sys
from discreet.doors.cli import main
from discreet.core.ledger import Ledger
from discreet.values import files

step = sys.argv[1]
left = int(step.split()[2]) if step[-1].isdigit() else 1

def die_at(owner, name, after):
    real = getattr(owner, name)
    def wrapped(*args, **kwargs):
        global left
        left -= 1
        if left == 0 and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        found = real(*args, **kwargs)
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return found
    setattr(owner, name, wrapped)

when, _, what = step.partition(" ")
if when != "never":
    name = what.split()[0]
    if name == "rename":
        import pathlib
        die_at(pathlib.Path, "replace", when == "after")
    else:
        die_at(Ledger, name, when == "after")
raise SystemExit(main(sys.argv[2:]))
"""
STEPS = [
    "before debit 1", "after debit 1", "before answer 1", "after answer 1",
    "before debit 2", "after debit 2", "before answer 2", "after answer 2",
    "before rename 1", "after rename 1", "before rename 2", "after rename 2",
]  # fmt: skip


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("clinic")
    asia = dc.examples.asia()
    asia.schema.write(folder / "schema.toml")
    (folder / "graph.txt").write_text("\n".join(" -> ".join(arrow) for arrow in asia.dag.edges()), "utf-8")
    asia.sample(200, rng=1).write(folder / "patients.csv")
    return folder


def command(clinic: Path, place: Path, step: str) -> list[str]:
    return [
        sys.executable, "-c", CHILD, step, "release", str(clinic / "patients.csv"),
        "--schema", str(clinic / "schema.toml"), "--graph", str(clinic / "graph.txt"), "--epsilon", "1",
        "--ledger", str(place / "ledger"), "--account", "clinic", "--learner", "dependent", "--out", str(place / "out"),
    ]  # fmt: skip


def run(clinic: Path, place: Path, step: str) -> tuple[int, str]:
    return run_script(CHILD, *command(clinic, place, step)[3:])


def open_account(place: Path) -> None:
    with open_ledger(place / "ledger", create=True) as ledger:
        ledger.open_account("clinic", PureDP(1), "add-remove")


def read_files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def check_finished(clinic: Path, place: Path) -> None:
    code, printed = run(clinic, place, "never")
    assert code == 0, printed
    check_paid_once(place)


def check_paid_once(place: Path) -> None:
    with open_ledger(place / "ledger") as ledger:
        assert ledger.account("clinic").spent == PureDP(1)
        assert [entry.answered for entry in ledger.entries("clinic")] == [True, True]
        assert not ledger.verify().problems


@pytest.mark.parametrize(
    "step",
    [
        pytest.param(step, marks=[] if step in ("after debit 2", "after rename 1") else [pytest.mark.slow])
        for step in STEPS
    ],
)
def test_killed_at_a_step_then_run_again(clinic: Path, tmp_path: Path, step: str) -> None:
    open_account(tmp_path)
    code, printed = run(clinic, tmp_path, step)
    assert code == -signal.SIGKILL, printed
    before = read_files(tmp_path / "out") if (tmp_path / "out").exists() else {}
    check_finished(clinic, tmp_path)
    after = read_files(tmp_path / "out")
    whole = {name: content for name, content in before.items() if not name.endswith(".part")}
    assert {name: after[name] for name in whole} == whole, "what was there already is what is there now"


@pytest.mark.parametrize("step", STEPS)
def test_interrupted_at_a_step_then_run_again(
    clinic: Path,
    tmp_path: Path,
    step: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Ctrl-C, which unwinds where kill -9 does not: no half a file is left, and the next run completes the release."""
    open_account(tmp_path)
    when, name, count = step.split()
    owner = Path if name == "rename" else Ledger
    method = "replace" if name == "rename" else name
    left = int(count)
    real = getattr(owner, method)

    def interrupt(*args: object, **options: object) -> object:
        nonlocal left
        left -= 1
        if left == 0 and when == "before":
            raise KeyboardInterrupt
        found = real(*args, **options)
        if left == 0:
            raise KeyboardInterrupt
        return found

    asked = command(clinic, tmp_path, "never")[4:]
    with monkeypatch.context() as patch:
        patch.setattr(owner, method, interrupt)
        assert main(asked) == 130
    left_behind = read_files(tmp_path / "out") if (tmp_path / "out").exists() else {}
    assert not any(name.endswith(".part") for name in left_behind)
    assert main(asked) == 0
    done = read_files(tmp_path / "out")
    assert {name: done[name] for name in left_behind} == left_behind
    capsys.readouterr()
    assert main(asked) == 0
    assert "nothing was paid" in capsys.readouterr().out
    assert read_files(tmp_path / "out") == done
    check_paid_once(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGKILL])
@pytest.mark.parametrize("seconds", [0.5, 1.0, 1.5, 2.0, 3.0])
def test_stopped_at_any_moment_then_run_again(
    clinic: Path, tmp_path: Path, stop: int, seconds: float
) -> None:
    """Ctrl-C and kill -9 at moments that nobody chose."""
    open_account(tmp_path)
    child = subprocess.Popen(
        command(clinic, tmp_path, "never"), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    time.sleep(seconds)
    child.send_signal(stop)
    child.communicate()
    check_finished(clinic, tmp_path)
