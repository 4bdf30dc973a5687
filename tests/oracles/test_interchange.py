"""pgmpy, pyAgrum and networkx hold the same network after the exchange, by its joint probabilities."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest

from discreet.networks import examples
from discreet.networks.formats.bif import parse_bif, read_bif, write_bif
from discreet.networks.formats.interchange import (
    from_networkx,
    from_pgmpy,
    from_pyagrum,
    to_networkx,
    to_pgmpy,
    to_pyagrum,
)
from discreet.networks.network import Network
from discreet.values.errors import GraphError, MissingExtra, NetworkError
from discreet.values.graph import DAG

pgmpy_models = pytest.importorskip("pgmpy.models")
gum = pytest.importorskip("pyagrum")


def random_network(seed: int) -> Network:
    rng = np.random.default_rng(seed)
    names = [str(name) for name in rng.permutation(["b", "a", "node three", "é", "z9"])]
    levels = {name: [f"{name}:{i} x" for i in range(rng.integers(2, 5))] for name in names}
    order = rng.permutation(names)
    parents = {}
    for i, name in enumerate(order):
        count = int(rng.integers(0, min(i, 3) + 1))
        parents[str(name)] = [str(parent) for parent in rng.choice(order[:i], size=count, replace=False)]
    cpts = {}
    for name in names:
        shape = [len(levels[member]) for member in (*parents[name], name)]
        cpts[name] = rng.dirichlet(np.ones(shape[-1]), size=shape[:-1])
    return Network.build(levels, {name: parents[name] for name in names}, cpts)


NETWORKS = {name: examples.load(name) for name in examples.names()} | {
    f"random {seed}": random_network(seed) for seed in range(6)
}


def some_states(network: Network) -> list[dict[str, int]]:
    if np.prod(list(network.schema.sizes.values()), dtype=float) <= 300:
        ranges = [range(size) for size in network.schema.sizes.values()]
        return [dict(zip(network.nodes, codes, strict=True)) for codes in itertools.product(*ranges)]
    rng = np.random.default_rng(0)
    return [{name: int(rng.integers(size)) for name, size in network.schema.sizes.items()} for _ in range(25)]


def joint_probability(network: Network, codes: dict[str, int]) -> float:
    values = [cpt.values[tuple(codes[member] for member in cpt.axes)] for cpt in network.cpts]
    return float(np.prod(values))


def label(network: Network, codes: dict[str, int]) -> dict[str, str]:
    return {name: network.schema[name].levels[code] for name, code in codes.items()}


def ask_pgmpy(model: Any, states: dict[str, str]) -> float:
    return float(model.get_state_probability(states))


def ask_pyagrum(model: Any, states: dict[str, str]) -> float:
    instantiation = model.completeInstantiation()
    instantiation.fromdict(states)
    return float(model.jointProbability(instantiation))


@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)
@pytest.mark.parametrize(
    ("send", "receive", "ask"),
    [(to_pgmpy, from_pgmpy, ask_pgmpy), (to_pyagrum, from_pyagrum, ask_pyagrum)],
    ids=["pgmpy", "pyagrum"],
)
def test_joint_probabilities_are_equal_and_the_way_back_is_exact(
    network: Network, send: Any, receive: Any, ask: Any
) -> None:
    model = send(network)
    for codes in some_states(network):
        expected = joint_probability(network, codes)
        assert ask(model, label(network, codes)) == pytest.approx(expected, rel=1e-9, abs=1e-300)
    assert receive(model).close_to(network, 0)


@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)
def test_graphs_keep_their_order_in_networkx(network: Network) -> None:
    digraph = to_networkx(network)
    assert isinstance(digraph, networkx.DiGraph)
    assert set(digraph.edges) == set(network.dag.edges())
    assert from_networkx(digraph) == network.dag
    assert from_networkx(to_networkx(network.dag)) == network.dag


@pytest.mark.parametrize("name", examples.names())
def test_pgmpy_reads_what_we_write_and_we_read_what_it_writes(name: str, tmp_path: Path) -> None:
    readwrite = pytest.importorskip("pgmpy.readwrite")
    network = examples.load(name)
    write_bif(network, tmp_path / "ours.bif")
    model = readwrite.BIFReader(str(tmp_path / "ours.bif")).get_model()
    assert from_pgmpy(model).close_to(network, 1e-12)
    readwrite.BIFWriter(to_pgmpy(network)).write(str(tmp_path / "theirs.bif"))
    theirs = read_bif(tmp_path / "theirs.bif")
    for codes in some_states(network):
        assert joint_probability(theirs, codes) == pytest.approx(joint_probability(network, codes), rel=1e-6)


@pytest.mark.parametrize("name", ["asia", "sachs", "alarm"])  # it cannot read the label Asy/Patch of Child
def test_pyagrum_reads_what_we_write_and_we_read_what_it_writes(name: str, tmp_path: Path) -> None:
    network = examples.load(name)
    write_bif(network, tmp_path / "ours.bif")
    model = gum.loadBN(str(tmp_path / "ours.bif"))
    assert from_pyagrum(model).close_to(network, 1e-6)  # it reads BIF numbers as 32-bit floats
    gum.saveBN(to_pyagrum(network), str(tmp_path / "theirs.bif"))
    assert read_bif(tmp_path / "theirs.bif").close_to(network, 1e-6)


def test_all_three_read_a_flat_conditional_table_alike(tmp_path: Path) -> None:
    readwrite = pytest.importorskip("pgmpy.readwrite")
    text = (
        "network unknown {\n}\n"
        "variable p {\n  type discrete [ 2 ] { a, b };\n}\n"
        "variable q {\n  type discrete [ 3 ] { u, v, w };\n}\n"
        "variable c {\n  type discrete [ 2 ] { x, y };\n}\n"
        "probability ( p ) {\n  table 0.3, 0.7;\n}\nprobability ( q ) {\n  table 0.2, 0.3, 0.5;\n}\n"
        "probability ( c | p, q ) {\n  table 0.01, 0.02, 0.03, 0.04, 0.05, 0.06, "
        "0.99, 0.98, 0.97, 0.96, 0.95, 0.94;\n}\n"
    )
    (tmp_path / "flat.bif").write_text(text)
    ours = parse_bif(text)
    assert from_pyagrum(gum.loadBN(str(tmp_path / "flat.bif"))).close_to(ours, 1e-6)
    assert from_pgmpy(readwrite.BIFReader(str(tmp_path / "flat.bif")).get_model()).close_to(ours, 1e-12)


def test_pgmpy_states_in_another_order_are_put_right() -> None:
    factors = pytest.importorskip("pgmpy.factors.discrete")
    model = pgmpy_models.DiscreteBayesianNetwork([("a", "b")])
    model.add_cpds(
        factors.TabularCPD("a", 2, [[0.25], [0.75]], state_names={"a": ["x", "y"]}),
        factors.TabularCPD(
            "b", 2, [[0.1, 0.2], [0.9, 0.8]], ["a"], [2], state_names={"b": [0, 1], "a": ["y", "x"]}
        ),
    )
    network = from_pgmpy(model)
    assert network.schema["b"].levels == ("0", "1")
    np.testing.assert_array_equal(network.cpt("b").values, [[0.2, 0.8], [0.1, 0.9]])
    model.get_cpds("b").state_names["a"] = ["y", "z"]
    with pytest.raises(NetworkError, match="the pgmpy table of 'b' has states 'y', 'z' for 'a'"):
        from_pgmpy(model)


def test_unfinished_and_foreign_models_are_refused() -> None:
    with pytest.raises(NetworkError, match="node 'a' of the pgmpy model has no table"):
        from_pgmpy(pgmpy_models.DiscreteBayesianNetwork([("a", "b")]))
    with pytest.raises(NetworkError, match="a dict is not a discrete Bayesian network of pgmpy"):
        from_pgmpy({})
    with pytest.raises(NetworkError, match="a dict is not a Bayesian network of pyAgrum"):
        from_pyagrum({})
    unset = gum.fastBN("a->b")
    unset.cpt("b").fillWith(0.3)
    with pytest.raises(NetworkError, match=r"sums to 0\.6"):
        from_pyagrum(unset)


def test_graphs_that_are_none_are_refused() -> None:
    with pytest.raises(GraphError, match="a Graph has no directed edges"):
        from_networkx(networkx.Graph([("a", "b")]))
    with pytest.raises(GraphError, match="node 1 is a int; the nodes must be names"):
        from_networkx(networkx.DiGraph([(1, 2)]))
    with pytest.raises(GraphError, match="cycle"):
        from_networkx(networkx.DiGraph([("a", "b"), ("b", "a")]))
    assert from_networkx(networkx.DiGraph([("a", "b")])) == DAG.build({"a": [], "b": ["a"]})


@pytest.mark.parametrize(
    ("send", "package"), [(to_pgmpy, "pgmpy"), (to_pyagrum, "pyagrum"), (to_networkx, "networkx")]
)
def test_a_missing_package_names_the_extra(send: Any, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [found for found in sys.modules if found.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, package, None)  # what an import of a missing package looks like
    with pytest.raises(MissingExtra, match=rf"{package}.*pip install 'discreet\[interchange\]"):
        send(examples.asia())
