"""Measuring on a secret random sample of the rows, and how much privacy that adds.

Which rows were sampled must never leave the airlock: the amplification counts on the sample being secret.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from discreet.core.queries import Tables
from discreet.values.budget import Finite, PureDP, round_down, round_up
from discreet.values.errors import AirlockError, MechanismError
from discreet.values.text import Number, require_share, show_fraction
from discreet.values.unit import Unit

CHUNK = 2**20
"""Rows per request for random bytes."""


@dataclass(frozen=True, slots=True)
class Subsampling:
    """Sampling at an exact rate β: a coin for each row (add-remove), or a fixed number of rows (replace-one).

    A mechanism that is ε-DP on the sample is ln(1 + β(e^ε − 1))-DP on the rows. Each unit has its own scheme:
    a fixed rate of the private n would give n away, and with coins a replaced row is amplified less [BBG18].
    """

    rate: Fraction
    unit: Unit

    def __post_init__(self) -> None:
        object.__setattr__(self, "unit", Unit.read(self.unit))
        if self.unit.person:
            raise MechanismError(
                f"a secret sample of rows does not help to protect {self.unit}; use rate=1, or the learner planned"
            )
        require_share(self.rate, "the sampling rate", MechanismError)
        if self.rate.denominator >= 2**63:
            raise MechanismError("a sampling rate needs a denominator below 2^63 to be drawn exactly")

    @classmethod
    def fixed(cls, size: int, rows: int) -> Subsampling:
        """A fixed number of rows out of a public number of rows, for replace-one."""
        if not 0 < size < rows:
            raise MechanismError(f"a sample of {rows} rows must have 1 to {rows - 1} of them, not {size}")
        return cls(Fraction(size, rows), Unit.REPLACE_ONE)

    def amplify(self, inner: PureDP) -> PureDP:
        """The cost of a mechanism that is `inner` on the sample, rounded up; never above `inner`."""
        epsilon, rate = float(inner.epsilon), float(self.rate)
        if epsilon > 50.0:  # 1 + β(e^ε − 1) = e^ε·(β + (1 − β)e^−ε), which does not overflow
            outer = epsilon + math.log(rate + (1 - rate) * math.exp(-epsilon))
        else:
            outer = math.log1p(rate * math.expm1(epsilon))
        return PureDP(min(inner.epsilon, round_up(outer)))

    def afford(self, spend: PureDP) -> PureDP:
        """The most that may be spent on the sample, ln(1 + (e^ε − 1)/β), rounded down [000, Lemma 2.3]."""
        epsilon, rate = float(spend.epsilon), float(self.rate)
        if epsilon > 50.0:
            inner = epsilon + math.log((1 - (1 - rate) * math.exp(-epsilon)) / rate)
        else:
            inner = math.log1p(math.expm1(epsilon) / rate)
        found = PureDP(round_down(inner))
        # `amplify` rounds up: both roundings together must stay within the spend.
        while self.amplify(found) > spend:
            inner *= 1 - 1e-12
            found = PureDP(round_down(inner))
        return max(found, spend)

    def draw(self, rows: int) -> npt.NDArray[np.bool_]:
        """Which of the rows are in the sample; exact, from the operating system's entropy, and secret."""
        if self.unit == Unit.ADD_REMOVE:
            drawn = draw_below(self.rate.denominator, rows)
            return np.asarray(drawn < np.uint64(self.rate.numerator))
        self.require_rows(rows)
        return draw_subset(int(self.rate * rows), rows)

    def require_rows(self, rows: int) -> None:
        """Refuse a number of rows of which the rate is not a whole number, if the sample's size is fixed."""
        if self.unit == Unit.REPLACE_ONE and (self.rate * rows).denominator != 1:
            share = show_fraction(self.rate)
            raise MechanismError(f"{share} of {rows} rows is not a whole number of rows")


def draw_below(bound: int, count: int) -> npt.NDArray[np.uint64]:
    """Uniform integers from 0 to bound − 1, exact by rejection."""
    if not 1 <= bound < 2**63:
        raise MechanismError(f"a uniform draw needs a bound between 1 and 2^63, not {bound}")
    found = np.empty(count, dtype=np.uint64)
    kept = 0
    bits = max(1, (bound - 1).bit_length())
    word = np.dtype(next(f"<u{size}" for size in (1, 2, 4, 8) if 8 * size >= bits))
    mask = word.type((1 << bits) - 1)
    while kept < count:
        wanted = min(CHUNK, (count - kept) * 2 + 16)  # at most half of the draws are rejected
        words = np.frombuffer(os.urandom(wanted * word.itemsize), dtype=word) & mask
        accepted = words[words < bound][: count - kept]
        found[kept : kept + accepted.size] = accepted
        kept += accepted.size
    return found


def draw_subset(size: int, rows: int) -> npt.NDArray[np.bool_]:
    """A uniformly random subset of so many rows: those with the smallest of as many random keys.

    Given that no two keys are equal, every order of the rows is equally likely; so equal keys start over.
    """
    if not 0 <= size <= rows:
        raise MechanismError(f"a sample of {rows} rows has between 0 and {rows} of them, not {size}")
    while True:
        keys = draw_below(2**63 - 1, rows)
        if np.unique(keys).size == rows:
            break
    chosen = np.zeros(rows, dtype=np.bool_)
    if size:
        chosen[np.argpartition(keys, size - 1)[:size]] = True
    return chosen


def sample_tables(
    sets: Sequence[Sequence[str]],
    cost: Finite,
    sampling: Subsampling,
    *,
    shares: Sequence[Number] | None = None,
) -> Tables:
    """Tables of a secret sample: the noise of the larger budget that sampling affords, charged at `cost`."""
    if not isinstance(cost, PureDP):
        raise AirlockError(f"a secret sample can be paid for in pure ε only, not with {cost}")
    inner = Tables.price(sets, sampling.afford(cost), unit=sampling.unit, shares=shares)
    charges = cost.split(len(inner.sets) if shares is None else shares)
    return Tables(inner.sets, inner.mechanisms, charges, cost, sampling.unit, sampling)
