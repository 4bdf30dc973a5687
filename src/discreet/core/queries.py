"""What can be asked of rows: each question is checked and priced before anything is spent, and drawn only then.

A question holds its whole price, what the ledger will say it was for, and how to draw its answer. Making one touches
no row: `Counter.check` and its kin look at the schema. Only `Airlock` calls `draw`, after the debit.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from discreet.core.mechanism import AdditiveNoise, Noise, Selection, calibrate_choice
from discreet.core.noise import add_noise, choose
from discreet.core.scores import Score
from discreet.core.scoring import Scorer
from discreet.papers.coefficients import Coefficients
from discreet.papers.grid_draws import PrivateDraw
from discreet.papers.linear import ProductStatistics, calibrate_linear
from discreet.papers.subsample import Subsampling, price_tables
from discreet.papers.sums import BoundedColumn, calibrate_sums
from discreet.rows.opening import Counter
from discreet.values.budget import Finite, Unit
from discreet.values.errors import AirlockError
from discreet.values.exact import Number
from discreet.values.measurement import Measurement, SumMeasurement
from discreet.values.table import Table


@dataclass(frozen=True, slots=True)
class Question:
    """A priced question; `draw` gives plain values, which are stored as JSON before anyone sees them."""

    cost: Finite
    description: Mapping[str, Any]
    draw: Callable[[], list[Any]]


def ask_tables(
    counter: Counter,
    unit: Unit,
    sets: Sequence[Sequence[str]],
    cost: Finite,
    noise: Noise | str,
    shares: Sequence[Number] | None,
    sampling: Subsampling | None,
) -> Question:
    """One table of counts for each attribute set."""
    asked = [tuple(members) for members in sets]
    counter.check(asked, sampling)
    mechanisms, charged, rate = price_tables(
        asked, cost, unit=unit, noise=noise, shares=shares, sampling=sampling
    )

    def draw() -> list[Any]:
        return [
            Measurement(
                Table(table.axes, add_noise(table.values, mechanism)),
                mechanism.law,
                unit.value,
                json.dumps(share.to_json()),
                rate,
            ).to_json()
            for table, mechanism, share in zip(
                counter.count(asked, sampling), mechanisms, charged, strict=True
            )
        ]

    description = {
        "verb": "measure",
        "sets": [list(members) for members in asked],
        **_describe(mechanisms),
        "rate": str(rate),
    }
    return Question(cost, description, draw)


def ask_sums(
    counter: Counter,
    unit: Unit,
    columns: Sequence[BoundedColumn],
    cost: Finite,
    noise: Noise | str,
    shares: Sequence[Number] | None,
) -> Question:
    """The sum of each number column, clipped to its public bounds."""
    counter.check_sums(columns)
    mechanisms = calibrate_sums(columns, cost, unit=unit, noise=Noise(noise), shares=shares)

    def draw() -> list[Any]:
        return [
            SumMeasurement(
                column.name,
                int(add_noise(true_sum, mechanism)[()]),
                column.granularity,
                column.origin,
                mechanism.law,
                unit.value,
                json.dumps(mechanism.cost.to_json()),
            ).to_json()
            for column, true_sum, mechanism in zip(columns, counter.sum(columns), mechanisms, strict=True)
        ]

    description = {
        "verb": "measure sums",
        "columns": [column.describe() for column in columns],
        **_describe(mechanisms),
    }
    return Question(cost, description, draw)


def ask_linear(
    counter: Counter,
    unit: Unit,
    statistics: ProductStatistics,
    cost: Finite,
    sensitivity: int | None,
    sizes: Mapping[str, int],
) -> Question:
    """Integer linear statistics of the counts, with noise calibrated to all of them together."""
    counter.check(statistics.sets)
    statistics.require_sizes(sizes)
    mechanism = calibrate_linear(statistics, cost, unit=unit, sensitivity=sensitivity)

    def draw() -> list[Any]:
        blocks = statistics.evaluate(counter.count(statistics.maximal))
        noisy = tuple(Table(block.axes, add_noise(block.values, mechanism)) for block in blocks)
        return [Coefficients(noisy, mechanism.law, unit.value, json.dumps(cost.to_json())).to_json()]

    description = {
        "verb": "measure linear",
        "sets": [list(members) for members in statistics.sets],
        "matrices": statistics.digest(),
        "sensitivity": mechanism.l1,
        **_describe([mechanism]),
    }
    return Question(cost, description, draw)


def ask_draw(counter: Counter, unit: Unit, specification: PrivateDraw, cost: Finite) -> Question:
    """One private draw at the cost that its specification states."""
    if specification.unit is not unit:
        raise AirlockError(f"the draw is for {specification.unit}, the account protects {unit}")
    specification.check(counter)
    description = {"verb": "draw", **specification.describe()}
    return Question(cost, description, lambda: specification.draw(counter))


def ask_choice(
    counter: Counter,
    unit: Unit,
    candidates: Sequence[Sequence[str]],
    score: Score,
    cost: Finite,
    selection: Selection | str,
    sizes: Mapping[str, int],
    scorer: Scorer,
) -> Question:
    """The index of one candidate, chosen by a score of its table of counts."""
    asked = [tuple(members) for members in candidates]
    scorer.check(counter, asked, score, sizes)
    shapes = [tuple(map(sizes.__getitem__, members)) for members in asked]
    public_rows = counter.rows if unit is Unit.REPLACE_ONE else None
    mechanism = calibrate_choice(
        score.name,
        score.sensitivity(shapes, unit, public_rows),
        cost,
        unit=unit,
        selection=Selection(selection),
    )
    description = {
        "verb": "select",
        "score": score.name,
        "candidates": len(asked),
        "digest": hashlib.sha256(json.dumps([asked, digest_score(score)]).encode()).hexdigest(),
        "selection": mechanism.selection.value,
        "sensitivity": str(mechanism.sensitivity),
        "scale": mechanism.scale.hex(),
    }
    return Question(
        cost, description, lambda: [choose(scorer.evaluate(counter, asked, score, sizes), mechanism)]
    )


def digest_score(score: Score) -> str:
    """What tells two scores of one name apart: the digest of the model and handicaps that they compare with, if any."""
    models, handicaps = getattr(score, "expected", ()), getattr(score, "handicaps", ())
    amounts = "".join(amount.hex() for amount in handicaps).encode()
    return hashlib.sha256(b"".join([*(model.tobytes() for model in models), amounts])).hexdigest()


def _describe(mechanisms: Sequence[AdditiveNoise]) -> dict[str, Any]:
    # Scales are floats, and a ledger that is to be compared byte by byte holds them exactly.
    return {
        "noise": mechanisms[0].noise.value,
        "scales": [mechanism.scale.hex() for mechanism in mechanisms],
    }
