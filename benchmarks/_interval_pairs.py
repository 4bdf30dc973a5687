"""Three attributes of which all pairs were measured and the triple was not: how often calibrated intervals hold."""

from __future__ import annotations

from itertools import product

from _interval_trials import Source, bound, find_truth, holds, open_source
from discreet.learning.adaptive import adaptive
from discreet.networks.intervals import Intervals, Whose
from discreet.values.budget import PureDP

NAMES = ("smoke", "lung", "bronc")
PAIRS = [NAMES[:2], NAMES[1:], NAMES[::2]]
SETTINGS = ((1_000, "0.5"), (1_000, "0.15"), (4_000, "1"))
"""Numbers of rows and ε; these were looked at when it was decided what releases are made again from."""


def cover_triple(rows: int, amount: str, release: int) -> list[list[float]]:
    """For each attribute given the two others: whether the interval holds (−1: refused) and its width."""
    whole = open_source("asia", rows, release)
    source = Source(whole.schema.select(NAMES), {name: whole.codes[name] for name in NAMES}, None)
    with source.open("epsilon") as airlock:
        network = adaptive(airlock, spend=PureDP(amount), sets=PAIRS, width=2)
    found = []
    for target, codes in product(NAMES, product((0, 1), repeat=2)):
        others = [name for name in NAMES if name != target]
        levels = {target: 0, **dict(zip(others, codes, strict=True))}
        if not source.count(tuple(others))[codes]:
            continue
        ends = bound(network, target, levels, Intervals.CALIBRATED, Whose.TABLE)
        right = -1.0 if ends is None else float(holds(ends, find_truth(source, target, levels)))
        found.append([right, 0.0 if ends is None else ends[1] - ends[0]])
    return found
