"""`discreet plan` and `discreet release`: from a sensitive table to something that may be published."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.doors.options import AsJson, read_amount
from discreet.doors.printing import print_json
from discreet.values.errors import FormatError, MechanismError

if TYPE_CHECKING:
    from discreet.doors.publication import Publication
    from discreet.learn.greedy import Progress as Move
    from discreet.networks.formats.release import Release
    from discreet.values.graph import DAG
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
        help="With a graph planned, independent or dependent; without one adaptive or privbayes. "
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
        help="An arrow that privbayes must put into the graph, because you know it; may be given several times.",
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
        typer.Option("--out", "-o", metavar="PATH", help="A folder for everything, or a .json file for one."),
    ],
    graph: GraphFile = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Rho = None,
    unit: UnitName = None,
    learner: LearnerName = None,
    encoding: EncodingName = None,
    require: Required = None,
    forbid: Forbidden = None,
    request: Annotated[
        str | None,
        typer.Option(
            metavar="ID", help="Asking again under one id costs nothing. [default: from the question]"
        ),
    ] = None,
    create_ledger: Annotated[
        bool, typer.Option("--create-ledger", help="Make the ledger or the account if it is not there.")
    ] = False,
    budget: Annotated[
        str | None,
        typer.Option(help='A new account\'s whole budget, e.g. "epsilon=2". [default: just this release]'),
    ] = None,
    memory: Annotated[str | None, typer.Option(help="Memory for counting, e.g. 512MB.")] = None,
    as_json: AsJson = False,
) -> None:
    """Learn a network privately and write what may be published: the release document, BIF, a report.

    The budget is debited before a row is counted. Interrupted, run the same command again: it finishes, or hands
    out the same bytes, and pays nothing twice.
    """  # fmt: skip
    from discreet.doors.publication import publish
    from discreet.values.budget import read_budget

    spend = read_amount("say what the release may cost:", epsilon, delta, rho)
    whole = None if budget is None else read_budget(budget)
    paths = plan_files(out)
    declared, dag = read_question(schema, graph)
    options = read_options(learner, declared, encoding, require, forbid)
    with show_progress("counting, drawing noise, estimating") as progress:
        made = publish(
            data,
            declared,
            dag,
            spend=spend,
            ledger=ledger,
            account=account,
            learner=learner,
            options=options,
            request=request,
            budget=whole,
            unit=unit,
            create=create_ledger,
            memory=memory,
            progress=progress,
        )
        write_files(made.release, paths)
    if as_json:
        print_json(_describe(made, paths))
        return
    typer.echo(made.release.promise)
    _print_bill(made)
    for path in paths.values():
        typer.echo(path)


def plan(
    data: Data,
    schema: SchemaFile,
    graph: GraphFile = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Rho = None,
    unit: UnitName = None,
    learner: LearnerName = None,
    encoding: EncodingName = None,
    require: Required = None,
    forbid: Forbidden = None,
    rows: Annotated[
        int, typer.Option(help="Your guess of the number of rows; DATA itself is not looked at.", min=1)
    ] = 10_000,
    as_json: AsJson = False,
) -> None:
    """Show what a release would measure, with which noise, and how wrong it would be; nothing is read or spent."""
    from discreet.judge.preview import rehearse

    spend = read_amount("say what the release may cost:", epsilon, delta, rho)
    declared, dag = read_question(schema, graph)
    options = read_options(learner, declared, encoding, require, forbid)
    found = rehearse(
        declared, dag, spend=spend, unit=unit or "add-remove", learner=learner, rows=rows, options=options
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
    from discreet.learn.parent_sets import Knowledge
    from discreet.networks.formats.edges import parse_arrows
    from discreet.values.schema.encoding import Encoding

    given = {"--encoding": encoding, "--require": require, "--forbid": forbid}
    named = [option for option, value in given.items() if value]
    if named and learner != "privbayes":
        raise MechanismError(
            f"{named[0]} is for --learner privbayes, not for {learner or 'the default learner'}"
        )
    encoded = Encoding.of(encoding or "vanilla", schema)
    required = parse_arrows(require or (), schema, "--require")
    forbidden = parse_arrows(forbid or (), schema, "--forbid")
    Knowledge.read(encoded, required, forbidden, order=None, start=None)
    asked = {"encoding": encoding, "required": required, "forbidden": forbidden}
    return {name: value for name, value in asked.items() if value}


def read_question(schema: Path, graph: Path | None) -> tuple[Schema, DAG | None]:
    """The schema and the graph in these files, the nodes in the order of the schema."""
    from discreet.networks.formats.reading import read_graph
    from discreet.values.schema import Schema

    declared = Schema.read(schema)
    guesses = schema.read_text("utf-8").count("review: this is public")
    if guesses:
        typer.echo(
            f"warning: {guesses} guesses in {schema} came from rows and are not reviewed yet", err=True
        )
    return declared, None if graph is None else read_graph(graph, declared)


def plan_files(out: Path) -> dict[str, Path]:
    """Where each part of a release goes; a place that cannot be written is refused before anything is spent."""
    single = "".join(out.suffixes[-2:]).endswith((".json", ".json.gz"))
    parent = out.parent if single or not out.exists() else out
    if single and out.is_dir():
        raise FormatError(f"{out} is a folder; name a file, or a folder without .json at its end")
    if not single and out.exists() and not out.is_dir():
        raise FormatError(f"{out} is a file; name a folder, or a file that ends in .json")
    if not parent.is_dir():
        raise FormatError(f"{parent}: there is no such folder")
    if not os.access(parent, os.W_OK):
        raise FormatError(f"{parent}: files cannot be written there")
    if single:
        return {"release": out}
    return {"release": out / "release.json", "network": out / "network.bif", "report": out / "report.html"}


def write_files(made: Release, paths: dict[str, Path]) -> None:
    """Write every part, each all or nothing; the document comes last, so that where it is, the rest is."""
    from discreet.networks.formats.release import write_release

    if "report" in paths:
        from discreet.judge.report import write_report

        paths["release"].parent.mkdir(exist_ok=True)
        made.network.write_bif(paths["network"])
        write_report(made, paths["report"])
    write_release(made, paths["release"])


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


def _print_bill(made: Publication) -> None:
    from discreet.values.budget import budget_from_json

    cost = budget_from_json(json.loads(made.release.provenance.cost))
    if made.paid:
        typer.echo(f"paid {cost}, learner {made.release.provenance.learner}, request {made.request}")
    else:
        typer.echo(
            f"nothing was paid: request {made.request} was answered before, and these are the same bytes; "
            "another --request makes a new release"
        )
    if made.revealed:
        typer.echo("warning: rows of this account were looked at without noise; ε is infinite", err=True)


def _describe(made: Publication, paths: dict[str, Path]) -> dict[str, Any]:
    known = made.release.provenance
    return {
        "request": made.request,
        "paid": made.paid,
        "learner": known.learner,
        "promise": made.release.promise,
        "cost": json.loads(known.cost),
        "unit": known.unit,
        "predicted error": dict(known.predicted_error),
        "files": {name: str(path) for name, path in paths.items()},
    }
