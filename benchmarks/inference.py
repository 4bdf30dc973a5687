"""Exact inference beside pyAgrum: posteriors of every node, on the same networks and evidence, in one run.

Each evidence set (1 to 5 nodes of a row drawn from the network, so possible) is answered by us several times, then by
pyAgrum's LazyPropagation as often; both medians make that set's ratio, and answers that differ end the run. Ours are
arrays for every node (`network.engine.posteriors(codes).to_dict()`); pyAgrum keeps its engine from set to set and its
posteriors as its own tensors. What a first answer costs in a new process is measured apart, so no warm-up is hidden.

The last lines are the figures: `speedup_*` is the median over sets of pyAgrum's time over ours; `worst_ratio_large` the
lowest over the large networks of pyAgrum's total time over ours; `worst_single_ratio` the lowest of all single sets of
those; `query_ms_*` the median over questions of one public `query` for one attribute, each with new evidence, in
milliseconds, after the compiled path was loaded (what the first answers cost stands under "new process").
"""

from __future__ import annotations

import argparse
import csv
import gc
import io
import json
import logging
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from rich.console import Console
from rich.progress import Progress

from _sampling import measure_sampling
from discreet.networks import examples
from discreet.networks.formats.bif import read_bif
from discreet.networks.formats.interchange import to_pgmpy, to_pyagrum
from discreet.networks.network import Network

SMALL = ("asia", "sachs", "child", "alarm")
LARGE = (
    "insurance", "hailfinder", "win95pts", "pigs", "andes", "pathfinder",
    "water", "mildew", "barley", "diabetes", "munin",
)  # fmt: skip
QUICK_LARGE = ("insurance", "hailfinder", "win95pts", "pigs", "barley")
AGREEMENT = 1e-9
SHORT = 2e-3
"""Calls are repeated for these seconds, or a hundred times: a median of five says little about microseconds."""
LONG = 1.0
"""Seconds of a call that is not made again: what warming up saves is little beside it."""
Codes = dict[str, int]
Made = TypeVar("Made")

COLD = """
import json, time
start = time.perf_counter()
import discreet
imported = time.perf_counter()
network = discreet.examples.load({name!r})
loaded = time.perf_counter()
network.engine.posteriors({{}}, path="numpy").to_dict()
answered = time.perf_counter()
network.engine.posteriors({{}}, path="numba").to_dict()
compiled = time.perf_counter()
print(json.dumps([imported - start, loaded - imported, answered - loaded, compiled - answered]))
"""

PEER = """
import resource, sys, time
resource.setrlimit(resource.RLIMIT_AS, ({bytes}, {bytes}))
sys.path.insert(0, {folder!r})
import pyagrum
from inference import draw_evidence, load, to_pyagrum
network = load({name!r})
peer = pyagrum.LazyPropagation(to_pyagrum(network))
start = time.perf_counter()
peer.setEvidence(draw_evidence(network, 1)[0])
peer.makeInference()
for node in network.nodes:
    peer.posterior(node)
print(time.perf_counter() - start)
"""
PEER_GIGABYTES, PEER_SECONDS = 8, 120
"""What pyAgrum gets for one evidence set of Link: it took 22 GB there, when the machine had no more."""


@dataclass(frozen=True)
class Timing:
    """One evidence set on one network: median seconds of each side."""

    network: str
    observed: int
    ours: float
    labelled: float
    pyagrum: float
    difference: float

    @property
    def ratio(self) -> float:
        """pyAgrum's time over ours."""
        return self.pyagrum / self.ours


def load(name: str) -> Network:
    """A network that ships inside, or a file that pgmpy carries; pgmpy itself is not imported for that."""
    if name in examples.names():
        return examples.load(name)
    package = find_spec("pgmpy")
    if package is None or not package.submodule_search_locations:
        raise SystemExit("the larger networks come with pgmpy: pip install 'discreet[interchange]'")
    folder = Path(package.submodule_search_locations[0]) / "utils" / "example_models"
    return read_bif(folder / f"{name}.bif.gz")


