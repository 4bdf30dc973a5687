"""How commands print: tables that fit a terminal, and JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

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
