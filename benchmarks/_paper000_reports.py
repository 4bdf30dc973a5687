"""What `paper000.py` prints, writes and draws of its finished cells."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from _paper000_figures import draw_errors, draw_savings
from _paper000_savings import MEASURES, find_saving
from _paper000_trials import INDEPENDENT, PLANNED, PRINTED, Case, Cells, learn
from discreet.compute.metrics import FLOOR
from discreet.papers.parameters.allocation import Allocation, estimate_error, plan_allocation
from discreet.papers.theory.query_bounds import bound_saving
from discreet.values.table import Table

Savings = dict[tuple[str, str, str], tuple[float, float]]
"""By network, learner and measure: the saving and its standard error."""
ERRORS = ("parameter_l1", "parameter_kl", "marginal_l1", "marginal_kl", "conditional_l1", "conditional_kl")


def write_means(cells: Cells, runs: dict[str, int], out: Path) -> None:
    """Means and standard errors over so many runs of each experiment, one line for each measure."""
    groups: dict[tuple[str, str, str, str, str], list[float]] = {}
    for (experiment, name, learner, epsilon, run), measures in cells.values.items():
        if run < runs[experiment]:
            for measure, value in measures.items():
                groups.setdefault((experiment, name, learner, epsilon, measure), []).append(value)
    header = ["experiment", "network", "learner", "epsilon", "measure", "mean", "standard_error", "runs"]
    write_lines(
        out / "means.csv",
        header,
        [
            [*key, repr(float(np.mean(values))), repr(_standard_error(values)), len(values)]
            for key, values in groups.items()
        ],
    )


def report_queries(
    cells: Cells,
    names: Sequence[str],
    learners: Sequence[str],
    epsilons: Sequence[str],
    runs: range,
    out: Path,
) -> None:
    """Print the errors at ε = 1 and Tables 1 and 2, and draw Figures 2 and 4."""

    def mean(name: str, learner: str, epsilon: str, measure: str) -> float:
        return float(cells.collect("queries", name, learner, epsilon, measure, runs).mean())

    pairs = [(name, learner) for name in names for learner in learners]
    print(f"\nErrors at ε = 1, mean of {len(runs)} runs (KL with a floor of {FLOOR:g})")
    _print_row("network", "learner", ERRORS, 16)
    for pair in pairs:
        _print_row(*pair, [f"{mean(*pair, '1', measure):.4f}" for measure in ERRORS], 16)
    print(f"\nTable 1: share of most probable answers that are right, {len(runs)} runs")
    _print_row("network", "learner", epsilons, 8)
    for pair in pairs:
        _print_row(*pair, [f"{mean(*pair, epsilon, 'map'):.3f}" for epsilon in epsilons], 8)
    print(
        "\nTable 2: scale-normalised error μ at ε = 1, and the share of queries (all ε) outside of the bounds"
    )
    print("  (printed: with the treewidth of the graph and sums over all rows, as the paper has it)")
    heads = ("marginal", "conditional", "marg. printed", "cond. printed", "below", "above")
    _print_row("network", "learner", heads, 15)
    for pair in pairs:
        kinds = ("marginal_mu", "conditional_mu", "marginal_mu_printed", "conditional_mu_printed")
        found = [mean(*pair, "1", kind) for kind in kinds]
        found += [
            float(np.mean([mean(*pair, epsilon, side) for epsilon in epsilons]))
            for side in ("below_lower", "above_upper")
        ]
        _print_row(*pair, [f"{value:.5f}" for value in found], 15)
    for name in names:
        draw_errors(cells, name, epsilons, runs, out / f"errors_{name}.svg")


def report_budgets(asia: Case, runs: int) -> None:
    """The order in which Algorithm 1 shares its budget on Asia: from noisy first looks, and from exact counts."""
    shares: dict[str, float] = dict.fromkeys(asia.network.nodes, 0.0)
    for run in range(runs):
        provenance = learn(PRINTED, asia, "1", run).provenance
        assert provenance is not None
        for name, share in provenance.details["shares"].items():
            shares[name] += float(Fraction(share)) / runs
    exact = _allocate_exactly(asia)
    print("\nBudgets of Algorithm 1 on Asia, largest first")
    print("  as the paper has them:   asia smoke bronc lung tub xray either dysp")
    print(f"  from expected counts:    {' '.join(exact.order)}")
    print(f"  mean of {runs} first looks:  {' '.join(sorted(shares, key=lambda name: -shares[name]))}")


def report_limits(cases: Sequence[Case]) -> None:
    """What a split of the budget over the nodes can save: the noise in a family's table costs cells / ε_i."""
    print(
        "\nWhat a split over the nodes saves if the first look were exact and free (weighted L1, no clamping)"
    )
    _print_row("network", "", ("the best split", "that of Eq. 13"), 16)
    for case in cases:
        cells = np.array([float(cpt.cells) for cpt in case.network.cpts])
        exact = _allocate_exactly(case)
        shares = np.array([float(exact.shares[name]) for name in case.network.nodes])
        printed = len(cells) * cells.sum() / (cells / shares).sum()
        _print_row(case.name, "", [f"{bound_saving(cells.tolist()):.2f}", f"{printed:.2f}"], 16)


