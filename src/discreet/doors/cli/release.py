"""`discreet plan` and `discreet release`: from a sensitive table to something that may be published."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.doors.cli.schema import count_guesses
from discreet.doors.cli.terminal import AsJson, AtMost, Person, print_json
from discreet.values.errors import MechanismError

if TYPE_CHECKING:
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
GraphFile = Annotated[
    Path | None,
    typer.Option(
        "--graph",
        metavar="FILE",
        help='BIF, a network (.json), or lines "smoke -> lung"; without it a graph is learned privately.',
    ),
]
Epsilon = Annotated[str | None, typer.Option(help="What this release may cost: ε, e.g. 1 or 1/2.")]
Delta = Annotated[str | None, typer.Option(help="δ, together with --epsilon.")]
Rho = Annotated[str | None, typer.Option(help="What this release may cost as ρ (zCDP), e.g. 1/8.")]
UnitName = Annotated[
    str | None,
    typer.Option(help="What is protected: add-remove or replace-one. [default: as the account says]"),
]
LearnerName = Annotated[
    str | None,
    typer.Option(
        help="With --graph: planned, independent or dependent. Without: adaptive or privbayes. "
        "[default: planned or adaptive]"
    ),
]
EncodingName = Annotated[
    str | None,
    typer.Option(
        "--encoding",
        help="What privbayes searches: vanilla, binary (bits of codes) or hierarchical (groups of the schema's "
        "taxonomies as parents). [default: vanilla]",
    ),
]
Required = Annotated[
    list[str] | None,
    typer.Option(
        "--require",
        metavar='"A -> B"',
        help="An arrow that privbayes must put into the graph; may be given several times.",
    ),
]
Forbidden = Annotated[
    list[str] | None,
    typer.Option(
        "--forbid",
        metavar='"A -> B"',
        help="An arrow that privbayes must leave out; may be given several times.",
    ),
]


def release(
    data: Data,
    schema: SchemaFile,
    ledger: Annotated[
        str, typer.Option(metavar="LEDGER", help="The ledger that pays: a file or an address.")
    ],
    account: Annotated[str, typer.Option(help="The dataset's account in the ledger.")],
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", metavar="PATH", help="A folder for document, BIF and report, or a .json file."
        ),
    ],
    graph: GraphFile = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Rho = None,
    unit: UnitName = None,
    person: Person = None,
    at_most: AtMost = None,
    learner: LearnerName = None,
    encoding: EncodingName = None,
    require: Required = None,
    forbid: Forbidden = None,
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
    memory: Annotated[str | None, typer.Option(help="Memory for counting, e.g. 512MB.")] = None,
    as_json: AsJson = False,
) -> None:
    """Learn a network privately and write what may be published: the release document, BIF, a report.

    The ledger is debited before a row is counted. If it was interrupted, run the same command again: it finishes, or
    gives you the same files, and pays nothing twice.
    """  # fmt: skip
    from discreet.doors.release import plan_files
    from discreet.doors.release import release as make_release
    from discreet.values.budget import read_budget

    whole = None if budget is None else read_budget(budget)
    plan_files(out)  # a place that cannot be written is refused before anything is spent
    declared = read_reviewed(schema)
    options = read_options(learner, declared, encoding, require, forbid)
    if create_ledger and unit is None and person is None:
        _ask_about_people(data, declared, ledger, account)
    with show_progress("counting, drawing noise, estimating") as progress:
        made = make_release(
            data,
            declared,
            graph,
            epsilon=epsilon,
            delta=delta,
            rho=rho,
            ledger=ledger,
            account=account,
            budget=whole,
            unit=unit,
            person=person,
            at_most=at_most,
            create=create_ledger,
            learner=learner,
            options=options,
            request=request,
            memory=memory,
            progress=progress,
        )
        paths = made.write(out)
    if as_json:
        print_json(_describe(made, paths))
        return
    typer.echo(made.promise)
    _print_bill(made)
    for path in paths.values():
        typer.echo(path)


def plan(
    schema: SchemaFile,
    graph: GraphFile = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Rho = None,
    unit: UnitName = None,
    person: Person = None,
    at_most: AtMost = None,
    learner: LearnerName = None,
    encoding: EncodingName = None,
    require: Required = None,
    forbid: Forbidden = None,
    rows: Annotated[int, typer.Option(help="Your guess of the number of rows.", min=1)] = 10_000,
    as_json: AsJson = False,
) -> None:
    """Show what a release would measure, with which noise, and how wrong it would be; nothing is read or spent."""
    from discreet.doors.library import plan as make_plan

    declared = read_reviewed(schema)
    options = read_options(learner, declared, encoding, require, forbid)
    found = make_plan(
        declared,
        graph,
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        rows=rows,
        unit=unit,
        person=person,
        at_most=at_most,
        learner=learner,
        options=options,
    )
    if as_json:
        print_json(found.to_json())
    else:
        typer.echo(found.explain())


def read_options(
    learner: str | None,
    schema: Schema,
    encoding: str | None,
    require: list[str] | None,
    forbid: list[str] | None,
) -> dict[str, Any]:
    """The options of the learner; what cannot be meant is refused before a ledger is opened."""
    from discreet.learning.parent_sets import Knowledge
    from discreet.networks.formats.edges import parse_arrows
    from discreet.values.schema.encoding import Encoding

    given = {"--encoding": encoding, "--require": require, "--forbid": forbid}
    named = [option for option, value in given.items() if value]
    if named and learner != "privbayes":
        raise MechanismError(f"{named[0]} works only with --learner privbayes")
    encoded = Encoding.of(encoding or "vanilla", schema)
    required = parse_arrows(require or (), schema, "--require")
    forbidden = parse_arrows(forbid or (), schema, "--forbid")
    Knowledge.read(encoded, required, forbidden, order=None, start=None)
    asked = {"encoding": encoding, "required": required, "forbidden": forbidden}
    return {name: value for name, value in asked.items() if value}


def read_reviewed(schema: Path) -> Schema:
    """The schema in a file, with a warning on the terminal if guesses of a draft are still in it."""
    from discreet.values.schema import Schema

    declared = Schema.read(schema)
    guesses = count_guesses(schema)
    if guesses:
        typer.echo(
            f"warning: {schema} still has {guesses} guesses of the draft that nobody has reviewed", err=True
        )
    return declared


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


def _ask_about_people(data: str, schema: Schema, ledger: str, account: str) -> None:
    """Whoever opens an account of rows on a table with repeated ids is asked once whether these are people's."""
    from discreet.entrance import has_account
    from discreet.rows.draft import find_repeated_id

    if "::" in data or has_account(ledger, account):
        return
    column = find_repeated_id(data, schema.names)
    if column is None:
        return
    typer.echo(
        f"The column {column!r} repeats. If it names people, somebody has several rows, and a promise about rows "
        f"protects them less. To protect people, use --person {column} --at-most 4 (or another number of rows).",
        err=True,
    )
    if sys.stdin.isatty() and not typer.confirm("Protect rows all the same?", err=True):
        raise typer.Abort


def _print_bill(made: Release) -> None:
    known, receipt = made.provenance, made.receipt
    assert receipt is not None
    if receipt.paid:
        typer.echo(f"paid {known.cost}, learner {known.learner}, request {receipt.request}")
    else:
        typer.echo(
            f"nothing was paid: request {receipt.request} was answered before, and these are the same bytes; "
            "for a new release, give another --request"
        )
    if receipt.revealed:
        typer.echo("warning: rows of this account were looked at without noise; ε is infinite", err=True)


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
