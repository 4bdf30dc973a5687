"""The command line: an assembly of sub-commands, each of them a thin call into the library."""

from __future__ import annotations

import functools
import io
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from discreet.doors.cli import (
    INTERRUPTED,
    ask,
    audit,
    budget,
    check,
    credal,
    examples,
    explore,
    publish,
    release,
    schema,
)
from discreet.doors.cli.options import manual
from discreet.doors.cli.terminal import echo
from discreet.doors.limits import MEGABYTES_NAME
from discreet.values.errors import DiscreetError
from discreet.values.text import show_line

FINE, BAD_INPUT = 0, 2

TRACEBACK = "DISCREET_TRACEBACK"
"""Set in the environment, an error that nobody foresaw shows where it happened."""

app = typer.Typer(
    name="discreet",
    help="Publish what a sensitive table knows, and not who is in it.",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(budget.app, name="budget")
app.add_typer(schema.app, name="schema")
app.add_typer(credal.app, name="credal")
app.command(epilog="Example: discreet examples clinic")(examples.examples)
app.command(epilog="Example: discreet plan --schema schema.toml --graph graph.bif --epsilon 1 --rows 5000")(
    release.plan
)
app.command(
    epilog="Example: discreet release patients.csv --schema schema.toml --graph graph.bif --epsilon 1 "
    "--ledger clinic.ledger --account clinic --out published"
)(release.release)
app.command(
    epilog='Example: discreet query release.json "P(lung | smoke=yes)" "MPE(dysp=yes)" --interval calibrated'
)(ask.query)
app.command(
    epilog="Example: discreet synthesize asia.json --rows 10000 --seed 7 --given smoke=yes --out rows.csv"
)(ask.synthesize)
app.command(epilog="Example: discreet explore published/release.json")(explore.explore)
app.command(epilog="Example: discreet report published/release.json --out report.html")(check.report)
app.command(epilog="Example: discreet verify published/release.json --ledger clinic.ledger")(check.verify)
app.command(
    epilog="Example: discreet audit clinic.json --members clinic.parquet --reference public.parquet --html audit.html"
)(audit.audit)
app.command(epilog="Example: discreet compare published/release.json truth.bif")(check.compare)
app.command(epilog="Example: discreet bounds published/release.json --truth truth.bif")(credal.bounds)
app.command(epilog="Example: discreet statement published/release.json")(publish.statement)
app.command(epilog="Example: discreet keys custodian.key")(check.keys)
app.command(epilog="Example: discreet sign published/release.json --key custodian.key")(check.sign)
app.command(epilog="Example: discreet combine north.json south.json --disjoint --out both")(publish.combine)
app.command(epilog="Example: discreet catalog published --ledger clinic.ledger")(publish.catalog)


@app.command(epilog="Example: discreet demo try-it")
def demo(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where everything is written.")] = Path(
        "demo"
    ),
) -> None:
    """Run the whole path on a bundled example, command by command: release, query, synthesize, verify."""
    from discreet.doors.demo import main as run_demo

    run_demo(folder)


app.command(name="help", epilog="Example: discreet help release")(manual.help_)
manual.bind(app)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        echo(f"discreet {version('discreet')}")
        raise typer.Exit(FINE)


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Publish what a sensitive table knows, and not who is in it."""


@functools.cache
def build() -> Callable[..., object]:
    """All commands with their options: as much work as a short command, so a program that runs many does it once."""
    return typer.main.get_command(app)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 fine, 1 a check found problems, 2 bad input in one line."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without ε prints a question mark
    try:
        code = build()(given or ["--help"], prog_name="discreet", standalone_mode=False)
        sys.stdout.flush()
    except DiscreetError as problem:
        return _refuse(str(problem))
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except BrokenPipeError:
        # The reader, such as `head`, has seen enough; what is left in the buffer must not fail at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FINE
    except Exception as problem:
        if not hasattr(problem, "format_message"):
            return _admit(problem)
        context = getattr(problem, "ctx", None)
        hint = f" See: {context.command_path} --help" if context else ""
        said = problem.format_message()
        return _refuse(said + ("." if hint and said[-1:] not in (".", "?", "!") else "") + hint)
    return code if isinstance(code, int) else FINE


def _refuse(message: str) -> int:
    print("error:", show_line(message), file=sys.stderr)
    return BAD_INPUT


def _admit(problem: Exception) -> int:
    """One line about an error that nobody foresaw; whoever wants to mend it asks for the whole trace."""
    if os.environ.get(TRACEBACK):
        raise problem
    if isinstance(problem, MemoryError):
        return _refuse(
            f"not enough memory; give the command more ({MEGABYTES_NAME}, --memory), or ask for less at a time"
        )
    what = f"{type(problem).__name__} {problem}"[:300]
    return _refuse(
        f"unexpected {what}: a fault of discreet, not of yours; what was paid is in `discreet budget show`; "
        f"set {TRACEBACK}=1 to see where it happened"
    )
