"""`discreet statement`, `catalog` and `combine`: releases for others, beside others, and of several custodians."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.doors.cli.check import Document
from discreet.doors.cli.terminal import AsJson, echo, escape_json, print_json
from discreet.values.errors import DataError


def statement(
    release: Document,
    about: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="A .toml file with your own words, in place of those in the release."
        ),
    ] = None,
    form: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="text|registry|croissant|json-ld",
            help="A page, a record for OpenDP's registry of deployments, or metadata for catalogues of datasets.",
        ),
    ] = "text",
    rows: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="With croissant: a file of synthetic rows to describe as well."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print what a release claims about privacy, on one page, point by point as NIST SP 800-226 asks.

    What only the custodian knows comes from `discreet release --about FILE`, or from --about here; a point that is
    still open is listed, and a format that cannot do without it is refused. So is a release that does not add up.
    """  # fmt: skip
    from discreet.doors.publishing import describe

    if rows is not None and form != "croissant":
        raise DataError("--rows goes with --format croissant only")
    text = describe(release, "json" if as_json else form, about=about, rows=rows)
    echo(escape_json(text) if as_json or form != "text" else text)


def combine(
    parts: Annotated[
        list[Path],
        typer.Argument(metavar="PART...", help="The custodians' releases, made by one shared plan."),
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="PATH", help="A folder for all files, or a .json file.")
    ],
    disjoint: Annotated[
        bool, typer.Option("--disjoint", help="The custodians' word that nobody is in two of the tables.")
    ] = False,
    without: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A custodian of the plan who dropped out; may be repeated."),
    ] = None,
    key: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="PUBLIC",
            help="A custodian's public key; with keys every part must be signed, each by another one.",
        ),
    ] = None,
    about: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A .toml file with your own words; they are published."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Add up what several custodians have measured by one plan: one network, with intervals and promises of the sum.

    Make the plan with `discreet plan --write plan.json --custodians north,south`; each custodian measures its own rows
    with `discreet release --plan plan.json`. Parts are verified first; a forged, doubled or missing one is refused.
    """
    from discreet.doors.feasible import plan_files
    from discreet.doors.publishing import combine as run

    plan_files(out)
    made = run(parts, disjoint=disjoint, without=without or (), keys=key or (), about=about)
    paths = made.write(out)
    if as_json:
        print_json({"promise": made.promise, "files": {name: str(path) for name, path in paths.items()}})
        return
    echo(made.promise)
    echo(made.describe_graph())
    for path in paths.values():
        echo(path)


def catalog(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="A folder with releases, or folders of them.")
    ],
    title: Annotated[str, typer.Option(help="The heading of the page.")] = "Private releases",
    ledger: Annotated[
        str | None,
        typer.Option(metavar="LEDGER", help="Also compare with this ledger, and list what else it paid for."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write an index page of all releases in a folder: a static site that can be hosted as it is.

    For each release the promise, the explorer, the report, a statement, the files and their checksums. One that does
    not add up is refused, and so is one with a page that discreet did not make of it.
    """
    from contextlib import ExitStack

    from discreet.entrance import open_ledger
    from discreet.judge.publishing.catalog import write_catalog

    with ExitStack() as stack:
        opened = None if ledger is None else stack.enter_context(open_ledger(ledger))
        found = write_catalog(folder, title, opened)
    if as_json:
        releases = [{"title": entry.title, "document": str(entry.path)} for entry in found.entries]
        print_json(
            {
                "releases": releases,
                "beside": list(found.beside),
                "written": [str(path) for path in found.written],
            }
        )
        return
    for path in found.written:
        echo(path)
    for line in found.beside:
        echo(f"paid for, and not listed: {line}", err=True)
    for path in found.strange:
        echo(f"warning: {path} is no part of a release, but whoever hosts the folder publishes it", err=True)
