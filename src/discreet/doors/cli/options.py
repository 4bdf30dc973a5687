"""Options that several commands share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from discreet.values.budget import Finite

Person = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN", help="Protect people, not rows: the column with their ids. Needs --at-most."
    ),
]
AtMost = Annotated[
    int | None, typer.Option("--at-most", metavar="K", help="At most K rows of each person count.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]


def read_amount(what: str, epsilon: str | None, delta: str | None, rho: str | None) -> Finite:
    """The amount that --epsilon, --delta and --rho give; `what` begins the sentence of a refusal."""
    from discreet.values.budget import choose_budget

    return choose_budget(epsilon=epsilon, delta=delta, rho=rho, what=what)
