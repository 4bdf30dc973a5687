"""What a network holds beside the declared attributes: the bits or groups that an encoding was searched with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from discreet.values.errors import TooLarge
from discreet.values.schema import Schema
from discreet.values.table import Table

if TYPE_CHECKING:
    from discreet.networks.network import Network


def find_declared(network: Network) -> Schema:
    """The schema without the attributes that an encoding has added, as the provenance names them."""
    added = None if network.provenance is None else network.provenance.details.get("auxiliary")
    hidden = {name for name in added if isinstance(name, str)} if isinstance(added, list | tuple) else set()
    shown = [name for name in network.schema.names if name not in hidden]
    return network.schema.select(shown) if hidden and shown else network.schema


def find_spelling(network: Network) -> tuple[Table, ...]:
    """For each attribute that was cut into bits, which values of the bits spell one of its levels."""
    cut = None if network.provenance is None else network.provenance.details.get("bits")
    found = []
    for name, bits in cut.items() if isinstance(cut, Mapping) else ():
        if name in network.dag and isinstance(bits, list | tuple):
            family = network.dag.family(name)
            if family[:-1] == tuple(bits) and all(network.schema[bit].size == 2 for bit in bits):
                codes = np.arange(2 ** len(bits)).reshape([2] * len(bits))  # the most significant bit first
                found.append(Table(family[:-1], codes < network.schema[name].size))
    return tuple(found)


def weigh_stray(network: Network) -> float:
    """At most how probable it is that the bits of some attribute spell no level, before any evidence.

    Synthetic rows are drawn without such bits, but a query counts them as the levels that they are nearest to; so this
    is how far the two can be apart.
    """
    weight = 0.0
    for table in find_spelling(network):
        if table.values.all():
            continue
        try:
            weight += float(network.engine.joint(table.axes, {}).values[~table.values].sum())
        except TooLarge:
            return 1.0
    return min(1.0, weight)
