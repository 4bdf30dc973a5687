"""`discreet audit`: attack a release with every attack that fits it, and say what its promise is worth."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.doors.options import AsJson
from discreet.values.errors import BudgetError, DataError

if TYPE_CHECKING:
    from discreet.judge.attacks.subject import Subject
    from discreet.judge.audit import Audit
    from discreet.values.budget import Finite

WARNING = (
    "warning: --members holds private rows. They are read here outside the airlock, and no budget pays for what "
    "this report says about them: keep it to yourself."
)


def audit(
    release: Annotated[
        str,
        typer.Argument(
            metavar="RELEASE", help="A release or network (.json, .bif), or synthetic rows (.csv, .parquet)."
        ),
    ],
    members: Annotated[
        str, typer.Option(metavar="FILE", help="Rows behind the release: all, or a random sample. Private!")
    ],
    reference: Annotated[
        str,
        typer.Option(
            metavar="FILE", help="Rows of other people from the same population: what an attacker holds."
        ),
    ],
    schema: Annotated[
        str | None, typer.Option(metavar="FILE", help="The schema (.toml) of synthetic rows.")
    ] = None,
    graph: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="A network (.json, .bif) whose graph is fitted to synthetic rows."),
    ] = None,
    epsilon: Annotated[str | None, typer.Option(help="The promised ε, if the release does not say.")] = None,
    delta: Annotated[str | None, typer.Option(help="The promised δ, together with --epsilon.")] = None,
    rho: Annotated[
        str | None, typer.Option(help="The promised ρ (zCDP), if the release does not say.")
    ] = None,
    complete: Annotated[
        bool,
        typer.Option("--complete", help="The members are ALL rows of the release: check its noise as well."),
    ] = False,
    errors: Annotated[
        str, typer.Option(metavar="LIST", help="Error levels at which power is stated.")
    ] = "0.001,0.01,0.05,0.1",
    confidence: Annotated[float, typer.Option(help="Of every band and of the verdict.")] = 0.95,
    seed: Annotated[int, typer.Option(help="Splits the reference and breaks ties.")] = 0,
    as_json: AsJson = False,
    html: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write a page with a plot; needs matplotlib.")
    ] = None,
    report: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Write the whole report on a release document, with this audit."),
    ] = None,
    svg: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write the plot alone; needs matplotlib.")
    ] = None,
) -> None:
    """Attack a release as an attacker would, and compare with what it promises.

    Exit code 0 if nothing speaks against it, 1 if its promise is broken or its members are exposed, 2 for bad input.
    """  # fmt: skip
    from discreet.judge.attacks.subject import read_codes
    from discreet.judge.audit import Outcome
    from discreet.judge.audit import audit as run_audit
    from discreet.judge.audit_plots import draw_audit, load_pyplot, write_page
    from discreet.judge.report import write_report
    from discreet.networks.formats.release import read_release
    from discreet.values.files import write_text

    levels, promise = _read_levels(errors), _read_promise(epsilon, delta, rho)
    if not 0.5 <= confidence < 1.0:
        raise DataError(f"--confidence lies between 0.5 and 1, not at {confidence:g}")
    if html or svg:
        load_pyplot()  # a missing package is told before the work, not after it
    subject = _read_release(release, schema, graph, promise)
    document = None if report is None else read_release(release)
    typer.echo(WARNING, err=True)
    found = run_audit(
        subject,
        read_codes(members, subject.schema),
        read_codes(reference, subject.schema),
        complete=complete,
        errors=levels,
        confidence=confidence,
        rng=seed,
    )
    if as_json:
        typer.echo(json.dumps(found.to_json(), indent=2, ensure_ascii=False))
    else:
        _print_audit(found)
    if report is not None and document is not None:
        write_report(document, report, found)
    if html or svg:
        complexity = None if subject.dag is None else subject.dag.complexity(subject.schema.sizes)
        plot = draw_audit(found, complexity)
        if svg:
            write_text(svg, plot)
        if html:
            write_text(html, write_page(found, plot))
    if found.outcome in (Outcome.BROKEN, Outcome.EXPOSED):
        raise typer.Exit(1)


def _read_release(path: str, schema: str | None, graph: str | None, promise: Finite | None) -> Subject:
    from dataclasses import replace

    from discreet.judge.attacks.subject import read_subject
    from discreet.values.schema import Schema

    dag = None if graph is None else read_subject(graph).dag
    subject = read_subject(path, schema=None if schema is None else Schema.read(schema), dag=dag)
    if promise is None:
        return subject
    if subject.promise is not None and subject.promise != promise:
        raise BudgetError(f"{Path(path).name} itself promises {subject.promise}; leave the amount out")
    return replace(subject, promise=promise)


def _read_levels(text: str) -> tuple[float, ...]:
    try:
        levels = tuple(float(part) for part in text.split(","))
    except ValueError:
        levels = ()
    if not levels or not all(0.0 < level < 1.0 for level in levels):
        raise DataError(
            f"--errors are numbers between 0 and 1 separated by commas, such as 0.001,0.01, not {text!r}"
        )
    return levels


def _read_promise(epsilon: str | None, delta: str | None, rho: str | None) -> Finite | None:
    from discreet.values.budget import ZCDP, ApproxDP, PureDP

    if rho is not None and epsilon is None and delta is None:
        return ZCDP(rho)
    if epsilon is not None and rho is None:
        return PureDP(epsilon) if delta is None else ApproxDP(epsilon, delta)
    if epsilon is None and delta is None and rho is None:
        return None
    raise BudgetError("a promise is --epsilon, or --epsilon with --delta, or --rho alone")


def _print_audit(found: Audit) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from discreet.judge.audit import Outcome
    from discreet.judge.audit_plots import describe_table, tabulate

    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=160)  # a pipe has no width to fit
    first, *rest = found.explain()
    style = "bold red" if found.outcome in (Outcome.BROKEN, Outcome.EXPOSED) else "bold"
    console.print(Text(first, style=style))
    for line in rest:
        console.print(Text(line))
    heads, *cells = tabulate(found)
    table: Any = Table(*heads, box=None, pad_edge=False)
    for row in cells:
        table.add_row(*map(Text, row))
    console.print(Text(""))
    console.print(table)
    console.print(Text(describe_table(found), style="dim"))
