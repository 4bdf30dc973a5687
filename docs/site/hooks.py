"""What the site has beside the pages of docs/: the README as its first page, the changelog, the whole API, notebooks
and the gallery.

Links that lead out of docs/, to tests and sources, become plain text: the site is read without the repository.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

import discreet

sys.path.insert(0, str(Path(__file__).parent))  # hooks are loaded by their path
from notebooks import read_notebook, show_notebook

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"""<(?:a|link|img|script)\b[^>]*?\b(?:href|src)=["']([^"'<>]+)["']""")
ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:|//")
GALLERY = ROOT / "build" / "gallery"
OUTSIDE = re.compile(r"\[([^\]]+)\]\((?:\.\./[^)]+|CONTRIBUTING\.md|CITATION\.cff|LICENSE)\)")


def on_files(files: Files, *, config: Any) -> Files:
    """Add the pages that are written elsewhere or made from the code."""
    readme = (ROOT / "README.md").read_text("utf-8").replace("](docs/", "](")
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8").replace("](docs/", "](")
    for name, text in (("index.md", readme), ("changelog.md", changes), ("api.md", list_names())):
        files.append(File.generated(config, name, content=text))
    for path in sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")):
        page = f"notebooks/{path.stem}.md"
        files.append(File.generated(config, page, content=show_notebook(read_notebook(path))))
    if not (GALLERY / "gallery.md").is_file():
        raise PluginError("there is no gallery yet: run python docs/site/gallery.py, or make docs")
    files.append(File.generated(config, "gallery.md", content=(GALLERY / "gallery.md").read_text("utf-8")))
    for path in sorted(GALLERY.glob("*/*.*")):
        name = f"gallery/{path.relative_to(GALLERY).as_posix()}"
        files.append(File.generated(config, name, content=path.read_bytes()))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Leave the words of links that lead out of the site, and drop what only tests read."""
    # A forge keeps the blank of "… learn" as a dash in front of an anchor; the site does not.
    inside = OUTSIDE.sub(r"\1", markdown).replace("](#-", "](#")
    return re.sub(r"^(```\w+) [^\n{]+$", r"\1", inside, flags=re.MULTILINE)


def on_post_build(*, config: Any) -> None:
    """Refuse a site with a link that leads nowhere within it; links elsewhere are not followed."""
    site = Path(config["site_dir"])
    broken = []
    for page in sorted(site.rglob("*.html")):
        if page.name == "404.html":
            continue  # its links begin at the root of wherever it is hosted
        for link in LINK.findall(page.read_text("utf-8")):
            place = unquote(link.partition("#")[0].partition("?")[0])
            if place and not ELSEWHERE.match(place) and not (page.parent / place).exists():
                broken.append(f"{page.relative_to(site)} → {link}")
    if broken:
        raise PluginError(f"{len(broken)} links lead nowhere, such as {broken[0]}")


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
