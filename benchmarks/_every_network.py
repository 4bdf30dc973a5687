"""The planned learner against D-Ind on every network that comes with pgmpy, at budgets from 0.1 to 10.

The error is L1 of the conditionals against those that made the 10,000 rows, weighed by frequency, mean over nodes.
Run it by itself: `python benchmarks/_every_network.py --out results/every-network.csv`; lines that are there are not
run again. `--networks munin link --epsilons 0.1` runs only those.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from _distances import compare_cpts
from _running import progress
from discreet.core.airlock import Airlock
from discreet.entrance import open_airlock
from discreet.learning.planned import planned
from discreet.networks.formats.bif import read_bif
from discreet.networks.network import Network
from discreet.papers.parameters.independent import independent
from discreet.values.budget import PureDP
from discreet.values.table import Table

ROWS = 10_000
WEIGHED = 100_000
"""Rows that the frequencies of parents are counted in: exact ones cannot be had for the largest networks."""
MOST_RELEASES, NODES = 8, 200
"""Releases of each network: so many, or so many that they have about so many nodes together."""
EPSILONS = ("0.1", "1", "10")
SMALL = ("cancer", "earthquake", "survey", "asia", "sachs", "child")


def list_networks() -> list[Path]:
    """The files of all networks, smallest first."""
    spec = importlib.util.find_spec("pgmpy")
    if spec is None or spec.origin is None:
        raise SystemExit("the networks come with pgmpy, which is not installed")
    folder = Path(spec.origin).parent / "utils" / "example_models"
    return sorted(folder.glob("*.bif.gz"), key=lambda path: path.stat().st_size)


def count_families(network: Network, rows: int, seed: int) -> list[Table]:
    """The tables of all families in rows drawn from the network."""
    codes, tables = network.sample(rows, rng=seed).codes(), []
    for family in network.dag.families():
        shape = tuple(network.schema.sizes[name] for name in family)
        index = np.ravel_multi_index([codes[name].astype(np.intp) for name in family], shape)
        tables.append(Table(family, np.bincount(index, minlength=int(np.prod(shape))).reshape(shape)))
    return tables


def measure(
    network: Network, airlock: Airlock, learn: Callable[..., Network], epsilon: str, weights: Sequence[Table]
) -> float:
    """The mean error of some releases: more of small networks, where little but chance tells the learners apart."""
    errors = [
        compare_cpts(
            network.dag, network.cpts, learn(airlock, network.dag, spend=epsilon).cpts, weights=weights
        )
        for _ in range(max(1, min(MOST_RELEASES, NODES // len(network.dag.nodes))))
    ]
    return float(np.mean(errors))


def main() -> None:
    """Fill the file, print it, and the worst quotient of the errors."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the smallest networks only")
    parser.add_argument("--out", type=Path, default=Path("results/every-network.csv"))
    parser.add_argument("--networks", nargs="+", metavar="NAME", help="these networks, in this order")
    parser.add_argument("--epsilons", nargs="+", choices=EPSILONS, default=list(EPSILONS))
    arguments = parser.parse_args()
    known = {path.name.removesuffix(".bif.gz"): path for path in list_networks()}
    chosen = arguments.networks or (SMALL if arguments.quick else [*known])
    if strange := [name for name in chosen if name not in known]:
        raise SystemExit(f"pgmpy has no network {strange[0]!r}; it has {', '.join(known)}")
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    done: dict[tuple[str, str], tuple[float, float]] = {}
    if arguments.out.exists():
        with arguments.out.open(newline="", encoding="utf-8") as file:
            done = {
                (name, epsilon): (float(ours), float(theirs))
                for name, epsilon, ours, theirs in csv.reader(file)
            }
    with progress("networks", len(chosen) * len(arguments.epsilons)) as advance:
        for name in chosen:
            left = [epsilon for epsilon in arguments.epsilons if (name, epsilon) not in done]
            if left:
                network = read_bif(known[name])
                weights = count_families(network, WEIGHED, seed=2)
                rows = network.sample(ROWS, rng=1).arrow()
                airlock = open_airlock(rows, network.schema, budget=PureDP(10**6))
            for epsilon in arguments.epsilons:
                if epsilon in left:
                    ours, theirs = (
                        measure(network, airlock, learn, epsilon, weights) for learn in (planned, independent)
                    )
                    done[name, epsilon] = ours, theirs
                    with arguments.out.open("a", newline="", encoding="utf-8") as file:
                        csv.writer(file).writerow([name, epsilon, repr(ours), repr(theirs)])
                advance()
    for (name, epsilon), (ours, theirs) in done.items():
        print(f"{name:12} ε = {epsilon:4} planned {ours:.4f} D-Ind {theirs:.4f} quotient {ours / theirs:.2f}")
    print(f"networks_done: {len({name for name, _ in done})}")
    print(f"planned_over_independent_worst: {max(ours / theirs for ours, theirs in done.values()):.3f}")


if __name__ == "__main__":
    main()
