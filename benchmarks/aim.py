"""Our synthetic rows against AIM's: the same tables, (ε, δ) and measure; error, seconds, memory.

A run of AIM takes from ten minutes to hours, so its figures are recorded, with version, seconds and memory: those
beside the tables, and `aim-figures.csv` here. Ours are fitted anew, each in a process of its own, in the ρ that (ε, δ)
affords and, beside it, in pure ε, which promises more; their seconds are those that a processor worked. The error is
the mean total variation over 100 triples of attributes, of as many rows as there are true ones, balanced or independent
and of the network itself where its tables are small enough. --quick fits ours once, on the tables for which AIM's
figures are there, at ε = 1.
"""

from __future__ import annotations

import argparse
import csv
import io
import itertools
import json
import math
import resource
import subprocess
import sys
import time
import zipfile
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from _distances import count_shares
from _running import progress
from discreet.values.table import count_cells

HERE = Path(__file__).resolve().parent
DELTA = "1e-5"
TABLES = ("adult", "titanic", "nltcs", "salary", "adult_coarse", "msnbc", "fire")
"""adult_coarse is the table of paper 004, with at most 42 levels an attribute; the others are those of AIM's family."""
UNSEEN = ("salary", "msnbc", "fire")
"""Tables that had no part in the choice of any constant of the search."""
WIDE = ("wide110", "wide300")
"""Made-up tables of so many attributes, for time and memory alone: 50 000 rows, each attribute like the one before."""
EPSILONS = ("0.1", "1", "10")
TRIPLES = 100
NETWORK_CELLS = 2**20
"""The network itself is compared where no triple has more cells."""
TARGETS = {"adult": "income>50K", "nltcs": None}
"""What classifiers predict; None for the last attribute."""

Codes = dict[str, np.ndarray]


@dataclass(frozen=True, slots=True)
class Run:
    """One fit of ours."""

    table: str
    budget: str
    epsilon: str
    seed: int
    seconds: float
    peak_mb: float
    balanced: float
    independent: float
    network: float


def read_codes(folder: Path, name: str) -> tuple[dict[str, int], Codes]:
    """The sizes and the codes of a table."""
    import pyarrow.csv

    if name in WIDE:
        return make_wide(int(name.removeprefix("wide")))
    if name in ("nltcs", "adult_coarse"):
        from _paper004_data import read_data

        data = read_data(folder, name.removesuffix("_coarse"))
        if data is None:
            raise SystemExit(2)
        return dict(data.schema.sizes), dict(data.codes)
    place = folder / "aim"
    sizes = json.loads((place / f"{name}-domain.json").read_text("utf-8"))
    with zipfile.ZipFile(place / f"{name}.zip") as file:
        (inside,) = [found for found in file.namelist() if found.endswith(".csv")]
        types = pyarrow.csv.ConvertOptions(column_types=dict.fromkeys(sizes, pyarrow.int16()))
        rows = pyarrow.csv.read_csv(io.BytesIO(file.read(inside)), convert_options=types)
    codes = {column: np.array(rows[column]) for column in sizes}
    del rows
    pyarrow.default_memory_pool().release_unused()  # or the text of the file would count as memory of a search
    return sizes, codes


def make_wide(attributes: int, rows: int = 50_000) -> tuple[dict[str, int], Codes]:
    """Attributes of 2 to 10 levels, half of whose rows follow the attribute before."""
    rng = np.random.default_rng(1)
    sizes = {f"q{i}": int(rng.integers(2, 11)) for i in range(attributes)}
    codes: Codes = {}
    before = np.zeros(rows, dtype=np.int16)
    for name, size in sizes.items():
        drawn = rng.integers(0, size, rows)
        before = codes[name] = np.where(rng.random(rows) < 0.5, before % size, drawn).astype(np.int16)
    return sizes, codes


def say_effort(folder: Path, table: str, budget: str, epsilon: str) -> str:
    """What `plan` says beforehand of the time and memory of a search."""
    from discreet.judge.preview import rehearse
    from discreet.values.schema import Schema

    sizes, codes = read_codes(folder, table)
    schema = Schema.of({name: range(size) for name, size in sizes.items()})
    rows = len(next(iter(codes.values())))
    return str(rehearse(schema, None, spend=read_spend(budget, epsilon), rows=rows).effort)


def read_spend(budget: str, epsilon: str):  # type: ignore[no-untyped-def]
    """The pure ε, or the ρ that (ε, δ) affords."""
    from discreet.values.budget import ZCDP, ApproxDP, PureDP, afford_zcdp

    if budget == "rho":
        return ZCDP(f"{float(afford_zcdp(ApproxDP(epsilon, DELTA)).rho):.9f}")
    return PureDP(epsilon)


def pick_triples(names: list[str]) -> list[tuple[str, ...]]:
    """The triples that AIM's figures are means over."""
    every = list(itertools.combinations(names, 3))
    picked = np.random.RandomState(0).choice(len(every), min(TRIPLES, len(every)), replace=False)
    return [every[i] for i in picked]


