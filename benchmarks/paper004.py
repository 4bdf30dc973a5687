"""Paper 004 again: scores (Figure 2), θ (Figure 3), marginals (Figure 4), classifiers (Figure 5), speed; CSV and SVG.

Reads NAME.csv and NAME.domain.json from --data and skips, with a message, what is not there. A full run keeps every
single run in --out/paper004-runs.csv and, started again, goes on where it was interrupted.
"""

from __future__ import annotations

import argparse
import csv
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from _paper004_data import QUICK_MARGINALS, Data, read_data
from _paper004_figures import (
    NO_NOISE,
    PRINTED,
    compare_classifiers,
    compare_encodings,
    compare_marginals,
    compare_scores,
    compare_usefulness,
    synthesise,
)
from _paper004_journal import Job, Journal, Row
from discreet.entrance import open_airlock
from discreet.learning.adaptive import adaptive
from discreet.learning.privbayes import privbayes
from discreet.values.budget import PureDP

EPSILONS = ("0.05", "0.1", "0.2", "0.4", "0.8", "1.6")
SUMMARY_RUNS = 3
"""The errors that the last lines print are means of so many runs, or more: one alone can come out either way."""
FIGURES = ("2", "3", "4", "5", "encodings", "summary")


def list_jobs(data: Data, figures: list[str], budgets: list[str], *, quick: bool) -> Iterator[Job]:
    """Every point of the figures, or few of each."""
    epsilons = ("0.1", "1.6") if quick else tuple(budgets)
    if "4" in figures:
        # As printed on bits takes half a minute where k is 3: too long to be quick.
        for job in compare_marginals(data, epsilons, (3,) if quick else (3, 4) if data.binary else (2, 3)):
            if not quick or data.binary or job.series != PRINTED:
                yield job
    if "5" in figures:
        yield from compare_classifiers(data, epsilons[-1:] if quick else epsilons, ours_only=quick)
    if "2" in figures:
        degrees = (
            (2,) if quick and data.binary else (2, 4, 6) if data.binary else (1,) if quick else (1, 2, 3)
        )
        if quick:
            yield from compare_scores(data, epsilons[-1:], degrees, None)
        else:
            yield from compare_scores(data, epsilons, degrees)
    if "3" in figures:
        yield from (
            compare_usefulness(data, ("0.1",), ("1", "4")) if quick else compare_usefulness(data, epsilons)
        )
    if "encodings" in figures:
        kinds = ("vanilla", "hierarchical") if quick else ("vanilla", "hierarchical", "binary")
        yield from compare_encodings(data, epsilons[-1:] if quick else epsilons, kinds)


def list_summary(tables: dict[str, Data], *, quick: bool) -> Iterator[Job]:
    """The errors that the last lines print; the two at ε = 1 are far apart, so one run of each will do to be quick."""
    if "adult" in tables:
        adult = tables["adult"]
        yield Job("summary", "adult", "adult_tv3", "1", lambda seed: adult.error(_add_remove(adult, seed)))
    if "nltcs" in tables:
        nltcs = tables["nltcs"]
        for epsilon, name in (("0.1", "nltcs_tv3_small"), ("1", "nltcs_tv3")):
            for method, suffix in (("adaptive", ""), ("printed", "_printed")):
                yield Job(
                    "summary", "nltcs", f"{name}{suffix}", epsilon,
                    lambda seed, e=epsilon, m=method: nltcs.error(synthesise(nltcs, e, m, seed)),
                    1 if quick and epsilon == "1" else None,
                )  # fmt: skip


def time_adult(data: Data) -> float:
    """Seconds for graph, tables and as many synthetic rows: vanilla encoding, R, automatic k, after a warm-up."""
    best = np.inf
    for seed in range(3):
        with open_airlock(data.columns, data.schema, budget=PureDP(1)) as airlock:
            start = time.perf_counter()
            privbayes(airlock, spend=1, rng=seed).sample(data.rows, rng=seed).codes()
            if seed:
                best = min(best, time.perf_counter() - start)
    return float(best)


