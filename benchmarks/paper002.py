"""Paper 002 again: naive Bayes by four private mechanisms (Figure 1), regression (Figure 2), Fourier against Laplace.

Writes results/paper002*.csv and .svg, and ends in one line for each figure. `--quick` takes under a minute.
"""

from __future__ import annotations

import argparse
import csv
import math
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from _paper002_peer import fit_peer
from _paper002_regression import HEADER, make_trials, shuffle_visits, sweep
from _running import digest_sources, keep
from discreet.entrance import open_airlock
from discreet.networks import examples
from discreet.papers import posterior
from discreet.papers.estimators.naive_bayes import PrivateNaiveBayes
from discreet.papers.estimators.shared import PrivacyWarning
from discreet.values.budget import PureDP
from discreet.values.graph import DAG
from discreet.values.schema import Schema

FEATURES, ROWS, TRAINING = 16, 1000, 50
STEALTH = math.log(10)
"""The t at which [002, Cor. 3] promises that nine releases out of ten have no negative cell; all have none."""
METHODS: dict[str, tuple[str, dict[str, object]]] = {
    "laplace": ("laplace", {}),
    "fourier": ("fourier", {}),
    "fourier, printed": ("fourier", {"sensitivity": "paper", "stealth": STEALTH}),
    "sampler": ("sample", {"points": 257}),
    "map": ("maximum", {"points": 257}),
}
Trial = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def make_trial(rng: np.random.Generator, training: int = TRAINING) -> Trial:
    """Rows of a naive Bayes model whose probabilities are uniform draws, split into training and test rows."""
    chances = rng.random((2, FEATURES))
    y = (rng.random(ROWS - TRAINING + training) < rng.uniform(0.3, 0.7)).astype(np.int64)
    X = (rng.random((y.size, FEATURES)) < chances[y]).astype(np.int64)
    return X[:training], y[:training], X[training:], y[training:]


def score_plain(trial: Trial) -> float:
    """The accuracy of the posterior's mean without noise."""
    X, y, test, labels = trial
    logs = []
    for label in (0, 1):
        of_class = X[y == label]
        on = (of_class.sum(axis=0) + 1) / (len(of_class) + 2)
        prior = (len(of_class) + 1) / (len(y) + 2)
        logs.append(np.log(prior) + test @ np.log(on) + (1 - test) @ np.log(1 - on))
    return float(((logs[1] > logs[0]) == labels).mean())


def run_figure_1(trials: Sequence[Trial], epsilons: Sequence[float]) -> dict[tuple[str, float], list[float]]:
    """Accuracies of every mechanism at every ε, in the unit of the paper: rows are replaced, n is public."""
    found: dict[tuple[str, float], list[float]] = {}
    for trial in trials:
        X, y, test, labels = trial
        for epsilon in epsilons:
            found.setdefault(("plain", epsilon), []).append(score_plain(trial))
            for name, (mechanism, options) in METHODS.items():
                model = PrivateNaiveBayes(
                    epsilon=epsilon, mechanism=mechanism, options=options, unit="replace-one"
                )
                found.setdefault((name, epsilon), []).append(float(model.fit(X, y).score(test, labels)))
            # The paper charges once what we charge for each of the |I| = 17 nodes.
            cheap = PrivateNaiveBayes(
                epsilon=epsilon * (FEATURES + 1),
                mechanism="sample",
                options={"points": 257},
                unit="replace-one",
            )
            found.setdefault(("sampler, printed cost", epsilon), []).append(
                float(cheap.fit(X, y).score(test, labels))
            )
    return found


def make_band(nodes: int, parents: int) -> DAG:
    """A graph in which every node has the so many nodes before it as parents; all of them: the complete graph."""
    names = [f"x{i:02d}" for i in range(nodes)]
    return DAG.build({name: names[max(0, i - parents) : i] for i, name in enumerate(names)})


