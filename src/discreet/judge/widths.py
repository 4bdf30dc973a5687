"""How wide the intervals of a release would be, before anything is paid; and the budget that buys a width.

The learner runs on made-up rows that are spread evenly (see `learning.rehearsal`), and what it would publish is asked.
Real shares are not even: an answer given something rare has fewer rows behind it and a wider interval, in proportion.

Rows that are spread evenly over all cells have no dependence. Then what is not known of an attribute's parents does not
matter to it, and an interval that assumes the graph looks narrower than it will be. An arrow claims a dependence, so on
a graph half of the rows are supposed to follow one: each attribute x with k levels has

    P(x | parents) = 1/2k + 1/2 · the mean over its parents y of F(x | y)

where F puts x as high among its levels as y is among its own: with x covering [x/k, (x + 1)/k) of the way from the
first level to the last, F(x | y) is the share of y's part that lies in x's. Every level stays as frequent as any other
of its attribute, because F makes even shares of even ones.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from discreet.compute.contraction import Margin
from discreet.judge.preview import Preview
from discreet.networks.answer import Answer
from discreet.networks.intervals import Intervals
from discreet.networks.network import Network
from discreet.networks.provenance import Provenance
from discreet.networks.written import WrittenFigure, parse
from discreet.values.errors import DiscreetError, QueryError, TooLarge
from discreet.values.measurement import Measurement
from discreet.values.schema import Schema
from discreet.values.table import MAX_CELLS, Array, Table, count_cells
from discreet.values.text import show

MOST, LEAST = Fraction(16), Fraction(1, 1024)
"""The budgets between which one is looked for."""
STEPS = 14
"""Halvings of the logarithm of the budget: the answer is good to a thousandth."""
FOLLOWING = 0.5
"""The part of the rows in which an attribute follows a parent: as much as it does not."""


@dataclass(frozen=True, slots=True)
class Width:
    """The predicted width of one answer's widest interval; None where it would be refused, with the reason."""

    question: str
    guaranteed: float | None
    calibrated: float | None
    note: str = ""

    def __str__(self) -> str:
        parts = [
            f"{kind} {'refused' if width is None else f'{width:.4f}'}"
            for kind, width in (("guaranteed", self.guaranteed), ("calibrated", self.calibrated))
        ]
        return f"{self.question}: width of the interval {', '.join(parts)}{f' ({self.note})' if self.note else ''}"

    def to_json(self) -> dict[str, Any]:
        """The prediction as plain values."""
        return {
            "question": self.question,
            "guaranteed": self.guaranteed,
            "calibrated": self.calibrated,
            **({"note": self.note} if self.note else {}),
        }


def predict_width(preview: Preview, question: str) -> Width:
    """How wide the intervals of an answer would be, if shares are about even."""
    network, note = _prepare(preview, question)
    guaranteed, _ = _find_width(network, question, Intervals.GUARANTEED)
    calibrated, reason = _find_width(network, question, Intervals.CALIBRATED)
    notes = [note, _tell_share(network, question), "" if calibrated is not None else reason.split(";")[0]]
    return Width(question, guaranteed, calibrated, "; ".join(text for text in notes if text))


def find_budget(
    width: float,
    question: str,
    rehearse: Callable[[Fraction], Preview],
    kind: Intervals = Intervals.GUARANTEED,
) -> Fraction | None:
    """The least budget whose intervals for a question are predicted to be no wider; None if none in reach is.

    `rehearse` makes a preview for an amount of the budget, an ε or a ρ.
    """
    if not 0 < width < 1:
        raise QueryError(f"a width lies between 0 and 1, such as 0.02, not {width}")

    def enough(amount: Fraction) -> bool:
        network, _ = _prepare(rehearse(amount), question)
        found, _ = _find_width(network, question, kind)
        return found is not None and found <= width

    if not enough(MOST):
        return None
    low, high = LEAST, MOST
    for _ in range(STEPS):
        middle = Fraction(round((float(low) * float(high)) ** 0.5, 6)).limit_denominator(100_000)
        if enough(middle):
            high = middle
        else:
            low = middle
    grain = Fraction(10) ** (math.floor(math.log10(high)) - 2)
    return math.ceil(high / grain) * grain  # three digits, rounded up


def read_loosely(question: str, schema: Schema) -> str:
    """A question with a level for every attribute that is given without one: P(lung | smoke) is asked of its first."""
    head, bar, tail = question.partition("|")
    if not bar:
        return question
    body, closing = tail.rstrip()[:-1], tail.rstrip()[-1:]
    terms = []
    for term in body.split(","):
        name = term.strip().strip("\"'")
        if "=" not in term and name in schema:
            level = schema[name].levels[0]
            quoted = f'"{level}"' if re.search(r"[=,|()\s]", level) else level
            term = f"{term.rstrip()}={quoted}"
        terms.append(term)
    return f"{head}|{','.join(terms)}{closing}"


