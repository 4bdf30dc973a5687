"""The audit in the report: its verdict, every attack's curve under the ceiling, and the figures."""

from __future__ import annotations

from html import escape

from discreet.judge.audit import Audit, Outcome
from discreet.judge.audit_plots import PRIVATE, describe_table, tabulate
from discreet.judge.report_parts.drawing import draw_ceiling
from discreet.values.budget import Budget

SHADES = 5
"""So many attacks are told apart by colour; those after the fifth share one."""


def warn() -> str:
    """What a page with an audit must say before anything else."""
    return f'<p class="warning">{escape(PRIVATE)}</p>'


def write_audit(audit: Audit, loss: Budget) -> str:
    """The section on an audit; the page that holds it is no longer for the public."""
    tracing = audit.tracing
    bad = audit.outcome in (Outcome.BROKEN, Outcome.EXPOSED)
    first, *rest = audit.explain()
    words = f'<p class="promise{" none" if bad else ""}">{escape(first)}</p>'
    words += "".join(f"<p>{escape(line)}</p>" for line in rest)
    curves = [(min(k, SHADES - 1), power.curve) for k, power in enumerate(tracing.powers)]
    legend = "".join(
        f'<span><i class="a{min(k, SHADES - 1)}"></i>{escape(power.attack)}</span>'
        for k, power in enumerate(tracing.powers)
    )
    heads, *lines = tabulate(audit)
    head = "".join(f"<th>{escape(cell)}</th>" for cell in heads)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in line)}</tr>" for line in lines)
    return (
        f'<h2>The audit</h2><div class="two"><div>{words}</div><div>{draw_ceiling(loss, curves)}'
        f'<p class="legend note">{legend}</p></div></div>'
        f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
        f'<p class="note">{escape(describe_table(audit))} {tracing.members:,} members, {tracing.strangers:,} '
        f"strangers, {tracing.fitted:,} more people known to the attacker.</p>"
    )
