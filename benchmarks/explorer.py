"""The explorer in a real browser: how large it is, how fast its bars move, how exact they are, what axe-core finds.

An update is what a click on a bar takes until every bar, text and label has changed and the page is laid out again. The
intervals follow in parts of at most 12 ms, and `intervals_ms` is when the last of them stands. Promised are 300 kB
without the network, 50 ms for Alarm, and the numbers of Python to 1e-9. The pages are those of private releases with
both kinds of intervals.
"""

from __future__ import annotations

import argparse
import csv
import re
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import discreet as dc
from _browser import AXE, FIND_SERIOUS, NO_AXE, NO_BROWSER, find_browser, open_browser
from _explorer_pictures import take_pictures
from _running import progress
from discreet.judge.explorer.page import make_explorer
from discreet.networks.formats.release import read_model
from discreet.networks.network import Network

CLICK = """async (spots) => {
  const { app } = discreet, updates = [], intervals = [];
  for (const [v, k] of spots) {
    const row = app.cards[v].rows.find((one) => Number(one.button.dataset.level) === k) || app.cards[v].rows[0];
    const start = performance.now();
    row.button.click();
    document.body.offsetHeight;
    updates.push(performance.now() - start);
    while (!app.endsReady) await new Promise((done) => setTimeout(done, 0));
    intervals.push(performance.now() - start);
    app.release(v);
    while (!app.endsReady) await new Promise((done) => setTimeout(done, 0));
  }
  return { updates, intervals };
}"""
ANSWER = """(cases) => cases.map((given) => {
  const { tree, network } = discreet.app;
  tree.propagate(new Map(Object.entries(given).map(([name, level]) => {
    const v = network.index.get(name);
    return [v, Float64Array.from(network.levels[v], (one) => Number(one === level))];
  })));
  return Array.from(tree.marginals);
})"""


def load(name: str) -> Network:
    """A bundled network, or one of those that pgmpy brings along."""
    if hasattr(dc.examples, name):
        found: Network = getattr(dc.examples, name)()
        return found
    import pgmpy

    return read_model(Path(pgmpy.__file__).parent / "utils" / "example_models" / f"{name}.bif.gz")


def measure(page: Any, network: Network, clicks: int, cases: int) -> dict[str, float]:
    """The median time of an update and of its intervals, and the largest difference from Python."""
    source = np.random.default_rng(2)
    rows = network.sample(max(cases, clicks), rng=5).arrow(labels=True).to_pydict()
    spots = []
    for i in range(clicks):
        name = str(source.choice(network.nodes))
        spots.append((network.nodes.index(name), network.schema[name].levels.index(rows[name][i])))
    timed = page.evaluate(CLICK, spots)
    asked = []
    for i in range(cases):
        names = source.choice(network.nodes, source.integers(0, 7), replace=False)
        asked.append({str(name): rows[str(name)][i] for name in names})
    worst = 0.0
    for given, found in zip(asked, page.evaluate(ANSWER, asked), strict=True):
        expected = network.posteriors(given)
        flat = np.concatenate([expected[name] for name in network.nodes])
        worst = max(worst, float(np.abs(flat - found).max()))
    return {
        "update_ms": statistics.median(timed["updates"]),
        "intervals_ms": statistics.median(timed["intervals"]),
        "difference": worst,
    }


def main() -> None:
    """Measure the pages of some networks, and end with the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer clicks and questions")
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder for the CSV")
    parser.add_argument(
        "--pictures", type=Path, help="only take the pictures of the documents, into this folder"
    )
    arguments = parser.parse_args()
    path = find_browser()
    if path is None:
        sys.exit(NO_BROWSER)
    if arguments.pictures:
        with open_browser(path) as browser:
            take_pictures(
                browser, {name: load(name) for name in ("asia", "alarm", "hailfinder")}, arguments.pictures
            )
        return
    names = ["asia", "sachs", "child", "alarm", "hailfinder"] + (
        [] if arguments.quick else ["win95pts", "andes"]
    )
    lines, serious, size = [], 0, 0.0
    with (
        tempfile.TemporaryDirectory() as folder,
        open_browser(path) as browser,
        progress("pages", len(names)) as step,
    ):
        for name in names:
            truth = load(name)
            rows = truth.sample(5000, rng=1).arrow()
            made = dc.release(rows, truth.schema, truth.dag, epsilon=1, account=name)
            start = time.perf_counter()
            html = make_explorer(made)
            seconds = time.perf_counter() - start
            carried = re.search(r'data-crc="\w+">(.*?)</script>', html, re.DOTALL)
            assert carried is not None
            size = (len(html.encode()) - len(carried[1].encode())) / 1000
            file = Path(folder) / f"{name}.html"
            file.write_text(html, encoding="utf-8")
            context = browser.new_context(viewport={"width": 1440, "height": 900}, bypass_csp=True)
            page = context.new_page()
            page.goto(file.as_uri())
            found = measure(page, made.network, 10 if arguments.quick else 40, 60 if arguments.quick else 200)
            if AXE.is_file():
                page.evaluate(AXE.read_text("utf-8") + "; 0")
                serious += len(page.evaluate(FIND_SERIOUS))
            context.close()
            lines.append({"network": name, "kb": len(html) / 1000, "made_s": seconds, **found})
            print(
                f"{name:<12}{len(truth.nodes):>4} attributes   page {len(html) / 1000:>5.0f} kB in {seconds:>4.1f} s   "
                f"update {found['update_ms']:>5.1f} ms   intervals {found['intervals_ms']:>6.0f} ms   "
                f"difference {found['difference']:.1e}",
                flush=True,
            )
            step()
    arguments.out.mkdir(parents=True, exist_ok=True)
    with (arguments.out / "explorer.csv").open("w", newline="", encoding="utf-8") as table:
        writer = csv.DictWriter(table, list(lines[0]))
        writer.writeheader()
        writer.writerows(lines)
    by_name = {str(line["network"]): line for line in lines}
    print(f"page_kb: {size:.1f}")
    print(f"update_ms_alarm: {by_name['alarm']['update_ms']:.1f}")
    print(f"update_ms_hailfinder: {by_name['hailfinder']['update_ms']:.1f}")
    print(f"intervals_ms_alarm: {by_name['alarm']['intervals_ms']:.0f}")
    print(f"max_difference: {max(float(line['difference']) for line in lines):.2e}")
    print(f"axe_serious: {serious if AXE.is_file() else f'not measured ({NO_AXE})'}")


if __name__ == "__main__":
    main()
