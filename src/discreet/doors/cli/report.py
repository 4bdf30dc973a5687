"""`discreet report`: a release as one page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from discreet.doors.cli.options import AsJson


def report(
    release: Annotated[Path, typer.Argument(metavar="RELEASE", help="A release document (.json).")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The page to write.")] = Path(
        "report.html"
    ),
    as_json: AsJson = False,
) -> None:
    """Write a report on a release as one HTML file that needs nothing else, for a browser or a printer."""
    from discreet.judge.report import write_report

    write_report(release, out)
    typer.echo(json.dumps({"written": str(out)}) if as_json else out)
