"""The digits that a release publishes: few enough that everybody who derives a number again gets all of them.

A float has some sixteen digits. The last few depend on the machine and on the order of additions, so a verifier that
allowed for that would let anybody write a message into them. Derived numbers are therefore published with `DIGITS`
significant digits, far below any noise, and must be derived again to the last one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.networks.network import Network
from discreet.networks.posterior import Posterior
from discreet.networks.provenance import Provenance
from discreet.values.table import Table

DIGITS = 10
"""Significant digits of a derived number."""
SLACK = 1e-12
"""How far, relatively, two machines may be apart; without AVX, with another BLAS, it was 5e-15 at most.

A number that is derived this near to the middle between two roundings may be published as either.
"""
GIVEN = frozenset({"options", "request"})
"""Details that the caller chose: not derived, and kept as they are."""


def round_number(value: float) -> float:
    """The number with the digits that are published; there is only one zero."""
    return float(f"{value:.{DIGITS}g}") + 0.0


def round_network(network: Network) -> Network:
    """The network as it is published: tables, predicted errors and details to so many digits."""
    known = network.provenance
    cpts = tuple(Table(cpt.axes, round_array(cpt.values)) for cpt in network.cpts)
    return replace(network, cpts=cpts, provenance=None if known is None else _round_provenance(known))


def round_posterior(posterior: Posterior) -> Posterior:
    """The posterior as it is published: its α to so many digits, and what its means are published with."""
    alphas = tuple(Table(alpha.axes, round_array(alpha.values)) for alpha in posterior.alphas)
    known = posterior.provenance
    return replace(
        posterior, alphas=alphas, updates=None, provenance=None if known is None else _round_provenance(known)
    )


def round_array(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Every number of an array with the digits that are published."""
    found = np.fromiter(map(round_number, values.ravel().tolist()), np.float64, values.size)
    return found.reshape(values.shape)


def is_published(published: float, derived: float) -> bool:
    """Whether a number can be published as this one: to the last digit, and either way only in the middle of two."""
    return repr(published) in {
        repr(round_number(derived * factor)) for factor in (1.0, 1.0 - SLACK, 1.0 + SLACK)
    }


def find_strange(published: npt.NDArray[np.float64], derived: npt.NDArray[np.float64]) -> int | None:
    """The first cell that is not published as it is derived, in flat order; None if all are."""
    same = (round_array(derived) == published) & ~np.signbit(published)
    for at in np.flatnonzero(~same.ravel()).tolist():
        if not is_published(float(published.flat[at]), float(derived.flat[at])):
            return int(at)
    return None


def _round_provenance(known: Provenance) -> Provenance:
    return replace(
        known,
        predicted_error=_round_all(known.predicted_error),
        details={key: value if key in GIVEN else _round_all(value) for key, value in known.details.items()},
    )


def _round_all(value: Any) -> Any:
    if isinstance(value, float):
        return round_number(value)
    if isinstance(value, Mapping):
        return {key: _round_all(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_round_all(inner) for inner in value]
    return value
