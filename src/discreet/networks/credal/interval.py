"""What a credal network answers: an interval, or the levels that cannot be ruled out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from discreet.compute.bounds import Bracket


@dataclass(frozen=True, slots=True)
class Interval:
    """A number that is known to lie between two ends, and the values that were seen to be attained."""

    lower: float
    upper: float
    attained: tuple[float, float] | None = None
    """The least and the greatest value that some network of the set gives; the exact ends lie beyond them."""

    @classmethod
    def of(cls, found: Bracket) -> Interval:
        """The interval of the first function of a bracket."""
        attained = None
        if found.inner_lower is not None and found.inner_upper is not None:
            attained = float(found.inner_lower[0]), float(found.inner_upper[0])
        return cls(float(found.lower[0]), float(found.upper[0]), attained)

    @property
    def width(self) -> float:
        """The distance of the ends."""
        return self.upper - self.lower

    @property
    def gap(self) -> float:
        """How much narrower, at the most, the exact interval can be; infinite if no attained values are known."""
        if self.attained is None:
            return float("inf")
        return self.attained[0] - self.lower + self.upper - self.attained[1]

    def __contains__(self, value: float) -> bool:
        return self.lower <= value <= self.upper

    def __iter__(self) -> Iterator[float]:
        return iter((self.lower, self.upper))

    def __str__(self) -> str:
        return f"[{self.lower:.4f}, {self.upper:.4f}]"


@dataclass(frozen=True, slots=True)
class Decision:
    """The levels of an attribute that can be its most probable one."""

    target: str
    given: str
    levels: tuple[str, ...]
    """No other level is certainly more probable than one of these; the most probable one is among them."""
    seen: tuple[str, ...]
    """Those that are the most probable one in some network of the set."""

    @property
    def certain(self) -> bool:
        """Whether one level only is left."""
        return len(self.levels) == 1

    def __str__(self) -> str:
        given = f" given {self.given}" if self.given else ""
        if self.certain:
            return f"the most probable {self.target}{given} is certainly {self.levels[0]}"
        return f"the most probable {self.target}{given} is certainly one of {{{', '.join(self.levels)}}}"
