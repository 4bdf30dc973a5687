"""How values show themselves in a notebook: one plain table, every text escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import islice

MOST_LINES = 60


def tabulate(caption: str, heads: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """An HTML table of the first lines, with a last one that says how many more there are."""
    waiting = iter(lines)
    shown = "".join(
        f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in line)}</tr>"
        for line in islice(waiting, MOST_LINES)
    )
    rest = sum(1 for _ in waiting)
    foot = f"<tr><td colspan='{len(heads)}'>… and {rest} more</td></tr>" if rest else ""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in heads)
    return (
        f"<table style='text-align:left'><caption style='text-align:left'>{escape(caption)}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{shown}{foot}</tbody></table>"
    )