def draw_evidence(network: Network, sets: int, seed: int = 7) -> list[Codes]:
    """1 to 5 observed nodes for each set, with codes from a row of the network."""
    rng = np.random.default_rng(seed)
    rows = network.sample(sets, rng=seed).codes()
    return [
        {
            str(name): int(rows[name][i])
            for name in rng.choice(network.nodes, rng.integers(1, 6), replace=False)
        }
        for i in range(sets)
    ]


def time_calls(call: Callable[[], Made], repeats: int) -> tuple[float, Made]:
    """Median seconds of a call, on the clock or of the processor, whichever is less, and what it answered.

    On a busy machine a long call is interrupted more often than a short one, so the clock alone would flatter us;
    processor time alone would charge pyAgrum for its threads. Short calls are made more often, and after one that is
    not counted; a call of seconds is made once, with whatever it has to prepare.
    """
    clock, processor = [], []
    repeats += 1
    while len(clock) < repeats:
        used, start = time.process_time(), time.perf_counter()
        answer = call()
        clock.append(time.perf_counter() - start)
        processor.append(time.process_time() - used)
        if len(clock) == 1:
            repeats = 1 if clock[0] > LONG else max(repeats, min(102, int(SHORT / clock[0])))
    late = slice(1 if repeats > 1 else 0, None)
    return min(statistics.median(clock[late]), statistics.median(processor[late])), answer


def race(
    name: str, network: Network, evidence: Sequence[Codes], repeats: int, step: Callable[[], None]
) -> list[Timing]:
    """Both sides on every set, one after the other; refuses answers that differ."""
    import pyagrum

    engine, peer = network.engine, pyagrum.LazyPropagation(to_pyagrum(network))

    def ask_peer(codes: Codes) -> dict[str, Any]:
        peer.setEvidence(codes)
        peer.makeInference()
        return {node: peer.posterior(node) for node in network.nodes}

    engine.posteriors({}, path="numba")
    engine.posteriors(evidence[0])
    found = []
    for codes in evidence:
        labels = {node: network.schema[node].levels[code] for node, code in codes.items()}
        ours, mine = time_calls(lambda codes=codes: engine.posteriors(codes).to_dict(), repeats)  # type: ignore[misc]
        labelled, _ = time_calls(lambda labels=labels: network.posteriors(labels).to_dict(), repeats)  # type: ignore[misc]
        pyagrum_seconds, theirs = time_calls(lambda codes=codes: ask_peer(codes), repeats)  # type: ignore[misc]
        difference = max(float(np.abs(mine[node] - theirs[node].toarray()).max()) for node in network.nodes)
        if not difference < AGREEMENT:
            raise SystemExit(f"{name} given {labels}: answers differ by {difference:g}")
        found.append(Timing(name, len(codes), ours, labelled, pyagrum_seconds, difference))
        step()
    return found


def describe_link(sets: int) -> str:
    """Our milliseconds on Link, and whether pyAgrum answers the first set at all, in a process with limits."""
    network = load("link")
    network.engine.posteriors({}, path="numba")
    ours = [
        1e3 * time_calls(lambda codes=codes: network.engine.posteriors(codes).to_dict(), 3)[0]  # type: ignore[misc]
        for codes in draw_evidence(network, sets)
    ]
    script = PEER.format(bytes=PEER_GIGABYTES * 10**9, folder=str(Path(__file__).parent), name="link")
    try:
        answer = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, timeout=PEER_SECONDS, check=True
        )
        theirs = f"pyAgrum took {1e3 * float(answer.stdout):.0f} ms for the first set"
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError):
        theirs = f"pyAgrum gave no answer within {PEER_GIGABYTES} GB and {PEER_SECONDS} s"
    return f"link: {min(ours):.0f} to {max(ours):.0f} ms on {sets} sets; {theirs}"


