"""Which columns have hardly a missing cell, as far as noisy counts tell; their synthetic rows have none."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

import numpy as np

from discreet.networks.network import Network
from discreet.values.table import Table

if TYPE_CHECKING:
    from discreet.networks.formats.release import Release

Noisy = tuple[float, float]
"""A noisy count, and the variance of its noise."""
FEW = 3.0
"""So many deviations of the noise a count must pass to be more than noise."""


def find_never_missing(release: Release, before: Mapping[str, Noisy]) -> list[str]:
    """The attributes whose noisy counts of missing cells, all together, are within their noise.

    `before` are counts that were paid for earlier. Counts are weighted by their precision: Σ cᵢ/vᵢ ≤ 3 √(Σ 1/vᵢ).
    """
    found = []
    for attribute in release.network.declared:
        if attribute.missing is None:
            continue
        told = [before[attribute.name]] if attribute.name in before else []
        for table in release.provenance.measurements:
            if attribute.name in table.axes and table.rate == 1:
                axis = table.axes.index(attribute.name)
                cells = np.take(table.noisy.values, attribute.levels.index(attribute.missing), axis=axis)
                told.append((float(cells.sum()), float(table.law.variance) * cells.size))
        weights = [1 / max(variance, 1e-9) for _, variance in told]
        total = sum(count * weight for (count, _), weight in zip(told, weights, strict=True))
        if told and total <= FEW * float(np.sqrt(sum(weights))):
            found.append(attribute.name)
    return found


def forbid_missing(network: Network, names: Collection[str]) -> Network:
    """The network with these attributes never missing; what that leaves of a conditional is put to 1 again."""
    cpts = []
    for name, cpt in zip(network.nodes, network.cpts, strict=True):
        attribute = network.schema[name]
        if name in names and attribute.missing is not None:
            values = np.array(cpt.values, dtype=float)
            values[..., attribute.levels.index(attribute.missing)] = 0.0
            rest = values.reshape(-1, values.shape[-1]).sum(axis=0)
            if rest.sum() <= 0:
                cpts.append(cpt)
                continue
            total = values.sum(axis=-1, keepdims=True)
            values = np.where(total > 0, values / np.where(total > 0, total, 1.0), rest / rest.sum())
            cpts.append(Table(cpt.axes, values))
        else:
            cpts.append(cpt)
    return Network(network.schema, network.dag, tuple(cpts), network.provenance)
