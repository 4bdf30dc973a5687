"""What can be asked of rows, as values: what it costs, what the ledger says of it, how its answer is drawn.

Making and checking a query looks at no row, so all that can be refused is refused before anything is paid. Only the
airlock calls `draw`, after the debit. Whoever keeps the rows, rehearses without them, or replays a release answers
the same `ask`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, Self, TypeVar

import numpy as np

from discreet.core.counter import Sample, TrueCounts
from discreet.core.mechanism import (
    AdditiveNoise,
    Noise,
    NoisyChoice,
    Selection,
    calibrate_choice,
    calibrate_counts,
    covers,
)
from discreet.core.noise import add_noise, choose
from discreet.core.scores import Score
from discreet.values.budget import ZCDP, Finite, PureDP, price, read_delta
from discreet.values.errors import AirlockError, BudgetError, DataError
from discreet.values.measurement import Measurement
from discreet.values.schema import Schema
from discreet.values.schema.encoding import Encoding
from discreet.values.statement import Statement
from discreet.values.table import Table
from discreet.values.text import Number, list_some, show
from discreet.values.unit import Unit

Answer = TypeVar("Answer")
Told = TypeVar("Told", covariant=True)
Spend = Finite | Number
"""A cost in the kind of the account's budget, or its plain number: "1/2", 1, Fraction(1, 3)."""


class Query(Protocol[Told]):
    """A question with its cost; making it proves that what it loses is within that cost."""

    @property
    def cost(self) -> Finite:
        """What the answer costs."""

    @property
    def unit(self) -> Unit:
        """The unit for which the cost holds."""

    def describe(self) -> dict[str, Any]:
        """What the ledger says of it, as plain JSON values: enough to tell any two queries apart."""

    def check(self, rows: TrueCounts) -> None:
        """Refuse what could not be answered, before it is paid for and without a look at a row."""

    def draw(self, rows: TrueCounts) -> list[Any]:
        """The answer as plain JSON values, which are stored before anyone sees them."""

    def read(self, stored: list[Any]) -> Told:
        """The answer from the stored values, the first time as every time."""


