"""Networks: what is accepted is kept as it is, what is not is refused with the table, the value and the rule."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.networks import examples
from discreet.networks.network import Network
from discreet.values.errors import GraphError, NetworkError, SchemaError
from discreet.values.graph import DAG
from discreet.values.schema import Attribute, Schema
from discreet.values.table import Table

LEVELS = {"a": ["x", "y"], "b": ["u", "v", "w"]}
PARENTS: dict[str, list[str]] = {"a": [], "b": ["a"]}
A = [0.25, 0.75]
B = [[0.2, 0.3, 0.5], [0.0, 0.0, 1.0]]


def build(a: Any = None, b: Any = None) -> Network:
    """Two nodes, a → b; with one table replaced."""
    return Network.build(LEVELS, PARENTS, {"a": A if a is None else a, "b": B if b is None else b})


def test_a_network_keeps_what_it_is_given() -> None:
    network = build()
    assert network.nodes == network.schema.names == network.dag.nodes == ("a", "b")
    assert network.cpt("b").axes == ("a", "b")
    np.testing.assert_array_equal(network.cpt("b").values, B)
    assert network.cpts[1] is network.cpt("b")
    assert repr(network) == "Network(2 nodes, 1 edges, 8 table cells)"
    assert network.close_to(build())
    assert not network.close_to(build(a=[0.25 + 1e-9, 0.75 - 1e-9]))
    assert network.close_to(build(a=[0.25 + 1e-9, 0.75 - 1e-9]), 1e-8)


def test_the_callers_arrays_stay_the_callers() -> None:
    rows = np.array(B)
    network = build(b=rows)
    before = network.query("b").probabilities.copy()
    rows[:] = [[1, 0, 0], [1, 0, 0]]
    np.testing.assert_array_equal(network.cpt("b").values, B)
    np.testing.assert_array_equal(network.query("b").probabilities, before)
    with pytest.raises(ValueError, match="read-only"):
        network.cpt("b").values[0, 0] = 1.0


def test_the_schema_fixes_the_order_of_the_nodes() -> None:
    network = Network.build(
        {"b": LEVELS["b"], "a": LEVELS["a"]}, DAG.from_edges([("a", "b")]), {"a": A, "b": B}
    )
    assert network.nodes == ("b", "a")
    assert network.query("b")["w"] == pytest.approx(0.25 * 0.5 + 0.75)


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        (
            {"a": [0.5, 0.6]},
            r"table of 'a': the conditional at \(\) sums to 1\.1; it must sum to 1 within 1e-06",
        ),
        ({"b": [[0.2, 0.3, 0.5], [0, 0, 0.9]]}, r"'b': the conditional at \(a=(1|y)\) sums to 0\.9"),
        ({"a": [-0.25, 1.25]}, r"table of 'a' holds the negative probability -0\.25"),
        ({"a": [np.nan, 1.0]}, "table of 'a' holds a value that is not a finite number"),
        ({"a": [np.inf, 1.0]}, "table of 'a' holds a value that is not a finite number"),
        ({"a": [0.2, 0.3, 0.5]}, r"table of 'a' has shape \(3,\); the schema says \(2,\)"),
        ({"b": np.transpose(B)}, r"table of 'b' has shape \(3, 2\); the schema says \(2, 3\)"),
        ({"b": [0.2, 0.3, 0.5]}, r"table of 'b' needs axes \('a', 'b'\); its array has 1 dimensions"),
        ({"a": 1.0}, r"table of 'a' needs axes \('a',\); its array has 0 dimensions"),
        ({"a": ["x", "y"]}, "table of 'a' is .*; probabilities are numbers"),
        ({"a": [[0.5], [0.2, 0.3]]}, "table of 'a' is .*; probabilities are numbers"),
        ({"a": [0.5 + 0j, 0.5]}, "table of 'a' is .*; probabilities are numbers"),
        ({"a": None}, "table of 'a' .*"),
        ({"a": [0.5 + 2e-6, 0.5]}, r"sums to 1\.000002"),
    ],
)
def test_tables_that_are_no_probabilities_are_refused(tables: dict[str, Any], message: str) -> None:
    with pytest.raises(NetworkError, match=message):
        Network.build(LEVELS, PARENTS, {"a": A, "b": B, **tables})


def test_tables_and_nodes_must_match() -> None:
    with pytest.raises(NetworkError, match="table for 'b': missing"):
        Network.build(LEVELS, PARENTS, {"a": A})
    with pytest.raises(NetworkError, match="table for 'c': no such node"):
        Network.build(LEVELS, PARENTS, {"a": A, "b": B, "c": A})
    with pytest.raises(GraphError, match="attribute 'b' is in the schema, but not in the graph"):
        Network.build(LEVELS, {"a": [], "c": ["a"]}, {"a": A, "b": B})
    with pytest.raises(GraphError, match="cycle through a, b"):
        Network.build(LEVELS, {"a": ["b"], "b": ["a"]}, {"a": A, "b": B})
    with pytest.raises(GraphError, match="node 'b' has the unknown parent 'z'"):
        Network.build(LEVELS, {"a": [], "b": ["z"]}, {"a": A, "b": B})
    with pytest.raises(SchemaError, match="attribute 'a': 1 levels; at least 2"):
        Network.build({"a": ["x"]}, {"a": []}, {"a": [1.0]})
    with pytest.raises(GraphError, match="unknown node 'z'; the graph has a, b"):
        build().cpt("z")


def test_the_plain_constructor_checks_as_much() -> None:
    schema, dag = Schema.of(LEVELS), DAG.build(PARENTS)
    tables = (Table(("a",), np.array(A)), Table(("a", "b"), np.array(B)))
    assert Network(schema, dag, tables).close_to(build())
    with pytest.raises(NetworkError, match="2 nodes need as many tables, not 1"):
        Network(schema, dag, tables[:1])
    with pytest.raises(NetworkError, match=r"table of 'a' has axes \('b',\); its family is \('a',\)"):
        Network(schema, dag, (Table(("b",), np.array(A)), tables[1]))
    with pytest.raises(NetworkError, match=r"table of 'b' has axes \('b', 'a'\); its family is \('a', 'b'\)"):
        Network(schema, dag, (tables[0], tables[1].arrange(["b", "a"])))
    with pytest.raises(NetworkError, match="table of 'a' holds int64; probabilities are float64"):
        Network(schema, dag, (Table(("a",), np.array([0, 1])), tables[1]))
    with pytest.raises(NetworkError, match="the schema declares a, b; the graph has b, a"):
        Network(schema, DAG.build({"b": ["a"], "a": []}), tables)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32 - 1), st.floats(-1, 1))
def test_conditionals_may_be_off_by_rounding_only(seed: int, off: float) -> None:
    rng = np.random.default_rng(seed)
    rows: npt.NDArray[np.float64] = rng.dirichlet([1, 1, 1], size=2)
    rows[1] *= 1 + 0.9e-6 * off
    network = build(b=rows)
    np.testing.assert_array_equal(network.cpt("b").values, rows)
    for given_ in ({}, {"a": "y"}, {"a": "x"}):
        assert network.query("b", given_).probabilities.sum() == pytest.approx(1, abs=1e-6)
    rows[1] *= 1 + np.copysign(2.1e-6, off)
    with pytest.raises(NetworkError, match=r"table of 'b': the conditional at \(a=(1|y)\)"):
        build(b=rows)


@pytest.mark.parametrize(
    ("name", "nodes", "arcs", "parameters"),
    [("asia", 8, 8, 18), ("sachs", 11, 17, 178), ("child", 20, 25, 230), ("alarm", 37, 46, 509)],
)
def test_the_networks_inside_have_their_published_sizes(
    name: str, nodes: int, arcs: int, parameters: int
) -> None:
    network = examples.load(name)
    assert len(network.nodes) == nodes
    assert len(network.dag.edges()) == arcs
    assert network.dag.complexity(network.schema.sizes) == parameters


def test_asia_by_hand() -> None:
    """P(lung) = .5·.1 + .5·.01, P(tub) = .01·.05 + .99·.01, P(bronc) = .5·.6 + .5·.3."""
    asia = examples.asia()
    assert asia.query("bronc")["yes"] == pytest.approx(0.45)
    assert asia.query("lung")["yes"] == pytest.approx(0.055)
    assert asia.query("tub")["yes"] == pytest.approx(0.0104)
    assert asia.query("lung", {"smoke": "yes"})["yes"] == pytest.approx(0.1)
    assert asia.query("tub", {"asia": "yes"})["yes"] == pytest.approx(0.05)
    assert asia.query("either")["yes"] == pytest.approx(1 - (1 - 0.055) * (1 - 0.0104))


def test_answers_read_like_dictionaries() -> None:
    network = build()
    answer = network.query("b", {"a": "x"})
    assert list(answer) == ["u", "v", "w"]
    assert dict(answer) == pytest.approx({"u": 0.2, "v": 0.3, "w": 0.5})
    assert (len(answer), answer.best, answer.title) == (3, "w", "P(b | a=x)")
    assert answer["u"] == answer[("u",)] == answer.get("u")
    assert "u" in answer
    assert "z" not in answer
    assert answer.get("z", -1.0) == -1.0
    assert str(answer).splitlines()[1] == "  u  0.2000"
    both = network.query(["b", "a"])
    assert list(both)[:3] == [("u", "x"), ("u", "y"), ("v", "x")]
    assert both["w", "y"] == pytest.approx(0.75)
    assert both.best == ("w", "y")
    assert both.title == "P(b, a)"
    assert ("w", "z") not in both
    assert "<table>" in answer._repr_html_()


def test_an_answer_escapes_what_a_page_would_run() -> None:
    network = Network.build({"<b>": ["<script>", "y"]}, {"<b>": []}, {"<b>": [0.5, 0.5]})
    page = network.query("<b>")._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


def test_a_long_answer_prints_its_peaks() -> None:
    levels = [f"level {i}" for i in range(60)]
    weights = np.arange(1.0, 61)
    network = Network.build({"a": levels}, {"a": []}, {"a": weights / weights.sum()})
    lines = str(network.query("a")).splitlines()
    assert lines[1].startswith("  level 48")
    assert lines[12].startswith("  level 59")
    assert lines[-1] == "  … and 48 less probable"


def test_numbers_are_evidence_for_their_bin_and_missing_is_a_level() -> None:
    age = Attribute.binned("age", [0, 18, 65, 120], missing="unknown")
    schema = Schema((age, Attribute.of("ill", ["no", "yes"])))
    network = Network.build(
        schema, {"age": [], "ill": ["age"]},
        {"age": [0.2, 0.5, 0.2, 0.1], "ill": [[0.9, 0.1], [0.8, 0.2], [0.5, 0.5], [0.7, 0.3]]},
    )  # fmt: skip
    assert network.query("ill", {"age": 17.9})["yes"] == pytest.approx(0.1)
    assert network.query("ill", {"age": 18})["yes"] == pytest.approx(0.2)
    assert network.query("ill", {"age": "[65, 120]"})["yes"] == pytest.approx(0.5)
    assert network.query("ill", {"age": None})["yes"] == pytest.approx(0.3)
    assert network.query("ill", {"age": "unknown"})["yes"] == pytest.approx(0.3)
    found, _ = network.posteriors_of_rows({"age": [17, None, 70.0]})
    np.testing.assert_allclose(found[:, -1], [0.1, 0.3, 0.5])
    unseen, log_p = network.posteriors_of_rows({"ill": ["yes", None]})
    assert log_p[1] == 0.0
    np.testing.assert_allclose(unseen[1, :4], [0.2, 0.5, 0.2, 0.1])
