"""Private draws: a specification of what is drawn, from which counts, and what one draw costs at most.

The draws here are of parameters of a network. The levels of a node are halved again and again, until they are single: a
conditional of k levels is k − 1 splits, and a level lies below at most D = ⌈log₂ k⌉ of them. Each split has the
probability of its first half, on a public grid of one dimension, however many levels there are. Under a Dirichlet prior
the splits are independent and have Beta priors, whose parameters are the sums of the α of the halves. All splits of one
depth see different rows, so a depth costs as much as one split.

Scores are whole numbers of 2^-16 and OpenDP's Gumbel noise picks by them exactly, so the stated loss needs no allowance
for rounding.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.core.counter import TrueCounts
from discreet.core.mechanism import NoisyChoice, Selection, calibrate_choice
from discreet.core.noise import choose
from discreet.papers.posterior.halving import (
    LEAST_FLOOR,
    WIDEST,
    Split,
    bound_split,
    list_splits,
    lower_levels,
    require_splits,
    share_of,
    spread_above,
    spread_within,
)
from discreet.values.budget import Finite, afford_pure
from discreet.values.errors import FormatError, MechanismError
from discreet.values.table import Array
from discreet.values.text import float_below
from discreet.values.unit import Unit

Integers = npt.NDArray[np.int64]

GRAIN = 2**16
"""Log-probabilities are rounded to whole multiples of 1/GRAIN, in which sums over rows are exact."""
USUAL_SPREAD = math.log(19)
"""Without a floor of its own, half of two levels has a probability from 0.05 to 0.95 in the search for the maximum."""
POINTS = 1025
"""The points of a split's grid, unless others are asked for."""
MOST_ROWS = 2**31
"""The most rows that a posterior is drawn from, and the most that a prior may weigh: with LEAST_FLOOR every score is a
whole number that a float64 holds exactly."""


