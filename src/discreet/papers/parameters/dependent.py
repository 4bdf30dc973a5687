"""Algorithm 1: a first look at a secret sample of the rows decides how the rest of the budget is shared [000]."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.learning.learner import Prior, read_prior, stated
from discreet.networks.network import Network
from discreet.networks.provenance import Provenance
from discreet.papers.parameters.allocation import Allocation, estimate_error, plan_allocation
from discreet.papers.parameters.independent import Parameters, Weights, compute_parameters, predict_error
from discreet.values.errors import BudgetError, TableError
from discreet.values.graph import DAG
from discreet.values.table import Array, Table
from discreet.values.text import Number, read_fraction, require_share, show_fraction

if TYPE_CHECKING:
    from discreet.core.queries import Keeper, Spend
    from discreet.papers.parameters.subsample import Subsampling


@stated
def dependent(
    airlock: Keeper,
    dag: DAG,
    *,
    spend: Spend,
    rate: Number = "0.1",
    stage_one: Number = "0.1",
    weights: Weights = "inverse-variance",
    prior: Prior | None = None,
    request: str | None = None,
) -> Network:
    """Learn the tables of a public graph with budgets that follow a first, private look at them [000, Alg. 1].

    Stage I spends the share `stage_one` on a secret sample of the rows at `rate` β, with even shares and the noise of
    ε = ln(1 + (e^ε_I − 1)/β); Stage II spends the rest on all rows, with shares ∝ √(W_i·δ_i). Both conditionals are
    averaged. `weights="paper"` averages by budget, here and in the consistency step, as printed [000, line 17; 001,
    Eq. 17]; that puts far too much on the noisy first look, so inverse variance is the default.
    """
    graph, whole = dag.arrange(airlock.schema.names), airlock.read_spend(spend)
    if weights not in ("paper", "inverse-variance"):
        raise TableError(f"the weights must be 'paper' or 'inverse-variance', not {weights!r}")
    read_prior(prior, graph, airlock.schema.sizes)  # refused before anything is spent
    share = read_fraction(stage_one, "the share of stage one", BudgetError)
    require_share(share, "the share of stage one", BudgetError)
    sampling = plan_sampling(airlock, rate)
    first_cost = whole * share
    first = compute_parameters(
        airlock,
        graph,
        spend=first_cost,
        weights=weights,
        prior=prior,
        sampling=sampling,
        request=request and f"{request}/stage-1",
    )
    allocation = allocate_by(first, graph, airlock.schema.sizes)
    second = compute_parameters(
        airlock,
        graph,
        spend=whole - first_cost,
        shares=[allocation.shares[name] for name in graph.nodes],
        weights=weights,
        prior=prior,
        request=request and f"{request}/stage-2",
    )
    beta = Fraction(1) if sampling is None else sampling.rate
    trust = {
        name: _trust_budget(share, allocation.shares[name], len(graph))
        if weights == "paper"
        else _trust_precision(first, second, i, float(beta))
        for i, name in enumerate(graph.nodes)
    }
    return Network(
        airlock.schema,
        graph,
        tuple(
            _average(one, two, trust[name])
            for name, one, two in zip(graph.nodes, first.cpts, second.cpts, strict=True)
        ),
        provenance=Provenance(
            "dependent",
            airlock.unit,
            whole,
            first.measurements + second.measurements,
            {
                name: _predict_error(first, second, i, float(beta), trust[name])
                for i, name in enumerate(graph.nodes)
            },
            _describe(allocation, weights, beta, share),
        ),
    )


def plan_sampling(airlock: Keeper, rate: Number) -> Subsampling | None:
    """A coin of probability β for each row, or β·n rows where n is public; None at β = 1, which is no sampling."""
    from discreet.papers.parameters.subsample import Subsampling

    beta = read_fraction(rate, "the sampling rate", BudgetError)
    if not 0 < beta <= 1:
        raise BudgetError(f"the sampling rate must be above 0 and at most 1, not {show_fraction(beta)}")
    if beta == 1:
        return None
    if not airlock.unit.fixes_rows:
        return Subsampling(beta, airlock.unit)
    rows = airlock.rows
    if rows < 2:
        raise BudgetError("a table of one row cannot be sampled; use rate=1")
    return Subsampling.fixed(min(max(1, round(beta * rows)), rows - 1), rows)


def allocate_by(first: Parameters, dag: DAG, sizes: Mapping[str, int]) -> Allocation:
    """The shares of Stage II from the noisy tables of Stage I [000, Alg. 1, lines 5 to 13]."""
    errors = {
        name: estimate_error(cpt, family.noisy, above.noisy, math.sqrt(family.law.variance / 2.0))
        for name, cpt, family, above in zip(dag.nodes, first.cpts, first.families, first.parents, strict=True)
    }
    return plan_allocation(dag, sizes, errors)


def _trust_budget(stage_one: Fraction, share: Fraction, nodes: int) -> Array:
    """(ε_I/d)/(ε_i + ε_I/d), the printed weight of Stage I [000, Alg. 1, line 17]."""
    early, late = stage_one / nodes, (1 - stage_one) * share
    return np.array(float(early / (early + late)))


def _trust_precision(first: Parameters, second: Parameters, i: int, rate: float) -> Array:
    """The weight of Stage I in each conditional of a node, by inverse variance; the axis of the child has length 1.

    A conditional with m records is off by k·σ²/m² from the noise in its k cells, and, in a sample at rate β, by
    (1 − β)·(1 − Σθ²)/(β·m) from the sampling.
    """
    early, late = first.families[i], second.families[i]
    levels = late.noisy.values.shape[-1]
    rows = np.maximum(second.parents[i].noisy.values, max(1.0, math.sqrt(late.law.variance)))[..., np.newaxis]
    spread = 1.0 - (second.cpts[i].values ** 2).sum(axis=-1, keepdims=True)
    of_first = levels * early.law.variance / (rate * rows) ** 2 + (1.0 - rate) * spread / (rate * rows)
    of_second = levels * late.law.variance / rows**2
    both = of_first + of_second
    return np.asarray(of_second / np.where(both > 0, both, 1.0))  # both are 0 where ε is astronomical


def _average(one: Table, two: Table, trust: Array) -> Table:
    """trust·Θ_I + (1 − trust)·Θ_II [000, Alg. 1, line 18]; means of distributions are distributions."""
    return Table(two.axes, trust * one.values + (1.0 - trust) * two.values)


def _predict_error(first: Parameters, second: Parameters, i: int, rate: float, trust: Array) -> float:
    """The mean L1 error from the noise of both stages, weighed by how often each conditional applies."""
    early, late = first.families[i], second.families[i]
    weight = float(trust.mean())
    variance = weight**2 * early.law.variance / rate**2 + (1.0 - weight) ** 2 * late.law.variance
    return predict_error(variance, second.parents[i].noisy.values, late.noisy.values.shape[-1], second.rows)


def _describe(allocation: Allocation, weights: str, rate: Fraction, stage_one: Fraction) -> dict[str, Any]:
    return {
        "weights": weights,
        "sampling rate": str(rate),
        "share of stage one": str(stage_one),
        "order": list(allocation.order),
        "shares": {name: str(share) for name, share in allocation.shares.items()},
        "errors": dict(allocation.errors),
    }
