"""Drawings for a report as plain SVG: the graph, the ceiling of any attack, and a bar of budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from discreet.judge.attacks.ceiling import limit_power
from discreet.judge.report_parts.layout import Layout, Point, lay_out
from discreet.values.budget import Budget
from discreet.values.graph import DAG

ROW = 108.0
BOX = 54.0
LETTER = 8.2
MARGIN = 14.0
LONGEST = 22
"""Characters of a name that a box shows."""


def draw_graph(dag: DAG, captions: Mapping[str, str], grades: Mapping[str, str]) -> str:
    """The graph with a caption below each name; `grades` are classes that colour the boxes."""
    shown = {name: name if len(name) <= LONGEST else name[: LONGEST - 1] + "…" for name in dag.nodes}
    widths = {
        name: 26 + max(LETTER * len(shown[name]), 6.1 * len(captions.get(name, ""))) for name in dag.nodes
    }
    layout = lay_out(dag, widths, ROW)
    arrows = [_draw_arrow(layout, edge) for edge in dag.edges()]
    boxes = [
        _draw_box(
            layout.places[name], widths[name], shown[name], captions.get(name, ""), grades.get(name, ""), name
        )
        for name in dag.nodes
    ]
    width, height = layout.width + 2 * MARGIN, layout.height - (ROW - BOX) + 2 * MARGIN
    top = (ROW - BOX) / 2 - MARGIN
    return (
        f'<svg class="graph" viewBox="{-MARGIN:g} {top:g} {width:.0f} {height:.0f}" '
        f'style="width:{width:.0f}px;min-width:{0.52 * width:.0f}px" role="img" '
        f'aria-label="The graph of {len(dag)} attributes">'
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path class="tip" d="M0 0.6 L7.4 4 L0 7.4 z"/></marker></defs>'
        f"{''.join(arrows)}{''.join(boxes)}</svg>"
    )


def _draw_arrow(layout: Layout, edge: tuple[str, str]) -> str:
    route = layout.routes[edge]
    first, *middle, last = route
    # Straight down past each row that it only passes, and bent between the rows, so that it touches no other box.
    ends = [(x, y + side * BOX / 2) for x, y in middle for side in (-1, 1)]
    points: list[Point] = [(first[0], first[1] + BOX / 2), *ends, (last[0], last[1] - BOX / 2 - 2)]
    path = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    for i, ((x0, y0), (x1, y1)) in enumerate(pairwise(points)):
        bend = 0.0 if i % 2 else (y1 - y0) * 0.55
        path += f" C{x0:.1f} {y0 + bend:.1f} {x1:.1f} {y1 - bend:.1f} {x1:.1f} {y1:.1f}"
    title = escape(f"{edge[0]} → {edge[1]}")
    return f'<path class="arrow" d="{path}" marker-end="url(#tip)"><title>{title}</title></path>'


def _draw_box(place: Point, width: float, name: str, caption: str, grade: str, title: str) -> str:
    x, y = place
    return (
        f'<g class="node {grade}"><title>{escape(title)}</title>'
        f'<rect x="{x - width / 2:.1f}" y="{y - BOX / 2:.1f}" width="{width:.1f}" height="{BOX:g}" rx="9"/>'
        f'<text x="{x:.1f}" y="{y - 3:.1f}" class="name">{escape(name)}</text>'
        f'<text x="{x:.1f}" y="{y + 15:.1f}" class="caption">{escape(caption)}</text></g>'
    )


def draw_ceiling(loss: Budget, curves: Sequence[tuple[int, npt.NDArray[np.float64]]] = ()) -> str:
    """What any attacker can reach at most: members found against strangers accused, with guessing as the diagonal.

    `curves` are what attacks did reach: a shade, and two lines of errors and powers.
    """
    errors = np.concatenate([[0.0], np.geomspace(1e-4, 0.02, 12), np.linspace(0.03, 1.0, 60)])
    power = limit_power(loss, errors)
    curve = _trace_line(errors, power)
    reached = "".join(
        f'<polyline class="attack a{shade}" points="{_trace_line(*found)}"/>' for shade, found in curves
    )
    (x0, y0), (x1, y1) = _spot(0, 0), _spot(1, 1)
    grid = "".join(
        f'<path class="grid" d="M{_spot(t, 0)[0]:.1f} {y0} V{y1} M{x0} {_spot(0, t)[1]:.1f} H{x1}"/>'
        for t in (0.25, 0.5, 0.75, 1.0)
    )
    return (
        '<svg class="ceiling" viewBox="0 0 300 292" role="img" aria-label="The ceiling of any attack">'
        f'{grid}<polygon class="area" points="{curve} {x1:.1f},{y0:.1f} {x0:.1f},{y0:.1f}"/>'
        f'<path class="diagonal" d="M{x0} {y0} L{x1} {y1}"/><polyline class="curve" points="{curve}"/>{reached}'
        f'<path class="axis" d="M{x0} {y1} V{y0} H{x1}"/>'
        f'<text x="{x0 - 6}" y="{y0 + 15}" class="tick end">0</text>'
        f'<text x="{x1}" y="{y0 + 15}" class="tick end">100 %</text>'
        f'<text x="{x0 - 6}" y="{y1 + 8}" class="tick end">100 %</text>'
        f'<text x="{(x0 + x1) / 2}" y="{y0 + 28}" class="tick middle">strangers taken for members</text>'
        f'<text transform="translate({x0 - 28} {(y0 + y1) / 2}) rotate(-90)" class="tick middle">members found</text>'
        "</svg>"
    )


def _trace_line(errors: npt.NDArray[np.float64], powers: npt.NDArray[np.float64]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in (_spot(a, b) for a, b in zip(errors, powers, strict=True)))


def _spot(x: float, y: float) -> Point:
    return 48 + 240 * float(x), 252 - 240 * float(y)


def draw_shares(parts: Sequence[tuple[str, float]]) -> str:
    """A bar of the whole budget, cut into (class, share) parts; what is missing to 1 is left open."""
    at = 0.0
    cut = []
    for kind, share in parts:
        cut.append(f'<rect class="{kind}" x="{at * 100:.3f}" y="0" width="{share * 100:.3f}" height="10"/>')
        at += share
    return (
        '<svg class="shares" viewBox="0 0 100 10" preserveAspectRatio="none" role="img" aria-label="Spent budget">'
        f'<rect class="open" x="0" y="0" width="100" height="10"/>{"".join(cut)}</svg>'
    )
