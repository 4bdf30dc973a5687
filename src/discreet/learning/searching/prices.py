"""What an adaptive search pays for tables and choices: parts of the budget, worked out from public numbers alone."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from discreet.compute.smoothing import score_levels
from discreet.learning.learner import noise_for
from discreet.learning.searching.attribute_sets import MANY_ATTRIBUTES, cover_pairs, sum_roots
from discreet.values.budget import ZCDP, Finite
from discreet.values.schema import Schema
from discreet.values.table import count_cells
from discreet.values.unit import Unit

MODEL_CELLS = 2**18
"""The cells of all cliques together: such a model fits in a second and answers queries at once. Where attributes have
hundreds of levels, half of it left dependence out that was paid for; twice as much gains a little at ε = 10 only."""
COVERED_CELLS = 2**17
"""The cells of a small table, all of whose pairs are measured in pure ε."""
GUESSED_ROWS = 10_000
"""The guess where nobody says how many rows there are."""

ROOM_SHARES = 4.0
"""A set takes at most so many times its even share of the model's cells."""
MANY_BATCHES = 8
"""The batches that a search of many attributes has at most, for each unit of effort."""
MANY_CHOSEN = 0.5
"""A batch after the first one with fewer than this part of the sets that it may have is the last."""


@dataclass(frozen=True, slots=True)
class Rates:
    """The constants of the search, tuned once on tables of different sizes and budgets."""

    singles: float = 0.15
    """The L1 noise that a typical single attribute may have at the first look, as a part of the rows."""
    noise: float = 0.09
    """The L1 noise that a typical pair of 64 cells may have, as a part of the rows; it falls with the sixth root of the
    cells, because small tables are cheap to know well."""
    signal: float = 55.0
    """Rows for each unit of noise, if all attributes shared the budget, below which the search is greedy in ρ, and in
    pure ε attributes are left independent: a greedy search had 1.03 of that error on nine tables."""
    hopeless: float = 0.45
    """The L1 noise of a typical pair, as a part of the rows, above which no dependence is looked for where rows are too
    few as well, and in pure ε only if the best tree is worth it."""
    lost: float = 1.0
    """The same above which pure ε looks for none at all."""
    sure: float = 75.0
    """Rows for each unit of noise from which on a search in pure ε begins without that question, unless attributes are
    many."""
    sure_of_each: float = 6.5
    """The same for each attribute."""
    asking: Fraction = Fraction(1, 25)
    """What the question costs, as a part of the budget."""
    linked: float = 0.25
    """How much of its noise, at an equal share, a link must depend by: in rows to move until it is independent."""
    worth: float = 3.8
    """What the mean link of a tree must be worth besides, in units of noise for each row that one row may move. On
    seventeen tables a search below it had 0.98 to 1.13 of the error of independent columns, above it 0.56 to 0.98."""
    scarce: float = 16.0
    """The same below which not even a greedy search in ρ finds anything."""
    covered: float = 0.2
    """The L1 noise of a pair, as a part of the rows, up to which all pairs of a small table are measured in pure ε: a
    few wide sets hold them, and choices would cost as much as they save. On six tables the search had 1.03 of the error
    of a cover at 0.15, 0.96 at 0.2 and 0.91 at 0.3, four runs each."""
    triples: float = 0.003
    """What dependences of three are worth on average, in L1, where all pairs are known: sets that hold more of the
    triples are taken as long as their noise grows by less."""
    wide: float = 0.05
    """The L1 noise that a table over three and more attributes may have, as a part of the rows."""
    noisy: float = 0.3
    """The same where the table spares many small ones: it costs less than `saving` of what all its pairs cost."""
    saving: float = 0.6
    """A table of four attributes of two levels costs a third of its pairs, one of three of ten levels all of them."""
    fewest: float = 1.0
    """The fewest typical pairs that the budget is cut into, for each attribute: noise or not."""
    fewest_smooth: float = 2.0
    """The fewest where most pairs are of scored attributes: of these a smooth dependence is known better than cells."""
    most: float = 6.0
    """The most: where rows are many and tables small, more would only make the search long."""
    most_pure: float = 3.0
    """The most in pure ε, where a table's noise grows with the number of tables and not with its root, unless a typical
    pair has only four cells."""
    most_of_all: float = 0.5
    """The most in pure ε, as a part of all pairs: of few attributes, three for each are nearly all there are, and then
    the weakest take from the others what they are not worth."""
    choice: float = 0.05
    """The scale of the noise in a choice, as a part of the rows; it costs a tenth of a typical pair's price or more."""
    dearest: float = 0.4
    """The most that a choice costs in pure ε, as a part of a typical pair's price: where rows are few, eight choices
    at the price of five pairs took more from every table than better choices brought."""
    handicap: float = 0.4
    """How much of its expected noise a candidate must be wrong by: making tables agree takes off the rest."""
    smooth: float = 0.5
    """How much of its whole handicap a pair of scored attributes has, for the same reason."""
    known: float = 0.4
    """How much of the noise in its single attributes, too: what they are wrong by says nothing of how they depend."""
    forgone: float = 0.3
    """How much of what its price could take off the noise of all other sets a candidate must be wrong by, besides."""
    alike: float = 0.8
    """Two attributes whose pair has this part of the greatest distance from independence say nearly the same, level by
    level. Of four tables with attributes of a hundred levels one had such pairs, at 0.83 and more; 0.75 was the most of
    the others."""
    uneven: float = 0.25
    """Two random rows must have different levels at least as often; nearly constant attributes are not looked at."""
    closeness: float = 0.02
    """The scale of the noise in the choice of such a pair, as a part of the rows."""
    likeness: float = 0.03
    """The most that the choices of such pairs cost, as a part of the budget; where one costs more, there is none."""
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

    @classmethod
    def of(cls, spend: Finite, unit: Unit, amount: float | None = None) -> Prices:
        """The prices for what is spent, or another amount of its kind, on rows of which a unit moves so many."""
        moves = unit.moves
        whole = float(spend.amounts[0]) if amount is None else amount
        return cls(noise_for(spend) == "gaussian", sum(moves), sum(move * move for move in moves), whole)

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
    """Sets that hold all pairs of a small table, if pure ε is to be spent on them alone; none if it is not.

    A model of all pairs has all cells of the table, so these must fit, and the noise of pairs must be bearable. Of
    several ways the one is taken whose triples have the least noise and bias together: those that no set holds lack
    what is peculiar to them.
    """
    levels = list(sizes.values())
    if prices.gaussian or count_cells(levels) > min(model_cells, COVERED_CELLS):
        return []

    def expect(sets: list[tuple[str, ...]]) -> float:
        held = {frozenset(found) for members in sets for found in itertools.combinations(members, 3)}
        missing = 1 - len(held) / max(1, math.comb(len(sizes), 3)) if len(sizes) > 2 else 0.0
        return expect_margins(prices, levels, 3, sum_roots(sets, sizes)) + rates.triples * missing * rows

    best = min(cover_pairs(sizes), key=expect)
    noise = expect_margins(prices, levels, 2, sum_roots(best, sizes))
    return best if noise <= rates.covered * rows else []


