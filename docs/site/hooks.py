"""What the site has beside the pages of docs/: the README as its first page, the changelog, and the whole API.

Links that lead out of docs/, to tests and sources, become plain text: the site is read without the repository.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

import discreet

ROOT = Path(__file__).parents[2]
OUTSIDE = re.compile(r"\[([^\]]+)\]\((?:\.\./[^)]+|CONTRIBUTING\.md|CITATION\.cff|LICENSE)\)")


def on_files(files: Files, *, config: Any) -> Files:
    """Add the pages that are written elsewhere or made from the code."""
    readme = (ROOT / "README.md").read_text("utf-8").replace("](docs/", "](")
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8").replace("](docs/", "](")
    for name, text in (("index.md", readme), ("changelog.md", changes), ("api.md", list_names())):
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Leave the words of links that lead out of the site, and drop what only tests read."""
    # A forge keeps the blank of "… learn" as a dash in front of an anchor; the site does not.
    inside = OUTSIDE.sub(r"\1", markdown).replace("](#-", "](#")
    return re.sub(r"^(```\w+) [^\n{]+$", r"\1", inside, flags=re.MULTILINE)


def list_names() -> str:
    """A page that asks for the docstring of every public name, functions first."""
    lines = [
        "# The library, in full",
        "",
        "Every public name of `import discreet as dc`, from its docstring.",
        "",
    ]
    known = {name: discreet._HOMES[name] for name in discreet.__all__ if name != "__version__"}
    places = {name: home if name in discreet._MODULES else f"{home}.{name}" for name, home in known.items()}
    for name in sorted(known, key=lambda name: (name in discreet._MODULES, name[0].isupper(), name)):
        lines += [
            f"::: {places[name]}",
            "    options:",
            "      heading_level: 2",
            f"      heading: dc.{name}",
            "",
        ]
    return "\n".join(lines)
