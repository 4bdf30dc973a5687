"""The plan of the planned learner: what is measured, with which share, how wrong it will be, before any spend."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import exp, pi, sqrt
from typing import TYPE_CHECKING, Literal

from discreet.learning.plan_merging import Group, Planner
from discreet.values.errors import GraphError, MechanismError, QueryError
from discreet.values.graph import DAG
from discreet.values.table import count_cells

if TYPE_CHECKING:
    from discreet.values.budget import Finite
    from discreet.values.schema import Schema
    from discreet.values.unit import Unit

Workload = Literal["cpds", "marginals"] | Sequence[Sequence[str]]
"""What the error is counted over: the conditionals, all marginals of one and two attributes, or marginals by name."""

ROWS = 10_000
"""The number of rows that a plan is made for if nobody says better; a wrong guess costs a few percent."""
MAX_CELLS = 1_000
"""The largest table that is merged from smaller ones."""
GRAIN = 1_000
"""Shares are whole numbers of this many parts, so that no plan depends on the last digit of a float."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Attribute sets to be measured, their shares of the budget, and the error to be expected; all of it is public."""

    dag: DAG
    sets: tuple[tuple[str, ...], ...]
    shares: tuple[Fraction, ...]
    """Positive, and exactly 1 in all."""
    answers: tuple[tuple[str, ...], ...]
    """For each set, the nodes whose conditionals come out of it."""
    cells: tuple[int, ...]
    variances: tuple[float, ...]
    """The variance of the noise in each cell of each set."""
    errors: Mapping[str, float]
    """For each node, the expected L1 error of its conditionals, weighed by how often each applies, times the rows."""
    noise: str
    spend: str
    unit: str
    workload: str
    rows: int
    """The public guess of the number of rows that the plan was made for."""

    def predict_error(self, rows: float | None = None) -> dict[str, float]:
        """For each node, the expected weighted mean L1 error of its conditionals; at most 2, and 2 without rows."""
        count = self.rows if rows is None else rows
        return {name: min(2.0, error / count) if count > 0 else 2.0 for name, error in self.errors.items()}

    def explain(self) -> str:
        """The plan in words and a table; nothing is spent by asking for it."""
        head = [
            f"Measure {_number(len(self.sets), 'table')} with {self.noise} noise for {self.spend} ({self.unit}), "
            f"so that the error of {self.workload} is least.",
            "Every row is in every table, so their shares add up to the whole budget.",
            f"It is made for about {self.rows:,} rows, a guess: errors fall as 1/rows, the tables hardly change.",
            "",
        ]
        lines = [["table", "cells", "share", "noise ±", "answers", "predicted error"]]
        predicted = self.predict_error()
        for i in self._order():
            first, *others = [(self._name(name), predicted[name]) for name in self.answers[i]]
            lines.append(
                [
                    " × ".join(self.sets[i]),
                    f"{self.cells[i]:,}",
                    f"{float(self.shares[i]):.1%}",
                    f"{sqrt(self.variances[i]):.3g}",
                    first[0],
                    f"{first[1]:.4f}",
                ]
            )
            lines += [["", "", "", "", name, f"{error:.4f}"] for name, error in others]
        widths = [max(len(line[k]) for line in lines) for k in range(len(lines[0]))]
        right = (1, 2, 3, 5)
        body = [
            "  ".join(
                cell.rjust(widths[k]) if k in right else cell.ljust(widths[k]) for k, cell in enumerate(line)
            ).rstrip()
            for line in lines
        ]
        mean = sum(predicted.values()) / len(predicted)
        tail = [
            "",
            f"Mean over {_number(len(predicted), 'node')}: {mean:.4f} (L1 of a conditional, at most 2). "
            "A release predicts it again from what it measured: where some levels are rare, it comes out larger.",
        ]
        return "\n".join([*head, *body, *tail])

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.explain())}</pre>"

    def _name(self, node: str) -> str:
        parents = self.dag.parents_of(node)
        return f"{node} | {', '.join(parents)}" if parents else node

    def _order(self) -> list[int]:
        return sorted(range(len(self.sets)), key=lambda i: (-self.shares[i], self.sets[i]))


