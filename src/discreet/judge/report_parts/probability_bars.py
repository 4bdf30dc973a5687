"""Tables of conditionals as small bars, with a line for the interval that noise leaves open."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from discreet.networks.network import Network
from discreet.values.errors import DiscreetError
from discreet.values.table import Array, Table

MOST_CONDITIONALS, MOST_LEVELS = 12, 8
"""What a page shows of one table; the rest is in the document."""

Ends = tuple[Table, Table]


def draw_table(network: Network, name: str, ends: Ends | None) -> str:
    """The table of one node: a line for each conditional, a bar for each level."""
    attribute, parents = network.schema[name], network.dag.parents_of(name)
    conditionals = network.cpt(name).values.reshape(-1, attribute.size)
    low, high = (None, None) if ends is None else (end.values.reshape(conditionals.shape) for end in ends)
    often = weigh_conditionals(network, parents, len(conditionals))
    shown = choose(often, MOST_CONDITIONALS)
    levels = choose(conditionals.mean(axis=0), MOST_LEVELS)
    heads = "".join(f"<th>{escape(parent)}</th>" for parent in parents)
    heads += '<th class="often">how often</th>' if parents and often is not None else ""
    heads += "".join(f'<th class="level">{escape(attribute.levels[j])}</th>' for j in levels)
    lines = []
    for i in shown:
        codes = np.unravel_index(i, [network.schema[parent].size for parent in parents]) if parents else ()
        cells = "".join(
            f"<td>{escape(network.schema[parent].levels[code])}</td>"
            for parent, code in zip(parents, codes, strict=True)
        )
        if parents and often is not None:
            cells += f'<td class="often">{write_share(float(often[i]))}</td>'
        for j in levels:
            inside = None if low is None or high is None else (float(low[i, j]), float(high[i, j]))
            cells += f'<td class="bar">{draw_bar(float(conditionals[i, j]), inside)}</td>'
        lines.append(f"<tr>{cells}</tr>")
    table = f"<table class='cpt'><thead><tr>{heads}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
    rest = _tell_rest(len(conditionals), len(shown), attribute.size, len(levels))
    return f'<div class="wide">{table}</div>{rest}'


def draw_bar(value: float, interval: tuple[float, float] | None) -> str:
    """A number with a bar below it, and the interval as a line through the bar."""
    whisker, title = "", ""
    if interval is not None:
        low, high = interval
        title = f' title="between {low:.4f} and {high:.4f}"'
        whisker = f'<s style="left:{100 * low:.2f}%;width:{max(100 * (high - low), 0.6):.2f}%"></s>'
    return f'<b{title}>{value:.3f}</b><i><u style="width:{100 * value:.2f}%"></u>{whisker}</i>'


def write_share(share: float) -> str:
    """A share as a percentage that is never rounded to nothing."""
    return f"{100 * share:.1f} %" if share >= 0.001 else "&lt; 0.1 %"


def choose(weights: Array | None, most: int) -> list[int]:
    """The indices of the heaviest `most`, in their own order; the first ones if nothing is known."""
    if weights is None:
        return list(range(most))
    return sorted(np.argsort(-weights, kind="stable")[:most].tolist())


def weigh_conditionals(network: Network, parents: Sequence[str], count: int) -> Array | None:
    """How often each combination of the parents occurs in the network, or None if that is too much to compute."""
    if not parents:
        return np.ones(1)
    try:
        joint = network.query(parents if len(parents) > 1 else parents[0], intervals="none").table
    except DiscreetError:
        return None if count > MOST_CONDITIONALS else np.ones(count) / count
    return np.asarray(joint.arrange(tuple(parents)).values, dtype=np.float64).reshape(-1)


def _tell_rest(conditionals: int, shown: int, levels: int, columns: int) -> str:
    parts = []
    if shown < conditionals:
        parts.append(f"the {shown} most frequent of {conditionals:,} conditionals")
    if columns < levels:
        parts.append(f"{columns} of {levels:,} levels")
    return f"<p class='note'>Shown: {', '.join(parts)}. The rest is in the document.</p>" if parts else ""
