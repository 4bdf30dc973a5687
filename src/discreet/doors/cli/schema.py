"""`discreet schema`: draft one from a file for review, and check one, alone or against a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.doors.cli.draft import draft
from discreet.doors.cli.terminal import echo, print_json

if TYPE_CHECKING:
    from discreet.values.schema import Schema

app = typer.Typer(
    help="The public declaration of a table. Example: discreet schema draft patients.csv --out schema.toml"
)


app.command(epilog="Example: discreet schema draft patients.csv --out schema.toml")(draft)


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
    values: Annotated[
        bool, typer.Option("--values", help="List values that do not fit, also if a release refuses none.")
    ] = False,
) -> None:
    """Check a schema, and with DATA whether every row fits it.

    What does not fit is listed at once, with counts and with the line that would mend it: for the custodian only. Of a
    schema that says for each attribute what becomes of values outside it, nothing is refused, and nothing of the rows
    is shown but with --values.
    """
    from discreet.doors.release import count_guesses
    from discreet.values.errors import DataError
    from discreet.values.schema import Schema

    if data is not None and data.endswith(".toml") and schema.suffix != ".toml":
        raise DataError(f"the schema comes first: discreet schema check {data} {schema}")
    declared = Schema.read(schema)
    refused = _list_misfits(data, declared, values) if data is not None else 0
    if refused:
        raise DataError(
            f"{data}: values of {refused} {'attributes' if refused > 1 else 'attribute'} do not fit {schema}; "
            "a release would refuse them"
        )
    if data is not None:
        from discreet.entrance import open_counter

        open_counter(data, declared).close()
    if as_json:
        print_json(declared.to_json())
        return
    for attribute in declared:
        echo(f"{attribute.name}: {_list_levels(attribute.levels)}")
    guesses = count_guesses(schema)
    if guesses:
        one = guesses == 1
        echo(
            f"{guesses} {'guess' if one else 'guesses'} of the draft {'is' if one else 'are'} not reviewed yet"
        )
    if declared.total:
        echo("total: every attribute says what becomes of values outside it, so no row is refused")
    echo("sound" if data is None or declared.total else f"sound, and every row of {data} fits")


def _list_misfits(data: str, schema: Schema, values: bool) -> int:
    """Print what does not fit, and count the attributes of which a release would refuse some values."""
    if "://" in data:
        return 0  # a database says itself which value it refuses
    from discreet.rows.misfits import find_misfits
    from discreet.values.text import show

    refused = [] if schema.total else find_misfits(data, schema) or []
    for found in (find_misfits(data, schema, outside=True) or []) if values else refused:
        name, many = found.attribute.name, "s" * (found.rows > 1)
        echo(f"[attributes.{name}]  # {found.rows:,} row{many} outside; {found.fate}")
        for one in found.values:
            echo(f"  {show(one.value)} in {one.rows:,} row{'s' * (one.rows > 1)}: {one.mend}")
        rest = found.rows - sum(one.rows for one in found.values)
        if rest:
            echo(f"  other values in {rest:,} rows")
    return len(refused)


def _list_levels(levels: tuple[str, ...]) -> str:
    shown = ", ".join(levels[:8])
    return f"{len(levels)} levels: {shown}{', …' if len(levels) > 8 else ''}"