def rows_for_dependence(prices: Prices, sizes: Sequence[int], rates: Rates | None = None) -> float:
    """The number of rows from which on a search looks for dependence at all; it follows from public numbers.

    In pure ε it is given up while noise(c, 1/d) > lost·rows, c being the cells of a typical pair, or rows are below
    signal·noise(1, 1/d), unless the pairs of a small table can be covered; in ρ, where the search is greedy first,
    while rows are below scarce·noise(1, 1/d), or below signal·noise(1, 1/d) and noise(c, 1/d) > hopeless·rows.
    """
    rates = rates or Rates()
    count = len(sizes)
    pairs = [one * other for one, other in itertools.combinations(sizes, 2)]
    if not pairs:
        return 0.0
    unit, typical = prices.noise(1, 1 / count), float(np.median(pairs))
    if prices.gaussian:
        return min(rates.signal, max(typical / rates.hopeless, rates.scarce)) * unit
    searched = max(typical / rates.lost, rates.signal) * unit
    if count_cells(sizes) > COVERED_CELLS:
        return searched
    named = {str(i): size for i, size in enumerate(sizes)}
    roots = min(sum_roots(sets, named) for sets in cover_pairs(named))
    return min(expect_margins(prices, sizes, 2, roots) / rates.covered, searched)


def leaves_open(spread: float, typical: float, attributes: int, rates: Rates) -> bool:
    """Whether it is left to the rows if pure ε buys dependence worth having, with so many rows for a unit of noise."""
    sure = max(rates.sure, rates.sure_of_each * attributes, typical / rates.hopeless)
    return attributes > 2 and spread < sure


def advise_dependence(schema: Schema, *, spend: Finite, unit: Unit, rows: int | None = None) -> str | None:
    """What would help, if a search for so little would publish all attributes as independent; None if it would not.

    All of it follows from public numbers: the schema, the cost, and `rows` where their number is public, else a guess.
    """
    known = rows or GUESSED_ROWS

    def need(sizes: list[int], amount: float) -> float:
        prices = Prices.of(spend, unit, amount)
        return rows_for_dependence(prices, sizes, suit_rates(Rates(), schema)) / unit.grain

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
        f"{_round_up(least, 2):,.0f} rows or more; with fewer, each is published as independent of the others. "
        f"For {known:,} rows, {name} = {_round_up(more, 2):g} would be enough"
    )
    if fewer is not None:
        words += f", or a schema of the {fewer} attributes with the fewest levels"
    return f"{words}."


