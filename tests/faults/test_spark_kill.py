"""kill -9 of an executor and of the driver while Spark counts: nothing is paid twice, and the same bytes come out."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import discreet as dc
from discreet.entrance import open_ledger
from discreet.values.budget import PureDP

SESSION = """
import os, signal, sys
from pathlib import Path
import pyspark
os.environ["SPARK_HOME"] = str(Path(pyspark.__file__).parent)
os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
os.environ["PYSPARK_PYTHON"] = sys.executable
builder = pyspark.sql.SparkSession.builder.master("local-cluster[2,1,1024]")
quick = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
for name, value in {
    "driver.extraJavaOptions": quick, "executor.extraJavaOptions": quick, "sql.codegen.wholeStage": "false",
    "driver.bindAddress": "127.0.0.1", "driver.host": "127.0.0.1", "executor.memory": "512m", "log.level": "OFF",
    "sql.shuffle.partitions": "4", "ui.enabled": "false", "ui.showConsoleProgress": "false",
}.items():
    builder = builder.config("spark." + name, value)
session = builder.getOrCreate()
folder = Path(sys.argv[1])
frame = session.read.parquet(str(folder / "patients.parquet")).repartition(4)

def find_executors():
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            words = (place / "cmdline").read_bytes()
            parent = (place / "stat").read_text().rpartition(")")[2].split()[1]
        except OSError:
            continue
        if b"CoarseGrainedExecutorBackend" in words and int(parent) in descendants():
            found.append(int(place.name))
    return found

def descendants():
    parents = {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(place.name)] = int((place / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    mine = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in mine} - mine:
        mine |= more
    return mine
"""
EXECUTOR = (
    SESSION
    + """
from discreet.entrance import open_counter
from discreet.rows.engines.ways import SparkBlocks
from discreet.values.unit import Unit
import discreet as dc
person, *names = dc.examples.asia().schema.names
schema = dc.examples.asia().schema.select(names)
counter = open_counter(frame, schema, unit=Unit("add-remove", person, 3))  # two people, three rows of each
assert isinstance(counter._way, SparkBlocks)
sets = [tuple(range(i, i + 2)) for i in range(len(names) - 1)]
before = counter._way._count(sets)
executors = find_executors()
assert len(executors) == 2, executors
os.kill(executors[0], signal.SIGKILL)
after = counter._way._count(sets)
assert all((a == b).all() for a, b in zip(before, after)), "another choice of people's rows"
assert int(before[0].sum()) == counter.rows == 6
print("the same")
session.stop()
"""
)
DRIVER = (
    SESSION
    + """
from discreet.core.ledger import Ledger
import discreet as dc
left = int(sys.argv[2])
real = Ledger.debit
def debit(*given, **options):
    global left
    found = real(*given, **options)
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return found
Ledger.debit = debit
release = dc.release(
    frame, dc.examples.asia().schema, dc.examples.asia().dag, epsilon=1, learner="dependent",
    ledger=folder / "ledger", account="clinic", request="first",
)
release.write(folder / sys.argv[3])
session.stop()
"""
)


@pytest.fixture
def clinic(tmp_path: Path) -> Path:
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java, and there is none on this machine")
    dc.examples.asia().sample(400, rng=1).write(tmp_path / "patients.parquet")
    return tmp_path


def run(script: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600, check=False
    )


@pytest.mark.slow
@pytest.mark.timeout(700)
def test_an_executor_that_dies_changes_nothing(clinic: Path) -> None:
    """What it held is made again, and the same rows of each person are chosen again."""
    found = run(EXECUTOR, clinic)
    assert found.stdout.endswith("the same\n"), found.stderr[-2000:]


@pytest.mark.slow
@pytest.mark.timeout(2000)
def test_a_driver_that_dies_pays_once(clinic: Path) -> None:
    """Killed after its second debit; run again, it finishes, and run a third time, it writes the same bytes."""
    with open_ledger(clinic / "ledger", create=True) as ledger:
        ledger.open_account("clinic", PureDP(1), "add-remove")
    assert run(DRIVER, clinic, 2, "never.json").returncode == -signal.SIGKILL
    for name in ("one.json", "two.json"):
        found = run(DRIVER, clinic, 0, name)
        assert found.returncode == 0, found.stderr[-2000:]
    assert not (clinic / "never.json").exists()
    assert (clinic / "one.json").read_bytes() == (clinic / "two.json").read_bytes()
    with open_ledger(clinic / "ledger") as ledger:
        entries = ledger.entries("clinic")
        assert len({entry.request for entry in entries}) == len(entries) >= 2
        assert ledger.remaining("clinic") == PureDP(0)
