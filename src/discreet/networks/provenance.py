"""Where a learned network comes from: what was measured, at which price, how wrong it is expected to be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from discreet.values.budget import Budget
from discreet.values.measurement import Measurement
from discreet.values.statement import Statement
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
    """For each node, the mean L1 error of its conditional distributions that the plan expects from the noise."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """What else the learner decided, as plain JSON values: shares, order, options."""
    statement: Statement | None = None
    """The privacy statement: `Airlock.statement` as it was when the last answer had been paid for."""
