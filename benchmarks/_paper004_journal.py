"""What an experiment has measured so far, one line for each run: a grid that was interrupted goes on where it stood."""

from __future__ import annotations

import csv
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

HEADER = ["figure", "table", "series", "epsilon", "seed", "value"]
Row = tuple[str, str, str, str, float, float, int]
"""Figure, table, series, ε, the mean over the runs, its standard error (nan for one run), and how many they are."""


@dataclass(frozen=True, slots=True)
class Job:
    """One point of a figure: a run for each seed."""

    figure: str
    table: str
    series: str
    epsilon: str
    run: Callable[[int], float]
    repeats: int | None = None
    """Its own number of runs: fewer where all are alike or each takes long, more where they cost nothing."""


@dataclass(slots=True)
class Journal:
    """The runs in a CSV file, or only in memory if there is none."""

    path: Path | None
    known: dict[tuple[str, str, str, str, str], float] = field(default_factory=dict)

    @classmethod
    def open(cls, path: Path | None) -> Journal:
        """The journal in this file, with the runs that it holds already."""
        journal = cls(path)
        if path is not None and path.exists():
            with path.open(newline="", encoding="utf-8") as file:
                for *key, value in list(csv.reader(file))[1:]:
                    journal.known[tuple(key)] = float(value)  # type: ignore[index]
        elif path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("w", newline="", encoding="utf-8") as file:
                csv.writer(file).writerow(HEADER)
        return journal

    def measure(self, jobs: Sequence[Job], repeats: int) -> list[Row]:
        """The mean of every job with its standard error; runs that are known are not made again."""
        rows: list[Row] = []
        start = time.perf_counter()
        for i, job in enumerate(jobs):
            values = [self._run(job, seed) for seed in range(job.repeats or repeats)]
            runs = len(values)
            spread = float(np.std(values, ddof=1)) / runs**0.5 if runs > 1 else float("nan")
            rows.append(
                (job.figure, job.table, job.series, job.epsilon, float(np.mean(values)), spread, runs)
            )
            print(
                f"{job.figure:<14}{job.table:<8}{job.series:<28}ε={job.epsilon:<8}{rows[-1][4]:8.4f} ±{spread:.4f}"
                f" ({runs})   {i + 1}/{len(jobs)}, {time.perf_counter() - start:.0f} s",
                file=sys.stderr,
                flush=True,
            )
        return rows

    def _run(self, job: Job, seed: int) -> float:
        key = job.figure, job.table, job.series, job.epsilon, str(seed)
        if key not in self.known:
            self.known[key] = float(job.run(seed))
            if self.path is not None:
                with self.path.open("a", newline="", encoding="utf-8") as file:
                    csv.writer(file).writerow([*key, repr(self.known[key])])
        return self.known[key]