def _allocate_exactly(case: Case) -> Allocation:
    """The shares of Algorithm 1 from the expected counts of all rows."""
    errors = {}
    for name, cpt, joint in zip(case.network.nodes, case.network.cpts, case.weights, strict=True):
        expected = Table(joint.axes, joint.values * case.rows)
        errors[name] = estimate_error(cpt, expected, expected.project(joint.axes[:-1]), 1.0)
    return plan_allocation(case.network.dag, case.network.schema.sizes, errors)


def report_savings(
    cells: Cells, names: Sequence[str], learners: Sequence[str], grid: Sequence[str], runs: range, out: Path
) -> Savings:
    """Print the table of ε savings, and write and draw it."""
    others = [learner for learner in learners if learner != INDEPENDENT]
    savings = {
        (name, learner, measure): find_saving(cells, name, learner, measure, grid, runs)
        for name in names
        for learner in others
        for measure in MEASURES
    }
    print(
        f"\nε saving: the ε at which D-Ind has a learner's error at ε = 1 (± standard error, {len(runs)} runs)"
    )
    _print_row("network", "learner", MEASURES, 16)
    for name in names:
        for learner in others:
            found = [savings[name, learner, measure] for measure in MEASURES]
            _print_row(name, learner, [_show_saving(*pair, float(grid[-1])) for pair in found], 16)
    write_lines(
        out / "savings.csv",
        ["network", "learner", "measure", "saving", "standard_error", "runs"],
        [[*key, repr(value), repr(error), len(runs)] for key, (value, error) in savings.items()],
    )
    draw_savings(savings, others, out / "savings.svg")
    return savings


def report_ablation(
    found: dict[str, dict[str, dict[str, tuple[float, float]]]],
    views: dict[int, tuple[float, float]],
    runs: int,
    out: Path,
) -> None:
    """Print and write the errors of Algorithm 1 with a repair taken away, and of PriView's tables on Sachs."""
    print(f"\nAlgorithm 1 at ε = 1 with a repair taken away, mean of {runs} runs (± standard error)")
    lines = []
    for name, variants in found.items():
        for variant, errors in variants.items():
            shown = [f"{value:.4f} ± {spread:.4f}" for value, spread in errors.values()]
            _print_row(name, variant, shown, 18)
            lines += [[name, variant, measure, *map(repr, pair)] for measure, pair in errors.items()]
    print(f"\nPriView on Sachs at ε = 1, unweighted L1 of the parameters, mean of {runs} runs")
    for size, (value, spread) in views.items():
        print(f"  views of {size} attributes: {value:.4f} ± {spread:.4f}")
        lines.append(["sachs", f"PriView, views of {size}", "unweighted", repr(value), repr(spread)])
    write_lines(out / "ablation.csv", ["network", "variant", "measure", "mean", "standard_error"], lines)


