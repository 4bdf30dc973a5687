"""D-Ind: every family measured by itself with an even share of the budget, then made to agree [000, Proc. 1]."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

import numpy as np

from discreet.compute.consistency import (
    clamp,
    condition,
    project_on_simplex,
    reconcile,
    settle,
    weigh_by_precision,
)
from discreet.compute.contraction import Margin
from discreet.compute.expectation import PRODUCT_CELLS
from discreet.compute.smoothing import rake_conditionals
from discreet.core.queries import Tables
from discreet.learning.learner import Prior, estimate_rows, read_prior, stated
from discreet.networks.network import Network
from discreet.networks.provenance import Provenance
from discreet.papers.parameters.subsample import Subsampling, sample_tables
from discreet.values.errors import TableError, TooLarge
from discreet.values.graph import DAG
from discreet.values.measurement import Measurement
from discreet.values.table import Array, Table

if TYPE_CHECKING:
    from discreet.core.queries import Keeper, Spend

Weights = Literal["paper", "inverse-variance"]
Margins = Literal["paper", "noisy"]

ROUNDS = 3
"""How often consistency and clamping alternate."""
RAKED = 8
"""How often conditionals are raked to their margins, which may be far off."""


@dataclass(frozen=True, slots=True, eq=False)
class Parameters:
    """What ComputeParameters returns: conditionals and the noisy tables behind them, by node [000, Proc. 1]."""

    cpts: tuple[Table, ...]
    families: tuple[Measurement, ...]
    parents: tuple[Measurement, ...]
    rows: float
    """The number of rows, public or estimated from the noisy totals."""

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        """All noisy tables, each family followed by its parents."""
        return tuple(found for pair in zip(self.families, self.parents, strict=True) for found in pair)


@stated
def independent(
    airlock: Keeper,
    dag: DAG,
    *,
    spend: Spend,
    weights: Weights = "paper",
    margins: Margins = "paper",
    prior: Prior | None = None,
    request: str | None = None,
) -> Network:
    """Learn the tables of a public graph with the same share of the budget for every node: the papers' baseline.

    The noise is discrete Laplace of scale 2d/ε in each family's table and in its parents' (twice that if rows are
    replaced); see `compute_parameters`. `weights` are those of the consistency step: by budget, as printed, or by
    inverse variance. `margins` are what comes out of it, as printed, or those of the noisy tables, which keep rare
    outcomes rare (`keep_margins`). `prior` holds the public α of Dirichlet priors.
    """
    if margins not in ("paper", "noisy"):
        raise TableError(f"the margins must be 'paper' or 'noisy', not {margins!r}")
    graph, cost = dag.arrange(airlock.schema.names), airlock.read_spend(spend)
    found = compute_parameters(airlock, graph, spend=cost, weights=weights, prior=prior, request=request)
    return Network(
        airlock.schema,
        graph,
        keep_margins(graph, found) if margins == "noisy" else found.cpts,
        provenance=Provenance(
            "independent",
            airlock.unit,
            cost,
            found.measurements,
            {
                name: predict_error(
                    family.law.variance, above.noisy.values, family.noisy.values.shape[-1], found.rows
                )
                for name, family, above in zip(graph.nodes, found.families, found.parents, strict=True)
            },
            {"share of each node": str(Fraction(1, len(graph))), "prior": prior is not None},
        ),
    )


def compute_parameters(
    airlock: Keeper,
    dag: DAG,
    *,
    spend: Spend,
    shares: Sequence[Fraction] | None = None,
    weights: Weights = "paper",
    prior: Prior | None = None,
    sampling: Subsampling | None = None,
    request: str | None = None,
) -> Parameters:
    """ComputeParameters: noisy tables of families and parents, joints, consistency, conditionals [000, Proc. 1].

    A node's share is halved between T_i and T_pa (of a root: the number of rows). `join` makes the M_i, which are
    made consistent [001, Sec. 8.2.1], weighed by their budgets as printed or by inverse variance, and at the end
    Θ[x|x_pa] = (n·M_i[x, x_pa] + α)/Σ_x(n·M_i[x, x_pa] + α), n being the noisy total, or public.
    """
    if weights not in ("paper", "inverse-variance"):
        raise TableError(f"the weights must be 'paper' or 'inverse-variance', not {weights!r}")
    pseudo = read_prior(prior, dag, airlock.schema.sizes)
    given = [Fraction(1, len(dag))] * len(dag) if shares is None else list(shares)
    sets = [members for family in dag.families() for members in (family, family[:-1])]
    halves, cost = [share / 2 for share in given for _ in range(2)], airlock.read_spend(spend)
    if sampling is None:
        query = Tables.price(sets, cost, unit=airlock.unit, shares=halves)
    else:
        query = sample_tables(sets, cost, sampling, shares=halves)
    measured = airlock.ask(query, request=request)
    families, parents = tuple(measured[0::2]), tuple(measured[1::2])
    joints = [
        join(family, above, alpha) for family, above, alpha in zip(families, parents, pseudo, strict=True)
    ]
    if weights == "paper":
        trust: Sequence[float] = [float(share) for share in given]
    else:
        trust = weigh_by_precision(joints, [family.law.variance for family in families])
    rows = float(airlock.rows) if airlock.unit.fixes_rows else estimate_rows(measured)
    if sampling is not None and airlock.unit.fixes_rows:
        rows *= float(sampling.rate)
    cpts = tuple(
        condition(Table(joint.axes, joint.values * max(rows, 0.0)), joint.axes, alpha)
        for joint, alpha in zip(
            settle(joints, trust, remedy="clamp", rounds=ROUNDS, total=1.0), pseudo, strict=True
        )
    )
    return Parameters(cpts, families, parents, max(rows, 1.0))


def join(family: Measurement, parents: Measurement, prior: Array | None = None) -> Table:
    """M_i[x, x_pa] = T_i[x, x_pa]/Σ_x T_i[x, x_pa] · T_pa[x_pa]/Σ T_pa, negative counts taken as 0 [000, Proc. 1].

    A conditional without positive counts takes the prior's mean, or is uniform. The printed M_i lacks the second
    quotient, so it is a conditional, and T_pa cancels from it.
    """
    counts = np.maximum(np.asarray(family.noisy.values, dtype=np.float64), 0.0)
    if prior is not None:
        counts = np.where(counts.sum(axis=-1, keepdims=True) > 0, counts, prior)
    conditionals = condition(Table(family.axes, counts), family.axes)
    above = clamp(parents.noisy.arrange(family.axes[:-1]).values, 1.0)
    return Table(family.axes, conditionals.values * above[..., np.newaxis])


def keep_margins(dag: DAG, found: Parameters) -> tuple[Table, ...]:
    """The conditionals raked, parents first, until each child is as frequent as in the noisy tables, made to agree.

    Counts that cannot be negative are too high where they are small, and over many parents that adds up: a rare level
    would be published as frequent. The sums over noisy cells have no such bias. Parents are weighed as the network
    does, or by their noisy table where that takes too large a product.
    """
    noisy = [family.noisy for family in found.families]
    agreed = reconcile(noisy, weigh_by_precision(noisy, [family.law.variance for family in found.families]))
    sizes = {cpt.axes[-1]: cpt.values.shape[-1] for cpt in found.cpts}
    cpts = [cpt.values for cpt in found.cpts]
    for name in dag.order:
        k = dag.nodes.index(name)
        family, total = found.cpts[k].axes, agreed[k].total()
        if total <= 0:  # noise left nothing to follow
            continue
        above: Array = np.ones(())
        try:
            if len(family) > 1:
                margin = Margin.plan(dag, sizes, family[:-1], PRODUCT_CELLS)
                above = margin.read([values[None] for values in cpts])[0]
        except TooLarge:
            above = clamp(found.parents[k].noisy.arrange(family[:-1]).values, 1.0)
        goal = project_on_simplex(agreed[k].project([name]).values, total)
        for _ in range(RAKED):
            cpts[k] = rake_conditionals(cpts[k], above[..., np.newaxis], goal)
    return tuple(Table(cpt.axes, values) for cpt, values in zip(found.cpts, cpts, strict=True))


def predict_error(variance: float, noisy_parents: Array, levels: int, rows: float) -> float:
    """The L1 error that such noise adds to a conditional, weighed by how often it applies; at most 2.

    A conditional with m records is off by about levels·E|noise|/m, at most by about 1, and counts m/n: together
    Σ_pa min(levels·E|noise|, m)/n, with m from the noisy table of the parents.
    """
    off = levels * math.sqrt(variance / 2.0)
    found = np.minimum(np.maximum(noisy_parents, 0.0), off).sum() / max(rows, 1.0)
    return min(2.0, float(found))
