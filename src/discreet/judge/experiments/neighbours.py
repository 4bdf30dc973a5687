"""The many-run audit of a whole learner: learn again and again from two tables that differ in one row.

`empirical_epsilon` does the counting; this module finds a pair of tables on which a leak shows, and
reads a release as numbers. It costs hundreds of runs, needs no assumption, and is the only way to see a leak
that one release cannot show.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.judge.attacks.codes import Codes, Floats, flatten_codes, take_rows
from discreet.judge.attacks.published import Published
from discreet.judge.experiments.empirical_epsilon import EpsilonBound, empirical_epsilon
from discreet.values.errors import DataError

Learn = Callable[[dict[str, npt.NDArray[Any]]], Published]

ABSENT = -1e9
"""Stands for a number that a release does not have."""


def make_neighbours(
    sizes: Mapping[str, int], rows: int = 12, *, unit: str = "add-remove"
) -> tuple[dict[str, npt.NDArray[Any]], dict[str, npt.NDArray[Any]]]:
    """Two tables that differ in one row, which lies in cells that are empty without it: the worst case for counts.

    The others all have the first level of everything, the target has the last. Under replace-one its
    neighbour has another one like the others in its place.
    """
    if rows < 2:
        raise DataError(f"two neighbouring tables need at least 2 rows, not {rows}")
    codes = {name: np.zeros(rows, dtype=np.int64) for name in sizes}
    for name, size in sizes.items():
        codes[name][-1] = size - 1
    if unit == "replace-one":
        return codes, {name: np.zeros_like(column) for name, column in codes.items()}
    return codes, take_rows(codes, np.arange(rows - 1))


def audit_learner(
    learn: Learn, tables: tuple[Codes, Codes], *, trials: int, delta: float = 0.0, confidence: float = 0.99
) -> EpsilonBound:
    """A lower bound on the ε of a learner from so many runs on each of two neighbouring tables."""
    target = {name: column[-1:] for name, column in tables[0].items()}
    sides = [[list_numbers(learn(dict(table)), target) for _ in range(trials)] for table in tables]
    width = max(len(found) for side in sides for found in side)
    # A release that has fewer numbers on one side gives itself away by that.
    one, other = (
        np.array([np.pad(found, (0, width - len(found)), constant_values=ABSENT) for found in side])
        for side in sides
    )
    return empirical_epsilon(
        lambda n: one[:n], lambda n: other[:n], trials=trials, delta=delta, confidence=confidence
    )


def list_numbers(published: Published, target: Codes) -> Floats:
    """A release as numbers that tell about one row: its noisy cells, the tables' totals, its conditionals."""
    numbers: list[float] = []
    for measurement in published.measurements:
        noisy = measurement.noisy.values
        if measurement.axes and all(
            int(target[name][0]) < size for name, size in measurement.noisy.sizes.items()
        ):
            place = int(flatten_codes(target, measurement.axes, noisy.shape)[0])
            numbers.append(float(noisy.ravel()[place]))
        numbers.append(float(noisy.sum()))
    for cpt in published.cpts or ():
        values = cpt.values
        if all(int(target[name][0]) < size for name, size in cpt.sizes.items()):
            numbers.append(float(values.ravel()[int(flatten_codes(target, cpt.axes, values.shape)[0])]))
    return np.array(numbers)
