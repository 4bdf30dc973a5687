"""The explorer as one HTML file: a strict policy, one style, one script, and the data, which never becomes either."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import zlib
from dataclasses import dataclass
from html import escape
from importlib import resources
from typing import Any

from discreet.judge.explorer.contents import describe_model
from discreet.networks.formats.made_from import digest_release
from discreet.networks.formats.release import Model, Release
from discreet.values.files import write_text

SCRIPTS = (
    "contents.js",
    "junction.js",
    "bounds.js",
    "ensemble.js",
    "relevance.js",
    "state.js",
    "words.js",
    "layout.js",
    "cards.js",
    "stage.js",
    "panel.js",
    "page.js",
    "main.js",
    "start.js",
)
"""In the order in which they follow each other in the one script of the page."""

HEIGHT = 680
"""Of the frame in a notebook, in pixels."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A page in a notebook: a frame that may run its script, and nothing else."""

    page: str
    height: int = HEIGHT

    def _repr_html_(self) -> str:
        return (
            f'<iframe srcdoc="{escape(self.page)}" sandbox="allow-scripts" allow="clipboard-write" '
            f'title="The explorer of a network" style="width:100%;height:{int(self.height)}px;border:0"></iframe>'
        )

    def __repr__(self) -> str:
        return f"<the explorer of a network, {len(self.page) / 1000:.0f} kB: a notebook shows it>"


def write_explorer(
    model: Model,
    path: str | os.PathLike[str],
    *,
    file: str = "release.json",
    report: str | None = None,
    doubt: str = "",
) -> None:
    """Write the page of a release, network, credal network or posterior as one HTML file, all or nothing."""
    write_text(path, make_explorer(model, file=file, report=report, doubt=doubt))


def make_explorer(
    model: Model, *, file: str = "release.json", report: str | None = None, doubt: str = ""
) -> str:
    """The page as HTML; the same model always gives the same text.

    `file` is how the commands that the page offers call the model. `report` is the address of its report. `doubt` is
    why a release is not verified (see `judge.trust.doubt`): the page then says so, and shows no promise.
    """
    made_from = digest_release(model) if isinstance(model, Release) else ""
    return assemble(describe_model(model, file, report, doubt), made_from)


def assemble(contents: dict[str, Any], made_from: str = "") -> str:
    """One HTML document of these contents.

    Its policy names the digests of its one script and one style, so nothing else can run, not even what a name or a
    level might smuggle in; it also forbids the script to make markup out of text, to fetch and to send.
    """
    style = _read("page.css")
    script = '"use strict";\n(() => {\n' + "".join(map(_read, SCRIPTS)) + "})();\n"
    policy = "; ".join(
        [
            "default-src 'none'",
            f"script-src '{_digest(script)}'",
            f"style-src '{_digest(style)}'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        ]
    )
    data = write_data(contents)
    origin = f'<meta name="discreet-release" content="sha256 {made_from}">\n' if made_from else ""
    crc = f"{zlib.crc32(data.encode('utf-8')):08x}"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<meta name="referrer" content="no-referrer">\n'
        f'{origin}<link rel="icon" href="data:,">\n'
        f"<title>{escape(str(contents['title']))}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f"{_read('body.html')}"
        f'<script type="application/json" id="contents" data-crc="{crc}">{data}</script>\n'
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


def write_data(contents: dict[str, Any]) -> str:
    """The contents as JSON that cannot end the block it stands in, nor look like markup at all."""
    text = json.dumps(contents, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


def _read(name: str) -> str:
    return resources.files(__package__).joinpath("assets", name).read_text(encoding="utf-8")
