"""Where a learned network comes from: what was measured, what it cost, how wrong it is expected to be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from discreet.values.budget import Budget
from discreet.values.graph import DAG
from discreet.values.measurement import Measurement
from discreet.values.schema import Schema
from discreet.values.statement import Statement
from discreet.values.table import Table
from discreet.values.unit import Unit


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


def find_declared(schema: Schema, provenance: Provenance | None) -> Schema:
    """The schema without the attributes that an encoding has added to it: bits, or groups of levels."""
    named = None if provenance is None else provenance.details.get("auxiliary")
    added = {name for name in named if isinstance(name, str)} if isinstance(named, list | tuple) else set()
    shown = [name for name in schema.names if name not in added]
    return schema.select(shown) if added and shown else schema


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
