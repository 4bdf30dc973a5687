"""Papers 000 and 001 again: their figures and tables, and how much ε a learner saves; writes CSV and SVG.

At full size: four networks, 10 000 rows, eight budgets, 20 queries and 10 runs; the saving takes 30 runs on seven
networks. Finished cells are kept in `cells.csv`, so that a run which was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from _distances import compare_cpts
from _environments import open_environment
from _paper000_ablation import run_ablation, run_views
from _paper000_mbi import ENVIRONMENT, compare_with_mbi
from _paper000_queries import Queries
from _paper000_reports import (
    report_ablation,
    report_budgets,
    report_final,
    report_limits,
    report_peer,
    report_queries,
    report_savings,
    report_speed,
    write_means,
)
from _paper000_speed import time_planned
from _paper000_trials import INDEPENDENT, LEARNERS, PLANNED, Case, Cells, find_peer_file, has_planned, learn
from _running import progress
from discreet.networks.network import Network

NETWORKS = ("asia", "sachs", "child", "alarm")
OTHERS = ("insurance", "hailfinder", "win95pts")


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much is run."""

    queried: Sequence[str] = NETWORKS
    epsilons: Sequence[str] = ("0.1", "0.25", "0.5", "1", "1.5", "2", "2.5", "3")
    query_runs: int = 10
    saved: Sequence[str] = (*NETWORKS, *OTHERS)
    grid: Sequence[str] = ("0.25", "0.5", "0.75", "1", "1.5", "2", "3", "4", "5", "6", "8", "12", "16", "24")
    saving_runs: int = 30
    peered: Sequence[str] = NETWORKS
    peer_runs: int = 10
    rows: Sequence[int] = (10**4, 10**5, 10**6, 10**7)
    install: bool = True
    ablated: Sequence[str] = NETWORKS
    ablation_runs: int = 10
    views: Sequence[int] = (3, 4, 5, 6)


QUICK = Size(
    queried=("asia",),
    epsilons=("0.5", "1", "3"),
    query_runs=2,
    saved=NETWORKS,
    grid=("0.25", "1", "3", "6", "12"),
    saving_runs=2,
    peered=("asia",),
    peer_runs=2,
    rows=(10**4, 10**6),
    install=False,
    ablated=("asia",),
    ablation_runs=2,
    views=(3,),
)
PARTS = ("queries", "savings", "ablation", "peer", "speed")


