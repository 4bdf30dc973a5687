"""Plots and a page of an audit, in one file that needs nothing else."""

from __future__ import annotations

import html
import io
from typing import Any

import numpy as np

from discreet.judge.attacks.ceiling import expect_power, limit_power
from discreet.judge.audit import Audit
from discreet.values.budget import Infinite
from discreet.values.errors import MissingExtra

_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222}"
    "table{border-collapse:collapse;margin:1rem 0}td,th{padding:.25rem .75rem;text-align:right;"
    "border-bottom:1px solid #ddd}td:first-child,th:first-child{text-align:left}svg{max-width:100%;height:auto}"
    ".warning{background:#fff3cd;padding:.5rem 1rem}"
)

PRIVATE = (
    "Computed from private rows that no budget paid for: this page is for the custodian, not for the public."
)


def load_pyplot() -> Any:
    """matplotlib without a screen, or a line that says how to get it."""
    try:
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt
    except ImportError:
        raise MissingExtra("plots need matplotlib: install discreet[plot]") from None
    return plt


def draw_audit(audit: Audit, complexity: int | None = None) -> str:
    """The power of every attack over its error, with theory and the promise's ceiling, as an SVG text."""
    plt = load_pyplot()
    tracing = audit.tracing
    figure, axis = plt.subplots(figsize=(7.5, 4.8), layout="constrained")
    low = min(min(tracing.errors), 1.0 / max(tracing.strangers, 1)) / 2
    grid = np.geomspace(max(low, 1e-6), 1.0, 200)
    axis.plot(grid, grid, color="0.75", linewidth=1, label="a coin")
    for power in tracing.powers:
        errors, powers = power.curve
        (line,) = axis.step(
            np.maximum(errors, grid[0]), powers, where="post", linewidth=1.4, label=power.attack
        )
        for point in power.points:
            axis.vlines(
                max(point.error, grid[0]),
                point.low,
                point.high,
                color=line.get_color(),
                alpha=0.35,
                linewidth=4,
            )
    if complexity is not None:
        expected = expect_power(complexity, tracing.members, grid)
        axis.plot(grid, expected, "--", color="0.4", label="Theorem 1, plain network")
    if tracing.promise is not None and not isinstance(tracing.promise, Infinite):
        axis.plot(
            grid, limit_power(tracing.promise, grid), ":", color="black", label=f"ceiling, {tracing.promise}"
        )
    axis.set(
        xscale="log",
        xlim=(grid[0], 1.0),
        ylim=(0.0, 1.02),
        xlabel="error α: strangers accused",
        ylabel="power β: members found",
        title=f"{audit.name}: {tracing.kind}",
    )
    axis.legend(fontsize="small", loc="upper left")
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None})
    plt.close(figure)
    found = text.getvalue()
    return found[found.index("<svg") :]


def write_page(audit: Audit, plot: str) -> str:
    """A whole HTML page: the warning, the verdict, the figures, the plot inside."""
    tracing = audit.tracing
    title = html.escape(f"Audit of {audit.name}")
    verdict = "\n".join(f"<p>{html.escape(line)}</p>" for line in audit.explain())
    rows = [
        f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in line)}</tr>"
        for line in tabulate(audit)[1:]
    ]
    heads = "".join(f"<th>{html.escape(cell)}</th>" for cell in tabulate(audit)[0])
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{_STYLE}</style></head>\n<body><h1>{title}</h1>\n"
        f'<p class="warning">{PRIVATE}</p>\n{verdict}\n'
        f"<table><thead><tr>{heads}</tr></thead><tbody>\n{''.join(rows)}\n</tbody></table>\n"
        f"<p>{html.escape(describe_table(audit))}</p>\n{plot}\n"
        f"<p>{tracing.members:,} members, {tracing.strangers:,} strangers, {tracing.fitted:,} fitted.</p>"
        "</body></html>\n"
    )


def tabulate(audit: Audit) -> list[list[str]]:
    """The figures of an audit as lines of cells, the heads first."""
    tracing = audit.tracing
    lines = [["attack", *(f"α = {error:g}" for error in tracing.errors), "AUC", "advantage"]]
    for power in tracing.powers:
        cells = [f"{point.power:.3f} [{point.low:.3f}, {point.high:.3f}]" for point in power.points]
        lines.append([power.attack, *cells, f"{power.auc:.3f}", f"{power.advantage:.3f}"])
    if tracing.theory is not None:
        lines.append(["Theorem 1, if plain", *(f"{value:.3f}" for value in tracing.theory), "", ""])
    if tracing.ceiling is not None:
        lines.append([f"ceiling, {tracing.promise}", *(f"{value:.3f}" for value in tracing.ceiling), "", ""])
    rests = [f"{point.false_hits} strangers" for point in tracing.powers[0].points]
    return [*lines, ["threshold rests on", *rests, "", ""]]


def describe_table(audit: Audit) -> str:
    """What the numbers of the table are."""
    width = max(power.auc_band[1] - power.auc for power in audit.tracing.powers)
    return (
        f"Power β with exact Clopper-Pearson bounds at {100 * audit.confidence:g} %; AUC and advantage within about "
        f"±{width:.2f} (Dvoretzky-Kiefer-Wolfowitz), as if people were independent draws."
    )
