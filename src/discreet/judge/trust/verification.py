"""What a verification found: check by check, and what it is worth in one line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Outcome = Literal["adds up", "does not add up", "not all checked"]

ALONE = (
    "it adds up, but nobody vouches for it: without the ledger (--ledger) or the custodian's key (--key), anybody "
    "could have written it"
)
"""What the answer is worth if there was nothing to hold the document against but itself."""
OTHERS = "other ledgers"
OPTIONAL = frozenset({"ledger", OTHERS})
"""What a reader may leave out without leaving the release unchecked: only a custodian has the ledger."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at: what it is, whether it holds (None: it could not be looked at), and details."""

    name: str
    holds: bool | None
    words: str


@dataclass(frozen=True, slots=True)
class Verification:
    """What was checked about a release."""

    checks: tuple[Check, ...]

    @property
    def problems(self) -> tuple[str, ...]:
        """What does not add up, in words."""
        return tuple(f"{check.name}: {check.words}" for check in self.checks if check.holds is False)

    @property
    def unchecked(self) -> tuple[str, ...]:
        """The names of the checks that could not be made, the ledger's among them if none was given."""
        return tuple(check.name for check in self.checks if check.holds is None)

    @property
    def outcome(self) -> Outcome:
        """A release adds up only if all that must be checked was: what nobody looked at proves nothing."""
        if self.problems:
            return "does not add up"
        return "not all checked" if set(self.unchecked) - OPTIONAL else "adds up"

    @property
    def sound(self) -> bool:
        """Whether the release adds up."""
        return self.outcome == "adds up"

    def __str__(self) -> str:
        marks = {True: "ok", False: "PROBLEM", None: "not checked"}
        width = max(len(check.name) for check in self.checks)
        lines = [f"{check.name:<{width}}  {marks[check.holds]}: {check.words}" for check in self.checks]
        return "\n".join([*lines, self.conclude()])

    def conclude(self) -> str:
        """The outcome in one line."""
        if self.problems:
            count = len(self.problems)
            return f"{count} things do not add up" if count > 1 else "1 thing does not add up"
        if not self.sound:
            missing = [name for name in self.unchecked if name not in OPTIONAL]
            return f"nothing is wrong in what was checked, but not checked: {', '.join(missing)}"
        if not self.unchecked:
            return "it adds up"
        signed = any(check.name == "signature" for check in self.checks)
        partly = next((check.words for check in self.checks if check.name == OTHERS), "")
        if partly:
            return f"it adds up{' and is signed' if signed else ''}, but {partly}"
        return "it adds up and is signed; it was not held against a ledger" if signed else ALONE

    def to_json(self) -> dict[str, Any]:
        """The outcome as plain values."""
        checks = [{"check": found.name, "holds": found.holds, "words": found.words} for found in self.checks]
        return {
            "sound": self.sound,
            "outcome": self.outcome,
            "not checked": list(self.unchecked),
            "checks": checks,
        }
