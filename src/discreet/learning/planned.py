"""The planned learner, the default for a public graph: measure by plan, then expect counts and network in turn.

Nothing but `Airlock.measure` touches rows, once; the plan is made before from public numbers, and all of `estimate`
is post-processing of the noisy tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.compute.expectation import ROUNDS, Fit, fit_network
from discreet.compute.smoothing import smooth_conditionals
from discreet.learning.learner import Prior, read_prior, stated
from discreet.learning.plan import MAX_CELLS, Plan, Workload, choose_noise, plan
from discreet.networks.network import Network
from discreet.networks.provenance import Provenance
from discreet.values.errors import TableError
from discreet.values.graph import DAG
from discreet.values.measurement import Measurement
from discreet.values.table import Array, Table

if TYPE_CHECKING:
    from discreet.core.queries import Keeper, Spend

STRENGTH = 0.5
"""How many records the coarser conditionals are worth in each conditional."""


@stated
def planned(
    airlock: Keeper,
    dag: DAG,
    *,
    spend: Spend,
    workload: Workload = "cpds",
    noise: str | None = None,
    rows: int | None = None,
    prior: Prior | None = None,
    max_cells: int = MAX_CELLS,
    rounds: int = ROUNDS,
    agreed: Mapping[str, Any] | None = None,
    request: str | None = None,
) -> Network:
    """Learn the tables of a public graph with the least error for the budget; see `plan` and `estimate`.

    `workload` says what the error is counted over, `rows` is a public guess of how many rows, or averaged people, there
    are (10 000 if nobody says; it only steers the plan), `noise` is Laplace or, for a ρ, Gaussian; `prior` holds the
    public α of Dirichlet priors, in place of the coarser conditionals that those without data follow; no table of more
    than `max_cells` cells is merged from smaller ones. `agreed` are the tables of a plan that several custodians share,
    which are measured as they stand there (`custodians.agreement`). `plan(…).explain()` tells all of it beforehand, for
    nothing.
    """
    graph, cost = dag.arrange(airlock.schema.names), airlock.read_spend(spend)
    sizes = airlock.schema.sizes
    read_prior(prior, graph, sizes)  # refused before anything is spent
    if rounds < 1:
        raise TableError(f"rounds must be at least 1, not {rounds}")
    unit = airlock.unit
    public = airlock.rows if unit.fixes_rows else None
    chosen_noise = choose_noise(cost, noise)
    if agreed is None:
        chosen = plan(
            graph,
            airlock.schema,
            spend=cost,
            unit=unit,
            noise=chosen_noise,
            workload=workload,
            rows=public if rows is None and public else rows,
            max_cells=max_cells,
        )
        sets, shares, told = chosen.sets, chosen.shares, _describe(chosen)
    else:
        from discreet.learning.custodians.agreement import read_agreed

        sets, shares, _ = read_agreed(agreed, graph, sizes)
        told = {"noise": chosen_noise}
    measured = tuple(
        airlock.measure(sets, spend=cost, noise=chosen_noise, shares=list(shares), request=request)
    )
    fit = fit_tables(graph, measured, prior, public, rounds)
    return Network(
        airlock.schema,
        graph,
        name_tables(graph, fit),
        provenance=Provenance(
            "planned",
            unit,
            cost,
            measured,
            dict(zip(graph.nodes, fit.errors, strict=True)),
            {**told, "steps": fit.steps},
        ),
    )


def estimate(
    dag: DAG,
    measurements: Sequence[Measurement],
    *,
    prior: Prior | None = None,
    rows: int | None = None,
    rounds: int = ROUNDS,
) -> tuple[Table, ...]:
    """The conditionals that noisy tables speak for, each family within one of them; it looks at nothing else.

    See `compute.expectation`; `rows` is their number where that is public.
    """
    return name_tables(dag, fit_tables(dag, measurements, prior, rows, rounds))


def fit_tables(
    dag: DAG, measurements: Sequence[Measurement], prior: Prior | None, rows: int | None, rounds: int
) -> Fit:
    """The conditionals that noisy tables speak for, with the errors to be expected; see `estimate`."""
    sizes = {name: size for found in measurements for name, size in found.noisy.sizes.items()}
    grain = measurements[0].unit.grain  # a person who is averaged is counted in so many parts
    pseudo = dict(zip(dag.nodes, read_prior(prior, dag, sizes), strict=True)) if prior is not None else {}

    def smooth(name: str, counts: Array) -> Array:
        alpha = pseudo.get(name)
        if alpha is None:
            return smooth_conditionals(counts, STRENGTH * grain)
        raised = counts + alpha * grain
        return np.asarray(raised / raised.sum(axis=-1, keepdims=True))

    return fit_network(dag, measurements, smooth, rows=rows, rounds=rounds)


def name_tables(dag: DAG, fit: Fit) -> tuple[Table, ...]:
    """The conditionals of a fit, each with the names of its family."""
    return tuple(
        Table(family, np.ascontiguousarray(values))
        for family, values in zip(dag.families(), fit.cpts, strict=True)
    )


def _describe(chosen: Plan) -> dict[str, object]:
    return {
        "workload": chosen.workload,
        "noise": chosen.noise,
        "planned for rows": chosen.rows,
        "tables": [
            {"axes": list(axes), "share": str(share), "answers": list(nodes)}
            for axes, share, nodes in zip(chosen.sets, chosen.shares, chosen.answers, strict=True)
        ],
        "predicted by the plan": chosen.predict_error(),
    }
