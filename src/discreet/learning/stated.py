"""What every learned network says of itself: how the learner was called, and what the account had paid by then."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec

import numpy as np

from discreet.models.network import Network

if TYPE_CHECKING:
    from discreet.privacy.airlock import Airlock

P = ParamSpec("P")
NOT_OPTIONS = frozenset({"dag", "spend", "request", "progress"})
"""Arguments that a release holds elsewhere, or that change nothing in it."""


def stated(
    learner: Callable[Concatenate[Airlock, P], Network],
) -> Callable[Concatenate[Airlock, P], Network]:
    """A learner whose network carries the privacy statement and the options: enough to run it again without rows."""

    @wraps(learner)
    def learn(airlock: Airlock, /, *args: P.args, **options: P.kwargs) -> Network:
        before = len(airlock.asked)
        network = learner(airlock, *args, **options)
        known = network.provenance
        assert known is not None
        chosen = {
            name: write_option(value)
            for name, value in options.items()
            if name not in NOT_OPTIONS and value is not None
        }
        called = {"options": chosen, "request": options.get("request")}
        told = replace(known, details={**known.details, **called}, statement=airlock.statement(since=before))
        return replace(network, provenance=told)

    return learn


def write_option(value: object) -> Any:
    """An option as plain JSON values; what has no exact form there, such as a generator, as its text."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Mapping):
        return {str(key): write_option(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [write_option(inner) for inner in value]
    return str(value)
