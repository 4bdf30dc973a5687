"""`discreet plan` and `discreet release`: from a sensitive table to something that may be published."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from warnings import catch_warnings, simplefilter

import typer

from discreet.doors.cli.options.terms import Terms, take_terms
from discreet.doors.cli.terminal import AsJson, echo, print_json
from discreet.values.errors import BudgetError, BudgetWarning, PromiseWarning, SearchWarning

if TYPE_CHECKING:
    from fractions import Fraction

    from discreet.doors.release import Release
    from discreet.learning.greedy import Progress as Move
    from discreet.values.schema import Schema

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="CSV, Parquet or Arrow; file.duckdb::table; postgresql://user@host/database::table.",
    ),
]
SchemaFile = Annotated[
    Path, typer.Option("--schema", metavar="FILE", help="The schema (.toml): see `discreet schema draft`.")
]


@take_terms
def release(
    data: Data,
    ledger: Annotated[
        str, typer.Option(metavar="LEDGER", help="The ledger that pays: a file or an address.")
    ],
    account: Annotated[str, typer.Option(help="The dataset's account in the ledger.")],
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            metavar="PATH",
            help="A folder for document, BIF, report and explorer; or a .json file.",
        ),
    ],
    terms: Terms,
    schema: Annotated[
        Path | None,
        typer.Option("--schema", metavar="FILE", help="The schema (.toml): see `discreet schema draft`."),
    ] = None,
    plan_file: Annotated[
        Path | None,
        typer.Option(
            "--plan",
            metavar="FILE",
            help="A plan that several custodians share, in place of schema, graph and unit: see `discreet combine`.",
        ),
    ] = None,
    request: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            help="The same id gets the same release again, at no cost. [default: made from the question]",
        ),
    ] = None,
    create_ledger: Annotated[
        bool, typer.Option("--create-ledger", help="Make the ledger or the account if there is none.")
    ] = False,
    budget: Annotated[
        str | None,
        typer.Option(help='A new account\'s whole budget, e.g. "epsilon=2". [default: just this release]'),
    ] = None,
    accept_guesses: Annotated[
        bool,
        typer.Option(
            "--accept-guesses", help="Publish what a draft took from the rows, though nobody reviewed it."
        ),
    ] = False,
    memory: Annotated[str | None, typer.Option(help="Memory for counting, e.g. 512MB.")] = None,
    codes: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Keep the rows' codes there, so that the next release opens the same files faster. Private like the "
            "rows.",
        ),
    ] = None,
    about: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A .toml file with your own words: title, description, population, period, collection, contact, "
            "licence. They are published.",
        ),
    ] = None,
    witness: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="A file of anchors or a folder of releases, elsewhere: a ledger rolled back behind it is refused, and "
            "the new anchor is added.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Learn a network privately and write what may be published: the release document, BIF, a report, the explorer.

    The ledger is debited before a row is counted. If it was interrupted, run the same command again: it finishes, or
    gives you the same files, and pays nothing twice.
    """  # fmt: skip
    from discreet.doors.feasible import find_beside, plan_files
    from discreet.doors.release import read_reviewed, read_schema
    from discreet.doors.release import release as make_release
    from discreet.values.about import About
    from discreet.values.budget import read_budget

    whole = None if budget is None else read_budget(budget)
    words = None if about is None else About.read(about)
    plan_files(out)  # a place that cannot be written is refused before anything is spent
    declared: Schema | None = None
    if plan_file is None:
        if schema is None:
            raise BudgetError(
                "give the schema of the table with --schema FILE.toml, or a --plan that has one"
            )
        declared = read_schema(schema) if accept_guesses else read_reviewed(schema)
    elif schema is not None:
        raise BudgetError("a plan has its own schema: leave out --schema")
    asked = terms.read(declared)
    silent = create_ledger and terms.unit is None and terms.person is None
    if silent and declared is not None and _ask_about_people(data, declared, ledger, account):
        asked["unit"] = "add-remove"  # said, and not to be said again
    with (
        catch_warnings(),
        show_progress("counting, drawing noise, estimating") as progress,
    ):
        for kind in (PromiseWarning, SearchWarning, BudgetWarning):
            simplefilter("always", kind)
        warnings.showwarning = _tell  # at once: some of them are to be read before anything is paid
        made = make_release(
            data,
            declared,
            plan=plan_file,
            **asked,
            **terms.list_amounts(),
            ledger=ledger,
            account=account,
            budget=whole,
            create=create_ledger,
            request=request,
            memory=memory,
            codes=codes,
            progress=progress,
            about=words,
            witness=witness,
            beside=find_beside(out),
        )
        paths = made.write(out)
    if as_json:
        print_json(_describe(made, paths))
        return
    echo(made.promise)
    echo(made.describe_graph())
    _print_bill(made)
    for path in paths.values():
        echo(path)


