"""Figure 1 of paper 003 again: tracing attacks on plain, credal and private networks, over graphs of 12 sizes.

A random binary network makes 10 000 people; 20 times, 500 of them become the target T, 5 000 others the
reference R, and the other 4 500 are held out. Power is measured at 20 errors, in two ways:

  paper     R is fitted without pseudo-counts and sets the thresholds too, as far as the paper says
  held-out  R is fitted with pseudo-counts ½; the held-out people set the thresholds, so α is the true error
  faulty    as the paper, with a trifle of pseudo-counts in place of impossible rows, and two faults planted on purpose

Cells are stored under results/paper003/ as they are done; a second run goes on where the first one stopped.
The last lines are the powers at α = 1e-2 with 100 nodes and 400 edges, held out; those of `power_paper_code` and
`power_right_rows`, both faults or the second alone, are at α = 1e-3.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import os
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # one thread for each worker, before numpy starts its own

import numpy as np

from _paper003_attacks import faulty_attacks, plain_attacks
from _paper003_utility import HEADER, compare_utility, summarise
from discreet.core.airlock import Airlock
from discreet.entrance import open_airlock
from discreet.judge.attacks.ceiling import expect_power, limit_power
from discreet.judge.attacks.flat_tables import FlatTables
from discreet.judge.attacks.noisy_tables import estimate_total, score_jointly, score_noisy
from discreet.judge.attacks.power import rank_scores
from discreet.judge.attacks.recovery import recover_ratios
from discreet.judge.attacks.reference import Reference, centre
from discreet.learning.planned import planned
from discreet.networks.credal import from_noise
from discreet.networks.network import Network
from discreet.values.budget import PureDP
from discreet.values.graph import DAG
from discreet.values.schema import Schema

NODES, DENSITIES = (10, 20, 50, 100), (1, 2, 4)
PEOPLE, REFERENCE, TARGET = 10_000, 5_000, 500
SAMPLINGS = 20
UTILITY_SAMPLINGS = 3
ERRORS = tuple(float(alpha) for alpha in np.logspace(-4, -0.2, 20))
EPSILON = "1"
COVERAGE = 0.95
"""Of the private credal network: it holds the plain conditionals with this probability."""
ROUNDS = 4
SEED, VERSION = 2025, 8
"""Stored cells of another version are run again."""
TRIFLE = 1e-5
"""Pseudo-counts of R in the faulty attacks, as the authors' code has them: no row is impossible."""
FINAL, LEVEL, SMALL_LEVEL = (100, 4), 10, 5  # the cell and the error levels (1e-2, 1e-3) of the last lines


@dataclass(frozen=True, eq=False)
class World:
    """A ground truth and its people."""

    dag: DAG
    schema: Schema
    cells: FlatTables
    codes: dict[str, Any]
    places: Any


