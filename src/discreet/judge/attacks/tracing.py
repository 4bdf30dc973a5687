"""Tracing attacks: who is in the data, as far as a release tells [003, Secs. 3 and 4].

An attacker holds the release and reference rows, scores a person, and says "member" above a threshold. Here
the truth is known, so the power of every attack is measured: members are the rows behind the release,
strangers are people of the same population who are not among them and whom the attacker has not used to fit
anything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from discreet.judge.attacks.ceiling import expect_power, limit_power
from discreet.judge.attacks.codes import Codes, Floats, count_rows, join_rows
from discreet.judge.attacks.flat_tables import FlatTables
from discreet.judge.attacks.guess_bound import Guesses
from discreet.judge.attacks.noisy_tables import estimate_total, score_jointly, score_noisy
from discreet.judge.attacks.power import ERRORS, Power, measure_power, rank_scores
from discreet.judge.attacks.published import Published
from discreet.judge.attacks.recovery import recover_ratios
from discreet.judge.attacks.reference import PSEUDO_COUNT, Reference, centre
from discreet.judge.attacks.synthetic_rows import fit_tree, measure_nearest
from discreet.judge.attacks.units import Units
from discreet.judge.tails import chi_squared_tail
from discreet.values.budget import Budget
from discreet.values.errors import DataError
from discreet.values.table import Table
from discreet.values.unit import Unit

GUESSED_SHARES = (0.05, 0.2, 1.0)
"""To refute a promise, so many guesses are made, as shares of the number of members; fixed before any look."""

LEAST_ROWS = 20
"""Fewer members or strangers tell nothing."""

MANY_ROWS = 8
"""People with so many rows or more are one kind when members are compared with strangers."""


@dataclass(frozen=True, slots=True, eq=False)
class Attack:
    """A way to score people: higher for those who look like members."""

    name: str
    score: Callable[[Units], Floats]


@dataclass(frozen=True, slots=True, eq=False)
class Tracing:
    """What all attacks on one release achieve, beside what theory expects and the promise allows."""

    kind: str
    powers: tuple[Power, ...]
    guesses: tuple[Guesses, ...]
    """How many of each attack's highest scores are members'."""
    errors: tuple[float, ...]
    complexity: int | None
    """C(G), the number of free parameters, of a release with a graph."""
    promise: Budget | None
    members: int
    strangers: int
    fitted: int
    """Reference rows to which the attacker fitted something."""
    shift: float
    """The p-value of the hypothesis that members and strangers come from one population."""
    unit: Unit | None = None
    """What is a member or not, and what the promise hides: a row, a person, a row that counts several times."""

    @property
    def theory(self) -> tuple[float, ...] | None:
        """What Theorem 1 expects of a plain network with the same graph, at each error; it speaks of rows only."""
        if self.complexity is None or (self.unit is not None and self.unit.moves[0] > 1):
            return None
        return tuple(expect_power(self.complexity, self.members, self.errors).tolist())

    @property
    def ceiling(self) -> tuple[float, ...] | None:
        """The most that any attack can reach if the promise is kept, at each error."""
        return None if self.promise is None else tuple(limit_power(self.promise, self.errors).tolist())

    @property
    def best(self) -> Power:
        """The attack with the greatest power at the errors asked for, added up."""
        return max(self.powers, key=lambda power: (sum(point.power for point in power.points), power.auc))

    def doubt(self, scale: float = 0.01) -> float:
        """The chance of guesses as good as the best ones if the promise were kept, over all that were tried."""
        if self.promise is None:
            return 1.0
        each = [found.doubt_budget(self.promise, scale / len(self.guesses)) for found in self.guesses]
        return min(1.0, len(each) * min(each))

    def prove(self, confidence: float = 0.95) -> float:
        """The ε that the release really costs at least, by its best guesses; valid under the same assumptions."""
        share = (1.0 - confidence) / len(self.guesses)
        return max(found.prove(1.0 - share) for found in self.guesses)

    def to_json(self) -> dict[str, Any]:
        """All results as plain values."""
        return {
            "kind": self.kind,
            "unit": None if self.unit is None else self.unit.value,
            "members": self.members,
            "strangers": self.strangers,
            "fitted": self.fitted,
            "errors": list(self.errors),
            "theory": None if self.theory is None else list(self.theory),
            "ceiling": None if self.ceiling is None else list(self.ceiling),
            "promise": None if self.promise is None else self.promise.to_json(),
            "same_population_p": self.shift,
            "attacks": [power.to_json() for power in self.powers],
        }


def trace(
    published: Published,
    members: Units | Codes,
    reference: Units | Codes,
    *,
    strangers: Units | Codes | None = None,
    errors: Sequence[float] = ERRORS,
    confidence: float = 0.95,
    pseudo_count: float = PSEUDO_COUNT,
    rng: int = 0,
) -> Tracing:
    """Run every attack that the release allows on members and strangers, given as codes of rows or as units.

    Without `strangers`, half of the reference, drawn at random, sets the thresholds and the attacker fits the other
    half: a threshold from rows that were fitted would be too low and the error larger than it says.
    """
    generator = np.random.default_rng(rng)
    known, mine = Units.read(reference), Units.read(members)
    if strangers is None:
        number = known.require("the reference", 2 * LEAST_ROWS)
        mixed = generator.permutation(number)
        known, others = known.take(mixed[: number // 2]), known.take(mixed[number // 2 :])
    else:
        others = Units.read(strangers)
    inside = mine.require("the table of members", LEAST_ROWS)
    outside = others.require("the table of strangers", LEAST_ROWS)
    powers: list[Power] = []
    guesses: list[Guesses] = []
    for attack in list_attacks(published, known, pseudo_count=pseudo_count):
        scores = attack.score(mine), attack.score(others)
        powers += [measure_power(attack.name, *scores, errors=errors, confidence=confidence, rng=generator)]
        guesses += guess_members(*scores, generator)
    return Tracing(
        published.kind,
        tuple(powers),
        tuple(guesses),
        tuple(errors),
        None if published.dag is None else published.dag.complexity(published.schema.sizes),
        published.promise,
        inside,
        outside,
        known.number,
        compare_units(mine, others, published.schema.sizes),
        published.unit,
    )


def list_attacks(
    published: Published, reference: Units, *, pseudo_count: float = PSEUDO_COUNT
) -> tuple[Attack, ...]:
    """Every attack that the parts of a release allow, prepared with the reference."""
    attacks: list[Attack] = []
    sizes = published.schema.sizes
    if published.rows is not None:
        attacks += _attack_rows(published, reference, pseudo_count)
    elif published.dag is not None:
        known = Reference.fit(published.dag, sizes, reference.codes, pseudo_count)
        if published.cpts is not None:
            attacks.append(_ratio("likelihood ratio", known, known.tables.flatten(published.cpts)))
        if published.lower is not None and published.upper is not None:
            attacks += attack_intervals(known, published.lower, published.upper)
    if published.measurements:
        total = estimate_total(published.measurements)
        attacks += [
            Attack(name, partial(score, published.measurements, reference, total))
            for name, score in (("noise-aware", score_noisy), ("noise-aware, jointly", score_jointly))
        ]
    if not attacks:
        raise DataError(f"{published.name} has neither tables nor rows: there is nothing to attack")
    return tuple(attacks)


def attack_intervals(known: Reference, lower: Sequence[Table], upper: Sequence[Table]) -> list[Attack]:
    """The paper's attack on a credal network, and three that read its intervals for what they are."""
    low, high = known.tables.flatten(lower), known.tables.flatten(upper)
    found = recover_ratios(lower)
    return [
        _ratio("Definition 6", known, known.fit_within(low, high)),
        _ratio("recovery", known, known.tables.flatten(found.cpts)),
        _ratio("recovery, unseen out", known, known.tables.flatten(found.possible)),
        _ratio("centroid", known, centre(known.tables, low, high)),
    ]