def time_pgmpy(network: Network, evidence: Iterable[Codes]) -> float:
    """Median seconds of pgmpy's variable elimination for the posteriors of all unobserved nodes; for information."""
    from pgmpy.inference import VariableElimination

    solver = VariableElimination(to_pgmpy(network))
    seconds = []
    for codes in evidence:
        labels = {node: network.schema[node].levels[code] for node, code in codes.items()}
        start = time.perf_counter()
        for node in network.nodes:  # one by one: several at once are read off their joint, 778 GiB on Alarm
            if node not in codes:
                solver.query([node], evidence=labels, show_progress=False)
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def time_explanations(network: Network, evidence: list[Codes], repeats: int) -> tuple[float, str]:
    """Median milliseconds of the most probable explanation, and how pyAgrum's `mpe` fared on the same sets."""
    import pyagrum

    peer = pyagrum.LazyPropagation(to_pyagrum(network))

    def ask_peer(codes: Codes) -> Any:
        peer.setEvidence(codes)
        return peer.mpe()

    ours, ratios, refused, worse = [], [], 0, 0
    for codes in evidence:
        _, best = network.engine.most_probable(codes)
        ours.append(time_calls(lambda codes=codes: network.engine.most_probable(codes), repeats)[0])  # type: ignore[misc]
        try:
            answer = ask_peer(codes)
            seconds, _ = time_calls(lambda codes=codes: ask_peer(codes), repeats)  # type: ignore[misc]
            states = {**answer.todict(), **codes}
            log_joint = sum(
                float(np.log(cpt.values[tuple(states[node] for node in cpt.axes)])) for cpt in network.cpts
            )
        except Exception:  # whatever it raises, it gave no answer
            refused += 1
            continue
        if abs(log_joint - best) < 1e-9 * max(1.0, abs(best)):
            ratios.append(seconds / ours[-1])
        else:
            worse += 1
    peer_says = f"pyAgrum's mpe: {len(ratios)} right, {worse} wrong, {refused} without an answer"
    if ratios:
        peer_says += f"; where right, its time over ours is {statistics.median(ratios):.1f}"
    return 1e3 * statistics.median(ours), peer_says


def time_questions(name: str, count: int, repeats: int) -> tuple[list[float], list[float]]:
    """Seconds of `query` for one attribute on each of several evidence sets; then of a second one on the same set.

    Before each call another set is asked about, so that none is answered from memory unless that is what is timed.
    """
    network = load(name)
    network.engine.posteriors({}, path="numba")
    rng = np.random.default_rng(11)
    sets = [
        {node: network.schema[node].levels[code] for node, code in codes.items()}
        for codes in draw_evidence(network, count, seed=11)
    ]
    first, second = [], []
    for k, given in enumerate(sets):
        free = [node for node in network.nodes if node not in given]
        one, two = (str(node) for node in rng.choice(free, 2, replace=False))
        clock: tuple[list[float], list[float]] = ([], [])
        for _ in range(repeats):
            network.query(one, sets[k - 1])
            for seconds, target in zip(clock, (one, two), strict=True):
                used, start = time.process_time(), time.perf_counter()
                network.query(target, given)
                seconds.append(min(time.perf_counter() - start, time.process_time() - used))
        first.append(statistics.median(clock[0]))
        second.append(statistics.median(clock[1]))
    return first, second


def time_batch(network: Network, rows: int, repeats: int) -> list[float]:
    """Seconds for the posteriors of every node for each of so many rows of evidence, after one uncounted run."""
    drawn = network.sample(rows, rng=3).codes()
    codes = np.stack([drawn[node].astype(np.int64) for node in network.nodes], axis=1)
    rng = np.random.default_rng(3)
    rank = rng.random(codes.shape).argsort(axis=1)
    codes[rank >= rng.integers(1, 6, size=(rows, 1))] = -1
    seconds = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        network.engine.posteriors_of_rows(codes)
        seconds.append(time.perf_counter() - start)
    return seconds[1:]


def time_cold(name: str, repeats: int, cache: str | None = None) -> list[float]:
    """Seconds in a new process to import, load, answer by numpy, and load (or make) the compiled path; best of each."""
    environment = {**os.environ, **({"NUMBA_CACHE_DIR": cache} if cache else {})}
    runs = [
        json.loads(
            subprocess.run(
                [sys.executable, "-c", COLD.format(name=name)],
                env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True,
            ).stdout
        )
        for _ in range(repeats)
    ]  # fmt: skip
    return [min(found) for found in zip(*runs, strict=True)]