def compare_errors(
    dag: DAG, schema: Schema, repeats: int, rng: np.random.Generator, unit: str
) -> dict[str, float]:
    """The mean L1 error of the families' noisy tables at ε = 1, before anything is cut off."""
    # The error of unclipped tables is that of the noise alone, so any rows will do.
    rows = {
        name: np.array(schema[name].levels)[rng.integers(0, schema[name].size, 1000)] for name in dag.nodes
    }
    budget = PureDP(10**6)
    errors: dict[str, list[float]] = {"laplace": [], "fourier": [], "printed": []}
    with open_airlock(rows, schema, budget=budget, unit=unit) as airlock:
        truth = airlock.reveal(dag.families(), reason="to measure the error of simulated rows")
        for _ in range(repeats):
            for name, released in [
                ("laplace", posterior.laplace(airlock, dag, spend=1)),
                ("fourier", posterior.fourier(airlock, dag, spend=1)),
                ("printed", posterior.fourier(airlock, dag, spend=1, sensitivity="paper")),
            ]:
                assert released.updates is not None
                pairs = zip(released.updates, truth, strict=True)
                errors[name].append(sum(float(np.abs(a.values - b.noisy.values).sum()) for a, b in pairs))
    return {name: float(np.mean(values)) for name, values in errors.items()}


def cross_over(repeats: int, rng: np.random.Generator, units: Sequence[str]) -> list[tuple[object, ...]]:
    """Error ratios Fourier/Laplace: long bands and complete graphs of bits, and four networks from the literature."""
    bands = [("band", make_band(16, parents)) for parents in range(6)]
    bands += [("complete", make_band(nodes, nodes - 1)) for nodes in (3, 4, 5, 6, 8)]
    cases = [(kind, dag, Schema.of({name: ["0", "1"] for name in dag.nodes})) for kind, dag in bands]
    for name in examples.names():
        network = examples.load(name)
        cases.append((name, network.dag, network.schema))
    lines = []
    for unit in units:
        for kind, dag, schema in cases:
            # The fewer coefficients there are, the more a single draw decides.
            runs = repeats * (10 if len(dag) < 8 else 1)
            found = compare_errors(dag, schema, runs, rng, unit)
            ratios = [found[name] / found["laplace"] for name in ("fourier", "printed")]
            parents = max(map(len, dag.parents))
            lines.append((unit, kind, len(dag), parents, found["laplace"], *ratios))
            print(
                f"{unit}, {kind}, {len(dag)} nodes, up to {parents} parents: "
                f"exact {ratios[0]:.2f}, printed {ratios[1]:.2f}"
            )
    return lines


def print_crossover(lines: Sequence[Sequence[object]]) -> None:
    """From how many parents on Laplace has the smaller error, by unit and kind of graph."""
    for unit in dict.fromkeys(line[0] for line in lines):
        for kind in ("band", "complete"):
            for column, name in ((5, "exact"), (6, "printed")):
                worse = [
                    line[3] for line in lines if line[:2] == (unit, kind) and float(str(line[column])) > 1.0
                ]
                start = f"from {worse[0]} parents on" if worse else "nowhere"
                print(f"crossover, {unit}, {kind}, {name} sensitivity: Laplace is better {start}")


def time_million(rng: np.random.Generator) -> float:
    """Seconds to fit a million rows of 16 bits and a label, the best of three after a first fit."""
    y = rng.integers(0, 2, 1_000_000).astype(np.uint8)
    X = (rng.random((1_000_000, FEATURES)) < np.where(y[:, None], 0.6, 0.4)).astype(np.uint8)
    seconds = []
    for _ in range(4):
        start = time.perf_counter()
        PrivateNaiveBayes().fit(X, y)
        seconds.append(time.perf_counter() - start)
    return min(seconds[1:])


