"""PrivBayes: a graph by private choices, noisy tables of its families, and the network they make [004]."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from discreet.algorithms.consistency import clamp, condition, settle, weigh_by_precision
from discreet.learning.independent import estimate_rows
from discreet.learning.stated import stated
from discreet.learning.structure import Progress, ScoreName, Structure, greedy, noise_for, predict_noise
from discreet.learning.structure_candidates import Edge
from discreet.models.network import Network
from discreet.models.provenance import Provenance
from discreet.vocabulary.errors import BudgetError, MechanismError
from discreet.vocabulary.exact import Number, read_fraction, show_fraction
from discreet.vocabulary.graph import DAG
from discreet.vocabulary.measurement import Measurement
from discreet.vocabulary.table import Table, count_cells

if TYPE_CHECKING:
    from discreet.privacy.airlock import Airlock, Spend
    from discreet.privacy.budget import Finite
    from discreet.privacy.mechanism import Selection

Estimation = Literal["consistent", "printed"]

ROUNDS = 5
"""How often tables are made to agree and kept from going negative, in turn."""


@stated
def privbayes(
    airlock: Airlock,
    *,
    spend: Spend,
    beta: Number = "3/10",
    score: ScoreName = "R",
    k: int | None = None,
    theta: Number = 4,
    selection: Selection | str = "permute-and-flip",
    estimation: Estimation = "consistent",
    required: Iterable[Edge] = (),
    forbidden: Iterable[Edge] = (),
    order: Sequence[str] | None = None,
    start: DAG | None = None,
    rng: np.random.Generator | int | None = None,
    request: str | None = None,
    progress: Progress | None = None,
) -> Network:
    """Learn a graph with the share β of the budget and its tables with the rest, exactly `spend` in all [004, Sec. 3].

    Only families that no other contains are measured: for a fixed k these are the d − k of Algorithm 1, whose first
    gives the tables of the first k + 1 attributes. `estimation="printed"` gives each table the same budget, cuts
    negative counts off and normalises; the default gives a table a share by its cells, makes all tables agree where
    they overlap, by inverse variance, and goes to the nearest tables without negative cells.
    As printed: unit replace-one, β = 1/2, score I or F, `selection="exponential"`, `estimation="printed"`.
    """
    whole = airlock.read_spend(spend)
    share = read_fraction(beta, "β", BudgetError)
    if not 0 < share < 1:
        raise BudgetError(f"β lies strictly between 0 and 1, not {show_fraction(share)}")
    if estimation not in ("consistent", "printed"):
        raise MechanismError(f"the estimation is 'consistent' or 'printed', not {estimation!r}")
    structure = greedy(
        airlock,
        spend=whole * share,
        tables=whole * (1 - share),
        score=score,
        k=k,
        theta=theta,
        selection=selection,
        required=required,
        forbidden=forbidden,
        order=order,
        start=start,
        rng=rng,
        request=request and f"{request}/structure",
        progress=progress,
    )
    rest = whole - structure.cost
    families = structure.dag.maximal_families()
    measured = airlock.measure(
        families,
        spend=rest,
        noise=noise_for(rest),
        shares=None if estimation == "printed" else share_by_cells(families, airlock.schema.sizes, rest),
        request=request and f"{request}/tables",
    )
    tables = (
        clamp_tables(measured)
        if estimation == "printed"
        else agree(measured, float(airlock.rows) if airlock.unit.value == "replace-one" else None)
    )
    return make_network(
        airlock, structure, measured, tables, whole, {"estimation": estimation, "beta": str(share)}
    )


def make_network(
    airlock: Airlock,
    structure: Structure,
    measured: Sequence[Measurement],
    tables: Sequence[Table],
    cost: Finite,
    details: dict[str, Any],
) -> Network:
    """The network of a graph whose every family lies in one of the tables, with its provenance."""
    dag = structure.dag
    homes = {name: find_home(dag.family(name), tables) for name in dag.nodes}
    rows = structure.rows or estimate_rows(measured)
    return Network(
        airlock.schema,
        dag,
        tuple(condition(tables[homes[name]], dag.family(name)) for name in dag.nodes),
        provenance=Provenance(
            "privbayes",
            airlock.unit.value,
            json.dumps(cost.to_json()),
            (*structure.measurements, *measured),
            {name: predict_noise(measured[homes[name]], rows) for name in dag.nodes},
            {"structure": structure.to_json(), **details},
        ),
    )


def clamp_tables(measured: Sequence[Measurement]) -> tuple[Table, ...]:
    """Each table by itself: negative counts set to 0, then normalised [004, Alg. 1, line 5]."""
    return tuple(Table(found.axes, clamp(found.noisy.values, 1.0)) for found in measured)


def agree(measured: Sequence[Measurement], rows: float | None) -> tuple[Table, ...]:
    """The tables made to agree by inverse variance and kept from going negative, with the public total if any."""
    noisy = [found.noisy for found in measured]
    weights = weigh_by_precision(noisy, [found.law.variance for found in measured])
    return settle(noisy, weights, remedy="project", rounds=ROUNDS, total=rows)


def share_by_cells(sets: Sequence[Sequence[str]], sizes: dict[str, int], spend: Finite) -> list[Fraction]:
    """Shares that minimise the summed L1 noise: ∝ cells^½ for Laplace noise, ∝ cells^⅔ for Gaussian."""
    power = 2 / 3 if noise_for(spend) == "gaussian" else 1 / 2
    return [
        Fraction(max(1, round(1000 * count_cells(sizes[name] for name in members) ** power)), 1000)
        for members in sets
    ]


def find_home(family: Sequence[str], tables: Sequence[Table]) -> int:
    """The table that a conditional is read from: the smallest that holds the whole family."""
    holders = [i for i, table in enumerate(tables) if set(family) <= set(table.axes)]
    return min(holders, key=lambda i: tables[i].cells)
