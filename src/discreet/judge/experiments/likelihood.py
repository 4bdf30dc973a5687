"""The strongest attack on a known pair of tables: the exact likelihood ratio of all that a release tells.

An attacker who knows every row but one unit's asks which of two tables a release was made of. By the lemma of Neyman
and Pearson nothing tells them apart better than

    log P(release | with) − log P(release | without),

which is the privacy loss of this release. It is a sum over the queries in their order, because each is drawn anew given
all answers before it: over the cells of every noisy table, and over every choice among candidates whose scores the
attacker works out for both tables. To learn which queries there were, the learner is run again without
rows, as `verify` does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.compute.inference.propagation import log_sum
from discreet.core.mechanism import NoisyChoice, Selection
from discreet.core.queries import Choice, Query, Tables
from discreet.judge.attacks.codes import Codes, count_rows, flatten_codes
from discreet.judge.replay import Replay, replay
from discreet.networks.network import Network
from discreet.values.errors import DataError
from discreet.values.measurement import DiscreteGaussian, DiscreteLaplace, Exact, Measurement
from discreet.values.noise_sum import NoiseSum
from discreet.values.table import Array, Table

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Step:
    """What one noisy table or one choice says about the pair, in natural logarithms."""

    loss: float
    """How much likelier it is with the unit than without."""
    ahead: float
    """What this is on average if the unit is in, given all that came before: a Kullback-Leibler divergence."""
    back: float
    """The same for the other direction."""
    is_choice: bool


@dataclass(frozen=True, slots=True)
class PrivacyLoss:
    """How much likelier a release is with a unit than without it, step by step.

    Under ε the whole is never beyond ±ε. Under ρ neither `ahead` nor `back` is above ρ, whatever was drawn [BS16].
    """

    steps: tuple[Step, ...]

    @property
    def whole(self) -> float:
        """The loss by all that was released: the attacker's score."""
        return math.fsum(step.loss for step in self.steps)

    @property
    def choices(self) -> float:
        """The part of the choices."""
        return math.fsum(step.loss for step in self.steps if step.is_choice)

    @property
    def ahead(self) -> float:
        """The divergences of all steps, if the unit is in."""
        return math.fsum(step.ahead for step in self.steps)

    @property
    def back(self) -> float:
        """The divergences of all steps, if it is not."""
        return math.fsum(step.back for step in self.steps)


@dataclass(slots=True, eq=False)
class Listener:
    """Weighs every answer to a query for somebody who knows both tables of a pair."""

    sides: tuple[Codes, Codes]
    """The rows that count with the unit and without it, as codes."""
    steps: list[Step] = field(default_factory=list)
    _counted: dict[tuple[str, ...], tuple[Table, Table]] = field(default_factory=dict)

    def hear(self, query: Query[Any], answer: list[Any], sizes: dict[str, int]) -> None:
        """One query and the answer that was published."""
        match query:
            case Tables():
                self.steps += [self._weigh(found, sizes) for found in query.read(answer)]
            case Choice():
                counted = [self.count(members, sizes) for members in query.candidates]
                one, other = (
                    log_chances(query.score.evaluate(tables), query.mechanism)
                    for tables in zip(*counted, strict=True)
                )
                ratio = one - other
                ahead, back = float(np.exp(one) @ ratio), float(-np.exp(other) @ ratio)
                self.steps.append(Step(float(ratio[query.read(answer)]), ahead, back, is_choice=True))
            case _:
                raise DataError(f"a {type(query).__name__} has no likelihood that is known here")

    def _weigh(self, found: Measurement, sizes: dict[str, int]) -> Step:
        if found.rate != 1 or isinstance(found.law, Exact | NoiseSum):
            raise DataError("a revealed table, one of a secret sample or a sum has no likelihood ratio here")
        one, other = self.count(found.axes, sizes)
        apart = one.values != other.values  # all other cells say the same about both
        logs = [found.law.log_pmf(found.noisy.values[apart] - side.values[apart]) for side in (one, other)]
        moved = math.fsum(diverge(found.law, int(by)) for by in np.abs(one.values - other.values)[apart])
        return Step(float((logs[0] - logs[1]).sum()), moved, moved, is_choice=False)

    def count(self, members: Sequence[str], sizes: dict[str, int]) -> tuple[Table, Table]:
        """The table of counts of some attributes, with the unit and without it."""
        axes = tuple(members)
        if axes not in self._counted:
            shape = [sizes[name] for name in axes]
            one, other = (
                Table(
                    axes,
                    np.bincount(flatten_codes(rows, axes, shape), minlength=math.prod(shape)).reshape(shape),
                )
                if axes
                else Table((), np.array(count_rows(rows)))
                for rows in self.sides
            )
            self._counted[axes] = one, other
        return self._counted[axes]


