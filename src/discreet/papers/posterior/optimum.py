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

    Δ is the sum over nodes, and over the depths of the splits that their levels are halved by, of how far one row moves
    a log-probability between two points with every level above the public floor ω: for bits Σ_i log((1 − ω)/ω). Without
    a floor every half of a split has at least about a twentieth. Under add-remove the exponent is twice as large. The
    printed mechanism scores by the density itself, which one row moves by more than the Δ that it claims.
    """
    graph, cost = dag.arrange(airlock.schema.names), airlock.read_spend(spend)
    sizes = airlock.schema.sizes
    pseudo = require_prior(prior, graph, sizes)
    specification = calibrate_maximum(
        graph.families(), pseudo, cost, unit=airlock.unit, floor=floor, points=points
    )
    drawn = airlock.ask(specification, request=request)
    return make_network(airlock, graph, specification, drawn, cost, {})