def plan(
    dag: DAG,
    schema: Schema | Mapping[str, int],
    *,
    spend: Finite | str,
    unit: Unit | str = "add-remove",
    noise: str | None = None,
    workload: Workload = "cpds",
    rows: int | None = None,
    max_cells: int = MAX_CELLS,
) -> Plan:
    """What to measure for the tables of a public graph; it follows from public numbers alone, and spends nothing.

    The families that no other family contains are merged while the expected error falls, and those that a large table
    answers get one of their own where that is better (`plan_merging`). For errors a_S/ε_S the least Σ a_S/ε_S has ε_S
    ∝ √a_S; for Gaussian noise, where errors are a_S/√ρ_S, it has ρ_S ∝ a_S^⅔. `workload` weighs the nodes: a marginal
    over Q that is named is off by at most the sum of the errors of the ancestors of Q, so each of those counts once
    for each Q. Over all marginals that bound is too loose to plan by [measured]: there each attribute's own marginal
    counts, on which all tables that hold it agree, and a fifth of its family's error for the sake of pairs.
    """
    from discreet.values.budget import allow, read_budget
    from discreet.values.unit import Unit

    cost = allow(read_budget(spend) if isinstance(spend, str) else spend)
    sizes = dict(schema) if isinstance(schema, Mapping) else schema.sizes
    missing = [name for name in dag.nodes if name not in sizes]
    if missing:
        raise GraphError(f"node {missing[0]!r} is not in the schema")
    if rows is not None and rows < 1:
        raise QueryError(f"the guess of the number of rows must be at least 1, not {rows}")
    if max_cells < 1:
        raise QueryError(f"max_cells must be at least 1, not {max_cells}")
    chosen = choose_noise(cost, noise)
    protected = Unit.read(unit)
    squared = chosen == "gaussian"
    moved = sum(move * move if squared else move for move in protected.moves)
    # Where people are averaged, cells are in parts of a person, and so is what moves them: one person moves them by 1.
    moved //= protected.grain ** (2 if squared else 1)
    law = (chosen, amount_of(cost, chosen), moved)
    asked = workload if isinstance(workload, str) else tuple(tuple(members) for members in workload)
    found = _plan(dag, tuple(sizes[name] for name in dag.nodes), law, asked, rows or ROWS, max_cells)
    return Plan(dag, *found, chosen, str(cost), protected.value, _name_workload(asked), rows or ROWS)


def choose_noise(spend: Finite, noise: str | None = None) -> str:
    """The noise that costs least error: Gaussian for a ρ, which an (ε, δ) buys too, else Laplace."""
    from discreet.values.budget import allow

    kinds = ("laplace", "gaussian")
    if noise is None:
        return "gaussian" if "rho" in allow(spend).to_json() else "laplace"
    if noise not in kinds:
        raise MechanismError(f"the noise must be laplace or gaussian, not {noise!r}")
    return noise


def amount_of(spend: Finite, noise: str) -> float:
    """The ε that Laplace noise may spend, or the ρ of Gaussian noise."""
    from discreet.values.budget import afford_pure, afford_zcdp

    return float(afford_pure(spend).epsilon if noise == "laplace" else afford_zcdp(spend).rho)


def weigh_nodes(dag: DAG, workload: str | tuple[tuple[str, ...], ...]) -> dict[str, float]:
    """What the conditionals of each node matter to a workload."""
    if workload in ("cpds", "marginals"):
        return dict.fromkeys(dag.nodes, 1.0 if workload == "cpds" else 0.2)
    if isinstance(workload, str):
        raise QueryError(
            f"the workload must be 'cpds', 'marginals' or a list of attribute sets, not {workload!r}"
        )
    if not workload or not all(workload):
        raise QueryError("every attribute set of a workload needs at least one attribute")
    above = [dag.ancestors(_known(dag, members)) for members in workload]
    hits = {name: float(sum(name in found for found in above)) for name in dag.nodes}
    # What no query needs is still part of the network; it gets a little.
    mean = sum(hits.values()) / len(hits)
    return {name: max(found / mean, 0.05) for name, found in hits.items()}


