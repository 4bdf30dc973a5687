"""The page around the parts: one file, no script, nothing fetched; light, dark, narrow and on paper."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib import resources


def assemble(title: str, parts: Sequence[str], made_from: str = "") -> str:
    """One HTML document of these parts; a policy in its head forbids it to fetch or run anything.

    `made_from` is the SHA-256 of the release that it shows.
    """
    origin = f'<meta name="discreet-release" content="sha256 {made_from}">\n' if made_from else ""
    style = read_style("plot.css") + read_style("page.css")
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"{origin}<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(parts)
        + "\n</main>\n</body>\n</html>\n"
    )


def read_style(name: str) -> str:
    """One of the style sheets beside this module: plot.css for plots, page.css for the page around them."""
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def figure(value: str, what: str) -> str:
    """A card with a figure and what it is."""
    return f'<div class="card"><b>{escape(value)}</b><span>{escape(what)}</span></div>'


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