def fit(sizes: dict[str, int], codes: Codes, budget: str, epsilon: str):  # type: ignore[no-untyped-def]
    """Our default search."""
    from discreet.entrance import open_airlock
    from discreet.learning.adaptive import adaptive
    from discreet.values.schema import Schema

    spend = read_spend(budget, epsilon)
    schema = Schema.of({name: range(size) for name, size in sizes.items()})
    with open_airlock(codes, schema, budget=spend) as airlock:
        return adaptive(airlock, spend=spend)


def work(folder: Path, table: str, budget: str, epsilon: str, seed: int) -> Run:
    """Fit and compare, in this process."""
    sizes, codes = read_codes(folder, table)
    start = time.process_time()
    network = fit(sizes, codes, budget, epsilon)
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    triples = pick_triples(list(sizes))
    rows = len(next(iter(codes.values())))
    true = [count_shares(codes, sizes, members) for members in triples]

    def compare(others: list[np.ndarray]) -> float:
        return float(np.mean([np.abs(p - q).sum() / 2 for p, q in zip(true, others, strict=True)]))

    def draw(balanced: bool) -> float:
        drawn = network.sample(rows, rng=seed, balanced=balanced).codes()
        return compare([count_shares(drawn, sizes, members) for members in triples])

    itself = math.nan
    if max(count_cells(sizes[name] for name in members) for members in triples) <= NETWORK_CELLS:
        itself = compare(
            [network.engine.joint(members, {}).arrange(members).values.ravel() for members in triples]
        )
    return Run(table, budget, epsilon, seed, seconds, peak, draw(True), draw(False), itself)


def train(folder: Path, table: str, seed: int) -> tuple[float, float]:
    """The mean area under the curve of three classifiers on held-out rows: trained on true rows, on synthetic ones."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder
    from sklearn.tree import DecisionTreeClassifier

    sizes, codes = read_codes(folder, table)
    target = TARGETS[table] or list(sizes)[-1]
    order = np.random.default_rng(seed).permutation(len(codes[target]))
    held, kept = np.split(order, [len(order) // 5])
    network = fit(sizes, {name: column[kept] for name, column in codes.items()}, "rho", "1")
    drawn = network.sample(len(kept), rng=seed).codes()
    names = [name for name in sizes if name != target]

    def features(rows: Codes, index: np.ndarray | slice) -> np.ndarray:
        return np.column_stack([rows[name][index] for name in names])

    scores = []
    for model in (
        make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression(max_iter=300)),
        DecisionTreeClassifier(max_depth=8, random_state=0),
        HistGradientBoostingClassifier(random_state=0),
    ):
        for rows, index in ((codes, kept), (drawn, slice(None))):
            model.fit(features(rows, index), rows[target][index])
            judged = model.predict_proba(features(codes, held))[:, 1]
            scores.append(roc_auc_score(codes[target][held], judged))
    return float(np.mean(scores[::2])), float(np.mean(scores[1::2]))


def run_all(folder: Path, jobs: list[tuple[str, str, str, int]], path: Path) -> list[Run]:
    """Every job in a process of its own, unless the file has it; what was found is added there at once."""
    runs = read_runs(path)
    done = {(run.table, run.budget, run.epsilon, run.seed) for run in runs}
    with progress("fits", len(jobs)) as advance:
        for job in jobs:
            if job not in done:
                task = [sys.executable, str(HERE / "aim.py"), "--data", str(folder), "--one", *map(str, job)]
                told = subprocess.run(task, capture_output=True, text=True, check=False)
                if told.returncode != 0:
                    print(f"{job}: {told.stderr.strip()[-300:]}", file=sys.stderr, flush=True)
                    continue
                runs.append(Run(**json.loads(told.stdout.splitlines()[-1])))
                print(runs[-1], file=sys.stderr, flush=True)
                with path.open("a", newline="", encoding="utf-8") as file:
                    writer = csv.DictWriter(file, fieldnames=list(asdict(runs[-1])))
                    if file.tell() == 0:
                        writer.writeheader()
                    writer.writerow(asdict(runs[-1]))
            advance()
    return runs


def read_runs(path: Path) -> list[Run]:
    """What an earlier run of this benchmark found, so that it can be made in pieces."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return [
            Run(
                found["table"], found["budget"], found["epsilon"], int(found["seed"]),
                *(float(found[name]) for name in list(found)[4:]),
            )
            for found in csv.DictReader(file)
        ]  # fmt: skip


def read_figures(folder: Path, method: str = "AIM") -> dict[tuple[str, str], dict[str, float]]:
    """A method's recorded figures by table and ε; of several, the one with the least error."""
    best: dict[tuple[str, str], dict[str, float]] = {}
    for path in (folder / "aim" / "aim-figures.csv", HERE / "aim-figures.csv"):
        if not path.exists():
            continue
        with path.open(newline="", encoding="utf-8") as file:
            for line in csv.DictReader(file):
                if method not in line["implementation"]:
                    continue
                found = {name: float(line[name]) for name in ("seconds", "peak_mb", "tv3")}
                key = line["table"], line["epsilon"]
                if key not in best or found["tv3"] < best[key]["tv3"]:
                    best[key] = found
    return best


