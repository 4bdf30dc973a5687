"""`discreet audit`: attack a release with every attack that fits it, and say what its promise is worth."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.doors.cli.terminal import AsJson, echo, open_console, plain, print_json
from discreet.values.errors import DataError

if TYPE_CHECKING:
    from discreet.judge.audit import Audit

WARNING = (
    "warning: {option} holds private rows, and no budget pays for what this audit says about them: "
    "keep its results to yourself."
)


def audit(
    release: Annotated[
        str,
        typer.Argument(
            metavar="RELEASE", help="A release or network (.json, .bif), or synthetic rows (.csv, .parquet)."
        ),
    ],
    members: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Rows behind the release: all, or a random sample. Private!"),
    ] = None,
    reference: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Rows of other people from the same population: what an attacker holds."
        ),
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Instead of both, one table: a trial release like this one is made of one half of it and attacked, "
            "and the other half is the reference. Private!",
        ),
    ] = None,
    schema: Annotated[
        str | None, typer.Option(metavar="FILE", help="The schema (.toml) of synthetic rows.")
    ] = None,
    graph: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="The graph of synthetic rows: BIF, a network, or arrows as text."),
    ] = None,
    epsilon: Annotated[str | None, typer.Option(help="The promised ε, if the release does not say.")] = None,
    delta: Annotated[str | None, typer.Option(help="The promised δ, together with --epsilon.")] = None,
    rho: Annotated[
        str | None, typer.Option(help="The promised ρ (zCDP), if the release does not say.")
    ] = None,
    person: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="The column with people's ids, if the release does not say."),
    ] = None,
    at_most: Annotated[
        int | None, typer.Option(help="How many rows of each person count, together with --person.")
    ] = None,
    complete: Annotated[
        bool,
        typer.Option("--complete", help="The members are ALL rows of the release: check its noise as well."),
    ] = False,
    errors: Annotated[
        str, typer.Option(metavar="LIST", help="Shares of strangers accused, at which power is stated.")
    ] = "0.001,0.01,0.05,0.1",
    confidence: Annotated[float, typer.Option(help="How sure every band and the verdict are.")] = 0.95,
    seed: Annotated[int, typer.Option(help="For splitting the reference rows and breaking ties.")] = 0,
    as_json: AsJson = False,
    html: Annotated[str | None, typer.Option(metavar="FILE", help="Write the audit as one page.")] = None,
    report: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Write the report on a release document with this audit in it."),
    ] = None,
    svg: Annotated[str | None, typer.Option(metavar="FILE", help="Write only the plot.")] = None,
) -> None:
    """Attack a release as an attacker would, and compare with what it promises.

    Exit code 0 if nothing speaks against it, 1 if its promise is broken or its members are exposed, 2 for bad input.
    """  # fmt: skip
    from discreet.doors.library import audit as run_audit
    from discreet.judge.report import write_report
    from discreet.judge.report_parts.audit_section import make_audit_page
    from discreet.judge.report_parts.power_plot import draw_audit, make_svg
    from discreet.judge.trust.doubt import read_release_with_doubt
    from discreet.values.budget import choose_budget
    from discreet.values.files import write_text

    levels = _read_levels(errors)
    stated = any(amount is not None for amount in (epsilon, delta, rho))
    promise = (
        choose_budget(epsilon=epsilon, delta=delta, rho=rho, what="give the promise as") if stated else None
    )
    # Read once, so that the report is of what was attacked, and told before the work, not after it.
    document, doubt = (None, "") if report is None else read_release_with_doubt(release)
    if members is not None or split is not None:
        echo(WARNING.format(option="--members" if split is None else "--split"), err=True)
    found = run_audit(
        document or release,
        members=members,
        reference=reference,
        split=split,
        schema=schema,
        graph=graph,
        promise=promise,
        person=person,
        at_most=at_most,
        complete=complete,
        errors=levels,
        confidence=confidence,
        rng=seed,
    )
    if document is not None:
        found = replace(found, name=Path(release).name)
    if as_json:
        print_json(found.to_json())
    else:
        _print_audit(found)
    if report is not None and document is not None:
        write_report(document, report, found, doubt=doubt)
    if html is not None:
        write_text(html, make_audit_page(found))
    if svg is not None:
        write_text(svg, make_svg(draw_audit(found)))
    if found.failed:
        raise typer.Exit(1)


def _read_levels(text: str) -> tuple[float, ...]:
    try:
        levels = tuple(float(part) for part in text.split(","))
    except ValueError:
        levels = ()
    if not levels or not all(0.0 < level < 1.0 for level in levels):
        raise DataError(
            f"--errors must be numbers between 0 and 1 with commas, such as 0.001,0.01, not {text!r}"
        )
    return levels


def _print_audit(found: Audit) -> None:
    from rich.table import Table

    console = open_console()
    first, *rest = found.explain()
    console.print(plain(first, style="bold red" if found.failed else "bold"), soft_wrap=True)
    for line in rest:
        console.print(plain(line), soft_wrap=True)
    heads, *lines = found.tabulate()
    table: Any = Table(*heads, box=None, pad_edge=False)
    for cells in lines:
        table.add_row(*map(plain, cells))
    console.print(plain(""))
    console.print(table)
    console.print(plain(found.describe_table(), style="dim"), soft_wrap=True)
