"""The audit of one release: every attack, the promise beside it, and a verdict in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from discreet.judge.attacks.ceiling import limit_power
from discreet.judge.attacks.cells import Codes
from discreet.judge.attacks.power import ERRORS, Point
from discreet.judge.attacks.subject import Subject
from discreet.judge.attacks.trace import Tracing, trace
from discreet.judge.claims import check_claims
from discreet.judge.residuals import Finding, check_noise, combine
from discreet.values.budget import Infinite
from discreet.values.errors import DataError

SHIFTED = 1e-3
"""Below this p-value members and strangers are taken for different populations."""

NOTHING = 0.05
"""An attack that finds this share of members more than it accuses strangers gains something worth telling."""


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
        if self.tracing.promise is not None and not isinstance(self.tracing.promise, Infinite):
            return Outcome.KEPT
        return Outcome.EXPOSED if self.tracing.best.advantage_band[0] > NOTHING else Outcome.UNPROTECTED

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

    def explain(self) -> list[str]:
        """The verdict in words, a sentence or two to a line."""
        tracing, best = self.tracing, self.tracing.best
        lines = [_OPENINGS[self.outcome].format(name=self.name, promise=tracing.promise)]
        lines += [f"It does not add up: {problem}." for problem in self.problems]
        if self.false_noise is not None:
            lines.append(
                f"Its noise is not what it says: {_show(self.false_noise.doubt)} for the noise {self.false_noise.what}."
            )
        if self.refuted:
            lines.append(
                f"Its members are guessed too well for {tracing.promise} "
                f"({_show(tracing.doubt(1.0 - self.confidence))}): "
                f"the guesses prove ε ≥ {tracing.prove(self.confidence):.2f}."
            )
        point = _choose_point(best.points)
        lines.append(
            f"The best of {len(tracing.powers)} attacks ({best.attack}) finds {_percent(point.power)} of the members "
            f"({_percent(point.low)} to {_percent(point.high)}) while it accuses {_percent(point.error)} of strangers; "
            f"a coin would find {_percent(point.error)}."
        )
        if tracing.promise is not None and not isinstance(tracing.promise, Infinite):
            limit = float(limit_power(tracing.promise, [point.error])[0])
            lines.append(
                f"With {tracing.promise} kept, no attack whatever finds more than {_percent(limit)} at that error."
            )
        if tracing.shift < SHIFTED:
            lines.append(
                f"Members and reference differ as populations ({_show(tracing.shift)}): an attack may recognise "
                "the kind of people and not the members, so these powers prove nothing about the promise."
            )
        if self.outcome in (Outcome.KEPT, Outcome.UNPROTECTED):
            lines.append(_limits(self))
        return lines

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
            else {"worst": worst.what, "p": worst.doubt, "tests": len(self.noise)},
            "proved_epsilon": self.tracing.prove(self.confidence),
            "tracing": self.tracing.to_json(),
        }


def audit(
    subject: Subject,
    members: Codes,
    reference: Codes,
    *,
    complete: bool = False,
    errors: Sequence[float] = ERRORS,
    confidence: float = 0.95,
    rng: int = 0,
) -> Audit:
    """Attack a release with members and reference rows given as codes, and compare with its promise.

    `complete` says that the members are all the rows behind the release; then its noise is checked as well.
    """
    if complete and not subject.measurements:
        raise DataError(f"{subject.name} holds no noisy tables, so there is no noise to check")
    return Audit(
        subject.name,
        trace(subject, members, reference, errors=errors, confidence=confidence, rng=rng),
        check_claims(subject),
        check_noise(subject.measurements, members) if complete else (),
        confidence,
    )


_OPENINGS = {
    Outcome.BROKEN: "BROKEN: {name} does not keep its promise ({promise}).",
    Outcome.KEPT: "KEPT, as far as these attacks can tell: nothing contradicts the promise of {name} ({promise}).",
    Outcome.EXPOSED: "EXPOSED: {name} promises no privacy, and it gives its members away.",
    Outcome.UNPROTECTED: "UNPROTECTED: {name} promises no privacy; these attacks gain little, others may gain more.",
}


def _limits(found: Audit) -> str:
    tracing = found.tracing
    _, most = max(tracing.guesses, key=lambda pair: pair[1].made)
    share = (1.0 - found.confidence) / len(tracing.guesses)
    return (
        f"Passing is not a proof: {tracing.members:,} members and {tracing.strangers:,} strangers could have "
        f"proved at most ε ≥ {most.resolve(1.0 - share):.2f}, and attacks not known today may do better."
    )


def _choose_point(points: Sequence[Point]) -> Point:
    """The smallest error whose threshold rests on at least 10 strangers, else the largest."""
    solid = [point for point in points if point.false_hits >= 10]
    return min(solid, key=lambda point: point.error) if solid else max(points, key=lambda point: point.error)


def _percent(share: float) -> str:
    return f"{100.0 * share:.3g} %"


def _show(doubt: float) -> str:
    return f"p = {doubt:.1g}" if doubt >= 1e-12 else "p < 1e-12"
