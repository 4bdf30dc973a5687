"""What learners have in common: how they say what they were asked, the graph and the prior that they are given."""

from __future__ import annotations

import hashlib
import inspect
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import wraps
from importlib import import_module
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt

from discreet.networks.network import Network
from discreet.networks.posterior import Posterior
from discreet.values.errors import GraphError, MechanismError, TableError
from discreet.values.graph import DAG
from discreet.values.measurement import Measurement
from discreet.values.statement import Statement
from discreet.values.table import MOST_EXPECTED, Array
from discreet.values.text import list_some, show

if TYPE_CHECKING:
    from discreet.core.queries import Keeper
    from discreet.values.budget import Finite

P = ParamSpec("P")
Learned = TypeVar("Learned", bound=Network | Posterior | tuple[Network, ...])

Prior = float | Mapping[str, npt.ArrayLike]
"""Public pseudo-counts α of Dirichlet priors: one number for every cell, or arrays that broadcast to a node's table."""
LEAST_PRIOR, MOST_PRIOR = 1e-9, 1e12
"""Beyond these sums of α overflow or vanish beside counts, and that would show only after the payment."""

HOMES = {
    "planned": "discreet.learning.planned:planned",
    "independent": "discreet.papers.parameters.independent:independent",
    "dependent": "discreet.papers.parameters.dependent:dependent",
    "laplace": "discreet.papers.posterior.updates:laplace",
    "fourier": "discreet.papers.posterior.coefficients:fourier",
    "posterior-sample": "discreet.papers.posterior.samples:draw_network",
    "map": "discreet.papers.posterior.optimum:maximum",
    "adaptive": "discreet.learning.adaptive:adaptive",
    "privbayes": "discreet.learning.privbayes:privbayes",
}
"""The module and the function of each learner; imported when it is asked for."""
WITH_GRAPH = ("planned", "independent", "dependent", "laplace", "fourier", "posterior-sample", "map")
"""Learners of the tables of a public graph, best first."""
OF_POSTERIORS = ("laplace", "fourier")
"""Learners whose release is a posterior: the α of every conditional, of which the network holds the means."""
CHOOSY = ("dependent", "laplace", "fourier", "posterior-sample", "map")
"""Learners that refuse some units of privacy: people, or people's averages."""
WITHOUT_GRAPH = ("adaptive", "privbayes")
"""Learners that find the graph, too, best first."""

NOT_OPTIONS = frozenset({"dag", "spend", "request", "progress", "rng"})
"""Arguments that a release holds elsewhere, or that change nothing in it; what an `rng` drew is in the order."""
UNWRITTEN = "no exact form"
"""The key of an option that a document cannot hold; its value is only the name of the type."""
LIMITS: dict[str, tuple[int, int]] = {
    "width": (2, 64),
    "rounds": (1, 100_000),
    "max_cells": (1, 2**26),
    "model_cells": (1, 2**26),
    "k": (0, 63),
    "rows": (0, 2**31),
}
"""The least and the most of options that decide how much is computed."""
MOST_MEMBERS = 100_000
"""The most values in one option, lists within lists included."""


def stated(learner: Callable[Concatenate[Keeper, P], Learned]) -> Callable[Concatenate[Keeper, P], Learned]:
    """A learner whose network carries the privacy statement and the options: enough to run it again without rows.

    Every debit is marked with the digest of learner, options and graph, so none of them can be exchanged later.
    """

    @wraps(learner)
    def learn(airlock: Keeper, /, *args: P.args, **options: P.kwargs) -> Learned:
        require_options(learner, options)
        chosen = {
            name: write_option(value)
            for name, value in sorted(options.items())  # an order of one's own would say something
            if name not in NOT_OPTIONS and value is not None
        }
        graph = next((found for found in (*args, options.get("dag")) if isinstance(found, DAG)), None)
        before = len(airlock.asked)
        rows = airlock.rows if airlock.unit.fixes_rows else None
        with airlock.mark(digest_call(learner.__name__, chosen, graph, rows)):
            learned = learner(airlock, *args, **options)
        called = {"options": chosen, "request": options.get("request")}
        told: Learned = _tell(learned, called, airlock.statement(since=before))
        return told

    return learn