@dataclass(frozen=True, slots=True, eq=False)
class SplitGrid:
    """The splits of one depth below one node: their public grids, their priors, and how a point is chosen.

    A split's probability lies within `spread` of the uniform one in log-odds. One row moves log P(half) by at most
    `reach` between two points of the grid, so under add-remove a choice with P(θ) ∝ exp(score/scale) loses
    ε = reach/scale, and under replace-one, where one row goes and one comes, twice that: of all splits of this depth a
    row is counted in at most one.
    """

    family: tuple[str, ...]
    depth: int
    steps: int
    """The grid has one point more."""
    spread: float
    prior: Array
    """The α of the Dirichlet priors, over the family."""
    choice: NoisyChoice

    def __post_init__(self) -> None:
        name = self.family[-1]
        prior = np.array(self.prior, dtype=np.float64)  # a copy: what was priced is what is drawn from
        if not (np.isfinite(prior).all() and (prior > 0).all()):
            raise MechanismError(f"the α of {name!r} must be finite and above 0")
        prior.flags.writeable = False
        object.__setattr__(self, "prior", prior)
        if not float(np.sum(self.prior)) <= MOST_ROWS:
            raise MechanismError(f"the α of {name!r} sum to more than 2^31, beyond exact scores")
        if not self.splits:
            raise MechanismError(f"{name!r} has {prior.shape[-1]} levels, and no split at depth {self.depth}")
        if not 0 < self.spread < WIDEST or min(map(self.find_floor, self.splits)) < LEAST_FLOOR * (1 - 1e-9):
            raise MechanismError(
                f"a half of the levels of {name!r} has a probability of at least 2^-20, not one at {self.spread:g} of "
                "log-odds from the uniform one"
            )
        if self.choice.sensitivity < _halve(max(map(self.measure_reach, self.splits)), self.choice.unit):
            raise MechanismError(f"the grid of {name!r} is wider than its choice allows")

    @property
    def splits(self) -> tuple[Split, ...]:
        """The splits of this depth, in the order of the levels."""
        depths = list_splits(self.prior.shape[-1])
        return depths[self.depth] if 0 <= self.depth < len(depths) else ()

    def find_floor(self, split: Split) -> float:
        """The least probability of a half."""
        low, high = bound_split(split, self.spread)
        return min(low, 1.0 - high)

    def measure_reach(self, split: Split) -> int:
        """How far a row moves the score of one point against that of another, in units of 1/GRAIN."""
        return measure_reach(self.round_logs(split))

    def round_logs(self, split: Split) -> Integers:
        """The logarithms of both halves' probabilities at every point, in whole multiples of 1/GRAIN."""
        return round_logs(share_of(split), self.steps, self.spread)

    def place(self, split: Split, number: int) -> float:
        """The probability of the first half at a point of the grid."""
        low, high = bound_split(split, self.spread)
        return low + (high - low) * number / self.steps

    def draw(self, true_counts: Array) -> list[list[int]]:
        """For each conditional, and each split of this depth, a point drawn from the (tempered) posterior."""
        counts = np.asarray(true_counts, dtype=np.int64).reshape(-1, self.prior.shape[-1])
        if int(counts.sum()) > MOST_ROWS:
            raise MechanismError("a posterior is drawn from at most 2^31 rows")  # counters hold no more
        priors = self.prior.reshape(counts.shape)
        return [
            [choose(self.score(split, row, alpha), self.choice) for split in self.splits]
            for row, alpha in zip(counts, priors, strict=True)
        ]

    def score(self, split: Split, row: Integers, alpha: Array) -> Array:
        """The log-posterior of every point of a split, in units of 1/GRAIN, as whole numbers; the largest is 0."""
        start, middle, stop = split
        logs = self.round_logs(split)
        both = np.array([row[start:middle].sum(), row[middle:stop].sum()], dtype=np.int64)
        pseudo = np.array([alpha[start:middle].sum(), alpha[middle:stop].sum()]) - 1.0
        scores = logs @ both + np.rint(logs.astype(np.float64) @ pseudo).astype(np.int64)
        return np.asarray(scores - scores.max(), dtype=np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class PosteriorDraw:
    """One draw of all parameters of a network: all conditionals are independent given the counts [002, Thm. 4]."""

    kind: str
    grids: tuple[SplitGrid, ...]
    cost: Finite
    unit: Unit

    def __post_init__(self) -> None:
        self.unit.require_rows(f"a {self.kind}")
        strange = [grid for grid in self.grids if grid.choice.unit != self.unit]
        if strange:
            raise MechanismError(
                f"{self.kind}: {strange[0].family[-1]!r} is drawn for {strange[0].choice.unit}, not {self.unit}"
            )
        total = sum((grid.choice.cost for grid in self.grids[1:]), start=self.grids[0].choice.cost)
        if not total <= self.cost:
            raise MechanismError(f"{self.kind}: its splits cost {total}, more than the stated {self.cost}")

    @property
    def families(self) -> tuple[tuple[str, ...], ...]:
        """The families, in the order of their first grid."""
        return tuple(dict.fromkeys(grid.family for grid in self.grids))

    def describe(self) -> dict[str, Any]:
        """The grid and the scale of every depth of every node."""
        return {
            "verb": "draw",
            "draw": self.kind,
            "families": [list(grid.family) for grid in self.grids],
            "depths": [grid.depth for grid in self.grids],
            "spreads": [grid.spread.hex() for grid in self.grids],
            "steps": [grid.steps for grid in self.grids],
            "scales": [grid.choice.scale.hex() for grid in self.grids],
            "priors": [np.asarray(grid.prior).ravel().tolist() for grid in self.grids],
        }

    def check(self, rows: TrueCounts) -> None:
        """Refuse families that cannot be counted."""
        rows.counter.check(self.families)

    def draw(self, rows: TrueCounts) -> list[Any]:
        """The numbers of the points, of every grid: one list for each combination of the parents."""
        tables = dict(zip(self.families, rows.counter.count(self.families), strict=True))
        return [grid.draw(tables[grid.family].values) for grid in self.grids]

    def read(self, stored: list[Any]) -> list[Any]:
        """The numbers as they were drawn."""
        return stored

    def rehearse(self, rows: int, sizes: Mapping[str, int]) -> list[Any]:
        """The middle of every grid."""
        return [
            [[grid.steps // 2] * len(grid.splits)] * (grid.prior.size // grid.prior.shape[-1])
            for grid in self.grids
        ]

    def require_answer(self, stored: list[Any]) -> None:
        """Refuse what cannot have been drawn: other points than those of the grids."""
        if len(stored) != len(self.grids):
            raise FormatError(f"{len(stored)} lists of points were published, not {len(self.grids)}")
        for grid, lines in zip(self.grids, stored, strict=True):
            conditionals, splits = grid.prior.size // grid.prior.shape[-1], len(grid.splits)
            if not (
                isinstance(lines, list)
                and len(lines) == conditionals
                and all(isinstance(line, list) and len(line) == splits for line in lines)
                and all(
                    type(number) is int and 0 <= number <= grid.steps for line in lines for number in line
                )
            ):
                raise FormatError(
                    f"the points of {grid.family[-1]!r} are not {conditionals} times {splits} whole numbers up to "
                    f"{grid.steps}"
                )

    def join(self, drawn: Sequence[Any]) -> tuple[Array, ...]:
        """The conditionals of every family, one to a line: a level's probability is the product along its splits."""
        found: dict[tuple[str, ...], Array] = {}
        for grid, lines in zip(self.grids, drawn, strict=True):
            shape = (len(lines), grid.prior.shape[-1])
            values = found.setdefault(grid.family, np.ones(shape))
            for i, numbers in enumerate(lines):
                for (start, middle, stop), number in zip(grid.splits, numbers, strict=True):
                    first = grid.place((start, middle, stop), number)
                    values[i, start:middle] *= first
                    values[i, middle:stop] *= 1.0 - first
        return tuple(found.values())

    def floors(self) -> dict[str, float]:
        """The least probability that a level of each node can get."""
        lowest: dict[str, Array] = {}
        for grid in self.grids:
            values = lowest.setdefault(grid.family[-1], np.ones(grid.prior.shape[-1]))
            lower_levels(values, grid.splits, grid.spread)
        return {name: float(values.min()) for name, values in lowest.items()}


def calibrate_sample(
    families: Sequence[tuple[str, ...]],
    priors: Sequence[Array],
    spend: Finite,
    *,
    unit: Unit,
    points: int = POINTS,
) -> PosteriorDraw:
    """A sample of the posterior itself: the spend decides how far from the uniform distribution the prior is cut off.

    A node gets ε/d, each of the D depths of its splits ε/(d·D), so with r = ε/(u·d·D), u = 1 (add-remove) or 2
    (replace-one), the two ends of a split's grid are a factor e^r apart. For two levels every probability is at least
    ω = 1/(1 + e^{ε/2d}) [002, Thm. 4.1, with the factor |I| restored].
    """
    unit = Unit.read(unit)
    steps = count_steps(points)
    shares: tuple[Finite, ...] = spend.split(len(families))
    grids = []
    for family, prior, share in zip(families, priors, shares, strict=True):
        depths = require_splits(family[-1], prior.shape[-1])
        parts: tuple[Finite, ...] = share.split(len(depths))
        for depth, (splits, part) in enumerate(zip(depths, parts, strict=True)):
            reach = float_below(afford_pure(part).epsilon) / (2 if unit.fixes_rows else unit.reach)
            # The logarithms are rounded to the grain afterwards, which may stretch them by one step in all.
            spread = spread_within(splits, reach - 2.0 / GRAIN)
            logs = [round_logs(share_of(split), steps, spread) for split in splits] if spread > 0 else []
            sensitivity = _halve(max(map(measure_reach, logs), default=0), unit)
            if sensitivity <= 0:
                raise MechanismError(f"{share} leaves {family[-1]!r} no room around the uniform distribution")
            name = f"posterior of {family[-1]}"
            choice = NoisyChoice(name, unit, sensitivity, Selection.EXPONENTIAL, float(GRAIN), part)
            grids.append(SplitGrid(tuple(family), depth, steps, spread, prior, choice))
    return PosteriorDraw("posterior-sample", tuple(grids), spend, unit)


def calibrate_maximum(
    families: Sequence[tuple[str, ...]],
    priors: Sequence[Array],
    spend: Finite,
    *,
    unit: Unit,
    floor: float | None = None,
    points: int = POINTS,
) -> PosteriorDraw:
    """The exponential mechanism for the posterior's maximum: P(θ) ∝ exp(ε·(log-likelihood + log prior)/(2Δ)).

    Δ is the sum of the reaches of all depths of all nodes, on grids with every probability at least ω, or, without one,
    with every half of a split at least about a twentieth; the spend decides the temperature, the same for all. Under
    add-remove the exponent is ε/Δ [002, Alg. 3, with log-densities for densities].
    """
    unit = Unit.read(unit)
    steps = count_steps(points)
    planned: list[tuple[tuple[str, ...], int, float, Array, int]] = []
    for family, prior in zip(families, priors, strict=True):
        name, levels = family[-1], prior.shape[-1]
        if floor is not None and not LEAST_FLOOR <= floor < 1 / levels:
            raise MechanismError(
                f"ω is at least 2^-20 and below 1/{levels}, as {name!r} has {levels} levels, not {floor:g}"
            )
        spread = USUAL_SPREAD if floor is None else spread_above(levels, floor)
        for depth, splits in enumerate(require_splits(name, levels)):
            reach = max(measure_reach(round_logs(share_of(split), steps, spread)) for split in splits)
            if not reach:
                raise MechanismError(f"ω = {floor} leaves {name!r} no room around the uniform distribution")
            planned.append((tuple(family), depth, spread, prior, reach))
    shares: tuple[Finite, ...] = spend.split([reach for *_, reach in planned])
    grids = []
    for (family, depth, spread, prior, reach), share in zip(planned, shares, strict=True):
        name = f"log posterior of {family[-1]}"
        choice = calibrate_choice(
            name, _halve(reach, unit), share, unit=unit, selection=Selection.EXPONENTIAL
        )
        grids.append(SplitGrid(family, depth, steps, spread, prior, choice))
    return PosteriorDraw("map", tuple(grids), spend, unit)


def count_steps(points: int) -> int:
    """The steps of a grid of so many points."""
    if points < 3:
        raise MechanismError(f"a grid needs at least 3 points, not {points}")
    return points - 1


@lru_cache(maxsize=256)
def round_logs(uniform: Fraction, steps: int, spread: float) -> Integers:
    """The logarithms of all points of a grid in whole multiples of 1/GRAIN; kept, as many splits share a grid."""
    low, high = bound_split(uniform, spread)
    first = low + (high - low) * np.arange(steps + 1) / steps
    logs: Integers = np.rint(GRAIN * np.log(np.stack([first, 1.0 - first], axis=1))).astype(np.int64)
    logs.flags.writeable = False
    return logs


def measure_reach(logs: Integers) -> int:
    """How far apart the largest and the smallest log-probability of one half are."""
    return int((logs.max(axis=0) - logs.min(axis=0)).max())


def _halve(reach: int, unit: Unit) -> Fraction:
    """The Δ of a choice, whose loss is 2Δ/scale, that stands for `reach` once or, for a replaced row, twice."""
    return Fraction(reach * unit.reach, 1 if unit.fixes_rows else 2)
