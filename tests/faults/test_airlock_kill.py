"""kill -9 at every step of a release: no debit lost, never two answers for one, never over the budget."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from discreet.entrance import open_ledger
from discreet.values.budget import PureDP

CHILD = """
import json, os, signal, sys
from discreet.core import queries as module
from discreet.core.ledger import Ledger
from discreet.entrance import open_airlock
from discreet.values.schema import Schema

place, step, request = sys.argv[1], sys.argv[2], sys.argv[3]

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

def before(owner, name):
    setattr(owner, name, die)

def after(owner, name):
    real = getattr(owner, name)
    def wrapped(*args, **kwargs):
        real(*args, **kwargs)
        die()
    setattr(owner, name, wrapped)

{"before debit": lambda: before(Ledger, "debit"), "after debit": lambda: after(Ledger, "debit"),
 "after count": lambda: before(module, "add_noise"), "after draw": lambda: before(Ledger, "answer"),
 "after answer": lambda: after(Ledger, "answer"), "never": lambda: None}[step]()

schema = Schema.of({"a": ["x", "y"]})
airlock = open_airlock({"a": ["x"] * 300 + ["y"] * 700}, schema, budget="1", ledger=place, account="t", create=True)
(answer,) = airlock.measure([("a",)], spend="1/10", request=request)
print(json.dumps(answer.noisy.values.tolist()))
"""

STEPS = ["before debit", "after debit", "after count", "after draw", "after answer"]


def run(place: Path, step: str, request: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", CHILD, str(place), step, request]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("step", STEPS)
def test_killed_at_a_step_then_asked_again(tmp_path: Path, step: str) -> None:
    place = tmp_path / "ledger"
    open_ledger(place, create=True).close()
    killed = run(place, step, "release")
    assert killed.returncode == -signal.SIGKILL and killed.stdout == ""
    with open_ledger(place) as ledger:
        spent = PureDP("1/10") if step != "before debit" else PureDP.zero()
        assert ledger.accounts()[0].spent == spent
        assert not ledger.verify().problems
    first, second = run(place, "never", "release"), run(place, "never", "release")
    assert first.returncode == 0, first.stderr
    assert json.loads(first.stdout) == json.loads(second.stdout)
    with open_ledger(place) as ledger:
        assert ledger.remaining("t") == PureDP("9/10"), "one request, one debit, however often it was killed"
        assert [entry.answered for entry in ledger.entries("t")] == [True]


def test_killed_at_random_times(tmp_path: Path) -> None:
    """Ten requests whose processes are killed at random moments; every answer seen twice is the same."""
    place = tmp_path / "ledger"
    open_ledger(place, create=True).close()
    chance = random.Random(5)
    seen: dict[str, set[str]] = {}
    for attempt in range(8):
        request = f"release-{attempt % 3}"
        command = [sys.executable, "-c", CHILD, str(place), "never", request]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        time.sleep(chance.uniform(0.2, 2.0))
        child.kill()
        out, _ = child.communicate()
        if out.strip():
            seen.setdefault(request, set()).add(out.strip())
    for request in ("release-0", "release-1", "release-2"):
        done = run(place, "never", request)
        assert done.returncode == 0, done.stderr
        seen.setdefault(request, set()).add(done.stdout.strip())
    assert all(len(answers) == 1 for answers in seen.values()), seen
    with open_ledger(place) as ledger:
        assert ledger.remaining("t") == PureDP("7/10")
        assert not ledger.verify().problems
