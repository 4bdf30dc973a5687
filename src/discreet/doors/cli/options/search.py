"""Options of `plan` and `release` about the search for a graph; what cannot be meant is refused before it is paid."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.values.errors import BudgetError, MechanismError

if TYPE_CHECKING:
    from discreet.values.schema import Schema

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
        help="An arrow that privbayes must put into the graph; may be given several times.",
    ),
]
Target = Annotated[
    str | None,
    typer.Option(
        "--target",
        metavar="NAME",
        help="An attribute to be predicted from the rest: adaptive measures its pairs with all others first.",
    ),
]
Workload = Annotated[
    list[str] | None,
    typer.Option(
        "--workload",
        metavar='"A, B, C"',
        help="Attributes whose joint table matters: adaptive measures it without a choice; may be repeated.",
    ),
]
ScoreOption = Annotated[
    str | None,
    typer.Option("--score", help="What privbayes scores parents by: R, F or I. [default: R]"),
]
BetaOption = Annotated[
    str | None,
    typer.Option("--beta", metavar="SHARE", help="privbayes: the share of ε for the graph. [default: 3/10]"),
]
DegreeOption = Annotated[
    int | None,
    typer.Option("--k", metavar="K", help="privbayes: the number of parents. [default: by --theta]"),
]
ThetaOption = Annotated[
    str | None,
    typer.Option(
        "--theta",
        metavar="NUMBER",
        help="privbayes: the mean count in a cell of a table is at least so many times its noise. [default: 4 or 3]",
    ),
]
SelectionOption = Annotated[
    str | None,
    typer.Option("--selection", help="privbayes: permute-and-flip or exponential. [default: the surer one]"),
]
AsPrinted = Annotated[
    bool,
    typer.Option(
        "--as-printed",
        help="privbayes as its paper has it: half of ε for the graph, score F, exponential, tables cut off at 0, the "
        "binary encoding where an attribute has more than two levels.",
    ),
]
PriorOption = Annotated[
    str | None,
    typer.Option(
        "--prior",
        metavar="α|FILE",
        help="With --graph: pseudo-counts added to every cell, such as 1/2, or a posterior (.json) to start from. "
        "They must be public. [default: 1 for posteriors, else none]",
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


def read_use(
    learner: str | None,
    graph: Path | None,
    schema: Schema,
    target: str | None,
    workload: list[str] | None,
) -> dict[str, Any]:
    """What the rows are for, as options of the adaptive search; refused where they have no use or a name is unknown."""
    named = [option for option, value in {"--target": target, "--workload": workload}.items() if value]
    if named and (graph is not None or learner not in (None, "adaptive")):
        raise MechanismError(f"{named[0]} works only with the learner adaptive, which takes no graph")
    sets = [tuple(name.strip() for name in found.split(",")) for found in workload or ()]
    for option, names in [
        ("--target", (target,) if target else ()),
        *(("--workload", found) for found in sets),
    ]:
        strange = [name for name in names if name not in schema.names]
        if strange:
            raise MechanismError(f"{option} names {strange[0]!r}; the schema has {', '.join(schema.names)}")
    return {name: value for name, value in {"target": target, "sets": sets}.items() if value}


def read_options(
    learner: str | None,
    schema: Schema,
    encoding: str | None,
    require: list[str] | None,
    forbid: list[str] | None,
) -> dict[str, Any]:
    """The options of the learner; what cannot be meant is refused before a ledger is opened."""
    from discreet.learning.parent_sets import Knowledge
    from discreet.networks.formats.edges import parse_arrows
    from discreet.values.schema.encoding import Encoding

    given = {"--encoding": encoding, "--require": require, "--forbid": forbid}
    named = [option for option, value in given.items() if value]
    if named and learner != "privbayes":
        raise MechanismError(f"{named[0]} works only with --learner privbayes")
    encoded = Encoding.of(encoding or "vanilla", schema)
    required = parse_arrows(require or (), schema, "--require")
    forbidden = parse_arrows(forbid or (), schema, "--forbid")
    Knowledge.read(encoded, required, forbidden, order=None, start=None)
    asked = {"encoding": encoding, "required": required, "forbidden": forbidden}
    return {name: value for name, value in asked.items() if value}


def read_prior(learner: str | None, graph: Path | None, prior: str | None) -> dict[str, Any]:
    """The prior as an option of a learner with a graph: a number, or the path of a posterior."""
    from discreet.learning.learner import LEAST_PRIOR, MOST_PRIOR
    from discreet.values.text import read_positive

    if prior is None:
        return {}
    if graph is None or learner in ("adaptive", "privbayes"):
        raise MechanismError(
            "--prior is for the tables of a graph: give --graph, and a learner that takes one"
        )
    if Path(prior).suffix in (".json", ".gz"):
        return {"prior": Path(prior)}
    try:
        found = read_positive(prior, "--prior", MechanismError)
        if not LEAST_PRIOR <= found <= MOST_PRIOR:
            raise MechanismError(f"--prior must lie between {LEAST_PRIOR:g} and {MOST_PRIOR:g}, not {prior}")
        return {"prior": float(found)}
    except MechanismError as error:
        raise MechanismError(f"{error}; or give a posterior (.json), which a release writes") from None


def read_tuning(
    learner: str | None, schema: Schema, encoding: str | None, tuning: dict[str, Any], *, as_printed: bool
) -> dict[str, Any]:
    """How privbayes searches, as its options; refused before a ledger is opened."""
    from discreet.core.mechanism import Selection
    from discreet.learning.parent_sets import Knowledge, limit_degree
    from discreet.values.schema.encoding import Encoding
    from discreet.values.text import read_fraction, read_positive, require_share

    given = {name: value for name, value in tuning.items() if value is not None}
    named = ["--as-printed"] * as_printed + [f"--{name}" for name in given]
    if named and learner != "privbayes":
        raise MechanismError(f"{named[0]} works only with --learner privbayes")
    if as_printed:
        clash = ["--encoding"] * (encoding is not None) + [
            f"--{name}" for name in given if name not in ("k", "theta")
        ]
        if clash:
            raise MechanismError(f"--as-printed says what {clash[0]} is: leave one of them out")
        printed = {"score": "F", "beta": "1/2", "selection": "exponential", "estimation": "printed"}
        encoding = "vanilla" if set(schema.sizes.values()) == {2} else "binary"
        given = {**given, **printed, "encoding": encoding}
    if given.get("score", "R") not in ("R", "F", "I"):
        raise MechanismError(f"--score must be R, F or I, not {given['score']!r}")
    if "beta" in given:
        require_share(read_fraction(given["beta"], "--beta", BudgetError), "--beta", BudgetError)
    if "k" in given and "theta" in given:
        raise MechanismError("--theta is there to find the number of parents, which --k gives: leave one out")
    if "theta" in given:
        read_positive(given["theta"], "--theta", MechanismError)
    if "selection" in given:
        Selection(given["selection"])
    degree = given.get("k")
    if degree is not None:
        encoded = Encoding.of(encoding or "vanilla", schema)
        attributes = len(Knowledge.read(encoded, (), (), order=None, start=None).names)
        if degree < 0:
            raise MechanismError(f"--k must be 0 or more, not {degree}")
        most = limit_degree(attributes, min(degree, attributes - 1))
        if most < min(degree, attributes - 1):
            raise MechanismError(
                f"--k {degree} gives too many parent sets to choose from with {attributes} attributes: at most {most}"
            )
    return given
