"""Bins of a private draft on every column of numbers that ships with pydataset, with simulated noise.

    python benchmarks/_draft_columns.py          # about 1,250 columns of 190 tables, at the noise of ε = 1 and of ε = 3

Rounds and noise are those of `dc.synthesize` with δ = 10⁻⁶ in a table of as many columns (15 at most). Numbers are then
drawn evenly from the bins, as often as the rows are in them: what is off is the draft's doing alone. Off by: the mean
distance between the real and the drawn numbers in order, in deviations of the real ones, and KS.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from _environments import open_environment
from _running import progress
from discreet.doors.private_draft import ROUNDS
from discreet.doors.synthesis import SHARE
from discreet.learning.refinement import Cells, open_numbers
from discreet.values.budget import ApproxDP, allow
from discreet.values.table import Array

MOST_ROWS = 20_000
FEWEST_ROWS = 400
MOST_COLUMNS = 15
PLACES = 3

EXPORT = """
import contextlib, io, sys, warnings
warnings.filterwarnings("ignore")
import numpy as np, pandas as pd, pydataset
found = {}
for name in pydataset.data()["dataset_id"]:
    with contextlib.suppress(Exception), contextlib.redirect_stdout(io.StringIO()):
        table = pydataset.data(name)
        if len(table) < int(sys.argv[2]):
            continue
        for column in table.select_dtypes("number"):
            values = table[column].dropna().to_numpy(float)
            if np.unique(values).size > 2 and not (np.diff(np.sort(values)) == 1).all():
                found[f"{name}|{column}|{table.shape[1]}"] = values
np.savez_compressed(sys.argv[1], **found)
"""


def main() -> None:
    """Draft every column at both budgets and print how far the drawn numbers are off."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="every tenth column")
    asked = parser.parse_args()
    python = open_environment("tables", ("pydataset", "pandas"), install=True)
    if isinstance(python, str):
        sys.exit(f"draft columns: {python}")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "columns.npz"
        subprocess.run([str(python), "-c", EXPORT, str(file), str(FEWEST_ROWS)], check=True)
        columns = dict(np.load(file))
    names = sorted(columns)[:: 10 if asked.quick else 1]
    for epsilon in (1, 3):
        rho = float(next(iter(allow(ApproxDP(epsilon, "1e-6")).amounts)))
        off = []
        with progress(f"ε = {epsilon}", len(names)) as advance:
            for i, name in enumerate(names):
                rng = np.random.default_rng([epsilon, i])
                share = rho * float(SHARE) / min(int(name.rpartition("|")[2]), MOST_COLUMNS)
                off.append(draft(rng.permutation(columns[name])[:MOST_ROWS], share, rng))
                advance()
        drawn = np.array([found for found in off if found is not None])
        print(f"columns_{epsilon}: {len(names)}")
        print(f"left_out_{epsilon}: {len(off) - len(drawn)}")
        print(f"distance_{epsilon}: {drawn[:, 0].mean():.3f}")
        print(f"ks_{epsilon}: {drawn[:, 1].mean():.3f}")


def draft(values: Array, rho: float, rng: np.random.Generator) -> tuple[float, float] | None:
    """How far numbers drawn from the drafted bins are off; None if the column would be left out."""
    places = count_places(values)
    cells: Cells | None = open_numbers(places)
    told: Cells | None = None
    for part in ROUNDS:
        if cells is None:
            break
        deviation = math.sqrt(1 / (2 * rho * float(part)))
        counts = np.bincount(place(values, np.array(cells.edges)), minlength=len(cells.edges) - 1)
        found = cells.measure(counts + np.round(rng.normal(0, deviation, counts.size)), deviation)
        told = found if told is None else found.agree(told)
        cells = told.split()
    edges = None if told is None else told.cut()
    if told is None or edges is None:
        return None
    bins = told.pin(edges)
    grid = np.array(bins.edges)
    at = place(values, grid)
    grain = 10.0**-places if places is not None else 1e-6
    drawn = np.floor((grid[at] + (grid[at + 1] - grid[at]) * rng.random(len(at))) / grain + 1e-9) * grain
    drawn = np.sort(np.where(np.isin(grid[at], bins.points), grid[at], drawn))
    real = np.sort(values)
    both = np.union1d(real, drawn)
    below = [np.searchsorted(known, both, side="right") for known in (real, drawn)]
    return float(np.abs(real - drawn).mean() / real.std()), float(
        np.abs(below[0] - below[1]).max() / len(real)
    )


def place(values: Array, edges: Array) -> Array:
    """The bin of each number; what lies beyond counts in the nearest."""
    return np.asarray(np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2))


def count_places(values: Array) -> int | None:
    """How many decimals nearly all numbers have at most; None if more than three."""
    for places in range(PLACES + 1):
        scaled = values * 10**places
        if np.mean(np.abs(scaled - np.round(scaled)) < 1e-6) > 0.995:
            return places
    return None


if __name__ == "__main__":
    main()
