"""MST of dpmm, or AIM of OpenDP, on the tables of `aim.py`, judged as ours are; figures are added to `aim-figures.csv`.

    python benchmarks/_aim_peers.py mst --tables titanic adult --epsilons 0.1 1 10

It runs in an environment of its own, made on first use, and takes from a minute to hours a figure.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import math
from pathlib import Path

from _paper004_data import Data
from aim import DELTA, EPSILONS, HERE, TABLES, pick_triples, read_codes
from discreet.values.schema import Schema
from peers import run

FIGURES = HERE / "aim-figures.csv"
PEERS = {"mst": ("dpmm_mst", "dpmm 0.1.9 MST"), "aim": ("opendp_aim", "OpenDP 0.16 AIM")}
DRAWN = {"mst": "its own", "aim": "rounding"}
"""OpenDP's MST refuses most of these tables: its own parts add up to a rounding error more than their whole."""


class Judged(Data):
    """A table of codes that is judged by the triples that AIM's figures are means over."""

    __slots__ = ()

    def marginals(self, ways: int) -> list[tuple[str, ...]]:
        """Those triples, or all sets of fewer."""
        names = list(self.schema.names)
        return pick_triples(names) if ways == 3 else list(itertools.combinations(names, ways))


def main() -> None:
    """Run what is asked for, one after the other, and write down each figure as soon as it is there."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("method", choices=sorted(PEERS))
    parser.add_argument("--tables", nargs="*", choices=TABLES, default=list(TABLES))
    parser.add_argument("--epsilons", nargs="*", default=list(EPSILONS))
    parser.add_argument("--limit", type=float, default=math.inf, help="seconds after which a run is given up")
    parser.add_argument("--data", type=Path, default=HERE.parents[1] / "shared" / "data")
    asked = parser.parse_args()
    limit = None if math.isinf(asked.limit) else asked.limit
    for table, epsilon in itertools.product(asked.tables, asked.epsilons):
        sizes, codes = read_codes(asked.data, table)
        judged = Judged(table, Schema.of({name: range(size) for name, size in sizes.items()}), codes)
        peer, name = PEERS[asked.method]
        found = run(peer, judged, epsilon, limit, install=True, drawing="round")
        print(f"{table} {epsilon}: {found}", flush=True)
        if not found.problem:
            told = (f"{found.cpu_s:.0f}", f"{found.peak_mb:.0f}", "", f"{found.tv2:.4f}", f"{found.tv3:.4f}")
            with FIGURES.open("a", newline="", encoding="utf-8") as file:
                csv.writer(file, lineterminator="\n").writerow(
                    [table, name, DRAWN[asked.method], epsilon, DELTA, 1, *told]
                )


if __name__ == "__main__":
    main()
