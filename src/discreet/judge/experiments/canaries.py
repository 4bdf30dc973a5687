"""The one-run audit: put marked rows in or leave them out by coin tosses, learn once, and guess the coins [SNJ23].

A release of any size is made only once, yet every canary is an experiment of its own. What the right guesses
prove holds with the stated confidence for any learner; that little is proved is no proof of privacy, because
better guesses may exist.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.compute.inference.propagation import log_sum
from discreet.judge.attacks.codes import Codes, Floats, count_rows, flatten_codes, join_rows, take_rows
from discreet.judge.attacks.guess_bound import Guesses
from discreet.judge.attacks.power import rank_scores
from discreet.judge.attacks.published import Published
from discreet.judge.attacks.reference import Reference
from discreet.judge.tails import tabulate_binomial
from discreet.values.budget import Budget
from discreet.values.errors import DataError
from discreet.values.measurement import Measurement

Learn = Callable[[dict[str, npt.NDArray[Any]]], Published]
"""From rows as codes to a release, through the whole path that is to be audited."""

GUESSED_SHARES = (0.05, 0.1, 0.2, 0.4)
"""Shares of the canaries that are guessed, half of them as in and half as out; fixed before any look."""

LEAST_CANARIES = 20


@dataclass(frozen=True, slots=True)
class OneRun:
    """What one run of a learner with canaries proves."""

    guesses: tuple[Guesses, ...]
    confidence: float
    canaries: int
    delta: float

    @property
    def _doubt(self) -> float:
        return (1.0 - self.confidence) / len(self.guesses)

    @property
    def epsilon(self) -> float:
        """The ε (at δ) that the learner really spends at least, with the stated confidence."""
        return max(found.prove(1.0 - self._doubt, self.delta) for found in self.guesses)

    @property
    def resolution(self) -> float:
        """The largest ε that this audit could have proved, had every guess been right."""
        return max(found.resolve(1.0 - self._doubt) for found in self.guesses)

    def refutes(self, budget: Budget) -> bool:
        """Whether a promise is refuted; one that is kept is refuted with probability at most 1 − confidence."""
        return any(found.refutes(budget, self._doubt) for found in self.guesses)

    def detects(self, claim: float, truth: float) -> float:
        """At best, the chance that a learner which claims one ε and spends another is caught by this many canaries."""
        return max(found.detects(claim, truth, self._doubt) for found in self.guesses)

    def __str__(self) -> str:
        best = max(self.guesses, key=lambda found: found.prove(1.0 - self._doubt))
        return (
            f"ε ≥ {self.epsilon:.2f} with confidence {self.confidence:g}: {best.right} of {best.made} guesses about "
            f"{self.canaries} canaries are right; no outcome could have proved more than ε ≥ {self.resolution:.2f}, "
            "and passing is not a proof of privacy"
        )


def audit_once(
    learn: Learn,
    canaries: Codes,
    *,
    background: Codes | None = None,
    confidence: float = 0.95,
    delta: float = 0.0,
    rng: int | np.random.Generator,
) -> OneRun:
    """Toss a coin for each canary, learn from those that are in (and the background), and guess from the release."""
    generator = np.random.default_rng(rng)
    number = count_rows(canaries)
    if number < LEAST_CANARIES:
        raise DataError(f"{number} canaries tell nothing; at least {LEAST_CANARIES} are needed")
    coins = generator.random(number) < 0.5
    inside = take_rows(canaries, coins)
    release = learn(inside if background is None else join_rows(background, inside))
    scores = score_canaries(release, canaries, background)
    order = np.argsort(rank_scores(scores, generator))
    found = []
    for share in GUESSED_SHARES:
        half = max(1, round(share * number / 2))
        right = int(coins[order[-half:]].sum() + (~coins[order[:half]]).sum())
        found.append(Guesses(right, 2 * half, 0.5, number))
    return OneRun(tuple(found), confidence, number, delta)


def spread_canaries(
    sizes: Mapping[str, int], families: Sequence[Sequence[str]]
) -> dict[str, npt.NDArray[Any]]:
    """As many rows as possible such that no two share a cell of any family's table: row i has code i everywhere.

    In a cell of its own a canary is told by its noise alone. For attributes of few levels there are few such
    rows.
    """
    number = min(max(sizes[name] for name in family) for family in families)
    rows = np.arange(number)
    return {name: np.minimum(rows, size - 1).astype(np.uint16) for name, size in sizes.items()}


def score_canaries(release: Published, canaries: Codes, background: Codes | None) -> Floats:
    """The log-likelihood ratio of every canary, from noisy tables if there are any, else from the network's.

    The auditor knows the background and all canaries, only not the coins: the others in a canary's cell are
    the background's plus a binomial with p = ½ of the other canaries there.
    """
    if release.measurements:
        score = np.zeros(count_rows(canaries))
        for measurement in release.measurements:
            # Of a secret sample a canary is told too seldom to be worth the formula.
            if measurement.rate == 1:
                score += _score_table(measurement, canaries, background)
        return score
    if release.dag is None or release.cpts is None:
        raise DataError(f"{release.name} has no tables from which a canary could be told")
    others = canaries if background is None else join_rows(background, canaries)
    known = Reference.fit(release.dag, release.schema.sizes, others)
    return known.score_tables(release.cpts, known.tables.locate(canaries))


def _score_table(measurement: Measurement, canaries: Codes, background: Codes | None) -> Floats:
    shape = measurement.noisy.values.shape
    places = flatten_codes(canaries, measurement.axes, shape)
    held = np.bincount(places, minlength=measurement.cells)
    known = np.zeros_like(held)
    if background is not None:
        known = np.bincount(flatten_codes(background, measurement.axes, shape), minlength=measurement.cells)
    above = measurement.noisy.values.ravel() - known
    weights = np.zeros(measurement.cells)
    for number in np.unique(held[held > 0]):
        cells = np.flatnonzero(held == number)
        chances = tabulate_binomial(int(number) - 1, 0.5)
        taken = np.flatnonzero(chances > 1e-15)
        logs = [_log_mix(measurement, above[cells, None] - mine - taken, chances[taken]) for mine in (1, 0)]
        weights[cells] = _subtract(logs[0], logs[1])
    return weights[places]


def _log_mix(measurement: Measurement, noise: npt.NDArray[np.int64], chances: Floats) -> Floats:
    logs = measurement.law.log_pmf(noise) + np.log(chances)
    return log_sum(logs, (1,))[:, 0]


def _subtract(first: Floats, second: Floats) -> Floats:
    """A difference of log-likelihoods; where an exact table rules out both, nothing is learned."""
    both = np.isneginf(first) & np.isneginf(second)
    found = np.where(both, 0.0, first) - np.where(both, 0.0, second)
    # Finite, so that certainty for and against cancels instead of becoming NaN.
    return np.asarray(np.clip(found, -1e6, 1e6))
