"""What a search left out: how much of a dependence it may have missed, from what it has published.

A search measures the pair that the model so far gets most wrong, if its L1 error is more than a part of the noise that
its table would have, and of the noise in its two attributes; choices themselves are noisy. So in a pair that it did not
measure, about

    h = θ·(c·σ + c_a·σ_a + c_b·σ_b) + s

rows may be elsewhere than the model says: c cells with the noise σ that tables of as many cells were bought with, c_a
levels of the first attribute with the noise σ_a that is left in them, and s the scale of a choice's noise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from discreet.networks.intervals.calibrated import INSTEAD
from discreet.networks.provenance import Provenance
from discreet.values.budget import Finite, PureDP
from discreet.values.errors import NetworkError
from discreet.values.table import Array

HIDDEN = 0.4
"""θ, the part of the noise that a dependence may have and be left out [measured]; a search asks for 0.2 and more."""

DROWNED = 0.5
"""Where cells and their noise together come to more than this part of the rows, nothing is known of a dependence."""


@dataclass(frozen=True, slots=True)
class Sight:
    """What a search could see, in rows; all of it is public."""

    rows: float
    price: float
    """√c·σ of a typical measured table of c cells in pure ε, c^⅓·σ in ρ: what the search keeps even."""
    power: float
    """So c cells have c·σ = price·c^power together: ½ in pure ε and ⅔ in ρ."""
    singles: Mapping[str, float]
    """The number of levels times the standard deviation of what noise is left in each, for every attribute."""
    choice: float
    """The scale of the noise in a choice; infinite if none was made."""

    @classmethod
    def of(cls, provenance: Provenance, rows: float) -> Sight:
        """What the search of a release could see."""
        measured = [found for found in provenance.measurements if found.rate == 1 and found.law.variance > 0]
        pure, cost = isinstance(provenance.cost, PureDP), provenance.cost
        power = 1 / 2 if pure else 2 / 3
        prices = [
            math.sqrt(found.law.variance) * found.cells ** (1 - power)
            for found in measured
            if len(found.axes) > 1
        ]
        precision: dict[str, float] = {}
        sizes: dict[str, int] = {}
        for found in measured:
            for name, size in found.noisy.sizes.items():
                precision[name] = precision.get(name, 0.0) + size / (found.law.variance * found.cells)
                sizes[name] = size
        singles = {name: sizes[name] / math.sqrt(known) for name, known in precision.items()}
        count = len(provenance.details.get("choices", ()))
        choice = math.inf
        if count and isinstance(cost, Finite):
            tables = sum(found.cost.amounts[0] for found in measured if isinstance(found.cost, Finite))
            part = max(float(cost.amounts[0] - tables) / count, 1e-12)
            choice = 2 * sum(provenance.unit.moves) / (part if pure else math.sqrt(8 * part))
        return cls(rows, float(np.median(prices or [math.inf])), power, singles, choice)

    def doubt(self, pair: tuple[str, str], first: Array, second: Array) -> float:
        """How many times the variance of chance an unmeasured pair may be off; refused where it may be anything.

        The h rows are spread over the cells as chance spreads them, √(n·p_a·(1 − p_a)·p_b) in each:
        φ = (h / Σ_ab √(n·p_a·(1 − p_a)·p_b))². `first` and `second` are the counts of the levels.
        """
        noise = self.price * (first.size * second.size) ** self.power
        if not noise + self.choice <= DROWNED * self.rows:
            raise NetworkError(
                f"no calibrated intervals: {' and '.join(pair)} were not measured together, and noise would have "
                f"hidden whatever the one has to do with the other; {INSTEAD}"
            )
        hidden = HIDDEN * (noise + sum(self.singles[name] for name in pair)) + self.choice
        one, other = (counts / max(counts.sum(), 1e-9) for counts in (first, second))
        chance = math.sqrt(self.rows) * np.sqrt(one * (1.0 - one)).sum() * np.sqrt(other).sum()
        return float(hidden / max(chance, 1e-9)) ** 2
