"""`discreet schema`: draft one from a file for review, and check one, alone or against a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.doors.cli.terminal import print_json

app = typer.Typer(
    help="The public declaration of a table. Example: discreet schema draft patients.csv --out schema.toml"
)


@app.command(epilog="Example: discreet schema draft patients.csv --out schema.toml")
def draft(
    file: Annotated[str, typer.Argument(metavar="FILE", help="CSV, Parquet, Arrow, or file.duckdb::table.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Write the draft here, not to the terminal."),
    ] = None,
    levels: Annotated[int, typer.Option(help="Columns with more values are cut into bins or left out.")] = 20,
) -> None:
    """Propose a schema by looking at the rows; every such guess is marked, for you to review."""
    from discreet.rows.draft import REVIEW, draft_schema
    from discreet.values.errors import FormatError
    from discreet.values.files import write_text

    if out is not None and out.exists():
        raise FormatError(
            f"{out} already exists, and a draft does not replace it; delete it, or choose another name"
        )
    found = draft_schema(file, most_levels=levels)
    schema, text = found.schema, found.format()
    if out is None:
        typer.echo(text, nl=False)
        return
    write_text(out, text)
    typer.echo(
        f"{out}: {len(schema)} of {len(found.proposals)} columns, {text.count(REVIEW)} guesses to review"
    )


@app.command(epilog="Example: discreet schema check schema.toml patients.csv")
def check(
    schema: Annotated[Path, typer.Argument(metavar="SCHEMA", help="A schema (.toml).")],
    data: Annotated[
        str | None,
        typer.Argument(
            metavar="DATA", help="Rows to check against it; any data that `discreet release` takes."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the schema as a JSON document.")] = False,
) -> None:
    """Check a schema, and with DATA whether every row fits it; says nothing about the rows but that they fit."""
    from discreet.values.schema import Schema

    declared = Schema.read(schema)
    if data is not None:
        from discreet.entrance import open_counter

        open_counter(data, declared).close()
    if as_json:
        print_json(declared.to_json())
        return
    for attribute in declared:
        typer.echo(f"{attribute.name}: {_list_levels(attribute.levels)}")
    guesses = count_guesses(schema)
    if guesses:
        typer.echo(f"{guesses} guesses of the draft are not reviewed yet")
    typer.echo("sound" if data is None else f"sound, and every row of {data} fits")


def count_guesses(schema: Path) -> int:
    """How many guesses of a draft are still marked in a schema file."""
    return schema.read_text("utf-8").count("review: this is public")


def _list_levels(levels: tuple[str, ...]) -> str:
    shown = ", ".join(levels[:8])
    return f"{len(levels)} levels: {shown}{', …' if len(levels) > 8 else ''}"
