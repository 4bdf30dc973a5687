"""`discreet schema draft`: propose a schema from a table, for review, or for a part of the budget without a look."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.doors.cli.terminal import AtMost, Person, echo
from discreet.values.errors import BudgetError, FormatError

if TYPE_CHECKING:
    from discreet.rows.draft.profile import Told


def draft(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="CSV (also 'file.csv?separator=;&decimal=,&encoding=cp1252&header=2&unit=€'), Parquet file or folder, "
            "Arrow, .jsonl, .xlsx (also file.xlsx::sheet), .dta, .sas7bdat, file.duckdb::table.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Write the draft here, not to the terminal."),
    ] = None,
    levels: Annotated[
        int, typer.Option(help="A text keeps at most so many frequent values; the rest are one level.")
    ] = 50,
    at_least: Annotated[
        int,
        typer.Option(
            "--at-least", metavar="N", help="Write nothing that fewer rows (or people) than N hold."
        ),
    ] = 10,
    person: Person = None,
    epsilon: Annotated[
        str | None, typer.Option(help="Draft privately for this ε: the rows are seen through noise only.")
    ] = None,
    delta: Annotated[
        str | None, typer.Option(help="δ, together with --epsilon: finds levels of texts.")
    ] = None,
    rho: Annotated[str | None, typer.Option(help="Draft privately for this ρ (zCDP).")] = None,
    ledger: Annotated[
        str | None, typer.Option(metavar="LEDGER", help="The ledger that pays for a private draft.")
    ] = None,
    account: Annotated[str | None, typer.Option(help="The dataset's account in the ledger.")] = None,
    create_ledger: Annotated[
        bool, typer.Option("--create-ledger", help="Make the ledger or the account if there is none.")
    ] = False,
    budget: Annotated[
        str | None, typer.Option(help='A new account\'s whole budget, e.g. "epsilon=2, delta=1e-6".')
    ] = None,
    at_most: AtMost = None,
    request: Annotated[
        str | None, typer.Option(metavar="ID", help="The same id gets the same draft again, at no cost.")
    ] = None,
) -> None:
    """Propose a schema by looking at the rows, every guess marked for review; or, with --epsilon, privately.

    A private draft is paid from the ledger like a release. What it says may be published as it is.
    """
    from discreet.rows.draft import draft_schema
    from discreet.values.files import write_text

    require_new(out)
    if epsilon is not None or rho is not None:
        if ledger is None or account is None:
            raise BudgetError("a private draft is paid for: give --ledger and --account, as for a release")
        from discreet.doors.private_draft import draft_privately
        from discreet.doors.release import read_whole

        made = draft_privately(
            file,
            epsilon=epsilon,
            delta=delta,
            rho=rho,
            ledger=ledger,
            account=account,
            budget=read_whole(budget),
            person=person,
            at_most=at_most,
            create=create_ledger,
            request=request,
        )
        if out is None:
            echo(made.format(), nl=False)
            return
        made.write(out)
        echo(f"{out}: {len(made.schema)} columns for {made.cost}, request {made.request}")
        for name, why in made.left_out.items():
            echo(f"{name!r} is left out: {why}")
        return
    stray = {
        "--delta": delta,
        "--ledger": ledger,
        "--account": account,
        "--budget": budget,
        "--at-most": at_most,
    }
    given = next((option for option, value in stray.items() if value is not None), None)
    if given is not None:
        raise BudgetError(f"{given} goes with a private draft only: give --epsilon too")
    with show_columns() as told:
        found = draft_schema(file, most_levels=levels, least=at_least, person=person, progress=told)
    schema, text = found.schema, found.format()
    if out is None:
        echo(text, nl=False)
        return
    write_text(out, text)
    left = [proposal for proposal in found.proposals if proposal.attribute is None]
    guesses = f"{found.guesses} guess{'es' * (found.guesses != 1)}"
    echo(f"{out}: {len(schema)} of {len(found.proposals)} columns, {guesses} to review")
    if found.hint:
        echo(f"{found.label}: {found.hint}")
    for proposal in left:
        echo(proposal.notes[0])
    for dependence in found.dependences:
        echo(f"{dependence.column!r} follows from {dependence.source!r}, and is not measured")
    if found.repeated is not None:
        echo(
            f"The column {found.repeated!r} repeats. If it names people, draft again with --person {found.repeated}, "
            f"and release with --person {found.repeated} --at-most 4."
        )


def require_new(out: Path | None) -> None:
    """Refuse to write over a schema that somebody may have reviewed."""
    if out is not None and out.exists():
        raise FormatError(
            f"{out} already exists, and a draft does not replace it; delete it, or choose another name"
        )


@contextmanager
def show_columns() -> Iterator[Told | None]:
    """A bar on a terminal that moves with every column; nothing in a pipe."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("looking at columns", total=None)

        def move(done: int, total: int, last: str) -> None:
            bar.update(task, completed=done, total=total, description=last[:40])

        yield move
