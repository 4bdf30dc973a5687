"""`discreet verify`, `compare` and `report`: does a release add up, how far are two networks apart, and a page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.doors.cli.terminal import AsJson, open_console, print_json

if TYPE_CHECKING:
    from discreet.judge.comparison import NetworkDistance

Model = Annotated[str, typer.Argument(help="A release or network (.json) or BIF file.")]
Document = Annotated[Path, typer.Argument(metavar="RELEASE", help="A release document (.json).")]


def verify(
    release: Document,
    ledger: Annotated[
        str | None,
        typer.Option(metavar="LEDGER", help="Also compare the release with the ledger that paid for it."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Recompute everything that follows from the published tables, and say what does not add up.

    Needs no rows, and without --ledger only the document. Exit code 0 if all adds up, 1 if something does not or could
    not be checked (a ledger that was not given does not count), 2 if the file is not a release.
    """  # fmt: skip
    from discreet.doors.library import verify as run

    found = run(release, ledger)
    if as_json:
        print_json(found.to_json())
    else:
        typer.echo(found)
    if not found.sound:
        raise typer.Exit(1)


def compare(one: Model, other: Model, as_json: AsJson = False) -> None:
    """Compare two networks over the same attributes: conditionals by L1 and KL, marginals by total variation."""
    from discreet.judge.comparison import compare as run

    found = run(one, other)
    if as_json:
        print_json(found.to_json())
    else:
        _print_distances(found)


def report(
    release: Document,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The page to write.")] = Path(
        "report.html"
    ),
    as_json: AsJson = False,
) -> None:
    """Write a report on a release as one HTML file that needs nothing else, for a browser or a printer."""
    from discreet.judge.report import write_report

    write_report(release, out)
    if as_json:
        print_json({"written": str(out)})
    else:
        typer.echo(out)


def _print_distances(found: NetworkDistance) -> None:
    from rich.table import Table
    from rich.text import Text

    console = open_console()
    table: Any = Table("attribute", box=None, pad_edge=False)
    for head in ("conditionals L1", "conditionals KL", "marginal TV"):
        table.add_column(head, justify="right")
    for node in found.nodes:
        cells = ["other parents" if value is None else f"{value:.4f}" for value in (node.l1, node.kl)]
        table.add_row(Text(node.name), *cells, f"{node.marginal:.4f}")
    console.print(table)
    worst = found.worst
    console.print(
        Text(
            f"marginals differ by a total variation (TV) of {found.mean_marginal:.4f} on average; "
            f"most for {worst.name}: {worst.marginal:.4f}"
        )
    )