def main() -> None:
    """Run every experiment at the size asked for, and print the final figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few runs of everything, in under a minute")
    parser.add_argument("--fresh", action="store_true", help="forget the cells of earlier runs")
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--runs", type=int, help="so many runs of everything")
    parser.add_argument(
        "--networks", nargs="*", choices=NETWORKS, help="figures, queries and ablations of these only"
    )
    parser.add_argument("--parts", nargs="*", choices=PARTS, default=list(PARTS), help="only some of it")
    arguments = parser.parse_args()
    size = QUICK if arguments.quick else Size()
    if arguments.runs:
        runs = arguments.runs
        size = replace(size, query_runs=runs, saving_runs=runs, peer_runs=runs, ablation_runs=runs)
    if arguments.networks:
        size = replace(size, queried=arguments.networks, ablated=arguments.networks)
    parts = arguments.parts
    out = arguments.out / ("paper000-quick" if arguments.quick else "paper000")
    cells = Cells.open(out / "cells.csv", fresh=arguments.fresh)
    learners = [learner for learner in LEARNERS if learner != PLANNED or has_planned()]
    if PLANNED not in learners:
        print("the planned learner is not part of this installation: its figures are nan", file=sys.stderr)
    cases = {name: Case.load(name) for name in size.saved if name in NETWORKS or find_peer_file(name)}
    if "queries" in parts:
        run_queries(cells, [cases[name] for name in size.queried], learners, size)
        report_queries(cells, size.queried, learners, size.epsilons, range(size.query_runs), out)
        if "asia" in size.queried:
            report_budgets(cases["asia"], size.query_runs)
    if "ablation" in parts:
        ablated = [cases[name] for name in size.ablated if name in cases]
        found = {case.name: run_ablation(case, size.ablation_runs) for case in ablated}
        views = run_views(Case.load("sachs"), size.ablation_runs, size.views)
        report_ablation(found, views, size.ablation_runs, out)
    if "savings" in parts:
        run_savings(cells, list(cases.values()), learners, size)
        report_limits(list(cases.values()))
    write_means(cells, {"queries": size.query_runs, "saving": size.saving_runs}, out)
    savings = report_savings(cells, list(cases), learners, size.grid, range(size.saving_runs), out)
    wanted = "peer" in parts and PLANNED in learners
    peer = run_peer([cases[name] for name in size.peered], size, out) if wanted else {}
    million = report_speed(time_planned(size.rows, repeats=3) if "speed" in parts else [], out)
    report_final(savings, NETWORKS, peer, million)


def run_queries(cells: Cells, cases: Sequence[Case], learners: Sequence[str], size: Size) -> None:
    """Figures 2 and 4, Tables 1 and 2: errors of parameters and queries for every learner, ε and run."""
    with progress("queries", len(cases) * len(learners) * len(size.epsilons) * size.query_runs) as advance:
        for case in cases:
            queries = Queries.draw(case.network, seed=2020)

            def judge(
                learned: Network, run: int, case: Case = case, queries: Queries = queries
            ) -> dict[str, float]:
                dag, truth = case.network.dag, case.network.cpts
                return {
                    "parameter_l1": compare_cpts(dag, truth, learned.cpts),
                    "parameter_kl": compare_cpts(dag, truth, learned.cpts, "kl"),
                    **queries.measure_errors(learned),
                }

            for learner in learners:
                for epsilon in size.epsilons:
                    for run in range(size.query_runs):
                        _fill(cells, "queries", case, learner, epsilon, run, judge)
                        advance()


def run_savings(cells: Cells, cases: Sequence[Case], learners: Sequence[str], size: Size) -> None:
    """D-Ind over the whole grid of ε, the others at ε = 1."""
    points = sum(len(size.grid) if learner == INDEPENDENT else 1 for learner in learners)
    with progress("saving", len(cases) * points * size.saving_runs) as advance:
        for case in cases:
            for learner in learners:
                for epsilon in size.grid if learner == INDEPENDENT else ("1",):
                    for run in range(size.saving_runs):
                        _fill(cells, "saving", case, learner, epsilon, run, case.measure_errors)
                        advance()


def run_peer(cases: Sequence[Case], size: Size, out: Path) -> dict[str, float]:
    """Private-PGM and our own estimate on the tables that planned measures; empty if it cannot be had."""
    from discreet.learning.planned import estimate

    python = open_environment(*ENVIRONMENT, install=size.install)
    if isinstance(python, str):
        print(f"Private-PGM: {python}", file=sys.stderr)
        return {}
    found = {}
    with progress("Private-PGM", len(cases)) as advance:
        for case in cases:
            measured, ours = [], []
            for run in range(size.peer_runs):
                learned = learn(PLANNED, case, "1", run)
                assert learned.provenance is not None
                start = time.perf_counter()
                cpts = estimate(case.network.dag, learned.provenance.measurements)
                ours.append((time.perf_counter() - start, cpts))
                measured.append(learned.provenance.measurements)
            found[case.name] = compare_with_mbi(case, measured, ours, python, out)
            advance()
    return report_peer(found, size.peer_runs, out)


def _fill(
    cells: Cells,
    experiment: str,
    case: Case,
    learner: str,
    epsilon: str,
    run: int,
    judge: Callable[[Network, int], dict[str, float]],
) -> None:
    """One cell: learn, and judge what was learned."""
    cells.fill(
        (experiment, case.name, learner, epsilon, run), lambda: judge(learn(learner, case, epsilon, run), run)
    )


if __name__ == "__main__":
    main()
