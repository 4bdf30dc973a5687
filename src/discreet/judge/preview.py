"""What a learner would measure, with which noise, and how wrong it would be, before anything is read or spent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.learning.learner import WITHOUT_GRAPH, choose_learner, find_learner
from discreet.learning.rehearsal import Rehearsal
from discreet.networks.network import Network
from discreet.networks.provenance import Provenance
from discreet.values.budget import ApproxDP, Budget, Finite, afford_zcdp
from discreet.values.errors import DataError
from discreet.values.graph import DAG
from discreet.values.measurement import DiscreteGaussian, Measurement
from discreet.values.schema import Schema
from discreet.values.unit import Unit

CLOSING = "nothing was read and nothing was spent"


@dataclass(frozen=True, slots=True, eq=False)
class Preview:
    """What a learner would make of made-up rows."""

    network: Network
    rows: int
    choices: tuple[Finite, ...] = ()
    """What each private choice would cost, if the learner searches."""

    def __str__(self) -> str:
        return self.explain()

    def explain(self) -> str:
        """What would be measured, with which noise, and how wrong each attribute's conditionals would be."""
        known = self.network.provenance
        assert known is not None
        whole = known.cost
        return "\n".join([*self._explain(known, whole), *_advise(known, whole), CLOSING])

    def to_json(self) -> dict[str, Any]:
        """The preview as plain values."""
        known = self.network.provenance
        assert known is not None
        return {
            "learner": known.learner,
            "unit": known.unit.value,
            "cost": known.cost.to_json(),
            "rows": self.rows,
            "tables": [
                {
                    "axes": list(table.axes),
                    "cells": table.cells,
                    "cost": table.cost.to_json(),
                    "law": table.law.to_json(),
                }
                for table in known.measurements
            ],
            "choices": [cost.to_json() for cost in self.choices],
            "predicted error": dict(known.predicted_error),
        }

    def _explain(self, known: Provenance, whole: Budget) -> list[str]:
        if known.learner == "planned" and isinstance(whole, Finite):
            from discreet.learning.plan import plan  # it explains itself better than its tables could

            made = plan(self.network.dag, self.network.schema, spend=whole, unit=known.unit, rows=self.rows)
            return [made.explain().rstrip()]
        if known.learner in WITHOUT_GRAPH:
            return self._explain_search(known, str(whole))
        return self._explain_tables(known, str(whole))

    def _explain_tables(self, known: Provenance, whole: str) -> list[str]:
        lines = [
            f"The learner {known.learner} would measure {len(known.measurements)} tables for {whole} ({known.unit}). "
            f"Errors are predicted for {self.rows:,} rows.",
            "",
            f"{'table over':<40} {'cells':>7} {'cost':>10} {'noise ±':>9}",
        ]
        for table in known.measurements:
            name = ", ".join(table.axes) or "(number of rows)"
            name = name if len(name) <= 40 else name[:39] + "…"
            noise = float(np.sqrt(table.law.variance))
            lines.append(f"{name:<40} {table.cells:>7,} {_amount(table):>10.4g} {noise:>9.3g}")
        lines += ["", f"{'attribute':<40} {'expected L1 error':>30}"]
        lines += [f"{name[:40]:<40} {error:>30.4f}" for name, error in known.predicted_error.items()]
        mean = sum(known.predicted_error.values()) / max(1, len(known.predicted_error))
        return [*lines, f"{'mean':<40} {mean:>30.4f}", "(L1 of a conditional, at most 2)"]

    def _explain_search(self, known: Provenance, whole: str) -> list[str]:
        """A search in sums: which tables it will measure depends on its private choices."""
        lines = [
            f"The learner {known.learner} would spend {whole} ({known.unit}). "
            "Which tables it measures depends on private choices that it makes on the way."
        ]
        if known.learner == "adaptive" and not known.details.get("batches"):
            what = (
                "it would look for no dependence and treat all attributes as independent"
                if not self.choices
                else "it would make only one choice for each attribute, as PrivBayes does"
            )
            lines.append(f"With {self.rows:,} rows there is so much noise that {what}.")
        if_found = ", if every choice finds something" if self.choices else ""
        lines += [
            f"With {self.rows:,} rows it could go like this{if_found}:",
            "",
            f"{'step':<28} {'how many':>9} {'cells':>12} {'cost in all':>12} {'noise ±':>14}",
        ]
        groups: dict[int, list[Measurement]] = {}
        for table in known.measurements:
            groups.setdefault(len(table.axes), []).append(table)
        for size, tables in sorted(groups.items()):
            step = {0: "the number of rows", 1: "single attributes"}.get(size, f"sets of {size} attributes")
            lines.append(
                f"{step:<28} {len(tables):>9,} {_range((table.cells for table in tables), ',.0f'):>12} "
                f"{sum(map(_amount, tables)):>12.4g} "
                f"{_range((float(np.sqrt(table.law.variance)) for table in tables), '.3g'):>14}"
            )
        paid = sum(_price(cost.to_json()) for cost in self.choices)
        lines += [
            f"{'private choices':<28} {len(self.choices):>9,} {'':>12} {paid:>12.4g}",
            "",
            f"Noise would change a conditional by {np.mean(list(known.predicted_error.values())):.4f} on average "
            "(L1, at most 2). Dependences that the search misses add to this.",
        ]
        return lines


def rehearse(
    schema: Schema,
    dag: DAG | None,
    *,
    spend: Finite,
    unit: Unit | str = Unit.ADD_REMOVE,
    learner: str | None = None,
    rows: int = 10_000,
    options: Mapping[str, Any] | None = None,
) -> Preview:
    """Run a learner on made-up rows: a preview that costs nothing, because it sees nothing."""
    if rows < 1:
        raise DataError(f"a preview needs a guess of at least 1 row, not {rows}")
    name = choose_learner(learner, dag)
    stage = Rehearsal(schema, unit, spend, rows)
    arguments = {"spend": spend, "request": "preview", **(options or {})}
    graph = [] if dag is None else [dag]
    return Preview(find_learner(name)(stage, *graph, **arguments), rows, tuple(stage.chosen))


def _advise(known: Provenance, whole: Budget) -> list[str]:
    """What to do about a δ that is paid for and not used."""
    gaussian = any(isinstance(table.law, DiscreteGaussian) for table in known.measurements)
    if not isinstance(whole, ApproxDP) or whole.delta == 0 or gaussian:
        return []
    rho = float(afford_zcdp(whole).rho)
    return [
        "The δ is of no use here, because Laplace noise needs none. Leave it out, or open the account in ρ: "
        f"ρ = {rho:.3g} keeps the promise {whole} with Gaussian noise."
    ]


def _amount(table: Measurement) -> float:
    """What a table costs, as a number."""
    return _price(table.cost.to_json())


def _price(cost: Mapping[str, Any]) -> float:
    """The ε or ρ of a cost in its written form."""
    return float(Fraction(next(iter(cost.values()))))


def _range(values: Iterable[float], form: str) -> str:
    """One number, or from the least to the most, if that shows."""
    found = sorted(values)
    least, most = f"{found[0]:{form}}", f"{found[-1]:{form}}"
    return least if least == most else f"{least} to {most}"
