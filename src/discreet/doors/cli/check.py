"""`discreet verify`, `compare` and `report`: whether a release adds up, what is between two, a page on it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.doors.cli.terminal import AsJson, echo, open_console, plain, print_json
from discreet.values.errors import DataError

if TYPE_CHECKING:
    from discreet.judge.comparison import NetworkDistance

Model = Annotated[str, typer.Argument(help="A release or network (.json) or BIF file.")]
Document = Annotated[Path, typer.Argument(metavar="RELEASE", help="A release document (.json).")]


def verify(
    release: Document,
    ledger: Annotated[
        str | None,
        typer.Option(metavar="LEDGER", help="Also compare the release with the ledger that paid for it."),
    ] = None,
    key: Annotated[
        Path | None,
        typer.Option(metavar="PUBLIC", help="Also check the signature, by the custodian's public key."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Recompute everything that follows from the published tables, and say what does not add up.

    Needs no rows, and without --ledger and --key only the document. Exit code 0 if all adds up, 1 if something does
    not or could not be checked (a ledger or key that was not given does not count), 2 if the file is not a release.
    """  # fmt: skip
    from discreet.doors.library import verify as run

    found = run(release, ledger, key=key)
    if as_json:
        print_json(found.to_json())
    else:
        echo(found)
    if not found.sound:
        raise typer.Exit(1)


def keys(
    private: Annotated[
        Path, typer.Argument(metavar="FILE", help="The private key to make; the public one gets .pub added.")
    ],
    as_json: AsJson = False,
) -> None:
    """Make a key to sign releases with: a private one, which only you may read, and a public one for everybody.

    Give readers the public key on another way than the releases, such as your web site.
    """
    from discreet.networks.formats.signature import make_keys

    public = make_keys(private)
    if as_json:
        print_json({"private": str(private), "public": str(public)})
    else:
        echo(f"private  {private}  (keep it; whoever has it can sign in your name)")
        echo(f"public   {public}  (publish it)")


def sign(
    release: Document,
    key: Annotated[Path, typer.Option(metavar="PRIVATE", help="Your private key, made by `discreet keys`.")],
    ledger: Annotated[
        str | None, typer.Option(metavar="LEDGER", help="First compare the release with this ledger.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Sign a release, so that everybody who has your public key can tell it from a forgery.

    The signature is written beside it, as RELEASE.sig; a release that does not add up is refused.
    """
    from discreet.doors.library import sign as run

    written = run(release, key, ledger=ledger)
    if as_json:
        print_json({"written": str(written)})
    else:
        echo(written)


def compare(
    one: Model,
    other: Model,
    rows: Annotated[
        bool,
        typer.Option(
            "--rows", help="Compare real rows with synthetic ones: two files of rows, for the custodian."
        ),
    ] = False,
    schema: Annotated[
        Path | None, typer.Option(metavar="FILE", help="With --rows: the schema of both files (.toml).")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="With --rows: write a page, which is private."),
    ] = None,
    predict: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="With --rows: the attribute to predict. [default: the last few]"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare two networks, or with --rows real rows with synthetic ones.

    Networks over the same attributes: conditionals by L1 and KL, marginals by total variation. Of two releases, such as
    last year's and this year's, also which probabilities differ by more than noise. Rows: marginals, pairs,
    missing values, rare levels, correlations, and prediction. That is computed from private rows without a budget, so
    it is for the custodian alone. A release that does not add up is refused.
    """
    if rows:
        _compare_rows(one, other, schema, out, predict, as_json)
        return
    if schema is not None or out is not None or predict is not None:
        raise DataError("--schema, --out and --predict are for rows; add --rows to compare two files of rows")
    from discreet.judge.comparison import compare as run
    from discreet.judge.publishing.differences import find_differences
    from discreet.judge.trust.doubt import read_with_doubt
    from discreet.networks.formats.release import Release, find_network

    sides = {path: read_with_doubt(path) for path in (one, other)}
    doubts = {path: doubt for path, (_, doubt) in sides.items() if doubt}
    before, after = sides[one][0], sides[other][0]
    found = run(find_network(before, one), find_network(after, other))
    changes = None
    if isinstance(before, Release) and isinstance(after, Release):
        changes = find_differences(before, after)
    if as_json:
        more = {"differences": changes and changes.to_json(), "not verified": doubts}
        print_json({**found.to_json(), **{key: value for key, value in more.items() if value}})
        return
    for path, doubt in doubts.items():
        echo(f"{path} is not verified: {doubt}. Whether its numbers are so, nobody can tell.")
    _print_distances(found)
    if changes is not None:
        echo(changes.explain())


def _compare_rows(
    one: str, other: str, schema: Path | None, out: Path | None, predict: str | None, as_json: bool
) -> None:
    from discreet.entrance import read_codes
    from discreet.judge.fidelity import compare_rows, make_fidelity_page
    from discreet.values.files import write_text
    from discreet.values.schema import Schema

    if schema is None:
        raise DataError("rows can only be compared with their schema; give it with --schema FILE.toml")
    known = Schema.read(schema)
    real, made = read_codes(one, known), read_codes(other, known)
    found = compare_rows(real, made, known, predict)
    if out is not None:
        write_text(out, make_fidelity_page(found, real, made, known))
    if as_json:
        print_json(found.to_json())
        return
    echo("For the custodian only: this is computed from private rows, and no budget paid for it.", err=True)
    echo(f"{found.rows[0]:,} real and {found.rows[1]:,} synthetic rows")
    worst = sorted(found.marginals.items(), key=lambda item: -item[1])
    for name, off in worst[:12]:
        echo(f"  {name}: marginals {off:.4f} apart (total variation)")
    if len(worst) > 12:
        echo(f"  … and {len(worst) - 12} more, all closer")
    if found.pairs:
        pair, off = max(found.pairs.items(), key=lambda item: item[1])
        echo(
            f"pairs: {sum(found.pairs.values()) / len(found.pairs):.4f} on average, most {' × '.join(pair)}: {off:.4f}"
        )
    for guess in found.predictions:
        echo(
            f"predicting {guess.target} by {guess.model}: {guess.from_synthetic:.3f} right if trained on synthetic "
            f"rows, {guess.from_real:.3f} on real ones; the most frequent level alone gets {guess.guess:.3f}"
        )
    if out is not None:
        echo(out)


def report(
    release: Document,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The page to write.")] = Path(
        "report.html"
    ),
    as_json: AsJson = False,
) -> None:
    """Write a report on a release as one HTML file that needs nothing else, for a browser or a printer.

    The release is checked first, as `discreet verify` does; one that does not add up is refused.
    """
    from discreet.judge.report import write_report
    from discreet.judge.trust.doubt import read_release_with_doubt

    known, doubt = read_release_with_doubt(release)
    write_report(known, out, doubt=doubt)
    if as_json:
        print_json({"written": str(out)})
    else:
        echo(out)


def _print_distances(found: NetworkDistance) -> None:
    from rich.table import Table

    console = open_console()
    table: Any = Table("attribute", box=None, pad_edge=False)
    for head in ("conditionals L1", "conditionals KL", "marginal TV"):
        table.add_column(head, justify="right")
    for node in found.nodes:
        cells = ["other parents" if value is None else f"{value:.4f}" for value in (node.l1, node.kl)]
        table.add_row(plain(node.name), *cells, f"{node.marginal:.4f}")
    console.print(table)
    worst = found.worst
    console.print(
        plain(
            f"marginals differ by a total variation (TV) of {found.mean_marginal:.4f} on average; "
            f"most for {worst.name}: {worst.marginal:.4f}"
        )
    )
