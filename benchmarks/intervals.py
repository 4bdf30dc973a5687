"""Intervals: how often guaranteed and calibrated ones hold, how wide they are, and how long they take.

1. Guaranteed intervals after an adaptive search, pure ε and ρ: all cells of all margins of all measured tables at once,
   and random questions about three attributes that no table holds. Two planted rules must be caught.
2. Calibrated intervals at many settings, each held against its own truth; refused questions are counted apart. The
   settings of `CHOSEN` were looked at when constants were chosen, those of `UNSEEN` were not. What is wrong comes
   together in a release, so each share has a standard error over tables. Likewise, after a search,
   for questions that no measured table holds, and where noise is large and only a triple was not measured.
3. Widths, against an oracle that knows the noise level and the truth.
4. Times on adult, and with a graph of Alarm's size.
5. The exact credal search, as in `credal.py`.
6. What `discreet plan` predicts, against the widths of real releases.

A run that was stopped goes on where it was: finished trials are kept in `interval_trials.jsonl`. `--part` runs some of
these alone.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from _credal_trials import Trials
from _interval_adversary import rate_misses
from _interval_pairs import SETTINGS, cover_triple
from _interval_plans import PLANS, compare_widths
from _interval_trials import (
    AGAIN,
    Held,
    Setting,
    ask_any,
    ask_measured,
    bound,
    check_margins,
    cover,
    cover_beyond,
    find_doubt,
    find_truth,
    holds,
    learn,
    open_source,
)
from _running import digest_sources, progress
from credal import measure_exact
from discreet.networks import examples
from discreet.networks.intervals import Intervals, Whose

RELEASES = 60
"""Of each setting of calibrated intervals: what one release gets wrong comes together, so it takes many."""
PARTS = ("guaranteed", "planted", "calibrated", "beyond", "pairs", "world", "times", "exact", "plan")
GUARANTEE = ("compute/bounds/counting.py", "compute/region/*.py")
"""The sources of guaranteed intervals of the table: a change of others leaves their trials as they are."""
CALIBRATION = (
    "compute/augmentation.py",
    "compute/cliques/entropy.py",
    "networks/intervals/calibrated.py",
    "networks/intervals/shares.py",
    "networks/intervals/resampled.py",
    "networks/intervals/unseen.py",
)
"""Those of calibrated intervals."""
EXACT = ("compute/bounds/*.py",)
"""Those of the exact credal search."""
SEARCHED = ("asia", "asia:5", "sachs", "nltcs:5")
"""Tables of the guaranteed trials; those of five columns are cheap enough for hundreds of releases."""
CHOSEN = (
    Setting("asia", 10_000, "0.02", "planned"),
    Setting("asia", 10_000, "0.1", "planned"),
    Setting("asia", 2_000, "0.3", "planned"),
    Setting("asia", 1_000, "1", "planned"),
    Setting("sachs", 5_000, "0.2", "planned"),
    Setting("sachs", 20_000, "1", "planned"),
    Setting("sachs", 2_000, "5", "planned"),
    Setting("alarm", 10_000, "0.5", "planned"),
    Setting("asia", 2_000, "1", "adaptive"),
    Setting("asia", 10_000, "0.1", "adaptive"),
)
UNSEEN = (
    Setting("child", 10_000, "0.5", "planned"),
    Setting("child", 50_000, "2", "planned"),
    Setting("child", 20_000, "5", "planned"),
    Setting("sachs", 20_000, "r0.5", "planned"),
    Setting("alarm", 100_000, "0.5", "planned"),
    Setting("alarm", 100_000, "5", "planned"),
    Setting("sachs", 5_000, "0.02", "adaptive"),
    Setting("sachs", 2_000, "5", "adaptive"),
    Setting("nltcs:8", 2_000, "0.5", "adaptive"),
    Setting("nltcs:8", 0, "0.1", "adaptive"),
    Setting("nltcs", 0, "1", "adaptive", few=True),
    Setting("adult", 0, "0.3", "adaptive", few=True),
    Setting("adult", 0, "1", "adaptive", few=True),
    Setting("child", 10_000, "5", "adaptive", few=True),
    Setting("child", 5_000, "r0.05", "adaptive", few=True),
    Setting("child", 5_000, "0.3", "adaptive", few=True),
    Setting("nltcs", 0, "0.3", "adaptive", few=True),
    Setting("titanic", 0, "1", "adaptive"),
)

CHOSEN_BEYOND = (
    Setting("sachs", 2_000, "5", "adaptive"),
    Setting("titanic", 0, "r0.1", "adaptive"),
    Setting("adult", 0, "1", "adaptive", few=True),
)
"""Settings for questions that no measured table holds, looked at when their constants were chosen."""
UNSEEN_BEYOND = (
    Setting("asia", 2_000, "r0.01", "adaptive"),
    Setting("sachs", 5_000, "0.02", "adaptive"),
    Setting("sachs", 20_000, "0.5", "adaptive"),
    Setting("nltcs", 0, "0.3", "adaptive", few=True),
    Setting("child", 5_000, "r0.05", "adaptive", few=True),
    Setting("adult", 0, "r0.02", "adaptive", few=True),
    Setting("titanic", 0, "2", "adaptive"),
    Setting("salary", 0, "0.5", "adaptive", few=True),
    Setting("alarm", 20_000, "1", "adaptive", few=True),
)


def main() -> None:
    """Print every table, and end with the figures that are watched."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few releases of few settings: under a minute")
    parser.add_argument("--fresh", action="store_true", help="forget the trials of earlier runs")
    parser.add_argument("--out", type=Path, default=Path("results/intervals"), help="folder for the trials")
    parser.add_argument(
        "--part", nargs="+", choices=PARTS, help="only these parts; all are run if none is named"
    )
    arguments = parser.parse_args()
    quick: bool = arguments.quick
    arguments.out.mkdir(parents=True, exist_ok=True)
    trials = Trials.open(
        arguments.out / "interval_trials.jsonl", fresh=arguments.fresh, sources=digest_sources(CALIBRATION)
    )
    sure = Trials.open(
        arguments.out / "guaranteed_trials.jsonl", fresh=arguments.fresh, sources=digest_sources(GUARANTEE)
    )
    parts: dict[str, Callable[[], dict[str, float]]] = {
        "guaranteed": lambda: measure_guaranteed(sure, 20 if quick else 1000),
        "planted": lambda: measure_planted(40 if quick else 400),
        "calibrated": lambda: measure_calibrated(
            trials, 2 if quick else RELEASES, (CHOSEN[1], UNSEEN[6]) if quick else None
        ),
        "beyond": lambda: measure_beyond(trials, 1 if quick else 9, quick=quick),
        "pairs": lambda: measure_pairs(trials, 5 if quick else 100),
        "world": lambda: measure_world(4 if quick else 60),
        "times": lambda: measure_times(3 if quick else 20),
        "exact": lambda: measure_exact(
            Trials.open(
                arguments.out / "exact_trials.jsonl", fresh=arguments.fresh, sources=digest_sources(EXACT)
            ),
            3 if quick else 60,
            1.0 if quick else 10.0,
        ),
        "plan": lambda: measure_plan(1 if quick else 3),
    }
    found: dict[str, float] = {}
    for part in arguments.part or parts:
        found |= parts[part]()
    for name, value in found.items():
        print(f"{name}: {value:.6g}")


