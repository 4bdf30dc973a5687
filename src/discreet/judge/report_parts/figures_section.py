"""The figures that people look for first, with what the noise leaves open: levels that are surely most frequent, means,
medians; and where the graph is certainly wrong."""

from __future__ import annotations

import itertools
from html import escape

import numpy as np

from discreet.compute.bounds.counting import CountIntervals, bound_conditionals
from discreet.compute.region.program import Contradiction
from discreet.judge.report_parts.probability_bars import Ends, write_level
from discreet.networks import figures
from discreet.networks.answer import Figure
from discreet.networks.intervals import COVERAGE, Whose
from discreet.networks.intervals.policy import IntervalPolicy
from discreet.networks.network import Network
from discreet.values.errors import DiscreetError, QueryError
from discreet.values.table import Table

MOST_FIGURES = 40
"""Attributes beyond which figures are left to those who ask."""
MOST_PAIRS = 40
"""Pairs of attributes that are looked at for what the graph leaves out."""


def write_figures(network: Network) -> str:
    """A table of figures, one line for each attribute; empty for a network without measured tables."""
    lines = []
    for name in network.declared.names[:MOST_FIGURES]:
        try:
            sure = figures.decide(network, name)
        except DiscreetError:
            return ""
        level = ", ".join(map(write_level, sure.levels[:4])) + (" …" if len(sure.levels) > 4 else "")
        which = "surely" if len(sure.levels) == 1 else "one of"
        try:
            middle, mean = _show(figures.quantile(network, name)), _show_mean(network, name)
        except QueryError:
            middle = mean = ""
        lines.append(
            f"<tr><td>{escape(name)}</td><td>{which} {level}</td>"
            f'<td class="number">{middle}</td><td class="number">{mean}</td></tr>'
        )
    misfits = find_misfits(network)
    said = "".join(f"<p class='note'>{escape(text)}</p>" for text in misfits)
    heads = "<th>attribute</th><th>most frequent level</th><th>median</th><th>mean</th>"
    return (
        f"<h2>Figures</h2><p>In brackets what the noise leaves open, {100 * COVERAGE:g} % sure for all together. "
        "Of a binned number only the bin is known.</p>"
        f'{said}<div class="wide"><table><thead><tr>{heads}</tr></thead><tbody>{"".join(lines)}</tbody></table></div>'
    )


def bound_families(policy: IntervalPolicy) -> dict[str, Ends]:
    """For each node the least and the greatest conditionals that the table itself can have, found quickly."""
    table = policy.table()
    found: dict[str, Ends] = {}
    for name in policy.dag.nodes:
        family = policy.dag.family(name)
        try:
            cells, totals = table.bound_table(family), table.bound_table(family[:-1])
        except Contradiction:
            continue
        if cells is None or totals is None or set(cells.axes) != set(family):
            continue
        above = CountIntervals(totals.axes, np.asarray(totals.low), np.asarray(totals.high))
        low, high = bound_conditionals(cells, above, name, np.zeros(above.low.shape))
        axes = (*totals.axes, name)
        found[name] = Table(axes, low).arrange(family), Table(axes, high).arrange(family)
    return found


def find_misfits(network: Network) -> list[str]:
    """Sentences on pairs of attributes that the graph ties otherwise than the measured tables certainly do."""
    policy = network._intervals
    if (
        policy.default is not Whose.NETWORK
        or policy.explain_lack(Whose.NETWORK)
        or network.provenance is None
    ):
        return []
    families = [set(family) for family in network.dag.families()]
    pairs = dict.fromkeys(
        pair
        for measured in network.provenance.measurements
        for pair in itertools.combinations(measured.axes, 2)
        if not any(set(pair) <= family for family in families)
    )
    found = []
    for one, two in list(pairs)[:MOST_PAIRS]:
        for level in network.schema[two].levels[:4]:
            answer = network.query(one, {two: level})
            if "leaves something out" in answer.meaning:
                found.append(
                    f"The graph leaves something out between {one} and {two}: {answer.meaning.split(' But ')[1]}"
                )
                break
    return found


def _show(figure: Figure) -> str:
    if figure.lower is None:
        return f"{figure.value:.4g}"
    return f"{figure.value:.4g} [{figure.lower:.4g}, {figure.upper:.4g}]"


def _show_mean(network: Network, name: str) -> str:
    try:
        return _show(figures.mean(network, name))
    except QueryError:  # a bin with an open end
        return ""