class _Overheard(Replay):
    """A replay that lets somebody listen."""

    def __init__(self, network: Network, listeners: Sequence[Listener]) -> None:
        assert network.provenance is not None
        super().__init__(network, network.provenance)
        self._listeners = listeners

    def answer(self, query: Query[Any], request: str | None) -> list[Any]:
        """The published answer, heard by the listeners."""
        found = super().answer(query, request)
        for listener in self._listeners:
            listener.hear(query, found, self.schema.sizes)
        return found


def read_loss(network: Network, listener: Listener) -> PrivacyLoss:
    """The privacy loss of one release on the pair of tables that a listener knows."""
    return read_losses(network, [listener])[0]


def read_losses(network: Network, listeners: Sequence[Listener]) -> list[PrivacyLoss]:
    """The same for several pairs at once: the release is followed only once."""
    if network.provenance is None:
        raise DataError("a network that does not say how it was learned cannot be followed")
    for listener in listeners:
        listener.steps.clear()
    replay(network, _Overheard(network, listeners))
    return [PrivacyLoss(tuple(listener.steps)) for listener in listeners]


def diverge(law: DiscreteLaplace | DiscreteGaussian, by: int) -> float:
    """The Kullback-Leibler divergence between noise around 0 and around `by`, the same both ways.

    Gaussian: by²/2σ². Laplace, with q = e^(−1/s): (E|X + by| − E|X|)/s = (by − 2(q − q^(by+1))/(1 − q²))/s.
    """
    if isinstance(law, DiscreteGaussian):
        return by * by / (2.0 * float(law.sigma2))
    rate = float(1 / law.scale)
    q = math.exp(-rate)
    return rate * (by - 2.0 * (q - q ** (by + 1)) / (1.0 - q * q))


def log_chances(true_scores: Array, mechanism: NoisyChoice) -> Floats:
    """The logarithms of the chances of all candidates.

    Exponential: score/scale, normalised. Permute-and-flip looks at candidates in random order and takes i with chance
    p_i = exp((score_i − best)/scale) [MS20]; looked at before a time u, uniform in [0, 1], are the others
    independently, so P(i) = p_i·∫ Π_{j≠i} (1 − u·p_j) du. The integrand is a polynomial, for which Gauss and Legendre's
    rule is exact with half as many points as candidates.
    """
    scaled = np.asarray(true_scores, dtype=np.float64) / mechanism.scale
    scaled = scaled - scaled.max()
    if mechanism.selection is Selection.EXPONENTIAL:
        return np.asarray(scaled - log_sum(scaled, (0,)))
    nodes, weights = np.polynomial.legendre.leggauss(len(scaled) // 2 + 1)
    u = (nodes + 1.0) / 2.0
    kept = np.log1p(-u[:, None] * np.exp(scaled))  # u < 1, so no candidate is certain
    others = kept.sum(axis=1, keepdims=True) - kept
    return np.asarray(scaled + log_sum(others + np.log(weights / 2.0)[:, None], (0,))[0])
