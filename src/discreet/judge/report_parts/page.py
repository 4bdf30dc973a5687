"""The page around the parts: one file, no script, nothing fetched; light, dark, narrow and on paper."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib import resources


def assemble(title: str, parts: Sequence[str]) -> str:
    """One HTML document of these parts; a policy in its head forbids it to fetch or run anything."""
    style = resources.files(__package__).joinpath("style.css").read_text(encoding="utf-8")
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(parts)
        + "\n</main>\n</body>\n</html>\n"
    )


def figure(value: str, what: str) -> str:
    """A card with a figure and what it is."""
    return f'<div class="card"><b>{escape(value)}</b><span>{escape(what)}</span></div>'
