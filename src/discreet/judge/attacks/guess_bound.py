"""What a number of right guesses proves about ε, from one run only [SNJ23, Thm. 5.2].

Let each of m candidates be in or out by a coin of its own. Given the output of an ε-DP mechanism and the
coins of all others, the odds of one candidate's coin are at most e^ε times what they were. So of r guesses,
made from the output in any way, the number of right ones is stochastically below a binomial, however the
candidates depend on each other through the output.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from discreet.judge.tails import tabulate_binomial
from discreet.values.budget import ZCDP, ApproxDP, Budget, Infinite, PureDP, imply_approx
from discreet.values.errors import MechanismError

LARGEST_EPSILON = 50.0


@dataclass(frozen=True, slots=True)
class Guesses:
    """Guesses that were made, and how many are right; δ-free unless `pool` counts all the candidates."""

    right: int
    made: int
    prior: float = 0.5
    """The chance that such a guess is right without any output: ½ for a fair coin."""
    pool: int = 0
    """The number of candidates m, which matters only if δ > 0; then the coins must be fair."""

    def __post_init__(self) -> None:
        if not (0 <= self.right <= self.made and 0.0 < self.prior < 1.0):
            raise MechanismError(
                f"{self.right} of {self.made} guesses at a prior of {self.prior} make no sense"
            )

    def doubt(self, epsilon: float, delta: float = 0.0) -> float:
        """The chance of so many right guesses or more if the mechanism were (ε, δ)-DP: a p-value.

        P(W ≥ v) for W ~ Binomial(r, q), q = πe^ε/(πe^ε + 1 − π); for δ > 0 plus 2mδ·max_i P(v > W ≥ v − i)/i.
        """
        if not self.made:
            return 1.0
        q = 1.0 / (1.0 + math.exp(-epsilon) * (1.0 - self.prior) / self.prior)
        chances = tabulate_binomial(self.made, q)
        p = float(chances[self.right :].sum())
        if delta > 0.0 and self.right:
            if self.prior != 0.5 or self.pool < self.made:
                raise MechanismError(
                    "with δ > 0 the guesses are about fair coins, and the pool says how many"
                )
            below = np.cumsum(chances[self.right - 1 :: -1]) / np.arange(1, self.right + 1)
            p += 2.0 * self.pool * delta * float(below.max())
        return min(p, 1.0)

    def prove(self, confidence: float, delta: float = 0.0) -> float:
        """The ε (at δ) that the mechanism really spends at least, with this confidence; 0 if nothing is proved."""
        return _solve(lambda epsilon: self.doubt(epsilon, delta) <= 1.0 - confidence)

    def refutes(self, budget: Budget, doubt: float) -> bool:
        """Whether the promise of a budget is refuted at this error probability.

        ρ is read as (ε(δ), δ) at the δ that costs a tenth of the doubt.
        """
        return self.doubt_budget(budget, doubt) <= doubt

    def doubt_budget(self, budget: Budget, scale: float) -> float:
        """The p-value against a budget of any kind; `scale` is the size of doubt that matters, for the choice of δ."""
        if isinstance(budget, Infinite):
            return 1.0
        if isinstance(budget, PureDP):
            return self.doubt(float(budget.epsilon))
        if isinstance(budget, ZCDP):
            budget = imply_approx(budget, f"{scale / (20.0 * max(self.pool, 1)):.3g}")
        assert isinstance(budget, ApproxDP)
        return self.doubt(float(budget.epsilon), float(budget.delta))

    def detects(self, claim: float, truth: float, doubt: float) -> float:
        """The chance that so many guesses refute a claim if the truth is another ε and each makes full use of it."""
        needed = next(
            (right for right in range(self.made + 1)
             if Guesses(right, self.made, self.prior).doubt(claim) <= doubt),
            None,
        )  # fmt: skip
        if needed is None:
            return 0.0
        return Guesses(needed, self.made, self.prior).doubt(truth)

    def resolve(self, confidence: float) -> float:
        """The largest ε that so many guesses could prove, if every one of them were right."""
        return Guesses(self.made, self.made, self.prior).prove(confidence)


def _solve(refuted: Callable[[float], bool]) -> float:
    """The largest ε that is refuted, 0 if none is."""
    if not refuted(0.0):
        return 0.0
    low, high = 0.0, LARGEST_EPSILON
    if refuted(high):
        return high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low
