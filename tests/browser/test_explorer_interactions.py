"""What people do with the page, on a small, a middle and a large network: every click is compared with Python."""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from explorer_networks import draw, load, make_wide, release

import discreet as dc
from discreet.doors.cli import main
from discreet.judge.explorer.page import make_explorer
from discreet.networks.network import Network
from discreet.values.errors import ImpossibleEvidence

CASES = {
    "asia": (("smoke", "yes"), ("dysp", "no"), "lung"),
    "alarm": (("BP", "LOW"), ("HRSAT", "NORMAL"), "LVFAILURE"),
    "win95pts": (("Problem1", "No_Output"), ("NetOK", "No"), "PrtOn"),
}
QUICK = ["asia", "alarm", pytest.param("win95pts", marks=pytest.mark.slow)]
"""The larger network takes its time: some of what is tested on it is left to `make test-slow`."""


def card(network: Network, name: str) -> str:
    return f'.card[data-v="{network.nodes.index(name)}"]'


def level(network: Network, name: str, wanted: str) -> str:
    return f'{card(network, name)} .level[data-level="{network.schema[name].levels.index(wanted)}"]'


def click(page: Any, selector: str, **options: Any) -> None:
    """A click on the element itself, wherever the map has it; what a finger does is tested elsewhere."""
    page.page.locator(selector).first.dispatch_event("click", options or None)


def check(page: Any, network: Network, given: dict[str, Any]) -> None:
    """All bars of all cards say what Python says: the numbers behind them, the text beside them."""
    expected = network.posteriors(given)
    for name in network.nodes:
        assert np.allclose(page.shares(name), expected[name], atol=1e-9)
    shown = page.run(
        """() => discreet.app.cards.map((card) => card.rows.map((row) =>
          [row.share.textContent, row.bar.fill.style.transform, row.button.getAttribute("aria-label")]))"""
    )
    for name, rows in zip(network.nodes, shown, strict=True):
        if len(rows) == network.schema[name].size:
            for (text, bar, said), share in zip(rows, expected[name], strict=True):
                assert float(re.sub(r"[<>% ]", "", text)) == pytest.approx(100 * share, abs=0.051)
                assert float(re.search(r"scaleX\((.*)\)", bar)[1]) == pytest.approx(share, abs=1e-6)
                assert text in said and name in said


@pytest.mark.parametrize("name", CASES)
def test_a_click_sets_a_level_and_another_releases_it(name: str, show: Callable) -> None:
    """Two pieces of evidence, one released, all undone; bars, chips and the probability of the evidence follow."""
    network, (first, second, _) = load(name), CASES[name]
    page = show(draw(name))
    check(page, network, {})
    click(page, level(network, *first))
    check(page, network, dict([first]))
    assert page.text("#given") == f"{first[0]} = {first[1]}"
    assert (
        page.run("() => document.querySelector('.card.known .level.set').getAttribute('aria-pressed')")
        == "true"
    )
    click(page, level(network, *second))
    check(page, network, dict([first, second]))
    assert page.page.locator("#given .chip").count() == 2
    click(page, level(network, *first))
    check(page, network, dict([second]))
    page.page.keyboard.press("u")
    check(page, network, dict([first, second]))
    page.page.click("#clear")
    check(page, network, {})
    page.page.click("#undo")
    check(page, network, dict([first, second]))


@pytest.mark.parametrize("name", ["child", "alarm"])
def test_a_level_can_be_ruled_out(name: str, show: Callable) -> None:
    """By shift and click, by the key n, by the button of the panel; the last level left cannot be ruled out."""
    network = load(name)
    target = next(node for node in network.nodes if network.schema[node].size == 3)
    levels = network.schema[target].levels
    page = show(draw(name))
    click(page, level(network, target, levels[0]), shiftKey=True, bubbles=True)
    check(page, network, {target: levels[1:]})
    assert page.text("#given") == f"{target} ≠ {levels[0]}"
    page.run("(selector) => document.querySelector(selector).focus()", level(network, target, levels[1]))
    page.page.keyboard.press("n")
    check(page, network, {target: levels[2]})
    click(page, f"{card(network, target)} .title")
    assert page.page.locator(".answer .not").nth(2).is_disabled()
    page.page.locator(".answer .not").nth(0).click()
    check(page, network, {target: [levels[0], levels[2]]})


