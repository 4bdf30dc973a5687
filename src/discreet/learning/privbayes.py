"""PrivBayes: a graph by private choices, noisy tables of its families, and the network they make [004]."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from discreet.compute.consistency import (
    clamp,
    condition,
    reconcile,
    restore_margins,
    settle,
    weigh_by_precision,
)
from discreet.compute.smoothing import count_ordered, estimate_tables, smooth_conditionals
from discreet.learning.greedy import (
    Progress,
    ScoreName,
    Structure,
    greedy,
    look_through,
)
from discreet.learning.learner import estimate_rows, noise_for, predict_noise, stated
from discreet.learning.parent_sets import Edge
from discreet.networks.network import Network
from discreet.networks.provenance import Provenance
from discreet.values.errors import BudgetError, MechanismError
from discreet.values.graph import DAG
from discreet.values.measurement import Measurement
from discreet.values.schema.encoding import Encoding, Kind
from discreet.values.table import Table, count_cells
from discreet.values.text import Number, read_fraction, require_share

if TYPE_CHECKING:
    from discreet.core.mechanism import Selection
    from discreet.core.queries import Keeper, Spend
    from discreet.values.budget import Finite

Estimation = Literal["consistent", "printed"]
Reader = Callable[[Table, Sequence[str], Measurement], Table]
"""Makes a conditional of a settled table, a family, and the measurement behind it."""

ROUNDS = 5
"""How often tables are made to agree and kept from going negative, in turn."""
STRENGTH = 0.5
"""How many records the coarser conditionals are worth, and again for each standard deviation of the noise."""
THETA = 4
"""The mean count of a cell in units of noise, as the paper chose it."""
THETA_OF_TWO = 3
"""The same where all attributes have two levels and tables are made to agree, which makes them less noisy."""


@stated
def privbayes(
    airlock: Keeper,
    *,
    spend: Spend,
    beta: Number = "3/10",
    score: ScoreName = "R",
    encoding: Kind = "vanilla",
    k: int | None = None,
    theta: Number | None = None,
    selection: Selection | str | None = None,
    estimation: Estimation = "consistent",
    required: Iterable[Edge] = (),
    forbidden: Iterable[Edge] = (),
    order: Sequence[str] | None = None,
    start: DAG | None = None,
    rows: float | None = None,
    rng: np.random.Generator | int | None = None,
    request: str | None = None,
    progress: Progress | None = None,
) -> Network:
    """Learn a graph with the share β of the budget and its tables with the rest, exactly `spend` in all [004, Sec. 3].

    Only families that no other contains are measured: for a fixed k these are the d − k of Algorithm 1, whose first
    gives the tables of the first k + 1 attributes. `estimation="printed"` gives each table the same budget, cuts
    negative counts off and normalises; the default gives a table a share by its cells, makes all tables agree where
    they overlap, by inverse variance, goes to the nearest tables without negative cells, and lets conditionals
    that seldom apply follow coarser ones.
    `theta` is 4, or 3 where all attributes have two levels and tables are made to agree. `rows` is what is publicly
    known of their number; never the true number where that is private, for nothing pays for what follows from it.
    As printed: unit replace-one, β = 1/2, score I or F, `selection="exponential"`, `estimation="printed"`, and for
    attributes of more than two levels `encoding="binary"`.

    With an `encoding`, the network has nodes beside the declared attributes: the bits of their codes, or the groups of
    their taxonomies that some attribute depends on. `network.declared` is the schema without them, and synthetic rows
    do not show them. A synthetic row whose bits spell no level is drawn again, a bounded number of times; after that,
    and in every query, such bits count as one of the levels that share the most leading bits.
    """
    whole = airlock.read_spend(spend)
    share = read_fraction(beta, "β", BudgetError)
    require_share(share, "β", BudgetError)
    if estimation not in ("consistent", "printed"):
        raise MechanismError(f"the estimation must be 'consistent' or 'printed', not {estimation!r}")
    if theta is None:
        halved = set(airlock.schema.sizes.values()) == {2} and estimation == "consistent"
        theta = THETA_OF_TWO if halved else THETA
    structure = greedy(
        airlock,
        spend=whole * share,
        tables=whole * (1 - share),
        score=score,
        encoding=encoding,
        k=k,
        theta=theta,
        selection=selection,
        required=required,
        forbidden=forbidden,
        order=order,
        start=start,
        rows=rows,
        rng=rng,
        request=request and f"{request}/structure",
        progress=progress,
    )
    rest = whole - structure.cost
    families = structure.families()
    with look_through(airlock, structure.encoding) as view:
        measured = view.measure(
            families,
            spend=rest,
            noise=noise_for(rest),
            shares=None if estimation == "printed" else share_by_cells(families, view.schema.sizes, rest),
            request=request and f"{request}/tables",
        )
    read: Reader = lambda table, family, _: condition(table, family)  # noqa: E731
    if estimation == "printed":
        tables = clamp_tables(measured)
    else:
        public = float(airlock.rows) if airlock.unit.fixes_rows else None
        tables, read = agree(measured, public, structure.encoding), shrink
    details = {"estimation": estimation, "beta": str(share)}
    return make_network(airlock, structure, measured, tables, read, whole, details)


def make_network(
    airlock: Keeper,
    structure: Structure,
    measured: Sequence[Measurement],
    tables: Sequence[Table],
    read: Reader,
    cost: Finite,
    details: dict[str, Any],
) -> Network:
    """The network of a graph each of whose searched families follows from one of the tables, with its provenance."""
    dag, encoding = structure.dag, structure.encoding
    schema, _ = encoding.extend({pick.child: pick.parents for pick in structure.picks})
    rows = structure.rows or estimate_rows(measured)
    cpts: dict[str, Table] = {}
    errors = dict.fromkeys(dag.nodes, 0.0)
    for name in structure.order:
        family = dag.family(name)
        home = find_home(family, tables, encoding)
        cpts[name] = read(encoding.coarsen(tables[home], family), family, measured[home])
        errors[name] = predict_noise(measured[home], rows)
    for name in dag.nodes:
        if name not in cpts:  # tied to other nodes without any noise
            cpts[name] = encoding.link(name, dag.family(name))
            errors[name] = min(2.0, sum(errors[bit] for bit in encoding.spell(name) if bit != name))
    if encoding.kind != "vanilla":
        details = {**details, "auxiliary": list(schema.names[len(encoding.schema) :])}
    if encoding.kind == "binary":
        cut = [name for name in encoding.schema.names if encoding.parts(name)]
        details["bits"] = {name: list(encoding.parts(name)) for name in cut}
    return Network(
        schema,
        dag,
        tuple(cpts[name] for name in dag.nodes),
        provenance=Provenance(
            "privbayes",
            airlock.unit,
            cost,
            (*structure.measurements, *measured),
            errors,
            {"structure": structure.to_json(), **details},
        ),
    )


def clamp_tables(measured: Sequence[Measurement]) -> tuple[Table, ...]:
    """Each table by itself: negative counts set to 0, then normalised [004, Alg. 1, line 5]."""
    return tuple(Table(found.axes, clamp(found.noisy.values, 1.0)) for found in measured)


def agree(measured: Sequence[Measurement], rows: float | None, encoding: Encoding) -> tuple[Table, ...]:
    """The tables made to agree by inverse variance and kept from going negative, with the public total if any.

    Cells that no row can fall in, because their bits spell no level, are 0.
    """
    masks = [encoding.possible(found.axes) for found in measured]
    noisy = [
        Table(found.axes, found.noisy.values * mask) for found, mask in zip(measured, masks, strict=True)
    ]
    variances = [found.law.variance for found in measured]
    if encoding.kind == "vanilla":
        return estimate_tables(noisy, variances, count_ordered(encoding.schema), rounds=ROUNDS, total=rows)
    weights = weigh_by_precision(noisy, variances)
    settled = settle(noisy, weights, remedy="project", rounds=ROUNDS, total=rows)
    settled = restore_margins(settled, reconcile(noisy, weights))
    return tuple(Table(table.axes, table.values * mask) for table, mask in zip(settled, masks, strict=True))


def shrink(table: Table, family: Sequence[str], measured: Measurement) -> Table:
    """P(child | parents) from a table over the family; conditionals with little but noise are drawn to coarser ones."""
    counts = np.maximum(np.asarray(table.project(family).values, dtype=np.float64), 0.0)
    strength = STRENGTH * (measured.unit.grain + math.sqrt(measured.law.variance))
    return Table(tuple(family), np.ascontiguousarray(smooth_conditionals(counts, strength)))


def share_by_cells(sets: Sequence[Sequence[str]], sizes: dict[str, int], spend: Finite) -> list[Fraction]:
    """Shares that minimise the summed L1 noise: ∝ cells^½ for Laplace noise, ∝ cells^⅔ for Gaussian."""
    power = 2 / 3 if noise_for(spend) == "gaussian" else 1 / 2
    return [
        Fraction(max(1, round(1000 * count_cells(sizes[name] for name in members) ** power)), 1000)
        for members in sets
    ]


def find_home(family: Sequence[str], tables: Sequence[Table], encoding: Encoding) -> int:
    """The table that a conditional is read from: the smallest from which the whole family follows."""
    holders = [
        i
        for i, table in enumerate(tables)
        if all(encoding.holds(name, table.axes) is not None for name in family)
    ]
    return min(holders, key=lambda i: tables[i].cells)
