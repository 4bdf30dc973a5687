"""Noise on the Fourier coefficients of the updates, so that the noisy tables agree with each other [002, Alg. 2]."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from discreet.learning.learner import Prior, stated
from discreet.networks.posterior import Posterior
from discreet.networks.provenance import Provenance
from discreet.papers.posterior.basis import (
    bound_cells,
    close_downward,
    count_coefficients,
    make_basis,
    reconstruct,
    spread_variance,
)
from discreet.papers.posterior.linear import LinearStatistics, ProductStatistics
from discreet.papers.posterior.updates import make_posterior, predict_errors, require_prior
from discreet.values.errors import MechanismError
from discreet.values.graph import DAG
from discreet.values.table import Table

if TYPE_CHECKING:
    from discreet.core.queries import Keeper, Spend


@stated
def fourier(
    airlock: Keeper,
    dag: DAG,
    *,
    spend: Spend,
    prior: Prior = 1.0,
    stealth: float | None = None,
    sensitivity: Literal["exact", "paper"] = "exact",
    request: str | None = None,
) -> Posterior:
    """The Dirichlet posterior from noisy coefficients of the families' subsets; its `updates` agree on all margins.

    The noise scale is Δ/ε: Δ = 2|N_I| as printed (|N_I| under add-remove), or by default the exact distance that one
    row makes, which for replaced rows is smaller, since a coefficient that does not change costs nothing; the number
    of rows is public there and needs no noise. `stealth=t` raises the total by 2t·scale·|N_I| so that no cell is
    negative with probability 1 − e^{−t} [002, Cor. 3]; that dwarfs small data, so it is off, and cells are cut at 0.
    """
    if stealth is not None and not stealth > 0:
        raise MechanismError(f"stealth must be a number above 0, not {stealth}")
    if sensitivity not in ("exact", "paper"):
        raise MechanismError(f"the sensitivity must be 'exact' or 'paper', not {sensitivity!r}")
    graph, cost = dag.arrange(airlock.schema.names), airlock.read_spend(spend)
    sizes = airlock.schema.sizes
    pseudo = require_prior(prior, graph, sizes)
    closure = close_downward(graph.families())
    replaced = airlock.unit.fixes_rows
    skip = replaced and sensitivity == "exact"  # the empty set's coefficient is n, which is public then
    statistics = ProductStatistics(
        closure[1:] if skip else closure, {name: make_basis(sizes[name]) for name in graph.nodes}
    )
    printed = count_coefficients(closure, sizes) * (2 if replaced else 1)
    query = LinearStatistics.price(
        statistics,
        cost,
        unit=airlock.unit,
        sizes=sizes,
        sensitivity=printed if sensitivity == "paper" else None,
    )
    found = airlock.ask(query, request=request)
    blocks = list(found.blocks)
    if skip:
        blocks.insert(0, Table((), np.array(airlock.rows, dtype=np.int64)))
    if stealth is not None:
        scale = float(getattr(found.law, "scale", 0.0))
        raised = float(blocks[0].values) + 2.0 * stealth * scale * bound_cells(closure, sizes)
        blocks[0] = Table((), np.array(raised))
    updates = reconstruct(blocks, graph.families(), sizes)
    most = float(airlock.rows) if replaced and stealth is None else np.inf
    details = {"coefficients": found.to_json(), "stealth": stealth, "sensitivity": sensitivity}
    errors = predict_errors(
        updates,
        [found.law.variance * spread_variance(table.axes, sizes) for table in updates],
        max(float(blocks[0].values), 1.0),
    )
    provenance = Provenance("fourier", airlock.unit, cost, (), errors, details)
    return make_posterior(airlock, graph, pseudo, updates, most, provenance)