def measure_guaranteed(trials: Trials, releases: int) -> dict[str, float]:
    """The share of releases in which everything holds: all margins of all tables, and all unmeasured questions."""
    lines = []
    plans = [(name, 2_000, amount) for name in SEARCHED for amount in ("1", "r0.1")]
    with progress("guaranteed", releases) as advance:
        for k in range(releases):
            name, rows, amount = plans[k % len(plans)]
            lines += [
                [float(k % len(plans)), *found]
                for found in trials.fill(
                    f"guaranteed/{name}/{rows}/{amount}/{k}",
                    lambda: _try_guaranteed(name, rows, amount, k),  # noqa: B023
                )
            ]
            advance()
    every = np.array(lines)
    print(f"{'table':<8}{'rows':>8}{'budget':>8}{'releases':>10}{'margins':>9}{'questions':>11}{'cells':>8}")
    for k, (name, rows, amount) in enumerate(plans):
        part = every[every[:, 0] == k]
        if len(part):
            print(
                f"{name:<8}{rows:>8}{amount:>8}{len(part):>10}{part[:, 1].mean():>9.4f}"
                f"{part[:, 2].mean():>11.4f}{part[:, 3].mean():>8.0f}"
            )
    return {
        "coverage_guaranteed_search": float(every[:, 1].mean()),
        "coverage_unmeasured": float(every[:, 2].mean()),
        "releases_guaranteed": float(len(every)),
    }


def _try_guaranteed(name: str, rows: int, amount: str, k: int) -> list[list[float]]:
    source = open_source(name, rows, k % 40)
    network = learn(source, "adaptive", amount)
    right, cells = check_margins(network, source)
    table = network._intervals.table()
    unmeasured = True
    for target, levels in ask_any(network, source, 6, k):
        if not table.answers(list(levels)):
            ends = bound(network, target, levels, Intervals.GUARANTEED, Whose.TABLE)
            unmeasured &= ends is not None and holds(ends, find_truth(source, target, levels))
    return [[float(right), float(unmeasured), float(cells)]]


