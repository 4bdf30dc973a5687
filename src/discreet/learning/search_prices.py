"""What an adaptive search pays for tables and choices: parts of the budget, worked out from public numbers alone."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet.learning.attribute_sets import cover_pairs, sum_roots
from discreet.learning.learner import noise_for
from discreet.values.budget import ZCDP, Finite
from discreet.values.schema import Schema
from discreet.values.table import count_cells
from discreet.values.unit import Unit

GUESSED_ROWS = 10_000
"""The guess where nobody says how many rows there are."""


@dataclass(frozen=True, slots=True)
class Rates:
    """The constants of the search, tuned once on tables of different sizes and budgets."""

    singles: float = 0.15
    """The L1 noise that a typical single attribute may have at the first look, as a part of the rows."""
    noise: float = 0.09
    """The L1 noise that a typical pair of 64 cells may have, as a part of the rows; it falls with the sixth root of the
    cells, because small tables are cheap to know well."""
    signal: float = 55.0
    """Rows for each unit of noise, if all attributes shared the budget, below which a greedy search does better."""
    hopeless: float = 0.35
    """The L1 noise of a typical pair, as a part of the rows, above which no dependence is looked for at all: in pure ε,
    where a first look is lost for the rest, and where rows are too few as well."""
    covered: float = 0.16
    """The L1 noise of a pair, as a part of the rows, up to which all pairs of a small table are measured in pure ε: a
    few wide sets hold them, and choices would cost as much as they save."""
    triples: float = 0.03
    """The L1 noise of a triple in one table of all attributes, as a part of the rows, below which a search does better
    than sets that hold no triple: then dependences of three are what is missing, and no longer precision."""
    wide: float = 0.05
    """The L1 noise that a table over three and more attributes may have, as a part of the rows."""
    noisy: float = 0.3
    """The same where the table spares many small ones: it costs less than `saving` of what all its pairs cost."""
    saving: float = 0.6
    """A table of four attributes of two levels costs a third of its pairs, one of three of ten levels all of them."""
    fewest: float = 1.0
    """The fewest typical pairs that the budget is cut into, for each attribute: noise or not."""
    most: float = 6.0
    """The most: where rows are many and tables small, more would only make the search long."""
    most_pure: float = 3.0
    """The most in pure ε, where a table's noise grows with the number of tables and not with its root, unless a typical
    pair has only four cells."""
    choice: float = 0.05
    """The scale of the noise in a choice, as a part of the rows; it costs a tenth to all of a typical pair's price."""
    handicap: float = 0.4
    """How much of its expected noise a candidate must be wrong by: making tables agree takes off the rest."""
    known: float = 0.4
    """How much of the noise in its single attributes, too: what they are wrong by says nothing of how they depend."""
    forgone: float = 0.3
    """How much of what its price could take off the noise of all other sets a candidate must be wrong by, besides."""
    batch: float = 0.35
    """Sets that are chosen between two fits, as a part of the number of attributes; at first, a whole tree."""


@dataclass(frozen=True, slots=True)
class Prices:
    """Parts of the whole budget for tables, and the noise that they buy.

    A table of c cells gets unit·c^½ of a pure ε, or unit·c^⅔ of a ρ: shares that keep the sum of L1 noises least.
    """

    gaussian: bool
    l1: int
    """How far one unit of privacy moves a table in L1."""
    l2_squared: int
    """And in L2, squared."""
    amount: float
    """The whole ε or ρ."""
    unit: float = 1.0

    def weigh(self, cells: float) -> float:
        """The weight of a table of so many cells when a budget is shared out."""
        return float(cells ** (2 / 3 if self.gaussian else 1 / 2))

    def table(self, cells: float) -> float:
        """The part of the budget that a table of so many cells gets."""
        return self.unit * self.weigh(cells)

    def reach(self, part: float) -> float:
        """The most cells of a table that gets no more than this part."""
        return float(max(part, 0.0) / self.unit) ** (3 / 2 if self.gaussian else 2)

    def widest(self, noise: float) -> float:
        """The most cells of a table that at its price has no more than this L1 noise."""
        return float(noise / self.noise(1, self.unit)) ** (3 / 2 if self.gaussian else 2)

    def noise(self, cells: float, part: float) -> float:
        """The expected L1 noise of a table of so many cells that gets this part: cells·E|noise|."""
        if self.gaussian:
            return cells * math.sqrt(self.l2_squared / (math.pi * part * self.amount))
        return cells * self.l1 / (part * self.amount)

    def forgo(self, sizes: Sequence[int], left: float) -> float:
        """What a part of the budget, for each unit of it, could take off the noise elsewhere, in rows of one pair.

        If all that is left went to single attributes, they would have an L1 noise of N on average. A part s less makes
        all sets noisier by about s/left·N; a pair is one of d(d − 1)/2, so measuring it must gain so many times that.
        """
        whole = sum(map(self.weigh, sizes))
        noise = sum(self.noise(size, left * self.weigh(size) / whole) for size in sizes) / len(sizes)
        return noise * math.comb(len(sizes), 2) / left

    def afford(self, cells: float, noise: float) -> float:
        """The part of the budget at which a table of so many cells has this L1 noise."""
        if self.gaussian:
            return self.l2_squared * (cells / noise) ** 2 / (math.pi * self.amount)
        return cells * self.l1 / (noise * self.amount)


