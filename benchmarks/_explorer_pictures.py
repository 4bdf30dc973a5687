"""The pictures of the explorer in the documents, taken anew: python benchmarks/explorer.py --pictures docs."""

from __future__ import annotations

import io
import tempfile
import time
from pathlib import Path
from typing import Any

import discreet as dc
from discreet.judge.explorer.page import make_explorer
from discreet.networks.network import Network

ABOUT = {
    "title": "Chest clinic, 2019 to 2024",
    "description": "Findings and diagnoses of patients who came with shortness of breath.",
    "population": "Adults at their first visit",
    "period": "January 2019 to June 2024",
    "contact": "data@clinic.example",
    "licence": "CC BY 4.0",
}
SHOTS = {
    "explorer": [("asia", "#smoke=yes&~target=lung", 1280, 720, "light")],
    "explorer-paths": [("alarm", "#BP=LOW&~target=LVFAILURE&~tab=paths&~with=HR", 1280, 760, "dark")],
    "explorer-large": [("hailfinder", "#PlainsFcst=SIG&~target=Scenario&~tab=influence", 1280, 760, "light")],
    "explorer-phone": [
        ("asia", "#smoke=yes&~target=lung", 360, 720, "light"),
        ("asia", "#xray=yes&~target=lung&~tab=influence", 360, 720, "dark"),
        ("alarm", "#BP=LOW&~target=CO&~focus=yes&~view=map", 360, 720, "light"),
    ],
}
"""By name: which networks, links, sizes and schemes stand side by side in a picture."""


def take_pictures(browser: Any, networks: dict[str, Network], folder: Path) -> None:
    """Write every picture as a PNG of few colours, some tens of kilobytes each."""
    from PIL import Image

    pages = {}
    for name, truth in networks.items():
        rows = truth.sample(4000 if name == "asia" else 20_000, rng=4).arrow()
        made = dc.release(
            rows, truth.schema, truth.dag, epsilon="3/4", budget="epsilon=3", ledger=Path(tempfile.mkdtemp()) / "l",
            account="chest clinic" if name == "asia" else name, create=True, about=ABOUT if name == "asia" else None,
        )  # fmt: skip
        pages[name] = made
    with tempfile.TemporaryDirectory() as place:
        for picture, shots in SHOTS.items():
            parts = []
            for name, link, width, height, scheme in shots:
                file = Path(place) / "page.html"
                file.write_text(make_explorer(pages[name]), encoding="utf-8")
                parts.append(_shoot(browser, file.as_uri() + link, width, height, scheme))
            images = [Image.open(io.BytesIO(part)) for part in parts]
            gap = 16 * (len(images) > 1)
            whole = Image.new(
                "RGB", (sum(one.width + gap for one in images) - gap, images[0].height), "#888888"
            )
            at = 0
            for one in images:
                whole.paste(one, (at, 0))
                at += one.width + gap
            small = whole.quantize(200, dither=Image.Dither.NONE)
            small.save(folder / f"{picture}.png", optimize=True)
            print(
                f"{folder / picture}.png: {(folder / f'{picture}.png').stat().st_size / 1000:.0f} kB",
                flush=True,
            )


def _shoot(browser: Any, address: str, width: int, height: int, scheme: str) -> bytes:
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    page = context.new_page()
    page.goto(address)
    for _ in range(1200):
        if page.evaluate("discreet.app.endsReady"):
            break
        time.sleep(0.05)
    if width < 760 and "tab=" in address:
        page.evaluate("discreet.app.page.openPanel()")
    time.sleep(0.5)
    taken: bytes = page.screenshot()
    context.close()
    return taken
