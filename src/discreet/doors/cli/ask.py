"""`discreet query` and `discreet synthesize`: what anybody can do with a published network."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.doors.cli.terminal import echo, print_json
from discreet.values.errors import DiscreetError, QueryError
from discreet.values.text import show_bytes, show_line

if TYPE_CHECKING:
    from discreet.networks.answer import Answer, Decision, EventProbability, Explanation, Figure
    from discreet.networks.credal_network import CredalNetwork
    from discreet.networks.network import Network


Model = Annotated[
    str, typer.Argument(metavar="NETWORK", help="A release or network (.json) or any BIF file, plain or .gz.")
]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print a JSON document for each question instead of text.")
]


MANY_ROWS = 2_000_000
"""From here on `synthesize` says what it will write, and looks whether there is room for it."""


def query(
    network: Model,
    questions: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="QUESTION", help='For example "P(lung | smoke=yes)" or "mean(age | smoke=yes)".'
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Ask every line of this file as well; '#' starts a comment."),
    ] = None,
    interval: Annotated[
        str | None,
        typer.Option(
            metavar="guaranteed|calibrated|none",
            show_default="guaranteed, where a private release has them and they are quick",
            help="Intervals that hold the answers without the noise: all of them at once with 95 % probability "
            "(guaranteed; may take minutes), or about 95 % of them (calibrated: narrower; where none would hold, the "
            "guaranteed one is shown).",
        ),
    ] = None,
    of: Annotated[
        str | None,
        typer.Option(
            metavar="table|network|world",
            show_default="network if the graph was given, else table",
            help="Whose answer lies in the intervals: the table's own, that of the network without the noise (which "
            "assumes the graph), or that of the population of which the rows are a sample.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Ask what-if questions: distributions, probabilities, the most probable explanation; intervals stand beside."""
    from discreet.networks.credal_network import CredalNetwork
    from discreet.networks.formats.release import find_network, read
    from discreet.networks.intervals import Intervals, Whose
    from discreet.networks.question import check_intervals
    from discreet.networks.written import ask_for_some, parse

    asked = [*(questions or []), *(_read_lines(file) if file else [])]
    if not asked:
        raise QueryError('no question; write for example "P(lung | smoke=yes)"')
    parsed = [_attempt(len(asked), lambda text=text: parse(text)) for text in asked]  # type: ignore[misc]
    kind, subject = Intervals.read(interval), Whose.read(of)
    found = read(network)
    model = found if isinstance(found, CredalNetwork) else find_network(found, network)
    check_intervals(model, kind, subject)
    _warn_of_stray_bits(model)
    refused = False
    for text, question in zip(asked, parsed, strict=True):
        answer: Any = question
        if not isinstance(question, DiscreetError):
            answer = _attempt(
                len(asked),
                lambda question=question: ask_for_some(question, model, kind, subject),  # type: ignore[misc]
            )
        if isinstance(answer, DiscreetError):
            refused = True
            echo(f"error: {show_line(str(answer))}", err=True)
            if as_json:
                print_json({"question": text, "error": str(answer)}, None)
            continue
        if as_json:
            print_json(_to_json(text, answer), None)
        else:
            echo(_to_text(text, answer))
    if refused:
        raise typer.Exit(2)


def _attempt(asked: int, work: Callable[[], Any]) -> Any:
    """What the work gives, or its refusal: one bad question among several does not take the others with it."""
    try:
        return work()
    except DiscreetError as error:
        if asked == 1:
            raise
        return error


def synthesize(
    network: Model,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="A .csv, .parquet or .arrow file.")
    ],
    rows: Annotated[int, typer.Option(help="How many rows to draw.")] = 1000,
    seed: Annotated[int, typer.Option(help="The same seed always gives the same rows.")] = 0,
    given: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=LEVEL", help="Only rows with this level; may be given several times."),
    ] = None,
    labels: Annotated[
        bool,
        typer.Option("--labels", help="Write the labels of levels, such as bins, not values of their types."),
    ] = False,
    independent: Annotated[
        bool,
        typer.Option(
            "--independent",
            help="Draw every row by itself, instead of rows whose counts follow the network as closely as they can.",
        ),
    ] = False,
    tables: Annotated[
        int | None,
        typer.Option(
            help="Write so many tables, each from a plausible network of its own: out-1.csv, out-2.csv, …; what they "
            "say is combined by dc.pool, with honest standard errors."
        ),
    ] = None,
) -> None:
    """Draw synthetic rows from a network, all of them or only those with certain levels.

    Counts of the rows are as near to what the network expects as that many rows can be; each row is still a fair draw.
    """
    from discreet.networks.formats.made_from import Origin, digest_file, digest_release, name_origin
    from discreet.networks.formats.release import Release, find_network, read
    from discreet.networks.question import read_levels

    held = read(network)
    model = find_network(held, network)
    if tables is not None:
        _write_tables(model, out, rows, seed, read_levels(given or []), labels, tables)
        return
    drawn = model.sample(rows, rng=seed, given=read_levels(given or []), balanced=not independent)
    if rows >= MANY_ROWS:
        _announce(rows, drawn.require_room(out, labels=labels), out)
    if sys.stderr.isatty():
        _write_with_bar(drawn, out, rows, labels)
    else:
        drawn.write(out, labels=labels)
    told = [" ".join(text.split()) for text in given or []]
    if isinstance(held, Release):  # so that `discreet verify` of the folder can tell what they are
        Origin(
            digest_release(held),
            rows,
            seed,
            told,
            not independent,
            labels,
            digest_file(out),
        ).write(out)
    else:
        name_origin(out).unlink(missing_ok=True)  # of other rows, which these have replaced
    echo(f"{rows:,} rows of {len(model.declared)} attributes, seed {seed}: {out}")


