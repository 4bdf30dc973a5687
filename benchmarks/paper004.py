"""Paper 004 again: scores (Figure 2), θ (Figure 3), marginals (Figure 4), classifiers (Figure 5), speed; CSV and SVG.

Reads NAME.csv and NAME.domain.json from --data and skips, with a message, what is not there.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from _paper004_baselines import by_contingency, by_fourier, by_laplace, by_uniform, one_hot, train_privately
from _paper004_data import Data, read_data
from discreet.learning.adaptive import adaptive
from discreet.learning.privbayes import privbayes
from discreet.learning.structure import greedy
from discreet.models.network import Network
from discreet.privacy.airlock import Airlock
from discreet.privacy.budget import PureDP
from discreet.privacy.scores import MutualInformation

EPSILONS = ("0.05", "0.1", "0.2", "0.4", "0.8", "1.6")
TARGETS = {
    "adult": {
        "sex": ["Female"],
        "education": [
            "Bachelors",
            "Masters",
            "Prof-school",
            "Doctorate",
            "Assoc-voc",
            "Assoc-acdm",
            "Some-college",
        ],
        "income": [">50K"],
        "marital_status": ["Never-married"],
    },
    "nltcs": {"iadl5": ["1"], "iadl9": ["1"], "adl5": ["1"], "iadl7": ["1"]},
}
"""What the classifiers predict, and the levels that count as yes."""
UNIT = "replace-one"
"""The paper's unit: n is public, and noise is twice that of add-remove. Every method here pays it."""

Row = tuple[str, str, str, str, float]


def learn(data: Data, epsilon: str, method: str, seed: int) -> Network:
    """A network of this table by one of our methods, or by the paper's as printed."""
    budget = PureDP(epsilon)
    with Airlock.open(data.columns, data.schema, budget=budget, unit=UNIT) as airlock:
        if method == "adaptive":
            return adaptive(airlock, spend=budget)
        if method == "privbayes":
            return privbayes(airlock, spend=budget, rng=seed)
        binary = set(data.schema.sizes.values()) == {2}
        return privbayes(
            airlock, spend=budget, beta="1/2", score="F" if binary else "R", selection="exponential",
            estimation="printed", rng=seed,
        )  # fmt: skip


def average(repeats: int, run: Callable[[int], float]) -> float:
    """The mean over repeats."""
    return float(np.mean([run(seed) for seed in range(repeats)]))


def synthesise(data: Data, epsilon: str, method: str, seed: int) -> dict[str, np.ndarray]:
    """As many synthetic rows as there are true ones."""
    return learn(data, epsilon, method, seed).sample(data.rows, rng=seed).codes()


def compare_scores(data: Data, epsilons: tuple[str, ...], repeats: int) -> list[Row]:
    """Figure 2: ΣI(X, Π) of the graphs that each score finds with half of ε, and without noise."""
    binary = set(data.schema.sizes.values()) == {2}
    rows: list[Row] = []
    for k in (1, 2) if not binary else (2, 4):
        for score in ("F", "I", "R") if binary else ("I", "R"):
            for epsilon in (*epsilons, "1000000"):

                def run(seed: int, k: int = k, score: str = score, epsilon: str = epsilon) -> float:
                    with Airlock.open(data.columns, data.schema, budget=PureDP("1e7"), unit=UNIT) as airlock:
                        half = PureDP(epsilon) / 2
                        found = greedy(
                            airlock, spend=half, k=k, score=score, selection="exponential", rng=seed
                        )
                        families = [family for family in found.dag.families() if len(family) > 1]
                        tables = [table.noisy for table in airlock.reveal(families, reason="Figure 2")]
                    return float(MutualInformation().evaluate(tables).sum())

                name = f"{score}, k={k}" if epsilon != "1000000" else f"{score}, k={k}, no noise"
                rows.append(("figure2", data.name, name, epsilon, average(min(repeats, 3), run)))
    return rows


def compare_usefulness(data: Data, epsilons: tuple[str, ...], repeats: int) -> list[Row]:
    """Figure 3: the error of PrivBayes with consistent tables for several θ."""
    rows: list[Row] = []
    for theta in ("1", "2", "4", "8", "16"):
        for epsilon in epsilons:

            def run(seed: int, theta: str = theta, epsilon: str = epsilon) -> float:
                with Airlock.open(data.columns, data.schema, budget=PureDP(epsilon), unit=UNIT) as airlock:
                    network = privbayes(airlock, spend=epsilon, theta=theta, rng=seed)
                return data.error(network.sample(data.rows, rng=seed).codes())

            rows.append(("figure3", data.name, f"θ={theta}", epsilon, average(repeats, run)))
    return rows