@take_terms
def plan(
    schema: SchemaFile,
    terms: Terms,
    rows: Annotated[int, typer.Option(help="Your guess of the number of rows.", min=1)] = 10_000,
    question: Annotated[
        list[str] | None,
        typer.Option(
            metavar="QUESTION",
            help='Predict how wide the intervals of this answer would be, such as "P(lung | smoke)"; may be repeated.',
        ),
    ] = None,
    for_width: Annotated[
        tuple[float, str] | None,
        typer.Option(
            metavar="WIDTH QUESTION",
            help='Find the ε whose guaranteed intervals are no wider, such as 0.02 "P(lung | smoke)".',
        ),
    ] = None,
    write: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a plan that several custodians share; needs --custodians."),
    ] = None,
    custodians: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES", help="With --write: the custodians' accounts, such as north,south,west."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what a release would measure, with which noise, and how wrong it would be; nothing is read or spent."""
    from discreet.doors.library import buy_width
    from discreet.doors.library import plan as make_plan
    from discreet.doors.release import count_guesses, read_schema
    from discreet.judge.widths import predict_width

    declared = read_schema(schema)
    guesses = count_guesses(schema)
    if guesses:
        echo(
            f"warning: {schema} still has {guesses} guess{'es' * (guesses > 1)} that nobody has reviewed",
            err=True,
        )
    asked = terms.read(declared)
    if for_width is not None:
        given = {**terms.list_amounts(), "question": question}
        named = [f"--{option}" for option, value in given.items() if value]
        if named:
            raise BudgetError(f"--for-width finds the budget: leave out {', '.join(named)}")
        bought = buy_width(*for_width, declared, rows=rows, **asked)
        _print_bought(*for_width, bought, rows, as_json, searched=asked.get("graph") is None)
        return
    found = make_plan(declared, rows=rows, **asked, **terms.list_amounts())
    if write is not None or custodians is not None:
        from discreet.doors.publishing import agree

        if write is None or custodians is None or asked["options"]:
            raise BudgetError(
                "a shared plan needs --write FILE and --custodians north,south, and takes no options of a learner"
            )
        named = [name.strip() for name in custodians.split(",")]
        shared = {name: value for name, value in asked.items() if name not in ("learner", "options")}
        agree(named, declared, rows=rows, **shared, **terms.list_amounts()).write(write)
        echo(write)
        return
    widths = [predict_width(found, text) for text in question or []]
    if as_json:
        wide = {"widths": [width.to_json() for width in widths]} if widths else {}
        print_json({**found.to_json(), **wide})
    else:
        echo("\n".join([*map(str, widths), *([""] if widths else []), found.explain()]))


def _print_bought(
    width: float, question: str, epsilon: Fraction | None, rows: int, as_json: bool, *, searched: bool
) -> None:
    if as_json:
        print_json(
            {
                "question": question,
                "width": width,
                "rows": rows,
                "epsilon": None if epsilon is None else str(epsilon),
            }
        )
    elif epsilon is None:
        echo(f"no ε up to 16 buys intervals of width {width:g} for {question} with {rows:,} rows")
    else:
        together = " and the search measures its attributes together" if searched else ""
        echo(
            f"--epsilon {float(epsilon):g} buys guaranteed intervals of width {width:g} for {question} with {rows:,} "
            f"rows, if shares are about even{together}; nothing was read and nothing was spent"
        )


@contextmanager
def show_progress(what: str) -> Iterator[Move | None]:
    """A bar on a terminal, which a search moves and everything else leaves to pulse; nothing in a pipe."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)

        def move(done: int, total: int, last: str) -> None:
            bar.update(task, completed=done, total=total, description=f"found {last[:60]}")

        yield move


def _tell(message: Warning | str, *_: object, **__: object) -> None:
    echo(f"warning: {message}", err=True)


def _ask_about_people(data: str, schema: Schema, ledger: str, account: str) -> bool:
    """Whether somebody opens an account of rows on a table with repeated ids; they are asked if these are people's."""
    from discreet.doors.feasible import find_people

    message = find_people(data, schema.names, ledger, account)
    if message is None:
        return False
    echo(message, err=True)
    if sys.stdin.isatty() and not typer.confirm("Protect rows all the same?", err=True):
        raise typer.Abort
    return True


def _print_bill(made: Release) -> None:
    known, receipt = made.provenance, made.receipt
    assert receipt is not None
    if receipt.paid:
        part = receipt.amount is not None and receipt.amount <= known.cost and receipt.amount != known.cost
        before = f" (of {known.cost}; the rest was paid before)" if part else ""
        echo(f"paid {receipt.amount}{before}, learner {known.learner}, request {receipt.request}")
    else:
        echo(
            f"nothing was paid: request {receipt.request} was answered before, and these are the same bytes; "
            "for a new release, give another --request"
        )
    if receipt.revealed:
        echo("warning: rows of this account were looked at without noise; ε is infinite", err=True)


def _describe(made: Release, paths: dict[str, Path]) -> dict[str, Any]:
    known, receipt = made.provenance, made.receipt
    assert receipt is not None
    return {
        "request": receipt.request,
        "paid": receipt.paid,
        "learner": known.learner,
        "promise": made.promise,
        "cost": known.cost.to_json(),
        "unit": known.unit.value,
        "predicted error": dict(known.predicted_error),
        "files": {name: str(path) for name, path in paths.items()},
    }