def guess_members(members: Floats, strangers: Floats, rng: np.random.Generator) -> list[Guesses]:
    """How many of the highest scores belong to members, among members and as many strangers at most.

    Labels play no part in who is guessed, so the coins of `Guesses` stay fair; sizes are treated as coins'
    outcomes.
    """
    even = min(len(members), len(strangers))
    scores = np.concatenate(
        [rng.choice(members, even, replace=False), rng.choice(strangers, even, replace=False)]
    )
    order = np.argsort(-rank_scores(scores, rng))
    return [
        Guesses(int((order[:made] < even).sum()), made, 0.5, 2 * even)
        for made in sorted({max(1, round(share * even)) for share in GUESSED_SHARES})
    ]


def compare_populations(members: Codes, strangers: Codes, sizes: dict[str, int]) -> float:
    """The p-value of χ² over every attribute, times their number: small if members are another kind of people.

    Then an attack may only recognise the kind, and its power is no proof about the release.
    """
    inside, outside = count_rows(members), count_rows(strangers)
    worst = 1.0
    for name, size in sizes.items():
        counts = np.stack([np.bincount(found[name], minlength=size) for found in (members, strangers)])
        counts = _pool_rare(counts)
        expected = counts.sum(axis=0) * np.array([[inside], [outside]]) / (inside + outside)
        degrees = counts.shape[1] - 1
        if degrees:
            worst = min(worst, chi_squared_tail(float(((counts - expected) ** 2 / expected).sum()), degrees))
    return min(1.0, worst * len(sizes))


