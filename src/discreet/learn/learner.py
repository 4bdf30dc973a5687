"""What every learned network says of itself: how the learner was called, and what the account had paid by then."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from discreet.networks.network import Network
from discreet.networks.posterior import Posterior
from discreet.values.graph import DAG

if TYPE_CHECKING:
    from discreet.core.airlock import Airlock

P = ParamSpec("P")
Learned = TypeVar("Learned", bound=Network | Posterior | tuple[Network, ...])

NOT_OPTIONS = frozenset({"dag", "spend", "request", "progress", "rng"})
"""Arguments that a release holds elsewhere, or that change nothing in it; what an `rng` drew is in the order."""
UNWRITTEN = "no exact form"
"""The key of an option that a document cannot hold; its value is only the name of the type."""


def stated(
    learner: Callable[Concatenate[Airlock, P], Learned],
) -> Callable[Concatenate[Airlock, P], Learned]:
    """A learner whose network carries the privacy statement and the options: enough to run it again without rows.

    Every debit is marked with the digest of learner, options and graph, so none of them can be exchanged later.
    """

    @wraps(learner)
    def learn(airlock: Airlock, /, *args: P.args, **options: P.kwargs) -> Learned:
        chosen = {
            name: write_option(value)
            for name, value in options.items()
            if name not in NOT_OPTIONS and value is not None
        }
        graph = next((found for found in (*args, options.get("dag")) if isinstance(found, DAG)), None)
        before = len(airlock.asked)
        with airlock.mark(digest_call(learner.__name__, chosen, graph)):
            learned = learner(airlock, *args, **options)
        called = {"options": chosen, "request": options.get("request")}
        told: Learned = _tell(learned, called, airlock.statement(since=before))
        return told

    return learn


def digest_call(learner: str, options: Mapping[str, Any], graph: DAG | None) -> str:
    """SHA-256 of how a learner was called; the order of a graph's nodes does not count, that of parents does."""
    parents = None if graph is None else {name: graph.parents_of(name) for name in graph.nodes}
    return hashlib.sha256(json.dumps([learner, options, parents], sort_keys=True).encode()).hexdigest()


def write_option(value: object) -> Any:
    """An option as plain JSON values; what has no exact form there as the name of its type."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, DAG):
        return {name: list(value.parents_of(name)) for name in value.nodes}
    if isinstance(value, Mapping):
        return {str(key): write_option(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [write_option(inner) for inner in value]
    if isinstance(value, set | frozenset):  # sorted: the same set must give the same digest in every process
        return sorted((write_option(inner) for inner in value), key=json.dumps)
    if isinstance(value, Fraction | Decimal):
        return str(value)
    return {UNWRITTEN: type(value).__name__}


def _tell(learned: Any, called: Mapping[str, Any], statement: Mapping[str, Any]) -> Any:
    if isinstance(learned, tuple):
        return tuple(_tell(one, called, statement) for one in learned)
    known = learned.provenance
    assert known is not None
    told = replace(known, details={**known.details, **called}, statement=statement)
    return replace(learned, provenance=told)
