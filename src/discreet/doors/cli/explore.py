"""`discreet explore`: a network as a page that people can touch."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.doors.cli.terminal import AsJson, print_json
from discreet.values.errors import FormatError

if TYPE_CHECKING:
    from discreet.networks.formats.release import Release


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
    from discreet.networks.formats.release import Release, find_document, read

    found = Path(find_document(file))
    model = read(found)
    if isinstance(model, Release):
        _require_sound(model, found)
    report = out.parent / "report.html"
    beside = isinstance(model, Release) and report.exists() and out.parent.resolve() == found.parent.resolve()
    write_explorer(model, out, file=found.name, report=report.name if beside else None)
    if as_json:
        print_json({"written": str(out)})
    else:
        typer.echo(out)
    if show or (show is None and sys.stdout.isatty()):
        import webbrowser

        webbrowser.open(out.resolve().as_uri())


def _require_sound(release: Release, path: Path) -> None:
    from discreet.judge.verify import verify

    problem = next((check for check in verify(release).checks if check.holds is False), None)
    if problem is not None:
        raise FormatError(
            f"{path} does not add up ({problem.name}: {problem.words}); see: discreet verify {path}"
        )
