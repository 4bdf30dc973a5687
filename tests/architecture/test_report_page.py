"""The report: one page that fetches and runs nothing, says what the release says, and cannot be injected into."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dc
from discreet.doors.cli import main
from discreet.judge.report import explain_loss, find_parts, make_page
from discreet.judge.report_parts.graph_layout import GAP, assign_layers, lay_out
from discreet.judge.report_parts.probability_bars import write_level
from discreet.networks.formats.release import Release, format_release, make_release, parse_release
from discreet.networks.network import Network
from discreet.papers.parameters.independent import independent
from discreet.values.budget import ZCDP, ApproxDP, Infinite, PureDP
from discreet.values.graph import DAG

VOID = {"meta", "br", "wbr", "path", "rect", "polygon", "polyline"}


class Checker(HTMLParser):
    """Collects tags, attributes and text, and complains about tags that are not closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.links: list[str] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.links += [
            str(value)
            for name, value in attrs
            if name in ("href", "src", "action", "data") or name[:2] == "on"
        ]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def read(page: str) -> Checker:
    found = Checker()
    found.feed(page)
    found.close()
    assert found.open == [], "every tag is closed"
    return found


def learn(network: Network, spend: str = "1", unit: str = "add-remove") -> Release:
    rows = network.sample(500, rng=1).arrow()
    airlock = dc.open_airlock(rows, network.schema, budget=spend, unit=unit)
    return make_release(independent(airlock, network.dag, spend=airlock.budget))


@pytest.fixture(scope="module")
def asia() -> Release:
    return learn(dc.examples.asia())


def test_a_page_needs_nothing_else(asia: Release) -> None:
    page = make_page(asia)
    found = read(page)
    assert found.tags & {"script", "link", "iframe", "img", "object", "form"} == set()
    assert found.links == []
    assert (
        "url(" not in page.replace("url(#tip)", "")
        and "@import" not in page
        and "http" not in re.sub("http-equiv", "", page)
    )
    assert "default-src 'none'" in page
    for feature in ("prefers-color-scheme: dark", "@media print", "max-width:720px", 'name="viewport"'):
        assert feature in page
    assert len(page) < 200_000


def test_a_page_says_what_the_release_says(asia: Release) -> None:
    found = read(make_page(asia))
    text = " ".join(found.words)
    assert asia.promise in text
    for name in asia.network.nodes:
        assert name in found.words
    said = asia.provenance.statement
    assert said.head in text and said.debits[0].request in text
    worst = max(asia.provenance.predicted_error.values())
    assert f"± {worst:.4f}" in text
    value = float(asia.network.cpt("smoke").values[0])
    assert f"{value:.3f}" in found.words


def test_the_same_release_gives_the_same_page(asia: Release) -> None:
    assert make_page(parse_release(format_release(asia))) == make_page(asia)


def test_hostile_names_stay_text() -> None:
    evil = '<script>alert("x")</script>'
    network = Network.build(
        {evil: ["</td><b>", "&amp;"], "b'\"": ["' onload='x", "n"]},
        {evil: [], "b'\"": [evil]},
        {evil: [0.5, 0.5], "b'\"": [[0.5, 0.5], [0.1, 0.9]]},
    )
    found = read(make_page(learn(network)))
    assert "script" not in found.tags and evil in found.words
    assert found.links == []


@pytest.mark.parametrize("name", ["sachs", "child", "alarm"])
def test_larger_networks(name: str) -> None:
    page = make_page(learn(dc.examples.load(name), "rho=1/2", "replace-one"))
    assert page.count('class="node ') == len(dc.examples.load(name).nodes)
    read(page)


def test_a_revealed_table_says_so(asia: Release) -> None:
    from dataclasses import replace

    said = replace(asia.provenance.statement, loss=Infinite())
    network = replace(asia.network, provenance=replace(asia.provenance, statement=said))
    page = make_page(make_release(network))
    assert 'class="promise none"' in page and "ε = ∞" in page


