"""What paper 003 leaves open: a noisy network against a credal network in what they still tell, on its own graphs.

Asked are all single marginals, and each attribute given each parent's level, of the network that the members' counts
make. A noisy network answers with a number, which is off; a credal network with an interval, which holds the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from discreet.entrance import open_airlock
from discreet.learning.planned import planned
from discreet.networks.credal import idm
from discreet.networks.network import Network
from discreet.papers.parameters.independent import independent
from discreet.values.budget import PureDP
from discreet.values.errors import DiscreetError
from discreet.values.graph import DAG
from discreet.values.schema import Schema
from discreet.values.table import Table

STRENGTHS = (1, 10, 100, 1000)
EPSILONS = ("1", "0.1")
HEADER = ("nodes", "edges", "method", "off", "off_se", "width", "right", "wrong", "undecided", "questions")
Question = tuple[str, dict[str, str]]


def list_questions(dag: DAG) -> Iterator[Question]:
    """P(x), and P(x | one parent) for both levels of the parent."""
    for name in dag.nodes:
        yield name, {}
        for parent in dag.parents_of(name)[:1]:
            for level in ("0", "1"):
                yield name, {parent: level}


def compare_utility(
    dag: DAG, schema: Schema, tables: Sequence[Table], rows: dict[str, Any]
) -> dict[str, list[tuple[float, float, float]]]:
    """For every method and question: how far the answer is off, how wide it is, and 1, 0 or ½ for what it decides."""
    plain = Network(schema, dag, tuple(table.normalise(table.axes[-1]) for table in tables))
    truths = {}
    for question in list_questions(dag):
        try:
            truths[str(question)] = (question, float(plain.query(question[0], question[1]).table.values[0]))
        except DiscreetError:  # nobody has this level of the parent: there is nothing to be off from
            continue
    found: dict[str, list[tuple[float, float, float]]] = {}
    for strength in STRENGTHS:
        credal = idm(tables, dag, schema, strength)
        for (target, given), truth in truths.values():
            bounds = credal.bound((target,), given or None)
            low, high = float(bounds.lower[0]), float(bounds.upper[0])
            right = 1.0 if low > 0.5 or high < 0.5 else 0.5
            found.setdefault(f"credal, S={strength}", []).append(
                (abs((low + high) / 2 - truth), high - low, right)
            )
    learners: dict[str, Callable[..., Network]] = {"planned": planned, "D-Ind": independent}
    for epsilon in EPSILONS:
        for label, learner in learners.items():
            with open_airlock(rows, schema, budget=PureDP(epsilon)) as airlock:
                noisy = learner(airlock, dag, spend=PureDP(epsilon))
            for (target, given), truth in truths.values():
                value = float(noisy.query(target, given, intervals="none").table.values[0])
                found.setdefault(f"{label}, ε={epsilon}", []).append(
                    (abs(value - truth), 0.0, float((value > 0.5) == (truth > 0.5)))
                )
    return found


def summarise(
    nodes: int, edges: int, found: Sequence[dict[str, list[tuple[float, float, float]]]]
) -> list[tuple[object, ...]]:
    """One line for each method: means over all questions of all samplings, ± over samplings."""
    lines: list[tuple[object, ...]] = []
    for method in found[0]:
        each = [np.array(one[method]) for one in found]
        off = np.array([values[:, 0].mean() for values in each])
        every = np.concatenate(each)
        decided = every[:, 2] != 0.5
        lines.append(
            (
                nodes,
                edges,
                method,
                float(off.mean()),
                float(off.std(ddof=1) / np.sqrt(len(off))) if len(off) > 1 else float("nan"),
                float(every[:, 1].mean()),
                float((every[:, 2] == 1.0).mean()),
                float((every[:, 2] == 0.0).mean()),
                float((~decided).mean()),
                len(every),
            )
        )
    return lines