def require_options(learner: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """Refuse options that the learner does not have, and numbers outside of the public limits.

    A release tells its options to whoever verifies it, and a stranger may have written it: so they are bounded before
    any work, by the learner of a release as by its replay.
    """
    known = [
        found.name
        for found in inspect.signature(learner).parameters.values()
        if found.kind == found.KEYWORD_ONLY
    ]
    for name, value in options.items():
        if name not in known and name != "dag":
            raise MechanismError(
                f"the learner {learner.__name__} has no option {show(name)}; it has {list_some(known)}"
            )
        if value is None or name == "rng":
            continue
        if name in LIMITS and not _lies_between(value, *LIMITS[name]):
            least, most = LIMITS[name]
            raise MechanismError(f"{name} must be a number from {least:,} to {most:,}, not {show(value)}")
        if _count(value, MOST_MEMBERS) > MOST_MEMBERS:
            raise MechanismError(f"{name} holds more than {MOST_MEMBERS:,} values")


def _lies_between(value: object, least: int, most: int) -> bool:
    # Other types, such as a text, are for the learner itself to refuse in its own words.
    if isinstance(value, bool) or not isinstance(value, int | float):
        return True
    return least <= value <= most  # neither NaN nor an infinity does; `isfinite` would fail on 400 digits


def _count(value: object, most: int) -> int:
    """How many values there are; the counting stops behind the most."""
    found, agenda = 0, [value]
    while agenda and found <= most:
        held = agenda.pop()
        found += 1
        if isinstance(held, Mapping):
            agenda += held.values()
        elif isinstance(held, list | tuple | set | frozenset):
            agenda += held
    return found


def choose_learner(name: str | None, dag: DAG | None) -> str:
    """The learner of this name, or the best there is for what is given; refused if it needs or finds a graph."""
    fitting = WITHOUT_GRAPH if dag is None else WITH_GRAPH
    if name is None:
        return fitting[0]
    if name not in WITH_GRAPH + WITHOUT_GRAPH:
        raise MechanismError(
            f"the learner must be one of {', '.join(WITH_GRAPH + WITHOUT_GRAPH)}, not {name!r}"
        )
    if name not in fitting:
        why = "needs a graph: give one" if dag is None else "finds the graph itself: leave yours out"
        raise MechanismError(f"the learner {name} {why}, or use {fitting[0]}")
    return name


def find_learner(name: str) -> Callable[..., Any]:
    """The function of a learner, which makes a network or a posterior."""
    home, _, function = HOMES[name].partition(":")
    found: Callable[..., Any] = getattr(import_module(home), function)
    return found


def learn_network(name: str, keeper: Keeper, /, *arguments: Any, **options: Any) -> Network:
    """The network that a learner makes; of a posterior that of its means."""
    learned: Network | Posterior = find_learner(name)(keeper, *arguments, **options)
    return learned.network() if isinstance(learned, Posterior) else learned


def count_rows(
    airlock: Keeper, spend: Finite, request: str | None
) -> tuple[float, Finite, tuple[Measurement, ...]]:
    """The number of rows, what it cost, and the measurement: free where it is public, else paid and noisy."""
    if airlock.unit.fixes_rows:
        return float(airlock.rows), spend - spend, ()
    (found,) = airlock.measure([()], spend=spend, noise=noise_for(spend), request=request)
    return min(max(1.0, found.noisy.total()), MOST_EXPECTED), spend, (found,)


def noise_for(spend: Finite) -> str:
    """Gaussian where the budget is ρ, else Laplace."""
    return "gaussian" if "rho" in spend.to_json() else "laplace"


def predict_noise(found: Measurement, rows: float) -> float:
    """The mean L1 error that noise adds to a conditional of the table, weighed by how often each applies; at most 2.

    That of parents π is off by about Σ_x E|noise|/n[π], and it counts n[π]/n: together cells·E|noise|/n.
    """
    return min(2.0, found.cells * math.sqrt(found.law.variance / 2.0) / max(rows, 1.0))


def digest_call(learner: str, options: Mapping[str, Any], graph: DAG | None, rows: int | None = None) -> str:
    """SHA-256 of how a learner was called; the order of a graph's nodes does not count, that of parents does.

    The number of rows is part of it where the unit makes it public: a release states it, and it must be the one
    that was paid for.
    """
    parents = None if graph is None else {name: graph.parents_of(name) for name in graph.nodes}
    call = [learner, options, parents, *([] if rows is None else [rows])]
    return hashlib.sha256(json.dumps(call, sort_keys=True).encode()).hexdigest()


def write_option(value: object) -> Any:
    """An option as plain JSON values; what has no exact form there as the name of its type."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, DAG):
        return {name: list(value.parents_of(name)) for name in value.nodes}
    if isinstance(value, Mapping):
        return {str(key): write_option(value[key]) for key in sorted(value, key=str)}
    if isinstance(value, list | tuple):
        return [write_option(inner) for inner in value]
    if isinstance(value, set | frozenset):  # sorted: the same set must give the same digest in every process
        return sorted((write_option(inner) for inner in value), key=json.dumps)
    if isinstance(value, Fraction | Decimal):
        return str(value)
    return {UNWRITTEN: type(value).__name__}


def _tell(learned: Any, called: Mapping[str, Any], statement: Statement | None) -> Any:
    if isinstance(learned, tuple):
        return tuple(_tell(one, called, statement) for one in learned)
    known = learned.provenance
    assert known is not None
    told = replace(known, details={**known.details, **called}, statement=statement)
    return replace(learned, provenance=told)


def estimate_rows(measured: Sequence[Measurement]) -> float:
    """The number of rows: the mean of the tables' noisy totals over the share they count, by inverse variance."""
    totals = [found.noisy.total() / float(found.rate) for found in measured]
    variances = [found.law.variance * found.cells / float(found.rate) ** 2 for found in measured]
    if min(variances) <= 0:
        return totals[variances.index(min(variances))]
    precision = math.fsum(1.0 / variance for variance in variances)
    return math.fsum(total / variance for total, variance in zip(totals, variances, strict=True)) / precision


def read_prior(prior: Prior | None, dag: DAG, sizes: Mapping[str, int]) -> tuple[Array | None, ...]:
    """The pseudo-counts of every node as an array over its family, or None where there are none."""
    if prior is None:
        return (None,) * len(dag)
    if isinstance(prior, Mapping):
        strange = [name for name in prior if name not in dag]
        if strange:
            raise GraphError(f"the prior names {strange[0]!r}, which is not in the graph")
    return tuple(
        _read_pseudo_counts(
            prior.get(name) if isinstance(prior, Mapping) else prior,
            name,
            tuple(sizes[member] for member in dag.family(name)),
        )
        for name in dag.nodes
    )


def _read_pseudo_counts(given: npt.ArrayLike | None, name: str, shape: tuple[int, ...]) -> Array | None:
    if given is None:
        return None
    try:
        found = np.broadcast_to(np.asarray(given, dtype=np.float64), shape)
    except ValueError:
        raise TableError(f"the prior of {name!r} does not fit its table, whose shape is {shape}") from None
    if not ((found >= LEAST_PRIOR) & (found <= MOST_PRIOR)).all():
        raise TableError(f"the prior of {name!r} must hold numbers from {LEAST_PRIOR:g} to {MOST_PRIOR:g}")
    return found
