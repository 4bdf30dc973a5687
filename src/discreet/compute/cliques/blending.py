"""A model between independence and all that noisy tables say, as near to the latter as the noise allows.

Where noise drowns dependence, a model of all tables is worse than none, and where it does not, far better; in between,
so is a mean of both, and of models of what stands out. Which mean follows from the noise alone: Stein's estimate of its
error, as in Mallows' averaging of models [Hansen 2007].
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from random import Random

import numpy as np

from discreet.compute.cliques.entropy import fit_margins
from discreet.compute.cliques.model import CliqueModel
from discreet.compute.cliques.thinning import Evidence, centre, link_loud
from discreet.values.patience import require_time
from discreet.values.table import Array, Table

LOUD = (4.0, 1.5)
"""Models of the links that stand out by so many limits are averaged with those of all links and of none."""
GRAIN = 4096
"""Weights of models are multiples of one in so many."""
PROBES = 4
"""How often the tables are disturbed to see how far an estimate follows them; each takes all fits once more."""
DISTURBED = 0.5
"""By how much of their noise: so little that nothing else happens, so much that corners are rounded off."""

Estimator = Callable[[Sequence[Table]], list[Table]]
"""What noisy tables say of each set that no other contains."""


@dataclass(frozen=True, slots=True, eq=False)
class _Fits:
    """Models of the same tables, and the interactions of all pairs in standard deviations of their noise."""

    margins: list[Table]
    models: tuple[CliqueModel, ...]
    """Without a link, with those that stand out, and with all."""
    told: Array
    """What the noisy tables say."""
    beyond: Array
    """What each model but the first says beyond it, a row each."""
    chance: Array
    """What the first says."""

    @classmethod
    def of(
        cls,
        sizes: Mapping[str, int],
        noisy: Sequence[Table],
        variances: Sequence[float],
        rows: float,
        estimate: Estimator,
    ) -> _Fits:
        """Estimate, fit, and compare all pairs."""
        require_time()
        margins = estimate(noisy)
        evidence = Evidence.of(noisy, variances, rows)
        full = fit_margins(sizes, margins)
        apart = fit_margins(sizes, [_find_single(name, margins) for name in sizes])
        models = (apart, *(link_loud(full, margins, evidence, limit) for limit in LOUD), full)
        pairs = evidence.list_sets(2)
        said = [{frozenset(table.axes): table for table in model.margins(pairs)} for model in models]
        parts: list[list[Array]] = [[] for _ in range(len(models) + 1)]
        for pair in pairs:
            known, variance = evidence.read(pair)
            counts = [rows * found[frozenset(pair)].arrange(pair).values for found in said]
            for part, values in zip(parts, (known.values, *counts), strict=True):
                part.append(centre(values).ravel() / math.sqrt(variance))
        told, chance, *others = (np.concatenate(part) for part in parts)
        return cls(margins, models, told, np.array(others) - chance, chance)


def blend(
    sizes: Mapping[str, int],
    noisy: Sequence[Table],
    variances: Sequence[float],
    rows: float,
    estimate: Estimator,
) -> CliqueModel:
    """The mean of models of noisy tables that has the least expected squared error in pairs.

    With m_k the interactions of the models beyond independence, and x the noisy ones, all in standard deviations, the
    weights w ≥ 0, Σw ≤ 1, minimise |Σ w_k·m_k − x|² + 2·Σ w_k·c_k. c_k = Σ cov(x, m_k) is what a model owes to
    following the noise [Stein 1981]; it is seen by disturbing the tables a little [Ramani, Blu & Unser 2008]. The
    disturbances are the same signs every time, so that a release can be made again from its tables.
    """
    found = _Fits.of(sizes, noisy, variances, rows, estimate)
    signs = Random(0)
    followed = np.zeros(len(found.beyond))
    for _ in range(PROBES):
        moved = [
            Table(
                table.axes,
                table.values + DISTURBED * math.sqrt(variance) * _draw_signs(signs, table.values.shape),
            )
            for table, variance in zip(noisy, variances, strict=True)
        ]
        other = _Fits.of(sizes, moved, variances, rows, estimate)
        followed += (other.beyond - found.beyond) @ (other.told - found.told) / (DISTURBED**2 * PROBES)
    weights = weigh_models(
        found.beyond @ found.beyond.T, found.beyond @ (found.told - found.chance) - followed
    )
    shares = list(zip(found.models, (1.0 - sum(weights), *weights), strict=True))
    alone = next((model for model, share in shares if share == 1.0), None)
    return alone or fit_margins(sizes, [_mix(table.axes, shares) for table in found.margins])


def weigh_models(products: Array, gains: Array) -> list[float]:
    """The w ≥ 0 with Σw ≤ 1 that minimise w·A·w − 2·g·w: the best of all faces of that simplex.

    On a face, where some weights are 0 and the sum is free or 1, it is a linear system; of few models there are few.
    Models may be nearly or wholly the same, so that a system has many solutions and the last digits of one are those of
    the processor. Of faces as good as each other the first is taken, and weights are `GRAIN`ths: everybody who makes a
    release again has to find the same ones.
    """
    best, least = [0.0] * len(gains), 0.0
    for size in range(1, len(gains) + 1):
        for face in combinations(range(len(gains)), size):
            part, gain = products[np.ix_(face, face)], gains[list(face)]
            bordered = np.block([[part, np.ones((size, 1))], [np.ones((1, size)), np.zeros((1, 1))]])
            for matrix, goal in ((part, gain), (bordered, np.append(gain, 1.0))):
                found = np.linalg.lstsq(matrix, goal, rcond=None)[0][:size]
                value = float(found @ part @ found - 2 * gain @ found)
                better = value < least - 1e-6 * (1.0 + abs(least))
                if better and (found >= -1e-9).all() and found.sum() <= 1 + 1e-9:
                    best, least = [0.0] * len(gains), value
                    for i, weight in zip(face, found, strict=True):
                        best[i] = max(0.0, float(weight))
    parts = [round(GRAIN * weight) for weight in best]
    parts[parts.index(max(parts))] -= max(0, sum(parts) - GRAIN)  # rounding may pass the whole by one or two
    return [part / GRAIN for part in parts]


def _mix(axes: tuple[str, ...], shares: Sequence[tuple[CliqueModel, float]]) -> Table:
    """The mean of what models say of some attributes."""
    mean: Array = np.zeros(())
    for model, share in shares:
        if share:
            (said,) = model.margins([axes])
            mean = mean + share * said.arrange(axes).values
    return Table(axes, mean)


def _find_single(name: str, margins: Sequence[Table]) -> Table:
    """The margin of one attribute, from the smallest table that has it."""
    return min((table for table in margins if name in table.axes), key=lambda table: table.cells).project(
        [name]
    )


def _draw_signs(source: Random, shape: tuple[int, ...]) -> Array:
    """As many 1 and −1, from bits that are the same in every version of Python and NumPy."""
    cells = math.prod(shape)
    drawn = source.getrandbits(8 * (-(-cells // 8))).to_bytes(-(-cells // 8), "little")
    bits = np.unpackbits(np.frombuffer(drawn, dtype=np.uint8), count=cells)
    return (2.0 * bits - 1.0).reshape(shape)