def summarise(timings: list[Timing], pgmpy: float | None) -> str:
    """One line of the table: medians in ms, quartiles of the ratio, ratio of totals, the worst set."""
    ratios = [timing.ratio for timing in timings]
    low, middle, high = np.percentile(ratios, [25, 50, 75])
    medians = [
        1e3 * statistics.median(getattr(timing, side) for timing in timings)
        for side in ("ours", "labelled", "pyagrum")
    ]
    return (
        f"{timings[0].network:<11}{len(timings):>5}"
        + "".join(f"{value:>10.4f}" for value in medians)
        + (f"{1e3 * pgmpy:>9.1f}" if pgmpy else f"{'':>9}")
        + f"{middle:>9.1f}{f'{low:.1f}-{high:.1f}':>15}{total_ratio(timings):>9.1f}{min(ratios):>9.1f}"
        + f"{max(timing.difference for timing in timings):>10.1e}"
    )


def total_ratio(timings: list[Timing]) -> float:
    """pyAgrum's total time over ours."""
    return sum(timing.pyagrum for timing in timings) / sum(timing.ours for timing in timings)


def main() -> None:
    """Run everything, print the table and the figures, and write them as CSV."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="under a minute: fewer sets, no huge networks")
    parser.add_argument("--only", nargs="+", metavar="NETWORK", help="race on these networks only")
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder for the CSV files")
    parser.add_argument("--resume", action="store_true", help="take the other networks from the CSV in --out")
    arguments = parser.parse_args()
    quick = bool(arguments.quick)
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore", FutureWarning)  # pgmpy's, about itself
    large = QUICK_LARGE if quick else LARGE
    plan = dict.fromkeys(SMALL, (40, 5) if quick else (60, 9))
    plan |= dict.fromkeys(large, (8, 3) if quick else (25, 5))
    plan |= {"pigs": (4, 1) if quick else (12, 3)}
    huge = {
        "barley": (24, 3),
        "diabetes": (5, 1),
        "munin": (5, 1),
        "water": (12, 3),
        "mildew": (12, 3),
    }
    plan |= {"barley": (4, 1)} if quick else huge
    if arguments.only:
        plan = {name: plan[name] for name in arguments.only if name in plan}
        large = tuple(name for name in large if name in plan)
    timings: dict[str, list[Timing]] = read_results(arguments.out, plan) if arguments.resume else {}
    large = tuple(name for name in LARGE if name in large or name in timings)
    print(
        f"{'network':<11}{'sets':>5}{'ours ms':>10}{'labelled':>10}{'pyAgrum':>10}{'pgmpy':>9}{'ratio':>9}"
        f"{'quartiles':>15}{'totals':>9}{'worst':>9}{'differ':>10}"
    )
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=sum(sets for sets, _ in plan.values()))
        for name, (sets, repeats) in plan.items():
            progress.update(task, description=name)
            network = load(name)
            evidence = draw_evidence(network, sets)
            gc.collect()
            gc.disable()
            timings[name] = race(name, network, evidence, repeats, lambda: progress.advance(task))
            gc.enable()
            pgmpy = time_pgmpy(network, evidence[: 2 if quick else 5]) if name in SMALL else None
            print(summarise(timings[name], pgmpy), flush=True)
            write_results(arguments.out, timings, {})  # a run that is stopped can be resumed
        if "link" in arguments.only if arguments.only else not quick:
            print(describe_link(3), flush=True)
        progress.update(task, description="alarm: explanations, batch, sampling, cold starts")
        alarm = load("alarm")
        explanation, peer_says = time_explanations(alarm, draw_evidence(alarm, 12 if quick else 50), 3)
        batch = time_batch(alarm, 10_000, 3 if quick else 7)
        asked = {name: time_questions(name, 20 if quick else 100, 3) for name in ("alarm", "andes")}
        sampling = measure_sampling(quick)
        cold = {name: time_cold(name, 2 if quick else 5) for name in ("asia", "alarm")}
        if not quick:
            with tempfile.TemporaryDirectory() as empty:
                cold["alarm, nothing compiled yet"] = time_cold("alarm", 1, empty)
    print(f"\n{'new process':<30}{'import s':>10}{'load':>8}{'numpy':>8}{'compiled':>10}   (first answers)")
    for name, seconds in cold.items():
        print(f"{name:<30}{seconds[0]:>10.3f}{seconds[1]:>8.3f}{seconds[2]:>8.4f}{seconds[3]:>10.3f}")
    print(f"\nbatch of 10 000 rows on Alarm: {min(batch):.3f} to {max(batch):.3f} s in {len(batch)} runs")
    for name, (first, second) in asked.items():
        low, middle, high = np.percentile(first, [25, 50, 75]) * 1e3
        print(
            f"one query on {name}: {middle:.3f} ms (quartiles {low:.3f}-{high:.3f}, longest {1e3 * max(first):.3f}); "
            f"a second one on the same evidence {1e3 * statistics.median(second):.3f}"
        )
    print(f"most probable explanation on Alarm: {peer_says}")
    print(
        f"sampling: {sampling['sampling_mcells_per_s_worst']:.0f} to {sampling['sampling_mcells_per_s']:.0f} "
        f"million cells/s; as frames {sampling['sampling_frame_over_pgmpy']:.0f} times pgmpy's rate"
    )
    out = [name for name in LARGE if name not in large]
    print(f"large networks left out: {', '.join(out) or 'none'}")
    raced: dict[str, float] = {}
    if large:
        worst = min(large, key=lambda name: total_ratio(timings[name]))
        single = min((t for name in large for t in timings[name]), key=lambda timing: timing.ratio)
        print(f"the lowest of the large networks is {worst}")
        print(
            f"the slowest single set is one of {single.network}: {1e3 * single.ours:.2f} ms, {single.ratio:.2f} times"
        )
        raced = {"worst_ratio_large": total_ratio(timings[worst]), "worst_single_ratio": single.ratio}
    figures = {
        **{
            f"speedup_{name}": statistics.median(t.ratio for t in timings[name])
            for name in SMALL
            if name in timings
        },
        **raced,
        **{f"query_ms_{name}": 1e3 * statistics.median(first) for name, (first, _) in asked.items()},
        "mpe_alarm_ms": explanation,
        "batch_alarm_s": statistics.median(batch),
        "sampling_mcells_per_s": sampling["sampling_mcells_per_s"],
        "sampling_over_pgmpy": sampling["sampling_over_pgmpy"],
    }
    write_results(arguments.out, timings, figures)
    for name, value in figures.items():
        print(f"{name}: {value:.4g}")


def read_results(folder: Path, raced: Iterable[str]) -> dict[str, list[Timing]]:
    """The timings of an earlier run for networks that are not raced in this one."""
    found: dict[str, list[Timing]] = {}
    path = folder / "inference.csv"
    with path.open(newline="", encoding="utf-8") if path.exists() else io.StringIO() as file:
        for row in csv.DictReader(file):
            if row["network"] not in raced:
                numbers = [float(row[side]) for side in ("ours", "labelled", "pyagrum", "difference")]
                found.setdefault(row["network"], []).append(
                    Timing(row["network"], int(row["observed"]), *numbers)
                )
    return found


def write_results(folder: Path, timings: dict[str, list[Timing]], figures: dict[str, float]) -> None:
    """Every timing, and the figures, as CSV."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "inference.csv").open("w", newline="", encoding="utf-8") as file:
        rows = [{**asdict(timing), "ratio": timing.ratio} for found in timings.values() for timing in found]
        writer = csv.DictWriter(file, [*(field.name for field in fields(Timing)), "ratio"])
        writer.writeheader()
        writer.writerows(rows)
    with (folder / "inference_figures.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("figure", "value"), *figures.items()])


if __name__ == "__main__":
    main()