@lru_cache(maxsize=1)
def make_world(nodes: int, density: int) -> World:
    """A uniformly random graph with nodes·density edges, uniformly random conditionals, and 10 000 people."""
    rng = np.random.default_rng([SEED, nodes, density])
    pairs = [(i, j) for j in range(nodes) for i in range(j)]
    names = [f"x{i}" for i in range(nodes)]
    chosen = [pairs[k] for k in rng.choice(len(pairs), nodes * density, replace=False)]
    dag = DAG.build({names[j]: [names[i] for i, child in chosen if child == j] for j in range(nodes)})
    schema = Schema.of({name: ["0", "1"] for name in names})
    cells = FlatTables.arrange(dag, schema.sizes)
    zero = rng.random(cells.size // 2)
    tables = cells.split(np.stack([zero, 1.0 - zero], axis=1).ravel())
    codes: dict[str, Any] = {}
    for name, table in zip(dag.nodes, tables, strict=True):  # nodes are numbered along the arrows
        index = tuple(codes[parent] for parent in dag.parents_of(name))
        codes[name] = (rng.random(PEOPLE) >= table.values[(*index, 0)]).astype(np.uint8)
    return World(dag, schema, cells, codes, cells.locate(codes))


def time_sampling(nodes: int, density: int, index: int) -> tuple[float, dict[str, list[float]]]:
    """One sampling, and the processor time that it took."""
    start = time.process_time()
    powers = run_sampling(nodes, density, index)
    return time.process_time() - start, powers


def run_sampling(nodes: int, density: int, index: int) -> dict[str, list[float]]:
    """The powers of all attacks at all errors for one draw of T and R."""
    world = make_world(nodes, density)
    rng = np.random.default_rng([SEED, nodes, density, index])
    mixed = rng.permutation(PEOPLE)
    reference, target, held_out = np.split(mixed, [REFERENCE, REFERENCE + TARGET])
    cells, places = world.cells, world.places
    counts = cells.count(places[target]).astype(np.float64)
    plain = Reference.of_counts(cells, cells.count(places[reference]).astype(np.float64))
    smooth = Reference.of_counts(cells, plain.counts + 0.5)
    found: dict[str, list[float]] = {}
    for protocol, known, null in (("paper", plain, reference), ("held-out", smooth, held_out)):
        for name, values in plain_attacks(cells, counts, known, rng):
            scores = known.score(values, places[np.concatenate([target, null])])
            found[f"{protocol}: {name}"] = count_above(scores[:TARGET], scores[TARGET:], ERRORS, rng).tolist()
    trifle = Reference.of_counts(cells, plain.counts + TRIFLE)
    for name, values in faulty_attacks(cells, counts, trifle, rng):
        scores = trifle.score(values, places[np.concatenate([target, reference])])
        found[f"faulty: {name}"] = count_above(scores[:TARGET], scores[TARGET:], ERRORS, rng).tolist()
    for name, scores in private_attacks(world, target, reference, held_out, smooth):
        found[f"held-out: {name}"] = count_above(scores[:TARGET], scores[TARGET:], ERRORS, rng).tolist()
    return found


def count_above(members: Any, strangers: Any, errors: Sequence[float], rng: np.random.Generator) -> Any:
    """The powers at some errors, without the bounds of `measure_power`, which thousands of attacks cannot wait for."""
    ranks = rank_scores(np.concatenate([members, strangers]), rng)
    own, other = ranks[: len(members)], np.sort(ranks[len(members) :])
    kept = [len(other) - 1 - math.floor(error * len(other) + 1e-9) for error in errors]
    return np.array([np.mean(own > (other[place] if place >= 0 else -1)) for place in kept])


def private_attacks(
    world: World, target: Any, reference: Any, held_out: Any, known: Reference
) -> Iterator[tuple[str, Any]]:
    """The scores of all attacks on a network and a credal network learned with ε = 1."""
    rows = {name: column[target] for name, column in world.codes.items()}
    airlock = open_airlock(
        {name: column.astype(np.int64) for name, column in rows.items()}, world.schema, budget=PureDP(EPSILON)
    )
    with airlock:
        network = learn(airlock, world.dag)
    assert network.provenance is not None
    people = np.concatenate([target, held_out])
    places = world.places[people]
    yield "private network", known.score_tables(network.cpts, places)
    measured = network.provenance.measurements
    credal = from_noise(network, COVERAGE)
    low, high = world.cells.flatten(credal.lower), world.cells.flatten(credal.upper)
    yield "private credal, definition 6", known.score(known.fit_within(low, high), places)
    recovered = recover_ratios(credal.lower)
    yield "private credal, recovery", known.score_tables(recovered.cpts, places)
    yield "private credal, centroid", known.score(centre(world.cells, low, high), places)
    background = {name: column[reference] for name, column in world.codes.items()}
    scored = {name: column[people] for name, column in world.codes.items()}
    total = estimate_total(measured)
    yield "private, noise-aware", score_noisy(measured, background, total, scored)
    yield "private, noise-aware jointly", score_jointly(measured, background, total, scored)


def learn(airlock: Airlock, dag: DAG) -> Network:
    """The private network by the planned learner, with few rounds: more refine the same noisy counts, slowly."""
    return planned(airlock, dag, spend=EPSILON, rows=TARGET, rounds=ROUNDS)


def run_cell(
    nodes: int, density: int, samplings: int, folder: Path, workers: int, advance: Any
) -> dict[str, Any]:
    """All samplings of one cell of the grid, from the file if it is there."""
    path = folder / f"cell-{nodes}-{density}.json"
    if path.exists():
        stored = json.loads(path.read_text("utf-8"))
        same = (stored["errors"], stored["seed"], stored.get("version")) == (list(ERRORS), SEED, VERSION)
        if same and stored["samplings"] >= samplings:
            advance(samplings)
            return dict(stored)
    start = time.perf_counter()
    powers: dict[str, list[list[float]]] = {}
    busy = 0.0
    with ProcessPoolExecutor(workers) as pool:
        jobs = [pool.submit(time_sampling, nodes, density, index) for index in range(samplings)]
        for job in jobs:
            spent, found = job.result()
            busy += spent
            for name, values in found.items():
                powers.setdefault(name, []).append(values)
            advance(1)
    world = make_world(nodes, density)
    complexity = world.dag.complexity(world.schema.sizes)
    result = {
        "nodes": nodes,
        "density": density,
        "samplings": samplings,
        "seed": SEED,
        "version": VERSION,
        "errors": list(ERRORS),
        "complexity": complexity,
        "theory": expect_power(complexity, TARGET, ERRORS).tolist(),
        "ceiling": limit_power(PureDP(EPSILON), ERRORS).tolist(),
        "seconds": time.perf_counter() - start,
        "cpu_seconds": busy,
        "powers": powers,
    }
    draft = path.with_suffix(".part")
    draft.write_text(json.dumps(result), "utf-8")
    draft.replace(path)
    return result


def run_utility(grid: Sequence[tuple[int, int]], samplings: int, path: Path) -> list[tuple[object, ...]]:
    """Noisy and credal networks of the same members, in what they still tell; prints and writes a table."""
    lines: list[tuple[object, ...]] = []
    for nodes, density in grid:
        world = make_world(nodes, density)
        found = []
        for index in range(samplings):
            rng = np.random.default_rng([SEED, nodes, density, index])
            target = np.split(rng.permutation(PEOPLE), [REFERENCE, REFERENCE + TARGET])[1]
            tables = world.cells.split(world.cells.count(world.places[target]).astype(np.float64))
            rows = {name: column[target].astype(np.int64) for name, column in world.codes.items()}
            found.append(compare_utility(world.dag, world.schema, tables, rows))
        lines += summarise(nodes, nodes * density, found)
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([HEADER, *lines])
    for line in lines:
        print(
            "utility: "
            + ", ".join(f"{value:.4f}" if isinstance(value, float) else str(value) for value in line)
        )
    return lines


def draw_grid(results: dict[tuple[int, int], dict[str, Any]], path: Path, protocol: str) -> None:
    """One panel for each cell: mean power over the error as lines, the maximum over the samplings as shades."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    shown = {
        "network": ("network", "tab:blue", "-"),
        "network, halves read": ("network, halves read", "tab:cyan", "--"),
        "definition 6, S=1": ("credal S=1, Def. 6", "tab:green", "-"),
        "definition 6, S=1000": ("credal S=1000, Def. 6", "tab:olive", "-"),
        "recovery, S=1000": ("credal S=1000, recovery", "tab:red", "--"),
        "recovery, unseen out, S=1000": ("the same, unseen out", "tab:pink", ":"),
        "private network": ("private ε=1", "tab:purple", "-"),
        "private, noise-aware": ("private ε=1, noise-aware", "black", ":"),
        "private credal, definition 6": ("private credal ε=1", "tab:brown", "-"),
    }
    rows, columns = sorted({cell[0] for cell in results}), sorted({cell[1] for cell in results})
    figure, axes = plt.subplots(
        len(rows), len(columns), figsize=(4 * len(columns), 3 * len(rows)),
        sharex=True, sharey=True, squeeze=False, layout="constrained",
    )  # fmt: skip
    for (nodes, density), result in results.items():
        axis = axes[rows.index(nodes)][columns.index(density)]
        errors = result["errors"]
        axis.plot(errors, result["theory"], color="0.5", linewidth=1, label="Theorem 1")
        axis.plot(errors, result["ceiling"], color="black", linewidth=0.8, label="ceiling of ε=1")
        for name, (label, colour, style) in shown.items():
            if f"{protocol}: {name}" in result["powers"]:
                values = np.array(result["powers"][f"{protocol}: {name}"])
                axis.plot(errors, values.mean(axis=0), style, color=colour, linewidth=1.3, label=label)
                axis.fill_between(errors, values.mean(axis=0), values.max(axis=0), color=colour, alpha=0.12)
        axis.set(
            xscale="log",
            ylim=(-0.02, 1.02),
            title=f"{nodes} nodes, {nodes * density} edges, C={result['complexity']}",
        )
    for axis in axes[-1]:
        axis.set_xlabel("error α")
    for line in axes:
        line[0].set_ylabel("power β")
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, fontsize="small")
    figure.savefig(path, dpi=75)
    plt.close(figure)


def write_table(results: dict[tuple[int, int], dict[str, Any]], path: Path) -> None:
    """Every mean and maximum as CSV."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["nodes", "edges", "complexity", "attack", "error", "mean_power", "max_power"])
        for (nodes, density), result in results.items():
            lines = {"theory": [result["theory"]], "ceiling": [result["ceiling"]], **result["powers"]}
            for name, values in lines.items():
                for error, mean, most in zip(
                    result["errors"], np.mean(values, 0), np.max(values, 0), strict=True
                ):
                    writer.writerow(
                        [
                            nodes,
                            nodes * density,
                            result["complexity"],
                            name,
                            f"{error:.6g}",
                            f"{mean:.6g}",
                            f"{most:.6g}",
                        ]
                    )


def print_cell(result: dict[str, Any]) -> None:
    """The means of one cell at four errors."""
    chosen = [0, 5, 10, 15]
    print(
        f"\n{result['nodes']} nodes, {result['nodes'] * result['density']} edges, C(G) = {result['complexity']}"
    )
    print(f"{'power at α =':44}" + "".join(f"{result['errors'][i]:>9.4g}" for i in chosen))
    lines = {"Theorem 1": [result["theory"]], "ceiling, ε = 1": [result["ceiling"]], **result["powers"]}
    for name, values in lines.items():
        print(f"{name:44}" + "".join(f"{np.mean(values, 0)[i]:9.3f}" for i in chosen))


def main() -> None:
    """Run the grid, or with --quick a small part of it, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="two cells, few samplings, under a minute")
    parser.add_argument("--fresh", action="store_true", help="forget what an earlier run has stored")
    parser.add_argument("--workers", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument(
        "--samplings", type=int, default=SAMPLINGS, help="of each graph that is not stored yet"
    )
    parser.add_argument("--out", type=Path, default=Path("results"))
    options = parser.parse_args()
    samplings = 3 if options.quick else options.samplings
    grid = (
        [(10, 1), FINAL] if options.quick else [(nodes, density) for nodes in NODES for density in DENSITIES]
    )
    folder = options.out / ("paper003-quick" if options.quick else "paper003")
    folder.mkdir(parents=True, exist_ok=True)
    if options.fresh:
        for stored in folder.glob("cell-*.json"):
            stored.unlink()
    results = {}
    with progress(len(grid) * samplings) as advance:
        for nodes, density in grid:
            results[nodes, density] = run_cell(nodes, density, samplings, folder, options.workers, advance)
    for protocol in ("paper", "held-out"):
        draw_grid(results, folder / f"figure1-{protocol}.png", protocol)
    write_table(results, folder / "powers.csv")
    graphs = [(10, 1)] if options.quick else [(10, 1), (10, 2), (20, 2)]
    run_utility(graphs, min(samplings, UTILITY_SAMPLINGS), folder / "utility.csv")
    final = results[FINAL]
    print_cell(final)
    print()
    for path in sorted([*folder.glob("*.png"), *folder.glob("*.csv")]):
        print(path)

    def at(name: str, protocol: str = "held-out", level: int = LEVEL) -> float:
        return float(np.mean(final["powers"][f"{protocol}: {name}"], axis=0)[level])

    private = [name for name in final["powers"] if name.startswith("held-out: private")]
    figures = {
        "cell_cpu_seconds": final["cpu_seconds"],
        "paper_power_network": at("network", "paper"),
        "paper_power_definition6": at("definition 6, S=1", "paper"),
        "paper_power_recovery": at("recovery, S=1", "paper"),
        "power_recovery_unseen_out": at("recovery, unseen out, S=1"),
        "power_network": at("network"),
        "power_network_halves_read": at("network, halves read"),
        "power_definition6": at("definition 6, S=1"),
        "power_recovery": at("recovery, S=1"),
        "power_theory": final["theory"][LEVEL],
        "power_private_best": max(at(name.removeprefix("held-out: ")) for name in private),
        "power_ceiling": final["ceiling"][LEVEL],
        "power_paper_code": at("any point, rows swapped, S=1", "faulty", SMALL_LEVEL),
        "power_right_rows": at("any point, S=1", "faulty", SMALL_LEVEL),
        "cell_seconds": final["seconds"],
    }
    for name, value in figures.items():
        print(f"{name}: {value:.4f}")


class progress:
    """A bar on a terminal, nothing in a pipe."""

    def __init__(self, total: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        console = Console(file=sys.stderr)
        self.bar = Progress(
            TextColumn("samplings"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
            console=console, disable=not console.is_terminal,
        )  # fmt: skip
        self.total = total

    def __enter__(self) -> Any:
        self.bar.start()
        task = self.bar.add_task("samplings", total=self.total)
        return lambda done: self.bar.advance(task, done)

    def __exit__(self, *problem: object) -> None:
        self.bar.stop()


if __name__ == "__main__":
    main()