@lru_cache(maxsize=64)
def _plan(
    dag: DAG,
    sizes: tuple[int, ...],
    law: tuple[str, float, int],
    workload: str | tuple[tuple[str, ...], ...],
    rows: int,
    max_cells: int,
) -> tuple[
    tuple[tuple[str, ...], ...],
    tuple[Fraction, ...],
    tuple[tuple[str, ...], ...],
    tuple[int, ...],
    tuple[float, ...],
    dict[str, float],
]:
    levels = dict(zip(dag.nodes, sizes, strict=True))
    families = dict(zip(dag.nodes, dag.families(), strict=True))

    def variance(share: float) -> float:
        return noise_variance(law, share)

    alone = 1.0 if workload == "marginals" else 0.0
    planner = Planner(families, levels, weigh_nodes(dag, workload), variance, float(rows), max_cells, alone)
    solution = planner.split(planner.merge(group_families(dag, levels)))
    parts = [max(1, round(share * GRAIN)) for share in solution.shares]
    shares = tuple(Fraction(part, sum(parts)) for part in parts)
    variances = tuple(variance(float(share)) for share in shares)
    errors = {
        # E|x| = √(2/π)·√W for noise that has been summed and averaged
        node: sqrt(2 / pi) * planner.expect_error(group.members, node, max(found, 1e-12))
        for group, found in zip(solution.groups, variances, strict=True)
        for node in group.nodes
    }
    sets = tuple(tuple(name for name in dag.nodes if name in group.members) for group in solution.groups)
    return (
        sets,
        shares,
        tuple(tuple(name for name in dag.nodes if name in group.nodes) for group in solution.groups),
        tuple(count_cells(levels[name] for name in members) for members in sets),
        variances,
        {name: errors[name] for name in dag.nodes},
    )


def group_families(dag: DAG, sizes: Mapping[str, int]) -> tuple[Group, ...]:
    """The families that no other contains, each with the nodes that it answers; a node goes to the smallest of them."""
    sets = [frozenset(family) for family in dag.maximal_families()]
    nodes: dict[frozenset[str], list[str]] = {members: [] for members in sets}
    holders: dict[str, list[frozenset[str]]] = {}
    for members in sets:
        for name in members:
            holders.setdefault(name, []).append(members)
    for name, family in zip(dag.nodes, dag.families(), strict=True):
        fitting = [members for members in holders[name] if members >= set(family)]
        nodes[min(fitting, key=lambda members: count_cells(sizes[x] for x in members))].append(name)
    return tuple(Group(members, tuple(found)) for members, found in nodes.items())


def noise_variance(law: tuple[str, float, int], share: float) -> float:
    """The variance of the noise in a cell for a share of the budget: 2q/(1 − q)² with q = e^(−ε/Δ₁), or Δ₂²/2ρ."""
    noise, amount, moves = law
    if noise == "gaussian":
        return moves / (2.0 * share * amount)
    rate = min(share * amount / moves, 700.0)
    return 2.0 * exp(-rate) / (1.0 - exp(-rate)) ** 2


def _known(dag: DAG, members: Iterable[str]) -> tuple[str, ...]:
    found = tuple(members)
    strange = [name for name in found if name not in dag]
    if strange:
        raise QueryError(f"the workload names {strange[0]!r}, which is not in the graph")
    return found


def _name_workload(workload: str | tuple[tuple[str, ...], ...]) -> str:
    if not isinstance(workload, str):
        return f"{_number(len(workload), 'marginal')}"
    return {"cpds": "the conditionals", "marginals": "all marginals of one and two attributes"}[workload]


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
