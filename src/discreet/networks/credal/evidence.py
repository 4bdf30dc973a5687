"""Evidence that leaves several levels open: a level, or any collection of levels, for each observed attribute."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.networks.evidence import Given, encode_evidence, require_attribute
from discreet.values.errors import QueryError
from discreet.values.schema import Schema
from discreet.values.table import require_cells
from discreet.values.wording import show


def encode_sets(schema: Schema, given: Given | None) -> dict[str, list[int]]:
    """The codes that each observed attribute may have."""
    found: dict[str, list[int]] = {}
    for name, level in (given or {}).items():
        require_attribute(schema, name)
        levels = list_levels(level)
        if not levels:
            raise QueryError(f"evidence {show(name)} allows no level; name one or several")
        found[name] = sorted({encode_evidence(schema, {name: one})[name] for one in levels})
    return found


def pose_event(schema: Schema, event: Given) -> tuple[tuple[str, ...], npt.NDArray[np.float64]]:
    """The attributes that an event is about, and the function of their levels that is 1 where it happens."""
    happens = encode_sets(schema, event)
    if not happens:
        raise QueryError("the event is empty; name a level of at least one attribute")
    shape = [schema[name].size for name in happens]
    require_cells(f"the event over {', '.join(happens)}", shape)
    function = np.ones([1] * len(shape))
    for axis, (codes, size) in enumerate(zip(happens.values(), shape, strict=True)):
        inside = np.isin(np.arange(size), codes).astype(np.float64)
        function = function * inside.reshape([-1 if k == axis else 1 for k in range(len(shape))])
    return tuple(happens), function


def weigh_sets(schema: Schema, given: Given | None) -> dict[str, npt.NDArray[np.float64]]:
    """The same evidence as a likelihood: 1 for the levels that it allows."""
    return {
        name: np.isin(np.arange(schema[name].size), codes).astype(np.float64)
        for name, codes in encode_sets(schema, given).items()
    }


def describe_sets(given: Given | None) -> str:
    """The evidence as one writes it on paper: smoke=yes, age=young|old."""
    return ", ".join(
        f"{name}={'|'.join(str(one) for one in list_levels(level))}" for name, level in (given or {}).items()
    )


def list_levels(level: Any) -> list[Any]:
    """A single level as a list of one; text is a level, not a collection of characters."""
    if isinstance(level, str) or not isinstance(level, Iterable):
        return [level]
    return list(level)
