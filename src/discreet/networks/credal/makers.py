"""Credal networks made from counts or around a network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from discreet.networks.credal.network import CredalNetwork
from discreet.networks.network import Network
from discreet.values.errors import NetworkError, TableError
from discreet.values.graph import DAG
from discreet.values.law import Exact
from discreet.values.measurement import Measurement
from discreet.values.schema import Schema
from discreet.values.table import Array, Table, require_cells

Strength = float | Mapping[str, npt.ArrayLike]
"""The S of the imprecise Dirichlet model: one for all rows, or for each node an array over its parents' levels."""


def idm(
    counts: Sequence[Table | Measurement], dag: DAG, schema: Schema, strength: Strength = 1.0
) -> CredalNetwork:
    """The local imprecise Dirichlet model: what sampling leaves open about each row [003, Eq. 8].

    p(x | π) ∈ [n_xπ/(n_π + S), (n_xπ + S)/(n_π + S)]; a row without counts is vacuous. `counts` are exact
    tables, revealed measurements or plain ones, of which some contains each family. It states sampling
    uncertainty honestly and hides nothing: normalising the lower ends of a row gives the exact frequencies,
    whatever S is.
    """
    dag = DAG.build({name: dag.parents_of(name) for name in schema.names})
    lower, upper = [], []
    for name in dag.nodes:
        found = find_counts(counts, dag.family(name), schema)
        spread = read_strength(strength, name, found.values.shape[:-1])[..., None]
        total = found.values.sum(axis=-1, keepdims=True) + spread
        empty = total <= 0
        total = np.where(empty, 1.0, total)
        lower.append(Table(found.axes, np.where(empty, 0.0, found.values / total)))
        upper.append(
            Table(found.axes, np.where(empty, 1.0, np.minimum((found.values + spread) / total, 1.0)))
        )
    return CredalNetwork(
        schema, dag, tuple(lower), tuple(upper), "Intervals of the imprecise Dirichlet model: sampling only."
    )


def contaminate(network: Network, share: float) -> CredalNetwork:
    """The ε-contamination of every row: r ≥ (1 − ε)·p, so r ∈ [(1 − ε)·p, (1 − ε)·p + ε] [003, Def. 5]."""
    if not 0 <= share <= 1:
        raise NetworkError(f"the share of contamination lies between 0 and 1, not {share}")
    lower = tuple(Table(cpt.axes, (1.0 - share) * cpt.values) for cpt in network.cpts)
    upper = tuple(Table(low.axes, np.minimum(low.values + share, 1.0)) for low in lower)
    return CredalNetwork(
        network.schema,
        network.dag,
        lower,
        upper,
        f"Any network of which a share of {1 - share:g} is this one.",
    )


def find_counts(counts: Sequence[Table | Measurement], family: Sequence[str], schema: Schema) -> Table:
    """The exact counts over a family, from the smallest table that contains it."""
    holders = []
    for found in counts:
        if isinstance(found, Measurement):
            if not isinstance(found.law, Exact):
                if set(family) <= set(found.axes):
                    raise TableError(
                        f"the table over {found.axes} has noise in it; `from_noise` makes intervals of that"
                    )
                continue
            found = found.noisy
        if set(family) <= set(found.axes):
            holders.append(found)
    if not holders:
        raise TableError(f"no table of counts contains all of {', '.join(family)}")
    table = min(holders, key=lambda found: found.cells).project(family)
    shape = tuple(schema[name].size for name in family)
    if table.values.shape != shape:
        raise TableError(
            f"the counts over {tuple(family)} have shape {table.values.shape}; the schema says {shape}"
        )
    values = np.asarray(table.values, dtype=np.float64)
    if not np.isfinite(values).all() or (values < 0).any():
        raise TableError(f"the counts over {tuple(family)} must be finite and not negative")
    return Table(table.axes, values)


def read_strength(strength: Strength, name: str, shape: Sequence[int]) -> Array:
    """The S of every row of a node, finite and not negative."""
    if isinstance(strength, Mapping):
        if name not in strength:
            raise TableError(f"S for {name!r}: missing")
        given = np.asarray(strength[name], dtype=np.float64)
    else:
        given = np.asarray(strength, dtype=np.float64)
    require_cells(f"the rows of {name}", shape)
    if given.ndim and given.shape != tuple(shape):
        raise TableError(f"S for {name!r} has shape {given.shape}; its rows have {tuple(shape)}")
    if not np.isfinite(given).all() or (given < 0).any():
        raise TableError(f"S for {name!r} must be finite and not negative")
    return np.broadcast_to(given, tuple(shape))
