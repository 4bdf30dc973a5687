"""kill -9 at every step of a release: no debit lost, never two answers for one, never over the budget."""

from __future__ import annotations

import json
import random
import signal
import time
from pathlib import Path

import pytest

from discreet.entrance import open_ledger
from discreet.values.budget import PureDP
from forked import run_script

CHILD = """
import json, os, signal, sys
from discreet.core import queries as module
from discreet.core.ledger import Ledger
from discreet.entrance import open_airlock
from discreet.values.schema import Schema

place, step, request, moment = sys.argv[1:]
if float(moment):
    signal.setitimer(signal.ITIMER_REAL, float(moment))  # SIGALRM ends a process as abruptly as SIGKILL

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


def run(place: Path, step: str, request: str, moment: float = 0.0) -> tuple[int, str]:
    return run_script(CHILD, str(place), step, request, str(moment))


@pytest.mark.parametrize("step", STEPS)
def test_killed_at_a_step_then_asked_again(tmp_path: Path, step: str) -> None:
    place = tmp_path / "ledger"
    open_ledger(place, create=True).close()
    assert run(place, step, "release") == (-signal.SIGKILL, "")
    with open_ledger(place) as ledger:
        spent = PureDP("1/10") if step != "before debit" else PureDP.zero()
        assert ledger.accounts()[0].spent == spent
        assert not ledger.verify().problems
    first, second = run(place, "never", "release"), run(place, "never", "release")
    assert first[0] == 0, first[1]
    assert json.loads(first[1]) == json.loads(second[1])
    with open_ledger(place) as ledger:
        assert ledger.remaining("t") == PureDP("9/10"), "one request, one debit, however often it was killed"
        assert [entry.answered for entry in ledger.entries("t")] == [True]


def test_killed_at_random_times(tmp_path: Path) -> None:
    """Requests whose processes end at random moments of their work; every answer seen twice is the same."""
    place = tmp_path / "ledger"
    open_ledger(place, create=True).close()
    begun = time.perf_counter()
    assert run(place, "never", "release-0")[0] == 0
    whole = time.perf_counter() - begun
    chance = random.Random(5)
    seen: dict[str, set[str]] = {}
    ends = []
    for attempt in range(24):
        request = f"release-{attempt % 3}"
        code, out = run(place, "never", request, chance.uniform(0.02, 1.0) * whole)
        ends.append(code)
        if out.strip():
            seen.setdefault(request, set()).add(out.strip())
    assert -signal.SIGALRM in ends
    for request in ("release-0", "release-1", "release-2"):
        code, out = run(place, "never", request)
        assert code == 0, out
        seen.setdefault(request, set()).add(out.strip())
    assert all(len(answers) == 1 for answers in seen.values()), seen
    with open_ledger(place) as ledger:
        assert ledger.remaining("t") == PureDP("7/10")
        assert not ledger.verify().problems
