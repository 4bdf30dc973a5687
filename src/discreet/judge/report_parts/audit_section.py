"""The audit as a page of its own, or as a section of the report."""

from __future__ import annotations

from html import escape

from discreet.judge.audit import Audit
from discreet.judge.report_parts.page import assemble
from discreet.judge.report_parts.power_plot import draw_audit

PRIVATE = (
    "This page was computed from private rows, and no budget paid for it. "
    "It is for the custodian, not for the public."
)


def make_audit_page(audit: Audit) -> str:
    """The audit alone as HTML."""
    title = f"Audit of {audit.name}"
    return assemble(title, [warn(), f"<h1>{escape(title)}</h1>", _write_findings(audit)])


def warn() -> str:
    """What a page with an audit must say before anything else."""
    return f'<p class="warning">{escape(PRIVATE)}</p>'


def write_audit(audit: Audit) -> str:
    """The section on an audit; the page that holds it is no longer for the public."""
    return f"<h2>The audit</h2>{_write_findings(audit)}"


def _write_findings(audit: Audit) -> str:
    first, *rest = audit.explain()
    words = f'<p class="promise{" none" if audit.failed else ""}">{escape(first)}</p>'
    words += "".join(f"<p>{escape(line)}</p>" for line in rest)
    heads, *lines = audit.tabulate()
    head = "".join(f"<th>{escape(cell)}</th>" for cell in heads)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in line)}</tr>" for line in lines)
    fitted = f"The attacker also knew {audit.tracing.fitted:,} other people."
    return (
        f"{words}{draw_audit(audit)}"
        f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
        f'<p class="note">{escape(audit.describe_table())} {fitted}</p>'
    )
