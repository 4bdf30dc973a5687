"""`discreet query` and `discreet synthesize`: what anybody can do with a published network."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.vocabulary.errors import QueryError

if TYPE_CHECKING:
    from discreet.models.answer import Answer, Explanation

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
    as_json: AsJson = False,
) -> None:
    """Ask what-if questions: distributions, probabilities, the most probable explanation."""
    from discreet.models.question import Question
    from discreet.models.reading import read_model

    asked = [*(questions or []), *(_read_lines(file) if file else [])]
    if not asked:
        raise QueryError('nothing was asked; write for example "P(lung | smoke=yes)"')
    parsed = [Question.parse(text) for text in asked]  # a typing error in the last one costs no waiting
    model = read_model(network)
    for text, question in zip(asked, parsed, strict=True):
        answer = question.ask(model)
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
    from discreet.models.question import read_levels
    from discreet.models.reading import read_model

    model = read_model(network)
    drawn = model.sample(rows, rng=seed, given=read_levels(given or []))
    if sys.stderr.isatty():
        _write_with_bar(drawn, out, rows, numbers)
    else:
        drawn.write(out, numbers=numbers)
    typer.echo(f"{rows:,} rows of {len(model.nodes)} attributes, seed {seed}: {out}")


def _write_with_bar(drawn: Any, out: Path, rows: int, numbers: bool) -> None:
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("rows", total=rows)
        drawn.write(out, numbers=numbers, progress=lambda done: bar.advance(task, done))


def _read_lines(file: Path) -> list[str]:
    from discreet.vocabulary.files import read_text

    lines = (line.strip() for line in read_text(file, 2**24).splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def _to_text(text: str, answer: Answer | Explanation | float) -> str:
    from discreet.models.answer import Explanation

    if isinstance(answer, float):
        return f"{text.strip()} = {answer:.6f}"
    if isinstance(answer, Explanation):
        levels = "\n".join(f"  {name} = {level}" for name, level in answer.levels.items())
        return f"{text.strip()}  probability {answer.probability:.4g}\n{levels}"
    return repr(answer)


def _to_json(text: str, answer: Answer | Explanation | float) -> dict[str, Any]:
    from discreet.models.answer import Explanation

    if isinstance(answer, float):
        return {"question": text, "probability": answer}
    if isinstance(answer, Explanation):
        return {"question": text, "levels": answer.levels, "probability": answer.probability}
    cells = [
        {"level": level if isinstance(level, str) else list(level), "probability": probability}
        for level, probability in answer.items()
    ]
    return {"question": text, "targets": list(answer.table.axes), "distribution": cells}
