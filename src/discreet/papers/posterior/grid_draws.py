"""Private draws: a specification of what is drawn, from which counts, and what one draw costs at most.

The draws here are of parameters of a network, from a public grid: every conditional distribution of a node lies on the
lattice θ = ω + (1 − kω)·m/M with Σm = M, so that no probability is below ω. Scores are whole numbers of 2^-16 and
OpenDP's Gumbel noise picks by them exactly, so the stated loss needs no allowance for rounding.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.core.counter import TrueCounts
from discreet.core.mechanism import NoisyChoice, Selection, calibrate_choice
from discreet.core.noise import choose
from discreet.values.budget import Finite, afford_pure
from discreet.values.errors import MechanismError
from discreet.values.table import Array
from discreet.values.text import float_below
from discreet.values.unit import Unit

Integers = npt.NDArray[np.int64]

GRAIN = 2**16
"""Log-probabilities are rounded to whole multiples of 1/GRAIN, in which sums over rows are exact."""
LEAST_FLOOR = 2.0**-20
"""With it, and at most MOST_ROWS rows, every score is a whole number that a float64 holds exactly."""
POINTS = 1025
"""The most points of a node's grid, unless more are asked for."""
MOST_ROWS = 2**31
"""The most rows that a posterior is drawn from, and the most that a prior may weigh."""


@dataclass(frozen=True, slots=True, eq=False)
class NodeGrid:
    """The public grid of one node's distributions, its prior for each conditional, and how a point is chosen.

    One row moves log P(x | θ) by at most `reach` between two points of the grid, so under add-remove a choice with
    P(θ) ∝ exp(score/scale) loses ε = reach/scale, and under replace-one, where one row goes and one comes, twice that.
    """

    family: tuple[str, ...]
    steps: int
    """The M of the lattice."""
    floor: float
    prior: Array
    """The α of the Dirichlet priors, over the family."""
    choice: NoisyChoice

    def __post_init__(self) -> None:
        levels = self.prior.shape[-1]
        if not (LEAST_FLOOR <= self.floor < 1 / levels or self.floor == 1 / levels):
            raise MechanismError(f"ω is at least 2^-20 and at most 1/{levels}, not {self.floor:g}")
        prior = np.array(self.prior, dtype=np.float64)  # a copy: what was priced is what is drawn from
        if not (np.isfinite(prior).all() and (prior > 0).all()):
            raise MechanismError(f"the α of {self.family[-1]!r} must be finite and above 0")
        prior.flags.writeable = False
        object.__setattr__(self, "prior", prior)
        if not float(np.sum(self.prior)) <= MOST_ROWS:
            raise MechanismError(f"the α of {self.family[-1]!r} sum to more than 2^31, beyond exact scores")
        if self.choice.sensitivity < _halve(measure_reach(self.log_points), self.choice.unit):
            raise MechanismError(f"the grid of {self.family[-1]!r} is wider than its choice allows")

    @property
    def log_points(self) -> Integers:
        """The logarithms of every point's probabilities, in whole multiples of 1/GRAIN."""
        return round_logs(self.prior.shape[-1], self.steps, self.floor)

    def draw(self, true_counts: Array) -> list[list[int]]:
        """For each conditional, a point drawn from the (tempered) posterior on the grid, as its lattice numbers."""
        logs = self.log_points.T
        counts = np.asarray(true_counts, dtype=np.int64).reshape(-1, logs.shape[0])
        if int(counts.sum()) > MOST_ROWS:
            raise MechanismError("a posterior is drawn from at most 2^31 rows")  # counters hold no more
        pseudo = np.asarray(self.prior, dtype=np.float64).reshape(counts.shape) - 1.0
        scores = counts @ logs + np.rint(pseudo @ logs.astype(np.float64)).astype(np.int64)
        scores = scores - scores.max(axis=1, keepdims=True)
        lattice = make_lattice(counts.shape[1], self.steps)
        return [lattice[choose(line.astype(np.float64), self.choice)].tolist() for line in scores]