@dataclass(frozen=True, slots=True)
class Tables:
    """One noisy table of counts for each attribute set; with a `sample`, of a secret random sample of the rows."""

    sets: tuple[tuple[str, ...], ...]
    mechanisms: tuple[AdditiveNoise, ...]
    charges: tuple[Finite, ...]
    """What each table costs; together exactly `cost`. Less than its noise alone would cost if rows are sampled."""
    cost: Finite
    unit: Unit
    sample: Sample | None = None

    def __post_init__(self) -> None:
        for mechanism in self.mechanisms:
            if mechanism.unit != self.unit or not covers(mechanism, self.unit.moves):
                raise AirlockError(f"{mechanism.statistic}: the noise is not made for {self.unit}")
        losses = [mechanism.cost for mechanism in self.mechanisms]
        whole = sum(losses[1:], start=losses[0])
        if self.sample is not None:
            if self.sample.unit != self.unit:
                raise AirlockError(
                    f"the sample is for {self.sample.unit}, but the account protects {self.unit}"
                )
            if not isinstance(whole, PureDP):
                raise AirlockError(f"a secret sample can be paid for in pure ε only, not with {self.cost}")
            whole = self.sample.amplify(whole)
        charged = sum(self.charges[1:], start=self.charges[0])
        if charged != self.cost:
            raise AirlockError(f"the tables are charged {charged} together, not {self.cost}")
        if not (len(self.sets) == len(self.mechanisms) == len(self.charges) and whole <= self.cost):
            raise AirlockError(
                f"{len(self.sets)} tables lose {whole} together, more than the cost of {self.cost}"
            )

    @classmethod
    def price(
        cls,
        sets: Sequence[Sequence[str]],
        cost: Finite,
        *,
        unit: Unit,
        noise: Noise | str = Noise.LAPLACE,
        shares: Sequence[Number] | None = None,
    ) -> Self:
        """The narrowest noise that the cost pays for; `shares` weighs the tables, and by default all get the same."""
        asked = tuple(tuple(members) for members in sets)
        mechanisms = calibrate_counts(asked, cost, unit=unit, noise=Noise(noise), shares=shares)
        return cls(asked, mechanisms, tuple(mechanism.cost for mechanism in mechanisms), cost, unit)

    @property
    def rate(self) -> Fraction:
        """The share of the rows that is counted."""
        return Fraction(1) if self.sample is None else self.sample.rate

    def describe(self) -> dict[str, Any]:
        """The sets, and the law of the noise in each."""
        # Scales are floats, and a ledger that is to be compared byte by byte holds them exactly.
        return {
            "verb": "measure",
            "sets": [list(members) for members in self.sets],
            "noise": self.mechanisms[0].noise.value,
            "scales": [mechanism.scale.hex() for mechanism in self.mechanisms],
            "rate": str(self.rate),
        }

    def check(self, rows: TrueCounts) -> None:
        """Refuse tables that cannot be counted."""
        rows.counter.check(self.sets, self.sample)

    def draw(self, rows: TrueCounts) -> list[Any]:
        """The counts, each cell with its own noise, the empty ones too."""
        true_tables = rows.counter.count(self.sets, self.sample)
        return [
            Measurement(
                Table(table.axes, add_noise(table.values, mechanism)),
                mechanism.law,
                self.unit,
                charge,
                self.rate,
            ).to_json()
            for table, mechanism, charge in zip(true_tables, self.mechanisms, self.charges, strict=True)
        ]

    def read(self, stored: list[Any]) -> list[Measurement]:
        """The measurements."""
        return [Measurement.from_json(document) for document in stored]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of some candidate families, drawn by a score of its table of counts (parents first, the child last).

    A score of all candidates together draws one of its own values instead, such as yes or no.
    """

    candidates: tuple[tuple[str, ...], ...]
    sizes: Mapping[str, int]
    """The levels of the candidates' attributes, for which the sensitivity holds."""
    rows: int | None
    """Their number, where the unit makes it public."""
    score: Score
    mechanism: NoisyChoice

    def __post_init__(self) -> None:
        shapes = [tuple(map(self.sizes.__getitem__, members)) for members in self.candidates]
        needed = self.score.sensitivity(shapes, self.unit, self.rows)
        if self.mechanism.sensitivity < needed:
            raise AirlockError(
                f"one unit moves {self.score.name} by {needed}, more than the {self.mechanism.sensitivity} paid for"
            )

    @classmethod
    def price(
        cls,
        candidates: Sequence[Sequence[str]],
        score: Score,
        cost: Finite,
        *,
        schema: Schema,
        unit: Unit,
        rows: int | None,
        selection: Selection | str | None = None,
    ) -> Self:
        """The surest choice that the cost pays for; `rows` is their number where the unit makes it public."""
        asked = tuple(tuple(members) for members in candidates)
        sizes = schema.sizes
        strange = next((name for members in asked for name in members if name not in sizes), None)
        if strange is not None:
            raise DataError(f"unknown attribute {show(strange)}; the schema has {list_some(schema.names)}")
        shapes = [tuple(map(sizes.__getitem__, members)) for members in asked]
        sensitivity = score.sensitivity(shapes, unit, rows)
        mechanism = calibrate_choice(score.name, sensitivity, cost, unit=unit, selection=selection)
        return cls(asked, sizes, rows, score, mechanism)

    @property
    def cost(self) -> Finite:
        """What the choice costs."""
        return self.mechanism.cost

    @property
    def unit(self) -> Unit:
        """The unit for which the score's sensitivity holds."""
        return self.mechanism.unit

    def describe(self) -> dict[str, Any]:
        """The score, the candidates by their digest, and how one is drawn."""
        compared = json.dumps([self.candidates, self.score.digest])
        return {
            "verb": "select",
            "score": self.score.name,
            "candidates": len(self.candidates),
            "digest": hashlib.sha256(compared.encode()).hexdigest(),
            "selection": self.mechanism.selection.value,
            "sensitivity": str(self.mechanism.sensitivity),
            "scale": self.mechanism.scale.hex(),
        }

    def check(self, rows: TrueCounts) -> None:
        """Refuse candidates that cannot be counted, or a sensitivity that was worked out for another table."""
        if not self.sizes.items() <= rows.sizes.items():
            raise AirlockError("the choice was priced for attributes with other levels")
        if self.unit.fixes_rows and self.rows != rows.counter.rows:
            raise AirlockError(f"the choice was priced for {self.rows} rows, not for {rows.counter.rows}")
        rows.check_scores(self.candidates, self.score)

    def draw(self, rows: TrueCounts) -> list[Any]:
        """The index of the candidate."""
        return [choose(rows.evaluate(self.candidates, self.score), self.mechanism)]

    def read(self, stored: list[Any]) -> int:
        """The index of the candidate."""
        (index,) = stored
        return int(index)