def test_before_and_after_stand_in_one_bar(show: Callable) -> None:
    """The tick is where the bar was without evidence, and it is there only with evidence."""
    network = load("asia")
    page = show(draw("asia"), "#~target=lung")
    assert page.page.locator(".answer .moved").count() == 0
    click(page, level(network, "smoke", "yes"))
    assert page.page.locator(".answer .moved").count() == 2
    before = float(network.query("lung")["yes"])
    left = page.run("() => document.querySelector('.answer .was').style.left")
    assert float(left.rstrip("%")) == pytest.approx(100 * before, abs=1e-4)
    assert "was 5.5 %" in page.run(
        "() => document.querySelector('.answer .level').getAttribute('aria-label')"
    )


@pytest.mark.parametrize("name", QUICK)
def test_the_best_guess_is_the_most_probable_explanation(name: str, show: Callable) -> None:
    """The levels that the panel lists are as probable together as those that Python finds."""
    network, (first, _, _) = load(name), CASES[name]
    page = show(draw(name), f"#{first[0]}={first[1]}")
    page.page.click("#tab-explanation")
    best = network.most_probable(dict([first]))
    levels = page.run(
        """() => Object.fromEntries([...document.querySelectorAll(".guess div")].map((row) =>
          [row.querySelector("dt").textContent, row.querySelector("dd").textContent.replace(/ \\(by itself.*/, "")]))"""
    )
    assert set(levels) == set(best.levels)
    assert network.probability(levels, dict([first])) == pytest.approx(best.probability, abs=1e-9)


@pytest.mark.parametrize("name", QUICK)
def test_what_matters_is_ranked(name: str, show: Callable) -> None:
    """With evidence and without; a click on a line leads to the paths between the two."""
    network, (first, _, target) = load(name), CASES[name]
    page = show(draw(name), f"#{first[0]}={first[1]}&~target={target}&~tab=influence")
    ranked = page.run(
        "() => [...document.querySelectorAll('.ranking li button')].map((one) => one.getAttribute('aria-label'))"
    )
    assert len(ranked) == len(network.nodes) - 1
    shares = [float(re.search(r" (?:< )?([\d.]+) %", text)[1]) for text in ranked]
    assert shares == sorted(shares, reverse=True) and shares[0] > 0
    assert all("without what is assumed" in text for text in ranked)
    page.page.locator(".ranking button").first.click()
    assert page.page.locator("#tab-paths").get_attribute("aria-selected") == "true"
    assert "tell about each other" in page.text(".verdict")
    assert page.page.locator(".arrow.lit").count() > 0
    page.page.click("#tab-influence")
    page.page.click("#given .chip button")
    assert (
        page.run("() => document.querySelector('.ranking button').getAttribute('aria-label')").count(
            "without"
        )
        == 0
    )


def test_paths_say_where_they_are_blocked(show: Callable) -> None:
    """Asia: smoking and a visit to Asia are independent, until their common effect is seen."""
    page = show(draw("asia"), "#~target=asia&~tab=paths&~with=smoke")
    assert "independent: every path is blocked" in page.text(".verdict")
    assert "blocked at either, an effect of both sides of which nothing is known" in page.text(".trails")
    assert page.page.locator(".arrow.lit").count() == 0
    click(page, level(load("asia"), "xray", "yes"))
    assert "tell about each other" in page.text(".verdict")
    assert page.page.locator(".arrow.lit").count() == 4
    click(page, level(load("asia"), "lung", "no"))
    assert "blocked at lung, which is known" in "".join(page.page.locator(".trails").all_text_contents())


@pytest.mark.parametrize("name", QUICK)
def test_search_finds_attributes_and_levels(name: str, show: Callable) -> None:
    """By part of a name or of a level, in any case; Enter goes to the first; what is not there is said."""
    first, _, target = CASES[name]
    page = show(draw(name))
    page.page.keyboard.press("/")
    page.page.keyboard.type(target.lower())
    assert page.page.locator("#matches button").first.text_content() == target
    page.page.keyboard.press("Enter")
    assert page.text("#panel .chosen") == target
    assert page.run("() => document.activeElement.textContent") == target
    page.page.fill("#search", first[1].lower())
    assert page.page.locator(".card.hit").count() >= 1
    page.page.fill("#search", "no such thing")
    assert "no attribute or level" in page.text("#matches")


