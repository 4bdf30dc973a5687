"""How long the planned learner takes on Alarm, by the number of rows; `paper000.py` calls it."""

from __future__ import annotations

import time
from collections.abc import Sequence

from _paper000_trials import BUDGET, has_planned
from discreet.entrance import open_airlock
from discreet.networks import examples


def time_planned(sizes: Sequence[int], repeats: int) -> list[dict[str, float]]:
    """For each number of rows: seconds to open the airlock, and seconds end to end once the rows are in memory.

    End to end is counting, noise, consistency and conditionals, through the ledger; the best of `repeats` after one
    that is not counted.
    """
    if not has_planned():
        return []
    from discreet.learning.planned import planned

    network = examples.alarm()
    found: list[dict[str, float]] = []
    for rows in sizes:
        data = network.sample(rows, rng=1).arrow()
        start = time.perf_counter()
        airlock = open_airlock(data, network.schema, budget=BUDGET)
        opened = time.perf_counter() - start
        del data
        seconds = []
        for _ in range(repeats + 1):
            start = time.perf_counter()
            planned(airlock, network.dag, spend=1)
            seconds.append(time.perf_counter() - start)
        airlock.close()
        best = min(seconds[1:])
        # The noise and the estimate cost the same for any number of rows; what rows cost is the difference.
        slope = (best - found[-1]["best_s"]) / (rows - found[-1]["rows"]) if found else float("nan")
        found.append(
            {
                "rows": rows,
                "open_s": opened,
                "best_s": best,
                "worst_s": max(seconds[1:]),
                "ns_per_row": best / rows * 1e9,
                "ns_per_further_row": slope * 1e9,
            }
        )
    return found