@dataclass(frozen=True, slots=True)
class Discovery:
    """The values of columns that nobody has declared, if their noisy counts reach a threshold [Korolova et al. 2009].

    Unless a value is told that one unit alone holds, which happens with probability δ at most, this loses what the
    noise loses: it is δ-approximately ρ-zCDP [BS16, Def. 8.1].
    """

    columns: tuple[str, ...]
    mechanism: AdditiveNoise
    threshold: int
    cost: Finite
    delta: Fraction
    unit: Unit

    def __post_init__(self) -> None:
        if self.mechanism.cost * len(self.columns) != self.cost:
            raise AirlockError(
                f"{len(self.columns)} columns cost {self.mechanism.cost} each, not {self.cost} together"
            )
        if self.mechanism.unit != self.unit or not covers(self.mechanism, self.unit.moves):
            raise AirlockError(f"{self.mechanism.statistic}: the noise is not made for {self.unit}")
        least = find_threshold(self.mechanism, self.delta / len(self.columns))
        if self.threshold < least:
            raise AirlockError(
                f"a threshold of {self.threshold} tells values of single units; {least} is needed"
            )

    @classmethod
    def price(
        cls, columns: Sequence[str], cost: Finite, delta: Number, *, unit: Unit, noise: Noise = Noise.GAUSSIAN
    ) -> Self:
        """The narrowest noise and the least threshold that a ρ and a δ pay for, in equal shares."""
        if not isinstance(cost, ZCDP):
            raise BudgetError(
                f"values that nobody declared need an account with an ε and a δ, and not one in {cost}"
            )
        share, exact = cost.split(len(columns))[0], read_delta(delta)
        (mechanism,) = calibrate_counts([("values",)], share, unit=unit, noise=noise)
        least = find_threshold(mechanism, exact / len(columns))
        return cls(tuple(columns), mechanism, least, cost, exact, unit)

    def describe(self) -> dict[str, Any]:
        """The columns, the law of the noise, the threshold, and the δ, which the ledger adds up."""
        law = {
            "noise": self.mechanism.noise.value,
            "scale": self.mechanism.scale.hex(),
            "threshold": self.threshold,
        }
        return {"verb": "discover", "columns": list(self.columns), "delta": str(self.delta), **law}

    def check(self, rows: TrueCounts) -> None:
        """Refuse columns whose values were not opened to be counted."""
        rows.counter.count_values(self.columns)

    def draw(self, rows: TrueCounts) -> list[Any]:
        """The values of each column that reach the threshold."""
        return [self.tell(counts) for counts in rows.counter.count_values(self.columns)]

    def tell(self, true_counts: Mapping[str, int]) -> list[tuple[str, int]]:
        """Values whose noisy counts reach the threshold, sorted by what is told of them alone."""
        noisy_counts = add_noise(
            np.array(list(true_counts.values()), dtype=np.int64), self.mechanism
        ).tolist()
        told = [pair for pair in zip(true_counts, noisy_counts, strict=True) if pair[1] >= self.threshold]
        return sorted(told, key=lambda pair: (-pair[1], pair[0]))

    def read(self, stored: list[Any]) -> list[dict[str, int]]:
        """For each column the values with their noisy counts, the most frequent first."""
        return [{str(value): int(held) for value, held in column} for column in stored]


