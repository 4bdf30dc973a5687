"""Algorithm 1 of paper 000 with one repair taken away at a time, and PriView's tables for the same parameters."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from _distances import compare_cpts
from _paper000_trials import Case
from discreet.compute.consistency import condition, settle, weigh_by_precision
from discreet.core.airlock import Airlock
from discreet.core.queries import Tables
from discreet.learning.learner import estimate_rows
from discreet.networks.network import Network
from discreet.papers.parameters.allocation import LEAST_SHARE, allocate, estimate_error, plan_allocation
from discreet.papers.parameters.dependent import plan_sampling
from discreet.papers.parameters.independent import ROUNDS, Parameters, join
from discreet.papers.parameters.subsample import sample_tables
from discreet.values.budget import PureDP
from discreet.values.graph import DAG
from discreet.values.table import Table

MEASURES = ("weighted", "unweighted", "marginal")
SETTLED = 10
"""Rounds of fitting a family's table to the margins that the views have of it."""


@dataclass(frozen=True, slots=True)
class Repairs:
    """What is repaired; without any, Algorithm 1 is as printed."""

    joint: bool = True
    """M is a joint; as printed it is a conditional, so every combination of the parents weighs alike."""
    clip: bool = True
    """Counts in Eq. 12 are at least the noise's size; as printed they are what they are."""
    floor: bool = True
    """No node gets less than a twentieth of an even share."""
    weights: bool = True
    """Averages by inverse variance, in the consistency step and over the stages; as printed by budget."""
    sample: bool = True
    """The first look is on a tenth of the rows, as printed; without it (β = 1) on all. No repair: it costs."""


NONE = Repairs(joint=False, clip=False, floor=False, weights=False)
VARIANTS = {
    "all repairs": Repairs(),
    "without the joint": Repairs(joint=False),
    "without the clip": Repairs(clip=False),
    "without the floor": Repairs(floor=False),
    "without the weights": Repairs(weights=False),
    "all repairs, β = 1": Repairs(sample=False),
    "as printed": NONE,
    "as printed, β = 1": replace(NONE, sample=False),
}


def learn_ablated(airlock: Airlock, dag: DAG, epsilon: str, repairs: Repairs) -> Network:
    """Algorithm 1 with ε_I = ε/10, and β = 0.1 or 1, with these repairs [000, Alg. 1]."""
    whole = PureDP(epsilon)
    sampling = plan_sampling(airlock, "0.1") if repairs.sample else None
    even = [Fraction(1, len(dag))] * len(dag)
    first = _compute(airlock, dag, whole / 10, even, repairs, sampling)
    errors = {}
    for name, cpt, family, above in zip(dag.nodes, first.cpts, first.families, first.parents, strict=True):
        if repairs.clip:
            least = math.sqrt(family.law.variance)
            errors[name] = estimate_error(cpt, family.noisy, above.noisy, least)
        else:
            errors[name] = _estimate_as_printed(family.noisy, above.noisy)
    planned = plan_allocation(dag, airlock.schema.sizes, errors)
    weights = [planned.weights[name] for name in dag.nodes]
    shares = allocate(
        weights, [errors[name] for name in dag.nodes], LEAST_SHARE if repairs.floor else Fraction(0)
    )
    second = _compute(airlock, dag, whole * Fraction(9, 10), shares, repairs, None)
    rate = 0.1 if repairs.sample else 1.0
    cpts = []
    for i in range(len(dag)):
        if repairs.weights:
            trust = _trust_precision(first, second, i, rate)
        else:
            early, late = 1.0 / 10 / len(dag), 9.0 / 10 * float(shares[i])
            trust = np.array(early / (early + late))
        cpts.append(
            Table(second.cpts[i].axes, trust * first.cpts[i].values + (1 - trust) * second.cpts[i].values)
        )
    return Network(airlock.schema, dag, tuple(cpts))


def _compute(
    airlock: Airlock, dag: DAG, spend: PureDP, shares: Sequence[Fraction], repairs: Repairs, sampling: object
) -> Parameters:
    sets = [members for family in dag.families() for members in (family, family[:-1])]
    halves = [share / 2 for share in shares for _ in range(2)]
    if sampling is None:
        query = Tables.price(sets, spend, unit=airlock.unit, shares=halves)
    else:
        query = sample_tables(sets, spend, sampling, shares=halves)  # type: ignore[arg-type]
    measured = airlock.ask(query)
    families, parents = tuple(measured[0::2]), tuple(measured[1::2])
    joints = []
    for family, above in zip(families, parents, strict=True):
        found = join(family, above)
        if not repairs.joint:
            counts = np.maximum(family.noisy.values.astype(np.float64), 0.0)
            found = condition(Table(family.axes, counts), family.axes)
            found = Table(found.axes, found.values * found.values.shape[-1] / found.cells)
        joints.append(found)
    if repairs.weights:
        trust: Sequence[float] = weigh_by_precision(joints, [family.law.variance for family in families])
    else:
        trust = [float(share) for share in shares]
    settled = settle(joints, trust, remedy="clamp", rounds=ROUNDS, total=1.0)
    return Parameters(
        tuple(condition(found, found.axes) for found in settled),
        families,
        parents,
        max(estimate_rows(measured), 1.0),
    )


