"""Which levels that a draft adds to every column hardly a row holds, as far as noisy counts tell: none is drawn."""

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


def find_unheld(release: Release, missing: Mapping[str, Noisy]) -> list[tuple[str, str]]:
    """The attributes whose missing cells, or whose values that are none of the levels, are within their noise.

    `missing` are counts of missing cells that were paid for earlier. Counts are weighted by their precision:
    Σ cᵢ/vᵢ ≤ 3 √(Σ 1/vᵢ).
    """
    found = []
    for attribute in release.network.declared:
        for level in (attribute.missing, attribute.other):
            if level is None:
                continue
            told = (
                [missing[attribute.name]] if level == attribute.missing and attribute.name in missing else []
            )
            for table in release.provenance.measurements:
                if attribute.name in table.axes and table.rate == 1:
                    axis = table.axes.index(attribute.name)
                    cells = np.take(table.noisy.values, attribute.levels.index(level), axis=axis)
                    told.append((float(cells.sum()), float(table.law.variance) * cells.size))
            weights = [1 / max(variance, 1e-9) for _, variance in told]
            total = sum(count * weight for (count, _), weight in zip(told, weights, strict=True))
            if told and total <= FEW * float(np.sqrt(sum(weights))):
                found.append((attribute.name, level))
    return found


def forbid_levels(network: Network, unheld: Collection[tuple[str, str]]) -> Network:
    """The network without these levels of attributes; what that leaves of a conditional is put to 1 again."""
    cpts = []
    for name, cpt in zip(network.nodes, network.cpts, strict=True):
        levels = [network.schema[name].levels.index(level) for node, level in unheld if node == name]
        values = np.array(cpt.values, dtype=float)
        values[..., levels] = 0.0
        rest = values.reshape(-1, values.shape[-1]).sum(axis=0)
        if not levels or rest.sum() <= 0:
            cpts.append(cpt)
            continue
        total = values.sum(axis=-1, keepdims=True)
        values = np.where(total > 0, values / np.where(total > 0, total, 1.0), rest / rest.sum())
        cpts.append(Table(cpt.axes, values))
    return Network(network.schema, network.dag, tuple(cpts), network.provenance)
