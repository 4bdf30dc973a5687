"""Where a learned network comes from: what was measured, what it cost, how wrong it is expected to be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from discreet.values.budget import ZCDP, ApproxDP, Budget, Finite, Infinite, PureDP, imply_approx, imply_zcdp
from discreet.values.errors import NetworkError, SchemaError
from discreet.values.graph import DAG
from discreet.values.measurement import Measurement
from discreet.values.schema import Schema
from discreet.values.schema.encoding import Encoding
from discreet.values.statement import Statement
from discreet.values.table import Table
from discreet.values.unit import Unit

DISJOINT, OVERLAPPING = "nobody is in two tables", "somebody may be in several tables"
"""What custodians who combine their tables say about people."""


@dataclass(frozen=True, slots=True, eq=False)
class Provenance:
    """All of it is public: noisy tables with the laws of their noise, and the plan that chose them."""

    learner: str
    unit: Unit
    cost: Budget
    """What was spent on it."""
    measurements: tuple[Measurement, ...]
    predicted_error: Mapping[str, float] = field(default_factory=dict)
    """For each node, the mean L1 error of its conditionals that the plan expects from the noise."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """What else the learner decided, as plain JSON values: shares, order, options."""
    statement: Statement | None = None
    """The privacy statement: `Airlock.statement` as it was when the last answer had been paid for."""
    parts: tuple[Provenance, ...] = ()
    """What it was combined from, if several custodians measured: each part with its own statement."""

    @property
    def statements(self) -> tuple[Statement, ...]:
        """The accounts that paid: one, or one of each part."""
        found = (self.statement, *(part.statement for part in self.parts))
        return tuple(said for said in found if said is not None)

    @property
    def paid(self) -> tuple[tuple[Statement, Provenance], ...]:
        """Each account with the part that it paid for: itself, or all parts."""
        found = ((part.statement, part) for part in (self.parts or (self,)))
        return tuple((said, part) for said, part in found if said is not None)

    @property
    def promised(self) -> Budget:
        """What everybody is promised at least: by one account, or by several together."""
        alone = self.details.get("people") == DISJOINT
        return join_budgets([said.promised for said in self.statements], alone)

    @property
    def name(self) -> str:
        """The accounts, in one line."""
        return ", ".join(said.account for said in self.statements)

    @property
    def rows(self) -> int | None:
        """The number of rows, where the unit makes it public."""
        known = [said.rows for said in self.statements]
        return None if not known or None in known else sum(count for count in known if count is not None)


def join_budgets(amounts: Sequence[Budget], disjoint: bool) -> Budget:
    """What somebody's rows may cost in all: the largest amount if they are in one table, else the sum.

    Amounts of different kinds are compared as ρ, which every ε has, or as (ε, δ) with δ = 10⁻⁶.
    """
    finite = [amount for amount in amounts if isinstance(amount, Finite)]
    if len(finite) < len(amounts) or not finite:
        return Infinite()
    kinds = {type(amount) for amount in finite}
    if kinds == {PureDP, ZCDP}:
        finite = [imply_zcdp(amount) if isinstance(amount, PureDP) else amount for amount in finite]
    elif len(kinds) > 1:
        finite = [
            amount if isinstance(amount, ApproxDP) else imply_approx(amount, "1e-6") for amount in finite
        ]
    if disjoint:
        largest = [max(found) for found in zip(*(amount.amounts for amount in finite), strict=True)]
        return type(finite[0])(*largest)
    total = finite[0]
    for amount in finite[1:]:
        total = total + amount
    return total


def find_declared(schema: Schema, provenance: Provenance | None) -> Schema:
    """The schema without the attributes that an encoding has added to it: bits, or groups of levels."""
    named = None if provenance is None else provenance.details.get("auxiliary")
    added = {name for name in named if isinstance(name, str)} if isinstance(named, list | tuple) else set()
    shown = [name for name in schema.names if name not in added]
    return schema.select(shown) if added and shown else schema


def find_encoding(schema: Schema, provenance: Provenance | None) -> Encoding:
    """What was measured in place of some declared attributes: bits, coarser versions, or groups of their levels."""
    declared = find_declared(schema, provenance)
    if provenance is None or declared == schema:
        return Encoding.of("vanilla", schema)
    groups = provenance.details.get("groups")
    if not isinstance(groups, Mapping):
        return Encoding.of("binary" if provenance.details.get("bits") else "hierarchical", declared)
    try:
        found = Encoding.merge(declared, groups)
        if sorted(found.view.names) == sorted(schema.names) and all(
            schema[derived.name] == derived.attribute for derived in found.derived
        ):
            return found
    except SchemaError:
        pass
    raise NetworkError("the groups of levels that the release names are not those of its schema")


def find_spelling(schema: Schema, dag: DAG, provenance: Provenance | None) -> tuple[Table, ...]:
    """For each attribute that was cut into bits, which values of the bits spell one of its levels."""
    cut = None if provenance is None else provenance.details.get("bits")
    found = []
    for name, bits in cut.items() if isinstance(cut, Mapping) else ():
        if name in dag and isinstance(bits, list | tuple):
            family = dag.family(name)
            if family[:-1] == tuple(bits) and all(schema[bit].size == 2 for bit in bits):
                codes = np.arange(2 ** len(bits)).reshape([2] * len(bits))  # the most significant bit first
                found.append(Table(family[:-1], codes < schema[name].size))
    return tuple(found)
