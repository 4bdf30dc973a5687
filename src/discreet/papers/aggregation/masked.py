"""Noisy tables that tell something only once all parties' are added up.

Party i publishes n_i + X_i + m_i modulo 2^64. The masks m_i are uniform and sum to 0, so all that the K answers tell is
Σ n_i + Σ X_i. The X_i are discrete Gaussian with σ²/H in each of the H parties that are trusted to add theirs, so that
the sum has the noise σ² of one central table, and not K times that.

What it trusts: of the K parties at least H, each custodian's own among them, draw their noise and keep their masks to
themselves and to the one they share them with; the others may pool all that they know. Nobody is protected against a
party that adds a wrong table: sums are private, not proved. If one party drops out, nothing can be read.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from discreet.core.counter import TrueCounts
from discreet.core.mechanism import AdditiveNoise, Noise, covers
from discreet.core.noise import add_noise
from discreet.values.budget import ZCDP, Finite, round_up
from discreet.values.errors import FormatError, MechanismError
from discreet.values.laws.sums import add_laws
from discreet.values.measurement import DiscreteGaussian, Measurement
from discreet.values.table import Table, count_cells
from discreet.values.text import Number, show
from discreet.values.unit import Unit

MOST_PARTIES = 1000
NARROWEST = 0.5
"""The least σ of a share; the bound on the sum of discrete Gaussians is proved from here on."""
WIDEST_SHARE = 2.0**30

Words = npt.NDArray[np.uint64]


def find_joint_loss(moves: Sequence[int], sigma2: Fraction, honest: int) -> ZCDP:
    """What the sum of H discrete Gaussians of variance σ² each gives away, at most.

    ρ = ½(Δ₂/(√H·σ) + τ·√d)² with τ = 10·Σ_{k<H} exp(−2π²σ²·k/(k + 1)), for σ ≥ ½ [Kairouz, Liu & Steinke 2021,
    Prop. 14, the third of its bounds: α·ρ at every order α ≥ 1]. τ bounds how far the sum is from one discrete Gaussian
    of variance H·σ². Cells that nobody moves have the same law on both sides, so d is the number of cells that one unit
    moves.
    """
    sigma = math.sqrt(float(sigma2))
    if sigma < NARROWEST:
        raise MechanismError(
            f"a share of noise needs a σ of at least {NARROWEST}, not {sigma:.3g}: lower the ρ"
        )
    tau = 10.0 * math.fsum(
        math.exp(-2.0 * math.pi**2 * float(sigma2) * k / (k + 1)) for k in range(1, honest)
    )
    apart = math.sqrt(sum(move * move for move in moves) / honest) / sigma
    return ZCDP(round_up(0.5 * (apart + tau * math.sqrt(len(moves))) ** 2))


@dataclass(frozen=True, slots=True, eq=False)
class MaskedTables:
    """One custodian's tables with its share of the noise, behind its masks; a query that the airlock answers."""

    sets: tuple[tuple[str, ...], ...]
    mechanisms: tuple[AdditiveNoise, ...]
    """A share of noise for each table; its own cost is what it would lose alone, and it is never alone."""
    charges: tuple[ZCDP, ...]
    cost: Finite
    unit: Unit
    parties: int
    honest: int
    round: str
    """A name that all parties share: masks cancel within one round only."""
    masks: tuple[Words, ...] = ()
    """Secret; one for each table, all parties' together 0."""

    def __post_init__(self) -> None:
        require_parties(self.parties, self.honest)
        for mechanism, charge in zip(self.mechanisms, self.charges, strict=True):
            if mechanism.noise is not Noise.GAUSSIAN or not covers(mechanism, self.unit.moves):
                raise MechanismError(f"{mechanism.statistic}: the noise is not made for {self.unit}")
            lost = find_joint_loss(mechanism.moves, Fraction(mechanism.scale) ** 2, self.honest)
            if not lost <= charge:
                raise MechanismError(
                    f"{mechanism.statistic}: {self.honest} shares lose {lost}, more than {charge}"
                )
        if sum(self.charges[1:], start=self.charges[0]) != self.cost:
            raise MechanismError(f"the tables are not charged {self.cost} together")

    @classmethod
    def price(
        cls,
        sets: Sequence[Sequence[str]],
        cost: Finite,
        *,
        unit: Unit,
        parties: int,
        honest: int,
        round: str,
        shares: Sequence[Number] | None = None,
    ) -> Self:
        """The narrowest shares of noise that a ρ pays for; without masks, as everybody may see it."""
        if not isinstance(cost, ZCDP):
            raise MechanismError(f"shares of Gaussian noise are paid for with a ρ, not with {cost}")
        require_parties(parties, honest)
        asked = tuple(tuple(members) for members in sets)
        charges = cost.split(len(asked) if shares is None else shares)
        mechanisms = tuple(
            _narrow_share(f"counts over ({', '.join(members)})", unit, charge, honest)
            for members, charge in zip(asked, charges, strict=True)
        )
        return cls(asked, mechanisms, charges, cost, unit, parties, honest, round)

    def describe(self) -> dict[str, Any]:
        """The sets, the shares of noise, who is trusted, and the round; not the masks."""
        return {
            "verb": "share",
            "sets": [list(members) for members in self.sets],
            "scales": [mechanism.scale.hex() for mechanism in self.mechanisms],
            "parties": self.parties,
            "honest": self.honest,
            "round": self.round,
        }

    def check(self, rows: TrueCounts) -> None:
        """Refuse tables that cannot be counted, or masks that do not fit them."""
        rows.counter.check(self.sets, None)
        sizes = [count_cells(rows.sizes[name] for name in members) for members in self.sets]
        if [mask.size for mask in self.masks] != sizes:
            raise MechanismError("there must be one mask for every cell of every table")

    def draw(self, rows: TrueCounts) -> list[Any]:
        """The counts, each with its share of noise, behind the masks: uniform to whoever does not know these."""
        found = []
        for table, mechanism, mask in zip(
            rows.counter.count(self.sets, None), self.mechanisms, self.masks, strict=True
        ):
            noisy = add_noise(table.values, mechanism).ravel().view(np.uint64)
            found.append({"axes": list(table.axes), "masked": (noisy + mask).tolist()})
        return found

    def read(self, stored: list[Any]) -> list[Words]:
        """The masked cells of each table."""
        return [np.array(found["masked"], dtype=np.uint64) for found in stored]

    def unmask(self, answers: Mapping[str, Sequence[Words]], sizes: Mapping[str, int]) -> list[Measurement]:
        """The sums of all parties' tables, with all parties' noise; refused unless all are there."""
        if len(answers) != self.parties:
            raise FormatError(
                f"{len(answers)} of {self.parties} parties have answered ({', '.join(map(show, answers))}); masks "
                "cancel only if all do: begin a new round"
            )
        found = []
        for k, (members, mechanism) in enumerate(zip(self.sets, self.mechanisms, strict=True)):
            shape = [sizes[name] for name in members]
            total = np.zeros(count_cells(shape), dtype=np.uint64)
            for name, tables in answers.items():
                if len(tables) != len(self.sets) or tables[k].shape != total.shape:
                    raise FormatError(f"the answer of {show(name)} is not made for these tables")
                total = total + tables[k]
            counts = total.view(np.int64).reshape(shape)
            law = add_laws([DiscreteGaussian(Fraction(mechanism.scale) ** 2)] * self.parties)
            found.append(Measurement(Table(members, counts), law, self.unit, self.charges[k]))
        return found