def compare_units(members: Units, strangers: Units, sizes: dict[str, int]) -> float:
    """The same for units: of each person one row, and beside it how many rows they have."""
    if members.owners is None or strangers.owners is None:
        return compare_populations(members.codes, strangers.codes, sizes)
    rng = np.random.default_rng(0)
    told = [{**found.pick_rows(rng), "": np.minimum(found.held, MANY_ROWS)} for found in (members, strangers)]
    return compare_populations(told[0], told[1], {**sizes, "": MANY_ROWS + 1})


def _pool_rare(counts: Any) -> Any:
    """Levels that expect fewer than 5 on the smaller side, together as one."""
    sizes = counts.sum(axis=1)
    rare = counts.sum(axis=0) * sizes.min() / sizes.sum() < 5.0
    pooled = counts[:, rare].sum(axis=1, keepdims=True)
    kept = counts[:, ~rare]
    return np.concatenate([kept, pooled], axis=1) if pooled.sum() else kept


def _ratio(name: str, known: Reference, values: Floats) -> Attack:
    return Attack(name, lambda units: units.add_up(known.score(values, known.tables.locate(units.codes))))


def _attack_rows(published: Published, reference: Units, pseudo_count: float) -> list[Attack]:
    assert published.rows is not None
    rows, others, sizes = published.rows, reference.codes, published.schema.sizes
    dag = published.dag or fit_tree(join_rows(rows, others), sizes)
    tables = FlatTables.arrange(dag, sizes)
    known = Reference.fit(dag, sizes, others, pseudo_count)
    refitted = tables.normalise(tables.count(tables.locate(rows)) + pseudo_count)

    def nearest(codes: Codes) -> Floats:
        return -measure_nearest(codes, rows, sizes).astype(np.float64)

    def nearer(codes: Codes) -> Floats:
        return nearest(codes) + measure_nearest(codes, others, sizes)

    return [
        _ratio("refitted network", known, refitted),
        Attack("nearest row", lambda units: units.find_best(nearest(units.codes))),
        Attack("nearer than reference", lambda units: units.find_best(nearer(units.codes))),
    ]
