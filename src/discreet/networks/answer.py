"""What is answered: a distribution with its intervals, the probability of an event, the most probable levels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape
from itertools import product
from typing import Any

import numpy as np

from discreet.values.errors import QueryError
from discreet.values.table import Array, Table
from discreet.values.text import list_some, show

SHOWN = 12
"""How many levels a printed answer shows if there are too many: the most probable ones, in their order."""
WHOLE = 40
"""The distribution of one attribute with up to so many levels is printed whole."""


@dataclass(frozen=True, slots=True, eq=False)
class Answer(Mapping[Any, float]):
    """P(targets | given), read like a dictionary: from a level, or a tuple of levels, to its probability."""

    table: Table
    levels: tuple[tuple[str, ...], ...]
    given: str
    lower: Array | None = None
    """Where the answer has intervals: their lower ends, shaped like the table."""
    upper: Array | None = None
    meaning: str = ""
    """What the intervals promise, or why there are none, in a sentence."""

    def __getitem__(self, level: Any) -> float:
        return float(self.table.values[self._encode(level)])

    def _encode(self, level: Any) -> tuple[int, ...]:
        asked = level if isinstance(level, tuple) else (level,)
        if len(asked) != len(self.levels):
            raise QueryError(
                f"{show(level)} names {len(asked)} of {len(self.levels)} levels; "
                f"the answer is over {list_some(self.table.axes)}"
            )
        codes = []
        for name, wanted, allowed in zip(self.table.axes, asked, self.levels, strict=True):
            if wanted not in allowed:
                raise QueryError(
                    f"{show(wanted)} is not a level of {show(name)}; allowed are {list_some(allowed)}"
                )
            codes.append(allowed.index(wanted))
        return tuple(codes)

    def __contains__(self, level: object) -> bool:
        try:
            self[level]
        except QueryError:
            return False
        return True

    def get(self, level: Any, default: Any = None) -> Any:
        """The probability of a level, or `default` if there is no such level."""
        try:
            return self[level]
        except QueryError:
            return default

    def __iter__(self) -> Iterator[Any]:
        return iter(self.levels[0]) if len(self.levels) == 1 else product(*self.levels)

    def __len__(self) -> int:
        return self.table.cells

    def interval(self, level: Any) -> tuple[float, float]:
        """The lower and the upper end at a level, or a tuple of levels; both are the probability if there are none."""
        codes = self._encode(level)
        if self.lower is None or self.upper is None:
            return (float(self.table.values[codes]),) * 2
        return float(self.lower[codes]), float(self.upper[codes])

    @property
    def probabilities(self) -> np.typing.NDArray[np.float64]:
        """The probabilities as an array with one axis for each target."""
        return np.asarray(self.table.values)

    @property
    def best(self) -> Any:
        """The most probable level, or tuple of levels."""
        codes = np.unravel_index(int(self.table.values.argmax()), self.table.values.shape)
        found = tuple(allowed[code] for allowed, code in zip(self.levels, codes, strict=True))
        return found[0] if len(found) == 1 else found

    @property
    def title(self) -> str:
        """The question, as one writes it on paper."""
        targets = ", ".join(self.table.axes)
        return f"P({targets} | {self.given})" if self.given else f"P({targets})"

    def __repr__(self) -> str:
        shown = self._shown()
        width = max(len(label) for label, *_ in shown)
        lines = [f"  {label:<{width}}  {probability:.4f}{ends}" for label, probability, ends in shown]
        hidden = len(self) - len(shown)
        return "\n".join(
            [self.title, *lines]
            + ([f"  … and {hidden} less probable"] if hidden else [])
            + ([f"  {self.meaning}"] if self.meaning else [])
        )

    def _repr_html_(self) -> str:
        lines = "".join(
            f"<tr><td style='text-align:left'>{escape(label)}</td><td>{probability:.4f}{ends}</td><td>"
            f"<div style='background:#4878a8;height:.7em;width:{100 * probability:.1f}px'></div></td></tr>"
            for label, probability, ends in self._shown()
        )
        foot = f"<tr><td colspan='3' style='text-align:left'>{escape(self.meaning)}</td></tr>"
        return f"<table><caption>{escape(self.title)}</caption>{lines}{foot if self.meaning else ''}</table>"

    def _shown(self) -> list[tuple[str, float, str]]:
        """The label, the probability and, if there is one, the interval of each level that is printed."""
        levels = list(self)
        if len(levels) > (WHOLE if len(self.levels) == 1 else SHOWN):
            kept = set(sorted(levels, key=lambda level: -self[level])[:SHOWN])
            levels = [level for level in levels if level in kept]
        return [
            (level if isinstance(level, str) else ", ".join(level), self[level], self._show_interval(level))
            for level in levels
        ]

    def _show_interval(self, level: Any) -> str:
        if self.lower is None:
            return ""
        low, high = self.interval(level)
        return f"  [{low:.4f}, {high:.4f}]"


@dataclass(frozen=True, slots=True)
class EventProbability:
    """The probability of an event, with its interval if it has one."""

    probability: float
    lower: float | None = None
    upper: float | None = None
    meaning: str = ""
    """What the interval promises, or why there is none."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A number that was asked for, such as a difference, a mean or a count, with its interval if it has one."""

    title: str
    value: float
    lower: float | None = None
    upper: float | None = None
    meaning: str = ""
    """What the interval promises, or why there is none."""

    def __str__(self) -> str:
        ends = "" if self.lower is None else f"  [{self.lower:.6g}, {self.upper:.6g}]"
        meaning = f"\n  {self.meaning}" if self.meaning else ""
        return f"{self.title} = {self.value:.6g}{ends}{meaning}"


@dataclass(frozen=True, slots=True)
class Explanation:
    """The most probable levels of some attributes, and how probable they are given the evidence."""

    levels: dict[str, str]
    probability: float
    log_joint: float
    """log P(levels, evidence), which stays finite where the probabilities underflow."""

    def __getitem__(self, name: str) -> str:
        if name not in self.levels:
            raise QueryError(f"{show(name)} is not explained; explained are {list_some(self.levels)}")
        return self.levels[name]


@dataclass(frozen=True, slots=True)
class Interval:
    """A number that is known to lie between two ends, and the values that were seen to be attained."""

    lower: float
    upper: float
    attained: tuple[float, float] | None = None
    """The least and the greatest value that some network of the set gives; the exact ends lie beyond them."""

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
    meaning: str = ""
    """How sure that is, where it rests on intervals of a release."""

    def __str__(self) -> str:
        given = f" given {self.given}" if self.given else ""
        found = self.levels[0] if len(self.levels) == 1 else f"one of {{{', '.join(self.levels)}}}"
        meaning = f"\n  {self.meaning}" if self.meaning else ""
        return f"the most probable {self.target}{given} is certainly {found}{meaning}"
