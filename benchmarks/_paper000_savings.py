"""How much ε a learner saves: the ε at which D-Ind reaches its error, by interpolation in log ε."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from _paper000_trials import INDEPENDENT, Cells

MEASURES = ("weighted", "marginal", "unweighted", "weighted_data")
RESAMPLES = 200


def find_saving(
    cells: Cells,
    network: str,
    learner: str,
    measure: str,
    grid: Sequence[str],
    runs: range,
    epsilon: str = "1",
) -> tuple[float, float]:
    """ε(D-Ind)/ε at equal mean error, and its standard error from resampled runs; nan if the learner was not run.

    The log of D-Ind's mean error is interpolated linearly in log ε. Beyond the grid the nearest end is reported.
    """
    target = cells.collect("saving", network, learner, epsilon, measure, runs)
    curve = [cells.collect("saving", network, INDEPENDENT, point, measure, runs) for point in grid]
    if not target.size or not all(values.size for values in curve):
        return float("nan"), float("nan")
    points = np.log([float(point) / float(epsilon) for point in grid])

    def read_off(level: float, means: Sequence[float]) -> float:
        # The curve falls; noise in the means may not make it rise again, or the inverse is not defined.
        falling = np.minimum.accumulate(np.log(means))
        return float(np.exp(np.interp(-np.log(level), -falling, points)))

    rng = np.random.default_rng(0)
    resampled = [
        read_off(
            rng.choice(target, target.size).mean(),
            [rng.choice(values, values.size).mean() for values in curve],
        )
        for _ in range(RESAMPLES)
    ]
    return read_off(target.mean(), [values.mean() for values in curve]), float(np.std(resampled))
