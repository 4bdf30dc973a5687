"""Members found against strangers accused, as plain SVG: what a promise allows at most, and what attacks reach."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
import numpy.typing as npt

from discreet.judge.attacks.ceiling import expect_power, limit_power
from discreet.judge.attacks.published import is_finite
from discreet.judge.audit import Audit
from discreet.judge.report_parts.page import read_style
from discreet.values.budget import Budget

Floats = npt.NDArray[np.float64]

SHADES = 5
"""So many attacks are told apart by colour; those after the fifth share one."""
LEFT, TOP, BELOW = 48.0, 12.0, 40.0
LINE = 18.0
"""The height of a line of the legend."""


@dataclass(frozen=True, slots=True)
class _Frame:
    """The axes: where a pair of shares is in the drawing."""

    width: float
    height: float
    least: float = 0.0
    """The left end of a logarithmic axis of errors; 0 stands for a linear one."""

    def place(self, error: float, power: float) -> tuple[float, float]:
        """The point of an error and a power."""
        if self.least:
            error = math.log(max(error, self.least) / self.least) / -math.log(self.least)
        return LEFT + self.width * float(error), TOP + self.height * (1.0 - float(power))

    def draw(self, kind: str, errors: npt.ArrayLike, powers: npt.ArrayLike) -> str:
        """A line through these points."""
        return f'<polyline class="{kind}" points="{self._write(errors, powers)}"/>'

    def fill(self, errors: npt.ArrayLike, powers: npt.ArrayLike) -> str:
        """The area below a line."""
        (left, floor), (right, _) = self.place(0.0, 0.0), self.place(1.0, 0.0)
        corners = f"{right:.1f},{floor:.1f} {left:.1f},{floor:.1f}"
        return f'<polygon class="area" points="{self._write(errors, powers)} {corners}"/>'

    def draw_axes(self) -> str:
        """A grid, both axes, their ticks and what they show."""
        (left, floor), (right, ceiling) = self.place(0.0, 0.0), self.place(1.0, 1.0)
        ticks = (
            10.0 ** np.arange(math.ceil(math.log10(self.least)), 1) if self.least else [0.25, 0.5, 0.75, 1.0]
        )
        across = "".join(f"M{self.place(tick, 0.0)[0]:.1f} {floor:.1f} V{ceiling:.1f} " for tick in ticks)
        up = "".join(
            f"M{left:.1f} {self.place(0, tick)[1]:.1f} H{right:.1f} " for tick in (0.25, 0.5, 0.75, 1.0)
        )
        marks = "".join(
            f'<text x="{self.place(tick, 0.0)[0]:.1f}" y="{floor + 15:.1f}" class="middle">{100 * tick:g} %</text>'
            for tick in (ticks if self.least else [0.0, 0.5, 1.0])
        )
        marks += "".join(
            f'<text x="{left - 6:.1f}" y="{self.place(0, tick)[1] + 4:.1f}" class="end">{100 * tick:g} %</text>'
            for tick in (0.0, 0.5, 1.0)
        )
        return (
            f'<path class="grid" d="{across}{up}"/>'
            f'<path class="axis" d="M{left:.1f} {ceiling:.1f} V{floor:.1f} H{right:.1f}"/>{marks}'
            f'<text x="{(left + right) / 2:.1f}" y="{floor + 32:.1f}" class="middle">strangers accused</text>'
            f'<text transform="translate(11 {(floor + ceiling) / 2:.1f}) rotate(-90)" class="middle">'
            "members found</text>"
        )

    def assemble(
        self, kind: str, title: str, parts: Sequence[str], legend: Sequence[tuple[str, str]] = ()
    ) -> str:
        """The whole drawing, with (class, words) of its legend below."""
        foot = TOP + self.height + BELOW
        lines = "".join(
            f'<path class="{style}" d="M{LEFT} {foot + LINE * (k + 0.5):.1f} h26"/>'
            f'<text x="{LEFT + 34}" y="{foot + LINE * (k + 0.5) + 4:.1f}">{escape(words)}</text>'
            for k, (style, words) in enumerate(legend)
        )
        width, height = LEFT + self.width + 20, foot + LINE * len(legend) + 6
        return (
            f'<svg class="plot {kind}" viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{escape(title)}">'
            f"{self.draw_axes()}{''.join(parts)}{lines}</svg>"
        )

    def _write(self, errors: npt.ArrayLike, powers: npt.ArrayLike) -> str:
        pairs = zip(np.asarray(errors), np.asarray(powers), strict=True)
        return " ".join(f"{x:.1f},{y:.1f}" for x, y in (self.place(*pair) for pair in pairs))


def draw_ceiling(loss: Budget) -> str:
    """What any attacker can reach at most, with guessing as the diagonal."""
    frame = _Frame(240.0, 240.0)
    errors = np.concatenate([[0.0], np.geomspace(1e-4, 0.02, 12), np.linspace(0.03, 1.0, 60)])
    powers = limit_power(loss, errors)
    parts = [
        frame.fill(errors, powers),
        frame.draw("guess", [0, 1], [0, 1]),
        frame.draw("ceiling", errors, powers),
    ]
    return frame.assemble("small", "The ceiling of any attack", parts)


def draw_audit(audit: Audit) -> str:
    """The power of every attack over its error, with guessing, theory and the promise's ceiling.

    Errors run on a logarithmic axis, because a few accused strangers are what an attacker can afford; a bar at an
    error that was asked for spans the bounds on the power.
    """
    tracing = audit.tracing
    least = min(*tracing.errors, 1.0 / tracing.strangers) / 2.0
    frame = _Frame(560.0, 270.0, max(least, 1e-6))
    grid = np.geomspace(frame.least, 1.0, 160)
    parts, legend = [frame.draw("guess", grid, grid)], [("guess", "guessing")]
    if tracing.complexity is not None:
        parts.append(frame.draw("theory", grid, expect_power(tracing.complexity, tracing.members, grid)))
        legend.append(("theory", "expected of a plain network with this graph"))
    if is_finite(tracing.promise):
        powers = limit_power(tracing.promise, grid)
        parts = [frame.fill(grid, powers), *parts, frame.draw("ceiling", grid, powers)]
        legend.append(("ceiling", f"ceiling of any attack if {tracing.promise} is kept"))
    for k, power in enumerate(tracing.powers):
        shade = f"a{min(k, SHADES - 1)}"
        parts.append(frame.draw(f"attack {shade}", *_step(power.curve)))
        for point in power.points:
            (x, low), (_, high) = frame.place(point.error, point.low), frame.place(point.error, point.high)
            parts.append(f'<path class="band {shade}" d="M{x:.1f} {low:.1f} V{high:.1f}"/>')
        legend.append((f"attack {shade}", power.attack))
    return frame.assemble("large", f"{audit.name}: attacks on a {tracing.kind}", parts, legend)


def make_svg(plot: str) -> str:
    """A plot as a file of its own, with the style that a page would give it."""
    head, _, rest = plot.removeprefix("<svg").partition(">")
    style = read_style("plot.css")
    return f'<svg xmlns="http://www.w3.org/2000/svg"{head}><style>\n{style}</style>{rest}\n'


def _step(curve: Floats) -> tuple[Floats, Floats]:
    """A curve that is level up to the next error and jumps there."""
    errors, powers = np.repeat(curve, 2, axis=1)
    return errors[1:], powers[:-1]
