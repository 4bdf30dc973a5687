"""How long a search takes and what memory it needs, said beforehand by a law of public numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discreet.learning.searching.attribute_sets import (
    CANDIDATE_CELLS,
    MANY_ATTRIBUTES,
    MOST_CANDIDATES,
    MOST_PAIRS,
)
from discreet.learning.searching.prices import (
    COVERED_CELLS,
    MANY_BATCHES,
    Prices,
    Rates,
    price_choice,
    price_singles,
    price_unit,
)
from discreet.values.table import count_cells

START = 0.8
"""Seconds until everything is loaded and compiled."""
COUNTED = 4e8
"""Rows that are counted in a second, once for every candidate."""
LOOKED = 1e-4
"""Seconds for a candidate whenever the model changed: what it expects there is worked out again."""
WEIGHED = 5e-6
"""Seconds for a candidate at a choice of many attributes; where they are few, it is in the look."""
PLANNED = 2e-5
"""Seconds for each attribute when a tree of many is made to hold one more set."""
FIT_ATTRIBUTE, FIT_CELL = 1.7e-3, 1e-6
"""Seconds of a fit, for each attribute and each cell of the model."""
LAST_FITS, AVERAGED = 10, 50
"""Fits after the last choice: links are dropped and the model is fitted again a few times; and where nothing is chosen,
because all pairs are measured: four models of the tables, and of the tables disturbed, are averaged."""
PROCESS, CANDIDATE, COPIES, CODE = 240e6, 2e3, 24, 3
"""Bytes of a process, of a candidate, of a candidate's cell and of a code."""


@dataclass(frozen=True, slots=True)
class Effort:
    """What a search takes, about: less if it finds nothing more."""

    seconds: float
    """Of one processor."""
    megabytes: float
    """Of the process, with the codes of the rows and without the file that they come from."""
    at_most: bool = False
    """Whether most tables take less: of many attributes the last batches are seldom needed."""

    def __str__(self) -> str:
        seconds, megabytes = (float(f"{amount:.2g}") for amount in (self.seconds, self.megabytes))
        words = "at most about" if self.at_most else "about"
        return f"{words} {seconds:,.0f} s of one processor and {megabytes:,.0f} MB of memory"


def predict_effort(
    sizes: Sequence[int], rows: float, *, batches: int, candidates: int, cells: int, model_cells: int
) -> Effort:
    """The effort of a search that looks at so many candidates, of so many cells in all, so many times.

    t = start + n·C/v + B·C·l + (B + f)·(a·d + c·M): counting, looking and fitting, with n rows, C candidates,
    B batches, d attributes and M cells of the model [measured on one core of 2026]; f is larger without a batch. Many
    attributes look at all candidates C once, and in later batches, for each of K choices, at no more than C' of them:
    + K·C'·w, and B·C' in place of B·C.
    """
    fit = FIT_ATTRIBUTE * len(sizes) + FIT_CELL * min(model_cells, count_cells(sizes))
    looking = rows * candidates / COUNTED
    if len(sizes) > MANY_ATTRIBUTES and batches:
        later = min(candidates, MOST_PAIRS + MOST_CANDIDATES)
        choices = (batches - 1) * round(Rates().batch * len(sizes))
        looking += candidates * (LOOKED + len(sizes) / 10 * WEIGHED)
        looking += later * ((batches - 1) * LOOKED + choices * WEIGHED)
        looking += (len(sizes) + choices) * len(sizes) * PLANNED
    else:
        looking += batches * candidates * LOOKED
    space = PROCESS + CANDIDATE * candidates + COPIES * cells + CODE * rows * len(sizes)
    covered = not batches and count_cells(sizes) <= min(model_cells, COVERED_CELLS)
    fits = AVERAGED if covered else batches + LAST_FITS
    return Effort(START + looking + fits * fit, space / 1e6, len(sizes) > MANY_ATTRIBUTES)


def count_looked(sizes: Sequence[int], looked: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """The most candidates of a choice, and their cells, by those that were rehearsed.

    Many attributes take turns at first and look at all pairs only where some are linked to nothing.
    """
    candidates, cells = max(looked, default=(0, 0))
    if len(sizes) > MANY_ATTRIBUTES and candidates:
        all_cells = (sum(sizes) ** 2 - sum(size * size for size in sizes)) // 2
        candidates = max(candidates, math.comb(len(sizes), 2))
        cells = max(cells, min(all_cells, CANDIDATE_CELLS))
    return candidates, cells


def count_batches(prices: Prices, sizes: Sequence[int], rows: float, rates: Rates) -> int:
    """How often a search chooses and fits at most, if every choice finds a typical pair."""
    typical = float(np.median([one * other for i, one in enumerate(sizes) for other in sizes[i + 1 :]]))
    left = 1.0 - float(price_singles(prices, sizes, rows, rates))
    priced = Prices(
        prices.gaussian,
        prices.l1,
        prices.l2_squared,
        prices.amount,
        price_unit(prices, typical, rows, left, len(sizes), rates),
    )
    pairs = left / (priced.table(typical) + float(price_choice(priced, typical, rows, rates)))
    step = max(2, round(rates.batch * len(sizes)))
    if len(sizes) <= MANY_ATTRIBUTES:
        return math.ceil(pairs / step)
    return min(1 + math.ceil(max(0.0, pairs - len(sizes)) / step), MANY_BATCHES)
