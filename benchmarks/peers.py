"""Our synthetic rows against those of other packages: the same rows and ε; error, seconds, memory.

Each peer runs in an environment of its own, made on first use under ~/.cache/discreet-bench, in a process with a time
limit; what fails or does not finish is printed as such. --quick takes few rows and the peers that are there and fast.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from _environments import open_environment
from _paper004_data import QUICK_MARGINALS, Data, read_data
from discreet.values.budget import ApproxDP, afford_zcdp

WORKER = Path(__file__).with_name("_peers_worker.py")
DELTA = "1e-5"
PACKAGES = {
    "opendp": ("opendp-0.16.0", ["opendp[mbi]==0.16.0", "pandas"]),
    "dpmm": ("dpmm-0.1.9", ["dpmm==0.1.9"]),
    "datasynthesizer": ("DataSynthesizer-0.1.13", ["DataSynthesizer==0.1.13"]),
}
"""For each peer its environment, and what is installed there."""
METHODS = {
    "ours": "adaptive, pure ε",
    "ours_zcdp": "adaptive, (ε, δ)",
    "ours_privbayes": "PrivBayes, pure ε",
    "opendp_mst": "MST, (ε, δ)",
    "dpmm_privbayes": "PrivBayes, (ε, δ), not private as coded",
    "dpmm_mst": "MST, (ε, δ)",
    "datasynthesizer_k1": "PrivBayes k=1, ε, exact n, seeded noise",
    "datasynthesizer_k2": "PrivBayes k=2, ε, exact n, seeded noise",
    "opendp_aim": "AIM, (ε, δ)",
    "dpmm_aim": "AIM, (ε, δ)",
}
QUICK = ("ours", "ours_zcdp", "ours_privbayes", "datasynthesizer_k1")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one method did, or why it did nothing."""

    method: str
    problem: str = ""
    tv2: float = float("nan")
    tv3: float = float("nan")
    fit_s: float = float("nan")
    cpu_s: float = float("nan")
    sample_s: float = float("nan")
    peak_mb: float = float("nan")


def run(
    method: str, data: Data, epsilon: str, limit: float | None, *, install: bool, drawing: str = "sample"
) -> Outcome:
    """Fit and draw in a process of its own; killed, with all that it started, when the time is up."""
    peer = method.partition("_")[0]
    python = Path(sys.executable) if peer == "ours" else open_environment(*PACKAGES[peer], install=install)
    if isinstance(python, str):
        return Outcome(method, python)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        np.savez(place / "codes.npz", **data.codes)
        task = {
            "method": method,
            "sizes": data.schema.sizes,
            "epsilon": epsilon,
            "delta": DELTA,
            "rho": f"{float(afford_zcdp(ApproxDP(epsilon, DELTA)).rho):.9f}",
            "draw": data.rows,
            "drawing": drawing,
            "codes": str(place / "codes.npz"),
            "answer": str(place / "answer.npz"),
        }
        (place / "task.json").write_text(json.dumps(task), encoding="utf-8")
        process = subprocess.Popen(
            [str(python), str(WORKER), str(place / "task.json")],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True, cwd=folder,
            env={**os.environ, "PYTHONWARNINGS": "ignore"},
        )  # fmt: skip
        try:
            out, err = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return Outcome(method, f"not finished after {limit:.0f} s")
        if process.returncode != 0:
            lines = [line.strip() for line in err.splitlines() if len(line.strip()) > 5]
            return Outcome(method, f"failed: {lines[-1][:200] if lines else process.returncode}")
        told = json.loads(out.splitlines()[-1])
        with np.load(place / "answer.npz") as file:
            codes = {name: file[name] for name in data.schema.names}
    errors = [data.error(codes, ways) for ways in (2, 3)]
    return Outcome(method, "", *errors, told["fit_s"], told["cpu_s"], told["sample_s"], told["peak_mb"])


def write(outcomes: list[Outcome], path: Path) -> None:
    """What was found so far, one line a method."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["method", "tv2", "tv3", "fit_s", "cpu_s", "sample_s", "peak_mb", "problem"])
        writer.writerows(
            (f.method, f.tv2, f.tv3, f.fit_s, f.cpu_s, f.sample_s, f.peak_mb, f.problem) for f in outcomes
        )


def show(outcomes: list[Outcome]) -> None:
    """The table, what failed at its end, then one name and one number a line."""
    print(
        f"{'method':<20}{'TV 2-way':>9}{'TV 3-way':>9}{'fit s':>9}{'CPU s':>9}{'draw s':>8}{'peak MB':>9}  what it is"
    )
    for found in outcomes:
        if found.problem:
            print(f"{found.method:<20}{found.problem}")
        else:
            print(
                f"{found.method:<20}{found.tv2:>9.4f}{found.tv3:>9.4f}{found.fit_s:>9.2f}{found.cpu_s:>9.2f}{found.sample_s:>8.2f}"
                f"{found.peak_mb:>9.0f}  {METHODS[found.method]}"
            )
    for found in outcomes:
        if not found.problem:
            print(f"tv3_{found.method}: {found.tv3:.4f}")
            print(f"fit_s_{found.method}: {found.fit_s:.2f}")
            print(f"peak_mb_{found.method}: {found.peak_mb:.0f}")


def main() -> None:
    """Run every method once, write a CSV, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="2000 rows, and only peers that are there and fast"
    )
    parser.add_argument("--data", type=Path, default=Path(__file__).resolve().parents[2] / "shared" / "data")
    parser.add_argument("--name", default="adult", help="NAME.csv with NAME.domain.json")
    parser.add_argument("--epsilon", default="1")
    parser.add_argument("--methods", nargs="*", choices=list(METHODS))
    parser.add_argument("--limit", type=float, help="seconds for each method [default: 1800, quick 30]")
    parser.add_argument("--out", type=Path, default=Path("results"))
    arguments = parser.parse_args()
    data = read_data(arguments.data, arguments.name, QUICK_MARGINALS)
    if data is None:
        return
    methods = arguments.methods or (QUICK if arguments.quick else tuple(METHODS))
    limit = arguments.limit or (30.0 if arguments.quick else 1800.0)
    if arguments.quick:
        data = data.take(np.random.default_rng(0).permutation(data.rows)[:2000])
    outcomes = []
    arguments.out.mkdir(parents=True, exist_ok=True)
    for method in methods:
        start = time.perf_counter()
        found = run(method, data, arguments.epsilon, limit, install=not arguments.quick)
        outcomes.append(found)
        write(outcomes, arguments.out / "peers.csv")  # after each: the slow ones may be stopped by hand
        result = found.problem or f"3-way TV {found.tv3:.4f}"
        print(f"{method:<20}{time.perf_counter() - start:7.1f} s  {result}", file=sys.stderr, flush=True)
    print(
        f"{data.name}: {data.rows:,} rows, {len(data.schema)} attributes, ε = {arguments.epsilon}, δ = {DELTA}"
    )
    show(outcomes)


if __name__ == "__main__":
    main()
