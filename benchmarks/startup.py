"""How long `import discreet` and `discreet --help` take in a new interpreter; promised are 0.5 s and 1 s.

`discreet query` answers one question on Alarm from a BIF file; promised are 1.5 s.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from discreet.networks import examples

STATEMENTS = {
    "python (nothing)": "pass",
    "import numpy": "import numpy",
    "import discreet": "import discreet",
    "from discreet import *": "from discreet import *",
    "discreet --help": "import sys; sys.argv[1:] = ['--help']; from discreet.doors.cli import main; main()",
    "discreet query": "from discreet.doors.cli import main; main(['query', {alarm!r}, 'P(LVFAILURE | BP=LOW)'])",
}


def time_statement(statement: str) -> float:
    """The seconds that a new interpreter takes for a statement, from its start to its end."""
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, "-c", statement],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True,
    )  # fmt: skip
    return time.perf_counter() - start


def main() -> None:
    """Print the best and the median of several starts, and write them as CSV."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="5 starts in place of 25")
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder for the CSV")
    arguments = parser.parse_args()
    repeats = 5 if arguments.quick else 25
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        alarm = str(Path(folder) / "alarm.bif")
        examples.alarm().write_bif(alarm)
        for name, statement in STATEMENTS.items():
            seconds = [time_statement(statement.format(alarm=alarm)) for _ in range(repeats)]
            rows.append((name, min(seconds), statistics.median(seconds)))
    idle = rows[0][1]
    print(f"{'statement':<24}{'best s':>8}{'median s':>10}{'over bare python':>18}   ({repeats} starts)")
    for name, best, median in rows:
        print(f"{name:<24}{best:>8.3f}{median:>10.3f}{best - idle:>18.3f}")
    arguments.out.mkdir(parents=True, exist_ok=True)
    with (arguments.out / "startup.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["statement", "best_seconds", "median_seconds", "starts"])
        writer.writerows((name, f"{best:.4f}", f"{median:.4f}", repeats) for name, best, median in rows)
    for name, best, _ in rows[2:]:
        print(f"{name.replace('discreet --', '').replace(' ', '_').replace('*', 'all')}_s: {best:.3f}")


if __name__ == "__main__":
    main()
