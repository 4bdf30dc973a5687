"""Two networks side by side: how far apart their tables are, and how far apart what they say about each attribute."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from discreet.compute.metrics import compare_conditionals, total_variation
from discreet.networks.network import Network
from discreet.values.errors import NetworkError
from discreet.values.wording import show


@dataclass(frozen=True, slots=True)
class NodeDistance:
    """One attribute: distances of its conditional tables, where both have the same parents, and of its marginals."""

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


def compare(one: Network, other: Network) -> NetworkDistance:
    """Distances of `other` from `one`: L1 and KL of each table, its rows weighed by how often they occur in `one`.

    KL has a floor under both distributions, as in [000, Sec. 5.1]; TV is between marginals. The order of attributes
    and parents does not matter, that of levels does not either as long as both have the same.
    """
    if set(one.nodes) != set(other.nodes):
        odd = sorted(set(one.nodes) ^ set(other.nodes))[0]
        raise NetworkError(
            f"attribute {show(odd)} is in one network only; both must have the same attributes"
        )
    for name in one.nodes:
        if one.schema[name].levels != other.schema[name].levels:
            raise NetworkError(f"the levels of {show(name)} are not the same in both networks")
    first, second = one.posteriors(), other.posteriors()
    return NetworkDistance(
        tuple(
            NodeDistance(
                name, *_compare_tables(one, other, name), float(total_variation(first[name], second[name]))
            )
            for name in one.nodes
        )
    )


def _compare_tables(one: Network, other: Network, name: str) -> tuple[float | None, float | None]:
    parents = one.dag.parents_of(name)
    if set(parents) != set(other.dag.parents_of(name)):
        return None, None
    true, estimate = one.cpt(name), other.cpt(name).arrange(one.dag.family(name))
    weights = one.query(parents, intervals="none").table if parents else None
    l1 = compare_conditionals(true, estimate, parents, "l1", weights=weights)
    kl = compare_conditionals(true, estimate, parents, "kl", weights=weights)
    return l1, kl
