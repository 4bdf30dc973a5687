"""`discreet explore`: a network as a page that people can touch."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from discreet.doors.cli.terminal import AsJson, echo, print_json


def explore(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A release, a network (.json) or a BIF file, plain or .gz.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The page to write.")] = Path(
        "explorer.html"
    ),
    show: Annotated[
        bool | None,
        typer.Option(
            "--open/--no-open", help="Open it in the browser. [default: on a terminal]", show_default=False
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a network as one page that needs nothing else, and open it: click a bar, and every other bar moves.

    A release is checked first, as `discreet verify` does; one that does not add up is refused.
    """  # fmt: skip
    from discreet.judge.explorer.page import write_explorer
    from discreet.judge.trust.doubt import read_with_doubt
    from discreet.networks.formats.release import Release, find_document

    found = Path(find_document(file))
    model, doubt = read_with_doubt(found)
    report = out.parent / "report.html"
    beside = isinstance(model, Release) and report.exists() and out.parent.resolve() == found.parent.resolve()
    write_explorer(model, out, file=found.name, report=report.name if beside else None, doubt=doubt)
    if as_json:
        print_json({"written": str(out)})
    else:
        echo(out)
    if show or (show is None and sys.stdout.isatty()):
        import webbrowser

        webbrowser.open(out.resolve().as_uri())
