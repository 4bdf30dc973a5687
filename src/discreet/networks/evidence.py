"""What a caller says was observed, in labels or numbers, turned into codes; every refusal names what is allowed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.values.errors import DiscreetError, QueryError
from discreet.values.schema import Attribute, Schema
from discreet.values.schema.intake import open_table
from discreet.values.schema.types import read_number
from discreet.values.table import require_cells
from discreet.values.text import list_some, show

Given = Mapping[str, Any]
Likelihood = Mapping[str, Mapping[str, float] | npt.ArrayLike]
CodeSets = Mapping[str, Sequence[int]]
"""For each observed attribute the codes that it may have: one, or several."""
MOST_SHOWN = 4
"""The most levels of one attribute that a title lists."""


def require_attribute(schema: Schema, name: str) -> Attribute:
    """The attribute of this name, or a refusal that lists those there are."""
    if not isinstance(name, str) or name not in schema:
        for found in schema.follows:
            if found.name == name:
                raise QueryError(
                    f"{show(name)} follows from {list_some(found.sources)} and is not in the network; ask for that"
                )
        raise QueryError(f"unknown attribute {show(name)}; the network has {list_some(schema.names, name)}")
    return schema[name]


def require_targets(schema: Schema, target: object) -> tuple[str, ...]:
    """The attributes that are asked for, one or several, each once."""
    if not isinstance(target, Iterable):
        raise QueryError(
            f"target {show(target)} is a {type(target).__name__}; name an attribute or a list of them"
        )
    targets = (target,) if isinstance(target, str) else tuple(target)
    for name in targets:
        require_attribute(schema, name)
    if not targets or len(set(targets)) != len(targets):
        raise QueryError(f"targets are {list(targets)}; name at least one attribute, each once")
    return targets


def encode_evidence(schema: Schema, given: Given | None) -> dict[str, int]:
    """The code of each observed level; a number is its bin, or the one level that writes it, as 1 is '1.0'."""
    codes: dict[str, int] = {}
    for name, level in _require_mapping("evidence", given, "their levels").items():
        attribute = require_attribute(schema, name)
        if isinstance(level, str) and level in attribute:
            codes[name] = attribute.code(level)
            continue
        try:
            codes[name] = int(attribute.encode([level], strict=True)[0])
        except DiscreetError:
            equal = _find_equal(attribute, str(level))
            if len(equal) != 1:
                raise QueryError(
                    f"evidence {show(name)} = {show(level)}: no such level; "
                    f"allowed are {list_some(attribute.levels, level)}"
                ) from None
            codes[name] = equal[0]
    return codes


def _find_equal(attribute: Attribute, text: str) -> list[int]:
    """The codes of the levels that write the same number; compared exactly, because floats take long ids for equal."""
    if read_number(text) is None:
        return []
    return [
        code
        for code, level in enumerate(attribute.levels)
        if read_number(level) is not None and Decimal(level) == Decimal(text)
    ]


def encode_sets(schema: Schema, given: Given | None) -> dict[str, list[int]]:
    """The codes that each observed attribute may have, where evidence is a level or any collection of levels."""
    found: dict[str, list[int]] = {}
    for name, level in _require_mapping("evidence", given, "their levels").items():
        require_attribute(schema, name)
        levels = _list_levels(level)
        if not levels:
            raise QueryError(f"evidence {show(name)} allows no level; name one or several")
        found[name] = sorted({encode_evidence(schema, {name: one})[name] for one in levels})
    return found


def enter_evidence(
    schema: Schema, given: Given | None, likelihood: Likelihood | None = None
) -> tuple[dict[str, int], dict[str, npt.NDArray[np.float64]]]:
    """Evidence as engines take it: the codes of single levels; weights where several are allowed, or by likelihood."""
    codes: dict[str, int] = {}
    weights = encode_likelihood(schema, likelihood)
    for name, found in encode_sets(schema, given).items():
        if len(found) == 1:
            codes[name] = found[0]
        elif len(found) < schema[name].size:
            allowed = np.isin(np.arange(schema[name].size), found).astype(np.float64)
            weights[name] = allowed * weights.get(name, 1.0)
    return codes, weights


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


def describe_evidence(given: Given | None, likelihood: Likelihood | None = None) -> str:
    """The evidence as one writes it on paper: smoke=yes, age=young|old, xray by likelihood."""
    observed = [f"{name}={_shorten(_list_levels(level))}" for name, level in (given or {}).items()]
    return ", ".join(observed + [f"{name} by likelihood" for name in likelihood or ()])


def _shorten(levels: Sequence[Any]) -> str:
    """Levels on one line: the first and the last of many, as of bins that a condition such as age>=70 leaves."""
    if len(levels) <= MOST_SHOWN:
        return "|".join(map(str, levels))
    return f"{levels[0]}|… {len(levels) - 2} more …|{levels[-1]}"


def encode_likelihood(schema: Schema, likelihood: Likelihood | None) -> dict[str, npt.NDArray[np.float64]]:
    """Soft evidence as one non-negative weight for each level; levels that a mapping leaves out weigh 0."""
    weights: dict[str, npt.NDArray[np.float64]] = {}
    for name, values in _require_mapping("likelihood", likelihood, "weights of their levels").items():
        attribute = require_attribute(schema, name)
        if isinstance(values, Mapping):
            unknown = [level for level in values if level not in attribute]
            if unknown:
                raise QueryError(
                    f"likelihood of {show(name)}: {show(unknown[0])} is not a level; "
                    f"allowed are {list_some(attribute.levels)}"
                )
            values = [values.get(level, 0.0) for level in attribute.levels]
        try:
            vector = np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError):
            raise QueryError(
                f"likelihood of {show(name)} is {show(values)}; it needs {attribute.size} numbers"
            ) from None
        if vector.shape != (attribute.size,):
            raise QueryError(
                f"likelihood of {show(name)} has shape {vector.shape}; it needs {attribute.size} weights"
            )
        if not np.isfinite(vector).all() or (vector < 0).any() or not vector.any():
            raise QueryError(
                f"likelihood of {show(name)} is {vector.tolist()}; weights are finite, not negative, not all 0"
            )
        weights[name] = vector
    return weights


def encode_evidence_rows(schema: Schema, rows: Any) -> npt.NDArray[np.int64]:
    """The codes of a table of evidence, in schema order; -1 where a column is absent or a value is missing.

    A missing value of an attribute that declares a missing level is that level, observed.
    """
    names, _ = open_table(rows)
    for name in names:
        require_attribute(schema, str(name))
    known = [attribute for attribute in schema if attribute.name in names]
    if not known:
        raise QueryError(f"the table of evidence has no columns; name some of {list_some(schema.names)}")
    codes = Schema(tuple(_allow_missing(attribute) for attribute in known)).encode(rows, strict=True)
    found = np.full((len(codes[known[0].name]), len(schema)), -1, dtype=np.int64)
    for attribute in known:
        column = codes[attribute.name].astype(np.int64)
        found[:, schema.names.index(attribute.name)] = np.where(column < attribute.size, column, -1)
    return found


def _list_levels(level: Any) -> list[Any]:
    """A single level as a list of one; text is a level, not a collection of characters."""
    if isinstance(level, str | bytes | Mapping) or not isinstance(level, Iterable):
        return [level]
    return list(level)


def _require_mapping(what: str, given: Mapping[str, Any] | None, to: str) -> Mapping[str, Any]:
    if given is not None and not isinstance(given, Mapping):
        raise QueryError(f"{what} is {show(given)}, a {type(given).__name__}; map attributes to {to}")
    return given or {}


def _allow_missing(attribute: Attribute) -> Attribute:
    """The attribute with one more level, for what was not observed."""
    if attribute.missing is not None:
        return attribute
    label = "(not observed)"
    while label in attribute:
        label = f"({label})"
    return replace(attribute, levels=(*attribute.levels, label), missing=label, taxonomy=None)
