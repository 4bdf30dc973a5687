"""Tables of conditionals as small bars, with a line for the interval that noise leaves open."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

import numpy as np

from discreet.networks.network import Network
from discreet.values.errors import DiscreetError
from discreet.values.table import Array, Table

MOST_CONDITIONALS, MOST_LEVELS = 12, 8
"""What a page shows of one table; the rest is in the document."""

MOST_WIDE, HIGH = 300.0, 64.0
"""The size of a histogram."""

MIDNIGHT = re.compile(r"(?<=\d{4}-\d\d-\d\d) 00:00:00\b")

Ends = tuple[Table, Table]


def draw_table(network: Network, name: str, ends: Ends | None) -> str:
    """The table of one node: a line for each conditional, a bar for each level."""
    attribute, parents = network.schema[name], network.dag.parents_of(name)
    conditionals = network.cpt(name).values.reshape(-1, attribute.size)
    low, high = (None, None) if ends is None else (end.values.reshape(conditionals.shape) for end in ends)
    often = weigh_conditionals(network, parents, len(conditionals))
    shown = choose(often, MOST_CONDITIONALS)
    drawn_whole = attribute.size > MOST_LEVELS and (attribute.ordered or attribute.bins is not None)
    levels = [] if drawn_whole else choose(conditionals.mean(axis=0), MOST_LEVELS)
    heads = "".join(f"<th>{escape(parent).replace('_', '_<wbr>')}</th>" for parent in parents)
    heads += '<th class="often">how often</th>' if parents and often is not None else ""
    heads += "".join(f'<th class="level">{write_level(attribute.levels[j])}</th>' for j in levels)
    if drawn_whole:
        heads += f"<th>{write_level(attribute.levels[0])} … {write_level(attribute.levels[-1])}</th>"
    lines = []
    for i in shown:
        codes = np.unravel_index(i, [network.schema[parent].size for parent in parents]) if parents else ()
        cells = "".join(
            f"<td>{write_level(network.schema[parent].levels[code])}</td>"
            for parent, code in zip(parents, codes, strict=True)
        )
        if parents and often is not None:
            cells += f'<td class="often">{write_share(float(often[i]))}</td>'
        for j in levels:
            inside = None if low is None or high is None else (float(low[i, j]), float(high[i, j]))
            cells += f'<td class="bar">{draw_bar(float(conditionals[i, j]), inside)}</td>'
        if drawn_whole:
            ends_here = None if low is None or high is None else (low[i], high[i])
            cells += f"<td>{draw_histogram(attribute.levels, conditionals[i], ends_here)}</td>"
        lines.append(f"<tr>{cells}</tr>")
    table = f"<table class='cpt'><thead><tr>{heads}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
    columns = attribute.size if drawn_whole else len(levels)
    rest = _tell_rest(len(conditionals), len(shown), attribute.size, columns)
    return f'<div class="wide">{table}</div>{rest}'


def write_level(level: str) -> str:
    """A level as a page shows it: of a moment at midnight the day alone, which says as much in half the room."""
    return escape(MIDNIGHT.sub("", level))


def draw_bar(value: float, interval: tuple[float, float] | None) -> str:
    """A number with a bar below it, and the interval as a line through the bar."""
    whisker, title = "", ""
    if interval is not None:
        low, high = interval
        title = f' title="between {low:.4f} and {high:.4f}"'
        whisker = f'<s style="left:{100 * low:.2f}%;width:{max(100 * (high - low), 0.6):.2f}%"></s>'
    return f'<b{title}>{value:.3f}</b><i><u style="width:{100 * value:.2f}%"></u>{whisker}</i>'


def draw_histogram(levels: Sequence[str], values: Array, ends: tuple[Array, Array] | None) -> str:
    """All levels of an ordered attribute side by side in their order, so that no two are neighbours that are not."""
    step = max(MOST_WIDE / len(levels), 3.0)
    top = max(float(values.max()), 1e-12)
    bars = []
    for j, (level, value) in enumerate(zip(levels, values, strict=True)):
        height = HIGH * float(value) / top
        title = f"{level}: {value:.4f}"
        if ends is not None:
            title += f", between {ends[0][j]:.4f} and {ends[1][j]:.4f}"
        bars.append(
            f'<g><title>{escape(title)}</title><rect class="hit" x="{j * step:.2f}" y="0" width="{step:.2f}" '
            f'height="{HIGH:g}"/><rect x="{j * step + 0.4:.2f}" y="{HIGH - height:.2f}" width="{step - 0.8:.2f}" '
            f'height="{height:.2f}"/></g>'
        )
    peak = int(np.argmax(values))
    return (
        f'<svg class="histogram" viewBox="0 0 {step * len(levels):.1f} {HIGH:g}" preserveAspectRatio="none" role="img" '
        f'aria-label="{len(levels)} levels, most probable {write_level(levels[peak])} with {values[peak]:.3f}">'
        f'{"".join(bars)}</svg><span class="note">peak {write_level(levels[peak])}: {values[peak]:.3f}</span>'
    )


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
