"""The networks that the browser tests look at, and evidence on them."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import discreet as dc
from discreet.judge.explorer.page import make_explorer
from discreet.networks.formats.release import read_model
from discreet.networks.network import Network

BUNDLED = ("asia", "sachs", "child", "alarm")


@cache
def load(name: str) -> Network:
    """A bundled network, or one of those that pgmpy brings along."""
    if name in BUNDLED:
        found: Network = getattr(dc.examples, name)()
        return found
    import pgmpy

    folder = Path(os.path.dirname(pgmpy.__file__)) / "utils" / "example_models"
    return read_model(folder / f"{name}.bif.gz")


@cache
def draw(name: str) -> str:
    """The page of a network."""
    return make_explorer(load(name), file=f"{name}.bif")


@cache
def release(name: str, rows: int = 5000) -> Any:
    """A private release of rows drawn from a network, by its own graph."""
    network = load(name)
    return dc.release(
        network.sample(rows, rng=1).arrow(), network.schema, network.dag, epsilon=1, account=name
    )


@cache
def make_wide() -> Network:
    """Causes that share effects with each other: too much for exact answers in a browser."""
    names = [f"cause{i}" for i in range(22)]
    levels = {name: ["yes", "no", "maybe", "other"] for name in names}
    parents: dict[str, list[str]] = {name: [] for name in names}
    cpts: dict[str, Any] = {name: np.full(4, 0.25) for name in names}
    for i, one in enumerate(names):
        for other in names[i + 1 : i + 12]:
            effect = f"{one}+{other}"
            levels[effect], parents[effect] = ["yes", "no"], [one, other]
            cpts[effect] = np.full((4, 4, 2), 0.5)
    return Network.build(levels, parents, cpts)


def choose_evidence(network: Network, count: int, seed: int) -> list[dict[str, list[str]]]:
    """Possible evidence on some attributes: the level that a drawn row has, or several that include it."""
    source = np.random.default_rng(seed)
    rows = network.sample(count, rng=seed).arrow(labels=True).to_pydict()
    found = []
    for i in range(count):
        names = source.choice(network.nodes, source.integers(0, min(7, len(network.nodes))), replace=False)
        evidence = {}
        for name in map(str, names):
            levels = network.schema[name].levels
            others = [level for level in levels if level != rows[name][i] and source.random() < 0.5]
            kept = [rows[name][i]] if len(levels) == 2 or source.random() < 0.6 else [rows[name][i], *others]
            evidence[name] = [level for level in levels if level in kept]
            assert evidence[name], f"{rows[name][i]!r} is no level of {name}"
        found.append(evidence)
    return found
