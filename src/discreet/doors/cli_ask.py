"""`discreet query` and `discreet synthesize`: what anybody can do with a published network."""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.values.errors import NetworkError, QueryError

if TYPE_CHECKING:
    from discreet.networks.answer import Answer, Explanation
    from discreet.networks.credal.interval import Decision
    from discreet.networks.credal.network import CredalNetwork
    from discreet.networks.credal.respondent import Event, Respondent
    from discreet.networks.network import Network


class IntervalKind(StrEnum):
    """The choices of --interval; the models' own name for them is not imported before it is needed."""

    GUARANTEED = "guaranteed"
    CALIBRATED = "calibrated"
    NONE = "none"


Model = Annotated[
    str, typer.Argument(metavar="NETWORK", help="A release or network (.json) or any BIF file, plain or .gz.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document a question instead of text.")]


def query(
    network: Model,
    questions: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="QUESTION", help='For example "P(lung | smoke=yes)" or "MAP(lung | dysp=yes)".'
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Ask every line of this file as well; '#' starts a comment."),
    ] = None,
    interval: Annotated[
        IntervalKind | None,
        typer.Option(
            show_default="guaranteed, if a private release has them and that is quick",
            help="What noise has hidden lies inside: all at once with 95 % (guaranteed; asked for, it may take "
            "minutes), about 95 % of the time (calibrated, narrower), or no intervals.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Ask what-if questions: distributions, probabilities, the most probable explanation; intervals stand beside."""
    from discreet.networks.formats.reading import read_any
    from discreet.networks.question import Question

    asked = [*(questions or []), *(_read_lines(file) if file else [])]
    if not asked:
        raise QueryError('nothing was asked; write for example "P(lung | smoke=yes)"')
    parsed = [Question.parse(text) for text in asked]  # a typing error in the last one costs no waiting
    model = read_any(network)
    respondent = _find_respondent(model, interval)
    _warn_of_stray_bits(model)
    for text, question in zip(asked, parsed, strict=True):
        answer = respondent.answer(question)
        typer.echo(
            json.dumps(_to_json(text, answer), ensure_ascii=False) if as_json else _to_text(text, answer)
        )


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
    numbers: Annotated[
        bool, typer.Option("--numbers", help="Write binned numbers as draws inside their bin, not as bins.")
    ] = False,
) -> None:
    """Draw synthetic rows from a network, all of them or only those with certain levels."""
    from discreet.networks.formats.reading import read_model
    from discreet.networks.question import read_levels

    model = read_model(network)
    drawn = model.sample(rows, rng=seed, given=read_levels(given or []))
    if sys.stderr.isatty():
        _write_with_bar(drawn, out, rows, numbers)
    else:
        drawn.write(out, numbers=numbers)
    typer.echo(f"{rows:,} rows of {len(model.declared)} attributes, seed {seed}: {out}")


def _find_respondent(model: Network | CredalNetwork, interval: IntervalKind | None) -> Respondent:
    """Whoever answers; a refusal of intervals that the release cannot have says which release can."""
    from discreet.networks.credal.attachment import explain_lack
    from discreet.networks.credal.respondent import Kind, Respondent
    from discreet.networks.network import Network

    try:
        return Respondent(model, None if interval is None else Kind(interval.value))
    except NetworkError as error:
        lack = explain_lack(model) if isinstance(model, Network) else ""
        raise NetworkError(f"no intervals: {lack}" if lack else str(error)) from None


def _warn_of_stray_bits(model: Network | CredalNetwork) -> None:
    """Say on stderr that synthetic rows have other shares than answers, where bits may spell no level."""
    from discreet.networks.auxiliary import weigh_stray
    from discreet.networks.network import Network

    stray = weigh_stray(model) if isinstance(model, Network) else 0.0
    if stray > 0:
        typer.echo(
            f"note: bits that spell no level have a probability of up to {stray:.2g} here; answers count them as near "
            "levels, synthetic rows leave them out",
            err=True,
        )


def _write_with_bar(drawn: Any, out: Path, rows: int, numbers: bool) -> None:
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("rows", total=rows)
        drawn.write(out, numbers=numbers, progress=lambda done: bar.advance(task, done))


def _read_lines(file: Path) -> list[str]:
    from discreet.values.files import read_text

    lines = (line.strip() for line in read_text(file, 2**24).splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def _to_text(text: str, answer: Answer | Explanation | Decision | Event) -> str:
    from discreet.networks.answer import Explanation
    from discreet.networks.credal.respondent import Event

    if isinstance(answer, Event):
        ends = "" if answer.ends is None else f"  [{answer.ends[0]:.6f}, {answer.ends[1]:.6f}]"
        meaning = f"\n  {answer.meaning}" if answer.meaning else ""
        return f"{text.strip()} = {answer.probability:.6f}{ends}{meaning}"
    if isinstance(answer, Explanation):
        levels = "\n".join(f"  {name} = {level}" for name, level in answer.levels.items())
        return f"{text.strip()}  probability {answer.probability:.4g}\n{levels}"
    return str(answer)


def _to_json(text: str, answer: Answer | Explanation | Decision | Event) -> dict[str, Any]:
    from discreet.networks.answer import Explanation
    from discreet.networks.credal.interval import Decision
    from discreet.networks.credal.respondent import Event

    if isinstance(answer, Explanation):
        return {"question": text, "levels": answer.levels, "probability": answer.probability}
    if isinstance(answer, Decision):
        return {
            "question": text,
            "certainly one of": list(answer.levels),
            "seen to be best": list(answer.seen),
        }
    meaning = {"meaning": answer.meaning} if answer.meaning else {}
    if isinstance(answer, Event):
        ends = {} if answer.ends is None else {"lower": answer.ends[0], "upper": answer.ends[1]}
        return {"question": text, "probability": answer.probability, **ends, **meaning}
    cells = []
    for level, probability in answer.items():
        low, high = answer.interval(level)
        ends = {} if answer.lower is None else {"lower": low, "upper": high}
        name = level if isinstance(level, str) else list(level)
        cells.append({"level": name, "probability": probability, **ends})
    return {"question": text, "targets": list(answer.table.axes), "distribution": cells, **meaning}
