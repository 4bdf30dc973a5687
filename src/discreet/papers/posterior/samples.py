"""Samples of a truncated posterior, whose own spread is the noise [002, Thm. 4]."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from discreet.learning.learner import Prior, stated
from discreet.networks.network import Network
from discreet.networks.provenance import Provenance
from discreet.papers.posterior.grid_draws import POINTS, PosteriorDraw, calibrate_sample
from discreet.papers.posterior.updates import require_prior
from discreet.values.errors import MechanismError
from discreet.values.graph import DAG
from discreet.values.table import Table

if TYPE_CHECKING:
    from discreet.core.queries import Keeper, Spend
    from discreet.values.budget import Finite


@stated
def sample(
    airlock: Keeper,
    dag: DAG,
    *,
    spend: Spend,
    samples: int = 1,
    prior: Prior = 1.0,
    points: int = POINTS,
    request: str | None = None,
) -> tuple[Network, ...]:
    """Networks drawn from the posterior under a prior that is cut off at ω; together they cost exactly `spend`.

    Each sample costs ε = 2d·log((1−ω)/ω) if rows are replaced, half of that under add-remove, so ω = 1/(1 + e^{ε/2d})
    for two levels: for a small ε per node all probabilities are near ½. More levels are halved again and again, and
    each split is drawn like a bit, with its part of the node's ε. The prior is cut off before sampling, never the
    sample after it; each split lives on a public grid of `points` points, on which the draw is exact.
    """
    if samples < 1:
        raise MechanismError(f"samples must be at least 1, not {samples}")
    graph, cost = dag.arrange(airlock.schema.names), airlock.read_spend(spend)
    pseudo = require_prior(prior, graph, airlock.schema.sizes)
    each = cost / samples
    specification = calibrate_sample(graph.families(), pseudo, each, unit=airlock.unit, points=points)
    found = []
    for i in range(samples):
        name = None if request is None else f"{request}/sample-{i + 1}"
        drawn = airlock.ask(specification, request=name)
        details = {"sample": i + 1, "of": samples}
        # Each says what all cost: whoever has one may have the others, too.
        found.append(make_network(airlock, graph, specification, drawn, cost, details))
    return tuple(found)


@stated
def draw_network(
    airlock: Keeper,
    dag: DAG,
    *,
    spend: Spend,
    prior: Prior = 1.0,
    points: int = POINTS,
    request: str | None = None,
) -> Network:
    """One network drawn from the posterior, as `sample` draws them, for a release."""
    graph, cost = dag.arrange(airlock.schema.names), airlock.read_spend(spend)
    pseudo = require_prior(prior, graph, airlock.schema.sizes)
    specification = calibrate_sample(graph.families(), pseudo, cost, unit=airlock.unit, points=points)
    return make_network(airlock, graph, specification, airlock.ask(specification, request=request), cost, {})


def make_network(
    airlock: Keeper,
    dag: DAG,
    specification: PosteriorDraw,
    drawn: Sequence[Any],
    cost: Finite,
    details: dict[str, Any],
) -> Network:
    """The network whose tables are the drawn points of the grid."""
    sizes = airlock.schema.sizes
    cpts = tuple(
        Table(family, values.reshape([sizes[name] for name in family]))
        for family, values in zip(specification.families, specification.join(drawn), strict=True)
    )
    known = {"floors": specification.floors(), "points drawn": list(drawn), **details}
    kind = "posterior samples" if "of" in details else specification.kind
    provenance = Provenance(kind, airlock.unit, cost, (), details=known)
    return Network(airlock.schema, dag, cpts, provenance=provenance)