def time_binary(data: Data) -> float:
    """Seconds for graph and tables with the binary encoding and F at k = 3."""
    with open_airlock(data.columns, data.schema, budget=PureDP(1)) as airlock:
        start = time.perf_counter()
        privbayes(airlock, spend=1, encoding="binary", score="F", k=3, rng=0)
        return time.perf_counter() - start


def time_rows(data: Data, sizes: tuple[int, ...]) -> list[tuple[int, float]]:
    """Seconds of graph and tables at k = 2 for so many rows, drawn with replacement; after a warm-up."""
    found = []
    for size in (sizes[0], *sizes):  # the first one compiles
        with open_airlock(_enlarge(data, size), data.schema, budget=PureDP(2)) as airlock:
            seconds = []
            for seed in range(2 if size <= 10**6 else 1):
                start = time.perf_counter()
                privbayes(airlock, spend=1, k=2, rng=seed)
                seconds.append(time.perf_counter() - start)
        found.append((size, min(seconds)))
    return found[1:]


def _enlarge(data: Data, size: int) -> Any:
    """So many rows, drawn with replacement, as an Arrow table that holds a byte for each value."""
    import pyarrow as pa

    index = np.random.default_rng(1).integers(0, data.rows, size)
    columns = {
        name: pa.DictionaryArray.from_arrays(data.codes[name][index], list(data.schema[name].levels))
        for name in data.schema.names
    }
    return pa.table(columns)


MEANINGS = {
    "figure2": "ΣI(X, Π) in bits",
    "figure3": "mean total variation",
    "figure4": "mean total variation",
    "figure5": "misclassification",
    "encodings": "mean total variation",
}
"""What the vertical axis of each figure shows."""


