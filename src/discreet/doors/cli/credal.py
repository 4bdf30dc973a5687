"""`discreet credal` makes networks of intervals and undoes them; `discreet bounds` says how far a release is off."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.doors.cli.terminal import AsJson, echo, print_json
from discreet.values.errors import DataError, FormatError

if TYPE_CHECKING:
    from discreet.networks.credal_network import CredalNetwork

app = typer.Typer(
    help="Networks whose conditionals are known within intervals. "
    "Example: discreet credal noise published/release.json --out credal.json"
)
Out = Annotated[
    Path, typer.Option("--out", "-o", metavar="FILE", help="The credal network to write (.json).")
]
Model = Annotated[str, typer.Argument(metavar="NETWORK", help="A release or network (.json) or BIF file.")]
Strength = Annotated[
    float, typer.Option("--strength", metavar="S", help="The S of the imprecise Dirichlet model.")
]


@app.command(epilog="Example: discreet credal noise published/release.json --out credal.json")
def noise(
    network: Model,
    out: Out,
    coverage: Annotated[float, typer.Option(help="How sure all intervals together are.")] = 0.95,
    strength: Annotated[
        float,
        typer.Option(
            "--strength", metavar="S", help="Widen them by sampling, as the imprecise Dirichlet model does."
        ),
    ] = 0.0,
    as_json: AsJson = False,
) -> None:
    """All networks that the noise of a release leaves possible; as private as the release."""
    from discreet.networks.credal import from_noise
    from discreet.networks.formats.release import read_model

    _write(from_noise(read_model(network), coverage, strength), out, as_json)


@app.command(epilog="Example: discreet credal contaminate asia.bif --share 0.1 --out credal.json")
def contaminate(
    network: Model,
    out: Out,
    share: Annotated[float, typer.Option(help="The ε of the contamination, between 0 and 1.")],
    as_json: AsJson = False,
) -> None:
    """Mix any other network in with a share ε: intervals [(1 − ε)·p, (1 − ε)·p + ε]; `recover` undoes it."""
    from discreet.networks.credal import contaminate as make
    from discreet.networks.formats.release import read_model

    _write(make(read_model(network), share), out, as_json)


@app.command(
    epilog="Example: discreet credal idm synthetic.csv --schema schema.toml --graph graph.bif --public-rows -o c.json"
)
def idm(
    rows: Annotated[
        str, typer.Argument(metavar="ROWS", help="Rows that are public, such as synthetic ones.")
    ],
    schema: Annotated[Path, typer.Option(metavar="FILE", help="Their schema (.toml).")],
    graph: Annotated[
        Path, typer.Option(metavar="FILE", help="What depends on what: BIF, a network, or arrows.")
    ],
    out: Out,
    strength: Strength = 1.0,
    public_rows: Annotated[
        bool,
        typer.Option(
            "--public-rows", help="Say that the rows are public: the intervals give their frequencies away."
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """The imprecise Dirichlet model of rows: what sampling leaves open, from n/(N + S) to (n + S)/(N + S).

    It is no means of privacy: `discreet credal recover` reads exact frequencies off it. So private rows are refused.
    """
    from discreet.doors.release import read_schema
    from discreet.entrance import open_counter
    from discreet.networks.credal import idm as make
    from discreet.networks.formats.release import read_graph

    if not public_rows:
        raise DataError(
            "the imprecise Dirichlet model of rows gives their exact frequencies away; for private rows use "
            "`discreet release` and `discreet credal noise`, for public ones add --public-rows"
        )
    declared = read_schema(schema)
    dag = read_graph(graph, declared)
    counter = open_counter(rows, declared)
    try:
        counts = counter.count(dag.families())
    finally:
        counter.close()
    _write(make(counts, dag, declared, strength), out, as_json)


@app.command(epilog="Example: discreet credal recover credal.json --out network.bif")
def recover(
    credal: Annotated[Path, typer.Argument(metavar="CREDAL", help="A credal network (.json).")],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FILE", help="Write the network that was recovered (.bif, .json)."
        ),
    ] = None,
    strength: Annotated[
        float | None, typer.Option("--strength", metavar="S", help="The S of the intervals, if you know it.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Undo intervals: the network behind them, the share of a contamination, the counts behind a Dirichlet model.

    Lower ends divided by their sum are the frequencies, whatever S is. Of intervals around noise these are noisy.
    """
    from discreet.judge.attacks.recovery import describe_recovery
    from discreet.networks.formats.release import read
    from discreet.networks.network import Network

    found: Any = read(credal)
    if not hasattr(found, "lower"):
        raise FormatError(f"{credal}: a credal network (.json) is needed, which `discreet credal` makes")
    recovered, told = describe_recovery(found.lower, found.upper, strength)
    if out is not None:
        network = Network(found.schema, found.dag, recovered.cpts)
        network.write_bif(out) if out.suffix == ".bif" else network.write(out)
    if as_json:
        print_json({**told, "written": None if out is None else str(out)})
        return
    for line in told["words"]:
        echo(line)
    if out is not None:
        echo(out)


def bounds(
    network: Model,
    truth: Annotated[
        str | None,
        typer.Option(metavar="NETWORK", help="The true network, if you know it: errors and μ beside it."),
    ] = None,
    rows: Annotated[
        int | None, typer.Option(metavar="N", help="Also what paper 002 guarantees for so many rows.", min=1)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """How far a release is off: what its noise is expected to do; with the true network errors and μ.

    The μ of paper 000 puts an error between the bounds of its Theorems 4.1 and 4.2. The first is none and the second is
    for one step only; the sure bound beside them holds.
    """
    from discreet.networks.formats.release import read_model
    from discreet.papers.theory.released import bound_errors

    found = bound_errors(read_model(network), None if truth is None else read_model(truth), rows)
    if as_json:
        print_json(found.to_json())
    else:
        echo(found.explain())


def _write(credal: CredalNetwork, out: Path, as_json: bool) -> None:
    credal.write(out)
    if as_json:
        print_json({"written": str(out), "mean width": credal.width, "meaning": credal.meaning})
        return
    echo(f"{len(credal.nodes)} attributes, intervals {credal.width:.4f} wide on average")
    echo(credal.meaning)
    echo(out)
