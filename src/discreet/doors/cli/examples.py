"""`discreet examples`: a folder with everything that a first release needs, and the commands to type next."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.doors.cli.terminal import AsJson, echo, print_json
from discreet.values.errors import FormatError

if TYPE_CHECKING:
    from discreet.networks.network import Network

SEED = 1
"""The same rows on every machine, so that two people who follow the tutorial talk about the same table."""

README = """\
# A {rows:,}-row table to try discreet on

The rows are drawn from the textbook network "{name}". They are nobody's secret; treat them as if they were.

| file | what it is | who may see it |
|---|---|---|
| patients.csv | the table | nobody but you |
| schema.toml | which columns there are and what they may hold, declared and not read off the rows | everybody |
| graph.bif | what depends on what; its numbers are placeholders | everybody |

Run these here, in this folder:

    discreet budget init clinic.ledger --account clinic --epsilon 2
    discreet plan --schema schema.toml --graph graph.bif --epsilon 1
    discreet release patients.csv --schema schema.toml --graph graph.bif --epsilon 1 \\
        --ledger clinic.ledger --account clinic --out published
    discreet verify published/release.json --ledger clinic.ledger
    discreet query published/release.json "{question}"
    discreet synthesize published/release.json --rows 1000 --out published/synthetic.csv

Everything in the folder `published` may be published. Open `published/explorer.html` in a browser and click a bar;
`published/report.html` says what is promised.
"""
QUESTIONS = {
    "asia": "P(lung | smoke=yes, xray=yes)",
    "sachs": "P(Akt | PKA=LOW)",
    "child": "P(Disease | Age=0-3_days)",
    "alarm": "P(HYPOVOLEMIA | BP=LOW)",
}


def examples(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Where to write; made if there is none.")
    ] = Path("clinic"),
    name: Annotated[
        str, typer.Option(help="The network behind the rows: asia, sachs, child, alarm.")
    ] = "asia",
    rows: Annotated[int, typer.Option(help="How many rows the table gets.", min=1)] = 10_000,
    as_json: AsJson = False,
) -> None:
    """Write a ready-to-run folder: a table, its schema, a graph, and a README with the next commands."""
    from discreet.networks import examples as bundled

    written = write_example(bundled.load(name), name, folder, rows)
    if as_json:
        print_json({"written": [str(path) for path in written]})
        return
    for path in written:
        echo(path)
    echo(f"next: cd {folder} and follow README.md")


def write_example(network: Network, name: str, folder: Path, rows: int) -> list[Path]:
    """Write the files of an example; files of these names that hold something else are left alone and refused."""
    from discreet.networks.formats.bif import format_bif
    from discreet.values.files import make_folder, write_text
    from discreet.values.schema.formats.toml import write_toml

    texts = {
        "schema.toml": f"# What patients.csv may hold. All of it is public.\n{write_toml(network.schema)}",
        "graph.bif": format_bif(forget_numbers(network)),
        "README.md": README.format(rows=rows, name=name, question=QUESTIONS[name]),
    }
    table = folder / "patients.csv"
    others = [
        path for path in map(folder.joinpath, texts) if path.exists() and not _holds(path, texts[path.name])
    ]
    if table.exists() and not _holds(folder / "README.md", texts["README.md"]):
        others.append(table)  # somebody's own table, perhaps a real one
    if others:
        raise FormatError(
            f"{others[0]} already exists and is not part of this example; choose another folder"
        )
    make_folder(folder)
    for file, text in texts.items():
        write_text(folder / file, text)
    if not table.exists():
        network.sample(rows, rng=SEED).write(table)
    return [table, *(folder / file for file in texts)]


def _holds(path: Path, text: str) -> bool:
    try:
        return path.read_text("utf-8") == text
    except (OSError, UnicodeDecodeError):
        return False


def forget_numbers(network: Network) -> Network:
    """The same schema and graph with uniform tables: a graph that gives no answer away."""
    import numpy as np

    from discreet.networks.network import Network
    from discreet.values.table import Table

    uniform = (Table(cpt.axes, np.full(cpt.values.shape, 1.0 / cpt.values.shape[-1])) for cpt in network.cpts)
    return Network(network.schema, network.dag, tuple(uniform))