def report_peer(found: dict[str, dict[str, float]], runs: int, out: Path) -> dict[str, float]:
    """Print the comparison with Private-PGM; geometric means of the ratios over the networks."""
    columns = ("error_ours", "error_mbi", "seconds_ours", "seconds_mbi_first", "seconds_mbi")
    print(
        f"\nPrivate-PGM on the same tables, ε = 1, {runs} runs; seconds of one estimate, first and once compiled"
    )
    _print_row("network", "", columns, 19)
    for name, line in found.items():
        _print_row(name, "", [f"{line[column]:.4f}" for column in columns], 19)
    write_lines(
        out / "mbi.csv",
        ["network", *next(iter(found.values()))],
        [[name, *line.values()] for name, line in found.items()],
    )

    def mean_ratio(above: str, below: str) -> float:
        return math.exp(np.mean([math.log(line[above] / line[below]) for line in found.values()]))

    print(
        f"  once compiled, mbi takes {mean_ratio('seconds_mbi', 'seconds_ours'):.1f} times as long as we do"
    )
    return {
        "error": mean_ratio("error_ours", "error_mbi"),
        "speed": mean_ratio("seconds_mbi_first", "seconds_ours"),
    }


def report_speed(found: Sequence[dict[str, float]], out: Path) -> float:
    """Print how long planned takes on Alarm by rows; the seconds at a million."""
    if not found:
        return math.nan
    print("\nplanned on Alarm, rows in memory: seconds end to end, best and worst of 3, and what rows cost")
    for line in found:
        print(
            f"  {line['rows']:>10,} rows: {line['best_s']:.3f} to {line['worst_s']:.3f} s, "
            f"{line['ns_per_row']:.0f} ns a row, {line['ns_per_further_row']:.1f} ns for each further row; "
            f"opening took {line['open_s']:.2f} s"
        )
    write_lines(out / "speed.csv", list(found[0]), [list(line.values()) for line in found])
    return next(line["best_s"] for line in found if line["rows"] == 10**6)


def report_final(savings: Savings, networks: Sequence[str], peer: dict[str, float], million: float) -> None:
    """The figures that the project follows, one in each line; means are over the four networks of the paper."""

    def saving(name: str, learner: str, measure: str) -> float:
        return savings.get((name, learner, measure), (math.nan, 0.0))[0]

    def mean(learner: str, measure: str) -> float:
        return float(np.mean([saving(name, learner, measure) for name in networks]))

    print()
    for name in networks:
        print(f"saving_{name}: {saving(name, PLANNED, 'weighted'):.3g}")
    print(f"saving_mean: {mean(PLANNED, 'weighted'):.3g}")
    print(f"saving_marginal_mean: {mean(PLANNED, 'marginal'):.3g}")
    print(f"saving_unweighted_mean: {mean(PLANNED, 'unweighted'):.3g}")
    print(f"dependent_saving_mean: {mean(PRINTED, 'weighted'):.3g}")
    print(f"error_over_mbi: {peer.get('error', math.nan):.4g}")
    print(f"speed_over_mbi: {peer.get('speed', math.nan):.4g}")
    print(f"alarm_million_s: {million:.3g}")


def write_lines(path: Path, header: Sequence[str], lines: Sequence[Sequence[Any]]) -> None:
    """A CSV file."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(lines)


def _print_row(name: str, learner: str, values: Sequence[str], width: int) -> None:
    print(f"{name:11}{learner:31}" + "".join(f"{value:>{width}}" for value in values))


def _show_saving(value: float, error: float, end: float) -> str:
    """The end of the grid is only a bound: D-Ind did not get there."""
    return f"≥ {value:g}" if value >= end else f"{value:.2f} ± {error:.2f}"


def _standard_error(values: Sequence[float]) -> float:
    return float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else 0.0
