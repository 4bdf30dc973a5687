"""The page as a page: hostile names, damage, narrow and wide screens, paper, accessibility, too wide networks."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from explorer_networks import draw, load, make_wide, release

import discreet as dc
from _browser import AXE, FIND_SERIOUS, NO_AXE
from discreet.judge.explorer.page import assemble, make_explorer
from discreet.judge.report import make_page
from discreet.networks.network import Network

HOSTILE = [
    "<script>alert(1)</script>", "</script><script>alert(2)</script>", "<img src=x onerror=alert(3)>",
    "<svg onload=alert(4)>", "\"><script>alert(5)</script>", "'><img src=x onerror=alert(6)>",
    "javascript:alert(7)", "<a href='javascript:alert(8)'>x</a>", "<iframe srcdoc='<script>alert(9)</script>'>",
    "<body onload=alert(10)>", "<style>*{display:none}</style>", "<!--", "-->", "<!-- <script>", "]]>", "<![CDATA[x]]>",
    "</title><script>alert(11)</script>", "</style><script>alert(12)</script>", "</textarea><script>alert(13)</script>",
    "{{constructor.constructor('alert(14)')()}}", "${alert(15)}", "`;alert(16);`", "';alert(17);//", "\";alert(18);//",
    "\\u003cscript\\u003ealert(19)", "\\x3cscript>alert(20)", "&lt;script&gt;alert(21)&lt;/script&gt;",
    "&#60;script&#62;",
    "%3Cscript%3Ealert(22)%3C/script%3E", "__proto__", "constructor", "hasOwnProperty", "toString", "prototype",
    "<math><mi//xlink:href='data:x,<script>alert(23)</script>'>", "<object data='data:text/html,<script>alert(24)'>",
    "<base href='https://attacker.example/'>", "<meta http-equiv=refresh content='0;url=https://attacker.example'>",
    "<link rel=stylesheet href=https://attacker.example/x.css>", "<form action=https://attacker.example><input>",
    "url(https://attacker.example/x.png)", "=HYPERLINK(\"https://attacker.example\")", "@SUM(1+1)",
    "+cmd|' /C calc'!A0",
    "x=y&z#w", "~target", "a!=b", "名前\u200ftxt.exe", "ｓｃｒｉｐｔ＜alert＞", "🧨" * 8, "a" * 400,
]  # fmt: skip


def make_hostile(words: list[str]) -> Network:
    """A network whose every name and level is an attack."""
    schema, parents, cpts = {}, {}, {}
    for i, word in enumerate(words):
        schema[word] = [words[(i + k) % len(words)] + f" {k}" for k in range(2)]
        parents[word] = [words[i - 1]] if i else []
        cpts[word] = [[0.25, 0.75], [0.5, 0.5]] if i else [0.5, 0.5]
    return Network.build(schema, parents, cpts)


def test_there_are_fifty_attacks() -> None:
    """As many as were promised, all different."""
    assert len(set(HOSTILE)) == len(HOSTILE) >= 50


@pytest.mark.parametrize("view", ["map", pytest.param("list", marks=pytest.mark.slow)])
def test_hostile_names_are_shown_and_never_run(view: str, show: Callable) -> None:
    """Names, levels, title and words of the custodian: text everywhere, markup and script nowhere."""
    network = make_hostile(HOSTILE)
    page = show(make_explorer(network, file=HOSTILE[1]), f"#~view={view}")
    assert page.page.locator(".card").count() == len(HOSTILE)
    assert page.page.locator(".card .name").all_text_contents() == [
        network.nodes[v] for v in page.run("discreet.app.network.topological")
    ]
    known = page.run("() => [...document.querySelectorAll('script')].length")
    for v in range(0, len(HOSTILE), 4):
        page.run("(v) => discreet.app.choose({ target: v, tab: 'answer' })", v)
        assert page.text("#panel .chosen") == HOSTILE[v]
        page.run("(v) => { discreet.app.set(v, 1); }", v)
        for tab in ("influence", "paths", "explanation", "answer"):
            page.run("([tab, other]) => discreet.app.choose({ tab, other })", [tab, (v + 2) % len(HOSTILE)])
        for what in ("sentence", "CSV", "command", "link"):
            page.page.locator(".copies button", has_text=what).click()
    page.page.fill("#search", "alert(")
    assert page.page.locator("#matches button").count() > 5
    for tag in (
        "img",
        "iframe",
        "object",
        "base",
        "form",
        "math",
        "link[rel=stylesheet]",
        "style + style",
        "[onload]",
    ):
        assert page.page.locator(f"body {tag}").count() == 0
    assert page.run("() => [...document.querySelectorAll('script')].length") == known == 2


def test_hostile_words_of_a_custodian_are_text(show: Callable) -> None:
    """Title, description, contact and licence; a release that is forged to hold them shows them as they are."""
    rows = dc.examples.asia().sample(500, rng=1).arrow()
    about = {"title": HOSTILE[1], "description": HOSTILE[2], "contact": HOSTILE[6], "licence": HOSTILE[7]}
    asia = dc.examples.asia()
    made = dc.release(rows, asia.schema, asia.dag, epsilon=1, account="</script>", about=about)
    page = show(make_explorer(made))
    assert page.text("#heading") == HOSTILE[1] and page.page.title() == HOSTILE[1]
    page.page.click("#pill")
    facts = page.page.locator(".facts dd").all_text_contents()
    assert facts[:3] == [HOSTILE[2], HOSTILE[6], HOSTILE[7]]
    assert page.page.locator("#promise a").count() == 0


def test_the_policy_refuses_what_a_name_could_smuggle_in(show: Callable) -> None:
    """Script, style and markup from text, fetching and sending: each is tried and refused by the browser itself."""
    page = show(draw("asia"), clean=False)
    tried = page.run(
        """async () => {
          const found = {};
          const attempt = (name, act) => { try { act(); found[name] = "done"; } catch { found[name] = "refused"; } };
          attempt("markup", () => { document.getElementById("heading").innerHTML = "<b>x</b>"; });
          const script = document.createElement("script");
          attempt("script", () => { script.textContent = "window.ran = 1"; document.body.append(script); });
          const style = document.createElement("style");
          style.textContent = "body { margin: 77px }";
          document.head.append(style);
          try { await fetch("https://attacker.example/"); found.fetch = "done"; } catch { found.fetch = "refused"; }
          const image = new Image();
          image.src = "https://attacker.example/x.png";
          await new Promise((done) => setTimeout(done, 50));
          found.ran = window.ran || 0;
          found.margin = getComputedStyle(document.body).marginTop;
          found.stored = localStorage.length + document.cookie.length;
          return found;
        }"""
    )
    assert tried["markup"] == tried["fetch"] == "refused"
    assert tried["ran"] == 0 and tried["margin"] == "0px" and tried["stored"] == 0
    page.requests[:] = [
        url for url in page.requests if "attacker.example" not in url
    ]  # tried, and never sent


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda html: html.replace("0.5,", "0.6,", 1), "it is not as it was written"),
        (lambda html: re.sub(r'data-crc="\w+"', 'data-crc="00000000"', html), "it is not as it was written"),
        (lambda html: html.replace('"parents":[[]', '"parents":[[0]', 1), "it is not as it was written"),
    ],
)
def test_a_damaged_file_says_so(change: Callable[[str], str], reason: str, show: Callable) -> None:
    """A file of which a part is missing or was changed shows a message instead of numbers."""
    html = draw("asia")
    assert change(html) != html
    page = show(change(html))
    assert reason in page.text("#problem") and page.page.locator("#problem").is_visible()
    assert not page.page.locator("#app").is_visible()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"parents": [[1], [0], [], [2], [2], [1, 3], [5], [4, 5]]}, "its arrows go round in a circle"),
        ({"cpts": [[0.5, 0.6]] * 8}, "a conditional of asia does not sum to 1"),
        ({"cpts": [[0.5, 0.5, 0.5]] * 8}, "the table of asia has the wrong size"),
        ({"cpts": [[-0.5, 1.5]] * 8}, "holds what is no probability"),
        ({"cpts": []}, "some of its tables are missing"),
        ({"parents": [[8], [], [], [], [], [], [], []]}, "its arrows do not fit its attributes"),
        ({"order": [0] * 8}, "it does not say in which order to work"),
        ({"attributes": [{"name": "x", "levels": ["a", "a"]}] * 8}, "one of them twice"),
        (
            {"guaranteed": {"lower": [[0.1, 0.2]] * 8, "upper": [[0.9, 2.0]] * 8}},
            "do not fit its table",
        ),
    ],
)
def test_forged_contents_are_refused_with_a_reason(
    change: dict[str, Any], reason: str, show: Callable
) -> None:
    """Contents with a fresh checksum that do not hold together."""
    contents = json.loads(re.search(r'data-crc="\w+">(.*?)</script>', draw("asia"), re.DOTALL)[1])
    page = show(assemble({**contents, **change}))
    assert reason in page.text("#problem")


@pytest.mark.parametrize(
    ("name", "width"), [("asia", 360), ("asia", 1440), ("alarm", 360), ("alarm", 1440), ("win95pts", 360)]
)
def test_the_page_fits_the_screen(name: str, width: int, show: Callable) -> None:
    """Nothing sticks out sideways, the list shows on a phone and the map on a desk; bars can be clicked on both."""
    page = show(draw(name), width=width, height=740)
    for view in ("list", "map"):
        page.page.click(f"#{view}")
        assert page.run("() => document.documentElement.scrollWidth <= window.innerWidth")
        assert page.page.locator("#stage").bounding_box()["height"] > 300
    page = show(draw(name), width=width, height=740)
    assert page.run("discreet.app.state.view") == ("list" if width < 760 else "map")
    if width < 760:
        assert not page.page.locator("#panel").is_visible()
        page.page.locator(".card .level").first.click()
        assert page.run("discreet.app.state.evidence.size") == 1
        page.page.locator(".card .title").first.click()
        assert page.page.locator("#panel").is_visible()
        for tab in ("influence", "paths", "explanation", "answer"):
            page.page.click(f"#tab-{tab}")
            assert page.run("() => document.documentElement.scrollWidth <= window.innerWidth")
        page.page.locator("#panel .close").click()
        assert not page.page.locator("#panel").is_visible()


def test_bars_move_without_moving_anything_else(show: Callable) -> None:
    """No card, no button and no text changes its place when a bar is clicked."""
    page = show(draw("alarm"))
    places = """() => [...document.querySelectorAll(".card, .answer .level, #stage, #panel .copies")].map((one) => {
      const place = one.getBoundingClientRect();
      return [place.x, place.y, place.width, place.height].map(Math.round);
    })"""
    page.settle()
    before = page.run(places)
    page.run("() => discreet.app.set(3, 0)")
    page.settle()
    assert page.run(places) == before


def test_paper_shows_all_cards_and_the_promise(show: Callable) -> None:
    """What is printed is the list, whatever the screen shows, with the promise opened out."""
    page = show(make_explorer(release("asia")), "#smoke=yes")
    page.settle()
    page.page.emulate_media(media="print")
    assert page.page.locator(".tools").is_hidden() and page.page.locator("#promise").is_visible()
    tops = page.run(
        "() => [...document.querySelectorAll('.card')].map((one) => one.getBoundingClientRect().left)"
    )
    assert len(set(map(round, tops))) == 3, "three columns"


def test_the_promise_is_in_view(show: Callable) -> None:
    """What is hidden, for whom and how much, before anything is clicked; all of it, and links, after a click."""
    page = show(make_explorer(release("asia"), report="report.html"))
    assert page.text("#pill") == "Hides whether any one row is in the table or not · ε = 1 in all"
    assert not page.page.locator("#promise").is_visible()
    page.page.click("#pill")
    assert release("asia").promise in page.text("#promise")
    assert "100 % went into this release" in page.text("#promise")
    links = page.run(
        "() => [...document.querySelectorAll('#promise a')].map((one) => one.getAttribute('href'))"
    )
    assert links == ["report.html#promise", "report.html#tables", "report.html#ledger", "report.html#use"]
    report = make_page(release("asia"))
    for link in links:
        assert re.search(rf"id=['\"]{link.partition('#')[2]}['\"]", report)


def test_many_bins_are_shown_by_where_they_begin(show: Callable) -> None:
    """Twenty bins of dates: short labels whose whole name is heard, the rest summed up, an assumed one named."""
    days = [f"2017-{month:02}-{day:02}" for month in range(1, 12) for day in (1, 15)]
    bins = [f"[{one}, {other})" for one, other in pairwise(days[:21])]
    shares = np.arange(1.0, 21.0) / 210.0
    network = Network.build(
        {"A_long_name_of.a-day": bins, "b": ["yes", "no"], "c": ["x", "y", "z"]},
        {"A_long_name_of.a-day": [], "b": ["A_long_name_of.a-day"], "c": []},
        {
            "A_long_name_of.a-day": shares,
            "b": np.stack([shares, 1 - shares], 1),
            "c": np.array([1e-7, 0.5, 0.5 - 1e-7]),
        },
    )
    page = show(make_explorer(network))
    card = page.page.locator('.card[data-v="0"]')
    assert card.locator(".name").text_content() == "A_long_name_of.a-day"
    assert card.locator(".level .label").all_text_contents() == [f"{day}–" for day in days[14:20]]
    assert card.locator(".rest").text_content() == f"14 more levels {100 * shares[:14].sum():.1f} %"
    seen = page.run(
        "() => [...document.querySelectorAll('.level')].map((one) => "
        "[one.textContent.replace(/\\s+/g, ' ').replace('–', '– ').trim(), one.getAttribute('aria-label')])"
    )
    for text, heard in seen:
        assert all(part in heard for part in text.split("– "))
    assert bins[14] in " ".join(heard for _, heard in seen)
    tracks = page.run(
        "() => discreet.app.cards[2].rows.map((row) => row.bar.track.getBoundingClientRect().width)"
    )
    assert len(set(tracks)) == 1, (
        "bars of a card have one scale, however long the number beside one of them is"
    )
    top = page.run(
        """() => { const range = document.createRange();
          range.selectNodeContents(discreet.app.cards[2].rows[0].share);
          const { left, top, height } = range.getBoundingClientRect();
          return document.elementFromPoint(left + 2, top + height / 2).className; }"""
    )
    assert top == "share", "the sign < is in front of the bar, not behind it"
    page.run("() => discreet.app.set(0, 2)")
    assert card.locator(".rest").text_content() == f"{days[2]}– 100 %"
    assert card.locator(".state").text_content() == f"= {days[2]}–"
    assert page.text("#given") == f"A_long_name_of.a-day = {bins[2]}"
    if AXE.is_file():
        bare = show(make_explorer(network), "#b=yes", bypass_csp=True)
        assert check_axe(bare) == []
        bare.run("() => discreet.app.stage.zoom(0.3)")  # from afar only bars and names are drawn
        assert check_axe(bare) == []


def test_a_network_that_is_too_wide_says_so(show: Callable) -> None:
    """Causes that share effects with each other: the graph is shown, and the reason and the way out are said."""
    network = make_wide()
    page = show(make_explorer(network, file="wide.json"))
    assert "too wide for exact answers in a browser" in page.text("#message")
    assert "discreet query wide.json" in page.text("#message")
    page.page.click("#list")
    assert page.page.locator(".card").count() == len(network.nodes)


def check_axe(page: Any) -> list[str]:
    """What axe-core finds that is serious or critical."""
    page.run(AXE.read_text("utf-8") + "; 0")
    found = page.run(FIND_SERIOUS)
    return list(found)


@pytest.mark.parametrize(
    ("width", "scheme"),
    [
        (360, "light"),
        (1440, "dark"),
        pytest.param(360, "dark", marks=pytest.mark.slow),
        pytest.param(1440, "light", marks=pytest.mark.slow),
    ],
)
def test_axe_finds_nothing_serious(width: int, scheme: str, show: Callable) -> None:
    """Every tab, both views, with evidence and with the promise open."""
    if not AXE.is_file():
        (pytest.fail if os.environ.get("DISCREET_BROWSER") == "required" else pytest.skip)(NO_AXE)
    page = show(
        make_explorer(release("asia"), report="report.html"), "#smoke=yes&xray!=no&~target=lung&~with=dysp",
        width=width, height=800, color_scheme=scheme, bypass_csp=True,
    )  # fmt: skip
    page.settle()
    assert check_axe(page) == []
    page.page.click("#pill")
    page.run("() => discreet.app.choose({ target: discreet.app.state.target })")
    for tab in ("influence", "paths", "explanation"):
        page.page.locator(f"#tab-{tab}").click()
        assert check_axe(page) == []
    page.page.locator(f"#{'map' if width < 760 else 'list'}").dispatch_event("click")
    assert check_axe(page) == []


def test_axe_would_find_something(show: Callable) -> None:
    """A button without a name is found, so the checks above can fail."""
    if not AXE.is_file():
        pytest.skip(NO_AXE)
    page = show(
        "<!doctype html><html lang=en><title>x</title><main><h1>x</h1><button></button></main></html>"
    )
    assert any(found.startswith("button-name") for found in check_axe(page))


def test_pages_are_small_and_the_same_every_time() -> None:
    """Under 300 kB without the network that it carries; nothing in it changes from day to day."""
    asia = load("asia")
    assert make_explorer(asia) == make_explorer(asia)
    html = draw("asia")
    carried = re.search(r'data-crc="\w+">(.*?)</script>', html, re.DOTALL)[1]
    assert len(html.encode()) - len(carried.encode()) < 300_000
    assert (
        re.search(r'(src|href)="(?!data:,")', html) is None and 'http-equiv="Content-Security-Policy"' in html
    )