def _estimate_as_printed(family: Table, parents: Table) -> float:
    """The mean of Θ·√(1/T_pa² + 1/T²) with Θ = T/T_pa: √(1 + Θ²)/|T_pa|; a count of 0, which is whole here, is ½."""
    above = parents.arrange(family.axes[:-1]).values.astype(np.float64)[..., None]
    above = np.where(above == 0, 0.5, above)
    return float((np.sqrt(1.0 + (family.values / above) ** 2) / np.abs(above)).mean())


def _trust_precision(first: Parameters, second: Parameters, i: int, rate: float) -> np.ndarray:
    early, late = first.families[i], second.families[i]
    levels = late.noisy.values.shape[-1]
    rows = np.maximum(second.parents[i].noisy.values, max(1.0, math.sqrt(late.law.variance)))[..., None]
    spread = 1.0 - (second.cpts[i].values ** 2).sum(axis=-1, keepdims=True)
    of_first = levels * early.law.variance / (rate * rows) ** 2 + (1.0 - rate) * spread / (rate * rows)
    of_second = levels * late.law.variance / rows**2
    return np.asarray(of_second / (of_first + of_second))


def cover_pairs(names: Sequence[str], size: int, seed: int = 0) -> list[tuple[str, ...]]:
    """Views of so many attributes that hold every pair of attributes: the best of some greedy covers."""
    best: list[tuple[str, ...]] = []
    for attempt in range(20):
        rng = np.random.default_rng([seed, attempt])
        left = {frozenset(pair) for pair in itertools.combinations(names, 2)}
        views = []
        while left:
            view = list(next(iter(sorted(map(sorted, left), key=lambda _: rng.random()))))
            while len(view) < size:
                gains = {
                    name: sum(frozenset((name, other)) in left for other in view) + rng.random()
                    for name in names
                    if name not in view
                }
                view.append(max(gains, key=lambda name: gains[name]))
            views.append(tuple(name for name in names if name in view))
            left -= {frozenset(pair) for pair in itertools.combinations(view, 2)}
        if not best or len(views) < len(best):
            best = views
    return best


def learn_by_views(airlock: Airlock, dag: DAG, epsilon: str, size: int) -> Network:
    """PriView: noisy views that cover all pairs, made to agree; a family that no view holds is fitted to its margins.

    The noise has the scale (number of views)/ε. Of all tables with the margins that the views have, the one of maximum
    entropy is found by iterative proportional fitting.
    """
    views = cover_pairs(dag.nodes, size)
    measured = airlock.ask(Tables.price(views, PureDP(epsilon), unit=airlock.unit))
    rows = max(estimate_rows(measured), 1.0)
    shares = [Table(found.axes, found.noisy.values / rows) for found in measured]
    settled = settle(shares, [1.0] * len(shares), remedy="clamp", rounds=ROUNDS, total=1.0)
    cpts = []
    for family in dag.families():
        holder = next((view for view in settled if set(family) <= set(view.axes)), None)
        if holder is not None:
            joint = holder.project(family)
        else:
            sizes = [airlock.schema.sizes[name] for name in family]
            joint = Table(family, np.full(sizes, 1.0 / math.prod(sizes)))
            margins = [view.project([name for name in family if name in view.axes]) for view in settled]
            margins = [margin for margin in margins if len(margin.axes) > 1]
            for _ in range(SETTLED):
                for margin in margins:
                    mine = joint.project(margin.axes).values
                    ratio = np.where(mine > 0, margin.values / np.where(mine > 0, mine, 1.0), 0.0)
                    joint = Table(family, joint.values * Table(margin.axes, ratio).spread(family))
        cpts.append(condition(joint, family))
    return Network(airlock.schema, dag, tuple(cpts))


def run_ablation(case: Case, runs: int, epsilon: str = "1") -> dict[str, dict[str, tuple[float, float]]]:
    """The three errors of every variant, mean and standard error; rows and runs as in the savings."""
    found: dict[str, dict[str, tuple[float, float]]] = {}
    for name, repairs in VARIANTS.items():
        each = [
            case.measure_errors(learn_ablated(case.airlock(run), case.network.dag, epsilon, repairs), run)
            for run in range(runs)
        ]
        found[name] = {measure: _summarise([errors[measure] for errors in each]) for measure in MEASURES}
    return found


def run_views(
    case: Case, runs: int, sizes: Sequence[int], epsilon: str = "1"
) -> dict[int, tuple[float, float]]:
    """The unweighted error of the parameters by views of some sizes."""
    dag, truth = case.network.dag, case.network.cpts
    return {
        size: _summarise(
            [
                compare_cpts(dag, truth, learn_by_views(case.airlock(run), dag, epsilon, size).cpts)
                for run in range(runs)
            ]
        )
        for size in sizes
    }


def _summarise(values: Sequence[float]) -> tuple[float, float]:
    spread = float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan
    return float(np.mean(values)), spread