@pytest.mark.parametrize(
    ("loss", "told"),
    [
        (PureDP(1), "73.2 %"),
        (PureDP("1/100"), "50.3 %"),
        (PureDP(5), "99.4 %"),
        (PureDP(10**6), "practically certain"),
        (ApproxDP(1, "1e-6"), "chance of 1e-06"),
        (ZCDP("1/8"), "one in a million"),
        (Infinite(), "no bound"),
    ],
)
def test_the_loss_in_words(loss: object, told: str) -> None:
    assert told in explain_loss(loss, dc.Unit.ADD_REMOVE)[0]  # type: ignore[arg-type]


@given(data=st.data(), count=st.integers(1, 14))
@settings(deadline=None, max_examples=60)
def test_a_layout_keeps_its_promises(data: st.DataObject, count: int) -> None:
    """Arrows lead down, boxes of a row keep their distance, and arrows begin and end at their nodes."""
    names = [f"n{i}" for i in range(count)]
    parents = {
        name: data.draw(st.lists(st.sampled_from(names[:i]), unique=True, max_size=3) if i else st.just([]))
        for i, name in enumerate(names)
    }
    dag = DAG.build(parents)
    layers = assign_layers(dag)
    assert min(layers.values()) == 0
    assert all(layers[parent] < layers[child] for parent, child in dag.edges())
    widths = {name: 40.0 + 10 * (i % 5) for i, name in enumerate(names)}
    found = lay_out(dag, widths, 100.0)
    for edge, route in found.routes.items():
        assert (route[0], route[-1]) == (found.places[edge[0]], found.places[edge[1]])
        assert len(route) == layers[edge[1]] - layers[edge[0]] + 1
    for one in names:
        x, y = found.places[one]
        assert (
            x - widths[one] / 2 >= -1e-6
            and x + widths[one] / 2 <= found.width + 1e-6
            and 0 < y < found.height
        )
        for other in names:
            if one < other and layers[one] == layers[other]:
                room = abs(x - found.places[other][0]) - (widths[one] + widths[other]) / 2
                assert room >= GAP - 1e-6


def test_the_command_writes_one_file(asia: Release, tmp_path: Path) -> None:
    dc.write_release(asia, tmp_path / "release.json")
    assert main(["report", str(tmp_path / "release.json"), "--out", str(tmp_path / "report.html")]) == 0
    assert (tmp_path / "report.html").read_text("utf-8") == make_page(asia)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["release.json", "report.html"]


def test_all_levels_of_a_binned_attribute_are_drawn_in_their_order() -> None:
    age = dc.Attribute.binned("age", range(0, 101, 5))
    schema = dc.Schema((age, dc.Attribute.of("ill", ["no", "yes"])))
    shares = [[(k + 1) / 210 for k in range(20)], [(20 - k) / 210 for k in range(20)]]
    network = Network.build(schema, {"age": ["ill"], "ill": []}, {"age": shares, "ill": [0.5, 0.5]})
    page = make_page(learn(network))
    assert page.count('class="histogram"') == 2
    for histogram in re.findall(r'<svg class="histogram".*?</svg>', page):
        titles = re.findall(r"<title>(.*?): ", histogram)
        assert titles == list(age.levels)


def test_a_large_graph_is_drawn_in_its_parts_and_the_rest_is_a_list() -> None:
    names = [f"a{k:02d}" for k in range(40)]
    arrows = {name: [names[k - 1]] if k in (1, 2, 5) else [] for k, name in enumerate(names)}
    tables = {name: [[0.5, 0.5]] * 2 if arrows[name] else [0.5, 0.5] for name in names}
    network = Network.build({name: ["x", "y"] for name in names}, arrows, tables)
    assert sorted(map(len, find_parts(network.dag))) == [1] * 35 + [2, 3]
    page = make_page(learn(network))
    assert page.count('<svg class="graph"') == 2
    assert page.count('<g class="node') == 5
    assert "35 attributes that depend on no other" in page


def test_a_moment_at_midnight_is_shown_as_its_day() -> None:
    assert write_level("[2024-01-01 00:00:00, 2024-02-01 12:30:00)") == "[2024-01-01, 2024-02-01 12:30:00)"
    assert write_level("<b>") == "&lt;b&gt;"
