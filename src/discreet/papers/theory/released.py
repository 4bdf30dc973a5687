"""How far answers of a network can be off: what its noise is expected to do, and the papers' μ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.compute.metrics import l1
from discreet.networks.network import Network
from discreet.papers.theory.guarantees import Guarantee, tabulate
from discreet.papers.theory.query_bounds import bound_by_ancestors, bound_query
from discreet.values.budget import PureDP
from discreet.values.errors import NetworkError

WIDTH = 28
ROUNDING = 1e-9
"""Networks that differ by less are the same in all their digits: there is no error to put between bounds."""


@dataclass(frozen=True, slots=True)
class ExpectedError:
    """An attribute of a release: Σ of the predicted errors of itself and of all that it depends on bounds its error."""

    name: str
    own: float
    """What noise is expected to change its conditionals by (L1)."""
    bound: float
    """What noise is expected to change its probabilities by at most: errors add up along the arrows."""


@dataclass(frozen=True, slots=True)
class KnownError:
    """An attribute of a network beside the true one."""

    name: str
    error: float
    """‖P − P̃‖₁."""
    lower: float
    upper: float
    """Theorems 4.1 and 4.2 of [000] as Table 2 uses them; the first does not hold, the second not for a whole query."""
    normalised: float
    """μ = (error − lower)/(upper − lower)."""
    sure: float
    """Σ over the ancestors of the error of their conditionals, weighed by how often they apply: it holds."""


@dataclass(frozen=True, slots=True)
class ErrorBounds:
    """The errors of a network's single attributes, with what bounds them."""

    expected: tuple[ExpectedError, ...] = ()
    known: tuple[KnownError, ...] = ()
    guarantees: tuple[Guarantee, ...] = ()
    """What the mechanisms of [002] would guarantee on this graph, for this ε and these rows."""

    def explain(self) -> str:
        """The tables as text."""
        lines: list[str] = []
        if self.expected:
            lines += [
                "L1 errors that the noise is expected to cause (at most 2):",
                f"{'attribute':<{WIDTH}} {'its conditionals':>17} {'its probabilities, at most':>27}",
                *(
                    f"{found.name[:WIDTH]:<{WIDTH}} {found.own:>17.4f} {found.bound:>27.4f}"
                    for found in self.expected
                ),
            ]
        if self.known:
            lines += [
                "L1 errors beside the true network; lower and upper as Theorems 4.1 and 4.2 of paper 000 have them:",
                f"{'attribute':<{WIDTH}} {'error':>8} {'lower':>8} {'upper':>9} {'μ':>9} {'sure bound':>11}",
                *(
                    f"{found.name[:WIDTH]:<{WIDTH}} {found.error:>8.4f} {found.lower:>8.4f} {found.upper:>9.4g} "
                    f"{found.normalised:>9.4g} {found.sure:>11.4f}"
                    for found in self.known
                ),
                f"mean μ {np.mean([found.normalised for found in self.known]):.4g}",
            ]
        if self.guarantees:
            lines += ["", "What paper 002 states for its mechanisms on this graph (replace-one, as printed):"]
            lines += [str(found) for found in self.guarantees]
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """The same as plain values."""
        return {
            "expected": [
                {"attribute": one.name, "own": one.own, "bound": one.bound} for one in self.expected
            ],
            "known": [
                {
                    "attribute": one.name,
                    "error": one.error,
                    "lower": one.lower,
                    "upper": one.upper,
                    "mu": one.normalised,
                    "sure": one.sure,
                }
                for one in self.known
            ],
            "guarantees": [
                {
                    "mechanism": one.mechanism,
                    "privacy": one.privacy,
                    "utility": one.utility,
                    "bound": one.bound,
                }
                for one in self.guarantees
            ],
        }


def bound_errors(network: Network, truth: Network | None = None, rows: int | None = None) -> ErrorBounds:
    """The bounds of a release's single attributes; with the `truth` μ and errors, with `rows` the bounds of [002]."""
    known = network.provenance
    expected: tuple[ExpectedError, ...] = ()
    guarantees: tuple[Guarantee, ...] = ()
    if known is not None and known.predicted_error:
        expected = tuple(_expect(network, known.predicted_error, name) for name in network.dag.nodes)
    if rows is not None:
        if known is None or not isinstance(known.cost, PureDP):
            raise NetworkError("the bounds of paper 002 are for a release that was paid for in pure ε")
        guarantees = tabulate(network.dag, network.schema.sizes, float(known.cost.epsilon), rows)
    if truth is not None:
        return ErrorBounds(expected, _compare(network, truth), guarantees)
    if not expected and not guarantees:
        raise NetworkError(
            "this network does not say what noise it has; give the true network (--truth) to compare it with"
        )
    return ErrorBounds(expected, (), guarantees)


def _expect(network: Network, errors: Any, name: str) -> ExpectedError:
    above = network.dag.ancestors([name])
    return ExpectedError(name, errors[name], min(2.0, sum(errors[found] for found in above)))


def _compare(network: Network, truth: Network) -> tuple[KnownError, ...]:
    if truth.schema.names != network.schema.names or truth.schema.sizes != network.schema.sizes:
        raise NetworkError("the true network is over other attributes or levels")
    if any(set(truth.dag.parents_of(name)) != set(network.dag.parents_of(name)) for name in truth.nodes):
        raise NetworkError("the theorems are about networks on one graph; the true network has another")
    noisy = [cpt.arrange(true.axes) for cpt, true in zip(network.cpts, truth.cpts, strict=True)]
    marginals = [found.engine.posteriors({}).to_dict() for found in (truth, network)]
    return tuple(_compare_one(truth, noisy, name, marginals) for name in truth.nodes)


def _compare_one(truth: Network, noisy: Sequence[Any], name: str, marginals: Sequence[Any]) -> KnownError:
    bounds = bound_query(truth.dag, truth.cpts, noisy, (name,))
    error = float(np.sum(l1(marginals[0][name], marginals[1][name])))
    normalised = bounds.normalise(error) if bounds.upper > bounds.lower + ROUNDING else 0.0
    sure = bound_by_ancestors(truth.dag, truth.cpts, noisy, (name,))
    return KnownError(name, error, bounds.lower, bounds.upper, normalised, sure)
