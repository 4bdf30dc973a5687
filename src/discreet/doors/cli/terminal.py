"""What commands share: options, tables that fit a terminal, JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

Person = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN", help="Protect people, not rows: the column with their ids. Needs --at-most."
    ),
]
AtMost = Annotated[
    str | None,
    typer.Option(
        "--at-most", metavar="K", help="At most K rows of each person count, or auto: chosen privately."
    ),
]
PerPerson = Annotated[
    str | None,
    typer.Option(
        "--per-person",
        metavar="rows|average",
        help="Count a person's rows, or their average. [default: rows]",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]

PIPE_WIDTH = 160
"""A pipe has no width to fit."""


def open_console() -> Console:
    """A console as wide as the terminal, or wide enough for tables in a pipe."""
    from rich.console import Console

    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=PIPE_WIDTH)


def print_json(document: Any) -> None:
    """One JSON document."""
    typer.echo(json.dumps(document, indent=2, ensure_ascii=False))