def draw(rows: list[Row], out: Path) -> None:
    """One SVG for each figure and table, with a panel for each classifier's target or k; dotted is what needs no ε."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    plt.rcParams["svg.hashsalt"] = "paper004"  # the same figures give the same bytes
    for figure, name in sorted({row[:2] for row in rows if row[0] != "summary"}):
        mine = [row for row in rows if row[:2] == (figure, name)]
        targets = list(dict.fromkeys(split_series(row[2])[1] for row in mine))
        height = 1 + (len(targets) > 3)
        width = -(-len(targets) // height)
        drawing, panels = plt.subplots(
            height, width, figsize=(7 if width < 3 else 10, 3 + height), squeeze=False, layout="constrained"
        )
        shown: dict[str, Any] = {}
        for target, axes in zip(targets, panels.flat, strict=False):
            draw_panel(axes, [row for row in mine if split_series(row[2])[1] == target])
            shown |= {label: line for line, label in zip(*axes.get_legend_handles_labels(), strict=True)}
            axes.set_ylabel(MEANINGS[figure.partition("-")[0]], fontsize=8)
            axes.set_title(f"{figure}, {name} {target}", fontsize=9)
        drawing.legend(
            list(shown.values()), list(shown), loc="outside lower center", ncols=5, fontsize=7, frameon=False
        )
        drawing.savefig(out / f"paper004-{figure}-{name}.svg", metadata={"Date": None})
        plt.close(drawing)


def split_series(series: str) -> tuple[str, str]:
    """What a line is called, and the panel that it is in: adaptive/sex is adaptive in sex, F, k=2 is F in k=2."""
    method, _, target = series.partition("/")
    found = re.fullmatch(r"(\w), (k=\d)(.*)", method)
    return (f"{found[1]}{found[3]}", found[2]) if found else (method, target)


def draw_panel(axes: Any, rows: list[Row]) -> None:
    """The series of one panel over ε; bars are standard errors."""
    lines = 0
    for series in dict.fromkeys(row[2] for row in rows):
        points = [row[3:6] for row in rows if row[2] == series]
        label, _ = split_series(series)
        if points[0][0] in ("inf", NO_NOISE):
            axes.axhline(points[0][1], linestyle=":", linewidth=0.8, color="0.5")
            # One beside the other, because lines can be too close for names above each other.
            axes.annotate(
                label, (0.02 + 0.33 * lines, points[0][1]), xycoords=("axes fraction", "data"), fontsize=6
            )
            lines += 1
        else:
            budgets, values, spreads = zip(*points, strict=True)
            axes.errorbar(
                [float(e) for e in budgets], values, np.nan_to_num(spreads), fmt="o-", markersize=3, label=label,
                capsize=2, linewidth=1,
            )  # fmt: skip
    budgets = sorted({row[3] for row in rows if row[3] not in ("inf", NO_NOISE)}, key=float)
    axes.set_xscale("log")
    axes.set_xticks([float(e) for e in budgets], budgets, fontsize=7)
    axes.minorticks_off()
    axes.set_xlabel("ε", fontsize=8)


def main() -> None:
    """Run the figures, write CSV and SVG, and print the summary lines last."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few budgets, one repeat, nothing is kept")
    parser.add_argument("--data", type=Path, default=Path(__file__).resolve().parents[2] / "shared" / "data")
    parser.add_argument("--names", nargs="*", default=["adult", "nltcs"])
    parser.add_argument("--figures", nargs="*", choices=FIGURES, default=list(FIGURES))
    parser.add_argument("--epsilons", nargs="*", default=list(EPSILONS))
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--few", action="store_true", help="200 marginals instead of all")
    parser.add_argument("--out", type=Path, default=Path("results"))
    arguments = parser.parse_args()
    repeats = 1 if arguments.quick else arguments.repeats
    most = QUICK_MARGINALS if arguments.quick or arguments.few else None
    tables = {name: found for name in arguments.names if (found := read_data(arguments.data, name, most))}
    arguments.out.mkdir(parents=True, exist_ok=True)
    journal = Journal.open(None if arguments.quick else arguments.out / "paper004-runs.csv")
    jobs = [
        job
        for data in tables.values()
        for job in list_jobs(data, arguments.figures, arguments.epsilons, quick=arguments.quick)
    ]
    rows = journal.measure(jobs, repeats)
    if "summary" in arguments.figures:
        summary = list(list_summary(tables, quick=arguments.quick))
        rows += journal.measure(summary, max(repeats, SUMMARY_RUNS))
    with (arguments.out / "paper004.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["figure", "table", "series", "epsilon", "value", "standard_error", "runs"])
        writer.writerows((*row[:4], f"{row[4]:.6f}", f"{row[5]:.6f}", row[6]) for row in rows)
    draw(rows, arguments.out)
    summarise(tables if "summary" in arguments.figures else {}, rows, quick=arguments.quick)


def summarise(tables: dict[str, Data], rows: list[Row], *, quick: bool) -> None:
    """The last lines: one name and one number each."""
    adult = tables.get("adult")
    timed: list[tuple[int, float]] = []
    if adult is not None:
        timed = time_rows(adult, (10**4, 10**5, 10**6) if quick else (10**4, 10**5, 10**6, 10**7))
        for size, seconds in timed:
            print(f"rows {size:>10,}: {seconds:.3f} s")
        if not quick:
            print(f"binary_f_seconds: {time_binary(adult):.1f}")
        print(f"adult_seconds: {time_adult(adult):.3f}")
    for row in rows:
        if row[0] == "summary":
            print(f"{row[2]}: {row[4]:.4f}")
    at_most = {row[1:3]: row[4] for row in rows if row[0] == "figure5" and row[3] in ("1.6", "inf")}
    gaps = [
        at_most[table, series.replace("NoPrivacy", "adaptive")] - value
        for (table, series), value in at_most.items()
        if series.startswith("NoPrivacy/")
    ]
    if gaps:
        print(f"svm_gap: {np.mean(gaps):.4f}")
    if timed:
        (some, fast), (many, slow) = timed[-2:]
        print(f"rows_linearity: {(slow / fast) / (many / some):.3f}")


def _add_remove(data: Data, seed: int) -> dict[str, np.ndarray]:
    """Synthetic rows at ε = 1 under add-remove, the unit of the peers."""
    with open_airlock(data.columns, data.schema, budget=PureDP(1)) as airlock:
        return adaptive(airlock, spend=1).sample(data.rows, rng=seed).codes()


if __name__ == "__main__":
    main()
