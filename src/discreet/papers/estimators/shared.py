"""What the scikit-learn estimators share: opening the account, and the word about spending it more than once."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.core.airlock import Airlock
from discreet.entrance import open_airlock
from discreet.values.budget import PureDP
from discreet.values.errors import SchemaError
from discreet.values.schema import Attribute, Schema
from discreet.values.schema.bins import Bins
from discreet.values.text import Number

Domain = int | Bins | Attribute | Sequence[object]
"""The public values of a feature: how many whole numbers from 0 on, edges, a whole attribute, or a list of levels."""


class PrivacyWarning(UserWarning):
    """Something that is allowed, and that spends or weakens privacy in a way that is easily overlooked."""


def open_account(
    rows: Mapping[str, Any],
    schema: Schema,
    *,
    epsilon: Number,
    unit: str,
    ledger: Any,
    account: str | None,
    budget: Any,
    numbers: Sequence[str] = (),
) -> Airlock:
    """An airlock for one fit: on the account of a ledger, or without one on an account of ε in memory."""
    if ledger is None:
        warnings.warn(
            f"without a ledger nobody counts that this fit costs ε = {epsilon}. Every further fit on the same rows "
            "costs as much again, each fold and candidate of a cross-validation too; give a ledger and an account",
            PrivacyWarning,
            stacklevel=3,
        )
        return open_airlock(rows, schema, budget=PureDP(epsilon), unit=unit, numbers=numbers)
    return open_airlock(
        rows,
        schema,
        budget=str(budget) if isinstance(budget, int | float | Fraction) else budget,
        unit=unit,
        ledger=ledger,
        account=account,
        create=budget is not None,
        numbers=numbers,
    )


def declare_features(names: Sequence[str], domains: Domain | Mapping[str, Domain]) -> tuple[Attribute, ...]:
    """One attribute for each feature: from one domain for all, one for each in order, or one for each by name."""
    if isinstance(domains, int | np.integer | Bins):
        return tuple(_declare(name, domains) for name in names)
    if isinstance(domains, Mapping):
        missing = [name for name in names if name not in domains]
        if missing:
            raise SchemaError(f"feature {missing[0]!r} has no declared domain")
        return tuple(_declare(name, domains[name]) for name in names)
    if isinstance(domains, str | os.PathLike) or not isinstance(domains, Sequence):
        raise SchemaError(f"domains must be a number of levels, bins, a list or a mapping, not {domains!r}")
    if len(domains) != len(names):
        raise SchemaError(f"{len(names)} features need as many domains, not {len(domains)}")
    return tuple(_declare(name, domain) for name, domain in zip(names, domains, strict=True))


def name_features(estimator: Any) -> tuple[str, ...]:
    """The names of the columns of a frame, or x0, x1 and so on."""
    named = getattr(estimator, "feature_names_in_", None)
    return (
        tuple(f"x{i}" for i in range(estimator.n_features_in_)) if named is None else tuple(map(str, named))
    )


def pick_columns(rows: Any, names: Sequence[str]) -> dict[str, Any]:
    """The columns of an array or of a frame by name."""
    if hasattr(rows, "iloc"):
        return {name: rows.iloc[:, i] for i, name in enumerate(names)}
    return {name: rows[:, i] for i, name in enumerate(names)}


def _declare(name: str, domain: Any) -> Attribute:
    if isinstance(domain, Attribute):
        if domain.name != name:
            raise SchemaError(f"feature {name!r} is declared under the name {domain.name!r}")
        return domain
    if isinstance(domain, Bins):
        return Attribute.binned(name, domain)
    return Attribute.of(name, range(domain) if isinstance(domain, int | np.integer) else domain)
