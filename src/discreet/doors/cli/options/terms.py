"""What `discreet release` and `discreet plan` are both told: a graph, a budget, a unit and how to learn."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.doors.cli.options.search import (
    AsPrinted,
    BetaOption,
    DegreeOption,
    EncodingName,
    Forbidden,
    PriorOption,
    Required,
    ScoreOption,
    SelectionOption,
    Target,
    ThetaOption,
    Workload,
    read_options,
    read_prior,
    read_tuning,
    read_use,
)
from discreet.doors.cli.terminal import AtMost, PerPerson, Person
from discreet.values.errors import BudgetError

if TYPE_CHECKING:
    from discreet.values.schema import Schema

GraphFile = Annotated[
    Path | None,
    typer.Option(
        "--graph",
        metavar="FILE",
        help='BIF, a network (.json), or lines "smoke -> lung"; without it a graph is learned privately.',
    ),
]
Epsilon = Annotated[str | None, typer.Option(help="What this release may cost: ε, e.g. 1 or 1/2.")]
Delta = Annotated[str | None, typer.Option(help="δ, together with --epsilon.")]
Rho = Annotated[str | None, typer.Option(help="What this release may cost as ρ (zCDP), e.g. 1/8.")]
UnitName = Annotated[
    str | None,
    typer.Option(help="What is protected: add-remove or replace-one. [default: as the account says]"),
]
LearnerName = Annotated[
    str | None,
    typer.Option(
        help="With --graph: planned, independent, dependent; or a posterior: laplace, fourier, posterior-sample, map. "
        "Without: adaptive or privbayes. [default: planned or adaptive]"
    ),
]


@dataclass(frozen=True, slots=True)
class Terms:
    """The options that a plan and its release have in common, so that the one is a rehearsal of the other."""

    graph: GraphFile = None
    epsilon: Epsilon = None
    delta: Delta = None
    rho: Rho = None
    unit: UnitName = None
    person: Person = None
    at_most: AtMost = None
    per_person: PerPerson = None
    learner: LearnerName = None
    prior: PriorOption = None
    encoding: EncodingName = None
    require: Required = None
    forbid: Forbidden = None
    target: Target = None
    workload: Workload = None
    score: ScoreOption = None
    beta: BetaOption = None
    k: DegreeOption = None
    theta: ThetaOption = None
    selection: SelectionOption = None
    as_printed: AsPrinted = False

    def read(self, schema: Schema | None) -> dict[str, Any]:
        """The terms but for the amounts, as `dc.release` and `dc.plan` take them; refused before anything is paid.

        Without a schema a plan that custodians share says how to learn, and nothing else may.
        """
        passed = ("graph", "unit", "person", "at_most", "per_person", "learner")
        asked = {name: getattr(self, name) for name in passed}
        if schema is None:
            amounts = self.list_amounts()
            more = [field.name for field in fields(self) if field.name not in (*passed, *amounts)]
            told = [f"--{name.replace('_', '-')}" for name in more if getattr(self, name)]
            if told:
                raise BudgetError(f"a plan says how to learn: leave out {', '.join(told)}")
            return {**asked, "options": None}
        options = read_options(self.learner, schema, self.encoding, self.require, self.forbid)
        options |= read_use(self.learner, self.graph, schema, self.target, self.workload)
        options |= read_prior(self.learner, self.graph, self.prior)
        tuning = {name: getattr(self, name) for name in ("score", "beta", "k", "theta", "selection")}
        options |= read_tuning(self.learner, schema, self.encoding, tuning, as_printed=self.as_printed)
        return {**asked, "options": options}

    def list_amounts(self) -> dict[str, Any]:
        """What may be spent."""
        return {"epsilon": self.epsilon, "delta": self.delta, "rho": self.rho}


def take_terms(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose parameter `terms` Typer sees as the options that it is made of."""
    names = [field.name for field in fields(Terms)]

    @functools.wraps(command)
    def spelled(**given: Any) -> None:
        command(terms=Terms(**{name: given.pop(name) for name in names}), **given)

    own, shared = (inspect.signature(found, eval_str=True) for found in (command, Terms))
    parameters: list[inspect.Parameter] = []
    for parameter in own.parameters.values():
        parameters += shared.parameters.values() if parameter.name == "terms" else [parameter]
    spelled.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    spelled.__annotations__ = {found.name: found.annotation for found in parameters}
    return spelled
