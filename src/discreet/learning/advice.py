"""What would help where a budget is too small for dependence; told before anything is paid."""

from __future__ import annotations

from discreet.learning.learner import noise_for
from discreet.learning.search_prices import Prices, rows_for_dependence
from discreet.values.budget import ZCDP, Finite
from discreet.values.schema import Schema
from discreet.values.unit import Unit

GUESSED_ROWS = 10_000
"""The guess where nobody says how many rows there are."""


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
