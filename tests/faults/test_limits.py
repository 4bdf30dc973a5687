"""Whatever a document is made to do to its reader: a limit of time and memory, one line, exit code 2."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import discreet as dc
from discreet.doors.limits import is_limited
from discreet.values import patience

GOLDEN = Path(__file__).parents[1] / "golden" / "adaptive.json"
SPIN = """
import sys
from discreet.doors import limits
{work}
sys.exit(limits.run_limited(work))
"""
WORKS = {
    "processor time": ("def work():\n    while True: pass", "takes more than 1 s of processor time"),
    "memory": (
        "def work():\n    from discreet.doors.cli.commands import _admit\n    try:\n        x = bytearray(2**31)\n"
        "    except MemoryError as problem:\n        return _admit(problem)\n    return 0",
        "not enough memory",
    ),
    "a signal": (
        "import os, signal\ndef work():\n    os.kill(os.getpid(), signal.SIGSEGV)\n    return 0",
        "SIGSEGV ended the process that read it",
    ),
}


@pytest.mark.parametrize("name", WORKS)
def test_a_limit_ends_in_one_line(name: str) -> None:
    work, told = WORKS[name]
    ran = subprocess.run(
        [sys.executable, "-c", SPIN.format(work=work)], capture_output=True, text=True, check=False, timeout=200,
        env={**os.environ, "DISCREET_SECONDS": "1", "DISCREET_MEGABYTES": "900"},
    )  # fmt: skip
    assert ran.returncode == 2, ran
    assert told in ran.stderr and ran.stderr.count("\n") == 1


@pytest.mark.parametrize("words", [["verify", str(GOLDEN)], ["query", str(GOLDEN), "P(a)"]])
def test_limits_are_read_from_the_environment(words: list[str]) -> None:
    command = [sys.executable, "-m", "discreet", *words]
    ran = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "DISCREET_SECONDS": "none"}
    )
    assert ran.returncode == 2
    assert ran.stderr == "error: DISCREET_SECONDS must be a whole number above 0, such as 300, not 'none'\n"


@pytest.mark.slow
@pytest.mark.parametrize("wait", [0.15, 0.3, 0.5, 0.8, 1.2])
def test_an_interruption_in_the_first_second_is_no_traceback(wait: float) -> None:
    """From the moment at which the interpreter itself is up, which is not ours to catch."""
    command = [
        sys.executable,
        "-c",
        "print('up', flush=True)\nimport sys\nfrom discreet.doors.cli import main\nsys.exit(main())",
    ]
    process = subprocess.Popen(
        [*command, "verify", str(GOLDEN)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(wait)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=120)
    assert process.returncode in (0, 130, -signal.SIGINT) and "Traceback" not in told, told


def test_nothing_is_imported_before_an_interruption_is_handled() -> None:
    """However slow the machine is: what comes before `main` is our own few lines, and no library."""
    script = (
        "import sys\nbefore = set(sys.modules)\nimport discreet.doors.cli\n"
        "print(*sorted(set(sys.modules) - before), sep=',')"
    )
    ran = subprocess.run([sys.executable, "-S", "-c", script], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(Path(dc.__file__).parents[1])})  # fmt: skip
    assert ran.stdout == "__future__,discreet,discreet.doors,discreet.doors.cli\n", ran


@pytest.mark.parametrize(
    ("arguments", "limited"),
    [
        (["compare", "one.json", "other.json"], True),
        (["combine", "one.json", "other.json", "--out", "all"], True),
        (["catalog", "published"], True),
        (["statement", "one.json", "--format", "croissant", "--rows", "rows.csv"], True),
        (["compare", "--rows", "one.csv", "other.csv"], False),
        (["release", "rows.csv"], False),
        ([], False),
    ],
)
def test_what_strangers_wrote_is_read_within_limits(arguments: list[str], limited: bool) -> None:
    assert is_limited(arguments) == limited


def test_the_library_comes_back_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody limits a notebook: a learner that is run again stops between its steps, and the release is not sound."""
    ticks = iter(range(10**6))
    monkeypatch.setattr(patience.time, "process_time", lambda: float(next(ticks)))
    monkeypatch.setenv("DISCREET_SECONDS", "3")
    found = dc.verify(GOLDEN)
    numbers = next(check for check in found.checks if check.name == "numbers")
    assert numbers.holds is None and "more than 3 s of processor time" in numbers.words
    assert not found.sound and not found.problems
    monkeypatch.undo()
    assert dc.verify(GOLDEN).sound


@pytest.mark.parametrize("name", ["planned", "adaptive", "privbayes", "laplace", "combined"])
def test_every_learner_looks_at_the_clock(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    looked = 0

    def look() -> float:
        nonlocal looked
        looked += 1
        return 0.0

    monkeypatch.setattr(patience.time, "process_time", look)
    dc.verify(GOLDEN.with_name(f"{name}.json"))
    assert looked >= 2  # when it begins, and at every answer