def measure_planted(trials: int) -> dict[str, float]:
    """How often the rule, and two broken ones, miss against an adversary; 0.05 is what is promised."""
    found = {name: rate_misses(name, trials) for name in ("rule", "final cells", "again", "reused noise")}
    for name, rate in found.items():
        print(f"adversary against {name}: some interval missed in {rate:.3f} of {trials}")
    return {
        "missed_rule": max(found["rule"], found["again"]),
        "missed_planted_final_cells": found["final cells"],
        "missed_planted_reused_noise": found["reused noise"],
    }


def measure_calibrated(
    trials: Trials, releases: int, settings: tuple[Setting, ...] | None
) -> dict[str, float]:
    """How often calibrated intervals hold at each setting, how many are refused, and widths in terms of an oracle's."""
    found = [
        _measure_setting(trials, setting, releases, seen=setting in CHOSEN)
        for setting in settings or (*CHOSEN, *UNSEEN)
    ]
    given = [line for line in found if line is not None]
    return {
        "coverage_calibrated_min": min(found.share for found in given),
        "coverage_calibrated_max": max(found.share for found in given),
        "coverage_calibrated_doubt": max(found.doubt for found in given),
        "settings_calibrated": float(len(given)),
        "settings_refused": float(len(found) - len(given)),
        "width_over_oracle": float(np.median([found.ratio for found in given])),
        "width_over_oracle_max": max(found.ratio for found in given),
    }


def measure_beyond(trials: Trials, releases: int, *, quick: bool) -> dict[str, float]:
    """The same after a search, for questions about three attributes that no measured table holds."""
    found = [
        _measure_setting(trials, setting, releases, seen=setting in CHOSEN_BEYOND, beyond=True)
        for setting in (CHOSEN_BEYOND[:1] if quick else (*CHOSEN_BEYOND, *UNSEEN_BEYOND))
    ]
    given = [line for line in found if line is not None]
    return {
        "coverage_beyond_min": min(found.share for found in given),
        "coverage_beyond_max": max(found.share for found in given),
        "coverage_beyond_doubt": max(found.doubt for found in given),
        "settings_beyond_refused": float(len(found) - len(given)),
        "width_beyond_over_oracle": float(np.nanmedian([found.ratio for found in given])),
    }


def measure_pairs(trials: Trials, releases: int) -> dict[str, float]:
    """The same for a triple of which all pairs were measured, few rows and much noise."""
    shares = []
    for rows, amount in SETTINGS:
        lines: list[list[float]] = []
        with progress(f"pairs {rows} {amount}", releases) as advance:
            for k in range(releases):
                lines += trials.fill(
                    f"pairs/{rows}/{amount}/{k}",
                    lambda: cover_triple(rows, amount, k),  # noqa: B023
                )
                advance()
        given = np.array([line for line in lines if line[0] >= 0])
        shares.append(float(given[:, 0].mean()))
        print(
            f"pairs of three attributes, {rows} rows, ε = {amount}: {len(lines)} asked, "
            f"{1 - len(given) / len(lines):.2f} refused, {shares[-1]:.3f} hold, width {np.median(given[:, 1]):.4f}",
            flush=True,
        )
    return {"coverage_pairs_min": min(shares), "coverage_pairs_max": max(shares)}


