"""What a learner would measure, with which noise, and how wrong it would be, before anything is read or spent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.learning.learner import WITHOUT_GRAPH, choose_learner, learn_network
from discreet.learning.rehearsal import Rehearsal
from discreet.learning.searching.effort import Effort, count_batches, count_looked, predict_effort
from discreet.learning.searching.prices import MODEL_CELLS, Prices, Rates, advise_dependence, suit_rates
from discreet.networks.network import Network
from discreet.networks.provenance import Provenance
from discreet.values.budget import ApproxDP, Budget, Finite, PureDP
from discreet.values.errors import DataError, DiscreetError
from discreet.values.graph import DAG
from discreet.values.measurement import Measurement, law_from_json
from discreet.values.schema import Schema
from discreet.values.text import show
from discreet.values.unit import Unit

MOST_GUESSED = 10**13
"""More rows than anybody has; a guess beyond it is a typing error."""
CLOSING = "nothing was read and nothing was spent"


@dataclass(frozen=True, slots=True, eq=False)
class Preview:
    """What a learner would make of made-up rows."""

    network: Network
    rows: int
    choices: tuple[Finite, ...] = ()
    """What each private choice would cost, if the learner searches."""
    spend: Finite | None = None
    """What was asked for: an (ε, δ), say, where the learner spends the ρ that it buys."""
    passes: int = 1
    """How often rows that are not held in memory would be read, after they were opened."""
    pure_error: float | None = None
    """The mean error that the ε of an (ε, δ) would leave by itself."""
    effort: Effort | None = None
    """What the default search would take."""

    def __str__(self) -> str:
        return self.explain()

    def explain(self) -> str:
        """What would be measured, with which noise, and how wrong each attribute's conditionals would be."""
        known = self.network.provenance
        assert known is not None
        whole = known.cost
        return "\n".join(
            [*self._explain(known, whole), self._explain_passes(), *self._advise(known), CLOSING]
        )

    def _explain_passes(self) -> str:
        many = "one pass" if self.passes == 1 else f"{self.passes} passes"
        return f"Rows that stay on disk or inside an engine would be read once to be checked, and in {many} to count."

    def _advise(self, known: Provenance) -> list[str]:
        """What the budget buys, and where a pure ε would be narrower: it needs no δ, but adds up faster."""
        if not isinstance(self.spend, ApproxDP) or not self.spend.delta or not known.predicted_error:
            return []
        lines = [f"A promise of {self.spend} buys {known.cost}, in which spends add up; its δ is paid once."]
        here = float(np.mean(list(known.predicted_error.values())))
        if self.pure_error is not None and self.pure_error < here:
            lines.append(
                f"Pure ε would leave less noise here, a mean error of {self.pure_error:.4f} instead of {here:.4f}: "
                f"open the account with --epsilon {self.spend.epsilon} and without --delta."
            )
        return lines

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
            "passes": self.passes,
            "predicted error": dict(known.predicted_error),
            "effort": None
            if self.effort is None
            else {"seconds": self.effort.seconds, "megabytes": self.effort.megabytes},
        }

    def _explain(self, known: Provenance, whole: Budget) -> list[str]:
        if known.learner == "planned" and isinstance(whole, Finite):
            from discreet.learning.plan import plan  # it explains itself better than its tables could

            made = plan(self.network.dag, self.network.schema, spend=whole, unit=known.unit, rows=self.rows)
            return [made.explain().rstrip()]
        if known.learner in WITHOUT_GRAPH:
            return self._explain_search(known, str(whole))
        if not known.measurements:
            return self._explain_draw(known, str(whole))
        return self._explain_tables(known, str(whole))

    def _explain_draw(self, known: Provenance, whole: str) -> list[str]:
        """What a posterior would be made of: coefficients with one noise, or points of grids."""
        if "coefficients" in known.details:
            law = law_from_json(known.details["coefficients"]["law"])
            blocks = known.details["coefficients"]["blocks"]
            cells = sum(len(block["counts"]) for block in blocks)
            lines = [
                f"The learner {known.learner} would measure {cells:,} Fourier coefficients of {len(blocks):,} sets for "
                f"{whole} ({known.unit}), each with noise of ± {np.sqrt(law.variance):.3g}.",
                "",
                f"{'attribute':<40} {'expected L1 error':>30}",
            ]
            lines += [f"{name[:40]:<40} {error:>30.4f}" for name, error in known.predicted_error.items()]
            return [*lines, f"(L1 of a conditional, at most 2, for {self.rows:,} rows)"]
        lines = [
            f"The learner {known.learner} would draw the network itself at random, for {whole} ({known.unit}). "
            "No probability of a level would be below its floor:",
            "",
            f"{'attribute':<40} {'floor':>12}",
        ]
        return [
            *lines,
            *(f"{name[:40]:<40} {floor:>12.4g}" for name, floor in known.details["floors"].items()),
        ]

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
        certain = not self.choices and bool(known.details.get("batches"))
        how = (
            "The table is small, so it would choose nothing: these sets hold every pair of attributes."
            if certain
            else "Which tables it measures depends on private choices that it makes on the way."
        )
        lines = [f"The learner {known.learner} would spend {whole} ({known.unit}). {how}"]
        if known.learner == "adaptive" and not known.details.get("batches"):
            what = (
                "it would look for no dependence and treat all attributes as independent"
                if not self.choices
                else "it would make only one choice for each attribute, as PrivBayes does"
            )
            lines.append(f"With {self.rows:,} rows there is so much noise that {what}.")
            if not self.choices and isinstance(known.cost, Finite):
                advice = advise_dependence(
                    self.network.declared, spend=known.cost, unit=known.unit, rows=self.rows
                )
                lines += [] if advice is None else [advice]
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
        return lines if self.effort is None else [*lines, f"It would take {self.effort}."]


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
    if not 1 <= rows <= MOST_GUESSED:
        raise DataError(f"a preview needs a guess of 1 to {MOST_GUESSED:,} rows, not {show(rows)}")
    name = choose_learner(learner, dag)
    stage = Rehearsal(schema, unit, spend, rows)
    arguments = {"spend": spend, "request": "preview", **(options or {})}
    graph = [] if dag is None else [dag]
    network = learn_network(name, stage, *graph, **arguments)
    return Preview(
        network,
        rows,
        tuple(stage.chosen),
        spend,
        len(stage.passes),
        _try_pure(schema, dag, spend, unit, name, rows, options),
        _predict_effort(network, stage, rows, options or {}) if name == "adaptive" else None,
    )


