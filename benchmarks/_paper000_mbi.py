"""Private-PGM (`mbi`) and our own estimate, given the same noisy tables in one run; `paper000.py` calls it."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from _distances import compare_cpts
from _paper000_trials import Case
from discreet.compute.consistency import condition
from discreet.values.measurement import Measurement
from discreet.values.table import Table

ENVIRONMENT = ("mbi-2.0.0", ["mbi==2.0.0"])
"""The name of its environment, and what is installed there."""
WORKER = Path(__file__).with_name("_paper000_mbi_worker.py")


def compare_with_mbi(
    case: Case,
    cases: Sequence[Sequence[Measurement]],
    ours: Sequence[tuple[float, Sequence[Table]]],
    python: Path,
    out: Path,
) -> dict[str, float]:
    """Errors and seconds of both on the same tables; `ours` has seconds and conditionals for each case.

    mbi compiles for the first case; its compiled seconds are those of the others. Seconds are for estimating and
    reading off the tables of all families, not for measuring.
    """
    network = case.network
    task = {
        "sizes": network.schema.sizes,
        "families": [list(family) for family in network.dag.families()],
        "cases": [
            [
                {
                    "axes": list(found.axes),
                    "counts": found.noisy.values.ravel().tolist(),
                    "stddev": float(np.sqrt(found.law.variance)),
                }
                for found in measured
            ]
            for measured in cases
        ],
    }
    asked, answered = out / f"mbi-{case.name}-task.json", out / f"mbi-{case.name}-answer.json"
    asked.write_text(json.dumps(task), encoding="utf-8")
    start = time.perf_counter()
    subprocess.run(
        [str(python), str(WORKER), str(asked), str(answered)], check=True, capture_output=True, timeout=3600
    )
    whole = time.perf_counter() - start
    answers = json.loads(answered.read_text(encoding="utf-8"))
    theirs = [
        [
            condition(Table(family, np.array(table)), family)
            for family, table in zip(network.dag.families(), answer["tables"], strict=True)
        ]
        for answer in answers
    ]

    def mean_error(cpts: Sequence[Table]) -> float:
        return compare_cpts(network.dag, network.cpts, cpts, weights=case.weights)

    warm = [answer["seconds"] for answer in answers[1:]] or [answers[0]["seconds"]]
    return {
        "error_ours": float(np.mean([mean_error(cpts) for _, cpts in ours])),
        "error_mbi": float(np.mean([mean_error(cpts) for cpts in theirs])),
        "seconds_ours": float(np.median([seconds for seconds, _ in ours])),
        "seconds_mbi": float(np.median(warm)),
        "seconds_mbi_first": float(answers[0]["seconds"]),
        "seconds_mbi_process": whole,
    }
