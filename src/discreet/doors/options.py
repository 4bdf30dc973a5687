"""Options that several commands share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from discreet.values.errors import BudgetError

if TYPE_CHECKING:
    from discreet.values.budget import Finite

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]


def read_amount(what: str, epsilon: str | None, delta: str | None, rho: str | None) -> Finite:
    """The amount that --epsilon, --delta and --rho give; `what` begins the sentence of a refusal."""
    from discreet.values.budget import ZCDP, ApproxDP, PureDP

    if rho is not None and epsilon is None and delta is None:
        return ZCDP(rho)
    if epsilon is not None and rho is None:
        return PureDP(epsilon) if delta is None else ApproxDP(epsilon, delta)
    raise BudgetError(f"{what} --epsilon, or --epsilon with --delta, or --rho alone")
