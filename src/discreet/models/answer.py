"""The answer to a query: a distribution over the levels of one or several attributes, with their labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape
from itertools import product
from typing import Any

import numpy as np

from discreet.vocabulary.errors import QueryError
from discreet.vocabulary.table import Table
from discreet.vocabulary.wording import list_some, show

SHOWN = 12
"""How many levels a printed answer shows; the most probable ones if there are more."""


@dataclass(frozen=True, slots=True, eq=False)
class Answer(Mapping[Any, float]):
    """P(targets | given), read like a dictionary: from a level, or a tuple of levels, to its probability."""

    table: Table
    levels: tuple[tuple[str, ...], ...]
    given: str

    def __getitem__(self, level: Any) -> float:
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
        return float(self.table.values[tuple(codes)])

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
        width = max(len(label) for label, _ in shown)
        lines = [f"  {label:<{width}}  {probability:.4f}" for label, probability in shown]
        hidden = len(self) - len(shown)
        return "\n".join([self.title, *lines] + ([f"  … and {hidden} less probable"] if hidden else []))

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td style='text-align:left'>{escape(label)}</td><td>{probability:.4f}</td><td>"
            f"<div style='background:#4878a8;height:.7em;width:{100 * probability:.1f}px'></div></td></tr>"
            for label, probability in self._shown()
        )
        return f"<table><caption>{escape(self.title)}</caption>{rows}</table>"

    def _shown(self) -> list[tuple[str, float]]:
        pairs = [(level if isinstance(level, str) else ", ".join(level), p) for level, p in self.items()]
        if len(pairs) > SHOWN:
            pairs = sorted(pairs, key=lambda pair: -pair[1])[:SHOWN]
        return pairs


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
