"""Intervals for what a network would say without the noise: guaranteed ones for every conditional, and why not.

They assume the graph: the network without noise has the relative frequencies as its conditionals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from discreet.compute.bounds.counting import bound_conditionals, bound_counts
from discreet.networks.intervals.calibrated import MOST_LEVELS as MOST_ASKED
from discreet.networks.provenance import Provenance
from discreet.values.errors import NetworkError, TableError
from discreet.values.graph import DAG
from discreet.values.schema import Schema
from discreet.values.table import Array, Table, count_cells, require_cells
from discreet.values.text import require_share

COVERAGE = 0.95
"""How sure the intervals beside answers are."""

SUM_TOLERANCE = 1e-6
"""How far the sum of a conditional may be from 1; conditionals are taken as they are, never mended silently."""

Strength = float | Mapping[str, npt.ArrayLike]
"""The S of the imprecise Dirichlet model: one for all, or for each node an array over the levels of its parents."""


def explain_lack(dag: DAG, provenance: Provenance | None) -> str:
    """Why no interval can be given for a network, and what to do about it; empty if there can be intervals.

    The counts behind a conditional are bounded by a table that holds its whole family. What was fitted to several
    smaller tables has the noise of all of them and the error of the fit, and nothing published bounds that error.
    """
    if provenance is None:
        return "the network does not say what was measured; only a privately learned one does"
    if provenance.details.get("batches"):
        return (
            "the learner adaptive fits one network to many small tables, so there is no network without the noise to "
            'compare with; ask for intervals of the table (of="table", --of table)'
        )
    held = [frozenset(found.axes) for found in provenance.measurements if found.rate == 1]
    unheld = [family for family in dag.families() if not any(axes.issuperset(family) for axes in held)]
    if not unheld:
        return ""
    if provenance.details.get("auxiliary"):
        return (
            "those of a network are not worked out through bits or groups of levels; ask for those of the table "
            '(of="table", --of table)'
        )
    return f"no table over all rows was measured that contains {', '.join(unheld[0])}"


def require_intervals(dag: DAG, provenance: Provenance | None) -> Provenance:
    """The provenance of a network that can have intervals, or a refusal that says why not and what to do."""
    lack = explain_lack(dag, provenance)
    if lack or provenance is None:
        raise NetworkError(f"no intervals: {lack}")
    return provenance


def state_guarantee(coverage: float, *, sampling: bool = False) -> str:
    """What guaranteed intervals cover, in a sentence."""
    said = (
        f"{100 * coverage:g} % sure, for all answers together: without the noise, the answer on this graph would lie "
        "in [ ]."
    )
    return said + " It is widened for sampling by the imprecise Dirichlet model." * sampling


def bound_tables(
    schema: Schema,
    dag: DAG,
    provenance: Provenance | None,
    coverage: float = COVERAGE,
    strength: Strength = 0.0,
) -> tuple[tuple[Table, ...], tuple[Table, ...]]:
    """The least and the greatest conditionals that the noisy measurements leave possible, together with `coverage`."""
    require_share(coverage, "the coverage", NetworkError)
    known = require_intervals(dag, provenance)
    for measurement in known.measurements:
        for name, size in measurement.noisy.sizes.items():
            if name in schema and schema[name].size != size:
                raise NetworkError(
                    f"no intervals: the measured table over {measurement.axes} has {size} levels of {name!r}; the "
                    f"schema has {schema[name].size}"
                )
    sets = [members for family in dag.families() for members in (family, family[:-1])]
    # A search that counted the rows first chose its tables in the light of that noise, so that count is left out.
    fresh = [found for found in known.measurements if found.axes or "structure" not in known.details]
    counts = bound_counts(fresh, sets, schema.names, coverage)
    lower, upper = [], []
    for name in dag.nodes:
        family = dag.family(name)
        cells, totals = counts[frozenset(family)], counts[frozenset(family[:-1])]
        spread = Table(
            family[:-1], read_strength(strength, name, [schema[parent].size for parent in family[:-1]])
        ).arrange(totals.axes)
        low, high = bound_conditionals(cells, totals, name, spread.values)
        if (
            (low > high).any()
            or low.sum(axis=-1).max() > 1 + SUM_TOLERANCE
            or high.sum(axis=-1).min() < 1 - SUM_TOLERANCE
        ):
            raise NetworkError(
                f"no intervals: the noisy tables contradict each other about {name!r}, as happens in at most "
                f"{100 * (1 - coverage):g} % of releases"
            )
        lower.append(Table((*totals.axes, name), low).arrange(family))
        upper.append(Table((*totals.axes, name), high).arrange(family))
    return tuple(lower), tuple(upper)


def read_strength(strength: Strength, name: str, shape: Sequence[int]) -> Array:
    """The S of every conditional of a node, finite and not negative."""
    if isinstance(strength, Mapping):
        if name not in strength:
            raise TableError(f"there is no S for {name!r}")
        given = np.asarray(strength[name], dtype=np.float64)
    else:
        given = np.asarray(strength, dtype=np.float64)
    require_cells(f"the conditionals of {name}", shape)
    if given.ndim and given.shape != tuple(shape):
        raise TableError(f"S for {name!r} has shape {given.shape}; its conditionals have {tuple(shape)}")
    if not np.isfinite(given).all() or (given < 0).any():
        raise TableError(f"S for {name!r} must be finite and not negative, not {given.min():g}")
    return np.broadcast_to(given, tuple(shape))


def pose_levels(targets: Sequence[str], shape: tuple[int, ...]) -> Array:
    """The functions whose expectations are the probabilities of all levels; of two levels, the first one's will do."""
    cells = require_cells(f"the answer over {', '.join(targets)}", shape, MOST_ASKED)
    functions = np.eye(cells).reshape(cells, *shape)
    return functions[:1] if cells == 2 else functions


def shape_ends(low: Array, high: Array, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """The ends of the functions of `pose_levels`, shaped like the answer."""
    if len(low) < count_cells(shape):
        low, high = np.append(low, 1.0 - high), np.append(high, 1.0 - low)
    return low.reshape(shape), high.reshape(shape)
