"""The bounds of [002] on what its mechanisms cost in accuracy, as numbers to put beside the measured errors."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from discreet.papers.posterior.basis import bound_cells, close_downward, count_coefficients
from discreet.values.errors import MechanismError
from discreet.values.graph import DAG
from discreet.values.table import count_cells

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Guarantee:
    """A line of [002, Table 1]."""

    mechanism: str
    privacy: str
    utility: str
    bound: float

    def __str__(self) -> str:
        return f"{self.mechanism:<8} {self.privacy:<28} {self.utility:<40} {self.bound:.4g}"


def bound_fourier(
    dag: DAG, sizes: Mapping[str, int], node: str, scale: float, delta: float, t: float = 0.0
) -> float:
    """‖C(h) − h‖₁ ≤ scale·(cells·ln(|N_I|/δ) + 2t|N_I|) for the table of a node [002, Thm. 3].

    For bits and the printed scale 2|N_I|/ε it is (4|N_I|/ε)·(2^{|π|}·ln(|N_I|/δ) + t|N_I|).
    """
    _require(1.0, delta)
    closure = close_downward(dag.families())
    cells = count_cells(sizes[name] for name in dag.family(node))
    raised = 2.0 * t * bound_cells(closure, sizes) if t else 0.0
    return scale * (cells * math.log(count_coefficients(closure, sizes) / delta) + raised)


def bound_maximum(epsilon: float, t: float, mass: float, sensitivity: float = 0.5) -> float:
    """P(score below the best by 2t or more) ≤ exp(−εt/(2Δ))/ξ(S_t), with ξ(S_t) the prior mass within t of it.

    The printed exp(−εt) is for Δ = ½ [002, Lemma 4].
    """
    if not (epsilon > 0 and t > 0 and 0 < mass <= 1 and sensitivity > 0):
        raise MechanismError("ε, t and Δ are above 0, and the prior mass above 0 and at most 1")
    return min(1.0, math.exp(-epsilon * t / (2.0 * sensitivity)) / mass)


def tabulate(
    dag: DAG, sizes: Mapping[str, int], epsilon: float, rows: int, *, delta: float = 0.05, t: float = 1.0
) -> tuple[Guarantee, ...]:
    """Table 1 of [002] in numbers for a graph, an ε and a number of rows, as printed and for replaced rows.

    The sampler's privacy is 2Σ_i L_i, at the ω that costs ε; its utility is that of its own posterior, so the bound
    printed is ω, below which no probability falls. The MAP bound is for t and a prior mass of ½.
    """
    _require(epsilon, delta)
    nodes = len(dag)
    parameters = sum(count_cells(sizes[name] for name in family[:-1]) for family in dag.families())
    size = count_coefficients(close_downward(dag.families()), sizes)
    order = parameters * rows * math.log(max(rows, 2))
    decay = 1.0 - math.exp(-rows * epsilon / (2 * nodes))
    widest = max((name for name in dag.nodes), key=lambda name: len(dag.parents_of(name)))
    omega = 1.0 / (1.0 + math.exp(epsilon / (2 * nodes)))
    privacy = f"({epsilon:g}, 0)"
    return (
        Guarantee(
            "Laplace",
            privacy,
            "closeness of posterior, O(·)",
            order * decay + math.sqrt(-order * math.log(delta)),
        ),
        Guarantee(
            "Fourier",
            privacy,
            "close posterior parameters, L1",
            bound_fourier(dag, sizes, widest, 2 * size / epsilon, delta, t),
        ),
        Guarantee("Sampler", f"{privacy} at ω = {omega:.4g}", "least probability of a level", omega),
        Guarantee("MAP", privacy, "P(2t below the best)", bound_maximum(epsilon, t, 0.5)),
    )


def _require(epsilon: float, delta: float) -> None:
    if not (epsilon > 0 and math.isfinite(epsilon) and 0 < delta < 1):
        raise MechanismError(f"ε is above 0 and δ between 0 and 1, not {epsilon} and {delta}")
