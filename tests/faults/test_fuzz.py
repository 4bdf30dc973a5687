"""The fuzzer: what broke once stays mended, a short run finds nothing, and each planted weakness is found."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from _fuzz import CORPUS, read_corpus
from _fuzz_planted import WEAKNESSES

WITHIN = 600
"""Inputs of the kinds that can reach it, within which each planted weakness must be found."""
BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def run(code: str) -> str:
    """What a program says that begins with the fuzzer; in a process of its own, because it forks before threads are."""
    head = "import sys; sys.path.insert(0, sys.argv[1]); import _fuzz; from _fuzz_planted import WEAKNESSES\n"
    ran = subprocess.run(
        [sys.executable, "-c", head + code, str(BENCHMARKS)],
        capture_output=True, text=True, check=False, timeout=1800, env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-3000:]
    return ran.stdout


AGAIN = """
import tempfile
from pathlib import Path
_fuzz.warm_up()
with tempfile.TemporaryDirectory() as name:
    place = Path(name)
    clinic = place / "clinic"
    clinic.mkdir()
    _fuzz._in_child(lambda: _fuzz.prepare(clinic), place / "said")
    trials = [trial for trial, _ in _fuzz.read_corpus()]
    for trial, outcome in zip(trials, _fuzz.try_out(trials, clinic, place), strict=True):
        if outcome.faults:
            print(trial.name, outcome.faults, outcome.told)
print(len(trials), "done")
"""


def test_what_broke_once_stays_mended() -> None:
    count = len(read_corpus())
    assert count >= 8, CORPUS
    assert run(AGAIN) == f"{count} done\n"


@pytest.mark.slow
def test_a_short_run_finds_nothing() -> None:
    said = run("print(_fuzz.fuzz(seconds=120, seed=3, most=400)[1])")
    assert said == "[]\n"


@pytest.mark.slow
@pytest.mark.parametrize("name", WEAKNESSES)
def test_a_planted_weakness_is_found(name: str) -> None:
    said = run(
        f"_fuzz.SECONDS, _fuzz.BATCH = 3, 25\nfound = WEAKNESSES[{name!r}]\n"
        f"limits = dict(seconds=1e9, seed=4, most={WITHIN}, stop=True)\n"
        "ended, broken = _fuzz.fuzz(kinds=found.kinds, plant=found.plant, **limits)\n"
        "print(*sorted({fault for _, outcome in broken for fault in outcome.faults}), sep='|')\n"
    )
    assert WEAKNESSES[name].shows in said.strip().split("|")