def find_threshold(mechanism: AdditiveNoise, delta: Fraction) -> int:
    """The least threshold T at which values that one unit alone holds are told with probability δ at most.

    Its k rows make values with counts c₁ + c₂ + … ≤ k, told with probability Σ p(cᵢ) at most, p(c) = P(noise ≥ T − c).
    For T > k, p is convex from 1 to k, so the worst are one value of count k or k of count 1: δ ≥ max(p(k), k·p(1)).
    """
    rows, law = max(mechanism.unit.moves), mechanism.law
    tails = [
        1 - int(law.quantile(float(part) * (1 - 2.0**-30))) for part in (delta, delta / rows)
    ]  # P(≥ tail) < part
    return max(rows + 1, rows + tails[0], 1 + tails[1])


class Keeper(Protocol):
    """Whoever answers queries: the airlock from rows, a rehearsal without any, a replay from a release."""

    __slots__ = ()

    @property
    def schema(self) -> Schema:
        """The public declaration of what a row may hold."""

    @property
    def unit(self) -> Unit:
        """What is protected."""

    @property
    def budget(self) -> Finite:
        """The whole budget, of which every spend is a part."""

    @property
    def rows(self) -> int:
        """The number of rows, where the unit makes it public."""

    @property
    def asked(self) -> tuple[str, ...]:
        """The request ids that were answered, in order."""

    def ask(self, query: Query[Answer], *, request: str | None = None) -> Answer:
        """The answer to a query; a repeated `request` id gets the same bytes and pays nothing."""

    def check(self, sets: Sequence[Sequence[str]]) -> None:
        """Refuse tables that `measure` would refuse for their size; for free, and without a look at the rows."""

    def encode(self, encoding: Encoding) -> Keeper:
        """The same rows behind the attributes of an encoding's view; close it by itself."""

    def mark(self, purpose: str) -> AbstractContextManager[None]:
        """Let every debit meanwhile say what it was for; within another mark the outer one stands."""

    def toss(self, names: Sequence[str], *, request: str | None = None) -> str:
        """One of these names by chance, without a look at the rows."""

    def statement(self, since: int | None = None) -> Statement | None:
        """What a release says about privacy now; with `since`, on all that was asked from there on."""

    def close(self) -> None:
        """Let go of the rows."""

    def read_spend(self, spend: Spend) -> Finite:
        """What a spend takes from the budget; a plain number is of its kind, and under (ε, δ) a pure ε."""
        if not isinstance(spend, Finite):
            spend = ZCDP(spend) if isinstance(self.budget, ZCDP) else PureDP(spend)
        return price(spend, self.budget)

    def measure(
        self,
        sets: Sequence[Sequence[str]],
        *,
        spend: Spend,
        noise: Noise | str = Noise.LAPLACE,
        shares: Sequence[Number] | None = None,
        request: str | None = None,
    ) -> list[Measurement]:
        """One noisy table of counts for each attribute set; together they cost exactly `spend`."""
        query = Tables.price(sets, self.read_spend(spend), unit=self.unit, noise=noise, shares=shares)
        return self.ask(query, request=request)

    def select(
        self,
        candidates: Sequence[Sequence[str]],
        score: Score,
        *,
        spend: Spend,
        selection: Selection | str | None = None,
        request: str | None = None,
    ) -> int:
        """The index of one candidate, chosen by a score of its table of counts."""
        public = self.rows if self.unit.fixes_rows else None
        query = Choice.price(
            candidates,
            score,
            self.read_spend(spend),
            schema=self.schema,
            unit=self.unit,
            rows=public,
            selection=selection,
        )
        return self.ask(query, request=request)
