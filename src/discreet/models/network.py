"""A discrete Bayesian network: a schema, a graph, and one conditional probability table for each node."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.vocabulary.errors import NetworkError
from discreet.vocabulary.graph import DAG
from discreet.vocabulary.schema import Schema
from discreet.vocabulary.table import Table

ROW_TOLERANCE = 1e-6
"""How far the sum of a row may be from 1; rows are taken as they are, never mended silently."""


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """A validated Bayesian network; the axes of each table are the parents in order, then the child."""

    schema: Schema
    dag: DAG
    cpts: tuple[Table, ...]

    def __post_init__(self) -> None:
        if self.schema.names != self.dag.nodes:
            raise NetworkError(
                f"the schema declares {', '.join(self.schema.names)}; the graph has {', '.join(self.dag.nodes)}"
            )
        if len(self.cpts) != len(self.dag):
            raise NetworkError(f"{len(self.dag)} nodes need as many tables, not {len(self.cpts)}")
        sizes = self.schema.sizes
        for name, cpt in zip(self.dag.nodes, self.cpts, strict=True):
            _check_cpt(name, cpt, self.dag.family(name), sizes)

    @classmethod
    def build(
        cls,
        schema: Schema | Mapping[str, Sequence[str]],
        parents: DAG | Mapping[str, Sequence[str]],
        cpts: Mapping[str, npt.ArrayLike],
    ) -> Network:
        """A network from plain arrays: `cpts[name]` has one axis per parent, in order, then the child's axis."""
        declared = schema if isinstance(schema, Schema) else Schema.of(schema)
        graph = parents if isinstance(parents, DAG) else DAG.build(parents)
        if set(graph.nodes) != set(declared.names):
            raise NetworkError(
                f"the schema declares {', '.join(declared.names)}; the graph has {', '.join(graph.nodes)}"
            )
        dag = DAG.build({name: graph.parents_of(name) for name in declared.names})
        missing = [name for name in dag.nodes if name not in cpts]
        if missing or len(cpts) > len(dag):
            wrong = missing[0] if missing else next(name for name in cpts if name not in dag)
            raise NetworkError(f"table for {wrong!r}: {'missing' if missing else 'no such node'}")
        arrays = {name: np.asarray(cpts[name], dtype=np.float64) for name in dag.nodes}
        for name, values in arrays.items():
            if values.ndim != len(dag.family(name)):
                raise NetworkError(
                    f"table of {name!r} needs axes {dag.family(name)}; its array has {values.ndim} dimensions"
                )
        return cls(declared, dag, tuple(Table(dag.family(name), arrays[name].copy()) for name in dag.nodes))

    @property
    def nodes(self) -> tuple[str, ...]:
        """The attributes, in schema order."""
        return self.dag.nodes

    def cpt(self, name: str) -> Table:
        """The conditional probability table of a node."""
        return self.cpts[self.dag.index(name)]

    def close_to(self, other: Network, tolerance: float = 1e-12) -> bool:
        """Whether both have the same schema and graph, and the same tables up to `tolerance`."""
        return (
            self.schema == other.schema
            and self.dag == other.dag
            and all(mine.close_to(theirs, tolerance) for mine, theirs in zip(self.cpts, other.cpts, strict=True))
        )

    def __repr__(self) -> str:
        cells = sum(cpt.cells for cpt in self.cpts)
        return f"Network({len(self.dag)} nodes, {len(self.dag.edges())} edges, {cells} table cells)"


def _check_cpt(name: str, cpt: Table, family: tuple[str, ...], sizes: Mapping[str, int]) -> None:
    if cpt.axes != family:
        raise NetworkError(f"table of {name!r} has axes {cpt.axes}; its family is {family}")
    shape = tuple(sizes[member] for member in family)
    if cpt.values.shape != shape:
        raise NetworkError(f"table of {name!r} has shape {cpt.values.shape}; the schema says {shape}")
    if cpt.values.dtype != np.float64:
        raise NetworkError(f"table of {name!r} holds {cpt.values.dtype}; probabilities are float64")
    if not np.isfinite(cpt.values).all():
        raise NetworkError(f"table of {name!r} holds a value that is not a finite number")
    low = cpt.values.min()
    if low < 0:
        raise NetworkError(f"table of {name!r} holds the negative probability {low:g}")
    sums = cpt.values.sum(axis=-1)
    off = np.abs(sums - 1.0)
    if off.max() > ROW_TOLERANCE:
        worst = np.unravel_index(int(off.argmax()), off.shape)
        where = ", ".join(f"{parent}={code}" for parent, code in zip(family[:-1], worst, strict=True))
        raise NetworkError(
            f"table of {name!r}: the row at ({where}) sums to {sums[worst]:.9g}; it must sum to 1 within {ROW_TOLERANCE:g}"
        )
