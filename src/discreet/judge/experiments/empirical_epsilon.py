"""Empirical ε: run a mechanism on two neighbouring inputs and prove how far apart its outputs are.

Half of the runs choose a set of outputs, the other half count how often each side falls into it, so the bound
holds whatever was chosen: with the stated confidence, no mechanism that keeps its claim is ever accused.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from discreet.judge.tails import bound_share_above, bound_share_below
from discreet.values.errors import MechanismError
from discreet.values.table import Array

Floats = npt.NDArray[np.float64]
Draw = Callable[[int], Array]
"""So many independent outputs, one to a line; an output is a number or a fixed number of them."""

MOST_COORDINATES = 8
"""The pilot looks at pairs of so many coordinates, those that differ most between the two sides."""
MOST_SINGLES = 64
"""It looks at so many coordinates by themselves."""
MOST_VALUES = 2000
"""So many thresholds are tried on one combination of coordinates."""


@dataclass(frozen=True, slots=True)
class OutputCondition:
    """A combination of coordinates that is equal to a value, at least it or at most it."""

    weights: tuple[float, ...]
    relation: str
    value: float

    def holds(self, outputs: Floats) -> npt.NDArray[np.bool_]:
        """For each output, whether the condition holds."""
        compare = {"=": np.equal, ">=": np.greater_equal, "<=": np.less_equal}[self.relation]
        return np.asarray(compare(outputs @ np.array(self.weights), self.value))

    def __str__(self) -> str:
        terms = [f"{weight:+g}·x{i}" for i, weight in enumerate(self.weights) if weight]
        return f"{' '.join(terms)} {self.relation} {self.value:g}"


@dataclass(frozen=True, slots=True)
class OutputSet:
    """The outputs that meet every condition."""

    conditions: tuple[OutputCondition, ...]

    def count(self, outputs: Floats) -> int:
        """How many of these outputs are in the set."""
        return int(
            np.count_nonzero(np.all([condition.holds(outputs) for condition in self.conditions], axis=0))
        )

    def __str__(self) -> str:
        return " and ".join(map(str, self.conditions))


@dataclass(frozen=True, slots=True)
class EpsilonBound:
    """What the held-out runs prove: the mechanism's ε (at δ) is at least `epsilon`, with `confidence`."""

    epsilon: float
    delta: float
    confidence: float
    chosen: OutputSet
    hits: tuple[int, int]
    trials: int
    """Held-out runs on each side."""

    def contradicts(self, claim: float) -> bool:
        """Whether a claimed ε is refuted."""
        return self.epsilon > claim

    def __str__(self) -> str:
        often, seldom = self.hits
        return (
            f"ε ≥ {self.epsilon:.3f} at δ = {self.delta:g} with confidence {self.confidence}: "
            f"{self.chosen} in {often} against {seldom} of {self.trials} runs"
        )


def empirical_epsilon(
    draw: Draw,
    draw_neighbour: Draw,
    *,
    trials: int,
    delta: float = 0.0,
    confidence: float = 0.99,
    features: Callable[[Array], Array] | None = None,
) -> EpsilonBound:
    """A lower bound on ε from so many runs on each side: ln((p − δ)/q), with Clopper-Pearson bounds on both.

    Both directions are tried; `features` maps outputs to numbers in which the two sides may differ more.
    """
    if trials < 20:
        raise MechanismError(f"an audit needs at least 20 runs on each side, not {trials}")
    if not (0 < confidence < 1 and 0 <= delta < 1):
        raise MechanismError(f"confidence lies between 0 and 1 and δ in [0, 1), not {confidence} and {delta}")
    read = features if features is not None else np.asarray
    sides = [_as_lines(read(run(trials)), trials) for run in (draw, draw_neighbour)]
    pilot = trials // 2
    doubt = (1.0 - confidence) / 2.0
    chosen, swapped = _choose_outputs(
        [side[:pilot] for side in sides], delta, math.sqrt(-2.0 * math.log(doubt))
    )
    hits = [chosen.count(side[pilot:]) for side in sides]
    often, seldom = reversed(hits) if swapped else hits
    held_out = trials - pilot
    low, high = bound_share_below(often, held_out, doubt), bound_share_above(seldom, held_out, doubt)
    epsilon = math.log((low - delta) / high) if low > delta else -math.inf
    return EpsilonBound(max(epsilon, 0.0), delta, confidence, chosen, (often, seldom), held_out)


