"""Private-PGM on tables that `_paper000_mbi.py` hands over; runs in an environment of its own, without discreet.

Reads {"sizes": {name: levels}, "families": [[...]], "cases": [[{"axes", "counts", "stddev"}, ...], ...]} from the file
that is named first, and writes the family tables and seconds of each case to the second. Every case has the same sets,
so that only the first one pays for compilation.
"""

from __future__ import annotations

import json
import sys
import time

import numpy as np
from mbi import Domain, estimation, marginal_loss


def main() -> None:
    """Estimate every case with mirror descent, the package's recommended estimator, at its default settings."""
    with open(sys.argv[1], encoding="utf-8") as file:
        task = json.load(file)
    domain = Domain(list(task["sizes"]), list(task["sizes"].values()))
    estimator = estimation.MirrorDescent()
    answers = []
    for case in task["cases"]:
        start = time.perf_counter()
        measured = [
            marginal_loss.LinearMeasurement(
                np.array(found["counts"], dtype=float), tuple(found["axes"]), stddev=found["stddev"]
            )
            for found in case
        ]
        model = estimator.estimate(domain, measured)
        tables = [read_family(model, family, task["sizes"]) for family in task["families"]]
        answers.append(
            {"seconds": time.perf_counter() - start, "tables": [table.tolist() for table in tables]}
        )
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        json.dump(answers, file)


def read_family(model: object, family: list[str], sizes: dict[str, int]) -> np.ndarray:
    """The table over a family, its axes in the family's order."""
    factor = model.project(tuple(family))  # type: ignore[attr-defined]
    found = list(factor.domain.attributes)
    values = np.asarray(factor.datavector()).reshape([sizes[name] for name in found])
    return values.transpose([found.index(name) for name in family])


if __name__ == "__main__":
    main()
