"""Credal inference and private intervals: how fast, how tight, how often certified, how often right.

Bounds: Asia, Child and Alarm with the imprecise Dirichlet model (S = 1) on 500 rows; a query is a random
attribute given up to three others as a random row has them. Coverage: private releases by the planned
learner; the truth is the answer of the network of relative frequencies, which noise has hidden. Child was not
looked at when the calibrated intervals were made, so it has a line of its own and no part in the last figures.

A run that was stopped goes on where it was: finished trials are kept in `credal_trials.jsonl`.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from _credal_trials import Custodian, Trials, ask, certify, count_frequencies, fit_idm
from _running import progress
from discreet.compute.bounds.bracket import bound
from discreet.entrance import open_airlock
from discreet.learning.planned import planned
from discreet.networks import examples
from discreet.networks.credal import calibrated, from_noise
from discreet.values.budget import PureDP
from discreet.values.graph import DAG
from discreet.values.table import Table

NOMINAL = 0.95


def main() -> None:
    """Print every table, write CSV and SVG, and end with the figures that are watched."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer questions and releases: under a minute")
    parser.add_argument("--fresh", action="store_true", help="forget the trials of earlier runs")
    parser.add_argument("--out", type=Path, default=Path("results/credal"), help="folder for CSV and SVG")
    arguments = parser.parse_args()
    out: Path = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    quick: bool = arguments.quick
    trials = Trials.open(out / "credal_trials.jsonl", fresh=arguments.fresh)
    tight = measure_bounds(30 if quick else 200, out)
    measure_dense()
    releases = {"asia": 32, "alarm": 4} if quick else {"asia": 1000, "alarm": 200, "child": 100}
    covered = measure_coverage(trials, releases, out)
    certified = measure_exact(trials, 5 if quick else 60, 1.0 if quick else 10.0)
    draw_plot(out, ("0.1", "0.3", "1", "3", "10") if quick else AMOUNTS)
    for name, value in {**tight, **certified, **covered}.items():
        print(f"{name}: {value:.6g}")


def measure_bounds(count: int, out: Path) -> dict[str, float]:
    """Outer alone, timed; then outer and inner: the widest gap over the levels of each query."""
    rows: list[tuple[Any, ...]] = []
    with progress("bounds", 3 * count) as advance:
        for name in ("asia", "child", "alarm"):
            network, credal = examples.load(name), fit_idm(name, 500, 7)
            for target, _, given in ask(network, count, 3):
                began = time.perf_counter()
                credal.query(target, given, method="outer")
                spent = 1e3 * (time.perf_counter() - began)
                found = credal.bound([target], given)
                assert found.inner_lower is not None
                assert found.inner_upper is not None
                gap = (found.inner_lower - found.lower) + (found.upper - found.inner_upper)
                width = (found.upper - found.lower).max()
                rows.append((name, target, len(given), spent, float(gap.max()), float(width)))
                advance()
    print(f"{'network':<8}{'queries':>8}{'outer ms':>10}{'gap':>10}{'mean gap':>10}{'width':>8}   (medians)")
    for name in ("asia", "child", "alarm"):
        part = np.array([row[3:] for row in rows if row[0] == name])
        spent, gap, width = np.median(part, axis=0)
        print(f"{name:<8}{len(part):>8}{spent:>10.2f}{gap:>10.5f}{part[:, 1].mean():>10.5f}{width:>8.4f}")
    write(out / "credal_bounds.csv", ["network", "target", "evidence", "outer_ms", "gap", "width"], rows)
    every = np.array([row[3:] for row in rows])
    return {"outer_ms_median": float(np.median(every[:, 0])), "gap_median": float(np.median(every[:, 1]))}


def measure_exact(trials: Trials, count: int, seconds: float) -> dict[str, float]:
    """The share of queries for one level whose two ends are certified to 1e-4 within the time for both."""
    shares = {}
    with progress("exact", 2 * count) as advance:
        for name in ("child", "alarm"):
            credal = fit_idm(name, 500, 7)
            closed = []
            for k, question in enumerate(ask(examples.load(name), count, 3)):
                found = trials.fill(
                    f"exact/{name}/{seconds:g}s/{count}/{k}",
                    lambda: certify(credal, question, seconds),  # noqa: B023
                )
                closed.append(found[0][0] <= 2e-4 + 1e-9)  # both ends to 1e-4; sums of floats round
                advance()
            shares[f"exact_{name}"] = float(np.mean(closed))
            print(f"{name}: {np.sum(closed)} of {len(closed)} queries certified in {seconds:g} s each")
    return shares


