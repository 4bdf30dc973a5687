"""The whole private path on a bundled example, command by command: a table, a ledger, a release and its uses.

The rows are drawn from a textbook's network, so nobody's secret is at stake; they are treated as if it were.
"""

from __future__ import annotations

import shlex
import time
from pathlib import Path

from discreet.doors.cli import main as run_command
from discreet.doors.cli.terminal import echo
from discreet.values.errors import DiscreetError

STEPS = (
    ("A table that must stay private, the schema and the graph that are public:", "examples {folder}/clinic"),
    (
        "A ledger with a budget of ε = 2 for this table, set once:",
        "budget init {folder}/clinic.ledger --account clinic --epsilon 2",
    ),
    (
        "One release for ε = 1. The ledger is debited before a row is counted:",
        "release {folder}/clinic/patients.csv --schema {folder}/clinic/schema.toml --graph {folder}/clinic/graph.bif"
        " --epsilon 1 --ledger {folder}/clinic.ledger --account clinic --out {folder}/published",
    ),
    (
        "Anybody can ask the release, as often as they like, at no cost to privacy:",
        'query {folder}/published/release.json "P(lung | smoke=yes, xray=yes)" "MAP(lung, bronc | dysp=yes)"',
    ),
    (
        "and draw synthetic rows from it:",
        "synthesize {folder}/published/release.json --rows 1000 --seed 7 --out {folder}/published/synthetic.csv",
    ),
    (
        "Anybody can check it, without the table; the custodian also against the ledger:",
        "verify {folder}/published/release.json --ledger {folder}/clinic.ledger",
    ),
    (
        "Here the truth is known, so we can see what privacy cost:",
        "compare {folder}/truth.json {folder}/published/release.json",
    ),
    ("What is left of the budget:", "budget show {folder}/clinic.ledger"),
)


def main(folder: Path = Path("demo")) -> None:
    """Run every step, write into `folder`, and print the paths, then `demo_seconds`; a second run pays nothing."""
    from discreet.networks import examples
    from discreet.values.files import make_folder

    start = time.perf_counter()
    make_folder(folder)
    examples.asia().write(folder / "truth.json")
    for words, command in STEPS:
        arguments = shlex.split(command.format(folder=shlex.quote(str(folder))))
        echo(f"\n{words}\n$ discreet {shlex.join(arguments)}")
        if run_command(arguments) != 0:
            raise DiscreetError(
                f"the demo stopped at `discreet {arguments[0]}`; remove {folder} and start again"
            )
    echo(f"\nOpen {folder / 'published' / 'explorer.html'} in a browser and click a bar. Written:\n")
    for path in sorted(found for found in folder.rglob("*") if found.is_file()):
        echo(path)
    echo(f"demo_seconds: {time.perf_counter() - start:.2f}")


if __name__ == "__main__":
    main()
