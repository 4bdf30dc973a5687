"""Small networks of every shape with evidence, and their joint by enumeration, which inference is compared with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import strategies as st

from discreet.networks.network import Network
from discreet.values.errors import ImpossibleEvidence
from discreet.values.table import Table

Floats = npt.NDArray[np.float64]
EXACT = {"rtol": 0.0, "atol": 1e-12}


@dataclass(frozen=True)
class Case:
    """A network with hard and soft evidence, and the joint with the evidence entered, cell by cell."""

    network: Network
    evidence: dict[str, int]
    likelihoods: dict[str, Floats]
    seed: int

    @cached_property
    def joint(self) -> Floats:
        """P(x, evidence) for every x, axes in node order, by multiplying everything out."""
        nodes = self.network.nodes
        joint = reduce(np.multiply, (cpt.spread(nodes) for cpt in self.network.cpts))
        for name, weights in self.likelihoods.items():
            joint = joint * Table((name,), weights).spread(nodes)
        for name, code in self.evidence.items():
            point = np.zeros(self.network.schema[name].size)
            point[code] = 1.0
            joint = joint * Table((name,), point).spread(nodes)
        return np.asarray(joint)

    @property
    def total(self) -> float:
        """P(evidence)."""
        return float(self.joint.sum())

    def margin(self, names: Iterable[str]) -> Floats:
        """P(names, evidence), axes in the order asked."""
        return np.asarray(Table(self.network.nodes, self.joint).project(list(names)).values)

    def labels(self, codes: Mapping[str, int]) -> dict[str, str]:
        return {name: self.network.schema[name].levels[code] for name, code in codes.items()}

    def pick(self, salt: int = 0) -> list[str]:
        """Some nodes, at least one, in any order, observed or not."""
        rng = np.random.default_rng([self.seed, salt])
        nodes = self.network.nodes
        count = int(rng.integers(1, len(nodes) + 1))
        return [str(name) for name in rng.permutation(nodes)[:count]]


def make_rows(rng: np.random.Generator, kind: str, shape: tuple[int, ...]) -> Floats:
    """Conditional rows: all positive, with zeros, or certain."""
    size = shape[-1]
    if kind == "certain":
        return np.eye(size)[rng.integers(size, size=shape[:-1])]
    rows = rng.dirichlet(np.full(size, 0.7), size=shape[:-1])
    if kind == "zeros":
        keep = rng.random(shape) < 0.6
        np.put_along_axis(keep, rng.integers(size, size=(*shape[:-1], 1)), True, axis=-1)
        rows = np.where(keep, rows, 0.0)
    return np.asarray(rows / rows.sum(axis=-1, keepdims=True))


@st.composite
def cases(draw: st.DrawFn, soft: bool = True) -> Case:
    """1 to 7 nodes of 2 to 4 levels; parents anywhere before, or none: the graph may fall apart."""
    count = draw(st.integers(1, 7))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    order = [f"n{i}" for i in rng.permutation(count)]
    sizes = {name: draw(st.integers(2, 4 if count < 7 else 3)) for name in order}
    parents, cpts = {}, {}
    for i, name in enumerate(order):
        chosen = draw(st.lists(st.sampled_from(order[:i]), max_size=3, unique=True)) if i else []
        kind = draw(st.sampled_from(("positive", "zeros", "certain")))
        parents[name] = chosen
        cpts[name] = make_rows(rng, kind, tuple(sizes[member] for member in (*chosen, name)))
    nodes = [str(name) for name in rng.permutation(order)]
    network = Network.build(
        {name: [f"{name}={code}" for code in range(sizes[name])] for name in nodes},
        {name: parents[name] for name in nodes},
        cpts,
    )
    observed = draw(st.lists(st.sampled_from(nodes), max_size=count, unique=True))
    if draw(st.booleans()):  # drawn from the network, so possible
        codes = {name: int(column[0]) for name, column in network.sample(1, rng=seed).codes().items()}
    else:
        codes = {name: int(rng.integers(size)) for name, size in sizes.items()}
    likelihoods = {}
    for name in draw(st.lists(st.sampled_from(nodes), max_size=2, unique=True)) if soft else []:
        weights = np.where(rng.random(sizes[name]) < 0.3, 0.0, 10.0 ** rng.uniform(-3, 3, sizes[name]))
        weights[rng.integers(sizes[name])] = 0.5
        likelihoods[name] = weights
    return Case(network, {name: codes[name] for name in observed}, likelihoods, seed)


def refuses(ask: Callable[[], Any]) -> None:
    """The question is refused as impossible, in words that say so."""
    with pytest.raises(ImpossibleEvidence, match="probability zero"):
        ask()