def require_parties(parties: int, honest: int) -> None:
    """Refuse numbers of parties for which nothing is shared, or nobody is trusted."""
    if not 2 <= parties <= MOST_PARTIES or not 1 <= honest <= parties:
        raise MechanismError(
            f"noise is shared by 2 to {MOST_PARTIES:,} parties, of whom 1 or more and at most all are trusted; not by "
            f"{parties}, of whom {honest}"
        )


def draw_mask(cells: int) -> Words:
    """Uniform 64-bit numbers from the operating system."""
    return np.frombuffer(secrets.token_bytes(8 * cells), dtype=np.uint64)


def _narrow_share(statistic: str, unit: Unit, charge: ZCDP, honest: int) -> AdditiveNoise:
    """The narrowest share of noise whose H-fold sum loses no more than the charge, by bisection."""
    moves = unit.moves

    def fits(scale: float) -> bool:
        return scale >= NARROWEST and find_joint_loss(moves, Fraction(scale) ** 2, honest) <= charge

    low, high = 0.0, NARROWEST
    while not fits(high):
        low, high = high, 2.0 * high
        if high > WIDEST_SHARE:
            raise MechanismError(f"{statistic}: {charge} is too little for noise that can be drawn")
    for _ in range(60):
        middle = (low + high) / 2.0
        low, high = (low, middle) if fits(middle) else (middle, high)
    alone = ZCDP(round_up(sum(move * move for move in moves) / (2.0 * high * high)))
    return AdditiveNoise(statistic, unit, moves, Noise.GAUSSIAN, high, alone)