def average(values: list[float]) -> float:
    """The geometric mean; nan of nothing."""
    return float(np.exp(np.mean(np.log(values)))) if values else math.nan


def show(runs: list[Run], figures: dict[tuple[str, str], dict[str, float]]) -> None:
    """One line a table and budget, then how we compare."""
    groups: dict[tuple[str, str, str], list[Run]] = {}
    for found in runs:
        groups.setdefault((found.table, found.epsilon, found.budget), []).append(found)
    head = f"{'table':<14}{'ε':>5} {'budget':<8}{'runs':>5}{'balanced':>10}{'independent':>12}{'network':>9}"
    print(f"{head}{'s':>8}{'MB':>6}{'AIM':>9}{'AIM s':>8}")
    for (table, epsilon, budget), found in sorted(groups.items()):
        means = [
            float(np.mean([getattr(one, name) for one in found]))
            for name in ("balanced", "independent", "network", "seconds")
        ]
        peak = max(one.peak_mb for one in found)
        theirs = figures.get((table, epsilon))
        told = f"{theirs['tv3']:>9.4f}{theirs['seconds']:>8.0f}" if theirs else ""
        print(
            f"{table:<14}{epsilon:>5} {budget:<8}{len(found):>5}{means[0]:>10.4f}{means[1]:>12.4f}{means[2]:>9.4f}"
            f"{means[3]:>8.1f}{peak:>6.0f}{told}"
        )
    over: dict[str, list[float]] = {}
    faster: list[float] = []
    for (table, epsilon, budget), found in groups.items():
        theirs = figures.get((table, epsilon))
        if theirs is not None:
            ratio = float(np.mean([one.balanced for one in found])) / theirs["tv3"]
            over.setdefault(f"{budget} {epsilon}", []).append(ratio)
            if budget == "rho" and epsilon == "1":
                faster.append(theirs["seconds"] / float(np.mean([one.seconds for one in found])))
    print(f"error_over_aim: {average(over.get('rho 1', [])):.3f}")
    print(f"worst_over_aim: {max(over.get('rho 1', [math.nan])):.3f}")
    print(f"pure_over_aim: {average(over.get('epsilon 1', [])):.3f}")
    print(f"error_over_aim_small: {average(over.get('rho 0.1', [])):.3f}")
    print(f"speed_over_aim: {average(faster):.0f}")
    print(f"slowest_over_aim: {min(faster, default=math.nan):.0f}")
    print(f"peak_mb: {max((one.peak_mb for one in runs), default=math.nan):.0f}")
    even = [one.balanced / one.independent for one in runs if one.epsilon == "1"]
    print(f"balanced_over_drawn: {average(even):.3f}")


def main() -> None:
    """Fit ours, write a CSV, and print how we compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="one run where AIM's figures are there, at ε = 1"
    )
    parser.add_argument("--data", type=Path, default=HERE.parents[1] / "shared" / "data")
    parser.add_argument("--tables", nargs="*", choices=(*TABLES, *WIDE), default=list(TABLES))
    parser.add_argument("--epsilons", nargs="*", default=list(EPSILONS))
    parser.add_argument("--budgets", nargs="*", choices=("rho", "epsilon"), default=["rho", "epsilon"])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("results"), help="aim.csv there is added to")
    parser.add_argument(
        "--one", nargs=4, metavar=("TABLE", "BUDGET", "EPSILON", "SEED"), help=argparse.SUPPRESS
    )
    arguments = parser.parse_args()
    if arguments.one:
        table, budget, epsilon, seed = arguments.one
        print(json.dumps(asdict(work(arguments.data, table, budget, epsilon, int(seed)))))
        return
    arguments.out.mkdir(parents=True, exist_ok=True)
    figures = read_figures(arguments.data)
    path = arguments.out / "aim.csv"
    if arguments.quick:
        path = arguments.out / "aim-quick.csv"
        path.unlink(missing_ok=True)
        jobs = [(table, "rho", epsilon, 0) for table, epsilon in figures if epsilon == "1"]
    else:
        jobs = [
            (table, budget, epsilon, seed)
            for seed in range(arguments.repeats)
            for table in arguments.tables
            for epsilon in arguments.epsilons
            for budget in arguments.budgets
        ]
    runs = run_all(arguments.data, jobs, path)
    show([run for run in runs if run.table not in WIDE], figures)
    for run in (run for run in runs if run.table in WIDE and (run.table, run.budget, run.epsilon, 0) in jobs):
        said = say_effort(arguments.data, run.table, run.budget, run.epsilon)
        print(f"{run.table}_{run.budget}: {run.seconds:.1f} s, {run.peak_mb:.0f} MB; said before: {said}")
    trained = [train(arguments.data, table, 0) for table in (("nltcs",) if arguments.quick else TARGETS)]
    for table, (real, synthetic) in zip(("nltcs",) if arguments.quick else TARGETS, trained, strict=True):
        print(f"auc_true_{table}: {real:.4f}")
        print(f"auc_synthetic_{table}: {synthetic:.4f}")
    print(f"tsts_gap: {np.mean([real - synthetic for real, synthetic in trained]):.4f}")


if __name__ == "__main__":
    main()
