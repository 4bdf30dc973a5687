"""The random queries of [000, Sec. 5.1]: marginals, conditionals and most probable levels, sets from singletons up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from discreet.compute.metrics import kl, l1
from discreet.compute.triangulation import triangulate
from discreet.networks.network import Network
from discreet.papers.theory.query_bounds import bound_above, bound_query
from discreet.values.errors import ImpossibleEvidence

MOST_CELLS = 4096
"""The paper goes up to the full attribute set; a table over all of Alarm has 10^16 cells, so sets stop here."""
CLEAR = 1e-6
"""A most probable answer counts only if it is this much more probable than the next: a tie has no right answer."""


@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """P(targets | given) for all levels of `given`, or, with evidence, the most probable levels of the targets."""

    targets: tuple[str, ...]
    given: tuple[str, ...]
    evidence: dict[str, int]
    truth: np.ndarray
    """Rows are levels of `given`, columns levels of `targets`."""
    weights: np.ndarray
    """The true probability of each row."""


@dataclass(frozen=True, slots=True, eq=False)
class Queries:
    """Those of one network."""

    network: Network
    marginal: tuple[Query, ...]
    conditional: tuple[Query, ...]
    most_probable: tuple[Query, ...]

    @property
    def width(self) -> int:
        """κ as the paper has it: the treewidth of the graph, or what greedy triangulation finds of it."""
        dag, sizes = self.network.dag, self.network.schema.sizes
        place = {name: i for i, name in enumerate(dag.nodes)}
        scopes = [[place[member] for member in family] for family in dag.families()]
        cliques, _ = triangulate(scopes, [sizes[name] for name in dag.nodes])
        return max(map(len, cliques)) - 1

    @classmethod
    def draw(
        cls, network: Network, seed: int, marginal: int = 10, conditional: int = 10, probable: int = 20
    ) -> Queries:
        """So many of each kind; the first ones over single attributes, the last ones over as many as fit."""
        rng = np.random.default_rng(seed)
        return cls(
            network,
            tuple(_ask(network, _pick(network, rng, i / max(marginal - 1, 1), 1)) for i in range(marginal)),
            tuple(
                _ask(network, _pick(network, rng, i / max(conditional - 1, 1), 2)) for i in range(conditional)
            ),
            tuple(_ask_most_probable(network, rng, i / max(probable - 1, 1)) for i in range(probable)),
        )

    def measure_errors(self, learned: Network) -> dict[str, float]:
        """Means over the queries; a row of a conditional counts by its true probability.

        `mu` is for that error and the width of the query's own elimination; `mu_printed` for Σ_{x,y} |P[x|y] − P̃[x|y]|,
        every row alike, and the treewidth of the graph, as Table 2 has it.
        """
        found: dict[str, list[float]] = {}
        for kind, queries in (("marginal", self.marginal), ("conditional", self.conditional)):
            for query in queries:
                estimate = _answer(learned, query)
                error = float((query.weights * l1(query.truth, estimate)).sum())
                bounds = bound_query(
                    self.network.dag, self.network.cpts, learned.cpts, (*query.targets, *query.given)
                )
                found.setdefault(f"{kind}_l1", []).append(error)
                found.setdefault(f"{kind}_kl", []).append(
                    float((query.weights * kl(query.truth, estimate)).sum())
                )
                found.setdefault(f"{kind}_mu", []).append(
                    bounds.normalise(error) if bounds.upper > 0 else 0.0
                )
                printed = bound_above(bounds.degree, bounds.levels, self.width, bounds.greatest)
                total = float(np.abs(query.truth - estimate).sum())
                span = printed - bounds.lower
                found.setdefault(f"{kind}_mu_printed", []).append(
                    (total - bounds.lower) / span if span > 0 else 0.0
                )
                found.setdefault("below_lower", []).append(float(error < bounds.lower))
                found.setdefault("above_upper", []).append(float(error > bounds.upper))
        found["map"] = [float(_is_right(learned, query)) for query in self.most_probable]
        return {name: float(np.mean(values)) for name, values in found.items()}


def _pick(network: Network, rng: np.random.Generator, size: float, sets: int) -> list[tuple[str, ...]]:
    """Disjoint random sets; `size` runs from 0, single attributes, to 1, as many as fit into a table."""
    names = [str(name) for name in rng.permutation(network.nodes)]
    most, cells = 0, 1
    while most < len(names) and cells * network.schema.sizes[names[most]] <= MOST_CELLS:
        cells *= network.schema.sizes[names[most]]
        most += 1
    wanted = sets + round(size * (most - sets))
    cuts = [round(k * wanted / sets) for k in range(sets + 1)]
    return [tuple(names[start:stop]) for start, stop in pairwise(cuts)]


def _ask(network: Network, sets: Sequence[tuple[str, ...]]) -> Query:
    targets, given = sets[0], sets[1] if len(sets) > 1 else ()
    truth, weights = _tabulate(network, targets, given)
    return Query(targets, given, {}, truth, weights)


def _tabulate(
    network: Network, targets: tuple[str, ...], given: tuple[str, ...]
) -> tuple[np.ndarray, np.ndarray]:
    joint = network.engine.joint((*given, *targets), {}).values
    table = joint.reshape(int(np.prod(joint.shape[: len(given)])), -1)
    weights = table.sum(axis=1)
    rows = np.where(
        weights[:, None] > 0, table / np.where(weights > 0, weights, 1.0)[:, None], 1 / table.shape[1]
    )
    return rows, weights


def _answer(learned: Network, query: Query) -> np.ndarray:
    return _tabulate(learned, query.targets, query.given)[0]


def _ask_most_probable(network: Network, rng: np.random.Generator, size: float) -> Query:
    """Targets and evidence, as drawn from the network itself so that the evidence is possible; ties are drawn again."""
    while True:
        targets, given = _pick(network, rng, size, 2)
        codes = network.sample(1, rng=int(rng.integers(2**31))).codes()
        evidence = {name: int(codes[name][0]) for name in given}
        truth = network.engine.joint(targets, evidence).values.ravel()
        top = np.sort(truth)[::-1]
        if top[0] - top[1] > CLEAR:
            return Query(targets, given, evidence, truth, np.ones(1))


def _is_right(learned: Network, query: Query) -> bool:
    try:
        found = learned.engine.joint(query.targets, query.evidence).values.ravel()
    except ImpossibleEvidence:
        return False
    return int(found.argmax()) == int(query.truth.argmax())