def _predict_effort(
    network: Network, stage: Rehearsal, rows: int, options: Mapping[str, Any]
) -> Effort | None:
    """What the default search would take, by the choices that it rehearsed."""
    known = network.provenance
    if known is None or not isinstance(known.cost, Finite):
        return None
    sizes = list(stage.schema.sizes.values())
    candidates, cells = count_looked(sizes, stage.looked)
    batches = 0
    if stage.looked and known.details.get("batches"):
        prices = Prices.of(known.cost, stage.unit)
        rates = suit_rates(options.get("rates") or Rates(), stage.schema)
        batches = count_batches(prices, sizes, float(rows), rates)
    return predict_effort(
        sizes,
        rows,
        batches=batches * int(options.get("effort") or 1),
        candidates=candidates,
        cells=cells,
        model_cells=options.get("model_cells") or MODEL_CELLS,
    )


def _try_pure(
    schema: Schema,
    dag: DAG | None,
    spend: Finite,
    unit: Unit | str,
    learner: str,
    rows: int,
    options: Mapping[str, Any] | None,
) -> float | None:
    """The mean error that the ε of an (ε, δ) would leave by itself, if the learner can be paid so."""
    if not isinstance(spend, ApproxDP):
        return None
    try:
        made = rehearse(
            schema,
            dag,
            spend=PureDP(spend.epsilon),
            unit=unit,
            learner=learner,
            rows=rows,
            options=options,
        )
    except DiscreetError:  # such as Gaussian noise that was asked for
        return None
    known = made.network.provenance
    return float(np.mean(list(known.predicted_error.values()))) if known and known.predicted_error else None


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