def _round_up(value: float, digits: int) -> float:
    """The least number of so many digits that is not below a positive one."""
    step = 10.0 ** (math.floor(math.log10(value)) + 1 - digits)
    return float(f"{math.ceil(value / step - 1e-9) * step:.{digits}g}")


def price_singles(prices: Prices, sizes: Sequence[int], rows: float, rates: Rates) -> Fraction:
    """The part of the budget for the first look: a twentieth to a third, by the noise that it leaves."""
    typical = sorted(sizes)[len(sizes) // 2]
    needed = prices.afford(typical, rates.singles * rows) / prices.weigh(typical)
    return read_part(min(max(needed * sum(map(prices.weigh, sizes)), 1 / 20), 1 / 3))


def suit_rates(rates: Rates, schema: Schema) -> Rates:
    """The rates where most pairs are of attributes with scored levels: the budget is cut into more of them.

    And pure ε gives up later: of a smooth dependence, noise counts as that of so many fewer cells. On six tables of
    1,000 to 2,300 rows with 20 levels an attribute, a search where noise(c, 1/d) was 0.5 to 1.2 of the rows had 0.53 to
    0.97 of the error of independent columns in pairs; on five where it was 1.6 to 3.5 it found nothing.
    """
    if not is_smooth(schema):
        return rates
    fewer = rates.smooth**2
    fewest = max(rates.fewest, rates.fewest_smooth)
    return replace(rates, fewest=fewest, hopeless=rates.hopeless / fewer, lost=rates.lost / fewer)


def is_smooth(schema: Schema) -> bool:
    """Whether most pairs are of attributes with scored levels."""
    return math.comb(len(score_levels(schema)), 2) > math.comb(len(schema), 2) / 2


def price_unit(
    prices: Prices,
    typical: float,
    rows: float,
    left: float,
    attributes: int,
    rates: Rates,
    beside: float = 0.0,
) -> float:
    """The unit at which a typical pair has the noise aimed at, within bounds on the number of pairs to pay for.

    `beside` is the weight of tables that are paid for in any case.
    """
    aimed = price_aimed(prices, typical, rows, rates)
    part = max(rates.fewest, rates.most_of_all * (attributes - 1) / 2)
    count = rates.most if prices.gaussian or typical <= 4 else min(rates.most_pure, part)
    weight = prices.weigh(typical)
    fewest, most = (left / (pairs * attributes * weight + beside) for pairs in (rates.fewest, count))
    return min(max(aimed / weight, most), fewest)


def price_aimed(prices: Prices, typical: float, rows: float, rates: Rates) -> float:
    """The part of the budget at which a typical pair has the noise aimed at, even if it is more than there is."""
    return prices.afford(typical, rates.noise * (typical / 64) ** (1 / 6) * rows)


def price_likeness(prices: Prices, rows: float, rates: Rates) -> Fraction:
    """The part of the budget for one choice of a pair that is nearly one attribute."""
    return read_part(_price_error(prices, rates.closeness * rows))


def _price_error(prices: Prices, scale: float) -> float:
    """The part at which a choice by an L1 error, which a row moves by as much as it changes cells, has this noise."""
    epsilon = 2 * prices.l1 / scale
    return (epsilon**2 / 8 if prices.gaussian else epsilon) / prices.amount


def price_choice(prices: Prices, typical: float, rows: float, rates: Rates) -> Fraction:
    """The part of the budget for one choice of what is measured next."""
    needed = _price_error(prices, rates.choice * rows)
    pair = prices.table(typical)
    return read_part(min(max(needed, pair / 10), pair if prices.gaussian else rates.dearest * pair))


def share_room(model_cells: int, attributes: int) -> float:
    """The most cells of one set: a few times what every link of a tree has if the model's room is shared evenly.

    Where attributes have hundreds of levels, one pair could take half of the room and leave the others unlinked: the
    better tables can be paid for, the sooner.
    """
    return min(1.0, ROOM_SHARES / max(1, attributes - 1)) * model_cells


def ends_search(attributes: int, chosen: Sequence[int], step: int, effort: int) -> bool:
    """Whether a search of many attributes has had enough of batches of so many sets each, `step` at most.

    Such a search would go on for dozens of batches of two or three sets, each after a fit and a look at all pairs.
    """
    if attributes <= MANY_ATTRIBUTES:
        return False
    return len(chosen) >= MANY_BATCHES * effort or (len(chosen) > 1 and chosen[-1] < MANY_CHOSEN * step)


def read_part(amount: float) -> Fraction:
    """A part of the budget as a short exact fraction."""
    return Fraction(max(1, math.floor(amount * 10**6)), 10**6)