@pytest.mark.parametrize("name", CASES)
def test_a_link_restores_the_state(name: str, show: Callable) -> None:
    """What the address shows after some clicks brings the same state back in a new window, and when it is pasted."""
    network, (first, second, target) = load(name), CASES[name]
    page = show(draw(name))
    click(page, level(network, *first))
    click(page, level(network, *second), shiftKey=True, bubbles=True)
    click(page, f"{card(network, target)} .title")
    page.page.click("#tab-influence")
    page.wait("location.hash === `#${discreet.app.state.write()}`")
    link = page.run("location.hash")
    assert link.startswith(f"#{first[0]}={first[1]}&{second[0]}!={second[1]}")
    again = show(draw(name), link)
    others = [one for one in network.schema[second[0]].levels if one != second[1]]
    check(again, network, {first[0]: first[1], second[0]: others})
    assert again.text("#panel .chosen") == target
    again.wait("location.hash === `#${discreet.app.state.write()}`")
    assert again.run("location.hash") == link
    page.run("(link) => { location.hash = link; }", f"#{second[0]}={second[1]}")
    page.wait("discreet.app.state.evidence.size === 1")
    check(page, network, dict([second]))
    assert page.run("discreet.app.state.tab") == "answer", "what a link does not mention is as usual"
    page.run("() => { location.hash = '#no+such=thing&x'; }")
    page.wait("discreet.app.state.evidence.size === 0")
    assert "there is no “no+such”; there is no “x”" in page.text("#message")


@pytest.mark.parametrize(
    ("link", "said", "given"),
    [
        ("#smoke=maybe", "smoke has no level “maybe”", {}),
        ("#smoke!=yes&smoke!=no", "smoke would have no level left", {"smoke": "no"}),
        ("#smoke=yes&smoke=no", "smoke would have no level left", {"smoke": "yes"}),
        ("#smoke!=yes&smoke=yes", "smoke would have no level left", {"smoke": "no"}),
        ("#~interval=both", "“interval both” is not known here", {}),
        ("#~target=nobody&~tab=nothing", "“target nobody” is not known here; “tab nothing” is not", {}),
        ("#%E0%A4%A", "there is no “%E0%A4%A”", {}),
        ("#~with=dysp&~target=dysp&~tab=paths", "", {}),
        ("#smoke=yes&smoke!=no&smoke=yes", "", {"smoke": "yes"}),
    ],
)
def test_a_link_that_does_not_fit_is_followed_as_far_as_it_goes(
    link: str, said: str, given: dict[str, str], show: Callable
) -> None:
    """A link of another release, a damaged one, one that contradicts itself: said in words, and the page works."""
    page = show(draw("asia"), link)
    page.settle()
    assert said in page.text("#message") and page.page.locator("#message").is_visible() is bool(said)
    check(page, load("asia"), given)


def test_what_cannot_be_answered_shows_no_numbers(show: Callable) -> None:
    """A network that is too wide: no bar, no percentage, and still the paths that its graph alone decides."""
    page = show(make_explorer(make_wide(), file="wide.json"), "#~target=cause0&~with=cause1")
    assert page.page.locator(".track:visible").count() == page.page.locator(".share:visible").count() == 0
    assert "%" not in page.text("#stage") + page.text("#panel")
    assert page.page.locator(".tab:visible").all_text_contents() == ["Paths"]
    assert "independent: every path is blocked" in page.text(".verdict")
    page.run("() => discreet.app.set(discreet.app.network.index.get('cause0+cause1'), 0)")
    assert "tell about each other" in page.text(".verdict")
    assert page.text("#given") == "cause0+cause1 = yes"


def copy(page: Any, what: str) -> str:
    page.page.locator(".copies button", has_text=what).click()
    page.wait("!document.querySelector('.copied').hidden")
    found: str = page.run("() => document.querySelector('.copied').value")
    return found