def measure_dense() -> None:
    """100 binary nodes, 400 arrows: bounds in seconds, coarse where tables would not fit."""
    rng = np.random.default_rng(1)
    names = [f"x{i}" for i in range(100)]
    pairs = [(i, j) for j in range(100) for i in range(j)]
    parents: dict[str, list[str]] = {name: [] for name in names}
    edges = 0
    for k in rng.permutation(len(pairs)):
        i, j = pairs[k]
        if len(parents[names[j]]) < 8 and edges < 400:
            parents[names[j]].append(names[i])
            edges += 1
    dag = DAG.build(parents)
    lower, upper = [], []
    for family in dag.families():
        shape = (2,) * len(family)
        point = rng.dirichlet(np.ones(2), size=shape[:-1]).reshape(shape)
        rows = max(1.0, 500 / 2 ** (len(family) - 1))
        lower.append(Table(family, point * rows / (rows + 1)))
        upper.append(Table(family, (point * rows + 1) / (rows + 1)))
    print("100 binary nodes, 400 arrows, outer bounds:")
    for target, evidence in (("x50", {}), ("x99", {}), ("x90", {"x10": [1], "x40": [0], "x70": [1]})):
        began = time.perf_counter()
        found = bound(dag, lower, upper, [target], np.array([[1.0, 0.0]]), evidence, method="outer")
        spent = time.perf_counter() - began
        note = "coarse: its tables would not fit" if found.coarse else "no table was too large"
        ends = f"[{found.lower[0]:.3f}, {found.upper[0]:.3f}]"
        print(f"  {target} given {len(evidence)}: {ends} in {spent:.1f} s, {note}")


def measure_coverage(trials: Trials, releases: dict[str, int], out: Path) -> dict[str, float]:
    """How often intervals contain the answer without noise, and how wide they are.

    The releases of a network are shared evenly by two numbers of rows and two ε.
    """
    rows: list[tuple[Any, ...]] = []
    columns = ("network", "rows", "ε", "releases", "queries", "from_noise", "width", "calibrated", "width")
    print("".join(f"{name:>11}" for name in columns))
    with progress("coverage", sum(releases.values())) as advance:
        for name, count in releases.items():
            for size in (10_000, 1_000_000):
                custodian = Custodian(examples.load(name), size)
                for epsilon in ("0.5", "1"):
                    part: list[list[float]] = []
                    for release in range(count // 4):
                        part += trials.fill(
                            f"coverage/{name}/{size}/{epsilon}/{release}",
                            lambda: custodian.cover(epsilon, release),  # noqa: B023
                        )
                        advance()
                    rows += [(name, size, epsilon, *found) for found in part]
                    sure, sure_width, likely, likely_width = np.mean(part, axis=0)
                    print(
                        f"{name:>11}{size:>11}{epsilon:>11}{count // 4:>11}{len(part):>11}"
                        f"{sure:>11.3f}{sure_width:>11.4f}{likely:>11.3f}{likely_width:>11.4f}",
                        flush=True,
                    )
                custodian.close()
    header = ["network", "rows", "ε", "from_noise", "from_noise_width", "calibrated", "calibrated_width"]
    write(out / "credal_coverage.csv", header, rows)
    watched = np.array([row[3:] for row in rows if row[0] != "child"], dtype=np.float64).mean(axis=0)
    return {
        "coverage_from_noise": float(watched[0]),
        "coverage_calibrated": float(watched[2]),
        "width_from_noise": float(watched[1]),
        "width_calibrated": float(watched[3]),
    }


AMOUNTS = ("0.1", "0.15", "0.2", "0.3", "0.5", "0.7", "1", "1.5", "2", "3", "5", "7", "10")
"""The ε along the plot."""


def draw_plot(out: Path, amounts: Sequence[str]) -> None:
    """One query over ε from 0.1 to 10: the point, both intervals, and the answer without noise."""
    import matplotlib as mpl

    mpl.use("svg")
    import matplotlib.pyplot as plt

    network = examples.load("asia")
    sample = network.sample(10_000, rng=5)
    asked, given = "lung", {"smoke": "yes"}
    truth = count_frequencies(network, sample.codes()).query(asked, given)["yes"]
    points, sure, likely = [], [], []
    with open_airlock(sample.arrow(), network.schema, budget=PureDP("1000"), unit="add-remove") as airlock:
        for epsilon in amounts:
            private = planned(airlock, network.dag, spend=epsilon)
            points.append(private.query(asked, given)["yes"])
            sure.append(from_noise(private, NOMINAL).query(asked, given).interval("yes"))
            likely.append(calibrated(private, NOMINAL, rng=1).query(asked, given).interval("yes"))
    at = [float(epsilon) for epsilon in amounts]
    mpl.rcParams.update({"svg.hashsalt": "discreet", "svg.fonttype": "none", "font.size": 10})
    figure, axes = plt.subplots(figsize=(7, 4))
    axes.fill_between(at, *zip(*sure, strict=True), color="#d5e1ee", label="guaranteed (from_noise), 95 %")
    axes.fill_between(at, *zip(*likely, strict=True), color="#86a9cc", label="calibrated, 95 %")
    axes.plot(at, points, "o-", color="#1f3f60", markersize=3.5, label="the private network")
    axes.axhline(truth, color="#b03030", linestyle="--", linewidth=1.2, label="without noise")
    axes.set(
        xscale="log", xlabel="ε", ylabel="P(lung = yes | smoke = yes)", xlim=(at[0], at[-1]), ylim=(0, None)
    )
    ticks = [0.1, 0.3, 1, 3, 10]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.set_title("Asia, 10 000 rows, one release for each ε", fontsize=10, loc="left")
    axes.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(out / "intervals.svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    plt.close(figure)
    print(f"wrote {out / 'intervals.svg'}")


def write(path: Path, header: list[str], rows: Sequence[tuple[Any, ...]]) -> None:
    """Write a table as CSV."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)


if __name__ == "__main__":
    main()