def _announce(rows: int, needed: int, out: Path) -> None:
    """Say what is about to be written, before hours are spent on it."""
    echo(f"writing {rows:,} rows, about {show_bytes(needed)}: {out}", err=True)


def _write_tables(
    model: Network, out: Path, rows: int, seed: int, given: dict[str, Any], labels: bool, tables: int
) -> None:
    """Write independent rows of several plausible networks, one file for each."""
    from discreet.networks.ensemble import draw_networks

    if tables < 2:
        raise QueryError(f"--tables must be 2 or more, so that they show how much is open, not {tables}")
    for number, drawn in enumerate(draw_networks(model, tables, rng=seed), start=1):
        path = out.with_name(f"{out.stem}-{number}{out.suffix}")
        table = drawn.sample(rows, rng=seed + number, given=given)
        if number == 1 and rows * tables >= MANY_ROWS:
            _announce(rows * tables, table.require_room(path, labels=labels, tables=tables), path)
        table.write(path, labels=labels)
    echo(
        f"{tables} tables of {rows:,} rows, seed {seed}: {out.with_name(f'{out.stem}-1{out.suffix}')} and so on; "
        "analyse each as if it were real and put the estimates and their variances into dc.pool"
    )


def _warn_of_stray_bits(model: Network | CredalNetwork) -> None:
    """Say on stderr that synthetic rows have other shares than answers, where bits may spell no level."""
    from discreet.networks.network import Network

    if isinstance(model, Network) and model.stray > 0:
        echo(
            f"note: bits that spell no level have a probability of up to {model.stray:.2g}; answers count it to the "
            "nearest levels, synthetic rows leave it out",
            err=True,
        )


def _write_with_bar(drawn: Any, out: Path, rows: int, labels: bool) -> None:
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("rows", total=rows)
        drawn.write(out, labels=labels, progress=lambda done: bar.advance(task, done))


def _read_lines(file: Path) -> list[str]:
    from discreet.values.files import read_text

    lines = (line.strip() for line in read_text(file, 2**24).splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def _to_text(text: str, answer: Answer | EventProbability | Explanation | Decision | Figure) -> str:
    from discreet.networks.answer import EventProbability, Explanation

    if isinstance(answer, EventProbability):
        ends = "" if answer.lower is None else f"  [{answer.lower:.6f}, {answer.upper:.6f}]"
        meaning = f"\n  {answer.meaning}" if answer.meaning else ""
        return f"{text.strip()} = {answer.probability:.6f}{ends}{meaning}"
    if isinstance(answer, Explanation):
        levels = "\n".join(f"  {name} = {level}" for name, level in answer.levels.items())
        return f"{text.strip()}  probability {answer.probability:.4g}\n{levels}"
    return str(answer)


def _to_json(
    text: str, answer: Answer | EventProbability | Explanation | Decision | Figure
) -> dict[str, Any]:
    from discreet.networks.answer import Decision, EventProbability, Explanation, Figure

    if isinstance(answer, Explanation):
        return {"question": text, "levels": answer.levels, "probability": answer.probability}
    if isinstance(answer, Decision):
        return {
            "question": text,
            "certainly one of": list(answer.levels),
            "seen to be best": list(answer.seen),
            **({"meaning": answer.meaning} if answer.meaning else {}),
        }
    meaning = {"meaning": answer.meaning} if answer.meaning else {}
    if isinstance(answer, Figure):
        ends = {} if answer.lower is None else {"lower": answer.lower, "upper": answer.upper}
        return {"question": text, "value": answer.value, **ends, **meaning}
    if isinstance(answer, EventProbability):
        ends = {} if answer.lower is None else {"lower": answer.lower, "upper": answer.upper}
        return {"question": text, "probability": answer.probability, **ends, **meaning}
    cells = []
    for level, probability in answer.items():
        low, high = answer.interval(level)
        ends = {} if answer.lower is None else {"lower": low, "upper": high}
        name = level if isinstance(level, str) else list(level)
        cells.append({"level": name, "probability": probability, **ends})
    return {"question": text, "targets": list(answer.table.axes), "distribution": cells, **meaning}