def test_an_answer_is_copied_as_sentence_table_command_and_link(
    show: Callable, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The sentence has the numbers, the table is CSV, and the command gives the same number as the page."""
    known = release("sachs", 20_000)
    known.write(tmp_path / "sachs")
    page = show(
        make_explorer(known),
        "#PKA!=LOW&Erk=HIGH&~target=Akt",
        permissions=["clipboard-write", "clipboard-read"],
    )
    page.settle()
    given = {"PKA": ["AVG", "HIGH"], "Erk": "HIGH"}
    answer = known.query("Akt", given)
    sentence = copy(page, "sentence")
    assert sentence.startswith("If PKA is not LOW and Erk is HIGH, then Akt is LOW ")
    assert (
        "before" in sentence
        and "likely" in sentence
        and "surely" in sentence
        and "Source: What sachs shows" in sentence
    )
    assert page.run("() => navigator.clipboard.readText()") == sentence
    rows = list(csv.DictReader(io.StringIO(copy(page, "CSV"))))
    assert [row["level"] for row in rows] == list(known.network.schema["Akt"].levels)
    assert [float(row["after"]) for row in rows] == pytest.approx(list(answer.table.values), abs=1e-9)
    assert all(float(row["sure_lower"]) <= float(row["likely_lower"]) for row in rows)
    command = shlex.split(copy(page, "command"))
    assert command[:2] == ["discreet", "query"] and command[3] == "P(Akt | PKA!=LOW, Erk=HIGH)"
    assert main(["query", str(tmp_path / "sachs" / command[2]), *command[3:], "--json"]) == 0
    cells = json.loads(capsys.readouterr().out)["distribution"]
    assert [cell["probability"] for cell in cells] == pytest.approx(page.shares("Akt"), abs=1e-9)
    page.wait("location.hash === `#${discreet.app.state.write()}`")
    assert copy(page, "link") == page.run("location.href")


def test_what_cannot_be_is_explained(show: Callable) -> None:
    """Evidence of probability 0: the page says so, names what to release, and goes on from there."""
    network = load("asia")
    with pytest.raises(ImpossibleEvidence):
        network.posteriors({"either": "no", "lung": "yes"})
    page = show(draw("asia"), "#either=no")
    click(page, level(network, "lung", "yes"))
    assert page.text("#panel .chosen") == "This cannot be"
    assert "it never happens that either is no and lung is yes" in page.text("#tab-body")
    buttons = page.page.locator("#tab-body button").all_text_contents()
    assert buttons == ["Release either", "Release lung", "Undo the last step"]
    page.page.locator("#tab-body button", has_text="Release either").click()
    check(page, network, {"lung": "yes"})
    assert page.text("#panel .chosen") != "This cannot be"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["alarm", "win95pts"])
def test_larger_networks_have_the_other_interactions_too(name: str, show: Callable) -> None:
    """Before and after, "not" in the panel, paths, copies and the impossible, as they are tested on Asia."""
    network, (first, second, target) = load(name), CASES[name]
    page = show(draw(name), f"#~target={target}", permissions=["clipboard-write", "clipboard-read"])
    click(page, level(network, *first))
    before, levels = network.query(target), network.schema[target].levels
    ticks = page.run("() => [...document.querySelectorAll('.answer .was')].map((one) => one.style.left)")
    assert page.page.locator(".answer .moved").count() == len(levels)
    assert [float(tick.rstrip("%")) for tick in ticks] == pytest.approx(
        [100 * float(before[one]) for one in levels], abs=1e-4
    )
    answer = network.query(target, dict([first]))
    assert copy(page, "sentence").startswith(f"If {first[0]} is {first[1]}, then {target} is {levels[0]} ")
    rows = list(csv.DictReader(io.StringIO(copy(page, "CSV"))))
    assert [float(row["after"]) for row in rows] == pytest.approx(list(answer.table.values), abs=1e-9)
    assert shlex.split(copy(page, "command"))[3] == f"P({target} | {first[0]}={first[1]})"
    page.wait("location.hash === `#${discreet.app.state.write()}`")
    assert copy(page, "link") == page.run("location.href")
    page.page.locator(".answer .not").first.click()
    check(page, network, {first[0]: first[1], target: list(levels[1:])})
    page.page.click("#undo")
    page.run(
        "(other) => discreet.app.choose({ tab: 'paths', other: discreet.app.network.index.get(other) })",
        second[0],
    )
    apart = nx.is_d_separator(nx.DiGraph(network.dag.edges()), {target}, {second[0]}, {first[0]})
    assert ("every path is blocked" in page.text(".verdict")) == apart
    assert (page.page.locator(".arrow.lit").count() == 0) == apart
    family, cell = next(
        (found.axes, np.argwhere(found.values == 0)[0]) for found in network.cpts if not found.values.all()
    )
    never = {node: network.schema[node].levels[code] for node, code in zip(family, cell, strict=True)}
    with pytest.raises(ImpossibleEvidence):
        network.posteriors(never)
    page.page.click("#clear")
    for node, one in never.items():
        click(page, level(network, node, one))
    assert page.text("#panel .chosen") == "This cannot be"
    page.page.locator("#tab-body button", has_text="Undo the last step").click()
    check(page, network, dict(list(never.items())[:-1]))


def test_a_bar_stays_under_the_finger_that_presses_it(show: Callable) -> None:
    """A card that is only partly in view does not move between press and release, or the press is lost."""
    page = show(draw("alarm"), width=360, height=800)
    cut = page.run(
        """() => {
          for (const card of document.querySelectorAll(".card:not([hidden])")) {
            const bar = card.querySelector(".level"), below = bar.getBoundingClientRect().bottom + 8 - innerHeight;
            if (below < 0) continue;
            scrollBy(0, below);  // now its first bar is just above the edge, and the rest below
            const { x, y, width, height } = bar.getBoundingClientRect();
            return { x: x + width / 2, y: y + height / 2, low: card.getBoundingClientRect().bottom };
          }
        }"""
    )
    assert cut["low"] > 800 > cut["y"]
    page.page.mouse.move(cut["x"], cut["y"])
    page.page.mouse.down()
    page.page.wait_for_timeout(80)
    page.page.mouse.up()
    assert page.run("discreet.app.state.evidence.size") == 1


@pytest.mark.parametrize("name", QUICK)
def test_the_keyboard_is_enough(name: str, show: Callable) -> None:
    """Tab to the cards, arrows to a bar, Enter to set it, n to rule out, tabs of the panel, search, undo: no mouse."""
    network, (_, _, target) = load(name), CASES[name]
    page = show(draw(name))
    keys = page.page.keyboard
    keys.press("/")
    keys.type(target)
    keys.press("Enter")
    keys.press("ArrowDown")
    keys.press("Enter")
    first = network.schema[target].levels[0]
    check(page, network, {target: first})
    keys.press("Home")
    keys.press("ArrowRight")
    keys.press("ArrowDown")
    focused = page.run("() => document.activeElement.getAttribute('aria-label')")
    keys.press(" ")
    other = next(node for node in network.nodes if focused.startswith(f"{node} "))
    assert page.run("discreet.app.state.evidence.size") == (0 if other == target else 2)
    keys.press("Control+z")
    keys.press("Control+z")
    check(page, network, {})
    keys.press("m")
    assert page.page.locator("#list").get_attribute("aria-pressed") == "true"
    keys.press("m")
    keys.press("f")
    near = {target, *network.dag.parents_of(target), *network.dag.children_of(target)}
    shown = page.page.locator(".card:not([hidden])").count()
    assert len(near) <= shown < len(network.nodes) or len(network.nodes) == shown
    keys.press("f")
    for _ in range(40):
        keys.press("Tab")
        if page.run("() => document.activeElement.getAttribute('role')") == "tab":
            break
    for tab in ("influence", "paths", "explanation", "answer"):
        keys.press("ArrowRight")
        assert page.page.locator(f"#tab-{tab}").get_attribute("aria-selected") == "true"


def test_those_who_listen_are_told(show: Callable) -> None:
    """The live region says what the chosen attribute became; groups and buttons have names."""
    network = load("asia")
    page = show(draw("asia"), "#~target=lung")
    click(page, level(network, "smoke", "yes"))
    assert page.text("#status") == "If smoke is yes: lung: yes 10.0 %, no 90.0 %."
    assert page.page.locator('.card[role="group"]').count() == len(network.nodes)
    assert page.page.get_by_role("button", name="smoke yes 100 %, assumed").count() == 1


def test_the_map_is_panned_and_zoomed(show: Callable) -> None:
    """Wheel, buttons and dragging move the map; what ends a drag is not a click, and a plain click is one."""
    page = show(draw("alarm"))
    start = page.run("({ ...discreet.app.stage.at })")
    box = page.page.locator("#stage").bounding_box()
    middle = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.page.mouse.move(*middle)
    page.page.mouse.wheel(0, -600)
    page.wait(f"discreet.app.stage.at.k > {start['k']}")
    spot = page.page.locator(".card .level").first
    page.page.click("#fit")
    place = spot.bounding_box()
    page.page.mouse.move(place["x"] + 4, place["y"] + 3)
    page.page.mouse.down()
    page.page.mouse.move(place["x"] + 90, place["y"] + 40, steps=6)
    page.page.mouse.up()
    assert page.run("discreet.app.state.evidence.size") == 0
    assert page.run("discreet.app.stage.at.x") == pytest.approx(start["x"] + 86, abs=12)
    page.page.click("#closer")
    page.page.click("#fit")
    place = spot.bounding_box()
    page.page.mouse.click(place["x"] + place["width"] / 2, place["y"] + place["height"] / 2)
    assert page.run("discreet.app.state.evidence.size") == 1


def test_examples_have_pages_in_notebooks(show: Callable) -> None:
    """`release.explore()` is a frame with the same page, which runs although it may do nothing else."""
    frame = release("asia").explore(height=500)
    assert 'sandbox="allow-scripts"' in frame._repr_html_()
    page = show(f"<!doctype html><title>notebook</title>{frame._repr_html_()}")
    inner = page.page.frame_locator("iframe")
    inner.locator('.card[data-v="2"] .level').first.click()
    inner.locator("#given .chip").wait_for()
    assert inner.locator("#given").text_content() == f"{dc.examples.asia().nodes[2]} = yes"
