"""D-Ind: every family measured by itself with an even share of the budget, then made to agree [000, Proc. 1]."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from discreet.compute.consistency import clamp, condition, settle, weigh_by_precision
from discreet.learn.learner import stated
from discreet.networks.network import Network
from discreet.networks.provenance import Provenance
from discreet.values.errors import GraphError, TableError
from discreet.values.graph import DAG
from discreet.values.measurement import Measurement
from discreet.values.schema import Schema
from discreet.values.table import Array, Table

if TYPE_CHECKING:
    from discreet.core.airlock import Airlock, Spend
    from discreet.papers.subsample import Subsampling

Weights = Literal["paper", "inverse-variance"]
Prior = float | Mapping[str, npt.ArrayLike]
"""Public pseudo-counts α of Dirichlet priors: one number for every cell, or arrays that broadcast to a node's table."""

ROUNDS = 3
"""How often consistency and clamping alternate."""


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
    airlock: Airlock, dag: DAG, *, spend: Spend, prior: Prior | None = None, request: str | None = None
) -> Network:
    """Learn the tables of a public graph with the same share of the budget for every node: the papers' baseline.

    The noise is discrete Laplace of scale 2d/ε in each family's table and in its parents' (twice that if rows are
    replaced); see `compute_parameters`. `prior` holds the public α of Dirichlet priors.
    """
    graph, cost = arrange_graph(dag, airlock.schema), airlock.read_spend(spend)
    found = compute_parameters(airlock, graph, spend=cost, prior=prior, request=request)
    return Network(
        airlock.schema,
        graph,
        found.cpts,
        provenance=Provenance(
            "independent",
            airlock.unit.value,
            json.dumps(cost.to_json()),
            found.measurements,
            {
                name: predict_error(family.law.variance, above, family.noisy.values.shape[-1], found.rows)
                for name, family, above in zip(graph.nodes, found.families, found.parents, strict=True)
            },
            {"share of each node": str(Fraction(1, len(graph))), "prior": prior is not None},
        ),
    )


def compute_parameters(
    airlock: Airlock,
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
        raise TableError(f"weights are 'paper' or 'inverse-variance', not {weights!r}")
    pseudo = read_prior(prior, dag, airlock.schema.sizes)
    given = [Fraction(1, len(dag))] * len(dag) if shares is None else list(shares)
    measured = airlock.measure(
        [members for family in dag.families() for members in (family, family[:-1])],
        spend=spend,
        shares=[share / 2 for share in given for _ in range(2)],
        sampling=sampling,
        request=request,
    )
    families, parents = tuple(measured[0::2]), tuple(measured[1::2])
    joints = [
        join(family, above, alpha) for family, above, alpha in zip(families, parents, pseudo, strict=True)
    ]
    if weights == "paper":
        trust: Sequence[float] = [float(share) for share in given]
    else:
        trust = weigh_by_precision(joints, [family.law.variance for family in families])
    rows = float(airlock.rows) if airlock.unit.value == "replace-one" else estimate_rows(measured)
    if sampling is not None and airlock.unit.value == "replace-one":
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

    A row without positive counts takes the prior's mean, or is uniform. The printed M_i lacks the second quotient, so
    it is a conditional, and T_pa cancels from it.
    """
    counts = np.maximum(np.asarray(family.noisy.values, dtype=np.float64), 0.0)
    if prior is not None:
        counts = np.where(counts.sum(axis=-1, keepdims=True) > 0, counts, prior)
    rows = condition(Table(family.axes, counts), family.axes)
    above = clamp(parents.noisy.arrange(family.axes[:-1]).values, 1.0)
    return Table(family.axes, rows.values * above[..., np.newaxis])


def estimate_rows(measured: Sequence[Measurement]) -> float:
    """The number of rows: the mean of the tables' noisy totals, weighed by inverse variance."""
    variances = [found.law.variance * found.cells for found in measured]
    if min(variances) <= 0:
        return measured[variances.index(min(variances))].noisy.total()
    precision = math.fsum(1.0 / variance for variance in variances)
    return (
        math.fsum(found.noisy.total() / variance for found, variance in zip(measured, variances, strict=True))
        / precision
    )


def predict_error(variance: float, parents: Measurement, levels: int, rows: float) -> float:
    """The L1 error that such noise adds to a row of a conditional, weighed by how often the row occurs; at most 2.

    A row of m rows of data is off by about levels·E|noise|/m, at most by about 1, and counts m/n: together
    Σ_pa min(levels·E|noise|, m)/n, with m from the noisy table of the parents.
    """
    off = levels * math.sqrt(variance / 2.0)
    found = np.minimum(np.maximum(parents.noisy.values, 0.0), off).sum() / max(rows, 1.0)
    return min(2.0, float(found))


def arrange_graph(dag: DAG, schema: Schema) -> DAG:
    """The same graph with its nodes in the order of the schema."""
    strange = sorted(set(dag.nodes) ^ set(schema.names))
    if strange:
        where = "not in the schema" if strange[0] in dag else "not in the graph"
        raise GraphError(f"attribute {strange[0]!r} is {where}; both must name the same attributes")
    return (
        dag if dag.nodes == schema.names else DAG.build({name: dag.parents_of(name) for name in schema.names})
    )


def read_prior(prior: Prior | None, dag: DAG, sizes: Mapping[str, int]) -> tuple[Array | None, ...]:
    """The pseudo-counts of every node as an array over its family, or None where there are none."""
    if prior is None:
        return (None,) * len(dag)
    if isinstance(prior, Mapping):
        strange = [name for name in prior if name not in dag]
        if strange:
            raise GraphError(f"the prior names {strange[0]!r}, which is not in the graph")
    return tuple(
        _read_pseudo_counts(
            prior.get(name) if isinstance(prior, Mapping) else prior,
            name,
            tuple(sizes[member] for member in dag.family(name)),
        )
        for name in dag.nodes
    )


def _read_pseudo_counts(given: npt.ArrayLike | None, name: str, shape: tuple[int, ...]) -> Array | None:
    if given is None:
        return None
    try:
        found = np.broadcast_to(np.asarray(given, dtype=np.float64), shape)
    except ValueError:
        raise TableError(
            f"the prior of {name!r} does not broadcast to the shape {shape} of its table"
        ) from None
    if not (np.isfinite(found).all() and (found > 0).all()):
        raise TableError(f"the prior of {name!r} holds pseudo-counts that are not finite and above 0")
    return found