def empirical_mu(inside: Floats, outside: Floats, *, confidence: float = 0.99) -> float:
    """A lower bound on μ of Gaussian privacy from scores of runs with a unit and without: Φ⁻¹(β) − Φ⁻¹(α) [DRS22].

    The first half of the runs chooses the threshold, the others count how many are above it on each side, with
    Clopper-Pearson bounds on both shares.
    """
    halves = [(side[: len(side) // 2], side[len(side) // 2 :]) for side in (inside, outside)]
    if min(len(held) for _, held in halves) < 10 or not 0 < confidence < 1:
        raise MechanismError("an audit needs at least 20 runs on each side and a confidence between 0 and 1")
    doubt = (1.0 - confidence) / 2.0

    def bound(threshold: float, part: int) -> float:
        own, other = (side[part] for side in halves)
        low = bound_share_below(int((own >= threshold).sum()), len(own), doubt)
        high = bound_share_above(int((other >= threshold).sum()), len(other), doubt)
        return _shift(low, high)

    tried = np.quantile(np.concatenate([pilot for pilot, _ in halves]), np.linspace(0.02, 0.98, 49))
    return max(0.0, bound(max(tried.tolist(), key=lambda threshold: bound(threshold, 0)), 1))


def _shift(power: float, error: float) -> float:
    """Φ⁻¹(power) − Φ⁻¹(error), nothing if one of them is certain."""
    if not (0.0 < power < 1.0 and 0.0 < error < 1.0):
        return 0.0
    return NormalDist().inv_cdf(power) - NormalDist().inv_cdf(error)


def _as_lines(outputs: Array, trials: int) -> Floats:
    found = np.asarray(outputs, dtype=np.float64)
    if found.shape[:1] != (trials,):
        raise MechanismError(f"an audited draw of {trials} outputs returned an array of shape {found.shape}")
    return found.reshape(trials, -1)


def _choose_outputs(sides: list[Floats], delta: float, caution: float) -> tuple[OutputSet, bool]:
    """The outputs with the largest cautious ratio in the pilot runs, and whether they are the neighbour's.

    A row that lies in several tables moves several coordinates a little: the best conditions on those that
    clearly differ are joined, as many as help. Few sets are tried: a pilot overrates what it picks from many.
    """
    best, chosen = -math.inf, (OutputSet(()), False)
    spread = np.sqrt(sides[0].var(axis=0) + sides[1].var(axis=0)) + 1e-12
    gap = np.abs(sides[0].mean(axis=0) - sides[1].mean(axis=0)) / spread
    order = np.argsort(-gap, kind="stable")
    singles = np.eye(sides[0].shape[1])
    clear = singles[[i for i in order if gap[i] > 4 / math.sqrt(len(sides[0]))][:MOST_COORDINATES]]
    for swapped in (False, True):
        often, seldom = reversed(sides) if swapped else sides
        pilot = _Pilot(often, seldom, delta * len(often), caution)
        tried = [OutputSet((pilot.choose_condition(weights),)) for weights in singles[order[:MOST_SINGLES]]]
        tried += [
            OutputSet((pilot.choose_condition(weights),))
            for weights in _pair(singles[order[:MOST_COORDINATES]])
        ]
        joined = [pilot.choose_condition(weights, relations=(">=", "<=")) for weights in clear]
        tried += [OutputSet(tuple(joined[: i + 1])) for i in range(1, len(joined))]
        ratios = [pilot.compare(outputs.count(often), outputs.count(seldom)) for outputs in tried]
        i = int(np.argmax(ratios))
        if ratios[i] > best:
            best, chosen = float(ratios[i]), (tried[i], swapped)
    return chosen


@dataclass(frozen=True, slots=True, eq=False)
class _Pilot:
    """The pilot runs of one direction."""

    often: Floats
    seldom: Floats
    allowance: float
    caution: float

    def compare(self, often: npt.ArrayLike, seldom: npt.ArrayLike) -> Floats:
        """The ratio of two numbers of hits, each pulled towards the other by some standard deviations."""
        high, low = np.asarray(seldom, dtype=np.float64), np.asarray(often, dtype=np.float64)
        high = high + self.caution * np.sqrt(high + self.caution**2)
        low = low - self.caution * np.sqrt(low + 1.0) - self.allowance
        return np.asarray(np.maximum(low, 0.0) / high)

    def choose_condition(
        self, weights: Floats, relations: tuple[str, ...] = (">=", "<=", "=")
    ) -> OutputCondition:
        """The best condition on one combination of coordinates."""
        first, second = np.sort(self.often @ weights), np.sort(self.seldom @ weights)
        values = np.unique(np.concatenate([first, second]))
        if values.size > MOST_VALUES:
            values = np.quantile(values, np.linspace(0, 1, MOST_VALUES), method="nearest")
        below = [np.searchsorted(side, values, "left") for side in (first, second)]
        within = [np.searchsorted(side, values, "right") for side in (first, second)]
        hits = {
            "=": (within[0] - below[0], within[1] - below[1]),
            ">=": (len(first) - below[0], len(second) - below[1]),
            "<=": (within[0], within[1]),
        }
        ratios = np.array([self.compare(*hits[relation]) for relation in relations])
        relation, value = np.unravel_index(int(np.argmax(ratios)), ratios.shape)
        return OutputCondition(tuple(weights.tolist()), relations[relation], float(values[value]))


def _pair(singles: Floats) -> Iterator[Floats]:
    """Sums and differences of two coordinates: noise that was used twice cancels in one of them."""
    for first, second in itertools.combinations(singles, 2):
        yield first + second
        yield first - second
