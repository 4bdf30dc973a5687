"""A prototype: attributes of many levels are searched in a few bins of about equal weight, and drawn by margins inside.

The margins that bins and drawing follow get a small part of the budget first; their noise is seeded, so nothing of it
may be released.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from discreet.compute.consistency import project_on_simplex
from discreet.compute.smoothing import shrink_levels

FIRST = 0.07
"""The part of the budget for the margins of attributes with many levels."""

Codes = dict[str, np.ndarray]


def cut(counts: np.ndarray, bins: int) -> np.ndarray:
    """The bin of each level: neighbours that together hold no more than one part in `bins`, or one level alone."""
    places = np.zeros(len(counts), dtype=np.int64)
    held = 0.0
    for i, count in enumerate(counts):
        begins = i > 0 and held + count > counts.sum() / bins
        places[i] = places[max(i - 1, 0)] + begins
        held = count if begins else held + count
    return places


def draw_merged(
    sizes: dict[str, int],
    codes: Codes,
    amount: float,
    pure: bool,
    bins: int,
    fit: Callable[[dict[str, int], Codes, float], Any],
    seed: int,
) -> Codes:
    """As many rows as there are, of a network of merged levels; `fit` learns one for an ε or a ρ."""
    rng = np.random.default_rng(seed)
    rows = len(next(iter(codes.values())))
    wide = [name for name, size in sizes.items() if size > bins]
    share = FIRST * amount / max(1, len(wide))
    spread = math.sqrt(2) / share if pure else math.sqrt(1 / (2 * share))
    margins, places = {}, {}
    for name in wide:
        noise = rng.laplace(0, 1 / share, sizes[name]) if pure else rng.normal(0, spread, sizes[name])
        noisy = np.bincount(codes[name], minlength=sizes[name]) + noise
        margins[name] = project_on_simplex(shrink_levels(noisy, spread**2), float(rows)) + 1e-9
        places[name] = cut(margins[name], bins)
    merged = {name: places[name][found] if name in places else found for name, found in codes.items()}
    fewer = {name: int(places[name].max()) + 1 if name in places else size for name, size in sizes.items()}
    found = fit(fewer, merged, amount * (1 - FIRST if wide else 1))
    drawn = dict(found.sample(rows, rng=seed).codes())
    for name in wide:
        fine = np.empty(rows, dtype=np.int64)
        for place in range(fewer[name]):
            mine, levels = np.flatnonzero(drawn[name] == place), np.flatnonzero(places[name] == place)
            ends = np.cumsum(margins[name][levels]) / margins[name][levels].sum()
            even = (np.arange(mine.size) + rng.random()) / max(1, mine.size)
            chosen = np.searchsorted(ends, even, side="right").clip(0, len(levels) - 1)
            fine[mine] = levels[rng.permutation(chosen)]
        drawn[name] = fine
    return drawn