def _find_width(network: Network, question: str, kind: Intervals) -> tuple[float | None, str]:
    asked = parse(read_loosely(question, network.schema))
    if isinstance(asked, WrittenFigure) and asked.verb in ("surely", "count"):
        raise QueryError(
            f"a width is predicted for probabilities, comparisons and means, not for {show(question)}"
        )
    try:
        found = asked.ask(network, kind)
    except QueryError:
        raise
    except DiscreetError as error:
        return None, str(error)
    lower, upper = getattr(found, "lower", None), getattr(found, "upper", None)
    if lower is None or upper is None:
        return None, getattr(found, "meaning", "")
    spread = np.asarray(upper) - np.asarray(lower)
    return float(spread.max() if isinstance(found, Answer) else spread), ""


def _prepare(preview: Preview, question: str) -> tuple[Network, str]:
    """The network that is asked, and what it takes for granted: that of a given graph, or of a search."""
    known = preview.network.provenance
    assert known is not None
    if "batches" in known.details or "structure" in known.details:
        return _measure_together(preview.network, known, question)
    return suppose(preview.network, preview.rows), ""


def _measure_together(network: Network, known: Provenance, question: str) -> tuple[Network, str]:
    """The network, as if a search had measured the question's attributes in place of others of as many."""
    asked = parse(read_loosely(question, network.schema))
    first = asked.first if isinstance(asked, WrittenFigure) else asked
    named = {*first.targets, *first.event, *first.given, *first.excluded}
    axes = tuple(name for name in network.schema.names if name in named)
    if not axes or network._intervals.table().answers(axes):
        return network, ""
    grouped = [name for name in axes if name in known.details.get("groups", ())]
    if grouped:
        said = "would be searched in groups of levels that follow from the rows; questions about whole groups"
        return network, f"{grouped[0]} {said} have narrower intervals"
    alike = [table for table in known.measurements if len(table.axes) >= min(len(axes), 2)]
    if not alike:
        return network, "the search would leave all attributes independent"
    home = max(alike, key=_amount)
    shape = [network.schema[name].size for name in axes]
    rows = max(1.0, network._intervals.table().guess_rows())
    even = np.full(shape, round(rows / count_cells(shape)), dtype=np.int64)
    table = Measurement(Table(axes, even), home.law, home.unit, home.cost)
    tables = tuple(table if found is home else found for found in known.measurements)
    return replace(
        network, provenance=replace(known, measurements=tables)
    ), "if the search measures them together"


@lru_cache(maxsize=2)  # a plan asks one network several questions
def suppose(network: Network, rows: int) -> Network:
    """A rehearsed network as it would be of rows that follow its graph; as it is where their tables are too large."""
    known = network.provenance
    assert known is not None
    dag, sizes = network.dag, network.schema.sizes
    cpts = tuple(_follow([sizes[name] for name in dag.family(node)]) for node in dag.nodes)
    measured = []
    for found in known.measurements:
        if found.axes:
            try:
                margin = Margin.plan(dag, sizes, found.axes, MAX_CELLS)
            except TooLarge:
                return network
            expected = margin.read([cpt[None] for cpt in cpts])[0] * (
                rows * known.unit.grain * float(found.rate)
            )
            counts = Table(found.axes, _round(expected))
            found = Measurement(counts, found.law, found.unit, found.cost, found.rate)
        measured.append(found)
    tables = tuple(Table(dag.family(node), cpt) for node, cpt in zip(dag.nodes, cpts, strict=True))
    return replace(network, cpts=tables, provenance=replace(known, measurements=tuple(measured)))


def _follow(shape: list[int]) -> Array:
    """The conditionals of an attribute, the last axis, given its parents."""
    *parents, levels = shape
    cpt = np.full(shape, 1.0 / levels)
    for axis, size in enumerate(parents):
        placed = _place(size, levels).reshape(
            [size if k == axis else 1 for k in range(len(parents))] + [levels]
        )
        cpt += FOLLOWING / len(parents) * (placed - 1.0 / levels)
    return cpt


def _place(size: int, levels: int) -> Array:
    """F: for each of so many levels of a parent, how its part of the way lies in those of the levels."""
    own, other = np.arange(size + 1) / size, np.arange(levels + 1) / levels
    shared = np.minimum(own[1:, None], other[None, 1:]) - np.maximum(own[:-1, None], other[None, :-1])
    return np.asarray(np.maximum(shared, 0.0) * size)


def _round(expected: Array) -> Array:
    """Whole counts with the same sum, up to one."""
    sums = np.rint(np.cumsum(expected.ravel())).astype(np.int64)
    return np.asarray(np.diff(sums, prepend=0).reshape(expected.shape))


def _tell_share(network: Network, question: str) -> str:
    """How many of the rows are taken to have what is given; with fewer the interval is wider in proportion."""
    asked = parse(read_loosely(question, network.schema))
    first = asked.first if isinstance(asked, WrittenFigure) else asked
    given = first.list_evidence(network.schema)
    if not given:
        return ""
    try:
        share = network.probability(given)
    except DiscreetError:  # too large to work out: then there is no width to explain either
        return ""
    return f"if {share:.2g} of the rows have what is given; with fewer it is wider in proportion"


def _amount(table: Measurement) -> Fraction:
    return Fraction(next(iter(table.cost.to_json().values())))