def compare_marginals(data: Data, epsilons: tuple[str, ...], repeats: int, ways: int) -> list[Row]:
    """Figure 4: mean total variation over α-way marginals."""
    binary = set(data.schema.sizes.values()) == {2}
    rows: list[Row] = []
    for epsilon in epsilons:
        value = float(epsilon)
        methods: dict[str, Callable[[int], float]] = {
            method: lambda seed, method=method, epsilon=epsilon: data.error(
                synthesise(data, epsilon, method, seed), ways
            )
            for method in ("adaptive", "privbayes", "printed")
        }
        methods["Laplace"] = lambda seed, value=value: by_laplace(
            data, ways, value, np.random.default_rng(seed)
        )
        methods["Uniform"] = lambda seed: by_uniform(data, ways)
        if binary:
            methods["Fourier"] = lambda seed, value=value: by_fourier(
                data, ways, value, np.random.default_rng(seed)
            )
            methods["Contingency"] = lambda seed, value=value: by_contingency(
                data, ways, value, np.random.default_rng(seed)
            )
        for name, run in methods.items():
            rows.append((f"figure4-{ways}way", data.name, name, epsilon, average(repeats, run)))
    return rows


def compare_classifiers(data: Data, epsilons: tuple[str, ...], repeats: int) -> list[Row]:
    """Figure 5: misclassification on a held-out fifth, of linear SVMs trained on synthetic rows."""
    from sklearn.svm import LinearSVC

    index = np.random.default_rng(5).permutation(data.rows)
    cut = data.rows * 4 // 5
    train, test = data.take(index[:cut]), data.take(index[cut:])
    rows: list[Row] = []
    drawn: dict[tuple[str, str, int], dict[str, np.ndarray]] = {}  # one release serves all four classifiers
    for target, levels in TARGETS.get(data.name, {}).items():
        yes = [data.schema[target].code(level) for level in levels]

        def label(found: Data, target: str = target, yes: list[int] = yes) -> np.ndarray:
            return np.where(np.isin(found.codes[target], yes), 1, -1)

        def fit(found: Data, target: str = target, label: Callable[[Data], np.ndarray] = label) -> float:
            if len(np.unique(label(found))) < 2:
                return float((label(test) != label(found)[0]).mean())
            model = LinearSVC(C=1.0, dual=False).fit(one_hot(found, target), label(found))
            return float((model.predict(one_hot(test, target)) != label(test)).mean())

        majority = 1 if label(train).mean() > 0 else -1
        rows.append(("figure5", data.name, f"NoPrivacy/{target}", "inf", fit(train)))
        rows.append(
            ("figure5", data.name, f"Majority/{target}", "inf", float((label(test) != majority).mean()))
        )
        for epsilon in epsilons:
            for method in ("adaptive", "printed"):

                def run(
                    seed: int,
                    method: str = method,
                    epsilon: str = epsilon,
                    fit: Callable[[Data], float] = fit,
                ) -> float:
                    key = method, epsilon, seed
                    codes = drawn[key] if key in drawn else synthesise(train, epsilon, method, seed)
                    drawn[key] = codes
                    return fit(Data(data.name, data.schema, train.columns, codes))

                rows.append(("figure5", data.name, f"{method}/{target}", epsilon, average(repeats, run)))

            def erm(
                seed: int, epsilon: str = epsilon, target: str = target,
                label: Callable[[Data], np.ndarray] = label,
            ) -> float:  # fmt: skip
                # Four classifiers are trained at once, so each gets a quarter of the budget.
                w = train_privately(
                    one_hot(train, target), label(train), float(epsilon) / 4, np.random.default_rng(seed)
                )
                return float((np.sign(one_hot(test, target) @ w) != label(test)).mean())

            rows.append(("figure5", data.name, f"PrivateERM/{target}", epsilon, average(repeats, erm)))
    return rows


def time_adult(data: Data) -> float:
    """Seconds for graph, tables and as many synthetic rows: vanilla encoding, R, automatic k, after a warm-up."""
    best = np.inf
    for seed in range(3):
        with Airlock.open(data.columns, data.schema, budget=PureDP(1)) as airlock:
            start = time.perf_counter()
            privbayes(airlock, spend=1, rng=seed).sample(data.rows, rng=seed).codes()
            if seed:
                best = min(best, time.perf_counter() - start)
    return float(best)


def time_rows(data: Data, sizes: tuple[int, ...]) -> list[tuple[int, float]]:
    """Seconds of graph and tables for so many rows, drawn with replacement."""
    found = []
    for size in sizes:
        index = np.random.default_rng(1).integers(0, data.rows, size)
        codes = {name: codes[index] for name, codes in data.codes.items()}
        labels = {name: np.array(data.schema[name].levels)[codes[name]] for name in data.schema.names}
        with Airlock.open(labels, data.schema, budget=PureDP(1)) as airlock:
            start = time.perf_counter()
            privbayes(airlock, spend=1, k=1, rng=0)
            found.append((size, time.perf_counter() - start))
    return found