@dataclass(frozen=True, slots=True, eq=False)
class PosteriorDraw:
    """One draw of all parameters of a network: all conditionals are independent given the counts [002, Thm. 4]."""

    kind: str
    nodes: tuple[NodeGrid, ...]
    cost: Finite
    unit: Unit

    def __post_init__(self) -> None:
        strange = [node for node in self.nodes if node.choice.unit != self.unit]
        if strange:
            raise MechanismError(
                f"{self.kind}: {strange[0].family[-1]!r} is drawn for {strange[0].choice.unit}, not {self.unit}"
            )
        total = sum((node.choice.cost for node in self.nodes[1:]), start=self.nodes[0].choice.cost)
        if not total <= self.cost:
            raise MechanismError(f"{self.kind}: its nodes cost {total}, more than the stated {self.cost}")

    def describe(self) -> dict[str, Any]:
        """The grid and the scale of every node."""
        return {
            "verb": "draw",
            "draw": self.kind,
            "families": [list(node.family) for node in self.nodes],
            "floors": [node.floor.hex() for node in self.nodes],
            "steps": [node.steps for node in self.nodes],
            "scales": [node.choice.scale.hex() for node in self.nodes],
            "priors": [np.asarray(node.prior).ravel().tolist() for node in self.nodes],
        }

    def check(self, rows: TrueCounts) -> None:
        """Refuse families that cannot be counted."""
        rows.counter.check([node.family for node in self.nodes])

    def draw(self, rows: TrueCounts) -> list[Any]:
        """The lattice numbers of every node, one list for each combination of its parents."""
        tables = rows.counter.count([node.family for node in self.nodes])
        return [node.draw(table.values) for node, table in zip(self.nodes, tables, strict=True)]

    def read(self, stored: list[Any]) -> list[Any]:
        """The lattice numbers as they were drawn."""
        return stored


def calibrate_sample(
    families: Sequence[tuple[str, ...]],
    priors: Sequence[Array],
    spend: Finite,
    *,
    unit: Unit,
    points: int = POINTS,
) -> PosteriorDraw:
    """A sample of the posterior itself: the spend decides how far from 0 and 1 the prior is cut off.

    With r = ε/(u·d) for d nodes, u = 1 (add-remove) or 2 (replace-one), and k levels, ω = 1/(e^r + k − 1), because then
    log((1 − (k−1)ω)/ω) = r; for two levels ω = 1/(1 + e^{ε/2d}) [002, Thm. 4.1, with the factor |I| restored].
    """
    unit = Unit.read(unit)
    shares: tuple[Finite, ...] = spend.split(len(families))
    nodes = []
    for family, prior, share in zip(families, priors, shares, strict=True):
        levels = prior.shape[-1]
        reach = float_below(afford_pure(share).epsilon) / (2 if unit.fixes_rows else unit.at_most)
        steps = count_steps(levels, points)
        # The logarithms are rounded to the grain afterwards, which may stretch them by one step in all.
        floor = cut_floor(reach - 2.0 / GRAIN, levels)
        sensitivity = _halve(measure_reach(round_logs(levels, steps, floor)), unit)
        if sensitivity <= 0:
            raise MechanismError(f"{share} leaves {family[-1]!r} no room around the uniform distribution")
        name = f"posterior of {family[-1]}"
        choice = NoisyChoice(name, unit, sensitivity, Selection.EXPONENTIAL, float(GRAIN), share)
        nodes.append(NodeGrid(tuple(family), steps, floor, prior, choice))
    return PosteriorDraw("posterior sample", tuple(nodes), spend, unit)


