"""The audit of one release: every attack, the promise beside it, and a verdict in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from discreet.judge.attacks.ceiling import limit_power
from discreet.judge.attacks.codes import Codes
from discreet.judge.attacks.overlap import refuse_overlap
from discreet.judge.attacks.power import ERRORS, PowerAtError
from discreet.judge.attacks.published import Published, is_finite
from discreet.judge.attacks.tracing import Tracing, trace
from discreet.judge.attacks.units import Units
from discreet.judge.costs import check_costs
from discreet.judge.noise_fit import Finding, check_noise, combine
from discreet.values.errors import DataError
from discreet.values.unit import Unit

SHIFTED = 1e-3
"""Below this p-value members and strangers are taken for different populations."""

NOTHING = 0.05
"""An attack that finds this share of members more than it accuses strangers gains something worth telling."""

LEAST_CONFIDENCE = 0.5


class Outcome(StrEnum):
    """What an audit concludes."""

    BROKEN = "broken"
    """The promise cannot be true, or is refuted with the stated confidence."""
    KEPT = "kept"
    """Nothing contradicts the promise; that is not a proof of it."""
    EXPOSED = "exposed"
    """No privacy is promised, and an attack tells members from strangers."""
    UNPROTECTED = "unprotected"
    """No privacy is promised; these attacks gain little."""


_OPENINGS = {
    Outcome.BROKEN: "BROKEN: {name} does not keep its promise ({promise}).",
    Outcome.KEPT: "KEPT, as far as these attacks can tell: nothing contradicts the promise of {name} ({promise}).",
    Outcome.EXPOSED: "EXPOSED: {name} promises no privacy, and attacks can tell who is in the data.",
    Outcome.UNPROTECTED: "UNPROTECTED: {name} promises no privacy. These attacks find little, others may find more.",
}


@dataclass(frozen=True, slots=True, eq=False)
class Audit:
    """Everything that an audit of one release found."""

    name: str
    tracing: Tracing
    problems: tuple[str, ...]
    """What does not add up in the release itself."""
    noise: tuple[Finding, ...]
    """Tests of the noise against the true rows, if those were given."""
    confidence: float

    @property
    def outcome(self) -> Outcome:
        """The conclusion; a promise that is kept is called broken with probability at most 1 − confidence."""
        if self.problems or self.false_noise is not None or self.refuted:
            return Outcome.BROKEN
        if is_finite(self.tracing.promise):
            return Outcome.KEPT
        return Outcome.EXPOSED if self.tracing.best.advantage_band[0] > NOTHING else Outcome.UNPROTECTED

    @property
    def failed(self) -> bool:
        """Whether the promise is broken or the members are exposed."""
        return self.outcome in (Outcome.BROKEN, Outcome.EXPOSED)

    @property
    def false_noise(self) -> Finding | None:
        """The test of the noise that fails, if one does; half of the allowed doubt is spent here."""
        worst = combine(self.noise)
        return worst if worst is not None and worst.doubt <= (1.0 - self.confidence) / 2.0 else None

    @property
    def refuted(self) -> bool:
        """Whether right guesses refute the promise; if noise is tested too, by half of the allowed doubt."""
        if self.tracing.shift < SHIFTED:
            return False  # the attacks may only recognise another kind of people
        allowed = (1.0 - self.confidence) / (2.0 if self.noise else 1.0)
        return self.tracing.doubt(allowed) <= allowed

    def __str__(self) -> str:
        return "\n".join(self.explain())

    def explain(self) -> list[str]:
        """The verdict in words, a sentence or two to a line."""
        tracing = self.tracing
        lines = [_OPENINGS[self.outcome].format(name=self.name, promise=tracing.promise)]
        lines += [f"Its numbers do not add up: {problem}." for problem in self.problems]
        if self.false_noise is not None:
            noise = self.false_noise
            lines.append(
                f"Its noise is not what it says: {noise.what} is not {noise.law} ({_show(noise.doubt)})."
            )
        if self.refuted:
            lines.append(
                f"Its members are guessed more often than {tracing.promise} allows "
                f"({_show(tracing.doubt(1.0 - self.confidence))}): "
                f"the guesses prove ε ≥ {tracing.prove(self.confidence):.2f}."
            )
        lines += self._explain_power()
        if tracing.shift < SHIFTED:
            lines.append(
                f"Members and reference come from different populations ({_show(tracing.shift)}). An attack may "
                "recognise the kind of people and not the members, so these numbers prove nothing about the promise."
            )
        if not self.failed:
            lines.append(self._explain_limits())
        return lines

    def tabulate(self) -> list[list[str]]:
        """The power of every attack at every error, as lines of cells, the heads first."""
        tracing = self.tracing
        lines = [["attack", *(f"α = {error:g}" for error in tracing.errors), "AUC", "advantage"]]
        for power in tracing.powers:
            cells = [f"{point.power:.3f} [{point.low:.3f}, {point.high:.3f}]" for point in power.points]
            lines.append([power.attack, *cells, f"{power.auc:.3f}", f"{power.advantage:.3f}"])
        if tracing.theory is not None:
            lines.append(["expected of a plain network", *_write_shares(tracing.theory), "", ""])
        if tracing.ceiling is not None:
            lines.append([f"ceiling, {tracing.promise}", *_write_shares(tracing.ceiling), "", ""])
        accused = [f"{point.false_hits}" for point in tracing.powers[0].points]
        return [*lines, ["strangers accused", *accused, "", ""]]

    def describe_table(self) -> str:
        """What the numbers of the table are."""
        tracing = self.tracing
        width = max(power.auc_band[1] - power.auc for power in tracing.powers)
        return (
            f"Shares of {tracing.members:,} members found when a share α of {tracing.strangers:,} strangers is "
            f"accused, with {100 * self.confidence:g} % bounds (Clopper-Pearson). AUC and advantage are right to about "
            f"±{width:.2f} (Dvoretzky-Kiefer-Wolfowitz). The bounds treat people as independent draws."
        )

    def to_json(self) -> dict[str, Any]:
        """The whole audit as plain values."""
        worst = combine(self.noise)
        return {
            "release": self.name,
            "outcome": self.outcome.value,
            "verdict": self.explain(),
            "confidence": self.confidence,
            "problems": list(self.problems),
            "noise": None
            if worst is None
            else {"worst": f"{worst.what} as {worst.law}", "p": worst.doubt, "tests": len(self.noise)},
            "proved_epsilon": self.tracing.prove(self.confidence),
            "tracing": self.tracing.to_json(),
        }

    def _explain_power(self) -> list[str]:
        tracing = self.tracing
        error = _choose_point(tracing.best.points).error
        at_error = [
            (found, point) for found in tracing.powers for point in found.points if point.error == error
        ]
        best, point = max(at_error, key=lambda pair: pair[1].power)
        accused = _percent(point.error)
        which = f"best of {len(tracing.powers)} attacks" if len(tracing.powers) > 1 else "attack"
        lines = [
            f"The {which} ({best.attack}) finds {_percent(point.power)} of the members "
            f"({_percent(point.low)} to {_percent(point.high)}) while it accuses {accused} of the strangers; "
            f"guessing would find {accused}."
        ]
        if tracing.unit is not None and (tracing.unit.person or tracing.unit.weight):
            lines.append(f"{_name_members(tracing.unit)}, as in the promise.")
        if is_finite(tracing.promise):
            limit = float(limit_power(tracing.promise, [point.error])[0])
            lines.append(
                f"If {tracing.promise} is kept, no attack of any kind can find more than {_percent(limit)} of them."
            )
        return lines

    def _explain_limits(self) -> str:
        tracing = self.tracing
        most = max(tracing.guesses, key=lambda guesses: guesses.made)
        share = (1.0 - self.confidence) / len(tracing.guesses)
        return (
            f"Passing is not a proof: with {tracing.members:,} members and {tracing.strangers:,} strangers the guesses "
            f"could have proved ε ≥ {most.resolve(1.0 - share):.2f} at most, and better attacks may exist."
        )


def audit_codes(
    published: Published,
    members: Units | Codes,
    reference: Units | Codes,
    *,
    complete: bool = False,
    errors: Sequence[float] = ERRORS,
    confidence: float = 0.95,
    rng: int = 0,
) -> Audit:
    """Attack what was published with rows behind it and rows of other people, and compare with the promise."""
    if not LEAST_CONFIDENCE <= confidence < 1.0:
        raise DataError(
            f"the confidence of an audit lies between {LEAST_CONFIDENCE} and 1, not at {confidence:g}"
        )
    if complete and not published.measurements:
        raise DataError(f"{published.name} holds no noisy tables, so there is no noise to check")
    inside, outside = (
        replace(units, codes=published.derive(units.codes))
        for units in (Units.read(members), Units.read(reference))
    )
    refuse_overlap(inside, outside)
    return Audit(
        published.name,
        trace(published, inside, outside, errors=errors, confidence=confidence, rng=rng),
        check_costs(published),
        check_noise(published.measurements, inside) if complete else (),
        confidence,
    )


def _name_members(unit: Unit) -> str:
    """What a member is, where it is not simply a row."""
    if unit.person:
        rows = "row counts" if unit.at_most == 1 else f"{unit.at_most} rows count"
        averaged = ", together as one" if unit.average else ""
        return f"A member is a person, all rows with one {unit.person}, of which at most {rows}{averaged}"
    return f"A member is a row that counts as often as its {unit.weight} says, at most {unit.at_most} times"


def _choose_point(points: Sequence[PowerAtError]) -> PowerAtError:
    """The smallest error whose threshold rests on at least 10 strangers, else the largest."""
    solid = [point for point in points if point.false_hits >= 10]
    return min(solid, key=lambda point: point.error) if solid else max(points, key=lambda point: point.error)


def _write_shares(shares: Sequence[float]) -> list[str]:
    return [f"{share:.3f}" for share in shares]


def _percent(share: float) -> str:
    return f"{100.0 * share:.3g} %"


def _show(doubt: float) -> str:
    return f"p = {doubt:.1g}" if doubt >= 1e-12 else "p < 1e-12"
