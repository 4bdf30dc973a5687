"""The ends of the intervals in the rows of a node: arranged over its family, and checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from discreet.networks.network import ROW_TOLERANCE
from discreet.values.errors import NetworkError
from discreet.values.graph import DAG
from discreet.values.table import Table


def arrange_ends(dag: DAG, given: Mapping[str, npt.ArrayLike], what: str) -> tuple[Table, ...]:
    """Plain arrays as tables over the families of a graph."""
    missing = [name for name in dag.nodes if name not in given]
    if missing or len(given) > len(dag):
        wrong = missing[0] if missing else next(name for name in given if name not in dag)
        raise NetworkError(f"{what} table for {wrong!r}: {'missing' if missing else 'no such node'}")
    found = []
    for name in dag.nodes:
        values = np.array(given[name], dtype=np.float64)
        if values.ndim != len(dag.family(name)):
            raise NetworkError(
                f"{what} table of {name!r} needs axes {dag.family(name)}; its array has {values.ndim} dimensions"
            )
        found.append(Table(dag.family(name), values))
    return tuple(found)


def check_ends(name: str, low: Table, high: Table, family: tuple[str, ...], sizes: Mapping[str, int]) -> None:
    """Refuse ends of one node's rows between which no distribution fits, by name and place."""
    shape = tuple(sizes[member] for member in family)
    for what, table in (("lower", low), ("upper", high)):
        if table.axes != family:
            raise NetworkError(f"{what} table of {name!r} has axes {table.axes}; its family is {family}")
        if table.values.shape != shape:
            raise NetworkError(
                f"{what} table of {name!r} has shape {table.values.shape}; the schema says {shape}"
            )
        if table.values.dtype != np.float64:
            raise NetworkError(
                f"{what} table of {name!r} holds {table.values.dtype}; probabilities are float64"
            )
        if not np.isfinite(table.values).all():
            raise NetworkError(f"{what} table of {name!r} holds a value that is not a finite number")
    if low.values.min() < 0 or high.values.max() > 1:
        odd = low.values.min() if low.values.min() < 0 else high.values.max()
        raise NetworkError(f"table of {name!r} holds the end {odd:g}; ends lie between 0 and 1")
    inverted = low.values > high.values
    if inverted.any():
        at = tuple(int(k) for k in np.argwhere(inverted)[0])
        raise NetworkError(
            f"table of {name!r}: at {_place(family, at)} the lower end {low.values[at]:.9g} is above "
            f"the upper end {high.values[at]:.9g}"
        )
    least, most = low.values.sum(axis=-1), high.values.sum(axis=-1)
    if least.max() > 1 + ROW_TOLERANCE or most.min() < 1 - ROW_TOLERANCE:
        high_row = least.max() > 1 + ROW_TOLERANCE
        at = tuple(
            int(k) for k in np.unravel_index(int((least if high_row else -most).argmax()), least.shape)
        )
        raise NetworkError(
            f"table of {name!r}: at {_place(family[:-1], at)} the lower ends sum to {least[at]:.9g} and the upper "
            f"ends to {most[at]:.9g}; no distribution fits unless 1 lies between"
        )


def _place(names: Sequence[str], codes: Sequence[int]) -> str:
    return "(" + ", ".join(f"{name}={code}" for name, code in zip(names, codes, strict=True)) + ")"