def draw_many_levels(repeats: int, rng: np.random.Generator, levels: int = 16) -> dict[str, float]:
    """The mean L1 error of one attribute of so many levels, 20 000 rows, ε = 20; guessing uniformly is beside it."""
    names = [f"{i:02d}" for i in range(levels)]
    schema, dag = Schema.of({"x": names}), DAG.build({"x": []})
    found: dict[str, list[float]] = {"uniform": [], "sample": [], "maximum": []}
    for _ in range(repeats):
        truth = rng.dirichlet(np.ones(levels))
        rows = {"x": np.array(names)[rng.choice(levels, 20_000, p=truth)]}
        with open_airlock(rows, schema, budget=PureDP(40), unit="replace-one") as airlock:
            (drawn,) = posterior.sample(airlock, dag, spend=20)
            best = posterior.maximum(airlock, dag, spend=20)
        for name, values in (
            ("uniform", np.full(levels, 1 / levels)),
            ("sample", drawn.cpts[0].values),
            ("maximum", best.cpts[0].values),
        ):
            found[name].append(float(np.abs(values - truth).sum()))
    return {name: float(np.mean(values)) for name, values in found.items()}


def write_csv(path: Path, header: Sequence[str], lines: Sequence[Sequence[object]]) -> None:
    """A table of results."""
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *lines])


