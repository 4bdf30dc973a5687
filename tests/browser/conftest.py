"""A real browser: the machine's own Chromium, driven by Playwright; every page is watched while it is open."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from _browser import NO_BROWSER, find_browser, open_browser

SECONDS = 60


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A running browser; where there is none the tests do not run, and where one is required they fail."""
    found = find_browser()
    if found is None:
        (pytest.fail if os.environ.get("DISCREET_BROWSER") == "required" else pytest.skip)(NO_BROWSER)
    with open_browser(found) as opened:
        yield opened


@dataclass
class Watched:
    """A page with what it said on the console and asked of the network."""

    page: Any
    address: str
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def run(self, script: str, argument: Any = None) -> Any:
        """The value of a JavaScript expression or function in the page."""
        return self.page.evaluate(script, argument)

    def wait(self, script: str) -> None:
        """Until an expression is true; the page's policy forbids the usual way, which evaluates text in it."""
        end = time.monotonic() + SECONDS
        while not self.run(script):
            assert time.monotonic() < end, f"never true: {script}"
            time.sleep(0.02)

    def settle(self) -> None:
        """Until the bars have their intervals."""
        self.wait("discreet.app.endsReady")

    def text(self, selector: str) -> str:
        """The text of an element."""
        found = self.page.locator(selector).first.text_content()
        assert found is not None
        return str(found)

    def shares(self, name: str) -> list[float]:
        """The probabilities behind an attribute's bars."""
        return list(
            self.run(
                "(name) => Array.from(discreet.app.slice(discreet.app.after, discreet.app.network.index.get(name)))",
                name,
            )
        )


@pytest.fixture
def show(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Watched]]:
    """A function that opens a page of HTML from a file; at the end none may have complained or asked for anything."""
    opened: list[tuple[Any, Watched]] = []

    def open_page(
        html: str, link: str = "", *, width: int = 1440, height: int = 900, clean: bool = True, **options: Any
    ) -> Watched:
        file = tmp_path / f"page{len(opened)}.html"
        file.write_text(html, encoding="utf-8")
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        page = context.new_page()
        watched = Watched(page, file.as_uri())
        opened.append((context, watched))
        page.set_default_timeout(SECONDS * 1000)
        page.on("console", lambda said: watched.complaints.append(f"{said.type}: {said.text}"))
        page.on("pageerror", lambda error: watched.complaints.append(str(error)))
        page.on(
            "dialog", lambda dialog: (watched.complaints.append(f"dialog {dialog.message}"), dialog.dismiss())
        )
        page.on("request", lambda request: watched.requests.append(request.url))
        page.goto(watched.address + link)
        watched.clean = clean  # type: ignore[attr-defined]
        return watched

    yield open_page
    for context, watched in opened:
        context.close()
        if watched.clean:  # type: ignore[attr-defined]
            assert watched.complaints == []
        asked = [
            url for url in watched.requests if not url.startswith(("data:", watched.address.split("#")[0]))
        ]
        assert asked == []