def calibrate_maximum(
    families: Sequence[tuple[str, ...]],
    priors: Sequence[Array],
    spend: Finite,
    *,
    unit: Unit,
    floor: float,
    points: int = POINTS,
) -> PosteriorDraw:
    """The exponential mechanism for the posterior's maximum: P(θ) ∝ exp(ε·(log-likelihood + log prior)/(2Δ)).

    Δ = Σ_i log((1 − (k_i−1)ω)/ω) on a grid with every probability at least ω; the spend decides the temperature, the
    same for all nodes. Under add-remove the exponent is ε/Δ [002, Alg. 3, with log-densities for densities].
    """
    unit = Unit.read(unit)
    steps, reaches = [], []
    for family, prior in zip(families, priors, strict=True):
        name, levels = family[-1], prior.shape[-1]
        if not LEAST_FLOOR <= floor < 1 / levels:
            raise MechanismError(
                f"ω is at least 2^-20 and below 1/{levels}, as {name!r} has {levels} levels, not {floor:g}"
            )
        steps.append(count_steps(levels, points))
        reaches.append(measure_reach(round_logs(levels, steps[-1], floor)))
        if not reaches[-1]:
            raise MechanismError(f"ω = {floor:g} leaves {name!r} no room around the uniform distribution")
    shares: tuple[Finite, ...] = spend.split(reaches)
    nodes = []
    for family, prior, grid, reach, share in zip(families, priors, steps, reaches, shares, strict=True):
        name = f"log posterior of {family[-1]}"
        choice = calibrate_choice(
            name, _halve(reach, unit), share, unit=unit, selection=Selection.EXPONENTIAL
        )
        nodes.append(NodeGrid(tuple(family), grid, floor, prior, choice))
    return PosteriorDraw("posterior maximum", tuple(nodes), spend, unit)


def cut_floor(reach: float, levels: int) -> float:
    """The ω at which log((1 − (k−1)ω)/ω) is `reach`: 1/(e^reach + k − 1); never below 2^-20."""
    return max(LEAST_FLOOR, 1.0 / (math.exp(min(max(reach, 0.0), 50.0)) + levels - 1))


def count_steps(levels: int, points: int) -> int:
    """The largest M whose lattice, of (M + k − 1 choose k − 1) points, has at most so many."""
    if points < levels:
        raise MechanismError(f"a grid for {levels} levels needs at least {levels} points, not {points}")
    steps = 1
    while math.comb(steps + levels, levels - 1) <= points:
        steps += 1
    return steps


@lru_cache(maxsize=64)
def make_lattice(levels: int, steps: int) -> Integers:
    """All ways to write M as a sum of k whole numbers, one in each line."""
    bars = itertools.combinations(range(steps + levels - 1), levels - 1)
    fences = np.array([(-1, *found, steps + levels - 1) for found in bars], dtype=np.int64)
    lattice: Integers = np.diff(fences, axis=1) - 1
    lattice.flags.writeable = False
    return lattice


def place_points(lattice: npt.ArrayLike, floor: float) -> npt.NDArray[np.float64]:
    """θ = ω + (1 − kω)·m/M."""
    whole = np.asarray(lattice, dtype=np.float64)
    return np.asarray(floor + (1.0 - whole.shape[-1] * floor) * whole / whole.sum(axis=-1, keepdims=True))


@lru_cache(maxsize=256)
def round_logs(levels: int, steps: int, floor: float) -> Integers:
    """The logarithms of all points of a grid in whole multiples of 1/GRAIN; kept, as many nodes share a grid."""
    logs: Integers = np.rint(GRAIN * np.log(place_points(make_lattice(levels, steps), floor))).astype(
        np.int64
    )
    logs.flags.writeable = False
    return logs


def measure_reach(logs: Integers) -> int:
    """How far apart the largest and the smallest log-probability of a grid are."""
    return int(logs.max() - logs.min())


def _halve(reach: int, unit: Unit) -> Fraction:
    """The Δ of a choice, whose loss is 2Δ/scale, that stands for `reach` once or, for a replaced row, twice."""
    return Fraction(reach * unit.at_most, 1 if unit.fixes_rows else 2)
