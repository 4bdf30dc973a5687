"""Credal networks: made from noisy measurements, from counts, or around a network; and calibrated intervals.

What the rest of the package calls `credal`: networks whose conditionals are known within intervals.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from discreet.compute.sampling import Seed
from discreet.networks.answer import Decision, Interval
from discreet.networks.credal_network import CredalNetwork
from discreet.networks.formats.documents import MAX_BYTES, parse_document
from discreet.networks.intervals import (
    COVERAGE,
    Strength,
    bound_tables,
    read_strength,
    require_intervals,
    state_guarantee,
)
from discreet.networks.intervals.calibrated import DRAWS, Calibrated, draw_calibrated
from discreet.networks.network import Network
from discreet.values.errors import NetworkError, TableError
from discreet.values.files import read_text
from discreet.values.graph import DAG
from discreet.values.measurement import Exact, Measurement
from discreet.values.schema import Schema
from discreet.values.table import Table

__all__ = [
    "Calibrated",
    "CredalNetwork",
    "Decision",
    "Interval",
    "calibrated",
    "contaminate",
    "from_noise",
    "idm",
    "read_credal",
    "write_credal",
]


def from_noise(network: Network, coverage: float = COVERAGE, strength: Strength = 0.0) -> CredalNetwork:
    """All networks that the noisy measurements of a release leave possible, at the stated coverage.

    With probability at least `coverage` over the noise, ALL its intervals hold at once: the network that the
    custodian would have published without noise (its conditionals the relative frequencies n_xπ/n_π) is one of its
    networks, and so every bound of every query contains that network's answer. It is post-processing of what
    was paid for, hence as private as the release, and no arithmetic on it recovers the frequencies.

    `strength` widens every conditional by the S of the imprecise Dirichlet model, which states sampling uncertainty
    on top. A network that cannot have such intervals is refused (see `intervals.explain_lack`).
    """
    lower, upper = bound_tables(network.schema, network.dag, network.provenance, coverage, strength)
    meaning = state_guarantee(coverage, sampling=strength != 0)
    return CredalNetwork(network.schema, network.dag, lower, upper, meaning, network.provenance)


def calibrated(network: Network, coverage: float = COVERAGE, *, rng: Seed, draws: int = DRAWS) -> Calibrated:
    """Draws of the network without noise, given the noisy measurements, for intervals that are right on average.

    An interval covers the answer without noise about as often as it says, on average over questions and releases; it
    promises nothing for each of them as `from_noise` does, and is several times narrower.
    """
    known = require_intervals(network.dag, network.provenance)
    return draw_calibrated(network.schema, network.dag, network.cpts, known, coverage, rng=rng, draws=draws)


def idm(
    counts: Sequence[Table | Measurement], dag: DAG, schema: Schema, strength: Strength = 1.0
) -> CredalNetwork:
    """The local imprecise Dirichlet model: what sampling leaves open about each conditional [003, Eq. 8].

    p(x | π) ∈ [n_xπ/(n_π + S), (n_xπ + S)/(n_π + S)]; a conditional without counts is vacuous. `counts` are exact
    tables, revealed measurements or plain ones, of which some contains each family. It states sampling
    uncertainty honestly and hides nothing: normalising the lower ends of a conditional gives the exact frequencies,
    whatever S is.
    """
    dag = DAG.build({name: dag.parents_of(name) for name in schema.names})
    lower, upper = [], []
    for name in dag.nodes:
        found = _find_counts(counts, dag.family(name), schema)
        spread = read_strength(strength, name, found.values.shape[:-1])[..., None]
        total = found.values.sum(axis=-1, keepdims=True) + spread
        empty = total <= 0
        total = np.where(empty, 1.0, total)
        lower.append(Table(found.axes, np.where(empty, 0.0, found.values / total)))
        upper.append(
            Table(found.axes, np.where(empty, 1.0, np.minimum((found.values + spread) / total, 1.0)))
        )
    meaning = "The intervals cover sampling only, by the imprecise Dirichlet model."
    return CredalNetwork(schema, dag, tuple(lower), tuple(upper), meaning)


def contaminate(network: Network, share: float) -> CredalNetwork:
    """The ε-contamination of every conditional: (1 − ε)·p ≤ r ≤ (1 − ε)·p + ε [003, Def. 5]."""
    if not 0 <= share <= 1:
        raise NetworkError(f"the share of contamination must lie between 0 and 1, not {share}")
    lower = tuple(Table(cpt.axes, (1.0 - share) * cpt.values) for cpt in network.cpts)
    upper = tuple(Table(low.axes, np.minimum(low.values + share, 1.0)) for low in lower)
    meaning = f"The intervals allow any other network to be mixed in with a share of {share:g}."
    return CredalNetwork(network.schema, network.dag, lower, upper, meaning)


def read_credal(path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> CredalNetwork:
    """The credal network in a JSON file, plain or gzip."""
    return parse_credal(read_text(path, max_bytes), os.fspath(path))


def write_credal(credal: CredalNetwork, path: str | os.PathLike[str]) -> None:
    """Write a credal network as JSON, all or nothing; packed by gzip if the name ends in .gz."""
    credal.write(path)


def parse_credal(text: str, source: str = "JSON text") -> CredalNetwork:
    """The credal network in a JSON text; `source` is how messages call it."""
    return parse_document(text, source, CredalNetwork.from_json)


def _find_counts(counts: Sequence[Table | Measurement], family: Sequence[str], schema: Schema) -> Table:
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
