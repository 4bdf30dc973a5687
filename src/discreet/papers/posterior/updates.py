"""Noise on the posterior's updates themselves [002, Alg. 1]."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from discreet.learning.learner import Prior, estimate_rows, read_prior, stated
from discreet.networks.posterior import Posterior
from discreet.networks.provenance import Provenance
from discreet.papers.parameters.independent import predict_error
from discreet.values.graph import DAG
from discreet.values.table import Array, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from discreet.core.queries import Keeper, Spend


@stated
def laplace(
    airlock: Keeper, dag: DAG, *, spend: Spend, prior: Prior = 1.0, request: str | None = None
) -> Posterior:
    """The Dirichlet posterior with noisy counts: α + Z, Z the noisy table of each family cut off at 0 [002, Alg. 1].

    The noise is discrete Laplace of scale 2d/ε for d nodes if rows are replaced, and Z is then cut off at the public n,
    too; it is d/ε under add-remove, where a bound at n would give n away.
    """
    airlock.unit.require_rows("a posterior")
    graph, cost = dag.arrange(airlock.schema.names), airlock.read_spend(spend)
    pseudo = require_prior(prior, graph, airlock.schema.sizes)
    measured = airlock.measure(graph.families(), spend=cost, request=request)
    most = float(airlock.rows) if airlock.unit.fixes_rows else np.inf
    updates = [found.noisy for found in measured]
    rows = most if np.isfinite(most) else estimate_rows(measured)
    errors = predict_errors(updates, [found.law.variance for found in measured], rows)
    provenance = Provenance("laplace", airlock.unit, cost, tuple(measured), errors)
    return make_posterior(airlock, graph, pseudo, updates, most, provenance)


def predict_errors(updates: Sequence[Table], variances: Sequence[float], rows: float) -> dict[str, float]:
    """The L1 error that noise of such variances in the updates adds to each node's conditionals, weighed by use."""
    return {
        table.axes[-1]: predict_error(variance, table.values.sum(axis=-1), table.values.shape[-1], rows)
        for table, variance in zip(updates, variances, strict=True)
    }


def make_posterior(
    airlock: Keeper,
    dag: DAG,
    prior: Sequence[Array],
    updates: Sequence[Table],
    most: float,
    provenance: Provenance,
) -> Posterior:
    """α plus the updates, each projected on [0, most]: `1_[0,n]` in [002, Alg. 1] is a projection."""
    alphas = tuple(
        Table(found.axes, alpha + np.clip(np.asarray(found.values, dtype=np.float64), 0.0, most))
        for alpha, found in zip(prior, updates, strict=True)
    )
    return Posterior(airlock.schema, dag, alphas, tuple(updates), provenance)


def require_prior(prior: Prior, dag: DAG, sizes: dict[str, int]) -> tuple[Array, ...]:
    """The α of every node over its family; nodes that a mapping leaves out get the uniform prior, α = 1."""
    found = read_prior(prior, dag, sizes)
    shapes = [tuple(sizes[member] for member in family) for family in dag.families()]
    return tuple(
        np.ones(shape) if alpha is None else alpha for alpha, shape in zip(found, shapes, strict=True)
    )