def draw(rows: list[Row], out: Path) -> None:
    """One SVG for each figure and table."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    for figure, name in sorted({row[:2] for row in rows}):
        plt.figure(figsize=(6, 4))
        mine = [row for row in rows if row[:2] == (figure, name) and row[3] not in ("inf", "1000000")]
        for series in dict.fromkeys(row[2] for row in mine):
            points = [(float(row[3]), row[4]) for row in mine if row[2] == series]
            plt.plot(*zip(*points, strict=True), marker="o", label=series)
        plt.xscale("log")
        plt.xlabel("ε")
        plt.title(f"{figure}, {name}")
        plt.legend(fontsize=6)
        plt.tight_layout()
        plt.savefig(out / f"paper004-{figure}-{name}.svg")
        plt.close()


def main() -> None:
    """Run the figures, write CSV and SVG, and print the summary lines last."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two budgets, one repeat, fewer figures")
    parser.add_argument("--data", type=Path, default=Path(__file__).resolve().parents[2] / "shared" / "data")
    parser.add_argument("--names", nargs="*", default=["adult", "nltcs"])
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--out", type=Path, default=Path("results"))
    arguments = parser.parse_args()
    repeats = 1 if arguments.quick else arguments.repeats
    epsilons = ("0.1", "1.6") if arguments.quick else EPSILONS
    tables = {name: found for name in arguments.names if (found := read_data(arguments.data, name))}
    rows: list[Row] = []
    for data in tables.values():
        steps: list[Callable[[], list[Row]]] = [
            lambda data=data: compare_marginals(data, epsilons, repeats, 3),
            lambda data=data: compare_classifiers(data, ("1.6",) if arguments.quick else epsilons, repeats),
        ]
        if not arguments.quick:
            steps += [
                lambda data=data: compare_scores(data, epsilons, repeats),
                lambda data=data: compare_usefulness(data, epsilons, repeats),
                lambda data=data: compare_marginals(
                    data, epsilons, repeats, 4 if data.name == "nltcs" else 2
                ),
            ]
        for step in steps:
            start = time.perf_counter()
            found = step()
            rows += found
            print(
                f"{found[0][0] if found else 'nothing':<16}{data.name:<8}{time.perf_counter() - start:7.1f} s",
                flush=True,
            )
    arguments.out.mkdir(parents=True, exist_ok=True)
    with (arguments.out / "paper004.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["figure", "table", "series", "epsilon", "value"])
        writer.writerows((*row[:4], f"{row[4]:.6f}") for row in rows)
    draw(rows, arguments.out)
    summarise(tables, rows, repeats)


def summarise(tables: dict[str, Data], rows: list[Row], repeats: int) -> None:
    """The last lines: one name and one number each."""
    if "adult" in tables:
        adult = tables["adult"]
        print(f"adult_seconds: {time_adult(adult):.3f}")
        with_ours = average(repeats, lambda seed: adult.error(_add_remove(adult, seed)))
        print(f"adult_tv3: {with_ours:.4f}")
    if "nltcs" in tables:
        nltcs = tables["nltcs"]
        for epsilon, name in (("0.1", "nltcs_tv3_small"), ("1", "nltcs_tv3")):
            for method, suffix in (("adaptive", ""), ("printed", "_printed")):
                error = average(
                    repeats, lambda seed, e=epsilon, m=method: nltcs.error(synthesise(nltcs, e, m, seed))
                )
                print(f"{name}{suffix}: {error:.4f}")
    at_most = {row[2]: row[4] for row in rows if row[0] == "figure5" and row[3] in ("1.6", "inf")}
    gaps = [
        at_most[f"adaptive/{n[10:]}"] - value for n, value in at_most.items() if n.startswith("NoPrivacy/")
    ]
    if gaps:
        print(f"svm_gap: {np.mean(gaps):.4f}")
    if "adult" in tables:
        timed = time_rows(
            tables["adult"], (10_000, 100_000) if repeats == 1 else (10_000, 100_000, 1_000_000)
        )
        for size, seconds in timed:
            print(f"rows {size:>10,}: {seconds:.3f} s")
        (few, quick), (many, slow) = timed[0], timed[-1]
        print(f"rows_linearity: {(slow / quick) / (many / few):.3f}")


def _add_remove(data: Data, seed: int) -> dict[str, np.ndarray]:
    """Synthetic rows at ε = 1 under add-remove, the unit of the peers."""
    with Airlock.open(data.columns, data.schema, budget=PureDP(1)) as airlock:
        return adaptive(airlock, spend=1).sample(data.rows, rng=seed).codes()


if __name__ == "__main__":
    main()