def draw(path: Path, lines: Sequence[Sequence[Any]], regression: Sequence[Sequence[Any]]) -> None:
    """Figure 1 beside Figure 2, with standard errors, from the lines of their CSV files."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    pyplot.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "paper002"})
    tables = list(dict.fromkeys(line[0] for line in regression))
    figure, (left, *right) = pyplot.subplots(
        1, 1 + len(tables), figsize=(5 * (1 + len(tables)), 4), layout="constrained"
    )
    for name in dict.fromkeys(line[0] for line in lines):
        points = [line[1:4] for line in lines if line[0] == name]
        left.errorbar(*zip(*points, strict=True), fmt="o-", markersize=3, capsize=2, label=name)
    left.set(xscale="log", xlabel="ε", ylabel="accuracy", title="Naive Bayes, 50 rows")
    left.legend(fontsize="small")
    kinds = {"ridge": "no privacy", "sample": "sampler", "statistics": "noisy sums"}
    for table, panel in zip(tables, right, strict=True):
        for method in kinds:
            for at_one in (False, True):
                points = [
                    (line[1], line[5], line[6])
                    for line in regression
                    if line[0] == table and line[3] == method and (line[4] == 1.0) == at_one
                ]
                if points:
                    label = kinds[method] + (", ε = 1" if at_one else ", as printed" * (method == "sample"))
                    panel.errorbar(*zip(*points, strict=True), fmt="o-", markersize=3, capsize=2, label=label)
        panel.set(
            xscale="log", yscale="log", xlabel="prior precision b", ylabel="mean squared error", title=table
        )
        panel.legend(fontsize="small")
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Run everything and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer repeats, fewer rows")
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--repeats", type=int, default=100, help="of Figure 1")
    parser.add_argument("--rows", type=int, default=370_000, help="of Figure 2")
    parser.add_argument("--no-peer", action="store_true", help="leave diffprivlib out")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", PrivacyWarning)
    arguments.out.mkdir(parents=True, exist_ok=True)
    quick: bool = arguments.quick
    folder = None if quick else arguments.out / "paper002"
    current = digest_sources(["papers/posterior/*.py", "papers/estimators/*.py"], Path(__file__))

    def part(name: str, make: Callable[[np.random.Generator], Any]) -> Any:
        """One part, kept for a later run with the same settings."""
        settings = f"{current} {arguments.repeats} {arguments.rows} {arguments.no_peer}"
        seed = [2, *name.encode()]
        return keep(folder and folder / f"{name}.json", settings, lambda: make(np.random.default_rng(seed)))

    def classify(count: int, training: int, epsilons: list[float], rng: np.random.Generator) -> list[Any]:
        trials = [make_trial(rng, training) for _ in range(count)]
        accuracies = run_figure_1(trials, epsilons)
        # Making its environment takes minutes: a quick run only uses one that is there.
        peer = {} if arguments.no_peer else fit_peer(list(trials), epsilons, install=not quick)
        for epsilon, scores in peer.items():
            accuracies["diffprivlib", epsilon] = scores
        return [[name, epsilon, list(map(float, found))] for (name, epsilon), found in accuracies.items()]

    repeats = 10 if quick else arguments.repeats
    epsilons = [1.0, 100.0] if quick else [0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0]
    accuracies = {
        (name, epsilon): found
        for name, epsilon, found in part("figure1", lambda rng: classify(repeats, TRAINING, epsilons, rng))
    }
    lines = [
        (name, epsilon, np.mean(found), np.std(found, ddof=1) / math.sqrt(len(found)))
        for (name, epsilon), found in accuracies.items()
    ]
    write_csv(
        arguments.out / "paper002_figure1.csv", ("mechanism", "epsilon", "accuracy", "standard_error"), lines
    )
    for name, epsilon, mean, error in sorted(lines, key=lambda line: (line[1], line[0])):
        print(f"ε = {epsilon:g}, {name}: accuracy {mean:.3f} ± {error:.3f}")

    for name, _, found in part("more_rows", lambda rng: classify(2 if quick else 10, 5000, [1.0], rng)):
        print(f"ε = 1, 5000 rows, {name}: accuracy {np.mean(found):.3f}")

    def regress(_: np.random.Generator) -> list[Any]:
        made = make_trials(20_000 if quick else arguments.rows, seed=22)
        found = sweep("made up", made, 2 if quick else 3)
        return found + sweep("visits", shuffle_visits(seed=23), 2 if quick else 5, share=0.5)

    regression = part("figure2", regress)
    write_csv(arguments.out / "paper002_figure2.csv", HEADER, regression)
    for table, precision, _, method, epsilon, mse, error, _ in regression:
        print(
            f"{table}, b = {precision:g}, {method}, ε = {epsilon:.4g}: mean squared error {mse:.5f} ± {error:.5f}"
        )

    units = ("replace-one",) if quick else ("replace-one", "add-remove")
    crossing = part("crossover", lambda rng: cross_over(2 if quick else 8, rng, units))
    header = (
        "unit",
        "graph",
        "nodes",
        "parents",
        "laplace_l1",
        "fourier_over_laplace",
        "printed_over_laplace",
    )
    write_csv(arguments.out / "paper002_crossover.csv", header, crossing)
    print_crossover(crossing)
    draw(arguments.out / "paper002.svg", lines, regression)
    ratio = {(line[0], line[1], line[2], line[3]): float(str(line[5])) for line in crossing}

    def accuracy(name: str) -> float:
        return float(np.mean(accuracies.get((name, 1.0), [math.nan])))

    many = part("many_levels", lambda rng: draw_many_levels(4 if quick else 40, rng))
    print(f"16 levels, 20 000 rows, ε = 20: guessing uniformly is off by {many['uniform']:.3f}")
    for name, value in [
        ("fourier_over_laplace_dense", ratio["replace-one", "complete", 4, 3]),
        ("fourier_over_laplace_sparse", ratio["replace-one", "alarm", 37, 4]),
        ("accuracy_plain", accuracy("plain")),
        ("accuracy_laplace", accuracy("laplace")),
        ("accuracy_fourier", accuracy("fourier")),
        ("accuracy_sampler", accuracy("sampler")),
        ("accuracy_map", accuracy("map")),
        ("accuracy_peer", accuracy("diffprivlib")),
        ("sample_error_16_levels", many["sample"]),
        ("map_error_16_levels", many["maximum"]),
        ("fit_million_s", time_million(np.random.default_rng(2))),
    ]:
        print(f"{name}: {value:.4g}")


if __name__ == "__main__":
    main()
