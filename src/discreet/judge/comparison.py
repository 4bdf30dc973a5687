"""How far two networks are apart: the conditionals and the marginal of every attribute."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from discreet.compute.metrics import compare_conditionals, total_variation
from discreet.networks.network import Network
from discreet.values.errors import NetworkError
from discreet.values.text import show


@dataclass(frozen=True, slots=True)
class NodeDistance:
    """One attribute: distances of its conditionals, where both networks have the same parents, and of its marginals."""

    name: str
    l1: float | None
    kl: float | None
    marginal: float


@dataclass(frozen=True, slots=True)
class NetworkDistance:
    """All attributes in order."""

    nodes: tuple[NodeDistance, ...]

    @property
    def worst(self) -> NodeDistance:
        """The attribute whose marginal is farthest off."""
        return max(self.nodes, key=lambda node: node.marginal)

    @property
    def mean_marginal(self) -> float:
        """The mean total variation between marginals."""
        return sum(node.marginal for node in self.nodes) / len(self.nodes)

    def to_json(self) -> dict[str, Any]:
        """The distances as plain values."""
        return {
            "attributes": [
                {"name": node.name, "L1": node.l1, "KL": node.kl, "marginal TV": node.marginal}
                for node in self.nodes
            ],
            "mean marginal TV": self.mean_marginal,
        }


def compare(
    one: Network | str | os.PathLike[str], other: Network | str | os.PathLike[str]
) -> NetworkDistance:
    """Distances of `other` from `one`, networks or files: L1 and KL of conditionals, weighed by how often they apply.

    The weights are the probabilities of the parents in `one`. KL has a floor under both distributions, as in
    [000, Sec. 5.1]; TV is between marginals. The order of attributes and parents does not matter. Bits and groups of
    levels, which each network may have of its own, are not compared.
    """
    one, other = _open_network(one), _open_network(other)
    names, others = one.declared.names, other.declared.names
    if set(names) != set(others):
        odd = sorted(set(names) ^ set(others))[0]
        raise NetworkError(
            f"attribute {show(odd)} is in one network only; both must have the same attributes"
        )
    for name in names:
        if one.schema[name].levels != other.schema[name].levels:
            raise NetworkError(f"the levels of {show(name)} are not the same in both networks")
    first, second = one.posteriors(), other.posteriors()
    return NetworkDistance(
        tuple(
            NodeDistance(
                name,
                *_compare_conditionals(one, other, name),
                float(total_variation(first[name], second[name])),
            )
            for name in names
        )
    )


def _open_network(network: Network | str | os.PathLike[str]) -> Network:
    from discreet.networks.formats.release import read_model

    return network if isinstance(network, Network) else read_model(network)


def _compare_conditionals(one: Network, other: Network, name: str) -> tuple[float | None, float | None]:
    parents = one.dag.parents_of(name)
    if not set(parents) == set(other.dag.parents_of(name)) <= set(one.declared.names):
        return None, None
    true, estimate = one.cpt(name), other.cpt(name).arrange(one.dag.family(name))
    weights = one.query(parents, intervals="none").table if parents else None
    l1 = compare_conditionals(true, estimate, parents, "l1", weights=weights)
    kl = compare_conditionals(true, estimate, parents, "kl", weights=weights)
    return l1, kl
