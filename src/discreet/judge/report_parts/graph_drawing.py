"""The graph of a network as plain SVG."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from itertools import pairwise

from discreet.judge.report_parts.graph_layout import Layout, Point, lay_out
from discreet.values.graph import DAG

LAYER = 108.0
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
    layout = lay_out(dag, widths, LAYER)
    arrows = [_draw_arrow(layout, edge) for edge in dag.edges()]
    boxes = [
        _draw_box(
            layout.places[name], widths[name], shown[name], captions.get(name, ""), grades.get(name, ""), name
        )
        for name in dag.nodes
    ]
    width, height = layout.width + 2 * MARGIN, layout.height - (LAYER - BOX) + 2 * MARGIN
    top = (LAYER - BOX) / 2 - MARGIN
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
    # Straight down past each layer that it only passes, and bent between layers, so that it touches no other box.
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
