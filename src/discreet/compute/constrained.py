"""A network under constraints: what cannot be has probability 0, and the rest keeps its proportions.

P(x | all constraints hold) ∝ Π P(x_i | pa_i) · Π 1[x fulfils c]. The indicators are factors like others, so the
junction tree of both together gives the exact conditionals to draw from: no row is ever drawn and thrown away.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from discreet.compute.inference import Engine
from discreet.compute.inference.propagation import propagate_log
from discreet.compute.triangulation import join, triangulate
from discreet.values.errors import SchemaError, TooLarge
from discreet.values.graph import DAG
from discreet.values.schema import Schema
from discreet.values.schema.constraints import tabulate
from discreet.values.table import MAX_CELLS, Table, count_cells
from discreet.values.text import show_count

FLOOR = 1e-9
"""The share of an even conditional that is mixed in where the network rules out all that the constraints allow."""


def decompose_constrained(
    schema: Schema,
    dag: DAG,
    cpts: Sequence[Table],
    codes: Mapping[str, int],
    weights: Mapping[str, npt.NDArray[np.float64]],
) -> list[Table]:
    """The conditionals of the network given evidence and constraints, each after those that it is given.

    Where a learned graph is too wide together with the constraints, arrows give way, the widest families' first: what
    holds between columns is certain, and a dependence is an estimate. A graph that was given is refused before it is
    paid for (`require_narrow`).
    """
    indicators = [Table(found.axes, found.values.astype(np.float64)) for found in tabulate(schema)]
    tables = list(cpts)
    while True:
        try:
            engine = Engine(dag, (*tables, *indicators))
            break
        except TooLarge:
            widest = max(range(len(tables)), key=lambda i: (len(tables[i].axes) > 1, tables[i].cells))
            if len(tables[widest].axes) == 1:
                raise
            tables[widest] = _drop_parent(tables[widest])
    if not _is_possible(engine):
        tables = [Table(cpt.axes, (1 - FLOOR) * cpt.values + FLOOR / cpt.values.shape[-1]) for cpt in tables]
        engine = Engine(dag, (*tables, *indicators))
    return engine.decompose(codes, weights)


def _is_possible(engine: Engine) -> bool:
    """Whether anything has a positive probability, before any evidence."""
    if engine.junction.calibrated is not None:
        return bool(engine.junction.calibrated[0][0].any())
    return propagate_log(engine.junction, {}, {}).log_evidence > -np.inf


def require_narrow(schema: Schema, dag: DAG | None) -> None:
    """Refuse constraints that no row fulfils, or that are too many cells, with the graph if one is given.

    Everything here follows from the schema and the graph, so it is known before anything is paid.
    """
    if not schema.constraints:
        return
    indicators = [Table(found.axes, found.values.astype(np.float64)) for found in tabulate(schema)]
    even = [Table((found.name,), np.full(found.size, 1.0 / found.size)) for found in schema]
    try:
        alone = Engine(DAG.build(dict.fromkeys(schema.names, ())), (*even, *indicators))
    except TooLarge as error:
        raise SchemaError(f"the constraints together are too wide: {error}") from None
    if not _is_possible(alone):
        raise SchemaError("the constraints contradict each other: no row fulfils all of them")
    if dag is None:
        return
    places = {name: i for i, name in enumerate(schema.names)}
    scopes = [*(dag.family(name) for name in dag.nodes), *(found.axes for found in indicators)]
    sizes = tuple(schema.sizes.values())
    try:
        tree = join(
            *triangulate([tuple(places[name] for name in scope) for scope in scopes], sizes, MAX_CELLS), sizes
        )
        cells = sum(count_cells(sizes[v] for v in clique) for clique in tree.cliques)
    except TooLarge as error:
        raise SchemaError(f"the graph and the constraints together are too wide: {error}") from None
    if cells > MAX_CELLS:
        raise SchemaError(
            f"the graph and the constraints together take {show_count(cells)} cells; at most {MAX_CELLS:,} are allowed"
        )


def _drop_parent(cpt: Table) -> Table:
    """A conditional without the parent of the most levels: the even mean over it."""
    largest = max(cpt.axes[:-1], key=lambda name: cpt.sizes[name])
    kept = tuple(name for name in cpt.axes if name != largest)
    return Table(kept, cpt.values.mean(axis=cpt.axes.index(largest)))