def _measure_setting(
    trials: Trials, setting: Setting, releases: int, *, seen: bool, beyond: bool = False
) -> Held | None:
    """How often the intervals of a setting hold and how wide they are; None if nearly all were refused."""
    part: list[list[float]] = []
    tables: dict[int, list[float]] = {}
    count = max(2, releases // 3) if setting.few else releases
    what, ask = ("beyond", cover_beyond) if beyond else ("calibrated", cover)
    with progress(f"{what} {setting}", count) as advance:
        for k in range(count):
            found = trials.fill(f"{what}/{setting}/{k}", lambda: ask(setting, k))  # noqa: B023
            tables.setdefault(k // AGAIN, []).extend(line[0] for line in found if line[0] >= 0)
            part += found
            advance()
    lines = np.array(part).reshape(-1, 4)
    given = lines[lines[:, 0] >= 0]
    share = float(given[:, 0].mean()) if len(given) else np.nan
    ratio = _compare_widths(given) if len(given) else np.nan
    enough = len(given) >= max(4, len(lines) / 10)
    print(
        f"{what} {setting!s:<28}: {'seen' if seen else 'unseen'}, {count} releases, {len(lines)} asked, "
        f"{1 - len(given) / max(len(lines), 1):.2f} refused, {share:.3f} ± {find_doubt(tables):.3f} hold, "
        f"width {np.median(given[:, 1]) if len(given) else np.nan:.4f}, {ratio:.2f} of the oracle's"
        f"{'' if enough else '   refused'}",
        flush=True,
    )
    return Held(share, find_doubt(tables), ratio) if enough else None


def measure_world(releases: int) -> dict[str, float]:
    """How often calibrated intervals about the world hold the probability that the rows were drawn with."""
    asia = examples.load("asia")
    world: list[bool] = []
    table: list[bool] = []
    for k in range(releases):
        source = open_source("asia", 2_000, 1000 + k)
        network = learn(source, "planned", "1")
        for target, levels in ask_measured(network, source, 6, k):
            given = {name: asia.schema[name].levels[code] for name, code in levels.items() if name != target}
            truth = asia.query(target, given).probabilities[levels[target]]
            for found, about in ((world, Whose.WORLD), (table, Whose.TABLE)):
                ends = bound(network, target, levels, Intervals.CALIBRATED, about)
                if ends is not None:
                    found.append(holds(ends, float(truth)))
    print(
        f"the population's probability lies in {np.mean(world):.3f} of {len(world)} intervals about the world and in "
        f"{np.mean(table):.3f} of those about the table"
    )
    return {"coverage_world": float(np.mean(world))}


def measure_plan(networks: int) -> dict[str, float]:
    """Real widths over predicted ones, times how much more often than evenly what is given occurs.

    A plan takes shares to be even and says so: with half the rows an interval is twice as wide.
    """
    found = {}
    for learner in ("planned", "adaptive"):
        worst = [1.0, 1.0]
        for name, rows in PLANS[:networks]:
            lines = np.array(compare_widths(name, rows, learner, 1))
            common = lines[lines[:, 0] == 0]
            raw = np.nanmedian(common[:, 2:], axis=0)
            ratios = np.nanmedian(lines[:, 2:] * lines[:, 1:2], axis=0)
            pairs = zip(worst, ratios.tolist(), strict=True)
            worst = [max(pair, key=lambda ratio: abs(np.log(ratio))) for pair in pairs]
            print(
                f"plan {name:<6} {learner:<9}: real over predicted width, as is and the evidence common: guaranteed "
                f"{raw[0]:.2f}, calibrated {raw[1]:.2f}; for the share of rows: {ratios[0]:.2f}, {ratios[1]:.2f}",
                flush=True,
            )
        found[f"plan_guaranteed_{learner}"], found[f"plan_calibrated_{learner}"] = worst
    return found


def _compare_widths(lines: np.ndarray) -> float:
    """The median width in terms of the oracle's, which on a graph is ±1.96 standard deviations of the error.

    Of k errors the root mean square has a median of about (1 − 2/9k)^1.5 standard deviations, which is made up for.
    """
    if (lines[:, 3] < 0).all():
        return float(np.median(lines[:, 1] / lines[:, 2]))
    ratios = []
    for number in np.unique(lines[:, 3]):
        part = lines[lines[:, 3] == number]
        if len(part) > 1:
            deviation = np.sqrt((part[:, 2] ** 2).mean()) / (1 - 2 / (9 * len(part))) ** 1.5
            ratios.append(np.median(part[:, 1]) / max(3.92 * deviation, 1e-6))
    return float(np.median(ratios)) if ratios else np.nan


def measure_times(questions: int) -> dict[str, float]:
    """Seconds for a probability and a distribution over three attributes of adult; milliseconds on Alarm's graph.

    They are seconds of one processor, so that a machine with other work to do gives the same.
    """
    source = open_source("adult", 0, 0)
    network = learn(source, "adaptive", "1")
    table = network._intervals.table()
    event, whole = [], []
    for target, levels in ask_any(network, source, questions, 5):
        if table.answers(list(levels)):
            continue
        began = time.process_time()
        bound(network, target, levels, Intervals.GUARANTEED, Whose.TABLE)
        event.append(time.process_time() - began)
        given = {name: network.schema[name].levels[code] for name, code in levels.items() if name != target}
        began = time.process_time()
        network.query(target, given)
        whole.append(time.process_time() - began)
    alarm = open_source("alarm", 10_000, 0)
    private = learn(alarm, "planned", "1")
    graph = []
    for target, levels in ask_any(private, alarm, questions, 6):
        given = {name: private.schema[name].levels[code] for name, code in levels.items() if name != target}
        private.query(target, given)
        began = time.process_time()
        private.query(target, given)
        graph.append(time.process_time() - began)
    print(
        f"adult, 3-way and unmeasured: a probability takes {np.median(event):.3f} s (worst {max(event):.3f}), a whole "
        f"distribution {np.median(whole):.3f} s (worst {max(whole):.3f}); Alarm: {1e3 * np.median(graph):.1f} ms"
    )
    return {
        "seconds_unmeasured": float(np.median(event)),
        "seconds_unmeasured_worst": max(event),
        "seconds_unmeasured_distribution": float(np.median(whole)),
        "seconds_unmeasured_distribution_worst": max(whole),
        "milliseconds_alarm_graph": 1e3 * float(np.median(graph)),
    }


if __name__ == "__main__":
    main()
