"""What commands share: options, tables that fit a terminal, JSON."""

from __future__ import annotations

import json
import unicodedata
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.values.text import show_text

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

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


def echo(message: object = "", *, err: bool = False, nl: bool = True) -> None:
    """A message on the terminal, without what a name or a file may hold to move its cursor or change its colours."""
    typer.echo(show_text(str(message)), err=err, nl=nl)


def plain(text: str, style: str = "") -> Text:
    """A text for a table on the terminal, likewise."""
    from rich.text import Text

    return Text(show_text(text), style=style)


def escape_json(text: str) -> str:
    """A JSON text whose control characters are all escaped, those above ASCII too."""
    if text.isascii():
        return text
    return "".join(
        json.dumps(char)[1:-1]
        if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp") and char not in "\n\t"
        else char
        for char in text
    )


def dump_json(document: Any, indent: int | None = None) -> str:
    """A JSON document that a terminal can show."""
    return escape_json(json.dumps(document, indent=indent, ensure_ascii=False))


def print_json(document: Any, indent: int | None = 2) -> None:
    """One JSON document, on several lines or, without an indent, on one."""
    typer.echo(dump_json(document, indent))
