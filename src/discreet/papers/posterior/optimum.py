"""The posterior's maximum by the exponential mechanism, in a reading that is private [002, Alg. 3]."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.learning.learner import Prior, stated
from discreet.networks.network import Network
from discreet.papers.posterior.grid_draws import POINTS, calibrate_maximum
from discreet.papers.posterior.samples import make_network
from discreet.papers.posterior.updates import require_prior
from discreet.values.graph import DAG

if TYPE_CHECKING:
    from discreet.core.queries import Keeper, Spend

FLOOR_SHARE = 0.1
"""Without a floor of its own, every probability is at least this share of the uniform one of the largest domain."""


@stated
def maximum(
    airlock: Keeper,
    dag: DAG,
    *,
    spend: Spend,
    floor: float | None = None,
    prior: Prior = 1.0,
    points: int = POINTS,
    request: str | None = None,
) -> Network:
    """A network near the posterior's maximum: P(θ) ∝ exp(ε·log posterior(θ)/(2Δ)) on a public grid.

    Δ = Σ_i log((1 − (k_i−1)ω)/ω) with the public floor ω; twice the exponent under add-remove. The printed mechanism
    scores by the density itself, which one row moves by more than the Δ that it claims.
    """
    graph, cost = dag.arrange(airlock.schema.names), airlock.read_spend(spend)
    sizes = airlock.schema.sizes
    omega = FLOOR_SHARE / max(sizes.values()) if floor is None else floor
    pseudo = require_prior(prior, graph, sizes)
    specification = calibrate_maximum(
        graph.families(), pseudo, cost, unit=airlock.unit, floor=omega, points=points
    )
    drawn = airlock.ask(specification, request=request)
    return make_network(airlock, graph, specification, drawn, cost, {"floor": omega})