def expect_margins(prices: Prices, sizes: Sequence[int], ways: int, roots: float) -> float:
    """The mean L1 noise of a margin over so many attributes, if sets with the sum Σ√c = `roots` share a pure ε.

    Shares are by the roots of the cells. A cell of a margin over p of c cells sums c/p draws of scale
    b = l1·Σ√c/(√c·ε), so p cells are off by √(2/π)·p·√(2c/p)·b = √(4p/π)·l1·Σ√c/ε, whichever set holds them.
    """
    members = list(itertools.combinations(sizes, min(ways, len(sizes))))
    typical = math.fsum(math.sqrt(math.prod(found)) for found in members) / len(members)
    return math.sqrt(4 / math.pi) * typical * prices.noise(1, 1 / roots)


def cover_small(
    prices: Prices, sizes: Mapping[str, int], rows: float, rates: Rates, model_cells: int
) -> list[tuple[str, ...]]:
    """Sets that hold all pairs, if pure ε is to be spent on them alone; none if a search does better.

    A model of all pairs has all cells of the table, so these must fit. The noise of pairs must be bearable, and that of
    triples too large for a search to find those that the sets do not hold; the more they hold, the less is missing.
    """
    cells, levels = count_cells(sizes.values()), list(sizes.values())
    if prices.gaussian or cells > model_cells:
        return []
    sets = cover_pairs(sizes)
    if expect_margins(prices, levels, 2, sum_roots(sets, sizes)) > rates.covered * rows:
        return []
    held = {frozenset(found) for members in sets for found in itertools.combinations(members, 3)}
    missing = 1 - len(held) / max(1, math.comb(len(sizes), 3)) if len(sizes) > 2 else 0.0
    found = expect_margins(prices, levels, 3, math.sqrt(cells)) < rates.triples * missing * rows
    return [] if found else sets


def rows_for_dependence(prices: Prices, sizes: Sequence[int], rates: Rates | None = None) -> float:
    """The number of rows from which on a search looks for dependence at all; it follows from public numbers.

    It is given up while noise(c, 1/d) > hopeless·rows, c being the cells of a typical pair; in ρ only below
    signal·noise(1, 1/d), where the search is greedy.
    """
    rates = rates or Rates()
    count = len(sizes)
    pairs = [one * other for one, other in itertools.combinations(sizes, 2)]
    if not pairs:
        return 0.0
    drowned = prices.noise(float(np.median(pairs)), 1 / count) / rates.hopeless
    return min(rates.signal * prices.noise(1, 1 / count), drowned) if prices.gaussian else drowned


def advise_dependence(schema: Schema, *, spend: Finite, unit: Unit, rows: int | None = None) -> str | None:
    """What would help, if a search for so little would publish all attributes as independent; None if it would not.

    All of it follows from public numbers: the schema, the cost, and `rows` where their number is public, else a guess.
    """
    moves, known = unit.moves, rows or GUESSED_ROWS

    def need(sizes: list[int], amount: float) -> float:
        prices = Prices(
            noise_for(spend) == "gaussian", sum(moves), sum(move * move for move in moves), amount
        )
        return rows_for_dependence(prices, sizes) / unit.grain

    sizes, amount = sorted(schema.sizes.values()), float(spend.amounts[0])
    least = need(sizes, amount)
    if len(sizes) < 2 or least <= known:
        return None
    more = amount
    while need(sizes, more) > known:
        more *= 1.1
    fewer = next((n for n in range(len(sizes) - 1, 1, -1) if need(sizes[:n], amount) <= known), None)
    name = "ρ" if isinstance(spend, ZCDP) else "ε"
    words = (
        f"{spend} is too little to look for dependence between {len(sizes)} attributes unless there are about "
        f"{float(f'{least:.1g}'):,.0f} rows or more; with fewer, each is published as independent of the others. "
        f"For {known:,} rows, {name} = {float(f'{more:.2g}'):g} would be enough"
    )
    if fewer is not None:
        words += f", or a schema of the {fewer} attributes with the fewest levels"
    return words + "; `discreet plan` shows more."


def price_singles(prices: Prices, sizes: Sequence[int], rows: float, rates: Rates) -> Fraction:
    """The part of the budget for the first look: a twentieth to a third, by the noise that it leaves."""
    typical = sorted(sizes)[len(sizes) // 2]
    needed = prices.afford(typical, rates.singles * rows) / prices.weigh(typical)
    return read_part(min(max(needed * sum(map(prices.weigh, sizes)), 1 / 20), 1 / 3))


def price_unit(
    prices: Prices, typical: float, rows: float, left: float, attributes: int, rates: Rates
) -> float:
    """The unit at which a typical pair has the noise aimed at, within bounds on the number of pairs to pay for."""
    aimed = prices.afford(typical, rates.noise * (typical / 64) ** (1 / 6) * rows)
    count = rates.most if prices.gaussian or typical <= 4 else rates.most_pure
    fewest, most = (left / (pairs * attributes) for pairs in (rates.fewest, count))
    return min(max(aimed, most), fewest) / prices.weigh(typical)


def price_choice(prices: Prices, typical: float, rows: float, rates: Rates) -> Fraction:
    """The part of the budget for one choice by an L1 error, which a row moves by as many rows as it changes cells."""
    epsilon = 2 * prices.l1 / (rates.choice * rows)
    needed = (epsilon**2 / 8 if prices.gaussian else epsilon) / prices.amount
    pair = prices.table(typical)
    return read_part(min(max(needed, pair / 10), pair))


def read_part(amount: float) -> Fraction:
    """A part of the budget as a short exact fraction."""
    return Fraction(max(1, math.floor(amount * 10**6)), 10**6)
