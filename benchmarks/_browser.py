"""The machine's own Chromium, driven by Playwright: what the benchmark and the tests of the explorer share."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FLAGS = [
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
NO_BROWSER = "browser: no Chromium on this machine; install it (Debian: apt-get install chromium)"

AXE = Path(sys.prefix) / "axe" / "node_modules" / "axe-core" / "axe.min.js"
"""Where `make` puts the rules of accessibility."""
NO_AXE = f"browser: no axe-core in {AXE.parent}; npm install --prefix {AXE.parents[2]} axe-core"

FIND_SERIOUS = """async () => (await axe.run(document, { resultTypes: ["violations"], preload: false })).violations
  .filter((one) => ["serious", "critical"].includes(one.impact))
  .map((one) => `${one.id}: ${one.nodes.map((node) => node.target.join(" ")).slice(0, 3).join(", ")}`)"""
"""What axe-core finds in a page that is serious or critical."""


def find_browser() -> str | None:
    """The browser that DISCREET_BROWSER names, or the first that the machine has."""
    named = os.environ.get("DISCREET_BROWSER", "")
    return named if Path(named).is_file() else next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def open_browser(path: str) -> Iterator[Any]:
    """A running browser without a window."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield opened
        opened.close()
