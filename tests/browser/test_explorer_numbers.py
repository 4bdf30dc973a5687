"""The page computes what Python computes: marginals, explanations, information, separation, intervals."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from explorer_networks import BUNDLED, choose_evidence, draw, load, release

import discreet as dc
from discreet.judge.explorer.page import make_explorer
from discreet.networks.credal import from_noise
from discreet.networks.intervals.shares import TooNoisy
from discreet.networks.network import Network
from discreet.values.table import Table

WEIGHTS = """
  const weigh = (given) => new Map(Object.entries(given).map(([name, levels]) => {
    const v = app.network.index.get(name);
    return [v, Float64Array.from(app.network.levels[v], (level) => Number(levels.includes(level)))];
  }));
"""
ANSWER = (
    "(cases) => { const app = discreet.app, { tree } = app;"
    + WEIGHTS
    + """
  return cases.map((given) => {
    const weights = weigh(given);
    tree.propagate(weights);
    const marginals = Array.from(tree.marginals), log = tree.logs[0];
    return { marginals, log, best: tree.explain(weights).log };
  });
}"""
)


def compare(name: str, show: Callable, count: int) -> None:
    network = load(name)
    cases = choose_evidence(network, count, seed=11)
    found = show(draw(name)).run(ANSWER, cases)
    worst = 0.0
    for given, answer in zip(cases, found, strict=True):
        expected = network.posteriors(given)
        flat = np.concatenate([expected[node] for node in network.nodes])
        worst = max(worst, np.abs(flat - answer["marginals"]).max())
        assert answer["log"] == pytest.approx(expected.log_evidence, abs=1e-9)
        assert answer["best"] == pytest.approx(network.most_probable(given).log_joint, abs=1e-9)
    assert worst < 1e-9


@pytest.mark.parametrize("name", BUNDLED)
def test_200_answers_are_those_of_python(name: str, show: Callable) -> None:
    """Levels and sets of levels, in every bundled network: to 1e-9, with P(evidence) and the best explanation."""
    compare(name, show, 200)


def test_levels_that_are_no_text_are_compared_too(show: Callable) -> None:
    """Levels that synthetic rows hold as truth values and numbers: the page and Python mean the same ones."""
    network = Network.build(
        {"sick": ["True", "False"], "visits": ["0", "1", "2"], "cost": ["0.5", "1e3"]},
        {"sick": [], "visits": ["sick"], "cost": ["sick", "visits"]},
        {"sick": [0.25, 0.75], "visits": [[0.2, 0.3, 0.5], [0.7, 0.2, 0.1]], "cost": np.full((2, 3, 2), 0.5)},
    )
    cases = choose_evidence(network, 40, seed=11)
    assert {level for given in cases for levels in given.values() for level in levels} >= {"True", "2", "1e3"}
    for given, answer in zip(cases, show(make_explorer(network)).run(ANSWER, cases), strict=True):
        expected = network.posteriors(given)
        flat = np.concatenate([expected[node] for node in network.nodes])
        assert np.abs(flat - answer["marginals"]).max() < 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("name", ["hailfinder", "win95pts", "insurance", "andes"])
def test_200_answers_are_those_of_python_in_large_networks(name: str, show: Callable) -> None:
    """The same in networks of 27 to 223 attributes."""
    compare(name, show, 200)


def test_information_is_that_of_the_joint_distribution(show: Callable) -> None:
    """I(target; X | evidence) of every X equals what the joint distribution of both gives."""
    network = load("asia")
    given = {"dysp": ["yes"]}
    found = show(draw("asia")).run(
        "([target, given]) => { const app = discreet.app;"
        + WEIGHTS
        + """
          app.state.read("#dysp=yes"); app.update();
          const { now, before } = app.influence(app.network.index.get(target));
          return { now: Array.from(now.bits), before: Array.from(before.bits), entropy: now.entropy };
        }""",
        ["lung", given],
    )
    for evidence, bits in ((given, found["now"]), ({}, found["before"])):
        for v, name in enumerate(network.nodes):
            if name == "lung":
                continue
            joint = network.query(["lung", name], evidence).table.values
            apart = joint.sum(1, keepdims=True) * joint.sum(0, keepdims=True)
            kept = joint > 0
            expected = float((joint[kept] * np.log2(joint[kept] / apart[kept])).sum())
            assert bits[v] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("name", ["asia", "alarm"])
def test_separation_is_that_of_networkx(name: str, show: Callable) -> None:
    """Random pairs and evidence: separated or not as networkx says, and an open path is listed if and only if not."""
    network = load(name)
    graph = nx.DiGraph(network.dag.edges())
    source = np.random.default_rng(3)
    cases = []
    for _ in range(120):
        drawn = [str(node) for node in source.choice(network.nodes, 2 + source.integers(0, 4), replace=False)]
        cases.append((drawn[0], drawn[1], drawn[2:]))
    found = show(draw(name)).run(
        """(cases) => cases.map(([from, to, known]) => {
          const { network } = discreet.app, at = (name) => network.index.get(name);
          const weights = new Map(known.map((name) => {
            const one = new Float64Array(network.sizes[at(name)]);
            one[0] = 1;
            return [at(name), one];
          }));
          const { connected, open, blocked } = discreet.findPaths(at(from), at(to), weights);
          return { connected, open: open.length, blocked: blocked.length };
        })""",
        cases,
    )
    for (one, other, known), answer in zip(cases, found, strict=True):
        separated = nx.is_d_separator(graph, {one}, {other}, set(known))
        assert answer["connected"] is not separated
        assert bool(answer["open"]) is not separated


@pytest.mark.parametrize("given", [{}, {"smoke": "yes"}, {"asia": "yes", "dysp": "yes"}])
def test_likely_intervals_are_the_calibrated_ones_of_python(given: dict[str, str], show: Callable) -> None:
    """With the same draws, packed into 16 bits each: within a thousandth; and none where Python refuses them."""
    known = release("asia", 20_000)
    page = show(make_explorer(known), "#" + "&".join(f"{name}={level}" for name, level in given.items()))
    page.run("discreet.app.state.interval = 'calibrated'; discreet.app.update()")
    page.settle()
    refused = 0
    for name in known.network.nodes:
        if name in given:
            continue
        likely = page.run(
            "(name) => { const ends = discreet.app.ends[discreet.app.network.index.get(name)];"
            " return ends?.likely ? [Array.from(ends.likely.low), Array.from(ends.likely.high)] : null; }",
            name,
        )
        try:
            answer = known.query(name, given, intervals="calibrated")
        except TooNoisy:
            assert likely is None
            refused += 1
            continue
        assert likely is not None
        assert np.allclose(likely[0], answer.lower, atol=1e-3)
        assert np.allclose(likely[1], answer.upper, atol=1e-3)
    assert refused < len(known.network.nodes)


def test_a_likely_interval_lies_within_the_sure_one(show: Callable) -> None:
    """Few rows fit the evidence, so half a row is much; smoking has nothing to do with it, and is known well."""
    page = show(make_explorer(release("asia", 20_000)), "#asia=yes&tub=yes")
    widths = []
    for kind in ("calibrated", "both"):
        page.run(f"discreet.app.state.interval = '{kind}'; discreet.app.update()")
        page.settle()
        sure, likely, point = page.run(
            "(() => { const { app } = discreet, v = app.network.index.get('smoke'), { sure, likely } = app.ends[v];"
            " const ends = (found) => found ? [found.low[0], found.high[0]] : null;"
            " return [ends(sure), ends(likely), app.slice(app.after, v)[0]]; })()"
        )
        assert likely[0] <= point <= likely[1]
        widths.append(likely[1] - likely[0])
    assert sure[0] <= likely[0] and likely[1] <= sure[1]
    assert widths[1] < widths[0]


def test_a_release_that_is_too_noisy_has_no_likely_intervals(show: Callable) -> None:
    """The page says why, and shows the sure ones."""
    known = release("asia", 60)
    page = show(make_explorer(known))
    page.settle()
    assert page.run("discreet.app.ends.every((found) => !found || !found.likely)")
    assert "No calibrated intervals: the noise outweighs many counts" in page.text("#meaning")


def read_sure(page: object, name: str) -> np.ndarray:
    return np.array(
        page.run(  # type: ignore[attr-defined]
            "(name) => { const { sure } = discreet.app.ends[discreet.app.network.index.get(name)];"
            " return [Array.from(sure.low), Array.from(sure.high)]; }",
            name,
        )
    )


@pytest.mark.parametrize("given", [{}, {"smoke": "yes"}, {"dysp": "yes", "xray": "no"}])
def test_sure_intervals_hold_every_network_of_the_set(given: dict[str, str], show: Callable) -> None:
    """They hold what Python guarantees, and the answers of networks drawn at the corners of the set."""
    known = release("asia")
    page = show(make_explorer(known), "#" + "&".join(f"{name}={level}" for name, level in given.items()))
    page.settle()
    credal = from_noise(known.network)
    source = np.random.default_rng(1)
    corners = [draw_corner(known.network, credal, source) for _ in range(60)]
    for name in known.network.nodes:
        if name in given:
            continue
        low, high = read_sure(page, name)
        answer = known.query(name, given, intervals="guaranteed")
        assert (low <= answer.lower + 1e-8).all() and (high >= answer.upper - 1e-8).all()
        if not given:  # children first is exact on what hangs together as a tree
            assert (high - low).max() < 1.5 * (answer.upper - answer.lower).max() + 1e-6
        for corner in corners:
            point = corner.query(name, given).table.values
            assert (point >= low - 1e-12).all() and (point <= high + 1e-12).all()


def draw_corner(network: Network, credal: object, source: np.random.Generator) -> Network:
    cpts = []
    for name in network.nodes:
        lower, upper = (end.values for end in credal.ends(name))  # type: ignore[attr-defined]
        flat, size = np.array(lower).reshape(-1, lower.shape[-1]), lower.shape[-1]
        top = np.array(upper).reshape(-1, size)
        for row in range(len(flat)):
            for level in source.permutation(size):
                flat[row, level] += min(top[row, level] - flat[row, level], max(0.0, 1 - flat[row].sum()))
        cpts.append(Table(network.dag.family(name), flat.reshape(lower.shape)))
    return Network(network.schema, network.dag, tuple(cpts))


def test_a_credal_network_shows_its_own_intervals(show: Callable) -> None:
    """The page of a credal network answers with its middle, and with bounds over all of it."""
    credal = from_noise(release("asia").network)
    page = show(make_explorer(credal, file="credal.json"), "#smoke=yes")
    page.settle()
    bounds = credal.query("lung", {"smoke": "yes"})
    low, high = read_sure(page, "lung")
    assert (low <= bounds.lower + 1e-8).all() and (high >= bounds.upper - 1e-8).all()
    assert page.shares("lung") == pytest.approx(
        list(credal.centre.query("lung", {"smoke": "yes"}).table.values)
    )


def test_the_mean_of_a_posterior_has_a_page(show: Callable) -> None:
    """A network without provenance says that nothing is promised, and has no intervals."""
    page = show(make_explorer(dc.examples.asia(), file="asia.bif"))
    page.settle()
    assert "does not say how its network was learned" in page.text("#meaning")
    assert page.run("discreet.app.ends.every((found) => found === null)")


@pytest.mark.parametrize("name", ["adaptive", "privbayes-binary"])
def test_a_searched_network_has_the_table_s_own_intervals_until_something_is_assumed(
    name: str, show: Callable
) -> None:
    """Those that Python guarantees; once something is assumed the page says that it cannot, and the bars fade out."""
    known = dc.read(Path(__file__).parents[1] / "golden" / f"{name}.json")
    page = show(make_explorer(known))
    page.settle()
    for node in known.network.declared.names:
        answer = known.network.query(node, of="table")
        low, high = read_sure(page, node)
        assert np.allclose(low, answer.lower) and np.allclose(high, answer.upper)
    assert "the table’s own answer lies on the line" in page.text("#meaning")
    page.run("() => discreet.app.set(0, 0)")
    page.settle()
    assert page.run("discreet.app.ends.every((found) => found === null)")
    assert "discreet query release.json" in page.text("#meaning")
    assert page.page.locator(".card.unsure").count() > 0
