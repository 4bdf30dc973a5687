"""How fast Alarm (37 attributes) is sampled, here and by pgmpy, in one run; `inference.py` calls it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from discreet.networks import examples
from discreet.networks.formats.interchange import to_pgmpy
from discreet.networks.synthetic import Rows

ROWS = 1_000_000
PEER_ROWS = 30_000
"""Of 10 000, 30 000, 100 000 and 200 000 rows, the number at which pgmpy's rate was highest when tried."""


def measure_sampling(quick: bool) -> dict[str, float]:
    """Million cells per second to codes, best and worst of several after a warm-up, and ratios of rates.

    `sampling_over_pgmpy` compares codes with `simulate`. That makes a frame of categories, so
    `sampling_frame_over_pgmpy` compares it with our frame of categories, at as many rows.
    """
    network = examples.alarm()
    tables = [network.cpt(name) for name in network.dag.order]
    repeats = 3 if quick else 7

    def rows(n: int, seed: int) -> Rows:
        return Rows.draw(network.schema, tables, n, rng=seed)

    ours = time_rates(lambda seed: rows(ROWS, seed).codes(), ROWS * len(tables), repeats)
    frames = time_rates(lambda seed: rows(PEER_ROWS, seed).pandas(), PEER_ROWS * len(tables), repeats)
    model = to_pgmpy(network)
    logging.disable(logging.WARNING)
    try:
        theirs = time_rates(
            lambda seed: model.simulate(n_samples=PEER_ROWS, seed=seed, show_progress=False),
            PEER_ROWS * len(tables),
            repeats,
        )
    finally:
        logging.disable(logging.NOTSET)
    return {
        "sampling_mcells_per_s": max(ours),
        "sampling_mcells_per_s_worst": min(ours),
        "sampling_frame_mcells_per_s": max(frames),
        "sampling_pgmpy_mcells_per_s": max(theirs),
        "sampling_over_pgmpy": max(ours) / max(theirs),
        "sampling_frame_over_pgmpy": max(frames) / max(theirs),
    }


def time_rates(draw: Callable[[int], object], cells: int, repeats: int) -> list[float]:
    """Million cells per second of each repeat, each with its own seed, after one that is not counted."""
    rates = []
    for seed in range(repeats + 1):
        start = time.perf_counter()
        draw(seed)
        rates.append(cells / (time.perf_counter() - start) / 1e6)
    return rates[1:]
